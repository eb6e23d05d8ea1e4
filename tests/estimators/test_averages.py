"""The estimators against the definition, by enumeration, and against closed forms."""

import itertools

import numpy as np
import pytest

import mcrise
from mcrise.estimators import raster
from mcrise.estimators.averages import (
    centered,
    contrast,
    debiased,
    estimate,
    group_count,
    rise,
    sums_at,
    weighted_sums,
)
from mcrise.estimators.raster import raster_of
from mcrise.fills import CUBE8, RGBWK
from mcrise.maps import STANDARD_ERRORS_95
from mcrise.masks import CHUNK, Masks, Plan, enlargement
from planted import (
    PatchModel,
    constant_model,
    draw_many,
    estimated,
    every_mask,
    explain_masks,
    full_masks,
    gray_image,
    photo,
)

FILLS = {1: CUBE8[4:5], 2: CUBE8[:2], 5: RGBWK}


def tiny_plan(size, grid, n_fills, mask_prob):
    """A plan whose h + 2 by w + 2 cells can be listed."""
    return Plan(size, FILLS[n_fills], grid, mask_prob)


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("n_fills", [1, 2, 5])
def test_estimators_are_the_conditional_definitions_on_every_mask_of_one_pixel_cells(
    mask_prob, n_fills
):
    """All (K + 1)**4 masks of a 2 x 2 image, any black box at all."""
    plan = tiny_plan((2, 2), (2, 2), n_fills, mask_prob)
    visible, chance = every_mask(4, n_fills, mask_prob)
    cells = np.zeros((len(visible), 4, 4), np.uint8)
    cells[:, :2, :2] = visible.reshape(-1, 2, 2)  # the border cells are out of sight here
    score = np.random.default_rng(0).random(len(visible))
    masks = Masks(cells, np.zeros((len(cells), 2), np.int64))
    means = weighted_sums(plan, masks, chance * score)
    mean = float(chance @ score)

    fell = np.arange(n_fills + 1)[:, None, None] == visible.T  # (K + 1, 4, n)
    given = (fell * chance * score).sum(axis=2) / (fell * chance).sum(axis=2)  # E[score | k]
    painted = fell[1:].any(axis=0)
    given_painted = (painted * chance * score).sum(axis=1) / (painted * chance).sum(axis=1)
    for formula, expected in (
        (rise, given[:1]),
        (debiased, given[:1] - given_painted),
        (contrast, given[1:] - given[:1]),
    ):
        found = formula(plan, means, mean).reshape(-1, 4)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("n_fills", [1, 2, 5])
def test_estimators_aim_at_the_expected_weight_times_score_with_larger_cells(mask_prob, n_fills):
    """One cell of 2 x 2 pixels: all masks of the four cells in sight, at every shift."""
    plan = tiny_plan((2, 2), (1, 1), n_fills, mask_prob)
    assert plan.cell == (2, 2)
    mix = np.random.default_rng(1).normal(size=(n_fills + 1, 2, 2))

    def score(masks):  # any black box: a wild function of what each pixel shows
        return 0.5 + 0.5 * np.sin(3 * np.einsum("knyx,kyx->n", full_masks(plan, masks), mix))

    visible, chance = every_mask(4, n_fills, mask_prob)
    cells = np.zeros((len(visible), 3, 3), np.uint8)
    cells[:, :2, :2] = visible.reshape(-1, 2, 2)
    exact = {"paper": 0.0, "rise": 0.0}
    means = np.zeros((n_fills + 1, 2, 2))
    for shift in itertools.product(range(2), range(2)):
        masks = Masks(cells, np.tile(shift, (len(cells), 1)).astype(np.int64))
        share = chance * score(masks) / 4
        full = full_masks(plan, masks)  # (K + 1, N, 2, 2)
        weight = n_fills * full[1:] / mask_prob - full[:1] / (1 - mask_prob)
        exact["paper"] = exact["paper"] + np.einsum("knyx,n->kyx", weight, share)
        exact["rise"] = exact["rise"] + np.einsum("knyx,n->kyx", full[:1], share) / (1 - mask_prob)
        means += weighted_sums(plan, masks, share)
    np.testing.assert_allclose(contrast(plan, means, 0.0), exact["paper"], atol=1e-12)
    np.testing.assert_allclose(rise(plan, means, 0.0), exact["rise"], atol=1e-12)

    masks = draw_many(plan, 512)  # and the masks that are really drawn lead there
    for name in ("paper", "centered", "rise"):
        values, se, _ = estimated(plan, masks, score(masks), name)
        assert (np.abs(values - exact.get(name, exact["paper"])) < 4.5 * se).all(), name


