"""Rules: what an audit must show before a model may be released.

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
"""

import difflib
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from .._util.validation import toml
from ..errors import InputError
from ..interpretation.claims import join
from .class_data import LIGHTS, AuditInfo
from .class_stats import AuditStats

ALL_IMAGES = "all"
LARGEST = sys.float_info.max
MEASURES = {  # what they are called in a sentence
    "color_share": "the share of the effect that is color",
    "zone_share": "the share of the effect in {zone}",
    "zone_effect": "the change of the score by {fill} under masks, on average over {zone},",
    "accuracy": "the share decided rightly",
    **{f"accuracy_{light}": f"the share decided rightly {how}" for light, how in LIGHTS.items()},
    "background_flip_rate": "the share of decisions that change when the whole {outer} is painted",
    "suspect": "whether it is a suspect",
    "taken_for": "the share of images of other classes that become it when they are given its "
    "strongest trait, beyond those that other donors turn,",
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
    def in_percent(self) -> bool:
        """Whether its figure is a share of images, which is shown in percent."""
        shares = ("accuracy", "background_flip_rate", "taken_for")
        return self.measure.startswith(shares) and not self.change

    def shown(self, value: float, digits: str = ".3g") -> str:
        """A figure of the rule, in its unit."""
        return f"{100 * value:{digits}}%" if self.in_percent else f"{value:{digits}}"

    @property
    def allowed(self) -> str:
        sides = [
            f"at {side} {self.shown(limit, 'g')} is {verb}"
            for side, limit, verb in (
                ("most", self.at_most, "allowed"), ("least", self.at_least, "required")
            )
            if limit is not None
        ]  # fmt: skip
        return join(sides, "and")


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


ClassName = str | int
Limit = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
KEYS: dict[str, tuple[Any, str]] = {
    "name": (str, "a name"),
    "class": (ClassName | Annotated[list[ClassName], Meta(min_length=1)],
              "a label, an index or a list of them"),
    "measure": (Literal[tuple(MEASURES)], f"one of {', '.join(MEASURES)}"),
    "zone": (str, "the name of a zone"),
    "fill": (str, "the name of a color or fill"),
    "at_most": (Limit, "a number"),
    "at_least": (Limit, "a number"),
    "change": (bool, "true or false"),
}  # fmt: skip


def read_rule(row: Mapping[str, Any], number: int) -> Rule:
    title = row.get("name") if isinstance(row.get("name"), str) else f"rule {number}"
    for key, value in row.items():
        if key not in KEYS:
            raise InputError(f"{title}: {unknown('key', key, KEYS)}")
        kind, needed = KEYS[key]
        try:
            msgspec.convert(value, kind)
        except ValueError:
            raise InputError(f"{title}: {key} is {value!r:.60}, but {needed} is needed.") from None
    if "measure" not in row:
        raise InputError(f"{title}: it has no measure: give {KEYS['measure'][1]}.")
    if "at_most" not in row and "at_least" not in row:
        raise InputError(f"{title}: it allows everything: give at_most or at_least.")
    measure = row["measure"]
    if ("zone" in row) != measure.startswith("zone"):
        told = "needs a zone" if measure.startswith("zone") else "is of no zone"
        raise InputError(f"{title}: {measure} {told}.")
    if row.get("change") and measure in ("suspect", "taken_for"):
        raise InputError(f"{title}: {measure} has no change: compare suspects by `mcrise diff`.")
    if "fill" in row and measure != "zone_effect":
        raise InputError(f"{title}: only zone_effect is of a fill, but the measure is {measure}.")
    given = {key: value for key, value in row.items() if key != "class"}
    classes = row.get("class", [])
    return Rule(number, classes=tuple(classes if isinstance(classes, list) else [classes]), **given)


def suggested_rules(stats: AuditStats) -> str:
    """Rules to begin with, as TOML: no suspect, and no worse than this audit."""
    rules = """# What the model must show before it is released: mcrise check AUDIT --rules FILE

[[rule]]
name = "no class follows something beside its object"
measure = "suspect"
at_most = 0

[[rule]]
name = "no trait of a class turns half of the images of other classes into it"
measure = "taken_for"
at_most = 0.5
"""
    right = stats.overall.accuracy
    if right is None or not right.low > 0:
        return rules
    return f"""{rules}
[[rule]]
name = "it is right as often as now"
measure = "accuracy"
class = "all"
at_least = {math.floor(100 * right.low) / 100}
"""


def unknown(what: str, given: object, known: Any) -> str:
    """`There is no zone 'rin': did you mean 'rim'?`"""
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(given), names, n=1)
    if near:
        return f"there is no {what} {given!r}: did you mean {near[0]!r}?"
    listed = f"{', '.join(names[:12])}{' and so on' if len(names) > 12 else ''}"
    return f"there is no {what} {given!r}: there are {listed}."


def refuse_unknown(rule: Rule, info: AuditInfo) -> None:
    if rule.zone is not None and rule.zone not in info.zones:
        raise InputError(f"{rule.title}: {unknown('zone', rule.zone, info.zones)}")
    if rule.fill is not None and rule.fill not in info.fills:
        raise InputError(f"{rule.title}: {unknown('fill', rule.fill, info.fills)}")
    for name in rule.classes:
        if name != ALL_IMAGES:
            index_of(name, info, rule)


def index_of(name: str | int, info: AuditInfo, rule: Rule) -> int:
    """The class that a rule names."""
    if isinstance(name, int):
        if name < 0 or (info.labels and name >= len(info.labels)):
            last = f" 0 to {len(info.labels) - 1}" if info.labels else " 0 and up"
            raise InputError(f"{rule.title}: class {name} is unknown: there are{last}.")
        return name
    same = [index for index, label in enumerate(info.labels) if label == name]
    if len(same) > 1:
        raise InputError(
            f"{rule.title}: {name!r} is the name of {len(same)} classes: give the index, "
            f"{join(list(map(str, same)), 'or')}."
        )
    if not same:
        if not info.labels:
            raise InputError(f"{rule.title}: the classes have no names: give the index.")
        raise InputError(f"{rule.title}: {unknown('class', name, info.labels)}")
    return same[0]
