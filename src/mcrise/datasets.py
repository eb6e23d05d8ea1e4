"""Image collections on disk, as lists of (path, label)."""

import csv
from dataclasses import dataclass
from pathlib import Path

from .errors import InputError


@dataclass(frozen=True)
class Example:
    """One image of a collection and the index of its true class."""

    path: Path
    label: int


def gtsrb(folder: Path, split: str = "test") -> list[Example]:
    """Read the German Traffic Sign Recognition Benchmark in its official layout.

    `folder` is `GTSRB/` or the folder above it; the split is `train` or `test`.
    """
    root = folder / "GTSRB" if (folder / "GTSRB").is_dir() else folder
    if split == "train":
        tables = sorted((root / "Final_Training" / "Images").glob("*/GT-*.csv"))
    elif split == "test":
        # The official archive has the table beside the images, its common repackaging one up.
        tables = sorted((root / "Final_Test").rglob("GT-final_test.csv"))[:1]
    else:
        raise InputError(f"The split is {split!r}, but GTSRB has only 'train' and 'test'.")
    if not tables:
        raise InputError(
            f"{folder} holds no GTSRB {split} tables (GT-*.csv below Final_Training/Images or in "
            "Final_Test): give the folder that contains GTSRB/."
        )
    return [example for table in tables for example in read_table(table)]


def read_table(table: Path) -> list[Example]:
    images = table.parent / "Images" if (table.parent / "Images").is_dir() else table.parent
    with table.open(newline="") as rows:
        return [
            Example(images / row["Filename"], int(row["ClassId"]))
            for row in csv.DictReader(rows, delimiter=";")
        ]
