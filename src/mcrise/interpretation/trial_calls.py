"""Trials: repaints are painted, the model is asked, and its answers are kept in the explanation."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..explanation import Explanation
from ..model_calls import model_of
from ..sampling import CHECKPOINT_SECONDS
from .repaints import Repaint


class Untried(Exception):
    """An answer is wanted that neither the explanation has nor a model is there for."""


def ask(
    explanation: Explanation, repaints: Sequence[Repaint], model: Any
) -> list[NDArray[np.float32]]:
    """The scores (C,) of each repaint: kept ones, or those that the model gives, kept from now."""
    missing = {one.digest: one for one in repaints if one.digest not in explanation.answers}
    if missing and model is None:
        raise Untried
    if missing:
        explanation.check_room(n_answers=len(missing))
        model = model_of(explanation, model)
        wanted, size = list(missing.values()), explanation.batch_size
        for start in range(0, len(wanted), size):
            some = wanted[start : start + size]
            images = np.stack(
                [one.render(explanation.view.pixels, explanation.plan.cell) for one in some]
            )
            try:
                answers = model(images)
                if answers.shape[1] != explanation.n_classes:
                    raise ModelError(
                        f"the model gave {answers.shape[1]} scores per image after "
                        f"{explanation.n_classes} before"
                    )
            except ModelError as error:
                raise ModelError(f"Failed at a repainted image: {error}.", explanation) from error
            explanation.take_answers({one.digest: a for one, a in zip(some, answers, strict=True)})
            if explanation.answered is not None:
                explanation.answered()
    return [explanation.answers[one.digest] for one in repaints]


def conclude(explanation: Explanation, script: Generator[Any, Any, Any], model: Any) -> Any:
    """Follow a script to its end; raises `Untried` where an answer cannot be had."""
    answers = None
    while True:
        try:
            asked = script.send(answers)
        except StopIteration as end:
            return end.value
        answers = ask(explanation, [one.repaint for one in asked], model)


@contextmanager
def answers_saved(
    explanation: Explanation, save: Callable[[], None], seconds: float = CHECKPOINT_SECONDS
) -> Iterator[None]:
    """Save what is answered meanwhile every few seconds, and however it ends: it may cost money."""
    saved_at, n_saved, before = time.monotonic(), len(explanation.answers), explanation.answered

    def save_when_due() -> None:
        nonlocal saved_at, n_saved
        if time.monotonic() - saved_at >= seconds:
            save()
            saved_at, n_saved = time.monotonic(), len(explanation.answers)

    explanation.answered = save_when_due
    try:
        yield
    finally:
        explanation.answered = before
        if len(explanation.answers) > n_saved:
            save()
