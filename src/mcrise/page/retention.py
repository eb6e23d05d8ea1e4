"""Retention: how much of what was asked is kept, and who is told to go when that is too much.

Nothing goes unannounced: a job that is to go is told so a day before, and stays if there is room
again by then.
"""

from collections.abc import Iterable
from dataclasses import dataclass

GIGABYTE = 10**9
GRACE = 24 * 3600.0  # seconds between being told and going


@dataclass(frozen=True)
class Retention:
    """What is kept at most."""

    days: float | None = None  # None: however old
    bytes: int | None = 20 * GIGABYTE
    grace: float = GRACE

    def too_much(
        self, kept: Iterable[tuple[str, float, int]], now: float, at_work: int = 0
    ) -> list[str]:
        """The jobs beyond the limits, oldest first; each job is an id, when it was made, bytes.

        Those that are at work, of so many bytes together, cannot go.
        """
        oldest = sorted(kept, key=lambda job: job[1])
        total, out = at_work + sum(size for _, _, size in oldest), []
        for id, created, size in oldest:
            old = self.days is not None and now - created > self.days * 24 * 3600
            full = self.bytes is not None and total > self.bytes
            if old or full:
                out.append(id)
                total -= size
        return out
