"""How good an explanation is: deletion, insertion, and their color-aware versions.

An explanation ranks the pixels and says what to paint each with. Change the image pixel by pixel
in that order and watch the score: the sooner it falls, the better the ranking knew what the model
needs. Every metric is such a curve between two pictures, so there is one function for all; what
differs is which picture it starts from, and the convention is part of the result. To add a metric,
name it in the table.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._util.array_eq import ArrayEq
from ._util.text import number
from .colors import FULL
from .errors import InputError
from .estimators import DEFAULT, EstimatorName
from .explanation import Explanation, Target
from .fills import Fill, Solid, parse_one
from .images import unit_float, whole_pixels
from .maps import Maps
from .model_calls import model_of
from .models.model import Model

BLACK = Solid(FULL["black"], "black")
STEP = 0.01  # of the pixels, changed between two calls
BATCH = 32


@dataclass(frozen=True)
class Metric:
    """A way from the image to the painted picture, or back."""

    name: str  # in tables
    title: str
    deletes: bool  # from the image to the painted picture
    color_aware: bool  # each pixel is painted with what the ranking says, or all with one fill

    @property
    def direction(self) -> str:
        return "lower is better" if self.deletes else "higher is better"


METRICS = {
    metric.name: metric
    for metric in (
        Metric("deletion", "deletion", deletes=True, color_aware=False),
        Metric("insertion", "insertion", deletes=False, color_aware=False),
        Metric("ca_deletion", "CA-deletion", deletes=True, color_aware=True),
        Metric("ca_insertion", "CA-insertion", deletes=False, color_aware=True),
    )
}


def _find_metric(name: str) -> Metric:
    if name not in METRICS:
        raise InputError(f"The metric is {name!r}, but it must be one of {', '.join(METRICS)}.")
    return METRICS[name]


@dataclass(frozen=True, eq=False)
class Ranking(ArrayEq):
    """The pixels in the order in which an explanation would change them, and to what."""

    order: NDArray[np.int64]  # (H W,) places in row-major numbering, most important first
    fills: tuple[Fill, ...]
    chosen: NDArray[np.int64]  # (H, W) which of the fills a pixel is painted with

    @property
    def fill_name(self) -> str:
        names = [fill.name for fill in self.fills]
        return names[0] if len(names) == 1 else f"the worst of {', '.join(names)}"

    def painted(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """The image (H, W, 3) with every pixel painted."""
        renders = np.stack([_render(fill, pixels) for fill in self.fills])  # (K, H, W, 3)
        rows, cols = np.indices(self.chosen.shape)
        return np.asarray(renders[self.chosen, rows, cols])

    def with_fill(self, fill: Fill) -> "Ranking":
        """The same order, painted with one fill."""
        return Ranking(self.order, (fill,), np.zeros_like(self.chosen))


def _render(fill: Fill, pixels: NDArray[Any]) -> NDArray[Any]:
    """A fill as pixels of the image's own dtype."""
    picture = fill.render(unit_float(pixels))
    return whole_pixels(picture) if pixels.dtype == np.uint8 else picture


def rank(maps: Maps, fill: Fill = BLACK) -> Ranking:
    """The ranking of a map: the pixels at which some fill does most harm first, with that fill.

    One map over all fills (`rise`, `debiased`) says how much a pixel is needed, not what to paint
    it with: `fill` is taken.
    """
    if not maps.fills:
        return rank_importance(maps.values[0], fill)
    worst = maps.values.min(axis=0)
    return Ranking(
        np.argsort(worst, axis=None, kind="stable"), maps.fills, maps.values.argmin(axis=0)
    )


def rank_importance(importance: NDArray[Any], fill: Fill = BLACK) -> Ranking:
    """Rank pixels by importance (H, W), largest first; ties in row-major order."""
    order = np.argsort(-importance, axis=None, kind="stable")
    return Ranking(order, (fill,), np.zeros(importance.shape, np.int64))


@dataclass(frozen=True, eq=False)
class Curve(ArrayEq):
    """The score of the target while pixels change."""

    metric: Metric
    scores: NDArray[np.float32]  # (steps + 1,), from none of the pixels changed to all
    step: float  # share of the pixels changed at once
    fill: str

    def __repr__(self) -> str:
        return f"<Curve: {self.line()}>"

    @property
    def shares(self) -> NDArray[np.float64]:
        """Of the pixels changed, at each score."""
        return np.asarray(np.minimum(np.arange(len(self.scores)) * self.step, 1.0))

    @property
    def area(self) -> float:
        """Under the curve, by the trapezoid rule."""
        scores = self.scores.astype(np.float64)
        return float((scores[1:] + scores[:-1]) @ np.diff(self.shares) / 2)

    def line(self) -> str:
        area = f"{self.area:.4f}" if abs(self.area) <= 1 else number(self.area, "any")
        return (
            f"{self.metric.title} {area} ({self.metric.direction}; "
            f"{100 * self.step:g}% of the pixels per step, fill: {self.fill})"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric.name,
            "area": self.area,
            "direction": self.metric.direction,
            "step": self.step,
            "fill": self.fill,
            "scores": [float(score) for score in self.scores],
        }


