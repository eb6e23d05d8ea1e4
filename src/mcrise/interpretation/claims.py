"""Claims: the closed list of what may be said of a region, each held to a trial of its own.

A claim is about an image, a region of it and a class. It is printed when painting that region and
asking the model again supported it, and the numbers of that trial are printed with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .._util.array_eq import ArrayEq
from ..fills import Fill
from .repaints import Region

ClaimKind = Literal[
    "lowers",  # each of these fills lowers the score
    "raises",  # each of these fills raises it
    "as good",  # each of these fills keeps it
    "color",  # its color matters and its texture does not
    "finds color",  # the same, and these fills are the color that is looked for
    "structure",  # its texture or shape matters: its own mean color does not suffice
    "mixture",  # the same, but its own pixels in another order suffice
    "missing color",  # these fills raise the score, and what is there does not count
    "unwanted color",  # most fills raise the score, and its own mean color does not
    "obstacle",  # covering it raises the score, with its own mean color too
    "brightness",  # how bright it is matters, not its hue
    "veto",  # only this fill lowers the score, and what is there does not matter
    "hue",  # and the like: what a fill takes away matters
    "saturation",
    "sharpness",
    "hue obstacle",  # and the like: what a fill takes away is in the way
    "saturation obstacle",
    "sharpness obstacle",
    "specific",  # the same repaint does less in all other places tried
    "either suffices",  # of two regions: without one the score is kept, without both it is not
    "both needed",  # of two regions: without either nearly as much is lost as without both
    "must match",  # of two regions: a color on one lowers the score, on both it keeps it
    "together",  # of three or more: without all the score is lost, and while any is there it is not
    "saturated",  # painting the region alone moves nothing
    "all together",  # no place matters, but each half of the image does, painted in these fills
    "nothing matters",  # no color on any part moves the score
]
CLAIM_KINDS: tuple[str, ...] = get_args(ClaimKind)


@dataclass(frozen=True, eq=False)
class Claim(ArrayEq):
    """One thing that a trial supports."""

    kind: str
    regions: tuple[Region, ...]
    fills: tuple[Fill, ...]
    target: int
    numbers: Mapping[str, float]  # scores of the trials behind it

    def __post_init__(self) -> None:
        assert self.kind in CLAIM_KINDS, self.kind

    def __repr__(self) -> str:
        fills = ", ".join(fill.name for fill in self.fills)
        return f"<Claim: {self.kind}{f' ({fills})' if fills else ''}>"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "fills": [fill.name for fill in self.fills],
            "numbers": dict(self.numbers),
        }


def join(words: Sequence[str], conjunction: str) -> str:
    """`red, green or blue`."""
    return f" {conjunction} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def in_words(named: Sequence[Fill], among: Sequence[Fill], conjunction: str = "and") -> str:
    """Fills in as few words as tell them: `red and blue`, `all colors but red`."""
    names = [fill.name for fill in named]
    others = [fill.name for fill in among if fill not in named]
    if len(names) > 3 and not others:
        return f"{'any' if conjunction == 'or' else 'all'} of the {len(names)} colors"
    if len(names) > 3 and len(others) <= 2:
        every = "any color" if conjunction == "or" else "all colors"
        return f"{every} but {join(others, 'and')}"
    if len(names) > 5:
        return f"{', '.join(names[:4])} {conjunction} {len(names) - 4} others"
    return join(names, conjunction)


def sentence_case(words: str) -> str:
    return words[:1].upper() + words[1:]
