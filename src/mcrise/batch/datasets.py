"""Image collections, as lists of (path, label): GTSRB, folders of classes, any folder, a CSV.

Paths are local, or anything fsspec opens (`s3://bucket/folder`). Where a collection says so, an
image also has a group (frames of one track belong together) and the place of its object, as a box
or as a mask.
"""

import csv
import io
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .._util.files import outside_results
from ..errors import InputError
from ..image_sources import SUFFIXES
from .storage import Storage

SPLIT = "test"  # unless another is asked for
Box = tuple[float, float, float, float]  # top, left, bottom, right, in pixels of the image
BOX = ("y1", "x1", "y2", "x2")  # its columns in a CSV
GTSRB_BOX = ("Roi.Y1", "Roi.X1", "Roi.Y2", "Roi.X2")  # the last row and column included
PATHS = ("path", "image", "file", "filename")  # what may head the column of paths


@dataclass(frozen=True)
class Example:
    """One image of a collection."""

    path: str
    name: str  # what it is called in tables: its path inside the collection
    label: str | None = None  # the true class: its name or its index
    sure: bool = True  # that the label is one: a folder may be named after anything
    group: str | None = None  # what it belongs together with, as the frames of a track
    box: Box | None = None  # around its object
    mask: str | None = None  # path of a picture of the same size, black but for the object


def open_dataset(
    where: Path | str,
    split: str = SPLIT,
    group: str | None = None,
    masks: Path | str | None = None,
) -> list[Example]:
    """The images of a collection, sorted by name; what it is follows from what lies there.

    `split` is the part of it: GTSRB has `train` and `test`; of a folder, the subfolder of that
    name where there is one. `group` names the column of a CSV file that says which images belong
    together, and `masks` a folder with pictures of the same names, black but for the object.
    """
    try:
        examples = _read_dataset(Storage(where), split, group)
        if masks is not None:
            examples = _with_masks(examples, Storage(masks))
    except OSError as error:
        raise InputError(
            f"{where} cannot be read ({error.strerror or error}): give a folder of images, GTSRB "
            "or a CSV file that can be."
        ) from None
    if not examples:
        raise InputError(f"{where} lists no images: give a folder or table that has some.")
    name, most = Counter(example.name for example in examples).most_common(1)[0]
    if most > 1:
        raise InputError(f"{where} lists {name} twice: list each image once.")
    return sorted(examples, key=lambda example: example.name)


def _read_dataset(storage: Storage, split: str, group: str | None) -> list[Example]:
    if not storage.exists():
        raise InputError(
            f"There is no {storage.path}: give a folder of images, GTSRB or a CSV file."
        )
    if storage.is_file():
        return _read_csv(storage, group)
    if group is not None:
        raise InputError(
            f"The group is the column {group!r}, but {storage.path} is no table: give a CSV file "
            "with that column, or leave --group out (GTSRB's tracks are groups by themselves)."
        )
    if (root := _gtsrb_root(storage)) is not None:
        return gtsrb(root, split)
    inside = storage / split
    if inside.is_folder():
        return _read_folder(inside)
    if split != SPLIT:
        raise InputError(
            f"{storage.path} has no subfolder {split}: give the --split it has, or none for all of "
            "its images."
        )
    return _read_folder(storage)


# ---- which of them


def sample(examples: Sequence[Example], n_images: int | None, seed: int) -> list[Example]:
    """A random sample of a collection, the same for the same seed, in the collection's order."""
    if n_images is None or n_images >= len(examples):
        return list(examples)
    if n_images < 1:
        raise InputError(f"{n_images} images were asked for, but at least 1 is needed.")
    chosen = np.random.default_rng(seed).choice(len(examples), n_images, replace=False)
    return [examples[i] for i in sorted(chosen)]


def sample_of_each(examples: Sequence[Example], most: int | None, seed: int) -> list[Example]:
    """At most this number of images of each label, at random, the same for the same seed."""
    if most is None:
        return list(examples)
    if most < 1:
        raise InputError(f"{most} images of a class were asked for, but at least 1 is needed.")
    taken: Counter[str | None] = Counter()
    chosen = []
    for n in np.random.default_rng(seed).permutation(len(examples)).tolist():
        label = examples[n].label
        taken[label] += 1
        if taken[label] <= most:
            chosen.append(n)
    return [examples[n] for n in sorted(chosen)]


