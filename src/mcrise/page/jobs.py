"""Jobs: explanations asked for by others, done one after the other, and never lost.

What was asked is a row in SQLite, what was computed is a record on disk, and the upload lies beside
it: after a crash, the unfinished jobs are begun again with their records and end as if nothing had
happened. One thread owns the models; whoever else needs an answer hands it a call, which is served
between two chunks. Nothing that goes wrong ends that thread: what cannot be written down yet is
tried again every second.
"""

import json
import re
import secrets
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

from .. import told
from ..archive import load
from ..brief import whole_chunks
from ..errors import InputError, McriseError
from ..files import write_atomically
from ..images import View, png
from ..locks import Lock
from ..loop import CHECKPOINT_SECONDS, checkpointed, last, run, steps
from ..model import Model
from ..record import Record
from .decoding import DECODER
from .ledger import Ledger, NotKept
from .order import Order, parse_order
from .retention import Retention

ID = "[0-9a-f]{16}"  # of a job: part of the names of its files
MOST_QUEUED = 16
MOST_HELD = 8  # records in memory
OPEN = ("queued", "running")  # states of a job that still has work to do
STATES = (*OPEN, "paused", "stopped", "done", "failed")
RETRY_SECONDS = 1.0  # after which what could not be written is tried again
TIDY_SECONDS = 60.0  # between two looks at what is too old or too much

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
    early: bool = False  # there is something to see, before the first masks that count
    speed: float | None = None  # masks a second
    leaves: float | None = None  # when it goes, where there is no room for it