@pytest.mark.parametrize(
    ("size", "grid"), [((24, 24), (8, 8)), ((20, 33), (3, 7)), ((8, 9), (12, 4))]
)
def test_sums_in_cell_space_are_sums_over_full_size_masks(size, grid):
    plan = Plan(size, grid=grid, mask_prob=0.3)
    masks = draw_many(plan, 2)
    score = np.random.default_rng(0).normal(size=len(masks))
    expected = np.einsum("knyx,n->kyx", full_masks(plan, masks), score)
    np.testing.assert_allclose(weighted_sums(plan, masks, score), expected, atol=1e-10)


def linear_map(plan, beta):
    """C beta: the expected map of a score that adds up `beta` (K, H, W) over painted pixels."""
    smear = []
    for n_pixels, n_cells, cell in zip(plan.size, plan.grid, plan.cell, strict=True):
        window = enlargement(n_pixels, n_cells, cell)
        smear.append(np.einsum("xsi,ysi->xy", window, window) / cell)
    return smear[0] @ beta @ smear[1].T


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5])
def test_a_linear_model_has_the_map_c_beta_and_every_estimator_approaches_it(mask_prob):
    plan = Plan((20, 24), RGBWK[:3], (4, 4), mask_prob)
    rng = np.random.default_rng(0)
    beta = rng.normal(size=(3, 1, 1)) * np.exp(-((np.arange(20)[:, None] - 8) ** 2) / 20) / 20
    beta = beta * np.exp(-((np.arange(24) - 12) ** 2) / 30)
    exact = linear_map(plan, beta)
    errors = {"paper": [], "centered": []}
    for n_chunks in (16, 256):
        masks = draw_many(plan, n_chunks)
        full = full_masks(plan, masks)[1:]
        score = 0.4 + np.einsum("knyx,kyx->n", full, beta)
        for name in errors:
            values, se, _ = estimated(plan, masks, score, name)
            errors[name].append(np.sqrt(np.mean((values - exact) ** 2)))
            # Two standard errors hold for most pixels: the estimator aims at C beta itself.
            assert np.mean(np.abs(values - exact) < 2 * se) > 0.85
    for name, (few, many) in errors.items():  # 16 times the masks: a quarter of the error
        assert many < 0.45 * few, name
    assert errors["centered"][1] < errors["paper"][1]
    # The kept map of RISE: mean score plus the mean effect of keeping, which is minus the sum.
    kept, _, _ = estimated(plan, masks, score, "debiased")
    np.testing.assert_allclose(kept[0], -exact.mean(axis=0), atol=8 * errors["paper"][1])


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5, 0.8])
def test_a_constant_model_gives_nothing_but_noise(mask_prob):
    plan = Plan((32, 32), mask_prob=mask_prob)
    masks = draw_many(plan, 32)
    values, se, _ = estimated(plan, masks, np.full(len(masks), 0.7), "paper")
    assert np.mean(np.abs(values) > 3.5 * se) <= 0.03
    centered, _, _ = estimated(plan, masks, np.full(len(masks), 0.7), "centered")
    assert np.abs(centered).max() < 1e-7


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5])
def test_proposition_1_holds_exactly_with_one_pixel_cells(mask_prob):
    """Pixels the model does not look at have value zero, by enumeration."""
    plan = tiny_plan((2, 2), (2, 2), 2, mask_prob)
    visible, chance = every_mask(4, 2, mask_prob)
    cells = np.zeros((len(visible), 4, 4), np.uint8)
    cells[:, :2, :2] = visible.reshape(-1, 2, 2)
    score = np.array([0.9, 0.2, 0.4])[visible[:, 0]]  # looks at the first pixel only
    masks = Masks(cells, np.zeros((len(cells), 2), np.int64))
    means = weighted_sums(plan, masks, chance * score)
    for formula in (debiased, contrast):
        values = formula(plan, means, float(chance @ score)).reshape(-1, 4)
        np.testing.assert_allclose(values[:, 1:], 0, atol=1e-12)
        assert np.abs(values[:, 0]).min() > 0.1


