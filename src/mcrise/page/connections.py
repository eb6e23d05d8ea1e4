"""Connections: nobody who sends half a request, slowly or never the rest, makes the server deaf.

There is room for so many connections, and for so many on which no request has arrived whole. When
there is no room for a new one, the oldest goes: whoever asks properly is let in and is done soon.
"""

import asyncio
import contextlib
import logging
import time
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HALF_SECONDS = 10.0  # in which the head of a request must have come
MOST_HALF = 64
MOST_OPEN = 400  # and never more than half the files that this process may open
MOST_TOLD = 5  # lines of a log that begin alike,
TOLD_SECONDS = 60.0  # in so many seconds


def room() -> int:
    """How many connections there may be."""
    with contextlib.suppress(ImportError):
        import resource

        return max(16, min(MOST_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))
    return MOST_OPEN


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that goes when it says half a request and no more."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.waited: asyncio.TimerHandle | None = None
        known = self.server_state.__dict__
        self.halves: dict[Connection, None] = known.setdefault("halves", {})
        self.all: dict[Connection, None] = known.setdefault("all", {})
        self.all[self] = None
        if len(self.all) > room():
            next(iter(self.all)).drop()
        self.look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.look()

    def connection_lost(self, reason: Exception | None) -> None:
        super().connection_lost(reason)
        self.forget()

    def look(self) -> None:
        """Give the rest of a request that has begun, or none at all, so many seconds to come."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self.settle()
        elif self.waited is None and not self.transport.is_closing():
            self.halves[self] = None
            self.waited = asyncio.get_running_loop().call_later(HALF_SECONDS, self.drop)
            if len(self.halves) > MOST_HALF:
                next(iter(self.halves)).drop()

    def settle(self) -> None:
        self.halves.pop(self, None)
        if self.waited is not None:
            self.waited.cancel()
            self.waited = None

    def forget(self) -> None:
        self.settle()
        self.all.pop(self, None)

    def drop(self) -> None:
        self.forget()
        self.transport.abort()


class Seldom(logging.Filter):
    """Lets what is said again and again through a few times a minute."""

    def __init__(self) -> None:
        super().__init__()
        self.since, self.told = 0.0, dict[str, int]()

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self.since > TOLD_SECONDS:
            self.since, self.told = now, {}
        start = str(record.msg)[:40]
        self.told[start] = self.told.get(start, 0) + 1
        return self.told[start] <= MOST_TOLD


def speak_seldom() -> None:
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(Seldom())
