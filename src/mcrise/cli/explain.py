"""`mcrise explain` and `mcrise show`: from an image to maps, and from a record to maps again."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from .. import record as records
from ..errors import InputError, McriseError, RecordError
from ..loop import CAP, CHECKPOINT_SECONDS, TOLERANCE, checkpointed, grow, last, steps
from ..maps import Maps
from ..model import Model
from ..progress import with_progress
from ..reading import read
from ..record import Record
from ..runtimes import load_model
from ..trials import try_findings
from .options import NumberOrAuto, Pair, model_options, target_options
from .summary import summarise, tell

RUN, PICTURE, REGIONS, SUMMARY = "run.npz", "maps.png", "regions.png", "summary.json"
ELSEWHERE = "choose another --out, or --overwrite it"


@click.command()
@click.argument("image", type=click.Path(path_type=Path), required=False)
@click.option("--model", "spec", required=True,
              help="An .onnx, .pt or .pt2 file, package.module:callable, or demo.")  # fmt: skip
@target_options
@click.option("--colors", "--fills", "fills", default="rgbwk", show_default=True,
              help="Fills: rgbwk, cube8, auto, or a list: red,#0f0,blur:8,gray.")  # fmt: skip
@click.option("--grid", type=Pair(), default="8x8", show_default=True, help="Cells of a mask.")
@click.option("--mask-prob", type=float, default=0.5, show_default=True,
              help="Chance that a cell is painted.")  # fmt: skip
@click.option("--n-masks", type=NumberOrAuto(), default="auto", show_default=True,
              help="Model calls to spend; auto stops when the map is good enough.")  # fmt: skip
@click.option("--tolerance", type=float, default=TOLERANCE, show_default=True,
              help="Good enough for auto: the relative error of the target's map.")  # fmt: skip
@click.option("--cap", type=int, default=CAP, show_default=True, help="Most masks for auto.")
@click.option("--more", type=click.Path(path_type=Path), metavar="RUN",
              help="Continue a finished RUN instead of explaining IMAGE.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--batch-size", type=NumberOrAuto(), default="32", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: IMAGE.mcrise]")
@click.option("--checkpoint", type=float, default=CHECKPOINT_SECONDS, show_default=True,
              help="Save the record every so many seconds.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, nothing else.")
@click.option("--quiet", is_flag=True, help="No progress bar, no sentences.")
@click.option("--overwrite", is_flag=True, help="Replace another run in the folder.")
@model_options
def explain(
    image: Path | None,
    spec: str,
    targets: tuple[str, ...],
    estimator: str,
    fills: str,
    grid: tuple[int, int],
    mask_prob: float,
    n_masks: int | str,
    tolerance: float,
    cap: int,
    more: Path | None,
    seed: int,
    batch_size: int | str,
    out: Path | None,
    checkpoint: float,
    as_json: bool,
    quiet: bool,
    overwrite: bool,
    **settings: Any,
) -> None:
    """Show which colors matter where in IMAGE.

    Writes run.npz, maps.png, regions.png and summary.json, and tries each finding. An unfinished
    run of the same plan found in the folder goes on; a finished one is only drawn again.
    """
    if (image is None) == (more is None):
        raise click.UsageError("Give either an IMAGE to explain or --more RUN to continue one.")
    folder = out or (home(more) if more else Path(f"{image}.mcrise"))
    check_writable(folder)
    model = load_model(spec, **settings)
    amount: dict[str, Any] = {"n_masks": n_masks, "tolerance": tolerance, "cap": cap,
              "target": targets[0] if targets else None}  # fmt: skip
    before = records.load(more) if more else None if overwrite else earlier(folder)
    n_before = before.n_masks if before else 0
    if more:
        assert before is not None
        run = grow(before, model, **amount)
    else:
        run = steps(
            image, model, fills=fills, grid=grid, mask_prob=mask_prob, seed=seed,
            batch_size=batch_size, resume=before, **amount,
        )  # fmt: skip
    with nullcontext() if more else elsewhere(folder):
        record = watch(known(run, targets), folder / RUN, checkpoint, quiet or as_json)
    asked = model if record.n_masks > n_before else None  # a finished run is only drawn again
    finish(record, targets, estimator, folder, as_json, quiet, model.notes, asked)


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be made or written, before any work is spent."""
    place = next(place for place in (folder, *folder.parents) if os.path.exists(place))
    if not place.is_dir() or not os.access(place, os.W_OK):
        reason = "no permission" if place.is_dir() else f"{place} is a file"
        raise InputError(f"The folder {folder} cannot be written ({reason}): choose another --out.")


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Say in one sentence that a place cannot be written, if it cannot."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{place} cannot be written ({error.strerror}): choose another --out."
        ) from None


