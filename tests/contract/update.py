"""Write all snapshots as they are now: python tests/contract/update.py [PART]

With PART (`help`, `python`, `json`, ...) only those whose file's path begins with it.
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from outputs import all_outputs  # noqa: E402
from snapshots import write  # noqa: E402
from stored_runs import masks_text, records_text  # noqa: E402
from surfaces import SURFACES  # noqa: E402


def main():
    part = sys.argv[1] if sys.argv[1:] else ""
    for name, make in SURFACES.items():
        if name.startswith(part):
            write(name, make())
    for name, make in {"masks.json": masks_text, "records.json": records_text}.items():
        if name.startswith(part):
            write(name, make())
    with tempfile.TemporaryDirectory() as folder:
        for name, text in all_outputs(Path(folder)).items():
            if name.startswith(part):
                write(name, text)


if __name__ == "__main__":
    main()
