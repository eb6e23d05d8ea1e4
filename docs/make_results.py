"""Make docs/results.md from docs/figures.json: `make results`.

Benchmarks write the figures (`report` in benchmarks/table.py); pages quote them.
"""

import json
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).with_name("figures.json")
PAGE = Path(__file__).with_name("results.md")
HEAD = """# Results

Headline figures, with what is behind each: how many, when, at which commit, and the command that measures it again.
Intervals are 95% unless the column says otherwise. Machines are noisy: compare ratios, not seconds. Two cores of an AMD
EPYC, Python 3.11, NumPy 2.4, ONNX Runtime 1.31. *Signs* are GTSRB test images with the embedded network, *photographs*
are ImageNet images with EfficientNet-lite0; neither data set is part of this project. Tables by kind, network and
number of masks are in `benchmarks/tables.md`. The commit says which version was measured; later versions were not
measured again.
"""
FOOT = """## Versions

`python benchmarks/versions.py` installs the wheel into fresh environments and runs it. Python 3.11 and 3.12 with NumPy
1.26 and 2.x, and Python 3.13 with NumPy 2.x, gave the same scores and the same `paper` maps to the bit (d74790c,
2026-11-16). Python 3.14 was not on the machine. macOS and Windows were not tried.
"""


def page() -> str:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    parts = [HEAD]
    for group in dict.fromkeys(figure["group"] for figure in figures):
        parts += [
            f"## {group}\n",
            "| what | figure | interval | of | measured | command |",
            "|---|---|---|---|---|---|",
            *(row(figure) for figure in figures if figure["group"] == group),
            "",
        ]
    return "\n".join([*parts, FOOT])


def row(figure: dict[str, Any]) -> str:
    interval = " to ".join(map(shown, figure["interval"])) if figure["interval"] else ""
    measured = f"{figure['date']}, {figure['commit']}"
    return (
        f"| {figure['what']} | **{shown(figure['value'])}{figure['unit']}** | {interval} "
        f"| {figure['n']} | {measured} | `{figure['command']}` |"
    )


def shown(value: float) -> str:
    return f"{value:.3g}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
