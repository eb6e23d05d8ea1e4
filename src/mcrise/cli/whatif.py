"""`mcrise whatif`: repaint a part of an image and ask the model again."""

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .._util.text import digits
from ..errors import InputError
from ..explanation import Explanation
from ..explanation_file import load
from ..fills import parse_one
from ..images import open_picture
from ..interpretation.findings import Finding
from ..interpretation.trials import Intervention, intervene
from ..models.model import Model
from ..output.run_folder import RunFolder, folder_of, keeping_answers
from .options import (
    OWN_MODEL_HELP,
    Command,
    json_option,
    model_options,
    option,
    out_option,
    target_option,
)
from .output import print_answer


@click.command(cls=Command)
@click.argument("run", type=click.Path(path_type=Path))
@option("--model", "spec", help=OWN_MODEL_HELP)
@target_option
@option("--region", metavar="LETTER", help="A finding, by its letter as printed.")
@option("--mask", type=click.Path(path_type=Path), metavar="FILE",
        help="A region to paint instead: a picture, white on black.")  # fmt: skip
@option("--paint", metavar="FILL",
        help="Color or fill.  [default: what the finding was painted with]")  # fmt: skip
@out_option("that of RUN")
@json_option
@model_options
def whatif(
    run: Path,
    spec: str | None,
    target: str | None,
    region: str | None,
    mask: Path | None,
    paint: str | None,
    out: Path | None,
    as_json: bool,
    settings: dict[str, Any],
) -> None:
    """Repaint parts of the image of RUN and ask the model again.

    Without --region and --mask, it searches for regions that matter and tests them.
    """
    from ..output.figure import plot_explanation
    from ..output.plots import plot_trials

    explanation = load(run)
    index = explanation.resolve(target)
    if region is not None and mask is not None:
        raise InputError("Both --region and --mask say where to paint: give one of them.")
    finding = None if region is None else _finding_of(explanation, index, region)
    model = folder_of(run).model(explanation, spec, settings)
    folder = RunFolder(out) if out else folder_of(run)
    if region is None and mask is None:
        if paint is not None:
            raise InputError("--paint says what with, but not where: give --region or --mask.")
        with keeping_answers(explanation, run):
            findings = explanation.findings_of(index, model)
        figure, answer = plot_explanation(explanation, findings), {"findings": findings.to_json()}
        lines = [f"{explanation.prediction}.", *findings.lines()]
    else:
        with keeping_answers(explanation, run):
            trial = _paint_one(explanation, model, index, finding, mask, paint)
        figure, answer = plot_trials(explanation, [trial]), {"trial": trial.to_json(explanation)}
        lines = [trial.line(explanation), *_top_scores(explanation, trial)]
    lines.append(f"Picture: {folder.save(figure, 'whatif.png')}")
    print_answer(answer, lines, as_json)


def _paint_one(
    explanation: Explanation,
    model: Model,
    target: int,
    finding: Finding | None,
    mask: Path | None,
    paint: str | None,
) -> Intervention:
    """Paint one finding or the user's own region."""
    fill = None if paint is None else parse_one(paint, what="--paint")
    if finding is not None:
        region, place, fill = finding.region, finding.place, fill or finding.fill
    else:
        assert mask is not None
        region, place = _read_mask(mask), "the region of the mask"
    if fill is None:
        raise InputError("--mask says where to paint, but not what with: give --paint.")
    return intervene(explanation, model, region, fill, target, place, control=True)


def _finding_of(explanation: Explanation, target: int, letter: str) -> Finding:
    label = explanation.label(target)
    if target not in explanation.trial_logs:
        raise InputError(
            f"There is no region {letter} yet: no trials were made for {label!r}. Run the same "
            "command without --region first."
        )
    findings = explanation.findings_of(target)
    found = findings.find(letter)
    if found is None:
        letters = ", ".join(one.letter for one in findings)
        known = f"its findings are {letters}" if letters else "it has no findings"
        raise InputError(f"There is no region {letter} of {label!r}: {known}.")
    return found


def _read_mask(path: Path) -> NDArray[np.bool_]:
    """White (above half) is in the region."""
    picture: Image.Image = open_picture(path)[0].convert("L")
    return np.asarray(picture) > 127


def _top_scores(explanation: Explanation, trial: Intervention) -> list[str]:
    """Before and after of the target and the top five."""
    return [
        f"  {score['label']:<30} {digits(score['before'])} → {digits(score['after'])}"
        for score in trial.to_json(explanation)["scores"]
    ]
