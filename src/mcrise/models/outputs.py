"""Heads: which of a model's outputs are its scores, and how they become a table (N, C)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

WRAP = "wrap the model in a function that gives one row of scores per image"


class Head(NamedTuple):
    """An output of a model."""

    name: str
    shape: tuple[Any, ...] | None  # None or a word where a side is open; None: unknown altogether

    @property
    def is_table(self) -> bool:
        """Whether it has a row of scores per image; (N, C, 1, 1), as a pool leaves it, has."""
        return self.shape is not None and len(self.shape) > 0 and set(self.shape[2:]) <= {1}

    def __str__(self) -> str:
        if self.shape is None:
            return self.name
        return f"{self.name} ({' x '.join(str(n) if is_whole(n) else 'N' for n in self.shape)})"


def is_whole(side: Any) -> bool:
    return isinstance(side, int | np.integer) and bool(side >= 0)


def pick_head(where: str, heads: Sequence[Head], name: str | None, guess: bool = False) -> int:
    """Which output is asked for, or the only one that can be scores; others are refused.

    With `guess`, the first of several that can be, or the first of all.
    """
    listed = ", ".join(str(head) for head in heads)
    if name is not None:
        for place, head in enumerate(heads):
            if head.name == name:
                return place
        raise InputError(f"{where} has no output {name!r}: it has {listed}.")
    tables = [place for place, head in enumerate(heads) if head.is_table]
    if len(tables) == 1 or (tables and guess):
        return tables[0]
    if guess:
        return 0
    if tables:
        example = heads[tables[-1]].name
        raise InputError(
            f"{where} has several outputs: {listed}. Say which to explain, as in "
            f'output="{example}".'
        )
    raise InputError(
        f"{where} gives {listed}, but a row of scores per image (N x classes) is needed. Such "
        f"outputs are pictures, as of a segmenter, or boxes, as of a detector: {WRAP}."
    )


def several(heads: Sequence[Head], taken: int, name: str | None) -> tuple[str, ...]:
    """What to say where nobody said which of several outputs to take."""
    others = [head.name for place, head in enumerate(heads) if head.is_table and place != taken]
    if name is not None or not others or not heads[taken].is_table:
        return ()
    return (f"the model also gives {', '.join(others)}; {heads[taken].name!r} was taken",)


def holds_heads(answer: Any) -> bool:
    """Whether a model answered with several outputs: by name, or one array beside the other."""
    return isinstance(answer, dict) or (
        isinstance(answer, tuple | list)
        and bool(answer)
        and all(getattr(one, "ndim", 0) > 1 for one in answer)
    )


def pick(answer: Any, name: str | None) -> Any:
    """The scores among what a model returns: those of that name, or the only ones there are.

    Of outputs without names, the one of that number.
    """
    if isinstance(answer, dict):
        if name is None and "logits" in answer:
            return answer["logits"]
        outputs = dict(answer)
    elif isinstance(answer, tuple | list):
        outputs = {str(place): value for place, value in enumerate(answer)}
    elif name is not None:
        raise InputError(
            f"The output {name!r} was asked for, but this model has one output without a name: "
            "leave it out."
        )
    else:
        return answer
    heads = [
        Head(key, tuple(value.shape) if hasattr(value, "shape") else None)
        for key, value in outputs.items()
    ]
    return outputs[heads[pick_head("The model", heads, name)].name]


def as_table(answer: NDArray[Any]) -> NDArray[Any]:
    """Scores (N, C) out of (N,) or (N, C, 1, 1); whatever else comes stays as it is."""
    if answer.ndim == 1:
        return answer[:, None]
    return answer.reshape(answer.shape[:2]) if set(answer.shape[2:]) == {1} else answer
