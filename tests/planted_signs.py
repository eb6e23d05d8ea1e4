"""A model with planted answers for audits, and images for it; named so that workers can load it."""

import os
import time

import numpy as np
from PIL import Image

from mcrise import Model

LABELS = ("red", "sticker", "plain")
SIZE = 24  # pixels


def signs(images):
    """Red in the middle is one class, yellow at the lower right another."""
    shown = images.astype(np.float64) / 255
    third = shown.shape[1] // 3
    middle = shown[:, third : 2 * third, third : 2 * third].mean(axis=(1, 2))
    corner = shown[:, 2 * third :, 2 * third :].mean(axis=(1, 2))
    red = middle[:, 0] - middle[:, 1:].mean(axis=1)
    yellow = corner[:, :2].mean(axis=1) - corner[:, 2]
    logits = 6 * np.stack([red, yellow, np.full(len(red), 0.3)], axis=1)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def counted_signs(images):
    """Says in a file how many images it was asked about, over all processes; takes its time."""
    with open(os.environ["MCRISE_TEST_CALLS"], "a") as calls:
        calls.write("x" * len(images))
    time.sleep(0.002)
    return signs(images)


model = Model(signs, labels=LABELS)
counted = Model(counted_signs, labels=LABELS)


def make_collection(folder, per_class=2, seed=0):
    """Folders of the classes, each image before a background of its own."""
    rng = np.random.default_rng(seed)
    third = SIZE // 3
    for label in LABELS:
        (folder / label).mkdir(parents=True, exist_ok=True)
        for n in range(per_class):
            pixels = np.full((SIZE, SIZE, 3), rng.integers(60, 180), np.uint8)
            pixels += rng.integers(0, 30, pixels.shape, np.uint8)
            if label == "red":
                pixels[third : 2 * third, third : 2 * third] = (220, 20, 30)
            if label == "sticker":
                pixels[2 * third :, 2 * third :] = (230, 210, 20)
            Image.fromarray(pixels).save(folder / label / f"{n:03d}.png")
    return folder
