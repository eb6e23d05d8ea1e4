"""`mcrise show`: what is known of a saved run, drawn again."""

from pathlib import Path

import click

from ..estimators import DEFAULT
from ..explanation_file import load
from ..output.run_folder import RunFolder, folder_of
from .explain import print_result
from .options import json_option, target_options


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@target_options
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: that of RUN]")
@json_option
def show(
    run: Path, targets: tuple[str, ...], estimator: str, out: Path | None, as_json: bool
) -> None:
    """Draw the maps and findings of a saved RUN (a run.npz or its folder); calls no model.

    Pictures of a class or estimator asked for are named after it, beside those there are.
    """
    explanation = load(run)
    folder = RunFolder(out) if out else folder_of(run)
    folder.check_writable()
    words = [explanation.label(explanation.resolve(target)) for target in targets]
    suffix = " ".join([*words, *([] if estimator == DEFAULT else [estimator])])
    drawing = folder.draw(explanation, targets or (None,), estimator, suffix=suffix)
    print_result(drawing, folder_of(run).run if run.is_dir() else run, as_json)
