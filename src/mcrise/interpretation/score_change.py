"""Scale: what a change of the score counts as, for one class of one image.

A threshold has a margin on either side where nothing is said: what keeps the score certainly keeps
it, and what lowers it certainly does. Effects are compared by their margins: as log-odds where the
scores are probabilities, so that 0.99 to 0.9 is as much as 0.9 to 0.5, and else by differences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..explanation import Explanation

LOST, KEPT = 0.15, 0.93  # of the score: more is certainly lost, more is certainly kept
FIRM = 0.35  # of the score: a fall by less may not be one a quarter of a cell beside
LEAST_CHANGE, LEAST_RISE = 0.03, 0.065  # of the range of scores: less does not matter
CLIPPED = 0.01  # of a probability, from 0 and from 1: nearer, differences mean little
SURE = 0.995  # of the interval that decides where answers differ each time, on either side

Scores = NDArray[np.float32]  # (C,)


@dataclass(frozen=True, eq=False)
class Scale:
    """Whether a score has fallen, risen, or is kept."""

    before: Scores  # of the untouched image
    target: int
    range: float  # of scores
    is_probability: bool
    is_bounded: bool = True  # by 0 and 1, as similarities are too

    @property
    def score(self) -> float:
        return float(self.before[self.target])

    @property
    def predicted(self) -> int:
        return int(self.before.argmax())

    @property
    def share(self) -> float:
        """What a share of the score is taken of: of scores of any kind, their range."""
        return abs(self.score) if self.is_bounded else self.range

    @property
    def least_change(self) -> float:
        """What counts: a change of the score by less does not matter."""
        return max(LOST * self.share, LEAST_CHANGE * self.range)

    @property
    def least_rise(self) -> float:
        """The same where the answer stays the same and the score rises."""
        return max(LOST * self.share, LEAST_RISE * self.range)

    def falls(self, after: float) -> bool:
        return self.score - after >= self.least_change

    def falls_far(self, after: float) -> bool:
        return self.falls(after) and self.score - after >= FIRM * self.share

    def rises(self, after: float) -> bool:
        return after - self.score >= self.least_rise

    def keeps(self, after: float) -> bool:
        return after >= self.score - (1 - KEPT) * self.share

    def stays(self, after: float) -> bool:
        return abs(after - self.score) <= (1 - KEPT) * max(self.share, 0.2 * self.range)

    def changes_decision(self, scores: Scores) -> bool:
        """Whether the model no longer says the target or, where it said another, now does."""
        if len(scores) < 2:  # a single score decides nothing
            return False
        said, says = self.predicted == self.target, int(scores.argmax()) == self.target
        return said != says

    def direction(self, scores: Scores) -> int:
        """+1 or -1 where a repaint matters, by the decision or by the score; else 0."""
        change = float(scores[self.target]) - self.score
        large = abs(change) >= self.least_change
        matters = large or self.changes_decision(scores)
        return (1 if change > 0 else -1) if matters and change else 0

    def margin(self, after: float) -> float:
        """How much a score has changed, on the scale for margins."""
        if not self.is_probability:
            return (after - self.score) / (self.range or 1.0)
        return log_odds(after) - log_odds(self.score)

    def as_much(self, here: float, there: float, part: float) -> bool:
        """Whether another place does at least this part of what is done here."""
        moved = self.margin(here)
        return bool(np.sign(moved) * self.margin(there) >= part * abs(moved))

    def is_negligible(self, after: float) -> bool:
        return abs(after - self.score) < max(0.1 * self.share, 0.02 * self.range)

    def is_sure(self, before: NDArray[Any], after: NDArray[Any], rival: int | None = None) -> bool:
        """Whether several answers to a repaint differ from several to the image: both (R, C).

        With a `rival`, whether they differ in how far this class is before the target.
        """
        from scipy.special import stdtrit

        one, other = (some[:, self.target].astype(np.float64) for some in (before, after))
        if rival is not None:
            one, other = before[:, rival] - one, after[:, rival] - other
        spread = np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
        wide = float(stdtrit(len(one) + len(other) - 2, SURE))
        return bool(abs(other.mean() - one.mean()) > wide * spread)


def log_odds(score: float) -> float:
    clipped = min(max(score, CLIPPED), 1 - CLIPPED)
    return float(np.log(clipped / (1 - clipped)))


def scale_of(explanation: Explanation, target: int, before: Sequence[Scores] = ()) -> Scale:
    """The scale of a class; `before` are more answers to the untouched image, if there are any."""
    answers = np.stack(before) if len(before) else explanation.untouched[None]
    return Scale(
        np.asarray(answers.mean(axis=0, dtype=np.float64), np.float32),
        target,
        explanation.score_range,
        explanation.kind in ("probability", "independent"),
        explanation.kind != "any",
    )
