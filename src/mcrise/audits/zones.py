"""Zones: parts of every image that are asked about, and the raster on which they are measured.

Places are relative, from 0 to 1 down and across, so that images of all sizes have the same zones.
What a collection says of an image itself (a box, a mask) makes its `object`, and the rest its
`background`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..errors import InputError
from ..images import View, opened_picture
from .class_data import RASTER

RIM = 1 / 8  # of each side
DEFAULT = "thirds,rim"
OUTER = ("background", "rim")  # zones outside of what an image shows; the first that there is
# What no zone of one's own may be called: it is a trait of `transplants`, or a zone already.
RESERVED = (
    "object", *OUTER, "surroundings", "edge", "spot", "tone", "levels", "hues", "light", "texture"
)  # fmt: skip

Box = tuple[float, float, float, float]  # top, left, bottom, right


@dataclass(frozen=True)
class Zone:
    """What lies inside of a box, or outside; without one, of the image's own object."""

    name: str
    box: Box | None = None  # from 0 to 1
    inside: bool = True

    @property
    def needs_object(self) -> bool:
        return self.box is None


NINTHS = tuple(
    Zone(name, (row / 3, col / 3, (row + 1) / 3, (col + 1) / 3))
    for row, names in enumerate(
        (
            ("upper left", "top", "upper right"),
            ("left", "center", "right"),
            ("lower left", "bottom", "lower right"),
        )
    )
    for col, name in enumerate(names)
)
KNOWN = {
    "thirds": NINTHS,
    "rim": (Zone("rim", (RIM, RIM, 1 - RIM, 1 - RIM), inside=False),),
    "object": (Zone("object"), Zone("background", inside=False)),
}


def parse_zones(text: str, has_objects: bool) -> tuple[Zone, ...]:
    """The zones of a list such as `thirds,rim,corner=0.7:0.7:1:1` (top:left:bottom:right).

    Where the collection brings boxes or masks, its objects are zones too.
    """
    found: dict[str, Zone] = {}
    words = [word.strip() for word in text.split(",") if word.strip()]
    if has_objects and "object" not in words:
        words.append("object")
    for word in words:
        name, given, place = word.partition("=")
        if given:
            if name.strip() in RESERVED:
                raise InputError(
                    f"The zone {word!r} has the name of something that an audit looks at by "
                    f"itself: give another name than {', '.join(RESERVED)}."
                )
            some: tuple[Zone, ...] = (Zone(name.strip(), parse_box(word, place)),)
        elif word in KNOWN:
            some = KNOWN[word]
        else:
            raise InputError(
                f"The zone {word!r} is unknown: give {', '.join(KNOWN)}, or one of your own as in "
                "corner=0.7:0.7:1:1 (top:left:bottom:right, from 0 to 1)."
            )
        for zone in some:
            if zone.name in found or not zone.name:
                raise InputError(
                    f"The zone {word!r} is listed twice or has no name: name each zone once."
                )
            if zone.needs_object and not has_objects:
                raise InputError(
                    "The zone object was asked for, but the collection says nothing of where its "
                    "objects are: give a CSV with x1,y1,x2,y2 or mask, or --masks FOLDER."
                )
            found[zone.name] = zone
    if not found:
        raise InputError(f"No zones were given: leave --zones out for {DEFAULT}.")
    return tuple(found.values())


def parse_box(word: str, place: str) -> Box:
    try:
        top, left, bottom, right = (float(part) for part in place.split(":"))
    except ValueError:
        top = left = bottom = right = -1.0
    if not (0 <= top < bottom <= 1 and 0 <= left < right <= 1):
        raise InputError(
            f"The zone {word!r} is no part of an image: give top:left:bottom:right from 0 to 1, "
            "as in corner=0.7:0.7:1:1."
        )
    return top, left, bottom, right


# ---- on the raster


