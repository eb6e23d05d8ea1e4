"""Benchmarks and attacks are run by hand and rarely, so that they are held to the code here."""

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
