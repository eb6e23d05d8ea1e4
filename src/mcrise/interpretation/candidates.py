"""Candidates: which blocks of an image to paint, in which order, and where else each would fit.

Blocks are 1, 2 or 3 cells a side, at most a sixth of the image, and start at any half cell. The
maps say which to try first: a block is ranked by the mean of a map over it times its side, since
a larger block does more. A map is noisy and its sign may be wrong, so that it only proposes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .repaints import Region

SIDES = (1, 2, 3)  # of a block, in cells
LARGEST = 1 / 6  # of the image
COARSEST, FINEST = 4, 12  # cells a side: a grid that is coarser or finer has a lattice of its own
TRIES = 2  # of an area: a block whose area was tried as often is passed over
COVERED = 0.5  # of a block: if as much is known to matter the same way, it is passed over
SHARED = 0.5  # of a block, by others of its round

Box = tuple[int, int, int, int]  # top, left, bottom, right in pixels


@dataclass(frozen=True, eq=False)
class Lattice:
    """All blocks of an image."""

    size: tuple[int, int]
    rows: NDArray[np.int64]  # where half cells begin, and the last ends
    columns: NDArray[np.int64]
    blocks: NDArray[np.int64]  # (B, 5): side in cells, top, left, bottom, right

    def region(self, block: int) -> Region:
        return region_of(self.size, self.box(block))

    def box(self, block: int) -> Box:
        _, top, left, bottom, right = self.blocks[block].tolist()
        return top, left, bottom, right

    def means(self, maps: NDArray[Any]) -> NDArray[np.float64]:
        """The means of maps (K, H, W) over all blocks: (K, B)."""
        sums = np.pad(maps.astype(np.float64).cumsum(axis=1).cumsum(axis=2),
                      ((0, 0), (1, 0), (1, 0)))  # fmt: skip
        _, top, left, bottom, right = self.blocks.T
        inside = (sums[:, bottom, right] - sums[:, top, right]
                  - sums[:, bottom, left] + sums[:, top, left])  # fmt: skip
        return np.asarray(inside / ((bottom - top) * (right - left)))

    def within(self, region: Region) -> NDArray[np.int64]:
        """The blocks that lie in a region and are smaller."""
        inside = self.means(region[None])[0] > 1 - 1e-9
        return np.flatnonzero(inside & (self.areas < region.sum()))

    @property
    def areas(self) -> NDArray[np.int64]:
        """Of the blocks, in pixels: (B,)."""
        _, top, left, bottom, right = self.blocks.T
        return np.asarray((bottom - top) * (right - left))


def lattice_of(size: tuple[int, int], grid: tuple[int, int]) -> Lattice:
    """The lattice of an image; a very coarse grid is halved and a very fine one made coarser."""
    starts = [half_cells(n_pixels, cells(n)) for n_pixels, n in zip(size, grid, strict=True)]
    rows, columns = starts
    blocks = [
        (side, rows[i], columns[j], rows[i + 2 * side], columns[j + 2 * side])
        for side in SIDES
        for i in range(len(rows) - 2 * side)
        for j in range(len(columns) - 2 * side)
    ]
    kept = [
        (side, top, left, bottom, right)
        for side, top, left, bottom, right in blocks
        if 0 < (bottom - top) * (right - left) <= LARGEST * math.prod(size)
    ]
    return Lattice(size, rows, columns, np.array(kept, np.int64).reshape(-1, 5))


def cells(n_cells: int) -> int:
    while n_cells < COARSEST:
        n_cells *= 2
    while n_cells > FINEST:
        n_cells = -(-n_cells // 2)
    return n_cells


def half_cells(n_pixels: int, n_cells: int) -> NDArray[np.int64]:
    return np.rint(np.arange(2 * n_cells + 1) * n_pixels / (2 * n_cells)).astype(np.int64)


def region_of(size: tuple[int, int], box: Sequence[int]) -> Region:
    region = np.zeros(size, bool)
    top, left, bottom, right = box
    region[top:bottom, left:right] = True
    return region


# ---- which to try


@dataclass(frozen=True)
class Candidate:
    """A block and a fill, and what the map says it does."""

    block: int  # of the lattice
    fill: int
    direction: int


class Ranking:
    """Blocks in the order of the maps, and which of them are still worth a trial."""

    def __init__(self, lattice: Lattice, maps: NDArray[np.float32], upwards: bool = False) -> None:
        """`upwards`: only blocks that raise the score.

        A small block may raise it where a large one does not, so that then each size has its turn.
        """
        self.lattice, self.maps = lattice, maps
        self.effects = lattice.means(maps)  # (K, B)
        sides = lattice.blocks[:, 0]
        self.groups = sides if upwards else np.zeros_like(sides)  # (B,) with trials of their own
        ranks = self.effects * (np.sqrt(sides) if upwards else sides)
        self.order = np.argsort(-(ranks if upwards else np.abs(ranks)), axis=None, kind="stable")
        if upwards:
            self.order = self.order[: int((ranks > 0).sum())]
        self.taken = np.zeros(self.effects.shape, bool)
        n_groups = int(self.groups.max(initial=0)) + 1
        self.n_tried = np.zeros((n_groups, 2, *lattice.size), np.int32)  # of each pixel, down, up
        self.known = np.zeros((2, *lattice.size), bool)  # pixels that matter, down and up

    def upwards(self) -> "Ranking":
        """Only blocks that should raise the score, of those that are not taken yet."""
        order = Ranking(self.lattice, self.maps, upwards=True)
        order.taken, order.known = self.taken, self.known
        return order

    def next_round(self, n_most: int) -> list[Candidate]:
        """The next few, spread over the image; none if nothing is left that is worth it."""
        tried = [self.lattice.means(some) for some in self.n_tried]  # each (2, B)
        known = self.lattice.means(self.known)  # (2, B)
        here = np.zeros((2, *self.lattice.size), bool)  # this round's
        picked: list[Candidate] = []
        for fill, block in zip(*np.unravel_index(self.order, self.effects.shape), strict=True):
            if len(picked) == n_most:
                break
            up = int(self.effects[fill, block] > 0)
            often = tried[self.groups[block]][up, block] >= TRIES
            if self.taken[fill, block] or often or known[up, block] >= COVERED:
                continue
            top, left, bottom, right = self.lattice.box(block)
            if here[up, top:bottom, left:right].mean() > SHARED:
                continue
            here[up, top:bottom, left:right] = True
            picked.append(self.take(int(block), int(fill)))
        return picked

    def scan(self) -> list[Candidate]:
        """Large blocks side by side all over the image: in the fill that lowers most, in the one
        that raises most, then in the others."""
        side = int(self.lattice.blocks[:, 0].max(initial=0))
        large = np.flatnonzero(self.lattice.blocks[:, 0] == side)
        tops, lefts = (spread(self.lattice.blocks[large, n]) for n in (1, 2))
        at = [block for block in large.tolist() if self.lattice.blocks[block, 1] in tops
              and self.lattice.blocks[block, 2] in lefts]  # fmt: skip
        order = np.argsort(self.effects[:, at], axis=0, kind="stable")  # (K, blocks)
        order = np.concatenate([order[:1], order[1:][::-1]])
        return [self.take(block, int(fill)) for fills in order
                for block, fill in zip(at, fills, strict=True)
                if not self.taken[fill, block]]  # fmt: skip

    def around(self, hits: Sequence[tuple[Candidate, int]], n_most: int) -> list[Candidate]:
        """Blocks that overlap those that matter, in the same fill, where nothing is known yet.

        `hits` are blocks with the direction in which they matter.
        """
        known, sides = self.lattice.means(self.known), self.lattice.blocks[:, 0]
        here = np.zeros((2, *self.lattice.size), bool)
        picked: list[Candidate] = []
        for hit, direction in hits:
            up = int(direction > 0)
            shared = self.lattice.means(self.lattice.region(hit.block)[None])[0]
            near = (shared > 0) & (sides == sides[hit.block]) & (known[up] < COVERED)
            near &= ~self.taken[hit.fill]
            for block in np.argsort(-shared, kind="stable")[: int((shared > 0).sum())].tolist():
                top, left, bottom, right = self.lattice.box(block)
                if len(picked) == n_most:
                    return picked
                if near[block] and here[up, top:bottom, left:right].mean() <= SHARED:
                    here[up, top:bottom, left:right] = True
                    picked.append(self.take(block, hit.fill))
        return picked

    def take(self, block: int, fill: int) -> Candidate:
        self.taken[fill, block] = True
        up = int(self.effects[fill, block] > 0)
        top, left, bottom, right = self.lattice.box(block)
        self.n_tried[self.groups[block], up, top:bottom, left:right] += 1
        return Candidate(block, fill, 1 if up else -1)

    def learn(self, region: Region, direction: int) -> bool:
        """Take note of whether a place matters; returns whether any of it is news."""
        if not direction:
            return False
        known = self.known[int(direction > 0)]
        is_new = not known[region].all()
        known |= region
        return is_new


def spread(starts: NDArray[np.int64]) -> set[int]:
    """Of where blocks may begin, as few as cover the image: the first, the last, those between."""
    values = np.unique(starts)
    return {int(values[round(part * (len(values) - 1))]) for part in (0, 0.5, 1)}
