"""Files and folders by address: local ones, and through fsspec whatever has `://` in it.

A study reads its images and writes its results here, so that neither knows where they are.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from .errors import InputError


class Storage:
    """One address: a file or a folder."""

    def __init__(self, where: "Path | str | Storage") -> None:
        text = where.path if isinstance(where, Storage) else str(where)
        self.path: str = text.rstrip("/") or "/"
        self.remote = "://" in self.path

    @property
    def files(self) -> Any:
        """The fsspec file system of a remote address."""
        try:
            import fsspec
        except ImportError:
            raise InputError(
                f"{self.path} is not on this machine: pip install 'mcrise[cluster]' to reach it."
            ) from None
        scheme = self.path.partition("://")[0]
        try:
            return fsspec.filesystem(scheme)
        except (ImportError, ValueError) as error:
            raise InputError(f"{self.path} cannot be reached: {error}.") from None

    def __truediv__(self, name: str) -> "Storage":
        if not self.remote:
            return Storage(Path(self.path) / name)
        return Storage(name if "://" in name else f"{self.path}/{name}")

    @property
    def parent(self) -> "Storage":
        return Storage(self.path.rpartition("/")[0] if self.remote else Path(self.path).parent)

    def relative_to(self, folder: "Storage") -> str:
        if self.remote:
            return self.path.removeprefix(f"{folder.path}/")
        return Path(self.path).relative_to(folder.path).as_posix()

    def exists(self) -> bool:
        return bool(self.files.exists(self.path)) if self.remote else os.path.exists(self.path)

    def is_file(self) -> bool:
        return bool(self.files.isfile(self.path)) if self.remote else os.path.isfile(self.path)

    def is_folder(self) -> bool:
        return bool(self.files.isdir(self.path)) if self.remote else os.path.isdir(self.path)

    def find(self, pattern: str) -> list["Storage"]:
        """The files that match a pattern such as `*/GT-*.csv`, sorted."""
        if not self.remote:
            return [
                Storage(path) for path in sorted(Path(self.path).glob(pattern)) if path.is_file()
            ]
        scheme = self.path.partition("://")[0]
        found = self.files.glob(f"{self.path}/{pattern}", detail=True)
        return [
            Storage(f"{scheme}://{path}") for path in sorted(found) if found[path]["type"] == "file"
        ]

    def read_bytes(self) -> bytes:
        return (
            bytes(self.files.cat_file(self.path)) if self.remote else Path(self.path).read_bytes()
        )

    def read_text(self) -> str:
        return self.read_bytes().decode("utf-8-sig")

    def write(self, content: bytes) -> None:
        """Whole or not at all: whoever reads meanwhile sees the old content or the new."""
        if self.remote:
            self.files.pipe_file(self.path, content)  # object stores replace an object at once
            return
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with open(handle, "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            os.chmod(part, 0o644)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise

    def remove(self) -> None:
        if self.exists():
            self.files.rm(self.path) if self.remote else os.unlink(self.path)
