"""The results of a study: one sorted table, how sure its means are, and pictures.

Everything here follows from the files of the finished images, so it can be written again at any
time, and the table is the same to the byte whoever did the work.
"""

import contextlib
import csv
import importlib.metadata
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import VERSION
from ..batch.folder import write
from ..batch.storage import Storage, parquet
from ..images import open_picture
from ..metrics import METRICS, Metric
from .config import SHOWN
from .study import N_EXAMPLES, Study

COLUMNS = {
    "image": "string",
    "method": "string",
    "estimator": "string",
    "target": "int64",
    "label": "string",
    "n_masks": "int64",
    "seed": "int64",
    **dict.fromkeys(METRICS, "float64"),
    "error": "string",
}
TABLE = "results.parquet"
RESAMPLES = 2000  # of the images, for intervals
BASE = ("rise", "rise")  # what the others are compared with
HEADLINE = METRICS["ca_deletion"]  # what methods are compared by
BEST_COLOR = Metric("best_color_deletion", "best color", deletes=True, color_aware=False)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how one begins, to a spreadsheet
MOST_LISTED = 20  # failures in the summary; the table has them all

Row = dict[str, Any]
Key = tuple[str, str]  # method, estimator
Columns = dict[tuple[Key, str], NDArray[np.float64]]  # (images,) by method, estimator and metric


def write_results(study: Study, notes: Sequence[str] = ()) -> list[str]:
    """Write the tables and pictures of a study; returns the summary as lines to print.

    `notes` are about the model and the images, for whoever reads the summary.
    """
    rows: list[Row] = []
    n_judged = n_right = 0
    failed: list[str] = []
    shown: list[tuple[int, list[Row]]] = []
    for image, kept in study.finished():
        if kept.get("error"):
            failed.append(f"{kept['image']}: {kept['error']}")
        elif kept["truth"] is not None:
            n_judged += 1
            n_right += kept["truth"] == kept["predicted"]
        if image < N_EXAMPLES and not kept.get("error"):
            shown.append((image, kept["rows"]))
        rows += [{"image": kept["image"], **row} for row in kept["rows"]]
    rows.sort(key=lambda row: (row["image"], row["method"], row["estimator"]))
    write(study.out / TABLE, parquet(rows, COLUMNS))
    write(study.out / "timing.csv", timing(rows))
    summary = summarise(rows, study.config.run.seed)
    write(study.out / "summary.csv", table_bytes(list(summary[0]) if summary else [], summary))
    lines = [*_markdown(summary), "", *_remarks(study), *(f"Note: {note}." for note in notes)]
    if n_judged:
        lines.append(f"The model is right on {n_right} of these {n_judged} images.")
    if failed:
        lines.append(f"{len(failed)} of {len(study.done)} images failed and are left out:")
        lines += [f"- {reason}" for reason in failed[:MOST_LISTED]]
    write(study.out / "summary.md", ("\n".join(lines) + "\n").encode())
    if sheet := _example_sheet(study.out, shown):
        write(study.out / "examples.png", sheet)
    return lines


def timing(rows: Sequence[Row]) -> bytes:
    """Seconds spent on explaining and on measuring; not in the table, since they never repeat."""
    names = ["image", "method", "estimator", "explain_seconds", "measure_seconds"]
    lines = [
        {**row, "explain_seconds": row["seconds"][0], "measure_seconds": row["seconds"][1]}
        for row in rows
        if "seconds" in row
    ]
    return table_bytes(names, lines)


def table_bytes(names: Sequence[str], rows: Iterable[Row]) -> bytes:
    out = io.StringIO()
    table = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows({name: _as_text(value) for name, value in row.items()} for row in rows)
    return out.getvalue().encode()


