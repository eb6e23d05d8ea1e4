"""Verdicts on rules, as text, JSON, JUnit's XML and GitHub's annotations.

Names of classes, zones and rules come from others' files: they are escaped in each as it needs.
"""

import json
import re
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape, quoteattr

from .._util.text import one_line
from .rule_check import Judged

LEVELS = {"holds": "notice", "violated": "error", "undecided": "warning"}
PROBLEMS = {"violated": "failure", "undecided": "error"}  # what JUnit calls them
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_text(judged: Sequence[Judged], rules: str) -> str:
    lines = []
    for one in judged:
        lines.append(f"{one.state.upper()}: {one_line(one.rule.title)}")
        shown = [v for v in one.verdicts if v.state != "holds"] or one.verdicts[:1]
        lines += [f"  {one_line(verdict.sentence)}" for verdict in shown]
        rest = len(one.verdicts) - len(shown)
        lines += [f"  ({rest} more hold.)"] if rest else []
    return "\n".join(lines)


def as_json(judged: Sequence[Judged], rules: str) -> str:
    return json.dumps([one.to_json() for one in judged], indent=2)


def as_junit(judged: Sequence[Judged], rules: str) -> str:
    """A test for each rule: violated is a failure, undecided an error."""
    n = {state: sum(one.state == state for one in judged) for state in PROBLEMS}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="mcrise check" tests="{len(judged)}" failures="{n["violated"]}" '
        f'errors="{n["undecided"]}">',
    ]
    for one in judged:
        lines.append(f"  <testcase classname={attribute(rules)} name={attribute(one.rule.title)}>")
        text = "\n".join(verdict.sentence for verdict in one.verdicts if verdict.state == one.state)
        if kind := PROBLEMS.get(one.state):
            message = attribute(one.sentence)
            lines.append(
                f'    <{kind} type="{one.state}" message={message}>{characters(text)}</{kind}>'
            )
        else:
            lines.append(f"    <system-out>{characters(text)}</system-out>")
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>"])


def as_github(judged: Sequence[Judged], rules: str) -> str:
    """Annotations of a workflow's log."""
    return "\n".join(
        f"::{LEVELS[one.state]} file={property_(rules)},"
        f"title={property_(f'{one.rule.title}: {one.state}')}::{message_(one.sentence)}"
        for one in judged
    )


FORMATS: dict[str, Callable[[Sequence[Judged], str], str]] = {
    "text": as_text,
    "junit": as_junit,
    "github": as_github,
    "json": as_json,
}


def attribute(text: str) -> str:
    return quoteattr(NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def characters(text: str) -> str:
    return escape(NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def message_(text: str) -> str:
    """What follows the second pair of colons."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def property_(text: str) -> str:
    return message_(text).replace(":", "%3A").replace(",", "%2C")
