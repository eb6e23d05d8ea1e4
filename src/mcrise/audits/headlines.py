"""What is striking about a single class: the figure that an average over all classes hides.

A figure counts by how far even the better end of its interval is worse than all classes together,
so that a class of few images does not come first by chance. The interval allows for all figures
of all classes, since the worst of many is bad by chance alone.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..interpretation.claims import sentence_case
from .background import OWN
from .class_data import LIGHTS, AuditInfo
from .class_findings import ClassFinding, names
from .class_stats import ALL, AuditStats, ClassStats
from .stats import Estimate, bonferroni


@dataclass(frozen=True)
class Striking:
    """A figure of a class that is worse than that of all classes together."""

    stats: ClassStats
    kind: str  # "accuracy", a key of `LIGHTS`, or "background"
    estimate: Estimate
    words: str  # "30% right with hues turned by 120 degrees"
    beyond: float  # how much worse even the better end of the interval is

    @property
    def interval(self) -> str:
        return f"95%: {100 * self.estimate.low:.0f}–{100 * self.estimate.high:.0f}%"


def most_striking(stats: AuditStats) -> Striking | None:
    """The most striking figure of all classes, if one is worse than all together."""
    found = [figure for one in stats.classes if (figure := striking(one, stats))]
    return max(found, key=lambda figure: figure.beyond, default=None)


def striking(one: ClassStats, stats: AuditStats) -> Striking | None:
    """The most striking figure of a class; None if its intervals reach those of all classes."""
    n = n_looked_at(stats)
    found = [figure for figure in figures(one, stats.overall, n) if figure.beyond > 0]
    return max(found, key=lambda figure: figure.beyond, default=None)


def n_looked_at(stats: AuditStats) -> int:
    """The figures of all classes, of which one or another stands out by chance."""
    return max(sum(1 for one in stats.classes for _ in figures(one, stats.overall)), 1)


def figures(one: ClassStats, whole: ClassStats, n_looked_at: int = 1) -> Iterator[Striking]:
    """Each figure, with an interval that allows for how many were looked at."""
    right = "right" if one.accuracy else "decided as before"
    for kind, how in {"accuracy": "", **LIGHTS}.items():
        name = kind if kind == "accuracy" else f"accuracy_{kind}"
        mine, all_ = getattr(one, name), getattr(whole, name)
        if mine and all_ and math.isfinite(mine.high):
            words = f"{100 * mine.value:.0f}% {right} {how}".rstrip()
            high = bonferroni(mine, n_looked_at).high
            yield Striking(one, kind, mine, words, all_.value - high)
    if one.background and whole.background:
        for fill, mine in one.background.flipped.items():
            all_ = whole.background.flipped.get(fill)
            if all_ and math.isfinite(mine.low):
                words = (
                    f"{100 * mine.value:.0f}% of answers change when the whole "
                    f"{one.background.zone} is painted {'in ' * (fill == OWN)}{fill}"
                )
                low = bonferroni(mine, n_looked_at).low
                yield Striking(one, "background", mine, words, low - all_.value)


def most_striking_first(stats: AuditStats) -> list[ClassStats]:
    """Suspects first, then by figures that are worse than those of all, then by findings."""
    found = stats.search.suspects if stats.search else ()
    suspects = [target for one in found for target in one.targets]

    def rank(one: ClassStats) -> tuple[int, float, float]:
        place = suspects.index(one.target) if one.target in suspects else len(suspects)
        figure = striking(one, stats)
        found = max((finding.weight for finding in confirmed(one)), default=0.0)
        return place, -(figure.beyond if figure else 0.0), -found

    return sorted(stats.classes, key=rank)


def class_sentences(one: ClassStats, stats: AuditStats, info: AuditInfo) -> list[str]:
    """A class in a line or two: its striking figure, and the strongest of its findings."""
    figure = striking(one, stats) if one.target != ALL else None
    told = [f"{sentence_case(figure.words)} ({figure.interval})."] if figure else []
    for finding in confirmed(one)[:1]:
        assert finding.change is not None
        moved = "rises" if finding.change.value > 0 else "falls"
        told.append(
            f"{sentence_case(finding.place)} painted {names(info, finding.painted)}: the score "
            f"{moved} by {abs(finding.change.value):.2g}."
        )
    if not told and one.too_few:
        return ["Too few images for findings."]
    return told or ["No single place and color matters significantly."]


def confirmed(one: ClassStats) -> list[ClassFinding]:
    return [found for found in one.findings if found.verdict == "confirmed" and found.change]
