"""Findings: the places of an image that matter, each with the trial that shows it.

A search is a generator. It yields lists of `Question`, receives the scores (C,) of each, and
returns `Findings`. The answers are kept in the explanation as `Trial`s, in the order asked, and
`Findings` are a function of these: without a model they come out the same.
"""

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..fills import Fill
from .claims import Claim
from .repaints import Region, Repaint

Role = Literal[
    "search",  # is this a place that matters?
    "finding",  # this place has a letter from now on; its answer is known already
    "color",  # a finding in each color
    "own mean",
    "dominant",
    "gray",  # of the brightness of a color or of what is there
    "tint",  # other hues of the same brightness
    "shuffle",  # its own pixels in another order
    "smaller",  # a part of a finding: does it do as much?
    "recolored",  # a place in another color: does that do more?
    "larger",  # more than a place, or as little of a large part as is needed
    "lobe",  # a significant area of the map, of any shape
    "untouched",  # the image as it is, asked again
    "again",  # a place that may be a finding, where answers differ each time
    "control",  # the same block and color in another place
    "pair",  # two findings together
    "whole",  # halves and all of the image
    "large",  # an area of the map that is too large for a place
    "pieces",  # as much of the image elsewhere, in pieces
    "counterfactual",  # does the model then say the class that is wanted?
]
SEARCHED = ("search", "smaller", "recolored", "lobe")  # roles of trials that may be findings


class Question(NamedTuple):
    """What a search asks: a repaint, why, and about which finding.

    The same repaint may be asked in several roles; it is the same answer. A `Repaint` with another
    `take` is the same picture asked again, with an answer and a digest of its own.
    """

    repaint: Repaint
    role: str  # one of Role
    letter: str = ""  # of the finding it is about


@dataclass(frozen=True, eq=False)
class Trial(ArrayEq):
    """One repaint of the image and what the model answered."""

    repaint: Repaint
    role: str
    scores: NDArray[np.float32]  # (C,) the mean of the answers if it was asked several times
    target: int  # the class whose search asked it
    letter: str = ""  # of the finding it is about
    repeats: NDArray[np.float32] | None = None  # (R, C) single answers, where they differ

    def __repr__(self) -> str:
        what = f"{self.fill.name} on {self.repaint.share:.0%}, " if self.repaint.strokes else ""
        return f"<Trial ({self.role}): {what}score {self.score:.2f}>"

    @property
    def region(self) -> Region:
        """All that is painted."""
        regions = [stroke.region for stroke in self.repaint.strokes]
        return regions[0] if len(regions) == 1 else np.asarray(np.logical_or.reduce(regions))

    @property
    def fill(self) -> Fill:
        return self.repaint.strokes[0].fill

    @property
    def score(self) -> float:
        """Of the class whose search asked it."""
        return float(self.scores[self.target])

    @property
    def says(self) -> int:
        """The class that the model then predicts."""
        return int(self.scores.argmax())

    def to_json(self) -> dict[str, Any]:
        spread = None if self.repeats is None else self.repeats[:, self.target].tolist()
        return {
            "role": self.role,
            **(self.painted_to_json() if self.repaint.strokes else {}),
            "score": self.score,
            "predicted": self.says,
            **({} if spread is None else {"repeats": spread}),
        }

    def painted_to_json(self) -> dict[str, Any]:
        return {
            "fill": self.fill.name,
            "box": box_of(self.region),
            "share": self.repaint.share,
        }


