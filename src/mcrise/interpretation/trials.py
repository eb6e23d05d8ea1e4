"""Trials: findings put to the test, classes compared, and what would change the model's mind.

A script (`examining`) says which repaints would tell; here they are painted and asked about, in
batches of the record's own size, and the answers are kept in the record: what was tried once costs
nothing the next time, and where no model is at hand, what was not tried is said to be untried.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..errors import InputError
from ..estimators import DEFAULT
from ..explanation import Explanation, Target
from ..fills import Fill
from ..maps import Maps
from .claims import Claim, join
from .counterfactuals import Suggestion, options_of, rising, search_counterfactual, suggest
from .experiments import (
    FindingContext,
    FindingOutcome,
    PlaceboControl,
    compare_places,
    examine,
    examine_nothing,
    examine_pairs,
    examine_together,
)
from .regions import Finding, Interpretation, heading, interpret, pending
from .repaints import Region, Repaint, Stroke
from .text import (
    control_words,
    finding_lines,
    nothing_line,
    pair_line,
    suggestion_line,
    too_little_line,
)
from .trial_calls import Untried, ask, conclude

SLIGHT = 0.01  # of the range of scores: what a map shows by less may still be said to be nothing


def setting_of(
    explanation: Explanation, reading: Interpretation, target: int | None = None
) -> FindingContext:
    return FindingContext(
        explanation.view.pixels,
        explanation.plan.cell,
        explanation.plan.fills,
        reading.maps.target if target is None else target,
        explanation.untouched,
        explanation.score_range,
        tuple(finding.region for finding in reading.findings),
    )


# ---- a reading, tried


@dataclass(frozen=True, eq=False)
class TriedInterpretation(ArrayEq):
    """A reading and what came of trying it."""

    reading: Interpretation
    verdicts: tuple[FindingOutcome | None, ...]  # of each finding; None: untried
    pairs: tuple[Claim, ...] = ()
    nothing: Claim | None = None
    too_little: tuple[
        FindingOutcome, ...
    ] = ()  # findings of the map that matter too little when painted

    @property
    def claims(self) -> list[Claim]:
        """All that was claimed, by any of them."""
        known = [*(one for one in self.verdicts if one), *self.too_little]
        single = [claim for verdict in known for claim in verdict.claims]
        return [*single, *self.pairs, *([self.nothing] if self.nothing else [])]

    def said(self) -> Iterator[tuple[Finding, list[str]]]:
        """Each finding and what there is to say of it, in a line or two."""
        label = self.reading.maps.label
        for finding, verdict in zip(self.reading.findings, self.verdicts, strict=True):
            lines = finding_lines(verdict, label) if verdict else [finding.line(label)]
            yield finding, lines

    def remarks(self) -> list[str]:
        """What is said of several findings, or of none."""
        label = self.reading.maps.label
        if self.nothing:
            return [nothing_line(self.nothing, label)]
        place = {id(finding.region): n for n, finding in enumerate(self.reading.findings, start=1)}
        pairs = [
            pair_line(claim, [place[id(region)] for region in claim.regions], label)
            for claim in self.pairs
        ]
        return [*pairs, *([too_little_line(self.too_little, label)] if self.too_little else [])]

    def lines(self) -> list[str]:
        """To print."""
        out = [heading(self.reading.maps)]
        for number, (_, (first, *rest)) in enumerate(self.said(), start=1):
            out += [f"{number}. {first}", *(f"   {line}" for line in rest)]
        remarks = self.remarks()
        silent = [] if remarks or self.reading.findings else ["No finding."]
        return [*out, *remarks, *silent, self.reading.pending]

    def to_json(self) -> dict[str, Any]:
        content = self.reading.to_json()
        rows = zip(content["findings"], self.said(), self.verdicts, strict=True)
        for entry, (_, lines), verdict in rows:
            entry["sentence"] = " ".join(lines)
            entry["tried"] = verdict.to_json() if verdict else None
        content["pairs"] = [claim.to_json() for claim in self.pairs]
        content["too_little"] = [
            {**one.finding.to_json(), "tried": one.to_json()} for one in self.too_little
        ]
        content["nothing"] = self.nothing.to_json() if self.nothing else None
        content["remarks"] = self.remarks()
        return content


def try_findings(
    explanation: Explanation,
    reading: Interpretation,
    model: Any = None,
    only: Finding | None = None,
) -> TriedInterpretation:
    """Put every finding of a reading to the test, or one; most important first afterwards.

    Without a model, what the record has answers to is told from it, and the rest is untried.
    """
    setting = setting_of(explanation, reading)
    verdicts: list[FindingOutcome | None] = []
    for finding in reading.findings:
        try:
            asked = model if only in (None, finding) else None
            verdicts.append(conclude(explanation, examine(setting, finding), asked))
        except Untried:
            verdicts.append(None)
    order = sorted(range(len(verdicts)), key=lambda n: importance(setting, verdicts[n]))
    reading = replace(reading, findings=tuple(reading.findings[n] for n in order))
    verdicts = [verdicts[n] for n in order]
    known = [verdict for verdict in verdicts if verdict]
    pairs: list[Claim] = []
    nothing = None
    with suppress(Untried):
        pairs = conclude(explanation, examine_pairs(setting, known), model)
        together = conclude(explanation, examine_together(setting, unpaired(known, pairs)), model)
        pairs += [together] if together else []
        slight = all(abs(one.strongest.value) < SLIGHT * setting.range for one in reading.findings)
        if slight and len(unpaired(known, pairs)) == len(verdicts):
            nothing = conclude(explanation, examine_nothing(setting), model)
    idle = unpaired(known, pairs)  # stood out in the map only because other parts were painted too
    kept = [n for n, one in enumerate(verdicts) if one not in idle]
    found = tuple(reading.findings[n] for n in kept)
    # What is not established goes by their numbers, which are others now.
    open_still = pending(reading.maps, found, reading.limit, len(idle))
    reading = replace(reading, findings=found, pending=open_still)
    verdicts = [verdicts[n] for n in kept]
    return TriedInterpretation(reading, tuple(verdicts), tuple(pairs), nothing, tuple(idle))


def unpaired(verdicts: Sequence[FindingOutcome], claims: Sequence[Claim]) -> list[FindingOutcome]:
    """Those that neither move the score alone nor together with others."""
    paired = {id(region) for claim in claims for region in claim.regions}
    return [one for one in verdicts if not one.moved and id(one.finding.region) not in paired]


def importance(setting: FindingContext, verdict: FindingOutcome | None) -> tuple[int, float]:
    """Sorts findings: confirmed ones first, then others that move the score, by how much."""
    if verdict is None or not verdict.control:
        return 2, 0.0
    return int(not verdict.confirmed), -abs(verdict.control.here - setting.score)


# ---- a repaint of one's own


@dataclass(frozen=True, eq=False)
class Intervention(ArrayEq):
    """A repaint and what the model said of it."""

    repaint: Repaint
    target: int
    before: NDArray[np.float32]  # (C,)
    after: NDArray[np.float32]  # (C,)
    control: PlaceboControl | None = None  # the same patch elsewhere, where that was tried

    @property
    def flips(self) -> bool:
        return bool(self.before.argmax() != self.after.argmax())

    def line(self, explanation: Explanation) -> str:
        """`Painting the center with green: 'stop' 0.99 → 0.04; the model then says 'yield'.`"""
        words = join([stroke.words for stroke in self.repaint.strokes], "and")
        moved = f"{self.before[self.target]:.2f} → {self.after[self.target]:.2f}"
        flip = f"; the model then says {explanation.label(int(self.after.argmax()))!r}"
        label = explanation.label(self.target)
        return f"Painting {words}: {label!r} {moved}{flip if self.flips else ''}."

    def to_json(self, explanation: Explanation) -> dict[str, Any]:
        top = np.argsort(-np.maximum(self.before, self.after), kind="stable")[:5]
        return {
            "strokes": [
                {"place": s.place, "share": float(s.region.mean()), "fill": s.fill.name}
                for s in self.repaint.strokes
            ],
            "before": float(self.before[self.target]),
            "after": float(self.after[self.target]),
            "flips": self.flips,
            "control": self.control.to_json() if self.control else None,
            "scores": [
                {"target": c, "label": explanation.label(c),
                 "before": float(self.before[c]), "after": float(self.after[c])}
                for c in dict.fromkeys([self.target, *(int(c) for c in top)])
            ],
        }  # fmt: skip


def intervene(
    explanation: Explanation,
    model: Any,
    region: Region,
    fill: Fill,
    target: Target = None,
    place: str = "the region",
    control: bool = False,
) -> Intervention:
    """Paint a region (H, W) of the image of a record and ask its model again.

    With `control`, the same patch is painted elsewhere too, in up to 19 places.
    """
    if region.shape != explanation.plan.size:
        raise InputError(
            f"The region is {region.shape[0]} x {region.shape[1]} pixels, but the image of the "
            f"explanation is {explanation.plan.size[0]} x {explanation.plan.size[1]}: give one of "
            "that size."
        )
    if not region.any():
        raise InputError("The region is empty: mark it white on black.")
    painted = Repaint((Stroke(np.asarray(region, bool), fill, place),))
    trial = try_strokes(explanation, model, painted, explanation.resolve(target))
    if not control:
        return trial
    reading = Interpretation(explanation.maps(target), 0.0, (), "")
    setting = replace(setting_of(explanation, reading), regions=())
    after = float(trial.after[trial.target])
    script = compare_places(setting, painted.strokes, after)
    return replace(trial, control=conclude(explanation, script, model))


def try_strokes(
    explanation: Explanation, model: Any, painted: Repaint, target: int
) -> Intervention:
    (after,) = ask(explanation, [painted], model)
    return Intervention(painted, target, explanation.untouched, after)


def find_counterfactual(
    explanation: Explanation, model: Any, tried: TriedInterpretation
) -> Intervention | None:
    """The smallest repaint found that changes the decision, among the findings of a reading.

    Away from the class that the model predicts, or towards another that was read.
    """
    target = tried.reading.maps.target
    wanted = None if target == explanation.untouched.argmax() else target
    setting = setting_of(explanation, tried.reading)
    known = [*filter(None, tried.verdicts), *tried.too_little]
    options = options_of(known, upwards=wanted is not None)
    return counterfactual_of(
        explanation,
        conclude(explanation, search_counterfactual(setting, options, wanted), model),
        target,
    )


def counterfactual_of(
    explanation: Explanation, found: tuple[Repaint, PlaceboControl | None] | None, target: int
) -> Intervention | None:
    if found is None:
        return None
    painted, control = found
    return Intervention(
        painted, target, explanation.untouched, explanation.answers[painted.digest], control
    )


def counterfactual_line(flip: Intervention | None, explanation: Explanation, target: int) -> str:
    """What was found to change the decision, to the target or away from it, and if only there."""
    if explanation.n_classes < 2:
        return "The model gives a single score: there is no decision to change."
    decided = target == explanation.untouched.argmax()
    does = "changes the decision" if decided else f"makes it {explanation.label(target)!r}"
    if flip is None:
        return f"No repaint of these findings that was tried {does}."
    share = f"{100 * flip.repaint.share:.0f} % of the image"
    control = f" {control_words(flip.control)}" if flip.control else ""
    return f"Smallest repaint found that {does} ({share}): {flip.line(explanation)}{control}"


# ---- comparing two classes


@dataclass(frozen=True, eq=False)
class Comparison(ArrayEq):
    """Two classes under the same masks, how their difference responds, and what would help."""

    wanted: Maps
    given: Maps
    difference: Interpretation  # of wanted minus given
    suggestions: tuple[Suggestion, ...] = ()  # best first
    flip: Intervention | None = None  # the smallest repaint found that makes it the wanted one
    tried: bool = False

    def lines(self, explanation: Explanation) -> list[str]:
        """To print."""
        wanted = self.wanted.label
        out = self.difference.lines()
        if not self.tried:
            return [*out, "Give --model to try what would move the decision."]
        if self.suggestions:
            out.append(f"To move it towards {wanted!r}:")
            out += [f"- {suggestion_line(one, explanation)}" for one in self.suggestions]
        else:
            out.append(f"No repaint of a single finding was found to raise {wanted!r}.")
        if self.wanted.target == explanation.untouched.argmax():
            return [*out, f"The model says {wanted!r} as it is."]
        return [*out, counterfactual_line(self.flip, explanation, self.wanted.target)]

    def to_json(self, explanation: Explanation) -> dict[str, Any]:
        return {
            "difference": self.difference.to_json(),
            "suggestions": [
                Intervention(
                    Repaint((one.stroke,)), one.target, one.before, one.after, one.control
                ).to_json(explanation)
                for one in self.suggestions
            ],
            "flip": self.flip.to_json(explanation) if self.flip else None,
            "tried": self.tried,
        }


def compare(
    explanation: Explanation,
    wanted: Target,
    given: Target = None,
    estimator: str = DEFAULT,
    model: Any = None,
) -> Comparison:
    """Compare two classes; `given` None is the one the model predicts.

    Both classes saw the same masks, so their errors go together: the standard error of their
    difference is smaller than the two combined where they rise and fall together, and larger where
    one gains what the other loses. With a model, what should raise the wanted class is tried, and
    what does not is no suggestion.
    """
    first, second = explanation.resolve(wanted), explanation.resolve(given)
    if first == second:
        raise InputError(
            f"Both classes are {explanation.label(first)!r}: name two different ones, such as the "
            "right one and the one predicted."
        )
    difference = interpret(explanation, first, estimator, against=second)
    ours, theirs = explanation.maps([first, second], estimator)
    comparison = Comparison(ours, theirs, difference)
    # What the wanted class itself responds to may be lost in a difference.
    findings = distinct((*difference.findings, *interpret(explanation, first, estimator).findings))
    setting = replace(
        setting_of(explanation, difference), regions=tuple(f.region for f in findings)
    )
    try:
        helpful = conclude(explanation, suggest(setting, findings), model)
        strokes = [rising(finding) for finding in findings]
        decided = explanation.untouched.argmax() == first
        found = (
            None
            if decided
            else conclude(explanation, search_counterfactual(setting, strokes, first), model)
        )
    except Untried:
        return comparison
    return replace(
        comparison,
        suggestions=tuple(helpful),
        flip=counterfactual_of(explanation, found, first),
        tried=True,
    )


def distinct(findings: Sequence[Finding]) -> list[Finding]:
    """Without those that lie, by more than half of either, on one before them."""
    kept: list[Finding] = []
    for one in findings:
        if all(overlap(one.region, other.region) <= 0.5 for other in kept):
            kept.append(one)
    return kept


def overlap(one: Region, other: Region) -> float:
    """What two regions have in common, of the smaller one."""
    return float((one & other).sum() / min(one.sum(), other.sum()))
