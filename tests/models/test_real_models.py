"""Real networks of LiteRT and OpenVINO, where the shared data lie beside the project."""

from pathlib import Path

import pytest

import mcrise
from mcrise import InputError, load_model

DATA = Path(__file__).parents[3] / "shared" / "data" / "models"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data are not here")
VEHICLES = "openvino/vehicle-attributes-recognition-barrier-0039.xml"
COLORS = ["white", "gray", "yellow", "red", "green", "blue", "black"]
FLOWERS = ["daisy", "dandelion", "roses", "sunflowers", "tulips"]


def best(model, image):
    """The label with the highest score, and the score."""
    scores = model(model.view(DATA / "images" / image).pixels[None])[0]
    return model.labels[scores.argmax()], float(scores.max())


def test_quantised_networks_name_birds_and_flowers():
    birds = load_model(DATA / "litert/birds_quant.tflite", labels=DATA / "litert/birds_labels.txt")
    for image, name in (("parrot.jpg", "Scarlet Macaw"), ("owl.jpg", "Burrowing Owl")):
        label, score = best(birds, image)
        assert name in label
        assert score > 0.6
    flowers = load_model(DATA / "litert/flowers_color_int8.tflite", labels=FLOWERS)
    label, score = best(flowers, "sunflower.png")
    assert (label, round(score, 1)) == ("sunflowers", 1.0)


@pytest.mark.parametrize(
    ("image", "color"),
    [
        ("n02930766_cab.JPEG", "yellow"),
        ("n03345487_fire_engine.JPEG", "red"),
        ("n04285008_sports_car.JPEG", "red"),
    ],
)
def test_the_color_head_of_the_vehicle_network_names_the_color(image, color):
    head = load_model(DATA / VEHICLES, output="color", labels=COLORS, scale=1, channels="bgr")
    label, score = best(head, image)
    assert label == color
    assert score > 0.9


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (VEHICLES, r"type \(1 x 4 x 1 x 1\), color \(1 x 7 x 1 x 1\). Say which"),
        ("openvino/vehicle-detection-0200.xml", "boxes, as of a detector: wrap the model"),
        ("litert/flowers_gray_int8.tflite", "one channel, so it sees no colors to explain"),
        ("litert/pascal_segmentation_quant.tflite", "pictures, as of a segmenter"),
    ],
)
def test_networks_that_cannot_be_taken_are_refused_with_what_would_work(file, sentence):
    with pytest.raises(InputError, match=sentence):
        load_model(DATA / file)


@pytest.mark.parametrize(
    "image", ["n02930766_cab.JPEG", "n03345487_fire_engine.JPEG", "n04285008_sports_car.JPEG"]
)
def test_another_color_of_the_body_is_another_answer_of_the_color_head(image):
    head = load_model(DATA / VEHICLES, output="color", labels=COLORS, scale=1, channels="bgr")
    explanation = mcrise.explain(DATA / "images" / image, head, n_masks=64, trials=False)
    pixels = explanation.view.pixels.astype(int)
    body = pixels[..., 0] - pixels[..., 2] > 60  # yellow or red
    turned = mcrise.intervene(explanation, head, body, mcrise.Hue(240))
    assert turned.flips
    assert turned.before.max() - turned.after[turned.target] > 0.9
