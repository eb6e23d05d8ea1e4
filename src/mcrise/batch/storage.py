"""Files, folders and tables by address: local, or through fsspec whatever has `://` in it.

A study reads its images and writes its results here, so that neither knows where they are. What
goes wrong is an OSError, whichever library it comes from.
"""

import errno
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from .._util.files import write_atomically
from ..errors import InputError

AT_ONCE = 16  # files read together: from an object store each takes a while to come


class Storage:
    """One address: a file or a folder."""

    def __init__(self, where: "Path | str | Storage") -> None:
        text = where.path if isinstance(where, Storage) else str(where)
        if not text:  # an unset variable, most likely, and not the root of the disk
            raise InputError("The address of a file or folder is empty: give one.")
        self.remote = "://" in text
        if not self.remote:
            text = text.replace(os.sep, "/")  # Windows takes both, tables and patterns only one
        self.path: str = text.rstrip("/") or "/"

    def __truediv__(self, name: str) -> "Storage":
        if "://" in name:
            return Storage(name)
        return Storage(f"{self.path}/{name}" if self.remote else Path(self.path) / name)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> "Storage":
        return Storage(self.path.rpartition("/")[0] if self.remote else Path(self.path).parent)

    def relative_to(self, folder: "Storage") -> str:
        if self.remote:
            return self.path.removeprefix(f"{folder.path}/")
        return Path(self.path).relative_to(folder.path).as_posix()

    # ---- what is there

    def exists(self) -> bool:
        return bool(self.call("exists")) if self.remote else os.path.exists(self.path)

    def is_file(self) -> bool:
        return bool(self.call("isfile")) if self.remote else os.path.isfile(self.path)

    def is_folder(self) -> bool:
        return bool(self.call("isdir")) if self.remote else os.path.isdir(self.path)

    def files(self) -> list["Storage"]:
        """All files below a folder, at any depth, sorted; none where there is no such folder."""
        if not self.is_folder():
            return []
        if self.remote:
            scheme = self.path.partition("://")[0]
            return [Storage(f"{scheme}://{path}") for path in sorted(self.call("find"))]

        def refuse(error: OSError) -> None:
            raise error

        found, seen = [], set()
        for folder, inside, names in os.walk(self.path, onerror=refuse, followlinks=True):
            inside.sort()  # which of two links to the same folder is followed must not vary
            if (real := os.path.realpath(folder)) in seen:
                inside.clear()
            else:
                seen.add(real)
                found += [Storage(Path(folder, name)) for name in names]
        return sorted(found, key=lambda file: file.path)

    def find(self, pattern: str) -> list["Storage"]:
        """The files below whose path from here matches a pattern such as `*/GT-*.csv`."""
        depth = pattern.count("/")
        return [
            file
            for file in self.files()
            for place in [file.relative_to(self)]
            if place.count("/") == depth and PurePosixPath(place).match(pattern)
        ]

    def stamp(self) -> str:
        """What changes when a file is replaced: its size and time, or what a store calls that."""
        if self.remote:
            return str(self.call("ukey"))
        about = os.stat(self.path)
        return f"{about.st_size} {about.st_mtime_ns}"

    def n_bytes(self) -> int:
        return int(self.call("size")) if self.remote else os.stat(self.path).st_size

    def digest(self) -> str:
        return hashlib.sha256(self.read_bytes()).hexdigest()

    # ---- reading and writing

    def read_bytes(self) -> bytes:
        if self.remote:
            return bytes(self.call("cat_file"))
        if os.path.exists(self.path) and not os.path.isfile(self.path):  # a pipe waits for ever
            raise OSError(errno.EINVAL, "it is no file", self.path)
        return Path(self.path).read_bytes()

    def read_text(self) -> str:
        return self.read_bytes().decode("utf-8-sig")

    def write(self, content: bytes) -> None:
        """Whole or not at all: whoever reads meanwhile sees the old content or the new."""
        if self.remote:
            self.call("pipe_file", content)  # object stores replace an object at once
            return
        write_atomically(Path(self.path), content)

    def remove(self) -> None:
        if self.is_file():
            self.call("rm_file") if self.remote else os.unlink(self.path)

    def call(self, what: str, *given: Any) -> Any:
        """Ask the fsspec file system of a remote address."""
        try:
            import fsspec
        except ImportError:
            raise InputError(
                f"{self.path} is not on this machine: pip install s3fs to reach it."
            ) from None
        try:
            system = fsspec.filesystem(self.path.partition("://")[0])
            return getattr(system, what)(self.path, *given)
        except OSError:
            raise
        except Exception as error:  # each object store has errors of its own
            raise OSError(f"{self.path}: {type(error).__name__}, {error}") from error


def read_all(files: list[Storage]) -> Iterator[tuple[Storage, bytes]]:
    """The content of many files; from an object store many at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for start in range(0, len(files), 1000):  # so that not all wait in memory
            some = files[start : start + 1000]
            yield from zip(some, pool.map(Storage.read_bytes, some), strict=True)


# ---- tables: Parquet that pandas, Polars and DuckDB read, the same for the same rows


MOST_ROWS, MOST_BYTES = 10**6, 2**31  # of a file

Row = dict[str, Any]
Columns = Mapping[str, str]  # name -> kind, as "int64" or "list<float32>"


def check_packages(what: str, *packages: str) -> None:
    """Say what is missing before the work, not after it."""
    for package in ("pyarrow", *packages):
        if find_spec(package) is None:
            raise InputError(f"{what} needs {package}: pip install {package}.")


def parquet(rows: Sequence[Row], columns: Columns) -> bytes:
    """Rows as the bytes of a file."""
    import pyarrow
    from pyarrow.parquet import write_table

    schema = pyarrow.schema([(name, _arrow_type(kind)) for name, kind in columns.items()])
    values = {name: [row.get(name) for row in rows] for name in columns}
    halves = [f"{name}.list.element" for name, kind in columns.items() if kind == "list<float32>"]
    plain = [name for name, kind in columns.items() if kind in ("string", "int64")]
    out = io.BytesIO()
    write_table(
        pyarrow.table(values, schema=schema),
        out,
        compression="zstd",
        use_dictionary=plain,
        use_byte_stream_split=halves or False,
    )
    return out.getvalue()


def read_parquet(file: Storage, kinds: Columns, columns: Sequence[str] | None = None) -> Any:
    """Some columns of a file, once they are known to be of the right kinds and not too long.

    The file is read in this thread only: Arrow's threads release what they read late, and if the
    program ends just then it aborts.
    """
    from pyarrow.parquet import ParquetFile

    opened = ParquetFile(io.BytesIO(file.read_bytes()), pre_buffer=False)
    about = opened.metadata
    n_bytes = sum(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
    if about.num_rows > MOST_ROWS or n_bytes > MOST_BYTES:
        raise ValueError(f"{file.name} has {about.num_rows:,} rows of {n_bytes:,} bytes")
    for name in columns or kinds:
        found = opened.schema_arrow.field(name).type
        if found != _arrow_type(kinds[name]):
            raise ValueError(f"{name} of {file.name} is {found}")
    return opened.read(list(columns or kinds), use_threads=False)


def _arrow_type(kind: str) -> Any:
    import pyarrow

    if kind.startswith("list<"):
        return pyarrow.list_(_arrow_type(kind[5:-1]))
    return getattr(pyarrow, kind)()


def in_parts(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    part: list[Any] = []
    for row in rows:
        part.append(row)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part
