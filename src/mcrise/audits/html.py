"""`audit.html`: an audit as one page to send, which asks nobody for anything.

It is made of the folder of a finished audit. A table of classes, each of which opens to its mean
maps, findings, tables and some of its images. Pictures are small and counted, so that the page of
5,000 images is as quick as that of fifty; all the rest is in the tables. Without scripts everything
is there but sorting.
"""

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..batch.storage import Storage
from ..batch.tables import Row
from ..images import whole_pixels
from ..maps import Maps
from ..models.scores import UNITS
from ..output.html import digest, one_script, web_text
from ..output.plots import DIVERGING, Scale, drawn, scale_of
from ..output.web_maps import swatch
from .background import OWN
from .class_data import AuditInfo
from .class_findings import FEWEST, ClassFinding
from .class_stats import ALL, AuditStats, ClassStats, read_stats
from .html_cells import effect_cell, effects_table, share_cell, share_of, short, table, text
from .mean_maps import class_maps
from .schema import reporting_damage
from .tables import read_asked, read_rows, read_thumbnails
from .text import five_sentences, images, mistakes_by_kind, own_color
from .zones import OUTER

FILE = "audit.html"
MOST_PICTURES = 600  # of images, over all classes
MOST_EXAMPLES = 8  # of a class
MOST_DRAWN = 400  # classes whose maps are drawn
COLUMNS = ("image", "name", "truth", "label", "predicted", "predicted_label", "correction_sentence")
STYLE = web_text("style.css") + web_text("audit.css")
SCRIPT = one_script("audit.js")
POLICY = (  # so that a label that got through as HTML could still not run
    f"default-src 'none'; img-src data:; style-src {digest(STYLE)}; "
    f"script-src {digest(SCRIPT)}; base-uri 'none'; form-action 'none'"
)

Link = Callable[[int], str | None]  # where an image opens, by its number


@dataclass(frozen=True)
class Class:
    """What the page shows of a class."""

    stats: ClassStats
    maps: Maps | None
    examples: list[Row]
    wrong: list[Row]
    unlike: list[Row]  # of `figures.outliers`, in its order


def render(folder: Storage, link: Link | None = None) -> str:
    """The page of an audit; with `link`, images open in the workbench."""
    info, stats = read_asked(folder), read_stats(folder)
    with reporting_damage(folder):
        return page_of(folder, info, stats, link or (lambda number: None))


def page_of(folder: Storage, info: AuditInfo, stats: AuditStats, link: Link) -> str:
    classes = [*gather(folder, info, stats)]
    shown = {row["image"] for one in classes for row in (*one.examples, *one.wrong, *one.unlike)}
    pictures = Pictures(read_thumbnails(folder, sorted(shown)), link)
    maps = [one.maps for one in classes if one.maps]
    limit = scale_of([some.values for some in maps]) if maps else 1.0
    scale = Scale(-limit, limit, DIVERGING)
    told = "".join(f"<li>{text(line)}</li>" for line in five_sentences(info, stats))
    whole = Class(stats.overall, None, [], [], [])
    sections = "".join(section(one, info, scale, pictures) for one in (whole, *classes))
    title = f"Audit of {info.title}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>mcrise: {text(title)}</title>
