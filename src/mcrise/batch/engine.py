"""The engine under studies and audits: tasks are handed out, answers taken in, nothing is lost.

A `Batch` says which tasks there are (`tasks`) and what to do with an answer (`accept`). All else is
here once: whose folder it is, which images are done, how often a failed one is tried again, and how
far the work is. What is finished is written at once, so a batch that was killed at any moment goes
on where it was.
"""

import os
import re
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from .._util.text import with_article
from .._util.threads import n_cores
from ..config import RunConfig, RunKeywords
from ..errors import InputError, ModelError, TooSmallError
from ..models import ModelSettings, load_model
from ..models.model import Model
from ..models.settings import check_keywords
from ..output.terminal import ProgressState, show_progress
from .datasets import Example, truth_of
from .folder import STATUS, FolderLock, json_line, write
from .storage import Storage
from .tasks import BatchConfig, Failure, Task, fill_names, read_image
from .workers import (
    FAILED_STARTS,
    TIMEOUT,
    Assignment,
    InlinePool,
    ProcessPool,
    RayPool,
    WorkerDied,
    WorkerFactory,
    WorkerPool,
)

STATUS_SECONDS = 1.0  # between two writes of the status
RETRIES = 2

T = TypeVar("T", bound=Task)
B = TypeVar("B", bound="Batch[Any]")


@dataclass(frozen=True)
class Stage:
    """A stage of the work, and how many images are through it, of those that it is about."""

    name: str
    done: int
    goal: int


class Batch(ABC, Generic[T]):
    """The images of a study or an audit, which of them are done, and the tasks that are left."""

    what: ClassVar[str]  # "study" or "audit"
    output_files: ClassVar[re.Pattern[str]]  # all that it writes: what --overwrite removes

    def __init__(
        self,
        examples: Sequence[Example],
        out: Storage,
        *,
        keep_going: bool = False,
        retries: int = 0,
        lock: FolderLock | None = None,
    ) -> None:
        self.examples, self.out = examples, out
        self.keep_going, self.retries, self.lock = keep_going, retries, lock
        self.done: set[int] = set()  # images that are finished, or have failed
        self.failed: set[int] = set()
        self.n_before = 0  # images that were done when it began
        self.ready: deque[T] = deque()
        self.in_work: set[Hashable] = set()  # keys of tasks that were handed out
        self.failures: Counter[Hashable] = Counter()  # of a task: each has tries of its own
        self.waits = False  # for the answers of all tasks in work
        self.remaining: Iterator[T | None] | None = None
        self.started = self.reported = time.monotonic()

    def resume(self, done: Iterable[int], failed: Iterable[int]) -> None:
        """Say which images were finished before, and which of them have failed."""
        self.done, self.failed = set(done), set(failed)
        self.n_before = len(self.done)

    @abstractmethod
    def tasks(self) -> Iterator[T | None]:
        """The tasks that are left, in order; None: wait until all before it are answered."""

    @abstractmethod
    def accept(self, task: T, answer: Any) -> Iterable[T]:
        """Take in the answer of a task; returns tasks that it makes possible."""

    @abstractmethod
    def give_up(self, task: T, failure: Failure) -> None:
        """Write down that the image of a task has failed, or go on without this answer."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether nothing is left to do."""

    @property
    def stage(self) -> "Stage":
        """The present stage of the work, and how many images are through it."""
        return Stage("images", len(self.done), len(self.examples))

    @property
    def n_failed(self) -> int:
        return len(self.failed)

    # ---- tasks

    def next_task(self) -> T | None:
        """A task that can be done now; None: all that is left waits for answers."""
        if self.remaining is None:
            self.remaining = self.tasks()
        while True:
            if self.ready:
                task: T | None = self.ready.popleft()
            elif self.waits and self.in_work:
                return None
            else:
                self.waits = False
                try:
                    task = next(self.remaining)
                except StopIteration:
                    self.report()
                    return None
            if task is None:
                self.waits = True
            elif task.image not in self.failed:
                self.in_work.add(task.key)
                return task

    def take(self, task: T, answer: Any) -> None:
        """Take the answer of a task, or its `Failure`."""
        if self.lock is not None:
            self.lock.check()  # before anything is written
        self.in_work.discard(task.key)
        if task.image in self.failed:
            return
        if not isinstance(answer, Failure):
            self.ready.extendleft(self.accept(task, answer))
        else:
            self.failures[task.key] += 1
            if not answer.final and self.failures[task.key] <= self.retries:
                self.ready.append(task)
            else:
                self.fail(task, answer)
        self.report()

    def fail(self, task: T, failure: Failure) -> None:
        """Give an image up, or the batch."""
        if not self.keep_going and failure.kind is not TooSmallError:
            name = self.examples[task.image].name
            raise failure.kind(
                f"{name}: {failure.reason.rstrip('.')}. {len(self.done)} of {len(self.examples)} "
                f"images are finished and kept in {self.out.path}; --keep-going skips such images."
            )
        self.give_up(task, failure)

    # ---- how far it is

    def report(self) -> None:
        """Write the status every second or so, for `mcrise status`."""
        now = time.monotonic()
        if now - self.reported > STATUS_SECONDS or self.complete:
            self.reported = now
            write(self.out / STATUS, json_line(self.status()))

    def status(self) -> dict[str, Any]:
        spent = time.monotonic() - self.started
        n_new = len(self.done) - self.n_before
        speed = n_new / spent if n_new else None
        n_left = len(self.examples) - len(self.done)
        return {
            "images": len(self.examples),
            "done": len(self.done),
            "failed": self.n_failed,
            "complete": self.complete,
            "stage": self.stage.name,
            "images_per_second": speed,
            "seconds_left": n_left / speed if speed else None,
            "written": time.time(),
        }


