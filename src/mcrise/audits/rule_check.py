"""Rule checks: whether an audit shows what rules demand of it.

A rule holds if all its figures lie on the right side of the limit with their 95% intervals. It is
violated if one lies on the wrong side even with an interval that is wide enough for all of them
together. Otherwise it is undecided, and how many more images would tell is said.
"""

import math
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ..batch.storage import Storage
from ..errors import InputError, McriseError
from ..interpretation.claims import join
from .class_data import LIGHTS, AuditInfo
from .class_stats import ALL, AuditStats, ClassStats, read_stats
from .diff import ClassChange, compare_audits, place_name
from .paired_stats import Change
from .rules import ALL_IMAGES, MEASURES, Rule, index_of, read_rules, refuse_unknown
from .stats import Estimate, bonferroni, share_ends
from .suspects import SuspectSearch
from .tables import read_asked

RULES = "rules.toml"  # in the folder of an audit: its first page has their verdicts
State = Literal["holds", "violated", "undecided"]
WORST: tuple[State, ...] = ("violated", "undecided", "holds")
MOST_IMAGES = 1_000_000  # more than that would not be asked for
ACCURACIES = tuple(f"accuracy_{light}" for light in LIGHTS)
SHARES = ("accuracy", *ACCURACIES, "background_flip_rate")  # of images

NO_TRUTH = "is not known, since no true labels are"
NO_SIGNAL = "is not known, since no effect is significant"
MISSING = {  # why there may be none
    "color_share": NO_SIGNAL,
    "zone_share": NO_SIGNAL,
    "zone_effect": "is not known, since no image has that zone",
    "accuracy": NO_TRUTH,
    **dict.fromkeys(ACCURACIES, "is not known"),
    "background_flip_rate": "is not known, since no image has a background",
    "suspect": "suspects were not looked for, since the model gets too few images right",
    "taken_for": "is not known, since the model gets too few images right, or a first look that "
    "found something was not repeated",
}


@dataclass(frozen=True)
class Verdict:
    """What came of a rule for one class and fill."""

    state: State
    label: str  # of the class
    sentence: str
    estimate: Estimate | None = None
    more_images: int | None = None  # that would tell, where it is undecided


@dataclass(frozen=True)
class Judged:
    """A rule and what came of it."""

    rule: Rule
    verdicts: tuple[Verdict, ...]  # the worst first

    @property
    def state(self) -> State:
        return self.verdicts[0].state

    @property
    def sentence(self) -> str:
        """Of the worst, and how many others there are like it."""
        first = self.verdicts[0]
        like = sum(one.state == first.state for one in self.verdicts) - 1
        if not like:
            return first.sentence
        if first.state == "holds":
            others = f"other {like} hold" if like > 1 else "other one holds"
            return f"{first.sentence} The {others} too."
        return f"{first.sentence} {like} more {'are' if like > 1 else 'is'} {first.state}."

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule.title,
            "state": self.state,
            "sentence": self.sentence,
            "verdicts": [
                {
                    "class": one.label,
                    "state": one.state,
                    "sentence": one.sentence,
                    "value": one.estimate and finite(one.estimate.value),
                    "low": one.estimate and finite(one.estimate.low),
                    "high": one.estimate and finite(one.estimate.high),
                    "images": one.estimate and one.estimate.n,
                    "more_images": one.more_images,
                }
                for one in self.verdicts
            ],
        }


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def overall_state(judged: Sequence[Judged]) -> State:
    return next(state for state in WORST if any(one.state == state for one in judged))


def check_rules(
    audit: Storage, rules: Sequence[Rule], against: Storage | None = None
) -> list[Judged]:
    """Hold an audit against rules; refuses rules that name what it does not have."""
    info = read_asked(audit)
    for rule in rules:
        refuse_unknown(rule, info)
    if against is None and any(rule.change for rule in rules):
        raise InputError(
            "A rule is about a change, but there is no audit to compare with: give --against, or "
            "against in the rules."
        )
    stats = read_stats(audit)
    changes: dict[int, ClassChange] = {}
    if against is not None and any(rule.change for rule in rules):
        found = compare_audits(against, audit)
        changes = {one.target: one for one in (*found.classes, found.overall)}
    return [judge(rule, info, stats, changes) for rule in rules]


