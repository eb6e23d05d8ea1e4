"""A user's script with all of the Python API: `test_api.py` runs it and has mypy check it."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from PIL import Image

import mcrise
from mcrise import Blur, Explanation, Geometry, Maps, Model, Solid

Floats = NDArray[np.float64]


def predict(images: NDArray[np.uint8]) -> Floats:
    """Whether the middle is red: scores (N, 2)."""
    red = images[:, 8:24, 8:24, 0].mean(axis=(1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)


def embed(images: NDArray[np.uint8]) -> Floats:
    """The mean color as an embedding (N, 3)."""
    return np.asarray(images.mean(axis=(1, 2)))


def explain_in_every_way(photo: NDArray[np.uint8], folder: Path) -> Explanation:
    picture = Image.fromarray(photo)
    picture.save(folder / "photo.png")
    explanations: list[Explanation] = [
        mcrise.explain(photo, predict, n_masks=64, trials=False),
        mcrise.explain(picture, predict, n_masks=64, trials=False, fills="red,#00ff7f,blur:8"),
        mcrise.explain(
            folder / "photo.png", predict, n_masks=64, trials=False, fills=["red", "#0f0"]
        ),
        mcrise.explain(
            "photo.png", predict, n_masks=64, trials=False, fills=[Solid((9, 99, 199)), Blur(4)]
        ),
        mcrise.explain(
            photo, predict, n_masks=64, trials=False, fills=mcrise.parse_fills("gray,hue:120,noise")
        ),
        mcrise.explain(
            photo, predict, n_masks=64, trials=False, colors=["red", "black"], grid=4, seed=7
        ),
        mcrise.explain(
            photo, predict, n_masks=64, trials=False, colors="cube8", grid=(4, 6), mask_prob=0.3
        ),
        mcrise.explain(photo, predict, n_masks=64, trials=False, batch_size="auto", target=1),
        mcrise.explain(photo, "demo", n_masks=64, trials=False, target="stop"),
        mcrise.explain(
            photo, lambda images: 9 * predict(images), n_masks=64, trials=False, softmax=True
        ),
        mcrise.explain(
            photo,
            embed,
            n_masks=64,
            trials=False,
            score_kind="any",
            size=32,
            mean=0.5,
            std=(1, 1, 2),
        ),
    ]
    several: list[Explanation] = mcrise.explain(
        [photo, picture, "photo.png"], predict, n_masks=64, trials=False
    )
    assert len(several) == 3
    assert all(explanation.n_masks == 64 for explanation in explanations + several)

    explanation = mcrise.explain(
        photo,
        predict,
        labels=["red", "other"],
        n_masks="auto",
        tolerance=0.5,
        max_masks=512,
        save=folder / "run.npz",
        progress=False,
    )
    for grown in mcrise.iter_explain(photo, predict, n_masks=128, labels=["red", "other"]):
        assert grown.goal == 128
    for grown in mcrise.grow(explanation, predict, n_masks=576):
        assert grown is explanation
    return explanation


def look(explanation: Explanation, folder: Path) -> None:
    maps: Maps = explanation.maps("red")
    both: list[Maps] = explanation.maps(["red", 1], estimator="centered")
    difference = explanation.maps("red", against="other")
    assert (both[1].label, difference.label) == ("other", "red − other")
    labels: list[str] = [prediction.label for prediction in explanation.top(2)]
    assert [one.label for one in explanation.maps(labels)] == labels
    values: NDArray[np.float32] = maps["red"]
    assert values.shape == maps.values.shape[1:] == maps.se.shape[1:]
    assert maps.relative_error >= 0

    maps.plot().savefig(folder / "maps.png")
    figure, axes = plt.subplots(1, 2)
    for axis, one in zip(axes, both, strict=True):
        one.plot(ax=axis, vmax=0.1, cmap="PuOr")
    plt.close(figure)

    prediction: mcrise.Prediction = explanation.prediction
    assert prediction.runner_up is not None
    calls: mcrise.CallCounts = explanation.n_calls
    assert calls.total == calls.masks + calls.pilot + calls.checks + calls.trials
    findings: mcrise.Findings = explanation.findings_of("other", predict, trials=16)
    for finding in findings:
        region: NDArray[np.bool_] = finding.region
        print(finding.letter, finding.sentence, finding.fill.name, finding.after, region.sum())
    print(explanation, explanation.findings)
    explanation.plot().savefig(folder / "explanation.png")
    comparison: mcrise.Comparison = mcrise.compare(explanation, "other", "red", model=predict)
    print(comparison)
    curves: dict[str, mcrise.Curve] = mcrise.measure(
        explanation,
        predict,
        "red",
        metrics=["deletion", "ca_deletion"],
        fill=Solid((0, 0, 0)),
        step=0.1,
    )
    assert 0 <= curves["deletion"].area <= 1


def bring_models(photo: NDArray[np.uint8]) -> None:
    sized = Model(predict, Geometry(size=(32, 32), short_side=40), labels=("red", "other"))
    loaded: Model = mcrise.load_model(
        predict,
        size=(32, 32),
        filter="bicubic",
        channels="rgb",
        layout="NHWC",
        score_kind="independent",
    )
    for model in (sized, loaded, mcrise.load_model("demo", threads=1)):
        assert mcrise.explain(photo, model, n_masks=64, trials=False).n_masks == 64


def keep(explanation: Explanation, photo: NDArray[np.uint8], folder: Path) -> None:
    explanation.save(folder / "again.npz")
    again: Explanation = mcrise.load(folder / "again.npz")
    whole = mcrise.merge([explanation, again])
    assert whole.n_masks == explanation.n_masks
    plan: mcrise.Plan = mcrise.RunConfig(fills="red,blue", grid=(4, 4)).plan(photo)
    assert plan.n_fills == 2
    try:
        mcrise.explain(photo, predict, target="no such class")
    except mcrise.InputError as error:
        print(error)


def many_images(folder: Path) -> None:
    images = folder / "images"
    images.mkdir()
    for name, color in {"red": (250, 20, 20), "blue": (20, 20, 250), "pink": (250, 90, 90)}.items():
        Image.new("RGB", (32, 32), color).save(images / f"{name}.png")
    result: mcrise.StudyResult = mcrise.run_study(
        images, predict, out=folder / "study", methods="mcrise", n_masks=64, step=0.25
    )
    assert (result.n_images, result.n_failed) == (3, 0)
    gallery: mcrise.Gallery = mcrise.open_gallery(images, embed)
    match: mcrise.Match = mcrise.match(images / "red.png", gallery, embed, distance="cosine")
    assert match.path.name == "pink.png"
    mcrise.explain(images / "red.png", match.model, n_masks=64, trials=False, mask_prob=0.1)


def main(folder: Path) -> None:
    photo = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    explanation = explain_in_every_way(photo, folder)
    look(explanation, folder)
    bring_models(photo)
    keep(explanation, photo, folder)
    many_images(folder)


if __name__ == "__main__":
    main(Path())
