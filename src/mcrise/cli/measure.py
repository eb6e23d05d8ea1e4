"""`mcrise measure`: how good an explanation is."""

import json
from pathlib import Path
from typing import Any

import click

from .. import record as records
from ..loop import CHECKPOINT_SECONDS, steps
from ..metrics import METRICS, STEP, check_step, measure, rank
from ..runtimes import load_model
from .explain import RUN, check_writable, earlier, elsewhere, home, known, watch, writing
from .options import NumberOrAuto, estimator_option, model_options
from .whatif import MODEL_HELP, model_of, one_fill

CURVES, NUMBERS = "curves.png", "metrics.json"


@click.command(name="measure")
@click.argument("source", metavar="IMAGE|RUN", type=click.Path(path_type=Path))
@click.option("--model", "spec", help=MODEL_HELP)
@click.option("--target", help="Class name or index.  [default: the predicted one]")
@estimator_option
@click.option("--metric", "metrics", type=click.Choice(METRICS), multiple=True,
              help="Repeat for several.  [default: all]")  # fmt: skip
@click.option("--fill", "fill", default="black", show_default=True,
              help="Of deletion and insertion, and of maps over all fills.")  # fmt: skip
@click.option("--step", type=float, default=STEP, show_default=True,
              help="Share of the pixels changed at once.")  # fmt: skip
@click.option("--colors", "--fills", "colors", default="rgbwk", show_default=True,
              help="Of an IMAGE.")  # fmt: skip
@click.option("--n-masks", type=NumberOrAuto(), default="auto", show_default=True,
              help="Of an IMAGE.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of an IMAGE.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: that of the run]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@model_options
def measure_command(
    source: Path,
    spec: str | None,
    target: str | None,
    estimator: str,
    metrics: tuple[str, ...],
    fill: str,
    step: float,
    colors: str,
    n_masks: int | str,
    seed: int,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Measure how well the map of a RUN, or of a new one of IMAGE, finds what the model needs.

    Deletion paints the pixels in the order of the map, insertion uncovers them; CA-deletion and
    CA-insertion paint each pixel with the color that the map says harms most.
    """
    from ..plots import plot_curves, save

    check_step(step)
    plain = one_fill(fill, "--fill")
    if source.is_dir() or source.suffix == ".npz":
        folder = out or home(source)
        check_writable(folder)
        record = records.load(source)
        model = model_of(record, spec, settings)
    else:
        folder = out or Path(f"{source}.mcrise")
        check_writable(folder)
        model = load_model(spec or "demo", **settings)
        remedy = "choose another --out"
        run = steps(
            source, model, fills=colors, n_masks=n_masks, seed=seed, target=target,
            resume=earlier(folder, remedy),
        )  # fmt: skip
        with elsewhere(folder, remedy):
            record = watch(
                known(run, [target] if target else []), folder / RUN, CHECKPOINT_SECONDS,
                quiet or as_json,
            )  # fmt: skip
    maps = record.maps(target, estimator)
    curves = measure(
        record.view.pixels, model, maps.target, rank(maps, plain), metrics=metrics or METRICS,
        fill=plain, step=step,
    )  # fmt: skip
    notes = [*model.notes, *record.view.notes]
    answer = {
        "target": maps.target,
        "label": maps.label,
        "estimator": estimator,
        "n_masks": record.n_masks,
        "notes": notes,
        "curves": [curve.to_json() for curve in curves.values()],
    }
    with writing(folder):
        save(plot_curves(list(curves.values())), folder / CURVES)
        (folder / NUMBERS).write_text(json.dumps(answer, indent=2) + "\n", encoding="utf-8")
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    click.echo(f"{maps.label}: {record.n_masks:,} masks, {estimator} estimator")
    click.echo("\n".join(curve.line() for curve in curves.values()))
    for note in notes:
        click.echo(f"Note: {note}.")
    click.echo(f"Curves: {folder / CURVES}")
