"""`audit.html`: an audit as one page to send, which needs no network.

It is made of the folder of a finished audit: the verdict, the suspects and the most striking figure
of a class; then a row per class, the most striking first, which opens to its findings, tables and
some of its images. Pictures are small and counted, so that the page of 5,000 images is as quick as
that of fifty; all the rest is in the tables. Without scripts everything is there but sorting.
"""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..batch.storage import Row, Storage
from ..colors import BASICS
from ..images import unit_float, whole_pixels
from ..maps import Maps
from ..models.scores import UNITS
from ..output.html import Panel, assets, data_url, draw_map, picture_url, render_page, scale_bar
from ..output.plots import DIVERGING, Scale, scale_of
from .background import OWN
from .class_data import AuditInfo, class_maps
from .class_findings import FEWEST
from .class_stats import ALL, AuditStats, ClassStats, read_stats
from .figures_json import reporting_damage
from .headlines import Striking, class_sentences, most_striking, most_striking_first
from .measure import OTHER_LIGHTS
from .rule_check import rules_line
from .stats import Estimate
from .summary import (
    MOST_NAMED,
    FirstPage,
    first_page,
    five_sentences,
    images,
    mistakes_by_kind,
    own_color,
)
from .suspects import read_outcomes, rows_of
from .tables import read_asked, read_rows, read_thumbnails
from .zones import OUTER

FILE = "audit.html"
MOST_PICTURES = 600  # of images, over all classes
MOST_EXAMPLES = 8  # of a class
MOST_PAIRS = 3  # examples of a suspect
MOST_DRAWN = 400  # classes whose maps are drawn
HEAT = 4  # steps of color in a table of effects
NINE = ("upper left", "top", "upper right", "left", "center", "right", "lower left", "bottom",
        "lower right")  # fmt: skip
COLUMNS = ("image", "name", "truth", "label", "predicted", "predicted_label", "correction_sentence")
ASSETS = assets(["style.css", "audit.css"], ["audit.js"])
POLICY = ASSETS.policy

Link = Callable[[int], str | None]  # where an image opens, by its number
Cell = tuple[str, Estimate | None]  # "share" or "effect", and the number


@dataclass(frozen=True)
class Class:
    """What the page shows of a class."""

    stats: ClassStats
    maps: Maps | None
    examples: list[Row]
    wrong: list[Row]
    unlike: list[Row]  # of `stats.outliers`, in its order


@dataclass(frozen=True)
class Table:
    """Effects by row and color."""

    title: str
    hint: str
    heads: Sequence[str]
    rows: Mapping[str, Sequence[Cell]]
    digits: int = 2

    @property
    def most(self) -> float:
        cells = [one for row in self.rows.values() for kind, one in row if kind == "effect" and one]
        return max((abs(one.value) for one in cells), default=0.0)

    def heat(self, estimate: Estimate) -> int:
        """How strong an effect is among those of the table, 1 to `HEAT`."""
        return max(1, round(HEAT * abs(estimate.value) / self.most)) if self.most else 1


def render(folder: Storage, link: Link | None = None) -> str:
    """The page of an audit; with `link`, images open in the workbench."""
    info, stats = read_asked(folder), read_stats(folder)
    with reporting_damage(folder):
        return page_of(folder, info, stats, link or (lambda number: None))


