"""Suspects: classes that the model tells by something beside the object, most suspicious first.

A suspect is a trait of a class (a place around the object, the tone, the hues, the texture) that is
enough: images of other classes that are given it are taken for the class, far more often than when
the donors are of third classes. It was chosen on one half of the images; all its figures are of the
other half.
"""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..batch.storage import Row, Storage
from ..colors import BASICS, basic_colors
from ..interpretation.claims import join, sentence_case
from ..interpretation.regions import place_of
from .appearance import MOST_LOOKED_AT, differs
from .class_data import AuditInfo, BoolArray, FloatArray, IntArray
from .confirmation import half_of
from .stats import Estimate, crossed_share
from .tables import class_numbers, group_codes, read_parts, read_rows, read_thumbnails
from .transplants import (
    FIRST,
    N_GIVEN,
    N_LOCATED,
    N_MORE,
    N_SCREEN,
    SPOT_NAME,
    WIDE,
    Chosen,
    Index,
    Key,
    Pair,
    Planned,
    Transplant,
    nearest_classes,
    pairs,
    plan_refine,
)

LEAST_TO_REFINE, LEAST_HITS = 1, 3  # receivers of a trait: in the screen, and after a closer look
LEAST_EACH = 2  # receivers that each of two classes with the same trait turns into the other
TIMES_USUAL = 2  # how many times the share is that donors of other classes turn
MOST_TAKING, ALMOST = 2, 0.7  # classes that are given it afresh, and of the best one's score
LEAST_OVER = 0.05  # by which the share of a suspect exceeds that of other donors for sure
TIMES_CONTROL = 3  # how many times that share it is
WIDELY, LEAST_CLASSES = 0.5, 4  # images of so many classes turn by a spot, or it is the object's
MOST_TRAITS, MOST_CHOSEN = 3, 12  # that are tried afresh: of a class, and in all
AS_GOOD = 0.8  # of the best share: a trait that says more comes first
ALIKE = 0.5  # of the located places that a place must lie in
PART = 0.25  # of a place: it has a color if that much of it does
MOSTLY, MORE = 0.8, 0.5  # of the donors have a color in their place, and than of the receivers
MOST_SHOWN = 3
# What says most comes first, if it does about as much.
SPECIFIC = {"place": 0, "edge": 1, "color": 2, "tone": 2, "texture": 2, "wide": 3}


