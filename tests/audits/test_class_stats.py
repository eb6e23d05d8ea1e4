"""Statistics, findings, figures and sentences of audits, on images with planted answers."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from mcrise.audits import confirmation, stats
from mcrise.audits.background import background_finding
from mcrise.audits.class_data import RASTER
from mcrise.audits.class_stats import (
    AuditStats,
    exceeds,
    make_stats,
    read_stats,
    with_findings,
    write_stats,
)
from mcrise.audits.confirmation import ConfirmationAnswer, half_of, regions_to_try
from mcrise.audits.outliers import find_unlike
from mcrise.audits.stats import Estimate
from mcrise.audits.summary import five_sentences, summary
from mcrise.batch.storage import Storage
from mcrise.colors import BASICS
from mcrise.estimators.averages import centered, contrast
from mcrise.masks import Plan
from planted import estimated, every_mask
from planted_audit import (
    ASKED,
    FILLS,
    make_basis,
    make_looks,
    masks_of,
    measured,
    plan_of,
    some_population,
)

YELLOW = (240, 200, 20)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def bases():
    return [make_basis(seed) for seed in range(24)]


@pytest.fixture(scope="module")
def planted(bases):
    """A class with presence above the middle and color below it."""
    return measured(bases, some_population(spread=0.2).draw(bases, rng(1)))


@pytest.fixture(scope="module")
def noise(bases):
    """A class that depends on nothing."""
    return measured(bases, rng(2).random((24, 64)), target=1)


def patch_maps(region, effects, n=24, seed=0, noise=0.01):
    """Maps of images that all depend on one region: effects by fill, and noise of places."""
    maps = noise * rng(seed).standard_normal((n, len(FILLS), RASTER, RASTER))
    maps[:, :, region] += np.array(effects)[None, :, None]
    return maps


def corner():
    region = np.zeros((RASTER, RASTER), bool)
    region[22:29, 22:29] = True
    return region


# ---- statistics


def test_a_mean_has_the_interval_of_a_t_test():
    from scipy.stats import t

    values = rng().random(9)
    figure = stats.mean(values, np.arange(9))
    low, high = t.interval(0.95, 8, values.mean(), values.std(ddof=1) / 3)
    assert (figure.value, figure.low, figure.high) == pytest.approx((values.mean(), low, high))
    assert figure.n == 9


def test_images_of_a_group_count_as_one():
    values = rng().random(9)
    alone = stats.mean(values, np.arange(9))
    thrice = stats.mean(values.repeat(3), np.arange(9).repeat(3))
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx(
        (alone.value, alone.low, alone.high)
    )
    assert thrice.n == 27


def test_at_the_ends_of_a_ratio_a_t_test_just_rejects():
    from scipy.stats import ttest_1samp

    above, below = rng().random(15), 1 + rng(1).random(15)
    figure = stats.ratio(above, below, np.arange(15))
    assert figure.value == pytest.approx(above.sum() / below.sum())
    for end in (figure.low, figure.high):
        assert ttest_1samp(above - end * below, 0).pvalue == pytest.approx(0.05)


def test_a_share_of_what_may_be_nothing_may_be_anything():
    below = rng(3).standard_normal(12)
    below += 0.1 - below.mean()  # positive, and far from sure to be
    figure = stats.ratio(0.5 * below, below, np.arange(12), (0.0, 1.0))
    assert (figure.value, figure.low, figure.high) == (0.5, 0.0, 1.0)
    assert stats.ratio(below, -np.ones(12), np.arange(12)) is None


@pytest.mark.parametrize("hits", [np.ones(20, bool), np.arange(20) < 15])
def test_a_share_has_the_exact_interval(hits):
    from scipy.stats import binomtest

    figure = stats.share(hits, np.arange(20))
    want = binomtest(int(hits.sum()), 20).proportion_ci(method="exact")
    assert (figure.low, figure.high) == pytest.approx((want.low, want.high), abs=1e-4)


def test_a_share_of_groups_that_agree_is_as_sure_as_their_number():
    hits = np.arange(30) < 20
    alone, groups = stats.share(hits, np.arange(30)), np.arange(150) // 5
    repeated = stats.share(hits.repeat(5), groups)
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))
    assert (repeated.n, repeated.n_groups) == (150, 30)


@pytest.mark.parametrize(
    "sizes",
    [
        [20, 20] + [1] * 10,  # where the two agree, sums of groups seem to vary little
        [30] + [1] * 11,
        [50, 1, 1, 1],
        [10] * 6 + [1] * 30,
        [10] * 5,
        [1] * 12,
    ],
)
def test_the_interval_of_a_share_covers_it_whatever_the_groups_are_like(sizes):
    chance, group = rng(5), np.repeat(np.arange(len(sizes)), sizes)
    for true in (0.1, 0.5, 0.9):
        for n_drawn, place in ((len(sizes), group), (len(group), np.arange(len(group)))):
            drawn = chance.random((250, n_drawn)) < true  # alike in groups, or independent
            figures = [stats.share(hits[place], group) for hits in drawn]
            assert np.mean([one.low <= true <= one.high for one in figures]) >= 0.93


def test_disagreement_within_groups_makes_a_share_surer():
    """Six groups of ten: all alike they are six images, independent not quite sixty."""
    group, halves = np.arange(60) // 10, np.arange(60) % 2 == 0
    width = [one.high - one.low for one in (
        stats.share(np.arange(60) < 30, group), stats.share(halves, group),
        stats.share(halves, np.arange(60)),
    )]  # fmt: skip
    assert width[0] > 2 * width[1]
    assert width[2] < width[1] < 1.5 * width[2]


def test_one_image_says_nothing_of_how_sure_its_mean_is():
    figure = stats.mean(np.array([0.3]), np.array([7]))
    assert figure.value == 0.3
    assert math.isnan(figure.low)
    assert stats.mean(np.array([np.nan]), np.array([7])) is None


def test_values_that_are_not_there_do_not_count():
    values = np.array([1.0, np.nan, 3.0])
    assert stats.mean(values, np.arange(3)).n == 2
    assert stats.mean(values, np.arange(3)).value == 2


def test_z_is_as_rare_as_the_t_of_a_place():
    from scipy.stats import norm, ttest_1samp

    maps = rng().standard_normal((14, 1, 3, 3)) + 0.5
    z = stats.z_maps(maps, np.arange(14))
    t = ttest_1samp(maps, 0, axis=0)
    np.testing.assert_allclose(2 * norm.sf(np.abs(z)), t.pvalue, rtol=1e-4)
    assert (np.sign(z) == np.sign(t.statistic)).all()


def test_flips_know_what_all_patterns_of_signs_would_show():
    """With four groups there are sixteen patterns; flips show no other values, and all of these."""
    maps, group = rng().standard_normal((4, 2, 2, 2)), np.arange(4)
    every = {
        round(float(np.abs(stats.z_maps(maps * np.reshape(signs, (4, 1, 1, 1)), group)).max()), 4)
        for signs in itertools.product((-1, 1), repeat=4)
    }
    shown = stats.largest_by_flips(maps, group, (0,), 400)
    assert {round(float(z), 4) for z in shown} == every
    assert shown[0] == pytest.approx(np.abs(stats.z_maps(maps, group)).max(), rel=1e-5)


def test_a_group_keeps_its_signs_together():
    """A group of twins is flipped as one: z is that of half as many images."""
    maps = rng().standard_normal((12, 1, 4, 4))
    alone = stats.largest_by_flips(maps, np.arange(12), (0,), 50)
    twins = stats.largest_by_flips(maps.repeat(2, axis=0), np.arange(24) // 2, (0,), 50)
    np.testing.assert_allclose(twins, alone, rtol=1e-5)


# ---- pooling


def test_pooled_centered_maps_are_unbiased_however_few_the_masks():
    """The mean over all pairs of masks is what all masks tell: two an image are enough."""
    mask_prob, n_fills = 0.3, 2
    cells, chance = every_mask(2, n_fills, mask_prob)  # (9, 2) and (9,)
    scores = rng().random(len(cells))  # any black box at all
    plan = Plan((2, 2), tuple(Plan((2, 2)).fills[:n_fills]), (1, 1), mask_prob)
    fell = np.stack([cells == k for k in range(n_fills + 1)]).astype(float)  # (K + 1, 9, 2)
    truth = contrast(plan, np.einsum("knc,n,n->kc", fell, chance, scores), 0.0)
    pooled = np.zeros_like(truth)
    for one, other in itertools.product(range(len(cells)), repeat=2):
        pair = [one, other]
        means = np.einsum("knc,n->kc", fell[:, pair], centered(scores[pair])) / 2
        pooled += chance[one] * chance[other] * contrast(plan, means, 0.0)
    np.testing.assert_allclose(pooled, truth, atol=1e-12)


def test_the_planted_maps_are_the_projects_own():
    """What the planted audits compute fast is what the estimator computes."""
    scores = rng().random(64)
    values, se, _ = estimated(plan_of(3), masks_of(3), scores)
    np.testing.assert_allclose(make_basis(3).maps(scores), values, atol=1e-6)
    assert make_basis(3).errors(scores) == pytest.approx(np.sqrt(np.mean(se**2)), rel=0.1)


def test_the_mean_map_comes_near_the_closed_form(planted):
    population = some_population(spread=0.2)
    middle, error = stats.mean_maps(planted.maps, planted.group)
    off = (middle - population.mean) / error
    assert np.mean(np.abs(off) < 2) > 0.9


# ---- findings


def test_noise_has_no_finding_and_a_planted_place_has(planted, noise):
    figures = make_stats(ASKED, [planted, noise])
    stop, other = figures.classes
    assert not other.findings
    assert [(one.place, one.sign) for one in stop.findings] == [
        ("the lower part", -1),
        ("the upper part", -1),
    ]
    lower, upper = stop.findings
    assert FILLS[lower.fill] == "blue"
    assert lower.fills == (2,)  # red raises it there
    assert ", red raises it." in lower.sentence
    assert upper.fills == (0, 1, 2, 3, 4)  # one finding, not five
    assert min(one.z for one in stop.findings) > figures.threshold > 3


def test_chance_is_that_of_all_classes_together(noise):
    """The more classes, the higher what chance shows: their largest values count as one."""
    many = [replace(noise, target=target) for target in range(12)]
    alone = make_stats(ASKED, many[:1]).threshold
    assert make_stats(ASKED, many).threshold > alone + 0.3


def test_ranks_are_tested_where_there_are_any(planted, noise):
    """Ranks that say nothing find nothing, whatever the maps say."""
    silent = replace(planted, ranks=noise.ranks)
    assert make_stats(ASKED, [planted]).classes[0].findings
    assert not make_stats(ASKED, [silent]).classes[0].findings


def test_lopsided_noise_fools_scores_and_not_ranks(bases):
    """Scores that are mostly near zero, as of a class that is seldom seen."""
    largest = {"scores": [], "ranks": []}
    for seed in range(12):
        looks = measured(bases, rng(seed).beta(0.02, 1, (24, 64)))
        for name, maps in (("scores", looks.maps), ("ranks", looks.ranks)):
            largest[name].append(np.abs(stats.z_maps(maps, looks.group)).max())
    assert np.mean(largest["scores"]) > np.mean(largest["ranks"]) + 0.3


def test_a_sticker_is_the_first_finding_by_place_and_own_color():
    """All colors lower the score there; what it depends on is the yellow that is there."""
    region = corner()
    maps = patch_maps(region, [-0.3, -0.25, -0.35, -0.2, -0.3])
    maps[:, 1, 8:14, 8:14] += 0.05  # and something of less weight elsewhere
    pixels = rng().integers(0, 256, (24, RASTER, RASTER, 3), np.uint8)
    pixels[:20, region] = YELLOW
    (stop,) = make_stats(ASKED, [make_looks(maps, pixels=pixels)]).classes
    first = stop.findings[0]
    assert (first.place, first.own, first.own_share) == ("the lower right part", "yellow", 20 / 24)
    assert first.fills == (0, 1, 2, 3, 4)
    assert first.effect.value == pytest.approx(-0.35, abs=0.01)
    assert (first.region == region).mean() > 0.99
    assert "yellow in 83% of the images" in first.sentence


def test_eleven_images_are_too_few_and_it_says_how_many_are_needed():
    maps = patch_maps(corner(), [-0.3] * 5, n=11)
    (stop,) = make_stats(ASKED, [make_looks(maps)]).classes
    assert stop.findings == ()
    assert stop.too_few == "Too few images: 11 images, and 12 are needed (1 more)."
    assert regions_to_try(make_looks(maps), ASKED, 0) == []
    frames = make_looks(patch_maps(corner(), [-0.3] * 5), group=np.arange(24) // 8)
    assert make_stats(ASKED, [frames]).classes[0].too_few == (
        "Too few images: 24 in 3 groups, and images of 12 groups are needed (9 more)."
    )


# ---- confirming


def test_halves_keep_groups_whole_and_are_equal():
    group = np.array([5, 5, 9, 9, 9, 2, 7, 7])
    half = half_of(group, 0)
    assert all(len(set(half[group == code])) == 1 for code in group)
    assert sorted(np.bincount(half_of(np.arange(20), 3))) == [10, 10]


def test_what_is_fresh_to_a_region_are_the_images_that_it_was_not_found_in():
    """The patch is to the left in one half of the images and to the right in the other."""
    left, right = np.zeros((2, RASTER, RASTER), bool)
    left[10:18, 8:16], right[10:18, 14:22] = True, True
    half = half_of(np.arange(24), 0)
    maps = 0.001 * rng().standard_normal((24, 5, RASTER, RASTER))
    maps[half == 0] -= 0.3 * left
    maps[half == 1] -= 0.3 * right
    to_try = regions_to_try(make_looks(maps), ASKED, 0)
    assert {one.image for one in to_try} == set(range(24))
    for one in to_try:
        np.testing.assert_array_equal(one.region, right if one.found_in else left)
        assert one.fresh == (half[one.image] != one.found_in)
        assert len(one.controls) >= confirmation.FEWEST_PLACES
        assert all((place & one.region).sum() <= 0.25 * one.region.sum() for place in one.controls)


def tried(change, control, flips=False, seen=(-0.4, 0.0)):
    """A class that depends on a corner, and a model that moves by so much, there and elsewhere.

    `seen` is how it moves in the images that a region was found in.
    """
    maps = patch_maps(corner(), [-0.1] * 5)
    other = half_of(np.arange(24), 0) == 1
    maps[other] = np.roll(maps[other], -1, axis=-1)  # so that each half has a region of its own
    looks = make_looks(maps, group=np.arange(24))
    noise = 0.02 * rng(5).standard_normal((24, 20))
    answers = {}
    for one in regions_to_try(looks, ASKED, 0):
        here, there = (change, control) if one.fresh else seen
        answers[one.image, one.key] = ConfirmationAnswer(
            0.8,
            0.8 + here + noise[one.image, 0],
            1 if flips else 0,
            tuple(0.8 + there + noise[one.image, 1 : 1 + len(one.controls)]),
        )
    (stop,) = make_stats(ASKED, [looks], answers).classes
    return stop


@pytest.mark.parametrize(
    ("change", "control", "verdict"),
    [
        (-0.4, 0.0, "confirmed"),
        (-0.4, -0.4, "not specific"),
        (0.4, 0.0, "not confirmed"),  # it moves, but the other way
        (0.0, 0.0, "not confirmed"),
        (-0.06, 0.0, "not confirmed"),  # as found, but by less than a tenth of 0.8
    ],
)
def test_a_finding_is_confirmed_if_it_moves_the_score_as_found_and_the_same_elsewhere_does_not(
    change, control, verdict
):
    found = tried(change, control, flips=True).findings[0]
    assert found.verdict == verdict
    assert found.change.value == pytest.approx(change, abs=0.02)
    assert found.change.n == 24
    assert found.flipped.value == 1
    assert found.control.value == pytest.approx(control, abs=0.02)


def test_what_is_drawn_is_what_was_painted():
    """In either half, though all images together would show another region."""
    found = tried(-0.4, 0.0).findings[0]
    painted = corner() | np.roll(corner(), -1, axis=-1)
    np.testing.assert_array_equal(found.region, painted)
    assert found.effect.value == pytest.approx(-0.1 * corner().sum() / painted.sum(), rel=0.1)


@pytest.mark.parametrize("seen", [(0.0, 0.0), (-0.4, -0.4), (0.4, 0.0)])
def test_what_the_images_it_was_found_in_do_not_bear_out_is_no_finding(seen):
    """However it does in the others: those are asked only of what was found."""
    stop = tried(-0.4, 0.0, seen=seen)
    assert stop.findings == ()
    assert [one.verdict for one in stop.under_masks] == ["under masks only"]
    assert (
        "does not do significantly more than the same patch elsewhere"
        in stop.under_masks[0].sentence
    )


def test_a_patch_like_any_other_is_hardly_ever_confirmed():
    """The same noise here and in all other places."""
    looks = make_looks(patch_maps(corner(), [-0.1] * 5))
    to_try = regions_to_try(looks, ASKED, 0)
    confirmed = 0
    for seed in range(200):
        there = -0.1 + 0.1 * rng(seed).standard_normal((24, 20))  # all move, none by more
        here = {one: 0.8 + there[one] for one in range(24)}
        answers = {
            (one.image, one.key): ConfirmationAnswer(
                0.8, here[one.image][0], 0, tuple(here[one.image][1:])
            )
            for one in to_try
        }
        confirmed += confirm(looks, to_try, answers).verdict == "confirmed"
    assert confirmed <= 10  # 5%


def test_what_raises_a_score_that_is_at_the_top_has_no_room():
    looks = make_looks(patch_maps(corner(), [0.1] * 5))
    to_try = regions_to_try(looks, ASKED, 0)
    answers = {
        (one.image, one.key): ConfirmationAnswer(0.99, 0.99, 0, (0.99,) * 9) for one in to_try
    }
    assert confirm(looks, to_try, answers).verdict == "no room"
    assert confirmation.confirm(looks, to_try, answers, "any").verdict == "not confirmed"  # no top


def confirm(looks, to_try, answers):
    return confirmation.confirm(looks, to_try, answers, "probability")


def test_images_are_tried_of_as_many_groups_as_there_are():
    """Ten long tracks and two of a single frame: these count as much as the others."""
    group = np.array([*np.arange(10).repeat(12), 10, 11])
    looks = make_looks(patch_maps(corner(), [-0.1] * 5, n=122), group=group)
    for seed in range(20):
        half = half_of(group, seed)
        for side in (0, 1):
            images = confirmation.tried_images(looks, half == side, seed)
            assert len(images) == confirmation.MAX_TRIED
            assert set(group[images]) == set(group[half == side])


def test_of_a_place_that_moves_the_score_both_ways_the_larger_way_is_tried():
    """White raises it a little and surely, black lowers it a lot and less surely."""
    maps = patch_maps(corner(), [0, 0, 0, 0.05, 0])
    strong = rng(3).standard_normal((24, 1))
    maps[:, 4, corner()] -= 0.5 + 0.4 * strong
    looks = make_looks(maps)
    assert {(one.fill, one.sign) for one in regions_to_try(looks, ASKED, 0)} == {(4, -1)}


@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_what_is_a_small_change_of_any_score_is_not_told_by_where_its_zero_is(shift):
    """The corner moves it by 0.05, and other places by 6: logits that are shifted say the same."""
    looks = make_looks(patch_maps(corner(), [-0.1] * 5))
    to_try = regions_to_try(looks, ASKED, 0)
    noise = 0.001 * rng(4).standard_normal(24)
    said = [
        ConfirmationAnswer(shift, shift - 0.05 + noise[one.image], 0, (shift,) * 9)
        for one in to_try
    ]
    answers = {(one.image, one.key): answer for one, answer in zip(to_try, said, strict=True)}
    assert confirmation.confirm(looks, to_try, answers, "any").verdict == "confirmed"
    answers[0, "elsewhere"] = ConfirmationAnswer(shift, shift - 6, 1, ())
    assert confirmation.confirm(looks, to_try, answers, "any").verdict == "not confirmed"


# ---- what lies outside, painted as a whole


def outside(changes, own=0.0, n=24, target=0, seed=0):
    """A class that maps show nothing of, and what painting its green background comes to."""
    moved = 0.02 * rng(seed).standard_normal((n, len(FILLS) + 2))
    moved += np.array([*changes, own, 0.0])  # the last is untouched
    rim = np.ones((RASTER, RASTER), bool)
    rim[4:-4, 4:-4] = False
    pixels = np.full((n, RASTER, RASTER, 3), 128, np.uint8)
    pixels[:, rim] = (20, 180, 30)
    return make_looks(
        0.01 * rng(seed).standard_normal((n, len(FILLS), RASTER, RASTER)),
        target,
        pixels=pixels,
        background_zone=("background",) * n,
        background_score=0.8 + moved,
        background_prediction=np.where(moved < -0.4, 1 - target, target),
        background_region=np.broadcast_to(rim, (n, RASTER, RASTER)),
    )


def test_a_background_that_decides_is_a_finding_though_no_part_of_it_is():
    looks = outside([-0.7, 0.0, -0.6, -0.5, -0.5])
    (stop,) = make_stats(ASKED, [looks], {}).classes
    (found,) = stop.findings
    assert (found.place, found.own, found.verdict) == ("the whole background", "green", "confirmed")
    assert found.painted == (0,)
    assert found.change.value == pytest.approx(-0.7, abs=0.02)
    assert (found.flipped.value, found.flipped.n) == (1, 24)
    assert found.sentence.endswith("its color matters.")
    assert stop.background.flipped["green"].value == 0
    assert stop.background.flip_rate.value == 1  # some color does
    told = five_sentences(ASKED, make_stats(ASKED, [looks], {}))
    assert "in the color that changes most (red) changes 100% [86, 100] of decisions" in told[2]


def test_what_its_mean_color_changes_too_is_not_its_color_alone():
    (stop,) = make_stats(ASKED, [outside([-0.7] * 5, own=-0.6)], {}).classes
    assert stop.findings[0].sentence.endswith("what it shows matters, not its color alone.")


def test_a_background_that_moves_the_score_and_no_decision_is_none():
    (stop,) = make_stats(ASKED, [outside([-0.3] * 5)], {}).classes
    assert stop.findings == ()
    assert stop.background.change["red"].excludes_zero  # the table has it all the same


def test_a_background_that_one_color_raises_and_another_lowers_is_a_finding():
    for seed in range(20):
        found = background_finding(outside([0.5, -0.5, 0.0, 0.0, 0.0], seed=seed), ASKED, 0)
        assert (found.sign, found.painted) == (-1, (1,))


def test_half_of_a_score_that_is_next_to_nothing_is_no_finding():
    looks = outside([-0.008] * 5)
    small = replace(
        looks, background_score=np.full((24, 7), 0.002), background_prediction=np.ones((24, 7), int)
    )
    small.background_score[:, -1] = 0.01
    assert background_finding(small, ASKED, 0) is None


def test_a_model_that_answers_at_random_depends_on_nothing_outside():
    """Its prediction is the larger of two draws, so that any other draw is smaller on average."""
    n_found = 0
    for seed in range(40):
        drawn = rng(seed).random((24, 7))
        looks = replace(outside([0.0] * 5), score=rng(seed).uniform(0.5, 1, 24),
                        background_score=drawn,
                        background_prediction=(drawn < 0.5).astype(int))  # fmt: skip
        found = background_finding(looks, ASKED, 0)
        n_found += found is not None and exceeds(found, math.inf, 1)
    assert n_found <= 5


def test_noise_outside_is_a_finding_in_one_audit_of_twenty():
    """Of 20 classes together; scores that jump about, whatever is painted."""
    n_found = 0
    for seed in range(40):
        looks = [outside([0.0] * 5, n=12, seed=1000 * seed + k) for k in range(20)]
        wild = [
            replace(one, background_score=0.8 + 25 * (one.background_score - 0.8)) for one in looks
        ]
        found = [one for some in wild if (one := background_finding(some, ASKED, 0))]
        n_found += any(exceeds(one, math.inf, len(wild)) for one in found)
    assert n_found <= 5  # two are expected


# ---- figures


def test_color_share_is_the_planted_one(bases):
    """Over many images; presence and color are energies, so noise adds to neither."""
    population, scores = some_population(spread=0.1), []
    many = bases * 4
    scores = population.draw(many, rng(7))
    figure = make_stats(ASKED, [measured(many, scores)]).classes[0].color_share
    assert figure.low < population.color_share < figure.high
    assert figure.high - figure.low < 0.35


def test_zones_that_partition_the_image_have_shares_of_one(planted):
    (stop,) = make_stats(ASKED, [planted]).classes
    assert stop.zones["upper half"].value + stop.zones["background"].value == pytest.approx(1)
    assert (
        stop.zone_effect["background"]["blue"].high < 0 < stop.zone_effect["background"]["red"].low
    )


def test_one_fill_cannot_tell_color_from_presence():
    asked = replace(ASKED, fills=("red",))
    maps = patch_maps(corner(), [-0.3] * 5)[:, :1]
    looks = make_looks(maps, zone_effect=np.zeros((24, 2, 1)),
                       color_area_effect=np.full((24, len(BASICS), 1), np.nan))  # fmt: skip
    figures = make_stats(asked, [looks])
    assert figures.classes[0].color_share is None
    assert five_sentences(asked, figures)[1].startswith("With red alone, effects of color ")


def test_many_figures_of_few_groups_need_intervals_of_few_groups():
    """Of 20 that are nothing, one excludes zero in one case of twenty, images in groups or not."""
    group = np.arange(120) // 20
    wrong = 0
    for seed in range(200):
        effects = rng(seed).standard_normal((20, 6))[:, group]  # all that groups differ in
        figures = [stats.mean(one, group) for one in effects]
        wrong += any(stats.bonferroni(one, 20).excludes_zero for one in figures)
    assert wrong <= 20  # ten are expected; by images instead of groups it were 40


def test_own_color_counts_images_that_have_it():
    share, effect = np.zeros((20, len(BASICS))), np.full((20, len(BASICS), 5), np.nan)
    red = BASICS.index("red")
    share[:12, red], effect[:12, red] = 0.2, -0.1
    share[12:, red], effect[12:, red] = 0.001, 5.0  # a few pixels do not count
    effect[:12, red, 2] = -0.2
    looks = make_looks(
        patch_maps(corner(), [0] * 5, n=20), color_area=share, color_area_effect=effect
    )
    (stop,) = make_stats(ASKED, [looks]).classes
    assert set(stop.color_area_effect) == {"red"}
    assert stop.color_area_effect["red"]["blue"].value == pytest.approx(-0.2)
    assert stop.color_area_effect["red"]["blue"].n == 12


def test_accuracies_are_of_images_whose_truth_is_known():
    maps = patch_maps(corner(), [0] * 5, n=8)
    truth = np.array([0] * 6 + [-1] * 2)
    predicted = np.array([0, 0, 0, 0, 0, 1, 0, 0])
    gray = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    looks = make_looks(maps, truth=truth, predicted=predicted, gray=gray, hue120=-np.ones(8, int))
    (stop,) = make_stats(ASKED, [looks]).classes
    assert (stop.accuracy.value, stop.accuracy.n) == (pytest.approx(5 / 6), 6)
    assert (stop.accuracy_gray.value, stop.accuracy_gray.n) == (0.5, 6)
    assert stop.accuracy_hue120 is None
    unknown = replace(looks, truth=np.full(8, -1), predicted=np.zeros(8, int))
    (stop,) = make_stats(ASKED, [unknown]).classes
    assert stop.accuracy is None
    assert stop.accuracy_gray.value == 3 / 8


def test_mistakes_are_counted_by_what_rights_them():
    righted = ("missing color", "brightness", "missing color", None) + (None,) * 4
    predicted = np.array([1, 1, 1, 1, 0, 0, 0, 0])
    looks = make_looks(
        patch_maps(corner(), [0] * 5, n=8), predicted=predicted, corrected_by=righted
    )
    (stop,) = make_stats(ASKED, [looks]).classes
    assert stop.mistakes == {"wrong": 4, "corrected": 3, "brightness": 1, "missing color": 2}


def test_overall_is_over_all_images(planted, noise):
    figures = make_stats(ASKED, [planted, noise])
    both = np.concatenate([planted.maps, noise.maps])
    middle, error = stats.mean_maps(both, np.arange(48))
    np.testing.assert_allclose(figures.overall.mean, middle, atol=1e-6)
    np.testing.assert_allclose(figures.overall.error, error, rtol=1e-3, atol=1e-7)
    assert figures.overall.n == 48
    assert figures.overall.color_share.n == 48


def test_figures_come_back_from_json(planted, noise, tmp_path):
    alone = make_looks(patch_maps(corner(), [0] * 5, n=1), target=2)  # its intervals are NaN
    looks = replace(noise, maps=noise.maps + 5 * (noise.image == 1003)[:, None, None, None])
    figures = make_stats(ASKED, [planted, looks, alone])
    assert figures.classes[1].outliers
    write_stats(Storage(tmp_path), figures)
    again = read_stats(Storage(tmp_path))
    assert again.to_json() == figures.to_json()
    assert again.classes[0] == figures.classes[0]
    assert math.isnan(again.classes[2].zone_effect["background"]["red"].low)
    assert json.loads((tmp_path / "figures.json").read_text(), parse_constant=pytest.fail)


# ---- unlike


def test_the_image_that_depends_on_something_else_is_unlike_the_others():
    maps = patch_maps(~corner(), [-0.1] * 5) * (1 + 0.1 * rng().random((24, 1, 1, 1)))
    maps[6, 1, corner()] += 0.2  # green, where nothing matters to the others
    (first, *more) = find_unlike(make_looks(maps), ASKED)
    assert first.image == 6
    assert (FILLS[first.fill], first.place) == ("green", "the lower right part")
    assert first.sentence == (
        "0-6.png: under random masks, green on the lower right part raises 'stop' by 0.2, in the "
        "others of its class it leaves it as it is."
    )
    assert not more


def test_an_image_is_not_unlike_for_its_noise(bases):
    """One image has five times the noise of the others, and its errors say so."""
    scores = 0.1 * rng(4).standard_normal((24, 64))
    scores[5] *= 5
    looks = measured(bases, scores)
    assert find_unlike(looks, ASKED) == ()
    silent = replace(looks, errors=np.full_like(looks.errors, np.median(looks.errors)))
    assert [one.image for one in find_unlike(silent, ASKED)] == [5]


def test_an_image_is_not_unlike_because_no_mask_flipped_its_score(bases):
    """One picture 24 times, and a model that says 0 where much of the middle is blue, else 1."""
    blue = np.stack([basis.painted[:, 2, 12:20, 12:20].mean(axis=(1, 2)) for basis in bases])
    scores = (blue <= np.quantile(blue, 0.98)).astype(float)
    looks = measured(bases, scores)
    assert (scores == 1).all(axis=1).any()  # so by its own masks it depends on nothing, for sure
    assert (looks.errors == 0).all(axis=(1, 2, 3)).any()
    assert find_unlike(looks, ASKED) == ()


# ---- sentences


def test_all_figures_begin_with_five_sentences(planted, noise):
    lines = summary(ASKED, make_stats(ASKED, [planted, noise]))
    lines = lines[lines.index("## All figures") :]
    assert [line[:3] for line in lines[2:7]] == ["1. ", "2. ", "3. ", "4. ", "5. "]
    assert all(line.endswith(".") for line in lines[2:7])
    assert "right on 100% [93, 100] of 48 images" in lines[2]
    assert "most in 'stop'" in lines[3]
    assert "outside of the object (48 images)" in lines[4]
    assert "2 findings in 1 of 2 classes are significant, and not tested yet" in lines[5]
    assert "'stop' may depend on " in lines[5]  # untried, so nobody knows
    assert "none of 48 images is decided wrongly" in lines[6]


def test_sentences_are_true_of_an_audit_that_has_nothing_to_show():
    maps = 0.0 * patch_maps(corner(), [0] * 5, n=14)
    looks = make_looks(maps, truth=np.full(14, -1), gray=np.full(14, -1), hue120=np.full(14, -1),
                       hue240=np.full(14, -1))  # fmt: skip
    asked = replace(ASKED, zones=())
    looks = replace(looks, zone_energy=np.zeros((14, 0)), zone_effect=np.zeros((14, 0, 5)))
    assert five_sentences(asked, make_stats(asked, [looks])) == [
        "The true classes of these 14 images are not known, so neither is how often the model is "
        "right.",
        "Over 14 images no color or place has a significant effect, so the share of color is not "
        "known.",
        "Effects outside of the object were not measured in these 14 images.",
        "In none of 1 class does any color at any place move the score by more than chance would "
        "over 14 images.",
        "No image of 14 is decided unlike the rest of its class. No true labels were given, so "
        "mistakes cannot be counted.",
    ]


def test_sentences_are_true_of_one_image():
    figures = make_stats(ASKED, [make_looks(patch_maps(corner(), [-0.1] * 5, n=1))])
    told = five_sentences(ASKED, figures)
    assert told[0].startswith("The model is right on 100% [3, 100] of 1 image")
    assert told[4].startswith("No class has enough images to look for outliers")
    assert (
        told[3]
        == "No class has enough images for findings over images (1 class had too few images)."
    )
    assert "nan" not in " ".join(summary(ASKED, figures))


def test_a_model_that_depends_on_nothing_was_painted_outside_all_the_same():
    looks = replace(outside([0.0] * 5), presence_energy=np.zeros(24), color_energy=np.zeros(24))
    told = five_sentences(ASKED, make_stats(ASKED, [looks]))[2]
    assert told.startswith("Painting all of what lies outside of the object in the color that ")
    assert ") changes 0% [0, 14] of decisions" in told


def test_labels_mark_nothing_up_in_the_summary():
    asked = replace(ASKED, labels=("<img src=x>", "**b** [c](d)", "e\x1b[31m\u202e"))
    looks = [make_looks(patch_maps(corner(), [-0.1] * 5), target=target) for target in (0, 1, 2)]
    text = "\n".join(summary(asked, make_stats(asked, looks)))
    assert "&lt;img src=x>" in text
    assert [mark for mark in ("<img", "**b**", "](d)") if mark in text] == []
    assert "\n## &lt;img src=x>\n" in text
    assert r"| e\x1b[31m\u202e |" in text
    assert "\x1b" not in text


def test_a_place_that_does_as_much_comes_before_all_of_what_lies_outside():
    found = tried(-0.4, 0.0).findings[0]
    whole = replace(found, z=None, change=Estimate(-0.42, -0.45, -0.39, 24))
    stop = tried(-0.4, 0.0)
    assert with_findings(stop, [whole, found]).findings == (found, whole)
    whole = replace(whole, change=Estimate(-0.6, -0.65, -0.55, 24))
    assert with_findings(stop, [found, whole]).findings == (whole, found)


def test_a_confirmed_finding_heads_the_fourth_sentence():
    found = tried(-0.4, 0.0, flips=True).findings[0]
    assert found.sentence.startswith(
        "The lower right part (5% of the image): under random masks, painting "
    )
    assert "Confirmed: painted " in found.sentence
    told = "in images that it was not found on (24 images), the score falls by 0.39 [0."
    assert told in found.sentence
    assert found.sentence.endswith("; 100% of decisions change.")


def test_figures_know_what_they_exclude():
    assert Estimate(0.2, 0.1, 0.3, 5).excludes_zero
    assert Estimate(-0.2, -0.3, -0.1, 5).excludes_zero
    assert not Estimate(0.2, -0.1, 0.5, 5).excludes_zero
    assert not Estimate(0.2, math.nan, math.nan, 1).excludes_zero
    assert isinstance(
        make_stats(ASKED, [make_looks(patch_maps(corner(), [0] * 5, n=1))]), AuditStats
    )
