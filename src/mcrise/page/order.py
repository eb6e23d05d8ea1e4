"""Order: what is asked of the page, all of a run but the picture.

It is told by others, over the network or by a folder of jobs: nothing in it may name a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..brief import Brief
from ..errors import InputError


@dataclass(frozen=True)
class Order:
    """Which model is asked about a picture of which name, and what."""

    model: str  # its name here
    name: str = "picture"  # what the user calls the picture; never a path
    brief: Brief = field(default_factory=Brief)

    def to_json(self) -> dict[str, Any]:
        return {"model": self.model, "name": self.name, **self.brief.to_json()}


def parse_order(told: Mapping[str, Any]) -> Order:
    """An order as an earlier or a later version has told it: it may know fewer things, or more."""
    known = {entry.name: told[entry.name] for entry in fields(Brief) if entry.name in told}
    if "grid" in known:
        known["grid"] = tuple(known["grid"])
    return Order(told["model"], told["name"], make_brief(**known))


def make_brief(**told: Any) -> Brief:
    """A brief in the words of others."""
    # A brief reads its fills when it is made, and a picture would be opened then.
    if "picture" in str(told.get("fills", "")).lower():
        raise InputError("A picture from a file cannot be a fill here: files are not read.")
    return Brief(**told)
