"""Models whose regions are known, from those that die of little paint to those that feel only much.

A model of `draw(kind, seed)` looks at two square regions of two by two cells of a plain image, and
a little at everything else, as networks do.
"""

from collections.abc import Callable

import numpy as np

SIDE, CELL, N_CLASSES = 64, 8, 10
CLUTTER = 0.15  # of the score

# Of how much of each region and of the whole is painted, to the score.
KINDS: dict[str, Callable] = {
    "additive": lambda a, b, rest: 0.9 - 0.45 * a - 0.35 * b,
    "saturating": lambda a, b, rest: 0.9 * sigmoid(7 - 9 * a - 9 * b),
    "needs both": lambda a, b, rest: 0.9 * (1 - a) * (1 - b),
    "either will do": lambda a, b, rest: 0.9 * (1 - a * b),
    "feels only much paint": lambda a, b, rest: 0.9 * sigmoid(18 - 8 * a - 8 * b - 11 * rest),
    "dies of much paint": lambda a, b, rest: 0.9 * np.exp(-6 * rest) * (1 - 0.8 * (a + b) / 2),
}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def draw(kind, seed):
    """An image, a model (N, H, W, 3) -> (N, 10) with the target first, and two regions (H, W)."""
    rng = np.random.default_rng(seed)
    image = np.full((SIDE, SIDE, 3), 128, np.uint8)
    corners = rng.permutation([(r, c) for r in (4, 24, 44) for c in (4, 24, 44)])[:2]
    regions = np.zeros((2, SIDE, SIDE), bool)
    for region, (row, col) in zip(regions, corners, strict=True):
        region[row : row + 2 * CELL, col : col + 2 * CELL] = True
    phases = rng.uniform(0, 2 * np.pi, (N_CLASSES, 1))
    weights = rng.normal(size=(N_CLASSES, SIDE // 4, SIDE // 4, 3))

    def model(images):
        changed = np.minimum(np.abs(images.astype(np.float32) - 128).max(axis=3) / 60, 1)
        a, b = (changed[:, region].mean(axis=1) for region in regions)
        small = images[:, ::4, ::4].astype(np.float32) / 255 - 0.5
        noise = np.sin(np.einsum("nyxc,kyxc->kn", small, weights) + phases)  # (C, N)
        score = KINDS[kind](a, b, changed.mean(axis=(1, 2))) + CLUTTER * (noise[0] - 1) / 2
        others = np.exp(noise[1:])
        score = np.clip(score, 0.01, 0.99)
        return np.concatenate([score[:, None], (others / others.sum(axis=0) * (1 - score)).T], 1)

    return image, model, regions


def found(findings, regions):
    """Which of the regions lie for a third or more in what was found."""
    seen = np.zeros(regions[0].shape, bool)
    for finding in findings:
        seen |= finding.region
    return [float(seen[region].mean()) >= 1 / 3 for region in regions]