# ---- running it


def run(batch: B, pool: WorkerPool) -> Iterator[B]:
    """Do all tasks of a batch; yields the batch every second or so."""
    yield batch
    if batch.complete:
        return
    with pool:
        while not batch.complete:
            while pool.idle and (task := batch.next_task()) is not None:
                worker = pool.idle.pop()
                pool.assignments[worker] = Assignment(task)
                pool.send(worker, task)
            if batch.complete:
                break
            for worker, answer in pool.poll():
                _handle_result(batch, pool, worker, answer)
            now = time.monotonic()
            for worker, assignment in list(pool.assignments.items()):
                if assignment.task is not None and now - assignment.since > pool.timeout:
                    pool.kill_worker(worker)
                    late = WorkerDied(f"No answer within {pool.timeout:g} seconds.")
                    _handle_result(batch, pool, worker, late)
            yield batch
        yield batch


def _handle_result(batch: "Batch[Any]", pool: WorkerPool, worker: int, answer: Any) -> None:
    """Hand an answer to the batch, and replace a worker that died."""
    assignment = pool.assignments.pop(worker)
    task = assignment.task
    if task is None and isinstance(answer, Failure):
        pool.n_failed_starts += 1
        at_work = pool.idle or any(one.task for one in pool.assignments.values())
        if not isinstance(answer, WorkerDied) or (
            pool.n_failed_starts >= FAILED_STARTS and not at_work
        ):
            raise ModelError(f"A worker cannot start: {answer.reason}")
    if isinstance(answer, WorkerDied):
        pool.replace_worker(worker)
    else:
        pool.idle.append(worker)
        pool.n_failed_starts = 0
    if task is not None:
        assert answer is not None
        if not isinstance(answer, Failure):
            pool.took.append(time.monotonic() - assignment.since)
        batch.take(task, answer)


def with_progress(batches: Iterator[B], shown: bool) -> Iterator[B]:
    """Pass a batch on while its images are counted on stderr; the title counts failures."""

    def state_of(batch: B) -> ProgressState:
        stage = batch.stage
        title = f"{stage.name} ({batch.n_failed} failed)" if batch.n_failed else stage.name
        return ProgressState(stage.done, stage.goal, title)

    return show_progress(batches, "images", state_of) if shown else batches


@dataclass(frozen=True)
class BatchOptions:
    """How the work is done; none of it changes a result."""

    workers: int | None = None  # None: one for each core
    ray: str | None = None  # address of a cluster; "": start one here
    timeout: float = TIMEOUT  # seconds of a task
    retries: int = RETRIES
    keep_going: bool = False
    retry_failed: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"{self.workers} workers were asked for, but at least 1 is needed.")
        if not self.timeout > 0:
            raise InputError(f"The timeout is {self.timeout:g} seconds, but it must be above 0.")
        if self.retries < 0:
            raise InputError(f"{self.retries} retries were asked for, but 0 is the least.")


