"""Difference: what one audit depends on more or less than another, image by image.

Both must be of the same images under the same masks. Then an image is compared with itself, and
what images differ in drops out: intervals are over images of the change within each.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.array_eq import ArrayEq
from ..batch.storage import Storage
from ..errors import InputError
from ..interpretation.claims import join
from ..maps import Maps
from .class_data import LIGHTS, AuditInfo, BoolArray, ClassData, FloatArray, class_maps
from .class_findings import (
    Candidate,
    ClassFinding,
    candidates,
    describe,
    largest_by_chance,
    names,
    too_few,
)
from .class_stats import AuditStats, joined, read_stats, without_maps
from .confirmation import SAME
from .figures_json import reporting_damage, to_jsonable, unfinished_error
from .paired_stats import Change, accuracy, flips_change, mean_change, rate, share_change
from .stats import bonferroni, mean_maps, threshold, z_maps
from .suspects import Suspect
from .tables import NOTE, class_numbers, read_asked, read_class

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

APART = 12.0  # mean difference of pixels of 255, from where on two pictures are not the same one
MOST_DRAWN = 3  # classes
MOST_TOLD = 10  # sentences of a kind
SEED = 0  # of flipped signs


@dataclass(frozen=True, eq=False)
class ClassChange(ArrayEq):
    """What changed in the images of a class."""

    target: int  # ALL: over all classes
    label: str
    n: int  # images that both audits have of it
    rates: dict[str, Change]  # accuracy, accuracy_gray, ..., background_flip_rate
    color_share: Change | None
    zones: dict[str, Change]  # share of the effect
    zone_effect: dict[str, dict[str, Change]]  # by zone and fill
    findings: tuple[ClassFinding, ...] = ()  # of the difference of the maps, the largest first
    maps: tuple[Maps, ...] = ()  # before, after, difference
    too_few: str | None = None  # why its maps were not compared
    n_left_out: int = 0  # images that the two audits have in different classes

    @property
    def largest(self) -> float:
        """By which the score moves more or less than before, at any place that counts."""
        return max((abs(one.effect.value) for one in self.findings), default=0.0)


@dataclass(frozen=True, eq=False)
class Difference(ArrayEq):
    """All classes, and what they come to."""

    classes: tuple[ClassChange, ...]
    overall: ClassChange
    threshold: float  # of |z|
    before: str  # which model it was
    after: str
    suspects: tuple[str, ...] = ()  # sentences on those that are new or gone, new ones first

    def changed(self) -> list[ClassChange]:
        """Classes whose maps differ beyond chance, most first."""
        found = [one for one in self.classes if one.findings]
        return sorted(found, key=lambda one: -one.largest)

    def lines(self, info: AuditInfo) -> list[str]:
        """To print."""
        whole = self.overall
        left = f" ({whole.n_left_out:,} more are predicted differently now and left out)"
        out = [
            f"From {self.before} to {self.after}, {whole.n:,} images, each with itself"
            f"{left * bool(whole.n_left_out)}:"
        ]
        out += [f"- {line}" for line in self.suspects]
        told = [
            f"- {finding_sentence(finding, one.label, info)}"
            for one in self.changed()
            for finding in one.findings
        ]
        out += told[:MOST_TOLD]
        if len(told) > MOST_TOLD:
            out.append(f"- and {len(told) - MOST_TOLD} more.")
        few = sum(one.too_few is not None for one in self.classes)
        if few == len(self.classes):
            out.append("- No class has enough images to tell where effects changed.")
        elif not told:
            but = f" ({few} more had too few images)" if few else ""
            n = len(self.classes) - few
            out.append(
                f"- No place and color moves the score significantly more or less than before, in "
                f"{n} class{'es' * (n > 1)}{but}."
            )
        stats = [*self.sure_changes()]
        out += [f"- {line}" for line in stats[:MOST_TOLD]]
        if len(stats) > MOST_TOLD:
            out.append(f"- and {len(stats) - MOST_TOLD} more in the table.")
        rates = [f"{NAMES[name]} {change}" for name, change in whole.rates.items()]
        if whole.color_share:
            rates.append(f"color share {whole.color_share}")
        return [*out, *([f"Over all classes: {join(rates, 'and')}."] if rates else [])]

    def sure_changes(self) -> Iterator[str]:
        """Shares and rates of classes that changed, in spite of how many were looked at."""
        rows = [
            (one, f"the share of the effect that is {what}", change)
            for one in self.classes
            for what, change in shares_of(one)
        ]
        rows += [(one, NAMES[name], change) for one in self.classes
                 for name, change in one.rates.items()]  # fmt: skip
        rows.sort(key=lambda row: -abs(row[2].by.value))
        for one, what, change in rows:
            if bonferroni(change.by, len(rows)).excludes_zero:
                yield f"{one.label!r}: {what} {change}."

    def to_json(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "threshold": to_jsonable(self.threshold),
            "suspects": list(self.suspects),
            "classes": [
                to_jsonable(replace(one, maps=())) for one in (*self.classes, self.overall)
            ],
        }


def suspect_changes(before: AuditStats, after: AuditStats) -> tuple[str, ...]:
    """Suspects that are new or gone, the strongest first.

    The same trait may have another name now. Of classes that share one, all are named.
    """
    old, new = (() if one.search is None else one.search.suspects for one in (before, after))
    new = tuple(sorted(new, key=lambda one: -one.strength))
    came = [f"New suspect: {one.headline}." for one in new if is_new(one, old)]
    gone = [
        f"No longer a suspect: {one.headline}."
        for one in sorted(old, key=lambda one: -one.strength)
        if is_new(one, new)
    ]
    return (*came, *gone)


def is_new(one: Suspect, others: Sequence[Suspect]) -> bool:
    """Whether a class of a suspect follows nothing of its kind (a part, or the look) in others."""
    return any(
        all(target not in other.targets or one.is_part != other.is_part for other in others)
        for target in one.targets
    )


NAMES = {
    "accuracy": "right",
    **{f"accuracy_{light}": f"decided as its class {how}" for light, how in LIGHTS.items()},
    "background_flip_rate": "decisions that change when the whole background is painted",
}


def shares_of(one: ClassChange) -> Iterator[tuple[str, Change]]:
    if one.color_share:
        yield "color", one.color_share
    for zone, change in one.zones.items():
        yield f"in {place_name(zone)}", change


def place_name(zone: str) -> str:
    """`the rim`; a zone of one's own by its name."""
    return f"the {zone}" if zone.replace(" ", "").isalpha() else repr(zone)


