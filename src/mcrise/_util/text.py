"""Text for people: characters that act on a terminal made visible, and words that are not known.

Labels and names come from others' files, where a sequence that begins with ESC may rename a window,
a newline may add a line that nobody wrote, and a change of direction may turn a name around.
"""

import difflib
import re
from collections.abc import Sequence

# C0 without tab and newline, DEL, C1, separators of lines, marks and changes of direction; and the
# bytes of C1 in a name that is no text, which Python hands on as half surrogates.
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udc9f]"
)
DEL = "\x7f"
MOST_LISTED = 40  # of the words that are known
UNITS = ((3600, "h"), (60, "min"), (1, "s"))  # of time, the largest first


def did_you_mean(word: str, known: Sequence[str], otherwise: str = "", cutoff: float = 0.6) -> str:
    """The end of a sentence about a word that is not known: `did you mean 'stop'?`.

    Where none of those known is like it: `otherwise`, or the first of them. Capitals do not matter.
    """
    lowered = {one.lower(): one for one in known}
    near = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=cutoff)
    if near:
        return f"did you mean {lowered[near[0]]!r}?"
    more = " and so on" if len(known) > MOST_LISTED else ""
    return otherwise or f"there are {', '.join(known[:MOST_LISTED])}{more}."


def duration(seconds: float) -> str:
    """`under 0.1 s`, `0.4 s`, `12 s`, `3.5 min` or `2 h`."""
    if seconds < 0.1:
        return "under 0.1 s"
    size, unit = next((one for one in UNITS if seconds >= 2 * one[0]), UNITS[-1])
    count = seconds / size
    return f"{count:.0f} {unit}" if count >= 9.5 else f"{count:.2g} {unit}"


def with_article(noun: str) -> str:
    """`an audit`, `a study`."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def number(score: float, kind: str) -> str:
    """A score for people: `0.91` of a probability; `2,013`, `12.3` or `0.00151` of any kind."""
    if kind != "any":
        return f"{score:.2f}"
    return f"{score:,.0f}" if abs(score) >= 1000 else f"{score:.3g}"


def numbers(scores: Sequence[float], kind: str) -> list[str]:
    """Scores for people, with so many digits that those that differ look different."""
    short = [number(score, kind) for score in scores]
    if len(set(short)) == len(set(scores)) or kind == "any":
        return short
    for digits in (3, 4):
        longer = [f"{score:.{digits}f}" for score in scores]
        if len(set(longer)) == len(set(scores)):
            return longer
    return short


def digits(score: float) -> str:
    """A score among others, to three digits: `0.819` of a probability, `2,013` of any kind."""
    return f"{score:.3f}" if abs(score) <= 1 else number(score, "any")


def magnitude(value: float) -> str:
    """An effect, error or limit to two digits: `0.057`, `1.2`, `600`."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def visible(text: str) -> str:
    """A text of several lines, whatever is in them; what was JSON stays JSON."""
    return ACTING.sub(lambda found: _spelled(found[0]), text)


def one_line(text: str) -> str:
    """One line, whatever is in it."""
    return visible(text.replace("\t", "\\t").replace("\n", "\\n"))


def _spelled(character: str) -> str:
    """As Python spells it, but for the one that JSON lets through and spells otherwise."""
    return "\\u007f" if character == DEL else repr(character)[1:-1]
