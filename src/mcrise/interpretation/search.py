"""Stand-in."""

from collections.abc import Generator, Sequence
from typing import Any

from numpy.typing import NDArray

from ..explanation import Explanation
from .findings import Control, Finding, Findings, Question, Trial, letter_of
from .regions import interpret
from .repaints import Repaint, Stroke, elsewhere, own_mean


def search(
    explanation: Explanation, target: int, budget: int, wanted: int | None = None
) -> Generator[list[Question], list[NDArray[Any]], Findings]:
    trials: list[Trial] = []
    for n, one in enumerate(interpret(explanation, target).findings):
        letter, fill = letter_of(n), one.strongest.fill
        own = own_mean(explanation.view.pixels, one.region)
        asked = [
            Question(Repaint((Stroke(one.region, fill, one.place),)), "finding", letter),
            Question(Repaint((Stroke(one.region, own, one.place),)), "own mean", letter),
        ]
        for other in elsewhere(one.region, [], explanation.plan.cell):
            asked.append(Question(Repaint((Stroke(other, fill),)), "control", letter))
        answers = yield asked
        trials += [Trial(q.repaint, q.role, s, target, q.letter)
                   for q, s in zip(asked, answers, strict=True)]  # fmt: skip
    return findings_from(explanation, target, trials)


def findings_from(explanation: Explanation, target: int, trials: Sequence[Trial]) -> Findings:
    before = explanation.untouched
    found = []
    for main in [trial for trial in trials if trial.role == "finding"]:
        own = [trial for trial in trials if trial.letter == main.letter and trial is not main]
        says = explanation.label(main.says)
        found.append(
            Finding(
                main.letter, main, float(before[target]), says, main.says != before.argmax(),
                tuple(t for t in own if t.role != "control"),
                Control(tuple(t for t in own if t.role == "control"), 0, "only here"),
                described=True,
                sentence=f"{main.letter}: painted {main.fill.name}, the score is {main.score:.2f}.",
            )
        )  # fmt: skip
    label = explanation.label(target)
    return Findings(target, label, tuple(found), trials=tuple(trials))
