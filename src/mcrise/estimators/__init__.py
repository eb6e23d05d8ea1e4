"""Estimators: each one object, all in one table.

An estimator is prepared once for the masks and scores of a run and then makes the maps of any
class. To add one, write an `Estimator` and name it in the table, or from another package in its
entry points, group `mcrise.estimators`:

    [project.entry-points."mcrise.estimators"]
    half = "half_maps:HALF"

What it needs is here: a `Sample` comes in, its `column` of a class has the scores, an `Estimate`
goes out, and `estimate` makes one of sums by a formula such as `contrast`.

    class Half:  # of the paper's maps
        def __init__(self, sample):
            self.sample = sample

        def maps(self, column):
            values, se = estimate(self.sample.plan, self.sample.masks, column.scores, contrast)
            return Estimate(values / 2, se / 2)

        def chance(self, column):
            return None  # not known: a reading asks the centered maps what counts

    HALF = Estimator("half", prepare=Half)

In the order in which to read: `averages` (the paper's formula and those near it), `raster` (the
points at which maps are computed), `smooth` (the default), `significance` (how large a map gets by
chance).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .._util import plugins
from ..errors import InputError, PluginError
from ..masks import Masks, Plan
from ..models.scores import UNITS
from .averages import Formula, centered, contrast, debiased, estimate, rise
from .significance import TINIEST, significance_limit

__all__ = [
    "DEFAULT",
    "ESTIMATORS",
    "Estimate",
    "Estimator",
    "EstimatorName",
    "FittedEstimator",
    "Formula",
    "NullThreshold",
    "Sample",
    "TargetScores",
    "centered",
    "contrast",
    "debiased",
    "estimate",
    "find_estimator",
    "rise",
    "significance_limit",
]

EstimatorName = Literal["rise", "debiased", "paper", "centered", "smooth"]
DEFAULT: EstimatorName = "smooth"  # docs/results.md says why
GROUP = "mcrise.estimators"  # of entry points


@dataclass(frozen=True, eq=False)
class TargetScores:
    """The scores that one set of maps is of: of a class, or of one class less another."""

    scores: NDArray[np.float64]  # (N,)
    low: float | None  # they range from here to one; None: they may be anything

    @property
    def least(self) -> float:
        """What a change of score must exceed to be more than rounding."""
        return TINIEST * (1.0 if self.low is not None else float(np.ptp(self.scores)))


@dataclass(frozen=True, eq=False)
class Sample:
    """The masks of a run, and the scores of all classes under them."""

    plan: Plan
    masks: Masks
    chunks: Sequence[NDArray[np.float32]]  # (64, C) each, in the order of the masks
    kind: str  # of score

    def table(self) -> NDArray[np.float32]:
        """All scores: (N, C)."""
        return np.concatenate(self.chunks)

    def scores_of(self, target: int) -> NDArray[np.float64]:
        """(N,)."""
        return np.concatenate([chunk[:, target] for chunk in self.chunks]).astype(np.float64)

    def column(self, target: int, against: int | None = None) -> TargetScores:
        """The scores of a class, less those of another where one is given."""
        scores = self.scores_of(target)
        if against is not None:
            scores = scores - self.scores_of(against)
        lowest = 0.0 if against is None else -1.0
        return TargetScores(scores, None if self.kind == "any" else lowest)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What an estimator makes of a column."""

    values: NDArray[np.float32]  # (K, H, W), or (1, H, W) of one map over all fills
    se: NDArray[np.float32]  # the same
    notes: tuple[str, ...] = ()  # what to know of them


@dataclass(frozen=True, eq=False)
class NullThreshold:
    """What must be exceeded to count, and what by: a map's values in units of score."""

    limit: float
    values: NDArray[np.float32]  # (K, H, W)


class FittedEstimator(Protocol):
    """An estimator that has seen the masks and scores of a run."""

    def maps(self, column: TargetScores) -> Estimate:
        """The maps of some of the scores, and their errors."""

    def chance(self, column: TargetScores) -> NullThreshold | None:
        """What chance alone would show in them; None: ask the centered maps."""


@dataclass(frozen=True)
class Estimator:
    """How maps are made of a run, and what they are."""

    name: str  # as users and entry points have it
    prepare: Callable[[Sample], FittedEstimator]
    per_fill: bool = True  # or one map over all fills
    change: bool = True  # of a score, or a score itself

    @property
    def diverging(self) -> bool:
        """Whether zero is a value of its own: then colors diverge from it."""
        return self.change

    def unit(self, kind: str) -> str:
        """What a value is, of scores of that kind."""
        return f"change of {UNITS[kind]}" if self.change else UNITS[kind]


@dataclass(frozen=True, eq=False)
class LinearEstimator:
    """Sums over masks and a formula."""

    sample: Sample
    formula: Formula
    center: bool = False

    def maps(self, column: TargetScores) -> Estimate:
        return self.estimate(centered(column.scores) if self.center else column.scores)

    def chance(self, column: TargetScores) -> NullThreshold | None:
        """Of centered scores: other noise grows with the mean of the scores, which says nothing."""
        if self.formula is rise:
            return None  # its zero is not "no effect"
        plan, masks = self.sample.plan, self.sample.masks
        limit = significance_limit(plan, masks, column.scores, column.least, self.formula)
        return NullThreshold(limit, self.estimate(centered(column.scores)).values)

    def estimate(self, scores: NDArray[np.float64]) -> Estimate:
        return Estimate(*estimate(self.sample.plan, self.sample.masks, scores, self.formula))


def prepare_smooth(sample: Sample) -> FittedEstimator:
    from .smooth import fit

    return fit(sample)


def prepare_centered(sample: Sample) -> LinearEstimator:
    return LinearEstimator(sample, contrast, center=True)


ESTIMATORS = {
    estimator.name: estimator
    for estimator in (
        Estimator(
            "rise", lambda sample: LinearEstimator(sample, rise), per_fill=False, change=False
        ),
        Estimator("debiased", lambda sample: LinearEstimator(sample, debiased), per_fill=False),
        Estimator("paper", lambda sample: LinearEstimator(sample, contrast)),
        Estimator("centered", prepare_centered),
        Estimator("smooth", prepare_smooth),
    )
}


def find_estimator(name: str) -> Estimator:
    """The estimator of that name, ours or another package's."""
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    plugin = plugins.find(GROUP, name)
    if plugin is None:
        known = (*ESTIMATORS, *plugins.names(GROUP))
        raise InputError(f"The estimator is {name!r}, but it must be one of {', '.join(known)}.")
    if not isinstance(plugin.thing, Estimator) or plugin.thing.name != name:
        raise PluginError(
            f"The estimator {name!r} of the package {plugin.package} is no mcrise Estimator of "
            "that name: update or remove that package."
        )
    return plugin.thing
