"""Which runtime opens which model.

One file per runtime, each importing its own heavy library only when it is asked for. To add one,
write its `from_file(path, settings)` and name it in the table.
"""

import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack

from ..demo import MODEL as DEMO
from ..errors import InputError
from .callables import from_name, from_object
from .model import Model
from .provenance import Origin
from .settings import ModelSettings, read_settings

RUNTIMES = {".onnx": "onnx", ".pt": "torch", ".pt2": "torch"}  # suffix -> module beside this one


def load_model(model: Any, **settings: Unpack[ModelSettings]) -> Model:
    """Load a model that can be explained.

    `model` is the path of an `.onnx` file, a TorchScript `.pt` or exported `.pt2` file, a
    `package.module:callable`, `demo` for the embedded traffic-sign model, a torch module, or any
    callable from images (N, H, W, 3) to scores (N, C).

    `settings` are what a model file does not say. The TOML file beside it (`model.onnx` ->
    `model.toml`) may hold them too; arguments win. Every function that takes a model takes them.

    labels : list of names, or a text file with one per line
    size : rows and columns of the input, where the model leaves them open
    short_side : resize the short side to this, then cut `size` from the middle
    filter : "nearest", "bilinear", "bicubic", "lanczos" or "area"
    scale, mean, std : pixels go in as `(pixel / scale - mean) / std`; one number, or one per color
    layout : "NCHW" or "NHWC"
    channels : "rgb" or "bgr"
    name : which output, where there are several
    softmax, sigmoid : apply one to logits
    score_kind : what then comes out: "probability", "independent" or "any"
    threads : of the runtime; all cores if left out
    """
    given = dict(settings)
    if not isinstance(model, str | Path):
        return from_object(model, read_settings(None, given))
    path = DEMO if str(model) == "demo" else Path(model)
    suffix = path.suffix.lower()
    if suffix in RUNTIMES:
        if not path.is_file():
            raise InputError(f"The model {path} does not exist: give the path of the file.")
        runtime: Any = importlib.import_module(f".{RUNTIMES[suffix]}", __package__)
        opened: Model = runtime.from_file(path, read_settings(path, given))
        return opened
    if ":" in str(model):
        return from_name(str(model), read_settings(None, given))
    raise InputError(
        f"The model is {str(model)!r}, but an {', '.join(RUNTIMES)} file, package.module:callable "
        "or demo is needed."
    )


def find_file(origin: Origin, folders: Iterable[Path]) -> Path | None:
    """The file that a run's model was read from, if it is the embedded one or in a folder.

    Only ONNX files: whatever runs code when it is loaded is opened on request alone.
    """
    from .onnx import weights_digest

    if not origin.name.endswith(".onnx"):
        return None
    beside = [file for folder in folders for file in sorted(Path(folder).glob("*.onnx"))]
    beside.sort(key=lambda file: file.name != origin.name)  # most likely it kept its name
    # A copy of the embedded one under another name has other settings than are beside it.
    embedded = [DEMO] if origin.name == DEMO.name else []
    for file in (*beside, *embedded):
        if os.path.isfile(file) and weights_digest(file) == origin.digest:
            return file
    return None
