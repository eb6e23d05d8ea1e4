"""Significance: how large a map's values get if the scores have nothing to do with the masks.

Two standard errors find something in pure noise every time one looks at thousands of pixels. So
what counts is what exceeds the largest value of a whole map under no dependence, which shuffling
the scores among the masks tells without calling the model.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..masks import Masks, Plan
from .averages import Formula, blur_by_cell, centers, contrast, drawing_shape

N_SHUFFLES = 200
CONFIDENCE = 0.95
TINIEST = 1e-6  # of the range of scores: rounding alone may show less


def significance_limit(
    plan: Plan,
    masks: Masks,
    scores: NDArray[np.float64],
    least: float = TINIEST,
    formula: Formula = contrast,
) -> float:
    """The 95% point of the largest |value| of the centered maps if scores ignored the masks.

    All pixels and fills have the same variance by construction of the masks, so their values
    compare as they are. Maps are smooth over a cell: four points a cell each way are enough.
    Never below `least`.
    """
    from scipy.sparse import csr_array

    fine = np.minimum(plan.cell, 4)
    coarse = replace(plan, size=(fine[0] * plan.grid[0], fine[1] * plan.grid[1]))
    place = centers(coarse, Masks(masks.cells, masks.shifts * fine // plan.cell))
    shape, n_masks = drawing_shape(coarse), len(scores)
    ones, starts = np.ones(place.size, np.float32), np.arange(0, place.size + 1, place.shape[1])
    cells = csr_array((ones, place.ravel(), starts), shape=(n_masks, math.prod(shape)))
    centered = (scores - scores.mean()) / (n_masks - 1)
    shuffle = np.random.default_rng(plan.seed).permuted
    largest: list[float] = []
    while len(largest) < N_SHUFFLES:
        some = np.tile(centered.astype(np.float32), (20, 1))
        sums = (cells.T @ shuffle(some, axis=1).T).T.astype(np.float64)  # (20, pixels)
        means = blur_by_cell(coarse, sums.reshape(-1, *shape[1:]))
        for one in means.reshape(20, shape[0], *coarse.size):
            largest.append(float(np.abs(formula(coarse, one, 0.0)).max()))
    return max(float(np.quantile(largest, CONFIDENCE)), least)
