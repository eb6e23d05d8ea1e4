"""Repaints of one's own, what would change the answer, and two classes compared."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from .._util.text import number
from ..errors import InputError
from ..estimators import DEFAULT
from ..explanation import Explanation, Target
from ..fills import Fill
from ..maps import Maps
from .claims import join, sentence_case
from .conclusions import counterfactual_of
from .findings import Control, Question, Trial
from .inquiry import AFRESH, Inquiry, answers_before, ask_controls, merge_takes
from .regions import Interpretation, interpret, place_of
from .repaints import Region, Repaint, Stroke
from .score_change import Scale, Scores, scale_of
from .search import confirm_change, reach, search
from .text import Words, box_words, control_words
from .trial_calls import Untried, ask, check_budget, conclude, trials_of

TRIALS = 64  # repaints that a search may try
MOST_SUGGESTED = 3


# ---- a repaint of one's own


@dataclass(frozen=True, eq=False)
class Intervention(ArrayEq):
    """A repaint and what the model said of it."""

    repaint: Repaint
    target: int
    before: NDArray[np.float32]  # (C,)
    after: NDArray[np.float32]  # (C,)
    control: Control | None = None  # the same patch elsewhere, where that was tried
    sentence: str = field(default="", compare=False)

    def __repr__(self) -> str:
        moved = f"{self.before[self.target]:.3g} → {self.after[self.target]:.3g}"
        words = join([stroke.words for stroke in self.repaint.strokes], "and")
        return f"<Intervention: {words}, score {moved}>"

    def __str__(self) -> str:
        return self.sentence

    @property
    def flips(self) -> bool:
        return bool(self.before.argmax() != self.after.argmax())

    def line(self, explanation: Explanation) -> str:
        """`Painting the center (rows 30-60, columns 40-70) with green: 'stop' 0.99 → 0.04; ...`"""
        words = join([f"{one.place} ({box_words(one.region)}) with {one.fill.name}"
                      for one in self.repaint.strokes], "and")  # fmt: skip
        before, after = float(self.before[self.target]), float(self.after[self.target])
        moved = " → ".join(number(one, explanation.kind) for one in (before, after))
        says = explanation.label(int(self.after.argmax()))
        flip = f"; the model {'then' if self.flips else 'still'} says {says!r}"
        control = ""
        if self.control:
            way = -1 if after < before else 1
            control = f" {control_words(self.control, explanation.kind, way)}"
        return (
            f"Painting {words}: {explanation.label(self.target)!r} {moved}"
            f"{flip if explanation.n_classes > 1 else ''}.{control}"
        )

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
    """Paint a region (H, W) of the image of an explanation and ask its model again.

    With `control`, the same patch is painted in up to 19 other places too.
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
    index = explanation.resolve(target)
    trial = try_strokes(explanation, model, painted, index)
    if control:
        inquiry = Inquiry(explanation, index)
        main = Trial(painted, "finding", trial.after, index)
        trial = replace(trial, control=conclude(explanation, ask_controls(inquiry, main), model))
    return replace(trial, sentence=trial.line(explanation))


def try_strokes(
    explanation: Explanation, model: Any, painted: Repaint, target: int
) -> Intervention:
    (after,) = ask(explanation, [painted], model)
    return Intervention(painted, target, explanation.untouched, after)


# ---- another answer


def find_counterfactual(
    explanation: Explanation, model: Any, wanted: Target = None, trials: int = TRIALS
) -> Trial | None:
    """The smallest repaint found that makes the model say `wanted`, or anything else.

    None if no repaint that was tried does.
    """
    check_budget(trials)
    predicted = explanation.resolve(None)
    if wanted is None:
        found = conclude(explanation, search(explanation, predicted, trials), model)
        return found.counterfactual  # type: ignore[no-any-return]
    script = reach_alone(explanation, explanation.resolve(wanted), trials)
    tried = conclude(explanation, script, model)
    known = [*tried, *stored_trials(explanation)]
    return counterfactual_of(scale_of(explanation, predicted), known, explanation.resolve(wanted))


def stored_trials(explanation: Explanation) -> list[Trial]:
    """What was tried for any class; none where answers differ each time: they chose themselves."""
    if explanation.nondeterminism:
        return []
    return [one for target in explanation.trial_logs for one in trials_of(explanation, target)]


def reach_alone(
    explanation: Explanation, wanted: int, budget: int
) -> Generator[list[Question], list[Scores], list[Trial]]:
    """The trials on the way to another class."""
    inquiry = Inquiry(explanation, wanted)
    yield from inquiry.ask_untouched()
    yield from reach(inquiry, wanted, budget)
    yield from confirm_change(inquiry, wanted)
    if inquiry.is_noisy:
        best = suggested(inquiry.scale, merge_takes(inquiry.trials))
        yield from inquiry.ask_surely(
            [Question(one.repaint, "counterfactual") for one in best], AFRESH
        )
    return merge_takes(inquiry.trials)


