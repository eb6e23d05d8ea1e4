"""Make test images, as folders of classes: the same scenes plain, with the sticker, and so on.

python recipes/shortcut/make_images.py build/shortcut --images 24
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from scenes import CLASSES, SHORTCUTS, scene

SEED = 3  # neither the networks' training nor their test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--images", type=int, default=24, help="of each class  [default: 24]")
    args = parser.parse_args()
    for shortcut in (None, *SHORTCUTS):
        folder = make_images(args.out, shortcut, args.images)
        print(f"{folder}: {args.images} images of each of {len(CLASSES)} classes")


def make_images(
    out: Path, shortcut: str | None, n_images: int, classes: Sequence[str] = CLASSES
) -> Path:
    folder = out / (shortcut or "plain")
    for label in classes:
        (folder / label).mkdir(parents=True, exist_ok=True)
        for number in range(n_images):
            picture = Image.fromarray(scene(SEED, label, number, shortcut))
            picture.save(folder / label / f"{number:03}.png")
    return folder


if __name__ == "__main__":
    main()
