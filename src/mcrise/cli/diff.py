"""`mcrise diff`: two audits or two runs compared."""

import os
from pathlib import Path
from typing import Any

import click

from .._util.files import RUN
from ..audits.diff import compare_audits, plot_difference
from ..audits.diff_page import render_audits, render_runs
from ..audits.figures_json import to_jsonable
from ..audits.run_diff import compare_runs
from ..audits.tables import NOTE, read_asked
from ..batch.storage import Storage
from ..errors import InputError
from ..explanation_file import load
from ..output.run_folder import RunFolder
from .options import Command, estimator_option, json_option, option
from .output import print_answer

PICTURE, PAGE, TABLE = "diff.png", "diff.html", "diff.json"


@click.command(cls=Command)
@click.argument("before")
@click.argument("after")
@option("--target", help="For two runs: class name or index.  [default: the predicted class]")
@estimator_option
@option("--out", type=click.Path(path_type=Path), default="diff.mcrise", show_default=True,
        help="Folder of the page, the picture and the table.")  # fmt: skip
@json_option
def diff(
    before: str, after: str, target: str | None, estimator: str, out: Path, as_json: bool
) -> None:
    """Compare two audits, or two runs, BEFORE and AFTER.

    Both must have the same images and the same masks. Two audits are compared class by class and
    zone by zone, each image with itself; two runs of an image are compared in one class.
    """
    from ..output.plots import plot_comparison

    kinds = {_kind_of(before), _kind_of(after)}
    if len(kinds) > 1:
        raise InputError(f"{before} and {after} are a run and an audit: give two of a kind.")
    folder = RunFolder(out)
    folder.check_writable()
    if kinds == {"run"}:
        runs = compare_runs(load(Path(before)), load(Path(after)), target, estimator)
        difference, zones = runs.comparison.difference.to_json(), to_jsonable(runs.zones)
        lines, content = runs.lines(), {"difference": difference, "zones": zones}
        figure: Any = plot_comparison(runs.comparison)
        page = render_runs(runs, Path(before).name, Path(after).name)
    else:
        if target is not None:
            raise InputError("--target is of two runs: two audits are compared in all classes.")
        found = compare_audits(Storage(before), Storage(after))
        info = read_asked(Storage(after))
        lines, content = found.lines(info), found.to_json()
        figure = plot_difference(found)
        page = render_audits(found, info)
    written = [folder.write(PAGE, page.encode()), folder.write_json(TABLE, content)]
    if figure is not None:
        written.insert(0, folder.save(figure, PICTURE))
    print_answer(content, [*lines, *(f"Written: {path}" for path in written)], as_json)


def _kind_of(where: str) -> str:
    if where.endswith(".npz") or os.path.exists(os.path.join(where, RUN)):
        return "run"
    if (Storage(where) / NOTE).exists():
        return "audit"
    raise InputError(f"{where} is neither a run nor an audit: give the folder of one.")
