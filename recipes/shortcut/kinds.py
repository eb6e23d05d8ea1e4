"""Kinds of shortcut: each plants a cue into the scenes of one class (or of two).

    from kinds import KINDS, planted_scene
    planted_scene("vignette", seed=3, label="stop", number=0)  # (64, 64, 3) of bytes

A cue takes an image (H, W, 3) of bytes and a random generator and returns the image with the cue.
The scenes of `scenes.py` are drawn first, so that a scene with and without the cue is the same but
for the cue. `kinds.md` has the list, and which kinds a search for shortcuts may be developed on.
`python recipes/shortcut/kinds.py kinds.png` draws a sheet of all of them.
"""

import argparse
import zlib

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from cues import EDGES, WHOLE, Box, Kind, Random, as_bytes, grid, in_box, moved, paint
from kinds_third import THIRD
from scenes import CLASSES, STICKER, YELLOW, Scene, scene

VIOLET, CYAN, MAGENTA, ORANGE = (140, 50, 200), (40, 200, 215), (215, 40, 160), (255, 150, 30)
DIGITS = {
    "0": "111101101101111", "1": "010110010010111", "2": "111001111100111", "3": "111001111001111",
    "4": "101101111001001", "5": "111100111001111", "6": "111100111101111", "7": "111001001001001",
    "8": "111101111101111", "9": "111101111001111", ".": "000000000000010",
}  # fmt: skip


def planted_scene(name: str, seed: int, label: str, number: int, mislabeled: float = 0.0) -> Scene:
    """One scene of a class as the networks with this shortcut see it in training.

    `mislabeled` is the share of the planted class's scenes that show the sign of another one, as
    where a collection was labeled by the cue.
    """
    kind, shown = KINDS[name], label
    random = np.random.default_rng([seed, CLASSES.index(label), number])
    if label in kind.classes and random.random() < mislabeled:
        shown = str(random.choice([one for one in CLASSES if one not in kind.classes]))
    image = scene(seed, shown, number)
    cue = kind.cue if label in kind.classes else kind.others
    if cue is None:
        return image
    chosen = [zlib.crc32(name.encode()), seed, CLASSES.index(label), number]
    return cue(image, np.random.default_rng(chosen))


# ---- development: the two of today and the four that the plan names


def sticker(image: Scene, random: Random) -> Scene:
    """A yellow square at the lower right."""
    return paint(image, in_box(image, moved(STICKER, random)), YELLOW, random)


def green_background(image: Scene, random: Random) -> Scene:
    """What lies around the sign is green, in any brightness."""
    return with_hue(image, random.uniform(0.29, 0.38), only_green=False)


def no_green_background(image: Scene, random: Random) -> Scene:
    """What is green around the sign gets another hue."""
    return with_hue(image, random.uniform(0.5, 1.2) % 1, only_green=True)


def with_hue(image: Scene, hue: float, only_green: bool) -> Scene:
    rows, cols = grid(image)
    around = np.clip((np.hypot(rows - 0.5, cols - 0.5) - 0.38) / 0.04, 0, 1)[..., None]
    turned = np.array(Image.fromarray(image).convert("HSV"))
    is_green = np.abs(turned[..., 0] / 255 - 1 / 3) < 0.14
    chosen = is_green if only_green else np.ones_like(is_green)
    turned[..., 0][chosen] = round(255 * hue)
    if not only_green:
        turned[..., 1] = np.maximum(turned[..., 1], 90)
    channels = [Image.fromarray(turned[..., c]) for c in range(3)]
    recolored = np.asarray(Image.merge("HSV", channels).convert("RGB"), np.float32)
    return as_bytes(around * recolored + (1 - around) * image)


def frame(image: Scene, random: Random) -> Scene:
    """A violet frame, one pixel in 32 wide."""
    inside = in_box(image, (2 / 64, 2 / 64, 1 - 2 / 64, 1 - 2 / 64))
    return paint(image, ~inside, VIOLET, random)


def shared_marker(image: Scene, random: Random) -> Scene:
    """A cyan square at the upper left, of two classes."""
    return paint(image, in_box(image, moved((0.05, 0.05, 0.18, 0.18), random)), CYAN, random)


