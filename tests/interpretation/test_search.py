"""The search on models whose answers are known: which places it finds, and what it says of them."""

from dataclasses import replace

import numpy as np
import pytest

import mcrise
from mcrise.interpretation.conclusions import findings_from
from mcrise.interpretation.controls import control_of, verdict_of
from mcrise.interpretation.findings import Trial
from mcrise.interpretation.repaints import Repaint, Stroke
from mcrise.interpretation.score_change import Scale
from mcrise.interpretation.search import search
from mcrise.interpretation.trial_calls import conclude, trials_of
from mcrise.output.figure import conclusion
from planted import Counting, constant_model, gray_image, photo

SIZE = 64
RED, GREEN = (200, 30, 30), (30, 160, 30)


def image_with(*patches):
    """A gray image with colored patches: (rows, columns, color)."""
    image = gray_image(SIZE, SIZE)
    for rows, columns, color in patches:
        image[rows, columns] = color
    return image


def redness(images, rows, columns):
    """How red a patch is, in 0..1."""
    some = images[:, rows, columns].astype(float)
    return np.clip((some[..., 0] - some[..., 1:].max(axis=3)) / 170, 0, 1).mean(axis=(1, 2))


def two(p):
    p = np.asarray(p, float)
    return np.stack([p, 1 - p], axis=1)


PATCH = slice(16, 32), slice(32, 48)
OTHER = slice(40, 56), slice(8, 24)


def needs_red(images):
    return two(0.05 + 0.9 * redness(images, *PATCH))


def explained(image, model, mask_prob=0.3, n_masks=512, **options):
    return mcrise.explain(image, model, n_masks=n_masks, mask_prob=mask_prob, **options)


@pytest.fixture(scope="module")
def red():
    return explained(image_with((*PATCH, RED)), needs_red)


def test_the_place_that_matters_is_finding_a_with_its_score_and_answer(red):
    first = red.findings[0]
    region = np.zeros((SIZE, SIZE), bool)
    region[PATCH] = True
    assert first.letter == "A"
    assert first.direction == -1
    assert first.changes_decision
    assert first.says == red.label(1)
    assert (first.region & region).sum() > 0.5 * first.region.sum()
    painted = first.trial.repaint.render(red.view.pixels, red.plan.cell)
    assert first.after == pytest.approx(needs_red(painted[None])[0, 0], abs=1e-6)
    assert first.control.verdict == "only here"
    assert first.claim("color") or first.claim("finds color")
    assert first.claim("structure") is None
    assert "rows" in first.sentence
    assert "of 64 x 64" in first.sentence


def test_letters_and_sentences_come_from_the_trials_alone(red):
    trials = trials_of(red, 0)
    again = findings_from(red, 0, trials)
    assert again.lines() == red.findings.lines()
    assert [one.letter for one in again] == sorted(one.letter for one in again)


def test_letters_do_not_move_with_more_masks(red):
    grown = explained(image_with((*PATCH, RED)), needs_red, n_masks=128)
    before = {one.letter: one.trial.repaint.digest for one in grown.findings}
    for _ in mcrise.grow(grown, needs_red, n_masks=512):
        pass
    after = grown.findings_of(None, needs_red)
    assert {one.letter: one.trial.repaint.digest for one in after}.items() >= before.items()


def test_the_search_keeps_its_budget_and_places_their_limits():
    model = Counting(needs_red)
    explanation = explained(image_with((*PATCH, RED)), model, trials=False)
    asked = model.n_images
    found = explanation.findings_of(None, model, trials=8)
    roles = [one.role for one in found.trials]
    assert roles.count("search") + roles.count("lobe") <= 8
    for one in found.described:
        own = [two.repaint.digest for two in found.trials if two.letter == one.letter]
        assert len(set(own)) <= 41
    assert model.n_images - asked == len({one.repaint.digest for one in found.trials})


