"""`mcrise whatif` and `mcrise compare`: what would change the model's mind."""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .. import fills
from ..archive import load
from ..errors import InputError
from ..folder import RunFolder, folder_of, keeping_answers
from ..images import open_picture
from ..model import Model
from ..reading import Finding, Reading, read_maps
from ..record import Record
from ..repaints import Repaint, Stroke
from ..trials import (
    Trial,
    Tried,
    flip_line,
    repaint,
    smallest_flip,
    try_reading,
    try_strokes,
)
from ..trials import compare as compare_classes
from ..wording import control_words
from .characters import say, say_text
from .options import OWN_MODEL_HELP, estimator_option, json_option, model_options


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--model", "spec", help=OWN_MODEL_HELP)
@click.option("--target", help="Class name or index.  [default: the predicted one]")
@click.option("--region", type=click.IntRange(1), help="Number of a finding, as printed.")
@click.option("--mask", type=click.Path(path_type=Path), help="Your own region, white on black.")
@click.option("--paint", help="Color or fill.  [default: the finding's own suggestion]")
@estimator_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: that of RUN]")
@json_option
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
    settings: dict[str, Any],
) -> None:
    """Repaint parts of the image of RUN and ask the model again.

    Without --region and --mask, every finding is tried, and then all together for the smallest
    repaint that changes the decision.
    """
    from ..plots import plot_trials

    record = load(run)
    record.resolve(target)
    model = folder_of(run).model(record, spec, settings)
    reading = read_maps(record, target, estimator)
    folder = RunFolder(out) if out else folder_of(run)
    if region is None and mask is None:
        if paint is not None:
            raise InputError("--paint says what with, but not where: give --region or --mask.")
        with keeping_answers(record, run):
            tried = try_reading(record, reading, model)
            flip = smallest_flip(record, model, tried)
        trials = [*main_trials(record, tried), *([flip] if flip else [])]
        lines = [*tried.lines(), flip_line(flip, record, reading.maps.target)]
        answer = {
            "reading": tried.to_json(),
            "flip": flip.to_json(record) if flip else None,
        }
    else:
        with keeping_answers(record, run):
            trial = try_one(record, model, reading, region, mask, paint)
        trials, answer = [trial], {"trial": trial.to_json(record)}
        lines = [trial.line(record), *top_scores(record, trial)]
        lines += [control_words(trial.control)] if trial.control else []
    if trials:
        lines.append(f"Picture: {folder.save(plot_trials(record, trials), 'whatif.png')}")
    speak(answer, lines, as_json)


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--target", "targets", multiple=True, help="Class wanted; give another to compare.")
@click.option("--truth", help="The right class, compared with the predicted one.")
@click.option("--model", "spec", help="Tries the suggestions.  " + OWN_MODEL_HELP)
@estimator_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: that of RUN]")
@json_option
@model_options
def compare(
    run: Path,
    targets: tuple[str, ...],
    truth: str | None,
    spec: str | None,
    estimator: str,
    out: Path | None,
    as_json: bool,
    settings: dict[str, Any],
) -> None:
    """Where and by what color two classes of RUN part, and what would move the decision.

    Give the class you want first: --target "priority road" --target "no vehicles", or --truth and
    it is compared with the predicted one.
    """
    from ..plots import plot_comparison

    if (len(targets) != 2) if truth is None else bool(targets):
        raise InputError("Two classes are compared: give --target twice, or --truth alone.")
    record = load(run)
    wanted, given = (truth, None) if truth is not None else targets
    first = record.resolve(wanted)  # refuse what cannot be compared before opening a model
    try:
        model = folder_of(run).model(record, spec, settings)
    except InputError:
        if spec is not None:
            raise
        model = None  # the maps need none; only the suggestions stay untried
    with keeping_answers(record, run):
        comparison = compare_classes(record, first, given, estimator, model)
    folder = RunFolder(out) if out else folder_of(run)
    picture = folder.save(plot_comparison(comparison), "compare.png")
    lines = [*comparison.lines(record), f"Picture: {picture}"]
    speak(comparison.to_json(record), lines, as_json)


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
    target = reading.maps.target
    if mask is not None:
        if number is not None:
            raise InputError("Both --region and --mask say where to paint: give one of them.")
        if chosen is None:
            raise InputError("--mask says where to paint, but not what with: give --paint.")
        place = "the region of the mask"
        return repaint(record, model, read_mask(mask), chosen, target, place, control=True)
    assert number is not None
    tried = try_reading(record, reading)  # in the order that was printed, where it was tried
    finding = finding_of(tried.reading, number)
    fill = chosen or finding.strongest.fill
    return repaint(record, model, finding.region, fill, target, finding.place, control=True)


def main_trials(record: Record, tried: Tried) -> list[Trial]:
    """The repaint of each finding that moves the score most, as it was tried."""
    target = tried.reading.maps.target
    strokes = [
        Stroke(one.finding.region, one.control.fill, one.finding.place)
        for one in tried.verdicts
        if one and one.control
    ]
    return [try_strokes(record, None, Repaint((stroke,)), target) for stroke in strokes]


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
    picture: Image.Image = open_picture(path)[0].convert("L")
    return np.asarray(picture) > 127


def top_scores(record: Record, trial: Trial) -> list[str]:
    """Before and after of the target and the top five."""
    return [
        f"  {score['label']:<30} {score['before']:.3f} → {score['after']:.3f}"
        for score in trial.to_json(record)["scores"]
    ]


def speak(answer: dict[str, Any], lines: list[str], as_json: bool) -> None:
    if as_json:
        say_text(json.dumps(answer, indent=2))
    else:
        say(*lines)
