"""Curves and areas worked out by hand, and the conventions that make two runs comparable."""

import numpy as np
import pytest

import mcrise
from mcrise import InputError, Model
from mcrise.fills import Solid
from mcrise.maps import Maps
from mcrise.metrics import BLACK, METRICS, Ranking, curves_of, measure, rank, rank_importance
from mcrise.studies.baselines import lime_importance, random_ranking

RED, BLUE = Solid((255, 0, 0), "red"), Solid((0, 0, 255), "blue")


def model_of(score):
    """Probabilities (score, 1 - score) of each image in 0..1."""

    def predict(images):
        scores = np.array([score(image / 255) for image in images])
        return np.stack([scores, 1 - scores], axis=1)

    return Model(predict)


def maps_of(values, fills):
    values = np.array(values, np.float32)
    return Maps(values, np.zeros_like(values), fills, 0, "it", "centered", 64, "change",
                np.zeros((*values.shape[1:], 3), np.uint8))  # fmt: skip


def test_ca_deletion_of_two_pixels_and_two_colors_worked_by_hand():
    """The score is half the green of the left pixel plus half the green of the right one.

    The left pixel is harmed most by blue (-0.4), the right by red (-0.3): so first the left turns
    blue, then the right turns red. Scores 1, 1/2, 0; trapezoids of width 1/2: 3/8 + 1/8 = 1/2.
    """
    green = np.array([[[0, 255, 0], [0, 255, 0]]], np.uint8)
    seen = []

    def score(image):
        seen.append((image * 255).astype(int).tolist())
        return image[0, :, 1].mean()

    ranking = rank(maps_of([[[-0.1, -0.3]], [[-0.4, 0.2]]], (RED, BLUE)))
    curve = curves_of(
        green, model_of(score), 0, ranking, metrics=[METRICS["ca_deletion"]], step=0.5
    )
    assert seen == [
        [[[0, 255, 0], [0, 255, 0]]],
        [[[0, 0, 255], [0, 255, 0]]],
        [[[0, 0, 255], [255, 0, 0]]],
    ]
    np.testing.assert_allclose(curve["ca_deletion"].scores, [1, 0.5, 0])
    assert curve["ca_deletion"].area == pytest.approx(0.5)


def test_a_pixel_that_matters_more_weighs_more_when_it_goes_first():
    """Left counts 3/4: scores 1, 1/4, 0 in the right order (area 3/8), 1, 3/4, 0 in the other."""
    white = np.full((1, 2, 3), 255, np.uint8)
    model = model_of(lambda image: 0.75 * image[0, 0, 0] + 0.25 * image[0, 1, 0])
    perfect, reverse = rank_importance(np.array([[2, 1]])), rank_importance(np.array([[1, 2]]))
    curves = curves_of(white, model, 0, perfect, step=0.5)
    assert curves["deletion"].area == pytest.approx(3 / 8)
    assert curves["insertion"].area == pytest.approx(5 / 8)  # 0, 3/4, 1
    backwards = curves_of(white, model, 0, reverse, step=0.5)
    assert backwards["deletion"].area == pytest.approx(5 / 8)
    assert backwards["insertion"].area == pytest.approx(3 / 8)


def test_deletion_equals_ca_deletion_when_the_only_fill_is_black():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (12, 9, 3), np.uint8)
    weights = rng.random((12, 9))
    n_calls = []

    def score(image):
        n_calls.append(1)
        return (image[..., 0] * weights).sum() / weights.sum()

    curves = curves_of(image, model_of(score), 0, rank(maps_of([-weights], (BLACK,))))
    for plain in ("deletion", "insertion"):
        np.testing.assert_array_equal(curves[plain].scores, curves[f"ca_{plain}"].scores)
    assert len(n_calls) == 2 * 101  # and the same pictures are not asked about twice
    assert [curves[metric].fill for metric in METRICS] == ["black"] * 4


def test_a_curve_ends_at_the_painted_picture_whatever_the_step():
    image = np.full((5, 7, 3), 200, np.uint8)
    model = model_of(lambda image: image.mean())
    for step in (0.01, 0.03, 0.3, 1.0):
        curve = curves_of(image, model, 0, rank_importance(np.zeros((5, 7))), step=step)["deletion"]
        assert curve.scores[0] == pytest.approx(200 / 255)
        assert curve.scores[-1] == 0
        assert curve.shares[-1] == 1
        # The score falls linearly with the pixels, up to rounding to whole ones.
        assert curve.area == pytest.approx(100 / 255, abs=0.02)


def test_ties_are_broken_in_row_major_order():
    values = np.arange(300.0).reshape(15, 20) % 3
    largest_first = sorted(range(300), key=lambda place: -values.flat[place])  # Python's is stable
    assert rank_importance(values).order.tolist() == largest_first
    ranking = rank(maps_of(np.stack([-values, -values]), (RED, BLUE)))
    assert ranking.order.tolist() == largest_first
    assert (ranking.chosen == 0).all()  # and the first of equal fills is taken


