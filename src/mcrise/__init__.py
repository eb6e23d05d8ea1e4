"""Which colors, where in an image, a model's decision depends on.

The public names are listed in `__init__.pyi`, once for type checkers and for this module, which
imports each of them when it is first used: `mcrise --help` needs none.
"""

import ast
import importlib
from pathlib import Path
from typing import Any

from ._version import VERSION


def _read_public_names() -> dict[str, tuple[str, str]]:
    """Each public name with its module and its name there."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        name.asname or name.name: (f".{node.module}", name.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }


_PUBLIC = _read_public_names()
__all__ = sorted(_PUBLIC)
__version__ = VERSION


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _PUBLIC[name]
    found = globals()[name] = getattr(importlib.import_module(module, __name__), own)
    return found


def __dir__() -> list[str]:
    """The API, and no modules."""
    return [*__all__, "__version__"]
