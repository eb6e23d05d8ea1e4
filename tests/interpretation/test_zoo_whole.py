"""What is planted in `zoo_whole` holds, by repaints alone."""

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import judge_whole
import zoo_whole
from judge import PREDICATES, Claim
from judge_whole import (
    ENOUGH,
    N_BLOCKS,
    PALETTE,
    STRICT,
    Saying,
    after,
    blocks,
    holds,
    is_said,
    is_true,
    lowered,
    paint,
    unmoved,
)
from mcrise.fills import RGBWK
from zoo_whole import CONTROLS, NAMED, OWN, WHOLE, draw_whole

SEEDS = (0, 1, 2)
KINDS = pytest.mark.parametrize("kind", WHOLE)


@cache
def cases(kind):
    return tuple(draw_whole(kind, seed) for seed in SEEDS)


def by_place(sayings):
    return [(one.kind, [int(r.sum()) for r in one.regions], one.fills) for one in sayings]


@KINDS
def test_what_must_be_said_is_true(kind):
    for case in cases(kind):
        assert case.sayings
        false = [one for one in case.sayings if not is_true(case, one)]
        assert not false, (case.seed, by_place(false))


@KINDS
def test_what_must_not_be_said_is_false(kind):
    for case in cases(kind):
        assert case.untrue
        true = [one for one in case.untrue if is_true(case, one)]
        assert not true, (case.seed, by_place(true))


@KINDS
def test_repaints_do_what_the_facts_say(kind):
    for case in cases(kind):
        assert case.facts or kind in CONTROLS
        wrong = [(fact.what, fact.outcome, float(after(case, fact.strokes)[0]))
                 for fact in case.facts if not holds(case, fact)]  # fmt: skip
        assert not wrong, (case.seed, wrong)


@KINDS
def test_outside_of_the_places_nothing_matters_where_it_says_so(kind):
    for case in cases(kind):
        if not case.quiet:
            continue
        places = blocks(case, n_cells=1)
        assert len(places) == N_BLOCKS
        for name in PALETTE:
            shares = after(case, *([(place, name)] for place in places))
            assert unmoved(case, shares).all(), (case.seed, name, shares)


@KINDS
def test_the_target_is_predicted_in_a_natural_range_and_the_image_small(kind):
    for case in cases(kind):
        answers = np.mean([case.model(case.image[None])[0] for _ in range(20)], axis=0)
        assert answers.argmax() == case.target
        assert 0.4 <= answers[case.target] <= 0.95
        first, second = np.sort(np.delete(answers, case.target))[:-3:-1]
        assert first > 1.2 * second
        assert all(64 <= side <= 128 for side in case.image.shape[:2])
        assert case.image.dtype == np.uint8


@KINDS
def test_a_seed_is_a_case_and_answers_are_probabilities_whatever_the_batch(kind):
    case, again = (draw_whole(kind, 1) for _ in range(2))
    np.testing.assert_array_equal(case.image, again.image)
    noise = np.random.default_rng(0).integers(0, 256, (4, *case.image.shape), np.uint8)
    images = np.concatenate([case.image[None], noise])
    answers = case.model(images)
    np.testing.assert_array_equal(answers, again.model(images))
    assert answers.shape == (5, len(case.labels))
    assert answers.min() >= 0
    np.testing.assert_allclose(answers.sum(axis=1), 1, atol=1e-5)
    one_by_one = np.concatenate([case.model(image[None]) for image in images])
    if case.jitters:
        assert np.abs(answers - one_by_one).max() > 1e-3
    else:
        np.testing.assert_allclose(answers, one_by_one, rtol=1e-3, atol=1e-6)


def test_cases_of_a_kind_differ():
    for kind in WHOLE:
        first, second, third = cases(kind)
        assert len({one.image.tobytes() for one in (first, second, third)}) == 3


def test_there_are_kinds_enough():
    assert len(NAMED) >= 7
    assert len(OWN) >= 7
    assert len(CONTROLS) == 3
    assert len(WHOLE) == len(NAMED) + len(OWN) + len(CONTROLS)
    assert all(function.__doc__ and "To say" in function.__doc__ for function in WHOLE.values())


