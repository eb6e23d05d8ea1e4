"""Figure layout: the parts of the figure of an explanation, placed in pixels of a page."""

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
from ..interpretation.findings import Finding, Findings
from ..maps import Maps, pale_areas
from .figure_tests import LOWERS, RAISES, Shot, shown_maps
from .plots import (
    LETTER,
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

WIDTH, MARGIN, GAP = 1400, 28, 16  # pixels, of which an inch has 100
DPI = 100
MOST_HIGH = 220  # pixels, of a picture
LEAST_HIGH = 96  # pixels, of the color scale, for the words beside it
MANY = 6  # places that are only listed: with more of them, their image is enlarged too
# Points. The smallest is still read when the page is shown 900 pixels wide.
TITLE, LEAD, SENTENCE, LABEL, SMALL = 17.0, 13.0, 12.0, 11.0, 10.0
MOST_ROWS = 3  # of pictures that belong together
LINE = 1.75  # pixels from line to line, for each point of a font
ASCENT = 1.25  # pixels from the top of a line to its baseline, for each point
ABOVE, BELOW = 26, 6  # pixels, of a picture: its title, and what is left free
INK, SOFT = "black", "#444444"
SIGNS = {-1: "▼ ", 0: "= ", 1: "▲ "}


@dataclass(frozen=True)
class Layout:
    """Columns of the page: the unpainted image, its average color, the colors, and one more."""

    n_columns: int
    wide: float  # of a picture
    high: float

    @property
    def n_enlarged(self) -> int:
        """Columns of an enlarged image."""
        return 2 if self.n_columns == 8 else 1

    @classmethod
    def of(cls, maps: Maps) -> "Layout":
        rows, columns = maps.image.shape[:2]
        stretch = columns / rows
        n_columns = 8 if stretch <= 1.6 else 6 if stretch <= 3 else 4
        room = (WIDTH - 2 * MARGIN) / n_columns - GAP
        by = min(room / columns, MOST_HIGH / rows)
        return cls(n_columns, by * columns, by * rows)

    @property
    def pitch(self) -> float:
        """From column to column."""
        return (WIDTH - 2 * MARGIN) / self.n_columns

    def left(self, column: int) -> float:
        return MARGIN + column * self.pitch

    def middle(self, column: int) -> float:
        return self.left(column) + (self.pitch - GAP) / 2

    def left_of_picture(self, column: int) -> float:
        return self.left(column) + (self.pitch - GAP - self.wide) / 2

    def size_over(self, n_columns: int, most_high: float) -> tuple[float, float]:
        """How wide and high a picture is that takes several columns and is at most so high."""
        room = n_columns * self.pitch - GAP
        by = max(min(room / self.wide, most_high / self.high), 1) if n_columns > 1 else 1
        return by * self.wide, by * self.high


class Page:
    """A figure that is drawn on in pixels from its upper left corner."""

    def __init__(self, height: float) -> None:
        self.height = height
        self.figure = ShownFigure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI, facecolor="white")
        FigureCanvasAgg(self.figure)  # draws without a screen

    def axes(self, left: float, top: float, wide: float, high: float, pixels: Any) -> Axes:
        """A picture that is drawn on."""
        bottom = self.height - top - high
        box = left / WIDTH, bottom / self.height, wide / WIDTH, high / self.height
        axes = self.figure.add_axes(box)
        axes.axis("off")
        axes.imshow(pixels, aspect="auto")
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

    def image_of_places(
        self, left: float, top: float, size: tuple[float, float], pixels: NDArray[Any],
        places: Sequence[Finding],
    ) -> None:  # fmt: skip
        """The image with outlines and letters; a place that is only listed has a dashed outline."""
        axes = self.axes(left, top, *size, pixels)
        for one in reversed(places):
            outline_region(axes, one.region, ink_of(one), dashed=not one.described)
        spots = place_letters([one.region for one in places], pixels.shape, size[0])
        for one, (row, column) in zip(places, spots, strict=True):
            axes.text(
                column, row, one.letter, color="white", ha="center", va="center_baseline",
                fontsize=9 if len(one.letter) == 1 else 7, fontweight="bold", parse_math=False,
                bbox={"boxstyle": "circle,pad=0.15", "facecolor": ink_of(one), "ec": "white"},
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
            place = top + self.above + n * LINE * self.size
            page.write(MARGIN, place, line, self.size, self.color, self.bold)


@dataclass(frozen=True, eq=False)
class MapsRow:
    """The image with the places that are tested below, the maps, and how to read them."""

    maps: Maps
    findings: Findings

    def shown(self, layout: Layout) -> list[list[int]]:
        """The maps, line by line."""
        maps, each = shown_maps(self.maps), layout.n_columns - layout.n_enlarged - 1
        return [maps[n : n + each] for n in range(0, len(maps), each)]

    def beside(self, layout: Layout) -> bool:
        """Whether there is room for the words right of few maps."""
        return len(shown_maps(self.maps)) <= layout.n_columns - layout.n_enlarged - 4

    def high(self, layout: Layout) -> float:
        """Of a line of maps with its titles."""
        return ABOVE + 12 + max(layout.high, LEAST_HIGH)

    def words(self, layout: Layout) -> list[str]:
        left = self.left_of_words(layout)
        lines = [wrapped(words, WIDTH - MARGIN - left, SMALL, 9) for words in self.legend()]
        return [line for some in lines for line in some]

    def left_of_words(self, layout: Layout) -> float:
        n_maps = len(shown_maps(self.maps)) if self.beside(layout) else -1
        return layout.left(layout.n_enlarged + n_maps + 1)

    def legend(self) -> list[str]:
        """How to read the maps and the outlines, and what was not tested."""
        maps = "Maps: WHERE a small patch changes the score (average over random paintings)."
        if chance := pale_areas([self.maps], "Striped"):
            maps += f" {chance} Plain gray: no visible effect."
        out = [maps]
        if self.findings.described:
            out.append("Outlines: purple where painting lowers the score, orange where it raises "
                       "it. The pictures below test each of them.")  # fmt: skip
        return [*out, *filter(None, [one_line(self.findings.closing)])]

    def size(self, layout: Layout) -> tuple[float, float]:
        """How wide and high the image is: as high as what is beside it."""
        return layout.size_over(layout.n_enlarged, self.height(layout) - ABOVE - 12 - 16)

    def height(self, layout: Layout) -> float:
        words = LINE * SMALL * len(self.words(layout)) + 8
        maps = len(self.shown(layout)) * self.high(layout)
        return (max(maps, ABOVE + words) if self.beside(layout) else maps + words) + 16

    def draw(self, page: Page, layout: Layout, top: float) -> None:
        scale = scale_for([self.maps])
        self.draw_image(page, layout, top)
        below = top
        for line in self.shown(layout):
            for column, k in enumerate(line, start=layout.n_enlarged):
                self.draw_map(page, layout, column, below, k, scale)
            below += self.high(layout)
        self.draw_scale(page, layout, layout.n_enlarged + len(self.shown(layout)[0]), top, scale)
        first = top + ABOVE if self.beside(layout) else below + 8
        for n, words in enumerate(self.words(layout)):
            page.write(self.left_of_words(layout), first + n * LINE * SMALL, words, SMALL, SOFT)

    def draw_image(self, page: Page, layout: Layout, top: float) -> None:
        places, size = self.findings.described, self.size(layout)
        room = layout.n_enlarged * layout.pitch - GAP
        left = MARGIN + (room - size[0]) / 2
        page.image_of_places(left, top + ABOVE + 12, size, self.maps.image, places)
        page.write(MARGIN + room / 2, top, letters_title(places), LABEL, align="center")

    def draw_map(
        self, page: Page, layout: Layout, column: int, top: float, k: int, scale: Scale
    ) -> None:
        maps, left = self.maps, layout.left_of_picture(column)
        words = cut(patch_title(maps, k), layout.pitch - 6, LABEL)
        page.write(layout.middle(column), top, words, LABEL, align="center")
        if maps.fills:
            colors = sample(maps.fills[k], maps.image)
            page.picture(left, top + ABOVE, layout.wide, 7, colors)
        size = layout.wide, layout.high
        axes = page.axes(left, top + ABOVE + 12, *size, drawn(maps, k, scale))
        hatch_chance(axes, maps, k, scale)
        places = self.findings.described
        spots = place_letters([one.region for one in places], maps.image.shape, layout.wide)
        for one, (row, column_of_letter) in zip(places, spots, strict=True):
            outline_region(axes, one.region, INK, thin=True)
            axes.text(
                column_of_letter, row, one.letter, fontsize=8, fontweight="bold", ha="center",
                va="center_baseline", parse_math=False,
                bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
            )  # fmt: skip

    def draw_scale(self, page: Page, layout: Layout, column: int, top: float, scale: Scale) -> None:
        """The color scale, with what its ends mean."""
        left, top = layout.left(column) + 4, top + ABOVE + 12
        high = max(layout.high, LEAST_HIGH)
        values = np.linspace(scale.high, scale.low, 128, dtype=np.float32)[:, None]
        page.picture(left, top, 14, high, scale.colors(values))
        right = left + 22
        page.write(right, top - 3, signed(scale.high), LABEL, RAISES, bold=True)
        page.write(right, top + 15, "raises", LABEL, RAISES, bold=True)
        page.write(right, top + high / 2 - 9, "0", LABEL)
        page.write(right, top + high - 35, "lowers", LABEL, LOWERS, bold=True)
        page.write(right, top + high - 17, signed(scale.low), LABEL, LOWERS, bold=True)


@dataclass(frozen=True, eq=False)
class ShotsRow:
    """The unpainted image, and repainted pictures with the score and the answer below each."""

    before: Shot
    places: Sequence[Finding]  # that are outlined in it
    shots: Sequence[Shot | None]

    def n_first(self, layout: Layout) -> int:
        """Columns of the unpainted image."""
        return layout.n_enlarged if len(self.places) > MANY else 1

    def rows(self, layout: Layout) -> list[Sequence[Shot | None]]:
        each = layout.n_columns - self.n_first(layout)
        lines = [self.shots[n : n + each] for n in range(0, len(self.shots), each)]
        return lines[:MOST_ROWS]

    def height_of_row(self, layout: Layout, row: Sequence[Shot | None], high: float = 0) -> float:
        n_lines = max(len(answer_lines(shot, layout)) for shot in row if shot is not None)
        return ABOVE + (high or layout.high) + BELOW + 26 + LINE * SMALL * n_lines + 10

    def size(self, layout: Layout) -> tuple[float, float]:
        """How wide and high the unpainted image is."""
        return layout.size_over(self.n_first(layout), 1.5 * MOST_HIGH)

    def height(self, layout: Layout) -> float:
        pictures = sum(self.height_of_row(layout, row) for row in self.rows(layout))
        first = self.height_of_row(layout, [self.before], self.size(layout)[1])
        return max(first, pictures)

    def draw(self, page: Page, layout: Layout, top: float) -> None:
        n_first = self.n_first(layout)
        size, room = self.size(layout), n_first * layout.pitch - GAP
        left = MARGIN + (room - size[0]) / 2
        places = self.places[: int(size[0] * size[1] / (3 * LETTER) ** 2)]  # that can be read
        page.image_of_places(left, top + ABOVE, size, self.before.pixels, places)
        self.write_around(page, layout, MARGIN + room / 2, top, self.before, size[1])
        for row in self.rows(layout):
            for column, shot in enumerate(row, start=n_first):
                if shot is None:
                    continue
                frame = 4.0 if shot.decides else 2.0 if shot.large else 1.0
                left, size = layout.left_of_picture(column), (layout.wide, layout.high)
                page.picture(left, top + ABOVE, *size, shot.pixels, shot.color, frame)
                self.write_around(page, layout, layout.middle(column), top, shot, layout.high)
            top += self.height_of_row(layout, row)

    def write_around(
        self, page: Page, layout: Layout, middle: float, top: float, shot: Shot, high: float
    ) -> None:
        """The title above a picture; the score and the answer below it."""
        page.write(middle, top, cut(shot.title, layout.pitch - 6, LABEL), LABEL, align="center")
        below = top + ABOVE + high + BELOW
        sign = "" if shot is self.before else SIGNS[shot.change]
        page.write(middle, below, f"{sign}{shot.score}", 14, shot.color, True, "center")
        for n, line in enumerate(answer_lines(shot, layout)):
            ink = INK if shot.decides else SOFT
            place = below + 26 + n * LINE * SMALL
            page.write(middle, place, line, SMALL, ink, shot.decides, "center")


Row = Words | MapsRow | ShotsRow


def answer_lines(shot: Shot, layout: Layout) -> list[str]:
    """What the model says, in a line or two that fit into a column."""
    if not shot.answer:
        return []
    return wrapped(shot.answer, layout.pitch - 8, SMALL, 2, shot.decides)


def signed(value: float) -> str:
    return f"{value:+.2g}".replace("-", "−")


def letters_title(places: Sequence[Finding]) -> str:
    """`places A–C`."""
    if not places:
        return "image"
    letters = list(dict.fromkeys([places[0].letter, places[-1].letter]))
    return f"place{'s' if len(letters) > 1 else ''} {'–'.join(letters)}"


def ink_of(finding: Finding) -> str:
    return RAISES if finding.direction > 0 else LOWERS


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
