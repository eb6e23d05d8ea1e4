"""`mcrise explain` and `mcrise show`: from an image to maps, and from a record to maps again."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from .. import record as records
from ..errors import InputError, McriseError, RecordError
from ..explain import CHECKPOINT_SECONDS, checkpointed, last, steps
from ..maps import Maps
from ..model import Model
from ..progress import with_progress
from ..reading import read
from ..record import Record
from ..runtimes import load_model
from ..whatif import try_findings
from .options import BatchSize, Pair, model_options, target_options
from .summary import summarise, tell

RUN, PICTURE, REGIONS, SUMMARY = "run.npz", "maps.png", "regions.png", "summary.json"


@click.command()
@click.argument("image", type=click.Path(path_type=Path))
@click.option("--model", "spec", required=True,
              help="An .onnx, .pt or .pt2 file, package.module:callable, or demo.")  # fmt: skip
@target_options
@click.option("--colors", "--fills", "fills", default="rgbwk", show_default=True,
              help="Fills: rgbwk, cube8, auto, or a list: red,#0f0,blur:8,gray.")  # fmt: skip
@click.option("--grid", type=Pair(), default="8x8", show_default=True, help="Cells of a mask.")
@click.option("--mask-prob", type=float, default=0.5, show_default=True,
              help="Chance that a cell is painted.")  # fmt: skip
@click.option("--n-masks", type=int, default=2000, show_default=True, help="Model calls to spend.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--batch-size", type=BatchSize(), default="32", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: IMAGE.mcrise]")
@click.option("--checkpoint", type=float, default=CHECKPOINT_SECONDS, show_default=True,
              help="Save the record every so many seconds.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, nothing else.")
@click.option("--quiet", is_flag=True, help="No progress bar, no sentences.")
@click.option("--overwrite", is_flag=True, help="Replace another run in the folder.")
@model_options
def explain(
    image: Path,
    spec: str,
    targets: tuple[str, ...],
    estimator: str,
    fills: str,
    grid: tuple[int, int],
    mask_prob: float,
    n_masks: int,
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
    folder = out or Path(f"{image}.mcrise")
    check_writable(folder)
    model = load_model(spec, **settings)
    before = None if overwrite else earlier(folder)
    finished = before is not None and before.n_masks >= n_masks
    run = steps(
        image, model, fills=fills, grid=grid, mask_prob=mask_prob, n_masks=n_masks, seed=seed,
        batch_size=batch_size, resume=before,
    )  # fmt: skip
    try:
        record = watch(known(run, targets), folder / RUN, checkpoint, n_masks, quiet or as_json)
    except RecordError as error:
        difference = str(error).rpartition(": ")[2]
        raise RecordError(
            f"{folder} holds another run ({difference}): choose another --out, or --overwrite it."
        ) from None
    asked = None if finished else model  # a finished run is only drawn again
    finish(record, targets, estimator, folder, as_json, quiet, model.notes, asked)


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be made or written, before any call of the model is spent."""
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        reason = "no permission" if place.is_dir() else f"{place} is a file"
        raise InputError(f"The folder {folder} cannot be written ({reason}): choose another --out.")


def earlier(folder: Path) -> Record | None:
    """The record in a folder, if there is one."""
    if not (folder / RUN).exists():
        return None
    try:
        return records.load(folder / RUN)
    except RecordError as error:
        found = str(error).rpartition(": ")[0]  # without its advice to run the explanation again
        raise RecordError(f"{found}: choose another --out, or --overwrite it.") from None


def known(run: Iterator[Record], targets: Sequence[str]) -> Iterator[Record]:
    """Pass a run on, refusing targets the model does not have after one chunk, not after all."""
    for record in run:
        for target in targets:
            record.resolve(target)
        yield record


def watch(
    run: Iterator[Record], path: Path, checkpoint: float, n_masks: int, silent: bool
) -> Record:
    """Follow a run to its end, saving on the way; with a bar where someone watches."""
    saved = checkpointed(run, path, checkpoint)
    shown = with_progress(saved, n_masks) if sys.stderr.isatty() and not silent else saved
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
    folder = out or (run if run.is_dir() else run.parent)
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
    try:
        save(plot_maps(maps), folder / PICTURE)
        save(plot_regions(readings), folder / REGIONS)
        if over_all_fills:
            save_rise(record, maps[0], folder)
        (folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error.strerror}): choose another --out."
        ) from None
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