class Jobs:
    """The jobs under one folder, and the thread that works on them."""

    def __init__(
        self,
        folder: Path,
        models: Mapping[str, Model],
        *,
        most_queued: int = MOST_QUEUED,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        retention: Retention | None = None,
    ) -> None:
        self.folder, self.most_queued = folder, most_queued
        self.checkpoint_seconds = checkpoint_seconds
        self.retention = retention or Retention()
        self.n_images = 0  # that models were asked about, for whoever counts
        self.models = {name: self.counted(model) for name, model in models.items()}
        self.lock = Lock(folder / "jobs.lock", "a server")
        self.changed = threading.Condition(threading.RLock())
        self.loading = threading.Lock()
        try:
            self.ledger = Ledger(folder / "jobs.sqlite")
            self.jobs = {job.id: job for job in self.stored()}
        except BaseException:
            self.lock.release()
            raise
        self.unkept: set[str] = set()  # jobs whose state could not be written yet
        self.n_bytes, self.tidied = 0, 0.0
        self.held: OrderedDict[str, Record] = OrderedDict()
        self.copies: dict[str, Record] = {}  # of those held
        self.views: dict[str, View] = {}  # of the newest, unpacked when they were taken
        self.calls: deque[Callable[[], None]] = deque()
        self.open = True
        self.ending = False  # soon: whoever listens should go
        self.worker = threading.Thread(target=self.work, name="model worker", daemon=True)
        self.worker.start()

    def close(self) -> None:
        """Stop at the next chunk; unfinished jobs go on when the folder is opened again."""
        with self.changed:
            self.open = False
            self.changed.notify_all()
        self.worker.join()
        while self.calls:  # of whoever still waits
            self.calls.popleft()()
        with suppress(NotKept), self.changed:
            self.write_unkept()
        self.ledger.close()
        self.lock.release()

    def health(self) -> dict[str, Any]:
        """Whether jobs are being worked on, and what is in the way."""
        alive = self.worker.is_alive()
        trouble = self.ledger.trouble if alive else "The thread that asks the models has ended."
        return {"alive": alive, "trouble": trouble}

    def kept(self) -> dict[str, Any]:
        """How much is kept here, and how much at most."""
        most = self.retention
        return {"bytes": self.n_bytes, "most_bytes": most.bytes, "most_days": most.days}

    # ---- asking

    def submit(self, order: Order, picture: bytes, view: View | None = None) -> Job:
        """Take an order for a picture (the bytes of a file), and what the model is shown of it."""
        with self.changed:
            self.check_queue()
            self.check_room(len(picture))
            number = 1 + max((job.number for job in self.jobs.values()), default=0)
            job = Job(secrets.token_hex(8), number, order, time.time())
            self.keep_new(job, picture)
            if view is not None:
                self.views[job.id] = view
                while len(self.views) > MOST_HELD:
                    del self.views[next(iter(self.views))]
            self.changed.notify_all()
        return job

    def adopt(self, id: str, order: Order, record: Record) -> None:
        """Take a record that was made elsewhere, as a job that is done; nothing if it is here."""
        with self.changed:
            if id in self.jobs:
                return
            number = 1 + max((job.number for job in self.jobs.values()), default=0)
            n_masks = record.n_masks
            job = Job(id, number, order, time.time(), "done", n_masks, n_masks, record.verdict)
            self.check_room(record.n_masks * record.n_classes * 4)
            self.keep_new(job, png(record.view.pixels), record)

    def keep_new(self, job: Job, picture: bytes, record: Record | None = None) -> None:
        """Keep all of a job, or nothing and say why."""
        try:
            write_atomically(self.upload_path(job), picture)
            if record is not None:
                record.save(self.record_path(job))
            self.keep(job)
        except (OSError, InputError, NotKept) as error:
            self.remove_files(job)
            if isinstance(error, NotKept):
                raise
            reason = error.strerror if isinstance(error, OSError) else error
            raise NotKept(
                f"The picture cannot be kept in {self.folder} ({reason}): make room there, then "
                "send it again."
            ) from None
        self.jobs[job.id] = job

    def check_queue(self) -> None:
        if len(self.queue()) >= self.most_queued:
            raise QueueFull(
                f"{self.most_queued} jobs are waiting already: try again when one has finished."
            )

    def check_room(self, n_bytes: int) -> None:
        """Refuse what would go far beyond the limit while those told to go are still here."""
        most = self.retention.bytes
        if most is not None and self.n_bytes + n_bytes > 1.1 * most:
            raise NotKept(
                f"The jobs here take {self.n_bytes / 1e9:.3g} GB, more than the {most / 1e9:g} GB "
                "that are kept: delete some, or serve with a larger --keep-gb."
            )

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
            order = replace(job.order, brief=replace(job.order.brief, n_masks=goal))
            # A running job has its old goal in its loop: it is queued again when it gets there.
            sources = ("paused", "stopped", "failed", "done")
            return self.move(id, sources, "queued", order=order, goal=goal)

    def delete(self, id: str) -> None:
        """Cancel a job and forget it; one that is running ends within a chunk."""
        with self.changed:
            job = self.get(id)
            self.ledger.drop(id)
            del self.jobs[id]
            self.held.pop(id, None)
            self.copies.pop(id, None)
            self.views.pop(id, None)
            self.unkept.discard(id)
            job.state = "cancelled"
            self.remove_files(job)  # and again by the worker, if it is at it

    def move(self, id: str, sources: tuple[str, ...], state: str, **more: Any) -> Job:
        """Change the state of a job, if it is one from which that is possible; `more` always."""
        with self.changed:
            job = self.get(id)
            if job.state in sources:
                if state == "queued":
                    self.check_queue()
                more |= {"state": state, "note": "", "leaves": None}
            self.keep(replace(job, **more))  # first: what cannot be kept does not happen
            for name, value in more.items():
                setattr(job, name, value)
            self.changed.notify_all()
            return job

    def call(self, name: str, function: Callable[[Model], T]) -> "Future[T]":
        """Have the worker apply a function to a model, before the next chunk of any job."""
        answer: Future[T] = Future()

        def serve() -> None:
            if not answer.set_running_or_notify_cancel():  # nobody waits for it any more
                return
            try:
                if not self.open:
                    raise McriseError("The server is ending: ask again when it is back.")
                answer.set_result(function(self.model(name)))
            except BaseException as error:  # also SystemExit, of a model's own code
                answer.set_exception(error)

        with self.changed:
            if not self.worker.is_alive():
                raise McriseError("The models are not being asked any more: start the server anew.")
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
        record = self.whole_record(id)
        with self.changed:
            self.get(id)
            copy = self.copies.get(id)
            if copy is None or copy.n_masks != record.n_masks:  # else it keeps what it has fitted
                copy = self.copies[id] = replace(record, scores=dict(record.scores))
                copy.recognised = record.recognised  # else each repaint would ask anew
            return copy

    def whole_record(self, id: str) -> Record:
        """The record itself. Reading a long one takes seconds: nobody else waits for that."""
        with self.changed:
            path = self.record_path(self.get(id))
            if id in self.held:
                return self.held[id]
        with self.loading:  # of two who want it, one reads
            with self.changed:
                if id in self.held:
                    return self.held[id]
            if not path.exists():
                raise UnknownJob(f"Job {id} has no masks yet: wait for its first chunk.")
            read = load(path)
            with self.changed:
                self.get(id)
                if id not in self.held:  # else it has begun to run meanwhile, and has more
                    self.hold(id, read)
                return self.held[id]

    def model(self, name: str) -> Model:
        if name not in self.models:
            raise NotServed(name)
        return self.models[name]

    def view(self, id: str) -> View:
        """What the model is shown of a job's picture."""
        with suppress(UnknownJob):
            return self.record(id).view  # whatever model goes by that name now
        return self.unpacked(self.get(id))

    def unpacked(self, job: Job) -> View:
        geometry = self.model(job.order.model).geometry
        known = self.views.get(job.id)
        return DECODER.view(self.upload(job.id), geometry) if known is None else known

    def upload(self, id: str) -> bytes:
        """The file that was sent."""
        path = self.upload_path(self.get(id))
        try:
            return path.read_bytes()
        except FileNotFoundError:  # meanwhile
            raise UnknownJob(f"The picture of job {id} is gone: send it again.") from None

    def upload_path(self, job: Job) -> Path:
        return self.folder / f"{job.id}.upload"

    def record_path(self, job: Job) -> Path:
        return self.folder / f"{job.id}.npz"

    def keep_answers(self, id: str, record: Record) -> None:
        """Save what a model said of repaints; a job that is running saves it by itself."""
        whole = self.whole_record(id)  # which may have more masks by now
        with self.changed:
            job = self.get(id)
            whole.answers |= record.answers
            if job.state != "running":
                whole.save(self.record_path(job))

    # ---- working

    def work(self) -> None:
        while True:
            with suppress(NotKept):  # told by `health`, and tried again
                self.write_unkept()
                self.tidy()
            with self.changed:
                self.changed.wait_for(
                    lambda: not self.open or self.calls or self.queue(),
                    RETRY_SECONDS if self.unkept or self.ledger.trouble else TIDY_SECONDS,
                )
                if not self.open:
                    return
                waiting = self.queue()
                if waiting:
                    waiting[0].state = "running"  # not written: one that was queued begins again
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
                    draw(self.record(job.id), job.order)
                    reached = True
        except McriseError as error:
            job.state, job.note = "failed", str(error)
        except BaseException as error:  # a job must not take the worker with it
            job.state, job.note = "failed", f"{type(error).__name__}: {error}"
        with self.changed:
            if job.early:  # it failed before there was anything to go on with
                job.early = False
                self.held.pop(job.id, None)
                self.copies.pop(job.id, None)
            if job.id not in self.jobs:
                self.remove_files(job)
                return
            if reached and job.state == "running":
                asked = job.order.brief.n_masks
                unmet = isinstance(asked, int) and job.n_masks < asked  # more was asked meanwhile
                job.state = "queued" if unmet else "done"
            self.unkept.add(job.id)

    def chunks(self, job: Job) -> Generator[Record, None, None]:
        """The run of a job, kept on disk as it goes."""
        order, path = job.order, self.record_path(job)
        model = self.model(order.model)
        view = self.unpacked(job)

        def show_early(record: Record) -> None:
            record.recognised = model.predict
            draw(record, order)
            with self.changed:
                if job.id in self.jobs:
                    self.hold(job.id, record)
                    self.copies[job.id] = record  # it does not grow: the run has one of its own
                    job.early = True

        known = load(path) if path.exists() else None
        grown = run(view, model, order.brief, known, show_early)
        started, n_before = time.monotonic(), None
        with closing(checkpointed(grown, path, self.checkpoint_seconds)) as saved:
            for record in saved:
                n_before = record.n_masks if n_before is None else n_before
                spent = time.monotonic() - started
                with self.changed:
                    if job.id in self.jobs:
                        self.hold(job.id, record)
                    job.n_masks, job.note, job.early = record.n_masks, record.verdict, False
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
        if self.held.get(id) is not record:
            self.copies.pop(id, None)
        self.held[id] = record
        self.held.move_to_end(id)
        while len(self.held) > MOST_HELD:
            self.copies.pop(self.held.popitem(last=False)[0], None)

    def keep(self, job: Job) -> None:
        """Write a job down, or raise `NotKept`."""
        asked = json.dumps(job.order.to_json())
        self.ledger.put((job.number, job.id, asked, job.created, job.state, job.n_masks, job.goal,
                         job.note))  # fmt: skip
        self.unkept.discard(job.id)

    def write_unkept(self) -> None:
        """Write what the worker has brought about, now or when it is possible again."""
        if self.ledger.trouble:
            self.ledger.probe()
        with self.changed:
            for id in sorted(self.unkept & set(self.jobs)):
                self.keep(self.jobs[id])

    def stored(self) -> Iterator[Job]:
        """The jobs of earlier; those that were being worked on wait for their turn again."""
        leaving = self.ledger.leaving()
        for number, id, asked, created, state, n_masks, goal, note in self.ledger.rows():
            try:
                order = parse_order(json.loads(asked))
                if state not in STATES:
                    raise ValueError(f"the state {state!r}")
                if not re.fullmatch(ID, id):
                    raise ValueError("its id is none")
                counts = int(number), int(n_masks), int(goal)
                created, note = told.number(created), str(note)
                leaves = told.number(leaving[id]) if id in leaving else None
            # Such as a fill of a package that is gone, or a list that is damaged.
            except (InputError, ValueError, TypeError, OverflowError, RecursionError) as error:
                self.ledger.close()
                raise InputError(
                    f"Job {id} in {self.folder} cannot be read: {str(error).rstrip('.')}. Choose "
                    "another --data to go on without it."
                ) from None
            if order.model not in self.models and state in OPEN:
                state, note = "failed", str(NotServed(order.model))
            state = "queued" if state == "running" else state
            yield Job(id, counts[0], order, created, state, *counts[1:], note, leaves=leaves)

    def tidy(self) -> None:
        """Let go of what is too old or too much, a day after it was told so."""
        if time.monotonic() - self.tidied < TIDY_SECONDS and self.tidied:
            return
        self.tidied, now = time.monotonic(), time.time()
        with self.changed:
            resting = {job.id: job for job in self.jobs.values() if job.state not in OPEN}
        sizes = {id: self.size_of(job) for id, job in resting.items()}
        too_much = self.retention.too_much(
            [(id, job.created, sizes[id]) for id, job in resting.items()], now
        )
        leaving = {id: resting[id].leaves or now + self.retention.grace for id in too_much}
        for id in [id for id, at in leaving.items() if at <= now]:
            with suppress(UnknownJob):
                self.delete(id)
            del leaving[id]
            del sizes[id]
        with self.changed:
            self.n_bytes = sum(sizes.values())
            if leaving != {id: job.leaves for id, job in resting.items() if job.leaves}:
                self.ledger.tell_leaving(leaving)
            for id, job in resting.items():
                job.leaves = leaving.get(id)

    def size_of(self, job: Job) -> int:
        total = 0
        for path in (self.upload_path(job), self.record_path(job)):
            with suppress(OSError):
                total += path.stat().st_size
        return total

    def remove_files(self, job: Job) -> None:
        for path in (self.upload_path(job), self.record_path(job)):
            with suppress(OSError):
                path.unlink()


def draw(record: Record, order: Order) -> None:
    """Make the maps that will be looked at, which a record keeps.

    Made when they are asked for, they would fight the next job's model for the cores, and all who
    look would wait.
    """
    record.chance(record.maps(order.brief.target))


def warm_up(model: Model) -> None:
    """Import, compile, start and allocate what the first map of a job would wait for."""
    side = model.geometry.size or (64, 64)
    image = np.random.default_rng(0).integers(0, 256, (*side, 3), np.uint8)
    DECODER.view(png(image), model.geometry)
    record = last(steps(image, model, n_masks=1))
    record.chance(record.maps())
