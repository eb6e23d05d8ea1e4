"""The results of a study: one sorted table, how sure its means are, and pictures.

Everything here follows from the files of the finished images, so it can be written again at any
time, and the table is the same to the byte whoever did the work.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError
from .images import read
from .metrics import METRICS, TITLES
from .storage import Storage
from .study import N_EXAMPLES, Study, write
from .tasks import SHOWN, Settings

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
BASE = "rise"  # what the others are compared with
MOST_TOLD = 20  # failures in the summary; the table has them all

Row = dict[str, Any]
Key = tuple[str, str]  # method, estimator


def write_results(study: Study) -> list[str]:
    """Write the tables and pictures of a study; returns the summary as lines to print."""
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
    write(study.out / TABLE, parquet(rows))
    write(study.out / "timing.csv", timing(rows))
    summary = summarise(rows, study.settings.seed)
    write(study.out / "summary.csv", table_bytes(list(summary[0]) if summary else [], summary))
    lines = [*markdown(summary), "", *remarks(study.settings)]
    if n_judged:
        lines.append(f"The model is right on {n_right} of these {n_judged} images.")
    if failed:
        lines.append(f"{len(failed)} of {len(study.done)} images failed and are left out:")
        lines += [f"- {reason}" for reason in failed[:MOST_TOLD]]
    write(study.out / "summary.md", ("\n".join(lines) + "\n").encode())
    if sheet := example_sheet(study.out, shown):
        write(study.out / "examples.png", sheet)
    return lines


def parquet(rows: Sequence[Row]) -> bytes:
    try:
        import pyarrow
        from pyarrow.parquet import write_table
    except ImportError:
        raise InputError("A study's table needs pyarrow: pip install 'mcrise[study]'.") from None
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    columns = {name: [row.get(name) for row in rows] for name in COLUMNS}
    out = io.BytesIO()
    write_table(pyarrow.table(columns, schema=schema), out)
    return out.getvalue()


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
    table.writerows(rows)
    return out.getvalue().encode()


# ---- means and how sure they are


def summarise(rows: Sequence[Row], seed: int) -> list[Row]:
    """Per method, estimator and metric: the mean, and the mean difference to RISE, with intervals.

    Images are resampled, not rows: methods are compared on the same images.
    """
    good = [row for row in rows if not row.get("error")]
    images = {name: i for i, name in enumerate(dict.fromkeys(row["image"] for row in good))}
    columns: dict[tuple[Key, str], NDArray[np.float64]] = {}
    for row in good:
        for name, value in measured(row).items():
            key = ((row["method"], row["estimator"]), name)
            columns.setdefault(key, np.full(len(images), np.nan))[images[row["image"]]] = value
    if not columns:
        return []
    stacked = np.stack(list(columns.values()), axis=1)  # (images, columns)
    none = np.full(len(images), np.nan)
    differences = np.stack(
        [
            values - columns.get(((BASE, BASE), name.removeprefix("best_color_")), none)
            for (_, name), values in columns.items()
        ],
        axis=1,
    )
    both = np.concatenate([stacked, differences], axis=1)
    low, high = bootstrap(both, seed)
    middle = both.mean(axis=0)
    n = len(columns)
    return [
        {
            "method": method,
            "estimator": estimator,
            "metric": name,
            "direction": "lower is better" if "deletion" in name else "higher is better",
            "images": len(images),
            "mean": float(middle[i]),
            "low": float(low[i]),
            "high": float(high[i]),
            "difference": float(middle[n + i]),
            "difference_low": float(low[n + i]),
            "difference_high": float(high[n + i]),
        }
        for i, ((method, estimator), name) in enumerate(columns)
    ]


def measured(row: Row) -> dict[str, float]:
    """The numbers of a row; with the best single color where it was looked for."""
    values = {metric: row[metric] for metric in METRICS}
    if "colors" in row:
        values["best_color_deletion"] = min(row["colors"].values())
    return values


def bootstrap(
    values: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The 95 % interval of the mean of each column (n, q), by resampling the rows."""
    rng = np.random.default_rng(seed)
    n = len(values)
    means = []
    for _ in range(RESAMPLES):
        counts = np.bincount(rng.integers(n, size=n), minlength=n)
        means.append(counts @ values / n)
    low, high = np.percentile(np.array(means), [2.5, 97.5], axis=0)
    return low, high


def markdown(summary: Sequence[Row]) -> list[str]:
    """The summary as a table, one line per method and estimator."""
    by_key: dict[Key, dict[str, Row]] = {}
    for row in summary:
        by_key.setdefault((row["method"], row["estimator"]), {})[row["metric"]] = row
    arrows = {m: "↓" if m.endswith("deletion") else "↑" for m in METRICS}
    heads = [f"{TITLES[m]} {arrows[m]}" for m in METRICS]
    lines = [
        "| method | estimator | images | " + " | ".join([*heads, "CA-deletion less RISE's"]) + " |",
        "|---|---|---|" + "---|" * (len(METRICS) + 1),
    ]
    for (method, estimator), found in by_key.items():
        cells = [interval(found[m], "mean", "low", "high") for m in METRICS]
        own = found["ca_deletion"]
        cells.append(difference(own) if method != BASE else "")
        images = own["images"]
        lines.append(f"| {method} | {estimator} | {images} | " + " | ".join(cells) + " |")
        if (best := found.get("best_color_deletion")) is not None:
            cells = ["", "", interval(best, "mean", "low", "high"), "", difference(best)]
            lines.append(
                f"| {method}, best color | {estimator} | {images} | " + " | ".join(cells) + " |"
            )
    return lines


def difference(row: Row) -> str:
    return interval(row, "difference", "difference_low", "difference_high", "+")


def interval(row: Row, middle: str, low: str, high: str, sign: str = "") -> str:
    if np.isnan(row[middle]):
        return ""
    return f"{row[middle]:{sign}.3f} [{row[low]:{sign}.3f}, {row[high]:{sign}.3f}]"


def remarks(given: Settings) -> list[str]:
    """What to know of the table."""
    lines = [
        "Means over the images with 95 % intervals (bootstrap over images); ↓ lower is better, ↑ "
        f"higher is better. Steps of {100 * given.step:g} % of the pixels; black for deletion, "
        f"insertion, LIME and RISE; colors of MC-RISE: {given.fills}; seed {given.seed}.",
    ]
    if given.best_color:
        lines.append("Best color: for each image the one color that serves the method best.")
    return lines


# ---- pictures


def example_sheet(out: Storage, shown: Sequence[tuple[int, list[Row]]]) -> bytes | None:
    """A few images with the pixels that each method would paint first."""
    from .plots import figure_png, plot_sheet

    lines = []
    for image, rows in shown:
        pictures = []
        for row in rows:
            file = out / f"examples/{image:06d}-{row['method']}-{row['estimator']}.png"
            if file.exists():
                own = row["method"] == row["estimator"]
                name = row["method"] if own else f"{row['method']} ({row['estimator']})"
                title = f"{name}\nCA-del. {row['ca_deletion']:.3f}"
                pictures.append((title, np.asarray(read(file.read_bytes())[0])))
        if pictures:
            lines.append((rows[0]["label"], pictures))
    title = f"The {100 * SHOWN:.0f} % of the pixels that each method paints first"
    return figure_png(plot_sheet(title, lines)) if lines else None
