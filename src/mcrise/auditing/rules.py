"""Rules: what an audit must show before a model may be released, and whether it does.

    against = "../last-release"        # optional: an audit of the same images, for `change`

    [[rule]]
    name = "the corner is ignored"     # optional
    class = "speed limit 50"           # a label, an index, a list of them, or "all" images
                                       # together; left out: each class
    measure = "zone_effect"            # one of MEASURES
    zone = "lower right"               # of zone_effect and zone_share
    fill = "yellow"                    # of zone_effect; left out: each fill
    at_most = 0.05                     # or at_least, or both
    change = true                      # by how much it differs from `against`, image by image

A rule holds if all its figures lie on the right side of the limit with their 95 % intervals. It is
violated if one lies on the wrong side even with an interval that is wide enough for all of them
together. Otherwise it is undecided, and how many more images would tell is said.
"""

import difflib
import math
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ..claims import join
from ..errors import InputError
from ..study.storage import Storage
from ..told import toml
from .change import Change
from .difference import ClassChange, compare_audits, place_name
from .figures import ClassFigures, Figures, read_figures
from .looks import Asked
from .statistics import Figure, share_ends, widened
from .tables import read_asked

State = Literal["holds", "violated", "undecided"]
WORST: tuple[State, ...] = ("violated", "undecided", "holds")
ALL_IMAGES = "all"
MOST_IMAGES = 1_000_000  # more than that would not be asked for
SHARES = ("accuracy", "gray", "hue120", "hue240", "outer_flips")  # of images

MEASURES = {  # what they are called in a sentence
    "color_share": "the share of the effect that is color",
    "zone_share": "the share of the effect in {zone}",
    "zone_effect": "the change of the score by {fill} under masks, on average over {zone},",
    "accuracy": "the share decided rightly",
    "gray": "the share decided rightly in gray",
    "hue120": "the share decided rightly with hues turned by 120 degrees",
    "hue240": "the share decided rightly with hues turned by 240 degrees",
    "outer_flips": "the share of decisions that painting all of what lies outside changes",
}


NO_TRUTH, NO_SIGNAL = "is not known, since no truth is", "cannot be told from noise"
MISSING = {  # why there may be none
    "color_share": NO_SIGNAL,
    "zone_share": NO_SIGNAL,
    "zone_effect": "is not known, since no image has that zone",
    "accuracy": NO_TRUTH,
    "gray": "is not known",
    "hue120": "is not known",
    "hue240": "is not known",
    "outer_flips": "is not known, since nothing lies outside",
}


@dataclass(frozen=True)
class Rule:
    """One rule, as it is written."""

    number: int
    measure: str
    name: str = ""
    classes: tuple[str | int, ...] = ()  # empty: each
    zone: str | None = None
    fill: str | None = None
    at_most: float | None = None
    at_least: float | None = None
    change: bool = False

    @property
    def title(self) -> str:
        return self.name or f"rule {self.number}"

    @property
    def allowed(self) -> str:
        sides = [
            f"at {side} {limit:g} is {verb}"
            for side, limit, verb in (
                ("most", self.at_most, "allowed"), ("least", self.at_least, "required")
            )
            if limit is not None
        ]  # fmt: skip
        return join(sides, "and")


@dataclass(frozen=True)
class Verdict:
    """What came of a rule for one class and fill."""

    state: State
    label: str  # of the class
    sentence: str
    figure: Figure | None = None
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
                    "value": one.figure and finite(one.figure.value),
                    "low": one.figure and finite(one.figure.low),
                    "high": one.figure and finite(one.figure.high),
                    "images": one.figure and one.figure.n,
                    "more_images": one.more_images,
                }
                for one in self.verdicts
            ],
        }


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def overall_state(judged: Sequence[Judged]) -> State:
    return next(state for state in WORST if any(one.state == state for one in judged))


# ---- reading


