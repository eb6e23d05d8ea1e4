"""`mcrise show`: maps and findings of a saved run again."""

from pathlib import Path

import click

from ..estimators import DEFAULT
from ..explanation_file import load
from ..output.run_folder import RunFolder, folder_of
from .explain import print_result
from .options import Command, json_option, out_option, target_options


@click.command(cls=Command)
@click.argument("run", type=click.Path(path_type=Path))
@target_options
@out_option("that of RUN")
@json_option
def show(
    run: Path, targets: tuple[str, ...], estimator: str, out: Path | None, as_json: bool
) -> None:
    """Draw the maps and findings of a saved RUN again, without calling the model.

    RUN is a run.npz or its folder. Pictures of another class or estimator are named after it and
    replace no others.
    """
    explanation = load(run)
    folder = RunFolder(out) if out else folder_of(run)
    folder.check_writable()
    words = [explanation.label(explanation.resolve(target)) for target in targets]
    suffix = " ".join([*words, *([] if estimator == DEFAULT else [estimator])])
    drawing = folder.draw(explanation, targets or (None,), estimator, suffix=suffix)
    print_result(drawing, folder_of(run).run if run.is_dir() else run, as_json)