# ---- comparing two classes


@dataclass(frozen=True, eq=False)
class Comparison(ArrayEq):
    """Two classes under the same masks, how their difference responds, and what would help."""

    wanted: Maps
    given: Maps
    difference: Interpretation  # of the maps of wanted less given
    suggestions: tuple[Trial, ...] = ()  # repaints that raise the wanted class most, best first
    counterfactual: Trial | None = None  # the smallest repaint found that makes it the wanted one
    trials: tuple[Trial, ...] = ()
    tried: bool = False
    sentences: tuple[str, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        tried = f"{len(self.trials)} trials" if self.tried else "not tested"
        return f"<Comparison of {self.wanted.label!r} with {self.given.label!r}: {tried}>"

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def lines(self, explanation: Explanation) -> list[str]:
        """To print."""
        wanted, given = self.wanted.label, self.given.label
        before = explanation.untouched
        out = [
            f"The model gives {wanted!r} "
            f"{number(float(before[self.wanted.target]), explanation.kind)} and {given!r} "
            f"{number(float(before[self.given.target]), explanation.kind)}."
        ]
        if self.wanted.target == before.argmax():
            return [*out, f"The model already says {wanted!r}; there is nothing to suggest."]
        if not self.tried:
            return [*out, f"Not tested: give the model to try what makes it say {wanted!r}."]
        scale = scale_of(explanation, self.wanted.target)
        words = Words(explanation, scale, self.trials, self.wanted, 0.0)
        out.append(words.counterfactual_line(self.counterfactual, self.wanted.target))
        if self.suggestions:
            out.append(f"Repaints that raise {wanted!r} most:")
            out += [f"- {suggestion_line(one, explanation)}" for one in self.suggestions]
        else:
            out.append(f"No repaint that was tried raises {wanted!r} by {words.least_rise}.")
        return out

    def to_json(self, explanation: Explanation) -> dict[str, Any]:
        found = self.counterfactual
        return {
            "wanted": self.wanted.label,
            "given": self.given.label,
            "suggestions": [one.to_json() for one in self.suggestions],
            "counterfactual": found.to_json() if found else None,
            "trials": len(self.trials),
            "tried": self.tried,
            "lines": self.lines(explanation),
        }


def compare(
    explanation: Explanation,
    wanted: Target,
    given: Target = None,
    estimator: str = DEFAULT,
    model: Any = None,
    trials: int = TRIALS,
) -> Comparison:
    """Compare two classes; `given` None is the one the model predicts.

    Both classes saw the same masks, so their errors go together: the standard error of their
    difference is smaller than the two combined where they rise and fall together, and larger where
    one gains what the other loses. With a model, blocks are tried in the order of the map of the
    wanted class: the smallest block, then two, that make the model say it.
    """
    check_budget(trials)
    first, second = explanation.resolve(wanted), explanation.resolve(given)
    if first == second:
        raise InputError(
            f"Both classes are {explanation.label(first)!r}: name two different ones, such as the "
            "right one and the one predicted."
        )
    ours, theirs = explanation.maps([first, second], estimator)
    comparison = Comparison(ours, theirs, interpret(explanation, first, estimator, against=second))
    try:
        made = conclude(explanation, reach_alone(explanation, first, trials), model)
    except Untried:
        return replace(comparison, sentences=tuple(comparison.lines(explanation)))
    before = answers_before(made)
    scale = scale_of(explanation, first, () if before is None else list(before))
    sure = [one for one in made if before is None or (
        one.repeats is not None and scale.is_sure(before, one.repeats))]  # fmt: skip
    comparison = replace(
        comparison,
        suggestions=tuple(suggested(scale, sure)),
        counterfactual=counterfactual_of(scale, [*made, *stored_trials(explanation)], first),
        trials=tuple(made),
        tried=True,
    )
    return replace(comparison, sentences=tuple(comparison.lines(explanation)))


def suggested(scale: Scale, trials: Sequence[Trial]) -> list[Trial]:
    """Repaints that raise a class most, apart from each other."""
    raising = [one for one in trials if len(one.repaint.strokes) == 1 and scale.rises(one.score)]
    best: list[Trial] = []
    for one in sorted(raising, key=lambda one: -one.score):
        if len(best) < MOST_SUGGESTED and not any((one.region & two.region).any() for two in best):
            best.append(one)
    return best


def suggestion_line(one: Trial, explanation: Explanation) -> str:
    """What a repaint does to the wanted class, and what the model then says."""
    before, label = float(explanation.untouched[one.target]), explanation.label(one.target)
    where = f"{place_of(one.region)} ({box_words(one.region)}) in {one.fill.name}"
    says = explanation.label(one.says)
    moved = " to ".join(number(score, explanation.kind) for score in (before, one.score))
    return f"{sentence_case(where)} raises {label!r} from {moved}; the model then says {says!r}."
