"""Repaints: the image with some regions painted, and where else the same patch would fit.

A repaint is a pure description with a digest, so that what a model said of it can be kept in the
run and need not be asked again.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..fills import LUMA, Fill, Picture, Solid
from ..images import unit_float, whole_pixels

EDGE = 0.25  # cells; how soft a soft edge is
MOST_SHARED = 0.25  # of a patch: no more of it may lie on any finding
RASTER = 96  # pixels a side, on which overlaps are counted
N_PLACES = 19  # with which a finding is compared: to be beyond all of them by chance is one in 20

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


# ---- the same patch elsewhere


@dataclass(frozen=True, eq=False)
class Place:
    """Where a patch would fit: how it is turned and mirrored, and where its corner is."""

    turns: int
    mirrored: bool
    top: int
    left: int
    small: Region  # as it lies in the image, on a coarse raster

    def lay(self, region: Region) -> Region:
        """A region, laid there."""
        shape = turned(cut_out(region), self.turns, self.mirrored)
        height, width = region.shape
        top = min(self.top, height - shape.shape[0])
        left = min(self.left, width - shape.shape[1])
        out = np.zeros_like(region)
        out[top : top + shape.shape[0], left : left + shape.shape[1]] = shape
        return out


def elsewhere(region: Region, taken: Sequence[Region], cell: tuple[int, int]) -> list[Region]:
    """Up to 19 other places for a patch of this shape, mirrored or turned where that is needed.

    At most a quarter of it lies on itself or any of the regions `taken`. Places are drawn from all
    there are, those first that share little with each other.
    """
    found = places(region, [region, *taken], cell)
    order = np.random.default_rng([int(region.sum()), len(found)]).permutation(len(found))
    chosen: list[Place] = []
    laid = np.array([place.small.ravel() for place in found])  # (places, points of the raster)
    shared = np.zeros(len(found))  # of each place, the most that it has in common with one chosen
    for most in (0.25, 0.5, 0.75):
        for n in order:
            if len(chosen) < N_PLACES and shared[n] <= most * laid[n].sum():
                chosen.append(found[n])
                shared = np.maximum(shared, laid[:, laid[n]].sum(axis=1))
    return [place.lay(region) for place in chosen]


def places(region: Region, taken: Sequence[Region], cell: tuple[int, int]) -> list[Place]:
    """All places for a patch, in steps of half a cell."""
    stride = max(max(region.shape) // RASTER, 1)  # overlaps are counted on a coarse raster
    small, others = region[::stride, ::stride], [other[::stride, ::stride] for other in taken]
    if not small.any():
        return []
    down, across = (max(side // 2 // stride, 1) for side in cell)
    found, shape = [], cut_out(small)
    for turns, mirrored in variants(shape):
        one = turned(shape, turns, mirrored)
        most = MOST_SHARED * one.sum()
        for top in range(0, small.shape[0] - one.shape[0] + 1, down):
            for left in range(0, small.shape[1] - one.shape[1] + 1, across):
                box = slice(top, top + one.shape[0]), slice(left, left + one.shape[1])
                if all((other[box] & one).sum() <= most for other in others):
                    laid = np.zeros_like(small)
                    laid[box] = one
                    found.append(Place(turns, mirrored, stride * top, stride * left, laid))
    return found


def variants(shape: Region) -> Iterator[tuple[int, bool]]:
    """The turns and mirror images of a shape that differ."""
    seen = set()
    for turns in range(4):
        for mirrored in (False, True):
            one = turned(shape, turns, mirrored)
            if (key := (one.shape, one.tobytes())) not in seen:
                seen.add(key)
                yield turns, mirrored


def cut_out(region: Region) -> Region:
    """The smallest box that holds a region."""
    rows, cols = (np.flatnonzero(region.any(axis=axis)) for axis in (1, 0))
    return region[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]


def turned(shape: Region, turns: int, mirrored: bool) -> Region:
    one = np.rot90(shape, turns)
    return one[:, ::-1] if mirrored else one
