"""An audit: its images are measured, then what classes have in common is confirmed by repainting.

First every image is measured by itself. What then stands out in the mean maps of half of a class is
painted in images of the other half. At last images of other classes are given what a class's images
have, to find what is enough to be taken for it. Each answer is a piece, a file in the folder
`pieces`; tables are made of the pieces. In memory are the images of one class at most.
"""

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..batch.datasets import Example
from ..batch.engine import Batch, Stage
from ..batch.folder import FolderLock, damaged, json_line, write
from ..batch.storage import Row, Storage, in_parts, parquet, read_all
from ..batch.tasks import Failure
from . import tables
from .confirmation import regions_to_try
from .figures_json import DONE
from .measure import ImageMeasurement, Repainted, Task
from .suspects import choose, plan_closer, plan_locate, read_index, why_not
from .transplants import (
    FIRST,
    Corner,
    Outcome,
    Planned,
    Transplant,
    plan_give,
    plan_screen,
    spot_of,
)

TRANSPLANTED = ("screen", "refine", "give", "locate")  # stages, and pieces of their names
STAGES = {  # what is shown of them
    "confirm": "confirming findings of classes",
    "screen": "transplants, first look",
    "refine": "transplants, closer look",
    "give": "transplants, on other images",
    "locate": "transplants, where it is",
}
MEASURED, FAILED, CONFIRMED = ".npz", ".failed.json", ".confirmed.json"  # kinds of pieces


