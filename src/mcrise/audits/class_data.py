"""Looks: what was measured of the images of a class, as arrays, and what was asked.

All figures of an audit are functions of these, so they can be made anew at any time without the
model. n images, K fills, R rows and columns of the raster, Z zones, B basic colors.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq

RASTER = 32  # rows and columns: relative places, on which maps of pictures of any size compare

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class AuditInfo:
    """What an audit was asked for: names, and the settings that all its images share."""

    fills: tuple[str, ...]  # names
    labels: tuple[str, ...] = ()  # of classes; empty where the model has none
    zones: tuple[str, ...] = ()  # names
    basics: tuple[str, ...] = ()  # names of the basic colors
    data: str = ""  # the collection, as it was given
    model: str = ""  # its name
    identity: str = ""  # which model it is
    kind: str = "probability"  # of score
    grid: tuple[int, int] = (8, 8)
    mask_prob: float = 0.5
    why: str = ""  # how mask_prob came about
    n_masks: int | Literal["auto"] = 512
    seed: int = 0
    raster: int = RASTER
    group: str = ""  # the column of images that belong together; empty: each is on its own
    n_images: int = 0
    version: str = ""

    def label(self, target: int) -> str:
        return self.labels[target] if 0 <= target < len(self.labels) else f"class {target}"

    @property
    def title(self) -> str:
        """The model without the folder that it lies in."""
        return self.model.rstrip("/").rpartition("/")[2]

    @property
    def cell(self) -> tuple[int, int]:
        """Rows and columns of the raster in a cell of the masks."""
        down, across = (max(round(self.raster / n), 1) for n in self.grid)
        return down, across


@dataclass(frozen=True, eq=False)
class ClassData(ArrayEq):
    """The images of one class, in the collection's order, and the maps of that class's score.

    An image's class is its truth where the collection knows it, else the prediction. A map value is
    what it is everywhere: positive where painting raises the score. Energies are products of two
    maps from disjoint halves of the masks, so that their noise is no signal on average.
    """

    target: int  # the class
    image: IntArray  # (n,) number in the audit
    names: tuple[str, ...]  # (n,)
    group: IntArray  # (n,) code of what belongs together; its own number where there is no group
    truth: IntArray  # (n,), -1: unknown
    predicted: IntArray  # (n,)
    score: FloatArray  # (n,) of the class, untouched
    maps: FloatArray  # (n, K, R, R) `centered`
    errors: FloatArray  # (n, K, R, R) standard errors
    presence: FloatArray  # (n,) energy of T, the mean over fills: mean over places of T_a * T_b
    color: FloatArray  # (n,) energy of C_k = S_k - T: mean over fills and places of C_ka * C_kb
    zone_energy: FloatArray  # (n, Z) of S_k, its sum over the zone over the pixels of the image
    zone_effect: FloatArray  # (n, Z, K) mean of S_k over the zone; NaN where it has no pixel
    own_share: FloatArray  # (n, B) of the pixels that have this basic color
    own_effect: FloatArray  # (n, B, K) mean of S_k over them; NaN where there are none
    gray: IntArray  # (n,) predicted classes: of the image in gray
    hue120: IntArray  # with hues turned by 120 degrees
    hue240: IntArray  # and by 240
    flip: tuple[str | None, ...]  # (n,) kind of claim of the smallest repaint that flips it
    righted: tuple[str | None, ...]  # (n,) of wrong ones: kind of claim whose repaint rights it
    ranks: FloatArray | None = None  # (n, K, R, R) maps of the ranks of scores, in 0..1
    pixels: NDArray[np.uint8] | None = None  # (n, R, R, 3) the image, averaged onto the raster
    outer: tuple[str | None, ...] = ()  # (n,) the zone that was painted over as a whole
    outer_after: FloatArray | None = None  # (n, K + 2) score: by fill, in its mean, untouched
    outer_said: IntArray | None = None  # (n, K + 2) predicted classes
    outer_region: BoolArray | None = None  # (n, R, R)

    def __len__(self) -> int:
        return len(self.image)

    def some(self, rows: IntArray) -> "ClassData":
        """Some of the images."""
        kept: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                kept[name] = value[rows]
            elif isinstance(value, tuple):
                kept[name] = tuple(value[n] for n in rows)
        return replace(self, **kept)

    @property
    def tested(self) -> FloatArray:
        """The maps (n, K, R, R) by which findings are told from chance.

        Of ranks: a painted cell is rare and scores are lopsided, mostly near zero or near one, and
        so is the noise of their maps, but not that of ranks. Signs may be flipped only of noise
        that is as likely as its opposite.
        """
        return self.maps if self.ranks is None else self.ranks
