"""Many images, several methods: how good is each explanation, and how sure are we of that?

A study is cut into tasks, each a pure function of what it is given, so that it makes no difference
who does them and in which order. `Study` hands tasks out and takes answers in, one process or a
cluster (`cluster.py`) does them, and an image that is finished is written down at once: a study
killed at any moment goes on where it was.
"""

import json
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import fills as fill_kinds
from .baselines import LIME_SAMPLES, lime_importance, random_ranking
from .blend import paint
from .datasets import Example, truth_of
from .errors import InputError, McriseError, ModelError
from .explain import (
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
from .images import View, png
from .masks import CHUNK, Plan, draw
from .metrics import METRICS, STEP, Ranking, check_step, measure, rank, rank_importance
from .model import Model
from .record import DEFAULT, ESTIMATORS, Record
from .storage import Storage, read_all

METHODS = ("debiased", "lime", "mcrise", "random", "rise")
TASK_CHUNKS = 8  # a task asks for 512 masks: seconds of work, so that long images are shared out
N_EXAMPLES = 6  # images whose rankings are shown in the sheet of pictures
SHOWN = 0.2  # share of the pixels painted there
FAILED = ".failed.json"
# What a study writes: all that --overwrite removes.
OURS = re.compile(
    r"images/\d{6,}(\.failed)?\.json|examples/\d{6,}-\w+-\w+\.png|examples\.png|"
    r"results\.parquet|status\.json|study\.json|summary\.(csv|md)|timing\.csv"
)


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
    best_color: bool = False  # also: the fill of each color with which other methods do best

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


# ---- handing tasks out


@dataclass
class Opened:
    """An image in work: what it waits for and what it has."""

    waits: set[tuple[Any, ...]]  # keys of tasks
    scores: dict[str, Scores] = field(default_factory=dict)  # by fills
    asked: dict[str, float] = field(default_factory=dict)  # seconds spent on them, by fills
    rows: list[dict[str, Any]] = field(default_factory=list)
    predicted: int = -1


class Study:
    """The images of a study, which of them are done, and the tasks that are left."""

    def __init__(
        self,
        examples: Sequence[Example],
        settings: Settings,
        model: str,
        labels: Sequence[str] | None,
        out: Storage,
        *,
        data: str = "",  # where the images are from
        keep_going: bool = False,
        retries: int = 0,
        retry_failed: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.examples, self.settings, self.out = examples, settings, out
        self.truths = [truth_of(example, labels) for example in examples]
        self.keep_going, self.retries = keep_going, retries
        self.claim({"data": data, "model": model}, overwrite)
        there = self.files()
        failed = {image for image, file in there.items() if file.name.endswith(FAILED)}
        self.done = set(there) - (failed if retry_failed else set())
        self.n_failed = len(failed & self.done)
        self.n_before = len(self.done)
        self.started = self.told = time.monotonic()
        self.left = iter([n for n in range(len(examples)) if n not in self.done])
        self.ready: deque[Task] = deque()
        self.opened: dict[int, Opened] = {}
        self.tries: Counter[tuple[Any, ...]] = Counter()

    # ---- the folder

    def claim(self, source: dict[str, str], overwrite: bool) -> None:
        """Write what the study is of, or refuse a folder that holds another."""
        note = self.out / "study.json"
        own = {
            **source,
            "settings": self.settings.to_json(),
            "images": [example.name for example in self.examples],
        }
        try:
            there = json.loads(note.read_text()) if note.exists() else None
        except (OSError, ValueError):
            there = {}
        if there == own and not overwrite:
            return
        if there is not None:
            if not overwrite:
                other = ", ".join(name for name in own if there.get(name) != own[name])
                raise InputError(
                    f"{self.out.path} holds another study (other {other}): choose another --out, "
                    "or --overwrite it."
                )
            for file in self.out.files():
                if OURS.fullmatch(file.relative_to(self.out)):
                    file.remove()
        write(note, (json.dumps(own, indent=1) + "\n").encode())

    def file_of(self, image: int, failed: bool = False) -> Storage:
        return self.out / f"images/{image:06d}{FAILED if failed else '.json'}"

    def files(self) -> dict[int, Storage]:
        """The files of the images finished so far, in order."""
        found = {}
        for file in (self.out / "images").files():
            number = file.name.partition(".")[0]
            if number.isdecimal() and file.path == self.file_of(int(number)).path:
                found[int(number)] = file
            elif number.isdecimal() and file.path == self.file_of(int(number), True).path:
                found.setdefault(int(number), file)
        return {image: found[image] for image in sorted(found) if image < len(self.examples)}

    def finished(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """What is known of the images finished so far, in order."""
        files = self.files()
        for image, (file, content) in zip(files, read_all(list(files.values())), strict=True):
            try:
                yield image, json.loads(content)
            except ValueError:
                raise McriseError(
                    f"{file.path} is damaged: remove it, and the same command does its image again."
                ) from None

    # ---- tasks

    @property
    def complete(self) -> bool:
        return len(self.done) == len(self.examples)

    def next_task(self) -> Task | None:
        """A task that can be done now; None: all that is left waits for answers."""
        while not self.ready:
            image = next(self.left, None)
            if image is None:
                return None
            self.open(image)
        return self.ready.popleft()

    def open(self, image: int) -> None:
        """Begin an image: ask for what its records need; what needs no record can start."""
        given, path = self.settings, self.examples[image].path
        tasks = []
        for fills in dict.fromkeys(map(given.fills_of, given.methods)):
            if fills is None:
                continue
            if given.n_masks == "auto":
                tasks.append(Task(image, path, fills))
                continue
            n_chunks = whole_chunks(int(given.n_masks)) // CHUNK
            tasks += [
                Task(image, path, fills, (first, min(first + TASK_CHUNKS, n_chunks)))
                for first in range(0, n_chunks, TASK_CHUNKS)
            ]
        alone = [method for method in given.methods if given.fills_of(method) is None]
        tasks += [Task(image, path, method=m, draw=image < N_EXAMPLES) for m in alone]
        self.opened[image] = Opened({task.key for task in tasks})
        self.ready.extend(tasks)

    def take(self, task: Task, answer: Answer | Failure) -> None:
        """Take the answer of a task, or hear that it has none."""
        opened = self.opened.get(task.image)
        if opened is None:
            return  # the image has failed meanwhile
        if isinstance(answer, Failure):
            self.tries[task.key] += 1
            if not answer.final and self.tries[task.key] <= self.retries:
                self.ready.append(task)
            else:
                self.fail(task.image, answer)
            return
        opened.waits.discard(task.key)
        if task.method is not None:
            shared = opened.asked.get(task.fills or "", 0.0)
            opened.rows += [
                row | {"seconds": (row["seconds"][0] + shared, row["seconds"][1])}
                for row in answer.rows
            ]
            opened.predicted = answer.predicted
            self.show(task, answer)
        else:
            assert task.fills is not None
            opened.scores.setdefault(task.fills, {}).update(answer.scores)
            spent = opened.asked.get(task.fills, 0.0)
            opened.asked[task.fills] = spent + answer.seconds
            self.measure_if_asked(task.image, task.fills)
        if not opened.waits:
            self.finish(task.image)

    def measure_if_asked(self, image: int, fills: str) -> None:
        """When the last chunks of a record are in, its methods can be measured."""
        opened = self.opened[image]
        if any(key[1] == fills for key in opened.waits):
            return
        given, path = self.settings, self.examples[image].path
        scores = opened.scores.pop(fills)
        methods = [method for method in given.methods if given.fills_of(method) == fills]
        tasks = [
            Task(image, path, fills, method=method, scores=scores, draw=image < N_EXAMPLES)
            for method in methods
        ]
        opened.waits |= {task.key for task in tasks}
        self.ready.extendleft(tasks)  # images begun are finished before others are begun

    def show(self, task: Task, answer: Answer) -> None:
        for estimator, picture in answer.pictures.items():
            write(self.out / f"examples/{task.image:06d}-{task.method}-{estimator}.png", picture)

    def finish(self, image: int, **more: Any) -> None:
        opened = self.opened.pop(image)
        content = {
            "image": self.examples[image].name,
            "truth": self.truths[image],
            "predicted": opened.predicted,
            "rows": sorted(opened.rows, key=lambda row: (row["method"], row["estimator"])),
            **more,
        }
        write(self.file_of(image, "error" in more), (json.dumps(content) + "\n").encode())
        self.done.add(image)
        self.tell()

    def fail(self, image: int, failure: Failure) -> None:
        """Give an image up: rows with the reason, or the end of the study."""
        name = self.examples[image].name
        if not self.keep_going:
            raise failure.kind(
                f"{name}: {failure.reason.rstrip('.')}. {len(self.done)} of {len(self.examples)} "
                f"images are finished and kept in {self.out.path}; --keep-going skips such images."
            )
        given = self.settings
        self.opened[image].rows = [
            {
                "method": method,
                "estimator": estimator,
                "n_masks": given.samples_of(method),
                "seed": given.seed,
                "error": failure.reason,
            }
            for method in given.methods
            for estimator in given.estimators_of(method)
        ]
        self.ready = deque(task for task in self.ready if task.image != image)
        self.n_failed += 1
        self.finish(image, error=failure.reason)

    # ---- how far it is

    def tell(self) -> None:
        """Write how far it is, every second or so, for whoever asks from elsewhere."""
        now = time.monotonic()
        if now - self.told > 1 or self.complete:
            self.told = now
            write(self.out / "status.json", (json.dumps(self.status()) + "\n").encode())

    def status(self) -> dict[str, Any]:
        spent = time.monotonic() - self.started
        n_new = len(self.done) - self.n_before
        speed = n_new / spent if n_new else None
        n_left = len(self.examples) - len(self.done)
        return {
            "images": len(self.examples),
            "done": len(self.done),
            "failed": self.n_failed,
            "images_per_second": speed,
            "seconds_left": n_left / speed if speed else None,
            "written": time.time(),
        }


def run_here(study: Study, worker: Worker) -> Iterator[Study]:
    """Do all tasks in this process; yields the study each time an image is done."""
    while (task := study.next_task()) is not None:
        n_done = len(study.done)
        study.take(task, worker.attempt(task))
        if len(study.done) > n_done:
            yield study


def sample(examples: Sequence[Example], n_images: int | None, seed: int) -> list[Example]:
    """A random sample of a collection, the same for the same seed, in the collection's order."""
    if n_images is None or n_images >= len(examples):
        return list(examples)
    if n_images < 1:
        raise InputError(f"{n_images} images were asked for, but at least 1 is needed.")
    chosen = np.random.default_rng(seed).choice(len(examples), n_images, replace=False)
    return [examples[i] for i in sorted(chosen)]


def write(file: Storage, content: bytes) -> None:
    """Write a file of a study, or say in one sentence why not; what is there stays whole."""
    try:
        file.write(content)
    except OSError as error:
        raise McriseError(
            f"{file.path} cannot be written ({error.strerror or error}): make room or choose "
            "another --out; what is finished is kept, and the same command goes on from there."
        ) from None
