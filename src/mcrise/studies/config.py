"""The settings of a study, the tasks that it is cut into, and the worker that does them.

Each task is a pure function of what it is given, so that it makes no difference who does it and
when: ask the model about some chunks of an image, or rank its pixels by a method and measure that.
"""

import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..batch.tasks import BatchConfig, Worker
from ..config import RunConfig, whole_chunks
from ..errors import InputError
from ..estimators import DEFAULT, find_estimator
from ..explanation import Explanation
from ..images import png
from ..masks import CHUNK
from ..metrics import METRICS, STEP, Ranking, check_step, curves_of, rank, rank_importance
from ..model_calls import buffer_of, chunk_scores
from ..models.model import Model
from ..sampling import begin, last, run
from .baselines import LIME_SAMPLES, lime_importance, random_ranking

METHODS = ("debiased", "lime", "mcrise", "random", "rise")
N_MASKS = 2000  # a fixed number, so that all methods and images cost the same
PAPERS = 0.5  # mask_prob of the paper: one for all images, so that they compare
RUN = RunConfig(n_masks=N_MASKS, mask_prob=PAPERS)
SHOWN = 0.2  # share of the pixels painted in a picture


@dataclass(frozen=True)
class StudyConfig(BatchConfig):
    """What decides the numbers of a study, apart from the images and the model."""

    what = "study"
    target_rule = "explains the class that the model predicts for each image"
    run: RunConfig = RUN  # of each run; its seed is also LIME's
    methods: tuple[str, ...] = ("lime", "rise", "mcrise")
    estimators: tuple[str, ...] = (DEFAULT,)  # of mcrise
    step: float = STEP
    lime_samples: int = LIME_SAMPLES
    best_color: bool = False  # also delete with each single color, for methods that name none

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_names("methods", self.methods)
        _check_names("estimators", self.estimators)
        if wrong := [name for name in self.methods if name not in METHODS]:
            raise InputError(
                f"The method is {wrong[0]!r}, but it must be one of {', '.join(METHODS)}."
            )
        for name in self.estimators:
            find_estimator(name)
        check_step(self.step)
        if self.lime_samples < 1:
            raise InputError(
                f"LIME is to ask {self.lime_samples} times, but at least 1 is needed; "
                f"{LIME_SAMPLES} is usual."
            )
        if self.run.seed >= 2**32:
            raise InputError(f"The seed is {self.run.seed}, but LIME takes none beyond 2**32 - 1.")

    @property
    def seed(self) -> int:
        return self.run.seed

    @property
    def fills(self) -> str:
        assert isinstance(self.run.fills, str)
        return self.run.fills

    @property
    def n_chunks(self) -> int | None:
        """Of each run, where that is known beforehand."""
        n_masks = self.run.n_masks
        return None if n_masks == "auto" else whole_chunks(n_masks) // CHUNK

    def fills_of(self, method: str) -> str | None:
        """The fills of the run that a method is estimated from; None: it needs no run."""
        return {"mcrise": self.fills, "rise": "black", "debiased": "black"}.get(method)

    def samples_of(self, method: str) -> int:
        """How often a method asks, as far as is known beforehand."""
        if self.fills_of(method):
            return CHUNK * (self.n_chunks or 0)
        return self.lime_samples if method == "lime" else 0

    @property
    def mask_prob(self) -> float | None:
        """Of each run, where that is known beforehand."""
        return None if self.run.mask_prob == "auto" else self.run.mask_prob

    def estimators_of(self, method: str) -> tuple[str, ...]:
        return tuple(sorted(self.estimators)) if method == "mcrise" else (method,)

    def worker(self, model: Model) -> "StudyWorker":
        return StudyWorker(model, self)

    def to_json(self) -> dict[str, Any]:
        """As study.json has it, where a study to go on with is known by it."""
        run = {name: value for name, value in self.run.to_json().items() if name != "target"}
        return {
            **run,
            "methods": list(self.methods),
            "estimators": list(self.estimators),
            "step": self.step,
            "lime_samples": self.lime_samples,
            "best_color": self.best_color,
        }


def _check_names(what: str, names: tuple[str, ...]) -> None:
    if not names or len(set(names)) < len(names):
        raise InputError(
            f"The {what} are {','.join(names) or 'none'}, but at least one is needed, each listed "
            "once."
        )


Scores = dict[int, NDArray[np.float32]]  # chunk -> (64, C)


@dataclass(frozen=True, eq=False)
class Task(ArrayEq):
    """Ask about some chunks of an image, or rank its pixels by a method and measure that."""

    image: int  # its number in the study
    path: str
    fills: str | None = None  # of the run: the chunks asked for, or the scores given, are its
    chunks: tuple[int, int] | None = None  # the first, and the one after the last; None: until auto
    method: str | None = None  # to measure; None: only ask
    mask_prob: float | None = None  # of the run; None: it is to be chosen, where that is asked
    scores: Scores = field(default_factory=dict, repr=False)
    draw: bool = False  # a picture too

    @property
    def key(self) -> tuple[Any, ...]:
        return self.image, self.fills, self.chunks, self.method


