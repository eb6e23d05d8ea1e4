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
    "told",
    "cores",
    "escapes",
    "files",
    "locks",
    "content",
    "plugins",
    "origin",
    "scores",
    "images",
    "colors",
    "fills",
    "masks",
    "brief",
    "kernel",
    "blend",
    "raster",
    "maps",
    "estimate",
    "chance",
    "pilot",
    "sample",
    "smooth",
    "estimators",
    "diagnostics",
    "record",
    "archive",
    "model",
    "demo",
    "demo.signs",
    "runtimes.settings",
    "runtimes.onnx",
    "runtimes.torch",
    "runtimes.python",
    "runtimes",
    "progress",
    "asking",
    "loop",
    "repaints",
    "claims",
    "reading",
    "examining",
    "flips",
    "wording",
    "trials",
    "metrics",
    "matching",
    "plots",
    "packing",
    "summary",
    "folder",
    "report",
    "study",
    "study.storage",
    "study.ownership",
    "study.datasets",
    "study.work",
    "study.baselines",
    "study.tasks",
    "study.study",
    "study.progress",
    "study.results",
    "study.crew",
    "study.runner",
    "auditing",
    "auditing.looks",
    "auditing.plain",
    "auditing.statistics",
    "auditing.zones",
    "auditing.basics",
    "auditing.findings",
    "auditing.attempts",
    "auditing.outer",
    "auditing.unlike",
    "auditing.figures",
    "auditing.sentences",
    "auditing.looking",
    "auditing.protocol",
    "auditing.tables",
    "auditing.maps",
    "auditing.change",
    "auditing.difference",
    "auditing.runs",
    "auditing.rules",
    "auditing.judging",
    "auditing.verdicts",
    "auditing.cells",
    "auditing.page",
    "auditing.audit",
    "auditing.runner",
    "testing",
    "page",
    "page.guard",
    "page.connections",
    "page.shelf",
    "page.order",
    "page.job",
    "page.cabinet",
    "page.ledger",
    "page.retention",
    "page.room",
    "page.models",
    "page.decoding",
    "page.jobs",
    "page.uploads",
    "page.parameters",
    "page.status",
    "page.asking",
    "page.looking",
    "page.cards",
    "page.taking",
    "page.auditing",
    "page.app",
    "cli.characters",
    "cli.options",
    "cli.check",
    "cli.diff",
    "cli.explain",
    "cli.whatif",
    "cli.demo",
    "cli.match",
    "cli.measure",
    "cli.report",
    "cli.serve",
    "cli.audit",
    "cli.study",
    "cli",
]
# Down the list only where a function is called that needs it, or for a type.
LATE = {
    ("maps", "plots"),  # Maps.plot
    ("maps", "report"),  # what a notebook shows
    ("maps", "sample"),  # a type of Maps.test
    ("record", "report"),
    ("record", "archive"),  # Record.save
    ("errors", "record"),  # a type of ModelError.record
}
HEAVY = ("torch", "onnxruntime", "numba", "matplotlib", "ray", "fastapi", "starlette", "uvicorn",
         "scipy", "rich", "click", "onnx", "lime", "pyarrow", "fsspec")  # fmt: skip


def layer(path):
    """`study.tasks` for study/tasks.py, `study` for study/__init__.py."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_early(node, parents):
    """Whether an import runs when its module is imported."""
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return False
    return True


def imports(path):
    """The layers a file imports from, each with whether it does so early."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    package = path.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        above = package[: len(package) - (node.level - 1)]
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            inside = f"{base}.{alias.name}".lstrip(".")
            yield (inside if inside in LAYERS else base), is_early(node, parents)


def files():
    top = SOURCE / "__init__.py", SOURCE / "__main__.py"
    return [file for file in SOURCE.rglob("*.py") if file not in top]


def test_the_list_names_every_module_once():
    assert sorted(LAYERS) == sorted(layer(file) for file in files())


def test_imports_point_up_the_list_of_layers_only():
    down = {
        (layer(file), other, early)
        for file in files()
        for other, early in imports(file)
        if LAYERS.index(other) >= LAYERS.index(layer(file))
    }
    assert {(own, other) for own, other, early in down if early} == set()
    assert {(own, other) for own, other, early in down if not early} == LATE


def test_import_mcrise_loads_nothing_heavier_than_numpy_and_pillow():
    code = f"import sys, mcrise; print([m for m in {HEAVY!r} if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


def test_the_public_names_are_sorted_and_there():
    assert mcrise.__all__ == sorted(mcrise.__all__)
    assert all(hasattr(mcrise, name) for name in mcrise.__all__)