def curve_from_json(data: dict[str, Any]) -> Curve:
    scores = np.array(data["scores"], np.float32)
    return Curve(_find_metric(data["metric"]), scores, float(data["step"]), str(data["fill"]))


def measure(
    explanation: Explanation,
    model: Any,
    target: Target = None,
    *,
    estimator: EstimatorName | str = DEFAULT,
    metrics: str | Iterable[str] = tuple(METRICS),
    fill: str | Fill = "black",
    step: float = STEP,
    batch_size: int = BATCH,
) -> dict[str, Curve]:
    """How well the map of a class finds what the model needs: a curve for each metric.

    `model` is the one that the run is of, in any form that `load_model` takes; `target` and
    `estimator` are as for `Explanation.maps`. `fill` is what deletion and insertion paint with, and
    all metrics where the estimator does not say with what. The area under a curve is its number.
    """
    check_step(step)
    chosen = [_find_metric(name) for name in ([metrics] if isinstance(metrics, str) else metrics)]
    plain = parse_one(fill, explanation.view.pixels)
    maps = explanation.maps(target, estimator)
    known = model_of(explanation, model)
    return curves_of(
        explanation.view.pixels,
        known,
        maps.target,
        rank(maps, plain),
        metrics=chosen,
        fill=plain,
        step=step,
        batch_size=batch_size,
    )


def curves_of(
    pixels: NDArray[Any],
    model: Model,
    target: int,
    ranking: Ranking,
    *,
    metrics: Iterable[Metric] = tuple(METRICS.values()),
    fill: Fill = BLACK,
    step: float = STEP,
    batch_size: int = BATCH,
) -> dict[str, Curve]:
    """The curves of a ranking of an image (H, W, 3) as the model is shown it, by metric.

    Deletion paints the pixels with `fill`, CA-deletion each with what the ranking says; insertion
    and CA-insertion start from the painted picture and uncover the image in the same order.
    """
    check_step(step)
    if batch_size < 1:
        raise InputError(f"The batch size is {batch_size}, but at least 1 is needed.")
    if ranking.chosen.shape != pixels.shape[:2]:
        raise InputError(
            f"The ranking is of {ranking.chosen.shape[0]} x {ranking.chosen.shape[1]} pixels, but "
            f"the image has {pixels.shape[0]} x {pixels.shape[1]}: rank what the model is shown."
        )
    curves: dict[str, Curve] = {}
    asked: dict[tuple[bool, bool], NDArray[np.float32]] = {}
    for metric in metrics:
        one = ranking if metric.color_aware else ranking.with_fill(fill)
        pictures = metric.deletes, one.fills == (fill,)  # the same ones are not asked about twice
        if pictures not in asked:
            ends = pixels, one.painted(pixels)
            start, end = ends if metric.deletes else ends[::-1]
            batches = _between(start, end, ranking.order, step, batch_size)
            asked[pictures] = np.concatenate([model(some)[:, target] for some in batches])
        curves[metric.name] = Curve(metric, asked[pictures], step, one.fill_name)
    return curves


def check_step(step: float) -> None:
    if not 1e-4 <= step <= 1:
        raise InputError(
            f"The step is {step:g}, but a share of the pixels from 0.0001 to 1 is needed, as in "
            "0.01."
        )


def _between(
    start: NDArray[Any], end: NDArray[Any], order: NDArray[np.int64], step: float, batch_size: int
) -> Iterator[NDArray[Any]]:
    """The pictures from `start` to `end`, in batches (N, H, W, 3) that share their memory."""
    n_pixels = len(order)
    n_steps = int(np.ceil(1 / step - 1e-9))
    ends = [min(round(n * step * n_pixels), n_pixels) for n in range(n_steps)] + [n_pixels]
    picture = start.reshape(n_pixels, 3).copy()
    goal = end.reshape(n_pixels, 3)
    batch = np.empty((batch_size, *start.shape), start.dtype)
    done = 0
    for first in range(0, len(ends), batch_size):
        some = ends[first : first + batch_size]
        for row, n_changed in zip(batch, some, strict=False):
            now = order[done:n_changed]
            picture[now] = goal[now]
            row[:] = picture.reshape(start.shape)
            done = n_changed
        yield batch[: len(some)]