def read_rules(path: Path) -> tuple[list[Rule], str | None]:
    """The rules of a TOML file, and which other audit they compare with, if any."""
    try:
        content = toml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"The rules {path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise InputError(f"The rules {path} are not TOML: {str(error).rstrip('.')}.") from None
    for key in content:
        if key not in ("rule", "against"):
            raise InputError(f"{path}: {unknown('key', key, ('rule', 'against'))}")
    against = content.get("against")
    if against is not None:
        if not isinstance(against, str):
            raise InputError(f"{path}: against is {against!r}, but the path of an audit is needed.")
        against = against if "://" in against else str(path.parent / against)
    rows = content.get("rule", [])
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} has no rules: write each below [[rule]].")
    return [read_rule(row, n) for n, row in enumerate(rows, start=1)], against


KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda v: isinstance(v, str), "a name"),
    "class": (lambda v: is_class(v) or (isinstance(v, list) and v != [] and all(map(is_class, v))),
              "a label, an index or a list of them"),
    "measure": (lambda v: isinstance(v, str) and v in MEASURES, f"one of {', '.join(MEASURES)}"),
    "zone": (lambda v: isinstance(v, str), "the name of a zone"),
    "fill": (lambda v: isinstance(v, str), "the name of a color or fill"),
    "at_most": (lambda v: is_number(v), "a number"),
    "at_least": (lambda v: is_number(v), "a number"),
    "change": (lambda v: isinstance(v, bool), "true or false"),
}  # fmt: skip


def read_rule(row: Mapping[str, Any], number: int) -> Rule:
    title = row.get("name") if isinstance(row.get("name"), str) else f"rule {number}"
    for key, value in row.items():
        if key not in KEYS:
            raise InputError(f"{title}: {unknown('key', key, KEYS)}")
        is_right, needed = KEYS[key]
        if not is_right(value):
            raise InputError(f"{title}: {key} is {value!r:.60}, but {needed} is needed.")
    if "measure" not in row:
        raise InputError(f"{title}: it has no measure: give {KEYS['measure'][1]}.")
    if "at_most" not in row and "at_least" not in row:
        raise InputError(f"{title}: it allows everything: give at_most or at_least.")
    measure = row["measure"]
    if ("zone" in row) != measure.startswith("zone"):
        told = "needs a zone" if measure.startswith("zone") else "is of no zone"
        raise InputError(f"{title}: {measure} {told}.")
    if "fill" in row and measure != "zone_effect":
        raise InputError(f"{title}: only zone_effect is of a fill, but the measure is {measure}.")
    given = {key: value for key, value in row.items() if key != "class"}
    classes = row.get("class", [])
    return Rule(number, classes=tuple(classes if isinstance(classes, list) else [classes]), **given)


def is_class(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def unknown(what: str, given: object, known: Any) -> str:
    """`There is no zone 'rin': did you mean 'rim'?`"""
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(given), names, n=1)
    if near:
        return f"there is no {what} {given!r}: did you mean {near[0]!r}?"
    listed = f"{', '.join(names[:12])}{' and so on' if len(names) > 12 else ''}"
    return f"there is no {what} {given!r}: there are {listed}."


# ---- judging


def check_rules(
    audit: Storage, rules: Sequence[Rule], against: Storage | None = None
) -> list[Judged]:
    """Hold an audit against rules; refuses rules that name what it does not have."""
    asked = read_asked(audit)
    for rule in rules:
        refuse_unknown(rule, asked)
    if against is None and any(rule.change for rule in rules):
        raise InputError(
            "A rule is about a change, but there is no audit to compare with: give --against, or "
            "against in the rules."
        )
    figures = read_figures(audit)
    changes: dict[int, ClassChange] = {}
    if against is not None and any(rule.change for rule in rules):
        found = compare_audits(against, audit)
        changes = {one.target: one for one in (*found.classes, found.overall)}
    return [judge(rule, asked, figures, changes) for rule in rules]


def refuse_unknown(rule: Rule, asked: Asked) -> None:
    if rule.zone is not None and rule.zone not in asked.zones:
        raise InputError(f"{rule.title}: {unknown('zone', rule.zone, asked.zones)}")
    if rule.fill is not None and rule.fill not in asked.fills:
        raise InputError(f"{rule.title}: {unknown('fill', rule.fill, asked.fills)}")
    for name in rule.classes:
        if name != ALL_IMAGES:
            index_of(name, asked, rule)


