"""`mcrise check`: release checks, for continuous integration."""

import sys
from pathlib import Path

import click

from ..audits.rule_check import check_rules, overall_state
from ..audits.rule_formats import FORMATS
from ..audits.rules import read_rules
from ..batch.storage import Storage
from .options import Command, OutFile, option
from .output import echo_text

EXIT = {"holds": 0, "violated": 3, "undecided": 4}


@click.command(cls=Command)
@click.argument("audit")
@option("--rules", type=click.Path(path_type=Path), required=True, help="TOML file of rules.")
@option(
    "--against", metavar="AUDIT", help="Another audit of the same images, for rules about change."
)
@option("--format", "form", type=click.Choice(list(FORMATS)), default="text", show_default=True,
        help="Format of the result.")  # fmt: skip
@option("--out", type=OutFile(), help="Also write the result to this file.")
def check(audit: str, rules: Path, against: str | None, form: str, out: Path | None) -> None:
    """Test an AUDIT against rules (for CI): each holds, is violated or is undecided.

    The exit code is 0 if all rules hold, 3 if one is violated, and 4 if none is violated but one is
    undecided. As everywhere, 1 is a failure and 2 is bad input.
    """
    listed, named = read_rules(rules)
    other = against if against is not None else named
    judged = check_rules(Storage(audit), listed, None if other is None else Storage(other))
    text = FORMATS[form](judged, str(rules))
    if out is not None:
        Storage(str(out)).write((text + "\n").encode())
    echo_text(text)
    sys.exit(EXIT[overall_state(judged)])
