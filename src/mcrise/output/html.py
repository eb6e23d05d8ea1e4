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

import numpy as np

from ..errors import InputError
from ..estimators import DEFAULT, find_estimator
from ..explanation import Explanation
from ..explanation_file import versions
from ..images import downsampling_step, png
from ..interpretation.regions import Interpretation, interpret
from ..interpretation.trials import TriedInterpretation, try_findings
from ..maps import Maps
from ..metrics import curve_from_json
from .plots import figure_png, plot_curves, scale_for
from .web_maps import pack, panel, runs, stops, swatch

WEB = Path(__file__).parents[1] / "server" / "web"
LARGEST = 768  # pixels of a side that a report shows; of a larger picture every second and so on
SMALL = 112  # pixels of a panel in a notebook
TINY = 64  # of one in the table of contents
LITTLE = 256  # most of one in a report, where the map that is read off is as large as the picture


def image_tag(content: bytes, alt: str, more: str = "") -> str:
    encoded = base64.b64encode(content).decode()
    return f'<img src="data:image/png;base64,{encoded}" alt="{html.escape(alt)}"{more}>'


# ---- the report


@dataclass(frozen=True)
class Chapter:
    """One record in a report."""

    name: str  # of the picture
    explanation: Explanation
    targets: Sequence[int | str | None] = (None,)  # the top class
    metrics: Mapping[str, Any] = field(default_factory=dict)  # what metrics.json says it is worth
    folder: str = ""  # of the run, if it is not the one `explain` chooses by itself


def render(chapters: Sequence[Chapter], estimator: str = DEFAULT) -> str:
    """The report as HTML: one file that asks nobody for anything."""
    style = web_text("style.css") + web_text("report.css")
    script = one_script("element.js", "maps.js", "outline.js", "stage.js", "report.js")
    # Written out so that a label that got through as HTML could still not run.
    policy = (
        f"default-src 'none'; img-src data:; style-src {digest(style)}; "
        f"script-src {digest(script)}; base-uri 'none'; form-action 'none'"
    )
    sections = [
        make_section(chapter, target, estimator)
        for chapter in chapters
        for target in chapter.targets
    ]
    title = ", ".join(dict.fromkeys(chapter.name for chapter in chapters))
    articles = "".join(one.article(f"part-{n}") for n, one in enumerate(sections, start=1))
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
{contents(sections) if len(sections) > 1 else ""}
{articles}
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


