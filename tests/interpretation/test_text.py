"""Sentences: what they say of scores is what the tests gave."""

from dataclasses import replace

import numpy as np
import pytest

import mcrise
from mcrise.fills import Gray, Solid
from mcrise.interpretation.claims import Claim
from mcrise.interpretation.findings import Control, Finding, Trial
from mcrise.interpretation.repaints import Repaint, Stroke, own_mean
from mcrise.interpretation.score_change import scale_of
from mcrise.interpretation.text import Words, headline
from planted import photo
from planted_findings import block


def says_half(pixels):
    return np.tile(np.float32([0.4, 0.35, 0.25]), (len(pixels), 1))


@pytest.fixture(scope="module")
def explanation():
    return mcrise.explain(
        photo(24, 24), mcrise.Model(says_half, identity="half"), n_masks=64, mask_prob=0.3,
        labels=["stop", "yield", "no entry"], trials=False,
    )  # fmt: skip


def found(explanation, kind, own, colors):
    """A finding: scores after its average color, and after red, green, ...; red is the first."""
    size, image, before = explanation.plan.size, explanation.view.pixels, explanation.untouched
    region = block(size, 0.25, 0.25, 0.25, 0.25)

    def trial(fill, role, score):
        scores = np.float32([score, *before[1:]])
        return Trial(Repaint((Stroke(region, fill, "the center"),)), role, scores, 0, "A")

    fills = explanation.plan.fills
    first, *rest = (trial(fill, "color", score) for fill, score in zip(fills, colors, strict=False))
    tests = (*rest, trial(own_mean(image, region), "own mean", own))
    claims = (Claim(kind, (region,), (first.fill,), 0, {}),)
    main = replace(first, role="finding")
    return Finding("A", main, float(before[0]), "stop", False, tests, claims=claims, described=True)


def words_of(explanation):
    scale = scale_of(explanation, 0)
    return Words(explanation, scale, (), explanation.maps(0), 0.1)


@pytest.mark.parametrize(
    ("own", "said"), [(0.4, "stays at 0.40"), (0.5, "rises to 0.50"), (0.2, "falls to 0.20")]
)
def test_an_average_color_keeps_a_score_only_where_it_stays(explanation, own, said):
    finding = found(explanation, "raises", own, [0.6, 0.6])
    assert words_of(explanation).own_colors(finding).endswith(f", the score {said}.")


def test_grays_are_those_as_bright_as_the_colors_that_lower_the_score(explanation):
    finding = found(explanation, "brightness", 0.4, [0.1, 0.1])
    grays = [(Solid((200, 200, 200)), 0.4), (Solid((76, 76, 76)), 0.11), (Solid((9, 9, 9)), 0.12),
             (Gray(), 0.4)]  # fmt: skip
    trials = [
        replace(finding.trial, role="gray", scores=np.float32([score, 0.3, 0.2]),
                repaint=Repaint((Stroke(finding.region, fill, "the center"),)))
        for fill, score in grays
    ]  # fmt: skip
    finding = replace(finding, tests=(*finding.tests, *trials))
    said = words_of(explanation).own_colors(finding)
    assert said.endswith("grays as bright as these colors leave 0.11 to 0.12.")


def test_every_color_that_was_tested_is_mentioned(explanation):
    finding = found(explanation, "lowers", 0.4, [0.1, 0.36, 0.38, 0.2, 0.4])
    said = words_of(explanation).other_colors(finding)
    assert said == (
        "White lowers it too (0.20); blue and black keep it (0.38 to 0.40); green leaves 0.36."
    )


def test_covering_is_said_only_where_all_that_was_painted_does_it(explanation):
    assert headline(found(explanation, "lowers", 0.1, [0.1, 0.1])) == (
        "covering it lowers the score"
    )
    for own, other in ((0.4, 0.1), (0.1, 0.4)):
        finding = found(explanation, "lowers", own, [0.1, other])
        assert headline(finding) == "red here lowers the score"


@pytest.mark.parametrize(
    ("gray", "said"),
    [
        (0.1, "its color matters, not its texture"),
        (0.39, "its texture is not needed; red here lower the score"),
    ],
)
def test_a_color_matters_only_where_a_gray_that_is_as_bright_does_not_do(explanation, gray, said):
    finding = found(explanation, "color", 0.4, [0.1, 0.1])
    (main, *_) = finding.tests
    scores = np.float32([gray, 0.3, 0.2])
    tests = (*finding.tests, replace(main, role="gray", scores=scores))
    assert headline(replace(finding, tests=tests)) == said


def test_two_scores_that_differ_look_different(explanation):
    finding = found(explanation, "lowers", 0.4, [0.398])
    assert "falls from 0.400 to 0.398" in words_of(explanation).movement(finding)


def test_the_score_of_a_new_answer_is_said(explanation):
    finding = found(explanation, "lowers", 0.4, [0.1])
    finding = replace(finding, says="yield", changes_decision=True)
    assert "the model then says 'yield' (0.35)" in words_of(explanation).movement(finding)


def test_small_scores_of_any_kind_are_not_rounded_to_nothing(explanation):
    small = replace(explanation, kind="any", untouched=np.float32([0.00164, 0.0002, 0]))
    finding = replace(found(small, "lowers", 0.00164, [0.00114]), before=0.00164)
    assert "falls from 0.00164 to 0.00114" in words_of(small).movement(finding)
    assert str(small.prediction) == "Prediction: stop 0.00164, next yield 0.0002: undecided"


def test_a_control_is_a_sentence_with_a_verdict(explanation):
    finding = found(explanation, "lowers", 0.4, [0.1])
    control = Control((finding.trial,) * 19, 0, "only here")
    assert words_of(explanation).control(replace(finding, control=control)) == (
        "Control: the same block in 19 other places leaves 0.10 (median; lowest 0.10); "
        "none of the 19 has about as large an effect."
    )


def test_a_map_and_a_trial_that_do_the_same_do_not_disagree():
    """A model that hardly moves: 0.0001 on average, 0.006 when painted."""

    def hardly(pixels):
        mean = pixels.astype(np.float32).mean(axis=(1, 2, 3)) / 255
        return np.stack([0.7 + 0.01 * mean, 0.3 - 0.01 * mean], axis=1)

    model = mcrise.Model(hardly, identity="hardly")
    explanation = mcrise.explain(photo(48, 48), model, n_masks=256, trials=24)
    findings = explanation.findings_of(0)
    assert not findings.disagrees
    assert "Nothing here matters" in str(findings)