def test_proposition_1_holds_two_cells_away_with_larger_cells():
    size, cell = (64, 64), 8
    model = PatchModel(slice(0, 8), slice(0, 8))
    explanation = explain_masks(photo(*size), model, n_masks=8192, mask_prob=0.3)
    assert explanation.plan.cell == (cell, cell)
    maps = explanation.maps(0, "centered")
    far = np.ones(size, bool)
    far[: 8 + 2 * cell, : 8 + 2 * cell] = False
    assert np.mean(np.abs(maps.values[:, far]) > 3.5 * maps.se[:, far]) < 0.005
    near = np.abs(maps.values[:, :8, :8]) > 3.5 * maps.se[:, :8, :8]
    assert near.mean() > 0.5


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5])
def test_with_a_single_fill_debiased_rise_is_minus_the_map_of_the_fill(mask_prob):
    explanation = explain_masks(
        photo(24, 24), PatchModel(slice(4, 9), slice(4, 9)), fills="black", n_masks=256,
        mask_prob=mask_prob,
    )  # fmt: skip
    black, kept = explanation.maps(0, "paper"), explanation.maps(0, "debiased")
    np.testing.assert_allclose(kept.values, -black.values, atol=1e-6)
    np.testing.assert_allclose(kept.se, black.se, atol=1e-6)
    assert len(kept.values) == 1


@pytest.mark.slow
def test_standard_errors_cover_what_they_should():
    """Against the long run of the same model: two standard errors in about 95% of pixels."""
    image, model = photo(24, 24), PatchModel(slice(6, 14), slice(6, 14))
    long = explain_masks(image, model, n_masks=64 * 1024, grid=(4, 4), seed=1)
    for name in ("rise", "debiased", "paper", "centered"):
        truth = long.maps(0, name).values
        inside = []
        for seed in range(2, 10):
            maps = explain_masks(image, model, n_masks=1024, grid=(4, 4), seed=seed).maps(0, name)
            inside.append(np.mean(np.abs(maps.values - truth) < 2 * maps.se))
        assert 0.88 < np.mean(inside) < 0.99, name


def test_every_class_comes_from_one_run():
    explanation = explain_masks(gray_image(16, 16), constant_model, n_masks=CHUNK)
    assert explanation.maps(1).target == 1
    assert explanation.maps(1).label == "class 1"


def test_an_unknown_estimator_is_refused_by_name():
    explanation = explain_masks(gray_image(16, 16), constant_model, n_masks=CHUNK)
    with pytest.raises(mcrise.InputError, match=r"'median'.*paper"):
        explanation.maps(0, "median")


def test_at_its_points_a_raster_has_the_sums_of_all_pixels(monkeypatch):
    """A cell of 48 pixels has 24 points, every second pixel: there, nothing is approximate."""
    plan = Plan((96, 144), grid=(2, 3), mask_prob=0.3)
    masks = draw_many(plan, 2)
    scores = np.random.default_rng(0).normal(size=len(masks))
    exact = weighted_sums(plan, masks, scores)
    monkeypatch.setattr(raster, "LARGE", 0)
    points = raster_of(plan)
    assert points.shape == (49, 73)
    found = sums_at(points, plan, masks, scores)
    np.testing.assert_allclose(found[:, :48, :72], exact[:, ::2, ::2], atol=1e-12)


