"""How a benchmark speaks: a table on stdout and the same figures as JSON in benchmarks/results/."""

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np

import mcrise

RESULTS = Path(__file__).resolve().parent / "results"


def report(name: str, rows: list[dict[str, Any]], **about: Any) -> None:
    """Print rows as a Markdown table and write them down."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    print(f"\n## {name}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(show(row.get(column, "")) for column in columns) + " |", flush=True)
    RESULTS.mkdir(exist_ok=True)
    versions = {"mcrise": mcrise.__version__, "numpy": np.__version__,
                "python": platform.python_version()}  # fmt: skip
    content = {"benchmark": name, "rows": rows, "about": about, "versions": versions}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")


def show(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
