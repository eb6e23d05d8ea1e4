"""One file to send: the maps of some records, readable by hovering, without a network.

The pictures are inline, and so is what the numbers are read from: the maps as 16-bit integers and
their scale, packed. The browser code is that of the live page.
"""

import base64
import hashlib
import html
import json
import math
import re
import shlex
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from .fills import Fill
from .images import png
from .maps import Maps
from .metrics import curve_from_json
from .plots import (
    DIVERGING,
    SEQUENTIAL,
    figure_png,
    overlay,
    plot_curves,
    sample,
    scale_of,
)
from .reading import Finding, Reading, read
from .record import DEFAULT, Record, versions

WEB = Path(__file__).parent / "page" / "web"
SMALL = 112  # pixels of a panel in a notebook
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


def swatch(fill: Fill, image: NDArray[Any]) -> str:
    """The mean color of a fill, as CSS."""
    red, green, blue = np.rint(255 * sample(fill, image).mean(axis=(0, 1))).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def panel(maps: Maps, k: int, limit: float, most: int | None = None) -> bytes:
    """Map k over the image, as a file."""
    if maps.estimator != "rise":
        return png(overlay(maps.image, maps.values[k], maps.se[k], limit), most)
    low, high = float(maps.values.min()), float(maps.values.max())
    share = (maps.values[k] - low) / max(high - low, 1e-6)
    return png(matplotlib.colormaps[SEQUENTIAL](share)[..., :3].astype(np.float32), most)


def image_tag(content: bytes, alt: str, more: str = "") -> str:
    encoded = base64.b64encode(content).decode()
    return f'<img src="data:image/png;base64,{encoded}" alt="{html.escape(alt)}"{more}>'


# ---- the report


@dataclass(frozen=True)
class Chapter:
    """One record in a report."""

    name: str  # of the picture
    record: Record
    targets: Sequence[int | str | None] = (None,)  # the top class
    summary: Mapping[str, Any] = field(default_factory=dict)  # what summary.json says was tried
    metrics: Mapping[str, Any] = field(default_factory=dict)  # what metrics.json says it is worth


