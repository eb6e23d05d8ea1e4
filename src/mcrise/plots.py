"""Pictures of maps. The only place where a map is scaled, and the scale is always shown."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from .fills import LUMA, Fill
from .images import unit_float
from .maps import Maps
from .metrics import Curve, direction
from .reading import Finding, Reading
from .record import Record
from .trials import Comparison, Trial, repaint

# Purple to orange: safe for color-blind readers, and unlike red and blue never mistaken for a fill.
DIVERGING = "PuOr_r"
SEQUENTIAL = "cividis"
PANEL = 1.75  # inches
DPI = 130
FAINT, STRONG = 0.25, 0.9  # opacity below and above two standard errors
EXTREME = 99.8  # percentile of |value| at the ends of the scale, so that one pixel does not set it


def plot_maps(rows: Sequence[Maps], names: Sequence[str] | None = None) -> Figure:
    """The image, then one panel per fill; several classes stand above each other.

    All panels share one scale, symmetric around zero. Values below two standard errors are faint.
    """
    n_panels = 1 + max(len(maps.values) for maps in rows)
    figure, axes = panels(len(rows), n_panels, rows[0].image)
    limit = scale_of([maps.values for maps in rows])
    for line, maps in enumerate(rows):
        title = names[line] if names else maps.label
        show_image(axes[line, 0], maps.image, short(title))
        for panel, (values, se) in enumerate(zip(maps.values, maps.se, strict=True), start=1):
            axis = axes[line, panel]
            show_map(axis, maps.image, values, se, limit)
            if line == 0 or rows[0].names != maps.names:
                head(axis, maps, panel - 1)
    colorbar(figure, axes, Normalize(-limit, limit), DIVERGING, rows[0].unit)
    return figure


def plot_rise(rise: Maps, debiased: Maps) -> Figure:
    """RISE next to debiased RISE: only the second is near zero where the model does not look."""
    figure, axes = panels(1, 3, rise.image, gap=0.45)
    show_image(axes[0, 0], rise.image, short(rise.label))
    low, high = float(rise.values.min()), float(rise.values.max())
    high = high if high > low else low + 1e-6
    axes[0, 1].imshow(rise.values[0], cmap=SEQUENTIAL, vmin=low, vmax=high)
    axes[0, 1].set_title("RISE", fontsize=9)
    limit = scale_of([debiased.values])
    show_map(axes[0, 2], debiased.image, debiased.values[0], debiased.se[0], limit)
    axes[0, 2].set_title("debiased RISE", fontsize=9)
    colorbar(figure, axes[:, 1:2], Normalize(low, high), SEQUENTIAL, rise.unit)
    label = f"{debiased.unit} when kept"
    colorbar(figure, axes[:, 2:], Normalize(-limit, limit), DIVERGING, label)
    return figure


def plot_methods(rows: Sequence[tuple[NDArray[Any], Maps, Maps]]) -> Figure:
    """LIME's weights, RISE and MC-RISE side by side; each image and method has its own scale.

    A row is an image: the weights (H, W) of its superpixels, its RISE map and its MC-RISE maps.
    """
    n_fills = len(rows[0][2].values)
    figure, axes = panels(len(rows), 3 + n_fills, rows[0][2].image, gap=0.3)
    for line, (weights, rise, maps) in zip(axes, rows, strict=True):
        show_image(line[0], maps.image, short(maps.label, 20))
        most, limit = scale_of([weights]), scale_of([maps.values])
        low, high = float(rise.values.min()), float(rise.values.max())
        show_map(line[1], maps.image, weights, np.zeros_like(weights), most)
        line[2].imshow(rise.values[0], cmap=SEQUENTIAL, vmin=low, vmax=high)
        for panel, (values, se) in enumerate(zip(maps.values, maps.se, strict=True)):
            show_map(line[3 + panel], maps.image, values, se, limit)
        colorbar(figure, line[1:2], Normalize(-most, most), DIVERGING, "LIME's weight")
        colorbar(figure, line[2:3], Normalize(low, high), SEQUENTIAL, rise.unit)
        colorbar(figure, line[3:], Normalize(-limit, limit), DIVERGING, maps.unit)
    axes[0, 1].set_title("LIME", fontsize=9)
    axes[0, 2].set_title("RISE", fontsize=9)
    for panel in range(n_fills):
        head(axes[0, 3 + panel], rows[0][2], panel)
    return figure


def plot_regions(readings: Sequence[Reading]) -> Figure:
    """Each class: its findings outlined on the image, and what they are beside it."""
    figure, axes = panels(len(readings), 2, readings[0].maps.image, gap=1.0)
    for (picture, words), reading in zip(axes, readings, strict=True):
        show_image(picture, reading.maps.image, short(reading.maps.label))
        outline(picture, reading.findings)
        words.axis("off")
        lines = [
            f"{number}  {finding.place}: {finding.kind}\n    "
            f"{finding.strongest.fill.name} {finding.strongest.value:+.2g} ± "
            f"{finding.strongest.margin:.1g}"
            for number, finding in enumerate(reading.findings, start=1)
        ]
        text = "\n".join(lines or ["no finding"])
        words.text(-0.1, 1, text, transform=words.transAxes, fontsize=7.5, va="top")
    return figure


def plot_comparison(comparison: Comparison) -> Figure:
    """Two classes and their difference in one scale; findings are outlined on the difference."""
    difference = comparison.difference
    rows = [comparison.wanted, comparison.given, difference.maps]
    figure = plot_maps(rows, [rows[0].label, rows[1].label, "difference"])
    outline(figure.axes[2 * (1 + len(rows[0].values))], difference.findings)
    return figure


def plot_trials(record: Record, trials: Sequence[Trial]) -> Figure:
    """The image, then each repaint with the score it got."""
    figure, axes = panels(1, 1 + len(trials), record.view.pixels)
    show_image(axes[0, 0], record.view.pixels, "as it is")
    for axis, trial in zip(axes[0, 1:], trials, strict=True):
        verdict = f"\n{trial.verdict}" if trial.verdict else ""
        moved = f"{trial.before[trial.target]:.2f} → {trial.after[trial.target]:.2f}"
        title = f"{short(record.label(trial.target), 22)}\n{moved}{verdict}"
        show_image(axis, repaint(record, trial.strokes), title)
    return figure


def plot_match(maps: Maps, match: NDArray[Any], name: str) -> Figure:
    """The query, what it was matched with, and how their similarity responds to each fill."""
    figure, axes = panels(1, 2 + len(maps.values), maps.image)
    show_image(axes[0, 0], maps.image, "query")
    show_image(axes[0, 1], match, "match")
    axes[0, 1].set_xlabel(short(name), fontsize=6)
    limit = scale_of([maps.values])
    for panel, (values, se) in enumerate(zip(maps.values, maps.se, strict=True)):
        show_map(axes[0, 2 + panel], maps.image, values, se, limit)
        head(axes[0, 2 + panel], maps, panel)
    colorbar(figure, axes, Normalize(-limit, limit), DIVERGING, maps.unit)
    return figure


def plot_curves(curves: Sequence[Curve]) -> Figure:
    """Score against the share of pixels changed; deletion on the left, insertion on the right."""
    figure = Figure(figsize=(8, 3.4), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = dict(zip(("deletion", "insertion"), figure.subplots(1, 2, sharey=True), strict=True))
    for curve in curves:
        aware = curve.metric.startswith("ca_")
        axes[curve.metric.removeprefix("ca_")].plot(
            curve.shares,
            curve.scores,
            linestyle="-" if aware else "--",
            color="#5e3c99" if aware else "#e66101",
            label=f"{curve.title}: area {curve.area:.3f}",
        )
    for metric, axis in axes.items():
        done = "painted" if metric == "deletion" else "uncovered"
        axis.set_title(f"{metric} ({direction(metric)})", fontsize=9)
        axis.set_xlabel(f"share of the pixels {done}", fontsize=8)
        axis.set_ylabel("score of the target", fontsize=8)
        axis.tick_params(labelsize=8, labelleft=True)
        axis.set_xlim(0, 1)
        if axis.get_lines():
            axis.legend(fontsize=7, frameon=False)
    return figure


def plot_sheet(
    title: str, lines: Sequence[tuple[str, Sequence[tuple[str, NDArray[Any]]]]]
) -> Figure:
    """Several images, a line each: its name, and named pictures side by side."""
    n_cols = max(len(pictures) for _, pictures in lines)
    figure, axes = panels(len(lines), n_cols, lines[0][1][0][1])
    figure.suptitle(title, fontsize=9)
    for line, (label, pictures) in zip(axes, lines, strict=True):
        for axis, (name, picture) in zip(line, pictures, strict=False):
            show_image(axis, picture, name)
            axis.title.set_fontsize(7)
        for axis in line[len(pictures) :]:
            axis.axis("off")
        line[0].set_ylabel(short(label), fontsize=7)
    return figure


def outline(axis: Axes, findings: Sequence[Finding]) -> None:
    """Draw around each region, in the color of its direction, with its number."""
    ends = matplotlib.colormaps[DIVERGING]
    for number, finding in enumerate(findings, start=1):
        color = ends(0.85 if finding.direction > 0 else 0.1)
        # A frame of zeros closes outlines that run into the border.
        framed = np.pad(finding.region.astype(float), 1)
        rows, cols = (np.arange(n) - 1 for n in framed.shape)
        axis.contour(cols, rows, framed, levels=[0.5], colors="white", linewidths=2.4)
        axis.contour(cols, rows, framed, levels=[0.5], colors=[color], linewidths=1.4)
        row, col = middle_pixel(finding.region)
        axis.text(
            col, row, str(number), color="white", fontsize=8, ha="center", va="center",
            bbox={"boxstyle": "circle,pad=0.15", "facecolor": color, "edgecolor": "white"},
        )  # fmt: skip
    axis.set_xlim(-0.5, axis.get_images()[0].get_size()[1] - 0.5)
    axis.set_ylim(axis.get_images()[0].get_size()[0] - 0.5, -0.5)


def middle_pixel(region: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The pixel of a region that is nearest to its middle: a ring's middle is outside it."""
    pixels = np.argwhere(region)
    distance = np.square(pixels - pixels.mean(axis=0)).sum(axis=1)
    nearest: NDArray[np.intp] = pixels[distance.argmin()]
    return nearest


