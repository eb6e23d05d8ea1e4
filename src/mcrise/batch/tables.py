"""Tables in and out: Parquet that pandas, Polars and DuckDB read, the same for the same rows."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from ..errors import InputError
from .storage import Storage

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
