"""Room: how much the jobs of a folder take, and when those that are too much go."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .schemas import Job
from .store import JobFiles, StorageError

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


class Quota:
    """The bytes of each job, as far as they were counted, and how many there may be."""

    def __init__(self, job_files: JobFiles, retention: Retention) -> None:
        self.job_files, self.retention = job_files, retention
        self.sizes: dict[str, int] = {}

    @property
    def n_bytes(self) -> int:
        return sum(list(self.sizes.values()))  # a list at once: others count meanwhile

    def count(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.sizes[id] = self.job_files.size(id)

    def forget(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.sizes.pop(id, None)

    def check(self, n_bytes: int) -> None:
        """Refuse what would go far beyond the limit while those told to go are still here."""
        most = self.retention.bytes
        if most is not None and self.n_bytes + n_bytes > 1.1 * most:
            raise StorageError(
                f"The jobs here take {self.n_bytes / 1e9:.3g} GB, more than the {most / 1e9:g} GB "
                "that are kept: delete some, or serve with a larger --keep-gb."
            )

    def leaving(self, resting: Mapping[str, Job], now: float) -> dict[str, float]:
        """Which of the jobs that rest are too old or too much, and when each goes."""
        kept = [(id, job.created, self.sizes.get(id, 0)) for id, job in resting.items()]
        at_work = self.n_bytes - sum(size for _, _, size in kept)
        too_much = self.retention.too_much(kept, now, at_work)
        return {id: resting[id].leaves or now + self.retention.grace for id in too_much}

    def to_json(self) -> dict[str, Any]:
        most = self.retention
        return {"bytes": self.n_bytes, "most_bytes": most.bytes, "most_days": most.days}
