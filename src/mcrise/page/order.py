"""Order: what is asked of the page, all of a run but the picture.

It is told by others, over the network or by a folder of jobs: nothing in it may name a file.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import told
from ..brief import Brief
from ..errors import InputError
from ..masks import MOST_CELLS

BLANK = np.zeros((64, 64, 3), np.uint8)


@dataclass(frozen=True)
class Order:
    """Which model is asked about a picture of which name, and what."""

    model: str  # its name here
    name: str = "picture"  # what the user calls the picture; never a path
    brief: Brief = field(default_factory=Brief)
    as_recorded: bool = False  # its fills are those of the job's record, whatever the brief says

    def to_json(self) -> dict[str, Any]:
        said = {"model": self.model, "name": self.name, **self.brief.to_json()}
        return said if self.is_named(said["fills"]) else {**said, "fills": None}

    def is_named(self, names: str) -> bool:
        """Whether names tell its fills: those of others' records may be called anything."""
        if isinstance(self.brief.fills, str):
            return not self.as_recorded
        try:
            return make_brief(fills=names).plan(BLANK).fills == self.brief.fills
        except InputError:
            return False


def parse_order(said: Any) -> Order:
    """An order as an earlier or a later version has told it: it may know fewer things, or more."""
    try:
        said = told.table(said)
        known = {
            name: read(said[name])
            for name, read in BRIEF.items()
            if name in said and not (name == "fills" and said[name] is None)
        }
        model, name = told.text(said["model"]), told.text(said["name"])
    except (ValueError, LookupError, RecursionError) as error:
        raise InputError(f"it is no order ({error}).") from None
    return Order(model, name, make_brief(**known), "fills" in said and said["fills"] is None)


def auto_or(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: value if value == "auto" else read(value)


def whole(value: Any) -> int:
    return told.whole(value, 0, 2**64 - 1)


def target(value: Any) -> int | str | None:
    return value if value is None else told.text(value) if isinstance(value, str) else whole(value)


# How the entries of a brief are read.
BRIEF: dict[str, Callable[[Any], Any]] = {
    "fills": told.text,
    "grid": lambda value: told.pair(value, MOST_CELLS),
    "mask_prob": auto_or(told.number),
    "seed": whole,
    "n_masks": auto_or(whole),
    "tolerance": told.number,
    "cap": whole,
    "target": target,
    "batch_size": auto_or(whole),
}


def make_brief(**told: Any) -> Brief:
    """A brief in the words of others."""
    # A brief reads its fills when it is made, and a picture would be opened then.
    if "picture" in str(told.get("fills", "")).lower():
        raise InputError("A picture from a file cannot be a fill here: files are not read.")
    return Brief(**told)
