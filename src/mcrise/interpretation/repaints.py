"""Repaints: the image with some regions painted.

A repaint is a pure description with a digest, so that what a model said of it can be kept in the
run and need not be asked again.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..fills import LUMA, Fill, Picture, Solid
from ..images import unit_float, whole_pixels

EDGE = 0.25  # cells; how soft a soft edge is

Region = NDArray[np.bool_]  # (H, W)


@dataclass(frozen=True, eq=False)
class Stroke(ArrayEq):
    """A region to paint and what with."""

    region: Region
    fill: Fill
    place: str = "the region"

    def __repr__(self) -> str:
        return f"<Stroke: {self.words}>"

    @property
    def words(self) -> str:
        return f"{self.place} with {self.fill.name}"


@dataclass(frozen=True, eq=False)
class Repaint(ArrayEq):
    """Some strokes, one over the other; hard at the edges unless said otherwise.

    Another `take` is the same picture, to be asked again where a model answers differently.
    """

    strokes: tuple[Stroke, ...]
    soft: bool = False
    take: int = 0
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        content = hashlib.sha256(b"soft" if self.soft else b"hard")
        for stroke in self.strokes:
            content.update(json.dumps(stroke.fill.to_json(), sort_keys=True).encode())
            content.update(repr(stroke.region.shape).encode())
            content.update(np.packbits(stroke.region).tobytes())
        if self.take:
            content.update(f"take {self.take}".encode())
        object.__setattr__(self, "digest", content.hexdigest()[:32])

    def __repr__(self) -> str:
        return f"<Repaint: {' and '.join(stroke.words for stroke in self.strokes)}>"

    @cached_property
    def share(self) -> float:
        """Of the image, what two strokes have in common once."""
        return float(np.logical_or.reduce([stroke.region for stroke in self.strokes]).mean())

    def render(self, image: NDArray[Any], cell: tuple[int, int]) -> NDArray[Any]:
        """The image (H, W, 3) repainted; same dtype."""
        from scipy.ndimage import gaussian_filter

        untouched = unit_float(image)
        painted = untouched
        sigma = [EDGE * side for side in cell]
        for stroke in self.strokes:
            weight = stroke.region.astype(np.float32)
            weight = gaussian_filter(weight, sigma) if self.soft else weight
            filled = stroke.fill.render(untouched)
            painted = painted * (1 - weight[..., None]) + filled * weight[..., None]
        if image.dtype == np.uint8:
            return np.rint(painted * 255).astype(np.uint8)
        return painted.astype(np.float32)


# ---- a region's own color and structure


def own_mean(image: NDArray[Any], region: Region) -> Solid:
    """The mean color of a region."""
    red, green, blue = np.rint(255 * unit_float(image)[region].mean(axis=0)).astype(int).tolist()
    return Solid((red, green, blue))


def shuffled(image: NDArray[Any], region: Region, number: int = 0) -> Picture:
    """The pixels of a region in another order: its colors without its structure."""
    pixels = whole_pixels(image).copy()
    own = pixels[region]
    pixels[region] = np.random.default_rng([len(own), number][: 1 + (number > 0)]).permutation(own)
    return Picture(pixels, "its own pixels shuffled")


def tinted(image: NDArray[Any], color: Sequence[float]) -> Picture:
    """The image in one tint, each pixel as bright as it was."""
    chroma = np.asarray(color, np.float32) - np.float32(np.dot(color, LUMA))
    return as_bright(image, chroma, "another tint of the same brightness")


def turned_hue(image: NDArray[Any], fill: Fill) -> Picture:
    """The image as a fill that turns hues shows it, each pixel as bright as it was."""
    shown = fill.render(unit_float(image))
    chroma = shown - (shown @ LUMA)[..., None]
    return as_bright(image, chroma, "another hue of the same brightness")


def as_bright(image: NDArray[Any], chroma: NDArray[np.float32], name: str) -> Picture:
    """The brightness of an image with other colors, as much of them as there is room for."""
    luma = np.repeat((unit_float(image) @ LUMA)[..., None], 3, axis=2)
    room = np.where(chroma > 0, 1 - luma, luma) / np.maximum(np.abs(chroma), 1e-6)
    vivid = luma + chroma * np.minimum(room.min(axis=2, keepdims=True), 1)
    pixels = np.rint(255 * np.clip(vivid, 0, 1)).astype(np.uint8)
    return Picture(pixels, name)


def cut_out(region: Region) -> Region:
    """The smallest box that holds a region."""
    rows, cols = (np.flatnonzero(region.any(axis=axis)) for axis in (1, 0))
    return region[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
