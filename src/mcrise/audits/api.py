"""`audit`: an audit from one call, on the cores of this machine or on a cluster."""

import contextlib
import hashlib
import importlib.util
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from .._version import VERSION
from ..batch.datasets import SPLIT, Example, open_dataset, truth_of
from ..batch.lock import Ownership
from ..batch.storage import Storage
from ..batch.work import read_image
from ..batch.workers import TIMEOUT, InlinePool, WorkerFactory, WorkerPool, run
from ..config import FIRST_TRY, MAX_MASKS, TOLERANCE, FloatOrAuto, IntOrAuto, RunConfig
from ..errors import InputError, McriseError
from ..explanation import Explanation
from ..interpretation.claims import join
from ..mask_prob import settle, standing
from ..model_calls import buffer_of, chunk_scores
from ..models import ModelSettings, load_model
from ..models.model import Model
from ..sampling import begin, most_masks
from ..studies.api import RETRIES, check_work, named, pool_of, watched
from ..studies.results import MOST_TOLD
from ..studies.study import claim_output, sample, write
from . import tables
from .audit import OURS, Audit
from .class_stats import make_stats, write_stats
from .color_names import BASICS
from .config import N_MASKS, AuditConfig
from .text import summary
from .zones import DEFAULT, parse_zones

N_PILOTS = 8  # images on which mask_prob is chosen
ALIKE = 1e-4  # of a score: what one model may differ by from one processor to another
SLOW = 10.0  # seconds of an image, beside which the start of a worker is nothing
REPAINTS = 100  # of an image, about: on traffic signs 28 of its own, 6 outside, 66 of its class


@dataclass(frozen=True)
class AuditResult:
    """Where an audit is, and what it says in short."""

    path: str  # of its folder
    summary: tuple[str, ...]  # lines of Markdown
    n_images: int
    n_failed: int

    def __repr__(self) -> str:
        return f"<AuditResult: {self.n_images:,} images, {self.n_failed:,} failed; {self.path}>"

    def __str__(self) -> str:
        return "\n".join(self.summary)


@dataclass(frozen=True)
class Cost:
    """What an audit will take, by the first images that it measures."""

    n_images: int  # that are left to measure
    n_done: int
    n_calls: int  # about
    seconds: float  # about
    n_workers: int
    choice: str  # of mask_prob, in a sentence

    def lines(self) -> list[str]:
        """To print."""
        if not self.n_images:
            return ["All images are measured: what is left is trying, or figures and pages only."]
        workers = f"{self.n_workers} worker{'s' if self.n_workers > 1 else ''}"
        there = f" ({self.n_done:,} are done)" if self.n_done else ""
        told = (
            f"{self.n_images:,} images{there}: about {self.n_calls:,} calls of the model, "
            f"{spoken(self.seconds)} with {workers}, if all take as long as the first."
        )
        return [*([f"{self.choice}."] if self.choice else []), told]


