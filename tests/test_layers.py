"""The architecture as a test: imports point up this list only, and `import mcrise` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import mcrise

SOURCE = Path(mcrise.__file__).parent
LAYERS = [
    "version",
    "errors",
    "images",
    "fills",
    "masks",
    "kernel",
    "blend",
    "maps",
    "estimate",
    "smooth",
    "diagnostics",
    "record",
    "model",
    "explain",
    "reading",
    "whatif",
    "metrics",
    "baselines",
    "storage",
    "datasets",
    "tasks",
    "study",
    "progress",
    "demo",
    "runtimes",
    "plots",
    "results",
    "cluster",
    "report",
    "jobs",
    "guard",
    "uploads",
    "shelf",
    "server",
    "cli",
]
EXCEPTIONS = {
    ("maps", "plots"),  # Maps.plot
    ("maps", "report"),  # what a notebook shows
    ("record", "report"),
    ("errors", "record"),  # a type of ModelError.record
    ("explain", "progress"),  # a bar, where it is asked for
}
HEAVY = ("torch", "onnxruntime", "numba", "matplotlib", "ray", "fastapi", "starlette", "uvicorn",
         "scipy", "rich", "click", "onnx", "lime", "pyarrow", "fsspec")  # fmt: skip


def noun(path):
    """The layer a source file belongs to: its name, or that of its folder."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_layers(path):
    """The layers a file imports from, wherever in the file it does so."""
    depth = len(path.relative_to(SOURCE).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from (name.partition(".")[0] for name in names)


def test_imports_point_up_the_list_of_layers_only():
    files = [f for f in SOURCE.rglob("*.py") if f.parent != SOURCE or not f.name.startswith("__")]
    assert {noun(file) for file in files} == set(LAYERS)
    wrong = [
        (noun(file), layer)
        for file in files
        for layer in imported_layers(file)
        if LAYERS.index(layer) >= LAYERS.index(noun(file)) and (noun(file), layer) not in EXCEPTIONS
    ]
    assert wrong == []


def test_import_mcrise_loads_nothing_heavier_than_numpy_and_pillow():
    code = f"import sys, mcrise; print([m for m in {HEAVY!r} if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


def test_the_public_names_are_sorted_and_there():
    assert mcrise.__all__ == sorted(mcrise.__all__)
    assert all(hasattr(mcrise, name) for name in mcrise.__all__)