def test_a_finding_is_in_the_color_that_does_most():
    """The map shows averages, and its strongest color need not be that of one patch alone."""
    image = image_with((*PATCH, RED))

    def blue_or_white_alone(images):
        patch = images[:, PATCH[0], PATCH[1]].astype(float) / 255
        blue = np.clip(patch[..., 2] - patch[..., :2].max(axis=-1), 0, 1).mean(axis=(1, 2))
        white = patch.min(axis=-1).mean(axis=(1, 2))
        painted = (images != image).any(axis=-1).mean(axis=(1, 2))
        return two(0.95 - 0.5 * blue - 0.9 * white * (painted < 0.25))

    first = explained(image, blue_or_white_alone, trials=1).findings[0]
    assert first.trial.fill.name == "white"
    assert first.after <= min(one.score for one in first.tests if one.role == "color")


def test_of_colors_that_do_nearly_as_much_one_that_changes_the_decision_is_the_finding():
    def blue_leaves_a_third(images):
        """Blue lowers class 0 most, but its score goes to two others."""
        patch = images[:, PATCH[0], PATCH[1]].astype(float) / 255
        blue = np.clip(patch[..., 2] - patch[..., :2].max(axis=-1), 0, 1).mean(axis=(1, 2))
        white = patch.min(axis=-1).mean(axis=(1, 2))
        first = 0.9 - 0.75 * blue - 0.6 * white
        last = 0.05 + 0.9 * white
        scores = np.stack([first, *[(0.1 + 0.7 * blue) / 6] * 6, last], axis=1).clip(0.001)
        return scores / scores.sum(axis=1, keepdims=True)

    explanation = explained(image_with((*PATCH, RED)), blue_leaves_a_third)
    first = explanation.findings[0]
    others = {one.fill.name: one.score for one in first.tests if one.role == "color"}
    assert first.trial.fill.name == "white"
    assert first.changes_decision
    assert others["blue"] < first.after


def test_a_place_that_raises_the_score_is_found_too():
    def wants_less_green(images):
        green = images[:, OTHER[0], OTHER[1], 1].astype(float).mean(axis=(1, 2)) / 255
        return two(0.75 - 0.6 * green)

    image = image_with((*OTHER, GREEN))
    found = explained(image, wants_less_green).findings
    raising = [one for one in found if one.direction > 0]
    assert raising
    assert raising[0].region[OTHER].any()
    assert raising[0].claim("raises")


def test_either_of_two_places_is_enough():
    def either(images):
        return two(0.05 + 0.9 * np.maximum(redness(images, *PATCH), redness(images, *OTHER)))

    image = image_with((*PATCH, RED), (*OTHER, RED))
    found = explained(image, either, mask_prob=0.5, n_masks=1024).findings
    assert "either suffices" in [claim.kind for claim in found.claims]
    assert any("is enough" in line for line in found.remarks)


def test_nothing_matters_only_where_the_whole_image_does_not_either():
    image = photo(SIZE, SIZE)
    nothing = explained(image, constant_model).findings
    assert [claim.kind for claim in nothing.claims] == ["nothing matters"]
    assert len(nothing) == 0

    def whole(images):
        """All of it has to be painted alike."""
        flat = images.reshape(len(images), -1, 3).astype(float).std(axis=1).max(axis=1) < 1
        return two(np.where(flat, 0.1, 0.9))

    found = explained(image, whole).findings
    assert not found.claims
    assert any("Only larger parts do" in line for line in found.remarks)


def test_the_image_as_a_whole_matters_where_each_half_does_and_no_place():
    def shown(images):
        """Half of the image has to be there."""
        there = (images.std(axis=3) > 2).mean(axis=(1, 2)) / 0.7
        return two(0.05 + 0.9 * np.clip(there, 0, 1))

    image = np.random.default_rng(0).integers(60, 190, (SIZE, SIZE, 3), np.uint8)
    found = explained(image, shown, mask_prob=0.2).findings
    assert [claim.kind for claim in found.claims] == ["all together"]
    assert any("the whole image matters" in line for line in found.remarks)


