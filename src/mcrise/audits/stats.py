"""Statistics of many images: means, ratios and shares with 95% intervals, and what chance does.

Images that belong together (frames of one track) are one observation: everything here works on the
sums of groups. Intervals are where a t-test would not reject: of a ratio of sums, all ratios r for
which `above - r * below` may have mean zero (Fieller). At 12 to 24 groups that covers better than
resampling them does, and a ratio of nothing to nothing gets an interval that says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .class_data import BoolArray, FloatArray, IntArray

FloatPair = tuple[float, float]
CONFIDENCE = 0.95
ALL_ALIKE = 4  # pairs without a miss count as so many times the fewest that they may be
N_FLIPS = 1000
FLIPS_AT_ONCE = 50
RAREST = 1e-197  # a chance, whose z is 30: a float has none much smaller


@dataclass(frozen=True)
class Estimate:
    """A number that is shown: its 95% interval over images, and how many are behind it.

    The ends are NaN where nothing tells how sure it is: a single image, or a single group.
    """

    value: float
    low: float
    high: float
    n: int
    n_groups: int = 0  # that the images are in; 0: each is on its own

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


# ---- means, ratios and shares


def mean(values: FloatArray, group: IntArray, ends: FloatPair | None = None) -> Estimate | None:
    """The mean over images of values (n,), those that are NaN left out; None if all are."""
    known = np.isfinite(values)
    return ratio(values[known], np.ones(int(known.sum())), group[known], ends)


def ratio(
    above: FloatArray, below: FloatArray, group: IntArray, ends: FloatPair | None = None
) -> Estimate | None:
    """The ratio of two sums over images, (n,) each; within its ends, where it has some.

    None where the lower sum is not positive: then there is nothing to take a share of.
    """
    n = len(above)
    sums = by_group(np.stack([above, below], axis=1), group)  # (G, 2)
    over, under = sums.mean(axis=0) if n else (0.0, 0.0)
    if not under > 0:
        return None
    value, low, high = over / under, math.nan, math.nan
    if len(sums) > 1:
        reach = t_quantile(len(sums) - 1) ** 2 / len(sums)
        (aa, ab), (_, bb) = reach * np.cov(sums, rowvar=False)
        # All r with (over - r under)^2 <= aa - 2 r ab + r^2 bb.
        square, half, rest = under**2 - bb, over * under - ab, over**2 - aa
        root = math.sqrt(max(half**2 - square * rest, 0.0))
        low, high = (-math.inf, math.inf)
        if square > 0:  # else the lower sum may be zero, and any ratio at all is possible
            low, high = (half - root) / square, (half + root) / square
    if ends is not None:
        value, low, high = (float(np.clip(x, *ends)) for x in (value, low, high))
    return Estimate(float(value), float(low), float(high), n, len(sums))


def bonferroni(estimate: Estimate, n_looked_at: int) -> Estimate:
    """The interval that this one of so many figures needs, for all to hold together at 95%."""
    freedom = max((estimate.n_groups or estimate.n) - 1, 1)
    factor = t_quantile(freedom, 0.05 / n_looked_at) / t_quantile(freedom)
    low, high = (
        estimate.value + factor * (end - estimate.value) for end in (estimate.low, estimate.high)
    )
    return replace(estimate, low=low, high=high)


def share(hits: BoolArray, group: IntArray) -> Estimate | None:
    """The share of images that are hits (n,), by the interval of Clopper and Pearson.

    A group whose images all agree counts for less than as many images on their own: n is divided
    by how much more the groups' sums vary than those of independent images would.
    """
    n, n_groups = len(hits), len(np.unique(group))
    if not n:
        return None
    value = float(hits.mean())
    if n_groups == 1 < n:
        return Estimate(value, math.nan, math.nan, n, n_groups)
    size = float(n)
    if n_groups < n:
        alike = groups_as_one(group)
        size /= effect_of_groups(hits - value, group, 1)
        # How groups vary is known from few of them; but none varies more than images all alike.
        size = max(size * (t_quantile(10**6) / t_quantile(alike - 1)) ** 2, alike)
    return Estimate(value, *share_ends(value, size), n, n_groups)


def crossed_share(hits: BoolArray, donor: IntArray, receiver: IntArray) -> Estimate | None:
    """The share of pairs (n,) that are hits, where pairs have donors or receivers in common.

    A donor that works makes all its pairs hits, and so may a receiver. The variance of the share is
    that over donors plus that over receivers, less that of single pairs (Cameron, Gelbach and
    Miller). The interval is that of as many independent pairs as have this variance.
    """
    n = len(hits)
    if not n:
        return None
    value, both = float(hits.mean()), donor * (int(receiver.max()) + 1) + receiver
    alike = [groups_as_one(group) for group in (donor, receiver)]
    least = 1 / (1 / alike[0] + 1 / alike[1])  # if donors and receivers alone decided
    if min(alike) < 1.5:
        return Estimate(value, math.nan, math.nan, n, int(min(alike)))
    rest = hits - value
    over = [
        np.square(by_group(rest, group)).sum() * size / (size - 1)
        for group, size in ((donor, alike[0]), (receiver, alike[1]), (both, float(n)))
    ]
    variance = max(over[0] + over[1] - over[2], over[2]) / n**2
    size = ALL_ALIKE * least
    if variance > 0:  # it is known from few donors or receivers
        size = value * (1 - value) / variance * t_quantile(10**6) / t_quantile(min(alike) - 1)
    size = float(np.clip(size, min(least, n), n))
    return Estimate(value, *share_ends(value, size), n, len(np.unique(receiver)))


def share_ends(value: float, n: float) -> FloatPair:
    """Shares between which n images on their own may have this one, at 95%.

    Exact, since rules are held against single images too, where others miss far more often.
    """
    from scipy.special import betaincinv

    hits, chance = value * n, 1 - CONFIDENCE
    low = betaincinv(hits, n - hits + 1, chance / 2) if hits > 0 else 0.0
    high = betaincinv(hits + 1, n - hits, 1 - chance / 2) if hits < n else 1.0
    return float(low), float(high)


def groups_as_one(group: IntArray) -> float:
    """As how many images groups count whose images are all alike: their number, if of one size.

    Fewer if not: one of 50 images beside three of one each is little more than itself.
    """
    sizes = np.unique(group, return_counts=True)[1]
    return float(len(group) ** 2 / np.square(sizes).sum())


def effect_of_groups(rest: FloatArray, group: IntArray, n_fitted: int) -> float:
    """How many images of these groups tell as much as one on its own, by what they deviate (n,).

    From 1 to that of groups whose images are all alike. Their sums tell, but where the largest
    agree by chance, as two of them do half of the time, too little; so it is at least what the
    likeness within groups makes it. `n_fitted` is 1 where the deviations are from their own mean.
    """
    n, most = len(rest), len(rest) / groups_as_one(group)
    total = float(np.square(rest).sum())
    if not total > 0:
        return most  # nothing tells that they are not
    squares, sizes = np.square(by_group(rest, group)), by_group(np.ones(n), group)
    n_groups = len(sizes)
    between = squares.sum() / total * n_groups / (n_groups - n_fitted)
    within = (total - (squares / sizes).sum()) / max(n - n_groups, 1)
    likeness = 1 - within * n / total  # the correlation of two images of a group
    return float(np.clip(max(between, 1 + (most - 1) * likeness), 1.0, most))


def t_quantile(freedom: float, chance: float = 1 - CONFIDENCE) -> float:
    """What |t| exceeds by chance so often."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - chance / 2))