def finding_sentence(finding: ClassFinding, label: str, info: AuditInfo) -> str:
    """`'stop', the lower right: painted yellow the score is 0.31 higher than before.`"""
    effect = finding.effect
    way = "higher" if finding.sign > 0 else "lower"
    return (
        f"{label!r}, {finding.place} ({100 * finding.region.mean():.0f}% of the image): painted "
        f"{names(info, finding.fills)} the score is {abs(effect.value):.2g} {way} than before "
        f"under random masks [{effect.low:+.2g}, {effect.high:+.2g}] ({effect.n} images)."
    )


# ---- making it


def compare_audits(before: Storage, after: Storage) -> Difference:
    """Compare two audits class by class; refuses what is not of the same images and masks."""
    check_alike(before, after)
    with reporting_damage(after):
        return compared(before, after)


def compared(before: Storage, after: Storage) -> Difference:
    for folder in (before, after):
        if not class_numbers(folder):
            raise unfinished_error(folder)
    info = read_asked(after)
    made: list[ClassChange] = []
    largest = np.zeros(0)
    tested: list[FloatArray] = []  # |z| (K, R, R) of each difference, by the test that finds most
    stats = [read_stats(folder) for folder in (before, after)]
    limits = [one.threshold for one in stats]
    numbers: tuple[list[ClassData], list[ClassData]] = ([], [])
    for target in sorted({*class_numbers(before)} & {*class_numbers(after)}):
        pair = paired(read_class(before, target), read_class(after, target))
        if pair is None:
            continue
        one, other = pair
        label = info.label(target)
        tests = differences(one, other)
        z = [z_maps(class_data.tested, class_data.group) for class_data in (one, other)]
        beyond = [np.abs(own) > least for own, least in zip(z, limits, strict=True)]
        found: tuple[ClassFinding, ...] = ()
        few = too_few(len(one), len(np.unique(one.group)))
        if few is None:
            own = np.max([largest_by_chance(test, SEED) for test in tests], axis=0)
            largest = np.maximum(largest, own) if largest.size else own
            found = findings(tests, threshold(own), info)
        tested.append(np.max([np.abs(z_maps(test.tested, test.group)) for test in tests], axis=0))
        maps = drawn(one, other, info, label, beyond)
        change = change_of(one, other, info, label)
        made.append(replace(change, findings=found, maps=maps, too_few=few))
        numbers[0].append(without_maps(one))
        numbers[1].append(without_maps(other))
    if not made:
        raise InputError(
            f"{before.path} and {after.path} have no image in the same class: without true labels, "
            "images are compared where both models predict the same."
        )
    limit = threshold(largest) if largest.size else math.nan  # of all classes together
    made = [
        replace(
            one,
            findings=tuple(f for f in one.findings if f.z is not None and f.z > limit),
            maps=(*one.maps[:-1], replace(one.maps[-1], beyond=z > limit)),
        )
        for one, z in zip(made, tested, strict=True)
    ]
    overall = change_of(joined(numbers[0]), joined(numbers[1]), info, "all classes")
    overall = replace(overall, n_left_out=stats[0].overall.n - overall.n)
    old, new = (read_asked(folder).title for folder in (before, after))
    return Difference(tuple(made), overall, limit, old, new, suspect_changes(*stats))


