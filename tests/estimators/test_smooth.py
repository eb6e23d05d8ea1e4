"""The `smooth` estimator on models whose maps are known exactly."""

import itertools

import numpy as np
import pytest

from mcrise.estimators.averages import contrast, weighted_sums
from mcrise.estimators.smooth import SE_SCALE
from mcrise.fills import CUBE8, RGBWK
from mcrise.masks import CHUNK, Masks, Plan, enlargement
from planted import draw_many, estimated, every_mask, explain_masks, full_masks, gray_image, photo


def blob(size, n_fills):
    """A field per fill: one bump, shared and different in strength."""
    rows, cols = np.indices(size)
    bump = np.exp(-8 * ((rows / size[0] - 0.4) ** 2 + (cols / size[1] - 0.6) ** 2))
    strength = np.linspace(1, -0.4, n_fills)
    return strength[:, None, None] * bump / bump.sum()


def additive_scores(plan, masks, beta):
    return np.einsum("knyx,kyx->n", full_masks(plan, masks)[1:], beta)


def additive_map(plan, beta):
    """C beta, the exact map of an additive model."""
    covariances = []
    for n_pixels, n_cells, cell in zip(plan.size, plan.grid, plan.cell, strict=True):
        flat = enlargement(n_pixels, n_cells, cell).reshape(n_pixels, -1)
        covariances.append(flat @ flat.T / cell)
    return covariances[0] @ beta @ covariances[1].T


def error(values, exact):
    return float(np.square(values - exact).mean())


def fitted(plan, masks, scores, kind="any"):
    return estimated(plan, masks, np.asarray(scores, np.float32), "smooth", kind)


@pytest.mark.parametrize(
    ("size", "grid", "n_fills", "mask_prob"),
    [
        ((32, 32), (8, 8), 5, 0.5),
        ((24, 40), (3, 7), 2, 0.3),
        ((16, 16), (1, 1), 1, 0.1),
        ((9, 5), (4, 5), 8, 0.9),
        ((3, 2), (8, 8), 2, 0.5),
    ],
)
def test_an_additive_score_is_mapped_with_a_fraction_of_the_error(size, grid, n_fills, mask_prob):
    """Half the variance of the scores is noise, so that there is something to be averaged out."""
    plan = Plan(size, CUBE8[:n_fills], grid, mask_prob)
    masks, beta = draw_many(plan, 16), blob(size, n_fills)
    exact, clean = additive_map(plan, beta), additive_scores(plan, masks, beta)
    errors, plain = [], []
    for seed in range(8):  # the error of one draw may be half of what is to be expected
        scores = clean + np.random.default_rng(seed).normal(0, clean.std(), len(clean))
        values, se, notes = fitted(plan, masks, scores)
        assert values.shape == se.shape == (n_fills, *size)
        assert not notes
        plain.append(error(estimated(plan, masks, scores)[0], exact))
        errors.append(error(values, exact))
    assert np.mean(errors) < 0.5 * np.mean(plain)


@pytest.mark.parametrize(
    ("size", "grid", "n_fills", "mask_prob"),
    [
        pytest.param((32, 32), (8, 8), 5, 0.5, marks=pytest.mark.slow),
        pytest.param((40, 40), (8, 8), 5, 0.2, marks=pytest.mark.slow),
        ((24, 40), (3, 7), 2, 0.3),
        ((48, 32), (6, 6), 3, 0.1),
        ((3, 2), (8, 8), 2, 0.5),
    ],
)
def test_the_standard_errors_are_as_large_as_the_errors_they_promise(
    size, grid, n_fills, mask_prob
):
    """Within a fifth, but for the margin that real networks were found to need."""
    plan = Plan(size, CUBE8[:n_fills], grid, mask_prob)
    masks, beta = draw_many(plan, 16), blob(size, n_fills)
    exact, clean = additive_map(plan, beta), additive_scores(plan, masks, beta)
    errors, promised = [], []
    for seed in range(40):
        scores = clean + np.random.default_rng(seed).normal(0, clean.std(), len(clean))
        values, se, _ = fitted(plan, masks, scores)
        errors.append(error(values, exact))
        promised.append(np.mean(np.square(se)) / SE_SCALE**2)
    assert np.sqrt(np.mean(promised) / np.mean(errors)) == pytest.approx(1, rel=0.2)


def enumerable(score, n_fills=2, mask_prob=0.3):
    """A plan of 2 x 2 cells of 2 x 2 pixels and the exact map of a score, from all its masks."""
    plan = Plan((4, 4), RGBWK[:n_fills], (2, 2), mask_prob)
    visible, chance = every_mask(9, n_fills, mask_prob)
    cells = np.zeros((len(visible), 4, 4), np.uint8)
    cells[:, :3, :3] = visible.reshape(-1, 3, 3)  # the last cells are out of sight
    means = np.zeros((n_fills + 1, 4, 4))
    for shift in itertools.product(range(2), range(2)):
        masks = Masks(cells, np.tile(shift, (len(cells), 1)).astype(np.int64))
        means += weighted_sums(plan, masks, chance * score(plan, masks) / 4)
    return plan, contrast(plan, means, 0.0)


