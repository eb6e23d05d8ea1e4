"""The tasks that a study is cut into, and the worker who does them.

Each task is a pure function of what it is given, so that it makes no difference who does it and
when: ask the model about some chunks of an image, or rank its pixels by a method and measure that.
"""

import json
import time
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import fills as fill_kinds
from ..blend import paint
from ..errors import InputError, McriseError, ModelError
from ..images import View, png
from ..loop import (
    CAP,
    TOLERANCE,
    ask,
    buffer_of,
    check_amount,
    check_batch,
    chunk_scores,
    grow,
    last,
    whole_chunks,
)
from ..masks import Plan, draw
from ..metrics import METRICS, STEP, Ranking, check_step, measure, rank, rank_importance
from ..model import Model
from ..record import DEFAULT, ESTIMATORS, Record
from .baselines import LIME_SAMPLES, lime_importance, random_ranking
from .storage import Storage

METHODS = ("debiased", "lime", "mcrise", "random", "rise")
SHOWN = 0.2  # share of the pixels painted in a picture


@dataclass(frozen=True)
class Settings:
    """What decides the numbers of a study, but for the images and the model."""

    methods: tuple[str, ...] = ("lime", "rise", "mcrise")
    n_masks: int | str = 2000  # or "auto"
    seed: int = 0
    estimators: tuple[str, ...] = (DEFAULT,)  # of mcrise
    fills: str = "rgbwk"
    grid: tuple[int, int] = (8, 8)
    mask_prob: float = 0.5
    tolerance: float = TOLERANCE
    cap: int = CAP
    batch_size: int = 32
    step: float = STEP
    lime_samples: int = LIME_SAMPLES
    best_color: bool = False  # also delete with each single color, for methods that name none

    def __post_init__(self) -> None:
        for names, known, what in (
            (self.methods, METHODS, "method"),
            (self.estimators, ESTIMATORS, "estimator"),
        ):
            wrong = [name for name in names if name not in known]
            if wrong or not names or len(set(names)) < len(names):
                raise InputError(
                    f"The {what}s are {','.join(names) or 'none'}, but each must be one of "
                    f"{', '.join(known)}, listed once."
                )
        check_amount(self.n_masks, self.tolerance, self.cap)
        check_batch(self.batch_size)
        check_step(self.step)
        fills = fill_kinds.parse(self.fills, np.zeros((64, 64, 3), np.uint8))
        Plan((64, 64), fills, self.grid, self.mask_prob, self.seed)
        if self.seed >= 2**32:
            raise InputError(f"The seed is {self.seed}, but LIME takes none beyond 2**32 - 1.")

    def fills_of(self, method: str) -> str | None:
        """The fills of the record that a method is estimated from; None: it needs no record."""
        return {"mcrise": self.fills, "rise": "black", "debiased": "black"}.get(method)

    def samples_of(self, method: str) -> int:
        """How often a method asks, as far as is known beforehand."""
        if self.fills_of(method):
            return 0 if self.n_masks == "auto" else whole_chunks(int(self.n_masks))
        return self.lime_samples if method == "lime" else 0

    def estimators_of(self, method: str) -> tuple[str, ...]:
        return tuple(sorted(self.estimators)) if method == "mcrise" else (method,)

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]


Scores = dict[int, NDArray[np.float32]]  # chunk -> (64, C)


@dataclass(frozen=True)
class Task:
    """Ask about some chunks of an image, or rank its pixels by a method and measure that."""

    image: int  # its number in the study
    path: str
    fills: str | None = None  # of the record: the chunks asked for, or the scores given, are its
    chunks: tuple[int, int] | None = None  # the first, and the one after the last; None: until auto
    method: str | None = None  # to measure; None: only ask
    scores: Scores = field(default_factory=dict, repr=False)
    draw: bool = False  # a picture too

    @property
    def key(self) -> tuple[Any, ...]:
        return self.image, self.fills, self.chunks, self.method


@dataclass(frozen=True)
class Answer:
    """What came of a task: scores, or rows of the table."""

    scores: Scores = field(default_factory=dict)
    rows: tuple[dict[str, Any], ...] = ()
    pictures: dict[str, bytes] = field(default_factory=dict)  # PNG files, by estimator
    predicted: int = -1
    seconds: float = 0.0


@dataclass(frozen=True)
class Failure:
    """Why a task has no answer."""

    reason: str
    kind: type[McriseError] = ModelError
    final: bool = False  # another try would fail as well


# ---- doing tasks