def panels(
    n_rows: int, n_cols: int, image: NDArray[Any], gap: float = 0.0
) -> tuple[Figure, NDArray[Any]]:
    """Axes for pictures of the shape of `image`, all of about the same area."""
    stretch = float(np.clip(image.shape[0] / image.shape[1], 0.5, 2)) ** 0.5
    wide, high = PANEL / stretch, PANEL * stretch
    figure = Figure(
        figsize=(n_cols * (wide + gap) + 0.9, n_rows * (high + 0.1) + 0.45),
        dpi=DPI,
        layout="compressed",
    )
    FigureCanvasAgg(figure)  # draws without a screen
    axes = figure.subplots(n_rows, n_cols, squeeze=False)
    for axis in axes.flat:
        axis.set_xticks([])
        axis.set_yticks([])
        axis.title.set_fontsize(9)
    return figure, axes


def scale_of(values: Sequence[NDArray[np.float32]]) -> float:
    """The one limit that serves all panels."""
    sizes = np.concatenate([np.abs(some).ravel() for some in values])
    return float(max(np.percentile(sizes, EXTREME), 1e-6))


def show_image(axis: Axes, image: NDArray[Any], title: str) -> None:
    axis.imshow(image)
    axis.set_title(title, fontsize=9)


def show_map(
    axis: Axes,
    image: NDArray[Any],
    values: NDArray[np.float32],
    se: NDArray[np.float32],
    limit: float,
) -> None:
    axis.imshow(overlay(image, values, se, limit))


