"""Traffic signs that the project draws itself, as a camera might see them."""

import math
from collections.abc import Callable

from PIL import Image, ImageDraw, ImageFilter, ImageFont

SIZE = 192  # pixels of a finished picture
FINE = 4 * SIZE  # it is drawn four times larger and reduced, so that edges are smooth
RED, BLUE, WHITE, YELLOW, BLACK = "#b3202a", "#1d4f9c", "#f2f2ee", "#f0b800", "#1a1a1a"
MIDDLE = FINE // 2

Draw = ImageDraw.ImageDraw


def stop() -> Image.Image:
    return sign(draw_stop)


def no_entry() -> Image.Image:
    return sign(draw_no_entry)


def priority_road() -> Image.Image:
    return sign(draw_priority_road)


def speed_limit_50() -> Image.Image:
    return sign(draw_speed_limit_50)


def turn_right_ahead() -> Image.Image:
    return sign(draw_turn_right)


def washed_out_priority_road() -> Image.Image:
    """The sun glares off its center, so that the yellow is gone, as in the paper's figure 6."""
    return sign(draw_faded_priority_road, glare=0.25)


SIGNS: dict[str, Callable[[], Image.Image]] = {
    "stop": stop,
    "no-entry": no_entry,
    "priority-road": priority_road,
    "speed-limit-50": speed_limit_50,
    "turn-right-ahead": turn_right_ahead,
    "washed-out-priority-road": washed_out_priority_road,
}


def sign(paint: Callable[[Draw], None], glare: float = 0.0) -> Image.Image:
    """Paint a sign before a blurred street, and reduce it to its final size."""
    picture = street()
    paint(ImageDraw.Draw(picture))
    if glare:
        shine = Image.new("L", picture.size, 0)
        disk(ImageDraw.Draw(shine), glare, "white")
        picture.paste("white", mask=shine.filter(ImageFilter.GaussianBlur(FINE / 14)))
    small = picture.resize((SIZE, SIZE), Image.Resampling.LANCZOS)
    return small.filter(ImageFilter.GaussianBlur(0.8))


def street() -> Image.Image:
    """Sky over trees over a gray road, out of focus."""
    picture = Image.new("RGB", (FINE, FINE), "#a9bccb")
    draw = ImageDraw.Draw(picture)
    for step in range(9):
        left = step * FINE // 8 - FINE // 10
        top = FINE * (0.42 + 0.06 * math.sin(2.4 * step))
        draw.ellipse((left, top, left + FINE // 4, FINE), fill=("#4f6146", "#5d6b4d")[step % 2])
    draw.rectangle((0, 0.8 * FINE, FINE, FINE), fill="#77777a")
    return picture.filter(ImageFilter.GaussianBlur(FINE / 40))


def disk(draw: Draw, radius: float, color: str) -> None:
    reach = radius * FINE
    draw.ellipse((MIDDLE - reach, MIDDLE - reach, MIDDLE + reach, MIDDLE + reach), fill=color)


def polygon(draw: Draw, n_corners: int, radius: float, turn: float, color: str) -> None:
    draw.regular_polygon((MIDDLE, MIDDLE, radius * FINE), n_corners, rotation=turn, fill=color)


def text(draw: Draw, words: str, height: float, color: str) -> None:
    font = ImageFont.load_default(height * FINE)
    draw.text((MIDDLE, MIDDLE), words, color, font, anchor="mm", stroke_width=FINE // 110)


def draw_stop(draw: Draw) -> None:
    polygon(draw, 8, 0.43, 0, WHITE)
    polygon(draw, 8, 0.41, 0, RED)
    text(draw, "STOP", 0.26, WHITE)


def draw_no_entry(draw: Draw) -> None:
    disk(draw, 0.40, WHITE)
    disk(draw, 0.385, RED)
    half_wide, half_high = 0.28 * FINE, 0.075 * FINE
    draw.rectangle(
        (MIDDLE - half_wide, MIDDLE - half_high, MIDDLE + half_wide, MIDDLE + half_high), fill=WHITE
    )


def draw_priority_road(draw: Draw) -> None:
    polygon(draw, 4, 0.46, 45, BLACK)
    polygon(draw, 4, 0.45, 45, WHITE)
    polygon(draw, 4, 0.32, 45, YELLOW)


def draw_faded_priority_road(draw: Draw) -> None:
    polygon(draw, 4, 0.45, 45, "#c8c8c6")
    polygon(draw, 4, 0.32, 45, "#f6ead0")


def draw_speed_limit_50(draw: Draw) -> None:
    disk(draw, 0.41, WHITE)
    disk(draw, 0.40, RED)
    disk(draw, 0.30, WHITE)
    text(draw, "50", 0.44, BLACK)


def draw_turn_right(draw: Draw) -> None:
    disk(draw, 0.41, WHITE)
    disk(draw, 0.395, BLUE)
    wide = int(0.085 * FINE)
    left, top, bottom = MIDDLE - 0.16 * FINE, MIDDLE - 0.07 * FINE, MIDDLE + 0.24 * FINE
    draw.line([(left, bottom), (left, top), (MIDDLE + 0.1 * FINE, top)], WHITE, wide, joint="curve")
    tip = 0.15 * FINE
    draw.polygon(
        [(MIDDLE + 0.07 * FINE, top - tip), (MIDDLE + 0.07 * FINE, top + tip),
         (MIDDLE + 0.27 * FINE, top)], fill=WHITE,
    )  # fmt: skip
