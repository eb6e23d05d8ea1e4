"""`mcrise whatif` and `mcrise compare`: what would change the model's mind."""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .. import fills
from .. import record as records
from ..errors import InputError
from ..images import read as read_image
from ..model import Model
from ..reading import Finding, Reading, read
from ..record import Record
from ..runtimes import load_model
from ..trials import (
    Trial,
    smallest_flip,
    stroke_of,
    try_comparison,
    try_findings,
    try_out,
    try_region,
)
from ..trials import compare as compare_classes
from .explain import home
from .options import estimator_option, model_options

MODEL_HELP = "The model of the run.  [default: demo, if the run was made with it]"


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--model", "spec", help=MODEL_HELP)
@click.option("--target", help="Class name or index.  [default: the predicted one]")
@click.option("--region", type=click.IntRange(1), help="Number of a finding, as printed.")
@click.option("--mask", type=click.Path(path_type=Path), help="Your own region, white on black.")
@click.option("--paint", help="Color or fill.  [default: the finding's own suggestion]")
@estimator_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: that of RUN]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
@model_options
def whatif(
    run: Path,
    spec: str | None,
    target: str | None,
    region: int | None,
    mask: Path | None,
    paint: str | None,
    estimator: str,
    out: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Repaint parts of the image of RUN and ask the model again.

    Without --region and --mask, every finding is tried, and then all together for the smallest
    repaint that changes the decision.
    """
    record = records.load(run)
    record.resolve(target)
    model = model_of(record, spec, settings)
    reading = read(record, target, estimator)
    if region is None and mask is None:
        if paint is not None:
            raise InputError("--paint says what with, but not where: give --region or --mask.")
        trials = try_findings(record, model, reading)
        flip = smallest_flip(record, model, reading)
        lines = reading.lines([trial.line(record) for trial in trials])
        lines.append(tell_flip(record, flip))
    else:
        trials = [try_one(record, model, reading, region, mask, paint)]
        flip, lines = None, [trials[0].line(record), *top_scores(record, trials[0])]
    picture = draw(record, [*trials, *([flip] if flip else [])], out or home(run))
    answer = {
        "trials": [trial.to_json(record) for trial in trials],
        "flip": flip.to_json(record) if flip else None,
    }
    speak(answer, [*lines, f"Picture: {picture}"] if picture else lines, as_json)


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--target", "targets", multiple=True, help="Class wanted; give another to compare.")
@click.option("--truth", help="The right class, compared with the predicted one.")
@click.option("--model", "spec", help="Tries the suggestions.  " + MODEL_HELP)
@estimator_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: that of RUN]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
@model_options
def compare(
    run: Path,
    targets: tuple[str, ...],
    truth: str | None,
    spec: str | None,
    estimator: str,
    out: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Where and by what color two classes of RUN part, and what would move the decision.

    Give the class you want first: --target "priority road" --target "no vehicles", or --truth and
    it is compared with the predicted one.
    """
    from ..plots import plot_comparison, save

    if (len(targets) != 2) if truth is None else bool(targets):
        raise InputError("Two classes are compared: give --target twice, or --truth alone.")
    record = records.load(run)
    wanted, given = (truth, None) if truth is not None else targets
    comparison = compare_classes(record, wanted, given, estimator)
    try:
        model = model_of(record, spec, settings)
    except InputError:
        if spec is not None:
            raise
        model = None  # the maps need none; only the suggestions stay untried
    trials = try_comparison(record, model, comparison) if model else []
    lines = comparison.difference.lines()
    if trials:
        lines.append(f"To move it towards {comparison.wanted.label!r}:")
        lines += [f"- {trial.line(record)}" for trial in trials]
    elif model:
        lines.append(f"No fill is known to move it towards {comparison.wanted.label!r}.")
    else:
        lines.append("Give --model to try what would move the decision.")
    picture = save(plot_comparison(comparison), (out or home(run)) / "compare.png")
    answer = {
        "difference": comparison.difference.to_json(),
        "trials": [trial.to_json(record) for trial in trials],
    }
    speak(answer, [*lines, f"Picture: {picture}"], as_json)


def model_of(record: Record, spec: str | None, settings: dict[str, Any]) -> Model:
    """The model a record was made with; any other is refused."""
    model = load_model(spec or "demo", **settings)
    if model.identity != record.model:
        raise InputError(
            f"The record was made with {record.model!r}, but this is {model.identity!r}: give the "
            "model of the run with --model, and the same settings."
        )
    return model


def try_one(
    record: Record,
    model: Model,
    reading: Reading,
    number: int | None,
    mask: Path | None,
    paint: str | None,
) -> Trial:
    """Paint one finding or the user's own region."""
    chosen = None if paint is None else one_fill(paint, "--paint")
    if mask is not None:
        if number is not None:
            raise InputError("Both --region and --mask say where to paint: give one of them.")
        if chosen is None:
            raise InputError("--mask says where to paint, but not what with: give --paint.")
        return try_region(
            record, model, read_mask(mask), chosen, reading.maps, "the region of the mask"
        )
    assert number is not None
    finding = finding_of(reading, number)
    if chosen is None:
        stroke, expected = stroke_of(finding), finding.strongest.value
        return try_out(record, model, [[stroke]], reading.maps.target, expected=[expected])[0]
    return try_region(record, model, finding.region, chosen, reading.maps, f"the {finding.place}")


def one_fill(text: str, option: str) -> fills.Fill:
    chosen = fills.parse(text)
    if len(chosen) != 1:
        raise InputError(f"{option} {text} names {len(chosen)} fills, but one is needed.")
    return chosen[0]


def finding_of(reading: Reading, number: int) -> Finding:
    if number > len(reading.findings):
        n_findings = len(reading.findings)
        raise InputError(
            f"There is no region {number}: the reading of {reading.maps.label!r} has {n_findings} "
            f"finding{'' if n_findings == 1 else 's'}."
        )
    return reading.findings[number - 1]


def read_mask(path: Path) -> NDArray[np.bool_]:
    """White (above half) is in the region."""
    picture: Image.Image = read_image(path)[0].convert("L")
    return np.asarray(picture) > 127


def tell_flip(record: Record, flip: Trial | None) -> str:
    if flip is None:
        return "No combination of these findings changes the decision."
    share = f"{100 * flip.share:.0f} % of the image"
    return f"Smallest repaint found that changes the decision ({share}): {flip.line(record)}"


def top_scores(record: Record, trial: Trial) -> list[str]:
    """Before and after of the target and the top five."""
    return [
        f"  {score['label']:<30} {score['before']:.3f} → {score['after']:.3f}"
        for score in trial.to_json(record)["scores"]
    ]


def draw(record: Record, trials: list[Trial], folder: Path) -> Path | None:
    from ..plots import plot_trials, save

    return save(plot_trials(record, trials), folder / "whatif.png") if trials else None


def speak(answer: dict[str, Any], lines: list[str], as_json: bool) -> None:
    click.echo(json.dumps(answer, indent=2) if as_json else "\n".join(lines))