def earlier(folder: Path, remedy: str = ELSEWHERE) -> Record | None:
    """The record in a folder, if there is one."""
    if not os.path.exists(folder / RUN):
        return None
    try:
        return records.load(folder / RUN)
    except RecordError as error:
        raise RecordError(error.problem, remedy) from None


@contextmanager
def elsewhere(folder: Path, remedy: str = ELSEWHERE) -> Iterator[None]:
    """Say of a folder with another run which it is, and what to do."""
    try:
        yield
    except RecordError as error:
        raise RecordError(f"{folder / RUN}: {error.problem}", remedy) from None


def known(run: Iterator[Record], targets: Sequence[str]) -> Iterator[Record]:
    """Pass a run on, refusing targets the model does not have after one chunk, not after all."""
    for record in run:
        for target in targets:
            record.resolve(target)
        yield record


def home(run: Path) -> Path:
    """The folder of a RUN, which may be given as that folder or as the file in it."""
    return run if run.is_dir() else run.parent


def watch(run: Iterator[Record], path: Path, checkpoint: float, silent: bool) -> Record:
    """Follow a run to its end, saving on the way; with a bar where someone watches."""
    saved = checkpointed(run, path, checkpoint)
    shown = with_progress(saved) if sys.stderr.isatty() and not silent else saved
    try:
        return last(shown)
    except McriseError as error:
        kept = getattr(error, "record", None)
        if kept is not None and kept.n_masks:
            raise type(error)(
                f"{error} The {kept.n_masks:,} masks before it are saved in {path}; the same "
                "command goes on from there."
            ) from error
        raise


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@target_options
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: that of RUN]")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, nothing else.")
def show(
    run: Path, targets: tuple[str, ...], estimator: str, out: Path | None, as_json: bool
) -> None:
    """Draw the maps of a saved RUN (a run.npz or its folder) again; calls no model."""
    record = records.load(run)
    folder = out or home(run)
    check_writable(folder)
    finish(record, targets, estimator, folder, as_json, quiet=False)


def finish(
    record: Record,
    targets: Sequence[str],
    estimator: str,
    folder: Path,
    as_json: bool,
    quiet: bool,
    notes: tuple[str, ...] = (),
    model: Model | None = None,
) -> None:
    """Draw, write and print what a record says of the targets; `model` tries the findings."""
    from ..plots import plot_maps, plot_regions, save

    chosen: Sequence[str | None] = targets or (None,)
    over_all_fills = estimator in ("rise", "debiased")  # one map for all: nothing to read in it
    readings = [read(record, one, "centered" if over_all_fills else estimator) for one in chosen]
    maps = [reading.maps for reading in readings]
    if over_all_fills:
        maps = [record.maps(target, estimator) for target in chosen]
    trials = [try_findings(record, model, reading) if model else [] for reading in readings]
    summary = summarise(record, maps, notes)
    for entry, reading, tried in zip(summary["maps"], readings, trials, strict=True):
        entry["reading"] = reading.to_json()
        for found, trial in zip(entry["reading"]["findings"], tried, strict=bool(tried)):
            found["tried"] = trial.to_json(record)
    with writing(folder):
        save(plot_maps(maps), folder / PICTURE)
        save(plot_regions(readings), folder / REGIONS)
        if over_all_fills:
            save_rise(record, maps[0], folder)
        (folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    if as_json:
        click.echo(json.dumps(summary, indent=2))
    elif not quiet:
        for line in tell(summary):
            click.echo(line)
        for reading, tried in zip(readings, trials, strict=True):
            click.echo("\n".join(reading.lines([trial.line(record) for trial in tried])))
        click.echo(
            f"Maps: {folder / PICTURE}   regions: {folder / REGIONS}   record: {folder / RUN}"
        )


def save_rise(record: Record, maps: Maps, folder: Path) -> None:
    """RISE and debiased RISE side by side, whichever was asked for."""
    from ..plots import plot_rise, save

    pair = [record.maps(maps.target, name) for name in ("rise", "debiased")]
    save(plot_rise(*pair), folder / "rise.png")
