"""Callables: given as they are, or by name, `package.module:callable`."""

import hashlib
import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from .model import Model
from .provenance import Origin
from .settings import Settings, file_digest


def from_name(spec: str, settings: Settings) -> Model:
    """Import a callable from images (N, H, W, 3) to scores (N, C), a torch module or a `Model`."""
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
    digest = file_digest(Path(source)) if source else ""
    if isinstance(found, type) or not callable(found):
        what = "class" if isinstance(found, type) else type(found).__name__
        raise InputError(
            f"The model {spec} is a {what}, but something to call on images is needed: a function, "
            "or an object made in that module."
        )
    if isinstance(found, Model) or hasattr(found, "state_dict"):
        model = from_object(found, settings)
        own = f"{spec} {digest[:16]} {model.identity}"
        if isinstance(found, Model):
            own = f"{spec} {digest[:16]} {found.identity} {settings.digest()[:8]}"
        model = replace(model, identity=own)
    else:
        model = from_callable(found, settings, spec, digest)
    if not digest:
        return model
    # Not of the file alone: there may be several models in it, and weights from elsewhere.
    whole = hashlib.sha256(f"{digest} {path} {model.origin.digest}".encode()).hexdigest()
    return replace(model, origin=Origin(spec, whole, settings.to_json()))


def from_object(model: Any, settings: Settings) -> Model:
    """A `Model`, a torch module or any callable, as it lies in memory."""
    if isinstance(model, Model):
        return with_output(model, settings)
    if not callable(model):
        raise InputError(
            f"The model is a {type(model).__name__}, but something that can be called on images, "
            "a path, package.module:callable or demo is needed."
        )
    if hasattr(model, "state_dict"):
        from .torch import from_module

        return from_module(model, settings)
    name = f"callable {getattr(model, '__qualname__', type(model).__qualname__)}"
    known = from_callable(model, settings, name, "")
    return known if changes_scores(settings) else replace(known, identity=name)


def changes_scores(settings: Settings) -> bool:
    """Whether anything was said that decides the scores, other than what they mean."""
    return bool(replace(settings, score_kind=None).to_json())


def from_callable(found: Any, settings: Settings, name: str, digest: str) -> Model:
    """A callable; it gets whole pixels (uint8) unless scale, mean or std say otherwise."""
    about: dict[str, Any] = {"layout": settings.layout} if settings.layout else {}
    if settings.normalised:
        gain, offset = settings.affine()
        about |= {"dtype": "float32", "gain": gain, "offset": offset}
    return settings.model(found, name, digest, geometry=settings.geometry(None), **about)


def with_output(model: Model, settings: Settings) -> Model:
    """A `Model` says itself how images go in; what comes out may be added."""
    output = Settings(
        score_kind=settings.score_kind,
        softmax=settings.softmax,
        sigmoid=settings.sigmoid,
        labels=settings.labels,
    )
    if replace(settings, threads=None) != output:
        raise InputError(
            f"The model {model.identity} is an mcrise.Model and says itself how images go in: give "
            "no more than score_kind, softmax, sigmoid and labels."
        )
    if output == Settings():
        return model
    changed = changes_scores(output)
    kind = settings.kind if settings.score_kind or settings.sigmoid else model.kind
    return replace(
        model,
        kind=kind,
        softmax=settings.softmax or model.softmax,
        sigmoid=settings.sigmoid or model.sigmoid,
        labels=settings.labels or model.labels,
        identity=f"{model.identity} {settings.digest()[:8]}" if changed else model.identity,
        origin=replace(model.origin, settings={**model.origin.settings, **output.to_json()}),
    )
