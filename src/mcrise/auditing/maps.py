"""Mean maps of a class as `Maps`, over the mean of its images: they are drawn like others."""

import numpy as np
from numpy.typing import NDArray

from ..fills import parse as parse_fills
from ..maps import Maps
from ..scores import UNITS
from .looks import Asked


def class_maps(
    values: NDArray[np.float32],
    error: NDArray[np.float32],
    image: NDArray[np.uint8],
    asked: Asked,
    target: int,
    label: str,
    n_images: int,
) -> Maps:
    """Values and errors (K, R, R) over a mean image (R, R, 3)."""
    return Maps(
        values=values,
        se=error,
        fills=parse_fills(",".join(asked.fills)),
        target=target,
        label=label,
        estimator="centered",
        n_masks=n_images * asked.n_masks if isinstance(asked.n_masks, int) else 0,
        unit=f"change of {UNITS[asked.kind]}",
        image=image,
    )