def rules_line(audit: Storage) -> str:
    """What came of the rules in the folder of an audit, in a line; empty where there are none."""
    file = audit / RULES
    if audit.remote or not file.exists():
        return ""
    try:
        rules, against = read_rules(Path(file.path))
        judged = check_rules(audit, rules, Storage(against) if against else None)
    except McriseError as error:
        return f"Rules: not checked. {error}"
    states = {state: [one for one in judged if one.state == state] for state in WORST}
    said = []
    for state, some in states.items():
        named = (
            "" if state == "holds" else f" ({join([repr(one.rule.title) for one in some], 'and')})"
        )
        said += (
            [f"{len(some)} {'hold' if state == 'holds' and len(some) > 1 else state}{named}"]
            if some
            else []
        )
    return f"Rules: {'; '.join(said)}."


@dataclass(frozen=True)
class Row:
    """One figure that a rule is about."""

    label: str
    words: str  # "the share of the effect in the rim is"
    estimate: Estimate | None
    missing: str  # why there is no figure, where there is none
    change: Change | None = None  # of an effect, where the figure is how much that has grown
    count: str = ""  # in words, where the figure is a count: it has no interval


def judge(
    rule: Rule, info: AuditInfo, stats: AuditStats, changes: Mapping[int, ClassChange]
) -> Judged:
    rows = list(rows_of(rule, info, stats, changes))
    verdicts = [verdict_of(rule, row, len(rows)) for row in rows]
    verdicts.sort(key=lambda one: (WORST.index(one.state), -excess(rule, one.estimate)))
    return Judged(rule, tuple(verdicts))


def rows_of(
    rule: Rule, info: AuditInfo, stats: AuditStats, changes: Mapping[int, ClassChange]
) -> Iterator[Row]:
    known = {one.target: one for one in stats.classes}
    chosen: list[tuple[str, ClassStats | None]] = []
    for name in rule.classes or tuple(known):
        if name == ALL_IMAGES and rule.measure == "taken_for":
            chosen += [(repr(one.label), one) for one in stats.classes]
        elif name == ALL_IMAGES:
            whole = "all classes" if rule.measure == "suspect" else "all images"
            chosen.append((whole, stats.overall))
        else:
            index = index_of(name, info, rule)
            chosen.append((repr(info.label(index)), known.get(index)))
    fills = [rule.fill] if rule.fill else info.fills if rule.measure == "zone_effect" else [""]
    for label, one in chosen:
        for fill in fills:
            outer = stats.overall.background.zone if stats.overall.background else "background"
            noun = MEASURES[rule.measure].format(
                zone=place_name(rule.zone or ""), fill=fill, outer=outer
            )
            if stats.overall.accuracy is None and rule.measure != "accuracy":
                noun = noun.replace("decided rightly", "decided as it is in color")
            if one is None:
                yield Row(label, noun, None, "there are no images of it")
                continue
            if rule.measure == "suspect":
                yield suspect_row(label, one, stats.search)
                continue
            estimate, verb, effect = figure_of(rule, fill, one, stats.search), "is", None
            if rule.change:
                both = changes.get(one.target)
                if both and both.n_left_out:
                    label = f"all images but {both.n_left_out:,} that are predicted differently now"
                change = changed(rule, fill, both)
                estimate, verb = change.by if change else None, "has changed by"
                if change and rule.measure == "zone_effect":
                    estimate, effect = change_of_size(change), change
            elif rule.measure == "zone_effect":
                estimate = sized(estimate)
            yield Row(label, f"{noun} {verb}", estimate, f"{noun} {MISSING[rule.measure]}", effect)


def figure_of(
    rule: Rule, fill: str, one: ClassStats, search: SuspectSearch | None
) -> Estimate | None:
    if rule.measure == "taken_for":
        return search.taken_for.get(str(one.target)) if search else None
    if rule.measure == "zone_share":
        return one.zones.get(rule.zone or "")
    if rule.measure == "zone_effect":
        return one.zone_effect.get(rule.zone or "", {}).get(fill)
    if rule.measure == "background_flip_rate":
        return one.background.flip_rate if one.background else None
    found: Estimate | None = getattr(one, rule.measure)
    return found


