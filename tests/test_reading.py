import numpy as np
import pytest

import mcrise
from mcrise.masks import Masks, Plan
from mcrise.reading import chance_limit, place_of, read
from planted import constant_model, draw_many
from planted_reading import (
    CENTER,
    CORNER,
    SIZE,
    dislikes_the_corner,
    ignores_color,
    noise_model,
    striped_image,
    wants_brightness,
    wants_red,
)

GRAY = np.full((*SIZE, 3), 128, np.uint8)


def reading_of(image, model, estimator="centered", **options):
    options = {"n_masks": 1024, **options}
    return read(mcrise.explain(image, model, labels=["yes", "no"], **options), "yes", estimator)


def explain_noise(seed):
    return mcrise.explain(GRAY, noise_model(seed), n_masks=256, seed=seed)


def verdicts(finding):
    return {effect.fill.name: effect.verdict for effect in finding.effects}


def overlap(finding, place):
    return finding.region[place].sum() / finding.region.sum()


@pytest.mark.parametrize("estimator", ["centered", "smooth"])
def test_a_model_that_wants_red_in_the_center_misses_red_there_and_nothing_else(estimator):
    (finding,) = reading_of(GRAY, wants_red, estimator).findings
    assert (finding.kind, finding.place, finding.direction) == ("missing color", "center", 1)
    assert finding.strongest.fill.name == "red"
    assert verdicts(finding) == {
        "red": "raises", "green": "leaves", "blue": "leaves", "white": "leaves", "black": "leaves",
    }  # fmt: skip
    assert overlap(finding, CENTER) > 0.6
    assert finding.sentence.startswith("Center (")
    assert "a patch of red raises 'yes' by 0." in finding.sentence
    assert finding.sentence.endswith("The model misses red here.")


def test_a_model_that_dislikes_a_texture_in_a_corner_has_an_obstacle_there():
    (finding,) = reading_of(striped_image(CORNER), dislikes_the_corner).findings
    assert (finding.kind, finding.place) == ("texture is an obstacle", "upper left rim")
    assert set(verdicts(finding).values()) == {"raises"}
    assert overlap(finding, CORNER) > 0.6


def test_a_model_that_only_needs_brightness_is_said_to():
    (finding,) = reading_of(GRAY, wants_brightness).findings
    assert (finding.kind, finding.place) == ("brightness matters", "center")
    assert verdicts(finding)["white"] == "raises"
    assert verdicts(finding)["black"] == "lowers"
    assert finding.sentence.endswith("Its brightness matters, not its hue.")


def test_a_model_that_ignores_color_relies_on_texture():
    (finding,) = reading_of(striped_image(CENTER), ignores_color).findings
    assert (finding.kind, finding.place) == ("texture matters", "center")
    assert set(verdicts(finding).values()) == {"lowers"}


def test_own_color_matters_and_another_is_as_good_as_the_original():
    image = GRAY.copy()
    image[CENTER] = (230, 10, 10)
    (finding,) = reading_of(image, wants_red).findings
    assert finding.kind == "own color matters"
    assert verdicts(finding).pop("red") == "leaves"
    assert "red is as good as the original" in finding.sentence


def test_with_one_color_texture_and_color_are_not_told_apart():
    (finding,) = reading_of(striped_image(CENTER), ignores_color, fills="black").findings
    assert finding.kind == "matters"
    assert finding.sentence.endswith("whether by its color or its texture is not established.")


def test_only_fills_of_the_palette_are_named():
    reading = reading_of(GRAY, wants_red, fills="green,#ff0000")
    words = " ".join(reading.lines())
    assert "#ff0000" in words
    for absent in ("blue", "white", "black", "yellow"):
        assert absent not in words


@pytest.mark.parametrize(
    ("fill", "kind", "words"),
    [
        ("blur:4", "sharpness matters", "blurring this part lowers 'yes'"),
        ("noise", "texture matters", "covering this part with noise lowers 'yes'"),
    ],
)
def test_fills_that_are_not_colors_are_read_in_their_own_words(fill, kind, words):
    (finding,) = reading_of(striped_image(CENTER), ignores_color, fills=f"{fill},gray").findings
    assert finding.kind == kind
    assert words in finding.sentence
    assert "taking the color out of this part leaves it about as it is" in finding.sentence
    assert "patch" not in finding.sentence


def test_hue_and_saturation_are_read_in_their_own_words():
    image = GRAY.copy()
    image[CENTER] = (230, 10, 10)
    (finding,) = reading_of(image, wants_red, fills="hue:120,gray").findings
    assert "turning the hue of this part by 120 degrees" in finding.sentence
    assert "taking the color out of this part" in finding.sentence
    assert finding.kind in ("hue matters", "saturation matters")


@pytest.mark.parametrize("estimator", ["centered", "smooth"])
def test_pure_noise_gives_no_finding(estimator):
    """At most one seed in ten here; benchmarks/chance.py looks at 100."""
    # Two classes: the prior of `smooth` is then fitted to the very scores that are tested.
    silent = [not read(explain_noise(seed), 0, estimator).findings for seed in range(20)]
    assert sum(silent) >= 18


def test_a_constant_model_gives_no_finding_and_says_how_little_is_known():
    reading = read(mcrise.explain(GRAY, constant_model, n_masks=64))
    assert reading.findings == ()
    assert reading.lines()[1] == "No finding."
    assert "192 more masks would halve this limit" in reading.pending


def test_the_limit_is_that_of_full_size_maps_of_shuffled_scores():
    """The coarse, sparse evaluation against the estimator itself."""
    plan = Plan((40, 60), grid=(5, 6))
    masks = draw_many(plan, 4)
    scores = np.random.default_rng(0).random(len(masks)) ** 3
    generator = np.random.default_rng(1)
    largest = []
    for _ in range(100):
        values, _ = mcrise.estimate.estimate(plan, masks, generator.permutation(scores), "centered")
        largest.append(np.abs(values).max())
    assert chance_limit(plan, masks, scores) == pytest.approx(np.quantile(largest, 0.95), rel=0.1)


def test_the_limit_falls_with_the_square_root_of_the_masks():
    plan = Plan(SIZE)
    masks = draw_many(plan, 32)
    scores = np.random.default_rng(0).random(len(masks))
    few = chance_limit(plan, Masks(masks.cells[:512], masks.shifts[:512]), scores[:512])
    assert few / chance_limit(plan, masks, scores) == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize(
    ("rows", "cols", "words"),
    [
        ((12, 18), (12, 18), "center"),
        ((0, 6), (0, 6), "upper left rim"),
        ((22, 30), (10, 20), "lower rim"),
        ((18, 24), (4, 12), "lower left part"),
        ((0, 30), (0, 30), "most of the image"),
    ],
)
def test_places_have_names(rows, cols, words):
    region = np.zeros((30, 30), bool)
    region[slice(*rows), slice(*cols)] = True
    assert place_of(region) == words


def test_a_ring_lies_around_the_center():
    down, across = np.mgrid[-15:15, -15:15]
    distance = np.hypot(down, across)
    assert place_of((distance > 8) & (distance < 11)) == "around the center"


def test_a_map_over_all_fills_cannot_be_read():
    record = mcrise.explain(GRAY, constant_model, n_masks=64)
    with pytest.raises(mcrise.InputError, match="one map over all fills"):
        read(record, estimator="rise")
