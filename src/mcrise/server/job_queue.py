"""The queue of jobs: explanations that clients ask for, made one after the other and never lost.

The request of a job is a row in SQLite. Its result is a run on disk, beside the upload. After a
crash, unfinished jobs go on from their runs and end as if nothing had happened. One thread owns
the models, and no error ends it: what cannot be stored is tried again every second.
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

from .._util.files import Lock
from ..config import whole_chunks
from ..errors import InputError, McriseError, safe_str
from ..explanation import Explanation
from ..explanation_file import CHECKPOINT_SECONDS, RunFile, load
from ..images import View, png
from ..models.model import Model
from ..models.settings import as_options
from ..sampling import iter_explain, last, run
from .image_decoder import DECODER
from .models import NotServed, ServedModels
from .quota import MOST_BYTES, Quota
from .schemas import OPEN, Job, JobRequest, UnknownJob, parse_job
from .store import JobFiles, JobTable, StorageError
from .uploads import MOST_MASKS

MOST_QUEUED = 2000  # a folder of pictures at once
RETRY_SECONDS = 1.0  # after which a failed write is tried again
COUNT_SECONDS = 60.0  # between two counts of the bytes that jobs take

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
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.folder, self.most_queued = folder, most_queued
        self.checkpoint_seconds = checkpoint_seconds
        self.models = ServedModels(models)
        self.lock = Lock(folder / "jobs.lock", "a server")
        self.changed = threading.Condition(threading.RLock())
        self.job_files = JobFiles(folder)
        self.quota = Quota(self.job_files, most_bytes)
        try:
            self.job_table = JobTable(folder / "jobs.sqlite")
            self.jobs = {job.id: job for job in self.stored()}
        except BaseException:
            self.lock.release()
            raise
        self.unsaved: set[str] = set()  # jobs whose state could not be written yet
        self.counted = 0.0
        self.open = True
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
            self.save_unsaved()
        self.job_table.close()
        self.lock.release()

    def health(self) -> dict[str, Any]:
        """Whether jobs are being worked on, and what is in the way."""
        alive = self.worker.is_alive()
        trouble = self.job_table.trouble if alive else "The thread that asks the models has ended."
        return {"alive": alive, "trouble": trouble}

    # ---- requests

    def submit(self, job_request: JobRequest, picture: bytes, view: View | None = None) -> Job:
        """Queue a request for a picture (the bytes of a file); `view` is what the model sees."""
        with self.changed:
            self.check_queue()
            self.quota.check(len(picture), self.jobs.values())
            job = Job(secrets.token_hex(8), self.next_number(), job_request, time.time())
            self.store_new(job, picture, view)
            self.changed.notify_all()
        return job

    def adopt(self, id: str, job_request: JobRequest, explanation: Explanation) -> None:
        """Add a run that was made elsewhere as a finished job, unless it is here already."""
        with self.changed:
            if id in self.jobs:
                return
            n_masks = explanation.n_masks
            job = Job(id, self.next_number(), job_request, time.time(), "done", n_masks, n_masks,
                      explanation.stop_reason)  # fmt: skip
            self.quota.check(n_masks * explanation.n_classes * 4, self.jobs.values())
            self.store_new(job, png(explanation.view.pixels), explanation=explanation)

    def next_number(self) -> int:
        return 1 + max((job.number for job in self.jobs.values()), default=0)

    def store_new(
        self,
        job: Job,
        picture: bytes,
        view: View | None = None,
        explanation: Explanation | None = None,
    ) -> None:
        """Store all of a new job, or nothing and raise `StorageError`."""
        try:
            self.job_files.put(job.id, picture, view, explanation)
            self.job_table.add(job.to_row())
        except (OSError, InputError, StorageError) as error:
            self.job_files.remove(job.id)
            if isinstance(error, StorageError):
                raise
            reason = error.strerror if isinstance(error, OSError) else error
            raise StorageError(
                f"The picture cannot be stored in {self.folder} ({reason}): make room there, then "
                "send it again."
            ) from None
        self.jobs[job.id] = job
        self.quota.count([job.id])

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
        """Ask for `n_masks` masks beyond those that a job has or was asked for."""
        with self.changed:
            job = self.get(id)
            asked = job.job_request.config.n_masks
            if asked == "auto" and not job.n_masks:
                raise InputError(
                    "This job has not begun, and it chooses its number of masks itself: ask for "
                    "more when it is done."
                )
            goal = max(job.n_masks, job.goal, 0 if asked == "auto" else asked)
            goal = whole_chunks(goal + n_masks)
            if goal > MOST_MASKS:
                raise InputError(
                    f"A job has at most {MOST_MASKS:,} masks, but this one would have {goal:,}: "
                    "ask for fewer."
                )
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
            self.quota.forget([id])
            self.unsaved.discard(id)
            job.state = "cancelled"
            self.job_files.remove(id)  # and again by the worker, if it is at it

    def move(self, id: str, sources: tuple[str, ...], state: str, **more: Any) -> Job:
        """Change the state of a job, if it is one from which that is possible; `more` always."""
        with self.changed:
            job = self.get(id)
            if job.state in sources:
                if state == "queued":
                    self.check_queue()
                more |= {"state": state, "note": ""}
            self.save(replace(job, **more))  # first: what cannot be stored does not happen
            for name, value in more.items():
                setattr(job, name, value)
            self.changed.notify_all()
            return job

    def call(self, name: str, function: Callable[[Model], T]) -> "Future[T]":
        """Have the worker apply a function to a model, before the next chunk of any job."""
        with self.changed:
            if not self.worker.is_alive():
                raise McriseError("The thread that asks the models has ended: restart the server.")
            answer = self.models.hand_in(name, function)
            self.changed.notify_all()
        return answer

    # ---- results

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
            whole.trial_logs |= explanation.trial_logs
            if job.state != "running":
                whole.save(self.job_files.record_path(id))

    # ---- the worker

    def work(self) -> None:
        while True:
            with suppress(StorageError):  # `health` reports it, and it is tried again
                self.save_unsaved()
            self.count_bytes()
            with self.changed:
                self.changed.wait_for(
                    lambda: not self.open or self.models.calls or self.queue(),
                    RETRY_SECONDS if self.unsaved or self.job_table.trouble else COUNT_SECONDS,
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
                    self.count_bytes()
                    if not self.open or job.state != "running":
                        break
                else:
                    draw(self.explanation(job.id), job.job_request)
                    reached = True
        except McriseError as error:
            job.state, job.note = "failed", as_options(safe_str(error))  # as the server was started
        except BaseException as error:  # a job must not take the worker with it
            job.state, job.note = "failed", f"{type(error).__name__}: {safe_str(error)}"
        with self.changed:
            if job.preview:  # it failed before the first masks that count
                job.preview = False
                self.job_files.let_go(job.id)
            if job.id not in self.jobs:
                self.job_files.remove(job.id)
                return
            if reached and job.state == "running":
                asked = job.job_request.config.n_masks
                unmet = isinstance(asked, int) and job.n_masks < asked  # more was asked meanwhile
                job.state = "queued" if unmet else "done"
            self.quota.count([job.id])
            self.unsaved.add(job.id)

    def chunks(self, job: Job) -> Generator[Explanation, None, None]:
        """The run of a job, kept on disk as it goes."""
        job_request, path = job.job_request, self.job_files.record_path(job.id)
        model = self.models.served(job_request.model)
        view = self.unpacked(job)

        def show_preview(explanation: Explanation) -> None:
            explanation.recognised = model.predict
            draw(explanation, job_request)
            with self.changed:
                if job.id in self.jobs:
                    self.job_files.hold_still(job.id, explanation)  # the run has one of its own
                    job.preview = True

        known = load(path) if path.exists() else None
        if known is None and job_request.as_recorded:
            raise InputError(
                "The run of this job is gone, and with it what it was painted with: ask for it "
                "again."
            )
        # A run has its fills itself: one that was made elsewhere may have any.
        config = (
            job_request.config
            if known is None
            else replace(job_request.config, fills=known.plan.fills)
        )
        grown = run(view, model, config, known, show_preview)
        started, n_before = time.monotonic(), None
        with closing(RunFile(path, seconds=self.checkpoint_seconds).keep(grown)) as saved:
            for explanation in saved:
                n_before = explanation.n_masks if n_before is None else n_before
                spent = time.monotonic() - started
                with self.changed:
                    if job.id in self.jobs:
                        self.job_files.hold(job.id, explanation)
                    job.n_masks, job.note, job.preview = (
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

    # ---- storage

    def save(self, job: Job) -> None:
        """Write the row of a job, or raise `StorageError`."""
        self.job_table.put(job.to_row())
        self.unsaved.discard(job.id)

    def save_unsaved(self) -> None:
        """Write the rows of jobs that the worker has changed, as soon as that is possible."""
        if self.job_table.trouble:
            self.job_table.probe()
        with self.changed:
            for id in sorted(self.unsaved & set(self.jobs)):
                self.save(self.jobs[id])

    def stored(self) -> Iterator[Job]:
        """The jobs of earlier sessions; those that were running wait in the queue again."""
        for row in self.job_table.rows():
            try:
                job = parse_job(row)
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

    def count_bytes(self) -> None:
        """Count the bytes of all jobs now and then: the run of a running job grows."""
        if self.counted and time.monotonic() - self.counted < COUNT_SECONDS:
            return
        self.counted = time.monotonic()
        with self.changed:
            ids = set(self.jobs)
        self.quota.count(ids)  # thousands of files, perhaps: without the lock
        with self.changed:
            self.quota.forget(ids - self.jobs.keys())  # deleted meanwhile


def draw(explanation: Explanation, job_request: JobRequest) -> None:
    """Make the maps that will be looked at, which a run keeps.

    Made when they are asked for, they would fight the next job's model for the cores, and all who
    look would wait.
    """
    explanation.chance(explanation.maps(job_request.config.target))


def warm_up(model: Model) -> None:
    """Import, compile and start what the first map and finding of a job would wait for."""
    from ..output import figure  # noqa: F401  draws the tests of findings; brings matplotlib

    side = model.geometry.size or (64, 64)
    image = np.random.default_rng(0).integers(0, 256, (*side, 3), np.uint8)
    DECODER.view(png(image), model.geometry)
    explanation = last(iter_explain(image, model, n_masks=1))
    explanation.chance(explanation.maps())