def suspect_row(label: str, one: ClassStats, search: SuspectSearch | None) -> Row:
    """How many suspects there are in a class, or in all, and which."""
    if search is None or not (search.taken_for or search.untested):
        return Row(label, "", None, MISSING["suspect"])
    tested = {*map(int, search.taken_for)} | {*search.untested}
    known = tested if one.target == ALL else {one.target} & tested
    if not known:
        return Row(label, "", None, MISSING["suspect"])
    found = [suspect for suspect in search.suspects if known & {*suspect.targets}]
    n, n_open = len(found), len(known & {*search.untested} - {c for s in found for c in s.targets})
    words = f"{n or 'no'} suspect{'s' * (n != 1)}"
    if found:
        words += f" ({'; '.join(one.headline for one in found)})"
    if n_open:
        words += f", but in {n_open} more a first look found something and was not repeated"
    n_asked = sum(share.n for c, share in search.taken_for.items() if int(c) in known)
    return Row(label, "", Estimate(n, n, n + n_open, n_asked), "", count=words)


def changed(rule: Rule, fill: str, one: ClassChange | None) -> Change | None:
    if one is None:
        return None
    if rule.measure == "zone_share":
        return one.zones.get(rule.zone or "")
    if rule.measure == "zone_effect":
        return one.zone_effect.get(rule.zone or "", {}).get(fill)
    return one.color_share if rule.measure == "color_share" else one.rates.get(rule.measure)


def sized(estimate: Estimate | None) -> Estimate | None:
    """An effect without its sign: a score that falls has moved as one that rises has."""
    if estimate is None or not estimate.low < estimate.high:
        return estimate and replace(
            estimate, value=abs(estimate.value), low=abs(estimate.low), high=abs(estimate.high)
        )
    ends = sorted((abs(estimate.low), abs(estimate.high)))
    low = 0.0 if estimate.low <= 0 <= estimate.high else ends[0]
    return replace(estimate, value=abs(estimate.value), low=low, high=ends[1])


def change_of_size(change: Change, n_looked_at: int = 1) -> Estimate:
    """By how much an effect has grown, whatever its sign; with an interval for so many figures.

    Where it keeps its sign that is its change, where it flips the sum of before and after, up to a
    sign: so it lies between what change and sum make it within the intervals of both.
    """
    by, total = (bonferroni(one, n_looked_at) for one in (change.by, total_of(change)))
    # If one of them is held, it only grows or only shrinks with the other: ends are in corners.
    corners = [growth(b, t) for b in (by.low, by.high) for t in (total.low, total.high)]
    return replace(by, value=growth(by.value, total.value), low=min(corners), high=max(corners))


def growth(by: float, total: float) -> float:
    """|after| - |before|, from after - before and after + before."""
    return (abs(total + by) - abs(total - by)) / 2


def total_of(change: Change) -> Estimate:
    """The sum of a mean before and after, over the same images.

    Squares of errors keep the law of the parallelogram: those of a sum and of a difference come to
    twice those of their parts.
    """
    parts = change.before, change.after
    middle, value = sum(f.low + f.high for f in parts) / 2, sum(f.value for f in parts)
    squares = [(f.high - f.low) ** 2 / 4 for f in (*parts, change.by)]
    reach = math.sqrt(max(2 * (squares[0] + squares[1]) - squares[2], 0.0))
    return replace(change.by, value=value, low=middle - reach, high=middle + reach)


def verdict_of(rule: Rule, row: Row, n_rows: int) -> Verdict:
    estimate = row.estimate
    if estimate is None:
        return Verdict("undecided", row.label, f"{row.label}: {row.missing}: undecided.")
    wide = change_of_size(row.change, n_rows) if row.change else None
    state, more = decide(rule, estimate, n_rows, wide)
    if row.count:
        said = f"{row.label}: {row.count}, and {rule.allowed}: {state}."
        return Verdict(state, row.label, said, estimate, more)
    value, low, high = (rule.shown(x) for x in (estimate.value, estimate.low, estimate.high))
    said = f"{row.label}: {row.words} {value}"
    hint = ""
    asked = images(estimate.n) if rule.measure != "taken_for" else f"{estimate.n:,} trials"
    if not has_ends(estimate):
        sides = f"({asked}, too few to tell how sure that is)"
    else:
        sides = f"(95% interval: {low} to {high}, {asked})"
        if state == "undecided":
            classes = "more images of each class would tell"
            hint = f" ({classes if rule.measure == 'taken_for' else more_words(more)})"
    return Verdict(
        state, row.label, f"{said} {sides}, and {rule.allowed}: {state}{hint}.", estimate, more
    )


