"""
Which colors make two images similar?
=====================================

A re-identification model gives embeddings. The score is then the similarity of the painted query to
its match. Here the embedding is the mean color of four parts of the image.
"""

import tempfile
from pathlib import Path

import mcrise
from mcrise.demo.signs import SIGNS

folder = Path(tempfile.mkdtemp())
for name, draw in SIGNS.items():
    draw().resize((96, 96)).save(folder / f"{name}.png")


def embed(images):
    cells = images.reshape(len(images), 2, 48, 2, 48, 3).astype("float32").mean(axis=(2, 4)) / 255
    return cells.reshape(len(images), -1)


model = mcrise.Model(embed, kind="any")
gallery = mcrise.open_gallery(folder, model)
match = mcrise.match(folder / "stop.png", gallery, model)
print(f"The stop sign is nearest to {match.path.stem} (distance {match.distance:.2f}).")

explanation = mcrise.explain(
    folder / "stop.png", match.model, n_masks=512, mask_prob=0.1, trials=False
)
figure = explanation.maps().plot()