# ---- the German Traffic Sign Recognition Benchmark in its official layout


def _gtsrb_root(storage: Storage) -> Storage | None:
    """GTSRB/ itself, in the folder given or above it."""
    for root in (storage, storage / "GTSRB"):
        if (root / "Final_Test").is_folder() or (root / "Final_Training").is_folder():
            return root
    return None


def gtsrb(where: Path | str | Storage, split: str = SPLIT) -> list[Example]:
    """`where` is GTSRB/ or the folder above it; the split is `train` or `test`."""
    given = where if isinstance(where, Storage) else Storage(where)
    root = _gtsrb_root(given) or given
    test = root / "Final_Test"
    if split == "train":
        tables = (root / "Final_Training" / "Images").find("*/GT-*.csv")
    elif split == "test":
        # Its own archive unpacks the table beside GTSRB/; others have it nearer to the images.
        places = (test, test / "Images", root, root.parent)
        tables = [place / "GT-final_test.csv" for place in places]
        tables = [table for table in tables if table.is_file()][:1]
    else:
        raise InputError(f"The split is {split!r}, but GTSRB has only 'train' and 'test'.")
    if not tables:
        raise InputError(
            f"{given.path} holds no GTSRB {split} tables (GT-*.csv below Final_Training/Images, "
            "GT-final_test.csv in or beside Final_Test or GTSRB): give the folder that contains "
            "GTSRB/ and them."
        )
    return [
        example
        for table in tables
        for example in _read_gtsrb_table(root, table, None if split == "train" else test / "Images")
    ]


def _read_gtsrb_table(root: Storage, table: Storage, tests: Storage | None) -> list[Example]:
    """`tests` is where the test images are; those for training lie beside their table."""
    images = tests or table.parent
    try:
        rows = csv.DictReader(io.StringIO(table.read_text()), delimiter=";")
        return [
            Example(
                path.path,
                path.relative_to(root),
                str(int(row["ClassId"])),
                group=f"{images.name}/{path.name.partition('_')[0]}" if tests is None else None,
                box=_gtsrb_box(row),
            )
            for row in rows
            for path in [images / row["Filename"]]
        ]
    except (KeyError, TypeError, ValueError, csv.Error):
        raise InputError(
            f"{table.path} is not a GTSRB table: it needs the columns Filename and ClassId, "
            "with semicolons between."
        ) from None


def _gtsrb_box(row: dict[str, str]) -> Box | None:
    if not all(row.get(column) for column in GTSRB_BOX):
        return None
    top, left, last_row, last_column = (float(row[column]) for column in GTSRB_BOX)
    return top, left, last_row + 1, last_column + 1


# ---- folders and tables


def _read_folder(storage: Storage) -> list[Example]:
    """All images below a folder; a subfolder, as of ImageNet, may name the class.

    Hidden files, runs, studies and audits that lie there are not among them.
    """
    files = {file.relative_to(storage): file for file in storage.files()}
    given = outside_results(files)
    found = [
        file
        for name, file in files.items()
        if name.lower().endswith(SUFFIXES)
        and name in given
        and not any(part.startswith(".") for part in name.split("/"))
    ]
    if not found:
        raise InputError(
            f"{storage.path} holds no images ({', '.join(SUFFIXES)}): give the folder they are in."
        )
    examples = []
    for path in found:
        # A name that is not UTF-8 could not be written into a table.
        name = os.fsencode(path.relative_to(storage)).decode("utf-8", "backslashreplace")
        above = name.rpartition("/")[0].rpartition("/")[2] or None
        examples.append(Example(path.path, name, above, sure=False))
    return examples


