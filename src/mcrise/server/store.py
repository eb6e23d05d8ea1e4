"""What a folder of jobs stores: one row per job (`JobTable`) and its files (`JobFiles`).

The files of a job are the upload and its run. The newest of both are in memory too.
The run of a running job grows. Readers get a copy that does not grow, the same copy until there
are more masks, since a copy caches what was fitted.
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

TABLE = """CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, asked TEXT, created REAL, state TEXT,
    n_masks INTEGER, goal INTEGER, note TEXT)"""
COLUMNS = "number, id, asked, created, state, n_masks, goal, note"
PATIENCE = 0.25  # seconds to wait for the lock of another process: requests wait too


class StorageError(McriseError):
    """The request cannot be stored, so it is not accepted."""


class JobTable:
    """The rows of one folder's jobs."""

    def __init__(self, path: Path) -> None:
        self.path, self.trouble = path, ""
        self.turn = threading.Lock()
        with self.opening():
            self.database = sqlite3.connect(path, timeout=PATIENCE, check_same_thread=False)
        with self.opening():
            self.database.execute("PRAGMA journal_mode=WAL")
            self.database.execute(TABLE)

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
        """Write all of a block, or nothing and raise `StorageError`."""
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
        """Write a new row; no other row is overwritten."""
        with self.writing() as database:
            database.execute("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def put(self, values: tuple[Any, ...]) -> None:
        with self.writing() as database:
            database.execute("REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def drop(self, id: str) -> None:
        with self.writing() as database:
            database.execute("DELETE FROM jobs WHERE id = ?", (id,))

    def probe(self) -> None:
        """Find out whether the table can be written again."""
        with self.writing() as database:
            database.execute("BEGIN IMMEDIATE")

    def close(self) -> None:
        with self.turn:
            self.database.close()


MOST_HELD = 8  # runs, and pictures, in memory


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

    # ---- writing

    def put(
        self,
        id: str,
        picture: bytes,
        view: View | None = None,
        explanation: Explanation | None = None,
    ) -> None:
        """Write the files of a new job: the upload, and a run if one exists."""
        write_atomically(self.upload_path(id), picture)
        if explanation is not None:
            explanation.save(self.record_path(id))
        if view is not None:
            with self.changing:
                self.views[id] = view
                while len(self.views) > MOST_HELD:
                    self.views.popitem(last=False)

    def hold(self, id: str, explanation: Explanation) -> None:
        """Hold a run in memory."""
        with self.changing:
            if self.held.get(id) is not explanation:
                self.copies.pop(id, None)
            self.held[id] = explanation
            self.held.move_to_end(id)
            while len(self.held) > MOST_HELD:
                self.copies.pop(self.held.popitem(last=False)[0], None)

    def hold_still(self, id: str, explanation: Explanation) -> None:
        """Hold a run that does not grow: it is its own copy."""
        with self.changing:
            self.hold(id, explanation)
            self.copies[id] = explanation

    def let_go(self, id: str) -> None:
        """Hold a run in memory no longer."""
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

    # ---- reading

    def upload(self, id: str) -> bytes:
        """The bytes of the uploaded file."""
        try:
            return self.upload_path(id).read_bytes()
        except FileNotFoundError:  # meanwhile
            raise UnknownJob(f"The picture of job {id} is gone: send it again.") from None

    def explanation(self, id: str) -> Explanation:
        """The run itself. Reading a long one takes seconds, during which no lock is held."""
        with self.changing:
            if id in self.held:
                return self.held[id]
        with self.reading:  # of two threads that want it, one reads
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
        """The run so far: a copy that does not grow."""
        explanation = self.explanation(id)
        with self.changing:
            copy = self.copies.get(id)
            if copy is None or copy.n_masks != explanation.n_masks:
                copy = replace(explanation, scores=dict(explanation.scores))
                # Else each repaint would ask the model first whether it is the same.
                copy.recognised = explanation.recognised
                if id in self.held:
                    self.copies[id] = copy
            return copy

    def glance(self, id: str) -> Explanation:
        """The run so far, without displacing the runs in memory."""
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
