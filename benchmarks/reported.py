"""What mcrise reports of an image, in a form that does not depend on its interface.

`places_of` and `way_to` are all that `whole.py` knows of how mcrise names its results.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mcrise
from mcrise import Model

CHUNK = 64  # masks that the pilot asks about at a time


@dataclass(frozen=True, eq=False)
class Place:
    """A repaint that is listed: where, in which color, and what it is said to do."""

    weight: NDArray[Any]  # (H, W): bool where edges are hard, else how much of the fill is seen
    fill: NDArray[Any]  # in 0..255: a color (3,), or a picture (H, W, 3)
    direction: str  # "lowers" or "raises" the score of the predicted class
    score_after: float
    says: str | None = None  # the label that the model gives then, where that is reported
    verified: bool = True  # by a trial of this very repaint
    only_here: bool = False  # reported as an effect of this place, by its controls

    @property
    def region(self) -> NDArray[np.bool_]:
        return self.weight >= 0.5

    @property
    def share(self) -> float:
        """Of the image."""
        return float(self.region.mean())

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Top, left, bottom, right in pixels."""
        rows, columns = (np.flatnonzero(self.region.any(axis=axis)) for axis in (1, 0))
        return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


@dataclass(frozen=True, eq=False)
class Statement:
    """An interpretation of a region, by the name of its kind."""

    kind: str
    region: NDArray[np.bool_] | None  # (H, W); None: of the whole image
    fills: tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class Report:
    """All that is reported of one image, and what it cost."""

    places: list[Place]
    statements: list[Statement]
    calls: dict[str, int]  # images that the model was asked about, by purpose

    @property
    def n_calls(self) -> int:
        return sum(self.calls.values())


@dataclass(frozen=True, eq=False)
class Way:
    """A repaint that is said to make the model answer the truth, or that none was found."""

    strokes: list[tuple[NDArray[Any], NDArray[Any]]]  # weight and fill, one over the other
    n_trials: int  # repaints asked about

    @property
    def found(self) -> bool:
        return bool(self.strokes)


@dataclass
class Counter:
    """A model's function that counts the images it is asked about."""

    predict: Any
    n: int = 0

    def __call__(self, batch: NDArray[Any]) -> Any:
        self.n += len(batch)
        return self.predict(batch)


def counted(model: Model) -> tuple[Model, Counter]:
    counter = Counter(model.predict)
    return replace(model, predict=counter), counter


# ---- mcrise's interface, here and nowhere else


def report_on(path: str, model: Model, **options: Any) -> Report:
    """Explain an image and test the findings, as `mcrise explain` does by default."""
    model, counter = counted(model)
    explanation = mcrise.explain(path, model, trials=False, **options)
    n_asked = counter.n
    found = findings_of(explanation, model)
    n_pilot = CHUNK * len(explanation.pilot)
    calls = {
        "masks": explanation.n_masks,
        "pilot": n_pilot,
        "identity and jitter": n_asked - explanation.n_masks - n_pilot,
        "trials": counter.n - n_asked,
    }
    image = explanation.view.pixels
    return Report(places_of(found, image), statements_of(found, image), calls)


def findings_of(explanation: mcrise.Explanation, model: Model) -> mcrise.Findings:
    return explanation.findings_of(None, model)


def places_of(found: mcrise.Findings, image: NDArray[Any]) -> list[Place]:
    """Each region and color that is said to lower or raise the score."""
    places = []
    for one in found:
        says, only_here = one.says, one.control is not None and one.control.verdict == "only here"
        way = "lowers" if one.direction < 0 else "raises"
        main = Place(one.region, picture_of(one.fill, image), way, one.after, says,
                     only_here=only_here)  # fmt: skip
        places.append(main)
        tests = {test.fill: test for test in one.tests if test.role == "color"}
        for claim in one.claims:
            for fill in claim.fills if claim.kind in ("lowers", "raises") else ():
                if fill in tests:
                    picture, after = picture_of(fill, image), tests[fill].score
                    places.append(Place(one.region, picture, claim.kind, after))
    return places


def statements_of(found: mcrise.Findings, image: NDArray[Any]) -> list[Statement]:
    return [
        Statement(
            claim.kind,
            claim.regions[0] if len(claim.regions) == 1 else None,
            tuple(picture_of(fill, image) for fill in claim.fills),
        )
        for claim in (*found.claims, *(claim for one in found for claim in one.claims))
        if len(claim.regions) <= 1
    ]


def way_to(path: str, truth: int, model: Model, **options: Any) -> Way:
    """What `mcrise compare` finds that makes the model say the truth."""
    model, counter = counted(model)
    explanation = mcrise.explain(path, model, trials=False, **options)
    n_asked = counter.n
    result = mcrise.compare(explanation, truth, None, model=model)
    found = result.counterfactual
    flip: Sequence[Any] = found.repaint.strokes if found is not None else ()
    image = explanation.view.pixels
    strokes = [(stroke.region, picture_of(stroke.fill, image)) for stroke in flip]
    return Way(strokes, counter.n - n_asked)


def picture_of(fill: mcrise.Fill, image: NDArray[Any]) -> NDArray[Any]:
    """A fill in 0..255: its color, or the picture it makes of the image."""
    unit = image.astype(np.float32) / np.float32(255)
    color = fill.color(unit)
    return 255 * np.asarray(fill.render(unit) if color is None else color)
