"""The tables of an audit's folder, as Parquet that pandas, Polars and DuckDB read.

Each table is a folder with a part for each class (`class=14/part-00000.parquet`), and further parts
where a class has many images. Maps are lists of 32-bit floats of half precision: all readers know
that type, and what is always zero takes no room in the file.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._util import validation
from ..batch.storage import Row, Storage, read_parquet
from ..errors import InputError
from ..masks import MOST_CELLS
from ..models.scores import LARGEST, check_kind
from .class_data import STORED, AuditInfo, ClassData, Column
from .confirmation import ConfirmationAnswer, ConfirmationAnswers
from .figures_json import reporting_damage

FORMAT = 4  # of the folder; raised when an older mcrise could misread a newer one
NOTE = "audit.json"
PART = 256  # images

IMAGES = {
    **{one.name: one.kind for one in STORED.values() if one.table == "images"},
    "label": "string",
    "predicted_label": "string",
    "predicted_score": "float64",
    "runners_up": "list<int64>",  # what the model would say instead, likeliest first
    "counterfactual_share": "float64",
    "counterfactual_to": "int64",
    "counterfactual_sentence": "string",
    "correction_sentence": "string",
    "n_masks": "int64",
    "n_calls": "int64",
    "notes": "list<string>",
    "thumbnail": "binary",  # WebP
}
FINDINGS = {
    "image": "int64",
    "name": "string",
    "target": "int64",
    "number": "int64",
    "place": "string",
    "share": "float64",
    "box": "list<float64>",  # top, left, bottom, right, from 0 to 1
    "fill": "string",
    "effect": "float64",
    "kind": "string",
    "claims": "list<string>",
    "verdict": "string",
    "before": "float64",
    "after": "float64",
    "control_low": "float64",
    "control_median": "float64",
    "control_high": "float64",
    "places": "int64",
    "sentence": "string",
}
MAPS = {
    "image": "int64",
    "target": "int64",
    **{one.name: one.kind for one in STORED.values() if one.table == "maps"},
}
ATTEMPTS = {
    "image": "int64",
    "key": "string",
    "before": "float64",
    "after": "float64",
    "predicted": "int64",
    "prediction_before": "int64",
    "controls": "list<float64>",
}
TRANSPLANTS = {
    "image": "int64",  # that received it
    "donor": "int64",
    "suspect": "int64",  # the class that it may give away
    "trait": "string",
    "role": "string",  # screen, refine, given, control, taken, locate
    "near": "bool_",  # the receiver's class is one of the nearest
    "predicted": "int64",
    "score": "float64",  # of the suspect
    "region": "binary",  # of the raster, a bit for each place: what was located
    "picture": "binary",  # WebP, of the receiver with what was located
}
FAILED = {"image": "int64", "name": "string", "error": "string"}

TABLES = {
    "images": IMAGES,
    "findings": FINDINGS,
    "maps": MAPS,
    "attempts": ATTEMPTS,
    "transplants": TRANSPLANTS,
}


# ---- reading


def read_asked(folder: Storage) -> AuditInfo:
    """What the audit in a folder is of; refuses what is none, or of a newer mcrise."""
    try:
        note = json.loads((folder / NOTE).read_text())
        form = note["format"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise InputError(
            f"{folder.path} holds no audit: give the --out of `mcrise audit`."
        ) from None
    if form != FORMAT:
        older = isinstance(form, int) and form < FORMAT
        remedy = "make it again by `mcrise audit` with --overwrite" if older else "update mcrise"
        raise InputError(
            f"The audit in {folder.path} has format {form} (of mcrise {note.get('mcrise')}), but "
            f"this mcrise reads format {FORMAT}: {remedy}."
        )
    with reporting_damage(folder):
        settings, n_masks = note["settings"], note["settings"]["n_masks"]
        check_kind(note["kind"])
        if not note["fills"]:
            raise ValueError("it has no fills")
        return AuditInfo(
            fills=validation.texts(note["fills"]),
            labels=validation.texts(note["labels"] or []),
            zones=validation.texts([zone[0] for zone in settings["zones"]]),
            basics=validation.texts(note["basics"]),
            traits=tuple(trait_of(one) for one in note["traits"]),
            data=validation.text(note["data"]),
            model=validation.text(note["name"]),
            identity=validation.text(note["model"]),
            kind=note["kind"],
            grid=validation.pair(settings["grid"], MOST_CELLS),
            mask_prob=validation.number(note["chosen"]["mask_prob"], 0, 1),
            why=validation.text(note["chosen"]["sentence"]),
            n_masks="auto" if n_masks == "auto" else validation.whole(n_masks, 1, 2**31),
            seed=validation.whole(settings["seed"], 0, 2**64),
            raster=validation.whole(settings["raster"], 1, 1024),
            group=validation.text(note["group"]),
            n_images=len(read_names(note)),
            version=validation.text(note["mcrise"]),
        )


def trait_of(one: Any) -> tuple[str, str, str]:
    name, kind, phrase = validation.texts(one)
    return name, kind, phrase


def read_names(note: Any) -> list[str]:
    """The images of an audit."""
    if not isinstance(note["images"], list):
        raise ValueError("its images are no list")
    return [validation.text(name) for name in note["images"]]


def read_answer(folder: Storage) -> list[float] | None:
    """What the model said of the first image, by which another of its name is known."""
    with reporting_damage(folder):
        answer = json.loads((folder / NOTE).read_text()).get("answer")
        if answer is None:
            return None
        return [validation.number(score, -LARGEST, LARGEST) for score in answer]


def class_numbers(folder: Storage, table: str = "images") -> list[int]:
    """The classes that a table has rows of."""
    names = {file.parent.name for file in (folder / table).find("class=*/part-*.parquet")}
    with reporting_damage(folder):
        numbers = sorted(
            validation.whole(int(name.removeprefix("class=")), 0, 10**9) for name in names
        )
        if {f"class={number}" for number in numbers} != names:  # 00 would be another 0
            raise ValueError(f"its classes are called {', '.join(sorted(names))}")
        return numbers


def read_parts(
    folder: Storage, table: str, target: int, columns: Sequence[str] | None = None
) -> Any:
    """The rows of one class, as a pyarrow table; None where there are none."""
    import pyarrow

    parts = (folder / f"{table}/class={target}").find("part-*.parquet")
    with reporting_damage(folder):
        some = [read_parquet(part, TABLES[table], columns) for part in parts]
        return pyarrow.concat_tables(some) if some else None


def read_class(folder: Storage, target: int, info: AuditInfo | None = None) -> ClassData:
    """The images of one class."""
    info = info or read_asked(folder)
    columns = [one.name for one in STORED.values() if one.table == "images"]
    rows = read_parts(folder, "images", target, columns)
    if rows is None:
        raise InputError(
            f"The audit in {folder.path} has no images of {info.label(target)!r}: there are "
            f"{len(class_numbers(folder))} other classes."
        )
    with reporting_damage(folder):
        return class_data_of(rows, read_parts(folder, "maps", target), target, info)


def class_data_of(rows: Any, maps: Any, target: int, info: AuditInfo) -> ClassData:
    import pyarrow.compute as pc

    if info.labels and target >= len(info.labels):
        raise ValueError(f"class {target} of {len(info.labels)}")
    if len(rows["image"].unique()) < len(rows):
        raise ValueError(f"an image of class {target} is there twice")
    groups = group_codes(rows["image"].to_pylist(), rows["group"].to_pylist())
    sizes = {
        "fills": len(info.fills),
        "fills + 2": len(info.fills) + 2,
        "zones": len(info.zones),
        "basics": len(info.basics),
        "raster": info.raster,
    }
    of = {"images": rows, "maps": maps.filter(pc.equal(maps["target"], target))}
    arrays = {
        name: column_array(of[column.table][column.name], column, len(rows), sizes)
        for name, column in STORED.items()
    }
    return ClassData(target, **{**arrays, "group": np.array(groups, np.int64)})


def group_codes(images: Sequence[int], groups: Sequence[str | None]) -> list[int]:
    """The first image of each one's group, or its own number where it is in none."""
    first: dict[str, int] = {}
    return [
        image if group is None else first.setdefault(group, image)
        for image, group in zip(images, groups, strict=True)
    ]


