"""What is claimed of planted models, and that nothing is claimed that a trial does not support."""

import numpy as np
import pytest

import mcrise
from judge import is_said, judge
from mcrise.fills import Solid
from mcrise.interpretation.experiments import FEWEST_PLACES, FindingContext, kept_nearby
from mcrise.interpretation.regions import interpret
from mcrise.interpretation.repaints import N_PLACES, beside, elsewhere
from mcrise.interpretation.trials import compare, try_findings
from planted import Counting
from zoo import KINDS, draw_case


def tried_case(kind, seed, n_masks=1024):
    case = draw_case(kind, seed)
    model = Counting(case.model)
    explanation = mcrise.explain(
        case.image, model, fills=case.palette, n_masks=n_masks, mask_prob=0.5, target=case.target
    )
    n_before = model.n_images
    tried = try_findings(explanation, interpret(explanation, case.target), model)
    return case, explanation, tried, model.n_images - n_before


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_claimed_is_true_and_what_is_true_is_claimed(kind):
    """By the judge's own calls; the benchmark `claims.py` counts over many seeds."""
    case, _, tried, n_trials = tried_case(kind, 0)
    assert [claim.kind for claim in tried.claims if not judge(case, claim)] == []
    assert [truth.kind for truth in case.truths if not is_said(truth, tried.claims)] == []
    assert n_trials <= 120
    assert all(len(line) < 330 for line in tried.lines())


def lines_of(kind, seed=0):
    _, _, tried, _ = tried_case(kind, seed)
    return " ".join(tried.lines())


def test_orange_without_texture_is_not_said_to_be_texture():
    assert "its color matters, not its texture" in lines_of("outside the palette")


def test_its_own_gray_suffices():
    assert "its color matters, not its texture" in lines_of("own gray")


def test_black_that_is_harmless_under_masks_and_fatal_alone_is_not_as_good_as_the_original():
    _, _, tried, _ = tried_case("ostrich", 0)
    good = [fill.name for claim in tried.claims if claim.kind == "as good" for fill in claim.fills]
    assert "black" not in good


def test_a_green_square_at_a_high_score_is_found_not_missed():
    words = lines_of("green square")
    assert "the model looks for green here and finds it" in words
    assert "misses" not in words


def test_a_difference_that_moves_while_the_wanted_class_falls_is_no_suggestion():
    case = draw_case("pool table", 0)
    explanation = mcrise.explain(case.image, case.model, n_masks=1024, mask_prob=0.5)
    comparison = compare(explanation, case.target, case.against, model=case.model)
    before = explanation.untouched[case.target]
    assert all(one.after[case.target] > before for one in comparison.suggestions)


def test_a_class_near_zero_gets_no_finding():
    _, _, tried, _ = tried_case("tiny class", 0)
    assert tried.reading.findings == ()
    assert tried.lines()[1].startswith("Nothing here matters")


# ---- the control


def test_other_places_have_the_same_shape_and_share_little_with_any_finding():
    region, other = np.zeros((60, 90), bool), np.zeros((60, 90), bool)
    region[5:20, 10:22], other[30:50, 60:80] = True, True
    region[5:9, 10:14] = False  # so that turning and mirroring it shows
    places = elsewhere(region, [other], (8, 12))
    assert len(places) == N_PLACES
    for place in places:
        assert place.sum() == region.sum()
        assert (place & region).sum() <= 0.25 * region.sum()
        assert (place & other).sum() <= 0.25 * region.sum()
    assert len({place.tobytes() for place in places}) == N_PLACES


def test_a_patch_of_most_of_the_image_fits_nowhere_else():
    region = np.zeros((60, 60), bool)
    region[5:55, 5:55] = True
    assert len(elsewhere(region, [], (8, 8))) < FEWEST_PLACES


def anywhere_red(images):
    """How much red there is, wherever: no place is special."""
    red, green, blue = np.moveaxis(images.astype(float) / 255, 3, 0)
    score = np.clip(0.9 - 4 * np.maximum(red - np.maximum(green, blue), 0).mean((1, 2)), 0.01, 1)
    return np.stack([score, 1 - score], axis=1)


def test_what_any_patch_would_do_is_not_confirmed():
    image = np.full((64, 64, 3), 128, np.uint8)
    explanation = mcrise.explain(image, anywhere_red, n_masks=2048, mask_prob=0.1, grid=4)
    tried = try_findings(explanation, interpret(explanation, 0), anywhere_red)
    assert all(not verdict.confirmed for verdict in tried.verdicts)


def test_a_region_beside_itself_is_moved_by_a_quarter_of_a_cell_and_cut_off_at_the_rim():
    region = np.zeros((16, 24), bool)
    region[0:4, 10:14] = True
    up, down, left, right = beside(region, cell=(8, 12))
    np.testing.assert_array_equal(np.argwhere(up).min(axis=0), (0, 10))
    assert up.sum() == 8  # two of four rows have left the image
    np.testing.assert_array_equal(down[2:6, 10:14], True)
    np.testing.assert_array_equal(left[0:4, 7:11], True)
    np.testing.assert_array_equal(right[0:4, 13:17], True)
    assert [one.sum() for one in (down, left, right)] == [16] * 3


def test_a_color_that_does_only_exactly_there_is_not_as_good_as_the_original():
    """Both leave the score where the finding is; black a quarter of a cell above it does not."""
    region = np.zeros((32, 32), bool)
    region[12:20, 12:20] = True
    image, red, black = np.zeros((32, 32, 3), np.uint8), Solid((255, 0, 0)), Solid((0, 0, 0))
    setting = FindingContext(
        image, (8, 8), (red, black), 0, np.array([0.9, 0.1], np.float32), 1.0, ()
    )
    asked = []

    def answer(repaint):
        (stroke,) = repaint.strokes
        asked.append(stroke)
        fatal = stroke.fill == black and stroke.region[10, 12]
        return np.array([0.2 if fatal else 0.9, 0.0])

    script, answers = kept_nearby(setting, region, [red, black]), None
    try:
        while True:
            answers = [answer(repaint) for repaint in script.send(answers)]
    except StopIteration as end:
        kept = end.value
    assert kept == [red]
    assert len(asked) == 2 + 2 + 3  # softly, above, and what is left the three other ways
