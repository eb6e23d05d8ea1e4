"""Batches: a model whose file fixes the number of images per call, called on any number."""

from collections.abc import Callable, Sequence
from concurrent.futures import wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.threads import n_cores, shared_pool

Call = Callable[[NDArray[Any]], NDArray[Any]]


class FixedBatch:
    """A function of exactly `size` images as a function of any number; the last are padded.

    A call on one image leaves most cores idle, so `open_copies` may give as many functions as it
    is asked for that do the same at the same time, each on one core.
    """

    def __init__(
        self,
        call: Call,
        size: int,
        open_copies: Callable[[int], Sequence[Call]] | None = None,
        threads: int | None = None,
    ) -> None:
        self.call, self.size = call, size
        n_at_once = (threads or n_cores()) if size == 1 else 1
        self.workers: Sequence[Call] = [call]
        if open_copies is not None and n_at_once > 1:
            self.workers = open_copies(n_at_once)

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        if len(batch) == self.size:
            return self.call(batch)
        parts = [batch[start : start + self.size] for start in range(0, len(batch), self.size)]
        answers: list[NDArray[Any]] = [batch] * len(parts)
        waiting = iter(range(len(parts)))  # whoever is free takes the next

        def work(call: Call) -> None:
            for place in waiting:
                answers[place] = self.padded(call, parts[place])

        first, *others = self.workers
        jobs = [shared_pool().submit(work, call) for call in others]
        try:
            work(first)
        finally:
            wait(jobs)  # they read the batch, which the caller paints next
        for job in jobs:
            job.result()
        return np.concatenate(answers)

    def padded(self, call: Call, part: NDArray[Any]) -> NDArray[Any]:
        missing = self.size - len(part)
        if missing:
            part = np.concatenate([part, np.repeat(part[-1:], missing, axis=0)])
        return call(part)[: self.size - missing]