def has_ends(estimate: Estimate) -> bool:
    """Whether anything tells how sure it is."""
    return math.isfinite(estimate.low) and math.isfinite(estimate.high)


def decide(
    rule: Rule, estimate: Estimate, n_rows: int, wide: Estimate | None = None
) -> tuple[State, int | None]:
    """The verdict on one figure of so many, and how many more images would change it.

    `wide` is the figure with the interval for all of them, where that is not by `bonferroni`.
    """
    if not has_ends(estimate):
        return "undecided", None
    wide = wide or bonferroni(estimate, n_rows)
    state = state_of(rule, estimate, wide)
    if state != "undecided":
        return state, None
    if rule.measure == "taken_for":
        return "undecided", None  # trials are not images: more of them are not asked
    if rule.measure in SHARES and not rule.change:
        return "undecided", more_for_share(rule, estimate, n_rows)
    limits = [(1, rule.at_most), (-1, rule.at_least)]  # signed, so that more is worse
    sides = [
        (sign * limit, max(sign * estimate.low, sign * estimate.high),
         min(sign * wide.low, sign * wide.high), sign * estimate.value)
        for sign, limit in limits if limit is not None
    ]  # fmt: skip
    needed = 0.0
    for limit, high, wide_low, value in sides:
        if high > limit:
            # An interval is as wide as one over the root of the images.
            reach = high - value if value <= limit else value - wide_low
            apart = abs(value - limit)
            needed = max(needed, (reach / apart) ** 2 if apart > 0 else math.inf)
    more = estimate.n * (needed - 1)
    return "undecided", None if more > MOST_IMAGES else rounded(more)


def more_for_share(rule: Rule, estimate: Estimate, n_rows: int) -> int | None:
    """How many more images would tell, if as large a share of them are hits."""
    n, size = estimate.n, n_alone(estimate)
    while n < MOST_IMAGES:
        n = math.ceil(1.1 * n)
        more = n / estimate.n
        low, high = share_ends(estimate.value, more * size)
        then = Estimate(estimate.value, low, high, n, round(more * estimate.n_groups))
        if state_of(rule, then, bonferroni(then, n_rows)) != "undecided":
            return rounded(n - estimate.n)
    return None


def n_alone(estimate: Estimate) -> int:
    """How many images on their own would be as sure of a share as these are in their groups."""

    def narrow(n: int) -> float:
        low, high = share_ends(estimate.value, n)
        return low - high

    return max(bisect(range(1, estimate.n + 1), estimate.low - estimate.high, key=narrow), 1)


def state_of(rule: Rule, estimate: Estimate, wide: Estimate) -> State:
    """The verdict on a figure, by its interval and by the one that allows for all figures."""
    most = math.inf if rule.at_most is None else rule.at_most
    least = -math.inf if rule.at_least is None else rule.at_least
    if wide.low > most or wide.high < least:
        return "violated"
    return "holds" if least <= estimate.low and estimate.high <= most else "undecided"


def rounded(n: float) -> int:
    """Up, to two digits."""
    n = max(n, 1.0)
    step = int(10 ** max(math.floor(math.log10(n)) - 1, 0))
    return math.ceil(n / step) * step


def more_words(more: int | None) -> str:
    if more is None:
        return "it lies too near to the limit for any number of images to tell"
    return f"about {images(more, 'more ')} would tell"


def images(n: int, more: str = "") -> str:
    return f"{n:,} {more}image{'s' * (n != 1)}"


def excess(rule: Rule, estimate: Estimate | None) -> float:
    """How far beyond what is allowed, to sort by."""
    if estimate is None:
        return -math.inf
    sides = [estimate.value - rule.at_most] if rule.at_most is not None else []
    sides += [rule.at_least - estimate.value] if rule.at_least is not None else []
    return max(sides)
