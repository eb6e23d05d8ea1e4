"""Figure tests: repainted pictures that were shown to the model, with the score and the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.text import number, one_line
from ..explanation import Explanation
from ..images import downsample, downsampling_step
from ..interpretation.findings import Finding, Findings, Trial
from ..interpretation.inquiry import merge_takes
from ..interpretation.score_change import Scale, scale_of
from ..maps import Maps
from .plots import (
    MOST_SIDE,
)

MOST_MAPS = 8
MOST_LISTED = 12  # other places that are shown as pictures
LOWERS, RAISES, KEEPS = "#5e3c99", "#b35806", "#777777"  # as in the maps, and neither


@dataclass(frozen=True, eq=False)
class Shot:
    """A repainted picture, and what the model said of it."""

    title: str
    pixels: NDArray[Any]
    change: int  # -1 lowers, 0 keeps, 1 raises the score
    large: bool  # whether that counts as a change
    score: str
    answer: str
    decides: bool  # whether the model says something else than before

    @property
    def color(self) -> str:
        return {-1: LOWERS, 0: KEEPS, 1: RAISES}[self.change]


@dataclass(frozen=True)
class Shots:
    """Makes pictures of trials."""

    explanation: Explanation
    findings: Findings
    maps: Maps  # as they are shown

    @property
    def scale(self) -> Scale:
        """Of the image as it is: of the mean of its answers, where they differ each time."""
        untouched = [one.scores for one in self.findings.trials if one.role == "untouched"]
        return scale_of(self.explanation, self.findings.target, untouched)

    @property
    def before(self) -> float:
        return self.scale.score

    def number(self, score: float) -> str:
        return number(score, self.explanation.kind)

    def score(self, trial: Trial) -> float:
        return float(trial.scores[self.findings.target])

    def shot(self, trial: Trial, title: str) -> Shot:
        explanation = self.explanation
        pixels = trial.repaint.render(explanation.view.pixels, explanation.plan.cell)
        pixels = downsample(pixels, downsampling_step(pixels.shape, MOST_SIDE))
        scale, score = self.scale, self.score(trial)
        change = 0 if scale.stays(score) else 1 if score > scale.score else -1
        large = scale.falls(score) or scale.rises(score)
        says = int(trial.scores.argmax())
        decides = says != int(explanation.untouched.argmax())
        answer = answer_of(explanation, says)
        if decides and answer:  # its score first: a long label is cut at its end
            own = self.number(float(trial.scores[says]))
            answer = answer.replace("says ", f"says ({own}) ", 1)
        return Shot(title, pixels, change, large, self.number(score), answer, decides)

    def tests(self, finding: Finding) -> list[Shot | None]:
        """Own mean color, each color below its map, own pixels shuffled; None: not tested."""
        asked = [finding.trial, *finding.tests]
        colors = {trial.fill.name: trial for trial in asked if trial.role in COLOR_ROLES}
        shown: list[Shot | None] = [self.first(asked, "own mean", "its average color")]
        for k in shown_maps(self.maps):
            trial = colors.pop(self.maps.names[k], None)
            shown.append(self.shot(trial, patch_name(trial)) if trial else None)
        if last := self.last_test(finding):
            shown.append(last)
        elif finding.trial.fill.name in colors:  # painted with something else than the maps
            shown.append(self.shot(finding.trial, patch_name(finding.trial)))
        return shown

    def last_test(self, finding: Finding) -> Shot | None:
        """The test of brightness, of texture or of another of its colors, whichever tells most."""
        roles = {"shuffle": "its pixels shuffled", "gray": "gray, as bright",
                 "dominant": "its main color"}  # fmt: skip
        if finding.claim("brightness"):
            roles = {"gray": "gray, as bright", **roles}
        for role, title in roles.items():
            asked = [trial for trial in finding.tests if trial.role == role]
            if role == "gray" and asked and not finding.claim("brightness"):
                return self.shot(asked[0], title)  # as bright as what is there; then of the colors
            if asked:
                asked.sort(key=lambda trial: finding.direction * self.score(trial))
                n = len(asked) // 2 if role == "shuffle" else -1
                return self.shot(asked[n], title)
        return None

    def first(self, asked: Sequence[Trial], role: str, title: str) -> Shot | None:
        trial = next((trial for trial in asked if trial.role == role), None)
        return self.shot(trial, title) if trial else None

    def before_test(self, title: str) -> Shot:
        """The image as it is."""
        explanation, score = self.explanation, self.number(self.before)
        answer = answer_of(explanation, int(explanation.untouched.argmax()))
        return Shot(title, self.maps.image, 0, False, score, answer, False)

    def others(self, places: Sequence[Finding]) -> list[Shot]:
        """The smallest change of the answer, and places with one picture each."""
        smallest = smallest_change(self.findings)
        shown = [] if smallest is None else [self.shot(smallest, "smallest change")]
        return shown + [
            self.shot(one.trial, f"{one.letter}: {patch_name(one.trial)}")
            for one in places[: MOST_LISTED - len(shown)]
        ]

    def strongest(self) -> list[Shot]:
        """The tests that changed the score most, each picture once."""
        trials = merge_takes(one for one in self.findings.trials if one.repaint.strokes)
        if self.explanation.nondeterminism:  # a single answer may change by itself
            trials = [one for one in trials if one.repeats is not None]
        distinct = {one.repaint.digest: one for one in trials}.values()
        ordered = sorted(distinct, key=lambda one: -abs(self.score(one) - self.before))
        return [self.shot(trial, patch_name(trial)) for trial in ordered[:6]]


def answer_of(explanation: Explanation, says: int) -> str:
    """What the model says; nothing where there is one score only."""
    return f"says “{one_line(explanation.label(says))}”" if explanation.n_classes > 1 else ""


def smallest_change(findings: Findings) -> Trial | None:
    """The smallest repaint that changes the answer, if no test of a finding shows it."""
    trial = findings.counterfactual
    known = [one.trial for one in findings]
    known += [test for one in findings.described for test in one.tests]
    if trial is None or any(trial.repaint.digest == one.repaint.digest for one in known):
        return None
    return trial


COLOR_ROLES = ("search", "smaller", "recolored", "finding", "color", "counterfactual")


def patch_name(trial: Trial) -> str:
    return one_line(" and ".join(dict.fromkeys(s.fill.name for s in trial.repaint.strokes)))


def shown_maps(maps: Maps) -> list[int]:
    """The maps that are drawn, strongest last: next to the color scale."""
    strength = [float(np.abs(one).max()) for one in maps.values]
    order = sorted(range(len(strength)), key=lambda k: -strength[k])[:MOST_MAPS]
    return order[::-1]
