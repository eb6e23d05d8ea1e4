"""The choice of `mask_prob` by a pilot: how much to paint at a time, from one to three chunks.

With much of it painted a network sees nothing that a further patch could take away, and what is
left of its score is noise; with little, a robust one does not move at all. Both show in how much
the score changes under masks, up or down: a plain mean over a single chunk, from which no map can
be made yet. Chunk 0 at a candidate is chunk 0 of the run with it, so it is not asked again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._util.text import magnitude
from .config import FIRST_TRY

LESS, MORE = (0.1, 0.05), (0.35, 0.5)  # to be tried in turn
LITTLE_LEFT, MUCH_LEFT = 0.6, 0.9  # of the score, unchanged; docs/method.md says why
THERE = 0.1  # of the range of scores; a class that has less has nothing to lose

Scores = NDArray[np.float32]  # (64, C)


@dataclass(frozen=True, eq=False)
class Pilot:
    """What was tried, and what came of it."""

    mask_prob: float
    scores: Mapping[float, Scores]  # of chunk 0, by the `mask_prob` tried
    sentence: str

    @property
    def others(self) -> dict[float, Scores]:
        """The scores that are of no use to the run."""
        return {tried: some for tried, some in self.scores.items() if tried != self.mask_prob}


def choose(ask: Callable[[float], Scores], untouched: Scores, kind: str, target: int) -> Pilot:
    """Settle `mask_prob`; `ask` has the scores of chunk 0 with it, `untouched` (C,) the image's.

    It is a function of the scores alone, so that it comes out the same whoever asks.
    """
    scores: dict[float, Scores] = {}

    def share_left(mask_prob: float) -> float:
        scores[mask_prob] = ask(mask_prob)
        return share_unchanged(scores[mask_prob], untouched, kind, target)

    best, left = settle(share_left)
    score = float(untouched[standing(untouched, kind, target)[1]])
    changed = f"the score of {magnitude(score)} then changes by"
    return Pilot(best, scores, say(best, left, changed))


def share_unchanged(scores: Scores, untouched: Scores, kind: str, target: int) -> float:
    """The share of a score (C,) that does not change under masks, whose scores are (n, C)."""
    height, decides = standing(untouched, kind, target)
    column = scores[:, decides].astype(np.float64)
    return 1 - float(np.abs(column - float(untouched[decides])).mean()) / height


def settle(share_left: Callable[[float], float]) -> tuple[float, dict[float, float]]:
    """The rule: which `mask_prob`, given the share of the score unchanged with it, and all tried.

    A score that changes by more than itself, upwards, has a share below zero.
    """
    first = share_left(FIRST_TRY)
    best, left = FIRST_TRY, {FIRST_TRY: first}
    for mask_prob in MORE if first > MUCH_LEFT else ():
        best, left[mask_prob] = mask_prob, share_left(mask_prob)
        if left[mask_prob] <= MUCH_LEFT:
            break
    for mask_prob in LESS if first < LITTLE_LEFT else ():
        left[mask_prob] = share_left(mask_prob)
        if left[mask_prob] > MUCH_LEFT:
            break  # the score is lost all at once, in between
        best = mask_prob
        if left[mask_prob] >= LITTLE_LEFT:
            break
    return best, left


def standing(untouched: Scores, kind: str, target: int) -> tuple[float, int]:
    """How far above the level to which it may fall a score is, and whose score that is.

    The target's, or the predicted class's where the target has nothing to lose.
    """
    level = float(np.median(untouched)) if kind == "any" and len(untouched) > 1 else 0.0
    most = float(untouched.max()) - level if kind == "any" else 1.0
    for decides in (target, int(untouched.argmax())):
        height = float(untouched[decides]) - level
        if height >= THERE * most:
            break
    return height or 1.0, decides


def say(best: float, left: Mapping[float, float], changed: str) -> str:
    """Why, in a sentence; `changed` is what then changes."""
    return (
        f"{100 * best:g}% of the image is painted at a time (mask_prob, chosen automatically): "
        f"{changed} {100 * (1 - left[best]):.0f}% on average"
    )