def render(chapters: Sequence[Chapter], estimator: str = DEFAULT) -> str:
    """The report as HTML: one file that asks nobody for anything."""
    style = (WEB / "style.css").read_text() + (WEB / "report.css").read_text()
    script = one_script("maps.js", "report.js")
    # Written out so that a label that got through as HTML could still not run.
    policy = (
        f"default-src 'none'; img-src data:; style-src {digest(style)}; "
        f"script-src {digest(script)}; base-uri 'none'; form-action 'none'"
    )
    sections = [
        section(chapter, target, estimator) for chapter in chapters for target in chapter.targets
    ]
    title = ", ".join(dict.fromkeys(chapter.name for chapter in chapters))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>mcrise: {html.escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>mcrise</h1>
<p>Which colors, where in a picture, does the model’s decision depend on?</p>
</header>
<main>
{"".join(sections)}
</main>
<script type="module">{script}</script>
</body>
</html>
"""


def one_script(*names: str) -> str:
    """Modules of the page as one script, which needs no server to import from."""
    joined = "".join((WEB / name).read_text() for name in names)
    return re.sub(r"^import [^;]*;$", "", joined, flags=re.M).replace("\nexport ", "\n")


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def section(chapter: Chapter, target: int | str | None, estimator: str) -> str:
    """One class of one record."""
    record = chapter.record
    maps = record.maps(target, estimator)
    reading = read(record, maps.target, estimator if maps.fills else "centered")
    said = ", ".join(
        f"{record.label(c)} ({record.untouched[c]:.3f})"
        for c in dict.fromkeys([record.resolve(None), maps.target])
    )
    limit = scale_of([maps.values])
    error = maps.relative_error
    quality = f"relative error {error:.2f}" if math.isfinite(error) else "not above noise"
    swatches = [swatch(fill, maps.image) for fill in maps.fills]
    panels = "".join(
        f'<button type="button" class="panel" aria-pressed="{str(k == 0).lower()}">'
        f"{image_tag(panel(maps, k, limit), name)}<span>{html.escape(name)}</span></button>"
        for k, name in enumerate(maps.names)
    )
    findings = "".join(
        f'<li tabindex="0" data-runs="{runs(found)}">{html.escape(found.sentence)}</li>'
        for found in reading.findings
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in (*record.view.notes, *maps.notes))
    data = base64.b64encode(zlib.compress(pack(maps), 9)).decode()
    return f"""<article data-swatches="{html.escape(json.dumps(swatches))}">
<h2>{html.escape(chapter.name)}: {html.escape(maps.label)}</h2>
<p>The model says {html.escape(said)}. {record.n_masks:,} masks,
{html.escape(maps.estimator)} estimator, {quality}.</p>
<div class="stage">
<figure><div class="view">{image_tag(png(maps.image), "The picture")}</div>
<figcaption>The picture as the model is shown it</figcaption></figure>
<div class="side"><div class="bars" aria-live="polite"></div>
<div class="scale">{html.escape(maps.unit)}, from {-limit:.3g} (purple)
to {limit:.3g} (orange)</div>
<p class="hint">Each map: what painting a place with that color, rather than keeping it, does to the
score. Faint: below two standard errors.</p></div>
</div>
<div class="panels"><div class="row">{panels}</div></div>
<h3>Reading</h3>
<ol class="findings">{findings}</ol>
<p class="hint">{html.escape(reading.pending)}</p>
<ul class="hint">{notes}</ul>
{tried_table(chapter.summary, maps)}
{measured(chapter.metrics, maps)}
{settings(chapter, maps)}
<script type="text/plain" class="packed">{data}</script>
</article>
"""


def tried_table(summary: Mapping[str, Any], maps: Maps) -> str:
    """What came of trying the findings, where a summary of the run says so."""
    tried = [
        found["tried"]
        for entry in summary.get("maps", ())
        if entry.get("target") == maps.target
        for found in entry.get("reading", {}).get("findings", ())
        if "tried" in found
    ]
    if not tried:
        return ""
    lines = []
    for trial in tried:
        words = ", ".join(f"{one['place']}: {one['fill']}" for one in trial["strokes"])
        moved = f"{trial['before']:.3f} → {trial['after']:.3f}"
        cells = (words, moved, trial["verdict"] or "", "yes" if trial["flips"] else "no")
        lines.append("".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells))
    return (
        "<h3>What if</h3><table><tr><th>painted</th><th>score</th><th>as the map said</th>"
        f"<th>decision changed</th></tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
    )


def measured(metrics: Mapping[str, Any], maps: Maps) -> str:
    """The curves of `mcrise measure`, where it was run on these maps."""
    if (metrics.get("target"), metrics.get("estimator")) != (maps.target, maps.estimator):
        return ""
    curves = [curve_from_json(curve) for curve in metrics["curves"]]
    lines = "".join(f"<li>{html.escape(curve.line())}</li>" for curve in curves)
    picture = image_tag(figure_png(plot_curves(curves)), "Score against pixels changed")
    return f"<h3>How good the map is</h3><p class='curves'>{picture}</p><ul>{lines}</ul>"


def settings(chapter: Chapter, maps: Maps) -> str:
    """How it was made and how to make it again."""
    record, plan = chapter.record, chapter.record.plan
    facts = {
        "model": record.model,
        "kind of score": record.kind,
        "image": f"{plan.size[0]} x {plan.size[1]} pixels",
        "colors": ", ".join(fill.name for fill in plan.fills),
        "grid": f"{plan.grid[0]} x {plan.grid[1]} cells",
        "mask probability": f"{plan.mask_prob:g}",
        "seed": str(plan.seed),
        "versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
    }
    rows = "".join(
        f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in facts.items()
    )
    command = shlex.join(
        ["mcrise", "explain", chapter.name, "--model", "SPEC",
         "--target", str(maps.target), "--estimator", maps.estimator,
         "--colors", ",".join(fill.name for fill in plan.fills),
         "--grid", f"{plan.grid[0]}x{plan.grid[1]}", "--mask-prob", f"{plan.mask_prob:g}",
         "--n-masks", str(record.n_masks), "--seed", str(plan.seed),
         "--batch-size", str(record.batch_size)]
    )  # fmt: skip
    return (
        f"<h3>How it was made</h3><table>{rows}</table>"
        f"<p class='hint'>Again, with the same model as SPEC:</p><pre>{html.escape(command)}</pre>"
    )


# ---- the notebook: small and static


def record_html(record: Record) -> str:
    """The maps of the top class, or what the record is for where it has no masks yet."""
    rows, cols = record.plan.size
    told = (
        f"Record of {record.model}: {record.n_masks:,} masks of a {rows} x {cols} image, "
        f"{record.plan.n_fills} fills, {record.n_classes} classes"
    )
    maps = maps_html(record.maps()) if record.scores else ""
    return f"{maps}<div style='font-size:85%'>{html.escape(told)}</div>"


def maps_html(maps: Maps) -> str:
    """The image and one small panel per fill, on one scale that is told."""
    limit = scale_of([maps.values])
    pictures = [(maps.label, png(maps.image, SMALL))]
    pictures += [(name, panel(maps, k, limit, SMALL)) for k, name in enumerate(maps.names)]
    figures = "".join(
        "<figure style='display:inline-block;margin:0 6px 6px 0;text-align:center;max-width:128px'>"
        f"{image_tag(content, name, f' width={SMALL}')}"
        f"<figcaption style='font-size:85%'>{html.escape(name)}</figcaption></figure>"
        for name, content in pictures
    )
    told = (
        f"{maps.label}: {maps.n_masks:,} masks, {maps.estimator} estimator, {maps.unit} from "
        f"{-limit:.2g} (purple) to {limit:.2g} (orange), faint below two standard errors"
    )
    return f"<div>{figures}<div style='font-size:85%'>{html.escape(told)}</div></div>"
