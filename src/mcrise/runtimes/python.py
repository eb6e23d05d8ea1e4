"""Any callable that Python can import: `package.module:callable`."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..model import Model
from .settings import Settings, file_digest


def from_callable(spec: str, settings: Settings) -> Model:
    """Import a callable from images (N, H, W, 3) to scores (N, C), or a torch module.

    It gets whole pixels (uint8) unless scale, mean or std say otherwise.
    """
    module_name, _, path = spec.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
        found: Any = module
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:  # the module is the user's: anything may happen
        raise InputError(
            f"The model {spec} cannot be imported ({type(error).__name__}: {error})."
        ) from None
    if isinstance(found, Model):
        return found
    if hasattr(found, "state_dict"):
        from .torch import from_module

        return from_module(found, settings)
    if not callable(found):
        raise InputError(f"{spec} is a {type(found).__name__}, but something callable is needed.")
    gain, offset = settings.affine() if settings.normalised else ((1.0,) * 3, (0.0,) * 3)
    source = getattr(module, "__file__", None)
    content = file_digest(Path(source))[:16] if source else ""
    return Model(
        found,
        geometry=settings.geometry(None),
        layout=settings.layout or "NHWC",
        channels=settings.channels,
        dtype="float32" if settings.normalised else None,
        gain=(gain[0], gain[1], gain[2]),
        offset=(offset[0], offset[1], offset[2]),
        kind=settings.kind,
        softmax=settings.softmax,
        labels=settings.labels,
        identity=f"{spec} {content} {settings.digest()[:8]}",
    )
