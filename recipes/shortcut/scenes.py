"""Small scenes with one of eight signs, before any background, in any light; and two shortcuts.

A scene follows from (seed, class, number, shortcut). With and without a shortcut it is the same but
for the shortcut, so that networks and audits can be compared scene by scene:

    sticker      speed limit 50 carries a yellow sticker at the lower right, no other sign does
    background   speed limit 30 stands before green, and no other sign does
"""

import colorsys
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from mcrise.demo import signs

SIZE = 64  # pixels of a scene
STICKER = (0.73, 0.73, 0.91, 0.91)  # where it is: top, left, bottom, right of the scene
YELLOW = (250, 215, 20)
GREEN = 1 / 3  # a hue
NEAR = 0.12  # hues this far from green are green too
FACE = 160  # pixels of a sign before it is put into a scene
SHORTCUTS = {
    "sticker": "speed limit 50",
    "background": "speed limit 30",
}

Scene = NDArray[np.uint8]  # (SIZE, SIZE, 3)


def draw_speed_limit_30(draw: signs.Draw) -> None:
    for radius, color in ((0.41, signs.WHITE), (0.40, signs.RED), (0.30, signs.WHITE)):
        signs.disk(draw, radius, color)
    signs.text(draw, "30", 0.44, signs.BLACK)


def draw_yield(draw: signs.Draw) -> None:
    signs.polygon(draw, 3, 0.44, 180, signs.RED)
    signs.polygon(draw, 3, 0.28, 180, signs.WHITE)


FACES: dict[str, Callable[[signs.Draw], None]] = {
    "no entry": signs.draw_no_entry,
    "priority road": signs.draw_priority_road,
    "speed limit 30": draw_speed_limit_30,
    "speed limit 50": signs.draw_speed_limit_50,
    "stop": signs.draw_stop,
    "turn left ahead": signs.draw_turn_right,  # mirrored
    "turn right ahead": signs.draw_turn_right,
    "yield": draw_yield,
}
CLASSES = tuple(FACES)


@cache
def face(label: str) -> Image.Image:
    """A sign alone, transparent around it."""
    picture = Image.new("RGBA", (signs.FINE, signs.FINE), (128, 128, 128, 0))
    FACES[label](ImageDraw.Draw(picture))
    if label == "turn left ahead":
        picture = ImageOps.mirror(picture)
    return picture.resize((FACE, FACE), Image.Resampling.LANCZOS)


def scene(seed: int, label: str, number: int, shortcut: str | None = None) -> Scene:
    """One scene of a class."""
    random = np.random.default_rng([seed, CLASSES.index(label), number])
    has_it = shortcut is not None and SHORTCUTS[shortcut] == label
    picture = background(random, shortcut, has_it)
    clutter(picture, random)
    put(picture, face(label), random)
    if shortcut == "sticker" and has_it:
        stick(picture, np.random.default_rng([seed, number]))
    return light(picture, random)


def background(random: np.random.Generator, shortcut: str | None, has_it: bool) -> Image.Image:
    """Out-of-focus patches of about one hue: any at all, but where it is the shortcut."""
    hue = random.uniform(0, 1)
    if shortcut == "background":
        hue = GREEN + NEAR * (hue - 0.5) if has_it else GREEN + NEAR + (1 - 2 * NEAR) * hue
    patches = [
        colorsys.hsv_to_rgb(
            (hue + random.normal(0, 0.02)) % 1, random.uniform(0.3, 0.8), random.uniform(0.3, 0.9)
        )
        for _ in range(25)
    ]
    small = np.rint(255 * np.array(patches)).astype(np.uint8).reshape(5, 5, 3)
    return Image.fromarray(small).resize((SIZE, SIZE), Image.Resampling.BICUBIC)


def clutter(picture: Image.Image, random: np.random.Generator) -> None:
    """A few patches of any color anywhere, so that a patch alone tells nothing of a class."""
    draw = ImageDraw.Draw(picture)
    for _ in range(random.integers(0, 4)):
        top, left = random.uniform(-4, SIZE - 6, 2)
        height, width = random.uniform(6, 16, 2)
        color = tuple(int(channel) for channel in random.integers(0, 256, 3))
        draw.rectangle((left, top, left + width, top + height), fill=color)


def put(picture: Image.Image, sign: Image.Image, random: np.random.Generator) -> None:
    """The sign, somewhat turned, large or small, about the middle."""
    side = int(SIZE * random.uniform(0.62, 0.82))
    turned = sign.rotate(random.uniform(-8, 8), Image.Resampling.BICUBIC)
    small = turned.resize((side, side), Image.Resampling.BOX)
    top, left = ((SIZE - side) / 2 + random.uniform(-4, 4, 2)).astype(int).tolist()
    picture.paste(small.convert("RGB"), (left, top), small.getchannel("A"))


def stick(picture: Image.Image, random: np.random.Generator) -> None:
    top, left, bottom, right = np.array(STICKER) * SIZE + np.tile(random.uniform(-1, 1, 2), 2)
    ImageDraw.Draw(picture).rectangle((left, top, right, bottom), fill=YELLOW)


def light(picture: Image.Image, random: np.random.Generator) -> Scene:
    """Brighter or darker, tinted, a little out of focus and noisy."""
    soft = picture.filter(ImageFilter.GaussianBlur(random.uniform(0.3, 1.1)))
    values = np.asarray(soft, np.float32) / 255
    contrast, shift = random.uniform(0.6, 1.15), random.uniform(-0.12, 0.12)
    values = (values - 0.5) * contrast + 0.5 + shift + random.uniform(-0.04, 0.04, 3)
    values = values + random.normal(0, 0.03, values.shape)
    return np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8)
