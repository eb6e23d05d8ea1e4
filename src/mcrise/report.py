"""One file to send: the maps of some records, readable by hovering, without a network.

The pictures are inline, and so is what the numbers are read from: the maps as 16-bit integers and
their scale, packed. The browser code is that of the live page.
"""

import base64
import html
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .fills import Fill
from .images import unit_float
from .maps import Maps
from .plots import DIVERGING, SEQUENTIAL, overlay, sample, scale_of
from .reading import Finding, Reading
from .record import Record

WEB = Path(__file__).with_name("web")
N_STOPS = 11  # of a color scale; PuOr is defined by as many


# ---- maps for a browser


def pack(maps: Maps) -> bytes:
    """Maps as a browser reads them: the length of a header, the header as JSON, whole numbers.

    After the header, padded to a multiple of four, come the values (K, H, W) as int16 and their
    errors as uint16, little endian; times `step` and `se_step` they are in units of score.
    """
    values, step = whole_numbers(maps.values, "<i2")
    se, se_step = whole_numbers(maps.se, "<u2")
    error = maps.relative_error
    diverging = maps.estimator != "rise"
    limit = scale_of([maps.values])
    header = {
        "shape": list(maps.values.shape),
        "step": step,
        "se_step": se_step,
        "low": -limit if diverging else float(maps.values.min()),
        "high": limit if diverging else max(float(maps.values.max()), 1e-6),
        "stops": stops(DIVERGING if diverging else SEQUENTIAL),
        "diverging": diverging,
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
    finite = np.nan_to_num(array.astype(np.float64))
    step = float(np.abs(finite).max()) / np.iinfo(dtype).max or 1.0
    return np.rint(finite / step).astype(dtype).tobytes(), step


def stops(colormap: str) -> list[list[int]]:
    """A color scale as colors at equal distances, between which a browser interpolates."""
    scale = matplotlib.colormaps[colormap](np.linspace(0, 1, N_STOPS))
    return [[round(255 * channel) for channel in color[:3]] for color in scale.tolist()]


def reading_json(reading: Reading) -> dict[str, Any]:
    """A reading with its regions as runs of pixels: so many outside, so many inside, and so on."""
    told = reading.to_json()
    for finding, found in zip(told["findings"], reading.findings, strict=True):
        finding["runs"] = runs(found)
    return told


def runs(found: Finding) -> list[int]:
    flat = np.concatenate([[False], found.region.ravel()])
    changes = np.flatnonzero(flat[1:] != flat[:-1])
    return [int(n) for n in np.diff(changes, prepend=0)]


def picture_bytes(pixels: NDArray[Any], kind: str = "PNG") -> bytes:
    """Pixels (H, W, 3), uint8 or in 0..1, as a file."""
    whole = pixels if pixels.dtype == np.uint8 else np.rint(unit_float(pixels) * 255)
    buffer = io.BytesIO()
    Image.fromarray(np.clip(whole, 0, 255).astype(np.uint8)).save(buffer, kind)
    return buffer.getvalue()


def swatch(fill: Fill, image: NDArray[Any]) -> str:
    """The mean color of a fill, as CSS."""
    red, green, blue = np.rint(255 * sample(fill, image).mean(axis=(0, 1))).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def image_tag(content: bytes, alt: str, kind: str = "png") -> str:
    encoded = base64.b64encode(content).decode()
    return f'<img src="data:image/{kind};base64,{encoded}" alt="{html.escape(alt)}">'


# ---- the notebook: small and static


def record_html(record: Record) -> str:
    """The image and what the record holds, or its top class's maps where it has masks."""
    if record.scores:
        return maps_html(record.maps())
    return f"<p>{html.escape(outline(record))}</p>"


def maps_html(maps: Maps) -> str:
    """The image and one small panel per fill, on one scale that is told."""
    limit = scale_of([maps.values])
    panels = [(maps.label, picture_bytes(maps.image))]
    for name, values, se in zip(maps.names, maps.values, maps.se, strict=True):
        panels.append((name, picture_bytes(overlay(maps.image, values, se, limit))))
    figures = "".join(
        '<figure style="display:inline-block;margin:0 6px 6px 0;text-align:center">'
        f"{image_tag(content, name).replace('<img', chr(60) + 'img width=112')}"
        f'<figcaption style="font-size:85%">{html.escape(name)}</figcaption></figure>'
        for name, content in panels
    )
    told = (
        f"{maps.label}: {maps.n_masks:,} masks, {maps.estimator} estimator, {maps.unit} from "
        f"{-limit:.2g} (purple) to {limit:.2g} (orange), faint below two standard errors"
    )
    return f'<div>{figures}<div style="font-size:85%">{html.escape(told)}</div></div>'


def outline(record: Record) -> str:
    rows, cols = record.plan.size
    return (
        f"Record of {record.model}: {record.n_masks:,} masks of a {rows} x {cols} image, "
        f"{record.plan.n_fills} fills, {record.n_classes} classes"
    )


def render(records: Mapping[str, Record], targets: Sequence[int], estimator: str) -> str:
    return ""