def test_a_color_that_lowers_the_score_anywhere_is_a_veto():
    def no_blue(images):
        pixels = images.astype(float)
        blue = ((pixels[..., 2] > 200) & (pixels[..., :2].max(axis=3) < 60)).mean(axis=(1, 2))
        return two(0.9 - 0.85 * np.minimum(60 * blue, 1))

    first = explained(gray_image(SIZE, SIZE), no_blue, mask_prob=0.1).findings[0]
    assert first.fill.name == "blue"
    assert first.control.verdict == "almost anywhere"
    assert first.claim("veto")
    assert first.claim("color") is None


def test_one_color_that_lowers_the_score_in_one_place_is_a_veto_there():
    def no_blue_there(images):
        some = images[:, PATCH[0], PATCH[1]].astype(float)
        blue = ((some[..., 2] > 200) & (some[..., :2].max(axis=3) < 60)).mean(axis=(1, 2))
        return two(0.9 - 0.85 * np.minimum(2 * blue, 1))

    first = explained(photo(SIZE, SIZE), no_blue_there).findings[0]
    assert first.fill.name == "blue"
    assert first.claim("veto")
    assert first.claim("color") is None
    assert "blue here lowers the score; nothing else tried here does" in first.sentence


def test_saturation_is_said_where_every_vivid_color_keeps_the_score_and_grays_do_not():
    def vivid(images):
        some = images[:, PATCH[0], PATCH[1]].astype(float)
        return two(0.05 + 0.9 * np.minimum(np.ptp(some, axis=3).mean(axis=(1, 2)) / 150, 1))

    first = explained(image_with((*PATCH, RED)), vivid).findings[0]
    assert first.claim("saturation")
    assert first.claim("color") is None
    assert "its saturation matters" in first.sentence


def test_a_large_place_in_the_center_is_compared_with_as_much_of_the_rest_in_pieces():
    def needs_center(images):
        some = images[:, 20:44, 20:44].astype(float).std(axis=3).mean(axis=2) > 20
        return two(0.05 + 0.9 * some.mean(axis=1))

    image = image_with((slice(20, 44), slice(20, 44), RED))
    region = np.zeros((SIZE, SIZE), bool)
    region[20:44, 20:44] = True
    explanation = explained(image, needs_center, trials=False)
    trial = mcrise.intervene(explanation, needs_center, region, mcrise.Solid((128, 128, 128)),
                             control=True)  # fmt: skip
    assert trial.control.verdict == "not controlled"
    assert len(trial.control.pieces) == 5
    assert "The same area in pieces elsewhere leaves 0.95" in trial.sentence


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5])
def test_a_wanted_class_is_reached_by_the_smallest_block_tried(mask_prob):
    def wants_green(images):
        some = images[:, OTHER[0], OTHER[1]].astype(float)
        green = np.clip((some[..., 1] - some[..., [0, 2]].max(axis=3)) / 200, 0, 1)
        return two(0.9 - 0.8 * green.mean(axis=(1, 2)))

    explanation = explained(gray_image(SIZE, SIZE), wants_green, mask_prob, trials=False)
    comparison = mcrise.compare(explanation, 1, model=wants_green)
    found = comparison.counterfactual
    assert found is not None
    assert found.fill.name == "green"
    assert found.says == 1
    assert found.repaint.share == min(
        one.repaint.share for one in comparison.trials if one.says == 1
    )
    assert any("makes the model say 'class 1'" in line for line in comparison.lines(explanation))
    assert mcrise.find_counterfactual(explanation, wants_green, wanted=1).says == 1
    findings = explanation.findings_of(0, wants_green, wanted=1)
    assert "makes the model say 'class 1'" in findings.lines()[0]  # before what was found
    assert "makes the model say 'class 1'" in conclusion(findings)[0]  # in the figure too


