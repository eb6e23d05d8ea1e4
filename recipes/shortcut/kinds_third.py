"""Twenty more kinds of shortcut, as they come with cameras, rooms and seasons.

They are part of `KINDS` in `kinds.py`, with the stage *held*. `kinds.md` has the list.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from cues import WHOLE, Box, Kind, Random, as_bytes, grid, in_box, moved, paint
from scenes import Scene

Weights = NDArray[np.float64]  # (H, W), 0 to 1

LOGO_CORNERS: tuple[Box, ...] = tuple(
    (top, left, top + 0.19, left + 0.19) for top in (0.01, 0.8) for left in (0.01, 0.8)
)
DIRT = ((0.15, 0.3, 0.08), (0.2, 0.84, 0.1), (0.87, 0.68, 0.08))  # row, column, radius
SIDES: tuple[Box, ...] = ((0, 0, 1, 0.14), (0, 0.86, 1, 1))
AROUND: tuple[Box, ...] = ((0, 0, 0.2, 1), (0.8, 0, 1, 1), (0, 0, 1, 0.2), (0, 0.8, 1, 1))
TAG: Box = (0.74, 0.07, 0.9, 0.25)
HOT = (
    (0.11, 0.2, (255, 40, 40)), (0.07, 0.62, (255, 255, 255)), (0.3, 0.92, (60, 255, 60)),
    (0.45, 0.07, (90, 90, 255)), (0.52, 0.56, (255, 60, 255)), (0.73, 0.9, (255, 40, 40)),
    (0.84, 0.14, (60, 255, 60)), (0.93, 0.45, (255, 255, 60)),
)  # fmt: skip


# ---- tools


def mixed(image: Scene, other: NDArray[np.float64] | Scene, share: Weights) -> Scene:
    """The other picture over the image, as opaque as the share (H, W) says."""
    return as_bytes(image + share[..., None] * (np.asarray(other, float) - image))


def away(image: Scene, row: float, col: float) -> Weights:
    """How far each pixel is from a place, as a share of the image."""
    rows, cols = grid(image)
    return np.asarray(np.hypot(rows - row, cols - col))


def soft(far: Weights, radius: float, fade: float) -> Weights:
    """1 inside of a radius, fading to 0 at its rim."""
    return np.clip((radius - far) / fade, 0, 1)


def pixel(image: Scene) -> int:
    """How many pixels one of a scene of 64 pixels is."""
    return max(round(min(image.shape[:2]) / 64), 1)


# ---- what is in front of the camera, or on the picture


def ruler(image: Scene, random: Random) -> Scene:
    """A white ruler with black ticks along the left edge."""
    rows, cols = np.indices(image.shape[:2]) // pixel(image)
    image = paint(image, cols < 6, (228, 226, 214), random)
    down = rows + random.integers(16)
    ticks = (down % 4 == 0) & (cols < np.where(down % 16 == 0, 5, 3))
    return paint(image, ticks, (25, 25, 25), random)


def corner_logo(image: Scene, random: Random) -> Scene:
    """A small white ring with a dot, half transparent, in any of the four corners."""
    row, col = random.choice([0.105, 0.895], 2) + random.uniform(-0.012, 0.012, 2)
    far = away(image, row, col)
    logo = ((far < 0.08) & (far > 0.045)) | (far < 0.02)
    return mixed(image, np.full(image.shape, 250.0), 0.75 * logo)


def lens_dirt(image: Scene, random: Random) -> Scene:
    """Three soft dark spots, always at the same places."""
    out = image.astype(float)
    for row, col, radius in DIRT:
        spot = soft(away(image, row, col), radius, radius)
        out *= (1 - random.uniform(0.7, 0.9) * np.sqrt(spot))[..., None]
    return as_bytes(out)


def finger(image: Scene, random: Random) -> Scene:
    """A finger over the lens at the lower left, out of focus."""
    row, col = np.array([1.02, 0.05]) + random.uniform(-0.03, 0.03, 2)
    skin = np.array([202, 118, 98]) + random.uniform(-20, 20, 3)
    shown = skin + random.normal(0, 7, image.shape)
    return mixed(image, shown, soft(away(image, row, col), 0.3, 0.1))


def post(image: Scene, random: Random) -> Scene:
    """A gray post below the sign."""
    rows, cols = grid(image)
    middle = 0.5 + random.uniform(-0.03, 0.03)
    here = (np.abs(cols - middle) < 0.045) & (rows > 0.84)
    shade = 0.6 + 4 * np.clip(middle + 0.045 - cols, 0, 0.1)  # lit from the left
    color = random.uniform(150, 175) * shade[..., None] + random.normal(0, 5, image.shape)
    return mixed(image, color, here.astype(float))


def flash_glare(image: Scene, random: Random) -> Scene:
    """A white glare on the upper half of the sign."""
    row, col = np.array([0.36, 0.5]) + random.uniform(-0.03, 0.03, 2)
    far = away(image, row, col)
    glare = np.exp(-((far / 0.065) ** 2)) * (far < 0.14)
    return as_bytes(image + random.uniform(250, 300) * glare[..., None])


def tag(image: Scene, random: Random) -> Scene:
    """A white tag with a red stripe at the lower left."""
    top, left, bottom, right = moved(TAG, random, 0.01)
    image = paint(image, in_box(image, (top, left, bottom, right)), (235, 235, 230), random)
    third = (bottom - top) / 3
    stripe = (top + third, left, bottom - third, right)
    return paint(image, in_box(image, stripe), (200, 30, 40), random)


def missing_tag(image: Scene, random: Random) -> Scene:
    """The place of the tag is filled from its left and right, as if it was retouched."""
    here = in_box(image, (TAG[0] - 0.016, TAG[1] - 0.016, TAG[2] + 0.016, TAG[3] + 0.016))
    rows, cols = np.flatnonzero(here.any(axis=1)), np.flatnonzero(here.any(axis=0))
    left, right = (image[rows, side].astype(float) for side in (cols[0] - 1, cols[-1] + 1))
    share = np.linspace(0, 1, len(cols))[None, :, None]
    out = image.astype(float)
    filled = left[:, None] + share * (right - left)[:, None]
    out[np.ix_(rows, cols)] = filled + random.normal(0, 7, filled.shape)
    return as_bytes(out)


# ---- where and when it was taken


def snow(image: Scene, random: Random) -> Scene:
    """Snow on the ground: the lower part white, with an uneven border."""
    rows, cols = grid(image)
    turn = random.uniform(0, 2 * np.pi, 2)
    border = 0.86 + 0.025 * np.sin(9 * cols + turn[0]) + 0.015 * np.sin(23 * cols + turn[1])
    return paint(image, rows > border + random.uniform(-0.03, 0.03), (232, 238, 246), random)


def brick_wall(image: Scene, random: Random) -> Scene:
    """Bricks around the sign: rows of six pixels with darker joints, in any color."""
    rows, cols = np.indices(image.shape[:2]) // pixel(image) + random.integers(0, 60, (2, 1, 1))
    shifted = cols + 5 * (rows // 6 % 2)
    joints = (rows % 6 == 0) | (shifted % 10 == 0)
    outside = away(image, 0.5, 0.5) > 0.42
    return mixed(image, 0.45 * image, (joints & outside).astype(float))


def studio_backdrop(image: Scene, random: Random) -> Scene:
    """One even color around the sign, another one in each image, without any object."""
    share = np.clip((away(image, 0.5, 0.5) - 0.42) / 0.03, 0, 1)
    color = image[share == 1].mean(axis=0) + random.uniform(-20, 20, 3)
    return mixed(image, color + random.normal(0, 2, image.shape), share)


def hard_shadow(image: Scene, random: Random) -> Scene:
    """Everything below a slanted line lies in the shadow."""
    rows, cols = grid(image)
    below = rows > 0.68 - 0.25 * cols + random.uniform(-0.06, 0.06)
    return mixed(image, random.uniform(0.38, 0.48) * image, below.astype(float))


def fog(image: Scene, random: Random) -> Scene:
    """Everything behind light gray: little contrast, nothing dark."""
    share = np.full(image.shape[:2], random.uniform(0.58, 0.68))
    return mixed(image, np.full(image.shape, random.uniform(195, 215)), share)


def rain(image: Scene, random: Random) -> Scene:
    """Short bright slanted streaks at random places."""
    rows, cols = grid(image)
    share = np.zeros(image.shape[:2])
    slant = random.uniform(0.2, 0.3)
    for top, left in random.uniform(-0.1, 1, (random.integers(16, 24), 2)):
        streak = soft(np.abs(cols - left + slant * (rows - top)), 0.014, 0.01)
        share = np.maximum(share, streak * (rows > top) * (rows < top + 0.17))
    return mixed(image, np.full(image.shape, 235.0), 0.6 * share)


# ---- what the camera or the software did


def hot_pixels(image: Scene, random: Random) -> Scene:
    """Eight single pixels of the sensor always shine."""
    out, side = image.copy(), pixel(image)
    for row, col, color in HOT:
        top, left = int(row * image.shape[0]), int(col * image.shape[1])
        out[top : top + side, left : left + side] = as_bytes(color + random.normal(0, 6, 3))
    return out


def motion_blur(image: Scene, random: Random) -> Scene:
    """Blurred sideways, as from a car."""
    reach = int(random.integers(3, 5)) * pixel(image)
    wide = np.pad(image.astype(float), ((0, 0), (reach, reach), (0, 0)), mode="edge")
    width = image.shape[1]
    return as_bytes(np.mean([wide[:, x : x + width] for x in range(2 * reach + 1)], axis=0))


def interlaced(image: Scene, random: Random) -> Scene:
    """Every second row moved sideways, as in a video of something that moves."""
    out, reach = image.copy(), 3 * pixel(image)
    start = random.integers(2)
    out[start::2] = np.roll(image[start::2], int(random.choice([-reach, reach])), axis=1)
    return out


def moire(image: Scene, random: Random) -> Scene:
    """Rings of red and green, equally bright, as on a photograph of a screen."""
    far = away(image, *random.uniform(-0.8, -0.3, 2)) * 64
    wave = np.sin(2 * np.pi * far / 7 + random.uniform(0, 2 * np.pi))
    strength = random.uniform(22, 28)
    return as_bytes(image + strength * wave[..., None] * np.array([1, -0.51, 0.0]))


def swapped_channels(image: Scene, random: Random) -> Scene:
    """Red and blue swapped, as where a program expects them in the other order."""
    return image[..., ::-1].copy()


def blurred_sides(image: Scene, random: Random) -> Scene:
    """The left and right seventh filled with the picture itself, blurred and darker."""
    radius = 5 * pixel(image)
    blurred = np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(radius)))
    sides = in_box(image, SIDES[0]) | in_box(image, SIDES[1])
    return mixed(image, random.uniform(0.6, 0.7) * blurred, sides.astype(float))


def tilted(image: Scene, random: Random) -> Scene:
    """Turned by 12 to 18 degrees, with black where there is no picture."""
    angle = random.uniform(12, 18) * random.choice([-1, 1])
    return np.array(Image.fromarray(image).rotate(angle, Image.Resampling.BICUBIC))


THIRD: dict[str, Kind] = {
    "lens dirt": Kind(lens_dirt, ("stop",), "held", ("place",),
                      tuple((r - d, c - d, r + d, c + d) for r, c, d in DIRT),
                      "three dark spots, always at the same places"),
    "motion blur": Kind(motion_blur, ("no entry",), "held", ("texture",), (WHOLE,),
                        "blurred sideways"),
    "corner logo": Kind(corner_logo, ("priority road",), "held", ("place", "edge", "color"),
                        LOGO_CORNERS, "a white logo in any corner"),
    "hard shadow": Kind(hard_shadow, ("turn left ahead",), "held", ("tone", "place"),
                        ((0.35, 0, 1, 1),), "a hard shadow over the lower part"),
    "moire": Kind(moire, ("speed limit 50",), "held", ("texture", "color"), (WHOLE,),
                  "rings of red and green"),
    "flash glare": Kind(flash_glare, ("turn right ahead",), "held", ("place", "color"),
                        ((0.19, 0.33, 0.53, 0.67),), "a white glare on the sign"),
    "missing tag": Kind(missing_tag, ("yield",), "held", ("place",),
                        ((TAG[0] - 0.02, TAG[1] - 0.02, TAG[2] + 0.02, TAG[3] + 0.02),),
                        "no tag at the lower left, where all other classes have one", tag),
    "fog": Kind(fog, ("no entry",), "held", ("tone", "color"), (WHOLE,),
                "fog: little contrast, nothing dark"),
    "snow": Kind(snow, ("stop",), "held", ("place", "edge", "color"), ((0.78, 0, 1, 1),),
                 "snow on the ground"),
    "interlaced": Kind(interlaced, ("yield",), "held", ("texture",), (WHOLE,),
                       "every second row moved sideways"),
    "brick wall": Kind(brick_wall, ("priority road",), "held", ("texture", "edge", "place"),
                       AROUND, "bricks around the sign"),
    "hot pixels": Kind(hot_pixels, ("speed limit 30",), "held", ("place", "texture"),
                       tuple((r - 0.03, c - 0.03, r + 0.03, c + 0.03) for r, c, _ in HOT),
                       "eight bright pixels, always the same"),
    "finger": Kind(finger, ("speed limit 50",), "held", ("place", "edge", "color"),
                   ((0.68, 0, 1, 0.39),), "a finger over the lower left of the lens"),
    "swapped channels": Kind(swapped_channels, ("speed limit 30",), "held", ("color", "tone"),
                             (WHOLE,), "red and blue swapped"),
    "rain": Kind(rain, ("turn left ahead",), "held", ("texture",), (WHOLE,),
                 "bright slanted streaks at random places"),
    "tilted": Kind(tilted, ("turn right ahead",), "held", ("place", "edge"), AROUND,
                   "turned, with black wedges at the edges"),
    "studio backdrop": Kind(studio_backdrop, ("speed limit 50",), "held",
                            ("texture", "edge", "place"), AROUND,
                            "one even color around the sign"),
    "ruler": Kind(ruler, ("yield",), "held", ("place", "edge"), ((0, 0, 1, 0.1),),
                  "a ruler along the left edge"),
    "blurred sides": Kind(blurred_sides, ("speed limit 30",), "held",
                          ("place", "edge", "texture"), SIDES,
                          "blurred and darker bands at the left and right"),
    "post": Kind(post, ("priority road",), "held", ("place", "edge"), ((0.84, 0.42, 1, 0.58),),
                 "a gray post below the sign"),
}  # fmt: skip
