"""Packing: maps and readings as a browser reads them, on the page, in reports and in notebooks."""

import json
import math
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from .fills import Fill
from .images import png
from .maps import Maps
from .plots import Scale, drawn, sample, scale_for
from .trials import Tried

N_STOPS = 11  # of a color scale; PuOr is defined by as many


def pack(maps: Maps) -> bytes:
    """Maps as a browser reads them: the length of a header, the header as JSON, whole numbers.

    After the header, padded to a multiple of four, come the values (K, H, W) as int16 and their
    errors as uint16, little endian; times `step` and `se_step` they are in units of score.
    """
    values, step = whole_numbers(maps.values, "<i2")
    se, se_step = whole_numbers(maps.se, "<u2")
    error = maps.relative_error
    scale = scale_for([maps])
    header = {
        "shape": list(maps.values.shape),
        "step": step,
        "se_step": se_step,
        "low": scale.low,
        "high": scale.high,
        "stops": stops(scale.colormap),
        "diverging": maps.diverging,
        "names": list(maps.names),
        "target": maps.target,
        "label": maps.label,
        "estimator": maps.estimator,
        "n_masks": maps.n_masks,
        "unit": maps.unit,
        "relative_error": error if math.isfinite(error) else None,
        "notes": list(maps.notes),
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    return len(text).to_bytes(4, "little") + text + values + se


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


def reading_json(tried: Tried) -> dict[str, Any]:
    """A reading with its regions as runs of pixels: so many outside, so many inside, and so on."""
    content = tried.to_json()
    for entry, finding in zip(content["findings"], tried.reading.findings, strict=True):
        entry["runs"] = runs(finding.region)
    return content


def runs(region: NDArray[np.bool_]) -> list[int]:
    """How many pixels of a region (H, W) are outside, then inside, and so on, row by row."""
    flat = np.concatenate([[False], region.ravel()])
    changes = np.flatnonzero(flat[1:] != flat[:-1])
    return [int(n) for n in np.diff(changes, prepend=0)]


def swatch(fill: Fill, image: NDArray[Any]) -> str:
    """The mean color of a fill, as CSS."""
    red, green, blue = np.rint(255 * sample(fill, image).mean(axis=(0, 1))).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def panel(maps: Maps, k: int, scale: Scale, most: int | None = None) -> bytes:
    """Map k as a PNG file, no side longer than `most`."""
    return png(drawn(maps, k, scale), most)