def index_of(name: str | int, asked: Asked, rule: Rule) -> int:
    """The class that a rule names."""
    if isinstance(name, int):
        if name < 0 or (asked.labels and name >= len(asked.labels)):
            last = f" 0 to {len(asked.labels) - 1}" if asked.labels else " 0 and up"
            raise InputError(f"{rule.title}: class {name} is unknown: there are{last}.")
        return name
    same = [index for index, label in enumerate(asked.labels) if label == name]
    if len(same) > 1:
        raise InputError(
            f"{rule.title}: {name!r} is the name of {len(same)} classes: give the index, "
            f"{join(list(map(str, same)), 'or')}."
        )
    if not same:
        if not asked.labels:
            raise InputError(f"{rule.title}: the classes have no names: give the index.")
        raise InputError(f"{rule.title}: {unknown('class', name, asked.labels)}")
    return same[0]


@dataclass(frozen=True)
class Row:
    """One figure that a rule is about."""

    label: str
    words: str  # "the share of the effect in the rim is"
    figure: Figure | None
    missing: str  # why there is no figure, where there is none


def judge(rule: Rule, asked: Asked, figures: Figures, changes: Mapping[int, ClassChange]) -> Judged:
    rows = list(rows_of(rule, asked, figures, changes))
    verdicts = [verdict_of(rule, row, len(rows)) for row in rows]
    verdicts.sort(key=lambda one: (WORST.index(one.state), -excess(rule, one.figure)))
    return Judged(rule, tuple(verdicts))


def rows_of(
    rule: Rule, asked: Asked, figures: Figures, changes: Mapping[int, ClassChange]
) -> Iterator[Row]:
    known = {one.target: one for one in figures.classes}
    chosen: list[tuple[str, ClassFigures | None]] = []
    for name in rule.classes or tuple(known):
        if name == ALL_IMAGES:
            chosen.append(("all images", figures.overall))
        else:
            index = index_of(name, asked, rule)
            chosen.append((repr(asked.label(index)), known.get(index)))
    fills = [rule.fill] if rule.fill else asked.fills if rule.measure == "zone_effect" else [""]
    for label, one in chosen:
        for fill in fills:
            noun = MEASURES[rule.measure].format(zone=place_name(rule.zone or ""), fill=fill)
            if figures.overall.accuracy is None and rule.measure != "accuracy":
                noun = noun.replace("decided rightly", "decided as it is in color")
            if one is None:
                yield Row(label, noun, None, "there are no images of it")
                continue
            figure, verb = figure_of(rule, fill, one), "is"
            if rule.change:
                both = changes.get(one.target)
                if both and both.n_left_out:
                    label = f"all images but {both.n_left_out:,} that are decided otherwise now"
                change = changed(rule, fill, both)
                figure, verb = change.by if change else None, "has changed by"
                if change and rule.measure == "zone_effect":
                    figure = change_of_size(change)
            elif rule.measure == "zone_effect":
                figure = sized(figure)
            yield Row(label, f"{noun} {verb}", figure, f"{noun} {MISSING[rule.measure]}")


def figure_of(rule: Rule, fill: str, one: ClassFigures) -> Figure | None:
    if rule.measure == "zone_share":
        return one.zones.get(rule.zone or "")
    if rule.measure == "zone_effect":
        return one.zone_effect.get(rule.zone or "", {}).get(fill)
    if rule.measure == "outer_flips":
        return one.outer.flips if one.outer else None
    found: Figure | None = getattr(one, rule.measure)
    return found


def changed(rule: Rule, fill: str, one: ClassChange | None) -> Change | None:
    if one is None:
        return None
    if rule.measure == "zone_share":
        return one.zones.get(rule.zone or "")
    if rule.measure == "zone_effect":
        return one.zone_effect.get(rule.zone or "", {}).get(fill)
    return one.color_share if rule.measure == "color_share" else one.rates.get(rule.measure)


def sized(figure: Figure | None) -> Figure | None:
    """An effect without its sign: a score that falls has moved as one that rises has."""
    if figure is None or not figure.low < figure.high:
        return figure and replace(
            figure, value=abs(figure.value), low=abs(figure.low), high=abs(figure.high)
        )
    ends = sorted((abs(figure.low), abs(figure.high)))
    low = 0.0 if figure.low <= 0 <= figure.high else ends[0]
    return replace(figure, value=abs(figure.value), low=low, high=ends[1])


