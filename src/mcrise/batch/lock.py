"""Ownership: who drives a study or an audit, so that no two do at once and mix their tables.

On a local disk the second driver is refused. An object store has no locks: there the newest driver
has it, and an older one finds out before it writes the next image, and stops.
"""

import json
from pathlib import Path
from typing import Any, Literal

from .._util.files import Lock, described, signature
from ..errors import McriseError
from .storage import Storage


class Ownership:
    """A folder of results that is this driver's; `what` it drives is a study or an audit."""

    def __init__(self, out: Storage, what: Literal["study", "audit"] = "study") -> None:
        self.out, self.what, self.file = out, what, out / f"{what}.lock"
        self.lock: Lock | None = None
        try:
            if out.remote:
                self.told = signature()
                self.file.write(json.dumps(self.told).encode())
            else:
                self.lock = Lock(Path(self.file.path), f"{'an' if what == 'audit' else 'a'} {what}")
                self.told = self.lock.told
        except OSError as error:
            raise McriseError(
                f"{out.path} cannot be written ({error.strerror or error}): choose another --out."
            ) from None

    def check(self) -> None:
        """Stop if somebody else has begun here meanwhile, or all of it was removed."""
        try:
            there: Any = json.loads(self.file.read_text())
        except (OSError, ValueError) as error:
            if self.out.remote and not isinstance(error, FileNotFoundError):
                return  # a network may do better the next time
            there = None
        if there != self.told:
            other = described(there) if there else "it was removed"
            raise McriseError(
                f"The {self.what} in {self.out.path} is not this one's any more ({other}): nothing "
                "was written there since. Choose another --out for this one."
            )

    def release(self) -> None:
        if self.lock is not None:
            self.lock.release()
