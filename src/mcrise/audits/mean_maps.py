"""Mean maps of a class as `Maps`, over the mean of its images: they are drawn like others."""

import numpy as np
from numpy.typing import NDArray

from ..fills import Fill, Solid
from ..fills import parse as parse_fills
from ..maps import Maps
from ..models.scores import UNITS
from .class_data import AuditInfo, BoolArray

GRAY = (128, 128, 128)


def audit_fills(info: AuditInfo) -> tuple[Fill, ...]:
    """The fills of an audit, whose folder may come from anybody: no file is opened for a name.

    A picture is shown as gray.
    """
    return tuple(
        Solid(GRAY, label=name) if "picture" in name.lower() else parse_fills(name)[0]
        for name in info.fills
    )


def class_maps(
    values: NDArray[np.float32],
    error: NDArray[np.float32],
    image: NDArray[np.uint8],
    info: AuditInfo,
    target: int,
    label: str,
    n_images: int,
    beyond: BoolArray | None,
) -> Maps:
    """Values and errors (K, R, R) over a mean image (R, R, 3), and where they exceed chance."""
    return Maps(
        values=values,
        se=error,
        fills=audit_fills(info),
        target=target,
        label=label,
        estimator="centered",
        n_masks=n_images * info.n_masks if isinstance(info.n_masks, int) else 0,
        unit=f"change of {UNITS[info.kind]}",
        image=image,
        beyond=beyond,
    )
