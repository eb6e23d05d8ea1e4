"""`mcrise measure`: how good an explanation is."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..config import RunConfig
from ..explanation import Explanation
from ..explanation_file import load
from ..fills import parse_one
from ..metrics import METRICS, STEP, check_step
from ..metrics import measure as measure_curves
from ..models import load_model
from ..models.model import Model
from ..output.run_folder import CURVES, RunFolder, folder_of
from ..output.run_folder import METRICS as NUMBERS
from ..sampling import run
from .explain import follow
from .options import (
    Command,
    advanced,
    estimator_option,
    json_option,
    model_options,
    option,
    out_option,
    quiet_option,
    run_options,
    target_option,
)
from .output import print_answer


@click.command(cls=Command)
@click.argument("source", metavar="IMAGE|RUN", type=click.Path(path_type=Path))
@option("--model", "spec",
        help="As for explain, or the model of RUN.  [default: demo, or the ONNX file of RUN]"
        )  # fmt: skip
@target_option
@estimator_option
@option("--metric", "metrics", type=click.Choice(METRICS), multiple=True,
        help="What to measure; repeat for several.  [default: all]")  # fmt: skip
@option("--fill", "fill", default="black", show_default=True,
        help="Color that deletion and insertion paint, also for maps of all colors together.",
        )  # fmt: skip
@advanced("--step", type=float, default=STEP, show_default=True,
          help="Share of the pixels changed per step of a curve.")  # fmt: skip
@run_options()
@out_option("that of the run")
@json_option
@quiet_option
@model_options
def measure(
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
    """Measure how well the map of a RUN or an IMAGE finds what the model needs.

    Deletion paints the pixels in the order of the map, insertion uncovers them; CA-deletion and
    CA-insertion paint each pixel with the color that harms most according to the map. Options about
    masks are for an IMAGE: a RUN has its masks.
    """
    from ..output.plots import plot_curves

    check_step(step)
    plain = parse_one(fill, what="--fill")
    if source.is_dir() or source.suffix == ".npz":
        folder = RunFolder(out) if out else folder_of(source)
        folder.check_writable()
        explanation = load(source)
        explanation.resolve(target)
        model = folder_of(source).model(explanation, spec, settings)
    else:
        folder = RunFolder(out or Path(f"{source}.mcrise"))
        model = load_model(spec or "demo", **settings)
        explanation = _explained(
            source, model, replace(config, target=target), folder, quiet or as_json
        )
    maps = explanation.maps(target, estimator)
    curves = measure_curves(
        explanation, model, target, estimator=estimator, metrics=metrics or tuple(METRICS),
        fill=plain, step=step,
    )  # fmt: skip
    notes = list(dict.fromkeys((*model.notes, *explanation.notes)))
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
    lines = [
        f"{maps.label}: {explanation.n_masks:,} masks, {estimator} estimator",
        *(curve.line() for curve in curves.values()),
        *(f"Note: {note}." for note in notes),
        f"Curves: {picture}",
    ]
    print_answer(answer, lines, as_json)


def _explained(
    image: Path, model: Model, config: RunConfig, folder: RunFolder, silent: bool
) -> Explanation:
    """The run of an image, in its folder: the one there is, or a new one."""
    folder.check_writable()
    file = folder.file("choose another --out")
    grown = run(model.view(image), model, config, file.earlier())
    return follow(file.keep(grown), silent)
