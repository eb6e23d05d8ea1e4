"""The lattice of points (`Raster`) at which maps are computed, before enlarging to every pixel.

Up to 512 x 512 pixels, every pixel is a point. A map is a sum of triangles two cells wide, so of a
larger image twenty-four points a cell hold it: what lies between them is linear to well below the
noise, and the cost of a map no longer grows with pixels times masks, but is one enlargement.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..masks import Plan

LARGE = 512**2  # pixels; up to here, maps are worked out at each
POINTS = 24  # a cell and axis, of larger images


@dataclass(frozen=True)
class Line:
    """The points along rows or columns: pixel 0, then so many a cell, and past the last pixel."""

    n_pixels: int
    n_cells: int
    cell: int  # pixels
    per_cell: int  # points; as many as pixels if each is one

    @property
    def n_points(self) -> int:
        return math.ceil((self.n_pixels - 1) * self.per_cell / self.cell) + 1

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """Where the points are, in pixels: (points,)."""
        return np.arange(self.n_points) * self.cell / self.per_cell

    @cached_property
    def widths(self) -> NDArray[np.float64]:
        """How many pixels each point stands for: (points,), one in all for each pixel."""
        half = self.cell / self.per_cell / 2
        ends = np.clip([self.places - half, self.places + half], -0.5, self.n_pixels - 0.5)
        return np.asarray(ends[1] - ends[0])

    def at(self, values: NDArray[np.float64], pixels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Values (points, ...) between points, at some pixels."""
        low, rest = np.divmod(pixels * self.per_cell, self.cell)
        above = values[np.minimum(low + 1, self.n_points - 1)] - values[low]
        return np.asarray(values[low] + (rest / self.cell)[:, None] * above)


@dataclass(frozen=True)
class Raster:
    """The points of a plan's maps, down and across."""

    down: Line
    across: Line
    whole: bool  # whether every pixel is a point

    @property
    def shape(self) -> tuple[int, int]:
        return self.down.n_points, self.across.n_points

    @property
    def per_cell(self) -> tuple[int, int]:
        return self.down.per_cell, self.across.per_cell

    def enlarge(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Values at the points (K, ...), at every pixel (K, H, W)."""
        if self.whole:
            return values.astype(np.float32)
        from ..painting.kernels import enlarge_points  # numba, on first use

        out = np.empty((len(values), self.down.n_pixels, self.across.n_pixels), np.float32)
        cells = (self.down.cell, self.across.cell)
        enlarge_points(np.ascontiguousarray(values), *self.per_cell, *cells, out)
        return out

    # Points from border to border have whole cosines between them (type 1, the first and the last
    # counting half), and pixels half a pixel beyond either end (type 2).

    def waves(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The strength of each spatial frequency in values (..., points), all normalised alike."""
        from scipy.fft import dctn

        if self.whole:
            return np.asarray(dctn(values, axes=(-2, -1), norm="ortho"))
        found = dctn(values, 1, axes=(-2, -1), norm="ortho", orthogonalize=False)
        return np.asarray(found * self.ends)

    def unwaves(self, waves: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values again."""
        from scipy.fft import idctn

        if self.whole:
            return np.asarray(idctn(waves, axes=(-2, -1), norm="ortho"))
        plain = waves / self.ends
        return np.asarray(idctn(plain, 1, axes=(-2, -1), norm="ortho", orthogonalize=False))

    @cached_property
    def ends(self) -> NDArray[np.float64]:
        """What normalises cosines of type 1: (points)."""
        counted = [np.ones(n) for n in self.shape]
        for side in counted:
            side[[0, -1]] = 0.5
        return np.asarray(np.sqrt(np.outer(*counted)))

    def spectrum(self, line: Line, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean square of each wave along a line, of values of a covariance."""
        return replace(self, down=line, across=line).waves(covariance).diagonal()

    @property
    def area(self) -> int:
        """What the squares of all waves of a map of ones add up to."""
        return math.prod(self.shape) if self.whole else math.prod(n - 1 for n in self.shape)


def raster_of(plan: Plan) -> Raster:
    """Every pixel, or of a large image twenty-four points a cell."""
    most = POINTS if math.prod(plan.size) > LARGE else max(plan.cell)
    axes = zip(plan.size, plan.grid, plan.cell, strict=True)
    down, across = (Line(*axis, min(most, axis[2])) for axis in axes)
    return Raster(down, across, most >= max(plan.cell))