def by_group(values: NDArray[Any], group: IntArray) -> NDArray[np.float64]:
    """The sums (G, ...) of values (n, ...) over each group."""
    codes, place = np.unique(group, return_inverse=True)
    if len(codes) == len(values):  # each on its own
        return values.astype(np.float64)
    sums = np.zeros((len(codes), *values.shape[1:]))
    np.add.at(sums, place.ravel(), values)
    return sums


# ---- maps of many images


def mean_maps(maps: FloatArray, group: IntArray) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The mean (K, R, R) of maps (n, K, R, R) over images, and its standard error over groups.

    NaN where a single group tells nothing of errors.
    """
    n = len(maps)
    middle = maps.mean(axis=0, dtype=np.float64)
    rest = by_group(maps - middle, group)
    n_groups = len(rest)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(np.square(rest).sum(axis=0) * (n_groups / np.float64(n_groups - 1))) / n
    return middle.astype(np.float32), error.astype(np.float32)


def z_maps(maps: FloatArray, group: IntArray) -> NDArray[np.float64]:
    """How far the mean map lies from zero, in standard errors: (K, R, R).

    As if there were many images: a t of few groups is brought to the z that is as rare, so that
    classes of 12 images and of 300 have one threshold.
    """
    scaled = over_root_mean_square(by_group(maps, group))
    return as_z(scaled.mean(axis=0, dtype=np.float64), len(scaled))


def over_root_mean_square(sums: NDArray[np.float64]) -> NDArray[np.float32]:
    """Values (G, ...) over the root of their mean square: one whatever their signs.

    The mean of such values m has the t that `as_z` knows, so that flips need but their means.
    """
    size = np.sqrt(np.square(sums).mean(axis=0))
    return np.asarray(sums / np.where(size > 0, size, 1.0), np.float32)


def as_z(mean: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The z of the mean of n values whose mean square is one: as rare as their t is."""
    from scipy.special import ndtri, stdtr

    t = np.abs(mean) * np.sqrt((n - 1) / np.maximum(1 - np.square(mean), 1e-12))
    return np.asarray(-np.sign(mean) * ndtri(np.maximum(stdtr(n - 1, -t), RAREST)))


def largest_by_flips(
    maps: FloatArray, group: IntArray, seed: Sequence[int], n_flips: int = N_FLIPS
) -> NDArray[np.float64]:
    """The largest |z| of the mean map when the signs of whole groups are drawn: (n_flips,).

    If a class depends on nothing, a group's map is as likely as its opposite, so these are what
    chance alone shows. The first flip is none at all, as exact tests have it.
    """
    scaled = over_root_mean_square(by_group(maps, group))
    scaled = scaled.reshape(len(scaled), -1)
    signs = np.random.default_rng(seed).integers(0, 2, (n_flips, len(scaled))) * 2 - 1
    signs[0] = 1
    largest = [
        np.abs(some.astype(np.float32) @ scaled).max(axis=1) / len(scaled)
        for some in np.array_split(signs, math.ceil(n_flips / FLIPS_AT_ONCE))
    ]
    return as_z(np.concatenate(largest).astype(np.float64), len(scaled))


def threshold(largest: FloatArray) -> float:
    """What |z| must exceed, so that chance alone does so in one of twenty."""
    return float(np.quantile(largest, CONFIDENCE, method="higher"))