def _read_csv(storage: Storage, group: str | None = None) -> list[Example]:
    """Lines of path and, if known, label; paths are relative to the table's folder.

    Where the first line names the columns, `label`, `group`, `mask` and x1, y1, x2, y2 may be
    anywhere in it; `group` may go by another name.
    """
    try:
        rows = [row for row in csv.reader(io.StringIO(storage.read_text())) if row]
    except (UnicodeDecodeError, csv.Error):
        raise InputError(
            f"{storage.path} is not a table: give a CSV file with the columns path and label, or "
            "a folder."
        ) from None
    head = ["path", "label"]
    if rows and rows[0][0].strip().lower() in PATHS:
        head = ["path", *(name.strip() for name in rows[0][1:])]
        if "label" not in head and head[1:] and head[1] not in (*BOX, "mask", "group", group):
            head[1] = "label"  # whatever it is called, as in `image,class`
        rows = rows[1:]
    if not rows:
        raise InputError(f"{storage.path} lists no images: each line needs a path and a label.")
    if group is not None and group not in head:
        raise InputError(
            f"The group is the column {group!r}, but {storage.path} has only {', '.join(head)}: "
            "name one of them."
        )
    cells = [
        {name: cell.strip() for name, cell in zip(head, row, strict=False) if cell.strip()}
        for row in rows
    ]
    return [_read_line(storage, line, group or "group") for line in cells]


def _read_line(storage: Storage, line: dict[str, str], group: str) -> Example:
    """One image of a table, from its cells that are not empty."""
    name = line.get("path", "").replace(os.sep, "/")
    return Example(
        _listed(storage, name).path,
        name,
        line.get("label"),
        group=line.get(group),
        box=_read_box(storage, name, line),
        mask=_listed(storage, line["mask"]).path if "mask" in line else None,
    )


def _listed(storage: Storage, name: str) -> Storage:
    path = storage.parent / name
    if not path.remote and not path.is_file():  # of an object store, workers will tell
        raise InputError(
            f"{storage.path} lists {name}, but there is no such file beside the table: correct "
            "the path or take the line out."
        )
    return path


def _read_box(storage: Storage, name: str, line: dict[str, str]) -> Box | None:
    given = [line[column] for column in BOX if column in line]
    if not given:
        return None
    try:
        top, left, bottom, right = map(float, given)
    except ValueError:
        raise InputError(
            f"{storage.path} gives {name} the box {', '.join(given)}, but four numbers x1, y1, x2, "
            "y2 are needed, in pixels: correct the line."
        ) from None
    return top, left, bottom, right


def _with_masks(examples: Sequence[Example], folder: Storage) -> list[Example]:
    """Examples with the masks of a folder: of the same name but for the suffix."""
    known = {file.relative_to(folder).rpartition(".")[0]: file.path for file in folder.files()}
    found = [
        replace(example, mask=known.get(example.name.rpartition(".")[0]) or example.mask)
        for example in examples
    ]
    if not any(example.mask for example in found):
        raise InputError(
            f"{folder.path} has no mask for any of the images: name them as the images are, as in "
            f"{examples[0].name.rpartition('.')[0]}.png."
        )
    return found


def spelled(name: str) -> str:
    """What a name has in common with all its spellings."""
    return name.casefold().replace("-", " ").replace("_", " ")


def truth_of(example: Example, labels: Sequence[str] | None) -> int | None:
    """The index of the true class, by name, by index, or by the first word that only it has.

    A folder may spell a name as folders do: `priority-road` or `Priority_Road`. None where it is
    not known: no label, or a folder that is not named after a class.
    """
    label, names = example.label, list(labels or ())
    if label is None or not (example.sure or names):
        return None
    if label in names:
        return names.index(label)
    if label.isdecimal():
        if not names or int(label) < len(names):
            return int(label)
    else:
        alike = [n for n, name in enumerate(names) if name.partition(" ")[0] == label]
        alike = alike or [n for n, name in enumerate(names) if spelled(name) == spelled(label)]
        if len(alike) == 1:  # as n02123045 of `n02123045 tabby`
            return alike[0]
    if not example.sure:
        return None
    needed = "an index, or its labels with --labels"
    if names:
        needed = f"one of its labels or an index from 0 to {len(names) - 1}"
    raise InputError(
        f"The label of {example.name} is {label!r}, but the model has no such class: give {needed}."
    )
