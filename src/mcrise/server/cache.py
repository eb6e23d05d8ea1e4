"""A cache of answers that took work."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

STALE_SECONDS = 0.5  # how old a map of a running job may be before a newer one is made
MOST_CACHED = 64
MAKERS = 2  # threads that make newer answers while older ones are given

Key = tuple[Any, ...]


class ResultCache:
    """Answers that took work, so that many readers cost one estimate.

    Who asks while things change may have the older answer at once, while a newer one is being made:
    nobody but the first reader waits. A key begins with whose answer it is and of what kind: those
    are made one at a time, since they share what they are made of, but the maps of a class do not
    wait for the reading of the class before.
    """

    def __init__(self, most: int = MOST_CACHED) -> None:
        self.most = most
        self.answers: OrderedDict[Key, tuple[Any, float, Any]] = OrderedDict()
        self.making: dict[Key, tuple[threading.Lock, int]] = {}  # by kind, and for how many
        self.coming: set[Key] = set()
        self.changing = threading.Lock()
        self.makers = ThreadPoolExecutor(MAKERS, "cache")

    def get(self, key: Key, version: Any, make: Callable[[], Any], *, older: bool = False) -> Any:
        """The answer of that version; with `older`, of an earlier one if that is at hand."""
        known = self.answers.get(key)
        if known and known[0] == version:
            return known[2]
        if known and older:
            if time.monotonic() - known[1] >= STALE_SECONDS:
                self.make_soon(key, version, make)
            return known[2]
        with self.turn(key[:2]):
            known = self.answers.get(key)
            if not known or known[0] != version:
                known = (version, time.monotonic(), make())
                with self.changing:
                    self.answers[key] = known
                    self.answers.move_to_end(key)
                    while len(self.answers) > self.most:
                        self.answers.popitem(last=False)
            return known[2]

    def known(self, key: Key) -> Any:
        """The answer of whichever version is at hand, or None."""
        known = self.answers.get(key)
        return known[2] if known else None

    def make_soon(self, key: Key, version: Any, make: Callable[[], Any]) -> None:
        """Have an answer made by somebody else, unless it is being made already."""

        def work() -> None:
            try:
                self.get(key, version, make)
            finally:
                self.coming.discard(key)

        with self.changing:
            if key in self.coming:
                return
            self.coming.add(key)
        self.makers.submit(work)

    @contextmanager
    def turn(self, kind: Key) -> Iterator[None]:
        """Be the only one who makes such answers."""
        with self.changing:
            lock, n_there = self.making.get(kind, (threading.Lock(), 0))
            self.making[kind] = lock, n_there + 1
        try:
            with lock:
                yield
        finally:
            with self.changing:
                lock, n_there = self.making.pop(kind)
                if n_there > 1:
                    self.making[kind] = lock, n_there - 1
