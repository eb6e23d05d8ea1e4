"""Maps: the change of the score where a color is painted, with errors and what to know of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._util.array_eq import ArrayEq
from ._util.text import magnitude
from .errors import InputError
from .estimators.averages import group_count
from .estimators.raster import LARGE
from .fills import Fill
from .images import downsample, downsampling_step
from .masks import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .estimators import NullThreshold


STANDARD_ERRORS_95 = 1.96  # half of a 95% interval, which is what ± stands for everywhere
SETTLED = 256  # masks, from which on `smooth` knows its errors well enough


@dataclass(frozen=True, eq=False, repr=False)
class Maps(ArrayEq):
    """One map per fill (one in all for `rise` and `debiased`), with standard errors.

    A value is the mean change of the score when the neighbourhood of that pixel, about two cells
    wide, is painted with the fill rather than kept, while other cells are painted too.
    """

    values: NDArray[np.float32]  # (K, H, W)
    se: NDArray[np.float32]  # (K, H, W)
    fills: tuple[Fill, ...]  # one per map; empty where a map is over all fills
    target: int
    label: str  # of the class, or of one class less another
    estimator: str
    n_masks: int
    unit: str  # what a value is, for colorbars
    image: NDArray[Any]  # (H, W, 3)
    diverging: bool = True  # whether zero is a value of its own, or only another value
    against: int | None = None  # the class whose score was taken off, if any
    notes: tuple[str, ...] = ()  # what to know before reading the maps
    beyond: NDArray[np.bool_] | None = None  # (K, H, W) what exceeds chance; None: ask `test`
    limit: float | None = None  # what chance exceeds in one map of twenty, in units of score
    other_tested: bool = False  # whether these were too noisy or shrunken, and centered maps were
    test: "Callable[[], NullThreshold] | None" = field(
        default=None, compare=False
    )  # asked when drawn

    def __getstate__(self) -> dict[str, Any]:
        """For a pickle: the answer of the test instead of the run that it is asked of."""
        return {**vars(self.tested()), "test": None}

    def __repr__(self) -> str:
        error = self.relative_error
        size = " x ".join(map(str, self.values.shape[1:]))
        return (
            f"<Maps of {self.label!r}: {', '.join(self.names)}; {size} pixels, {self.n_masks:,} "
            f"masks, relative error {error:.2f}>"
        )

    def __getitem__(self, fill: str) -> NDArray[np.float32]:
        """The values (H, W) of the map of one fill, by its name; capitals do not matter."""
        lowered = [name.lower() for name in self.names]
        if str(fill).lower() not in lowered:
            raise InputError(f"There is no map of {fill!r}: there are {', '.join(self.names)}.")
        return np.asarray(self.values[lowered.index(str(fill).lower())])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The values (K, H, W), for NumPy and what builds on it."""
        return np.array(self.values, dtype, copy=copy)

    @property
    def relative_error(self) -> float:
        """The noise in the maps over the signal in them; infinite if there is no signal to see.

        Where zero is only another value, the signal is what differs from place to place.
        """
        noise = mean_square(self.se)
        signal = mean_square(self.values) - noise
        if not self.diverging:
            levels = self.values.mean(axis=(1, 2), dtype=np.float64)
            signal -= float(np.mean(np.square(levels)))
        if noise == 0:
            return 0.0
        return math.sqrt(noise / signal) if signal > 0 else math.inf

    @property
    def half_width_95(self) -> float:
        """Standard errors in half of a 95% interval: more where few masks tell how large one is.

        Those of `smooth` are not told by groups, but with few masks they are too small as well.
        """
        from scipy.special import stdtrit

        n_groups = group_count(self.n_masks)
        if n_groups < 2 or (self.estimator == "smooth" and self.n_masks >= SETTLED):
            return STANDARD_ERRORS_95
        return float(stdtrit(n_groups - 1, 0.975))

    def thinned(self, most: int) -> "Maps":
        """Fewer pixels to look at, so that no side is longer than `most`: every n-th has its own
        values, over the mean of the image around it."""
        every = downsampling_step(self.image.shape, most)
        if every == 1:
            return self
        known = self.tested()
        return replace(
            known,
            values=self.values[:, ::every, ::every],
            se=self.se[:, ::every, ::every],
            image=downsample(self.image, every),
            beyond=None if known.beyond is None else known.beyond[:, ::every, ::every],
        )

    def tested(self) -> "Maps":
        """The same maps, with what exceeds chance in them: the rule that findings use."""
        if not self.diverging or self.beyond is not None or self.test is None:
            return self
        return self.beside(self.test())

    def beside(self, chance: "NullThreshold") -> "Maps":
        """The same maps, with what exceeds chance in them."""
        return replace(
            self,
            beyond=np.abs(chance.values) > chance.limit,
            limit=chance.limit,
            other_tested=not np.array_equal(chance.values, self.values),
        )

    @property
    def faint(self) -> str:
        """What is drawn faintly, as a sentence; empty where nothing is."""
        return pale_areas([self])

    @property
    def names(self) -> tuple[str, ...]:
        """What heads each map."""
        return tuple(fill.name for fill in self.fills) or (self.estimator,)

    def plot(
        self, ax: "Axes | None" = None, vmax: float | None = None, cmap: str | None = None
    ) -> "Figure":
        """The image and its maps side by side, as a matplotlib figure.

        With `ax`, only the map there is (or the first) is drawn into it. `vmax` is the value at
        the ends of the scale, to compare figures; `cmap` another color scale of matplotlib's.
        """
        from .output.plots import plot_into, plot_maps  # these and the notebook's alone point down

        if ax is not None:
            return plot_into(ax, self, vmax, cmap)
        return plot_maps([self], vmax=vmax, cmap=cmap)

    def to_xarray(self) -> Any:
        """Values and errors as an `xarray.Dataset` over fill, row and column."""
        try:
            import xarray
        except ImportError:
            raise InputError("Labelled arrays need xarray: pip install xarray.") from None
        dims = ("fill", "row", "column")
        return xarray.Dataset(
            {"value": (dims, self.values), "se": (dims, self.se)},
            coords={"fill": list(self.names)},
            attrs={"label": self.label, "unit": self.unit, "estimator": self.estimator},
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .output.html import maps_html

        return maps_html(self)


def pale_areas(rows: Sequence[Maps], how: str = "Pale") -> str:
    """`Pale areas (below ±0.057) could be chance.`: in maps of a page.

    Empty where nothing is drawn so.
    """
    tested = [maps.tested() for maps in rows if maps.diverging]
    if not tested:
        return ""
    limits = {
        maps.label: f"±{magnitude(maps.limit)}{' in the centered maps' * maps.other_tested}"
        for maps in tested
        if maps.limit is not None
    }
    if len(limits) < len(tested):  # mean maps: of each place its own
        return f"{how} areas could be chance."
    named = [f"{limit} for {label}" for label, limit in limits.items()]
    below = ", ".join(named) if len({*limits.values()}) > 1 else next(iter(limits.values()))
    return f"{how} areas (below {below}) could be chance."


def mean_square(maps: NDArray[np.float32]) -> float:
    """Over all values of maps (K, H, W); of large ones map by map, to hold one at a time."""
    if maps[0].size <= LARGE:
        return float(np.mean(np.square(maps, dtype=np.float64)))
    return float(np.mean([np.mean(np.square(one, dtype=np.float64)) for one in maps]))


def diagnose(
    plan: Plan,
    n_masks: int,
    untouched: float,
    mean: float,
    spread: float,
    relative_error: float,
    jitter: float = 0.0,
) -> tuple[str, ...]:
    """Look for the usual reasons why a map says little.

    `untouched` is the target's score on the image as it is, `mean` and `spread` its mean and
    standard deviation under masks; two answers to the same images were `jitter` apart.
    """
    if spread == 0:
        return (
            f"the score was {magnitude(mean)} under every mask: as far as these fills can tell, "
            "the model does not look at the image",
        )
    found = []
    if jitter:
        found.append(
            "the model answers the same images differently each time, by up to "
            f"{magnitude(jitter)}: is dropout on, or an image changed at random on its way in? "
            "Maps are noisier for it"
        )
    if untouched > 0.1 and abs(mean) < 0.1 * untouched and plan.mask_prob > 0.1:
        gentler = max(0.1, round(0.4 * plan.mask_prob, 1))
        found.append(
            f"under masks the score averages {magnitude(mean)} (untouched {magnitude(untouched)}): "
            f"at mask_prob {plan.mask_prob:g} the model sees little; try {gentler:g}"
        )
    if relative_error > 1:
        found.append(
            f"the map cannot be distinguished from noise yet: {3 * n_masks:,} more masks would "
            "halve its error"
        )
    elif relative_error > 0.5:
        found.append(
            f"the map is noisy (relative error {relative_error:.2f}): {3 * n_masks:,} more masks "
            "would halve that"
        )
    return tuple(found)
