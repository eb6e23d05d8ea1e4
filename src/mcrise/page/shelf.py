"""Shelf: answers that took work, kept for the next who asks."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

STALE_SECONDS = 0.5  # how old a map of a running job may be
MOST_SHELVED = 64

Key = tuple[Any, ...]


class Shelf:
    """Answers that took work, so that many readers cost one estimate.

    While a job runs, an answer may be half a second old, and while a newer one is being made, the
    older one is given: readers never queue behind each other. A key begins with whose answer it is
    and of what kind: those are made one at a time, since they share what they are made of, but the
    maps of a class do not wait for the reading of the class before.
    """

    def __init__(self, most: int = MOST_SHELVED) -> None:
        self.most = most
        self.answers: OrderedDict[Key, tuple[Any, float, Any]] = OrderedDict()
        self.making: dict[Key, tuple[threading.Lock, int]] = {}  # by kind, and for how many
        self.changing = threading.Lock()

    def get(self, key: Key, version: Any, make: Callable[[], Any]) -> Any:
        """The answer, made anew where that on the shelf is of another version and not as new."""
        known = self.answers.get(key)
        if fresh(known, version):
            return known[2]  # type: ignore[index]
        with self.turn(key[:2], wait=known is None) as mine:
            if not mine:
                assert known is not None
                return known[2]
            known = self.answers.get(key)
            if not fresh(known, version):
                known = (version, time.monotonic(), make())
                with self.changing:
                    self.answers[key] = known
                    self.answers.move_to_end(key)
                    while len(self.answers) > self.most:
                        self.answers.popitem(last=False)
            assert known is not None
            return known[2]

    @contextmanager
    def turn(self, kind: Key, wait: bool) -> Iterator[bool]:
        """Be the only one who makes such answers; False where somebody is and one need not wait."""
        with self.changing:
            lock, n_there = self.making.get(kind, (threading.Lock(), 0))
            self.making[kind] = lock, n_there + 1
        mine = lock.acquire(blocking=wait)
        try:
            yield mine
        finally:
            if mine:
                lock.release()
            with self.changing:
                lock, n_there = self.making.pop(kind)
                if n_there > 1:
                    self.making[kind] = lock, n_there - 1


def fresh(known: tuple[Any, float, Any] | None, version: Any) -> bool:
    if known is None:
        return False
    return known[0] == version or time.monotonic() - known[1] < STALE_SECONDS
