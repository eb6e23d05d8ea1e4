"""Jobs: explanations asked for by others, done one after the other, and never lost.

What was asked is a row in SQLite, what was computed is a record on disk, and the upload lies beside
it: after a crash, the unfinished jobs are begun again with their records and end as if nothing had
happened. One thread owns the models; whoever else needs an answer hands it a call, which is served
between two chunks.
"""

import json
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..archive import load
from ..brief import whole_chunks
from ..errors import InputError, McriseError
from ..images import View
from ..loop import CHECKPOINT_SECONDS, checkpointed, last, run, steps
from ..model import Model
from ..record import Record
from .order import Order, parse_order

MOST_QUEUED = 16
MOST_HELD = 8  # records in memory
OPEN = ("queued", "running")  # states of a job that still has work to do
TABLE = """CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, asked TEXT, created REAL, state TEXT,
    n_masks INTEGER, goal INTEGER, note TEXT)"""

T = TypeVar("T")


class UnknownJob(InputError):
    """There is no such job, or not any more."""


class QueueFull(InputError):
    """Too many jobs are waiting already."""


class NotServed(InputError):
    """A job's model is not here any more."""

    def __init__(self, model: str) -> None:
        super().__init__(f"The model {model!r} is not being served: start the server with it.")


@dataclass
class Job:
    """How far an order has got."""

    id: str
    number: int  # jobs are done in this order
    order: Order
    created: float
    state: str = "queued"  # then running, and paused, stopped, done or failed
    n_masks: int = 0
    goal: int = 0
    note: str = ""  # why it stopped or failed
    speed: float | None = None  # masks a second


