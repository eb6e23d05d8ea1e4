"""Controls: the same block and color in other places, and how many of them do as much.

The places are a function of block and color alone, so that the verdict on a place does not depend
on what else was found.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..fills import Fill
from .candidates import Lattice
from .findings import Control, Trial
from .repaints import Region, cut_out
from .score_change import Scale

FEWEST_PLACES, FIRST_PLACES = 9, 10  # controls: with fewer nothing is said; asked first
FEW, NEARLY_ALL = 4, 15  # of 19
N_CONTROLS = 19  # places with which a finding is compared
AS_MUCH = 2 / 3  # of an effect: a control that does this much does as much


def control_regions(region: Region, fill: Fill, lattice: Lattice) -> list[Region]:
    """Up to 19 other places for a region, none overlapping it: a function of it and the fill alone.

    It is moved along the lattice as it is, and the places are drawn by a hash of the two.
    """
    found = list(places_for(region, lattice))
    content = hashlib.sha256(json.dumps(fill.to_json(), sort_keys=True).encode())
    content.update(repr(region.shape).encode())
    content.update(np.packbits(region).tobytes())
    drawn = np.random.default_rng(np.frombuffer(content.digest(), np.uint32)).permutation(
        len(found)
    )
    shape, chosen = cut_out(region), []
    for n in drawn[:N_CONTROLS]:
        top, left = found[n]
        place = np.zeros_like(region)
        place[top : top + shape.shape[0], left : left + shape.shape[1]] = shape
        chosen.append(place)
    return chosen


def places_for(region: Region, lattice: Lattice) -> Iterator[tuple[int, int]]:
    """Top and left of all places where a region fits and shares nothing with itself."""
    shape = cut_out(region)
    height, width = shape.shape
    for top in lattice.rows[lattice.rows <= lattice.size[0] - height].tolist():
        for left in lattice.columns[lattice.columns <= lattice.size[1] - width].tolist():
            if not (region[top : top + height, left : left + width] & shape).any():
                yield top, left


def control_of(
    scale: Scale, main: Trial, trials: Sequence[Trial], pieces: Sequence[Trial] = ()
) -> Control:
    """How many other places do as much, in a word."""
    n_as_much = sum(scale.as_much(main.score, one.score, AS_MUCH) for one in trials)
    return Control(tuple(trials), n_as_much, verdict_of(n_as_much, len(trials)), tuple(pieces))


def verdict_of(n_as_much: int, n_places: int) -> str:
    if n_places < FEWEST_PLACES:
        return "not controlled"
    if n_as_much == 0:
        return "only here"
    if n_as_much >= n_places * NEARLY_ALL / 19:
        return "almost anywhere"
    few = n_as_much <= FEW
    return f"here and in {n_as_much} of {n_places} other places" if few else "in many places"


def is_settled(control: Control) -> bool:
    """Whether the first controls are enough: many places do as much, and not all."""
    return FEW < control.n_as_much <= 0.7 * len(control.trials)


def controls_of(scale: Scale, main: Trial, trials: Iterable[Trial]) -> Control | None:
    """The control of a trial: the same fill under the same letter elsewhere."""
    there = [one for one in trials if one.role == "control" and one.letter == main.letter
             and one.fill == main.fill]  # fmt: skip
    scattered = [one for one in trials if one.role == "pieces" and one.letter == main.letter]
    asked = any(one.role == "own mean" and one.letter == main.letter for one in trials)
    return control_of(scale, main, there, scattered) if there or asked else None
