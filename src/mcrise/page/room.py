"""Room: how much the jobs of a folder take, and when those that are too much go."""

from collections.abc import Iterable, Mapping
from typing import Any

from .cabinet import Cabinet
from .job import Job
from .ledger import NotKept
from .retention import Retention


class Room:
    """The bytes of each job, as far as they were counted, and how many there may be."""

    def __init__(self, cabinet: Cabinet, retention: Retention) -> None:
        self.cabinet, self.retention = cabinet, retention
        self.sizes: dict[str, int] = {}

    @property
    def n_bytes(self) -> int:
        return sum(list(self.sizes.values()))  # a list at once: others count meanwhile

    def count(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.sizes[id] = self.cabinet.size(id)

    def forget(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.sizes.pop(id, None)

    def check(self, n_bytes: int) -> None:
        """Refuse what would go far beyond the limit while those told to go are still here."""
        most = self.retention.bytes
        if most is not None and self.n_bytes + n_bytes > 1.1 * most:
            raise NotKept(
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
