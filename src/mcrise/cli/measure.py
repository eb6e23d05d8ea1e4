"""`mcrise measure`: how good an explanation is."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..config import RunConfig
from ..explanation import Explanation
from ..explanation_file import load
from ..metrics import METRICS, STEP, check_step, measure
from ..models import load_model
from ..models.model import Model
from ..output.run_folder import CURVES, RunFolder, folder_of
from ..output.run_folder import METRICS as NUMBERS
from ..sampling import run
from .explain import follow
from .options import estimator_option, json_option, model_options, run_options
from .output import echo, echo_text
from .whatif import one_fill


@click.command(name="measure")
@click.argument("source", metavar="IMAGE|RUN", type=click.Path(path_type=Path))
@click.option("--model", "spec", help="As for explain; of a RUN, as for whatif.  [default: demo]")
@click.option("--target", help="Class name or index.  [default: the predicted one]")
@estimator_option
@click.option("--metric", "metrics", type=click.Choice(METRICS), multiple=True,
              help="Repeat for several.  [default: all]")  # fmt: skip
@click.option("--fill", "fill", default="black", show_default=True,
              help="Of deletion and insertion, and of maps over all fills.")  # fmt: skip
@click.option("--step", type=float, default=STEP, show_default=True,
              help="Share of the pixels changed at once.")  # fmt: skip
@run_options()
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: that of the run]")
@json_option
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
    config: RunConfig,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    settings: dict[str, Any],
) -> None:
    """Measure how well the map of a RUN, or of a new one of IMAGE, finds what the model needs.

    Deletion paints the pixels in the order of the map, insertion uncovers them; CA-deletion and
    CA-insertion paint each pixel with the color that the map says harms most. Colors, masks and
    the like are of an IMAGE: a RUN has its own.
    """
    from ..output.plots import plot_curves

    check_step(step)
    plain = one_fill(fill, "--fill")
    if source.is_dir() or source.suffix == ".npz":
        folder = RunFolder(out) if out else folder_of(source)
        folder.check_writable()
        explanation = load(source)
        explanation.resolve(target)
        model = folder_of(source).model(explanation, spec, settings)
    else:
        folder = RunFolder(out or Path(f"{source}.mcrise"))
        model = load_model(spec or "demo", **settings)
        explanation = explained(
            source, model, replace(config, target=target), folder, quiet or as_json
        )
    maps = explanation.maps(target, estimator)
    curves = measure(
        explanation, model, target, estimator=estimator, metrics=metrics or tuple(METRICS),
        fill=plain,
        step=step,
    )  # fmt: skip
    notes = [*model.notes, *explanation.notes]
    answer = {
        "target": maps.target,
        "label": maps.label,
        "estimator": estimator,
        "n_masks": explanation.n_masks,
        "notes": notes,
        "curves": [curve.to_json() for curve in curves.values()],
    }
    picture = folder.save(plot_curves(list(curves.values())), CURVES)
    folder.write_json(NUMBERS, answer)
    if as_json:
        echo_text(json.dumps(answer, indent=2))
        return
    echo(
        f"{maps.label}: {explanation.n_masks:,} masks, {estimator} estimator",
        *(curve.line() for curve in curves.values()),
        *(f"Note: {note}." for note in notes),
        f"Curves: {picture}",
    )


def explained(
    image: Path, model: Model, config: RunConfig, folder: RunFolder, silent: bool
) -> Explanation:
    """The record of an image, in its folder: the one there is, or a new one."""
    folder.check_writable()
    remedy = "choose another --out"
    file = folder.file(remedy)
    grown = run(model.view(image), model, config, file.earlier())
    return follow(file.keep(grown), silent)
