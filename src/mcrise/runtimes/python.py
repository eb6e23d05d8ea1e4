"""Any callable that Python can import: `package.module:callable`."""

import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..model import Model
from .settings import Settings, file_digest


def from_callable(spec: str, settings: Settings) -> Model:
    """Import a callable from images (N, H, W, 3) to scores (N, C), a torch module or a `Model`.

    A callable gets whole pixels (uint8) unless scale, mean or std say otherwise.
    """
    module_name, _, path = spec.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
        found: Any = module
        for name in path.split("."):
            found = getattr(found, name)
    except (Exception, SystemExit) as error:  # the module is the user's: anything may happen
        raise InputError(
            f"The model {spec} cannot be imported ({type(error).__name__}: {error}): give "
            "package.module:callable, importable from here."
        ) from None
    source = getattr(module, "__file__", None)
    content = file_digest(Path(source))[:16] if source else ""
    if isinstance(found, Model):
        return told(found, settings, f"{spec} {content}")
    if isinstance(found, type) or not callable(found):
        what = "class" if isinstance(found, type) else type(found).__name__
        raise InputError(
            f"The model {spec} is a {what}, but something to call on images is needed: a function, "
            "or an object made in that module."
        )
    if hasattr(found, "state_dict"):
        from .torch import from_module

        model = from_module(found, settings)
        return replace(model, identity=f"{spec} {content} {model.identity}")
    gain, offset = settings.affine() if settings.normalised else ((1.0,) * 3, (0.0,) * 3)
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


def told(model: Model, settings: Settings, name: str) -> Model:
    """A `Model` of the user's own, which says itself how images go in; what comes out is added."""
    output = Settings(scores=settings.scores, softmax=settings.softmax, labels=settings.labels)
    if settings != output:
        raise InputError(
            f"The model {name.split()[0]} is an mcrise.Model and says itself how images go in: "
            "give no more than scores, softmax and labels."
        )
    return replace(
        model,
        kind=settings.scores or model.kind,
        softmax=settings.softmax or model.softmax,
        labels=settings.labels or model.labels,
        identity=f"{name} {model.identity} {settings.digest()[:8]}",
    )
