"""Runs the blocks of a page in order, as a reader would who types all of it in one folder.

- `sh`: by bash, which stops at the first command that fails.
- `python`: by one interpreter; names live on to the next block of the page.
- A block whose first line is a comment with the name of a file (`# rules.toml`) becomes that file.
- `text` after a block that ran: what it printed. `...` stands for anything, and numbers may differ
  a little, since machines round differently.
- Below `<!-- not run: reason -->` a block is only to be read.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NamedTuple, Self

import versions

FENCE = re.compile(
    r"(?P<skip><!-- not run: .+? -->\n)?^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.M | re.S
)
FILE = re.compile(r"# ([\w/.-]+\.\w+)$")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
CLOSE, RELATIVE = 0.03, 0.1  # how much a number may differ


class Block(NamedTuple):
    kind: str  # of the fence
    body: str
    file: str  # that it becomes, or empty


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, without those that are only to be read."""
    found = []
    for one in FENCE.finditer(page.read_text(encoding="utf-8")):
        name = FILE.match(one["body"].partition("\n")[0])
        if not one["skip"] and not one["kind"].startswith("{"):  # of Sphinx
            found.append(Block(one["kind"], one["body"], name[1] if name else ""))
    return found


def run_page(page: Path, folder: Path, programs: Path) -> int:
    """Run the blocks of a page in a folder, with the programs of an environment; how many ran."""
    printed, n_run = None, 0
    with Interpreter(programs / "python", folder) as python:
        for block in blocks(page):
            if block.file:
                file = folder / block.file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.body, encoding="utf-8")
            elif block.kind == "sh":
                printed, n_run = by_bash(block.body, folder, programs), n_run + 1
            elif block.kind == "python":
                printed, n_run = python.run(block.body), n_run + 1
            elif block.kind == "text":
                assert printed is not None, f"nothing was run that could print\n{block.body}"
                assert_printed(block.body, printed)
    return n_run


def by_bash(commands: str, folder: Path, programs: Path) -> str:
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", commands],
        cwd=folder,
        env={**outside(), "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def outside() -> dict[str, str]:
    """The environment without a way to the sources of the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


class Interpreter:
    """A Python of its own for the blocks of a page."""

    LOOP = """
import contextlib, io, json, sys, traceback
names, said = {"__name__": "__main__"}, sys.stdout
for line in sys.stdin:
    out, failed = io.StringIO(), ""
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(json.loads(line), "<block>", "exec"), names)
        except BaseException:
            failed = traceback.format_exc()
    print(json.dumps([out.getvalue(), failed]), file=said, flush=True)
"""

    def __init__(self, python: Path, folder: Path) -> None:
        self.command, self.folder = [python, "-c", self.LOOP], folder

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=outside(),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def run(self, code: str) -> str:
        """What a block prints."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()
        printed, failed = json.loads(self.process.stdout.readline())
        assert not failed, f"{code}\n{failed}"
        return str(printed)


def install_wheel(folder: Path) -> Path:
    """The programs of a new environment with the package as it is released.

    What the package needs comes from the environment of the tests, which is searched last.
    """
    (folder / "build").mkdir()
    wheel = versions.build(folder / "build", "--no-build-isolation")
    venv.create(folder / "venv")
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True)
    (site,) = (folder / "venv").rglob("site-packages")
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    (programs / "pytest").write_text('#!/bin/sh\nexec python -m pytest "$@"\n', encoding="utf-8")
    (programs / "pytest").chmod(0o755)
    return programs


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
