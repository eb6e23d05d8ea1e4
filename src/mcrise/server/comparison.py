"""Two sets of maps beside each other: whether one can be subtracted, and what differs most."""

from typing import Any

import numpy as np

from ..audits.zones import NINTHS
from ..errors import InputError
from ..estimators import NullThreshold
from ..explanation import Explanation
from ..images import View
from ..maps import Maps

SAME_PIXEL = 0.5  # how far apart the edges of one frame may be


def check_comparable(one: Explanation, other: Explanation, target: int, theirs: int) -> None:
    """Refuse a difference that would subtract other classes, or other places of a picture."""
    if reason := why_not(one, other, target, theirs):
        raise InputError(reason)


def why_not(one: Explanation, other: Explanation, target: int, theirs: int) -> str:
    """Why two maps cannot be subtracted; empty if they can."""
    named = one.labels and other.labels
    if one.label(target) != other.label(theirs) if named else target != theirs:
        return (
            f"No difference: A is about {one.label(target)!r} and B about {other.label(theirs)!r}, "
            "which are different classes."
        )
    if not same_frame(one.view, other.view):
        return (
            f"No difference: A shows {frame_text(one.view)} and B {frame_text(other.view)}, so one "
            "place of the maps is not one place of the pictures."
        )
    ours, others = ({fill.name for fill in each.plan.fills} for each in (one, other))
    if not ours & others:
        return "No difference: A and B have no color in common. Explain both with the same colors."
    return ""


def same_frame(one: View, other: View) -> bool:
    """Whether a place of one input is the same place of the other."""
    if one.original_size != other.original_size:  # two pictures: then at least of one shape
        return one.pixels.shape == other.pixels.shape
    return bool(np.allclose(one.box, other.box, rtol=0, atol=SAME_PIXEL))


def frame_text(view: View) -> str:
    """`rows 0 to 600 and columns 100 to 700 of 600 x 800`."""
    top, left, bottom, right = (round(edge) for edge in view.box)
    rows, columns = view.original_size
    return f"rows {top} to {bottom} and columns {left} to {right} of {rows} x {columns} pixels"


def described(
    one: Maps,
    other: Maps,
    difference: Maps,
    chance: NullThreshold | None,
    names: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """The map that differs most, and a sentence about its strongest place.

    `names` are what A and B are called, if they differ in something else than their class.
    """
    strength = np.abs(difference.values if chance is None else chance.values)
    k, row, column = np.unravel_index(int(strength.argmax()), strength.shape)
    name = difference.names[k]
    if chance is None or not difference.diverging:
        return {"strongest": name, "sentence": ""}
    if strength[k, row, column] <= chance.limit:
        sentence = (
            "No significant difference between A and B: all differences are below "
            f"±{chance.limit:.2g} and could be chance."
        )
        return {"strongest": name, "sentence": sentence}
    rows, columns = difference.values.shape[1:]
    place = NINTHS[3 * (3 * int(row) // rows) + 3 * int(column) // columns].name
    what = f"a patch of {name}" if difference.fills else "keeping what is there"
    at = row / rows, column / columns
    by = [f"{value_at(maps, name, *at):+.2f}" for maps in (one, other)]
    if names:
        changes = f"{one.label!r} by {by[0]} for A ({names[0]}) and by {by[1]} for B ({names[1]})"
    else:
        changes = f"A ({one.label!r}) by {by[0]} and B ({other.label!r}) by {by[1]}"
    sentence = f"The largest difference is at the {place}: {what} changes {changes}."
    return {"strongest": name, "sentence": sentence.replace("-0.", "−0.")}


def value_at(maps: Maps, name: str, down: float, across: float) -> float:
    rows, columns = maps.values.shape[1:]
    return float(maps.values[maps.names.index(name), int(down * rows), int(across * columns)])
