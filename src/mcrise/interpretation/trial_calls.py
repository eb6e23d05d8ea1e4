"""Trials: repaints are painted, the model is asked, and its answers are kept in the explanation.

A script is a generator: it yields repaints (or `Question`s: repaints, and why they are asked), gets
the scores of each, and returns what can be said. Answers that the explanation has are not asked
again, so that a search that was cut short asks only for the rest and ends the same. Each repaint
is kept beside its answer, and each class has a log of its trials in the order asked: with these
the findings of a loaded file need neither a model nor a ranking.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import fills
from ..errors import InputError, ModelError
from ..explanation import (
    Explanation,
    StoredRepaint,
    StoredStroke,
    TrialLog,
    TrialNote,
    pack_region,
    unpack_region,
)
from ..explanation_file import CHECKPOINT_SECONDS, state_of
from ..fills import Fill, Picture
from ..images import unit_float, whole_pixels
from ..model_calls import model_of
from .conclusions import findings_from
from .findings import Findings, Question, Trial
from .repaints import Repaint, Stroke
from .search import search


class Untried(Exception):
    """An answer is wanted that neither the explanation has nor a model is there for."""


# ---- asking


def ask_in_batches(
    explanation: Explanation, repaints: Sequence[Repaint], model: Any
) -> Generator[Explanation, None, list[NDArray[np.float32]]]:
    """Ask about the repaints that have no answer yet; yields each time a batch was answered.

    Returns the scores (C,) of each repaint.
    """
    missing = {one.digest: one for one in repaints if one.digest not in explanation.answers}
    if missing and model is None:
        raise Untried
    if missing:
        explanation.check_room(n_answers=len(missing))
        model = model_of(explanation, model)
        wanted, size = list(missing.values()), explanation.batch_size
        for start in range(0, len(wanted), size):
            some = wanted[start : start + size]
            answers = ask_about(explanation, some, model)
            explanation.take_answers(
                {one.digest: scores for one, scores in zip(some, answers, strict=True)},
                {one.digest: packed(one, explanation) for one in some},
            )
            if explanation.answered is not None:
                explanation.answered()
            yield explanation
    return [explanation.answers[one.digest] for one in repaints]


def ask_about(
    explanation: Explanation, repaints: Sequence[Repaint], model: Any
) -> NDArray[np.float32]:
    """The scores (N, C) of some repaints, in one call."""
    pixels, cell = explanation.view.pixels, explanation.plan.cell
    images = np.stack([one.render(pixels, cell) for one in repaints])
    try:
        answers: NDArray[np.float32] = model(images)
        if answers.shape[1] != explanation.n_classes:
            raise ModelError(
                f"the model gave {answers.shape[1]} scores per image after "
                f"{explanation.n_classes} before"
            )
    except ModelError as error:
        said = str(error).rstrip(".")
        raise ModelError(f"Failed at a repainted image: {said}.", explanation) from error
    return answers


def ask(
    explanation: Explanation, repaints: Sequence[Repaint], model: Any
) -> list[NDArray[np.float32]]:
    """The scores (C,) of each repaint: kept ones, or those that the model gives, kept from now."""
    answers: list[NDArray[np.float32]] = result_of(ask_in_batches(explanation, repaints, model))
    return answers


def conclude(explanation: Explanation, script: Generator[Any, Any, Any], model: Any) -> Any:
    """Follow a script to its end; raises `Untried` where an answer cannot be had."""
    return result_of(follow(explanation, script, model))


def follow(
    explanation: Explanation,
    script: Generator[Any, Any, Any],
    model: Any,
    log: TrialLog | None = None,
) -> Generator[Explanation, None, Any]:
    """Follow a script; yields each time a batch was answered and returns what the script does."""
    answers = None
    while True:
        try:
            asked = script.send(answers)
        except StopIteration as end:
            return end.value
        questions = [one if isinstance(one, Question) else Question(one, "") for one in asked]
        answers = yield from ask_in_batches(explanation, [one.repaint for one in questions], model)
        if log is not None:
            for one in questions:
                digest = one.repaint.digest
                if digest not in explanation.repaints:  # its answer is from an earlier mcrise
                    explanation.repaints[digest] = packed(one.repaint, explanation)
                log.notes.append(TrialNote(digest, one.role, one.letter))


def result_of(running: Generator[Any, None, Any]) -> Any:
    """Run a generator to its end, and give what it returns."""
    while True:
        try:
            next(running)
        except StopIteration as end:
            return end.value


@contextmanager
def answers_saved(
    explanation: Explanation, save: Callable[[], None], seconds: float = CHECKPOINT_SECONDS
) -> Iterator[None]:
    """Save what is answered meanwhile every few seconds, and however it ends: it may cost money."""
    saved_at, saved, before = time.monotonic(), state_of(explanation), explanation.answered

    def save_when_due() -> None:
        nonlocal saved_at, saved
        if time.monotonic() - saved_at >= seconds:
            saved = state_of(explanation)
            save()
            saved_at = time.monotonic()

    explanation.answered = save_when_due
    try:
        yield
    finally:
        explanation.answered = before
        if state_of(explanation) != saved:
            save()


# ---- the findings of a class


def iter_trials(
    explanation: Explanation, targets: Iterable[int], model: Any, budget: int,
    wanted: int | None = None,
) -> Iterator[Explanation]:  # fmt: skip
    """Make the trials of some classes; yields the explanation each time it has more answers.

    A class whose search is finished with these masks is not searched again. After more masks, or
    with another budget, the places found before keep their letters.
    """
    check_budget(budget)
    for target in targets:
        known = explanation.trial_logs.get(target)
        if known is not None and known.is_of(budget, explanation.n_masks, wanted):
            continue
        log = TrialLog(budget, explanation.n_masks, wanted)
        lettered: tuple[Trial, ...] = ()
        if known is not None:
            log.n_earlier = len(known.notes) if known.finished else known.n_earlier
            log.notes = known.notes[: log.n_earlier]
            lettered = trials_of(explanation, target)[: log.n_earlier]
        script = search(explanation, target, budget, wanted, lettered)
        explanation.trial_logs[target] = log
        yield from follow(explanation, script, model, log)
        log.finished = True
        yield explanation


def search_findings(
    explanation: Explanation, target: int, model: Any, budget: int, wanted: int | None = None
) -> Findings:
    """The findings of a class, after the trials that it takes."""
    deque(iter_trials(explanation, [target], model, budget, wanted), maxlen=0)
    return known_findings(explanation, target)


def known_findings(explanation: Explanation, target: int) -> Findings:
    """The findings of a class from the trials that were made."""
    if target not in explanation.trial_logs:
        label = explanation.label(target)
        raise InputError(
            f"No trials were made for {label!r}: explanation.findings_of({label!r}, model) makes "
            "them."
        )
    wanted = explanation.trial_logs[target].wanted
    return findings_from(explanation, target, trials_of(explanation, target), wanted)


def trials_of(explanation: Explanation, target: int) -> tuple[Trial, ...]:
    """The trials of the search for a class, in the order asked."""
    unpacked = {
        note.digest: restored(explanation, note.digest)
        for note in explanation.trial_logs[target].notes
    }
    return tuple(
        Trial(
            unpacked[note.digest],
            note.role,
            explanation.answers[note.digest],
            target,
            note.letter,
        )
        for note in explanation.trial_logs[target].notes
    )


def check_budget(budget: int) -> None:
    if isinstance(budget, bool) or not isinstance(budget, int) or not 1 <= budget <= 10_000:
        raise InputError(
            f"trials is {budget!r}, but a whole number from 1 to 10,000 is needed, or False for "
            "maps only; 64 is the default."
        )


# ---- how a repaint is kept


def packed(repaint: Repaint, explanation: Explanation) -> StoredRepaint:
    """A repaint as it is kept; of a picture the pixels in the region alone."""
    image = explanation.view.pixels

    def stored(stroke: Stroke) -> StoredStroke:
        region, plan_fills = pack_region(stroke.region), explanation.plan.fills
        if stroke.fill.array is None:
            return StoredStroke(region, stroke.fill.to_json(), stroke.place)
        if stroke.fill in plan_fills:
            return StoredStroke(region, {"plan": plan_fills.index(stroke.fill)}, stroke.place)
        shown = np.rint(255 * stroke.fill.render(unit_float(image))).astype(np.uint8)
        about = {"kind": Picture.kind, "label": stroke.fill.name}
        return StoredStroke(region, about, stroke.place, shown[stroke.region])

    return StoredRepaint(tuple(map(stored, repaint.strokes)), repaint.soft, repaint.take)


def restored(explanation: Explanation, digest: str) -> Repaint:
    """A repaint again; one with a picture shows the same where it is painted."""
    kept, plan = explanation.repaints[digest], explanation.plan

    def stroke_of(one: StoredStroke) -> Stroke:
        region = unpack_region(one.region, plan.size)
        if "plan" in one.fill:
            fill: Fill = plan.fills[one.fill["plan"]]
        elif one.pixels is None:
            fill = fills.from_json(dict(one.fill), None)
        else:
            pixels = whole_pixels(explanation.view.pixels).copy()
            pixels[region] = one.pixels
            fill = Picture(pixels, one.fill["label"])
        return Stroke(region, fill, one.place)

    repaint = Repaint(tuple(map(stroke_of, kept.strokes)), kept.soft, kept.take)
    object.__setattr__(repaint, "digest", digest)  # its picture had other pixels elsewhere
    return repaint
