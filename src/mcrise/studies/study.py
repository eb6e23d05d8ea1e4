"""Many images, several methods: how good is each explanation, and how sure are we of that?

A study is cut into tasks (`tasks.py`), each a pure function of what it is given. `Study` hands them
out and takes answers in, a crew (`crew.py`) does them, and an image that is
finished is written down at once: a study killed at any moment goes on where it was.
"""

import json
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._version import VERSION
from ..batch.datasets import Example, truth_of
from ..batch.lock import Ownership
from ..batch.storage import Storage, read_all
from ..batch.work import Failure
from ..errors import InputError, McriseError
from ..explanation import SAME_ANSWER
from .tasks import Answer, Scores, StudyConfig, Task

TASK_CHUNKS = 8  # a task asks for 512 masks: seconds of work, so that long images are shared out
N_EXAMPLES = 6  # images whose rankings are shown in the sheet of pictures
FAILED = ".failed.json"
# What a study writes: all that --overwrite removes.
OUTPUT_FILES = re.compile(
    r"images/\d{6,}(\.failed)?\.json|examples/\d{6,}-\w+-[\w.-]+\.png|examples\.png|"
    r"results\.parquet|status\.json|study\.json|summary\.(csv|md)|timing\.csv"
)


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


class Study:
    """The images of a study, which of them are done, and the tasks that are left."""

    def __init__(
        self,
        examples: Sequence[Example],
        config: StudyConfig,
        model: str,
        labels: Sequence[str] | None,
        out: Storage,
        *,
        data: str = "",  # where the images are from
        keep_going: bool = False,
        retries: int = 0,
        retry_failed: bool = False,
        overwrite: bool = False,
        ownership: Ownership | None = None,
    ) -> None:
        self.examples, self.config, self.out = examples, config, out
        self.ownership = ownership
        self.jitter = 0.0  # how far answers to the same image were apart
        self.model = model
        self.truths = [truth_of(example, labels) for example in examples]
        self.keep_going, self.retries = keep_going, retries
        self.claim(
            {
                "data": data,
                "model": model,
                "labels": list(labels) if labels else None,
                "mcrise": VERSION,
            },
            overwrite,
        )
        there = self.files()
        failed = {image for image, file in there.items() if file.name.endswith(FAILED)}
        self.replaced = self.find_replaced(there)  # since their rows were made: done again
        self.done = set(there) - (failed if retry_failed else set()) - self.replaced
        self.n_failed = len(failed & self.done)
        self.n_before = len(self.done)
        self.started = self.told = time.monotonic()
        self.left = iter([n for n in range(len(examples)) if n not in self.done])
        self.ready: deque[Task] = deque()
        self.opened: dict[int, ImageInProgress] = {}
        self.tries: Counter[tuple[Any, ...]] = Counter()

    # ---- the folder

    def claim(self, source: dict[str, Any], overwrite: bool) -> None:
        """Write what the study is of, or refuse a folder that holds another."""
        own: dict[str, Any] = {
            **source,
            "settings": self.config.to_json(),
            "images": [example.name for example in self.examples],
        }
        if claim_output(self.out, "study.json", own, OUTPUT_FILES, overwrite):
            write(self.out / "study.json", (json.dumps(own, indent=1) + "\n").encode())

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
            kept, file = parse_image(files[image], content), Storage(self.examples[image].path)
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
            yield image, parse_image(file, content)

    # ---- tasks

    @property
    def complete(self) -> bool:
        return len(self.done) == len(self.examples)

    @property
    def counted(self) -> tuple[int, str]:
        return len(self.done), "images"

    def next_task(self) -> Task | None:
        """A task that can be done now; None: all that is left waits for answers."""
        while not self.ready:
            image = next(self.left, None)
            if image is None:
                return None
            self.open(image)
        return self.ready.popleft()

    def open(self, image: int) -> None:
        """Begin an image: ask for what its records need; what needs no record can start."""
        given, path = self.config, self.examples[image].path
        tasks = []
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
        self.ready.extend(tasks)

    def asking(self, image: int, fills: str, start: int, mask_prob: float) -> list[Task]:
        """Tasks that ask for the chunks of a record from `start` on."""
        path, n_chunks = self.examples[image].path, self.config.n_chunks or 0
        return [
            Task(image, path, fills, (first, min(first + TASK_CHUNKS, n_chunks)), None, mask_prob)
            for first in range(start, n_chunks, TASK_CHUNKS)
        ]

    def take(self, task: Task, answer: Answer | Failure) -> None:
        """Take the answer of a task, or hear that it has none."""
        if self.ownership is not None:
            self.ownership.check()  # before anything is written
        opened = self.opened.get(task.image)
        if opened is None:
            return  # the image has failed meanwhile
        if isinstance(answer, Failure):
            self.tries[task.key] += 1
            if not answer.final and self.tries[task.key] <= self.retries:
                self.ready.append(task)
            else:
                self.fail(task.image, answer)
            return
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
                self.ready.extendleft(reversed(rest))
            self.measure_if_asked(task.image, task.fills)
        if not opened.waits:
            self.finish(task.image)

    def measure_if_asked(self, image: int, fills: str) -> None:
        """When the last chunks of a record are in, its methods can be measured."""
        opened = self.opened[image]
        if any(key[1] == fills for key in opened.waits):
            return
        given, path = self.config, self.examples[image].path
        scores, mask_prob = opened.scores.pop(fills), opened.mask_probs[fills]
        methods = [method for method in given.methods if given.fills_of(method) == fills]
        tasks = [
            Task(image, path, fills, None, method, mask_prob, scores, draw=image < N_EXAMPLES)
            for method in methods
        ]
        opened.waits |= {task.key for task in tasks}
        self.ready.extendleft(tasks)  # images begun are finished before others are begun

    def show(self, task: Task, answer: Answer) -> None:
        for estimator, picture in answer.pictures.items():
            write(self.out / f"examples/{task.image:06d}-{task.method}-{estimator}.png", picture)

    def stamp(self, image: int) -> str:
        try:
            return Storage(self.examples[image].path).stamp()
        except OSError:  # the worker will tell
            return ""

    def finish(self, image: int, **more: Any) -> None:
        if not more and self.opened[image].stamp != self.stamp(image):
            self.fail(image, Failure("It was replaced while it was being explained."))
            return
        opened = self.opened.pop(image)
        if not more and opened.stamp:
            more = {"stamp": opened.stamp, "score": opened.score}
            file = Storage(self.examples[image].path)
            more |= {} if file.remote else {"sha256": file.digest()}
        content = {
            "image": self.examples[image].name,
            "truth": self.truths[image],
            "predicted": opened.predicted,
            "rows": sorted(opened.rows, key=lambda row: (row["method"], row["estimator"])),
            **more,
        }
        write(self.file_of(image, "error" in more), (json.dumps(content) + "\n").encode())
        self.done.add(image)
        self.tell()

    def fail(self, image: int, failure: Failure) -> None:
        """Give an image up: rows with the reason, or the end of the study."""
        name = self.examples[image].name
        if not self.keep_going:
            raise failure.kind(
                f"{name}: {failure.reason.rstrip('.')}. {len(self.done)} of {len(self.examples)} "
                f"images are finished and kept in {self.out.path}; --keep-going skips such images."
            )
        given = self.config
        self.opened[image].rows = [
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
        self.ready = deque(task for task in self.ready if task.image != image)
        self.n_failed += 1
        self.finish(image, error=failure.reason)

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

    # ---- how far it is

    def tell(self) -> None:
        """Write how far it is, every second or so, for whoever asks from elsewhere."""
        now = time.monotonic()
        if now - self.told > 1 or self.complete:
            self.told = now
            write(self.out / "status.json", (json.dumps(self.status()) + "\n").encode())

    def status(self) -> dict[str, Any]:
        spent = time.monotonic() - self.started
        n_new = len(self.done) - self.n_before
        speed = n_new / spent if n_new else None
        n_left = len(self.examples) - len(self.done)
        return {
            "images": len(self.examples),
            "done": len(self.done),
            "failed": self.n_failed,
            "images_per_second": speed,
            "seconds_left": n_left / speed if speed else None,
            "written": time.time(),
        }


def claim_output(
    out: Storage, note: str, own: dict[str, Any], ours: re.Pattern[str], overwrite: bool
) -> bool:
    """Whether a folder is to be begun; False: what its note says is this very work.

    Another study or audit there is refused, or removed where it is to be overwritten. `ours`
    matches all that such work writes.
    """
    try:
        there = json.loads((out / note).read_text()) if (out / note).exists() else None
    except (OSError, ValueError, RecursionError):
        there = {}
    if isinstance(there, dict) and {name: there.get(name) for name in own} == own:
        return False
    files = [file for file in out.files() if ours.fullmatch(file.relative_to(out))]
    if files and not overwrite:
        there = there if isinstance(there, dict) else {}
        other = ", ".join(name for name in own if there.get(name) != own[name])
        raise InputError(
            f"{out.path} holds another {note.removesuffix('.json')} (other {other}): choose "
            "another --out, or --overwrite it."
        )
    for file in files:
        file.remove()
    return True


def parse_image(file: Storage, content: bytes) -> dict[str, Any]:
    """What a file of a finished image says."""
    try:
        kept = json.loads(content)
        if isinstance(kept["rows"], list) and {"image", "truth", "predicted"} <= kept.keys():
            return dict(kept)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    raise McriseError(
        f"{file.path} is damaged: remove it, and the same command does its image again."
    )


def sample(examples: Sequence[Example], n_images: int | None, seed: int) -> list[Example]:
    """A random sample of a collection, the same for the same seed, in the collection's order."""
    if n_images is None or n_images >= len(examples):
        return list(examples)
    if n_images < 1:
        raise InputError(f"{n_images} images were asked for, but at least 1 is needed.")
    chosen = np.random.default_rng(seed).choice(len(examples), n_images, replace=False)
    return [examples[i] for i in sorted(chosen)]


def write(file: Storage, content: bytes) -> None:
    """Write a file of a study, or say in one sentence why not; what is there stays whole."""
    try:
        file.write(content)
    except OSError as error:
        raise McriseError(
            f"{file.path} cannot be written ({error.strerror or error}): make room or choose "
            "another --out; what is finished is kept, and the same command goes on from there."
        ) from None
