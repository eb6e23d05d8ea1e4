"""What an estimator is given, the masks of a run and its scores, and what it gives back."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..masks import Masks, Plan
from .significance import TINIEST


@dataclass(frozen=True, eq=False)
class TargetScores:
    """The scores that one set of maps is of: of a class, or of one class less another."""

    scores: NDArray[np.float64]  # (N,)
    low: float | None  # they range from here to one; None: they may be anything

    @property
    def least(self) -> float:
        """What a change of score must exceed to be more than rounding."""
        return TINIEST * (1.0 if self.low is not None else float(np.ptp(self.scores)))


@dataclass(frozen=True, eq=False)
class Sample:
    """The masks of a run, and the scores of all classes under them."""

    plan: Plan
    masks: Masks
    chunks: Sequence[NDArray[np.float32]]  # (64, C) each, in the order of the masks
    kind: str  # of score

    def table(self) -> NDArray[np.float32]:
        """All scores: (N, C)."""
        return np.concatenate(self.chunks)

    def scores_of(self, target: int) -> NDArray[np.float64]:
        """(N,)."""
        return np.concatenate([chunk[:, target] for chunk in self.chunks]).astype(np.float64)

    def column(self, target: int, against: int | None = None) -> TargetScores:
        """The scores of a class, less those of another where one is given."""
        scores = self.scores_of(target)
        if against is not None:
            scores = scores - self.scores_of(against)
        lowest = 0.0 if against is None else -1.0
        return TargetScores(scores, None if self.kind == "any" else lowest)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What an estimator makes of a column."""

    values: NDArray[np.float32]  # (K, H, W), or (1, H, W) of one map over all fills
    se: NDArray[np.float32]  # the same
    notes: tuple[str, ...] = ()  # what to know of them


@dataclass(frozen=True, eq=False)
class NullThreshold:
    """What must be exceeded to count, and what by: a map's values in units of score."""

    limit: float
    values: NDArray[np.float32]  # (K, H, W)