@dataclass(frozen=True, eq=False)
class Suspect(ArrayEq):
    """A class, and what is enough to be taken for it."""

    target: int
    label: str
    trait: str
    kind: str  # place, edge, tone, color, texture
    what: str  # in words: `its outermost edge`
    color: str  # the basic color that is there; empty: no single one
    near: tuple[str, ...]  # labels of the classes that are most like it, and were given the trait
    given: Estimate  # share of these that are then taken for the suspect
    anywhere: Estimate | None  # the same of all other classes
    control: Estimate | None  # the same with donors of third classes
    taken: Estimate | None  # share of the suspect's own decisions that change without the trait
    goes_to: str  # what most of these then are taken for
    also: tuple[str, ...] = ()  # other traits of the class that are enough, in words
    shared: tuple[str, ...] = ()  # labels of other classes that have the same trait
    shared_targets: tuple[int, ...] = ()  # their numbers
    region: BoolArray | None = field(default=None, repr=False)  # (R, R); None: all of the image
    sentence: str = ""

    @property
    def strength(self) -> float:
        """By which suspects are ranked: how much more than other donors do, and how widely."""
        over = self.given.value - (self.control.value if self.control else 0.0)
        return over + 0.5 * (self.anywhere or self.given).value

    @property
    def targets(self) -> tuple[int, ...]:
        """Its class, and those that share the trait."""
        return self.target, *self.shared_targets

    @property
    def is_part(self) -> bool:
        """Whether it is in a part of the image, and not in how all of it looks."""
        return self.kind in ("place", "edge")

    def is_that_of(self, other: "Suspect") -> bool:
        """Whether this is but another name of a suspect that more than one class has."""
        return self.target in other.targets and self.is_part == other.is_part

    @property
    def classes(self) -> str:
        """`'yield'`, or `'stop' and 'yield'` where they share the trait."""
        return join([repr(label) for label in (self.label, *self.shared)], "and")

    @property
    def headline(self) -> str:
        """`'yield' follows its outermost edge (purple)`."""
        color = f" ({self.color})" if self.color and self.color not in self.what else ""
        verb, what = "follows", self.what
        if self.shared:
            verb, what = "follow", re.sub("^its ", "their ", self.what)
        return f"{self.classes} {verb} {what}{color}"

    def to_json(self) -> dict[str, Any]:
        """As `summary.json` has it."""
        return {
            "class": self.label,
            "shared_with": list(self.shared),
            "kind": self.kind,
            "place": self.what if self.region is not None else None,
            "color": self.color or None,
            "given": self.given.value,
            "interval": [self.given.low, self.given.high],
            "given_to": list(self.near),
            "control": self.control and self.control.value,
            "taken": self.taken and self.taken.value,
            "goes_to": self.goes_to or None,
            "confirmed": True,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class SuspectSearch:
    """What the search for suspects came to."""

    suspects: tuple[Suspect, ...]
    n_calls: int
    n_classes: int  # whose images were given to others
    n_traits: int  # of each of them
    taken_for: dict[str, Estimate]  # of each class by its number: the strongest trait's share
    sees: float  # a share that is missed one time in twenty, in all that was asked together
    reason: str  # why nothing was tried; empty: it was
    untested: tuple[int, ...] = ()  # classes that the screen pointed to, but which were not retried
    places: float = 1.0  # share of the pairs in which there was room for each place
    n_sure: int = -1  # classes that `sees` is true of, those with images enough; -1: not known


# ---- what is known of the images


def read_index(folder: Storage, info: AuditInfo) -> Index:
    """Of an audit whose tables of images are written."""
    columns: dict[str, list[Any]] = {name: [] for name in ("image", "target", "predicted", "group")}
    halves, following = [], []
    for target in class_numbers(folder):
        rows = read_rows(folder, "images", target, "image", "predicted", "group", "runners_up")
        group = group_codes([row["image"] for row in rows], [row["group"] for row in rows])
        columns["image"] += [row["image"] for row in rows]
        columns["predicted"] += [row["predicted"] for row in rows]
        columns["target"] += len(rows) * [target]
        columns["group"] += group
        halves += half_of(np.array(group), info.seed).tolist()
        following += [row["runners_up"] for row in rows]
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    nearest = nearest_classes(arrays["target"], np.array(following, np.int64))
    return Index(**arrays, half=np.array(halves, np.int64), nearest=nearest)


def read_outcomes(folder: Storage) -> list[Row]:
    """All rows of the table of transplants."""
    return [
        row
        for target in class_numbers(folder, "transplants")
        for row in read_parts(folder, "transplants", target).to_pylist()
    ]


def why_not(index: Index) -> str:
    """Why no class can be given to others; empty if it can."""
    if len(np.unique(index.target)) < 2:
        return "all images are of one class, so there is no other to give anything to"
    if not index.classes:
        return (
            "no class has four images that the model gets right, two to look for something and "
            "two to confirm it; more images are needed"
        )
    return ""


# ---- the steps of the search


class Looks:
    """How often the screen took receivers for which class, by trait and by the donors' class."""

    def __init__(self, rows: Iterable[Row], index: Index) -> None:
        target = dict(zip(index.image.tolist(), index.target.tolist(), strict=True))
        self.rows: dict[Key, list[tuple[int, int, float]]] = {}  # receiver's class, said, score
        for row in rows:
            if row["role"] in ("screen", "refine"):
                one = target[row["image"]], row["predicted"], row["score"]
                self.rows.setdefault((row["suspect"], row["trait"]), []).append(one)

    def n_asked(self, key: Key, but: Collection[int] = ()) -> int:
        """Receivers of a class's trait, but for those of some classes."""
        return sum(own not in but for own, *_ in self.rows.get(key, ()))

    def n_taken(self, key: Key, to: Collection[int]) -> int:
        """Receivers that were not of these classes before and then are taken for one of them."""
        return sum(said in to and own not in to for own, said, _ in self.rows.get(key, ()))

    def usual(self, key: Key, to: Collection[int]) -> float:
        """The share that donors of other classes turn into one of these classes."""
        others = [one for one in self.rows if one[1] == key[1] and one[0] not in (key[0], *to)]
        asked = sum(self.n_asked(one, to) for one in others)
        return sum(self.n_taken(one, to) for one in others) / max(asked, 1)

    def is_unusual(self, key: Key, to: Collection[int]) -> bool:
        share = self.n_taken(key, to) / max(self.n_asked(key, to), 1)
        return share > TIMES_USUAL * self.usual(key, to)

    def is_beside(self, key: Key, share: float) -> bool:
        """Whether a spot does too much to be a part of the object, such as other classes have."""
        others = [self.n_taken(one, one[:1]) / self.n_asked(one, one[:1])
                  for one in self.rows if one[1] == key[1] and one[0] != key[0]]  # fmt: skip
        usual = float(np.median(others)) if others else 0.0
        return share >= max(WIDELY, TIMES_USUAL * usual)

    def shared(self, key: Key) -> tuple[int, ...]:
        """Other classes that have the same trait: donors of each make receivers the other."""
        c, trait = key
        return tuple(
            other
            for other in sorted({said for _, said, _ in self.rows[key]} - {c})
            if all(
                self.n_taken((one, trait), (two,)) >= LEAST_EACH
                and self.is_unusual((one, trait), (two,))
                for one, two in ((c, other), (other, c))
            )
        )

    def taking(self, key: Key, having: Collection[int]) -> tuple[int, ...]:
        """The classes whose images took most: the best, and others that are almost as good."""
        scores: dict[int, list[float]] = {}
        for own, said, score in self.rows[key]:
            if own not in having:
                scores.setdefault(own, []).append((said in having) + score)
        means = {own: float(np.mean(some)) for own, some in scores.items()}
        order = sorted(means, key=lambda own: (-means[own], own))
        if key[1] == SPOT_NAME:
            return tuple(order)
        least = ALMOST * means[order[0]] if order else 0.0
        return tuple(own for own in order[:MOST_TAKING] if means[own] >= least)

    def found(self, least: int) -> dict[Key, tuple[int, ...]]:
        """Traits that took at least so many, the strongest first, with the classes that share
        them."""
        shared = {key: self.shared(key) for key in self.rows}
        share = {}
        for key, others in shared.items():
            having = (key[0], *others)
            n, asked = self.n_taken(key, having), self.n_asked(key, having)
            beside = key[1] != SPOT_NAME or self.is_beside(key, n / max(asked, 1))
            if n >= least and self.is_unusual(key, having) and beside:
                share[key] = n / asked
        return {key: shared[key] for key in sorted(share, key=lambda key: (-share[key], key))}

    def good(self, least: int, per_class: int) -> tuple[Chosen, dict[Key, tuple[int, ...]]]:
        """Those of the traits found that are to be tried again; and who shares them."""
        shared = self.found(least)
        chosen: Chosen = {}
        for key in shared:
            enough = sum(key[0] == c for c, _ in chosen) >= per_class
            if not enough and len(chosen) < MOST_CHOSEN:
                chosen[key] = self.taking(key, (key[0], *shared[key]))
        return chosen, {key: shared[key] for key in chosen}


def plan_closer(rows: Iterable[Row], index: Index, info: AuditInfo) -> Planned:
    """What the screen found, on more receivers; and the parts of a place that did something."""
    screened = [row for row in rows if row["role"] == "screen"]  # as before the closer look
    promising, _ = Looks(screened, index).good(LEAST_TO_REFINE, MOST_TRAITS)
    kinds = {name: kind for name, kind, _ in info.traits}
    parts = {
        c: [name for name in kinds if name not in FIRST]
        for c, trait in promising
        if kinds[trait] in ("place", "edge") and trait != SPOT_NAME
    }
    return plan_refine(index, promising, parts, info.seed)


def choose(rows: Iterable[Row], index: Index) -> tuple[Chosen, dict[Key, tuple[int, ...]]]:
    """The traits that are to be tried afresh, with the classes that took most; and who shares."""
    return Looks(rows, index).good(LEAST_HITS, MOST_TRAITS)


def plan_locate(rows: Sequence[Row], index: Index, info: AuditInfo) -> Planned:
    """Where a suspect's trait is, in receivers that were taken for it; and pictures to show."""
    for suspect in confirmed_traits(rows, index, info):
        hit = [
            row
            for row in rows
            if (row["suspect"], row["trait"]) == (suspect.target, suspect.trait)
            and row["role"] == "given"
            and row["predicted"] in suspect.targets
        ]
        chosen: list[Row] = []  # each donor once, and first each receiver once
        hit.sort(key=lambda row: (-row["score"], row["image"], row["donor"]))
        for names in (("image", "donor"), ("donor",)):
            for row in hit:
                if not any(row[name] == one[name] for one in chosen for name in names):
                    chosen.append(row)
        for row in chosen[:N_LOCATED]:
            again = Transplant(row["trait"], row["suspect"], "locate", row["donor"], row["near"])
            yield row["image"], again


def confirmed_traits(rows: Sequence[Row], index: Index, info: AuditInfo) -> list[Suspect]:
    """Every class with the trait that says most of those that are enough."""
    looks, by_key = Looks(rows, index), grouped(rows)
    found: dict[int, list[Suspect]] = {}
    for key, own in sorted(by_key.items()):
        if any(row["role"] == "given" for row in own):
            one = weigh(key, own, index, info, looks.shared(key))
            if is_enough(one):
                found.setdefault(key[0], []).append(one)
    leading = []
    for some in found.values():
        best = max(one.given.value for one in some)
        good = [one for one in some if one.given.value >= AS_GOOD * best]
        first = min(good, key=lambda one: (specific(one), -one.given.value))
        also = tuple(one.what for one in some if one is not first)
        leading.append(replace(first, also=also))
    leading.sort(key=lambda one: (-one.strength, one.target))
    return [
        one
        for n, one in enumerate(leading)
        if not any(one.is_that_of(other) for other in leading[:n])
    ]


def grouped(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    """Rows by class and trait."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault((row["suspect"], row["trait"]), []).append(row)
    return found


def is_enough(one: Suspect) -> bool:
    """Whether the trait does for sure more than that of other donors, and several times as much."""
    usual = one.control.value if one.control else 0.0
    if is_of_object(one):
        return False
    low = over_control(one.given, one.control).low
    return low > LEAST_OVER and one.given.value >= TIMES_CONTROL * usual


def is_of_object(one: Suspect) -> bool:
    """Whether it is a spot that may be a part of the object: that tells few classes apart."""
    few = one.given.value < WIDELY or len(one.near) < LEAST_CLASSES
    return one.trait == SPOT_NAME and few


def over_control(given: Estimate, control: Estimate | None) -> Estimate:
    """By how much a share exceeds that of other donors, at least 0.

    The interval of the difference is that of Newcombe: from those of both shares.
    """
    if control is None:
        return given
    over = given.value - control.value
    low = np.hypot(given.value - given.low, control.high - control.value)
    high = np.hypot(given.high - given.value, control.value - control.low)
    value, low, high = (float(max(x, 0.0)) for x in (over, over - low, over + high))
    return replace(given, value=value, low=low, high=high)


def specific(one: Suspect) -> int:
    return SPECIFIC["wide" if one.trait in WIDE else one.kind]


def weigh(
    key: Key, rows: Sequence[Row], index: Index, info: AuditInfo, shared: Sequence[int] = ()
) -> Suspect:
    """The figures of one trait of one class, of the images that it was not chosen on.

    Where other classes share the trait, to be taken for one of them counts as well.
    """
    target, trait = key
    kind, phrase = next((kind, phrase) for name, kind, phrase in info.traits if name == trait)
    before = dict(zip(index.image.tolist(), index.predicted.tolist(), strict=True))

    def estimate(role: str, near: bool | None, taken: bool = False) -> Estimate | None:
        some = [row for row in rows if row["role"] == role and near in (None, row["near"])]
        hits = [
            row["predicted"] != before[row["image"]]
            if taken
            else row["predicted"] in (target, *shared)
            for row in some
        ]
        return share_of_pairs(some, hits, index)

    given_to = {row["image"] for row in rows if row["role"] == "given" and row["near"]}
    nearest = np.unique(index.target[np.isin(index.image, list(given_to))]).tolist()
    given = estimate("given", True) or estimate("given", None)
    assert given is not None
    gone = Counter(
        row["predicted"]
        for row in rows
        if row["role"] == "taken" and row["predicted"] != before[row["image"]]
    )
    return Suspect(
        target=target,
        label=info.label(target),
        trait=trait,
        kind=kind,
        what=f"its {phrase}",
        color="",
        near=tuple(info.label(c) for c in nearest),
        shared=tuple(info.label(c) for c in shared),
        shared_targets=tuple(shared),
        given=given,
        anywhere=estimate("given", False),
        control=estimate("control", True),
        taken=estimate("taken", None, taken=True),
        goes_to=info.label(gone.most_common(1)[0][0]) if gone else "",
    )


def share_of_pairs(rows: Sequence[Row], hits: Sequence[bool], index: Index) -> Estimate | None:
    """The share of pairs of donor and receiver that are hits."""
    group = dict(zip(index.image.tolist(), index.group.tolist(), strict=True))
    donors, receivers = ([group[row[name]] for row in rows] for name in ("donor", "image"))
    return crossed_share(np.array(hits, bool), np.array(donors), np.array(receivers))


# ---- what it all comes to


def find_suspects(folder: Storage, info: AuditInfo) -> SuspectSearch:
    """From the tables of an audit."""
    index, rows = read_index(folder, info), read_outcomes(folder)
    located = [one for one in rows if one["role"] == "locate"]
    needed = {one[name] for one in located for name in ("donor", "image")}
    pixels = {
        row["image"]: np.frombuffer(row["pixels"], np.uint8).reshape(info.raster, info.raster, 3)
        for target in np.unique(index.target[np.isin(index.image, list(needed))]).tolist()
        for row in read_rows(folder, "images", target, "image", "pixels")
    }
    found = []
    for one in confirmed_traits(rows, index, info):
        shown = list(rows_of(one, located))
        placed = with_place(one, shown, pixels, info)
        found.append(with_sentence(with_look(placed, folder, index)))
    looks, by_key = Looks(rows, index), grouped(rows)
    screened = [one for one in rows if one["role"] == "screen"]
    afresh = [
        weigh(key, some, index, info, looks.shared(key))
        for key, some in by_key.items()
        if any(one["role"] == "given" for one in some)
    ]
    tried = {c for one in afresh for c in one.targets}
    untested = sorted({c for c, _ in looks.found(LEAST_HITS)} - tried)
    shares = {
        c: taken_for(c, afresh, by_key, looks, index)
        for c in sorted({one["suspect"] for one in screened} - {*untested})
    }
    seen = [share for share in smallest_seen(by_key, index, info) if share < 1]
    return SuspectSearch(
        suspects=tuple(found),
        n_calls=len(rows),
        n_classes=len({one["suspect"] for one in screened}),
        n_traits=len({one["trait"] for one in screened}),
        taken_for={str(c): share for c, share in shares.items() if share},
        sees=max(seen, default=1.0),
        reason=why_not(index) or ("no image could be given anything" if not screened else ""),
        untested=tuple(untested),
        places=room_for_places(screened, info),
        n_sure=len(seen),
    )


def room_for_places(screened: Sequence[Row], info: AuditInfo) -> float:
    """The share of pairs in which the place that could be given least often was given."""
    n = Counter(row["trait"] for row in screened)
    kinds = {name: kind for name, kind, _ in info.traits if name in FIRST and name != SPOT_NAME}
    places = [n[name] for name, kind in kinds.items() if kind in ("place", "edge")]
    return min(places, default=0) / max(n.values(), default=1)


def taken_for(
    target: int,
    afresh: Sequence[Suspect],
    by_key: Mapping[Key, Sequence[Row]],
    looks: Looks,
    index: Index,
) -> Estimate | None:
    """The share of other images that become a class by its strongest trait, over that of others.

    Where nothing was tried afresh, it is what the screen saw: nothing, or little, of so many.
    """
    shares = [
        over_control(one.given, one.control)
        for one in afresh
        if target in one.targets and not is_of_object(one)
    ]
    if shares:  # the largest is no smaller than any, and no larger than the highest end
        surest = max(shares, key=lambda one: (np.nan_to_num(one.low, nan=-1.0), one.value))
        return replace(surest, high=max(float(np.nan_to_num(one.high, nan=1.0)) for one in shares))
    own = {*index.image[index.target == target].tolist()}
    for (c, trait), rows in by_key.items():
        if c == target and trait != SPOT_NAME:
            some = [row for row in rows if row["role"] in ("screen", "refine")]
            hits = [row["predicted"] == c and row["image"] not in own for row in some]
            if one := share_of_pairs(some, hits, index):
                usual = looks.usual((c, trait), (c,))
                high = 1.0 if np.isnan(one.high) else max(one.high - usual, 0.0)
                value = max(one.value - usual, 0.0)
                shares.append(replace(one, value=value, low=0.0, high=high))
    return max(shares, key=lambda one: (one.high, one.value), default=None)


def rows_of(one: Suspect, rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if (row["suspect"], row["trait"]) == (one.target, one.trait))


def smallest_seen(
    by_key: Mapping[Key, Sequence[Row]], index: Index, info: AuditInfo
) -> Iterator[float]:
    """For each class, a share of other images that the search misses one time in twenty.

    Over all classes and traits together. Single spots go by another rule, and are not counted.
    """
    screened = {
        key: n
        for key, rows in by_key.items()
        if key[1] != SPOT_NAME and (n := sum(row["role"] == "screen" for row in rows))
    }
    for c in sorted({c for c, _ in screened}):
        n_screen = min(n for key, n in screened.items() if key[0] == c)
        nearest = index.nearest[c]
        n_more = len(pairs(index, c, nearest, 0, N_SCREEN + N_MORE, info.seed)) - n_screen
        given = pairs(index, c, nearest[:1], 1, N_GIVEN, info.seed)
        yield sensitivity(n_screen, max(n_more, 0), given, 0.05 / len(screened))


def sensitivity(n_screen: int, n_more: int, given: Sequence[Pair], missed: float) -> float:
    """The smallest share that a search with so many pairs misses with this chance at most."""
    from scipy.special import bdtr  # scipy.stats takes a second to import

    n = len(given)
    receivers, donors = np.array(given or [(0, 0)]).T
    control = crossed_share(np.zeros(len(donors), bool), donors, receivers)
    orders = [np.random.default_rng(seed).permutation(len(donors)) for seed in range(8)]

    def is_seen(n_hits: int) -> bool:
        shares = [crossed_share(order < n_hits, donors, receivers) for order in orders]
        return all(one and over_control(one, control).low > LEAST_OVER for one in shares)

    enough = 1 + bisect(range(1, n + 1), False, key=is_seen)
    for share in np.arange(0.01, 1, 0.01):
        few = bdtr(LEAST_HITS - 1, n_more, share) if n_more >= LEAST_HITS else 1.0
        none = (1 - share) ** n_screen
        found = 1 - bdtr(LEAST_HITS - 1, n_screen + n_more, share) - none * (1 - few)
        if enough <= n and found * (1 - bdtr(enough - 1, n, share)) >= 1 - missed:
            return float(share)
    return 1.0


def with_place(
    one: Suspect, shown: Sequence[Row], pixels: Mapping[int, NDArray[np.uint8]], info: AuditInfo
) -> Suspect:
    """Where it is and of which color, by the places that were located in single images."""
    size = info.raster
    places = [
        np.unpackbits(np.frombuffer(row["region"], np.uint8), count=size**2).reshape(size, size) > 0
        for row in shown
        if row["region"] is not None
    ]
    if not places:
        return one
    common = np.mean(places, axis=0) >= ALIKE
    donors, receivers = ([row[name] for row in shown if row["region"] is not None]
                         for name in ("donor", "image"))  # fmt: skip
    named = color_of([pixels[n] for n in donors], [pixels[n] for n in receivers], places)
    what, kind, region, some = one.what, one.kind, common, f"something {named}".rstrip()
    if common.mean() < 0.5 * np.mean([place.mean() for place in places]):
        what, kind = f"{some}, in another place in each image", "place"
        region = np.any(places, axis=0)
    elif not spans(common):
        what, kind = f"{some} in {place_of(common)}", "place"
    return replace(one, what=what, kind=kind, region=region, color=named)


def with_look(one: Suspect, folder: Storage, index: Index) -> Suspect:
    """How the class's images differ from others, where the trait is one of all of the image."""
    if one.region is not None:
        return one
    own = index.target == one.target
    pictures = [
        list(read_thumbnails(folder, spread(index.image[some])).values()) for some in (own, ~own)
    ]
    how = differs(one.trait, *pictures)
    return replace(one, what=f"{one.what} ({how} than in other classes)") if how else one


def spread(numbers: IntArray) -> list[int]:
    """Some of many, evenly."""
    most = min(MOST_LOOKED_AT, len(numbers))
    return [int(n) for n in numbers[np.linspace(0, len(numbers) - 1, most).astype(int)]]


def color_of(
    donors: Sequence[NDArray[np.uint8]],
    receivers: Sequence[NDArray[np.uint8]],
    places: Sequence[BoolArray],
) -> str:
    """The basic color that most donors have in their place (R, R), far more than receivers had.

    Pixels (R, R, 3) each; empty: there is no such color.
    """

    def shares(images: Sequence[NDArray[np.uint8]]) -> FloatArray:
        names = [basic_colors(one)[place] for one, place in zip(images, places, strict=True)]
        return np.array([np.bincount(some, minlength=len(BASICS)) / len(some) for some in names])

    own, others = shares(donors), shares(receivers)
    has, had = ((some >= PART).mean(axis=0) for some in (own, others))
    fits = (has >= MOSTLY) & (has - had >= MORE)
    more = own.mean(axis=0) - others.mean(axis=0)  # of the place: a rim of mixed pixels is less
    return BASICS[int(np.argmax(np.where(fits, more, -1)))] if fits.any() else ""


def spans(region: BoolArray) -> bool:
    """Whether a region reaches over all of the image, so that its trait names it best."""
    return bool(min(region.any(axis=axis).mean() for axis in (0, 1)) > 0.8)


def sentences(one: Suspect) -> list[str]:
    """What is said of a suspect, the most important first."""
    near = f"{join([repr(label) for label in one.near], 'and') or 'other classes'} images"
    if len(one.near) > MOST_SHOWN:
        near = f"the images of {len(one.near)} other classes"
    lines = [f"{sentence_case(one.headline)}."]
    either = join([repr(label) for label in (one.label, *one.shared)], "or")
    given = f"Given to {near}, it turns {share_words(one.given)} of them into {either}"
    if one.control:
        given += f"; what other classes have there turns {share_words(one.control)}"
    lines.append(f"{given}.")
    if one.taken:
        goes = f", most often to {one.goes_to!r}" if one.goes_to else ""
        own = f"{share_words(one.taken)} of {one.label!r} images"
        lines.append(f"When it is taken away, {own} change class{goes}.")
    if one.also:
        lines.append(f"Giving only {join(one.also, 'or')} does it too.")
    return lines


def with_sentence(one: Suspect) -> Suspect:
    return replace(one, sentence=" ".join(sentences(one)))


def share_words(estimate: Estimate) -> str:
    """`67% (33 to 91%)`."""
    value = f"{100 * estimate.value:.0f}%"
    if np.isnan(estimate.low):
        return value
    return f"{value} ({100 * estimate.low:.0f} to {100 * estimate.high:.0f}%)"
