"""Maps and findings as a browser reads them, on the page and in reports."""

import json
import math
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from ..estimators import NullThreshold
from ..fills import Fill
from ..images import whole_pixels
from ..interpretation.findings import Findings
from ..maps import Maps
from .plots import sample, scale_for

N_STOPS = 11  # of a color scale; PuOr is defined by as many
POINTS = 8, 4, 3  # a cell and axis: what lies between is linear to a fraction of the error
MOST_BYTES = 1_400_000  # of maps in a refresh; beyond it, fewer points


def pack(
    maps: Maps,
    grid: tuple[int, int],
    chance: NullThreshold | None = None,
    most_bytes: int = MOST_BYTES,
    about: Mapping[str, Any] | None = None,
) -> bytes:
    """Maps as a browser reads them: the length of a header, the header as JSON, whole numbers.

    After the header, padded to a multiple of four, come the values (K, rows, columns) as int16 and
    their errors as uint16, little endian; times `step` and `se_step` they are in units of score. A
    map of a large image has no more detail than its grid: so they are at points at equal distances
    from the first to the last of the image's `size` pixels, with straight lines between. With
    `chance`, what must exceed its `limit` to count; where these are other maps, they come last.
    `about` is added to the header.
    """
    values, se = maps.values, maps.se
    tested = [] if chance is None else [chance.values]
    lines = points_of(maps, grid, most_bytes / (4 + 2 * len(tested)))
    fewer = [on_points(some, lines) for some in (values, se, *tested)]
    numbers, step = whole_numbers(fewer[0], "<i2")
    errors, se_step = whole_numbers(fewer[1], "<u2")
    other = chance is not None and not np.array_equal(fewer[0], fewer[2])
    tests, tested_step = whole_numbers(fewer[2], "<i2") if other else (b"", step)
    error = maps.relative_error
    scale = scale_for([maps])
    header = {
        "shape": list(fewer[0].shape),
        "size": list(values.shape[1:]),
        "step": step,
        "se_step": se_step,
        "sure_se": maps.half_width_95,
        "tested_step": tested_step if other else None,
        "limit": chance.limit if chance else None,
        "low": scale.low,
        "high": scale.high,
        "least": float(values.min()),
        "most": float(values.max()),
        "strengths": [float(np.abs(one).max()) for one in values],
        "stops": stops(scale.colormap),
        "diverging": maps.diverging,
        "per_fill": bool(maps.fills),
        "names": list(maps.names),
        "target": maps.target,
        "label": maps.label,
        "estimator": maps.estimator,
        "n_masks": maps.n_masks,
        "unit": maps.unit,
        "relative_error": error if math.isfinite(error) else None,
        "notes": list(maps.notes),
        **(about or {}),
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    return len(text).to_bytes(4, "little") + text + numbers + errors + tests


def points_of(maps: Maps, grid: tuple[int, int], most: float) -> list[NDArray[np.float64]]:
    """The rows and columns, in pixels, at which maps are sent: at most `most` points in all.

    But three per cell at least.
    """
    n_maps, *size = maps.values.shape
    for per_cell in POINTS:
        counts = [min(per_cell * cells + 1, n) for cells, n in zip(grid, size, strict=True)]
        if n_maps * math.prod(counts) <= most:
            break
    return [np.linspace(0, n - 1, count) for n, count in zip(size, counts, strict=True)]


def on_points(array: NDArray[np.float32], lines: list[NDArray[np.float64]]) -> NDArray[np.float32]:
    """Values (K, H, W) at points along rows and columns."""
    for axis, places in enumerate(lines, start=1):
        low = np.minimum(places.astype(np.int64), array.shape[axis] - 2)
        share = (places - low).astype(np.float32)
        share = share[:, None] if axis == 1 else share
        array = array.take(low, axis) * (1 - share) + array.take(low + 1, axis) * share
    return array


def whole_numbers(array: NDArray[np.float32], dtype: str) -> tuple[bytes, float]:
    """An array as 16-bit whole numbers, and what one of them is worth."""
    # Map by map: wide copies of all of them would be most of what a report needs.
    largest = max(float(np.abs(np.nan_to_num(one)).max()) for one in array)
    step = largest / np.iinfo(dtype).max or 1.0
    out = np.empty(array.shape, dtype)
    for k, one in enumerate(array):
        out[k] = np.rint(np.nan_to_num(one.astype(np.float64)) / step)
    return out.tobytes(), step


def stops(colormap: str) -> list[list[int]]:
    """A color scale as colors at equal distances, between which a browser interpolates."""
    scale = matplotlib.colormaps[colormap](np.linspace(0, 1, N_STOPS))
    return [[round(255 * channel) for channel in color[:3]] for color in scale.tolist()]


def findings_json(findings: Findings) -> dict[str, Any]:
    """Findings with their regions as runs of pixels, as `runs` has them."""
    content = findings.to_json()
    for entry, finding in zip(content["findings"], findings, strict=True):
        entry["runs"] = runs(finding.region)
    return content


def runs(region: NDArray[np.bool_]) -> list[int]:
    """How many pixels of a region (H, W) are outside, then inside, and so on, row by row."""
    flat = np.concatenate([[False], region.ravel()])
    changes = np.flatnonzero(flat[1:] != flat[:-1])
    return [int(n) for n in np.diff(changes, prepend=0)]


def swatch(fill: Fill, image: NDArray[Any]) -> str:
    """The mean color of a fill, as CSS."""
    red, green, blue = whole_pixels(sample(fill, image).mean(axis=(0, 1)))
    return f"#{red:02x}{green:02x}{blue:02x}"
