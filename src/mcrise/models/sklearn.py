"""Estimators of scikit-learn, and whatever has its `predict_proba`."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .inputs import NO_PREPROCESSING
from .model import Model
from .settings import Settings, with_known

AS_FUNCTION = "give a function of images (N, rows, columns, 3) that calls it"

ITS_SCALE = "give scale=1 (--scale 1) if the estimator was fitted to pixels of 0..255"


def from_object(estimator: Any, settings: Settings) -> Model:
    """A fitted estimator of flattened images: rows, columns, then red, green, blue."""
    settings.refuse_device()
    name = type(estimator).__qualname__
    call = getattr(estimator, "predict_proba", None)
    if call is None and settings.score_kind is not None:
        call = getattr(estimator, "decision_function", None) or getattr(estimator, "predict", None)
    if call is None:
        raise InputError(
            f'The estimator {name} has no predict_proba: give score_kind="any" to explain its own '
            "numbers, or wrap it in CalibratedClassifierCV."
        )
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        settings = with_known(settings, {"labels": [str(one) for one in classes]})
    size, notes = size_of(estimator, settings)
    gain, offset = settings.affine()
    return settings.model(
        lambda batch: np.asarray(call(flat(batch))),
        name,
        "",
        geometry=settings.geometry(size),
        dtype="float32",
        gain=gain,
        offset=offset,
        notes=notes if settings.normalised else (*notes, f"{NO_PREPROCESSING}; {ITS_SCALE}"),
    )


def flat(batch: NDArray[Any]) -> NDArray[Any]:
    return batch.reshape(len(batch), -1)


def size_of(estimator: Any, settings: Settings) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
    """Rows and columns of the images that were flattened, and what was assumed about them."""
    n_numbers = getattr(estimator, "n_features_in_", None)
    if n_numbers is None:
        return None, ()
    if settings.size is not None and math.prod(settings.size) * 3 == n_numbers:
        return settings.size, ()
    side = math.isqrt(n_numbers // 3)
    if n_numbers != 3 * side * side:
        one_channel = math.isqrt(n_numbers) ** 2 == n_numbers
        raise InputError(
            f"The estimator takes {n_numbers:,} numbers per image, "
            + (
                "which are images of one channel or not images at all, so it sees no colors: "
                if one_channel
                else "which is not rows x columns x 3 of a square image: "
            )
            + f"give size=(rows, columns) if it is, or {AS_FUNCTION}."
        )
    return (side, side), (f"{n_numbers:,} numbers per image were taken for {side} x {side} pixels",)
