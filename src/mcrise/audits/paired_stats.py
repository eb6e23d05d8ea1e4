"""Paired statistics: a figure before and after, and by how much it changed within images."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .background import background_flips
from .class_data import BoolArray, ClassData, FloatArray, IntArray
from .class_stats import SHARE
from .stats import Estimate, effect_of_groups, groups_as_one, mean, ratio, share, t_quantile


@dataclass(frozen=True)
class Change:
    """A figure before and after, and the change within images."""

    before: Estimate
    after: Estimate
    by: Estimate  # after less before

    def __str__(self) -> str:
        ends = f" [{self.by.low:+.2f}, {self.by.high:+.2f}]" if self.by.low == self.by.low else ""
        moved = f"{self.before.value:.2f} → {self.after.value:.2f}"
        return f"{moved} ({self.by.value:+.2f}{ends}, {self.by.n} images)"


def mean_change(one: FloatArray, other: FloatArray, group: IntArray) -> Change | None:
    known = np.isfinite(one) & np.isfinite(other)
    stats = [mean(x[known], group[known]) for x in (one, other, other - one)]
    return Change(*stats) if all(stats) else None  # type: ignore[arg-type]


def share_change(
    parts: tuple[FloatArray, FloatArray], wholes: tuple[FloatArray, FloatArray], group: IntArray
) -> Change | None:
    """Of a ratio of sums: what each image adds to either ratio, and the change of that."""
    known = np.isfinite(parts[0]) & np.isfinite(parts[1])
    group = group[known]
    stats, moved = [], []
    for part, whole in zip(parts, wholes, strict=True):
        estimate = ratio(part[known], whole[known], group, SHARE)
        if estimate is None:
            return None
        stats.append(estimate)
        own = part[known].sum() / whole[known].sum()
        moved.append((part[known] - own * whole[known]) / whole[known].mean())
    before, after = stats
    by = mean(moved[1] - moved[0], group)
    assert by is not None
    value = after.value - before.value
    unknown = any((f.low, f.high) == SHARE for f in stats)  # there may be nothing to share
    low, high = (-1.0, 1.0) if unknown else (value + by.low - by.value, value + by.high - by.value)
    return Change(before, after, Estimate(value, max(low, -1.0), min(high, 1.0), by.n, by.n_groups))


def accuracy(one: ClassData, other: ClassData) -> Change | None:
    """Where truths are known: without, images are compared that both models decide alike."""
    return (
        rate(one, other, lambda class_data: class_data.predicted)
        if (one.truth >= 0).any()
        else None
    )


def rate(
    one: ClassData, other: ClassData, predicted: Callable[[ClassData], IntArray]
) -> Change | None:
    """The share of images that are decided as their class."""
    known = one.truth >= 0
    both = (predicted(one) >= 0) & (predicted(other) >= 0) & (known | ~known.any())
    one, other = one.some(np.flatnonzero(both)), other.some(np.flatnonzero(both))
    own = np.where(one.truth >= 0, one.truth, one.predicted)
    return change_of_shares(predicted(one) == own, predicted(other) == own, one.group)


def change_of_shares(before: BoolArray, after: BoolArray, group: IntArray) -> Change | None:
    first, second = share(before, group), share(after, group)
    if first is None or second is None:
        return None
    return Change(first, second, paired_shares(before, after, group))


def flips_change(one: ClassData, other: ClassData) -> Change | None:
    """The share of decisions that painting all of what lies outside changes."""
    (before, have), (after, other_have) = map(background_flips, (one, other))
    both = have & other_have
    return change_of_shares(before[both], after[both], one.group[both])


def paired_shares(before: BoolArray, after: BoolArray, group: IntArray) -> Estimate:
    """The change of a share within images (Agresti and Min: half an image added to each case).

    Without the halves, images that all agree would seem to say that nothing can ever change.
    """
    n, n_groups = len(before), len(np.unique(group))
    moved = after.astype(float) - before
    value = float(moved.mean())
    if n_groups < 2:
        return Estimate(value, math.nan, math.nan, n, n_groups)
    # Groups count as so many images on their own as would vary as much.
    size = n / effect_of_groups(moved, group, 0)
    better, worse = ((moved == sign).mean() * size + 0.5 for sign in (1, -1))
    middle = (better - worse) / (size + 2)
    error = math.sqrt(max(better + worse - (better - worse) ** 2 / (size + 2), 0)) / (size + 2)
    reach = t_quantile(groups_as_one(group) - 1) * error
    return Estimate(value, max(middle - reach, -1.0), min(middle + reach, 1.0), n, n_groups)
