"""The file an explanation is kept in, `run.npz`: arrays without pickles.

The array `meta` is JSON that describes the others. Later versions add entries to it, rename some
(`RENAMED`) and read files without them, so that an old file opens for years.
"""

import io
import json
import math
import os
import platform
import stat
import time
import zipfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import fills
from ._util import validation
from ._util.files import replacing
from ._version import VERSION
from .errors import ExplanationError, InputError, ModelError, PluginError
from .explanation import (
    MOST_BYTES,
    Explanation,
    StoredRepaint,
    StoredStroke,
    TrialLog,
    TrialNote,
    unpack_region,
)
from .images import MOST_PIXELS, View, array_pixels
from .masks import CHUNK, MOST_CELLS, Plan, draw
from .models.provenance import Origin
from .models.scores import LARGEST, QUANTISED, check_kind, check_scores

FORMAT = 1  # of the file; raised when an older mcrise could misread a newer file
RENAMED = {  # what earlier versions wrote, by where it stands, and what it is called now
    "meta": {"verdict": "stop_reason"},
    "settings": {"scores": "score_kind"},  # of the model
}
CHECKPOINT_SECONDS = 10.0


def write_explanation(explanation: Explanation, path: Path) -> None:
    """Whoever reads `path` meanwhile sees the old file or the new, whole."""
    write_arrays(path, arrays_of(explanation))


def explanation_bytes(explanation: Explanation) -> bytes:
    """What `write_explanation` writes."""
    out = io.BytesIO()
    np.savez(out, **arrays_of(explanation))  # type: ignore[arg-type]
    return out.getvalue()


