"""Background: what lies outside of the object, painted over as a whole.

A shortcut in the background is in all of it, so that no part matters while the rest stays, and maps
of parts say little. So all of it is painted: the background where the collection says where objects
are, else the rim of the image. It is given before anything is measured, so only the color has to be
chosen, on one half of the images for the other. Painted in its own mean color, it tells whether its
colors matter or what it shows.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from .._util.array_eq import ArrayEq
from ..colors import BASICS, basic_colors
from ..interpretation.claims import sentence_case
from .class_data import AuditInfo, BoolArray, ClassData, FloatArray, IntArray
from .class_findings import MOSTLY, ClassFinding, moving, names, size
from .confirmation import ends_of, half_of
from .stats import Estimate, mean, share
from .zones import OUTER

OWN = "its own mean color"
FEW_FLIPS = 0.1  # of decisions
SMALL = 0.5  # of the score: what changes less of either is in the table, but no finding
UNSEEN = 0.05  # of a probability: less is no finding either, however small the score was


@dataclass(frozen=True, eq=False)
class BackgroundEffect(ArrayEq):
    """What painting all of the background, or of the rim, does: by fill, and by OWN."""

    zone: str
    change: dict[str, Estimate]  # of the score
    flipped: dict[str, Estimate]  # share of decisions changed
    flip_rate: Estimate | None  # share of decisions that one fill or another changes

    @property
    def worst(self) -> str:
        """The fill that changes most decisions."""
        return max((one for one in self.flipped if one != OWN), key=lambda k: self.flipped[k].value)


@dataclass(frozen=True, eq=False)
class BackgroundData(ArrayEq):
    """The images of a class of which what lies outside was painted."""

    zone: str
    have: BoolArray  # (n,) which they are
    group: IntArray  # (m,)
    score: FloatArray  # (m,) untouched
    moved: FloatArray  # (m, K + 1) change of the score, by fill and in its own mean color
    flips: BoolArray  # (m, K + 1) whether the decision is another one


def painted(class_data: ClassData) -> BackgroundData | None:
    """None where nothing lies outside, or it was not painted."""
    zone = next((zone for zone in OUTER if zone in class_data.background_zone), None)
    if (
        zone is None
        or class_data.background_score is None
        or class_data.background_prediction is None
    ):
        return None
    have = np.array([one == zone for one in class_data.background_zone])
    after, said = class_data.background_score[have], class_data.background_prediction[have]
    score = after[:, -1]
    flips = said[:, :-1] != said[:, -1:]
    return BackgroundData(
        zone, have, class_data.group[have], score, after[:, :-1] - score[:, None], flips
    )


def background_flips(class_data: ClassData) -> tuple[BoolArray, BoolArray]:
    """Whether any fill changes the decision of an image (n,), and in which ones that was tried."""
    any_fill, have = np.zeros((2, len(class_data)), bool)
    if shown := painted(class_data):
        have = shown.have
        any_fill[have] = shown.flips[:, :-1].any(axis=1)
    return any_fill, have


def background_effect(class_data: ClassData, info: AuditInfo) -> BackgroundEffect | None:
    """None where nothing lies outside, or it was not painted."""
    shown = painted(class_data)
    if shown is None:
        return None
    change, flipped = {}, {}
    for k, name in enumerate((*info.fills, OWN)):
        by, often = mean(shown.moved[:, k], shown.group), share(shown.flips[:, k], shown.group)
        if by and often:
            change[name], flipped[name] = by, often
    flips, have = background_flips(class_data)
    return BackgroundEffect(shown.zone, change, flipped, share(flips[have], shown.group))


def background_finding(class_data: ClassData, info: AuditInfo, seed: int) -> ClassFinding | None:
    """That a class depends on what lies outside: painting it changes decisions or half the score.

    Painting so much of an image moves most scores somewhat. That it lowers the score comes first.
    """
    shown = painted(class_data)
    if shown is None:
        return None
    found = (finding_of(shown, class_data, info, sign, seed) for sign in (-1, 1))
    return next((one for one in found if one), None)


def finding_of(
    shown: BackgroundData, class_data: ClassData, info: AuditInfo, sign: int, seed: int
) -> ClassFinding | None:
    """With the fill that lowers the score (-1) or raises it (+1) most in the other half."""
    n_fills, group, half = len(info.fills), shown.group, half_of(shown.group, seed)
    if len(set(half.tolist())) < 2:
        return None
    middle = [shown.moved[half != side, :n_fills].mean(axis=0) for side in (0, 1)]
    chosen = np.array([(sign * one).argmax() for one in middle])
    own = np.arange(len(half)), chosen[half]
    change = mean(shown.moved[own], group, ends_of(info.kind))
    flipped = share(shown.flips[own], group)
    assert change is not None
    assert flipped is not None
    if info.kind == "any":  # such scores have no zero: what all that was said ranges over
        moves = abs(change.value) >= SMALL * np.ptp(shown.moved + shown.score[:, None])
    else:
        moves = abs(change.value) >= max(SMALL * abs(shown.score.mean()), UNSEEN)
    if sign * change.value <= 0 or not (flipped.low >= FEW_FLIPS or moves):
        return None
    effects = tuple(e for k in range(n_fills) if (e := mean(shown.moved[:, k], group)))
    fill = int((sign * np.array([effect.value for effect in effects])).argmax())
    color, color_share = own_color(class_data, shown.have)
    region = np.zeros((info.raster, info.raster), bool)
    if class_data.background_region is not None:
        region = class_data.background_region[shown.have].mean(axis=0) >= 0.5
    return ClassFinding(
        target=class_data.target,
        fill=fill,
        fills=moving(effects, fill, sign),
        sign=sign,
        region=region,
        effect=effects[fill],
        effects=effects,
        peak=effects[fill].value,
        z=None,
        place=f"the whole {shown.zone}",
        own=color,
        own_share=color_share,
        sentence="",
        verdict="confirmed",
        painted=tuple(sorted(set(chosen.tolist()))),
        change=change,
        control=mean(shown.moved[:, n_fills], group),
        flipped=flipped,
    )


def own_color(class_data: ClassData, have: BoolArray) -> tuple[str, float]:
    """The basic color that what lies outside has in most images, on average over its pixels."""
    if class_data.pixels is None or class_data.background_region is None:
        return "", 0.0
    colors = [
        pixels[region].mean(axis=0) if region.any() else pixels.mean(axis=(0, 1))
        for pixels, region in zip(
            class_data.pixels[have], class_data.background_region[have], strict=True
        )
    ]
    codes = basic_colors(np.rint(colors).astype(np.uint8)[:, None]).ravel().tolist()
    code, times = Counter(codes).most_common(1)[0]
    return (BASICS[code] if times >= MOSTLY * len(codes) else ""), times / len(codes)


def background_sentence(finding: ClassFinding, info: AuditInfo) -> str:
    """What painting it came to."""
    change, control, flipped = finding.change, finding.control, finding.flipped
    assert change is not None
    assert flipped is not None
    own = f", {finding.own} in {100 * finding.own_share:.0f}% of the images" if finding.own else ""
    told = (
        f"{sentence_case(finding.place)} ({100 * finding.region.mean():.0f}% of the image{own}): "
        f"painted {names(info, finding.painted)}, {info.label(finding.target)!r} "
        f"{'rises' if change.value > 0 else 'falls'} by {size(change)} ({change.n} images, the "
        f"color chosen on others); {100 * flipped.value:.0f}% of decisions change"
    )
    if control:
        told += f". Painted in {OWN} it changes by {control.value:+.2g}: "
        kept = abs(control.value) < 0.5 * abs(change.value)
        told += (
            "only a change of its color matters" if kept
            else "what it shows matters, not its color alone"
        )  # fmt: skip
    return f"{told}."
