"""Equality by content, for dataclasses that hold arrays.

The equality that a dataclass gets by itself raises where two arrays are compared: their `==` is an
array, which is neither true nor false.
"""

from dataclasses import fields
from typing import Any

import numpy as np


class ArrayEq:
    """For dataclasses with `eq=False`: equal if every compared field is."""

    __hash__ = None  # type: ignore[assignment]  # what holds arrays may change

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [field.name for field in fields(self) if field.compare]  # type: ignore[arg-type]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
