"""Maps: what an estimator makes of a record for one class, in units of score."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .fills import Fill

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Maps:
    """One map per fill (one in all for `rise` and `debiased`), with standard errors.

    A value is the mean change of the score when the neighbourhood of that pixel, about two cells
    wide, is painted with the fill rather than kept, while other cells are painted too.
    """

    values: NDArray[np.float32]  # (K, H, W)
    se: NDArray[np.float32]  # (K, H, W)
    fills: tuple[Fill, ...]  # one per map; empty where a map is over all fills
    target: int
    label: str
    estimator: str
    n_masks: int
    unit: str  # what a value is, for colorbars
    image: NDArray[Any]  # (H, W, 3)
    notes: tuple[str, ...] = ()  # what to know before reading the maps

    @property
    def relative_error(self) -> float:
        """The noise in the maps over the signal in them; infinite if there is no signal to see."""
        noise = float(np.mean(np.square(self.se, dtype=np.float64)))
        signal = float(np.mean(np.square(self.values, dtype=np.float64))) - noise
        if noise == 0:
            return 0.0
        return math.sqrt(noise / signal) if signal > 0 else math.inf

    @property
    def names(self) -> tuple[str, ...]:
        """What heads each map."""
        return tuple(fill.name for fill in self.fills) or (self.estimator,)

    def plot(self) -> "Figure":
        """The image and its maps side by side, as a matplotlib figure."""
        from .plots import plot_maps  # this and the notebook's import alone point down the layers

        return plot_maps([self])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .report import maps_html

        return maps_html(self)