def page_of(folder: Storage, info: AuditInfo, stats: AuditStats, link: Link) -> str:
    classes = [*gather(folder, info, stats)]
    shown = {row["image"] for one in classes for row in (*one.examples, *one.wrong, *one.unlike)}
    thumbnails = Thumbnails(read_thumbnails(folder, sorted(shown)), link)
    maps = [one.maps for one in classes if one.maps]
    limit = scale_of([some.values for some in maps]) if maps else 1.0
    scale = Scale(-limit, limit, DIVERGING)
    outer = next((zone for zone in OUTER if zone in stats.overall.zones), None)
    heads = ["class", "images", "right", "in gray", "hues turned", "color", "findings"]
    if outer:
        heads.insert(6, f"in the {outer}")
    whole = Class(stats.overall, None, [], [], [])
    by_target = {one.stats.target: one for one in classes}
    ordered = [by_target[one.target] for one in most_striking_first(stats)]
    figure, first = most_striking(stats), first_page(stats, rules_line(folder))
    return render_page(
        "audit.html",
        ASSETS,
        title=f"Audit of {info.title}",
        data=info.data.rpartition("/")[2],
        info=info,
        stats=stats,
        first=first,
        suspects=shown_suspects(folder, info, stats, first, link),
        figure=figure,
        figure_examples=striking_examples(folder, info, figure, link) if figure else [],
        sentences=five_sentences(info, stats),
        heads=heads,
        rows=[class_row(one, outer) for one in (*stats.classes, stats.overall)],
        unit=UNITS[info.kind],
        pale=pale_words(stats),
        bar=scale_bar(scale),
        sections=[section(one, stats, info, scale, thumbnails) for one in (*ordered, whole)],
        facts=facts(info, stats),
        percent=percent,
        interval=lambda one: f"{100 * one.low:.0f}–{100 * one.high:.0f}",
        signed=lambda value, digits: f"{value:+.{digits}f}",
        images=images,
        outline=outline,
    )


def striking_examples(
    folder: Storage, info: AuditInfo, figure: Striking, link: Link
) -> list[dict[str, Any]]:
    """Images behind the most striking figure, as they are and as the model was asked, with its
    answer."""
    target, kind = figure.stats.target, "predicted" if figure.kind == "accuracy" else figure.kind
    if kind == "background":
        return []
    rows = read_rows(folder, "images", target, "image", "name", "predicted", kind, "thumbnail")
    failed = [
        row
        for row in rows
        if row[kind] not in (None, target) and row["thumbnail"]
        and (kind == "predicted" or row["predicted"] == target)
    ]  # fmt: skip
    return [
        {
            "name": row["name"],
            "source": data_url(row["thumbnail"], "webp"),
            "changed": in_light(row["thumbnail"], kind) if kind in OTHER_LIGHTS else "",
            "answer": info.label(row[kind]),
            "link": link(row["image"]),
        }
        for row in spread(failed, MOST_PAIRS)
    ]


def in_light(thumbnail: bytes, kind: str) -> str:
    """A thumbnail in gray or with turned hues."""
    with Image.open(io.BytesIO(thumbnail)) as opened:
        pixels = unit_float(np.asarray(opened.convert("RGB")))
    return picture_url(whole_pixels(OTHER_LIGHTS[kind].render(pixels)), kind="webp")


def shown_suspects(
    folder: Storage, info: AuditInfo, stats: AuditStats, first: FirstPage, link: Link
) -> list[dict[str, Any]]:
    """Each of the first suspects with images of other classes that became it."""
    suspects = stats.search.suspects[:MOST_NAMED] if stats.search else ()
    rows = [row for row in read_outcomes(folder) if row["role"] == "locate"] if suspects else []
    found = []
    for one, lines in zip(suspects, first.suspects, strict=True):
        some = [row for row in rows_of(one, rows) if row["predicted"] in one.targets][:MOST_PAIRS]
        names = [name for row in some for name in (row["donor"], row["image"])]
        pictures = read_thumbnails(folder, names)
        found.append(
            {
                "headline": one.headline,
                "sentence": " ".join(lines[1:]),
                "label": one.label,
                "examples": [
                    {
                        "donor": data_url(pictures.get(row["donor"], b""), "webp"),
                        "receiver": data_url(pictures.get(row["image"], b""), "webp"),
                        "picture": data_url(row["picture"] or b"", "webp"),
                        "link": link(row["image"]),
                        "taken_for": info.label(row["predicted"]),
                        "outline": border(
                            np.unpackbits(
                                np.frombuffer(row["region"], np.uint8), count=info.raster**2
                            ).reshape(info.raster, info.raster)
                            > 0
                        )
                        if row["region"]
                        else "",
                    }
                    for row in some
                ],
            }
        )
    return found


def pale_words(stats: AuditStats) -> str:
    """What is drawn faintly: what findings have to exceed."""
    if stats.threshold > 0:  # not NaN
        return "Pale areas could be chance."
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


