"""
A shortcut, found by an audit
=============================

This model should tell squares from disks. It reads a yellow sticker in the corner instead. A single
map could not say whether that is the rule. An audit of 24 images can.
"""

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import mcrise
from mcrise.output.plots import plot_sheet

random = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())


def draw(kind, number):
    picture = Image.new("RGB", (64, 64), tuple(random.integers(60, 120, 3)))
    pen = ImageDraw.Draw(picture)
    box = (16, 12, 44, 40)
    pen.rectangle(box, fill="#3060c0") if kind == "square" else pen.ellipse(box, fill="#3060c0")
    if kind == "square":
        pen.rectangle((50, 50, 59, 59), fill="#f0d010")
    (folder / "images" / kind).mkdir(parents=True, exist_ok=True)
    picture.save(folder / "images" / kind / f"{number:02d}.png")
    return picture


shown = [(kind, np.asarray(draw(kind, n))) for n in range(12) for kind in ("square", "disk")]


def predict(images):
    corner = images[:, 50:60, 50:60].astype(float).mean(axis=(1, 2)) / 255
    yellow = (corner[:, 0] + corner[:, 1]) / 2 - corner[:, 2]
    square = 1 / (1 + np.exp(-12 * (yellow - 0.4)))
    return np.stack([square, 1 - square], axis=1)


figure = plot_sheet("Images of the two classes", [("images", shown[:4])])

# %%
# The audit names the place, and has painted it in images that were not used to find it.

model = mcrise.load_model(predict, labels=["square", "disk"])
found = mcrise.audit(folder / "images", model, n_masks=128, out=folder / "audit", workers=1)
print("\n".join(line for line in found.summary if line[:2] in ("1.", "2.", "3.", "4.", "5.")))