def check_alike(before: Storage, after: Storage) -> None:
    """Refuse audits that were not asked the same, and say in what they differ."""
    notes = []
    for folder in (before, after):
        read_asked(folder)  # refuses what is none
        with reporting_damage(folder):
            notes.append(what_was_asked(json.loads((folder / NOTE).read_text())))
    one, other = notes
    different = [what for what in {**one, **other} if one.get(what) != other.get(what)]
    if not different:
        return
    hint = "audit one of them again as the other was"
    if different == ["mask_prob"]:
        hint = f"audit {after.path} again with --mask-prob {one['mask_prob']:g}"
    raise InputError(
        f"{before.path} and {after.path} differ in their {join(different, 'and')}, and only audits "
        f"of the same images under the same masks can be compared: {hint}."
    )


# What of an audit's settings may differ, and what others are called.
FREE = ("fills", "mask_prob", "keep_runs", "batch_size")
SETTINGS = {"n_masks": "number of masks", "tolerance": "tolerance of n_masks"}


def what_was_asked(note: dict[str, Any]) -> dict[str, Any]:
    """What of audit.json decides which masks were drawn of which images."""
    settings = note["settings"].items()
    return {
        "images": (note["images"], note["collection"]),
        "classes": note["labels"],
        "kind of score": note["kind"],
        "colors": note["fills"],
        "mask_prob": note["chosen"]["mask_prob"],
        **{SETTINGS.get(name, name): value for name, value in settings if name not in FREE},
    }


def paired(one: ClassData, other: ClassData) -> tuple[ClassData, ClassData] | None:
    """The images that both have, in one order; None if there are none."""
    place = {name: n for n, name in enumerate(other.names)}
    rows = [(n, place[name]) for n, name in enumerate(one.names) if name in place]
    if not rows:
        return None
    first, second = (class_data.some(np.array(at)) for class_data, at in
                     zip((one, other), zip(*rows, strict=True), strict=True))  # fmt: skip
    if first.pixels is not None and second.pixels is not None:
        apart = np.abs(first.pixels.astype(float) - second.pixels).mean(axis=(1, 2, 3))
        if (apart > APART).any():
            raise InputError(
                f"{first.names[int(apart.argmax())]} is not the same picture in both audits, or is "
                "cropped differently by one of the models: compare models on the same images."
            )
    return first, second


