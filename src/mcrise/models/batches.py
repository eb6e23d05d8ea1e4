"""Batches: a model whose file fixes the number of images per call, called on any number."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class FixedBatch:
    """A function of exactly `size` images as a function of any number; the last are padded."""

    def __init__(self, call: Callable[[NDArray[Any]], NDArray[Any]], size: int) -> None:
        self.call, self.size = call, size

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        if len(batch) == self.size:
            return self.call(batch)
        answers = []
        for start in range(0, len(batch), self.size):
            part = batch[start : start + self.size]
            missing = self.size - len(part)
            padded = np.concatenate([part, np.repeat(part[-1:], missing, axis=0)])
            answers.append(self.call(padded)[: len(part)])
        return np.concatenate(answers)
