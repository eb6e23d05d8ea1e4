"""Figures as JSON: NaN is null, a map is packed, a region is rows of dots and marks.

What is read again may have come from anybody: it is checked here, and where it is used.
"""

import base64
import builtins
import json
import math
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .._util.validation import number, text, whole
from ..batch.storage import Storage
from ..errors import InputError, McriseError

NOT, IS = ".", "#"
FLOATS = (-1e300, 1e300)
DONE = "done.json"  # there are tables of all images


@contextmanager
def reporting_damage(folder: Storage) -> Iterator[None]:
    """Say of whatever goes wrong with an audit's files that they are damaged."""
    try:
        yield
    except McriseError:
        raise
    except Exception as error:  # as many kinds as there are ways to damage a file
        raise InputError(
            f"The audit in {folder.path} is damaged ({type(error).__name__}: {error!s:.80}): "
            "audit again, or give another one."
        ) from error


def unfinished_error(folder: Storage) -> InputError:
    """What to say of an audit that has come to nothing that could be shown or compared."""
    try:
        done = json.loads((folder / DONE).read_text())
        n_images, n_failed = (whole(done[name], 0, 10**12) for name in ("images", "failed"))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        n_images, n_failed = 0, 0
    if 0 < n_images == n_failed:
        which = "The only image" if n_images == 1 else f"Not one of the {n_images:,} images"
        could = "could not" if n_images == 1 else "could"
        return InputError(
            f"{which} of the audit in {folder.path} {could} be measured: failed.parquet there says "
            "why. Correct that, and audit again with --retry-failed."
        )
    return InputError(
        f"The audit in {folder.path} is not finished: the same `mcrise audit` goes on with it."
    )


def to_jsonable(value: Any) -> Any:
    """A dataclass and what it holds, in what JSON has."""
    if is_dataclass(value):
        return {one.name: to_jsonable(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {key: to_jsonable(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [to_jsonable(one) for one in value]
    if isinstance(value, np.ndarray):
        if value.dtype == bool and value.ndim > 2:
            return [to_jsonable(one) for one in value]
        if value.dtype == bool:
            return ["".join(IS if one else NOT for one in row) for row in value]
        content = base64.b64encode(value.astype("<f4").tobytes()).decode()
        return {"shape": list(value.shape), "float32": content}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def from_jsonable(kind: Any, value: Any) -> Any:
    """What `to_jsonable` was given, by its type; fields that an older file lacks keep defaults."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = hints_of(kind)
        given = {one.name for one in fields(kind)} & {*value}
        return kind(**{name: from_jsonable(hints[name], value[name]) for name in given})
    args = get_args(kind)
    match get_origin(kind) or kind:
        case types.UnionType:
            return None if value is None else from_jsonable(args[0], value)
        case builtins.float:
            return math.nan if value is None else number(value, *FLOATS)
        case builtins.int:
            return whole(value, -1, 10**12)
        case builtins.str:
            return text(value)
        case builtins.tuple:
            if not isinstance(value, list):
                raise ValueError(f"{value!r:.60} is not a list")
            return tuple(from_jsonable(args[0], one) for one in value)
        case builtins.dict:
            return {text(key): from_jsonable(args[1], one) for key, one in value.items()}
        case np.ndarray:
            return array_of(value)
    raise TypeError(f"{kind} is not kept in JSON")


@lru_cache
def hints_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def array_of(data: Any) -> NDArray[Any]:
    """A packed map again, a region (R, R) or several."""
    if isinstance(data, list):
        return np.stack([array_of(one) if isinstance(one, list) else marks(one) for one in data])
    values = np.frombuffer(base64.b64decode(data["float32"]), "<f4")
    return values.reshape(data["shape"]).astype(np.float32)


def marks(row: str) -> NDArray[np.bool_]:
    return np.array([mark == IS for mark in text(row)])
