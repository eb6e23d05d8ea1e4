"""Page: what the figure of an explanation is made of, placed in pixels of a page 1400 wide."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import BboxImage
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox, TransformedBbox
from numpy.typing import NDArray

from .._util.text import one_line
from ..images import downsampling_step
from ..interpretation.findings import Finding, Findings, box_of
from ..maps import Maps
from .plots import (
    MOST_SIDE,
    Scale,
    ShownFigure,
    drawn,
    hatch_chance,
    measured_width,
    outline_region,
    patch_title,
    place_letters,
    plain,
    sample,
    scale_for,
)
from .shots import LOWERS, MOST_MAPS, RAISES, Shot, box_words, patch_name, pictured, shown_maps

WIDTH, MARGIN, GAP = 1400, 28, 16  # pixels, of which an inch has 100
DPI = 100
MOST_PITCH, MOST_HIGH = 196, 240  # of a picture with the gap after it, and of a picture
LEAST_HIGH = 84  # of a row of maps, for the words at the color scale
MANY = 4  # findings: with more of them, the image is drawn larger
LINE = 1.75  # pixels from line to line, for each point of a font
ASCENT = 1.25  # pixels from the top of a line to its baseline, for each point
INK, SOFT = "black", "#555555"
WHERE = "WHERE a small patch", "changes the score", "(average over random", "paintings)"
SIGNS = {-1: "▼", 0: "=", 1: "▲"}


@dataclass(frozen=True)
class Layout:
    """Columns of the page: the image, a text or the average color, the colors, and the rest."""

    n_columns: int
    pitch: float
    wide: float  # of a picture
    high: float

    @classmethod
    def of(cls, maps: Maps) -> "Layout":
        n_columns = min(len(maps.values), MOST_MAPS) + 3
        pitch = min((WIDTH - 2 * MARGIN) / n_columns, MOST_PITCH)
        rows, columns = maps.image.shape[:2]
        enlarged = min((pitch - GAP) / columns, MOST_HIGH / rows)
        return cls(n_columns, pitch, enlarged * columns, enlarged * rows)

    def left(self, column: int) -> float:
        return MARGIN + column * self.pitch

    def left_of_picture(self, column: int) -> float:
        return self.left(column) + (self.pitch - GAP - self.wide) / 2


class Page:
    """A figure that is drawn on in pixels from its upper left corner."""

    def __init__(self, height: float) -> None:
        self.height = height
        self.figure = ShownFigure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI, facecolor="white")
        FigureCanvasAgg(self.figure)  # draws without a screen

    def axes(self, left: float, top: float, wide: float, high: float) -> Axes:
        bottom = self.height - top - high
        box = left / WIDTH, bottom / self.height, wide / WIDTH, high / self.height
        axes = self.figure.add_axes(box)
        axes.axis("off")
        return axes

    def picture(
        self, left: float, top: float, wide: float, high: float, pixels: NDArray[Any],
        color: str = INK, width: float = 0.8,
    ) -> None:  # fmt: skip
        """Pixels in a frame. Quicker than axes, which have ticks and labels that nobody sees."""
        bottom = self.height - top - high
        box = left / WIDTH, bottom / self.height, wide / WIDTH, high / self.height
        place = TransformedBbox(Bbox.from_bounds(*box), self.figure.transFigure)
        image = BboxImage(place)
        image.set_data(pixels)
        self.figure.add_artist(image)
        whole = self.figure.transFigure
        self.figure.add_artist(
            Rectangle(box[:2], *box[2:], transform=whole, fill=False, ec=color, lw=width)
        )

    def write(
        self, left: float, top: float, words: str, size: float, color: str = INK,
        bold: bool = False, align: str = "left",
    ) -> None:  # fmt: skip
        plain(
            self.figure.text(
                left / WIDTH, 1 - (top + ASCENT * size) / self.height, words, fontsize=size,
                color=color, va="baseline", ha=align, fontweight="bold" if bold else "normal",
            )
        )  # fmt: skip


@dataclass(frozen=True)
class Words:
    """A paragraph across the page."""

    text: str
    size: float
    color: str = INK
    bold: bool = False
    most_lines: int = 3
    above: int = 0  # pixels

    def lines(self) -> list[str]:
        width = WIDTH - 2 * MARGIN
        return wrapped(one_line(self.text), width, self.size, self.most_lines, self.bold)

    def height(self, layout: Layout) -> float:
        return self.above + LINE * self.size * len(self.lines()) + 6

    def draw(self, page: Page, layout: Layout, top: float) -> None:
        for n, line in enumerate(self.lines()):
            page.write(
                MARGIN,
                top + self.above + n * LINE * self.size,
                line,
                self.size,
                self.color,
                self.bold,
            )


@dataclass(frozen=True, eq=False)
class MapsRow:
    """The image with its findings, and the maps."""

    maps: Maps
    findings: Findings

    @property
    def enlarged(self) -> bool:
        """Whether the image has so many letters that it takes two columns."""
        return len(self.findings) > MANY

    def image_size(self, layout: Layout) -> tuple[float, float]:
        """How wide and high the image is."""
        if not self.enlarged:
            return layout.wide, layout.high
        rows, columns = self.maps.image.shape[:2]
        by = min((2 * layout.pitch - GAP) / columns, 1.6 * MOST_HIGH / rows)
        return by * columns, by * rows

    def height(self, layout: Layout) -> float:
        image = self.image_size(layout)[1]
        below = max(layout.high, LEAST_HIGH) + 4 * LINE * 9 + 16 if self.enlarged else 0
        return 10 + 26 + max(image, below, LEAST_HIGH) + 18

    def draw(self, page: Page, layout: Layout, top: float) -> None:
        maps, findings = self.maps, self.findings
        scale, top = scale_for([maps]), top + 10 + 26
        self.draw_image(page, layout, top)
        shown = shown_maps(maps)
        for column, k in enumerate(shown, start=2):
            left = layout.left_of_picture(column)
            axis = self.panel(page, left, top, (layout.wide, layout.high), drawn(maps, k, scale))
            hatch_chance(axis, maps, k, scale)
            for one in findings.described:
                outline_region(axis, one.region, INK)
                draw_small_letter(axis, one)
            middle = layout.left(column) + (layout.pitch - GAP) / 2
            words = cut(patch_title(maps, k), layout.pitch - 6, 9)
            page.write(middle, top - 28, words, 9, align="center")
            self.swatch(page, layout, column, top, k)
        self.scale(page, layout, 2 + len(shown), top, scale)
        if self.enlarged:
            below, left = top + max(layout.high, LEAST_HIGH) + 12, layout.left(2)
            room = WIDTH - MARGIN - left
            lines = [f"{' '.join(WHERE)}.", *wrapped(legend(maps), room, 9, 3)]
            for n, line in enumerate(lines):
                page.write(left, below + n * LINE * 9, line, 9, SOFT if n else INK)
            below += (len(lines) + 0.5) * LINE * 9
            self.list_places(page, left, below, top + self.image_size(layout)[1] - below)
            return
        middle = layout.left(1) + (layout.pitch - GAP) / 2
        size = min(9.5, 0.062 * (layout.pitch - GAP))
        first = top + max(layout.high - len(WHERE) * LINE * size, 0) / 2
        for n, line in enumerate(WHERE):
            page.write(middle, first + n * LINE * size, line, size, align="center")

    def list_places(self, page: Page, left: float, top: float, high: float) -> None:
        """Where the other places are, in two columns, as far as there is room."""
        listed, n_lines = self.findings.listed, int(high / (LINE * 9))
        each = (WIDTH - MARGIN - left) / 2
        for n, one in enumerate(listed[: 2 * max(n_lines - 1, 0)]):
            if n == 0:
                page.write(left, top, "Other places:", 9)
            words = (
                f"{one.letter}: {box_words(one.region)}, {patch_name(one.trial)} {one.after:.2f}"
            )
            row, column = n // 2 + 1, n % 2
            words = cut(words, each - GAP, 9)
            page.write(left + column * each, top + row * LINE * 9, words, 9, SOFT)

    def draw_image(self, page: Page, layout: Layout, top: float) -> None:
        """The image; places without a picture below have one outline together and no letter."""
        findings, (wide, high) = self.findings, self.image_size(layout)
        room = (2 if self.enlarged else 1) * layout.pitch - GAP
        left = MARGIN + (room - wide) / 2
        axis = self.panel(page, left, top, (wide, high), self.maps.image)
        lettered = [*findings.described, *pictured(findings)]
        for way, color in ((-1, LOWERS), (1, RAISES)):
            rest = [one.region for one in findings
                    if one not in lettered and one.direction == way]  # fmt: skip
            if rest:
                outline_region(axis, np.logical_or.reduce(rest), color, dashed=True)
        for one in reversed(lettered):
            color = RAISES if one.direction > 0 else LOWERS
            outline_region(axis, one.region, color, dashed=not one.described)
        spots = place_letters([one.region for one in lettered], self.maps.image.shape, wide)
        for one, (row, column) in zip(lettered, spots, strict=True):
            draw_letter(axis, one, row, column)
        page.write(MARGIN + room / 2, top - 28, letters_title(findings), 9, align="center")

    def panel(
        self, page: Page, left: float, top: float, size: tuple[float, float], pixels: Any
    ) -> Axes:
        axis = page.axes(left, top, *size)
        axis.imshow(pixels, aspect="auto")
        return axis

    def swatch(self, page: Page, layout: Layout, column: int, top: float, k: int) -> None:
        if not self.maps.fills:
            return
        colors = sample(self.maps.fills[k], self.maps.image)
        page.picture(layout.left_of_picture(column), top - 9, layout.wide, 6, colors)

    def scale(self, page: Page, layout: Layout, column: int, top: float, scale: Scale) -> None:
        """The color scale, with what its ends mean."""
        left = layout.left(column) + 4
        high = max(layout.high, LEAST_HIGH)
        values = np.linspace(scale.high, scale.low, 128, dtype=np.float32)[:, None]
        page.picture(left, top, 14, high, scale.colors(values))
        right = left + 20
        page.write(right, top - 2, signed(scale.high), 9, RAISES, bold=True)
        page.write(right, top + 13, "raises", 9, RAISES, bold=True)
        page.write(right, top + high / 2 - 7, "0", 9)
        page.write(right, top + high - 30, "lowers", 9, LOWERS, bold=True)
        page.write(right, top + high - 15, signed(scale.low), 9, LOWERS, bold=True)


@dataclass(frozen=True, eq=False)
class ShotsRow:
    """Repainted pictures with the score and the answer below each."""

    caption: Sequence[str]
    shots: Sequence[Shot | None]

    def rows(self, layout: Layout) -> list[Sequence[Shot | None]]:
        each = max(int((WIDTH - 2 * MARGIN) / layout.pitch), 2) - 1
        return [self.shots[n : n + each] for n in range(0, len(self.shots), each)]

    def words(self, layout: Layout) -> list[tuple[str, bool]]:
        lines = []
        for n, line in enumerate(self.caption):
            if not line and layout.high < 130:
                continue
            bold = n == 0
            width = layout.pitch - GAP
            lines += [(one, bold) for one in wrapped(one_line(line), width, 9, 4, bold)]
        return lines

    def height_of_row(self, layout: Layout) -> float:
        return 24 + layout.high + 44 + 12

    def height(self, layout: Layout) -> float:
        pictures = len(self.rows(layout)) * self.height_of_row(layout)
        return max(pictures, 24 + LINE * 9 * len(self.words(layout)) + 12)

    def draw(self, page: Page, layout: Layout, top: float) -> None:
        for n, (line, bold) in enumerate(self.words(layout)):
            page.write(MARGIN, top + 22 + n * LINE * 9, line, 9, bold=bold)
        for row in self.rows(layout):
            for column, shot in enumerate(row, start=1):
                if shot is not None:
                    self.draw_shot(page, layout, column, top + 24, shot)
            top += self.height_of_row(layout)

    def draw_shot(self, page: Page, layout: Layout, column: int, top: float, shot: Shot) -> None:
        frame = 4.0 if shot.decides else 2.0 if shot.large else 1.0
        left = layout.left_of_picture(column)
        page.picture(left, top, layout.wide, layout.high, shot.pixels, shot.color, frame)
        middle = layout.left(column) + (layout.pitch - GAP) / 2
        width = layout.pitch - 6
        page.write(middle, top - 20, cut(shot.title, width, 9), 9, align="center")
        below = top + layout.high + 6
        page.write(
            middle, below, f"{SIGNS[shot.change]} {shot.score}", 12.5, shot.color, True, "center"
        )
        answer = cut(shot.answer, width, 8.5, shot.decides)
        page.write(
            middle, below + 21, answer, 8.5, INK if shot.decides else SOFT, shot.decides, "center"
        )


Row = Words | MapsRow | ShotsRow


def legend(maps: Maps) -> str:
    """How to read the maps and the outlines."""
    chance = maps.faint.removesuffix(".").replace("Pale", "Pale, striped", 1)
    return (
        f"Maps: {sentence_start(chance)}; plain gray areas have no visible effect. "
        "Outlines: purple where painting lowers the score, orange where it raises it; "
        "dashed: other places. Letters on the maps: the places that are tested below."
    )


def sentence_start(words: str) -> str:
    return words[:1].lower() + words[1:]


def signed(value: float) -> str:
    return f"{value:+.2g}".replace("-", "−")


def letters_title(findings: Findings) -> str:
    letters = [one.letter for one in findings]
    if not letters:
        return "image"
    return f"region {letters[0]}" if len(letters) == 1 else f"regions {letters[0]}–{letters[-1]}"


def draw_letter(axis: Axes, finding: Finding, row: float, column: float) -> None:
    color = RAISES if finding.direction > 0 else LOWERS
    axis.text(
        column, row, finding.letter, color="white", ha="center", va="center",
        fontsize=9 if finding.described else 7, fontweight="bold", parse_math=False,
        bbox={"boxstyle": "circle,pad=0.15", "facecolor": color, "edgecolor": "white"},
    )  # fmt: skip


def draw_small_letter(axis: Axes, finding: Finding) -> None:
    """In the upper left corner of a place on a map."""
    every = downsampling_step(finding.region.shape, MOST_SIDE)
    top, left, _, _ = (edge / every for edge in box_of(finding.region))
    axis.text(
        left, top, finding.letter, fontsize=6, fontweight="bold", ha="left", va="top",
        parse_math=False, bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
    )  # fmt: skip


# ---- texts that fit


def cut(words: str, width: float, size: float, bold: bool = False) -> str:
    """So much of a text as fits into pixels."""
    if measured_width(words, size, bold) <= width:
        return words
    fits, too_long = 0, len(words)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if measured_width(words[:middle] + "…", size, bold) <= width:
            fits = middle
        else:
            too_long = middle
    return words[:fits] + "…"


def wrapped(words: str, width: float, size: float, most: int, bold: bool = False) -> list[str]:
    """Lines that fit into pixels; at most so many."""
    lines = [""]
    for word in words.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and measured_width(longer, size, bold) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{' '.join(lines[most - 1 :])}"]
    return [cut(line, width, size, bold) for line in lines]