@dataclass(frozen=True, eq=False)
class Control(ArrayEq):
    """The same block and color in 19 other places, drawn by a hash of block and color alone."""

    trials: tuple[Trial, ...]
    n_as_much: int  # how many do two thirds as much
    verdict: str  # "only here", "here and in n of 19 other places", "in many places",
    # "almost anywhere" or "not controlled"
    pieces: tuple[Trial, ...] = ()  # as much of the rest, where the block fits into few places

    def __repr__(self) -> str:
        return f"<Control: {self.verdict}, {len(self.trials)} other places>"

    @property
    def scores(self) -> list[float]:
        return [trial.score for trial in self.trials]

    def to_json(self) -> dict[str, Any]:
        low, middle, high = np.quantile(self.scores, [0, 0.5, 1]) if self.trials else [None] * 3
        return {"verdict": self.verdict, "n_as_much": self.n_as_much, "places": len(self.trials),
                "low": low, "median": middle, "high": high,
                "pieces": [trial.score for trial in self.pieces]}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Finding(ArrayEq):
    """A place that matters, what was painted there, and what came of it."""

    letter: str  # never moves once printed
    trial: Trial  # the main trial
    before: float  # score of the target on the untouched image
    says: str  # the class that the model predicts after it
    changes_decision: bool
    tests: tuple[Trial, ...] = ()  # each color, own mean color, ...; empty where only listed
    control: Control | None = None
    claims: tuple[Claim, ...] = ()
    described: bool = False  # in full, or only listed
    sentence: str = ""
    lines: tuple[str, ...] = ()  # that follow the sentence

    def __repr__(self) -> str:
        return (
            f"<Finding {self.letter}: {self.place} painted {self.fill.name}, "
            f"{self.before:.2f} → {self.after:.2f}>"
        )

    def __str__(self) -> str:
        return "\n".join([self.sentence, *self.lines])

    @property
    def region(self) -> Region:
        return self.trial.repaint.strokes[0].region

    @property
    def fill(self) -> Fill:
        return self.trial.fill

    @property
    def place(self) -> str:
        return self.trial.repaint.strokes[0].place

    @property
    def after(self) -> float:
        return self.trial.score

    @property
    def direction(self) -> int:
        """+1 raises the score of the target, -1 lowers it."""
        return 1 if self.after > self.before else -1

    @property
    def share(self) -> float:
        """Of the image."""
        return float(self.region.mean())

    @property
    def rows(self) -> tuple[int, int]:
        """The first, and the one after the last."""
        top, _, bottom, _ = box_of(self.region)
        return top, bottom

    @property
    def columns(self) -> tuple[int, int]:
        """The first, and the one after the last."""
        _, left, _, right = box_of(self.region)
        return left, right

    def claim(self, kind: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.kind == kind), None)

    def to_json(self) -> dict[str, Any]:
        return {
            "letter": self.letter,
            "place": self.place,
            "box": box_of(self.region),
            "share": self.share,
            "direction": self.direction,
            "fill": self.fill.name,
            "before": self.before,
            "after": self.after,
            "says": self.says,
            "changes_decision": self.changes_decision,
            "described": self.described,
            "tests": [trial.to_json() for trial in self.tests],
            "control": self.control.to_json() if self.control else None,
            "claims": [claim.to_json() for claim in self.claims],
            "sentence": self.sentence,
            "lines": list(self.lines),
        }


@dataclass(frozen=True, eq=False)
class Findings(ArrayEq, Sequence[Finding]):
    """What was found about one class, most important first; prints as sentences."""

    target: int
    label: str
    findings: tuple[Finding, ...]
    opening: tuple[str, ...] = ()  # what comes before them
    remarks: tuple[str, ...] = ()  # what is to be said of several findings, or of none
    closing: str = ""  # what was not tested
    counterfactual: Trial | None = None  # the smallest repaint that changes the answer
    trials: tuple[Trial, ...] = ()  # all that were asked, in order
    claims: tuple[Claim, ...] = ()  # about several findings, or about none
    disagrees: bool = False  # the map and the trials

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, index: int | slice) -> Finding | tuple[Finding, ...]:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __repr__(self) -> str:
        letters = ", ".join(one.letter for one in self.findings) or "none"
        return f"<Findings about {self.label!r}: {letters}; {len(self.trials)} trials>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def find(self, letter: str) -> Finding | None:
        """The finding of a letter."""
        return next((one for one in self.findings if one.letter == letter.upper()), None)

    @property
    def described(self) -> tuple[Finding, ...]:
        """The findings that are described in full."""
        return tuple(one for one in self.findings if one.described)

    @property
    def listed(self) -> tuple[Finding, ...]:
        """The findings that are only listed."""
        return tuple(one for one in self.findings if not one.described)

    def lines(self) -> list[str]:
        """To print."""
        out = list(self.opening)
        for one in self.described:
            out += [one.sentence, *(f"   {line}" for line in one.lines)]
        for direction, verb in ((-1, "lower"), (1, "raise")):
            some = [one.sentence for one in self.listed if one.direction == direction]
            if some:
                out.append(f"Painted, these {verb} it too (score after): {'; '.join(some)}.")
        return [*out, *self.remarks, *([self.closing] if self.closing else [])]

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "label": self.label,
            "opening": list(self.opening),
            "findings": [one.to_json() for one in self.findings],
            "remarks": list(self.remarks),
            "claims": [claim.to_json() for claim in self.claims],
            "closing": self.closing,
            "counterfactual": self.counterfactual.to_json() if self.counterfactual else None,
            "trials": len(self.trials),
        }


def letter_of(number: int) -> str:
    """A, B, ..., Z, AA, AB, ...: of the first finding (0), and so on."""
    out = ""
    number += 1
    while number:
        number, last = divmod(number - 1, 26)
        out = string.ascii_uppercase[last] + out
    return out


def box_of(region: Region) -> list[int]:
    """Top, left, bottom, right of the smallest box that holds a region."""
    rows, columns = (np.flatnonzero(region.any(axis=axis)) for axis in (1, 0))
    return [int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1]
