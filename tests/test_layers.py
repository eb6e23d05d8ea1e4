"""The architecture as a test: packages import only what lies below them, and stay light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import mcrise
from mcrise.cli import COMMANDS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "mcrise"
PACKAGES = sorted({file.parent.name for file in SOURCE.glob("*/__init__.py")} - {"demo"})
HEAVY = ("torch", "onnxruntime", "numba", "matplotlib", "ray", "fastapi", "starlette", "uvicorn",
         "scipy", "rich", "click", "onnx", "lime", "pyarrow", "fsspec")  # fmt: skip


def test_packages_import_only_what_lies_below_them(capsys, monkeypatch):
    """The list of layers, and the few imports that point up, are in pyproject.toml."""
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_each_of_its_modules_is_for(package):
    """Commands are named by the table of commands."""
    folder = SOURCE / package
    modules = {file.stem for file in folder.glob("*.py")} - {"__init__", *COMMANDS}
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert modules - set(re.findall(r"`(\w+)`", said)) == set()


def test_import_mcrise_loads_nothing_heavier_than_numpy_and_pillow():
    code = f"import sys, mcrise; print([m for m in {HEAVY!r} if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


def test_the_public_names_are_sorted_and_there():
    assert mcrise.__all__ == sorted(mcrise.__all__)
    assert all(hasattr(mcrise, name) for name in mcrise.__all__)