def test_floats_stay_floats():
    image = np.full((4, 4, 3), 0.3, np.float32)
    ranking = Ranking(np.arange(16), (Solid((10, 20, 30)),), np.zeros((4, 4), np.int64))
    np.testing.assert_allclose(ranking.painted(image)[0, 0], np.array([10, 20, 30]) / 255)


def test_the_direction_is_said_with_the_number():
    image = np.full((4, 4, 3), 255, np.uint8)
    curves = curves_of(image, model_of(lambda image: image.mean()), 0, random_ranking((4, 4), 0))
    assert "lower is better" in curves["ca_deletion"].line()
    assert "higher is better" in curves["insertion"].line()
    assert "1% of the pixels per step" in curves["deletion"].line()


def test_a_random_order_is_a_permutation_and_depends_on_the_seed():
    one, two = random_ranking((6, 5), 0), random_ranking((6, 5), 1)
    assert sorted(one.order) == sorted(two.order) == list(range(30))
    assert one.order.tolist() == random_ranking((6, 5), 0).order.tolist() != two.order.tolist()


def test_lime_finds_the_superpixel_that_matters():
    """Two flat halves make at least two superpixels; only the bright left half counts."""
    image = np.zeros((24, 24, 3), np.uint8)
    image[:, :12], image[:, 12:] = (250, 200, 40), (30, 60, 220)
    model = model_of(lambda image: image[:, :12, 0].mean())
    importance = lime_importance(image, model, 0, seed=3, n_samples=100)
    assert importance[:, :10].mean() > 0.05 > np.abs(importance[:, 14:]).mean()
    np.testing.assert_array_equal(importance, lime_importance(image, model, 0, 3, 100))


def test_lime_shows_a_model_the_kind_of_numbers_its_image_has():
    seen = []
    model = Model(lambda images: seen.append(images) or images.mean(axis=(1, 2)), kind="any")
    image = np.random.default_rng(0).random((16, 16, 3), np.float32)
    lime_importance(image, model, 0, seed=0, n_samples=8)
    assert all(images.dtype == np.float32 and images.max() <= 1 for images in seen)


def half_red(images):
    """Any callable: how red the left half is, and the rest."""
    red = images[:, :, : images.shape[2] // 2, 0].mean(axis=(1, 2), dtype=np.float64) / 255
    return np.stack([red, 1 - red], axis=1)


def record_of(model):
    image = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
    return mcrise.explain(image, model, n_masks=128, grid=(3, 4), trials=False)


def test_a_record_is_measured_with_any_callable():
    explanation = record_of(half_red)
    found = measure(explanation, half_red, 1, estimator="paper", metrics=["ca_insertion"], step=0.1)
    ranking = rank(explanation.maps(1, "paper"))
    expected = curves_of(explanation.view.pixels, Model(half_red), 1, ranking, step=0.1)
    assert list(found) == ["ca_insertion"]
    np.testing.assert_array_equal(found["ca_insertion"].scores, expected["ca_insertion"].scores)
    assert list(measure(explanation, half_red, step=0.5)) == list(METRICS)


def test_the_fill_of_a_measurement_is_that_of_all_metrics_where_maps_name_none():
    explanation = record_of(half_red)
    found = measure(explanation, half_red, estimator="rise", fill="#ff8800", step=0.5)
    assert {curve.fill for curve in found.values()} == {"#ff8800"}
    assert found["deletion"].scores[-1] in (np.float32(1), np.float32(0))  # red, or the rest


def test_a_record_is_not_measured_with_another_model():
    explanation = record_of(half_red)
    with pytest.raises(mcrise.ExplanationError, match="another"):
        measure(explanation, lambda images: 1 - half_red(images))


def test_impossible_measurements_are_refused():
    image, model = np.zeros((4, 4, 3), np.uint8), model_of(lambda image: 0.5)
    with pytest.raises(InputError, match="The step is 0"):
        curves_of(image, model, 0, random_ranking((4, 4), 0), step=0)
    explanation = record_of(half_red)
    with pytest.raises(InputError, match="The metric is 'delete', but it must be one of deletion,"):
        measure(explanation, half_red, metrics=["delete"])
    with pytest.raises(InputError, match="The fill rgbwk names 5 fills, but one is needed"):
        measure(explanation, half_red, fill="rgbwk")
    with pytest.raises(InputError, match="The batch size is 0"):
        measure(explanation, half_red, batch_size=0)
    with pytest.raises(InputError, match="5 x 4 pixels, but the image has 4 x 4"):
        curves_of(image, model, 0, random_ranking((5, 4), 0))
