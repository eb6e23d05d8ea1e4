"""Runs the blocks of a page in order, as a reader would who types all of it in one folder.

- `sh`: by bash, which stops at the first command that fails.
- `python`: in this process; names live on to the next block of the page.
- A block whose first line is a comment with the name of a file (`# rules.toml`) becomes that file.
- `text` after a block that ran: what it printed. `...` stands for anything, and numbers may differ
  a little, since machines round differently.
- Below `<!-- not run: reason -->` a block is only to be read.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Container
from pathlib import Path

FENCE = re.compile(
    r"(?P<skip><!-- not run: .+? -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.M | re.S
)
FILE = re.compile(r"# ([\w/.-]+\.\w+)$")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
CLOSE, RELATIVE = 0.03, 0.1  # how much a number may differ


def run_page(
    page: Path,
    folder: Path,
    bin_folder: Path = Path(sys.executable).parent,
    kinds: Container[str] = ("sh", "python"),
) -> int:
    """Run the blocks of a page in a folder, with the programs of an environment; how many ran."""
    names: dict = {"__name__": "__main__"}
    printed, n_run = None, 0
    with contextlib.chdir(folder):
        for found in FENCE.finditer(page.read_text(encoding="utf-8")):
            kind, body = found["kind"], found["body"]
            name = FILE.match(body.partition("\n")[0])
            if found["skip"] or (kind in ("sh", "python") and not name and kind not in kinds):
                printed = None
            elif name:
                Path(name[1]).parent.mkdir(parents=True, exist_ok=True)
                Path(name[1]).write_text(body, encoding="utf-8")
            elif kind == "sh":
                printed, n_run = by_bash(body, bin_folder), n_run + 1
            elif kind == "python":
                printed, n_run = by_python(body, names), n_run + 1
            elif kind == "text" and printed is not None:
                assert_printed(body, printed)
    return n_run


def by_bash(commands: str, bin_folder: Path) -> str:
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", commands], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def by_python(code: str, names: dict) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<block>", "exec"), names)
    return out.getvalue()


def assert_printed(shown: str, printed: str) -> None:
    """What a page shows is what came, its lines in the same order."""
    words = [" ".join(part.split()) for part in shown.split("...")]
    pattern = ".*?".join(
        f"({NUMBER.pattern})".join(map(re.escape, NUMBER.split(one))) for one in words
    )
    came = " ".join(printed.split())
    match = re.search(pattern, came, re.S)
    assert match, f"The page shows\n{shown}\nbut this came:\n{printed}"
    wanted = [number(text) for text in NUMBER.findall(" ".join(words))]
    for one, other in zip(wanted, map(number, match.groups()), strict=True):
        assert abs(one - other) <= max(CLOSE, RELATIVE * abs(one)), (one, other, printed)


def number(text: str) -> float:
    return float(text.replace(",", ""))
