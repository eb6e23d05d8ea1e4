"""Archive: the file a record is kept in, `.npz` without pickles.

What the file says of itself is JSON in the array `meta`. Later versions add entries to it and read
files without them, so that an old file opens for years.
"""

import io
import json
import math
import os
import platform
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import fills
from ._util import validation
from ._util.files import replacing
from ._version import VERSION
from .errors import ExplanationError, InputError, ModelError, PluginError
from .explanation import MOST_BYTES, Explanation
from .images import MOST_PIXELS, View, array_pixels
from .masks import CHUNK, MOST_CELLS, Plan, draw
from .models.provenance import RENAMED as RENAMED_SETTINGS
from .models.provenance import Origin
from .models.scores import LARGEST, check_kind, check_scores

FORMAT = 1  # of the file; raised when an older mcrise could misread a newer file


def write_explanation(explanation: Explanation, path: Path) -> None:
    """Whoever reads `path` meanwhile sees the old file or the new, whole."""
    write_arrays(path, arrays_of(explanation))


def explanation_bytes(explanation: Explanation) -> bytes:
    """What `write_record` writes."""
    out = io.BytesIO()
    np.savez(out, **arrays_of(explanation))  # type: ignore[arg-type]
    return out.getvalue()


def arrays_of(explanation: Explanation) -> dict[str, NDArray[Any]]:
    chunks = explanation.chunks
    scores = [explanation.scores[chunk] for chunk in chunks]
    answers = dict(explanation.answers)  # once: another thread may be adding to them
    arrays = {
        "meta": np.frombuffer(json.dumps(meta(explanation, list(answers))).encode(), np.uint8),
        "image": explanation.view.pixels,
        "untouched": explanation.untouched,
        "chunks": np.array(chunks, np.int64),
        "checksums": np.array([draw(explanation.plan, c).checksum() for c in chunks], np.uint32),
        "scores": np.stack(scores) if scores else np.empty((0, CHUNK, explanation.n_classes), "f4"),
    }
    if answers:
        arrays["answers"] = np.stack(list(answers.values()))
    for k, fill in enumerate(explanation.plan.fills):
        if fill.array is not None:
            arrays[f"fill_{k}"] = fill.array
    if explanation.pilot:
        arrays["pilot_mask_probs"] = np.array(list(explanation.pilot), np.float64)
        arrays["pilot_scores"] = np.stack(list(explanation.pilot.values()))
    return arrays


