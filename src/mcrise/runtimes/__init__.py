"""Models from files, modules and callables: `load_model(spec)`.

One file per runtime, each importing its own heavy library only when it is asked for.
"""

from pathlib import Path
from typing import Any

from ..errors import InputError
from ..model import Model
from .settings import Settings, read_settings

__all__ = ["Settings", "load_model", "read_settings"]


def load_model(spec: Any, **given: Any) -> Model:
    """Load a model that can be explained.

    `spec` is the path of an `.onnx` file, a TorchScript `.pt` or exported `.pt2` file, a
    `package.module:callable`, `demo` for the embedded traffic-sign model, or a torch module.
    Its preprocessing comes from the TOML file beside it (`model.onnx` -> `model.toml`) and from
    keyword arguments, which win: see `Settings` for what can be said.
    """
    if not isinstance(spec, str | Path):
        from .torch import from_module

        return from_module(spec, read_settings(None, given))
    if str(spec) == "demo":
        from ..demo import MODEL as spec
    path = Path(spec)
    kind = path.suffix.lower()
    if kind in (".onnx", ".pt", ".pt2"):
        if not path.is_file():
            raise InputError(f"The model {path} does not exist: give the path of the file.")
        settings = read_settings(path, given)
        if kind == ".onnx":
            from .onnx import from_file
        else:
            from .torch import from_file
        return from_file(path, settings)
    if ":" in str(spec):
        from .python import from_callable

        return from_callable(str(spec), read_settings(None, given))
    raise InputError(
        f"The model is {str(spec)!r}, but an .onnx, .pt or .pt2 file, package.module:callable or "
        "demo is needed."
    )
