"""Flips: repaints that would change the decision, found by the same kind of scripts.

Either towards a class that is wanted, or away from the one the model says.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .experiments import FindingContext, FindingOutcome, PlaceboControl, compare_places
from .regions import Finding
from .repaints import Repaint, Stroke

MOST_ALTERNATIVES = 3  # fills of a region
MOST_CALLS = 31  # to look for the smallest repaint


@dataclass(frozen=True, eq=False)
class Suggestion:
    """A repaint that raises the class that is wanted."""

    stroke: Stroke
    before: NDArray[np.float32]  # (C,)
    after: NDArray[np.float32]  # (C,)
    target: int
    control: PlaceboControl | None = None

    @property
    def reaches(self) -> bool:
        """Whether the model then says so."""
        return bool(self.after.argmax() == self.target)


def suggest(
    setting: FindingContext, findings: Sequence[Finding]
) -> Generator[Any, Any, list[Suggestion]]:
    """Try the fills that should raise the wanted class, and keep what does; best first."""
    strokes = [stroke for finding in findings for stroke in rising(finding)]
    answers = (yield [Repaint((stroke,)) for stroke in strokes]) if strokes else []
    helpful = [
        Suggestion(stroke, setting.before, scores, setting.target)
        for stroke, scores in zip(strokes, answers, strict=True)
        if setting.rises(float(scores[setting.target]))
    ]
    helpful.sort(key=lambda one: -float(one.after[setting.target]))
    best: dict[int, Suggestion] = {}  # one for each region
    for one in helpful:
        best.setdefault(id(one.stroke.region), one)
    out = []
    for one in best.values():
        here = float(one.after[setting.target])
        control = yield from compare_places(setting, (one.stroke,), here)
        out.append(replace(one, control=control))
    return out


def rising(finding: Finding) -> list[Stroke]:
    """The few fills that should raise the score most."""
    effects = sorted(finding.effects, key=lambda effect: -effect.value)[:MOST_ALTERNATIVES]
    return [Stroke(finding.region, one.fill, finding.place) for one in effects if one.value > 0]


def search_counterfactual(
    setting: FindingContext, options: Sequence[Sequence[Stroke]], wanted: int | None
) -> Generator[Any, Any, tuple[Repaint, PlaceboControl] | None]:
    """The smallest repaint found that makes the model say `wanted`, or just anything else.

    Of each region one of its strokes may be painted. First each alone, then greedily the one more
    that brings the decision nearest to changing, and then other pairs, since what comes nearest
    alone may stand in the way; 31 calls at most, without the control.
    """
    if len(setting.before) < 2:  # a single score decides nothing
        return None
    before = int(setting.before.argmax())

    def short_of(scores: NDArray[np.float32]) -> float:
        """How much is missing; below zero, the decision has changed."""
        aim = before if wanted is None else wanted
        rivals = float(np.delete(scores, aim).max())
        return float(scores[aim]) - rivals if wanted is None else rivals - float(scores[aim])

    painted: tuple[Stroke, ...] = ()
    left, n_left = [list(strokes) for strokes in options if strokes], MOST_CALLS
    pairs = [Repaint((one[0], other[0])) for one, other in combinations(left, 2)]
    while n_left > 0 and (left or pairs):
        more = [Repaint((*painted, stroke)) for strokes in left for stroke in strokes]
        repaints, pairs = (more, pairs) if left else (pairs, [])
        repaints = repaints[:n_left]
        n_left -= len(repaints)
        answers = yield repaints
        missing = [short_of(scores) for scores in answers]
        changed = [n for n, lack in enumerate(missing) if lack < 0]
        if changed:
            best = min(changed, key=lambda n: repaints[n].share)
            here = float(answers[best][setting.target])
            control = yield from compare_places(setting, repaints[best].strokes, here)
            return repaints[best], control
        painted = repaints[int(np.argmin(missing))].strokes
        left = [strokes for strokes in left if strokes[0].region is not painted[-1].region]
    return None


def options_of(verdicts: Sequence[FindingOutcome], upwards: bool) -> list[list[Stroke]]:
    """The strongest few fills of each finding, by what they did when they were tried.

    Where that is nothing, since others stand in for it, by what they do under masks.
    """
    sign = -1 if upwards else 1

    def strokes(one: FindingOutcome) -> list[Stroke]:
        effects = {fill: (round(score, 3), one.finding.effect(fill))
                   for fill, score in one.after.items()}  # fmt: skip
        ranked = sorted(effects, key=lambda fill: [sign * effect for effect in effects[fill]])
        return [Stroke(one.finding.region, fill, one.finding.place) for fill in ranked]

    return [strokes(one)[:MOST_ALTERNATIVES] for one in verdicts]
