"""ONNX files, through ONNX Runtime."""

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.threads import THREADS, n_cores
from ..errors import InputError
from .model import Model
from .settings import Settings, file_digest, size_named

# The protobuf of {key: "location", value: <file name>}, up to the length of the name: seven bits a
# byte, the lowest first. Torch's exporter writes model.onnx.data.
LOCATION = rb"\n\x08location\x12([\x80-\xff]{0,2}[\x00-\x7f])"
DTYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}


def from_file(path: Path, settings: Settings) -> Model:
    """Read what the file says of its input and take the rest from the settings."""
    session = open_session(path, settings.threads)
    try:
        wanted, output = image_input(path, session), pick_output(path, session, settings.name)
        name = wanted.name
    except UnicodeDecodeError:
        raise InputError(
            f"{path} has an input or output whose name is not UTF-8 text: export it with another."
        ) from None
    if wanted.type not in DTYPES:
        raise InputError(
            f"{path} takes {wanted.type}, but images go in as float32, float16 or uint8: export "
            "it with one of these."
        )
    dtype = DTYPES[wanted.type]
    layout, size = read_shape(path, wanted.shape, settings)
    notes: tuple[str, ...] = ()
    if settings.layout is None and not {wanted.shape[1], wanted.shape[3]} & {1, 3}:
        notes = ("the model does not say where its channels are, so NCHW was assumed",)
    gain, offset = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
    if dtype != "uint8" or settings.normalised:
        gain, offset = settings.affine()
        if not settings.normalised:
            notes += ("no preprocessing was given, so pixels go in scaled to 0..1",)
    fixed = wanted.shape[0] if isinstance(wanted.shape[0], int) else None
    geometry = settings.geometry(size)
    return settings.model(
        Session(session, name, output, fixed, geometry.size),
        path.name,
        weights_digest(path),
        geometry=geometry,
        layout=layout,
        dtype=dtype,
        gain=gain,
        offset=offset,
        notes=notes,
    )


class Session:
    """A session as a function of a batch; a fixed batch size is met by slicing and padding."""

    def __init__(
        self, session: Any, name: str, output: str, fixed: int | None, size: tuple[int, int] | None
    ) -> None:
        self.session, self.name, self.output = session, name, output
        self.fixed, self.size = fixed, size

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        if self.fixed is None or self.fixed == len(batch):
            return self.run(batch)
        answers = []
        for start in range(0, len(batch), self.fixed):
            part = batch[start : start + self.fixed]
            missing = self.fixed - len(part)
            padded = np.concatenate([part, np.repeat(part[-1:], missing, axis=0)])
            answers.append(self.run(padded)[: len(part)])
        return np.concatenate(answers)

    def run(self, batch: NDArray[Any]) -> NDArray[Any]:
        with size_named(self.size):
            answer = np.asarray(self.session.run([self.output], {self.name: batch})[0])
        # (N, C, 1, 1), as a global pool leaves it, is a table of scores; other pictures are not.
        return answer.reshape(answer.shape[:2]) if set(answer.shape[2:]) == {1} else answer


def open_session(path: Path, threads: int | None) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong reaches the user as an exception, once
    if threads is None and os.environ.get(THREADS):
        threads = n_cores()
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        providers = onnxruntime.get_available_providers()
        return onnxruntime.InferenceSession(path, options, providers=providers)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"{path} is not a model that ONNX Runtime can load ({reason.rstrip('.')}): export or "
            "download it again."
        ) from None


def image_input(path: Path, session: Any) -> Any:
    inputs = session.get_inputs()
    images = [given for given in inputs if len(given.shape) == 4]
    if len(inputs) != 1 or len(images) != 1:
        shapes = ", ".join(f"{given.name} {given.shape}" for given in inputs)
        raise InputError(
            f"{path} takes {shapes}, but one batch of images (four dimensions) is needed."
        )
    return images[0]


def read_shape(
    path: Path, shape: list[Any], settings: Settings
) -> tuple[str, tuple[int, int] | None]:
    """The layout, and rows and columns where the model fixes them."""
    if settings.layout is not None:
        layout = settings.layout
    else:
        layout = "NHWC" if shape[3] in (1, 3) and shape[1] not in (1, 3) else "NCHW"
    if layout not in ("NCHW", "NHWC"):
        raise InputError(f"The layout is {layout!r}, but it must be NCHW or NHWC.")
    rows, cols = shape[2:] if layout == "NCHW" else shape[1:3]
    n_channels = shape[1] if layout == "NCHW" else shape[3]
    if n_channels == 1:
        raise InputError(
            f"{path} takes images of one channel, so it sees no colors to explain: a model with "
            "three (rgb) is needed."
        )
    if isinstance(n_channels, int) and n_channels != 3:
        raise InputError(
            f"{path} takes {n_channels} channels in layout {layout}, but three (rgb) are needed: "
            "export it so, or give its layout."
        )
    if isinstance(rows, int) and isinstance(cols, int):
        return layout, (rows, cols)
    return layout, None


def pick_output(path: Path, session: Any, name: str | None) -> str:
    """The output of that name, else the first that looks like scores (N, C), else the first."""
    outputs = session.get_outputs()
    names = [output.name for output in outputs]
    if name is not None:
        if name not in names:
            raise InputError(f"{path} has no output {name!r}: it has {', '.join(names)}.")
        return name
    tables = [o.name for o in outputs if o.type.startswith("tensor(") and len(o.shape) == 2]
    return str((tables or names)[0])


def weights_digest(path: Path) -> str:
    """The digest of the file and of those beside it that it says hold its large weights."""
    content = path.read_bytes()
    named = {
        content[match.end() : match.end() + length(match[1])]
        for match in re.finditer(LOCATION, content, re.DOTALL)
    }
    digests = [
        file_digest(beside)
        for name in sorted(named)
        if (beside := path.parent / name.decode(errors="replace")).is_file()
    ]
    return hashlib.sha256(" ".join([file_digest(path), *digests]).encode()).hexdigest()


def length(bits: bytes) -> int:
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(bits))