def test_masks_fall_into_groups_of_a_chunk_or_into_sixteen_and_never_more_than_sixty_four():
    chunks = (1, 2, 3, 4, 5, 16, 17, 32, 64, 65, 1000)
    found = [group_count(n * CHUNK) for n in chunks]
    assert found == [4, 8, 12, 16, 16, 16, 17, 32, 64, 64, 64]


def test_a_map_is_the_mean_over_groups_and_its_error_that_of_a_mean():
    plan = Plan((12, 10), RGBWK[:2], (3, 2), 0.3)
    masks, scores = draw_many(plan, 2), np.random.default_rng(0).random(2 * CHUNK)
    values, se = estimate(plan, masks, scores, contrast)
    groups = []
    for part in np.split(np.arange(2 * CHUNK), 8):
        means = weighted_sums(plan, masks[part], scores[part]) / len(part)
        groups.append(contrast(plan, means, scores[part].mean()))
    np.testing.assert_allclose(values, np.mean(groups, axis=0), rtol=1e-5)
    np.testing.assert_allclose(se, np.std(groups, axis=0, ddof=1) / np.sqrt(8), rtol=1e-4)


def test_centered_scores_have_no_mean_and_keep_the_expectation_of_what_they_are_multiplied_with():
    """Less their own mean, n scores lose the share 1 / n of what each is correlated with."""
    scores = np.array([1.0, 2.0, 6.0])
    np.testing.assert_allclose(centered(scores), np.array([-2, -1, 3]) * 1.5)


@pytest.mark.slow
@pytest.mark.parametrize("n_chunks", [1, 2])
def test_with_few_masks_an_interval_of_95_percent_is_wider_than_for_many_and_covers(n_chunks):
    image, model = photo(12, 12), PatchModel(slice(2, 8), slice(3, 9))
    asked = {"mask_prob": 0.3, "grid": (3, 3), "fills": "red,blue"}
    truth = explain_masks(image, model, n_masks=400 * CHUNK, seed=99, **asked).maps(0, "centered")
    inside, by_many = [], []
    for seed in range(60):
        maps = explain_masks(image, model, n_masks=n_chunks * CHUNK, seed=seed, **asked)
        maps = maps.maps(0, "centered")
        apart = np.abs(maps.values - truth.values)
        inside.append((apart <= maps.half_width_95 * maps.se).mean())
        by_many.append((apart <= STANDARD_ERRORS_95 * maps.se).mean())
    assert 0.93 <= np.mean(inside) <= 0.98
    assert np.mean(by_many) < 0.92


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5])
def test_the_error_of_rise_is_relative_to_what_differs_in_its_map_not_to_its_level(mask_prob):
    """Against E[score] - p mean_k E[score | k] - E[score | kept], by the centered maps of many."""
    model, image = PatchModel(slice(2, 14), slice(2, 14)), np.zeros((24, 24, 3), np.uint8)
    image[..., 0] = 255
    asked = {"mask_prob": mask_prob, "grid": 4, "score_kind": "any", "fills": "blue,black"}
    many = explain_masks(image, model, n_masks=8192, seed=9, **asked)
    exact = many.scores_of(0).mean() - mask_prob * many.maps(0, "centered").values.mean(axis=0)
    real, told = [], []
    for seed in range(3):
        maps = explain_masks(image, model, n_masks=2048, seed=seed, **asked).maps(0, "rise")
        real.append(np.sqrt(np.square(maps.values[0] - exact).mean()) / exact.std())
        told.append(maps.relative_error)
    assert 0.5 < np.median(told) / np.mean(real) < 2.5
