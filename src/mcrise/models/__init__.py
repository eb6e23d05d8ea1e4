"""Models from files, modules and callables: `load_model(model)`.

One file per runtime, each importing its own heavy library only when it is asked for. To add one,
write its `from_file(path, settings)` and name it in the table.
"""

import importlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from ..demo import MODEL as DEMO
from ..errors import InputError
from .callables import from_name, from_object
from .model import Model
from .provenance import Origin
from .scores import ScoreKind
from .settings import Settings, read_settings

__all__ = ["ModelSettings", "Settings", "find_file", "load_model", "read_settings"]

RUNTIMES = {".onnx": "onnx", ".pt": "torch", ".pt2": "torch"}  # suffix -> module beside this one
Numbers = float | Sequence[float]  # one for all channels, or red, green and blue


class ModelSettings(TypedDict, total=False):
    """The keywords of `load_model`, for functions that pass them on."""

    labels: Sequence[str] | Path | str | None
    size: int | tuple[int, int] | None
    short_side: int | None
    filter: Literal["nearest", "bilinear", "bicubic", "lanczos", "area"] | None
    scale: float | None
    mean: Numbers | None
    std: Numbers | None
    layout: Literal["NCHW", "NHWC"] | None
    channels: Literal["rgb", "bgr"] | None
    name: str | None
    scores: ScoreKind | None
    softmax: bool | None
    sigmoid: bool | None
    threads: int | None


def load_model(
    model: Any,
    *,
    labels: Sequence[str] | Path | str | None = None,
    size: int | tuple[int, int] | None = None,
    short_side: int | None = None,
    filter: Literal["nearest", "bilinear", "bicubic", "lanczos", "area"] | None = None,
    scale: float | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    layout: Literal["NCHW", "NHWC"] | None = None,
    channels: Literal["rgb", "bgr"] | None = None,
    name: str | None = None,
    scores: ScoreKind | None = None,
    softmax: bool | None = None,
    sigmoid: bool | None = None,
    threads: int | None = None,
) -> Model:
    """Load a model that can be explained.

    `model` is the path of an `.onnx` file, a TorchScript `.pt` or exported `.pt2` file, a
    `package.module:callable`, `demo` for the embedded traffic-sign model, a torch module, or any
    callable from images (N, H, W, 3) to scores (N, C).

    The rest says what cannot be read off it; the TOML file beside a model file (`model.onnx` ->
    `model.toml`) may say it too, and arguments win. Pictures are brought to `size` (rows,
    columns), after resizing their short side to `short_side` where that is given; pixels go in as
    `(pixel / scale - mean) / std`. `name` picks one of several outputs; `softmax` and `sigmoid`
    are applied to logits; `scores` says what then comes out.
    """
    given = {
        "labels": labels,
        "size": size,
        "short_side": short_side,
        "filter": filter,
        "scale": scale,
        "mean": mean,
        "std": std,
        "layout": layout,
        "channels": channels,
        "name": name,
        "scores": scores,
        "softmax": softmax,
        "sigmoid": sigmoid,
        "threads": threads,
    }
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
    """The file that a record's model was read from, if it is the embedded one or in a folder.

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
