"""The paper's figures on pictures of ours.

    python benchmarks/figures.py [--data FOLDER] [--masks N]

Into docs/images: drawn signs with the embedded network, and photographs with a free licence that
scikit-image ships with EfficientNet-lite0. With the data, the same on real traffic signs and
ImageNet photographs, into figures/, which is not for publication.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from skimage import data as photographs

import mcrise
from calls import DATA
from mcrise import Explanation, Maps, Model
from mcrise.batch.datasets import open_dataset, sample, truth_of
from mcrise.demo.signs import SIGNS
from mcrise.images import open_picture
from mcrise.output.plots import (
    DIVERGING,
    Scale,
    colorbar,
    drawn,
    head,
    overlay,
    panels,
    plot_maps,
    plot_rise,
    save,
    scale_for,
    scale_of,
    short,
    show_image,
)
from mcrise.studies.baselines import lime_importance
from networks import efficientnet, embedded

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA, help="holds gtsrb/ and imagenet/")
    parser.add_argument("--masks", type=int, default=4000)
    args = parser.parse_args()
    signs, photos = embedded(), efficientnet(class_names(args.data / "imagenet" / "classes.txt"))
    free = ROOT / "docs" / "images"
    cat, cup = photographs.chelsea(), photographs.coffee()  # both CC0
    pictograms = [SIGNS[name]() for name in ("stop", "priority-road", "turn-right-ahead")]
    debiased(free / "paper-debiased.png", cup, photos, args.masks)
    methods(free / "paper-methods-signs.png", pictograms, signs, args.masks)
    methods(free / "paper-methods-photographs.png", [cat, cup], photos, args.masks)
    eight_colors(free / "paper-eight-colors.png", SIGNS["priority-road"](), signs, args.masks)
    if not args.data.is_dir():
        print(f"{args.data} is not there: no figures of real data.")
        return
    own = ROOT / "figures"
    real = open_dataset(args.data / "gtsrb")
    some = [example.path for example in sample(real, 4, seed=1)]
    pictures = sorted((args.data / "imagenet" / "images").glob("*.JPEG"))
    for n, path in enumerate(pictures[10:50:20]):
        debiased(own / f"debiased-{n}.png", path, photos, args.masks)
    methods(own / "methods-gtsrb.png", some, signs, args.masks)
    methods(own / "methods-imagenet.png", pictures[20:60:20], photos, args.masks)
    eight_colors(own / "eight-colors.png", some[0], signs, args.masks)
    misclassified(own / "misclassified.png", real, signs, args.masks)


def class_names(path: Path) -> list[str] | None:
    """Of ImageNet, from lines such as `n02123045 tabby`; without the file classes are numbers."""
    if not path.exists():
        return None
    return [line.split()[1].replace("_", " ") for line in path.read_text().splitlines()]


def debiased(path: Path, picture: Any, model: Model, n_masks: int) -> None:
    """RISE against debiased RISE: the background is near zero only in the second."""
    explanation = mcrise.explain(picture, model, fills="black", n_masks=n_masks)
    save(
        plot_rise(explanation.maps(estimator="rise"), explanation.maps(estimator="debiased")), path
    )


def methods(path: Path, pictures: Sequence[Any], model: Model, n_masks: int) -> None:
    """LIME, RISE and MC-RISE on the same images."""
    rows = []
    for picture in pictures:
        black = mcrise.explain(picture, model, fills="black", n_masks=n_masks)
        colors = mcrise.explain(picture, model, n_masks=n_masks)
        target = colors.resolve(None)
        weights = lime_importance(colors.view.pixels, model, target, seed=0)
        rows.append((weights, black.maps(target, "rise"), colors.maps(target)))
    save(plot_methods(rows), path)


def plot_methods(rows: Sequence[tuple[NDArray[Any], Maps, Maps]]) -> Figure:
    """LIME's weights, RISE and MC-RISE side by side; each image and method has its own scale.

    A row is an image: the weights (H, W) of its superpixels, its RISE map and its MC-RISE maps.
    """
    n_fills = len(rows[0][2].values)
    figure, axes = panels(len(rows), 3 + n_fills, rows[0][2].image, gap=0.3)
    for line, (weights, rise, maps) in zip(axes, rows, strict=True):
        show_image(line[0], maps.image, short(maps.label, 20))
        most = scale_of([weights])
        own = Scale(-most, most, DIVERGING)
        line[1].imshow(
            overlay(maps.image, weights[None], np.ones((1, *weights.shape), bool), 0, own)
        )
        colorbar(figure, line[1:2], own, "LIME's weight")
        for first, some in ((2, rise), (3, maps)):
            scale = scale_for([some])
            for k in range(len(some.values)):
                line[first + k].imshow(drawn(some, k, scale))
            colorbar(figure, line[first : first + len(some.values)], scale, some.unit)
    axes[0, 1].set_title("LIME", fontsize=9)
    axes[0, 2].set_title("RISE", fontsize=9)
    for panel in range(n_fills):
        head(axes[0, 3 + panel], rows[0][2], panel)
    return figure


def eight_colors(path: Path, picture: Any, model: Model, n_masks: int) -> None:
    """K = 8: the corners of the color cube."""
    explanation = mcrise.explain(picture, model, fills="cube8", n_masks=n_masks)
    save(explanation.maps().plot(), path)


def misclassified(path: Path, examples: Sequence[Any], model: Model, n_masks: int) -> None:
    """A real sign that the network gets wrong: the true class above, the predicted one below."""
    for example in examples:
        truth = truth_of(example, model.labels)
        pixels = model.view(np.asarray(open_picture(example.path)[0])).pixels
        scores = model(pixels[None])[0]
        if int(scores.argmax()) != truth and scores[truth] > 0.02:
            explanation: Explanation = mcrise.explain(example.path, model, n_masks=n_masks)
            rows: list[Maps] = [explanation.maps(truth), explanation.maps()]
            save(plot_maps(rows), path)
            return


if __name__ == "__main__":
    main()