def class_row(one: ClassStats, outer: str | None) -> dict[str, Any]:
    confirmed = n_confirmed(one)
    found = f"{len(one.findings)} ({confirmed} confirmed)" if one.findings else "none"
    if one.target == ALL:
        found = ""
    elif one.too_few:
        found = "too few images"
    shares = [one.accuracy, one.accuracy_gray, worst_hue(one), one.color_share]
    return {
        "label": one.label,
        "anchor": anchor(one),
        "whole": one.target == ALL,
        "n": one.n,
        "shares": [*shares, one.zones.get(outer)] if outer else shares,
        "rank": confirmed + 0.001 * len(one.findings),
        "found": found,
    }


# ---- one class


def section(
    one: Class, audit: AuditStats, info: AuditInfo, scale: Scale, shown: "Thumbnails"
) -> dict[str, Any]:
    stats = one.stats
    suspects = audit.search.suspects if audit.search else ()
    regions = [finding.region for finding in stats.findings if finding.verdict == "confirmed"]
    sentences = {other.image: other.sentence for other in stats.outliers}
    drawn = panels(one.maps, scale) if one.maps else []
    # Basic colors are called as in CSS.
    swatches = {name: name for name in BASICS} | {panel.name: panel.swatch for panel in drawn}
    tables = (own_table(stats, info), zone_table(stats, info), outer_table(stats, info))
    return {
        "stats": stats,
        "anchor": anchor(stats),
        "whole": stats.target == ALL,
        "suspect": any(stats.target in suspect.targets for suspect in suspects),
        "lines": [] if stats.target == ALL else class_sentences(stats, audit, info),
        "dots": dots(stats),
        "outline": border(regions[0]) if regions else "",
        "thirds": thirds(stats),
        "swatches": swatches,
        "picture": picture_url(one.maps.image, kind="webp") if one.maps else None,
        "panels": drawn,
        "tables": [table for table in tables if table],
        "examples": shown.of(one.examples, prediction),
        "outliers": shown.of(one.unlike, lambda row: sentences[row["image"]]),
        "mistakes": mistakes(stats),
        "wrong": shown.of(one.wrong, prediction),
    }


def dots(stats: ClassStats) -> list[tuple[str, Estimate]]:
    """The shares of a class that stand in its row."""
    named = {
        "right": stats.accuracy,
        "in gray": stats.accuracy_gray,
        "hues turned": worst_hue(stats),
        "color": stats.color_share,
    }
    return [(name, estimate) for name, estimate in named.items() if estimate]


def worst_hue(stats: ClassStats) -> Estimate | None:
    turned = [one for one in (stats.accuracy_hue120, stats.accuracy_hue240) if one]
    return min(turned, key=lambda estimate: estimate.value, default=None)


def thirds(stats: ClassStats) -> list[tuple[int, int, Estimate]]:
    """Row, column and share of the effect of each of the nine parts of an image."""
    cells = [(n // 3, n % 3, stats.zones.get(name)) for n, name in enumerate(NINE)]
    known = [(row, column, estimate) for row, column, estimate in cells if estimate]
    return known if len(known) == len(NINE) else []


def panels(maps: Maps, scale: Scale) -> list[Panel]:
    return [draw_map(maps, k, scale, kind="webp") for k in range(len(maps.fills))]


def outline(region: NDArray[np.bool_]) -> str:
    """Where a region lies, as a path of an SVG: a rectangle for each run of a row."""
    marks = []
    for row, line in enumerate(region):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]])))
        marks += [
            f"M{start} {row}h{end - start}v1h{start - end}z"
            for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        ]
    return "".join(marks)


def border(region: NDArray[np.bool_]) -> str:
    """The line around a region, as a path of an SVG."""
    padded = np.pad(region, 1)
    across, down = np.nonzero(np.diff(padded, axis=0)), np.nonzero(np.diff(padded, axis=1))
    marks = [f"M{c - 1} {r}h1" for r, c in zip(*(one.tolist() for one in across), strict=True)]
    marks += [f"M{c} {r - 1}v1" for r, c in zip(*(one.tolist() for one in down), strict=True)]
    return "".join(marks)


def own_table(stats: ClassStats, info: AuditInfo) -> Table | None:
    hint = "Mean change of the score where the image itself has that color."
    if words := own_color(stats):
        hint = f"{hint} The largest significant change: {words}."
    rows = {name: row for name, row in stats.color_area_effect.items() if row}
    cells = {name: effects(row, info) for name, row in rows.items()}
    heads = ("where it is", *info.fills)
    return Table("Own color × painted color", hint, heads, cells, digits(rows)) if rows else None


