"""Cabinet: what lies in a folder for each job, the file that was sent and the record of its run.

The newest of both are held in memory as well. The record of a job that runs grows; whoever looks
gets a copy that does not, the same one until there are more masks, since it keeps what was fitted.
"""

import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..archive import load
from ..files import write_atomically
from ..images import View
from ..record import Record
from .job import UnknownJob

MOST_HELD = 8  # records, and pictures, in memory


class Cabinet:
    """The files of one folder's jobs, by the id of a job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: OrderedDict[str, Record] = OrderedDict()
        self.copies: dict[str, Record] = {}  # of those held
        self.views: OrderedDict[str, View] = OrderedDict()  # unpacked when they were taken
        self.changing = threading.RLock()
        self.reading = threading.Lock()

    def upload_path(self, id: str) -> Path:
        return self.folder / f"{id}.upload"

    def record_path(self, id: str) -> Path:
        return self.folder / f"{id}.npz"

    # ---- putting in

    def put(
        self, id: str, picture: bytes, view: View | None = None, record: Record | None = None
    ) -> None:
        """Write what a new job begins with: the bytes that were sent, and a record made before."""
        write_atomically(self.upload_path(id), picture)
        if record is not None:
            record.save(self.record_path(id))
        if view is not None:
            with self.changing:
                self.views[id] = view
                while len(self.views) > MOST_HELD:
                    self.views.popitem(last=False)

    def hold(self, id: str, record: Record) -> None:
        """Have a record at hand."""
        with self.changing:
            if self.held.get(id) is not record:
                self.copies.pop(id, None)
            self.held[id] = record
            self.held.move_to_end(id)
            while len(self.held) > MOST_HELD:
                self.copies.pop(self.held.popitem(last=False)[0], None)

    def hold_still(self, id: str, record: Record) -> None:
        """Have a record at hand that does not grow: it is its own copy."""
        with self.changing:
            self.hold(id, record)
            self.copies[id] = record

    def let_go(self, id: str) -> None:
        """Have a record at hand no more."""
        with self.changing:
            self.held.pop(id, None)
            self.copies.pop(id, None)

    def remove(self, id: str) -> None:
        with self.changing:
            self.let_go(id)
            self.views.pop(id, None)
            for path in (self.upload_path(id), self.record_path(id)):
                with suppress(OSError):
                    path.unlink()

    # ---- taking out

    def upload(self, id: str) -> bytes:
        """The file that was sent."""
        try:
            return self.upload_path(id).read_bytes()
        except FileNotFoundError:  # meanwhile
            raise UnknownJob(f"The picture of job {id} is gone: send it again.") from None

    def record(self, id: str) -> Record:
        """The record itself. Reading a long one takes seconds: nobody else waits for that."""
        with self.changing:
            if id in self.held:
                return self.held[id]
        with self.reading:  # of two who want it, one reads
            with self.changing:
                if id in self.held:
                    return self.held[id]
            read = self.read(id)
            with self.changing:
                if not self.record_path(id).exists():  # removed meanwhile
                    raise UnknownJob(f"Job {id} was deleted.")
                if id not in self.held:  # else it has begun to run meanwhile, and has more
                    self.hold(id, read)
                return self.held[id]

    def copy(self, id: str) -> Record:
        """What is known so far."""
        record = self.record(id)
        with self.changing:
            copy = self.copies.get(id)
            if copy is None or copy.n_masks != record.n_masks:
                copy = replace(record, scores=dict(record.scores))
                copy.recognised = record.recognised  # else each repaint would ask anew
                if id in self.held:
                    self.copies[id] = copy
            return copy

    def glance(self, id: str) -> Record:
        """What is known so far, without putting away those that are being looked at."""
        with self.changing:
            at_hand = id in self.held
        return self.copy(id) if at_hand else self.read(id)

    def read(self, id: str) -> Record:
        path = self.record_path(id)
        if not path.exists():
            raise UnknownJob(f"Job {id} has no masks yet: wait for its first chunk.")
        return load(path)

    def size(self, id: str) -> int:
        """Bytes on disk."""
        total = 0
        for path in (self.upload_path(id), self.record_path(id)):
            with suppress(OSError):
                total += path.stat().st_size
        return total
