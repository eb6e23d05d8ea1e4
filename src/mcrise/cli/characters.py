"""Characters that a terminal or a log file lacks: spelled out, rather than a traceback.

Windows writes files in its own code page and old systems theirs in Latin 1: neither has an arrow.
(Where the locale has ASCII only, click writes UTF-8, since that is what such terminals mostly are.)
"""

import codecs
import io
import sys

SPELLED = {"→": "->", "±": "+/-", "−": "-", "…": "...", "’": "'", "↑": "^", "↓": "v"}


def spell_out() -> None:
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
