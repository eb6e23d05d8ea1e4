"""RunConfig: what a run is asked, apart from the image and the model.

Each field is declared once, with its default, its limits and its help text. Keywords in Python,
options of the commands, parameters of HTTP and JSON all follow from these fields. Values are
checked when a `RunConfig` is made, so that nothing is refused after work was spent on it.
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal, TypedDict, Unpack

import msgspec
import numpy as np
from numpy.typing import NDArray

from . import fills as fill_kinds
from .errors import InputError
from .fills import Fill
from .masks import CHUNK, MOST_CELLS, Plan

FIRST_TRY = 0.2  # of mask_prob="auto"
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)  # whole batches only: a batch never straddles a chunk

IntOrAuto = int | Literal["auto"]
FloatOrAuto = float | Literal["auto"]


def setting(default: Any, help: str, **limits: Any) -> Any:
    """A field with its help text and its limits: `low`, `high`, `above`, `below`, `choices`.

    `needed` ends the sentence that refuses a value outside of them, or of another type.
    """
    return field(default=default, metadata={"help": help, **limits})


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

    fills: str | tuple[Fill, ...] = setting(
        "rgbwk", "What to paint: rgbwk, cube8, auto, or a list such as red,#0f0,blur:8,gray."
    )
    grid: tuple[int, int] = setting(
        (8, 8),
        "Cells of a mask, rows x columns.",
        low=1,
        high=MOST_CELLS,
        needed=f"two whole numbers from 1 to {MOST_CELLS} are needed, rows and columns, or one for "
        "both",
    )
    mask_prob: FloatOrAuto = setting(  # noqa: RUF009  # a field
        "auto",
        "Chance that a cell is painted; auto tests which value shows most.",
        above=0,
        below=1,
        needed="it must lie strictly between 0 and 1, or be auto: a map compares painted cells "
        "with kept ones, so both must occur",
    )
    seed: int = setting(
        0,
        "Seed of all random choices; the same seed gives the same masks.",
        low=0,
        high=2**64 - 1,
        needed="a whole number from 0 to 2**64 - 1 is needed",
    )
    n_masks: IntOrAuto = setting(  # noqa: RUF009  # a field
        "auto",
        "Masks per image; auto stops when the map is good enough.",
        low=1,
        needed="a whole number of at least 1, or auto, is needed; 1000 is a good start",
    )
    tolerance: float = setting(
        0.3,  # trials decide what matters; the map only proposes where to look
        "With --n-masks auto, stop at this relative error of the target's map.",
        above=0,
        below=10,
        needed="a relative error above 0 is needed, such as 0.3",
    )
    max_masks: int = setting(
        8000,  # the paper spends as many calls on every image
        "With --n-masks auto, ask about at most this many masks.",
        low=1,
        needed="a whole number of at least 1 is needed; 8000 is the paper's",
    )
    target: int | str | None = setting(None, "Class name or index.  [default: the predicted class]")
    batch_size: IntOrAuto = setting(  # noqa: RUF009  # a field
        32,
        "Images per call of the model; auto tries which is fastest.",
        choices=BATCH_SIZES,
        needed=f"it must divide a chunk of {CHUNK} masks: give {', '.join(map(str, BATCH_SIZES))} "
        "or auto",
    )

    def __post_init__(self) -> None:
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, value in checked(**given).items():
            object.__setattr__(self, name, value)
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
            listed = isinstance(said["fills"], Iterable)
            said["fills"] = fill_kinds.as_fills(said["fills"] if listed else [said["fills"]])
        return cls(**said)

    def plan(self, pixels: NDArray[Any], auto: float = FIRST_TRY) -> Plan:
        """The plan for an image (H, W, 3); a `mask_prob` of auto is taken to be `auto`."""
        given = self.fills
        chosen = fill_kinds.parse(given, pixels) if isinstance(given, str) else given
        rows, cols = pixels.shape[:2]
        mask_prob = auto if self.mask_prob == "auto" else self.mask_prob
        return Plan((rows, cols), chosen, self.grid, mask_prob, self.seed)

    def like(self, plan: Plan, n_masks: int) -> "RunConfig":
        """To paint as another run did, to compare; with as many masks, unless n_masks is given."""
        for what in ("fills", "grid", "mask_prob", "seed"):
            if getattr(self, what) != FIELDS[what].default:
                raise InputError(
                    f"A run with the masks of another was asked for, and {what} too: it uses the "
                    f"{what} of the other run, so leave one out."
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

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> "RunConfig":
        """What `to_json` gave, of an earlier or a later version: it may have fewer fields, or more.

        Raises a ValueError for a value of another type.
        """
        known: dict[str, Any] = {}
        for one in fields(cls):
            if one.name in said:
                wanted = str if one.name == "fills" else one.type
                try:
                    known[one.name] = msgspec.convert(said[one.name], wanted)
                except ValueError as error:
                    raise ValueError(f"{one.name}: {error}") from None
        return cls(**known)


FIELDS = {one.name: one for one in fields(RunConfig)}
TOLERANCE, MAX_MASKS = RunConfig.tolerance, RunConfig.max_masks


def checked(**values: Any) -> dict[str, Any]:
    """Values of some fields in their own types; a value of another type or limit is refused."""
    return {name: checked_one(value, FIELDS[name]) for name, value in values.items()}


def checked_one(value: Any, known: Field[Any]) -> Any:
    """A value in the type of its field: NumPy's numbers become Python's."""
    limits, kind = known.metadata, known.type
    is_auto = isinstance(value, str) and value == "auto" and kind in (IntOrAuto, FloatOrAuto)
    if "needed" not in limits or is_auto:
        return value
    is_pair, read = kind == tuple[int, int], number if kind in (float, FloatOrAuto) else whole
    try:
        some = tuple(map(read, value)) if is_pair and np.ndim(value) else (read(value),)
        some = 2 * some if is_pair and not np.ndim(value) else some
    except (TypeError, ValueError):
        some = ()
    if len(some) != 1 + is_pair or not all(is_within(one, limits) for one in some):
        raise InputError(f"{known.name} is {value!r:.60}, but {limits['needed']}.")
    return some if is_pair else some[0]


def whole(value: Any) -> int:
    """A whole number, of NumPy too; a TypeError for 8.0, which somebody may have rounded."""
    if isinstance(value, bool | np.bool_):
        raise TypeError
    return operator.index(value)


def number(value: Any) -> float:
    """A number as it is, or one of NumPy as Python has it."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise TypeError
    return value.item() if isinstance(value, np.generic) else value


def is_within(value: float, limits: Mapping[str, Any]) -> bool:
    return (
        value in limits.get("choices", (value,))
        and limits.get("low", value) <= value <= limits.get("high", value)
        and ("above" not in limits or bool(value > limits["above"]))
        and ("below" not in limits or bool(value < limits["below"]))
    )


def whole_chunks(n_masks: int) -> int:
    return -(-n_masks // CHUNK) * CHUNK
