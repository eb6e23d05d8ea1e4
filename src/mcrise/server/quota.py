"""How many bytes the jobs of a folder may take, and which jobs to delete when they take more.

Nothing is deleted without somebody asking for it. When the folder is full, new jobs are refused,
and the refusal names the oldest jobs whose deletion makes room.
"""

from collections.abc import Iterable
from typing import Any

from .schemas import OPEN, Job
from .store import JobFiles, StorageError

GIGABYTE = 10**9
MOST_BYTES = 20 * GIGABYTE
ROOM = 0.1  # of the limit: how much room the suggested deletions make
MOST_NAMED = 3  # jobs in a sentence


class StorageFull(StorageError):
    """The jobs take all the bytes that they may take."""


class Quota:
    """The bytes of each job, as far as they were counted, and how many all may take."""

    def __init__(self, job_files: JobFiles, most_bytes: int = MOST_BYTES) -> None:
        self.job_files, self.most_bytes = job_files, most_bytes
        self.sizes: dict[str, int] = {}

    @property
    def n_bytes(self) -> int:
        return sum(list(self.sizes.values()))  # a list at once: other threads count meanwhile

    def count(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.sizes[id] = self.job_files.size(id)

    def forget(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.sizes.pop(id, None)

    def check(self, n_bytes: int, jobs: Iterable[Job]) -> None:
        """Refuse a new job of so many bytes if there is no room for it."""
        if self.n_bytes + n_bytes <= self.most_bytes:
            return
        first = f"The jobs here take {size_text(self.n_bytes)} of {size_text(self.most_bytes)}."
        oldest = self.to_delete(jobs, n_bytes)
        if not oldest:
            raise StorageFull(f"{first} Serve with a larger --keep-gb.")
        names = ", ".join(job.job_request.name for job in oldest[:MOST_NAMED])
        rest = f" and {len(oldest) - MOST_NAMED} more" if len(oldest) > MOST_NAMED else ""
        freed = size_text(sum(self.sizes.get(job.id, 0) for job in oldest))
        raise StorageFull(
            f"{first} Delete the oldest ({names}{rest}: {freed}), or serve with a larger --keep-gb."
        )

    def to_delete(self, jobs: Iterable[Job], n_bytes: int = 0) -> list[Job]:
        """The oldest jobs that rest, until a tenth of the limit is free; `n_bytes` more come."""
        total, out = self.n_bytes + n_bytes, []
        resting = (job for job in jobs if job.state not in OPEN)
        for job in sorted(resting, key=lambda job: job.number):
            if total <= (1 - ROOM) * self.most_bytes:
                break
            out.append(job)
            total -= self.sizes.get(job.id, 0)
        return out

    def to_json(self, jobs: Iterable[Job]) -> dict[str, Any]:
        return {
            "bytes": self.n_bytes,
            "most_bytes": self.most_bytes,
            "to_delete": [
                {
                    "id": job.id,
                    "name": job.job_request.name,
                    "created": job.created,
                    "bytes": self.sizes.get(job.id, 0),
                }
                for job in self.to_delete(jobs)
            ],
        }


def size_text(n_bytes: float) -> str:
    """`1.5 GB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes:g} bytes"
