"""`mcrise report`: one file to send."""

from pathlib import Path

import click

from .._util.files import write_atomically
from ..errors import InputError
from ..explanation_file import load
from ..output.run_folder import folder_of
from .options import Command, OutFile, option, target_options
from .output import echo


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@option("-o", "--out", type=OutFile(), default="report.html", show_default=True,
        help="The file to write.")  # fmt: skip
@target_options
def report(runs: tuple[Path, ...], out: Path, targets: tuple[str, ...], estimator: str) -> None:
    """Write one HTML file about one or several saved RUNs, without calling the model."""
    from ..output.html import Chapter, render

    chapters = []
    for run in runs:
        explanation, folder = load(run), folder_of(run)
        name = explanation.view.name or folder.title
        own = folder.path.resolve().name
        # As it was given, so that the command goes on with it; but no path of this machine's own.
        given = own if folder.path.is_absolute() or not folder.path.name else folder.path.as_posix()
        elsewhere = given if own != f"{name}.mcrise" else ""
        chapters.append(Chapter(name, explanation, targets or (None,), folder.metrics(), elsewhere))
    text = render(chapters, estimator).encode()
    try:
        write_atomically(out, text)
    except OSError as error:
        raise InputError(
            f"{out} cannot be written ({error.strerror}): choose another --out."
        ) from None
    echo(f"Report: {out} ({len(text) / 2**20:.1f} MB)")
