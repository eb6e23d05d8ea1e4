"""Models whose reading is known, and the real data beside the project."""

import os
from pathlib import Path

import numpy as np
import pytest

SIZE = (64, 64)
CENTER = slice(24, 40), slice(24, 40)
CORNER = slice(2, 18), slice(2, 18)
STRIPES = np.where(np.arange(16) % 4 < 2, 1.0, -1.0) * np.ones((16, 1))  # solid paint gives zero


def two_classes(score):
    score = np.clip(score, 0, 1)
    return np.stack([score, 1 - score], axis=1)


def striped_image(place):
    """Gray, with a bright and dark pattern at one place."""
    image = np.full((*SIZE, 3), 128, np.uint8)
    image[place] = (128 + 100 * STRIPES[..., None]).astype(np.uint8)
    return image


def wants_red(images):
    """The more the center is red and neither green nor blue, the better."""
    red, green, blue = np.moveaxis(images[:, *CENTER].astype(float) / 255, 3, 0)
    return two_classes(0.1 + 0.8 * np.maximum(red - np.maximum(green, blue), 0).mean(axis=(1, 2)))


def wants_brightness(images):
    luma = images[:, *CENTER].astype(float) @ [0.299, 0.587, 0.114] / 255
    return two_classes(luma.mean(axis=(1, 2)))


def pattern(images, place):
    """How much of the stripes is to be seen at a place, whatever the color: 0 to 1."""
    gray = images[:, *place].astype(float).mean(axis=3)
    return np.maximum((gray * STRIPES).mean(axis=(1, 2)) / 100, 0)


def dislikes_the_corner(images):
    return two_classes(0.9 - 0.8 * pattern(images, CORNER))


def ignores_color(images):
    return two_classes(0.1 + 0.8 * pattern(images, CENTER))


def noise_model(seed):
    """Scores that have nothing to do with the image."""
    generator = np.random.default_rng(seed)
    return lambda images: two_classes(generator.random(len(images)))


def shared_data(*parts):
    """A path in the data beside the project, or a skip that says what is missing."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("MCRISE_DATA", beside)).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not there: put the data beside the project or set MCRISE_DATA")
    return path