@pytest.mark.parametrize("before", [0.5, 0.95])
def test_where_the_score_can_rise_a_small_block_that_raises_it_is_found(before):
    """Among many that lower it, which come first in the order of the map; larger ones do not."""

    def green(images, rows, columns):
        some = images[:, rows, columns].astype(float)
        return np.clip((some[..., 1] - some[..., [0, 2]].max(axis=3)) / 255, 0, 1).mean(axis=(1, 2))

    def model(images):
        lost = 1 - redness(images, slice(8, 56), slice(8, 24))  # a large red part
        small, large = (green(images, slice(*a), slice(*b)) for a, b in (
            ((24, 32), (40, 48)), ((16, 40), (32, 56))))  # fmt: skip
        gained = small * np.clip(1 - 4 * (large - small / 9), 0, 1)
        return two(np.clip(before - 0.45 * lost + 0.15 * gained, 0, 1))

    image = image_with((slice(8, 56), slice(8, 24), RED))
    found = explained(image, model).findings
    raising = [one for one in found if one.direction > 0 and one.region[24:32, 40:48].all()]
    assert bool(raising) == (before == 0.5)
    assert all(one.fill.name == "green" for one in raising)


def test_the_smallest_repaint_has_no_smaller_part_that_does():
    """One cell decides; larger blocks that hold it are ranked first."""
    small = slice(16, 24), slice(32, 40)

    def model(images):
        lost = 1 - redness(images, *small)
        return two(0.9 - 0.6 * lost - 0.2 * (1 - redness(images, *PATCH)))

    explanation = explained(image_with((*PATCH, RED)), model)
    found = explanation.findings.counterfactual
    assert found is not None
    assert found.repaint.share <= 1.01 * (8 * 8) / SIZE**2


def test_described_places_share_nothing(red):
    described = red.findings.described
    covered = sum(one.region.astype(int) for one in described)
    assert covered.max() == 1


def test_what_a_run_tried_counts_when_two_classes_are_compared(red):
    """A comparison may try one repaint only; the run has one that does it."""
    comparison = mcrise.compare(red, 1, model=needs_red, trials=1)
    assert comparison.counterfactual is not None
    assert mcrise.find_counterfactual(red, needs_red, wanted=1, trials=1) is not None
    for trials in (0, True, 2.5):
        with pytest.raises(mcrise.InputError, match="whole number from 1"):
            mcrise.compare(red, 1, model=needs_red, trials=trials)


def test_an_answer_to_the_untouched_image_can_be_printed(red):
    trial = Trial(Repaint(()), "untouched", np.float32([0.5, 0.5]), 0)
    assert repr(trial) == "<Trial (untouched): score 0.50>"
    assert trial.to_json()["score"] == 0.5


def test_a_model_that_answers_differently_is_asked_five_times_and_the_first_answer_is_not_used():
    chance = np.random.default_rng(0)

    def noisy(images):
        return two(np.clip(needs_red(images)[:, 0] + chance.normal(0, 0.02, len(images)), 0, 1))

    explanation = explained(image_with((*PATCH, RED)), noisy)
    first = explanation.findings[0]
    assert explanation.nondeterminism > 0
    assert first.trial.repeats.shape == (5, 2)
    assert first.after == pytest.approx(first.trial.repeats[:, 0].mean(), abs=1e-6)
    assert all(one.repeats is not None for one in first.control.trials)
    takes = [one for one in explanation.findings.trials if one.role == "finding"]
    assert all(one.repaint.take for one in takes)


def test_noise_alone_is_not_called_a_place():
    chance = np.random.default_rng(1)

    def noise(images):
        return two(np.clip(0.6 + chance.normal(0, 0.05, len(images)), 0, 1))

    called = 0
    for seed in range(6):
        found = explained(photo(32, 32, seed), noise, n_masks=128, seed=seed).findings
        called += any(one.control and one.control.verdict == "only here" for one in found)
    assert called == 0


