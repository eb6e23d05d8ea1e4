"""Functions and objects as models: arrays or Pillow images go in, scores come out."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..errors import InputError
from .inputs import NO_PREPROCESSING
from .model import Model, Predict
from .outputs import pick
from .settings import Settings

WHOLE_PIXELS = "no preprocessing was given, so the function gets pixels as the image has them"
PILLOW = "pillow"  # the layout of functions that take a list of Pillow images
FLOATS = ("jax", "jaxlib", "flax", "equinox", "haiku")  # packages whose functions take 0..1


def changes_scores(settings: Settings) -> bool:
    """Whether anything was said that decides the scores, other than what they mean."""
    return bool(replace(settings, score_kind=None).to_json())


def from_callable(found: Any, settings: Settings, name: str, digest: str) -> Model:
    """A callable; it gets whole pixels (uint8) unless scale, mean or std say otherwise."""
    settings.refuse_device()
    geometry = settings.geometry(None)
    if settings.layout == PILLOW or (settings.layout is None and takes_pillow(found)):
        predict = of_pillow(found)
        return settings.model(predict, name, digest, geometry=geometry, dtype="uint8")
    about: dict[str, Any] = {"layout": settings.layout} if settings.layout else {}
    jax = any(base.__module__.partition(".")[0] in FLOATS for base in type(found).__mro__)
    if jax and getattr(found, "scope", found) is None:
        raise InputError(
            f"The module {type(found).__qualname__} of flax has no weights: give "
            "module.bind(variables), with the variables that it was trained to."
        )
    if settings.normalised or jax:
        gain, offset = settings.affine()
        about |= {"dtype": "float32", "gain": gain, "offset": offset}
        about["notes"] = () if settings.normalised else (NO_PREPROCESSING,)
    elif calls_floats(found):
        about["notes"] = (WHOLE_PIXELS,)
    call = found if settings.name is None else of_output(found, settings.name)
    return settings.model(call, name, digest, geometry=geometry, **about)


def calls_floats(function: Any) -> bool:
    """Whether a function calls a library that takes whole pixels for floats without a word."""
    used: list[Any] = []
    if isinstance(function, partial):
        used = [*function.args, *function.keywords.values()]
        function = function.func
    try:
        named = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # not written in Python
        named = inspect.ClosureVars({}, {}, {}, set())
    used += [
        getattr(function, "__self__", None),
        *named.nonlocals.values(),
        *named.globals.values(),
    ]
    used += [getattr(one, "__self__", None) for one in used]
    return any(package_of(one) in (*FLOATS, "keras") for one in used)


def package_of(thing: Any) -> str:
    if inspect.ismodule(thing):
        return thing.__name__.partition(".")[0]
    packages = [base.__module__.partition(".")[0] for base in type(thing).__mro__]
    return next((one for one in packages if one in (*FLOATS, "keras")), "")


def of_output(function: Predict, name: str) -> Predict:
    """A function of several outputs as a function of one."""
    return lambda batch: pick(function(batch), name)


def takes_pillow(found: Any) -> bool:
    """Whether a function says of its first parameter that it is a list of Pillow images."""
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):  # of compiled code
        return False
    wanted = str(parameters[0].annotation) if parameters else ""
    return "Image" in wanted and ("list" in wanted.lower() or "Sequence" in wanted)


def of_pillow(function: Callable[[list[Image.Image]], Any]) -> Predict:
    """A function of a list of Pillow images as one of whole pixels (N, H, W, 3)."""

    def predict(batch: NDArray[np.uint8]) -> Any:
        return function([Image.fromarray(image) for image in batch])

    return predict


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
