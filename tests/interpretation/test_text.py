"""Sentences that were refuted once, by models whose answer is known from how they are made."""

from types import SimpleNamespace

import numpy as np
import pytest
from mcrise.interpretation.counterfactuals import MOST_CALLS
from mcrise.interpretation.experiments import PlaceboControl

import mcrise
from judge import judge
from mcrise.fills import Solid
from mcrise.interpretation.regions import interpret
from mcrise.interpretation.repaints import N_PLACES
from mcrise.interpretation.text import control_words
from mcrise.interpretation.trials import (
    compare,
    counterfactual_line,
    find_counterfactual,
    try_findings,
)
from planted import Counting

RED, BLUE = (255, 0, 0), (0, 0, 255)
CENTER = slice(20, 44), slice(20, 44)
CORNERS = [(slice(y, y + 16), slice(x, x + 16)) for y in (4, 44) for x in (4, 44)]


def picture(*squares, color=RED, ground=128):
    image = np.full((64, 64, 3), ground, np.uint8)
    for square in squares:
        image[square] = color
    return image


def redness(images, square):
    part = images[:, *square].astype(np.float64).mean(axis=(1, 2)) / 255
    return np.clip(part[:, 0] - part[:, 1:].mean(axis=1), 0, 1)


def step(x):
    return 1 / (1 + np.exp(-x))


def two(score):
    return np.stack([score, 1 - score], axis=1)


def tried_of(image, model, n_masks=512, mask_prob=0.3, target=None, **options):
    explanation = mcrise.explain(image, model, n_masks=n_masks, mask_prob=mask_prob, **options)
    return explanation, try_findings(explanation, interpret(explanation, target), model)


def words(tried):
    return " ".join(tried.lines())


def any_corner(images):
    """High as long as one of four corners is red."""
    most = np.max([redness(images, corner) for corner in CORNERS], axis=0)
    return two(0.02 + 0.96 * step(20 * (most - 0.5)))


def test_four_places_of_which_one_suffices_are_not_nothing():
    image = picture(*CORNERS)
    explanation, tried = tried_of(image, any_corner, n_masks=1024, mask_prob=0.5)
    assert "None of 1, 2, 3 and 4 is needed alone, but all together" in words(tried)
    assert "Nothing here matters" not in words(tried)
    (claim,) = tried.pairs
    case = SimpleNamespace(image=image, model=any_corner, kind="corners", seed=0)
    assert judge(case, claim)
    flip = find_counterfactual(explanation, any_corner, tried)
    assert len(flip.repaint.strokes) == 4
    # Three of them alone are not what matters together: the fourth suffices.
    assert not judge(case, SimpleNamespace(**{**vars(claim), "regions": claim.regions[:3]}))


def one_score(images):
    return 5 * redness(images, CENTER)[:, None]


def test_a_single_score_has_no_decision_to_change():
    explanation, tried = tried_of(picture(CENTER), one_score, score_kind="any")
    assert "the model looks for red here" in words(tried)
    flip = find_counterfactual(explanation, one_score, tried)
    assert flip is None
    assert "no decision to change" in counterfactual_line(flip, explanation, 0)


def test_a_callable_has_the_kind_of_score_that_its_record_has():
    explanation = mcrise.explain(picture(CENTER), one_score, score_kind="any", n_masks=64)
    curves = mcrise.measure(explanation, one_score, metrics="deletion")
    assert 0 < curves["deletion"].area < 5


def test_a_class_that_is_switched_off_hides_nothing():
    def masked(images):
        score = 10 * redness(images, CENTER)
        return np.stack([score, 10 - score, np.full_like(score, -1e4)], axis=1)

    _, tried = tried_of(picture(CENTER), masked, score_kind="any")
    assert "the model looks for red here and finds it" in words(tried)


@pytest.mark.parametrize("offset", [-50, 0, 200])
def test_what_is_said_of_texture_does_not_depend_on_the_zero_of_scores(offset):
    stripes, dots = picture(), picture()
    stripes[CENTER] = np.where(np.arange(24) % 4 < 2, 255, 0)[None, :, None]
    dots[CENTER] = (
        np.random.default_rng(0).permutation(stripes[CENTER].reshape(-1, 3)).reshape(24, 24, 3)
    )

    def arrangement(images):
        part = images[:, *CENTER, 0] / 255
        return np.stack(
            [30 * part.mean(axis=1).std(axis=1) + offset, np.full(len(images), offset)], 1
        )

    def mixture(images):
        part = images[:, *CENTER, 0] / 255
        return np.stack([30 * part.std(axis=(1, 2)) + offset, np.full(len(images), offset)], 1)

    for image, model, said in (
        (stripes, arrangement, "its texture or shape matters"),
        (dots, mixture, "its mix of colors matters, not how they are arranged"),
    ):
        assert said in words(tried_of(image, model, score_kind="any")[1])


