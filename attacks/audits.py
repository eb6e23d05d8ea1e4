"""Damaged audits: what their JSON says, with other values, and their tables with other bytes.

Each is shown as a page and on the server's routes, held against rules and compared with itself as
it was: what `mcrise serve --audit`, `check` and `diff` do with the folder of a stranger.
"""

import copy
import functools
import html.parser
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path
from unittest import mock

from api import small_audit
from mcrise import fills
from mcrise.audits.audit_page import render
from mcrise.audits.diff import compare_audits
from mcrise.audits.rule_check import check_rules
from mcrise.audits.rule_formats import FORMATS
from mcrise.audits.rules import MEASURES, Rule
from mcrise.batch.storage import Storage
from mcrise.errors import McriseError
from mcrise.server.routes.audit import figures
from records import ODD, places
from words import MEMORY

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>"
ODDITIES = (*ODD, HOSTILE, "picture:/etc/passwd", "../../../etc/passwd", "class=9", [HOSTILE])
SAFE = {"a", "b", "body", "circle", "details", "div", "em", "figcaption", "figure", "h1", "h2",
        "h3", "head", "header", "html", "img", "li", "main", "meta", "ol", "p", "path", "rect",
        "script", "section", "small", "span", "style", "summary", "svg", "table", "tbody", "td",
        "text", "th", "thead", "title", "tr"}  # fmt: skip


@functools.cache
def seed():
    """The files of an audit that is right, by their names, and the folder they lie in."""
    place = tempfile.TemporaryDirectory(dir=MEMORY)
    folder = small_audit(Path(place.name), 16)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    content = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {name: one for name, one in content.items() if "runs/" not in name}, folder, place


def variant(number):
    """The name and content of the one file that is damaged."""
    chance = random.Random(number)
    files = seed()[0]
    if number < 0:
        return "audit.json", files["audit.json"]
    kind = chance.random()
    if kind < 0.1:  # what a whole file rests on: at random it is hardly ever met
        name = chance.choice(["audit.json", "figures.json"])
        told = json.loads(files[name])
        key = chance.choice(list(told))
        some = told[key] * 2 if isinstance(told[key], list) else None
        told[key] = chance.choice([[], {}, some])
        return name, chance.choice([json.dumps(told), "[" * 200_000]).encode()
    if kind < 0.15:
        name = chance.choice([name for name in sorted(files) if "class=" in name])
        table, _, part = name.split("/")
        number = chance.choice(["00", "-1", "7", "9" * 30, "x"])
        return f"{table}/class={number}/{part}", files[name]
    if kind < 0.8:
        name = chance.choice(["audit.json", "figures.json", "figures.json"])
        told = copy.deepcopy(json.loads(files[name]))
        for _ in range(chance.choice([1, 1, 2])):
            place, key = chance.choice(list(places(told)))
            if chance.random() < 0.2:
                del place[key]
            else:
                place[key] = copy.deepcopy(chance.choice(ODDITIES))
        return name, json.dumps(told).encode()
    name = chance.choice(sorted(files))
    content = bytearray(files[name])
    if chance.random() < 0.3:
        return name, bytes(content[: chance.randrange(len(content))])
    for _ in range(chance.choice([1, 4, 32])):
        content[chance.randrange(len(content))] = chance.randrange(256)
    return name, bytes(content)


class Look(html.parser.HTMLParser):
    """Nothing but our own elements and attributes is in a page."""

    def handle_starttag(self, tag, attributes):
        assert tag in SAFE, tag
        assert not [name for name, _ in attributes if name.startswith("on")], attributes


def no_picture(*given, **more):
    raise AssertionError("a file was opened for the name of a fill")


def use(given):
    name, content = given
    _, source, _ = seed()
    rules = [Rule(n, one, zone="rim" if one.startswith("zone") else None, at_most=0.5)
             for n, one in enumerate(MEASURES)]  # fmt: skip
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        folder = shutil.copytree(source, Path(place) / "audit", symlinks=True)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        audit, refused = Storage(str(folder)), []
        for step in (
            lambda: Look().feed(render(audit)),
            lambda: [form(check_rules(audit, rules), "r") for form in FORMATS.values()],
            lambda: compare_audits(Storage(str(source)), audit).to_json(),
            lambda: json.dumps(figures(audit), allow_nan=False),
        ):
            try:
                with mock.patch.object(fills, "open_picture", no_picture):
                    step()
            except McriseError as error:
                refused.append(error)
    if refused:
        raise refused[0]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from fuzzing import main

    main("audits")