<style>{STYLE}</style>
</head>
<body class="audit">
<header>
<h1>{text(title)}</h1>
<p>{text(info.data.rpartition("/")[2])}:
{images(stats.overall.n)}, {len(stats.classes)} classes</p>
</header>
<main>
<ol class="told">{told}</ol>
<h2 id="classes">Classes</h2>
<p class="hint">Shares, with 95 % intervals over {"groups of " if info.group else ""}images.
“Color” is how much of what a class depends on is color rather than presence.</p>
{class_table(stats)}
<h2>One by one</h2>
<p class="hint">Mean maps: what painting a place does to the score of the class, on average over its
images; {html.escape(UNITS[info.kind])} {scale.words}. {text(pale_words(stats))}</p>
{ramp(scale)}
{sections}
{how(info, stats)}
</main>
<script type="module">{SCRIPT}</script>
</body>
</html>
"""


def pale_words(stats: AuditStats) -> str:
    """What is drawn faintly: what findings have to exceed."""
    if stats.threshold > 0:  # not NaN
        return f"Pale areas (|z| below {stats.threshold:.1f}) could be chance."
    return "All areas are pale: no class has enough images to rule out chance."


def gather(folder: Storage, info: AuditInfo, stats: AuditStats) -> Iterable[Class]:
    """What to show of each class; memory is that of what is shown."""
    each = max(min(MOST_PICTURES // max(3 * len(stats.classes), 1), MOST_EXAMPLES), 1)
    for n, one in enumerate(stats.classes):
        rows = read_rows(folder, "images", one.target, *COLUMNS)
        by_number = {row["image"]: row for row in rows}
        unlike = [by_number[other.image] for other in one.outliers if other.image in by_number]
        wrong = [
            row for row in rows if row["truth"] is not None and row["truth"] != row["predicted"]
        ]
        maps = None
        if n < MOST_DRAWN:
            pixels = read_rows(folder, "images", one.target, "pixels")
            maps = class_maps(one.mean, one.error, mean_picture(pixels, info.raster), info,
                              one.target, one.label, one.n, one.beyond)  # fmt: skip
        yield Class(one, maps, spread(rows, each), spread(wrong, each), unlike[:each])


def spread(rows: Sequence[Row], most: int) -> list[Row]:
    """Some of many, evenly."""
    at = np.linspace(0, len(rows) - 1, min(most, len(rows)))
    return [rows[round(n)] for n in at.tolist()]


def mean_picture(rows: Sequence[Row], size: int) -> NDArray[np.uint8]:
    total = np.zeros((size, size, 3))
    for row in rows:
        total += np.frombuffer(row["pixels"], np.uint8).reshape(size, size, 3)
    return np.rint(total / max(len(rows), 1)).astype(np.uint8)


# ---- the table of classes


def class_table(stats: AuditStats) -> str:
    outer = next((zone for zone in OUTER if zone in stats.overall.zones), None)
    heads = ["class", "images", "right", "in gray", "hues turned", "color", "findings"]
    if outer:
        heads.insert(6, f"in the {outer}")
    head = "".join(f'<th scope="col" aria-sort="none">{text(name)}</th>' for name in heads)
    rows = "".join(class_row(one, outer) for one in (*stats.classes, stats.overall))
    return (
        f'<div class="wide"><table class="classes"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def class_row(one: ClassStats, outer: str | None) -> str:
    turned = [estimate for estimate in (one.accuracy_hue120, one.accuracy_hue240) if estimate]
    worst = min(turned, key=lambda estimate: estimate.value, default=None)
    confirmed = sum(finding.verdict == "confirmed" for finding in one.findings)
    found = f"{len(one.findings)} ({confirmed} confirmed)" if one.findings else "none"
    name = f'<a href="#{anchor(one)}">{text(one.label)}</a>'
    if one.target == ALL:
        name, found = f"<b>{name}</b>", ""
    elif one.too_few:
        found = "too few images"
    cells = [
        f'<th scope="row" data-sort="{text(one.label.lower())}">{name}</th>',
        f'<td data-sort="{one.n}">{one.n:,}</td>',
        *(
            share_cell(estimate, one.n)
            for estimate in (one.accuracy, one.accuracy_gray, worst, one.color_share)
        ),
    ]
    if outer:
        cells.append(share_cell(one.zones.get(outer), one.n))
    cells.append(f'<td data-sort="{confirmed + 0.001 * len(one.findings)}">{found}</td>')
    whole = ' class="all"' if one.target == ALL else ""
    return f"<tr{whole}>{''.join(cells)}</tr>"


# ---- one class


def section(one: Class, info: AuditInfo, scale: Scale, pictures: "Pictures") -> str:
    stats = one.stats
    facts = [images(stats.n)]
    facts += [f"right {short(stats.accuracy)}"] if stats.accuracy else []
    facts += [f"color {short(stats.color_share)}"] if stats.color_share else []
    confirmed = sum(finding.verdict == "confirmed" for finding in stats.findings)
    facts += [f"{confirmed} confirmed"] if stats.findings else []
    parts = [
        f"<p>{text(stats.too_few)}</p>" if stats.too_few else "",
        panels(one.maps, scale) if one.maps else "",
        "<p>Its maps are in the tables.</p>" if not one.maps and stats.target != ALL else "",
        found("Findings", stats.findings),
        found("Seen under masks only", stats.under_masks),
        own_table(stats, info),
        zone_table(stats, info),
        outer_table(stats, info),
        pictures.row("Examples", one.examples, said),
        pictures.row(
            "Unlike the others",
            one.unlike,
            lambda row: next(u.sentence for u in stats.outliers if u.image == row["image"]),
        ),
        mistakes(one, pictures),
    ]
    return (
        f'<details class="one" id="{anchor(stats)}"><summary><b>{text(stats.label)}</b> '
        f"<span>{text(', '.join(facts))}</span></summary>{''.join(parts)}</details>\n"
    )


def panels(maps: Maps, scale: Scale) -> str:
    shown = "".join(
        f"<figure>{picture(whole_pixels(drawn(maps, k, scale)), f'{name}: mean map')}<figcaption>"
        f"{chip(swatch(fill, maps.image))} {text(name)}</figcaption></figure>"
        for k, (name, fill) in enumerate(zip(maps.names, maps.fills, strict=True))
    )
    mean = picture(maps.image, "The mean of its images")
    first = f"<figure>{mean}<figcaption>mean image</figcaption></figure>"
    return f'<div class="maps">{first}{shown}</div>'


def found(title: str, findings: Sequence[ClassFinding]) -> str:
    if not findings:
        return ""
    rows = "".join(
        f'<li class="{finding.verdict.replace(" ", "-")}">{outline(finding.region)}'
        f"<p>{text(finding.sentence)}</p></li>"
        for finding in findings
    )
    return f'<h3>{title}</h3><ol class="found">{rows}</ol>'


def outline(region: NDArray[np.bool_]) -> str:
    """Where a region lies, as a small drawing: a rectangle for each run of a row."""
    size = len(region)
    marks = []
    for row, line in enumerate(region):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]])))
        marks += [
            f"M{start} {row}h{end - start}v1h{start - end}z"
            for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        ]
    return (
        f'<svg class="where" viewBox="0 0 {size} {size}" role="img" aria-label="Where it is">'
        f'<path d="{"".join(marks)}"/></svg>'
    )


def own_table(stats: ClassStats, info: AuditInfo) -> str:
    hint = "Mean change of the score, where the image itself has that color."
    if told := own_color(stats):
        hint = f"{hint} The largest that is sure among so many: {text(told)}."
    heads = ("where it is", *info.fills)
    rows = {name: row for name, row in stats.color_area_effect.items() if row}
    return effects_table("Own color × painted color", hint, heads, rows, {})


def zone_table(stats: ClassStats, info: AuditInfo) -> str:
    hint = "Its share of the effect, and the mean change of the score in it."
    heads = ("in the", "share", *info.fills)
    rows = {name: row for name, row in stats.zone_effect.items() if row}
    shares = {zone: share_of(stats.zones.get(zone)) for zone in rows}
    return effects_table("Zones × painted color", hint, heads, rows, shares)


def outer_table(stats: ClassStats, info: AuditInfo) -> str:
    if stats.background is None:
        return ""
    zone, heads = stats.background.zone, (f"the whole {stats.background.zone}", *info.fills, OWN)
    hint = f"All of the {zone} painted: how the score changes, and the share of decisions that do."
    change, flipped = stats.background.change, stats.background.flipped
    rows = {
        "score": [effect_cell(change.get(fill), 2) for fill in heads[1:]],
        "decisions": [share_of(flipped.get(fill)) for fill in heads[1:]],
    }
    return table("Painted as a whole", hint, heads, rows)


def mistakes(one: Class, pictures: "Pictures") -> str:
    told = one.stats.mistakes
    if not told.get("wrong"):
        return ""
    kinds = ", ".join(f"{kind} {n}" for kind, n in mistakes_by_kind(one.stats))
    summary = (
        f"{told['wrong']} of {one.stats.n} are wrong; a repaint of a finding puts "
        f"{told['corrected']} right{f' ({kinds})' if kinds else ''}."
    )
    return f"<h3>Mistakes</h3><p>{text(summary)}</p>{pictures.row('', one.wrong, said)}"


def said(row: Row) -> str:
    """What the model says of an image, and what would put it right."""
    name = row["predicted_label"] or f"class {row['predicted']}"
    wrong = row["truth"] is not None and row["truth"] != row["predicted"]
    return f"{'taken for ' if wrong else ''}{name}. {row['correction_sentence'] or ''}".strip()


# ---- pieces


@dataclass(frozen=True)
class Pictures:
    """The thumbnails that are shown."""

    content: dict[int, bytes]  # WebP
    link: Link

    def row(self, title: str, rows: Sequence[Row], words: Callable[[Row], str]) -> str:
        shown = "".join(self.estimate(row, words(row)) for row in rows)
        head = f"<h3>{title}</h3>" if title else ""
        return f'{head}<div class="thumbs">{shown}</div>' if shown else ""

    def estimate(self, row: Row, words: str) -> str:
        inner = webp(self.content.get(row["image"]) or b"", row["name"])
        where = self.link(row["image"])
        if where:
            inner = f'<a href="{text(where)}">{inner}</a>'
        caption = f"<b>{text(row['name'])}</b> {text(words)}"
        return f"<figure>{inner}<figcaption>{caption}</figcaption></figure>"


def picture(pixels: NDArray[np.uint8], alt: str) -> str:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "WEBP", quality=90, method=6)
    return webp(out.getvalue(), alt)


def webp(content: bytes, alt: str) -> str:
    encoded = base64.b64encode(content).decode()
    return f'<img src="data:image/webp;base64,{encoded}" alt="{text(alt)}">'


def chip(color: str) -> str:
    """A swatch: of an SVG, since styles inside of tags would not be obeyed."""
    return (
        '<svg class="chip" viewBox="0 0 8 8" aria-hidden="true">'
        f'<rect width="8" height="8" fill="{color}"/></svg>'
    )


def ramp(scale: Scale) -> str:
    values = np.linspace(scale.low, scale.high, 128, dtype=np.float32)[None].repeat(2, 0)
    strip = picture(np.rint(255 * scale.colors(values)).astype(np.uint8), "The scale of all maps")
    ends = f"<span>{scale.low:.2g}</span><span>0</span><span>+{scale.high:.2g}</span>"
    return f'<div class="ramp">{strip}<div>{ends}</div></div>'


def found_by(info: AuditInfo, stats: AuditStats) -> str:
    """What counts as a finding."""
    if stats.threshold > 0:  # not NaN
        return (
            f"|z| above {stats.threshold:.1f}, which chance exceeds in one audit of twenty, over "
            "all classes, colors and places together"
        )
    what = "groups of images" if info.group else "images"
    return f"none: no class has the {FEWEST} {what} that findings need"


def how(info: AuditInfo, stats: AuditStats) -> str:
    """What the audit was asked."""
    facts: dict[str, Any] = {
        "model": info.identity or info.model,
        "data": info.data,
        "kind of score": info.kind,
        "colors": ", ".join(info.fills),
        "masks": f"{info.n_masks} an image, grid {info.grid[0]} x {info.grid[1]}",
        "mask_prob": f"{info.mask_prob:g}{f': {info.why}' if info.why else ''}",
        "groups": info.group or "each image on its own",
        "findings": found_by(info, stats),
        "seed": info.seed,
        "mcrise": info.version,
    }
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td>{text(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f'<h2>How it was made</h2><table class="facts">{rows}</table>'


def anchor(one: ClassStats) -> str:
    return "all-classes" if one.target == ALL else f"class-{one.target}"