class Worker:
    """A model and what it is to be asked; lives wherever tasks are done."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self.model, self.settings = model, settings
        self.start = lru_cache(maxsize=2)(self.begin)  # tasks of an image come one after another

    def warm_up(self) -> None:
        """Load and compile what painting needs, so that no task is late for it."""
        size = self.model.geometry.size or (32, 32)
        plan = Plan(size)
        canvas = self.model.canvas(np.zeros((*size, 3), np.uint8), plan.fills)
        paint(plan, canvas, draw(plan, 0)[:1], canvas.batch(1))

    def attempt(self, task: Task) -> Answer | Failure:
        """Do a task; what goes wrong is an answer too."""
        try:
            return self.do(task)
        except InputError as error:
            return Failure(str(error), InputError, final=True)
        except McriseError as error:
            # Which chunk failed first depends on who was faster: the reason does not.
            within = error.__cause__
            return Failure(str(within if isinstance(within, McriseError) else error))
        except MemoryError:
            return Failure("Out of memory: fewer workers need less.")
        except Exception as error:  # a bug must not take the other images with it
            return Failure(f"{type(error).__name__}: {error}")

    def do(self, task: Task) -> Answer:
        started = time.perf_counter()
        answer = self.ask(task) if task.method is None else self.measure(task, task.method)
        return replace(answer, seconds=time.perf_counter() - started)

    def begin(self, path: str, fills: str) -> Record:
        """The record of an image, without scores."""
        view = self.view(path)
        given, model = self.settings, self.model
        size = (view.pixels.shape[0], view.pixels.shape[1])
        plan = Plan(
            size, fill_kinds.parse(fills, view.pixels), given.grid, given.mask_prob, given.seed
        )
        canvas = model.canvas(view.pixels, plan.fills)
        untouched = ask(model, canvas.untouched(), "the untouched image", None)[0]
        return Record(
            plan, view, untouched, model.labels, model.kind, given.batch_size, model.identity
        )

    def view(self, path: str) -> View:
        try:
            content = Storage(path).read_bytes()
        except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
            raise InputError(f"It cannot be read ({error.strerror or error}).") from None
        except OSError as error:  # a network may do better the next time
            raise McriseError(f"It cannot be read ({error.strerror or error}).") from None
        return self.model.view(content)

    def ask(self, task: Task) -> Answer:
        """The scores of some chunks."""
        assert task.fills is not None
        record = self.start(task.path, task.fills)
        if task.chunks is None:
            given = self.settings
            grown = last(
                grow(replace(record, scores={}), self.model, n_masks="auto",
                     tolerance=given.tolerance, cap=given.cap)
            )  # fmt: skip
            return Answer(grown.first(grown.goal).scores)
        canvas = self.model.canvas(record.view.pixels, record.plan.fills)
        buffer = buffer_of(canvas, record.batch_size)
        return Answer(
            {
                chunk: chunk_scores(self.model, canvas, buffer, record, chunk)
                for chunk in range(*task.chunks)
            }
        )

    def measure(self, task: Task, method: str) -> Answer:
        """Rank the pixels by a method, each estimator in turn, and measure the rankings."""
        given, rows, pictures = self.settings, [], {}
        record = self.start(task.path, task.fills or "black")
        target, pixels = record.resolve(None), record.view.pixels
        n_masks = given.samples_of(method)
        if task.fills:
            record = replace(record, scores=task.scores)
            n_masks = record.n_masks
        for estimator in given.estimators_of(method):
            started = time.perf_counter()
            ranking = self.rank(record, method, estimator)
            ranked = time.perf_counter()
            curves = measure(
                pixels, self.model, target, ranking, step=given.step, batch_size=given.batch_size
            )
            row: dict[str, Any] = {
                "method": method,
                "estimator": estimator,
                "target": target,
                "label": record.label(target),
                "n_masks": n_masks,
                "seed": given.seed,
                **{metric: curves[metric].area for metric in METRICS},
                "error": None,
                "seconds": (ranked - started, time.perf_counter() - ranked),
            }
            if given.best_color and method in ("lime", "rise", "debiased"):
                row["colors"] = self.by_color(record, ranking)
            rows.append(row)
            if task.draw:
                pictures[estimator] = png(partly_painted(pixels, ranking))
        return Answer(rows=tuple(rows), pictures=pictures, predicted=target)

    def rank(self, record: Record, method: str, estimator: str) -> Ranking:
        given, target = self.settings, record.resolve(None)
        if method == "random":
            return random_ranking(record.plan.size, given.seed)
        if method == "lime":
            return rank_importance(
                lime_importance(
                    record.view.pixels,
                    self.model,
                    target,
                    given.seed,
                    given.lime_samples,
                    given.batch_size,
                )
            )
        return rank(record.maps(target, estimator))

    def by_color(self, record: Record, ranking: Ranking) -> dict[str, float]:
        """The deletion of a ranking painted with each one of the colors."""
        pixels = record.view.pixels
        return {
            fill.name: measure(
                pixels, self.model, record.resolve(None), ranking, metrics=("deletion",),
                fill=fill, step=self.settings.step, batch_size=self.settings.batch_size,
            )["deletion"].area
            for fill in fill_kinds.parse(self.settings.fills, pixels)
        }  # fmt: skip


def partly_painted(pixels: NDArray[Any], ranking: Ranking) -> NDArray[Any]:
    """The image with the most important pixels painted, as the metrics do."""
    first = ranking.order[: round(SHOWN * len(ranking.order))]
    picture = pixels.reshape(-1, 3).copy()
    picture[first] = ranking.painted(pixels).reshape(-1, 3)[first]
    return picture.reshape(pixels.shape)