def overlaps(n_pixels: int, n_cells: int = RASTER) -> NDArray[np.float64]:
    """The share of each pixel in each cell of a raster along one axis: (cells, pixels)."""
    edges = np.arange(n_cells + 1) * (n_pixels / n_cells)
    low = np.maximum(edges[:-1, None], np.arange(n_pixels))
    high = np.minimum(edges[1:, None], np.arange(1, n_pixels + 1))
    return np.asarray(np.maximum(high - low, 0) * (n_cells / n_pixels))


def onto_raster(values: NDArray[Any], size: int = RASTER) -> NDArray[np.float64]:
    """The means of values (..., H, W) over the cells of a raster: (..., R, R)."""
    down, across = (overlaps(n, size) for n in values.shape[-2:])
    return np.asarray(down @ values.astype(np.float64) @ across.T)


def covered(box: Box, size: int = RASTER) -> NDArray[np.float64]:
    """The share of each cell of a raster that lies in a box: (R, R)."""
    cells = np.arange(size)
    down, across = (
        np.clip(np.minimum(size * end, cells + 1) - np.maximum(size * start, cells), 0, 1)
        for start, end in ((box[0], box[2]), (box[1], box[3]))
    )
    return np.asarray(np.outer(down, across))


def zone_shares(
    zones: Sequence[Zone], own: NDArray[np.float64] | None, size: int = RASTER
) -> NDArray[np.float64]:
    """The share of each cell in each zone: (Z, R, R); NaN of what is not known of an image.

    `own` is its object's.
    """
    unknown = np.full((size, size), np.nan)
    inside = [
        (unknown if own is None else own) if zone.box is None else covered(zone.box, size)
        for zone in zones
    ]
    return np.stack(
        [part if zone.inside else 1 - part for zone, part in zip(zones, inside, strict=True)]
    )


def outer_part(
    zones: Sequence[Zone], parts: NDArray[np.float64]
) -> tuple[str | None, NDArray[np.bool_]]:
    """Which zone lies outside of the object, and where (R, R) it is; None: none that is known."""
    for name in OUTER:
        for zone, part in zip(zones, parts, strict=True):
            if zone.name == name and np.isfinite(part).all():
                region = part >= 0.5
                # Of an object that fills the image nothing lies outside, not even the rim.
                return (name, region) if region.any() else (None, region)
    return None, np.zeros(parts.shape[1:], bool)


# ---- an image's own object


def box_share(box: Box, view: View) -> NDArray[np.float64]:
    """A box in pixels of the original, on the raster of what the model is shown of it."""
    rows, cols = view.original_size
    top, left, bottom, right = box
    if not (0 <= top < bottom <= rows and 0 <= left < right <= cols):
        raise InputError(
            f"Its box goes from row {top:g} to {bottom:g} and from column {left:g} to {right:g}, "
            f"but it has {rows} rows and {cols} columns: give a box inside of it, in pixels."
        )
    first, start, last, end = view.box
    return covered(
        (
            (top - first) / (last - first),
            (left - start) / (end - start),
            (bottom - first) / (last - first),
            (right - start) / (end - start),
        )
    )


def mask_share(content: bytes, view: View) -> NDArray[np.float64]:
    """A mask of the original, on the raster of what the model is shown of it."""
    try:
        with opened_picture(content) as picture:
            mask = np.asarray(picture.convert("L")) > 0
    except InputError as error:
        raise InputError(f"Its mask cannot be used: {error}") from None
    if mask.shape != tuple(view.original_size):
        raise InputError(
            f"Its mask is {mask.shape[0]} x {mask.shape[1]} pixels, but the image is "
            f"{view.original_size[0]} x {view.original_size[1]}: give one of the same size."
        )
    top, left, bottom, right = view.box
    part = Image.fromarray(mask.astype(np.float32)).resize(
        (RASTER, RASTER), Image.Resampling.BOX, box=(left, top, right, bottom)
    )
    return np.asarray(part, np.float64)
