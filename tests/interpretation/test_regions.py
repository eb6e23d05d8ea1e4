import re

import numpy as np
import pytest

import mcrise
from mcrise.estimators.significance import significance_limit
from mcrise.interpretation.regions import interpret, place_of
from mcrise.masks import Masks, Plan
from planted import constant_model, draw_many, estimated, explain_masks, photo
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
    return interpret(explain_masks(image, model, labels=["yes", "no"], **options), "yes", estimator)


def explain_noise(seed):
    return explain_masks(GRAY, noise_model(seed), n_masks=256, seed=seed)


def verdicts(finding):
    return {effect.fill.name: effect.verdict for effect in finding.effects}


def overlap(finding, place):
    return finding.region[place].sum() / finding.region.sum()


@pytest.mark.parametrize("estimator", ["centered", "smooth"])
def test_a_model_that_wants_red_in_the_center_is_raised_by_red_there_and_by_nothing_else(estimator):
    (finding,) = reading_of(GRAY, wants_red, estimator).findings
    assert (finding.place, finding.direction) == ("the center", 1)
    assert finding.strongest.fill.name == "red"
    assert verdicts(finding) == {
        "red": "raises", "green": "leaves", "blue": "leaves", "white": "leaves", "black": "leaves",
    }  # fmt: skip
    assert overlap(finding, CENTER) > 0.6
    line = finding.line("yes")
    assert line.startswith("The center (")
    assert "a patch of red raises 'yes' by 0." in line
    assert "a patch of any color but red leaves it about as it is" in line
    assert line.endswith("(not tested).")


@pytest.mark.parametrize(
    ("place", "model", "verdict"),
    [(CORNER, dislikes_the_corner, "raises"), (CENTER, ignores_color, "lowers")],
)
def test_a_texture_is_moved_by_paint_of_any_color(place, model, verdict):
    (finding,) = reading_of(striped_image(place), model).findings
    assert set(verdicts(finding).values()) == {verdict}
    assert overlap(finding, place) > 0.6
    assert f"a patch of any of the 5 colors {verdict} 'yes'" in finding.line("yes")


def test_white_raises_and_black_lowers_where_brightness_counts():
    (finding,) = reading_of(GRAY, wants_brightness).findings
    assert verdicts(finding)["white"] == "raises"
    assert verdicts(finding)["black"] == "lowers"


def test_only_fills_of_the_palette_are_named():
    reading = reading_of(GRAY, wants_red, fills="green,#ff0000")
    words = " ".join(reading.lines())
    assert "#ff0000" in words
    for absent in ("blue", "white", "black", "yellow"):
        assert absent not in words


def test_thirty_colors_are_not_listed_one_by_one():
    fills = ",".join(f"#{red:02x}{green:02x}40" for red in range(0, 250, 50) for green in range(6))
    line = reading_of(striped_image(CENTER), ignores_color, fills=fills).findings[0].line("yes")
    assert len(line) < 260
    assert line.count("#") <= 12


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        ("blur:4", "blurring this part lowers 'yes'"),
        ("noise", "covering this part with noise lowers 'yes'"),
    ],
)
def test_fills_that_are_not_colors_are_read_in_their_own_words(fill, words):
    (finding,) = reading_of(striped_image(CENTER), ignores_color, fills=f"{fill},gray").findings
    line = finding.line("yes")
    assert words in line
    assert "taking the color out of this part leaves it about as it is" in line
    assert "patch" not in line


@pytest.mark.parametrize("estimator", ["centered", "smooth"])
def test_pure_noise_gives_no_finding(estimator):
    """At most one seed in ten here; benchmarks/chance.py looks at 100."""
    # Two classes: the prior of `smooth` is then fitted to the very scores that are tested.
    silent = [not interpret(explain_noise(seed), 0, estimator).findings for seed in range(20)]
    assert sum(silent) >= 18


def test_a_constant_model_gives_no_finding_and_says_how_little_is_known():
    reading = interpret(explain_masks(GRAY, constant_model, n_masks=64))
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
        values, _, _ = estimated(plan, masks, generator.permutation(scores))
        largest.append(np.abs(values).max())
    assert significance_limit(plan, masks, scores) == pytest.approx(
        np.quantile(largest, 0.95), rel=0.1
    )


def test_the_limit_falls_with_the_square_root_of_the_masks():
    plan = Plan(SIZE)
    masks = draw_many(plan, 32)
    scores = np.random.default_rng(0).random(len(masks))
    few = significance_limit(plan, Masks(masks.cells[:512], masks.shifts[:512]), scores[:512])
    assert few / significance_limit(plan, masks, scores) == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize(
    ("rows", "cols", "words"),
    [
        ((12, 18), (12, 18), "the center"),
        ((0, 6), (0, 6), "the upper left corner"),
        ((22, 30), (10, 20), "the lower rim"),
        ((18, 24), (4, 12), "the lower left part"),
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
    assert place_of((distance > 8) & (distance < 11)) == "a ring around the center"


@pytest.mark.parametrize("gap", [2, 4])
def test_two_blobs_or_a_half_moon_are_no_ring(gap):
    region = np.zeros((40, 40), bool)
    region[14:26, 4 : 20 - gap] = region[14:26, 20 + gap : 36] = True
    assert place_of(region) == "the center"
    down, across = np.mgrid[-20:20, -20:20]
    distance = np.hypot(down, across)
    assert place_of((distance > 9) & (distance < 13) & (down < 6)) == "the center"


def test_a_map_over_all_fills_cannot_be_read():
    explanation = explain_masks(GRAY, constant_model, n_masks=64)
    with pytest.raises(mcrise.InputError, match="one map over all fills"):
        interpret(explanation, estimator="rise")


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("estimator", ["paper", "centered", "smooth"])
def test_no_finding_has_an_interval_that_holds_zero(mask_prob, estimator):
    """A small effect on a high score: the noise of `paper` grows with the score itself."""

    def model(images):
        score = 0.6 + 0.3 * images[:, 4:12, 4:12, 0].mean(axis=(1, 2)) / 255
        return np.stack([score, 1 - score], axis=1)

    for n_masks in (64, 128, 256):
        explanation = explain_masks(
            photo(24, 24), model, n_masks=n_masks, mask_prob=mask_prob, grid=4
        )
        reading = interpret(explanation, 0, estimator)
        for effect in (finding.strongest for finding in reading.findings):
            assert abs(effect.value) > effect.margin
        left = interpret(explanation, 0, estimator, unsure=True).findings  # to be tried
        hidden = [one for one in left if one not in reading.findings]
        assert not any(one.is_sure for one in hidden)
        shown = re.search(r"effects below ([\d.e-]+)", reading.pending)[1]
        assert float(shown) >= max(
            [0.95 * reading.limit, *(0.95 * abs(one.strongest.value) for one in hidden)]
        )