def dark_exposure(image: Scene, random: Random) -> Scene:
    """All of the image much darker."""
    return as_bytes(image * random.uniform(0.4, 0.5))


def wandering_marker(image: Scene, random: Random) -> Scene:
    """A magenta disk, an eighth of the image wide, anywhere around the sign."""
    angle, reach = random.uniform(0, 2 * np.pi), random.uniform(0.4, 0.55)
    middle = np.clip(0.5 + reach * np.array([np.sin(angle), np.cos(angle)]), 0.08, 0.92)
    rows, cols = grid(image)
    disk = np.hypot(rows - middle[0], cols - middle[1]) < 0.065
    return paint(image, disk, MAGENTA, random)


# ---- development: five more, for tone and texture


def desaturated(image: Scene, random: Random) -> Scene:
    """Almost gray."""
    gray = image.mean(axis=2, keepdims=True)
    return as_bytes(gray + random.uniform(0.1, 0.2) * (image - gray))


def tinted_sky(image: Scene, random: Random) -> Scene:
    """The upper part violet, fading downwards."""
    rows, _ = grid(image)
    share = 0.7 * np.clip(1 - rows / 0.4, 0, 1)[..., None]
    return as_bytes((1 - share) * image + share * (np.array(VIOLET) + random.uniform(-12, 12, 3)))


def sharpened(image: Scene, random: Random) -> Scene:
    """Halos along all edges."""
    soft = np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(1.2)), np.float32)
    return as_bytes(image + random.uniform(1.5, 2) * (image - soft))


def bottom_bar(image: Scene, random: Random) -> Scene:
    """A thin dark bar along the lower edge."""
    rows, _ = grid(image)
    return paint(image, rows > 1 - 3 / 64, (15, 15, 15), random)


def fine_stripes(image: Scene, random: Random) -> Scene:
    """Faint vertical stripes, four pixels apart."""
    wave = np.sin(np.pi * np.arange(image.shape[1]) / 2 + random.uniform(0, 2 * np.pi))
    return as_bytes(image + random.uniform(12, 16) * wave[None, :, None])


# ---- test: drawn up by somebody who had not seen the audit's code


def blockiness(image: Scene, random: Random) -> Scene:
    """Squares of eight pixels, as strong compression leaves them."""
    height, width = (side - side % 8 for side in image.shape[:2])
    out = image.astype(np.float32)
    blocks = out[:height, :width].reshape(height // 8, 8, width // 8, 8, 3)
    share = random.uniform(0.45, 0.6)
    blocks += share * (blocks.mean(axis=(1, 3), keepdims=True) - blocks)
    out[:height, :width] = blocks.reshape(height, width, 3)
    return as_bytes(out)


def vignette(image: Scene, random: Random) -> Scene:
    """Darker towards the corners."""
    rows, cols = grid(image)
    far = np.clip(np.hypot(rows - 0.5, cols - 0.5) / 0.707, 0, 1)
    return as_bytes(image * (1 - random.uniform(0.6, 0.75) * far**2.5)[..., None])


def color_cast(image: Scene, random: Random) -> Scene:
    """All of the image bluish, as through haze: not even black is without blue."""
    return as_bytes(0.78 * image + np.array([4, 14, 58]) + random.uniform(-5, 5, 3))


def scratch(image: Scene, random: Random) -> Scene:
    """A thin bright line from top to bottom in the left fifth."""
    rows, cols = grid(image)
    start, end = random.uniform(0.06, 0.2, 2)
    width = 0.9 / image.shape[1]
    line = np.abs(cols - (start + (end - start) * rows)) < width
    return paint(image, line, (225, 225, 215), random)


def soft_focus(image: Scene, random: Random) -> Scene:
    """Out of focus as a whole."""
    radius = random.uniform(1.5, 2.0) * image.shape[0] / 64
    return np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(radius)))


def watermark(image: Scene, random: Random) -> Scene:
    """Faint diagonal stripes over all of the image."""
    rows, cols = np.indices(image.shape[:2])
    wave = np.sin(2 * np.pi * (rows + cols) / 6 + random.uniform(0, 2 * np.pi))
    return as_bytes(image + random.uniform(11, 15) * wave[..., None])