def change_of_size(change: Change) -> Figure:
    """By how much an effect has grown, whatever its sign; as sure as the change itself."""
    grown = abs(change.after.value) - abs(change.before.value)
    flipped = change.by.value * grown < 0
    sides = (change.by.value - change.by.low, change.by.high - change.by.value)
    below, above = reversed(sides) if flipped else sides
    return replace(change.by, value=grown, low=grown - below, high=grown + above)


def verdict_of(rule: Rule, row: Row, n_rows: int) -> Verdict:
    figure = row.figure
    if figure is None:
        return Verdict("undecided", row.label, f"{row.label}: {row.missing}: undecided.")
    state, more = decide(rule, figure, n_rows)
    told = f"{row.label}: {row.words} {figure.value:.3g}"
    if not math.isfinite(figure.low) or not math.isfinite(figure.high):
        sides = f"({images(figure.n)}, too few to tell how sure that is)"
    else:
        sides = f"(between {figure.low:.3g} and {figure.high:.3g} at 95 %, {images(figure.n)})"
    hint = f": {more_words(more)}" if state == "undecided" else ""
    return Verdict(
        state, row.label, f"{told} {sides}, and {rule.allowed}: {state}{hint}.", figure, more
    )


def decide(rule: Rule, figure: Figure, n_rows: int) -> tuple[State, int | None]:
    """The verdict on one figure of so many, and how many more images would change it."""
    if not (math.isfinite(figure.low) and math.isfinite(figure.high)):
        return "undecided", None
    wide = widened(figure, n_rows)
    limits = [(1, rule.at_most), (-1, rule.at_least)]  # signed, so that more is worse
    sides = [
        (sign * limit, sorted((sign * figure.low, sign * figure.high)),
         sorted((sign * wide.low, sign * wide.high)), sign * figure.value)
        for sign, limit in limits if limit is not None
    ]  # fmt: skip
    if any(wide_low > limit for limit, _, (wide_low, _), _ in sides):
        return "violated", None
    if all(high <= limit for limit, (_, high), _, _ in sides):
        return "holds", None
    if rule.measure in SHARES and not rule.change:
        return "undecided", more_for_share(rule, figure, n_rows)
    needed = 0.0
    for limit, (_, high), (wide_low, _), value in sides:
        if high > limit:
            # An interval is as wide as one over the root of the images.
            reach = high - value if value <= limit else value - wide_low
            apart = abs(value - limit)
            needed = max(needed, (reach / apart) ** 2 if apart > 0 else math.inf)
    more = figure.n * (needed - 1)
    return "undecided", None if more > MOST_IMAGES else rounded(more)


def more_for_share(rule: Rule, figure: Figure, n_rows: int) -> int | None:
    """How many more images would tell, if as large a share of them are hits."""
    n, size = figure.n, n_alone(figure)
    while n < MOST_IMAGES:
        n = math.ceil(1.1 * n)
        more = n / figure.n
        low, high = share_ends(figure.value, more * size)
        then = Figure(figure.value, low, high, n, round(more * figure.n_groups))
        if decided(rule, then, n_rows):
            return rounded(n - figure.n)
    return None


def n_alone(figure: Figure) -> int:
    """How many images on their own would be as sure of a share as these are in their groups."""

    def narrow(n: int) -> float:
        low, high = share_ends(figure.value, n)
        return low - high

    return max(bisect(range(1, figure.n + 1), figure.low - figure.high, key=narrow), 1)


def decided(rule: Rule, figure: Figure, n_rows: int) -> bool:
    """Whether a rule holds or is violated, by one figure of so many."""
    wide = widened(figure, n_rows)
    over = rule.at_most is not None and wide.low > rule.at_most
    under = rule.at_least is not None and wide.high < rule.at_least
    most_held = rule.at_most is None or figure.high <= rule.at_most
    return over or under or (most_held and (rule.at_least is None or figure.low >= rule.at_least))


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


def excess(rule: Rule, figure: Figure | None) -> float:
    """How far beyond what is allowed, to sort by."""
    if figure is None:
        return -math.inf
    sides = [figure.value - rule.at_most] if rule.at_most is not None else []
    sides += [rule.at_least - figure.value] if rule.at_least is not None else []
    return max(sides)
