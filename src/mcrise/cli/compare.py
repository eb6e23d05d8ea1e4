"""`mcrise compare`: why one class won over another."""

from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from ..explanation_file import load
from ..interpretation.trials import compare as compare_classes
from ..output.run_folder import RunFolder, folder_of, keeping_answers
from .options import (
    OWN_MODEL_HELP,
    Command,
    estimator_option,
    json_option,
    model_options,
    option,
    out_option,
)
from .output import print_answer


@click.command(cls=Command)
@click.argument("run", type=click.Path(path_type=Path))
@option("--target", "targets", multiple=True,
        help="The class that you want; give a second one to compare it with.")  # fmt: skip
@option("--truth", metavar="CLASS", help="The right class; it is compared with the predicted one.")
@option("--model", "spec", help="Tests the suggestions.  " + OWN_MODEL_HELP)
@estimator_option
@out_option("that of RUN")
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
    """Explain why one class won over another in RUN, and what would change the decision.

    Give the class that you want first: --target "priority road" --target "no vehicles". Or give
    --truth, which is compared with the predicted class.
    """
    from ..output.plots import plot_comparison

    if (len(targets) != 2) if truth is None else bool(targets):
        raise InputError("Two classes are compared: give --target twice, or --truth alone.")
    explanation = load(run)
    wanted, given = (truth, None) if truth is not None else targets
    first = explanation.resolve(wanted)  # refuse what cannot be compared before opening a model
    try:
        model = folder_of(run).model(explanation, spec, settings)
    except InputError:
        if spec is not None:
            raise
        model = None  # the maps need none; only the suggestions stay untested
    with keeping_answers(explanation, run):
        comparison = compare_classes(explanation, first, given, estimator, model)
    folder = RunFolder(out) if out else folder_of(run)
    picture = folder.save(plot_comparison(comparison), "compare.png")
    lines = [*comparison.lines(explanation), f"Picture: {picture}"]
    print_answer(comparison.to_json(explanation), lines, as_json)