@dataclass(frozen=True, eq=False)
class Section:
    """One class of one record."""

    chapter: Chapter
    maps: Maps
    tried: TriedInterpretation

    @property
    def explanation(self) -> Explanation:
        return self.chapter.explanation

    @property
    def says(self) -> str:
        """What the model says of the untouched picture, and of the class that is looked at."""
        best = dict.fromkeys([self.explanation.resolve(None), self.maps.target])
        return ", ".join(
            f"{self.explanation.label(c)} ({self.explanation.untouched[c]:.3f})" for c in best
        )

    @property
    def quality(self) -> str:
        error = self.maps.relative_error
        return f"relative error {error:.2f}" if math.isfinite(error) else "not above noise"

    def row(self, place: str) -> str:
        """In the table of contents."""
        first = next((" ".join(said) for _, said in self.tried.said()), "No finding.")
        picture = image_tag(png(self.explanation.view.pixels, TINY), "")
        told = html.escape(self.chapter.name), html.escape(self.maps.label)
        return (
            f'<tr><td>{picture}</td><td><a href="#{place}">{told[0]}: {told[1]}</a></td>'
            f"<td>{html.escape(self.says)}</td><td>{html.escape(first)}</td>"
            f"<td>{self.explanation.n_masks:,} masks, {self.quality}</td></tr>"
        )

    def article(self, place: str) -> str:
        explanation, reading = self.explanation, self.tried.reading
        scale = scale_for([self.maps])
        every = downsampling_step(self.maps.image.shape, LARGEST)
        maps = self.maps.thinned(LARGEST)
        order = sorted(range(len(maps.values)), key=lambda k: -float(np.abs(maps.values[k]).max()))
        swatches = {fill.name: swatch(fill, maps.image) for fill in maps.fills}
        panels = "".join(
            f'<button type="button" class="panel" data-k="{k}" aria-pressed="{first}">'
            f"{image_tag(panel(maps, k, scale, LITTLE), '')}"
            f'<span class="name">{disc(swatches.get(maps.names[k]))}'
            f"<span>{html.escape(maps.names[k])}</span></span></button>"
            for k, first in zip(order, ["true"] + ["false"] * len(order), strict=False)
        )
        findings = "".join(
            f'<li tabindex="0" data-runs="{runs(finding.region)}">'
            f"{html.escape(' '.join(said))}</li>"
            for finding, said in self.tried.said()
        )
        more = "".join(f"<li>{html.escape(line)}</li>" for line in self.tried.remarks())
        fewer = (f"shown here at every {every}. row and column",) if every > 1 else ()
        notes = "".join(
            f"<li>{html.escape(note)}</li>" for note in (*explanation.notes, *maps.notes, *fewer)
        )
        chance = explanation.chance(self.maps) if self.maps.diverging else None
        packed = pack(self.maps, explanation.plan.grid, chance)
        data = base64.b64encode(zlib.compress(packed, 6)).decode()
        strongest = image_tag(panel(maps, order[0], scale), f"The map of {maps.names[order[0]]}")
        return f"""<article id="{place}" data-swatches="{html.escape(json.dumps(swatches))}">
<h2>{html.escape(self.chapter.name)}: {html.escape(maps.label)}</h2>
<p>The model says {html.escape(self.says)}. {explanation.n_masks:,} masks,
{html.escape(maps.estimator)} estimator, {self.quality}.</p>
<div class="stage">
<figure class="pane picture"><div class="still">{image_tag(png(maps.image), "The picture")}</div>
<figcaption>The picture as the model is shown it</figcaption></figure>
<figure class="pane map"><div class="still">{strongest}</div>
<figcaption>{html.escape(maps.label)} · {html.escape(maps.names[order[0]])}</figcaption></figure>
</div>
<div class="scale">{html.escape(maps.unit)}, {scale.words}</div>
<p class="hint">{html.escape(hint(maps, reading))}</p>
<div class="strip">{panels}</div>
<div class="bars" aria-live="off"></div>
<h3>Reading</h3>
<ol class="findings">{findings}</ol>
<ul class="remarks">{more}</ul>
<p class="hint">± is a 95 % interval. {html.escape(reading.pending)}</p>
<ul class="hint">{notes}</ul>
{tried_table(self.tried)}
{measured(self.chapter.metrics, maps)}
{settings(self.chapter, maps)}
<script type="text/plain" class="packed">{data}</script>
</article>
"""


def make_section(chapter: Chapter, target: int | str | None, estimator: str) -> Section:
    explanation, chosen = chapter.explanation, find_estimator(estimator)
    reading = interpret(explanation, target, chosen.reading.name)
    maps = reading.maps if chosen.reading is chosen else explanation.maps(target, estimator)
    return Section(chapter, maps, try_findings(explanation, reading))


def contents(sections: Sequence[Section]) -> str:
    """All sections in one table, each with its first finding."""
    rows = "".join(one.row(f"part-{n}") for n, one in enumerate(sections, start=1))
    heads = "<th></th>" + "".join(
        f'<th scope="col">{head}</th>'
        for head in ("Picture and class", "The model says", "First finding", "Certainty")
    )
    return (
        '<nav class="contents" aria-label="Contents"><h2>Contents</h2><table><thead>'
        f"<tr>{heads}</tr></thead><tbody>{rows}</tbody></table></nav>"
    )


def disc(color: str | None) -> str:
    """A swatch that needs neither a style nor a script."""
    if color is None:
        return ""
    circle = f'<circle cx="8" cy="8" r="7" fill="{color}" stroke="#888"/>'
    return f'<svg class="disc" viewBox="0 0 16 16" aria-hidden="true">{circle}</svg>'


def hint(maps: Maps, reading: Interpretation) -> str:
    """How to read the maps."""
    if not maps.diverging:
        return (
            "What the score is on average where a place is kept: only its differences count. "
            f"The reading is of the {reading.maps.estimator} maps."
        )
    what = "painting a place with that color, rather than keeping it,"
    if not maps.fills:
        what = "keeping a place, rather than painting it with any of the colors,"
    return f"Each map: what {what} does to the score. {maps.faint}"


