"""The plan of a run, and the low-resolution color masks it unfolds into.

A mask is stored as `cells`: one small integer per grid cell, 0 to keep the image and k to paint
fill k. Five fills at 224 x 224 pixels make 1 MB of floats; the same mask is 100 bytes of cells.
So pixels exist only inside `painting`, and the rest of the method works on cells. Paper: section
4.2.
"""

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._util.array_eq import ArrayEq
from .errors import InputError
from .fills import RGBWK, Fill, check_fills

CHUNK = 64  # masks; the unit of drawing, scoring, saving and sharing out work
MOST_CELLS = 128  # down or across


@dataclass(frozen=True)
class Plan:
    """Everything that decides which masks are drawn; it goes to workers and into runs."""

    size: tuple[int, int]  # of the image: rows, columns
    fills: tuple[Fill, ...] = RGBWK
    grid: tuple[int, int] = (8, 8)  # cells down, cells across
    mask_prob: float = 0.5  # chance that a cell is painted; RISE's p is the chance it is kept
    seed: int = 0

    def __post_init__(self) -> None:
        check_fills(self.fills)
        if not 0 < self.mask_prob < 1:
            raise InputError(
                f"mask_prob is {self.mask_prob}, but it must lie strictly between 0 and 1: "
                "a map compares painted cells with kept ones, so both must occur."
            )
        if not all(1 <= n <= MOST_CELLS for n in self.grid):
            raise InputError(
                f"The grid is {self.grid[0]} x {self.grid[1]}, but each side needs 1 to "
                f"{MOST_CELLS} cells."
            )
        if not 0 <= self.seed < 2**64:
            raise InputError(f"The seed is {self.seed}, but it must be from 0 up to 2**64 - 1.")

    @property
    def n_fills(self) -> int:
        return len(self.fills)

    @property
    def keep_prob(self) -> float:
        return 1 - self.mask_prob

    @property
    def cell(self) -> tuple[int, int]:
        """Rows and columns of pixels in a cell."""
        return (
            math.ceil(self.size[0] / self.grid[0]),
            math.ceil(self.size[1] / self.grid[1]),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "size": list(self.size),
            "fills": [fill.to_json() for fill in self.fills],
            "grid": list(self.grid),
            "mask_prob": self.mask_prob,
            "seed": self.seed,
        }


@dataclass(frozen=True, eq=False)
class Masks(ArrayEq):
    """Some masks of a plan."""

    cells: NDArray[np.uint8]  # (N, h + 2, w + 2); 0 keeps, k paints fill k
    shifts: NDArray[np.int64]  # (N, 2) rows and columns of pixels, each smaller than a cell

    def __repr__(self) -> str:
        down, across = self.cells.shape[1:]
        return f"<Masks: {len(self):,} of {down} x {across} cells>"

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, some: slice | NDArray[np.int64]) -> "Masks":
        return Masks(self.cells[some], self.shifts[some])

    def checksum(self) -> int:
        shifts = self.shifts.astype("<i4").tobytes()
        return zlib.crc32(shifts, zlib.crc32(self.cells.tobytes()))


def draw(plan: Plan, chunk: int) -> Masks:
    """Draw the masks of one chunk.

    Chunk 7 of a plan is the same on a laptop and on forty workers, so a run can be split, resumed
    or audited without sending masks anywhere.

    Returns
    -------
    Masks
        cells (N, h + 2, w + 2), two more than the grid each way so that neither a shift nor the
        border ever shows half a cell; shifts (N, 2) in pixels, each smaller than a cell.
    """
    shape = (CHUNK, plan.grid[0] + 2, plan.grid[1] + 2)
    n_cells = math.prod(shape)
    # Raw Philox bits and our own thresholds: NumPy keeps the raw stream, but not what its
    # Generator makes of it, the same over the years.
    # The key is an array: from a list, NumPy would round seeds above 2**63 as floats.
    key = np.array([plan.seed, chunk], np.uint64)
    raw = np.random.Philox(key=key).random_raw(n_cells + CHUNK)
    high, low = raw >> 32, raw & 0xFFFFFFFF
    painted = high[:n_cells] < round(plan.mask_prob * 2**32)
    fill = (low[:n_cells] * plan.n_fills >> 32) + 1  # uniform on 1..K
    cells = np.where(painted, fill, 0).astype(np.uint8).reshape(shape)
    shifts = np.stack([high[n_cells:] * plan.cell[0], low[n_cells:] * plan.cell[1]], axis=1) >> 32
    return Masks(cells, shifts.astype(np.int64))


def enlargement(n_pixels: int, n_cells: int, cell: int) -> NDArray[np.float64]:
    """The weight of each cell in each pixel, for all shifts at once, along one axis.

    At shift s pixel x reads position (x + s) / cell between cell centers: linear interpolation
    that never leaves the `n_cells + 2` cells drawn. Over the shifts every pixel, borders
    included, sees each fraction of a cell equally often, so all have the same mean and variance.

    Returns
    -------
    array (n_pixels, cell, n_cells + 2)
        indexed by pixel, shift and cell.
    """
    return enlargement_at(np.arange(n_pixels), n_cells, cell)


def enlargement_at(places: NDArray[Any], n_cells: int, cell: int) -> NDArray[np.float64]:
    """The same at places in pixels, whole or not."""
    position = np.add.outer(places, np.arange(cell)) / cell
    distance = np.abs(position[..., None] - np.arange(n_cells + 2))
    return np.asarray(np.maximum(0.0, 1.0 - distance))