class BatchSettings(RunKeywords, ModelSettings, total=False):
    """What to paint and how often, what to know about the model, and the fields of BatchOptions."""

    workers: int | None
    ray: str | None
    timeout: float
    retries: int
    keep_going: bool
    retry_failed: bool
    overwrite: bool


def split_batch_settings(
    settings: BatchSettings, function: str, others: Sequence[str], **defaults: Any
) -> tuple[RunConfig, BatchOptions, dict[str, Any]]:
    """What is about each run, about the work and about the model.

    `others` are keywords in the signature of `function`, and `defaults` are its own of a run.
    """
    of_run, of_model = RunKeywords.__annotations__, ModelSettings.__annotations__
    check_keywords(settings, function, [*others, *BatchSettings.__annotations__])
    given: dict[str, Any] = dict(settings)
    run = {**defaults, **{name: given.pop(name) for name in of_run if name in given}}
    run |= {name: fill_names(run[name]) for name in ("fills", "colors") if run.get(name)}
    model = {name: given.pop(name) for name in of_model if name in given}
    return RunConfig.of(**run), BatchOptions(**given), model


@dataclass(frozen=True)
class BatchInput:
    """The images and the model of a batch, opened and checked."""

    data: str  # the collection, as notes name it
    examples: Sequence[Example]
    truths: Sequence[int | None]
    model: Model
    spec: str | None  # of the model; None: it is in memory
    settings: dict[str, Any]  # of the model

    @property
    def name(self) -> str:
        return self.model.identity if self.spec is None else self.spec

    def answer(self, example: Example) -> list[float]:
        """The scores of an image as it is."""
        view = self.model.view(read_image(example.path))
        return [float(score) for score in self.model(view.pixels[None])[0]]

    def score_range(self, answer: Sequence[float]) -> float:
        """How far scores can be apart: one, or of scores of any kind those of an answer."""
        return 1.0 if self.model.kind != "any" else max(answer) - min(answer)

    def other_model(self, out: Storage, what: str, image: str) -> InputError:
        """The error for a folder whose model answered differently."""
        return InputError(
            f"{out.path} holds {with_article(what)} by another model of the name "
            f"{self.model.identity!r}, which answers {image} differently, or the model answers at "
            "random: choose another --out, or --overwrite it."
        )

    def pool(self, config: BatchConfig, options: BatchOptions) -> WorkerPool:
        """Who does the work."""
        if self.spec is None:
            return InlinePool(config.worker(self.model))
        factory = WorkerFactory(self.spec, self.settings, config, self.model.identity)
        if options.ray is None:
            return ProcessPool(factory, options.workers or n_cores(), options.timeout)
        return RayPool(factory, options.ray or None, options.workers, options.timeout)


def open_input(
    data: Path | str,
    split: str,
    model: Any,
    settings: dict[str, Any],
    out: Path | str,
    options: BatchOptions,
    choose: Callable[[], Sequence[Example]],
) -> BatchInput:
    """Refuse what cannot work before anything is written; `choose` opens the collection."""
    in_memory = not isinstance(model, str | Path)
    if in_memory and (options.ray is not None or options.workers not in (None, 1)):
        raise InputError(
            "A model in memory cannot be sent to other processes: give its path or "
            "package.module:name, or leave workers and ray out."
        )
    if settings.pop("threads", None) not in (None, 1):
        raise InputError("Each worker has one thread: say --workers instead.")
    Storage(out)
    if os.path.abspath(out) == os.path.abspath(data):
        raise InputError(f"The images are in {data} themselves: choose another --out.")
    examples = choose()
    known = load_model(model, **settings, threads=None if in_memory else 1)
    truths = [truth_of(example, known.labels) for example in examples]
    where = data if Storage(data).remote else os.path.abspath(data)
    return BatchInput(
        f"{where} ({split})", examples, truths, known, None if in_memory else str(model), settings
    )
