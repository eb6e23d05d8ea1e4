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

from .archive import versions
from .estimators import DEFAULT, find_estimator
from .images import covered, png, thinning
from .maps import Maps
from .metrics import curve_from_json
from .packing import pack, panel, runs, swatch
from .plots import figure_png, plot_curves, scale_for
from .reading import read_maps
from .record import Record
from .trials import Tried, try_reading

WEB = Path(__file__).parent / "page" / "web"
LARGEST = 768  # pixels of a side that a report shows; of a larger picture every second and so on
SMALL = 112  # pixels of a panel in a notebook
LITTLE = 256  # most of one in a report, where the map that is read off is as large as the picture


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
    metrics: Mapping[str, Any] = field(default_factory=dict)  # what metrics.json says it is worth
    folder: str = ""  # of the run, if it is not the one `explain` chooses by itself


def render(chapters: Sequence[Chapter], estimator: str = DEFAULT) -> str:
    """The report as HTML: one file that asks nobody for anything."""
    style = web_text("style.css") + web_text("report.css")
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
    joined = "".join(map(web_text, names))
    return re.sub(r"^import [^;]*;$", "", joined, flags=re.M).replace("\nexport ", "\n")


def web_text(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def section(chapter: Chapter, target: int | str | None, estimator: str) -> str:
    """One class of one record."""
    record = chapter.record
    chosen = find_estimator(estimator)
    reading = read_maps(record, target, chosen.reading.name)
    maps = reading.maps if chosen.reading is chosen else record.maps(target, estimator)
    tried = try_reading(record, reading)
    said = ", ".join(
        f"{record.label(c)} ({record.untouched[c]:.3f})"
        for c in dict.fromkeys([record.resolve(None), maps.target])
    )
    scale = scale_for([maps])
    error = maps.relative_error
    every = thinning(maps.image.shape, LARGEST)
    quality = f"relative error {error:.2f}" if math.isfinite(error) else "not above noise"
    maps = maps.thinned(LARGEST)
    swatches = [swatch(fill, maps.image) for fill in maps.fills]
    panels = "".join(
        f'<button type="button" class="panel" aria-pressed="{str(k == 0).lower()}">'
        f"{image_tag(panel(maps, k, scale, LITTLE), name)}<span>{html.escape(name)}</span></button>"
        for k, name in enumerate(maps.names)
    )
    findings = "".join(
        f'<li tabindex="0" data-runs="{runs(covered(finding.region, every))}">'
        f"{html.escape(' '.join(said))}</li>"
        for finding, said in tried.said()
    )
    more = "".join(f"<li>{html.escape(line)}</li>" for line in tried.remarks())
    fewer = (f"shown here at every {every}. row and column",) if every > 1 else ()
    notes = "".join(
        f"<li>{html.escape(note)}</li>" for note in (*record.notes, *maps.notes, *fewer)
    )
    data = base64.b64encode(zlib.compress(pack(maps), 6)).decode()
    return f"""<article data-swatches="{html.escape(json.dumps(swatches))}">
<h2>{html.escape(chapter.name)}: {html.escape(maps.label)}</h2>
<p>The model says {html.escape(said)}. {record.n_masks:,} masks,
{html.escape(maps.estimator)} estimator, {quality}.</p>
<div class="stage">
<figure><div class="view">{image_tag(png(maps.image), "The picture")}</div>
<figcaption>The picture as the model is shown it</figcaption></figure>
<div class="side"><div class="bars" aria-live="polite"></div>
<div class="scale">{html.escape(maps.unit)}, {scale.words}</div>
<p class="hint">{hint(maps)}</p></div>
</div>
<div class="panels"><div class="row">{panels}</div></div>
<h3>Reading</h3>
<ol class="findings">{findings}</ol>
<ul class="remarks">{more}</ul>
<p class="hint">{html.escape(reading.pending)}</p>
<ul class="hint">{notes}</ul>
{tried_table(tried)}
{measured(chapter.metrics, maps)}
{settings(chapter, maps)}
<script type="text/plain" class="packed">{data}</script>
</article>
"""


def hint(maps: Maps) -> str:
    """How to read the maps."""
    if not maps.diverging:
        return "What the score is on average where a place is kept: its differences count."
    what = "painting a place with that color, rather than keeping it,"
    if not maps.fills:
        what = "keeping a place, rather than painting it with any of the colors,"
    return f"Each map: what {what} does to the score. Faint: below two standard errors."


def tried_table(tried: Tried) -> str:
    """What was painted to put each finding to the test, and what the score was then."""
    rows = []
    for number, verdict in enumerate(tried.verdicts, start=1):
        if verdict is None:
            continue
        own = {f"its own mean color, {verdict.own_color.name}": verdict.own_mean,
               "its own pixels, shuffled": verdict.mixed}  # fmt: skip
        for name, score in ({f.name: s for f, s in verdict.after.items()} | own).items():
            rows.append((f"{number}, {verdict.finding.place}", name, verdict.before, score))
    if not rows:
        return ""
    lines = "".join(
        f"<tr><td>{html.escape(place)}</td><td>{html.escape(fill)}</td>"
        f"<td>{before:.3f} → {after:.3f}</td></tr>"
        for place, fill, before, after in rows
    )
    head = "<tr><th>finding</th><th>painted with</th><th>score</th></tr>"
    return f"<h3>What was tried</h3><table>{head}{lines}</table>"


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
        ["mcrise", "explain", record.view.name or chapter.name, "--model", "SPEC",
         "--target", str(maps.target), "--estimator", maps.estimator,
         "--colors", ",".join(fill.name for fill in plan.fills),
         "--grid", f"{plan.grid[0]}x{plan.grid[1]}", "--mask-prob", f"{plan.mask_prob:g}",
         "--n-masks", str(record.n_masks), "--seed", str(plan.seed),
         "--batch-size", str(record.batch_size),
         *(["--out", chapter.folder] if chapter.folder else [])]
    )  # fmt: skip
    return (
        f"<h3>How it was made</h3><table>{rows}</table>"
        f"<p class='hint'>Again, with the same model as SPEC:</p><pre>{html.escape(command)}</pre>"
    )


# ---- the notebook: small and static


def record_html(record: Record) -> str:
    """The maps of the top class, or what the record is for where it has no masks yet."""
    maps = maps_html(record.maps()) if record.scores else ""
    return f"{maps}<div style='font-size:85%'>{html.escape(repr(record)[1:-1])}</div>"


def maps_html(maps: Maps) -> str:
    """The image and one small panel per fill, on one scale whose ends are named."""
    scale = scale_for([maps])
    pictures = [(maps.label, png(maps.image, SMALL))]
    pictures += [(name, panel(maps, k, scale, SMALL)) for k, name in enumerate(maps.names)]
    figures = "".join(
        "<figure style='display:inline-block;margin:0 6px 6px 0;text-align:center;max-width:128px'>"
        f"{image_tag(content, name, f' width={SMALL}')}"
        f"<figcaption style='font-size:85%'>{html.escape(name)}</figcaption></figure>"
        for name, content in pictures
    )
    faint = ", faint below two standard errors" if maps.diverging else ""
    words = (
        f"{maps.label}: {maps.n_masks:,} masks, {maps.estimator} estimator, {maps.unit} "
        f"{scale.words}{faint}"
    )
    return f"<div>{figures}<div style='font-size:85%'>{html.escape(words)}</div></div>"