@dataclass(frozen=True)
class PreparedAudit:
    """An audit that is ready to run."""

    audit: Audit
    pool: WorkerPool | None  # None: there is nothing left to do for one
    n_masks: int  # of an image, at most
    choice: str  # of mask_prob, in a sentence
    notes: tuple[str, ...]
    ownership: Ownership

    def run(
        self, progress: bool = False, tell: Callable[[Cost], None] | None = None
    ) -> AuditResult:
        """Run it to the end; `tell` is given the cost as soon as the first images tell it."""
        audit = self.audit
        try:
            work = iter(()) if self.pool is None else run(audit, self.pool)
            if tell is not None:
                tell(self.price(work))
            for _ in watched(work, progress):
                pass
            self.ownership.check()
            some = audit.n_failed < len(audit.examples)
            lines = write_pages(audit.out, self.notes) if some else []
            audit.tidy()
        finally:
            self.ownership.release()
        return AuditResult(audit.out.path, tuple(lines), len(audit.examples), audit.n_failed)

    def price(self, work: Iterator[Audit]) -> Cost:
        """Let the first images be measured, which is not done again, and see how long they take.

        The first of a worker takes longer, while libraries are loaded and code is compiled: where
        images are quick, the price is that of a second one.
        """
        audit, n_workers = self.audit, self.pool.n_workers if self.pool else 1
        n_done, n_left = len(audit.done), len(audit.examples) - len(audit.done)
        enough, took = min(n_workers + 1, max(n_left // 2, 1)), float("nan")
        for _ in work:
            if self.pool is not None and self.pool.took is not None:
                took = self.pool.took
            if not n_left or took > SLOW or len(audit.done) - n_done >= enough:
                break
        each = audit.n_masks or self.n_masks
        return Cost(
            n_images=n_left,
            n_done=n_done,
            n_calls=n_left * (each + REPAINTS),
            seconds=n_left * took / n_workers,
            n_workers=n_workers,
            choice=self.choice,
        )


def audit(
    data: Path | str,
    model: Any = "demo",
    *,
    out: Path | str,
    images: int | None = None,
    per_class: int | None = None,
    n_masks: IntOrAuto = N_MASKS,
    tolerance: float = TOLERANCE,
    max_masks: int = MAX_MASKS,
    seed: int = 0,
    split: str = SPLIT,
    group: str | None = None,
    masks: Path | str | None = None,
    zones: str = DEFAULT,
    fills: str | Sequence[str] = "rgbwk",
    grid: int | tuple[int, int] = (8, 8),
    mask_prob: FloatOrAuto = "auto",
    batch_size: int = 32,
    keep_records: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
    keep_going: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    **settings: Unpack[ModelSettings],
) -> AuditResult:
    """Find out on which colors, and where, a model depends over many images, class by class.

    `data` and `model` are as for `run_study`: GTSRB, a folder or a CSV file; a path that each of
    `workers` processes loads, or of the actors of the Ray cluster at the address `ray`, or a
    callable, which is asked in this process. `images` are drawn at random, at most `per_class` of
    each class. The results go to the folder `out`: an audit that was killed there goes on, and of
    one that is finished only figures and pages are made anew.

    Each image is measured by `n_masks` masks of its own, and all with one `mask_prob`, so that
    means over images compare like with like: "auto" chooses it on eight of them. `zones` are parts
    of the images whose share in the effect is told (`thirds`, `rim`, or `corner=0.7:0.7:1:1`); the
    boxes and masks of a collection are zones by themselves, `masks` being a folder of pictures
    named like the images. `group` names the column of a CSV file that says which images belong
    together, as frames of one track do; intervals respect it.

    Tasks that fail are tried `retries` times more. Then they end the audit; with `keep_going` the
    image is left out and listed in `failed.parquet`. `keep_records` keeps the record of each.
    """
    given = {**locals()}
    del given["progress"], given["settings"]
    return prepare(**given, **settings).run(progress)


def prepare(
    data: Path | str,
    model: Any,
    *,
    out: Path | str,
    images: int | None,
    per_class: int | None,
    n_masks: IntOrAuto,
    tolerance: float,
    max_masks: int,
    seed: int,
    split: str,
    group: str | None,
    masks: Path | str | None,
    zones: str,
    fills: str | Sequence[str],
    grid: int | tuple[int, int],
    mask_prob: FloatOrAuto,
    batch_size: int,
    keep_records: bool,
    workers: int | None,
    ray: str | None,
    timeout: float,
    retries: int,
    keep_going: bool,
    overwrite: bool,
    **settings: Unpack[ModelSettings],
) -> PreparedAudit:
    """An audit, refused or ready to run; `settings` are about the model."""
    in_memory = not isinstance(model, str | Path)
    check_work(workers, ray, timeout, retries, in_memory)
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError("An audit needs pyarrow: pip install 'mcrise[study]'.")
    run_config = RunConfig(
        fills=fills if isinstance(fills, str) else ",".join(map(named, fills)),
        grid=(grid, grid) if isinstance(grid, int) else grid,
        mask_prob=mask_prob,
        seed=seed,
        n_masks=n_masks,
        tolerance=tolerance,
        max_masks=max_masks,
        batch_size=batch_size,
    )
    place = Storage(out)
    if os.path.abspath(out) == os.path.abspath(data):
        raise InputError(f"The images are in {data} themselves: choose another --out.")
    examples = sample(some_of_each(open_dataset(data, split, group, masks), per_class, seed),
                      images, seed)  # fmt: skip
    has_objects = any(one.box or one.mask for one in examples)
    config = AuditConfig(run_config, parse_zones(zones, has_objects), keep_records)
    said: Any = {**settings, "threads": None if in_memory else 1}
    known = load_model(model, **said)
    truths = [truth_of(example, known.labels) for example in examples]
    where = data if Storage(data).remote else os.path.abspath(data)
    note: dict[str, Any] = {
        "format": tables.FORMAT,
        "mcrise": VERSION,
        "data": f"{where} ({split})",
        "model": known.identity,
        "name": str(model) if not in_memory else known.identity,
        "labels": list(known.labels) if known.labels else None,
        "kind": known.kind,
        "settings": config.to_json(),
        "collection": digest_of(examples),
        "images": [example.name for example in examples],
    }
    order = sorted({round(n) for n in np.linspace(0, len(examples) - 1, N_PILOTS)})
    pilots = [(examples[n], truths[n]) for n in order]
    group = group or ("group" if any(one.group for one in examples) else "")
    ownership = Ownership(place, "audit")
    with contextlib.ExitStack() as refused:
        refused.callback(ownership.release)
        claim(place, known, config, pilots, note, group, overwrite)
        info = tables.read_asked(place)
        config = replace(config, run=replace(run_config, mask_prob=info.mask_prob))
        work = Audit(examples, truths, place, keep_going=keep_going, retries=retries,
                     ownership=ownership)  # fmt: skip
        pool: WorkerPool | None = None
        if in_memory:
            pool = InlinePool(config.worker(known))
        elif not work.complete:
            factory = WorkerFactory(str(model), said, config, known.identity)
            pool = pool_of(factory, workers, ray, timeout)
        refused.pop_all()
    notes = (*known.notes, *unknown_folders(examples, truths))
    return PreparedAudit(work, pool, most_masks(n_masks, max_masks), info.why, notes, ownership)


def claim(
    place: Storage,
    model: Model,
    config: AuditConfig,
    pilots: "Pilots",
    note: dict[str, Any],
    group: str,
    overwrite: bool,
) -> None:
    """Write what the audit is of, or refuse a folder that holds another."""
    if claim_output(place, tables.NOTE, note, OURS, overwrite):
        settled, sentence = settled_mask_prob(model, config, pilots)
        shown = config.run.plan(np.zeros((64, 64, 3), np.uint8)).fills
        more = {
            "fills": [fill.name for fill in shown],
            "basics": list(BASICS),
            "group": group,
            "chosen": {"mask_prob": settled, "sentence": sentence},
            "answer": answer_of(model, pilots),
        }
        write(place / tables.NOTE, (json.dumps({**note, **more}, indent=1) + "\n").encode())
    elif not model.origin.digest:  # a callable's name may be that of another one
        recognise(model, pilots, place)


def write_pages(out: Storage, notes: Sequence[str]) -> list[str]:
    """Make figures, summary and page from the tables alone; returns the summary's lines."""
    from . import html  # it draws, and matplotlib is heavy

    info = tables.read_asked(out)
    classes, answers = tables.read_classes(out), tables.read_answers(out)
    stats = make_stats(info, classes, answers, seed=info.seed)
    lines = [*summary(info, stats), *(f"Note: {note}." for note in notes)]
    if failed := tables.read_failed(out):
        lines += ["", f"{len(failed)} of {info.n_images} images failed and are left out:"]
        lines += [f"- {row['name']}: {row['error']}" for row in failed[:MOST_TOLD]]
    write_stats(out, stats)
    write(out / "summary.md", ("\n".join(lines) + "\n").encode())
    write(out / html.FILE, html.render(out).encode())
    return lines


# ---- which images


def some_of_each(examples: Sequence[Example], most: int | None, seed: int) -> list[Example]:
    """At most so many of each label, at random, the same for the same seed."""
    if most is None:
        return list(examples)
    if most < 1:
        raise InputError(f"{most} images of a class were asked for, but at least 1 is needed.")
    taken: Counter[str | None] = Counter()
    chosen = []
    for n in np.random.default_rng(seed).permutation(len(examples)).tolist():
        label = examples[n].label
        taken[label] += 1
        if taken[label] <= most:
            chosen.append(n)
    return [examples[n] for n in sorted(chosen)]


def unknown_folders(examples: Sequence[Example], truths: Sequence[int | None]) -> list[str]:
    """That the truth of some images is not known, though they lie in folders that have names."""
    pairs = zip(examples, truths, strict=True)
    lost = Counter(one.label for one, truth in pairs if one.label is not None and truth is None)
    if not lost:
        return []
    named = join([repr(label) for label, _ in lost.most_common(MOST_TOLD)], "and")
    return [f"{lost.total()} images lie in folders that no class is named after ({named:.200})"]


def digest_of(examples: Sequence[Example]) -> str:
    """Of what a collection says of its images, wherever they lie."""
    content = hashlib.sha256()
    for one in examples:
        mask = one.mask and os.path.basename(one.mask)
        content.update(repr((one.name, one.label, one.group, one.box, mask)).encode())
    return content.hexdigest()[:16]


# ---- one mask_prob for all, and what it all costs


Pilots = Sequence[tuple[Example, int | None]]


def settled_mask_prob(model: Model, config: AuditConfig, pilots: Pilots) -> tuple[float, str]:
    """Choose by the pilot's rule, with the mean over a few images; and why, in a sentence."""
    if config.run.mask_prob != "auto":
        return config.run.mask_prob, ""
    explanations = [
        (explanation, explanation.resolve(truth))
        for explanation, truth in begun(model, config, pilots)
    ]

    def share_left(mask_prob: float) -> float:
        shares = []
        for explanation, target in explanations:
            level, height, decides = standing(explanation.untouched, explanation.kind, target)
            scores = explanation.scores[0]
            if mask_prob != explanation.plan.mask_prob:
                painted = replace(explanation, plan=replace(explanation.plan, mask_prob=mask_prob))
                scores = first_chunk(model, painted)
            column = scores[:, decides].astype(np.float64)
            shares.append((float(column.mean()) - level) / height)
        return float(np.mean(shares))

    if not explanations:
        return FIRST_TRY, ""  # what is wrong with them is told when their turn comes
    best, left = settle(share_left)
    told = [f"{share:.2f} at {tried:g}" for tried, share in left.items() if tried != best]
    others = f" ({', '.join(told)})" if told else ""
    return best, (
        f"mask_prob {best:g} for all images: on {len(explanations)} of them scores keep "
        f"{left[best]:.2f} on average under masks{others}"
    )


def begun(
    model: Model, config: AuditConfig, pilots: Pilots
) -> Iterator[tuple[Explanation, int | None]]:
    """Records of those images that the model can be asked about, with their first chunk."""
    usual = replace(config, run=replace(config.run, mask_prob=FIRST_TRY))
    for example, truth in pilots:
        with contextlib.suppress(McriseError):
            view = model.view(read_image(example.path))
            explanation = begin(view, model, usual.brief_of(example.name, truth))
            explanation.add(0, first_chunk(model, explanation))
            yield explanation, truth


def answer_of(model: Model, pilots: Pilots) -> list[float] | None:
    """What the model says of the first image that it can be asked about."""
    for example, _ in pilots:
        with contextlib.suppress(McriseError):
            view = model.view(read_image(example.path))
            return [float(score) for score in model(view.pixels[None])[0]]
    return None


def recognise(model: Model, pilots: Pilots, place: Storage) -> None:
    """Refuse a model that does not answer as the one that an audit is of."""
    before = tables.read_answer(place)
    now = answer_of(model, pilots)
    if before is None or now is None:
        return
    if len(now) != len(before) or not np.allclose(now, before, rtol=1e-3, atol=ALIKE):
        raise InputError(
            f"{place.path} holds an audit by another model of the name {model.identity!r}, which "
            "answers otherwise: choose another --out, or --overwrite it."
        )


def first_chunk(model: Model, explanation: Explanation) -> NDArray[np.float32]:
    canvas = model.canvas(explanation.view.pixels, explanation.plan.fills)
    return chunk_scores(model, canvas, buffer_of(canvas, explanation.batch_size), explanation, 0)


def spoken(seconds: float) -> str:
    if not np.isfinite(seconds):
        return "nobody can tell how long"
    if seconds < 90:
        whole = max(round(seconds), 1)
        return f"about {whole} second{'s' * (whole > 1)}"
    if seconds < 5400:
        return f"about {round(seconds / 60)} minutes"
    return f"about {seconds / 3600:.1f} hours"
