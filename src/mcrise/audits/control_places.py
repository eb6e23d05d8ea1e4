"""Control places: where else in an image the patch of a finding would fit, turned where needed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..interpretation.repaints import Region, cut_out

MOST_SHARED = 0.25  # of a patch: no more of it may lie on any finding
RASTER = 96  # pixels a side, on which overlaps are counted
N_PLACES = 19  # with which a finding is compared: to be beyond all of them by chance is one in 20


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


def turned(shape: Region, turns: int, mirrored: bool) -> Region:
    one = np.rot90(shape, turns)
    return one[:, ::-1] if mirrored else one
