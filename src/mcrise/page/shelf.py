"""Shelf: answers that took work, kept for the next who asks."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

STALE_SECONDS = 0.5  # how old a map of a running job may be
MOST_SHELVED = 64


class Shelf:
    """Answers that took work, so that many readers cost one estimate.

    While a job runs, an answer may be half a second old, and while a newer one is being made, the
    older one is given: readers never queue behind each other.
    """

    def __init__(self, most: int = MOST_SHELVED) -> None:
        self.most = most
        self.answers: OrderedDict[Any, tuple[int, float, Any]] = OrderedDict()
        self.making = threading.Lock()

    def get(self, key: Any, n_masks: int, make: Callable[[], Any]) -> Any:
        known = self.answers.get(key)
        if fresh(known, n_masks):
            return known[2]  # type: ignore[index]
        if not self.making.acquire(blocking=known is None):
            assert known is not None
            return known[2]
        try:
            known = self.answers.get(key)
            if not fresh(known, n_masks):
                known = (n_masks, time.monotonic(), make())
                self.answers[key] = known
                while len(self.answers) > self.most:
                    self.answers.popitem(last=False)
            assert known is not None
            return known[2]
        finally:
            self.making.release()


def fresh(known: tuple[int, float, Any] | None, n_masks: int) -> bool:
    if known is None:
        return False
    return known[0] == n_masks or time.monotonic() - known[1] < STALE_SECONDS