@dataclass(frozen=True, eq=False)
class Answer(ArrayEq):
    """What came of a task: scores, or rows of the table."""

    scores: Scores = field(default_factory=dict)
    mask_prob: float | None = None  # of their masks
    rows: tuple[dict[str, Any], ...] = ()
    pictures: dict[str, bytes] = field(default_factory=dict)  # PNG files, by estimator
    predicted: int = -1
    score: float | None = None  # of that class, on the untouched image
    seconds: float = 0.0


# ---- doing tasks


class StudyWorker(Worker):
    """Does the tasks of a study."""

    def __init__(self, model: Model, config: StudyConfig) -> None:
        super().__init__(model)
        self.config = config
        self.start = lru_cache(maxsize=2)(self.begin)  # tasks of an image come one after another

    def do(self, task: Task) -> Answer:
        started = time.perf_counter()
        answer = self.ask(task) if task.method is None else self.measure(task, task.method)
        return replace(answer, seconds=time.perf_counter() - started)

    def begin(self, path: str, fills: str, mask_prob: float) -> Explanation:
        """The run of an image, without scores."""
        run_config = replace(self.config.run, fills=fills, mask_prob=mask_prob)
        return begin(self.view(path), self.model, run_config)

    def ask(self, task: Task) -> Answer:
        """The scores of some chunks."""
        assert task.fills is not None
        run_config = replace(self.config.run, fills=task.fills)
        if task.chunks is None:
            grown = last(run(self.view(task.path), self.model, run_config))
            return Answer(grown.first(grown.goal).scores, grown.plan.mask_prob)
        if task.mask_prob is None:
            explanation = begin(self.view(task.path), self.model, run_config)
            return Answer(explanation.scores, explanation.plan.mask_prob)
        explanation = self.start(task.path, task.fills, task.mask_prob)
        canvas = self.model.canvas(explanation.view.pixels, explanation.plan.fills)
        buffer = buffer_of(canvas, explanation.batch_size)
        return Answer(
            {
                chunk: chunk_scores(self.model, canvas, buffer, explanation, chunk)
                for chunk in range(*task.chunks)
            },
            task.mask_prob,
        )

    def measure(self, task: Task, method: str) -> Answer:
        """Rank the pixels by a method, each estimator in turn, and measure the rankings."""
        given, rows, pictures = self.config, [], {}
        explanation = self.start(task.path, task.fills or "black", task.mask_prob or PAPERS)
        target, pixels = explanation.resolve(None), explanation.view.pixels
        n_masks = given.samples_of(method)
        if task.fills:
            explanation = replace(explanation, scores=task.scores)
            n_masks = explanation.n_masks
        for estimator in given.estimators_of(method):
            started = time.perf_counter()
            ranking = self.rank(explanation, method, estimator)
            ranked = time.perf_counter()
            curves = curves_of(
                pixels, self.model, target, ranking, step=given.step, batch_size=given.batch_size
            )
            row: dict[str, Any] = {
                "method": method,
                "estimator": estimator,
                "target": target,
                "label": explanation.label(target),
                "n_masks": n_masks,
                "seed": given.seed,
                **{metric: curves[metric].area for metric in METRICS},
                "error": None,
                "seconds": (ranked - started, time.perf_counter() - ranked),
            }
            if given.best_color and method in ("lime", "rise", "debiased"):
                row["colors"] = self.by_color(explanation, ranking)
            rows.append(row)
            if task.draw:
                pictures[estimator] = png(_partly_painted(pixels, ranking))
        score = float(explanation.untouched[target])
        return Answer(rows=tuple(rows), pictures=pictures, predicted=target, score=score)

    def rank(self, explanation: Explanation, method: str, estimator: str) -> Ranking:
        given, target = self.config, explanation.resolve(None)
        if method == "random":
            return random_ranking(explanation.plan.size, given.seed)
        if method == "lime":
            return rank_importance(
                lime_importance(
                    explanation.view.pixels,
                    self.model,
                    target,
                    given.seed,
                    given.lime_samples,
                    given.batch_size,
                )
            )
        return rank(explanation.maps(target, estimator))

    def by_color(self, explanation: Explanation, ranking: Ranking) -> dict[str, float]:
        """The deletion of a ranking painted with each one of the colors."""
        given, pixels, deletion = self.config, explanation.view.pixels, METRICS["deletion"]
        return {
            fill.name: curves_of(
                pixels, self.model, explanation.resolve(None), ranking, metrics=(deletion,),
                fill=fill, step=given.step, batch_size=given.batch_size,
            )[deletion.name].area
            for fill in given.run.plan(pixels).fills
        }  # fmt: skip


def _partly_painted(pixels: NDArray[Any], ranking: Ranking) -> NDArray[Any]:
    """The image with the most important pixels painted, as the metrics do."""
    first = ranking.order[: round(SHOWN * len(ranking.order))]
    picture = pixels.reshape(-1, 3).copy()
    picture[first] = ranking.painted(pixels).reshape(-1, 3)[first]
    return picture.reshape(pixels.shape)
