"""`mcrise report`: one file to send."""

import json
from pathlib import Path
from typing import Any

import click

from .. import record as records
from .explain import SUMMARY, home, writing
from .measure import NUMBERS
from .options import target_options


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("-o", "--out", type=click.Path(path_type=Path), default="report.html",
              show_default=True, help="The file to write.")  # fmt: skip
@target_options
def report(runs: tuple[Path, ...], out: Path, targets: tuple[str, ...], estimator: str) -> None:
    """Write a self-contained page about one or several saved RUNs; calls no model."""
    from ..report import Chapter, render

    chapters = [
        Chapter(
            name_of(run),
            records.load(run),
            targets or (None,),
            beside(run, SUMMARY),
            beside(run, NUMBERS),
        )
        for run in runs
    ]
    text = render(chapters, estimator)
    with writing(out):
        out.write_text(text, encoding="utf-8")
    click.echo(f"Report: {out} ({len(text.encode()) / 2**20:.1f} MB)")


def name_of(run: Path) -> str:
    """`stop.png` for `stop.png.mcrise/run.npz`."""
    return home(run).resolve().name.removesuffix(".mcrise")


def beside(run: Path, name: str) -> dict[str, Any]:
    """What another command wrote beside the record, if it did."""
    try:
        content = json.loads((home(run) / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
