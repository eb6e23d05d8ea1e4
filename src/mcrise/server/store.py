"""Cabinet: what lies in a folder for each job, the file that was sent and the record of its run.

The newest of both are held in memory as well. The record of a job that runs grows; whoever looks
gets a copy that does not, the same one until there are more masks, since it keeps what was fitted.
"""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._util.files import write_atomically
from ..errors import InputError, McriseError
from ..explanation import Explanation
from ..explanation_file import load
from ..images import View
from .schemas import UnknownJob

TABLES = (
    """CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, asked TEXT, created REAL, state TEXT,
    n_masks INTEGER, goal INTEGER, note TEXT)""",
    "CREATE TABLE IF NOT EXISTS leaving (id TEXT PRIMARY KEY, at REAL)",
)
COLUMNS = "number, id, asked, created, state, n_masks, goal, note"
PATIENCE = 0.25  # seconds to wait for somebody else's lock: requests wait with it


class StorageError(McriseError):
    """What was asked cannot be written down, so it is not taken."""


class JobTable:
    """The rows of one folder's jobs."""

    def __init__(self, path: Path) -> None:
        self.path, self.trouble = path, ""
        self.turn = threading.Lock()
        with self.opening():
            self.database = sqlite3.connect(path, timeout=PATIENCE, check_same_thread=False)
        with self.opening():
            self.database.execute("PRAGMA journal_mode=WAL")
            for table in TABLES:
                self.database.execute(table)

    @contextmanager
    def opening(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if hasattr(self, "database"):
                self.database.close()
            raise InputError(
                f"{self.path} cannot be used as the list of jobs ({error}): move it away, or "
                "choose another --data."
            ) from None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All of a block is written, or nothing and it is said why."""
        with self.turn:
            try:
                with self.database:
                    yield self.database
            except sqlite3.Error as error:
                self.trouble = (
                    f"{self.path} cannot be written ({error}): free it or make room on its disk, "
                    "then ask again."
                )
                raise StorageError(self.trouble) from None
            self.trouble = ""

    def rows(self) -> list[tuple[Any, ...]]:
        with self.opening():
            return self.database.execute(f"SELECT {COLUMNS} FROM jobs").fetchall()

    def add(self, values: tuple[Any, ...]) -> None:
        """A new row; nobody's is overwritten."""
        with self.writing() as database:
            database.execute("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def put(self, values: tuple[Any, ...]) -> None:
        with self.writing() as database:
            database.execute("REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def drop(self, id: str) -> None:
        with self.writing() as database:
            database.execute("DELETE FROM jobs WHERE id = ?", (id,))
            database.execute("DELETE FROM leaving WHERE id = ?", (id,))

    def leaving(self) -> dict[str, float]:
        """The jobs that were told to go, and when."""
        with self.opening():
            return dict(self.database.execute("SELECT id, at FROM leaving").fetchall())

    def tell_leaving(self, leaving: dict[str, float]) -> None:
        with self.writing() as database:
            database.execute("DELETE FROM leaving")
            database.executemany("INSERT INTO leaving VALUES (?, ?)", leaving.items())

    def probe(self) -> None:
        """Find out whether it can be written again."""
        with self.writing() as database:
            database.execute("BEGIN IMMEDIATE")

    def close(self) -> None:
        with self.turn:
            self.database.close()


MOST_HELD = 8  # records, and pictures, in memory


class JobFiles:
    """The files of one folder's jobs, by the id of a job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: OrderedDict[str, Explanation] = OrderedDict()
        self.copies: dict[str, Explanation] = {}  # of those held
        self.views: OrderedDict[str, View] = OrderedDict()  # unpacked when they were taken
        self.changing = threading.RLock()
        self.reading = threading.Lock()

    def upload_path(self, id: str) -> Path:
        return self.folder / f"{id}.upload"

    def record_path(self, id: str) -> Path:
        return self.folder / f"{id}.npz"

    # ---- putting in

    def put(
        self,
        id: str,
        picture: bytes,
        view: View | None = None,
        explanation: Explanation | None = None,
    ) -> None:
        """Write what a new job begins with: the bytes that were sent, and a record made before."""
        write_atomically(self.upload_path(id), picture)
        if explanation is not None:
            explanation.save(self.record_path(id))
        if view is not None:
            with self.changing:
                self.views[id] = view
                while len(self.views) > MOST_HELD:
                    self.views.popitem(last=False)

    def hold(self, id: str, explanation: Explanation) -> None:
        """Have a record at hand."""
        with self.changing:
            if self.held.get(id) is not explanation:
                self.copies.pop(id, None)
            self.held[id] = explanation
            self.held.move_to_end(id)
            while len(self.held) > MOST_HELD:
                self.copies.pop(self.held.popitem(last=False)[0], None)

    def hold_still(self, id: str, explanation: Explanation) -> None:
        """Have a record at hand that does not grow: it is its own copy."""
        with self.changing:
            self.hold(id, explanation)
            self.copies[id] = explanation

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

    def explanation(self, id: str) -> Explanation:
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

    def copy(self, id: str) -> Explanation:
        """What is known so far."""
        explanation = self.explanation(id)
        with self.changing:
            copy = self.copies.get(id)
            if copy is None or copy.n_masks != explanation.n_masks:
                copy = replace(explanation, scores=dict(explanation.scores))
                copy.recognised = explanation.recognised  # else each repaint would ask anew
                if id in self.held:
                    self.copies[id] = copy
            return copy

    def glance(self, id: str) -> Explanation:
        """What is known so far, without putting away those that are being looked at."""
        with self.changing:
            at_hand = id in self.held
        return self.copy(id) if at_hand else self.read(id)

    def read(self, id: str) -> Explanation:
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
