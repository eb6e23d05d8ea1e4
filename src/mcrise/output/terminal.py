"""Sentences in a terminal: each color that they name has a swatch before it.

Where stdout is no terminal, or the user wants no colors, they are plain text.
"""

import re
from collections.abc import Iterable, Sequence

import click
from rich.console import Console
from rich.text import Text

from .._util.text import one_line
from ..colors import rgb_of
from ..fills import Fill, Solid

SWATCH = "■ "
QUOTED = r"'[^']*'|“[^”]*”"  # a label may hold the name of a color


def print_lines(lines: Iterable[str], fills: Sequence[Fill] = ()) -> None:
    """Print lines, with a swatch before each color among `fills` or written as #rrggbb."""
    console = Console()
    safe = [one_line(line) for line in lines]
    if not console.is_terminal or console.color_system is None or console.no_color:
        click.echo("\n".join(safe))
        return
    for line in safe:
        console.print(with_swatches(line, fills), soft_wrap=True, highlight=False)


def with_swatches(line: str, fills: Sequence[Fill]) -> Text:
    """A line in which the names of colors have swatches."""
    names = [re.escape(fill.name) for fill in fills if isinstance(fill, Solid)]
    colors = {fill.name: fill.rgb for fill in fills if isinstance(fill, Solid)}
    words = "|".join([r"#[0-9a-f]{6}\b", *(rf"\b{name}\b" for name in names)])
    out, end = Text(), 0
    for found in re.finditer(f"{QUOTED}|(?P<color>{words})", line):
        name = found["color"]
        rgb = name and (colors.get(name) or rgb_of(name))
        if rgb:
            out.append(line[end : found.start()])
            out.append(SWATCH, style="rgb({},{},{})".format(*rgb))
            end = found.start()
    out.append(line[end:])
    return out