def change_of(one: ClassData, other: ClassData, info: AuditInfo, label: str) -> ClassChange:
    """Everything that is a mean or a share over images."""
    group = one.group
    wholes = one.presence_energy + one.color_energy, other.presence_energy + other.color_energy
    rates = {
        "accuracy": accuracy(one, other),
        **{f"accuracy_{light}": rate(one, other, attrgetter(light)) for light in LIGHTS},
        "background_flip_rate": flips_change(one, other),
    }
    zones = {
        zone: share_change((one.zone_energy[:, z], other.zone_energy[:, z]), wholes, group)
        for z, zone in enumerate(info.zones)
    }
    effects = {
        zone: {
            fill: mean_change(one.zone_effect[:, z, k], other.zone_effect[:, z, k], group)
            for k, fill in enumerate(info.fills)
        }
        for z, zone in enumerate(info.zones)
    }
    return ClassChange(
        target=other.target,
        label=label,
        n=len(one),
        rates={name: change for name, change in rates.items() if change},
        color_share=(
            share_change((one.color_energy, other.color_energy), wholes, group)
            if len(info.fills) > 1
            else None
        ),
        zones={zone: change for zone, change in zones.items() if change},
        zone_effect={
            zone: {fill: change for fill, change in row.items() if change}
            for zone, row in effects.items()
        },
    )


def differences(one: ClassData, other: ClassData) -> list[ClassData]:
    """The maps of one audit less those of another, to be tested by ranks and by scores.

    Ranks are steadier where scores are lopsided, but a change of all scores alike, as when a model
    is calibrated anew, does not move them. If nothing has changed, the noise of either audit is as
    likely in either place, so the signs of both may be flipped.
    """
    scores = replace(other, maps=other.maps - one.maps, ranks=None)
    if one.ranks is None or other.ranks is None:
        return [scores]
    return [replace(scores, ranks=other.ranks - one.ranks), scores]


def findings(tests: Sequence[ClassData], limit: float, info: AuditInfo) -> tuple[ClassFinding, ...]:
    """Where the maps of both differ beyond chance by any test, the largest difference first.

    Left out is what only ranks tell: by how much the score moves more or less, and which way, is
    then not known.
    """
    kept: list[tuple[Candidate, ClassFinding]] = []
    for test in tests:
        for found in candidates(test, limit, info.cell):
            finding = describe(test, found)
            if is_sure(finding) and all(found.shares(known) < SAME for known, _ in kept):
                kept.append((found, finding))
    return tuple(sorted((one for _, one in kept), key=lambda one: -abs(one.effect.value)))


def is_sure(finding: ClassFinding) -> bool:
    """Whether the interval of its effect lies on the side that is named."""
    effect = finding.effect
    return effect.excludes_zero and effect.value * finding.sign > 0


# ---- pictures


def drawn(
    one: ClassData, other: ClassData, info: AuditInfo, label: str, beyond: Sequence[BoolArray]
) -> tuple[Maps, ...]:
    """The mean maps before, after and their difference, and where the first two exceed chance."""
    size = one.maps.shape[-1]
    image = np.full((size, size, 3), 128, np.uint8)
    if one.pixels is not None:
        image = np.rint(one.pixels.mean(axis=0)).astype(np.uint8)
    return tuple(
        class_maps(*mean_maps(maps, one.group), image, info, one.target, label, len(one), sure)
        for maps, sure in zip(
            (one.maps, other.maps, other.maps - one.maps), (*beyond, None), strict=True
        )
    )


def plot_difference(difference: Difference) -> "Picture | None":
    """The classes that changed most: before, after and the difference, all in one scale."""
    from ..output.plots import plot_maps, short

    chosen = [one for one in difference.changed() if one.maps][:MOST_DRAWN]
    if not chosen:
        return None
    rows = [maps for one in chosen for maps in one.maps]
    words = ("before", "after", "difference")
    return plot_maps(rows, [f"{short(one.label, 15)}\n{word}" for one in chosen for word in words])
