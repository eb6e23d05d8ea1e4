"""Ledger: what was asked, as rows of SQLite that survive whatever ends the server.

A database can be locked by somebody else, read-only, full or damaged. None of that may reach the
thread that owns the models as more than a sentence, so every error leaves here as `NotKept`.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError, McriseError

TABLES = (
    """CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE, asked TEXT, created REAL, state TEXT,
    n_masks INTEGER, goal INTEGER, note TEXT)""",
    "CREATE TABLE IF NOT EXISTS leaving (id TEXT PRIMARY KEY, at REAL)",
)
COLUMNS = "number, id, asked, created, state, n_masks, goal, note"
PATIENCE = 0.25  # seconds to wait for somebody else's lock: requests wait with it


class NotKept(McriseError):
    """What was asked cannot be written down, so it is not taken."""


class Ledger:
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
                raise NotKept(self.trouble) from None
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