def test_hue_is_not_said_to_matter_where_brightness_does():
    luma = np.array([0.299, 0.587, 0.114])

    def dark(images):
        return two(0.02 + 0.96 * step(60 * (0.18 - (images[:, *CENTER] / 255 @ luma).mean((1, 2)))))

    _, tried = tried_of(picture(CENTER, color=BLUE), dark, fills="hue:120")
    assert tried.verdicts[0].claim("lowers")
    assert "its hue matters" not in words(tried)


def test_sharpness_is_not_said_to_matter_where_a_flat_color_does():
    patch = slice(26, 38), slice(26, 38)

    def red_patch(images):
        return two(0.02 + 0.96 * step(20 * (redness(images, patch) - 0.6)))

    image = picture(patch, ground=255)
    _, tried = tried_of(image, red_patch, fills="blur:8,gray,hue:120")
    assert tried.verdicts[0].claim("lowers")
    assert "sharpness" not in words(tried)
    assert "gray 0.0" in words(tried)  # the number of what heads the sentence


def test_nothing_matters_is_said_of_the_colors_that_were_tried_all_of_them():
    def magenta_quarter(images):
        close = np.abs(images / 255 - np.array([1, 0, 1])).max(axis=-1) < 0.1
        most = np.max(
            [close[:, y : y + 32, x : x + 32].mean((1, 2)) for y in (0, 32) for x in (0, 32)], 0
        )
        return two(0.9 - 0.85 * (most > 0.9))

    _, tried = tried_of(picture(), magenta_quarter, n_masks=64, fills="cube8")
    assert "Nothing here matters" not in words(tried)


def three_classes(images):
    """Green in the middle raises B, and C more."""
    green = redness(np.roll(images, -1, axis=-1), CENTER)
    return np.stack([0.9 - 0.8 * green, 0.05 + 0.3 * green, 0.05 + 0.5 * green], axis=1)


def test_still_is_said_only_of_what_was_decided_before():
    explanation = mcrise.explain(
        picture(), three_classes, n_masks=512, mask_prob=0.3, labels=["A", "B", "C"]
    )
    lines = " ".join(compare(explanation, "B", model=three_classes).lines(explanation))
    assert "but the model then says 'C'" in lines
    assert "still" not in lines
    assert "No repaint of these findings that was tried makes it 'B'" in lines
    decided = compare(explanation, "A", "B", model=three_classes)
    assert decided.flip is None
    assert decided.lines(explanation)[-1] == "The model says 'A' as it is."


def test_a_place_is_named_once():
    explanation = mcrise.explain(
        picture(), three_classes, n_masks=512, mask_prob=0.3, labels=["A", "B", "C"]
    )
    assert len(compare(explanation, "B", model=three_classes).suggestions) == 1


def test_what_comes_nearest_alone_may_stand_in_the_way():
    squares = {"a": CORNERS[0], "b": CORNERS[1], "c": CORNERS[2]}

    def model(images):
        a, b, c = (step(20 * (0.5 - redness(images, square))) for square in squares.values())
        either = np.maximum(b, c)
        return two(step(2.2 - 1.6 * a - 1.2 * b - 1.1 * c + 3 * a * either - b * c * (1 - a)))

    image = picture(*squares.values())
    counting = Counting(model)
    explanation, tried = tried_of(image, counting, n_masks=1024)
    n_before = counting.n_images
    flip = find_counterfactual(explanation, counting, tried)
    assert flip is not None
    assert model(flip.repaint.render(image, explanation.plan.cell)[None])[0].argmax() == 1
    assert counting.n_images - n_before <= MOST_CALLS + N_PLACES


def test_a_color_that_raises_the_score_is_not_as_good_as_the_original():
    def model(images):
        part = images[:, *CENTER].astype(float).mean(axis=(1, 2)) / 255
        return two(np.clip(0.5 + 0.42 * (part[:, 0] - part[:, 2]), 0, 1))

    _, tried = tried_of(picture(CENTER, color=(128, 128, 128)), model)
    said = words(tried)
    assert tried.verdicts[0].claim("lowers") or tried.verdicts[0].claim("raises")
    if tried.verdicts[0].claim("as good"):
        good = tried.verdicts[0].claim("as good").fills
        assert "red" not in [fill.name for fill in good], said