def column_array(values: Any, column: Column, n: int, sizes: dict[str, int]) -> Any:
    """A column of a table as an array with a row for each image, or as a tuple of texts."""
    shape = [sizes[one] if isinstance(one, str) else one for one in column.shape]
    match column.kind:
        case "string":
            return tuple(values.to_pylist())
        case "int64":
            return np.array([-1 if v is None else v for v in values.to_pylist()], np.int64)
        case "list<int64>":
            return np.array(values.to_pylist(), np.int64).reshape(n, *shape)
        case "binary":
            content = np.frombuffer(b"".join(values.to_pylist()), np.uint8)
            if column.bits:
                rows = content.reshape(n, -1)
                content = np.unpackbits(rows, axis=1, count=math.prod(shape)).astype(bool)
            return content.reshape(n, *shape)
    chunk = values.combine_chunks()
    flat = chunk.flatten() if shape else chunk
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(n, *shape)


def stored_row(values: Row) -> Row:
    """The row of an image in the table, of what was measured of it."""
    return {name: as_stored(values[name], kind) for name, kind in IMAGES.items() if name in values}


def as_stored(value: Any, kind: str) -> Any:
    if isinstance(value, np.ndarray):
        return value.tobytes() if kind == "binary" else value.ravel()
    return value


def read_classes(folder: Storage) -> Iterator[ClassData]:
    """All classes in order, one at a time."""
    info = read_asked(folder)
    for target in class_numbers(folder):
        yield read_class(folder, target, info)


def read_answers(folder: Storage) -> ConfirmationAnswers:
    """What came of trying what was found in classes."""
    return {
        (row["image"], row["key"]): ConfirmationAnswer(
            row["before"], row["after"], row["predicted"], tuple(row["controls"])
        )
        for target in class_numbers(folder, "attempts")
        for row in read_parts(folder, "attempts", target).to_pylist()
    }


def read_rows(folder: Storage, table: str, target: int, *columns: str) -> list[Row]:
    """Some columns of a table's rows of one class, as dicts."""
    rows = read_parts(folder, table, target, list(columns) or None)
    return [] if rows is None else list(rows.to_pylist())


def read_thumbnails(folder: Storage, images: Sequence[int]) -> dict[int, bytes]:
    """WebP files of some images, by number."""
    wanted = set(images)
    found: dict[int, bytes] = {}
    for target in class_numbers(folder):
        if len(found) == len(wanted):
            break
        for row in read_rows(folder, "images", target, "image", "thumbnail"):
            if row["image"] in wanted:
                found[row["image"]] = row["thumbnail"]
    return found


def read_failed(folder: Storage) -> list[Row]:
    """The images that could not be measured, and why."""
    file = folder / "failed.parquet"
    with reporting_damage(folder):
        return list(read_parquet(file, FAILED).to_pylist()) if file.is_file() else []
