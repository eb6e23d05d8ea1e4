"""Plain: figures as JSON. NaN is null, a map is packed, a region is rows of dots and marks."""

import base64
import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NOT, IS = ".", "#"


def plain(value: Any) -> Any:
    """A dataclass and what it holds, in what JSON has."""
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        if value.dtype == bool:
            return ["".join(IS if one else NOT for one in row) for row in value]
        content = base64.b64encode(value.astype("<f4").tobytes()).decode()
        return {"shape": list(value.shape), "float32": content}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def array_of(data: dict[str, Any]) -> NDArray[np.float32]:
    """A packed map again."""
    values = np.frombuffer(base64.b64decode(data["float32"]), "<f4")
    return values.reshape(data["shape"]).astype(np.float32)


def region_of(rows: list[str]) -> NDArray[np.bool_]:
    """A region (R, R) again."""
    return np.array([[mark == IS for mark in row] for row in rows])