def tried_table(tried: TriedInterpretation) -> str:
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
    try:
        curves = [curve_from_json(curve) for curve in metrics["curves"]]
        assert all(np.isfinite(curve.scores).all() and curve.scores.size for curve in curves)
    except (LookupError, TypeError, ValueError, OverflowError, AssertionError, InputError):
        raise InputError(
            "The metrics.json of the run is damaged: remove it, or mcrise measure it again."
        ) from None
    lines = "".join(f"<li>{html.escape(curve.line())}</li>" for curve in curves)
    picture = image_tag(figure_png(plot_curves(curves)), "Score against pixels changed")
    return f"<h3>How good the map is</h3><p class='curves'>{picture}</p><ul>{lines}</ul>"


def settings(chapter: Chapter, maps: Maps) -> str:
    """How it was made and how to make it again."""
    explanation, plan = chapter.explanation, chapter.explanation.plan
    facts = {
        "model": explanation.model,
        "kind of score": explanation.kind,
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
        ["mcrise", "explain", explanation.view.name or chapter.name, "--model", "SPEC",
         "--target", str(maps.target), "--estimator", maps.estimator,
         "--colors", ",".join(fill.name for fill in plan.fills),
         "--grid", f"{plan.grid[0]}x{plan.grid[1]}", "--mask-prob", f"{plan.mask_prob:g}",
         "--n-masks", str(explanation.n_masks), "--seed", str(plan.seed),
         "--batch-size", str(explanation.batch_size),
         *(["--out", chapter.folder] if chapter.folder else [])]
    )  # fmt: skip
    return (
        f"<h3>How it was made</h3><table>{rows}</table>"
        f"<p class='hint'>Again, with the same model as SPEC:</p><pre>{html.escape(command)}</pre>"
    )


# ---- the notebook: small and static


def explanation_html(explanation: Explanation) -> str:
    """The maps of the top class and what they say, or what the record is for without masks yet."""
    about = f"<div style='font-size:85%'>{html.escape(repr(explanation)[1:-1])}</div>"
    if not explanation.scores:
        return about
    tried = try_findings(explanation, interpret(explanation))
    lines = "".join(f"<div>{html.escape(line)}</div>" for line in tried.lines())
    return f"{maps_html(tried.reading.maps)}<div style='font-size:85%'>{lines}</div>{about}"


def maps_html(maps: Maps) -> str:
    """The image and one small panel per fill, strongest first, on one scale that is drawn."""
    scale = scale_for([maps])
    order = sorted(range(len(maps.values)), key=lambda k: -float(np.abs(maps.values[k]).max()))
    pictures = [(maps.label, "", png(maps.image, SMALL))]
    for k in order:
        color = disc_style(swatch(maps.fills[k], maps.image)) if maps.fills else ""
        pictures.append((maps.names[k], color, panel(maps, k, scale, SMALL)))
    figures = "".join(
        "<figure style='display:inline-block;margin:0 6px 6px 0;text-align:center;max-width:128px'>"
        f"{image_tag(content, name, f' width={SMALL}')}"
        f"<figcaption style='font-size:85%'>{color}{html.escape(name)}</figcaption></figure>"
        for name, color, content in pictures
    )
    ends = [f"{end:+.2g}" if maps.diverging else f"{end:.2g}" for end in (scale.low, scale.high)]
    stretch = ",".join("rgb({},{},{})".format(*stop) for stop in stops(scale.colormap))
    bar = (
        "<div style='display:flex;gap:6px;align-items:center;font-size:85%'>"
        f"{ends[0]}<span style='display:inline-block;width:160px;height:8px;border-radius:3px;"
        f"background:linear-gradient(to right,{stretch})'></span>{ends[1]}</div>"
    )
    faint = f". {maps.faint}" if maps.diverging else ""
    words = (
        f"{maps.label}: {maps.n_masks:,} masks, {maps.estimator} estimator, {maps.unit} "
        f"{scale.words}{faint}"
    )
    return f"<div>{figures}{bar}<div style='font-size:85%'>{html.escape(words)}</div></div>"


def disc_style(color: str) -> str:
    return (
        "<span style='display:inline-block;width:9px;height:9px;border-radius:50%;"
        f"border:1px solid #888;margin-right:4px;background:{color}'></span>"
    )
