"""Tables: an audit's folder in and out, as Parquet that pandas, Polars and DuckDB read.

Each table is a folder with a part for each class (`class=14/part-00000.parquet`), and further parts
where a class has many images. Maps are lists of 32-bit floats of half precision: all readers know
that type, and what is always zero takes no room in the file.
"""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .._util import validation
from ..batch.storage import Storage
from ..errors import InputError
from ..masks import MOST_CELLS
from ..models.scores import LARGEST, check_kind
from ..studies.results import open_parquet
from .class_data import AuditInfo, ClassData, FloatArray, IntArray
from .confirmation import ConfirmationAnswer, ConfirmationAnswers
from .schema import reporting_damage

FORMAT = 2  # of the folder; raised when an older mcrise could misread a newer one
NOTE = "audit.json"
PART = 256  # images
MOST_ROWS, MOST_BYTES = 10**6, 2**31  # of a file

IMAGES = {
    "image": "int64",
    "name": "string",
    "group": "string",
    "truth": "int64",
    "label": "string",
    "predicted": "int64",
    "predicted_label": "string",
    "score": "float64",  # of the class
    "predicted_score": "float64",
    "gray": "int64",
    "hue120": "int64",
    "hue240": "int64",
    "presence": "float64",
    "color": "float64",
    "zone_energy": "list<float64>",  # by zone
    "zone_effect": "list<float64>",  # by zone and fill
    "own_share": "list<float64>",  # by basic color
    "own_effect": "list<float64>",  # by basic color and fill
    "outer": "string",  # the zone that was painted over as a whole
    "outer_after": "list<float64>",  # score then: by fill, in its own mean color, untouched
    "outer_said": "list<int64>",  # predicted then
    "outer_region": "binary",  # a bit for each place of the raster
    "flip": "string",
    "flip_share": "float64",
    "flip_to": "int64",
    "flip_sentence": "string",
    "righted": "string",
    "righted_sentence": "string",
    "n_masks": "int64",
    "n_calls": "int64",
    "notes": "list<string>",
    "pixels": "binary",  # the image on the raster: rows, columns, red green and blue
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
    "values": "list<float32>",  # by fill, row and column of the raster
    "errors": "list<float32>",
    "ranks": "list<float32>",  # values of maps of ranks; of the class only
}
ATTEMPTS = {
    "image": "int64",
    "key": "string",
    "before": "float64",
    "after": "float64",
    "predicted": "int64",
    "was": "int64",
    "controls": "list<float64>",
}
FAILED = {"image": "int64", "name": "string", "error": "string"}

TABLES = {"images": IMAGES, "findings": FINDINGS, "maps": MAPS, "attempts": ATTEMPTS}

Row = dict[str, Any]


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
        raise InputError(
            f"The audit in {folder.path} has format {form} (of mcrise {note.get('mcrise')}), but "
            f"this mcrise reads format {FORMAT}: update mcrise, or audit again."
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


def read_parquet(file: Storage, kinds: dict[str, str], columns: Sequence[str] | None = None) -> Any:
    """Some columns of a file, once they are known to be of the right kinds and not too long."""
    opened = open_parquet(file)
    about = opened.metadata
    n_bytes = sum(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
    if about.num_rows > MOST_ROWS or n_bytes > MOST_BYTES:
        raise ValueError(f"{file.name} has {about.num_rows:,} rows of {n_bytes:,} bytes")
    for name in columns or kinds:
        found = opened.schema_arrow.field(name).type
        if found != arrow_type(kinds[name]):
            raise ValueError(f"{name} of {file.name} is {found}")
    return opened.read(list(columns or kinds), use_threads=False)


def read_class(folder: Storage, target: int) -> ClassData:
    """The images of one class."""
    info = read_asked(folder)
    columns = [name for name in IMAGES if name != "thumbnail"]
    rows = read_parts(folder, "images", target, columns)
    if rows is None:
        raise InputError(
            f"The audit in {folder.path} has no images of {info.label(target)!r}: there are "
            f"{len(class_numbers(folder))} other classes."
        )
    with reporting_damage(folder):
        return looks_of(rows, read_parts(folder, "maps", target), target, info)


def looks_of(rows: Any, maps: Any, target: int, info: AuditInfo) -> ClassData:
    import pyarrow.compute as pc

    maps = maps.filter(pc.equal(maps["target"], target))
    n, n_fills, size = len(rows), len(info.fills), info.raster
    if info.labels and target >= len(info.labels):
        raise ValueError(f"class {target} of {len(info.labels)}")
    if len(rows["image"].unique()) < n:
        raise ValueError(f"an image of class {target} is there twice")
    first: dict[str, int] = {}  # image of each group
    groups = [
        image if group is None else first.setdefault(group, image)
        for image, group in zip(rows["image"].to_pylist(), rows["group"].to_pylist(), strict=True)
    ]
    per_fill = (n_fills, size, size)
    bits = np.frombuffer(b"".join(rows["outer_region"].to_pylist()), np.uint8).reshape(n, -1)

    def ints(name: str) -> IntArray:
        return np.array([-1 if v is None else v for v in rows[name].to_pylist()], np.int64)

    def floats(name: str, *shape: int, of: Any = rows) -> FloatArray:
        column = of[name].combine_chunks()
        flat = column.flatten() if shape else column
        return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(n, *shape)

    return ClassData(
        target=target,
        image=ints("image"),
        names=tuple(rows["name"].to_pylist()),
        group=np.array(groups, np.int64),
        truth=ints("truth"),
        predicted=ints("predicted"),
        score=floats("score"),
        maps=floats("values", *per_fill, of=maps),
        errors=floats("errors", *per_fill, of=maps),
        presence=floats("presence"),
        color=floats("color"),
        zone_energy=floats("zone_energy", len(info.zones)),
        zone_effect=floats("zone_effect", len(info.zones), n_fills),
        own_share=floats("own_share", len(info.basics)),
        own_effect=floats("own_effect", len(info.basics), n_fills),
        gray=ints("gray"),
        hue120=ints("hue120"),
        hue240=ints("hue240"),
        flip=tuple(rows["flip"].to_pylist()),
        righted=tuple(rows["righted"].to_pylist()),
        ranks=floats("ranks", *per_fill, of=maps),
        pixels=np.frombuffer(b"".join(rows["pixels"].to_pylist()), np.uint8).reshape(
            n, size, size, 3
        ),
        outer=tuple(rows["outer"].to_pylist()),
        outer_after=floats("outer_after", n_fills + 2),
        outer_said=np.array(rows["outer_said"].to_pylist(), np.int64).reshape(n, n_fills + 2),
        outer_region=np.unpackbits(bits, axis=1, count=size**2).astype(bool).reshape(n, size, size),
    )


def read_classes(folder: Storage) -> Iterator[ClassData]:
    """All classes in order, one at a time."""
    for target in class_numbers(folder):
        yield read_class(folder, target)


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


# ---- writing


def parquet(rows: Sequence[Row], columns: dict[str, str]) -> bytes:
    """Rows as the bytes of a file; the same for the same rows."""
    import pyarrow
    from pyarrow.parquet import write_table

    schema = pyarrow.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
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


def arrow_type(kind: str) -> Any:
    import pyarrow

    if kind.startswith("list<"):
        return pyarrow.list_(arrow_type(kind[5:-1]))
    return getattr(pyarrow, kind)()


def in_parts(rows: Iterable[Any], size: int = PART) -> Iterator[list[Any]]:
    part: list[Any] = []
    for row in rows:
        part.append(row)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part