def painted_with(images, square, color):
    """The share of a square that has a color, nearly."""
    part = images[:, *square].astype(int)
    return (np.abs(part - np.array(color)).max(axis=-1) < 60).mean(axis=(1, 2))


GREEN = (0, 255, 0)


def test_what_moves_the_score_the_other_way_alone_is_not_too_little():
    """Red lowers it only while others are painted; green raises it alone."""
    square = slice(24, 40), slice(24, 40)

    def model(images):
        changed = np.abs(images.astype(int) - 128).max(axis=3) > 60
        changed[:, 16:48, 16:48] = False
        others = np.clip(changed.mean(axis=(1, 2)) / 0.15, 0, 1)
        red, green = (painted_with(images, square, color) for color in (RED, GREEN))
        return two(0.55 - 0.5 * red * others + 0.22 * green * (1 - others))

    _, tried = tried_of(picture(), model, n_masks=1024, target=0)
    assert "too little" not in words(tried)
    assert any(one.claim("raises") for one in tried.verdicts)


def test_only_those_are_said_to_matter_together_that_do():
    """Red on the two upper places lowers it; the third has no part in that."""
    upper = [(slice(0, 12), slice(0, 12)), (slice(0, 12), slice(52, 64))]
    lower = slice(52, 64), slice(24, 40)

    def model(images):
        changed = np.abs(images[:, 24:40].astype(int) - 128).max(axis=3) > 60
        others = np.clip(changed.mean(axis=(1, 2)) / 0.1, 0, 1)
        green = sum(np.clip(2 * painted_with(images, one, GREEN), 0, 1) for one in upper)
        red = [np.clip(2 * painted_with(images, one, RED), 0, 1) for one in (*upper, lower)]
        fallen = 0.25 * green * others + 0.6 * red[2] * others + 0.5 * red[0] * red[1]
        return two(np.clip(0.9 - fallen, 0, 1))

    image = picture()
    _, tried = tried_of(image, model, n_masks=2048, mask_prob=0.5, target=0, fills="red,green")
    case = SimpleNamespace(image=image, model=model, kind="upper", seed=0)
    assert tried.pairs
    assert all(judge(case, claim) for claim in tried.pairs)
    assert "but all together" not in words(tried)


def test_one_color_of_five_that_raises_it_does_not_say_that_its_own_is_in_the_way():
    squares = ((np.arange(24)[:, None] // 3 + np.arange(24) // 3) % 2)[..., None]
    image = picture()
    image[CENTER] = np.where(squares == 0, [160, 60, 60], [60, 60, 160])

    def model(images):
        part = images[:, *CENTER].astype(float)
        flat = 1 - np.clip(np.abs(np.diff(part, axis=2)).mean(axis=(1, 2, 3)) / 8, 0, 1)
        green = np.clip(painted_with(images, CENTER, GREEN) / 0.6, 0, 1)
        return two(0.3 + 0.06 * flat + 0.35 * green)

    _, tried = tried_of(image, model, n_masks=1024, target=0)
    assert "in the way" not in words(tried)
    assert "painting it raises the score. Painted green" in words(tried)


def test_the_place_that_refutes_a_finding_is_the_one_that_is_named():
    control = PlaceboControl(Solid(RED), 0.9, 0.5, (0.8, 0.85, 0.85, 0.0, 0.85), "not specific")
    assert control_words(control) == "Not specific: the same patch elsewhere gives 0.00."
    control = PlaceboControl(Solid(RED), 0.1, 0.5, (0.2, 0.6, 0.15), "not specific")
    assert control_words(control) == "Not specific: the same patch elsewhere gives 0.60."


def test_a_model_that_answers_repaints_with_other_classes_is_refused_and_nothing_kept():
    n_classes = 2

    def model(images):
        score = redness(images, CENTER)[:, None] / n_classes
        return np.hstack([score, 1 - np.repeat(score, n_classes - 1, axis=1)])

    explanation = mcrise.explain(picture(CENTER), model, n_masks=256, score_kind="independent")
    reading = interpret(explanation, 0)
    model(picture(CENTER)[None])
    n_classes = 3
    explanation.recognised = mcrise.load_model(model, score_kind="independent").predict
    with pytest.raises(mcrise.ModelError, match="3 scores per image after 2 before"):
        try_findings(explanation, reading, model)
    assert not explanation.answers