def arrays_of(explanation: Explanation) -> dict[str, NDArray[Any]]:
    explanation.check_room()  # what is written can be read
    chunks = explanation.chunks
    scores = [explanation.scores[chunk] for chunk in chunks]
    answers = dict(explanation.answers)  # once: another thread may be adding to them
    about_trials, trial_arrays = stored_trials(explanation, answers)
    about = {**meta(explanation, list(answers)), **about_trials}
    arrays = {
        "meta": np.frombuffer(json.dumps(about).encode(), np.uint8),
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
    return arrays | trial_arrays


def stored_trials(
    explanation: Explanation, answers: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What was painted for the answers and why: entries of `meta`, and arrays beside it."""
    regions: dict[bytes, int] = {}  # each once: a place is painted with many colors
    pixels: list[NDArray[np.uint8]] = []

    def stroke(one: StoredStroke) -> dict[str, Any]:
        if one.pixels is not None:
            pixels.append(one.pixels)
        return {
            "region": regions.setdefault(one.region, len(regions)),
            "fill": dict(one.fill),
            "place": one.place,
            "n_pixels": None if one.pixels is None else len(one.pixels),
        }

    known = {digest: one for digest, one in dict(explanation.repaints).items() if digest in answers}
    if not known:
        return {}, {}
    repaints = [
        {"digest": digest, "soft": one.soft, "take": one.take,
         "strokes": [stroke(part) for part in one.strokes]}
        for digest, one in known.items()
    ]  # fmt: skip
    logs = [
        {"target": target, "budget": log.budget, "n_masks": log.n_masks, "wanted": log.wanted,
         "finished": log.finished, "n_earlier": log.n_earlier,
         "notes": [list(note) for note in list(log.notes) if note.digest in known]}
        for target, log in dict(explanation.trial_logs).items()
    ]  # fmt: skip
    arrays: dict[str, NDArray[Any]] = {
        "regions": np.frombuffer(b"".join(regions), np.uint8),
        "region_bytes": np.array([len(one) for one in regions], np.int64),
        "repaint_pixels": np.concatenate([np.empty((0, 3), np.uint8), *pixels]),
    }
    return {"repaints": repaints, "trials": logs}, arrays


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
        "stop_reason": explanation.stop_reason,
        "choice": explanation.choice,
        "assumed": list(explanation.assumed),
        "jitter": explanation.jitter,
        # However often it was stopped, the file of a run is the same.
        "n_checks": explanation.n_checks - explanation.n_rechecks,
        "answers": digests,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of what a file is written with now."""
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
    """Read a saved explanation; refuses files that are damaged, foreign or of a newer mcrise."""
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
    except PluginError:  # nothing is wrong with the run
        raise
    except Exception:  # a damaged file fails in as many ways as there are libraries below
        raise ExplanationError(f"{path} is not a run of mcrise, or it is damaged") from None


def read_file(path: Path) -> bytes:
    """The bytes of a file, once it is known that it is one, and how long."""
    about = os.stat(path)  # before it is opened: a pipe would wait for whoever writes into it
    if not stat.S_ISREG(about.st_mode):
        raise ExplanationError("is no file", "give a run.npz or the folder it is in")
    if about.st_size > MOST_BYTES:
        raise ExplanationError("has more than 4 GB, so it is not a run of mcrise")
    with path.open("rb") as file:
        return file.read(about.st_size)


def read_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` file, which take no more memory than the file itself has bytes."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if packed or sum(member.file_size for member in members) > len(content):
            raise ExplanationError("is compressed, which no run of mcrise is")
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
    meta = renamed("meta", json.loads(arrays["meta"].tobytes()))
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
        stop_reason=validation.text(meta.get("stop_reason", "")),
        jitter=None if jitter is None else validation.number(jitter, low=0, high=2 * LARGEST),
        choice=validation.text(meta.get("choice", "")),
        assumed=validation.texts(meta.get("assumed", [])),
        n_checks=validation.whole(meta.get("n_checks", 1), 0, 2**53),
        versions={
            validation.text(name): validation.text(number)
            for name, number in validation.table(meta.get("versions", {})).items()
        },
    )
    add_chunks(explanation, arrays)
    if "pilot_scores" in arrays:
        add_pilot(explanation, arrays)
    if digests := validation.texts(meta.get("answers", [])):
        answers = check_scores_of(kind, arrays["answers"], len(digests), explanation.n_classes)
        explanation.answers = dict(zip(digests, answers, strict=True))
    if "repaints" in meta:
        add_trials(explanation, meta, arrays)
    return explanation


def renamed(where: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of a file by the names they have now."""
    return {RENAMED[where].get(name, name): value for name, value in content.items()}


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
    settings = renamed("settings", said)
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


def add_trials(
    explanation: Explanation, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Take what was painted for the answers, and why."""
    regions = parse_regions(explanation, arrays)
    pixels, used = arrays["repaint_pixels"], 0
    if pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != 3:
        raise ExplanationError("is damaged (its repaints have no pixels)")

    def stroke(data: Mapping[str, Any]) -> StoredStroke:
        nonlocal used
        region, area = regions[validation.whole(data["region"], 0, len(regions) - 1)]
        place, some = validation.text(data["place"]), None
        fill = validation.table(data["fill"])
        if "plan" in fill:
            validation.whole(fill["plan"], 0, len(explanation.plan.fills) - 1)
        elif data["n_pixels"] is None:
            fills.from_json(dict(fill), None)  # or it is damaged
        else:
            validation.text(fill["label"])
            used += validation.whole(data["n_pixels"], area, area)
            some = pixels[used - area : used]
        return StoredStroke(region, fill, place, some)

    for data in meta["repaints"]:
        digest = validation.text(data["digest"])
        strokes = tuple(map(stroke, data["strokes"]))
        take = validation.whole(data["take"], 0, validation.MOST)  # the image as it is, asked again
        painted = strokes or take
        if not painted or digest not in explanation.answers or not isinstance(data["soft"], bool):
            raise ExplanationError("is damaged (its repaints are none)")
        explanation.repaints[digest] = StoredRepaint(strokes, data["soft"], take)
    if used != len(pixels):
        raise ExplanationError("is damaged (its repaints have other pixels)")
    last = explanation.n_classes - 1
    for data in meta["trials"]:
        wanted, notes = data["wanted"], [TrialNote(*validation.texts(n)) for n in data["notes"]]
        if {note.digest for note in notes} - explanation.repaints.keys():
            raise ExplanationError("is damaged (its trials are of other repaints)")
        explanation.trial_logs[validation.whole(data["target"], 0, last)] = TrialLog(
            validation.whole(data["budget"], 1, validation.MOST),
            validation.whole(data["n_masks"], 0, 2**53),
            None if wanted is None else validation.whole(wanted, 0, last),
            data["finished"] is True,
            notes,
            validation.whole(data.get("n_earlier", 0), 0, len(notes)),
        )


def parse_regions(
    explanation: Explanation, arrays: Mapping[str, NDArray[Any]]
) -> list[tuple[bytes, int]]:
    """The regions of a file, packed, and how many pixels each has."""
    lengths, content = whole_numbers(arrays["region_bytes"]), arrays["regions"]
    size = explanation.plan.size
    if len(lengths) > validation.MOST or len(lengths) * math.prod(size) // 8 > MOST_BYTES:
        raise ExplanationError("is damaged (it has too many regions)")
    if content.dtype != np.uint8 or (lengths < 1).any() or int(lengths.sum()) != len(content):
        raise ExplanationError("is damaged (its regions have another length)")
    found = [one.tobytes() for one in np.split(content, np.cumsum(lengths)[:-1])]
    areas = [int(unpack_region(one, size).sum()) for one in found]
    if not all(areas):
        raise ExplanationError("is damaged (a region is empty)")
    return list(zip(found, areas, strict=True))


def whole_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """A list of whole numbers of a file."""
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise ExplanationError("is damaged (its chunks are not numbers)")
    return values


def chunks_of(explanation: Explanation, scores: NDArray[Any], n_chunks: int) -> NDArray[np.float32]:
    """The scores (n, 64, C) of the chunks of a run."""
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
            check_scores(kind, scores, QUANTISED)
    except ModelError as error:
        raise ExplanationError(f"is damaged ({error})") from None
    return scores


# ---- a run that is kept while it goes on


@dataclass(frozen=True)
class RunFile:
    """The file of a run: what is there is continued, and what is new is saved as it comes."""

    path: Path
    remedy: str = "start a new one in another place"  # where another run is there
    seconds: float = CHECKPOINT_SECONDS  # between two saves

    def earlier(self) -> Explanation | None:
        """The explanation that is there, if there is one."""
        if not os.path.exists(self.path):
            return None
        try:
            return load(self.path)
        except ExplanationError as error:
            raise ExplanationError(error.problem, self.remedy) from None

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Say of another run that is there which it is, and what to do."""
        try:
            yield
        except ExplanationError as error:
            said = error.problem
            problem = said if said.startswith(str(self.path)) else f"{self.path}: {said}"
            raise ExplanationError(problem, self.remedy) from None

    def keep(self, run: Iterator[Explanation]) -> Generator[Explanation, None, None]:
        """Pass a run on, saving it every few seconds, at the end and when it is cut short."""
        explanation, saved_at, saved = None, time.monotonic(), None
        try:
            with self.refusing():
                for explanation in run:
                    if time.monotonic() - saved_at >= self.seconds:
                        saved = state_of(explanation)
                        explanation.save(self.path)
                        saved_at = time.monotonic()
                    yield explanation
        except ModelError as error:
            known = error.explanation
            if known is None or not known.n_masks:
                raise
            tried = f" and {len(known.answers):,} trials" if known.answers else ""
            raise ModelError(
                f"{error} The {known.n_masks:,} masks{tried} before it are saved in {self.path}; "
                "the same command goes on from there.",
                known,
            ) from error
        finally:  # also on Ctrl-C, when the model fails, and when the caller stops listening
            if explanation is not None and state_of(explanation) != saved:
                explanation.save(self.path)


def state_of(explanation: Explanation) -> tuple[Any, ...]:
    """What changes when there is something to save."""
    logs = explanation.trial_logs
    trials = tuple((target, len(log.notes), log.finished) for target, log in logs.items())
    return explanation.n_masks, len(explanation.answers), trials, explanation.stop_reason