MIX = np.random.default_rng(1).normal(size=(3, 4, 4))


def linear(plan, masks):
    return np.einsum("knyx,kyx->n", full_masks(plan, masks), MIX)


def wild(plan, masks):
    """No additive score comes near this one."""
    return 0.5 + 0.5 * np.sin(1.5 * linear(plan, masks))


@pytest.mark.parametrize(("score", "kind"), [(linear, "any"), (wild, "probability")])
def test_the_limit_for_many_masks_is_the_exact_map(score, kind):
    plan, exact = enumerable(score)
    masks = draw_many(plan, 1000)
    scores = score(plan, masks)
    errors = {}
    for n_masks in (1024, 8000, 64_000):
        some = Masks(masks.cells[:n_masks], masks.shifts[:n_masks])
        errors[n_masks] = error(fitted(plan, some, scores[:n_masks], kind)[0], exact)
    assert errors[64_000] < 0.5 * errors[8000] < 0.25 * errors[1024]
    assert errors[64_000] < 1.03 * error(estimated(plan, masks, scores)[0], exact)


def test_two_standard_errors_cover_what_they_promise():
    plan = Plan((32, 32), RGBWK, (8, 8))
    beta = blob((32, 32), 5)
    exact, inside = additive_map(plan, beta), []
    masks = draw_many(plan, 160)
    clean = additive_scores(plan, masks, beta)
    scores = clean + np.random.default_rng(0).normal(0, clean.std(), len(clean))
    for part in np.split(np.arange(len(scores)), 10):
        some = Masks(masks.cells[part], masks.shifts[part])
        values, se, _ = fitted(plan, some, scores[part])
        inside.append(np.abs(values - exact) < 2 * se)
    assert 0.9 < np.mean(inside) < 0.995


def test_of_scores_without_a_pattern_little_is_shown_and_its_errors_say_so():
    """The exact map is zero. Chance may look like a pattern, but it must not cost anything."""
    plan = Plan((16, 16), RGBWK, (8, 8))
    masks = draw_many(plan, 1)
    errors, plain, inside = [], [], []
    for seed in range(16):
        scores = np.random.default_rng(seed).random(CHUNK, np.float32).astype(np.float64)
        values, se, _ = fitted(plan, masks, scores, "probability")
        errors.append(error(values, 0))
        plain.append(error(estimated(plan, masks, scores)[0], 0))
        assert errors[-1] <= 1.001 * plain[-1]
        inside.append(np.abs(values) <= 2 * se)
    assert np.mean(errors) < 0.5 * np.mean(plain)
    assert np.mean(inside) > 0.9


def half_red(images):
    """Three classes: two that look at different halves, and the rest."""
    red = images[..., 0] / 255.0
    left, right = red[:, :, :8].mean(axis=(1, 2)), red[:, :, 8:].mean(axis=(1, 2))
    scores = np.stack([left**2, right**2 * (1 - left**2)], axis=1)
    return np.concatenate([scores, 1 - scores.sum(axis=1, keepdims=True)], axis=1)


def test_a_record_gives_the_same_map_to_the_bit_whatever_the_order_of_its_chunks():
    explanation = explain_masks(photo(16, 16), half_red, n_masks=512)
    other = explain_masks(photo(16, 16), half_red, n_masks=CHUNK)
    for chunk in reversed(explanation.chunks):
        other.maps(0, "smooth")  # a fit of fewer masks must not linger
        other.add(chunk, explanation.scores[chunk])
    ours, theirs = explanation.maps(0, "smooth"), other.maps(0, "smooth")
    assert ours.fills == explanation.plan.fills
    assert ours.values.tobytes() == theirs.values.tobytes()
    assert ours.se.tobytes() == theirs.se.tobytes()


def test_a_score_that_never_changes_has_maps_of_nothing_and_is_told_of():
    explanation = explain_masks(gray_image(16, 16), lambda images: np.full((len(images), 2), 0.5))
    maps = explanation.maps(0, "smooth")
    assert not maps.values.any()
    assert not maps.se.any()
    assert any("under every mask" in note for note in maps.notes)


def test_the_difference_of_two_classes_is_the_difference_of_their_maps():
    """And its error is that of a difference on the same masks, not of two separate runs."""
    explanation = explain_masks(photo(16, 16), half_red, n_masks=2048)
    difference = explanation.maps(0, against=1)
    ours, theirs = explanation.maps([0, 1])
    off = np.abs(difference.values - (ours.values - theirs.values))
    assert off.mean() < difference.se.mean()
    assert difference.se.mean() < ours.se.mean() + theirs.se.mean()
