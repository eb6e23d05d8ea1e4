"""What was measured of the images of a class, as arrays, and what the audit was asked for.

All figures of an audit are functions of these, so they can be made again at any time without the
model. Each array says by `stored` how it lies in the tables: `tables.py` writes and reads it by
that alone. n images, K fills, R rows and columns of the raster, Z zones, B basic colors.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..fills import Fill, Solid
from ..fills import parse as parse_fills
from ..maps import Maps
from ..models.scores import UNITS

RASTER = 32  # rows and columns: relative places, on which maps of pictures of any size compare

# In which light each image is asked about besides its own, in words.
LIGHTS = {
    "gray": "in gray",
    "hue120": "with hues turned by 120 degrees",
    "hue240": "with hues turned by 240 degrees",
}

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
    traits: tuple[tuple[str, str, str], ...] = ()  # given to other classes: name, kind, phrase
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


# ---- what is stored of an image


@dataclass(frozen=True)
class Column:
    """How the value of an image lies in a table."""

    kind: str  # of Parquet
    shape: tuple[str | int, ...] = ()  # of a list or of bytes; by names of sizes such as "fills"
    name: str = ""  # empty: that of the array
    table: Literal["images", "maps"] = "images"
    bits: bool = False  # of bytes: each is eight places


def stored(
    kind: str,
    *shape: str | int,
    name: str = "",
    table: Literal["images", "maps"] = "images",
    bits: bool = False,
) -> Column:
    return Column(kind, shape, name, table, bits)


MAP = ("list<float32>", "fills", "raster", "raster")
REGION = ("binary", "raster", "raster")


@dataclass(frozen=True, eq=False)
class ClassData(ArrayEq):
    """The images of one class, in the collection's order, and the maps of that class's score.

    An image's class is its true class where the collection knows it, else the prediction. A map
    value is positive where painting raises the score. Energies are products of two maps from
    disjoint halves of the masks, so that their noise is no signal on average.
    """

    target: int  # the class
    image: Annotated[IntArray, stored("int64")]  # (n,) number in the audit
    names: Annotated[tuple[str, ...], stored("string", name="name")]  # (n,)
    # (n,) code of what belongs together; the image's number where there is no group
    group: Annotated[IntArray, stored("string")]
    truth: Annotated[IntArray, stored("int64")]  # (n,), -1: unknown
    predicted: Annotated[IntArray, stored("int64")]  # (n,)
    score: Annotated[FloatArray, stored("float64")]  # (n,) of the class, untouched
    gray: Annotated[IntArray, stored("int64")]  # (n,) predicted classes: of the image in gray
    hue120: Annotated[IntArray, stored("int64")]  # with hues turned by 120 degrees
    hue240: Annotated[IntArray, stored("int64")]  # and by 240
    # (n,) energy of T, the mean over fills: mean over places of T_a * T_b
    presence_energy: Annotated[FloatArray, stored("float64")]
    # (n,) energy of C_k = S_k - T: mean over fills and places of C_ka * C_kb
    color_energy: Annotated[FloatArray, stored("float64")]
    # (n, Z) of S_k, its sum over the zone over the pixels of the image
    zone_energy: Annotated[FloatArray, stored("list<float64>", "zones")]
    # (n, Z, K) mean of S_k over the zone; NaN where it has no pixel
    zone_effect: Annotated[FloatArray, stored("list<float64>", "zones", "fills")]
    # (n, B) share of the pixels that have this basic color
    color_area: Annotated[FloatArray, stored("list<float64>", "basics")]
    # (n, B, K) mean of S_k over them; NaN where there are none
    color_area_effect: Annotated[FloatArray, stored("list<float64>", "basics", "fills")]
    # (n,) kind of claim of the smallest repaint that changes the decision
    counterfactual_kind: Annotated[tuple[str | None, ...], stored("string")]
    # (n,) of wrong ones: kind of claim whose repaint corrects it
    corrected_by: Annotated[tuple[str | None, ...], stored("string")]
    # (n, K, R, R) `centered`, and standard errors
    maps: Annotated[FloatArray, stored(*MAP, name="values", table="maps")]
    errors: Annotated[FloatArray, stored(*MAP, table="maps")]
    # (n, K, R, R) maps of the ranks of scores, in 0..1
    ranks: Annotated[FloatArray | None, stored(*MAP, table="maps")] = None
    # (n, R, R, 3) the image, averaged onto the raster
    pixels: Annotated[NDArray[np.uint8] | None, stored("binary", "raster", "raster", 3)] = None
    # (n,) the zone that was painted as a whole
    background_zone: Annotated[tuple[str | None, ...], stored("string")] = ()
    # (n, K + 2) score then: by fill, in its mean color, untouched
    background_score: Annotated[FloatArray | None, stored("list<float64>", "fills + 2")] = None
    # (n, K + 2) predicted classes
    background_prediction: Annotated[IntArray | None, stored("list<int64>", "fills + 2")] = None
    # (n, R, R) where that is
    background_region: Annotated[BoolArray | None, stored(*REGION, bits=True)] = None

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


# By the name of the array.
STORED: dict[str, Column] = {
    name: replace(column, name=column.name or name)
    for name, hint in get_type_hints(ClassData, include_extras=True).items()
    for column in getattr(hint, "__metadata__", ())
}


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
