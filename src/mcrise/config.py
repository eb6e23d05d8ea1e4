"""Brief: what a run is asked, apart from the image and the model.

One set of defaults and checks for Python, every command, the page's jobs and studies. What a brief
says is checked when it is made, so that nothing is refused after work was spent on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from . import fills as fill_kinds
from .errors import InputError
from .fills import Fill
from .masks import CHUNK, Plan

TOLERANCE, MAX_MASKS = 0.25, 8000  # of n_masks="auto"; the paper spends 8000 calls on every image
FIRST_TRY = 0.2  # of mask_prob="auto"
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)  # whole batches only: a batch never straddles a chunk

IntOrAuto = int | Literal["auto"]
FloatOrAuto = float | Literal["auto"]


class RunKeywords(TypedDict, total=False):
    """The fields of `RunConfig` as keywords of Python functions, which also take shorter forms."""

    fills: str | Sequence[str | Fill]
    colors: str | Sequence[str | Fill] | None  # another word for fills
    grid: int | tuple[int, int]
    mask_prob: FloatOrAuto
    seed: int
    n_masks: IntOrAuto
    tolerance: float
    max_masks: int
    target: int | str | None
    batch_size: IntOrAuto


@dataclass(frozen=True)
class RunConfig:
    """What to paint, how often and how long, and which class decides when it is enough."""

    fills: str | tuple[Fill, ...] = "rgbwk"
    grid: tuple[int, int] = (8, 8)  # cells down and across
    mask_prob: FloatOrAuto = "auto"  # that a cell is painted; auto: by a pilot
    seed: int = 0
    n_masks: IntOrAuto = "auto"  # until the map of `target` is as good as `tolerance`
    tolerance: float = TOLERANCE  # relative error
    max_masks: int = MAX_MASKS  # most masks of "auto"
    target: int | str | None = None  # None: the class that the model predicts
    batch_size: IntOrAuto = 32

    def __post_init__(self) -> None:
        check_n_masks(self.n_masks, self.tolerance, self.max_masks)
        if self.batch_size != "auto":
            check_batch(self.batch_size)
        if isinstance(self.mask_prob, str) and self.mask_prob != "auto":
            raise InputError(
                f"mask_prob is {self.mask_prob!r}, but a number between 0 and 1 or auto is needed."
            )
        self.plan(np.zeros((64, 64, 3), np.uint8))

    @classmethod
    def of(cls, **given: Unpack[RunKeywords]) -> "RunConfig":
        """From the keywords of `explain`: `colors` for fills, a list of fills, a number as grid."""
        said: dict[str, Any] = dict(given)
        colors = said.pop("colors", None)
        if colors is not None:
            if said.get("fills", cls.fills) != cls.fills:
                raise InputError("Both fills and colors were given: they are the same, give one.")
            said["fills"] = colors
        if not isinstance(said.get("fills", ""), str):
            said["fills"] = fill_kinds.as_fills(said["fills"])
        if isinstance(said.get("grid"), int):
            said["grid"] = (said["grid"], said["grid"])
        return cls(**said)

    def plan(self, pixels: NDArray[Any], auto: float = FIRST_TRY) -> Plan:
        """The plan for an image (H, W, 3); a `mask_prob` of auto is taken to be `auto`."""
        given = self.fills
        chosen = fill_kinds.parse(given, pixels) if isinstance(given, str) else given
        rows, cols = pixels.shape[:2]
        mask_prob = auto if self.mask_prob == "auto" else self.mask_prob
        return Plan((rows, cols), chosen, self.grid, mask_prob, self.seed)

    def like(self, plan: Plan, n_masks: int) -> "RunConfig":
        """To paint as another run did, for comparing with it: as often too, unless that is said."""
        usual = RunConfig()
        for what in ("fills", "grid", "mask_prob", "seed"):
            if getattr(self, what) != getattr(usual, what):
                raise InputError(
                    f"A run like another was asked for, and {what} too: it takes that of the "
                    "other, so leave one out."
                )
        return replace(
            self,
            fills=plan.fills,
            grid=plan.grid,
            mask_prob=plan.mask_prob,
            seed=plan.seed,
            n_masks=n_masks if self.n_masks == "auto" else self.n_masks,
        )

    def to_json(self) -> dict[str, Any]:
        """As keyword arguments again; fills given as objects go by their names."""
        chosen = self.fills
        named = chosen if isinstance(chosen, str) else ",".join(fill.name for fill in chosen)
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**said, "fills": named, "grid": list(self.grid)}


def check_n_masks(
    n_masks: IntOrAuto, tolerance: float = TOLERANCE, max_masks: int = MAX_MASKS
) -> None:
    if n_masks != "auto" and (isinstance(n_masks, str) or n_masks < 1):
        raise InputError(
            f"n_masks is {n_masks}, but at least 1 or auto is needed; 1000 is a good start."
        )
    if not 0 < tolerance < 10:
        raise InputError(
            f"The tolerance is {tolerance:g}, but a relative error above 0 is needed, such as 0.25."
        )
    if max_masks < 1:
        raise InputError(
            f"The cap is {max_masks}, but at least 1 mask is needed; 8000 is the paper's."
        )


def check_batch(batch_size: IntOrAuto) -> int:
    if batch_size not in BATCH_SIZES:
        raise InputError(
            f"The batch size is {batch_size}, but it must divide a chunk of {CHUNK} masks: give "
            f"{', '.join(map(str, BATCH_SIZES))} or auto."
        )
    return int(batch_size)


def whole_chunks(n_masks: int) -> int:
    return -(-n_masks // CHUNK) * CHUNK
