"""Many images, several methods: how good is each explanation, and how sure are we of that?

A study is cut into tasks (`config.py`), each a pure function of what it is given. `Study` says
which tasks there are and takes answers in; the engine (`batch.engine`) does the rest.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._version import VERSION
from ..batch.datasets import Example, truth_of
from ..batch.engine import Batch, BatchOptions
from ..batch.folder import FolderLock, claim_folder, damaged, json_line, write
from ..batch.storage import Storage, read_all
from ..batch.tasks import Failure
from ..explanation import SAME_ANSWER
from .config import Answer, Scores, StudyConfig, Task

TASK_CHUNKS = 8  # a task asks for 512 masks: seconds of work, so that long images are shared out
N_EXAMPLES = 6  # images whose rankings are shown in the sheet of pictures
FAILED = ".failed.json"


@dataclass(eq=False)
class ImageInProgress:
    """An image in work: what it waits for and what it has."""

    waits: set[tuple[Any, ...]]  # keys of tasks
    scores: dict[str, Scores] = field(default_factory=dict)  # by fills
    asked: dict[str, float] = field(default_factory=dict)  # seconds spent on them, by fills
    mask_probs: dict[str, float | None] = field(default_factory=dict)  # by fills
    rows: list[dict[str, Any]] = field(default_factory=list)
    predicted: int = -1
    score: float | None = None  # of the class predicted
    stamp: str = ""  # of the file, when it was opened


class Study(Batch[Task]):
    """The images of a study, which of them are done, and the tasks that are left."""

    what = "study"
    output_files = re.compile(
        r"images/\d{6,}(\.failed)?\.json|examples/\d{6,}-\w+-[\w.-]+\.png|examples\.png|"
        r"results\.parquet|status\.json|study\.json|summary\.(csv|md)|timing\.csv"
    )

    def __init__(
        self,
        examples: Sequence[Example],
        config: StudyConfig,
        model: str,
        labels: Sequence[str] | None,
        out: Storage,
        options: BatchOptions,
        *,
        data: str = "",  # where the images are from
        lock: FolderLock | None = None,
    ) -> None:
        super().__init__(
            examples, out, keep_going=options.keep_going, retries=options.retries, lock=lock
        )
        self.config, self.model = config, model
        self.jitter = 0.0  # largest difference between two answers to the same image
        self.truths = [truth_of(example, labels) for example in examples]
        note: dict[str, Any] = {
            "data": data,
            "model": model,
            "labels": list(labels) if labels else None,
            "mcrise": VERSION,
            "settings": config.to_json(),
            "images": [example.name for example in examples],
        }
        if claim_folder(out, self.what, note, self.output_files, options.overwrite):
            write(out / "study.json", (json.dumps(note, indent=1) + "\n").encode())
        there = self.files()
        failed = {image for image, file in there.items() if file.name.endswith(FAILED)}
        self.replaced = self.find_replaced(there)  # since their rows were made: done again
        done = set(there) - (failed if options.retry_failed else set()) - self.replaced
        self.resume(done, failed & done)
        self.opened: dict[int, ImageInProgress] = {}

    # ---- the folder

    def file_of(self, image: int, failed: bool = False) -> Storage:
        return self.out / f"images/{image:06d}{FAILED if failed else '.json'}"

    def files(self) -> dict[int, Storage]:
        """The files of the images finished so far, in order."""
        found = {}
        for file in (self.out / "images").files():
            number = file.name.partition(".")[0]
            if number.isdecimal() and file.path == self.file_of(int(number)).path:
                found[int(number)] = file
            elif number.isdecimal() and file.path == self.file_of(int(number), True).path:
                found.setdefault(int(number), file)
        return {image: found[image] for image in sorted(found) if image < len(self.examples)}

    def find_replaced(self, files: dict[int, Storage]) -> set[int]:
        """The images done before whose files have another content now."""

        def is_replaced(image: int, content: bytes) -> bool:
            kept, file = _parse_image(files[image], content), Storage(self.examples[image].path)
            try:
                if "stamp" not in kept or kept["stamp"] == file.stamp():
                    return False  # of before, or as it was
                return file.remote or kept.get("sha256") != file.digest()
            except OSError:  # gone, or not to be reached: its row was made of what was there
                return False

        contents = zip(files, read_all(list(files.values())), strict=True)
        return {image for image, (_, content) in contents if is_replaced(image, content)}

    def finished(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """What is known of the images finished so far, in order."""
        files = self.files()
        for image, (file, content) in zip(files, read_all(list(files.values())), strict=True):
            yield image, _parse_image(file, content)

    # ---- tasks

    @property
    def complete(self) -> bool:
        return len(self.done) == len(self.examples)

    def tasks(self) -> Iterator[Task]:
        for image in range(len(self.examples)):
            if image not in self.done:
                yield from self.open(image)

    def open(self, image: int) -> list[Task]:
        """Begin an image: ask for what its runs need; what needs no run can start."""
        given, path = self.config, self.examples[image].path
        tasks: list[Task] = []
        for fills in dict.fromkeys(map(given.fills_of, given.methods)):
            if fills is None:
                continue
            if given.n_chunks is None:
                tasks.append(Task(image, path, fills))
            elif given.mask_prob is None:
                tasks.append(Task(image, path, fills, (0, 1)))  # chooses it
            else:
                tasks += self.asking(image, fills, 0, given.mask_prob)
        alone = [method for method in given.methods if given.fills_of(method) is None]
        tasks += [Task(image, path, method=m, draw=image < N_EXAMPLES) for m in alone]
        self.opened[image] = ImageInProgress({task.key for task in tasks}, stamp=self.stamp(image))
        return tasks

    def asking(self, image: int, fills: str, start: int, mask_prob: float) -> list[Task]:
        """Tasks that ask for the chunks of a run from `start` on."""
        path, n_chunks = self.examples[image].path, self.config.n_chunks or 0
        return [
            Task(image, path, fills, (first, min(first + TASK_CHUNKS, n_chunks)), None, mask_prob)
            for first in range(start, n_chunks, TASK_CHUNKS)
        ]

    def accept(self, task: Task, answer: Answer) -> list[Task]:
        """Take the answer of a task; what it makes possible comes before other images."""
        opened, more = self.opened[task.image], list[Task]()
        opened.waits.discard(task.key)
        if task.method is not None:
            shared = opened.asked.get(task.fills or "", 0.0)
            opened.rows += [
                row | {"seconds": (row["seconds"][0] + shared, row["seconds"][1])}
                for row in answer.rows
            ]
            opened.predicted = answer.predicted
            if opened.score is not None and answer.score is not None:
                self.jitter = max(self.jitter, abs(opened.score - answer.score))
            opened.score = answer.score
            self.show(task, answer)
        else:
            assert task.fills is not None
            opened.scores.setdefault(task.fills, {}).update(answer.scores)
            spent = opened.asked.get(task.fills, 0.0)
            opened.asked[task.fills] = spent + answer.seconds
            opened.mask_probs[task.fills] = answer.mask_prob
            if task.chunks and task.mask_prob is None:
                assert answer.mask_prob is not None
                rest = self.asking(task.image, task.fills, 1, answer.mask_prob)
                opened.waits |= {task.key for task in rest}
                more += rest
            more += self.measuring(task.image, task.fills)
        if not opened.waits:
            self.finish(task)
        return more

    def measuring(self, image: int, fills: str) -> list[Task]:
        """When the last chunks of a run are in, its methods can be measured."""
        opened = self.opened[image]
        if any(key[1] == fills for key in opened.waits):
            return []
        given, path = self.config, self.examples[image].path
        scores, mask_prob = opened.scores.pop(fills), opened.mask_probs[fills]
        methods = [method for method in given.methods if given.fills_of(method) == fills]
        tasks = [
            Task(image, path, fills, None, method, mask_prob, scores, draw=image < N_EXAMPLES)
            for method in methods
        ]
        opened.waits |= {task.key for task in tasks}
        return tasks

    def show(self, task: Task, answer: Answer) -> None:
        for estimator, picture in answer.pictures.items():
            write(self.out / f"examples/{task.image:06d}-{task.method}-{estimator}.png", picture)

    def stamp(self, image: int) -> str:
        try:
            return Storage(self.examples[image].path).stamp()
        except OSError:  # the worker will tell
            return ""

    def finish(self, task: Task) -> None:
        """Write the rows of an image, if they are of the file that is there now."""
        image = task.image
        opened, file = self.opened[image], Storage(self.examples[image].path)
        if opened.stamp != self.stamp(image):
            self.fail(task, Failure("It was replaced while it was being explained."))
            return
        more: dict[str, Any] = {}
        if opened.stamp:
            more = {"stamp": opened.stamp, "score": opened.score}
            more |= {} if file.remote else {"sha256": file.digest()}
        self.write_image(image, more)

    def give_up(self, task: Task, failure: Failure) -> None:
        """Rows with the reason instead of numbers."""
        given = self.config
        self.opened[task.image].rows = [
            {
                "method": method,
                "estimator": estimator,
                "n_masks": given.samples_of(method),
                "seed": given.seed,
                "error": failure.reason,
            }
            for method in given.methods
            for estimator in given.estimators_of(method)
        ]
        self.failed.add(task.image)
        self.write_image(task.image, {"error": failure.reason})

    def write_image(self, image: int, more: dict[str, Any]) -> None:
        opened = self.opened.pop(image)
        content = {
            "image": self.examples[image].name,
            "truth": self.truths[image],
            "predicted": opened.predicted,
            "rows": sorted(opened.rows, key=lambda row: (row["method"], row["estimator"])),
            **more,
        }
        write(self.file_of(image, "error" in more), json_line(content))
        self.done.add(image)

    def notes(self) -> list[str]:
        """What to know of how its rows came about."""
        found = []
        if self.replaced:
            found.append(f"{len(self.replaced)} images were replaced since, and done again")
        if self.jitter > SAME_ANSWER:
            found.append(
                f"the model answers the same image differently each time, by up to "
                f"{self.jitter:.2g}: its rows would be others in another study"
            )
        return found


def _parse_image(file: Storage, content: bytes) -> dict[str, Any]:
    """What a file of a finished image says."""
    try:
        kept = json.loads(content)
        if isinstance(kept["rows"], list) and {"image", "truth", "predicted"} <= kept.keys():
            return dict(kept)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    raise damaged(file)
