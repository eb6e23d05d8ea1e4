"""Workers on a Ray cluster, or on a Ray of this machine."""

import logging
import os
import socket
from collections.abc import Iterator
from typing import Any

from ..errors import McriseError
from .work import Failure, Worker
from .workers import ONE_THREAD, TICK, TIMEOUT, WorkerDied, WorkerFactory, WorkerPool


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