def meta(explanation: Explanation, digests: list[str]) -> dict[str, Any]:
    return {
        "mcrise_format": FORMAT,
        "plan": explanation.plan.to_json(),
        "original_size": list(explanation.view.original_size),
        "box": list(explanation.view.box),
        "view_notes": list(explanation.view.notes),
        "image_name": explanation.view.name,
        "labels": explanation.labels,
        "kind": explanation.kind,
        "batch_size": explanation.batch_size,
        "model": explanation.model,
        "origin": explanation.origin.to_json(),
        "verdict": explanation.verdict,
        "choice": explanation.choice,
        "jitter": explanation.jitter,
        "answers": digests,
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


def load(path: Path | str) -> Explanation:
    """Read a saved record; refuses files that are damaged, foreign or from a newer mcrise."""
    path = Path(path)
    path = path / "run.npz" if os.path.isdir(path) else path
    try:
        return parse_explanation(read_file(path))
    except FileNotFoundError:
        raise ExplanationError(
            f"{path} does not exist", "give a run.npz or the folder it is in"
        ) from None
    except OSError as error:
        raise ExplanationError(
            f"{path} cannot be read ({error.strerror or error})",
            "give a run.npz or the folder it is in",
        ) from None
    except ExplanationError as error:
        raise ExplanationError(f"{path} {error.problem}", error.remedy) from None
    except PluginError:  # nothing is wrong with the record
        raise
    except Exception:  # a damaged file fails in as many ways as there are libraries below
        raise ExplanationError(f"{path} is not a record of mcrise, or it is damaged") from None


def read_file(path: Path) -> bytes:
    """The bytes of a file, once it is known that it is one, and how long."""
    about = os.stat(path)  # before it is opened: a pipe would wait for whoever writes into it
    if not stat.S_ISREG(about.st_mode):
        raise ExplanationError("is no file", "give a run.npz or the folder it is in")
    if about.st_size > MOST_BYTES:
        raise ExplanationError("has more than 4 GB, so it is not a record of mcrise")
    with path.open("rb") as file:
        return file.read(about.st_size)


def read_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` file, which take no more memory than the file itself has bytes."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if packed or sum(member.file_size for member in members) > len(content):
            raise ExplanationError("is compressed, which no record of mcrise is")
        for member in members:
            arrays[member.filename.removesuffix(".npy")] = read_array(archive.read(member))
    return arrays


def read_array(content: bytes) -> NDArray[Any]:
    """An array of an `.npy` file; no objects, which could run code."""
    file = io.BytesIO(content)
    header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[np.lib.format.read_magic(file)]
    shape, by_columns, dtype = header(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError("the array is not as long as its header says")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if by_columns else "C").copy()


def parse_explanation(content: bytes) -> Explanation:
    arrays = read_arrays(content)
    meta = json.loads(arrays["meta"].tobytes())
    if meta["mcrise_format"] != FORMAT:
        raise ExplanationError(
            f"has format {meta['mcrise_format']!r:.60}, but this mcrise reads format {FORMAT}"
        )
    plan = parse_plan(meta["plan"], arrays)
    if arrays["image"].shape != (*plan.size, 3):
        raise ExplanationError("is damaged (its image has another size than its plan)")
    top, left, bottom, right = validation.numbers(meta["box"], 4)
    view = View(
        check_image(arrays["image"]),
        validation.pair(meta["original_size"], MOST_PIXELS),
        (top, left, bottom, right),
        validation.texts(meta["view_notes"]),
        validation.text(meta.get("image_name", "")),
    )
    kind, jitter = validation.text(meta["kind"]), meta.get("jitter")
    check_kind(kind)
    explanation = Explanation(
        plan,
        view,
        check_scores_of(kind, arrays["untouched"][None], 1)[0],
        labels=None if meta["labels"] is None else validation.texts(meta["labels"]),
        kind=kind,
        batch_size=validation.whole(meta["batch_size"], 1, CHUNK),
        model=validation.text(meta["model"]),
        origin=parse_origin(meta.get("origin", {})),
        verdict=validation.text(meta.get("verdict", "")),
        jitter=None if jitter is None else validation.number(jitter, low=0, high=2 * LARGEST),
        choice=validation.text(meta.get("choice", "")),
    )
    add_chunks(explanation, arrays)
    if "pilot_scores" in arrays:
        add_pilot(explanation, arrays)
    if digests := validation.texts(meta.get("answers", [])):
        answers = check_scores_of(kind, arrays["answers"], len(digests), explanation.n_classes)
        explanation.answers = dict(zip(digests, answers, strict=True))
    return explanation


def parse_plan(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Plan:
    return Plan(
        size=validation.pair(data["size"], MOST_PIXELS),
        fills=tuple(
            fills.from_json(validation.table(fill), arrays.get(f"fill_{k}"))
            for k, fill in enumerate(data["fills"])
        ),
        grid=validation.pair(data["grid"], MOST_CELLS),
        mask_prob=validation.number(data["mask_prob"], 0, 1),
        seed=validation.whole(data["seed"], 0, 2**64 - 1),
    )


def parse_origin(data: Mapping[str, Any]) -> Origin:
    said = validation.table(data.get("settings", {}))
    settings = {RENAMED_SETTINGS.get(name, name): value for name, value in said.items()}
    return Origin(
        validation.text(data.get("name", "")), validation.text(data.get("digest", "")), settings
    )


def check_image(pixels: NDArray[Any]) -> NDArray[Any]:
    """Pixels (H, W, 3) of a file, if they can be any of a view."""
    if pixels.dtype not in (np.uint8, np.float32) or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise ExplanationError("is damaged (its image is none)")
    return array_pixels(pixels)[0]


def add_chunks(explanation: Explanation, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Take the scores of a file, if they are of the masks that this mcrise draws."""
    chunks = [int(chunk) for chunk in whole_numbers(arrays["chunks"])]
    checksums = [int(checksum) for checksum in whole_numbers(arrays["checksums"])]
    if len(set(chunks)) < len(chunks) or min(chunks, default=0) < 0:
        raise ExplanationError("is damaged (its chunks are numbered wrong)")
    scores = chunks_of(explanation, arrays["scores"], len(chunks))
    for chunk, checksum, some in zip(chunks, checksums, scores, strict=True):
        if draw(explanation.plan, chunk).checksum() != checksum:
            raise ExplanationError(
                f"was made with other masks in chunk {chunk} than this mcrise draws"
            )
        explanation.add(chunk, some)


def add_pilot(explanation: Explanation, arrays: Mapping[str, NDArray[Any]]) -> None:
    mask_probs = [validation.number(float(one), 0, 1) for one in arrays["pilot_mask_probs"]]
    scores = chunks_of(explanation, arrays["pilot_scores"], len(mask_probs))
    explanation.pilot = dict(zip(mask_probs, scores, strict=True))


def whole_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """A list of whole numbers of a file."""
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise ExplanationError("is damaged (its chunks are not numbers)")
    return values


def chunks_of(explanation: Explanation, scores: NDArray[Any], n_chunks: int) -> NDArray[np.float32]:
    """The scores (n, 64, C) of the chunks of a record."""
    if scores.shape != (n_chunks, CHUNK, explanation.n_classes):
        raise ExplanationError("is damaged (its scores have the wrong shape or are not numbers)")
    flat = scores.reshape(n_chunks * CHUNK, explanation.n_classes)
    return check_scores_of(explanation.kind, flat, len(flat)).reshape(scores.shape)


def check_scores_of(
    kind: str, scores: NDArray[Any], n: int, n_classes: int | None = None
) -> NDArray[np.float32]:
    """Scores (n, C) of a file, if they can be any of that kind."""
    if (
        scores.dtype != np.float32
        or scores.ndim != 2
        or scores.shape != (n, n_classes or scores.shape[1])
        or not scores.shape[1]
        or not np.isfinite(scores).all()
    ):
        raise ExplanationError("is damaged (its scores have the wrong shape or are not numbers)")
    try:
        if len(scores):
            check_scores(kind, scores)
    except ModelError as error:
        raise ExplanationError(f"is damaged ({error})") from None
    return scores
