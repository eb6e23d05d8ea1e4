"""Pictures of maps. The only place where a map is scaled, and the scale is always shown."""

import functools
import io
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from contourpy import contour_generator
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Line
from matplotlib.text import Text
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion

from .._util.files import write_atomically
from .._util.text import one_line, visible
from ..explanation import Explanation
from ..fills import LUMA, Fill
from ..images import downsample, downsampling_step, touched_blocks, unit_float
from ..interpretation.regions import Finding
from ..interpretation.trials import Comparison, Intervention
from ..maps import Maps, pale_areas
from ..metrics import METRICS, Curve

# Purple to orange: safe for color-blind readers, and unlike red and blue never mistaken for a fill.
DIVERGING = "PuOr_r"
SEQUENTIAL = "cividis"
PANEL = 1.75  # inches
DPI = 130
FAINT, STRONG = 0.25, 0.9  # opacity of what chance alone may show, and of the rest
MOST_SIDE = 512  # pixels that are drawn; of a larger picture every second, third and so on
DRAWING = threading.Lock()  # fonts and texts are laid out by one thread at a time
# Of a label in a script that the font lacks: the boxes in its place say so.
LACKING = "Glyph .* missing from|Matplotlib currently does not support"
LETTER = 17  # pixels that a letter takes in a figure
VISIBLE = 0.12  # of the scale: a smaller effect is not seen
EXTREME = 99.8  # percentile of |value| at the ends of the scale, so that one pixel does not set it


