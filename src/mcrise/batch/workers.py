"""Who does the tasks of a batch: this process, others of this machine, or those of a Ray cluster.

A pool has workers that do one task at a time. A worker may die or hang; it is then replaced. The
engine treats all pools alike. A task is a pure function of what it is
given, so the results are the same to the bit.
"""

import contextlib
import logging
import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import types
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from .._util.threads import THREADS
from ..errors import McriseError, ModelError
from ..models import load_model
from .tasks import BatchConfig, Failure, Task, Worker

TIMEOUT = 3600.0  # seconds a task may take
TICK = 1.0  # seconds between two looks at the clock
FAILED_STARTS = 3  # workers that die before their first task, with none at work, end the batch
ONE_THREAD = dict.fromkeys(
    (THREADS, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
SAFE_PATH = "PYTHONSAFEPATH"  # so that a file beside the images is not taken for a module


@dataclass(frozen=True)
class WorkerFactory:
    """How a worker is made, wherever it lives."""

    spec: str  # of the model
    options: dict[str, Any]  # of the model
    config: BatchConfig
    identity: str | None = None  # that the model must have, so that all workers have the same
    folder: str = field(default_factory=os.getcwd)  # that paths are relative to

    def attempt(self) -> Worker | Failure:
        """Make a worker, or say why there can be none."""
        try:
            return self.worker()
        except McriseError as error:
            return Failure(str(error))
        except Exception as error:  # of a model's own code, or of a full disk
            return Failure(f"{type(error).__name__}: {error}.")

    def worker(self) -> Worker:
        """With one thread: workers share the cores, and sums are made in one order only."""
        if os.path.isdir(self.folder):
            # Not on sys.path as well: only a model named after a module may be looked for there.
            os.chdir(self.folder)
        model = load_model(self.spec, **{**self.options, "threads": 1})
        if self.identity not in (None, model.identity):
            raise ModelError(
                f"its model is {model.identity!r}, but that of the {self.config.what} is "
                f"{self.identity!r}: "
                "give all workers the same file."
            )
        worker = self.config.worker(model)
        worker.warm_up()
        return worker


@dataclass(frozen=True)
class WorkerDied(Failure):
    """The worker died over a task, or was ended for taking too long."""


@dataclass
class Assignment:
    """What a worker does, and since when; no task: it is getting ready."""

    task: Task | None
    since: float = field(default_factory=time.monotonic)


class WorkerPool(ABC):
    """Workers, by number. Outside its `with` block none of them lives."""

    n_workers: int

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self.timeout = timeout
        self.assignments: dict[int, Assignment] = {}
        self.idle: list[int] = []
        self.n_failed_starts = 0
        self.took: list[float] = []  # seconds, of each task that was answered

    @abstractmethod
    def start(self, worker: int) -> None:
        """Start a worker. It will answer None when it is ready, or a Failure if it cannot be."""

    @abstractmethod
    def send(self, worker: int, task: Any) -> None:
        """Hand a task to an idle worker."""

    @abstractmethod
    def poll(self) -> Iterator[tuple[int, Any]]:
        """Wait a moment for answers, from whom they are."""

    @abstractmethod
    def kill_worker(self, worker: int) -> None:
        """End a worker, whatever it does."""

    def __enter__(self) -> "WorkerPool":
        for worker in range(self.n_workers):
            self.replace_worker(worker)
        return self

    def __exit__(self, *reason: object) -> None:
        for worker in range(self.n_workers):
            self.kill_worker(worker)

    def replace_worker(self, worker: int) -> None:
        self.assignments[worker] = Assignment(None)
        self.start(worker)


# ---- this process


class InlinePool(WorkerPool):
    """One worker, here: for a model in memory, which cannot be sent elsewhere.

    It does a task when it is given one, so nobody can end it when it takes too long.
    """

    n_workers = 1

    def __init__(self, worker: Worker) -> None:
        super().__init__(timeout=math.inf)
        self.worker = worker
        self.answers: list[Any] = []

    def start(self, worker: int) -> None:
        self.answers.append(None)

    def send(self, worker: int, task: Any) -> None:
        self.answers.append(self.worker.attempt(task))

    def poll(self) -> Iterator[tuple[int, Any]]:
        while self.answers:
            yield 0, self.answers.pop()

    def kill_worker(self, worker: int) -> None:
        pass


# ---- processes of this machine


class ProcessPool(WorkerPool):
    """Worker processes; tasks and answers go through pipes."""

    def __init__(self, factory: WorkerFactory, n_workers: int, timeout: float = TIMEOUT) -> None:
        super().__init__(timeout)
        self.factory, self.n_workers = factory, n_workers
        self.pipes: dict[int, Connection] = {}
        self.processes: dict[int, Any] = {}

    def start(self, worker: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        given = theirs, self.factory, os.environ.get(SAFE_PATH)
        process = spawn.Process(target=work_in_process, args=given, daemon=True)
        with inherited({**ONE_THREAD, SAFE_PATH: "1"}), _without_main():
            process.start()
        theirs.close()
        self.pipes[worker], self.processes[worker] = ours, process

    def send(self, worker: int, task: Any) -> None:
        with contextlib.suppress(OSError):  # it has died: `poll` will find out
            self.pipes[worker].send(task)

    def poll(self) -> Iterator[tuple[int, Any]]:
        names = {id(pipe): worker for worker, pipe in self.pipes.items()}
        for pipe in wait(list(self.pipes.values()), TICK):
            worker = names[id(pipe)]
            try:
                answer = self.pipes[worker].recv()
            except (EOFError, OSError):
                self.kill_worker(worker)
                if worker in self.idle:  # nobody was waiting for it
                    self.idle.remove(worker)
                    self.replace_worker(worker)
                    continue
                answer = WorkerDied(f"The worker process ended ({ending(self.processes[worker])}).")
            yield worker, answer

    def kill_worker(self, worker: int) -> None:
        self.processes[worker].kill()
        self.processes[worker].join()
        self.pipes[worker].close()

    def __exit__(self, *reason: object) -> None:
        for pipe in self.pipes.values():
            pipe.close()  # which lets idle workers go by themselves
        for process in self.processes.values():
            process.join(0.0 if any(reason) else 5.0)
        super().__exit__(*reason)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the program that called: a new process would run it again, up to this call.

    Workers need nothing of it, and in a script without a guard they would die of it.
    """
    caller = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = caller


@contextlib.contextmanager
def inherited(variables: dict[str, str]) -> Iterator[None]:
    """What a new process finds from its first moment on.

    Libraries read the variables when they are imported. Ctrl-C is for the one who hands out tasks,
    also while a worker is still importing.
    """
    before = {name: os.environ.get(name) for name in variables}
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            restore(name, value)
        if in_main:
            signal.signal(signal.SIGINT, handler)


def restore(variable: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


def ending(process: Any) -> str:
    code = process.exitcode
    if code is None or code >= 0:
        return f"exit code {code}"
    # Not every system has every signal, and real-time ones have no name.
    names = {int(one): one.name for one in signal.Signals}
    return names.get(-code, f"signal {-code}")


def work_in_process(pipe: Connection, factory: WorkerFactory, safe_path: str | None) -> None:
    """What a worker process does: get ready, say so, then task after task until the pipe ends."""
    restore(SAFE_PATH, safe_path)  # for programs that a model may start
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which Windows does not pass on at the start
    threading.Thread(target=follow_parent, daemon=True).start()
    worker = factory.attempt()
    try:
        pipe.send(worker if isinstance(worker, Failure) else None)
        while isinstance(worker, Worker):
            pipe.send(worker.attempt(pipe.recv()))
    except (EOFError, OSError):
        pass  # nobody listens any more


def follow_parent() -> None:
    """End with the process that hands out tasks, also in the middle of one."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# ---- on a Ray cluster, or on a Ray of this machine


class RayPool(WorkerPool):
    """Actors on the nodes of a Ray cluster: one per GPU where there are any, else one per core."""

    def __init__(
        self,
        factory: WorkerFactory,
        address: str | None = None,
        n_workers: int | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        super().__init__(timeout)
        self.factory, self.ray = factory, _connect(address)
        there = self.ray.cluster_resources()
        self.gpus = int(there.get("GPU", 0) > 0)
        self.n_workers = n_workers or int(there.get("GPU", 0) or there.get("CPU", 1))
        self.actors: dict[int, Any] = {}
        self.awaited: dict[Any, int] = {}  # which worker an answer will be from

        class RayWorker:
            def prepare(self, factory: WorkerFactory) -> Failure | None:
                self.worker = factory.attempt()
                return self.worker if isinstance(self.worker, Failure) else None

            def attempt(self, task: Any) -> Any:
                assert isinstance(self.worker, Worker)
                return self.worker.attempt(task)

        self.kind = self.ray.remote(num_cpus=1, num_gpus=self.gpus, max_restarts=0)(RayWorker)

    def start(self, worker: int) -> None:
        actor = self.kind.options(runtime_env={"env_vars": ONE_THREAD}).remote()
        self.actors[worker] = actor
        self.awaited[actor.prepare.remote(self.factory)] = worker

    def send(self, worker: int, task: Any) -> None:
        self.awaited[self.actors[worker].attempt.remote(task)] = worker

    def poll(self) -> Iterator[tuple[int, Any]]:
        errors = self.ray.exceptions
        ready, _ = self.ray.wait(list(self.awaited), timeout=TICK)
        for answer in ready:
            worker = self.awaited.pop(answer)
            try:
                yield worker, self.ray.get(answer)
            except errors.RayError as error:
                self.kill_worker(worker)
                reason = str(error).strip().splitlines()[-1]
                yield worker, WorkerDied(f"The worker died ({type(error).__name__}: {reason}).")

    def kill_worker(self, worker: int) -> None:
        self.awaited = {ref: owner for ref, owner in self.awaited.items() if owner != worker}
        if actor := self.actors.pop(worker, None):
            self.ray.kill(actor)

    def __exit__(self, *reason: object) -> None:
        super().__exit__(*reason)
        self.ray.shutdown()


def _connect(address: str | None) -> Any:
    """Join a cluster, or start one on this machine where no address is given."""
    try:
        import ray
    except ImportError:
        raise McriseError("Ray is not installed: pip install ray.") from None
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        if address and ":" in address:
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address=address or "local", include_dashboard=False if address is None else None,
                 log_to_driver=False, logging_level=logging.ERROR)  # fmt: skip
    except (ConnectionError, OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no answer"
        raise McriseError(
            f"There is no Ray cluster at {address or 'this machine'} ({reason}): give the address "
            "of its head, as in 10.0.0.1:6379, or none to start one here."
        ) from None
    return ray
