"""Scores: what a model's numbers may mean, how a change of them is named, what is nonsense."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ModelError

ScoreKind = Literal["probability", "independent", "similarity", "any"]
SCORE_KINDS: tuple[ScoreKind, ...] = get_args(ScoreKind)
UNITS: dict[str, str] = {  # how a colorbar names such a score
    "probability": "probability",
    "independent": "probability",
    "similarity": "similarity",
    "any": "score",
}
LARGEST = 1e15  # of scores of any kind: their squares, added up, must be numbers still
ENOUGH = 16  # numbers that all lie in 0..1: no chance among logits
SAME_SUM = 1e-3  # how far from one a row of probabilities may sum
QUANTISED = 1 / 256  # the step of a probability in eight bits
SUM_TOLERANCE = 0.01  # of probabilities: float16 models are off by a few thousandths


def check_kind(kind: str) -> None:
    if kind not in SCORE_KINDS:
        raise InputError(
            f"The kind of score is {kind!r}, but it must be one of {', '.join(SCORE_KINDS)}."
        )


def check_raw(answer: NDArray[np.float32], kind: str, softmax: bool, sigmoid: bool) -> None:
    """Refuse to make probabilities of what are probabilities already, or of a single number."""
    if answer.shape[1] == 1 and softmax:
        raise ModelError(
            "the model gives one number per image, and a softmax of one number is always 1: give "
            "sigmoid=True if it is the logit of one class"
        )
    if answer.shape[1] == 1 and kind == "probability":
        raise ModelError(
            "the model gives one number per image, which does not say what it is: give "
            'score_kind="independent" if it is the probability of one class (sigmoid=True if it is '
            'its logit), or score_kind="any" if it is another number, as of a regression'
        )
    if not (softmax or sigmoid) or answer.size < ENOUGH or answer.min() < 0 or answer.max() > 1:
        return
    if sigmoid or np.abs(answer.sum(axis=1) - 1).max() <= SAME_SUM:
        word = "sigmoid" if sigmoid else "softmax"
        instead = ', and give score_kind="independent"' if sigmoid else ""
        raise ModelError(
            f"a {word} was asked for, but the model's own numbers lie in 0..1 "
            f"(from {answer.min():.3g} to {answer.max():.3g}), so they are probabilities already: "
            f"leave {word}=True out{instead}"
        )


def check_scores(kind: str, scores: NDArray[np.float32], rounding: float = 0.0) -> None:
    """Refuse scores (N, C) that are not of the kind they are said to be.

    Each may be off by `rounding`, as those of a quantised model are.
    """
    low, high = float(scores.min()), float(scores.max())
    outside = low < -SUM_TOLERANCE or high > 1 + SUM_TOLERANCE
    if kind == "probability":
        sums = scores.sum(axis=1)
        if outside or np.abs(sums - 1).max() > SUM_TOLERANCE + rounding * scores.shape[1]:
            raise ModelError(
                f"the scores are not probabilities (from {low:.3g} to {high:.3g}, a row sums "
                f"to {sums[np.abs(sums - 1).argmax()]:.3g}): "
                "add a softmax (softmax=True) if they are logits, or say what they are "
                '(score_kind="independent" or score_kind="any")'
            )
    elif kind in ("independent", "similarity") and outside:
        raise ModelError(
            f"the scores range from {low:.3g} to {high:.3g}, but {kind} scores lie in "
            '0..1: give score_kind="any" if they are logits or distances'
        )
    elif max(-low, high) > LARGEST:
        raise ModelError(
            f"the scores range from {low:.3g} to {high:.3g}, but at most {LARGEST:g} can be "
            "reckoned with: leave out or clip what stands for infinity"
        )
