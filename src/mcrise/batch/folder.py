"""The folder of a study or an audit: whose it is, what it holds, how far it is.

A note (`study.json` or `audit.json`) says what the folder is of, so that the same work goes on
there and other work is refused. A lock keeps a second driver out.
"""

import json
import re
from pathlib import Path
from typing import Any

from .._util import validation
from .._util.files import Lock, described, signature
from .._util.text import with_article
from ..errors import InputError, McriseError
from .storage import Storage

STATUS = "status.json"


class FolderLock:
    """One driver for each folder of results, so that no two mix their tables.

    On a local disk the second driver is refused. An object store has no locks: there the newest
    driver has the folder, and an older one finds out before it writes the next image, and stops.
    """

    def __init__(self, out: Storage, what: str) -> None:
        self.out, self.what, self.file = out, what, out / f"{what}.lock"
        self.held: Lock | None = None
        try:
            if out.remote:
                self.signature = signature()
                self.file.write(json.dumps(self.signature).encode())
            else:
                self.held = Lock(Path(self.file.path), with_article(what))
                self.signature = self.held.signature
        except OSError as error:
            raise McriseError(
                f"{out.path} cannot be written ({error.strerror or error}): choose another --out."
            ) from None

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, *reason: object) -> None:
        if self.held is not None:
            self.held.release()

    def check(self) -> None:
        """Stop if another driver has begun here since, or the folder was removed."""
        try:
            there: Any = json.loads(self.file.read_text())
        except (OSError, ValueError) as error:
            if self.out.remote and not isinstance(error, FileNotFoundError):
                return  # a network may do better the next time
            there = None
        if there != self.signature:
            other = described(there) if there else "it was removed"
            raise McriseError(
                f"The {self.what} in {self.out.path} is not this one's any more ({other}): nothing "
                "was written there since. Choose another --out for this one."
            )


def claim_folder(
    out: Storage, what: str, own: dict[str, Any], output_files: re.Pattern[str], overwrite: bool
) -> bool:
    """Whether a folder is to be begun; False: it holds this very work.

    Another study or audit there is refused, or removed where it is to be overwritten; what
    `output_files` does not match stays.
    """
    note = out / f"{what}.json"
    try:
        there = json.loads(note.read_text()) if note.exists() else None
    except (OSError, ValueError, RecursionError):
        there = {}
    if isinstance(there, dict) and {name: there.get(name) for name in own} == own:
        return False
    files = [file for file in out.files() if output_files.fullmatch(file.relative_to(out))]
    if files and not overwrite:
        there = there if isinstance(there, dict) else {}
        other = ", ".join(name for name in own if there.get(name) != own[name])
        raise InputError(
            f"{out.path} holds another {what} (other {other}): choose another --out, or "
            "--overwrite it."
        )
    for file in files:
        file.remove()
    return True


def write(file: Storage, content: bytes) -> None:
    """Write a file of a batch, or say in one sentence why not; what is there stays whole."""
    try:
        file.write(content)
    except OSError as error:
        raise McriseError(
            f"{file.path} cannot be written ({error.strerror or error}): make room or choose "
            "another --out; what is finished is kept, and the same command goes on from there."
        ) from None


def json_line(content: Any) -> bytes:
    return (json.dumps(content) + "\n").encode()


def damaged(file: Storage) -> McriseError:
    """The error for a file of a finished image that cannot be read again."""
    return McriseError(
        f"{file.path} is damaged: remove it, and the same command does its image again."
    )


# ---- how far it is


def read_status(out: Storage) -> dict[str, Any]:
    """How far the study or audit in a folder is; it may run in another process."""
    for note in ("study.json", "audit.json"):
        try:
            n_images = len(json.loads((out / note).read_text())["images"])
            break
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            pass
    else:
        raise InputError(f"{out.path} holds no study and no audit: give the --out of one.")
    try:
        return _parse_status((out / STATUS).read_text())
    except (OSError, ValueError, LookupError, RecursionError):
        return {"images": n_images, "done": 0, "failed": 0, "complete": False, "stage": "images",
                "images_per_second": None, "seconds_left": None, "written": None}  # fmt: skip


def _parse_status(text: str) -> dict[str, Any]:
    found = validation.table(json.loads(text))
    if not isinstance(found["complete"], bool):
        raise ValueError("complete is neither true nor false")
    return {
        **{n: validation.whole(found[n], 0, 10**9) for n in ("images", "done", "failed")},
        "complete": found["complete"],
        "stage": validation.text(found.get("stage", "images")),
        **{
            name: None if found[name] is None else validation.number(found[name], low=0)
            for name in ("images_per_second", "seconds_left", "written")
        },
    }