def zone_table(stats: ClassStats, info: AuditInfo) -> Table | None:
    hint = "Its share of the effect, and the mean change of the score in it."
    rows = {name: row for name, row in stats.zone_effect.items() if row}
    cells = {
        zone: [("share", stats.zones.get(zone)), *effects(row, info)] for zone, row in rows.items()
    }
    heads = ("in the", "share", *info.fills)
    return Table("Zones × painted color", hint, heads, cells, digits(rows)) if rows else None


def outer_table(stats: ClassStats, info: AuditInfo) -> Table | None:
    if stats.background is None:
        return None
    zone, fills = stats.background.zone, (*info.fills, OWN)
    rows: dict[str, list[Cell]] = {
        "score": [("effect", stats.background.change.get(fill)) for fill in fills],
        "decisions": [("share", stats.background.flipped.get(fill)) for fill in fills],
    }
    hint = (
        f"All of the {zone} painted: the change of the score, and the share of decisions changed."
    )
    return Table(f"The whole {zone} painted", hint, (f"the whole {zone}", *fills), rows)


def effects(row: Mapping[str, Estimate], info: AuditInfo) -> list[Cell]:
    return [("effect", row.get(fill)) for fill in info.fills]


def digits(rows: Mapping[str, Mapping[str, Estimate]]) -> int:
    most = max((abs(one.value) for row in rows.values() for one in row.values()), default=0.0)
    return 2 if most >= 0.1 else 3


def mistakes(stats: ClassStats) -> str:
    known = stats.mistakes
    if not known.get("wrong"):
        return ""
    kinds = ", ".join(f"{kind} {n}" for kind, n in mistakes_by_kind(stats))
    return (
        f"{known['wrong']} of {stats.n} are wrong; repainting a finding corrects "
        f"{known['corrected']} of them{f' ({kinds})' if kinds else ''}."
    )


def prediction(row: Row) -> str:
    """What the model says of an image, and what would correct it."""
    name = row["predicted_label"] or f"class {row['predicted']}"
    wrong = row["truth"] is not None and row["truth"] != row["predicted"]
    return f"{'predicted as ' if wrong else ''}{name}. {row['correction_sentence'] or ''}".strip()


# ---- pieces


@dataclass(frozen=True)
class Thumbnails:
    """Those that are shown."""

    content: dict[int, bytes]  # WebP
    link: Link

    def of(self, rows: Sequence[Row], words: Callable[[Row], str]) -> list[dict[str, Any]]:
        return [
            {
                "name": row["name"],
                "source": data_url(self.content.get(row["image"]) or b"", "webp"),
                "link": self.link(row["image"]),
                "words": words(row),
            }
            for row in rows
        ]


def percent(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.0f}%"


def n_confirmed(stats: ClassStats) -> int:
    return sum(finding.verdict == "confirmed" for finding in stats.findings)


def found_by(info: AuditInfo, stats: AuditStats) -> str:
    """What counts as a finding."""
    if stats.threshold > 0:  # not NaN
        return (
            f"|z| above {stats.threshold:.1f}, which chance exceeds in one audit of twenty, over "
            "all classes, colors and places together"
        )
    what = "groups of images" if info.group else "images"
    return f"none: no class has the {FEWEST} {what} that findings need"


def facts(info: AuditInfo, stats: AuditStats) -> dict[str, Any]:
    """How the audit was made."""
    return {
        "model": info.identity or info.model,
        "data": info.data,
        "kind of score": info.kind,
        "colors": ", ".join(info.fills),
        "masks": f"{info.n_masks} per image, grid {info.grid[0]} x {info.grid[1]}",
        "mask_prob": f"{info.mask_prob:g}{f': {info.why}' if info.why else ''}",
        "groups": info.group or "none: each image counts by itself",
        "findings": found_by(info, stats),
        "seed": info.seed,
        "mcrise": info.version,
    }


def anchor(one: ClassStats) -> str:
    return "all-classes" if one.target == ALL else f"class-{one.target}"
