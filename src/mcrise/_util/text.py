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


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """The end of a sentence about a word that is not known."""
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."


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


def visible(text: str) -> str:
    """A text of several lines, whatever is in them; what was JSON stays JSON."""
    return ACTING.sub(lambda found: _spelled(found[0]), text)


def one_line(text: str) -> str:
    """One line, whatever is in it."""
    return visible(text.replace("\t", "\\t").replace("\n", "\\n"))


def _spelled(character: str) -> str:
    """As Python spells it, but for the one that JSON lets through and spells otherwise."""
    return "\\u007f" if character == DEL else repr(character)[1:-1]
