"""`mcrise check`: may this model be released? For continuous integration."""

import sys
from pathlib import Path

import click

from ..audits.rule_check import check_rules, overall_state
from ..audits.rule_formats import FORMATS
from ..audits.rules import read_rules
from ..batch.storage import Storage
from .options import OutFile
from .output import echo_text

EXIT = {"holds": 0, "violated": 3, "undecided": 4}


@click.command()
@click.argument("audit")
@click.option("--rules", type=click.Path(path_type=Path), required=True, help="A TOML file.")
@click.option("--against", help="Another audit of the same images, for rules about a change.")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="text",
              show_default=True)  # fmt: skip
@click.option("--out", type=OutFile(), help="Write it there too.")
def check(audit: str, rules: Path, against: str | None, form: str, out: Path | None) -> None:
    """Hold an AUDIT against rules: each holds, is violated or is undecided.

    Exits with 0 if all hold, 3 if one is violated, 4 if none is but one is undecided; 1 and 2 are
    failures and bad input, as everywhere.
    """
    listed, named = read_rules(rules)
    other = against if against is not None else named
    judged = check_rules(Storage(audit), listed, None if other is None else Storage(other))
    text = FORMATS[form](judged, str(rules))
    if out is not None:
        Storage(str(out)).write((text + "\n").encode())
    echo_text(text)
    sys.exit(EXIT[overall_state(judged)])
