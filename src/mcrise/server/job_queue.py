"""Jobs: explanations asked for by others, done one after the other, and never lost.

What was asked is a row in SQLite, what was computed is a record on disk, and the upload lies beside
it: after a crash, the unfinished jobs are begun again with their records and end as if nothing had
happened. One thread owns the models, and nothing that goes wrong ends it: what cannot be written
down yet is tried again every second.
"""

import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .._util import validation
from .._util.files import Lock
from ..config import whole_chunks
from ..errors import InputError, McriseError, safe_str
from ..explanation import Explanation
from ..explanation_file import CHECKPOINT_SECONDS, RunFile, load
from ..images import View, png
from ..models.model import Model
from ..sampling import iter_explain, last, run
from .image_decoder import DECODER
from .models import NotServed, ServedModels
from .quota import Quota, Retention
from .schemas import OPEN, Job, JobRequest, UnknownJob, parse_job
from .store import JobFiles, JobTable, StorageError

MOST_QUEUED = 16
RETRY_SECONDS = 1.0  # after which what could not be written is tried again
TIDY_SECONDS = 60.0  # between two looks at what is too old or too much

T = TypeVar("T")


class QueueFull(InputError):
    """Too many jobs are waiting already."""


class JobQueue:
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
        self.models = ServedModels(models)
        self.lock = Lock(folder / "jobs.lock", "a server")
        self.changed = threading.Condition(threading.RLock())
        self.job_files = JobFiles(folder)
        self.room = Quota(self.job_files, retention or Retention())
        try:
            self.job_table = JobTable(folder / "jobs.sqlite")
            self.jobs = {job.id: job for job in self.stored()}
        except BaseException:
            self.lock.release()
            raise
        self.unkept: set[str] = set()  # jobs whose state could not be written yet
        self.tidied = 0.0
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
        self.models.close()
        with suppress(StorageError), self.changed:
            self.write_unkept()
        self.job_table.close()
        self.lock.release()

    def health(self) -> dict[str, Any]:
        """Whether jobs are being worked on, and what is in the way."""
        alive = self.worker.is_alive()
        trouble = self.job_table.trouble if alive else "The thread that asks the models has ended."
        return {"alive": alive, "trouble": trouble}

    # ---- asking

    def submit(self, job_request: JobRequest, picture: bytes, view: View | None = None) -> Job:
        """Take an order for a picture (the bytes of a file), and what the model is shown of it."""
        with self.changed:
            self.check_queue()
            self.room.check(len(picture))
            job = Job(secrets.token_hex(8), self.next_number(), job_request, time.time())
            self.keep_new(job, picture, view)
            self.changed.notify_all()
        return job

    def adopt(self, id: str, job_request: JobRequest, explanation: Explanation) -> None:
        """Take a record that was made elsewhere, as a job that is done; nothing if it is here."""
        with self.changed:
            if id in self.jobs:
                return
            n_masks = explanation.n_masks
            job = Job(id, self.next_number(), job_request, time.time(), "done", n_masks, n_masks,
                      explanation.stop_reason)  # fmt: skip
            self.room.check(n_masks * explanation.n_classes * 4)
            self.keep_new(job, png(explanation.view.pixels), explanation=explanation)

    def next_number(self) -> int:
        return 1 + max((job.number for job in self.jobs.values()), default=0)

    def keep_new(
        self,
        job: Job,
        picture: bytes,
        view: View | None = None,
        explanation: Explanation | None = None,
    ) -> None:
        """Keep all of a job, or nothing and say why."""
        try:
            self.job_files.put(job.id, picture, view, explanation)
            self.job_table.add(job.to_row())
        except (OSError, InputError, StorageError) as error:
            self.job_files.remove(job.id)
            if isinstance(error, StorageError):
                raise
            reason = error.strerror if isinstance(error, OSError) else error
            raise StorageError(
                f"The picture cannot be kept in {self.folder} ({reason}): make room there, then "
                "send it again."
            ) from None
        self.jobs[job.id] = job
        self.room.count([job.id])

    def check_queue(self) -> None:
        if len(self.queue()) >= self.most_queued:
            raise QueueFull(
                f"{self.most_queued} jobs are waiting already: try again when one has finished."
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
            job_request = replace(
                job.job_request, config=replace(job.job_request.config, n_masks=goal)
            )
            # A running job has its old goal in its loop: it is queued again when it gets there.
            sources = ("paused", "stopped", "failed", "done")
            return self.move(id, sources, "queued", job_request=job_request, goal=goal)

    def delete(self, id: str) -> None:
        """Cancel a job and forget it; one that is running ends within a chunk."""
        with self.changed:
            job = self.get(id)
            self.job_table.drop(id)
            del self.jobs[id]
            self.room.forget([id])
            self.unkept.discard(id)
            job.state = "cancelled"
            self.job_files.remove(id)  # and again by the worker, if it is at it

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
        with self.changed:
            if not self.worker.is_alive():
                raise McriseError("The models are not being asked any more: start the server anew.")
            answer = self.models.hand_in(name, function)
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

    def explanation(self, id: str) -> Explanation:
        """What is known so far: a copy that does not grow."""
        self.get(id)
        return self.job_files.copy(id)

    def view(self, id: str) -> View:
        """What the model is shown of a job's picture."""
        with suppress(UnknownJob):
            return self.explanation(id).view  # whatever model goes by that name now
        return self.unpacked(self.get(id))

    def unpacked(self, job: Job) -> View:
        geometry = self.models.served(job.job_request.model).geometry
        known = self.job_files.views.get(job.id)
        return DECODER.view(self.upload(job.id), geometry) if known is None else known

    def upload(self, id: str) -> bytes:
        """The file that was sent."""
        self.get(id)
        return self.job_files.upload(id)

    def keep_answers(self, id: str, explanation: Explanation) -> None:
        """Save what a model said of repaints; a job that is running saves it by itself."""
        whole = self.job_files.explanation(id)  # which may have more masks by now
        with self.changed:
            job = self.get(id)
            whole.take_answers(explanation.answers, explanation.repaints)
            if job.state != "running":
                whole.save(self.job_files.record_path(id))

    # ---- working

    def work(self) -> None:
        while True:
            with suppress(StorageError):  # told by `health`, and tried again
                self.write_unkept()
                self.tidy()
            with self.changed:
                self.changed.wait_for(
                    lambda: not self.open or self.models.calls or self.queue(),
                    RETRY_SECONDS if self.unkept or self.job_table.trouble else TIDY_SECONDS,
                )
                if not self.open:
                    return
                waiting = self.queue()
                if waiting:
                    waiting[0].state = "running"  # not written: one that was queued begins again
            self.models.serve()
            if waiting:
                self.run(waiting[0])

    def run(self, job: Job) -> None:
        """Work on a job until it is done or somebody changes its state."""
        reached = False
        try:
            with closing(self.chunks(job)) as chunks:
                for _ in chunks:
                    self.models.serve()
                    with suppress(StorageError):
                        self.tidy()
                    if not self.open or job.state != "running":
                        break
                else:
                    draw(self.explanation(job.id), job.job_request)
                    reached = True
        except McriseError as error:
            job.state, job.note = "failed", safe_str(error)
        except BaseException as error:  # a job must not take the worker with it
            job.state, job.note = "failed", f"{type(error).__name__}: {safe_str(error)}"
        with self.changed:
            if job.early:  # it failed before there was anything to go on with
                job.early = False
                self.job_files.let_go(job.id)
            if job.id not in self.jobs:
                self.job_files.remove(job.id)
                return
            if reached and job.state == "running":
                asked = job.job_request.config.n_masks
                unmet = isinstance(asked, int) and job.n_masks < asked  # more was asked meanwhile
                job.state = "queued" if unmet else "done"
            self.room.count([job.id])
            self.unkept.add(job.id)

    def chunks(self, job: Job) -> Generator[Explanation, None, None]:
        """The run of a job, kept on disk as it goes."""
        job_request, path = job.job_request, self.job_files.record_path(job.id)
        model = self.models.served(job_request.model)
        view = self.unpacked(job)

        def show_early(explanation: Explanation) -> None:
            explanation.recognised = model.predict
            draw(explanation, job_request)
            with self.changed:
                if job.id in self.jobs:
                    self.job_files.hold_still(job.id, explanation)  # the run has one of its own
                    job.early = True

        known = load(path) if path.exists() else None
        if known is None and job_request.as_recorded:
            raise InputError(
                "The record of this job is gone, and with it what it was painted with: ask for it "
                "again."
            )
        # A record has its fills itself: one that was made elsewhere may have any.
        config = (
            job_request.config
            if known is None
            else replace(job_request.config, fills=known.plan.fills)
        )
        grown = run(view, model, config, known, show_early)
        started, n_before = time.monotonic(), None
        with closing(RunFile(path, seconds=self.checkpoint_seconds).keep(grown)) as saved:
            for explanation in saved:
                n_before = explanation.n_masks if n_before is None else n_before
                spent = time.monotonic() - started
                with self.changed:
                    if job.id in self.jobs:
                        self.job_files.hold(job.id, explanation)
                    job.n_masks, job.note, job.early = (
                        explanation.n_masks,
                        explanation.stop_reason,
                        False,
                    )
                    job.goal = max(
                        explanation.goal, job.goal if job_request.config.n_masks != "auto" else 0
                    )
                    if explanation.n_masks > n_before:
                        job.speed = (explanation.n_masks - n_before) / spent
                    elif job.speed is None:
                        started = time.monotonic()  # the first chunk may compile something
                yield explanation

    # ---- keeping

    def keep(self, job: Job) -> None:
        """Write a job down, or raise `NotKept`."""
        self.job_table.put(job.to_row())
        self.unkept.discard(job.id)

    def write_unkept(self) -> None:
        """Write what the worker has brought about, now or when it is possible again."""
        if self.job_table.trouble:
            self.job_table.probe()
        with self.changed:
            for id in sorted(self.unkept & set(self.jobs)):
                self.keep(self.jobs[id])

    def stored(self) -> Iterator[Job]:
        """The jobs of earlier; those that were being worked on wait for their turn again."""
        leaving = self.job_table.leaving()
        for row in self.job_table.rows():
            try:
                job = parse_job(row)
                job.leaves = validation.number(leaving[job.id]) if job.id in leaving else None
            except (InputError, ValueError) as error:
                self.job_table.close()
                raise InputError(
                    f"Job {row[1]} in {self.folder} cannot be read: {str(error).rstrip('.')}. "
                    "Choose another --data to go on without it."
                ) from None
            if job.job_request.model not in self.models and job.state in OPEN:
                job.state, job.note = "failed", str(NotServed(job.job_request.model))
            job.state = "queued" if job.state == "running" else job.state
            yield job

    def tidy(self) -> None:
        """Let go of what is too old or too much, a day after it was told so."""
        if time.monotonic() - self.tidied < TIDY_SECONDS and self.tidied:
            return
        self.tidied, now = time.monotonic(), time.time()
        with self.changed:
            there = dict(self.jobs)
        self.room.count(there)  # of thousands of files: nobody waits for that
        resting = {id: job for id, job in there.items() if job.state not in OPEN}
        leaving = self.room.leaving(resting, now)
        for id in [id for id, at in leaving.items() if at <= now]:
            with suppress(UnknownJob):
                self.delete(id)
            del leaving[id]
        with self.changed:
            self.room.forget(there.keys() - self.jobs.keys())  # that were deleted meanwhile
            if leaving != {id: job.leaves for id, job in resting.items() if job.leaves}:
                self.job_table.tell_leaving(leaving)
            for id, job in resting.items():
                job.leaves = leaving.get(id)


def draw(explanation: Explanation, job_request: JobRequest) -> None:
    """Make the maps that will be looked at, which a record keeps.

    Made when they are asked for, they would fight the next job's model for the cores, and all who
    look would wait.
    """
    explanation.chance(explanation.maps(job_request.config.target))


def warm_up(model: Model) -> None:
    """Import, compile, start and allocate what the first map of a job would wait for."""
    side = model.geometry.size or (64, 64)
    image = np.random.default_rng(0).integers(0, 256, (*side, 3), np.uint8)
    DECODER.view(png(image), model.geometry)
    explanation = last(iter_explain(image, model, n_masks=1))
    explanation.chance(explanation.maps())
