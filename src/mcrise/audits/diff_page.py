"""The page of a difference: two audits or two runs, their maps in pairs, most changed first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..maps import Maps
from ..output.html import assets, draw_map, picture_url, render_page, scale_bar
from ..output.plots import Scale, scale_for
from .class_data import AuditInfo
from .diff import ClassChange, Difference, finding_sentence
from .run_diff import RunDifference

ROWS = ("before", "after", "after − before")
MOST_SIDE = 192  # pixels of a map
ASSETS = assets(["style.css", "report.css"], [])
PALE = "Pale areas could be chance."


@dataclass(frozen=True)
class Part:
    """A class on the page: what is said of it, and its maps before, after and less each other."""

    label: str
    facts: str
    sentences: Sequence[str]
    maps: tuple[Maps, ...]

    @property
    def columns(self) -> list[int]:
        """The colors, the one that changed most first."""
        change = np.abs(self.maps[-1].values).max(axis=(1, 2))
        return [int(k) for k in np.argsort(-change, kind="stable")]

    def rows(self, scale: Scale) -> list[dict[str, Any]]:
        return [
            {"name": name, "panels": [draw_map(maps, k, scale, MOST_SIDE) for k in self.columns]}
            for name, maps in zip(ROWS, self.maps, strict=True)
        ]

    @property
    def picture(self) -> str:
        return picture_url(self.maps[0].thinned(MOST_SIDE).image)


def render_audits(difference: Difference, info: AuditInfo) -> str:
    """The page of two audits: all classes, those that changed most first."""
    classes = sorted((one for one in difference.classes if one.maps), key=change_of, reverse=True)
    parts = [
        Part(one.label, facts(one), [*sentences(one, info)], one.maps) for one in classes
    ]  # fmt: skip
    head, *lines = (line.removeprefix("- ") for line in difference.lines(info))
    n_first = max(1, len(difference.suspects))
    return page_of(difference.before, difference.after, head, lines[:n_first], lines, parts)


def change_of(one: ClassChange) -> tuple[float, float]:
    """How much a class changed: beyond chance first, then at all."""
    return one.largest, float(np.abs(one.maps[-1].values).max())


def facts(one: ClassChange) -> str:
    known = [f"{one.n:,} image{'s' * (one.n != 1)}"]
    if "accuracy" in one.rates:
        known.append(f"right: {one.rates['accuracy']}")
    if one.color_share:
        known.append(f"color share: {one.color_share}")
    return "; ".join(known)


def sentences(one: ClassChange, info: AuditInfo) -> list[str]:
    if one.too_few:
        return [one.too_few]
    found = [finding_sentence(finding, one.label, info) for finding in one.findings]
    return found or ["No place and color changes the score significantly more or less than before."]


def render_runs(runs: RunDifference, before: str, after: str) -> str:
    """The page of two runs of one image."""
    comparison = runs.comparison
    first, *lines = runs.lines()
    maps = (comparison.given, comparison.wanted, comparison.difference.maps)
    label, _, scores = first.rpartition(": ")
    lines = [line.removeprefix("- ") for line in lines]
    part = Part(label, f"Score: {scores}", lines[1:], maps)
    return page_of(before, after, "", lines[:1], [], [part])


def page_of(
    before: str,
    after: str,
    head: str,
    verdict: Sequence[str],
    lines: Sequence[str],
    parts: Sequence[Part],
) -> str:
    """The page: what changed most, the maps of each class, then all lines."""
    scale = scale_for([maps for part in parts for maps in part.maps])
    return render_page(
        "diff.html",
        ASSETS,
        title=f"From {before} to {after}",
        before=before,
        after=after,
        head=head,
        verdict=verdict,
        lines=lines,
        bar=scale_bar(scale),
        pale=PALE,
        unit=parts[0].maps[0].unit if parts else "",
        parts=[{"part": part, "rows": part.rows(scale)} for part in parts],
    )
