"""Archive: the file a record is kept in, `.npz` without pickles.

What the file says of itself is JSON in the array `meta`. Later versions add entries to it and read
files without them, so that an old file opens for years.
"""

import io
import json
import platform
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import fills
from .errors import InputError, PluginError, RecordError
from .files import replacing
from .images import View
from .masks import CHUNK, Plan, draw
from .origin import Origin
from .record import Record
from .version import VERSION

FORMAT = 1  # of the file; raised when an older mcrise could misread a newer file
MOST_BYTES = 4 * 2**30  # of a file, unpacked


def write_record(record: Record, path: Path) -> None:
    """Whoever reads `path` meanwhile sees the old file or the new, whole."""
    chunks = record.chunks
    scores = [record.scores[chunk] for chunk in chunks]
    arrays = {
        "meta": np.frombuffer(json.dumps(meta(record)).encode(), np.uint8),
        "image": record.view.pixels,
        "untouched": record.untouched,
        "chunks": np.array(chunks, np.int64),
        "checksums": np.array([draw(record.plan, c).checksum() for c in chunks], np.uint32),
        "scores": np.stack(scores) if scores else np.empty((0, CHUNK, record.n_classes), "f4"),
    }
    if record.answers:
        arrays["answers"] = np.stack(list(record.answers.values()))
    for k, fill in enumerate(record.plan.fills):
        if fill.array is not None:
            arrays[f"fill_{k}"] = fill.array
    if record.pilot:
        arrays["pilot_mask_probs"] = np.array(list(record.pilot), np.float64)
        arrays["pilot_scores"] = np.stack(list(record.pilot.values()))
    write_arrays(path, arrays)


def meta(record: Record) -> dict[str, Any]:
    return {
        "mcrise_format": FORMAT,
        "plan": record.plan.to_json(),
        "original_size": list(record.view.original_size),
        "box": list(record.view.box),
        "view_notes": list(record.view.notes),
        "image_name": record.view.name,
        "labels": record.labels,
        "kind": record.kind,
        "batch_size": record.batch_size,
        "model": record.model,
        "origin": record.origin.to_json(),
        "verdict": record.verdict,
        "choice": record.choice,
        "jitter": record.jitter,
        "answers": list(record.answers),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    return {"mcrise": VERSION, "numpy": np.__version__, "python": platform.python_version()}


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    try:
        with replacing(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): choose another place."
        ) from None


def load(path: Path | str) -> Record:
    """Read a saved record; refuses files that are damaged, foreign or from a newer mcrise."""
    path = Path(path)
    path = path / "run.npz" if path.is_dir() else path
    try:
        return parse_record(path.read_bytes())
    except FileNotFoundError:
        raise RecordError(
            f"{path} does not exist", "give a run.npz or the folder it is in"
        ) from None
    except RecordError as error:
        raise RecordError(f"{path} {error.problem}", error.remedy) from None
    except PluginError:  # nothing is wrong with the record
        raise
    except (LookupError, ValueError, TypeError, OSError, MemoryError, EOFError, InputError,
            NotImplementedError, zipfile.BadZipFile, zlib.error):  # fmt: skip
        raise RecordError(f"{path} is not a record of mcrise, or it is damaged") from None


def parse_record(content: bytes) -> Record:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
            raise RecordError("unpacks to more than 4 GB, so it is not a record of mcrise")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        meta = json.loads(arrays["meta"].tobytes())
        if meta["mcrise_format"] != FORMAT:
            raise RecordError(
                f"has format {meta['mcrise_format']}, but this mcrise reads format {FORMAT}"
            )
        plan = parse_plan(meta["plan"], arrays)
        view = View(
            arrays["image"],
            pair(meta["original_size"]),
            box(meta["box"]),
            tuple(meta["view_notes"]),
            str(meta.get("image_name", "")),
        )
        if view.pixels.shape != (*plan.size, 3):
            raise RecordError("is damaged (its image has another size than its plan)")
        record = Record(
            plan,
            view,
            arrays["untouched"],
            labels=None if meta["labels"] is None else tuple(meta["labels"]),
            kind=meta["kind"],
            batch_size=int(meta["batch_size"]),
            model=meta["model"],
            origin=Origin(**meta.get("origin", {})),
            verdict=meta["verdict"],
            jitter=meta.get("jitter"),
            choice=str(meta.get("choice", "")),
        )
        add_chunks(record, arrays)
        if "pilot_scores" in arrays:
            add_pilot(record, arrays)
        if digests := meta.get("answers"):
            record.answers = read_answers(digests, arrays["answers"], record.n_classes)
    return record


def parse_plan(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Plan:
    return Plan(
        size=pair(data["size"]),
        fills=tuple(
            fills.from_json(fill, arrays.get(f"fill_{k}")) for k, fill in enumerate(data["fills"])
        ),
        grid=pair(data["grid"]),
        mask_prob=data["mask_prob"],
        seed=data["seed"],
    )


def add_chunks(record: Record, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Take the scores of a file, if they are of the masks that this mcrise draws."""
    scores = check_numbers(record, arrays["scores"])
    rows = zip(arrays["chunks"], arrays["checksums"], scores, strict=True)
    for chunk, checksum, chunk_scores in rows:
        if draw(record.plan, int(chunk)).checksum() != checksum:
            raise RecordError(f"was made with other masks in chunk {chunk} than this mcrise draws")
        record.add(int(chunk), chunk_scores)


def add_pilot(record: Record, arrays: Mapping[str, NDArray[Any]]) -> None:
    scores = check_numbers(record, arrays["pilot_scores"])
    for mask_prob, some in zip(arrays["pilot_mask_probs"], scores, strict=True):
        record.pilot[float(mask_prob)] = some.astype(np.float32)


def check_numbers(record: Record, scores: NDArray[Any]) -> NDArray[Any]:
    """Scores (n, 64, C) of a file, if they can be any of that record."""
    if scores.shape[1:] != (CHUNK, record.n_classes) or not np.isfinite(scores).all():
        raise RecordError("is damaged (its scores have the wrong shape or are not numbers)")
    return scores


def read_answers(
    digests: list[Any], answers: NDArray[Any], n_classes: int
) -> dict[str, NDArray[np.float32]]:
    """What the model said of repaints, by their digests."""
    if answers.shape != (len(digests), n_classes) or not np.isfinite(answers).all():
        raise RecordError("is damaged (its answers have the wrong shape or are not numbers)")
    rows = zip(digests, answers.astype(np.float32), strict=True)
    return {str(digest): scores for digest, scores in rows}


def pair(values: list[int]) -> tuple[int, int]:
    first, second = values
    return int(first), int(second)


def box(values: list[float]) -> tuple[float, float, float, float]:
    top, left, bottom, right = values
    return float(top), float(left), float(bottom), float(right)
