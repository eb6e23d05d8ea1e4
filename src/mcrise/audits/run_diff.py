"""Two runs of one image under the same masks, as one: a model before and after.

The scores of both become two columns of one run, so that all that is known of comparing two
classes of a run serves to compare two models. Runs of other images or masks have nothing in
common: their maps are subtracted, and their errors add up.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..errors import InputError
from ..estimators import DEFAULT, NullThreshold
from ..explanation import Explanation, Target
from ..interpretation.claims import join
from ..interpretation.regions import interpret
from ..interpretation.trials import Comparison
from ..maps import Maps
from .paired_stats import Change, mean_change
from .stats import bonferroni
from .zones import NINTHS, onto_raster, zone_shares

FEWEST = 4  # chunks, to tell how sure a mean over a zone is
MAY_DIFFER = ("batch size", "number of classes")  # of two runs


@dataclass(frozen=True, eq=False)
class RunDifference(ArrayEq):
    """What the score of a class depends on more or less than before, in one image."""

    explanation: Explanation  # of both: class 0 is after, class 1 before
    comparison: Comparison
    zones: dict[str, dict[str, Change]]  # mean change of the score, by zone and fill

    def lines(self) -> list[str]:
        """To print."""
        after, before = self.explanation.untouched
        out = [f"{self.comparison.given.label}: {before:.2f} → {after:.2f}"]
        out += self.comparison.difference.lines()
        rows = [(zone, *pair) for zone, row in self.zones.items() for pair in row.items()]
        sure = [row for row in rows if bonferroni(row[2].by, len(rows)).excludes_zero]
        sure.sort(key=lambda row: -abs(row[2].by.value))
        for zone, fill, change in sure[:5]:
            moved = f"{change.before.value:+.3f} → {change.after.value:+.3f}"
            ends = f"[{change.by.low:+.3f}, {change.by.high:+.3f}]"
            out.append(f"- {fill} on the {zone}: {moved}, {change.by.value:+.3f} {ends}.")
        return out


def compare_runs(
    before: Explanation, after: Explanation, target: Target = None, estimator: str = DEFAULT
) -> RunDifference:
    """Compare two runs of the same image; `target` None is the class predicted before."""
    if different := differences(before, after):
        raise InputError(
            f"The two runs differ in their {join(different, 'and')}, and only runs of one image "
            "under the same masks can be compared: run one of them again as the other was."
        )
    index = before.resolve(target)
    label = before.label(index)
    other = after.resolve(label if before.labels and after.labels else index)
    both = joined(before, after, index, other)
    if both is None:
        raise InputError("The two runs have no masks in common: run both from the first mask on.")
    difference = interpret(both, 0, estimator, against=1)
    now, then = both.maps([0, 1], estimator)
    return RunDifference(both, Comparison(now, then, difference), zone_changes(both))


def maps_of_difference(
    before: Explanation, after: Explanation, target: int, other: int, estimator: str = DEFAULT
) -> tuple[Maps, NullThreshold | None]:
    """The maps of class `other` after less those of `target` before, and what chance shows there.

    Those of `compare_runs`, where the two are of one image under the same masks.
    """
    both = None if differences(before, after) else joined(before, after, target, other)
    if both is None:
        return subtracted(before, after, target, other, estimator)
    maps = both.maps(0, estimator, against=1)
    return maps, both.chance(maps) if maps.diverging else None


def differences(before: Explanation, after: Explanation) -> list[str]:
    """In what two runs differ that must not, to be compared mask by mask."""
    same_model = replace(after, model=before.model, origin=before.origin)
    return [what for what in before.differences(same_model) if what not in MAY_DIFFER]


def joined(before: Explanation, after: Explanation, index: int, other: int) -> Explanation | None:
    """The masks that two runs have in common: class 0 is after, class 1 before; None: no mask."""
    chunks = sorted({*before.chunks} & {*after.chunks})
    if not chunks:
        return None
    label = before.label(index)
    return replace(
        before,
        scores={
            c: np.stack([after.scores[c][:, other], before.scores[c][:, index]], axis=1)
            for c in chunks
        },
        untouched=np.array([after.untouched[other], before.untouched[index]], np.float32),
        kind="any" if before.kind == "any" else "independent",
        labels=(f"{label}, after", f"{label}, before"),
        answers={},
    )


def subtracted(
    before: Explanation, after: Explanation, target: int, other: int, estimator: str
) -> tuple[Maps, NullThreshold | None]:
    """The maps of two runs that know nothing of each other, less each other: of common fills."""
    then, now = before.maps(target, estimator), after.maps(other, estimator)
    pairs = [(k, then.names.index(name)) for k, name in enumerate(now.names) if name in then.names]
    if not pairs:
        raise InputError("The two runs have no color in common: run both with the same colors.")
    ours, theirs = (list(some) for some in zip(*pairs, strict=True))
    size = now.values.shape[1:]
    maps = replace(
        now,
        values=now.values[ours] - resized(then.values[theirs], size),
        se=np.hypot(now.se[ours], resized(then.se[theirs], size)),
        fills=tuple(now.fills[k] for k in ours) if now.fills else (),
        label=f"{now.label} − {then.label}",
        n_masks=min(now.n_masks, then.n_masks),
        notes=(),
        test=None,
    )
    if not maps.diverging:
        return maps, None
    chances = after.chance(now), before.chance(then)
    tested = chances[0].values[ours] - resized(chances[1].values[theirs], size)
    return maps, NullThreshold(math.hypot(*(chance.limit for chance in chances)), tested)


def resized(maps: NDArray[np.float32], size: tuple[int, ...]) -> NDArray[np.float32]:
    """Maps (K, H, W) at the pixels of an image of another size, with straight lines between."""
    from ..output.web_maps import on_points

    own = maps.shape[1:]
    lines = [
        np.clip((np.arange(n) + 0.5) * m / n - 0.5, 0, m - 1)
        for n, m in zip(size, own, strict=True)
    ]
    return maps if own == size else on_points(maps, lines)


def zone_changes(both: Explanation) -> dict[str, dict[str, Change]]:
    """The mean effect in each third, with intervals over chunks of masks."""
    if len(both.chunks) < FEWEST:
        return {}
    shares = zone_shares(NINTHS, None)
    weights = shares / shares.sum(axis=(1, 2), keepdims=True)
    effects = []  # `centered` is linear: the mean over chunks is unbiased, however noisy each is
    for chunk in both.chunks:
        one = replace(both, scores={chunk: both.scores[chunk]})
        maps = one.maps([0, 1], "centered")
        effects.append([np.einsum("kij,zij->zk", onto_raster(m.values), weights) for m in maps])
    after, before = np.array(effects).swapaxes(0, 1)  # (chunks, Z, K)
    own = np.arange(len(both.chunks))
    found: dict[str, dict[str, Change]] = {}
    for z, zone in enumerate(NINTHS):
        for k, fill in enumerate(both.plan.fills):
            if change := mean_change(before[:, z, k], after[:, z, k], own):
                found.setdefault(zone.name, {})[fill.name] = change
    return found