def test_noise_has_the_size_that_is_promised():
    case = cases("noisy")[0]
    answers = case.model(np.repeat(case.image[None], 2000, axis=0))[:, case.target]
    assert 0.04 < answers.std() < 0.06


# ---- the judge


def test_every_kind_of_saying_is_true_of_a_case_and_false_of_another():
    said = {one.kind for kind in WHOLE for case in cases(kind) for one in case.sayings}
    refuted = {one.kind for kind in WHOLE for case in cases(kind) for one in case.untrue}
    assert said | {"color", "either suffices"} == set(STRICT)
    assert refuted >= set(STRICT) - {"all together", "finds color", "raises", "together"}
    case = cases("two and")[0]
    assert is_true(case, Saying("color", case.places[:1]))
    case = cases("either of four")[0]
    hidden = np.where((case.places[2] | case.places[3])[..., None], np.uint8(128), case.image)
    two_left = zoo_whole.WholeCase(**{**vars(case), "image": hidden, "places": case.places[:2]})
    fills = case.sayings[0].fills
    assert is_true(two_left, Saying("either suffices", case.places[:2], fills))


def test_a_saying_at_a_place_that_does_not_matter_is_false():
    for kind in ("veto", "two and", "checkerboard frequency", "saturation", "help and harm"):
        for case in cases(kind):
            place = blocks(case)[0]
            for saying in case.sayings:
                if len(saying.regions) == 1 and saying.kind != "as good":
                    moved = Saying(saying.kind, (place,), saying.fills)
                    assert not is_true(case, moved), (kind, case.seed, saying.kind)


def test_one_color_that_lowers_is_a_veto_and_not_a_color_that_matters():
    case = cases("veto")[0]
    (region,) = case.places
    n_lowering = lowered(case, after(case, *([(region, name)] for name in PALETTE))).sum()
    assert n_lowering == 1


def test_about_any_place_means_most_places():
    assert ENOUGH < N_BLOCKS
    case = cases("veto")[0]  # its color lowers the score in one place, so not almost anywhere
    assert not is_true(case, Saying("lowers", (), case.sayings[0].fills))


def test_strokes_are_hard_and_take_what_they_take_from_the_untouched_image():
    case = cases("two and")[0]
    first, second = case.places
    out = paint(case.image, [(first, "red"), (second, "own mean")])
    assert (out[first] == (255, 0, 0)).all()
    assert len(np.unique(out[second], axis=0)) == 1
    rest = ~(first | second)
    np.testing.assert_array_equal(out[rest], case.image[rest])
    shuffled = paint(case.image, [(first, "shuffled")], seed=3)[first]
    assert sorted(shuffled.tolist()) == sorted(case.image[first].tolist())
    with pytest.raises(ValueError, match="nothing to paint with"):
        paint(case.image, [(first, "plaid")])


def test_a_patch_of_a_frame_speaks_of_the_frame_and_a_patch_of_the_middle_does_not():
    case = cases("frame")[0]
    saying = next(one for one in case.sayings if one.kind == "finds color")
    own = [fill for fill in RGBWK if fill.name in saying.fills]
    rows, cols = case.image.shape[:2]
    edge, middle = np.zeros((rows, cols), bool), np.zeros((rows, cols), bool)
    edge[: rows // 8, : cols // 4] = True
    middle[rows // 3 : rows // 2, cols // 3 : cols // 2] = True
    assert is_said(saying, [Claim("finds color", (edge,), tuple(own), case.target)])
    assert not is_said(saying, [Claim("finds color", (middle,), tuple(own), case.target)])
    assert not is_said(saying, [Claim("structure", (edge,), tuple(own), case.target)])
    others = tuple(fill for fill in RGBWK if fill not in own)
    assert not is_said(saying, [Claim("finds color", (edge,), others, case.target)])


def test_truths_have_the_form_of_the_zoo():
    for kind in WHOLE:
        for case in cases(kind):
            assert [one.kind for one in case.truths] == [one.kind for one in case.sayings]
            for truth in case.truths:
                assert truth.kind in {*PREDICATES, "veto", "must match", "all together"}


def test_kinds_and_judge_know_nothing_of_the_explanation():
    allowed = {"mcrise.colors", "mcrise.fills"}
    for module in (zoo_whole, judge_whole):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mcrise"):
                assert node.module in allowed
