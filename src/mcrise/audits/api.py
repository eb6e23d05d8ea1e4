"""`audit`: an audit from one call, on the cores of this machine or on a cluster."""

import contextlib
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from .._util.text import duration
from .._version import VERSION
from ..batch.datasets import SPLIT, Example, open_dataset, sample, sample_of_each
from ..batch.engine import (
    BatchInput,
    BatchOptions,
    BatchSettings,
    open_input,
    run,
    split_batch_settings,
    with_progress,
)
from ..batch.folder import FolderLock, claim_folder, write
from ..batch.storage import Storage, check_packages
from ..batch.workers import WorkerPool
from ..colors import BASICS
from ..config import RunConfig
from ..errors import McriseError
from ..interpretation.claims import join
from ..model_calls import same_model
from ..models import ModelSettings
from ..sampling import most_masks
from ..studies.results import MOST_LISTED
from . import tables
from .audit import Audit
from .class_data import AuditInfo
from .class_findings import FEWEST
from .class_stats import make_stats, write_stats
from .config import N_MASKS, AuditConfig, Pilots, choose_mask_prob
from .figures_json import to_jsonable
from .rule_check import RULES, rules_line
from .rules import suggested_rules
from .summary import summary, verdict
from .suspects import Suspect, find_suspects
from .transplants import FEWEST_DONORS
from .zones import DEFAULT, parse_zones

N_PILOTS = 8  # images on which mask_prob is chosen
N_PRICED = 3  # images of each worker, by which the time is told
SLOW = 60.0  # seconds of an image, beside which the start of a worker is nothing
# About how many calls on traffic signs:
OWN_TRIALS = 48  # of an image: what its map proposes, other light, what lies outside
CLASS_TRIALS = 45  # of an image: what was found in its class
TRANSPLANTS = 230  # of a class: the screen, a closer look, and what is tried afresh


@dataclass(frozen=True)
class AuditResult:
    """Where an audit is, and what it says in short."""

    path: str  # of its folder
    summary: tuple[str, ...]  # lines of Markdown
    n_images: int
    n_failed: int
    suspects: tuple[Suspect, ...] = ()  # the most suspicious first

    def __repr__(self) -> str:
        return f"<AuditResult: {self.n_images:,} images, {self.n_failed:,} failed; {self.path}>"

    def __str__(self) -> str:
        return "\n".join(self.summary)


@dataclass(frozen=True)
class Cost:
    """What an audit will take, by the first images that it measures."""

    n_images: int  # that are left to measure
    n_done: int
    n_calls: int  # about, of what is left
    seconds: float  # about; NaN: nothing was measured that would tell
    n_workers: int
    choice: str  # of mask_prob, in a sentence
    notes: tuple[str, ...] = ()  # on the model and the labels

    def lines(self) -> list[str]:
        """To print."""
        notes = [f"Note: {note}." for note in self.notes]
        if not self.n_calls:
            return ["The audit is finished: only its figures and pages are made again."]
        calls = f"about {self.n_calls:,} calls of the model"
        workers = f"{self.n_workers} worker{'s' if self.n_workers > 1 else ''}"
        took = (
            f", about {duration(self.seconds)} with {workers}" if np.isfinite(self.seconds) else ""
        )
        what = f"{self.n_images:,} images: {calls}{took}, if all take as long as the first"
        if self.n_done:
            what = f"{self.n_images:,} of {self.n_images + self.n_done:,} images are left: {calls}"
            what += f"{took}. What was done before is not counted"
        if not self.n_images:
            what = f"All {self.n_done:,} images are measured. What is left takes {calls}{took}"
        return [*notes, *([f"{self.choice}."] if self.choice else []), f"{what}."]