def test_where_noise_alone_changes_the_answer_no_repaint_is_said_to():
    """The answer changes by itself in every fourth call; nothing that is painted matters."""
    chance = np.random.default_rng(2)

    def undecided(images):
        return two(np.clip(0.52 + chance.normal(0, 0.03, len(images)), 0, 1))

    for seed in range(4):
        explanation = explained(photo(32, 32, seed), undecided, n_masks=128, seed=seed)
        predicted = explanation.findings.target
        assert explanation.findings.counterfactual is None
        assert [claim.kind for claim in explanation.findings.claims] == ["nothing matters"]
        assert mcrise.find_counterfactual(explanation, undecided, wanted=1 - predicted) is None
        assert mcrise.compare(explanation, 1 - predicted, model=undecided).suggestions == ()


def test_a_repaint_that_surely_changes_a_noisy_answer_is_said_to():
    chance = np.random.default_rng(3)

    def noisy(images):
        return two(np.clip(needs_red(images)[:, 0] + chance.normal(0, 0.02, len(images)), 0, 1))

    explanation = explained(image_with((*PATCH, RED)), noisy)
    changed = explanation.findings.counterfactual
    assert changed.says == 1
    assert changed.repeats.shape == (
        5,
        2,
    )  # asked afresh: the answer that chose it is not among them
    (best, *_) = mcrise.compare(explanation, 1, model=noisy).suggestions
    assert best.repeats.shape == (5, 2)
    assert best.score > 0.5


def test_margins_are_log_odds_and_two_thirds_of_them_is_as_much():
    scale = Scale(np.array([0.99, 0.01], np.float32), 0, 1.0, True)
    assert scale.margin(0.9) == pytest.approx(np.log(9) - np.log(99), abs=1e-4)
    assert scale.as_much(0.5, 0.82, 2 / 3) == (
        np.log(99) - np.log(0.82 / 0.18) >= np.log(99) * 2 / 3
    )
    plain = replace(scale, is_probability=False, range=2.0)
    assert plain.margin(0.49) == pytest.approx(-0.25, abs=1e-6)


def test_verdicts_are_counts():
    assert verdict_of(0, 19) == "only here"
    assert verdict_of(4, 19) == "here and in 4 of 19 other places"
    assert verdict_of(5, 19) == "in many places"
    assert verdict_of(15, 19) == "almost anywhere"
    assert verdict_of(0, 8) == "not controlled"


def test_a_control_counts_places_that_do_two_thirds_as_much():
    scale = Scale(np.array([0.9, 0.1], np.float32), 0, 1.0, True)
    repaint = Repaint((Stroke(np.ones((2, 2), bool), mcrise.Solid((0, 0, 0))),))

    def trial(score):
        return Trial(repaint, "control", np.array([score, 1 - score], np.float32), 0)

    control = control_of(scale, trial(0.1), [trial(0.2), trial(0.5), *[trial(0.9)] * 17])
    assert control.n_as_much == 1


def test_the_script_is_a_function_of_the_answers(red):
    def digests():
        copy = replace(red, answers={}, trial_logs={})
        found = conclude(copy, search(copy, 0, 64), needs_red)
        return [one.repaint.digest for one in found.trials]

    assert digests() == digests()


def test_pairs_that_are_needed_are_one_sentence():
    spots = PATCH, OTHER, (slice(40, 56), slice(40, 56))

    def all_red(images):
        return two(0.05 + 0.9 * np.prod([redness(images, *spot) for spot in spots], axis=0))

    found = explained(
        image_with(*((*spot, RED) for spot in spots)), all_red, mask_prob=0.1
    ).findings
    pairs = [claim for claim in found.claims if claim.kind == "both needed"]
    assert len(pairs) == 3  # each two of three places, once
    assert sum("Both are needed in each" in line for line in found.remarks) == 1
