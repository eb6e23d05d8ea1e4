"""Estimators: maps and their standard errors from the masks and scores of a run.

Every estimator is linear in the scores, so all sums are kept in cell space. A painted cell adds
its score as an impulse at the pixel where its center came to lie; enlarging all cells of all
masks is then one blur of that drawing by the triangle of a cell. The cost is a hundred additions
a mask and one blur a map, whatever the number of masks. Paper: equations (4) and (8).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .masks import CHUNK, Masks, Plan

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


FORMULAS: dict[str, Formula] = {
    "rise": rise,
    "debiased": debiased,
    "paper": contrast,
    "centered": contrast,  # of scores less their mean: same expectation, less noise
}


def estimate(
    plan: Plan, masks: Masks, scores: NDArray[np.float64], estimator: str
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Maps and standard errors, each (K, H, W) or, for `rise` and `debiased`, (1, H, W).

    The standard error comes from the spread among disjoint groups of masks.
    """
    n_masks = len(scores)
    if estimator == "centered":
        scores = (scores - scores.mean()) * (n_masks / (n_masks - 1))
    formula = FORMULAS[estimator]
    mean = spread = np.zeros(0)
    n_groups = group_count(n_masks)
    for g, part in enumerate(np.split(np.arange(n_masks), n_groups)):
        some = masks[part]
        means = weighted_sums(plan, some, scores[part]) / len(some)
        values = formula(plan, means, float(scores[part].mean()))
        if g == 0:
            mean, spread = values, np.zeros_like(values)
        else:  # Welford: the running mean, and the sum of squares around it
            step = values - mean
            mean = mean + step / (g + 1)
            spread += step * (values - mean)
    se = np.sqrt(spread / (n_groups * (n_groups - 1)))
    return mean.astype(np.float32), se.astype(np.float32)


def group_count(n_masks: int) -> int:
    """How many equal groups the masks fall into: a chunk each, but 16 at least and 64 at most."""
    n_chunks = n_masks // CHUNK
    return min(64, max(n_chunks, min(16, 4 * n_chunks)))


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
    place = (masks.cells * np.int64(height) + rows[:, :, None]) * width + cols[:, None, :]
    return place.reshape(len(masks), -1)


def blur_by_cell(plan: Plan, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convolve with the triangle two cells wide that enlarges a cell, and cut out the image."""
    from .kernel import blur_by_triangle  # numba, on first use

    out = np.empty((len(drawn), *plan.size))
    blur_by_triangle(drawn, *plan.cell, out)
    return out
