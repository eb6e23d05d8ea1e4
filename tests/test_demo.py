"""The embedded model on the drawn signs behaves as the paper says."""

import numpy as np
import pytest

import mcrise
from mcrise.demo import MODEL
from mcrise.demo.signs import SIGNS

N_MASKS = 1024


@pytest.fixture(scope="module")
def model():
    return mcrise.load_model("demo")


@pytest.mark.parametrize(
    "name", ["stop", "no-entry", "priority-road", "speed-limit-50", "turn-right-ahead"]
)
def test_the_model_knows_the_drawn_signs(model, name):
    scores = model(model.view(SIGNS[name]()).pixels[None])[0]
    assert model.labels[scores.argmax()] == name.replace("-", " ")
    assert scores.max() > 0.7


def test_the_washed_out_priority_road_is_mistaken(model):
    scores = model(model.view(SIGNS["washed-out-priority-road"]()).pixels[None])[0]
    assert model.labels[scores.argmax()] != "priority road"
    assert scores[model.labels.index("priority road")] < 0.2


def test_the_red_face_of_the_stop_sign_must_not_be_green_or_blue_but_may_be_red(model):
    explanation = mcrise.explain(SIGNS["stop"](), model, n_masks=N_MASKS, mask_prob=0.5)
    maps = explanation.maps("stop")
    pixels = maps.image.astype(int)
    face = (pixels[..., 0] > 120) & (pixels[..., 1] < 90) & (pixels[..., 2] < 90)
    assert 0.2 < face.mean() < 0.6
    scale = np.abs(maps.values).max()
    for fill in ("green", "blue"):
        values = maps.values[maps.names.index(fill)]
        row, col = np.unravel_index(values.argmin(), values.shape)
        reach = slice(max(row - 6, 0), row + 7), slice(max(col - 6, 0), col + 7)
        assert face[reach].mean() > 0.5, fill  # the strongest negative spot lies on the red
        assert values[face].mean() < -0.2 * scale
    red = maps.values[maps.names.index("red")]
    assert red[face].mean() > -0.1 * scale


def test_the_missing_color_of_the_washed_out_sign_is_found(model):
    """As in the paper's error analysis: the center lacks a color, and the maps say which."""
    sign = SIGNS["washed-out-priority-road"]()
    explanation = mcrise.explain(sign, model, fills="rgbwk,yellow", n_masks=N_MASKS, mask_prob=0.15)
    middle = slice(36, 60), slice(36, 60)

    def center(label):
        maps = explanation.maps(label)
        return {
            name: (values[middle].mean(), se[middle].mean())
            for name, values, se in zip(maps.names, maps.values, maps.se, strict=True)
        }

    right, wrong = center("priority road"), center("no vehicles")
    for fill in ("red", "yellow"):  # would make it a priority road
        assert right[fill][0] > 4 * right[fill][1]
        assert right[fill][0] > 0.15
    assert abs(right["white"][0]) < 3 * right["white"][1]  # it is white already
    for fill in ("red", "yellow", "black", "green"):  # would stop it from being "no vehicles"
        assert wrong[fill][0] < -4 * wrong[fill][1]
    assert abs(wrong["white"][0]) < 3 * wrong["white"][1]


def test_the_embedded_model_is_small():
    assert MODEL.stat().st_size < 3_000_000
