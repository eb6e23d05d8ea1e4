"""What the command says, in characters that can be shown and do nothing else.

All of it passes through here, but for the progress bar, which moves the cursor and tells no names.
What a terminal or a log file lacks is spelled out, rather than a traceback: Windows writes files in
its own code page and old systems theirs in Latin 1, and neither has an arrow. (Where the locale has
ASCII only, click writes UTF-8, since that is what such terminals mostly are.)
"""

import codecs
import io
import json
import sys
from typing import Any

import click

from .._util.text import one_line, visible

SPELLED = {"→": "->", "±": "+/-", "−": "-", "…": "...", "’": "'", "↑": "^", "↓": "v"}
MOST = 1000  # characters of a sentence about what went wrong


def echo(*lines: str, err: bool = False) -> None:
    """Print lines; a name in one of them cannot begin another."""
    echo_text("\n".join(map(one_line, lines)), err=err)


def echo_text(text: str, err: bool = False) -> None:
    """Print what has its own lines, such as JSON."""
    click.echo(visible(text), err=err)


def print_answer(answer: dict[str, Any], lines: list[str], as_json: bool) -> None:
    """Print a result as JSON or in words."""
    if as_json:
        echo_text(json.dumps(answer, indent=2))
    else:
        echo(*lines)


def sentence(text: str) -> str:
    """What went wrong, in one line; of a long one the beginning and the end, which says what to do.

    Files of others are quoted in it, and a word there may have a million characters.
    """
    text = one_line(text)
    return text if len(text) <= MOST else f"{text[: MOST // 2]} … {text[-(MOST // 2) :]}"


def install_encoding_fallback() -> None:
    """Let stdout and stderr spell out what they cannot encode."""
    codecs.register_error("mcrise.spelled", spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not so where a test or a notebook listens
            stream.reconfigure(errors="mcrise.spelled")


def spelled(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    try:  # bytes of a file name that were never characters go out as they came in
        return text.encode("ascii", "surrogateescape"), error.end
    except UnicodeEncodeError:
        return "".join(SPELLED.get(one, "?") for one in text), error.end
