"""How a benchmark speaks: a table on stdout and the same figures as JSON in benchmarks/results/."""

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import mcrise

RESULTS = Path(__file__).resolve().parent / "results"
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures.json"  # docs/make_results.py


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
    update_figures(name, rows)


def update_figures(name: str, rows: list[dict[str, Any]], file: Path = FIGURES) -> None:
    """Write down the headline figures that come from this benchmark, for the pages to quote."""
    figures = json.loads(file.read_text(encoding="utf-8"))
    for figure in figures:
        source = figure.get("from", {})
        for row in rows if source.get("benchmark") == name else ():
            if all(row.get(key) == value for key, value in source["where"].items()):
                figure.update(
                    value=row[source["column"]],
                    commit=git("rev-parse", "--short", "HEAD"),
                    date=git("log", "-1", "--format=%cs"),
                )
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=FIGURES.parent, capture_output=True, text=True)
    return done.stdout.strip()


def show(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
