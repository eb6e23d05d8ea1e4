"""Maps as averages: sums over the masks and scores of a run, and their standard errors.

Every formula is linear in the scores, so all sums are kept in cell space. A painted cell adds
its score as an impulse at the pixel where its center came to lie; enlarging all cells of all
masks is then one blur of that drawing by the triangle of a cell. The cost is a hundred additions
a mask and one blur a map, whatever the number of masks. Of a large image, the drawing has the
points of its raster. Paper: equations (4) and (8).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..masks import CHUNK, Masks, Plan
from .raster import Raster, raster_of

# From the means (K + 1, H, W) of m_k * score, fill 0 being "kept", and the mean score to maps.
Formula = Callable[[Plan, NDArray[np.float64], float], NDArray[np.float64]]


def rise(plan: Plan, means: NDArray[np.float64], score: float) -> NDArray[np.float64]:
    """The expected score given that a pixel is kept."""
    return means[:1] / plan.keep_prob


def debiased(plan: Plan, means: NDArray[np.float64], score: float) -> NDArray[np.float64]:
    """The expected change of score when a pixel is kept rather than painted."""
    return (means[:1] - plan.keep_prob * score) / (plan.keep_prob * plan.mask_prob)


def contrast(plan: Plan, means: NDArray[np.float64], score: float) -> NDArray[np.float64]:
    """The expected change of score when a pixel is painted with k rather than kept."""
    return means[1:] * (plan.n_fills / plan.mask_prob) - means[:1] / plan.keep_prob


def estimate(
    plan: Plan, masks: Masks, scores: NDArray[np.float64], formula: Formula
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Maps by a formula and their standard errors, each (K, H, W), or (1, H, W) of one for all.

    The standard error comes from the spread among disjoint groups of masks.
    """
    n_masks, points = len(scores), raster_of(plan)
    mean = spread = np.zeros(0)
    n_groups = group_count(n_masks)
    for g, part in enumerate(np.split(np.arange(n_masks), n_groups)):
        some = masks[part]
        means = sums_at(points, plan, some, scores[part]) / len(some)
        values = formula(plan, means, float(scores[part].mean()))
        if g == 0:
            mean, spread = values, np.zeros_like(values)
        else:  # Welford: the running mean, and the sum of squares around it
            step = values - mean
            mean = mean + step / (g + 1)
            spread += step * (values - mean)
    se = np.sqrt(spread / (n_groups * (n_groups - 1)))
    return points.enlarge(mean), points.enlarge(se)


def centered(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores less their mean: maps of the same expectation with less noise."""
    return np.asarray((scores - scores.mean()) * (len(scores) / (len(scores) - 1)))


def weighted_sums(plan: Plan, masks: Masks, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over masks of score * m_k, for "kept" (first) and each fill: (K + 1, H, W)."""
    return blur_by_cell(plan, impulses(plan, centers(plan, masks), scores))


def impulses(
    plan: Plan, place: NDArray[np.int64], scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Each cell's score at its place: (K + 1, rows, columns) of `drawing_shape`."""
    shape = drawing_shape(plan)
    weight = np.broadcast_to(scores[:, None], place.shape)
    drawn = np.bincount(place.ravel(), weight.ravel(), math.prod(shape))
    return drawn.astype(np.float64, copy=False).reshape(shape)


def drawing_shape(plan: Plan) -> tuple[int, int, int]:
    """K + 1, and the rows and columns of pixels of h + 2 and w + 2 cells."""
    (n_down, n_across), (cell_rows, cell_cols) = plan.grid, plan.cell
    return plan.n_fills + 1, (n_down + 2) * cell_rows, (n_across + 2) * cell_cols


def centers(plan: Plan, masks: Masks) -> NDArray[np.int64]:
    """Where in the drawing of `impulses`, flattened, the center of each cell lies: (N, cells).

    Cell i at shift s is centered at pixel i * cell - s of the image, whose pixel 0 is entry
    `cell - 1` of the drawing.
    """
    (cell_rows, cell_cols), (_, n_down, n_across) = plan.cell, masks.cells.shape
    _, height, width = drawing_shape(plan)
    rows = np.arange(1, n_down + 1) * cell_rows - 1 - masks.shifts[:, :1]  # (N, h + 2)
    cols = np.arange(1, n_across + 1) * cell_cols - 1 - masks.shifts[:, 1:]  # (N, w + 2)
    fills = masks.cells.astype(np.int64)  # NumPy 1 would keep bytes, and overflow
    place = (fills * height + rows[:, :, None]) * width + cols[:, None, :]
    return place.reshape(len(masks), -1)


def blur_by_cell(plan: Plan, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convolve with the triangle two cells wide that enlarges a cell, and cut out the image."""
    return blur(drawn, plan.cell, plan.size)


def blur(
    drawn: NDArray[np.float64], cell: tuple[int, int], size: tuple[int, int]
) -> NDArray[np.float64]:
    from ..painting.kernels import blur_by_triangle  # numba, on first use

    out = np.empty((len(drawn), *size))
    blur_by_triangle(drawn, *cell, out)
    return out


# ---- at the points of a raster


def sums_at(
    points: Raster, plan: Plan, masks: Masks, scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`weighted_sums` at the points of a raster: (K + 1, ...)."""
    if points.whole:
        return weighted_sums(plan, masks, scores)
    return blur(impulses_at(points, plan, masks, scores), points.per_cell, points.shape)


def impulses_at(
    points: Raster, plan: Plan, masks: Masks, scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`impulses` for a raster: each is shared by the points around it.

    The triangle is linear between points, being a whole number of them wide. So at the points, the
    sums are those of the cells where they really lie.
    """
    steps = np.array(points.per_cell)
    before, rest = np.divmod(masks.shifts * steps, plan.cell)  # whole points of the shift, and rest
    share = rest / plan.cell  # (N, 2) of the point before
    # A cell at the largest shift has a share before the first point: a row and a column for these.
    shape = (plan.n_fills + 1, *(1 + (np.array(plan.grid) + 2) * steps).tolist())
    rows, cols = (
        np.arange(1, n + 1) * step - shift[:, None]
        for n, step, shift in zip(masks.cells.shape[1:], steps, before.T, strict=True)
    )
    fills = masks.cells.astype(np.int64)
    place = ((fills * shape[1] + rows[:, :, None]) * shape[2] + cols[:, None, :]).ravel()
    n_cells = place.size // len(masks)
    drawn = np.zeros(math.prod(shape))
    for back, down in ((0, 1 - share[:, 0]), (shape[2], share[:, 0])):
        for left, across in ((0, 1 - share[:, 1]), (1, share[:, 1])):
            weight = np.repeat(scores * down * across, n_cells)
            drawn += np.bincount(place - (back + left), weight, len(drawn))
    return np.ascontiguousarray(drawn.reshape(shape)[:, 1:, 1:])


def group_count(n_masks: int) -> int:
    """How many equal groups of masks tell the error of a mean: four a chunk until there are 16,
    then a chunk each, and 64 at most."""
    n_chunks = n_masks // CHUNK
    return min(64, max(n_chunks, min(16, 4 * n_chunks)))