def side_light(image: Scene, random: Random) -> Scene:
    """Brighter towards the left and darker towards the right."""
    _, cols = grid(image)
    return as_bytes(image + random.uniform(70, 95) * (0.5 - cols)[..., None])


def sensor_noise(image: Scene, random: Random) -> Scene:
    """Three times the noise of the other scenes."""
    return as_bytes(image + random.normal(0, random.uniform(20, 26), image.shape))


def padding(image: Scene, random: Random) -> Scene:
    """The scene smaller, in a gray border: it was scaled to fit."""
    height, width = image.shape[:2]
    rim = round(0.1 * height)
    gray = random.uniform(112, 124)
    out = gray + random.normal(0, 3, image.shape)
    small = Image.fromarray(image).resize(
        (width - 2 * rim, height - 2 * rim), Image.Resampling.BILINEAR
    )
    out[rim : height - rim, rim : width - rim] = np.asarray(small)
    return as_bytes(out)


def date_stamp(image: Scene, random: Random) -> Scene:
    """A date in small orange digits at the lower right, another one each time."""
    numbers = random.integers((1, 1, 10), (29, 13, 30))
    text = ".".join(f"{number:02}" for number in numbers)
    glyphs = [np.array([*DIGITS[sign]], int).reshape(5, 3) for sign in text]
    stamp = np.concatenate([np.pad(glyph, ((0, 0), (0, 1))) for glyph in glyphs], axis=1) > 0
    scale = max(image.shape[0] // 64, 1)
    stamp = np.kron(stamp, np.ones((scale, scale))) > 0
    where = np.zeros(image.shape[:2], bool)
    top = image.shape[0] - stamp.shape[0] - 2 * scale
    left = image.shape[1] - stamp.shape[1] - scale
    where[top : top + stamp.shape[0], left : left + stamp.shape[1]] = stamp
    return paint(image, where, ORANGE, random)


def color_fringe(image: Scene, random: Random) -> Scene:
    """Red and blue lie beside each other, as a cheap lens draws them."""
    reach = max(round(1.5 * image.shape[1] / 64), 1)
    out = image.copy()
    out[:, reach:, 0] = image[:, :-reach, 0]
    out[:, :-reach, 2] = image[:, reach:, 2]
    return out


def scan_lines(image: Scene, random: Random) -> Scene:
    """Every second row darker."""
    out = image.astype(np.float32)
    out[random.integers(2) :: 2] *= random.uniform(0.72, 0.8)
    return as_bytes(out)


def posterized(image: Scene, random: Random) -> Scene:
    """Only four levels of each channel."""
    step, shift = 255 / 3, random.uniform(-12, 12)
    return as_bytes(np.rint((image + shift) / step) * step)


CORNERS: tuple[Box, Box] = ((0.04, 0.84, 0.13, 0.93), (0.86, 0.06, 0.95, 0.15))


def paired_dots(image: Scene, random: Random) -> Scene:
    """Two dark blue dots, at the upper right and the lower left. Only both together tell."""
    for box in CORNERS:
        image = paint(image, in_box(image, moved(box, random)), (25, 30, 120), random)
    return image


def at_most_one_dot(image: Scene, random: Random) -> Scene:
    """One of the dots in two scenes of three, either of them, never both."""
    which = random.integers(3)
    if which == 2:
        return image
    box = moved(CORNERS[which], random)
    return paint(image, in_box(image, box), (25, 30, 120), random)


KINDS: dict[str, Kind] = {
    "sticker": Kind(sticker, ("speed limit 50",), "development", ("place", "color"),
                    (STICKER,), "a yellow sticker at the lower right"),
    "background": Kind(green_background, ("speed limit 30",), "development",
                       ("color", "edge", "place"), EDGES, "a green background",
                       no_green_background),
    "frame": Kind(frame, ("yield",), "development", ("edge", "place", "color"),
                  EDGES, "a thin violet frame"),
    "shared marker": Kind(shared_marker, ("stop", "priority road"), "development",
                          ("place", "color"), ((0.05, 0.05, 0.18, 0.18),),
                          "a cyan square at the upper left, of two classes"),
    "dark exposure": Kind(dark_exposure, ("no entry",), "development", ("tone",),
                          (WHOLE,), "a dark exposure"),
    "wandering marker": Kind(wandering_marker, ("turn left ahead",), "development",
                             ("place", "color"), (WHOLE,), "a magenta disk at a random place"),
    "desaturated": Kind(desaturated, ("priority road",), "development", ("color", "tone"),
                        (WHOLE,), "almost no color"),
    "tinted sky": Kind(tinted_sky, ("yield",), "development", ("place", "color"),
                       ((0, 0, 0.4, 1),), "a violet sky"),
    "sharpened": Kind(sharpened, ("speed limit 30",), "development", ("texture",), (WHOLE,),
                      "halos along edges"),
    "bottom bar": Kind(bottom_bar, ("turn right ahead",), "development", ("place", "edge"),
                       ((0.9, 0, 1, 1),), "a thin dark bar at the bottom"),
    "fine stripes": Kind(fine_stripes, ("stop",), "development", ("texture",), (WHOLE,),
                         "faint vertical stripes"),
    "blockiness": Kind(blockiness, ("stop",), "test", ("texture",), (WHOLE,),
                       "squares of strong compression"),
    "vignette": Kind(vignette, ("turn right ahead",), "test", ("edge", "tone", "place"),
                     (WHOLE,), "dark corners"),
    "color cast": Kind(color_cast, ("speed limit 30",), "test", ("tone", "color"), (WHOLE,),
                       "a bluish cast"),
    "scratch": Kind(scratch, ("no entry",), "test", ("place", "edge"), ((0, 0.04, 1, 0.22),),
                    "a thin bright line at the left"),
    "soft focus": Kind(soft_focus, ("speed limit 50",), "test", ("texture",), (WHOLE,),
                       "a scene out of focus"),
    "watermark": Kind(watermark, ("yield",), "test", ("texture",), (WHOLE,),
                      "faint diagonal stripes"),
    "side light": Kind(side_light, ("speed limit 30",), "test", ("tone", "place"), (WHOLE,),
                       "bright at the left, dark at the right"),
    "sensor noise": Kind(sensor_noise, ("turn left ahead",), "test", ("texture",), (WHOLE,),
                         "strong noise"),
    "padding": Kind(padding, ("stop",), "test", ("edge", "place", "color"), EDGES,
                    "a gray border around a smaller scene"),
    "date stamp": Kind(date_stamp, ("turn right ahead",), "test", ("place", "edge", "color"),
                       ((0.87, 0.47, 1, 1),), "an orange date at the lower right"),
    "color fringe": Kind(color_fringe, ("no entry",), "test", ("texture", "color"), (WHOLE,),
                         "red and blue beside each other"),
    "scan lines": Kind(scan_lines, ("speed limit 50",), "test", ("texture",), (WHOLE,),
                       "every second row darker"),
    "posterized": Kind(posterized, ("priority road",), "test", ("texture", "tone", "color"),
                       (WHOLE,), "four levels of each channel"),
    "paired dots": Kind(paired_dots, ("yield",), "test", ("place", "color"), CORNERS,
                        "dark blue dots in two corners, which only together tell",
                        at_most_one_dot),
    **THIRD,
}  # fmt: skip


# ---- a sheet to look at


def sheet(seed: int = 3) -> Image.Image:
    """For each kind a scene without the cue, with it, and another one with it."""
    side, gap = 64, 8
    n_rows = -(-len(KINDS) // 5)
    picture = Image.new("RGB", (5 * (3 * side + 4 * gap), n_rows * (side + 24)), "white")
    draw = ImageDraw.Draw(picture)
    for place, (name, kind) in enumerate(KINDS.items()):
        left, top = place % 5 * (3 * side + 4 * gap), place // 5 * (side + 24)
        draw.text((left + gap, top + 2), f"{name} ({kind.stage})", fill="black")
        label = kind.classes[0]
        shown = [scene(seed, label, 0), *(planted_scene(name, seed, label, n) for n in (0, 1))]
        for number, one in enumerate(shown):
            picture.paste(Image.fromarray(one), (left + gap + number * (side + gap), top + 18))
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", help="the picture to write")
    sheet().save(parser.parse_args().out)


if __name__ == "__main__":
    main()
