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
    explanation = mcrise.explain(path, model, **options)
    n_asked = counter.n
    explanation = mcrise.try_findings(explanation, mcrise.interpret(explanation), model)
    n_pilot = CHUNK * len(explanation.pilot)
    calls = {
        "masks": explanation.n_masks,
        "pilot": n_pilot,
        "identity and jitter": n_asked - explanation.n_masks - n_pilot,
        "trials": counter.n - n_asked,
    }
    return Report(places_of(explanation), statements_of(explanation), calls)


def places_of(explanation: mcrise.TriedInterpretation) -> list[Place]:
    """Each region and color that is said to lower or raise the score."""
    image = explanation.reading.maps.image
    found = []
    for verdict in filter(None, explanation.verdicts):
        for claim in verdict.claims:
            if claim.kind not in ("lowers", "raises"):
                continue
            for fill in claim.fills:
                main = verdict.control is not None and fill == verdict.control.fill
                found.append(
                    Place(
                        verdict.finding.region,
                        picture_of(fill, image),
                        claim.kind,
                        float(verdict.after[fill]),
                        only_here=verdict.confirmed and main,
                    )
                )
    return found


def statements_of(explanation: mcrise.TriedInterpretation) -> list[Statement]:
    image = explanation.reading.maps.image
    return [
        Statement(
            claim.kind,
            claim.regions[0] if len(claim.regions) == 1 else None,
            tuple(picture_of(fill, image) for fill in claim.fills),
        )
        for claim in explanation.claims
        if len(claim.regions) <= 1
    ]


def way_to(path: str, truth: int, model: Model, **options: Any) -> Way:
    """What `mcrise compare` finds that makes the model say the truth."""
    model, counter = counted(model)
    explanation = mcrise.explain(path, model, **options)
    n_asked = counter.n
    result = mcrise.compare(explanation, truth, None, model=model)
    flip: Sequence[Any] = result.flip.repaint.strokes if result.flip is not None else ()
    image = explanation.view.pixels
    strokes = [(stroke.region, picture_of(stroke.fill, image)) for stroke in flip]
    return Way(strokes, counter.n - n_asked)


def picture_of(fill: mcrise.Fill, image: NDArray[Any]) -> NDArray[Any]:
    """A fill in 0..255: its color, or the picture it makes of the image."""
    unit = image.astype(np.float32) / np.float32(255)
    color = fill.color(unit)
    return 255 * np.asarray(fill.render(unit) if color is None else color)
