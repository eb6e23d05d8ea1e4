"""Benchmarks and attacks are run by hand and rarely, so that they are held to the code here."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["benchmarks", "attacks"])
def test_every_script_finds_what_it_imports(folder):
    code = "\n".join(f"import {path.stem}" for path in sorted((ROOT / folder).glob("*.py")))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=ROOT / folder, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_make_bench_runs_scripts_that_exist():
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    (names,) = re.findall(r"^BENCHMARKS := (.*)$", makefile, re.M)
    assert [
        name for name in names.split() if not (ROOT / "benchmarks" / f"{name}.py").exists()
    ] == []
