"""Values of JSON and TOML files, checked by type and range: a ValueError, or a value to rely on.

JSON knows neither types nor limits, and Python takes True for 1 and 1.5 for a text where nobody
looks: what is not checked where it is read fails later, where nobody knows why.
"""

import math
import tomllib
from collections.abc import Sequence
from typing import Any

from ..errors import InputError

LONGEST = 10_000  # characters of a text
MOST = 100_000  # entries of a list


def text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST:
        raise ValueError(f"{value!r:.60} is not a text")
    value.encode()  # half a surrogate pair is no character
    return value


def texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST:
        raise ValueError(f"{value!r:.60} is not a list of texts")
    return tuple(map(text, value))


def check_written(value: Any, what: str) -> None:
    """Refuse, before any work, a text that could be written into a file but not read from it."""
    if not isinstance(value, str):
        raise InputError(f"{what} is {value!r:.60}, but a text is needed.")
    if len(value) > LONGEST:
        raise InputError(
            f"{what} has {len(value):,} characters, but a file keeps at most {LONGEST:,}: give a "
            "shorter one."
        )
    try:
        text(value)
    except ValueError:
        raise InputError(
            f"{what} is {value!r:.60}, which is not text that a file keeps (half a surrogate "
            "pair): give another."
        ) from None


def check_labels(labels: Sequence[str] | None) -> None:
    """Refuse labels of classes that could be written into a file but not read from it."""
    for index, label in enumerate(labels or ()):
        check_written(label, f"The label of class {index}")


def whole(value: Any, low: int, high: int) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{value!r:.60} is not a whole number from {low} to {high}")
    return value


def number(value: Any, low: float = -1e12, high: float = 1e12) -> float:
    """A number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{value!r:.60} is not a number from {low:g} to {high:g}")
    return float(value)


def numbers(value: Any, n: int) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) != n:
        raise ValueError(f"{value!r:.60} is not {n} numbers")
    return tuple(map(number, value))


def pair(value: Any, high: int) -> tuple[int, int]:
    """Two whole numbers from 1 on."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"{value!r:.60} is not two numbers")
    return whole(value[0], 1, high), whole(value[1], 1, high)


def table(value: Any) -> dict[str, Any]:
    """An object of JSON, with names and values that can be written again."""
    if not isinstance(value, dict) or len(value) > MOST:
        raise ValueError(f"{value!r:.60} is not a table")
    for name, entry in value.items():
        text(name)
        plain(entry)
    return value


def plain(value: Any) -> None:
    """A text, a number, yes or no, nothing, or a list of such."""
    if isinstance(value, list) and len(value) <= MOST:
        for one in value:
            plain(one)
    elif isinstance(value, str):
        text(value)
    elif not (value is None or isinstance(value, int) or _is_finite(value)):
        raise ValueError(f"{value!r:.60} is not a plain value")


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def toml(content: str) -> dict[str, Any]:
    """What a text in TOML says; a ValueError also where it is nested deeper than anybody writes.

    Whole numbers have 64 bits there; Python reads any, but cannot write the longest in a sentence.
    """
    try:
        said = tomllib.loads(content)
        _check_wholes(said)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return said


def _check_wholes(value: Any) -> None:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            _check_wholes(one)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("a whole number in it has more than 64 bits")