def _as_text(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: images are named by others.

    A carriage return is spelled out, since it would begin a row: the module `csv` quotes no such.
    """
    if not isinstance(value, str):
        return value
    text = f"'{value}" if value.startswith(FORMULA) else value
    return text.replace("\r", r"\r")


# ---- means and how sure they are


def summarise(rows: Sequence[Row], seed: int) -> list[Row]:
    """Per method, estimator and metric: the mean, and the mean difference to RISE, with intervals.

    Images are resampled, not rows: methods are compared on the same images. Where RISE was also
    painted with its best color, deletions are compared with that too.
    """
    good = [row for row in rows if not row.get("error")]
    images = {name: i for i, name in enumerate(dict.fromkeys(row["image"] for row in good))}
    columns: Columns = {}
    for row in good:
        for name, value in _measured(row).items():
            key = ((row["method"], row["estimator"]), name)
            columns.setdefault(key, np.full(len(images), np.nan))[images[row["image"]]] = value
    if not columns:
        return []
    sure = {
        kind: intervals(np.stack(some, axis=1), seed) for kind, some in _compared(columns).items()
    }
    return [
        {
            "method": method,
            "estimator": estimator,
            "metric": name,
            "direction": (BEST_COLOR if name == BEST_COLOR.name else METRICS[name]).direction,
            "images": len(images),
            **{
                f"{kind}{end}": float(values[i])
                for kind, three in sure.items()
                for end, values in zip(("", "_low", "_high"), three, strict=True)
            },
        }
        for i, ((method, estimator), name) in enumerate(columns)
    ]


def _compared(columns: Columns) -> dict[str, list[NDArray[np.float64]]]:
    """Each column, what it is more than RISE's, and more than RISE's with its best color."""
    none = np.full(len(next(iter(columns.values()))), np.nan)

    def less(base: dict[str, NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Nothing for RISE itself, and where there is nothing to compare with."""
        pairs = [(values, base.get(name)) for (_, name), values in columns.items()]
        return [none if own is None or values is own else values - own for values, own in pairs]

    rise = {name: values for (key, name), values in columns.items() if key == BASE}
    best = rise.pop(BEST_COLOR.name, None)
    if HEADLINE.name in rise:
        rise[BEST_COLOR.name] = rise[HEADLINE.name]
    found = {"mean": list(columns.values()), "difference": less(rise)}
    if best is not None:
        found["best_difference"] = less({HEADLINE.name: best, BEST_COLOR.name: best})
    return found


def _measured(row: Row) -> dict[str, float]:
    """The numbers of a row; with the best single color where it was looked for."""
    values = {metric: row[metric] for metric in METRICS}
    if "colors" in row:
        values[BEST_COLOR.name] = min(row["colors"].values())
    return values


def intervals(values: NDArray[np.float64], seed: int) -> list[NDArray[np.float64]]:
    """The means of the columns of (n, q), and their 95% intervals by resampling the rows."""
    n = len(values)
    if n < 2:  # nothing to tell how sure one is
        return [values.mean(axis=0), *np.full((2, values.shape[1]), np.nan)]
    rng = np.random.default_rng(seed)
    means = [
        np.bincount(rng.integers(n, size=n), minlength=n) @ values / n for _ in range(RESAMPLES)
    ]
    return [values.mean(axis=0), *np.percentile(means, [2.5, 97.5], axis=0)]


def _markdown(summary: Sequence[Row]) -> list[str]:
    """The summary as a table, one line per method and estimator."""
    by_key: dict[Key, dict[str, Row]] = {}
    for row in summary:
        by_key.setdefault((row["method"], row["estimator"]), {})[row["metric"]] = row
    heads = [f"{metric.title} {'↓' if metric.deletes else '↑'}" for metric in METRICS.values()]
    heads.append(f"{HEADLINE.title} less RISE's")
    kinds = ["difference"]
    if any("best_difference" in row for row in summary):
        kinds.append("best_difference")
        heads.append("less RISE's in its best color")
    lines = [
        "| method | estimator | images | " + " | ".join(heads) + " |",
        "|---|---|---|" + "---|" * len(heads),
    ]
    for (method, estimator), found in by_key.items():
        own = found[HEADLINE.name]
        cells = [_interval(found[metric], "mean") for metric in METRICS]
        cells += [_interval(own, kind, "+") for kind in kinds]
        lines.append(f"| {method} | {estimator} | {own['images']} | " + " | ".join(cells) + " |")
        if (best := found.get(BEST_COLOR.name)) is not None:
            below = _interval(best, "mean")
            cells = [below if metric == HEADLINE.name else "" for metric in METRICS]
            cells += [_interval(best, kind, "+") for kind in kinds]
            name = f"{method}, {BEST_COLOR.title}"
            lines.append(f"| {name} | {estimator} | | " + " | ".join(cells) + " |")
    return lines


def _interval(row: Row, kind: str, sign: str = "") -> str:
    middle, low, high = row[kind], row[f"{kind}_low"], row[f"{kind}_high"]
    if np.isnan(middle):
        return ""
    sides = "" if np.isnan(low) else f" [{low:{sign}.3f}, {high:{sign}.3f}]"
    return f"{middle:{sign}.3f}{sides}"


def _remarks(study: Study) -> list[str]:
    """What to know of the table."""
    given, run = study.config, study.config.run
    lines = [
        "Means over the images with 95% intervals (bootstrap over images); ↓ lower is better, ↑ "
        f"higher is better. Steps of {100 * given.step:g}% of the pixels; black for deletion, "
        f"insertion, LIME and RISE; colors of MC-RISE: {run.fills}, grid {run.grid[0]} x "
        f"{run.grid[1]}, mask_prob {run.mask_prob}.",
        f"Model: {study.model}. Masks: {run.n_masks}, samples of LIME: {given.lime_samples}; "
        f"seed {run.seed}. {versions()}.",
    ]
    if given.best_color:
        lines.append("Best color: for each image the one color that serves the method best.")
    return lines


def versions() -> str:
    found = [f"mcrise {VERSION}"]
    for package in ("numpy", "onnxruntime", "torch", "lime"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{package} {importlib.metadata.version(package)}")
    return ", ".join(found)


# ---- pictures


def _example_sheet(out: Storage, shown: Sequence[tuple[int, list[Row]]]) -> bytes | None:
    """A few images with the pixels that each method would paint first."""
    from ..output.plots import figure_png, plot_sheet

    lines = []
    for image, rows in shown:
        pictures = []
        for row in rows:
            file = out / f"examples/{image:06d}-{row['method']}-{row['estimator']}.png"
            if file.exists():
                own = row["method"] == row["estimator"]
                name = row["method"] if own else f"{row['method']} ({row['estimator']})"
                title = f"{name}\nCA-del. {row[HEADLINE.name]:.3f}"
                pictures.append((title, np.asarray(open_picture(file.read_bytes())[0])))
        if pictures:
            lines.append((rows[0]["label"], pictures))
    title = f"The {100 * SHOWN:.0f}% of the pixels that each method paints first"
    return figure_png(plot_sheet(title, lines)) if lines else None
