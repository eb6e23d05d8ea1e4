"""What is released runs where nothing but it and what it needs is installed."""

import subprocess
import sys

import pytest

import versions
from doc_blocks import by_bash

pytestmark = pytest.mark.slow  # installs from a package index

MOST_BYTES = 6_000_000


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The programs of a new environment, outside of the checkout, with the wheel installed."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "build").mkdir()
    wheel = versions.build(folder / "build")
    assert wheel.stat().st_size < MOST_BYTES
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [folder / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet"]
    assert versions.run([*pip, wheel], folder).returncode == 0  # without PYTHONPATH
    return folder / "venv" / "bin"


def test_the_demo_runs_and_what_needs_more_says_so(installed, tmp_path):
    found, report, then = by_bash("mcrise demo", tmp_path, installed).splitlines()[-3:]
    assert "makes it 'priority road'" in found
    assert report == "Report: mcrise-demo/report.html"
    assert then.startswith("Next: mcrise explain ")
    said = by_bash("mcrise serve 2>&1 || true; mcrise audit mcrise-demo/signs --out a 2>&1 || true",
                   tmp_path, installed)  # fmt: skip
    assert "pip install fastapi uvicorn" in said
    assert "pip install pyarrow" in said
    assert "Traceback" not in said
