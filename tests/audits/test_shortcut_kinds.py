"""Cues of `recipes/shortcut/kinds.py`: where they are, who has them, and that they can be seen."""

import sys
from pathlib import Path

import numpy as np
import pytest

RECIPE = Path(__file__).parents[2] / "recipes" / "shortcut"
sys.path.append(str(RECIPE))
from kinds import CORNERS, KINDS, WHOLE, in_box, planted_scene, sheet  # noqa: E402
from kinds_third import DIRT, HOT  # noqa: E402
from scenes import CLASSES, SIZE, scene  # noqa: E402

SEED, N_SCENES = 5, 20
EACH = pytest.mark.parametrize("name", KINDS)


def scenes_of(name, label, n=N_SCENES):
    return np.stack([planted_scene(name, SEED, label, number) for number in range(n)])


@EACH
def test_a_cue_keeps_form_and_input_and_follows_from_its_generator(name):
    kind, image = KINDS[name], scene(SEED, KINDS[name].classes[0], 0)
    before = image.copy()
    first, again = (kind.cue(image, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(image, before)
    np.testing.assert_array_equal(first, again)
    assert first.dtype == np.uint8
    assert first.shape == image.shape
    assert (first != image).any()
    # Not square and larger, as photographs are.
    other = np.random.default_rng(0).integers(0, 256, (96, 130, 3), np.uint8)
    assert kind.cue(other, np.random.default_rng(1)).shape == other.shape


@EACH
def test_only_the_planted_classes_have_the_cue(name):
    kind = KINDS[name]
    assert set(kind.classes) <= set(CLASSES)
    for label in CLASSES:
        planted, plain = planted_scene(name, SEED, label, 0), scene(SEED, label, 0)
        if label in kind.classes:
            assert (planted != plain).any()
        elif kind.others is None:
            np.testing.assert_array_equal(planted, plain)


@EACH
def test_a_cue_with_a_place_leaves_the_rest_alone(name):
    kind = KINDS[name]
    if WHOLE in kind.where or name in (
        "background",
        "padding",
        "tilted",
    ):  # which fade, or move the sign
        return
    around = 1.5 / SIZE
    label, plain = kind.classes[0], scene(SEED, kind.classes[0], 0)
    there = np.zeros((SIZE, SIZE), bool)
    for top, left, bottom, right in kind.where:
        there |= in_box(plain, (top - around, left - around, bottom + around, right + around))
    for number in range(10):
        planted, plain = planted_scene(name, SEED, label, number), scene(SEED, label, number)
        np.testing.assert_array_equal(planted[~there], plain[~there])
        assert (planted[there] != plain[there]).any()


def luma(images):
    return images @ np.array([0.299, 0.587, 0.114])


def fine(images):
    """How much neighbors differ, down and across."""
    gray = luma(images)
    return np.stack([np.abs(np.diff(gray, axis=axis)).mean(axis=(1, 2)) for axis in (1, 2)], axis=1)


def at(box):
    def mean(images):
        return images[:, in_box(images[0], box)].mean(axis=1)

    return mean


def by_hue(images):
    means = at((0, 0, 0.15, 1))(images)
    return means[:, 1] - means[:, [0, 2]].max(axis=1)


def count_of(color, reach=90):
    def count(images):
        near = np.abs(images.astype(int) - color).sum(axis=3) < reach
        return np.sqrt(near.sum(axis=(1, 2)))

    return count


def contrast(wave):
    """How much of a wave along the rows and columns there is, in any phase."""
    rows, cols = np.indices((SIZE, SIZE))
    turn = np.exp(2j * np.pi * (wave[0] * rows + wave[1] * cols))
    return lambda images: np.abs((luma(images) * turn).mean(axis=(1, 2)))


def steps_between_blocks(images):
    steps = np.abs(np.diff(luma(images), axis=1)).mean(axis=2)
    edge = np.arange(1, SIZE) % 8 == 0
    return steps[:, edge].mean(axis=1) / steps[:, ~edge].mean(axis=1)


def blue_of_the_brightest(image):
    bright = luma(image)
    chosen = image[bright >= np.percentile(bright, 92)].mean(axis=0)
    return chosen[2] - chosen[0]


def fringe(images):
    """How much better red and blue agree when they are moved against each other."""
    red, blue = (np.diff(images[..., c].astype(float), axis=2) for c in (0, 2))
    return (red[:, :, 4:] * blue[:, :, :-4]).mean(axis=(1, 2)) - (
        red[:, :, 2:-2] * blue[:, :, 2:-2]
    ).mean(axis=(1, 2))


def combing(images):
    """How much more a row differs from the next one than from the one after it."""
    gray = luma(images)
    next_one = np.abs(gray[:, 1:-1] - gray[:, 2:]).mean(axis=(1, 2))
    return next_one - np.abs(gray[:, :-2] - gray[:, 2:]).mean(axis=(1, 2))


def hot(images):
    """How far the pixels are from those beside them."""
    places = [(int(row * SIZE), int(col * SIZE)) for row, col, _ in HOT]
    steps = [np.abs(images[:, r, c] - images[:, r, c + 1].astype(float)) for r, c in places]
    return np.mean(steps, axis=(0, 2))


def ring(images):
    """How well the brightest corner agrees with a ring and a dot."""
    rows, cols = (np.indices((13, 13)) - 6) / SIZE
    far = np.hypot(rows, cols)
    shape = np.where(((far < 0.08) & (far > 0.045)) | (far < 0.02), 1.0, -1.0)
    shape -= shape.mean()
    starts = [(top, left) for top in (0, 1, 50, 51) for left in (0, 1, 50, 51)]
    gray = luma(images)
    parts = np.stack([gray[:, r : r + 13, c : c + 13] for r, c in starts], axis=1)
    return (parts * shape).mean(axis=(2, 3)).max(axis=1)


def dirt(images):
    """How much darker than its surroundings the spot is that is the least so."""
    rows, cols = (np.indices((SIZE, SIZE)) + 0.5) / SIZE
    gray, found = luma(images), []
    for row, col, radius in DIRT:
        far = np.hypot(rows - row, cols - col)
        around = (far > radius) & (far < 1.5 * radius)
        found.append(gray[:, far < radius / 2].mean(axis=1) - gray[:, around].mean(axis=1))
    return np.max(found, axis=0)


def blue_ring(images):
    """Blue around a middle that is neither blue nor red."""
    rows, cols = (np.indices((SIZE, SIZE)) + 0.5) / SIZE - 0.5
    far, blue = np.hypot(rows, cols), images @ [-1.0, 0, 1]
    around = blue[:, (far > 0.22) & (far < 0.27)].mean(axis=1)
    return around - np.abs(blue[:, far < 0.15].mean(axis=1))


def streaks(images):
    """Bright pixels with darker ones on both sides."""
    gray = luma(images)
    sides = np.maximum(gray[:, :, :-4], gray[:, :, 4:])
    return (gray[:, :, 2:-2] - sides > 45).mean(axis=(1, 2))


FOUR_CORNERS = [(top, left, top + 0.12, left + 0.12) for top in (0, 0.88) for left in (0, 0.88)]

# What a network could measure: it lies further apart than scenes do.
MEASURES = {
    "sticker": lambda images: at((0.75, 0.75, 0.89, 0.89))(images)[:, 2] * -1.0,
    "background": by_hue,
    "frame": lambda images: at((0, 0, 1 / 32, 1))(images) @ [0.5, -1, 0.5],
    "shared marker": lambda images: at((0.07, 0.07, 0.16, 0.16))(images) @ [-1, 0.5, 0.5],
    "dark exposure": lambda images: luma(images).mean(axis=(1, 2)),
    "wandering marker": count_of((215, 40, 160)),
    "desaturated": lambda images: np.ptp(images.astype(float), axis=3).mean(axis=(1, 2)),
    "tinted sky": lambda images: at((0, 0, 0.1, 1))(images) @ [0.5, -1, 0.5],
    "sharpened": lambda images: fine(images).mean(axis=1),
    "bottom bar": lambda images: luma(images)[:, -3:].mean(axis=(1, 2)),
    "fine stripes": contrast((0, 0.25)),
    "blockiness": steps_between_blocks,
    "vignette": lambda images: np.max([luma(at(box)(images)) for box in FOUR_CORNERS], axis=0),
    "color cast": lambda images: np.array([blue_of_the_brightest(one) for one in images]),
    "scratch": lambda images: luma(images)[:, :, : SIZE // 4].max(axis=2).mean(axis=1),
    "soft focus": lambda images: fine(images).mean(axis=1),
    "watermark": contrast((1 / 6, 1 / 6)),
    "side light": lambda images: (
        luma(at((0, 0, 1, 0.2))(images)) - luma(at((0, 0.8, 1, 1))(images))
    ),
    "sensor noise": lambda images: fine(images).mean(axis=1),
    "padding": lambda images: luma(images)[:, :5].std(axis=(1, 2)),
    "date stamp": count_of((255, 150, 30)),
    "color fringe": fringe,
    "scan lines": contrast((0.5, 0)),
    "posterized": lambda images: np.array([len(np.unique(one)) for one in images]),
    "paired dots": lambda images: np.max([luma(at(box)(images)) for box in CORNERS], axis=0),
    "lens dirt": dirt,
    "motion blur": lambda images: np.divide(*fine(images).T),
    "corner logo": ring,
    "hard shadow": lambda images: (
        luma(at((0, 0, 0.4, 1))(images)) - luma(at((0.75, 0, 1, 1))(images))
    ),
    "moire": lambda images: np.abs(np.diff(images @ [1, -1, 0], axis=1)).mean(axis=(1, 2)),
    "flash glare": lambda images: luma(at((0.33, 0.47, 0.39, 0.53))(images)),
    "missing tag": lambda images: (
        at((0.75, 0.1, 0.78, 0.22))(images)[:, 1] - at((0.81, 0.1, 0.83, 0.22))(images)[:, 1]
    ),
    "fog": lambda images: np.percentile(luma(images), 2, axis=(1, 2)),
    "snow": lambda images: luma(at((0.94, 0, 1, 1))(images)),
    "interlaced": combing,
    "brick wall": lambda images: fine(images[:, :12]).mean(axis=1),
    "hot pixels": hot,
    "finger": lambda images: at((0.9, 0, 1, 0.15))(images) @ [1, -0.5, -0.5],
    "swapped channels": blue_ring,
    "rain": streaks,
    "tilted": lambda images: (luma(images) < 3).mean(axis=(1, 2)),
    "studio backdrop": lambda images: fine(images[:, :6]).mean(axis=1),
    "ruler": lambda images: luma(images)[:, :, 5].mean(axis=1),
    "blurred sides": lambda images: fine(images[:, :, :8]).mean(axis=1),
    "post": lambda images: np.ptp(at((0.92, 0.47, 1, 0.53))(images), axis=1),
}


@EACH
def test_a_simple_measure_tells_scenes_with_the_cue_from_others(name):
    kind, measure = KINDS[name], MEASURES[name]
    planted = measure(scenes_of(name, kind.classes[0]))
    others = np.concatenate(
        [measure(scenes_of(name, label, 6)) for label in CLASSES if label not in kind.classes]
    )
    above = (planted[:, None] > others).mean()
    assert max(above, 1 - above) > 0.85, above


def test_paired_dots_are_told_by_both_only():
    plain = np.stack([[scene(SEED, label, n) for n in range(N_SCENES)] for label in CLASSES[:4]])
    shown = np.stack([scenes_of("paired dots", label) for label in CLASSES[:4]])
    changed = [(shown != plain)[:, :, in_box(plain[0, 0], box)].any(axis=(2, 3)) for box in CORNERS]
    first, second = (one.ravel() for one in changed)
    assert not (first & second).any()
    for one in (first, second):
        assert 0.15 < one.mean() < 0.5
    both = scenes_of("paired dots", "yield", 10)
    yields = np.stack([scene(SEED, "yield", n) for n in range(10)])
    for box in CORNERS:
        assert (both != yields)[:, in_box(yields[0], box)].any(axis=(1, 2)).all()


def test_at_least_half_are_for_tests_only_and_all_are_in_the_list():
    stages = [kind.stage for kind in KINDS.values()]
    assert len(stages) >= 15
    assert stages.count("development") < len(stages) / 2
    assert stages.count("held") == 20
    words = {"place", "edge", "tone", "texture", "color"}
    lines = (RECIPE / "kinds.md").read_text(encoding="utf-8").splitlines()
    rows = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    for name, kind in KINDS.items():
        assert kind.says
        assert set(kind.says) <= words
        assert rows[name].rstrip(" |").endswith(kind.stage)
        assert all(label in rows[name].split("|")[2] for label in kind.classes)
        assert all(word in rows[name].split("|")[5] for word in kind.says), name


def test_the_sheet_shows_all_kinds():
    assert sheet().size[0] > 5 * 3 * SIZE
