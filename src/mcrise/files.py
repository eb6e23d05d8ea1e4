"""Files that are written whole or not at all: whoever reads meanwhile sees the old or the new.

A kill or a full disk leaves the old content as it was. The new file is opened like any other, not
by `tempfile`, so that the umask applies: it can be read only by changing it for all threads.
"""

import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


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
