"""ONNX files, through ONNX Runtime."""

import hashlib
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.threads import THREADS, n_cores
from ..errors import InputError, first_line, with_cause
from .batches import Call, FixedBatch
from .inputs import read_input
from .model import Model
from .outputs import Head, pick_head, several
from .settings import Settings, file_digest, size_named

# The protobuf of {key: "location", value: <file name>}, up to the length of the name: seven bits a
# byte, the lowest first. Torch's exporter writes model.onnx.data.
LOCATION = rb"\n\x08location\x12([\x80-\xff]{0,2}[\x00-\x7f])"
DTYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}


def from_file(path: Path, settings: Settings) -> Model:
    """Read what the file says of its input and take the rest from the settings."""
    session = open_session(path, settings.threads, settings.device)
    digest = weights_digest(path)
    return make_model(
        session,
        str(path),
        settings,
        path.name,
        digest,
        lambda: open_session(path, 1, settings.device),
    )


def from_object(session: Any, settings: Settings) -> Model:
    """A session of the user's own, with its threads, and its providers unless one is named."""
    if settings.device is not None:
        session.set_providers(providers_of(settings.device))
    path, content = getattr(session, "_model_path", None), getattr(session, "_model_bytes", None)
    digest = weights_digest(Path(path)) if path and Path(path).is_file() else ""
    if isinstance(content, bytes):
        digest = hashlib.sha256(content).hexdigest()
    return make_model(session, "The session", settings, "InferenceSession", digest)


def make_model(
    session: Any,
    where: str,
    settings: Settings,
    name: str,
    digest: str,
    open_single: Callable[[], Any] | None = None,
) -> Model:
    """`open_single` opens the same file for one thread."""
    try:
        wanted, outputs = image_input(where, session), session.get_outputs()
        heads = [Head(output.name, tuple(output.shape)) for output in outputs]
        head = pick_head(where, heads, settings.name, guess=True)
        input_name, output = wanted.name, heads[head].name
    except UnicodeDecodeError:
        raise InputError(
            f"{where} has an input or output whose name is not UTF-8 text: export it with another."
        ) from None
    if wanted.type not in DTYPES:
        raise InputError(
            f"{where} takes {wanted.type}, but images go in as float32, float16 or uint8: export "
            "it with one of these."
        )
    about = read_input(where, wanted.shape, DTYPES[wanted.type], settings)
    size = about["geometry"].size

    def run(batch: NDArray[Any], session: Any = session) -> NDArray[Any]:
        with size_named(size):
            return np.asarray(session.run([output], {input_name: batch})[0])

    def copies(n: int) -> list[Call]:
        assert open_single is not None
        return [partial(run, session=open_single())] * n  # a session may run several times at once

    about["notes"] += several(heads, head, settings.name)
    fixed = wanted.shape[0]
    if not isinstance(fixed, int):
        return settings.model(run, name, digest, **about)
    predict = FixedBatch(run, fixed, copies if open_single else None, settings.threads)
    return settings.model(predict, name, digest, **about)


def providers_of(device: str | None) -> list[str]:
    """All that are there, best first; or those of a name, as in CUDA for CUDAExecutionProvider."""
    import onnxruntime

    there = list(onnxruntime.get_available_providers())
    if device is None:
        return there
    names = {one.removesuffix("ExecutionProvider").lower(): one for one in there}
    wanted = device.removesuffix("ExecutionProvider").lower()
    if wanted not in names:
        raise InputError(
            f"ONNX Runtime has no device {device!r} here: it has "
            f"{', '.join(one.removesuffix('ExecutionProvider') for one in there)}."
        )
    return [names[wanted]]


def open_session(path: Path, threads: int | None, device: str | None = None) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong reaches the user as an exception, once
    if threads is None and os.environ.get(THREADS):
        threads = n_cores()
    if threads is not None:
        options.intra_op_num_threads = threads
    providers = providers_of(device)
    try:
        return onnxruntime.InferenceSession(path, options, providers=providers)
    except Exception as error:
        refused = InputError(
            f"{path} is not a model that ONNX Runtime can load ({first_line(error)}): export or "
            "download it again, with the files of its weights beside it."
        )
        raise with_cause(refused, error) from None


def image_input(where: str, session: Any) -> Any:
    inputs = session.get_inputs()
    images = [given for given in inputs if len(given.shape) == 4]
    if len(inputs) != 1 or len(images) != 1:
        shapes = ", ".join(f"{given.name} {given.shape}" for given in inputs)
        raise InputError(
            f"{where} takes {shapes}, but one batch of images (four dimensions) is needed."
        )
    return images[0]


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