@dataclass(frozen=True)
class Scale:
    """The one color scale of a figure."""

    low: float
    high: float
    colormap: str

    @property
    def diverging(self) -> bool:
        return self.low == -self.high

    @property
    def words(self) -> str:
        """What its ends stand for, and in which color."""
        ends = {DIVERGING: (" (purple)", " (orange)"), SEQUENTIAL: (" (blue)", " (yellow)")}
        first, last = ends.get(self.colormap, ("", ""))
        return f"from {self.low:.2g}{first} to {self.high:.2g}{last}"

    def colors(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Values (H, W) as colors (H, W, 3) in 0..1."""
        norm = Normalize(self.low, self.high)
        return np.asarray(matplotlib.colormaps[self.colormap](norm(values))[..., :3], np.float32)


def scale_for(rows: Sequence[Maps], vmax: float | None = None, cmap: str | None = None) -> Scale:
    """The one scale that serves all these maps: around zero where they are changes of score.

    `vmax` is the value at its ends, where figures are to be compared.
    """
    values = [maps.thinned(MOST_SIDE).values for maps in rows]
    if all(maps.diverging for maps in rows):
        limit = scale_of(values) if vmax is None else vmax
        return Scale(-limit, limit, cmap or DIVERGING)
    low = min(float(some.min()) for some in values)
    high = max(float(some.max()) for some in values) if vmax is None else vmax
    return Scale(low, max(high, low + 1e-6), cmap or SEQUENTIAL)


def plot_maps(
    rows: Sequence[Maps],
    names: Sequence[str] | None = None,
    vmax: float | None = None,
    cmap: str | None = None,
) -> Figure:
    """The image, then one panel per fill; several classes stand above each other.

    All panels share one scale. Stripes mark what could be chance, by the rule of findings.
    `names` head the rows as they are, instead of labels.
    """
    rows = [maps.tested() for maps in rows]
    n_panels = 1 + max(len(maps.values) for maps in rows)
    figure, axes = panels(len(rows), n_panels, rows[0].image)
    scale = scale_for(rows, vmax, cmap)
    for line, maps in enumerate(rows):
        show_image(axes[line, 0], maps.image, names[line] if names else short(maps.label))
        for k in range(len(maps.values)):
            axis = axes[line, 1 + k]
            _show_map(axis, maps, k, scale)
            if line == 0 or rows[0].names != maps.names:
                head(axis, maps, k)
    colorbar(figure, axes, scale, rows[0].unit)
    _caption(figure, rows)
    return figure


def plot_into(axis: Axes, maps: Maps, vmax: float | None = None, cmap: str | None = None) -> Figure:
    """The strongest of some maps, into axes of the caller's own."""
    k = int(np.abs(maps.values).max(axis=(1, 2)).argmax())
    scale = scale_for([maps], vmax, cmap)
    _show_map(axis, maps, k, scale)
    plain(axis.set_title(f"{short(maps.label)}: {maps.names[k]}", fontsize=9))
    axis.set_axis_off()
    figure = axis.get_figure(root=True)
    assert figure is not None
    colorbar(figure, np.array([axis]), scale, maps.unit)
    return figure


def plot_rise(rise: Maps, debiased: Maps) -> Figure:
    """RISE next to debiased RISE: only the second is near zero where the model does not look."""
    figure, axes = panels(1, 3, rise.image, gap=0.45)
    show_image(axes[0, 0], rise.image, short(rise.label))
    units = rise.unit, f"{debiased.unit} when kept"
    for panel, (maps, unit) in enumerate(zip((rise, debiased), units, strict=True), start=1):
        scale = scale_for([maps])
        _show_map(axes[0, panel], maps, 0, scale)
        axes[0, panel].set_title(["RISE", "debiased RISE"][panel - 1], fontsize=9)
        colorbar(figure, axes[:, panel : panel + 1], scale, unit)
    _caption(figure, [debiased])
    return figure


def plot_comparison(comparison: Comparison) -> Figure:
    """Two classes and their difference in one scale; findings are outlined on the difference."""
    difference = comparison.difference
    rows = [comparison.wanted, comparison.given, difference.maps]
    figure = plot_maps(rows, [short(rows[0].label), short(rows[1].label), "difference"])
    _outline(figure.axes[2 * (1 + len(rows[0].values))], difference.findings)
    return figure


def plot_trials(explanation: Explanation, trials: Sequence[Intervention]) -> Figure:
    """The image, then each repaint with the score it got."""
    figure, axes = panels(1, 1 + len(trials), explanation.view.pixels)
    show_image(axes[0, 0], explanation.view.pixels, "as it is")
    for axis, trial in zip(axes[0, 1:], trials, strict=True):
        moved = f"{trial.before[trial.target]:.2f} → {trial.after[trial.target]:.2f}"
        title = f"{short(explanation.label(trial.target), 22)}\n{moved}"
        show_image(
            axis, trial.repaint.render(explanation.view.pixels, explanation.plan.cell), title
        )
    return figure


def plot_match(maps: Maps, match: NDArray[Any], name: str) -> Figure:
    """The query, what it was matched with, and how their similarity responds to each fill."""
    figure, axes = panels(1, 2 + len(maps.values), maps.image)
    show_image(axes[0, 0], maps.image, "query")
    show_image(axes[0, 1], match, "match")
    plain(axes[0, 1].set_xlabel(short(name), fontsize=6))
    scale = scale_for([maps])
    for panel in range(len(maps.values)):
        _show_map(axes[0, 2 + panel], maps, panel, scale)
        head(axes[0, 2 + panel], maps, panel)
    colorbar(figure, axes, scale, maps.unit)
    _caption(figure, [maps])
    return figure


def plot_curves(curves: Sequence[Curve]) -> Figure:
    """Score against the share of pixels changed; deletion on the left, insertion on the right."""
    figure = ShownFigure(figsize=(8, 3.4), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    for curve in curves:
        aware = curve.metric.color_aware
        (left if curve.metric.deletes else right).plot(
            curve.shares,
            curve.scores,
            linestyle="-" if aware else "--",
            color="#5e3c99" if aware else "#e66101",
            label=f"{curve.metric.title}: area {curve.area:.3f}",
        )
    for axis, side, done in ((left, "deletion", "painted"), (right, "insertion", "uncovered")):
        axis.set_title(f"{side} ({METRICS[side].direction})", fontsize=9)
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
    plain(figure.suptitle(title, fontsize=9))
    for line, (label, pictures) in zip(axes, lines, strict=True):
        for axis, (name, picture) in zip(line, pictures, strict=False):
            show_image(axis, picture, name)
            axis.title.set_fontsize(7)
        for axis in line[len(pictures) :]:
            axis.axis("off")
        plain(line[0].set_ylabel(short(label), fontsize=7))
    return figure


def _outline(axis: Axes, findings: Sequence[Finding]) -> None:
    """Draw around each region, in the color of its direction, with its number."""
    ends = matplotlib.colormaps[DIVERGING]
    for number, finding in enumerate(findings, start=1):
        color = ends(0.85 if finding.direction > 0 else 0.1)
        outline_region(axis, finding.region, color)
        every = downsampling_step(finding.region.shape, MOST_SIDE)
        row, col = _middle_pixel(touched_blocks(finding.region, every))
        axis.text(
            col, row, str(number), color="white", fontsize=8, ha="center", va="center",
            bbox={"boxstyle": "circle,pad=0.15", "facecolor": color, "edgecolor": "white"},
        )  # fmt: skip
    _fit_to_image(axis)


def _fit_to_image(axis: Axes) -> None:
    """Let the picture fill its axes, whatever reaches beyond it."""
    rows, columns = axis.get_images()[0].get_size()
    axis.set_xlim(-0.5, columns - 0.5)
    axis.set_ylim(rows - 0.5, -0.5)


def outline_region(
    axis: Axes, region: NDArray[np.bool_], color: Any, dashed: bool = False, thin: bool = False
) -> None:
    """Draw around a region (H, W), on white so that it is seen on any picture."""
    fewer = touched_blocks(region, downsampling_step(region.shape, MOST_SIDE))
    framed = np.pad(fewer.astype(float), 1)  # closes outlines that run into the border
    rows, columns = (np.arange(n) - 1 for n in framed.shape)
    lines: Any = contour_generator(columns, rows, framed).lines(0.5)
    around = Line.make_compound_path(*(Line(one) for one in lines))
    style, by = "dashed" if dashed else "solid", 0.6 if dashed or thin else 1.0
    for ink, width, dashes in (("white", 2.4, "solid"), (color, 1.4, style)):
        axis.add_artist(  # which measures nothing, as add_patch does
            PathPatch(around, fill=False, ec=ink, lw=width * by, ls=dashes, snap=False)
        )


def place_letters(
    regions: Sequence[NDArray[np.bool_]], size: tuple[int, ...], wide: float
) -> list[tuple[float, float]]:
    """Where the letters of regions go, as row and column: on the outline of each, and apart.

    The upper left end of an outline is taken where no other letter is near. `wide` is the width of
    the picture in pixels of the figure.
    """
    room = LETTER * size[1] / wide  # a letter's width in pixels of the picture
    low, high = room / 2, np.maximum(np.array(size[:2]) - room / 2, room / 2)
    spots: list[tuple[float, float]] = []
    for region in regions:
        fewer = touched_blocks(region, downsampling_step(region.shape, MOST_SIDE))
        pixels = np.clip(np.argwhere(fewer & ~binary_erosion(fewer)).astype(float), low, high)
        nearest = np.full(len(pixels), np.inf)
        for spot in spots:
            nearest = np.minimum(nearest, np.hypot(*(pixels - spot).T))
        from_corner = pixels.sum(axis=1)
        best = (from_corner + 1e6 * np.maximum(room - nearest, 0)).argmin()
        row, column = pixels[best].tolist()
        spots.append((row, column))
    return spots


def hatch_chance(axis: Axes, maps: Maps, k: int, scale: Scale) -> None:
    """Stripes where a map shows an effect that could be chance; no effect has none."""
    maps = maps.tested().thinned(MOST_SIDE)
    if not maps.diverging or maps.beyond is None:
        return
    striped = ~maps.beyond[k] & (np.abs(maps.values[k]) > VISIBLE * scale.high)
    if not striped.any():
        return
    framed = np.pad(striped.astype(float), 1)
    rows, cols = (np.arange(n) - 1 for n in framed.shape)
    with matplotlib.rc_context({"hatch.linewidth": 0.5}):
        stripes = axis.contourf(cols, rows, framed, levels=[0.5, 1.5], colors="none",
                                hatches=["/////"])  # fmt: skip
    stripes.set_edgecolor("#00000055")
    stripes.set_linewidth(0)
    _fit_to_image(axis)


def _middle_pixel(region: NDArray[np.bool_]) -> NDArray[np.intp]:
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
    figure = ShownFigure(
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
    axis.imshow(downsample(image, downsampling_step(image.shape, MOST_SIDE)))
    plain(axis.set_title(title, fontsize=9))


def _show_map(axis: Axes, maps: Maps, k: int, scale: Scale) -> None:
    """Draw map k, striped where it could be chance."""
    axis.imshow(drawn(maps, k, scale))
    hatch_chance(axis, maps, k, scale)


def drawn(maps: Maps, k: int, scale: Scale) -> NDArray[np.float32]:
    """Map k as pixels (H, W, 3) in 0..1: over the image in gray where zero means no effect.

    Of a large map, fewer pixels.
    """
    maps = maps.tested().thinned(MOST_SIDE)
    if not maps.diverging:
        return scale.colors(maps.values[k])
    # What nobody tested could be chance.
    beyond = np.zeros(maps.values.shape, bool) if maps.beyond is None else maps.beyond
    return overlay(maps.image, maps.values, beyond, k, scale)


def overlay(
    image: NDArray[Any],
    values: NDArray[np.float32],
    beyond: NDArray[np.bool_],
    k: int,
    scale: Scale,
) -> NDArray[np.float32]:
    """Map k of some (K, H, W) in color over the image in gray, as pixels (H, W, 3) in 0..1.

    All of them are taken, since one alone has no type: `values[k]` and `se[k]` are Any to mypy.
    """
    gray = 0.35 + 0.65 * (unit_float(image) @ LUMA)  # lifted, so that colors stay visible
    opacity = np.where(beyond[k], STRONG, FAINT)
    # Near zero the map is white: let the image through there, so that one sees what is where.
    opacity = opacity * np.clip(np.abs(values[k]) / (0.25 * scale.high), 0.35, 1)
    mix = opacity[..., None] * scale.colors(values[k]) + (1 - opacity[..., None]) * gray[..., None]
    return np.asarray(mix, np.float32)


def head(axis: Axes, maps: Maps, panel: int) -> None:
    """The fill's name and its swatch above a panel."""
    # A fixed height: left to itself, matplotlib lifts a title far above an inset.
    height = 1.09 if maps.fills else 1.0
    plain(axis.set_title(patch_title(maps, panel), fontsize=9, y=height, pad=3))
    if not maps.fills:
        return
    swatch = axis.inset_axes((0.0, 1.02, 1.0, 0.06))
    swatch.imshow(sample(maps.fills[panel], maps.image), aspect="auto")
    swatch.set_xticks([])
    swatch.set_yticks([])


def patch_title(maps: Maps, k: int) -> str:
    """`patch of blue`: so that nobody takes it for where the image is blue."""
    name = one_line(maps.names[k])
    return f"patch of {name}" if maps.fills and maps.fills[k].is_color else name


def sample(fill: Fill, image: NDArray[Any]) -> NDArray[np.float32]:
    """What the fill looks like: a strip through the middle of its picture."""
    rendered = fill.render(unit_float(downsample(image, downsampling_step(image.shape, MOST_SIDE))))
    middle = len(rendered) // 2
    reach = max(len(rendered) // 12, 1)
    return np.asarray(rendered[middle - reach : middle + reach], np.float32)


def colorbar(figure: Any, axes: NDArray[Any], scale: Scale, label: str) -> None:
    norm = Normalize(scale.low, scale.high)
    bar = figure.colorbar(
        matplotlib.cm.ScalarMappable(norm, scale.colormap),
        ax=axes,
        shrink=0.95,
        pad=0.01,
        aspect=14,
    )
    if scale.diverging:
        ends = f"{scale.low:.2g}\nlowers", f"{scale.high:+.2g}\nraises"
        bar.set_ticks([scale.low, 0, scale.high], labels=[ends[0].replace("-", "−"), "0", ends[1]])
    bar.set_label(label, fontsize=8)
    plain(bar.ax.yaxis.label)
    bar.ax.tick_params(labelsize=8)


def _caption(figure: Figure, rows: Sequence[Maps]) -> None:
    """Say below a figure what its stripes mean."""
    if words := pale_areas(rows, "Striped"):
        plain(figure.supxlabel(f"{words} Plain gray: no visible effect.", fontsize=7))


def plain(text: Text) -> None:
    """Let a text be drawn as it is: two dollars make no formula, half a surrogate no error."""
    text.set_parse_math(False)
    text.set_text(visible(text.get_text()).encode(errors="backslashreplace").decode())


def measured_width(words: str, size: float, bold: bool = False) -> float:
    """Of a text in points, in pixels of a figure with 100 per inch.

    Word by word: to lay out each beginning of a line would take as long as drawing the figure.
    """
    first, *more = visible(words).encode(errors="backslashreplace").decode().split(" ")
    space = _word_width("x x", size, bold) - _word_width("xx", size, bold)
    return _word_width(first, size, bold) + sum(space + _word_width(w, size, bold) for w in more)


@functools.lru_cache(4096)
def _word_width(word: str, size: float, bold: bool) -> float:
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    with DRAWING, warnings.catch_warnings():
        warnings.filterwarnings("ignore", LACKING, UserWarning)
        renderer: Any = RendererAgg(1, 1, 100)  # type: ignore[no-untyped-call]
        width, _, _ = renderer.get_text_width_height_descent(word, font, ismath=False)
    return float(width)


def short(title: str, most: int = 26) -> str:
    """One line of so many characters."""
    title = one_line(title)
    return title if len(title) <= most else title[: most - 1] + "…"


def save(figure: Figure, path: Path) -> Path:
    write_atomically(path, figure_png(figure))
    return path


def figure_pixels(figure: Figure) -> NDArray[np.uint8]:
    """A figure as pixels (H, W, 3)."""
    canvas: Any = FigureCanvasAgg(figure)
    with DRAWING, warnings.catch_warnings():
        warnings.filterwarnings("ignore", LACKING, UserWarning)
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


class ShownFigure(Figure):
    """A figure that a notebook shows, whether or not it was made ready for matplotlib's."""

    def _repr_png_(self) -> bytes:
        return figure_png(self)


def figure_png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG file."""
    out = io.BytesIO()
    with DRAWING, warnings.catch_warnings():
        warnings.filterwarnings("ignore", LACKING, UserWarning)
        figure.savefig(out, format="png")
    return out.getvalue()
