"""Record: the plan of a run and the scores it has so far. Everything else follows from these.

Every map of every class, by every estimator, every standard error, every resume and every merge
of work done on several machines is computed from the record without calling the model again.
"""

import difflib
import io
import json
import os
import platform
import secrets
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import fills
from .diagnostics import diagnose
from .errors import InputError, RecordError
from .estimate import FORMULAS, estimate
from .images import View
from .maps import Maps
from .masks import CHUNK, Masks, Plan, draw
from .smooth import Fit, fit
from .version import VERSION

FORMAT = 1  # of the file; raised when an older mcrise could misread a newer file
MOST_CLASSES = 10_000
MOST_BYTES = 4 * 2**30  # of a file, unpacked
KINDS = {  # of score, and how a colorbar names a change of it
    "probability": "probability",
    "independent": "probability",
    "similarity": "similarity",
    "any": "score",
}
ESTIMATORS = (*FORMULAS, "smooth")
DEFAULT = "smooth"  # of these: docs/results.md says why


@dataclass(eq=False)
class Record:
    """What is known of one image under one model; grows by `add`."""

    plan: Plan
    view: View
    untouched: NDArray[np.float32]  # (C,) scores of the image as it is
    labels: tuple[str, ...] | None = None
    kind: str = "probability"
    batch_size: int = 32  # runtimes round differently for different batches
    model: str = ""  # the model's identity
    scores: dict[int, NDArray[np.float32]] = field(default_factory=dict)  # chunk -> (64, C)
    goal: int = 0  # masks it is being grown to, as far as is known
    verdict: str = ""  # why an automatic run stopped
    latest_fit: Fit | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.untouched) > MOST_CLASSES:
            raise InputError(
                f"The model gives {len(self.untouched):,} scores per image, but a record keeps at "
                f"most {MOST_CLASSES:,}: wrap the model so that it returns those you ask about."
            )
        if self.kind not in KINDS:
            raise InputError(
                f"The kind of score is {self.kind!r}, but it must be one of {', '.join(KINDS)}."
            )
        if self.labels is not None and len(self.labels) != len(self.untouched):
            raise InputError(
                f"There are {len(self.labels)} labels, but the model gives {len(self.untouched)} "
                "scores per image: give one label per score, in order."
            )

    # ---- what it holds

    @property
    def chunks(self) -> tuple[int, ...]:
        """The chunks it has, in order."""
        return tuple(sorted(self.scores))

    @property
    def n_masks(self) -> int:
        return CHUNK * len(self.scores)

    @property
    def n_classes(self) -> int:
        return len(self.untouched)

    def masks(self) -> Masks:
        """The masks of its chunks, drawn again."""
        drawn = [draw(self.plan, chunk) for chunk in self.chunks]
        return Masks(
            np.concatenate([masks.cells for masks in drawn]),
            np.concatenate([masks.shifts for masks in drawn]),
        )

    def scores_of(self, target: int) -> NDArray[np.float64]:
        """The score of one class under each mask, in the order of `masks`: (N,)."""
        columns = [self.scores[chunk][:, target] for chunk in self.chunks]
        return np.concatenate(columns).astype(np.float64)

    def label(self, target: int) -> str:
        return self.labels[target] if self.labels else f"class {target}"

    def add(self, chunk: int, scores: NDArray[Any]) -> None:
        """Take the scores (64, C) of a chunk; chunks may come in any order."""
        assert scores.shape == (CHUNK, self.n_classes), scores.shape
        self.scores[chunk] = np.asarray(scores, np.float32)
        self.latest_fit = None

    def first(self, n_masks: int) -> "Record":
        """The record as it was when it had its first `n_masks`."""
        chunks = range(n_masks // CHUNK)
        if self.chunks == tuple(chunks):
            return self
        return replace(self, scores={chunk: self.scores[chunk] for chunk in chunks})

    def resolve(self, target: int | str | None) -> int:
        """The index of a class given by index, by label, or None for the image's top class."""
        if target is None:
            return int(self.untouched.argmax())
        if isinstance(target, str) and self.labels:
            lowered = [label.lower() for label in self.labels]
            if target.lower() in lowered:
                return lowered.index(target.lower())
        try:
            index = int(target)
        except ValueError:
            raise InputError(self.unknown_target(str(target))) from None
        if not 0 <= index < self.n_classes:
            raise InputError(
                f"The target is {index}, but the model has classes 0 to {self.n_classes - 1}."
            )
        return index

    def unknown_target(self, target: str) -> str:
        if not self.labels:
            return (
                f"The target is {target!r}, but the model's classes have no names here: give an "
                f"index from 0 to {self.n_classes - 1}, or labels."
            )
        near = difflib.get_close_matches(target.lower(), [x.lower() for x in self.labels], n=1)
        asked = f" Did you mean {near[0]!r}?" if near else " Give one of the labels, or an index."
        return f"The target {target!r} is not a label of this model.{asked}"

    # ---- what follows from it

    def maps(self, target: int | str | None = None, estimator: str = DEFAULT) -> Maps:
        """Maps of one class: its index or label, or None for the image's top class."""
        if not self.scores:
            raise InputError("The record holds no scores yet: run it for at least one chunk.")
        if estimator not in ESTIMATORS:
            raise InputError(
                f"The estimator is {estimator!r}, but it must be one of {', '.join(ESTIMATORS)}."
            )
        index = self.resolve(target)
        scores = self.scores_of(index)
        fallback: tuple[str, ...] = ()
        if estimator == "smooth":
            values, se, fallback = self.fit().maps(index)
        else:
            values, se = estimate(self.plan, self.masks(), scores, estimator)
        change = KINDS[self.kind]
        maps = Maps(
            values=values,
            se=se,
            fills=() if estimator in ("rise", "debiased") else self.plan.fills,
            target=index,
            label=self.label(index),
            estimator=estimator,
            n_masks=self.n_masks,
            unit=change if estimator == "rise" else f"change of {change}",
            image=self.view.pixels,
        )
        notes = diagnose(
            self.plan,
            self.n_masks,
            float(self.untouched[index]),
            float(scores.mean()),
            float(scores.std()),
            maps.relative_error,
        )
        return replace(maps, notes=notes + fallback)

    def fit(self) -> Fit:
        """The regression behind `smooth`, made once for all classes and again when masks came."""
        if self.latest_fit is None:
            scores = np.concatenate([self.scores[chunk] for chunk in self.chunks])
            self.latest_fit = fit(self.plan, self.masks(), scores, self.kind)
        return self.latest_fit

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .report import record_html

        return record_html(self)

    # ---- comparing, saving, loading

    def differences(self, other: "Record") -> list[str]:
        """In what the two cannot be parts of the same run, in words."""
        ours, theirs = self.plan, other.plan
        return [
            what
            for what, same in {
                "image": np.array_equal(self.view.pixels, other.view.pixels),
                "image size": ours.size == theirs.size,
                "colors": ours.fills == theirs.fills,
                "grid": ours.grid == theirs.grid,
                "mask_prob": ours.mask_prob == theirs.mask_prob,
                "seed": ours.seed == theirs.seed,
                "model": self.model == other.model,
                "kind of score": self.kind == other.kind,
                "labels": self.labels == other.labels,
                "batch size": self.batch_size == other.batch_size,
            }.items()
            if not same
        ]

    def save(self, path: Path | str) -> None:
        """Write the record; whoever reads `path` meanwhile sees the old file or the new, whole."""
        path = Path(path)
        arrays = {
            "meta": np.frombuffer(json.dumps(self.meta()).encode(), np.uint8),
            "image": self.view.pixels,
            "untouched": self.untouched,
            "chunks": np.array(self.chunks, np.int64),
            "checksums": np.array([draw(self.plan, c).checksum() for c in self.chunks], np.uint32),
            "scores": stacked([self.scores[chunk] for chunk in self.chunks], self.n_classes),
        }
        for k, fill in enumerate(self.plan.fills):
            if isinstance(fill, fills.Picture):
                arrays[f"fill_{k}"] = fill.pixels
        write_atomically(path, arrays)

    def meta(self) -> dict[str, Any]:
        return {
            "mcrise_format": FORMAT,
            "plan": self.plan.to_json(),
            "original_size": list(self.view.original_size),
            "box": list(self.view.box),
            "view_notes": list(self.view.notes),
            "labels": self.labels,
            "kind": self.kind,
            "batch_size": self.batch_size,
            "model": self.model,
            "verdict": self.verdict,
            "versions": versions(),
        }


def stacked(scores: list[NDArray[np.float32]], n_classes: int) -> NDArray[np.float32]:
    return np.stack(scores) if scores else np.empty((0, CHUNK, n_classes), np.float32)


def versions() -> dict[str, str]:
    return {"mcrise": VERSION, "numpy": np.__version__, "python": platform.python_version()}


def write_atomically(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            with temporary.open("xb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
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
        raise RecordError(f"{path} {error.problem}") from None
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
        plan = Plan(
            size=pair(meta["plan"]["size"]),
            fills=tuple(
                fills.from_json(fill, arrays[f"fill_{k}"] if fill["kind"] == "picture" else None)
                for k, fill in enumerate(meta["plan"]["fills"])
            ),
            grid=pair(meta["plan"]["grid"]),
            mask_prob=meta["plan"]["mask_prob"],
            seed=meta["plan"]["seed"],
        )
        view = View(
            arrays["image"],
            pair(meta["original_size"]),
            box(meta["box"]),
            tuple(meta["view_notes"]),
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
            verdict=meta["verdict"],
        )
        scores = arrays["scores"]
        if scores.shape[1:] != (CHUNK, record.n_classes) or not np.isfinite(scores).all():
            raise RecordError("is damaged (its scores have the wrong shape or are not numbers)")
        rows = zip(arrays["chunks"], arrays["checksums"], scores, strict=True)
        for chunk, checksum, chunk_scores in rows:
            if draw(plan, int(chunk)).checksum() != checksum:
                raise RecordError(
                    f"was made with other masks in chunk {chunk} than this mcrise draws"
                )
            record.add(int(chunk), chunk_scores)
    return record


def pair(values: list[int]) -> tuple[int, int]:
    first, second = values
    return int(first), int(second)


def box(values: list[float]) -> tuple[float, float, float, float]:
    top, left, bottom, right = values
    return float(top), float(left), float(bottom), float(right)


def merge(records: Iterable[Record]) -> Record:
    """Put together parts of one run that were computed apart."""
    parts = list(records)
    if not parts:
        raise InputError("There is nothing to merge: give at least one record.")
    first = parts[0]
    whole = replace(first, scores={}, verdict="")
    for part in parts:
        if different := first.differences(part):
            raise RecordError(
                f"Records of different runs were given: they differ in {', '.join(different)}",
                "merge only parts of one run",
            )
        for chunk, scores in part.scores.items():
            if chunk in whole.scores and not np.array_equal(whole.scores[chunk], scores):
                raise RecordError(
                    f"Two records have different scores for the same masks (chunk {chunk})",
                    "find out why the model answers differently each time, or on each machine",
                )
            whole.add(chunk, scores)
    return whole