class Audit(Batch[Task]):
    """The images of an audit, which of them are done, and the tasks that are left."""

    what = "audit"
    output_files = re.compile(
        r"pieces/\d{6,}(\.npz|\.(failed|confirmed|screen|refine|give|locate)\.json)|runs/\d{6,}\.npz|"
        r"(images|findings|maps|attempts|transplants)/class=-?\d+/part-\d{5,}\.parquet|"
        r"failed\.parquet|(done|status|figures|summary)\.json|audit\.(json|html)|summary\.md"
    )

    def __init__(
        self,
        examples: Sequence[Example],
        truths: Sequence[int | None],
        out: Storage,
        *,
        keep_going: bool = False,
        retries: int = 0,
        retry_failed: bool = False,
        lock: FolderLock | None = None,
    ) -> None:
        super().__init__(examples, out, keep_going=keep_going, retries=retries, lock=lock)
        self.truths, self.info = truths, tables.read_asked(out)
        self.finished = (out / DONE).exists()
        if retry_failed:
            self.forget_failed()
        measured, failed = self.pieces(MEASURED), self.pieces(FAILED)
        self.confirmed = self.pieces(CONFIRMED)
        if self.finished:
            failed = {row["image"] for row in tables.read_failed(out)}
            measured = set(range(len(examples))) - failed
        self.resume(measured | failed, failed - measured)
        self.now = "measure"  # the stage of the work
        self.n_planned = 0  # images that it is about
        self.lost = False  # whether an image could not be repainted
        self.n_masks: int | None = None  # of the image measured last

    @property
    def complete(self) -> bool:
        return self.finished

    @property
    def stage(self) -> Stage:
        if self.now == "measure":
            return super().stage
        done = self.confirmed if self.now == "confirm" else self.pieces(f".{self.now}.json")
        return Stage(STAGES[self.now], len(done), max(self.n_planned, len(done)))

    # ---- tasks

    def tasks(self) -> Iterator[Task | None]:
        """Measure every image; then paint what stands out in half of a class in the other half."""
        for image in range(len(self.examples)):
            if image not in self.done:
                yield self.task(image)
        yield None
        self.write_tables()
        self.now = "confirm"
        spots: dict[int, Corner] = {}
        for class_data in tables.read_classes(self.out):
            corners = (spot_of(maps) for maps in class_data.maps)
            spots |= zip(class_data.image.tolist(), corners, strict=True)
            regions = regions_to_try(class_data, self.info, self.info.seed)
            own_images = {one.image for one in regions}
            self.n_planned += len(own_images)
            for image in sorted(own_images - self.confirmed):
                own = {one.key: one for one in regions if one.image == image}
                yield self.task(image, confirmations=tuple(own.values()))
        yield None
        self.write_attempts()
        yield from self.transplant_tasks(spots)
        self.write_transplants()
        write(self.out / DONE, json_line({"images": len(self.examples), "failed": self.n_failed}))
        self.finished = True

    def task(self, image: int, **given: Any) -> Task:
        return Task(image, self.examples[image], self.truths[image], self.now, **given)

    def transplant_tasks(self, spots: Mapping[int, Corner]) -> Iterator[Task | None]:
        """Look for what is enough on half of the images, try it on the rest, and narrow it down.

        `spots` are where the images of each class lose most by being painted over.
        """
        index = read_index(self.out, self.info)
        first = [name for name, *_ in self.info.traits if name in FIRST]
        if why_not(index):
            return
        steps: dict[str, Callable[[list[Row]], Planned]] = {
            "screen": lambda _: plan_screen(index, first, self.info.seed),
            "refine": lambda rows: plan_closer(rows, index, self.info),
            "give": lambda rows: plan_give(index, *choose(rows, index), self.info.seed),
            "locate": lambda rows: plan_locate(rows, index, self.info),
        }
        for self.now, plan in steps.items():
            planned: dict[int, list[Transplant]] = {}
            for image, one in plan(self.outcomes()):
                planned.setdefault(image, []).append(one)
            done, self.n_planned = self.pieces(f".{self.now}.json"), len(planned)
            for image, some in sorted(planned.items()):
                if image not in done:
                    donors = {one.donor: self.examples[one.donor] for one in some}
                    yield self.task(
                        image,
                        transplants=tuple(some),
                        donors=tuple(donors.items()),
                        spots=tuple((number, spots[number]) for number in donors),
                    )
            yield None

    def accept(
        self, task: Task, answer: ImageMeasurement | Repainted | list[Outcome]
    ) -> tuple[Task, ...]:
        if isinstance(answer, Repainted):
            self.write_confirmed(task, answer)
            return ()
        if isinstance(answer, list):
            self.write_outcomes(task, answer)
            return ()
        if answer.explanation is not None:
            write(self.out / f"runs/{task.image:06d}.npz", answer.explanation)
        write(self.piece(task.image, MEASURED), answer.to_bytes())
        self.done.add(task.image)
        self.n_masks = answer.facts["n_masks"]
        return ()

    def give_up(self, task: Task, failure: Failure) -> None:
        """Leave an image out; one that is measured is only not repainted."""
        if task.stage != "measure":
            self.lost = True
            if task.stage == "confirm":
                self.write_confirmed(task, None)
            else:
                self.write_outcomes(task, [])
            return
        write(self.piece(task.image, FAILED), json_line({"error": failure.reason}))
        self.failed.add(task.image)
        self.done.add(task.image)

    def write_confirmed(self, task: Task, answer: Repainted | None) -> None:
        rows = []
        if answer is not None:
            rows = [
                {"image": task.image, "key": key, "before": answer.before, "after": after,
                 "predicted": predicted, "prediction_before": answer.prediction_before,
                 "controls": controls}
                for key, (after, predicted, controls) in answer.after.items()
            ]  # fmt: skip
        content = {"target": task.confirmations[0].target, "rows": rows}
        write(self.piece(task.image, CONFIRMED), json_line(content))
        self.confirmed.add(task.image)

    def write_outcomes(self, task: Task, outcomes: Sequence[Outcome]) -> None:
        rows = [
            {
                **vars(one.transplant),
                "image": task.image,
                "predicted": one.predicted,
                "score": one.score,
                "region": None if one.region is None else np.packbits(one.region).tobytes().hex(),
                "picture": one.picture and one.picture.hex(),
            }
            for one in outcomes
        ]
        write(self.piece(task.image, f".{task.stage}.json"), json_line({"rows": rows}))

    def outcomes(self) -> list[Row]:
        """Of all transplants so far, in an order that does not depend on who was faster."""
        kinds = [f".{stage}.json" for stage in TRANSPLANTED]
        files = [self.piece(n, kind) for kind in kinds for n in sorted(self.pieces(kind))]
        return [row for _, content in read_all(files) for row in json.loads(content)["rows"]]

    def write_transplants(self) -> None:
        classes: dict[int, list[Row]] = {}
        for row in self.outcomes():
            for name in ("region", "picture"):
                row[name] = row[name] and bytes.fromhex(row[name])
            classes.setdefault(row["suspect"], []).append(row)
        for target, rows in sorted(classes.items()):
            place = f"transplants/class={target}/part-00000.parquet"
            write(self.out / place, parquet(rows, tables.TRANSPLANTS))

    # ---- trying again what failed

    def forget_failed(self) -> None:
        """Remove what depends on images that failed, so that they are tried again.

        A finished audit keeps its pieces where something failed. In this order a kill in between
        leaves an audit that goes on.
        """
        if not self.pieces(FAILED) and not (self.finished and self.pieces(MEASURED)):
            return
        (self.out / DONE).remove()
        self.finished = False
        kinds = (CONFIRMED, *(f".{stage}.json" for stage in TRANSPLANTED), FAILED)
        *later, failed = ([self.piece(n, kind) for n in self.pieces(kind)] for kind in kinds)
        parts = [(self.out / name).find("class=*/part-*.parquet")
                 for name in ("attempts", "transplants")]  # fmt: skip
        for file in (*chain(*later, *parts), self.out / "failed.parquet", *failed):
            file.remove()

    # ---- pieces and tables

    def piece(self, image: int, kind: str) -> Storage:
        return self.out / f"pieces/{image:06d}{kind}"

    def pieces(self, kind: str) -> set[int]:
        """The images that have a piece of a kind."""
        names = [file.name.partition(".") for file in (self.out / "pieces").files()]
        numbers = {int(number) for number, dot, end in names
                   if dot + end == kind and number.isdecimal()}  # fmt: skip
        return {image for image in numbers if image < len(self.examples)}

    def write_tables(self) -> None:
        """Make tables of the pieces, class by class."""
        measured = sorted(self.done - self.failed)
        classes: dict[int, list[int]] = {}
        for image, one in zip(measured, self.measurements(measured), strict=True):
            classes.setdefault(one.facts["target"], []).append(image)
        for target, images in sorted(classes.items()):
            pairs = zip(images, self.measurements(images), strict=True)
            for number, part in enumerate(in_parts(pairs, tables.PART)):
                place = f"class={target}/part-{number:05d}.parquet"
                kinds: dict[str, tuple[dict[str, str], list[Row]]] = {
                    "images": (tables.IMAGES, [self.image_row(*pair) for pair in part]),
                    "findings": (tables.FINDINGS, [r for p in part for r in self.finding_rows(*p)]),
                    "maps": (tables.MAPS, [row for pair in part for row in map_rows(*pair)]),
                }
                for name, (columns, rows) in kinds.items():
                    write(self.out / f"{name}/{place}", parquet(rows, columns))
        if self.failed:
            rows = [
                {"image": image, "name": self.examples[image].name,
                 **json.loads(self.piece(image, FAILED).read_text())}
                for image in sorted(self.failed)
            ]  # fmt: skip
            write(self.out / "failed.parquet", parquet(rows, tables.FAILED))

    def measurements(self, images: Sequence[int]) -> Iterator[ImageMeasurement]:
        for file, content in read_all([self.piece(image, MEASURED) for image in images]):
            try:
                yield ImageMeasurement.from_bytes(content)
            except (ValueError, LookupError, OSError, zipfile.BadZipFile):
                raise damaged(file) from None

    def image_row(self, image: int, measured: ImageMeasurement) -> Row:
        example, truth = self.examples[image], self.truths[image]
        return tables.stored_row(
            {
                **measured.facts,
                **measured.arrays,
                "image": image,
                "name": example.name,
                "group": example.group,
                "truth": truth,
                "label": self.label(truth),
                "predicted_label": self.label(measured.facts["predicted"]),
            }
        )

    def finding_rows(self, image: int, measured: ImageMeasurement) -> list[Row]:
        name = self.examples[image].name
        return [{**row, "image": image, "name": name} for row in measured.findings]

    def label(self, target: int | None) -> str | None:
        return None if target is None else self.info.label(target)

    def write_attempts(self) -> None:
        """Make a table of what came of repainting."""
        classes: dict[int, list[Row]] = {}
        files = [self.piece(image, CONFIRMED) for image in sorted(self.confirmed)]
        for _, content in read_all(files):
            one = json.loads(content)
            classes.setdefault(one["target"], []).extend(one["rows"])
        for target, rows in sorted(classes.items()):
            place = f"attempts/class={target}/part-00000.parquet"
            write(self.out / place, parquet(rows, tables.ATTEMPTS))

    def tidy(self) -> None:
        """Remove the pieces, now that there are tables, unless something may be tried again."""
        if self.failed or self.lost:
            return
        for file in (self.out / "pieces").files():
            if self.output_files.fullmatch(file.relative_to(self.out)):
                file.remove()


def map_rows(image: int, measured: ImageMeasurement) -> list[Row]:
    """Of the class, and of the predicted one where that is another."""
    targets = dict.fromkeys((measured.facts["target"], measured.facts["predicted"]))
    arrays = measured.arrays
    rows = [
        {"image": image, "target": target, "values": flat(values), "errors": flat(errors)}
        for target, values, errors in zip(targets, arrays["maps"], arrays["errors"], strict=True)
    ]
    rows[0]["ranks"] = flat(arrays["ranks"])
    return rows


def flat(half: NDArray[np.float16]) -> NDArray[np.float32]:
    return half.astype(np.float32).ravel()