@dataclass(frozen=True)
class PreparedAudit:
    """An audit that is ready to run."""

    audit: Audit
    pool: WorkerPool | None  # None: there is nothing left to do for one
    n_masks: int  # of an image, at most
    choice: str  # of mask_prob, in a sentence
    notes: tuple[str, ...]
    lock: FolderLock

    def run(
        self,
        progress: bool = False,
        tell: Callable[[Cost], None] | None = None,
        suggest_rules: bool = False,
    ) -> AuditResult:
        """Run it to the end; `tell` is given the cost as soon as the first images tell it.

        With `suggest_rules` it writes rules to begin with, where there are none.
        """
        audit = self.audit
        with self.lock:
            work = iter(()) if self.pool is None else run(audit, self.pool)
            if tell is not None:
                tell(self.price(work))
            for _ in with_progress(work, progress):
                pass
            self.lock.check()
            some = audit.n_failed < len(audit.examples)
            lines, suspects = (
                write_pages(audit.out, self.notes, suggest_rules) if some else ([], ())
            )
            audit.tidy()
        n_images = len(audit.examples)
        return AuditResult(audit.out.path, tuple(lines), n_images, audit.n_failed, suspects)

    def price(self, work: Iterator[Audit]) -> Cost:
        """Let the first images be measured, which is not done again, and see how long they take.

        The first of a worker takes longer, while libraries are loaded and code is compiled: it
        counts only where images are slow, or hardly any are left.
        """
        audit, n_workers = self.audit, self.pool.n_workers if self.pool else 1
        n_done, n_left = len(audit.done), len(audit.examples) - len(audit.done)
        enough, took = min(N_PRICED * n_workers, max(n_left // 2, 1)), self.pool and self.pool.took
        for _ in work:
            slow = took and took[-1] > SLOW
            if not n_left or slow or len(audit.done) - n_done >= enough:
                break
        each = (audit.n_masks or self.n_masks) + OWN_TRIALS
        n_calls = 0 if audit.complete else n_left * each + self.shared_calls()
        of_image = float(np.median(took[n_workers:] or took)) if took and n_left else float("nan")
        return Cost(
            n_images=n_left,
            n_done=n_done,
            n_calls=round(n_calls),
            seconds=of_image / each * n_calls / n_workers,
            n_workers=n_workers,
            choice=self.choice,
            notes=self.notes,
        )

    def shared_calls(self) -> float:
        """What is left to try when all images are measured: in classes that have enough."""
        sizes = Counter(self.audit.truths).values()
        audit = self.audit
        confirming = CLASS_TRIALS * sum(n for n in sizes if n >= FEWEST)
        confirming -= CLASS_TRIALS * len(audit.confirmed)
        giving = TRANSPLANTS * sum(n >= 2 * FEWEST_DONORS for n in sizes) if len(sizes) > 1 else 0
        given = len(audit.outcomes()) if giving else 0
        return max(confirming, 0) + max(giving - given, 0)


def audit(
    data: Path | str,
    model: Any = "demo",
    *,
    out: Path | str,
    images: int | None = None,
    per_class: int | None = None,
    split: str = SPLIT,
    group: str | None = None,
    masks: Path | str | None = None,
    zones: str = DEFAULT,
    keep_runs: bool = False,
    progress: bool = False,
    **settings: Unpack[BatchSettings],
) -> AuditResult:
    """Find out on which colors, and where, a model depends over many images, class by class.

    `data` and `model` are as for `run_study`: GTSRB, a folder or a CSV file; a path that each of
    `workers` processes loads, or of the actors of the Ray cluster at the address `ray`, or a
    callable, which is asked in this process. `images` are drawn at random, at most `per_class` of
    each class. The results go to the folder `out`: an audit that was killed there goes on, and of
    one that is finished only figures and pages are made again.

    `zones` are parts of the images whose share in the effect is told (`thirds`, `rim`, or
    `corner=0.7:0.7:1:1`); the boxes and masks of a collection are zones by themselves, `masks`
    being a folder of pictures named like the images. `group` names the column of a CSV file that
    says which images belong together, as frames of one track do; intervals respect it.
    `keep_runs` keeps the run of each image. `settings` are all keywords of `load_model`, and
    these:

    fills, colors, grid, seed, tolerance, max_masks, batch_size : as for `explain`
    n_masks : masks of an image, 128 by default, or "auto"
    mask_prob : one for all images, so that means over them compare like with like; "auto", the
        default, chooses it on eight of them
    workers, ray, timeout, retries, retry_failed, overwrite : as for `run_study`
    keep_going : a task that fails after all its tries ends the audit; with this the image is left
        out and listed in `failed.parquet`
    """
    own = ("out", "images", "per_class", "split", "group", "masks", "zones", "keep_runs")
    run_config, options, about_model = split_batch_settings(settings, "audit", own, n_masks=N_MASKS)
    return prepare(
        data, model, run_config, options, out=out, images=images, per_class=per_class,
        split=split, group=group, masks=masks, zones=zones, keep_runs=keep_runs,
        **about_model,
    ).run(progress)  # fmt: skip


def prepare(
    data: Path | str,
    model: Any,
    run_config: RunConfig,
    options: BatchOptions,
    *,
    out: Path | str,
    images: int | None = None,
    per_class: int | None = None,
    split: str = SPLIT,
    group: str | None = None,
    masks: Path | str | None = None,
    zones: str = DEFAULT,
    keep_runs: bool = False,
    **settings: Unpack[ModelSettings],
) -> PreparedAudit:
    """An audit, refused or ready to run."""

    def choose() -> Sequence[Example]:
        found = sample_of_each(open_dataset(data, split, group, masks), per_class, run_config.seed)
        return sample(found, images, run_config.seed)

    check_packages("An audit")
    given = open_input(data, split, model, dict(settings), out, options, choose)
    has_objects = any(one.box or one.mask for one in given.examples)
    config = AuditConfig(run_config, parse_zones(zones, has_objects), keep_runs)
    lock = FolderLock(Storage(out), "audit")
    with contextlib.ExitStack() as refused:
        refused.push(lock)
        info = begin_audit(given, config, Storage(out), group or "", options.overwrite)
        config = replace(config, run=replace(run_config, mask_prob=info.mask_prob))
        work = Audit(
            given.examples, given.truths, Storage(out), keep_going=options.keep_going,
            retries=options.retries, retry_failed=options.retry_failed, lock=lock,
        )  # fmt: skip
        pool = None if work.complete else given.pool(config, options)
        refused.pop_all()
    notes = (*given.model.notes, *unknown_folders(given.examples, given.truths))
    most = most_masks(run_config.n_masks, run_config.max_masks)
    return PreparedAudit(work, pool, most, info.why, notes, lock)


def begin_audit(
    given: BatchInput, config: AuditConfig, out: Storage, group: str, overwrite: bool
) -> AuditInfo:
    """Write what the audit is of, or refuse a folder that holds another."""
    model = given.model
    own: dict[str, Any] = {
        "format": tables.FORMAT,
        "mcrise": VERSION,
        "data": given.data,
        "model": model.identity,
        "name": given.name,
        "labels": list(model.labels) if model.labels else None,
        "kind": model.kind,
        "settings": config.to_json(),
        "collection": digest_of(given.examples),
        "images": [example.name for example in given.examples],
    }
    n_images = len(given.examples)
    chosen = sorted({round(n) for n in np.linspace(0, n_images - 1, N_PILOTS)})
    pilots = [(given.examples[n], given.truths[n]) for n in chosen]
    if claim_folder(out, "audit", own, Audit.output_files, overwrite):
        mask_prob, sentence = choose_mask_prob(model, config, pilots)
        shown = config.run.plan(np.zeros((64, 64, 3), np.uint8)).fills
        more = {
            "fills": [fill.name for fill in shown],
            "basics": list(BASICS),
            "traits": [[one.name, one.kind, one.phrase] for one in config.traits],
            "group": group or ("group" if any(one.group for one in given.examples) else ""),
            "chosen": {"mask_prob": mask_prob, "sentence": sentence},
            "answer": first_answer(given, pilots)[1],
        }
        write(out / tables.NOTE, (json.dumps({**own, **more}, indent=1) + "\n").encode())
    elif not model.origin.digest:  # a callable's name may be that of another one
        known, (image, now) = tables.read_answer(out), first_answer(given, pilots)
        if known and now and not same_model(known, now, given.score_range(now)):
            raise given.other_model(out, "audit", image)
    return tables.read_asked(out)


def first_answer(given: BatchInput, pilots: Pilots) -> tuple[str, list[float] | None]:
    """The scores of the first image that the model can be asked about, and its name."""
    for example, _ in pilots:
        with contextlib.suppress(McriseError):
            return example.name, given.answer(example)
    return "", None


def write_pages(
    out: Storage, notes: Sequence[str], suggest_rules: bool = False
) -> tuple[list[str], tuple[Suspect, ...]]:
    """Make figures, summary and page from the tables alone; returns summary and suspects."""
    from . import audit_page  # it draws, and matplotlib is heavy

    info = tables.read_asked(out)
    classes, answers = tables.read_classes(out), tables.read_answers(out)
    stats = make_stats(info, classes, answers, seed=info.seed)
    search = find_suspects(out, info)
    stats = replace(stats, search=search)
    write_stats(out, stats)
    if suggest_rules and not (out / RULES).exists():  # they may have been edited
        write(out / RULES, suggested_rules(stats).encode())
    lines = [*summary(info, stats, rules_line(out)), *(f"Note: {note}." for note in notes)]
    if failed := tables.read_failed(out):
        lines += ["", f"{len(failed)} of {info.n_images} images failed and are left out:"]
        lines += [f"- {row['name']}: {row['error']}" for row in failed[:MOST_LISTED]]
        lines += ["", "--retry-failed tries them again."]
    write(out / "summary.md", ("\n".join(lines) + "\n").encode())
    short = {
        "verdict": verdict(search),
        "suspects": [one.to_json() for one in search.suspects],
        "calls": search.n_calls,
        "images": info.n_images,
    }
    write(out / "summary.json", (json.dumps(to_jsonable(short), indent=1) + "\n").encode())
    write(out / audit_page.FILE, audit_page.render(out).encode())
    return lines, search.suspects


# ---- which images


def unknown_folders(examples: Sequence[Example], truths: Sequence[int | None]) -> list[str]:
    """That the truth of some images is not known, though they lie in folders that have names."""
    pairs = zip(examples, truths, strict=True)
    lost = Counter(one.label for one, truth in pairs if one.label is not None and truth is None)
    if not lost:
        return []
    named = join([repr(label) for label, _ in lost.most_common(MOST_LISTED)], "and")
    return [f"{lost.total()} images lie in folders that no class is named after ({named:.200})"]


def digest_of(examples: Sequence[Example]) -> str:
    """Of what a collection says of its images, wherever they lie."""
    content = hashlib.sha256()
    for one in examples:
        mask = one.mask and os.path.basename(one.mask)
        content.update(repr((one.name, one.label, one.group, one.box, mask)).encode())
    return content.hexdigest()[:16]
