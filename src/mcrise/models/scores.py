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
SUM_TOLERANCE = 0.01  # of probabilities: float16 models are off by a few thousandths


def check_kind(kind: str) -> None:
    if kind not in SCORE_KINDS:
        raise InputError(
            f"The kind of score is {kind!r}, but it must be one of {', '.join(SCORE_KINDS)}."
        )


def check_scores(kind: str, scores: NDArray[np.float32]) -> None:
    """Refuse scores (N, C) that are not of the kind they are said to be."""
    low, high = float(scores.min()), float(scores.max())
    outside = low < -SUM_TOLERANCE or high > 1 + SUM_TOLERANCE
    if kind == "probability":
        sums = scores.sum(axis=1)
        if outside or np.abs(sums - 1).max() > SUM_TOLERANCE:
            raise ModelError(
                f"the scores are not probabilities (from {low:.3g} to {high:.3g}, a row sums "
                f"to {sums[np.abs(sums - 1).argmax()]:.3g}): add a softmax (--softmax) if they "
                "are logits, or say what they are (--score-kind independent or any)"
            )
    elif kind in ("independent", "similarity") and outside:
        raise ModelError(
            f"the scores range from {low:.3g} to {high:.3g}, but {kind} scores lie in "
            "0..1: give --score-kind any if they are logits or distances"
        )
    elif max(-low, high) > LARGEST:
        raise ModelError(
            f"the scores range from {low:.3g} to {high:.3g}, but at most {LARGEST:g} can be "
            "reckoned with: leave out or clip what stands for infinity"
        )