def overlay(
    image: NDArray[Any], values: NDArray[np.float32], se: NDArray[np.float32], limit: float
) -> NDArray[np.float32]:
    """A map (H, W) in color over the image in gray, as pixels (H, W, 3) in 0..1."""
    gray = 0.35 + 0.65 * (unit_float(image) @ LUMA)  # lifted, so that colors stay visible
    colors = matplotlib.colormaps[DIVERGING](Normalize(-limit, limit)(values))[..., :3]
    opacity = np.where(np.abs(values) >= 2 * se, STRONG, FAINT)
    # Near zero the map is white: let the image through there, so that one sees what is where.
    opacity = opacity * np.clip(np.abs(values) / (0.25 * limit), 0.35, 1)
    blend = opacity[..., None] * colors + (1 - opacity[..., None]) * gray[..., None]
    return np.asarray(blend, np.float32)


def head(axis: Axes, maps: Maps, panel: int) -> None:
    """The fill's name and its swatch above a panel."""
    # A fixed height: left to itself, matplotlib lifts a title far above an inset.
    axis.set_title(maps.names[panel], fontsize=9, y=1.09 if maps.fills else 1.0, pad=3)
    if not maps.fills:
        return
    swatch = axis.inset_axes((0.0, 1.02, 1.0, 0.06))
    swatch.imshow(sample(maps.fills[panel], maps.image), aspect="auto")
    swatch.set_xticks([])
    swatch.set_yticks([])


def sample(fill: Fill, image: NDArray[Any]) -> NDArray[np.float32]:
    """What the fill looks like: a strip through the middle of its picture."""
    rendered = fill.render(unit_float(image))
    middle = len(rendered) // 2
    reach = max(len(rendered) // 12, 1)
    return np.asarray(rendered[middle - reach : middle + reach], np.float32)


def colorbar(
    figure: Figure, axes: NDArray[Any], norm: Normalize, colormap: str, label: str
) -> None:
    bar = figure.colorbar(
        matplotlib.cm.ScalarMappable(norm, colormap), ax=axes, shrink=0.95, pad=0.01, aspect=14
    )
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=8)


def short(title: str, most: int = 26) -> str:
    return title if len(title) <= most else title[: most - 1] + "…"


def save(figure: Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def figure_png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG file."""
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()