class Jobs:
    """The jobs under one folder, and the thread that works on them."""

    def __init__(
        self,
        folder: Path,
        models: Mapping[str, Model],
        *,
        most_queued: int = MOST_QUEUED,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        self.folder, self.most_queued = folder, most_queued
        self.checkpoint_seconds = checkpoint_seconds
        self.n_images = 0  # that models were asked about, for whoever counts
        self.models = {name: self.counted(model) for name, model in models.items()}
        folder.mkdir(parents=True, exist_ok=True)
        self.changed = threading.Condition(threading.RLock())
        self.database = sqlite3.connect(folder / "jobs.sqlite", check_same_thread=False)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute(TABLE)
        self.jobs = {job.id: job for job in self.stored()}
        self.held: OrderedDict[str, Record] = OrderedDict()
        self.copies: dict[str, Record] = {}  # of those held
        self.calls: deque[Callable[[], None]] = deque()
        self.open = True
        self.worker = threading.Thread(target=self.work, name="model worker", daemon=True)
        self.worker.start()

    def close(self) -> None:
        """Stop at the next chunk; unfinished jobs go on when the folder is opened again."""
        with self.changed:
            self.open = False
            self.changed.notify_all()
        self.worker.join()
        self.database.close()

    # ---- asking

    def submit(self, order: Order, picture: bytes) -> Job:
        """Take an order for a picture (the bytes of a file)."""
        with self.changed:
            if len(self.queue()) >= self.most_queued:
                raise QueueFull(
                    f"{self.most_queued} jobs are waiting already: try again when one has finished."
                )
            number = 1 + max((job.number for job in self.jobs.values()), default=0)
            job = Job(secrets.token_hex(8), number, order, time.time())
            self.upload_path(job).write_bytes(picture)
            self.jobs[job.id] = job
            self.store(job)
            self.changed.notify_all()
        return job

    def pause(self, id: str) -> Job:
        return self.move(id, OPEN, "paused")

    def stop(self, id: str) -> Job:
        return self.move(id, (*OPEN, "paused"), "stopped")

    def resume(self, id: str) -> Job:
        """Go on with a job that was paused or stopped, or try a failed one again."""
        return self.move(id, ("paused", "stopped", "failed"), "queued")

    def more(self, id: str, n_masks: int) -> Job:
        """Ask for so many masks beyond those it has or is on its way to."""
        with self.changed:
            job = self.get(id)
            goal = whole_chunks(max(job.n_masks, job.goal) + n_masks)
            brief = replace(job.order.brief, n_masks=goal)
            job.order, job.goal = replace(job.order, brief=brief), goal
            # A running job has its old goal in its loop: it is queued again when it gets there.
            return self.move(id, ("paused", "stopped", "failed", "done"), "queued")

    def delete(self, id: str) -> None:
        """Cancel a job and forget it; one that is running ends within a chunk."""
        with self.changed:
            job = self.get(id)
            del self.jobs[id]
            self.held.pop(id, None)
            self.copies.pop(id, None)
            self.database.execute("DELETE FROM jobs WHERE id = ?", (id,))
            self.database.commit()
            job.state = "cancelled"
            self.remove_files(job)  # and again by the worker, if it is at it

    def move(self, id: str, sources: tuple[str, ...], state: str) -> Job:
        """Change the state of a job, if it is one from which that is possible."""
        with self.changed:
            job = self.get(id)
            if job.state in sources:
                job.state, job.note = state, ""
            self.store(job)
            self.changed.notify_all()
            return job

    def call(self, name: str, function: Callable[[Model], T]) -> "Future[T]":
        """Have the worker apply a function to a model, before the next chunk of any job."""
        answer: Future[T] = Future()

        def serve() -> None:
            try:
                answer.set_result(function(self.model(name)))
            except Exception as error:
                answer.set_exception(error)

        with self.changed:
            self.calls.append(serve)
            self.changed.notify_all()
        return answer

    # ---- looking

    def get(self, id: str) -> Job:
        with self.changed:
            if id not in self.jobs:
                raise UnknownJob(f"There is no job {id}: it was deleted, or never existed.")
            return self.jobs[id]

    def all(self) -> list[Job]:
        """Newest first."""
        with self.changed:
            return sorted(self.jobs.values(), key=lambda job: -job.number)

    def queue(self) -> list[Job]:
        with self.changed:
            waiting = [job for job in self.jobs.values() if job.state == "queued"]
            return sorted(waiting, key=lambda job: job.number)

    def record(self, id: str) -> Record:
        """What is known so far: a copy that does not grow."""
        with self.changed:
            job = self.get(id)
            if id not in self.held:
                if not self.record_path(job).exists():
                    raise UnknownJob(f"Job {id} has no masks yet: wait for its first chunk.")
                self.hold(id, load(self.record_path(job)))
            record, copy = self.held[id], self.copies.get(id)
            if copy is None or copy.n_masks != record.n_masks:  # else it keeps what it has fitted
                copy = self.copies[id] = replace(record, scores=dict(record.scores))
                copy.recognised = record.recognised  # else each repaint would ask anew
            return copy

    def model(self, name: str) -> Model:
        if name not in self.models:
            raise NotServed(name)
        return self.models[name]

    def view(self, id: str) -> View:
        """What the model is shown of a job's picture."""
        job = self.get(id)
        if job.order.model not in self.models:
            return self.record(id).view
        return self.model(job.order.model).view(self.upload_path(job).read_bytes())

    def upload_path(self, job: Job) -> Path:
        return self.folder / f"{job.id}.upload"

    def record_path(self, job: Job) -> Path:
        return self.folder / f"{job.id}.npz"

    def keep_answers(self, id: str, record: Record) -> None:
        """Save what a model said of repaints; a job that is running saves it by itself."""
        with self.changed:
            job = self.get(id)
            if id in self.held:
                self.held[id].answers |= record.answers
            if job.state != "running":
                record.save(self.record_path(job))

    # ---- working

    def work(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: not self.open or self.calls or self.queue())
                if not self.open:
                    return
                waiting = self.queue()
                if waiting:
                    waiting[0].state = "running"
                    self.store(waiting[0])
            self.serve_calls()
            if waiting:
                self.run(waiting[0])

    def run(self, job: Job) -> None:
        """Work on a job until it is done or somebody changes its state."""
        reached = False
        try:
            with closing(self.chunks(job)) as chunks:
                for _ in chunks:
                    self.serve_calls()
                    if not self.open or job.state != "running":
                        break
                else:
                    reached = True
        except McriseError as error:
            job.state, job.note = "failed", str(error)
        except Exception as error:  # a job must not take the worker with it
            job.state, job.note = "failed", f"{type(error).__name__}: {error}"
        with self.changed:
            if job.id not in self.jobs:
                self.remove_files(job)
                return
            if reached and job.state == "running":
                asked = job.order.brief.n_masks
                unmet = isinstance(asked, int) and job.n_masks < asked  # more was asked meanwhile
                job.state = "queued" if unmet else "done"
            self.store(job)

    def chunks(self, job: Job) -> Generator[Record, None, None]:
        """The run of a job, kept on disk as it goes."""
        order, path = job.order, self.record_path(job)
        model = self.model(order.model)
        view = model.view(self.upload_path(job).read_bytes())
        grown = run(view, model, order.brief, load(path) if path.exists() else None)
        started, n_before = time.monotonic(), None
        with closing(checkpointed(grown, path, self.checkpoint_seconds)) as saved:
            for record in saved:
                n_before = record.n_masks if n_before is None else n_before
                spent = time.monotonic() - started
                with self.changed:
                    if job.id in self.jobs:
                        self.hold(job.id, record)
                    job.n_masks, job.note = record.n_masks, record.verdict
                    job.goal = max(record.goal, job.goal if order.brief.n_masks != "auto" else 0)
                    if record.n_masks > n_before:
                        job.speed = (record.n_masks - n_before) / spent
                    elif job.speed is None:
                        started = time.monotonic()  # the first chunk may compile something
                yield record

    def serve_calls(self) -> None:
        while self.calls:
            self.calls.popleft()()

    def counted(self, model: Model) -> Model:
        def predict(batch: Any) -> Any:
            self.n_images += len(batch)
            return model.predict(batch)

        return replace(model, predict=predict)

    # ---- keeping

    def hold(self, id: str, record: Record) -> None:
        self.held[id] = record
        self.held.move_to_end(id)
        while len(self.held) > MOST_HELD:
            self.copies.pop(self.held.popitem(last=False)[0], None)

    def store(self, job: Job) -> None:
        values = (job.number, job.id, json.dumps(job.order.to_json()), job.created, job.state,
                  job.n_masks, job.goal, job.note)  # fmt: skip
        with self.changed:
            if job.id in self.jobs:
                self.database.execute("REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
                self.database.commit()

    def stored(self) -> Iterator[Job]:
        """The jobs of earlier; those that were being worked on wait for their turn again."""
        for number, id, asked, created, state, n_masks, goal, note in self.database.execute(
            "SELECT * FROM jobs"
        ).fetchall():
            try:
                order = parse_order(json.loads(asked))
            except InputError as error:  # such as a fill of a package that is gone
                self.database.close()
                raise InputError(f"Job {id} in {self.folder} cannot be read: {error}") from None
            if order.model not in self.models and state in OPEN:
                state, note = "failed", str(NotServed(order.model))
            state = "queued" if state == "running" else state
            yield Job(id, number, order, created, state, n_masks, goal, note)

    def remove_files(self, job: Job) -> None:
        for path in (self.upload_path(job), self.record_path(job)):
            with suppress(FileNotFoundError):
                path.unlink()


def warm_up(model: Model) -> None:
    """Import, compile and allocate what the first map of a job would wait for."""
    side = model.geometry.size or (64, 64)
    image = np.random.default_rng(0).integers(0, 256, (*side, 3), np.uint8)
    last(steps(image, model, n_masks=1)).maps()
