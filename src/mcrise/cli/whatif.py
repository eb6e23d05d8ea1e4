"""`mcrise whatif`: repaint parts of the image and ask the model again."""

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..errors import InputError
from ..explanation import Explanation
from ..explanation_file import load
from ..images import open_picture
from ..interpretation.regions import Finding, Interpretation, interpret
from ..interpretation.repaints import Repaint, Stroke
from ..interpretation.text import control_words
from ..interpretation.trials import (
    Intervention,
    TriedInterpretation,
    counterfactual_line,
    find_counterfactual,
    intervene,
    try_findings,
    try_strokes,
)
from ..models.model import Model
from ..output.run_folder import RunFolder, folder_of, keeping_answers
from .options import (
    OWN_MODEL_HELP,
    Command,
    estimator_option,
    json_option,
    model_options,
    one_fill,
    option,
    out_option,
    target_option,
)
from .output import print_answer


@click.command(cls=Command)
@click.argument("run", type=click.Path(path_type=Path))
@option("--model", "spec", help=OWN_MODEL_HELP)
@target_option
@option("--region", type=click.IntRange(1), metavar="NUMBER", help="A finding, as printed.")
@option("--mask", type=click.Path(path_type=Path), metavar="FILE",
        help="A region to paint instead: a picture, white on black.")  # fmt: skip
@option("--paint", metavar="FILL", help="Color or fill.  [default: the one the finding suggests]")
@estimator_option
@out_option("that of RUN")
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

    Without --region and --mask, it tests every finding, then searches the smallest repaint that
    changes the decision.
    """
    from ..output.plots import plot_trials

    explanation = load(run)
    explanation.resolve(target)
    model = folder_of(run).model(explanation, spec, settings)
    reading = interpret(explanation, target, estimator)
    folder = RunFolder(out) if out else folder_of(run)
    if region is None and mask is None:
        if paint is not None:
            raise InputError("--paint says what with, but not where: give --region or --mask.")
        with keeping_answers(explanation, run):
            tried = try_findings(explanation, reading, model)
            flip = find_counterfactual(explanation, model, tried)
        trials = [*main_trials(explanation, tried), *([flip] if flip else [])]
        lines = [*tried.lines(), counterfactual_line(flip, explanation, reading.maps.target)]
        answer = {
            "reading": tried.to_json(),
            "flip": flip.to_json(explanation) if flip else None,
        }
    else:
        with keeping_answers(explanation, run):
            trial = try_one(explanation, model, reading, region, mask, paint)
        trials, answer = [trial], {"trial": trial.to_json(explanation)}
        lines = [trial.line(explanation), *top_scores(explanation, trial)]
        lines += [control_words(trial.control)] if trial.control else []
    if trials:
        lines.append(f"Picture: {folder.save(plot_trials(explanation, trials), 'whatif.png')}")
    print_answer(answer, lines, as_json)


def try_one(
    explanation: Explanation,
    model: Model,
    reading: Interpretation,
    number: int | None,
    mask: Path | None,
    paint: str | None,
) -> Intervention:
    """Paint one finding or the user's own region."""
    chosen = None if paint is None else one_fill(paint, "--paint")
    target = reading.maps.target
    if mask is not None:
        if number is not None:
            raise InputError("Both --region and --mask say where to paint: give one of them.")
        if chosen is None:
            raise InputError("--mask says where to paint, but not what with: give --paint.")
        place = "the region of the mask"
        return intervene(explanation, model, read_mask(mask), chosen, target, place, control=True)
    assert number is not None
    tried = try_findings(explanation, reading)  # in the order that was printed, where it was tried
    finding = finding_of(tried.reading, number)
    fill = chosen or finding.strongest.fill
    return intervene(explanation, model, finding.region, fill, target, finding.place, control=True)


def main_trials(explanation: Explanation, tried: TriedInterpretation) -> list[Intervention]:
    """The repaint of each finding that moves the score most, as it was tried."""
    target = tried.reading.maps.target
    strokes = [
        Stroke(one.finding.region, one.control.fill, one.finding.place)
        for one in tried.verdicts
        if one and one.control
    ]
    return [try_strokes(explanation, None, Repaint((stroke,)), target) for stroke in strokes]


def finding_of(reading: Interpretation, number: int) -> Finding:
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


def top_scores(explanation: Explanation, trial: Intervention) -> list[str]:
    """Before and after of the target and the top five."""
    return [
        f"  {score['label']:<30} {score['before']:.3f} → {score['after']:.3f}"
        for score in trial.to_json(explanation)["scores"]
    ]
