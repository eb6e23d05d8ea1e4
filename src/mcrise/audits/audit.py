"""An audit: its images are handed out and measured, then what classes have in common is tried.

An image that is finished is written down at once, so that an audit killed at any moment goes on
where it was. First every image is measured by itself. What then stands out in the mean maps of half
of a class is painted in images of the other half. In memory are the images of one class at most.
"""

import io
import json
import re
import zipfile
from collections import Counter, deque
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..batch.datasets import Example
from ..batch.lock import Ownership
from ..batch.storage import Storage, read_all
from ..batch.work import Failure
from ..errors import McriseError
from ..studies.study import write
from . import tables
from .confirmation import regions_to_try
from .measure import ImageMeasurement, Task, Tries
from .schema import DONE

LOOK, FAILED, TRIED = ".npz", ".failed.json", ".tried.json"  # kinds of pieces
# What an audit writes: all that --overwrite removes.
OURS = re.compile(
    r"pieces/\d{6,}(\.npz|\.failed\.json|\.tried\.json)|records/\d{6,}\.npz|"
    r"(images|findings|maps|attempts)/class=-?\d+/part-\d{5,}\.parquet|"
    r"failed\.parquet|done\.json|audit\.(json|html)|figures\.json|summary\.md"
)


class Audit:
    """The images of an audit, which of them are done, and the tasks that are left."""

    def __init__(
        self,
        examples: Sequence[Example],
        truths: Sequence[int | None],
        out: Storage,
        *,
        keep_going: bool = False,
        retries: int = 0,
        ownership: Ownership | None = None,
    ) -> None:
        self.ownership = ownership
        self.examples, self.truths, self.out = examples, truths, out
        self.keep_going, self.retries = keep_going, retries
        self.info = tables.read_asked(out)
        self.complete = (out / DONE).exists()
        self.done, self.failed, self.tried = set[int](), set[int](), set[int]()
        for file in (out / "pieces").files():
            number, dot, kind = file.name.partition(".")
            if number.isdecimal() and int(number) < len(examples):
                {LOOK: self.done, FAILED: self.failed, TRIED: self.tried}.get(
                    dot + kind, set[int]()
                ).add(int(number))
        self.failed -= self.done
        self.done |= self.failed
        if self.complete:
            self.done = set(range(len(examples)))
            self.failed = {row["image"] for row in tables.read_failed(out)}
        self.again: deque[Task] = deque()
        self.waits: set[int] = set()  # images in work
        self.tries: Counter[int] = Counter()
        self.trying = False  # all are measured
        self.n_masks: int | None = None  # of the image measured last
        self.tasks: Iterator[Task] = (
            Task(n, examples[n], truths[n]) for n in range(len(examples)) if n not in self.done
        )

    @property
    def n_failed(self) -> int:
        return len(self.failed)

    @property
    def counted(self) -> tuple[int, str]:
        if self.trying:
            return len(self.tried), "what classes have in common, tried in"
        return len(self.done), "images"

    # ---- tasks

    def next_task(self) -> Task | None:
        """A task that can be done now; None: all that is left waits for answers."""
        task = self.again.popleft() if self.again else next(self.tasks, None)
        if task is not None:
            self.waits.add(task.image)
        elif not self.waits:
            self.advance()
            return None if self.complete else self.next_task()
        return task

    def advance(self) -> None:
        """Go from measuring to trying, and from that to the end."""
        if not self.trying:
            self.trying = True
            self.tries.clear()
            self.write_tables()
            self.tasks = self.trials()
        else:
            self.write_attempts()
            note = {"images": len(self.examples), "failed": self.n_failed}
            write(self.out / DONE, (json.dumps(note) + "\n").encode())
            self.complete = True

    def trials(self) -> Iterator[Task]:
        """What was found in half of a class, for images of the other half."""
        for class_data in tables.read_classes(self.out):
            confirmations = regions_to_try(class_data, self.info, self.info.seed)
            for image in sorted({one.image for one in confirmations} - self.tried):
                own = {one.key: one for one in confirmations if one.image == image}
                yield Task(image, self.examples[image], self.truths[image], tuple(own.values()))

    def take(self, task: Task, answer: ImageMeasurement | Tries | Failure) -> None:
        """Take the answer of a task, or hear that it has none."""
        if self.ownership is not None:
            self.ownership.check()  # before anything is written
        self.waits.discard(task.image)
        if isinstance(answer, Failure):
            self.tries[task.image] += 1
            if not answer.final and self.tries[task.image] <= self.retries:
                self.again.append(task)
            else:
                self.fail(task, answer)
        elif isinstance(answer, ImageMeasurement):
            if answer.explanation is not None:
                write(self.out / f"records/{task.image:06d}.npz", answer.explanation)
            write(self.piece(task.image, LOOK), packed(answer))
            self.done.add(task.image)
            self.n_masks = answer.facts["n_masks"]
        else:
            self.keep_tries(task, answer)

    def keep_tries(self, task: Task, tries: Tries | None) -> None:
        rows = []
        if tries is not None:
            rows = [
                {"image": task.image, "key": key, "before": tries.before, "after": after,
                 "predicted": predicted, "was": tries.was, "controls": controls}
                for key, (after, predicted, controls) in tries.after.items()
            ]  # fmt: skip
        assert task.confirmations
        content = {"target": task.confirmations[0].target, "rows": rows}
        write(self.piece(task.image, TRIED), (json.dumps(content) + "\n").encode())
        self.tried.add(task.image)

    def fail(self, task: Task, failure: Failure) -> None:
        """Give an image up, or the audit."""
        name = self.examples[task.image].name
        if not self.keep_going:
            raise failure.kind(
                f"{name}: {failure.reason.rstrip('.')}. {len(self.done)} of {len(self.examples)} "
                f"images are finished and kept in {self.out.path}; --keep-going skips such images."
            )
        if task.confirmations is not None:
            self.keep_tries(task, None)
            return
        content = {"error": failure.reason}
        write(self.piece(task.image, FAILED), (json.dumps(content) + "\n").encode())
        self.failed.add(task.image)
        self.done.add(task.image)

    # ---- pieces and tables

    def piece(self, image: int, kind: str) -> Storage:
        return self.out / f"pieces/{image:06d}{kind}"

    def write_tables(self) -> None:
        """Make tables of the pieces, class by class."""
        looked = sorted(self.done - self.failed)
        classes: dict[int, list[int]] = {}
        for image, look in zip(looked, self.class_data(looked), strict=True):
            classes.setdefault(look.facts["target"], []).append(image)
        for target, images in sorted(classes.items()):
            pairs = zip(images, self.class_data(images), strict=True)
            for number, part in enumerate(tables.in_parts(pairs)):
                place = f"class={target}/part-{number:05d}.parquet"
                kinds: dict[str, tuple[dict[str, str], list[tables.Row]]] = {
                    "images": (tables.IMAGES, [self.image_row(*pair) for pair in part]),
                    "findings": (tables.FINDINGS, [r for p in part for r in self.rows(*p)]),
                    "maps": (tables.MAPS, [row for pair in part for row in map_rows(*pair)]),
                }
                for name, (columns, rows) in kinds.items():
                    write(self.out / f"{name}/{place}", tables.parquet(rows, columns))
        if self.failed:
            rows = [
                {"image": image, "name": self.examples[image].name,
                 **json.loads(self.piece(image, FAILED).read_text())}
                for image in sorted(self.failed)
            ]  # fmt: skip
            write(self.out / "failed.parquet", tables.parquet(rows, tables.FAILED))

    def class_data(self, images: Sequence[int]) -> Iterator[ImageMeasurement]:
        for file, content in read_all([self.piece(image, LOOK) for image in images]):
            try:
                yield unpacked(content)
            except (ValueError, LookupError, OSError, zipfile.BadZipFile):
                raise McriseError(
                    f"{file.path} is damaged: remove it, and the same command does its image again."
                ) from None

    def image_row(self, image: int, look: ImageMeasurement) -> tables.Row:
        example, truth = self.examples[image], self.truths[image]
        return {
            **look.facts,
            **{
                name: look.arrays[name].ravel()
                for name in (
                    "zone_energy",
                    "zone_effect",
                    "own_share",
                    "own_effect",
                    "outer_after",
                    "outer_said",
                )
            },
            "image": image,
            "name": example.name,
            "group": example.group,
            "truth": truth,
            "label": self.label(truth),
            "predicted_label": self.label(look.facts["predicted"]),
            **{
                name: look.arrays[name].tobytes()
                for name in ("pixels", "thumbnail", "outer_region")
            },
        }

    def rows(self, image: int, look: ImageMeasurement) -> list[tables.Row]:
        """Of the findings of an image."""
        return [{**row, "image": image, "name": self.examples[image].name} for row in look.findings]

    def label(self, target: int | None) -> str | None:
        return None if target is None else self.info.label(target)

    def write_attempts(self) -> None:
        """Make a table of what was tried."""
        classes: dict[int, list[tables.Row]] = {}
        files = [self.piece(image, TRIED) for image in sorted(self.tried)]
        for _, content in read_all(files):
            one = json.loads(content)
            classes.setdefault(one["target"], []).extend(one["rows"])
        for target, rows in sorted(classes.items()):
            place = f"attempts/class={target}/part-00000.parquet"
            write(self.out / place, tables.parquet(rows, tables.ATTEMPTS))

    def tidy(self) -> None:
        """Remove the pieces, now that there are tables."""
        for file in (self.out / "pieces").files():
            if OURS.fullmatch(file.relative_to(self.out)):
                file.remove()


def map_rows(image: int, look: ImageMeasurement) -> list[tables.Row]:
    """Of the class, and of the predicted one where that is another."""
    targets = dict.fromkeys((look.facts["target"], look.facts["predicted"]))
    arrays = look.arrays
    rows = [
        {"image": image, "target": target, "values": flat(values), "errors": flat(errors)}
        for target, values, errors in zip(targets, arrays["maps"], arrays["errors"], strict=True)
    ]
    rows[0]["ranks"] = flat(arrays["ranks"])
    return rows


def flat(half: NDArray[np.float16]) -> NDArray[np.float32]:
    return half.astype(np.float32).ravel()


def packed(look: ImageMeasurement) -> bytes:
    """A look as a file, but for its record."""
    meta = json.dumps({"facts": look.facts, "findings": look.findings}).encode()
    out = io.BytesIO()
    np.savez(out, **look.arrays, meta=np.frombuffer(meta, np.uint8))  # type: ignore[arg-type]
    return out.getvalue()


def unpacked(content: bytes) -> ImageMeasurement:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        meta = json.loads(arrays["meta"].tobytes())
        rest = {name: arrays[name] for name in arrays.files if name != "meta"}
    return ImageMeasurement(meta["facts"], meta["findings"], rest)
