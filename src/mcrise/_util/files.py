"""Files replaced as a whole, what mcrise wrote among a user's files, and locks of folders.

A lock is the operating system's, on an open file: a process that dies, by kill -9 too, has let go
of it. The file says who holds the lock, for the process that is refused, and lets the holder see
that the file is still its own: a folder may be deleted and made again meanwhile.
"""

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from ..errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write into, which takes the place of `path` when the block ends well.

    An error is of the file that was asked for: nobody has heard of the temporary one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and str(error.filename) == str(temporary):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def write_atomically(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


# ---- what mcrise wrote among a user's files

ENDINGS = (".mcrise", ".match")  # of the folders of runs, where no other was asked for
RUN, NOTES = "run.npz", ("study.json", "audit.json")  # what lies in runs, and in studies and audits


def outside_results(names: Collection[str]) -> set[str]:
    """Those of the files of a folder that lie in no run, study or audit; paths from there, with /.

    The folder itself may be a study's, but a run that lies beside pictures takes none away.
    """
    pairs = [name.rpartition("/") for name in names]
    written = {above for above, slash, name in pairs if name in NOTES or (slash and name == RUN)}

    def is_result(name: str) -> bool:
        *above, _ = name.split("/")
        parts = ("/".join(above[:depth]) for depth in range(len(above) + 1))
        return any(folder in written or folder.endswith(ENDINGS) for folder in parts)

    return {name for name in names if not is_result(name)}


if sys.platform == "win32":
    import msvcrt

    def lock_file(file: IO[str]) -> None:
        file.seek(2**30)  # beyond what it says: a locked byte cannot be read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def lock_file(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lock:
    """A lock that is held from when it is made until it is released or its process ends."""

    def __init__(self, path: Path, what: str) -> None:
        """Take it; `what` says to a second process what goes on there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a+", encoding="utf-8")  # not emptied: it may be another's
        try:
            lock_file(self.file)
        except (BlockingIOError, PermissionError):
            self.file.close()
            raise InputError(
                f"{path.parent} is in use: {what} runs there already ({holder(path)}). Wait for it "
                "to end, stop it, or choose another folder."
            ) from None
        except OSError:  # a file system without locks
            pass
        self.signature = signature()
        self.file.truncate(0)
        self.file.write(json.dumps(self.signature))
        self.file.flush()

    def release(self) -> None:
        self.file.close()


def signature() -> dict[str, Any]:
    """Who holds a lock, and a word that nobody else has."""
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        "word": secrets.token_hex(8),
    }


def holder(path: Path) -> str:
    """Who holds a lock, in words."""
    with suppress(OSError, ValueError):
        return described(json.loads(path.read_text(encoding="utf-8")))
    return "it has not said who it is"


def described(holder: Any) -> str:
    holder = holder if isinstance(holder, dict) else {}
    process, host, since = (str(holder.get(name, "?")) for name in ("process", "host", "since"))
    return f"process {process} on {host}, since {since}"
