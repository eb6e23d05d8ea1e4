"""LiteRT (TensorFlow Lite): `.tflite` files with float or quantised numbers."""

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.threads import n_cores
from ..errors import InputError, first_line, with_cause
from .batches import Call, FixedBatch
from .inputs import read_input
from .model import Model
from .outputs import Head, pick_head
from .settings import Settings, file_digest, with_known

WHOLE = {np.dtype(np.uint8): 0, np.dtype(np.int8): -128}  # what a black pixel is in each


def from_file(path: Path, settings: Settings) -> Model:
    """Quantised inputs take a pixel as it is, unless scale, mean or std say otherwise."""
    settings.refuse_device()
    interpreter = open_interpreter(path, settings)
    settings = with_known(settings, labels_in(path))
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    if len(inputs) != 1:
        names = ", ".join(given["name"] for given in inputs)
        raise InputError(f"{path} takes {names}, but one batch of images is needed.")
    wanted = inputs[0]
    shape, dtype = open_shape(wanted), np.dtype(wanted["dtype"])
    if dtype not in (*WHOLE, np.float32):
        raise InputError(
            f"{path} takes {dtype}, but images go in as float32, uint8 or int8: convert it with "
            "one of these."
        )
    heads = [Head(one["name"], open_shape(one)) for one in outputs]
    answer = outputs[pick_head(str(path), heads, settings.name)]
    # What the interpreter gets as int8 or by scales of its own is computed from floats.
    plain = dtype == np.uint8 and not settings.normalised
    about = read_input(str(path), shape, "uint8" if plain else "float32", settings)
    if dtype in WHOLE and not plain:
        about |= quantised(wanted, settings)
    step = answer["quantization"][0] if np.dtype(answer["dtype"]).kind in "iu" else 0.0
    run = Interpreter(interpreter, wanted, answer)

    def copies(n: int) -> list[Call]:
        single = replace(settings, threads=1)
        return [Interpreter(open_interpreter(path, single), wanted, answer) for _ in range(n)]

    fixed = shape[0]
    return settings.model(
        run if fixed is None else FixedBatch(run, fixed, copies, settings.threads),
        path.name,
        file_digest(path),
        rounding=0.0 if settings.softmax or settings.sigmoid else step,
        **about,
    )


def open_interpreter(path: Path, settings: Settings) -> Any:
    try:
        from ai_edge_litert import interpreter as litert
    except ImportError:
        raise InputError(
            "This model needs LiteRT (the extra litert): pip install ai-edge-litert."
        ) from None
    threads = settings.threads or n_cores()
    try:
        # From memory: the interpreter maps a file, and one that is cut short later ends Python.
        opened = litert.Interpreter(model_content=path.read_bytes(), num_threads=threads)
        opened.allocate_tensors()
    except Exception as error:
        refused = InputError(
            f"{path} is not a model that LiteRT can load ({first_line(error)}): convert or "
            "download it again, with operators that LiteRT itself has."
        )
        raise with_cause(refused, error) from None
    return opened


class Interpreter:
    """An interpreter as a function of a batch, in the numbers of the model."""

    def __init__(self, interpreter: Any, wanted: dict[str, Any], answer: dict[str, Any]) -> None:
        self.interpreter, self.wanted, self.answer = interpreter, wanted, answer
        self.dtype = np.dtype(wanted["dtype"])
        self.n_images = int(wanted["shape"][0])

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        if len(batch) != self.n_images:
            self.interpreter.resize_tensor_input(self.wanted["index"], batch.shape, strict=True)
            self.interpreter.allocate_tensors()
            self.n_images = len(batch)
        if self.dtype != batch.dtype:
            limits = np.iinfo(self.dtype)
            batch = np.clip(np.rint(batch), limits.min, limits.max).astype(self.dtype)
        self.interpreter.set_tensor(self.wanted["index"], batch)
        self.interpreter.invoke()
        answer = self.interpreter.get_tensor(self.answer["index"])
        step, zero = self.answer["quantization"]
        if answer.dtype.kind in "iu" and step:
            return np.asarray((answer.astype(np.float32) - zero) * np.float32(step))
        return np.asarray(answer)


def quantised(wanted: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """How a pixel becomes one of the whole numbers that an input takes."""
    dtype = np.dtype(wanted["dtype"])
    if not settings.normalised:
        return {"gain": (1.0,) * 3, "offset": (float(WHOLE[dtype]),) * 3, "notes": ()}
    step, zero = wanted["quantization"]
    gain, offset = settings.affine()
    step = step or 1.0
    return {
        "gain": tuple(one / step for one in gain),
        "offset": tuple(one / step + zero for one in offset),
    }


def open_shape(tensor: dict[str, Any]) -> tuple[int | None, ...]:
    """The shape of a tensor; None where it may be resized."""
    sides = tensor["shape_signature"] if len(tensor["shape_signature"]) else tensor["shape"]
    return tuple(None if side < 0 else int(side) for side in sides)


def labels_in(path: Path) -> dict[str, Any]:
    """The labels that a file with metadata has packed behind the model."""
    if not zipfile.is_zipfile(path):
        return {}
    with zipfile.ZipFile(path) as packed:
        lists = [name for name in packed.namelist() if name.endswith(".txt")]
        if len(lists) != 1:
            return {}
        lines = packed.read(lists[0]).decode("utf-8", "replace").splitlines()
    return {"labels": [line.strip() for line in lines if line.strip()]}
