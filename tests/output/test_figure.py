"""The figure of an explanation: what it says, shows and marks, and that no text overlaps."""

from dataclasses import replace

import numpy as np
import pytest

import mcrise
from mcrise._util.text import number
from mcrise.interpretation.findings import Findings
from mcrise.output.figure import plot_explanation
from mcrise.output.figure_layout import cut, wrapped
from mcrise.output.figure_tests import Shots
from mcrise.output.plots import figure_png, hatch_chance, measured_width, place_letters, scale_for
from planted import photo
from planted_findings import ask, block, make_findings


def looks_for_red(pixels):
    """Three classes by the mean of red less blue in the upper left quarter but one."""
    height, width = pixels.shape[1:3]
    part = pixels[:, height // 4 : height // 2, width // 4 : width // 2].mean(axis=(1, 2)) / 255
    stop = 1 / (1 + np.exp(8 * (part[:, 2] - part[:, 0]) - 1))
    return np.stack([stop, 0.6 * (1 - stop), 0.4 * (1 - stop)], axis=1)


LABELS = ["stop", "yield", "no entry"]


def explained(rows, columns, fills="rgbwk"):
    return mcrise.explain(
        photo(rows, columns), mcrise.Model(looks_for_red, identity="red"), fills=fills,
        n_masks=64, mask_prob=0.3, labels=LABELS, trials=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def explanation():
    return explained(48, 48)


@pytest.fixture(scope="module")
def findings(explanation):
    size = explanation.plan.size
    return make_findings(
        explanation, looks_for_red, [block(size, 0.25, 0.25, 0.25, 0.25)],
        [block(size, 0.2, 0.2, 0.2, 0.2), block(size, 0.7, 0.7, 0.2, 0.2)],
    )  # fmt: skip


def texts(figure):
    return [text.get_text() for text in figure.texts]


def test_the_title_is_the_prediction_with_the_runner_up(explanation, findings):
    first, second = explanation.top(2)
    title, said = texts(plot_explanation(explanation, findings))[:2]
    assert title == f"The model says “stop” ({first.score:.2f}; next: “yield” {second.score:.2f})"
    assert said == findings[0].sentence


def test_an_undecided_model_is_called_undecided(explanation, findings):
    even = replace(explanation, untouched=np.float32([0.38, 0.37, 0.25]))
    title = texts(plot_explanation(even, findings))[0]
    assert title == "The model is undecided: “stop” 0.38, next “yield” 0.37"


def test_the_title_of_another_class_gives_its_score_first(explanation):
    none = Findings(2, "no entry", ())
    score = explanation.untouched[2]
    title = texts(plot_explanation(explanation, none))[0]
    assert title.startswith(f"“no entry” scores {score:.2f}. The model says “stop”")


def test_each_test_shows_its_picture_its_score_its_answer_and_a_sign(explanation, findings):
    shots = Shots(explanation, findings, explanation.maps(0))
    shown = shots.tests(findings[0])
    assert shown[0].title == "its average color"
    by_title = {shot.title: shot for shot in shown}
    asked = {trial.fill.name: trial for trial in findings[0].tests if trial.role == "color"}
    before = explanation.untouched[0]
    for name, trial in asked.items():
        shot = by_title[name]
        assert shot.score == f"{trial.scores[0]:.2f}"
        says = int(trial.scores.argmax())
        new = f"({trial.scores[says]:.2f}) " if says != explanation.untouched.argmax() else ""
        assert shot.answer == f"says {new}“{LABELS[says]}”"
        moved = float(trial.scores[0] - before)
        assert shot.change == (0 if abs(moved) <= 0.07 * before else np.sign(moved))
        painted = trial.repaint.render(explanation.view.pixels, explanation.plan.cell)
        np.testing.assert_array_equal(shot.pixels, painted)
    assert (by_title["blue"].change, by_title["blue"].decides) == (-1, True)
    assert (by_title["red"].change, by_title["red"].decides) == (1, False)
    drawn = texts(plot_explanation(explanation, findings))
    assert f"▼ {by_title['blue'].score}" in drawn
    assert f"▲ {by_title['red'].score}" in drawn
    assert any(text.startswith("= ") for text in drawn)


def test_tests_stand_below_the_maps_of_their_colors(explanation, findings):
    figure = plot_explanation(explanation, findings)
    middle = {text.get_text(): text.get_position()[0] for text in figure.texts}
    for name in ("red", "green", "blue", "white", "black"):
        assert middle[f"patch of {name}"] == middle[name]


def test_the_control_is_with_its_finding_and_the_foot_has_all_of_them_and_the_cost(explanation):
    size = explanation.plan.size
    places = [block(size, 0.25, 0.25, 0.25, 0.25), block(size, 0.5, 0.25, 0.25, 0.25)]
    found = make_findings(explanation, looks_for_red, places)
    said = "Control: the same block in 19 other places leaves 0.70; the effect is found only here."
    found = replace(found, findings=tuple(replace(one, lines=(said,)) for one in found))
    drawn = texts(plot_explanation(explanation, found))
    assert drawn.count(said) == 2
    assert "Controls (the same patch is painted in other places, too): A and B only here." in drawn
    assert f"Cost: {explanation.n_calls}." in drawn


def test_the_unpainted_image_stands_before_its_tests(explanation, findings):
    figure = plot_explanation(explanation, findings)
    at = {text.get_text(): text.get_position() for text in figure.texts}
    before, average = at["A, unpainted"], at["its average color"]
    assert before[0] < average[0]
    assert before[1] == average[1]
    assert f"{explanation.untouched[0]:.2f}" in at


def test_what_was_tried_in_vain_is_shown(explanation):
    size = explanation.plan.size
    trials = tuple(
        ask(explanation, looks_for_red, 0, block(size, 0.8, x, 0.1, 0.1), fill, "search")
        for x in (0.1, 0.8)
        for fill in explanation.plan.fills
    )
    none = Findings(0, "stop", (), trials=trials)
    drawn = texts(plot_explanation(explanation, none))
    assert drawn[1] == "None of 10 tests changed the score: no place was found."
    assert sum(text.startswith("= ") for text in drawn) == 6  # the strongest


def test_the_smallest_change_has_its_rows_and_columns(explanation, findings):
    region = block(explanation.plan.size, 0.5, 0.25, 0.25, 0.5)
    trial = ask(explanation, looks_for_red, 0, region, explanation.plan.fills[2], "counterfactual")
    drawn = texts(plot_explanation(explanation, replace(findings, counterfactual=trial)))
    words = " ".join(drawn)
    assert "rows 24-36, columns 12-36" in words
    assert "smallest change" in drawn


@pytest.mark.parametrize("n_described", [1, 5])
def test_every_letter_is_in_the_figure(explanation, n_described):
    size = explanation.plan.size
    places = [block(size, y, x, 0.3, 0.3) for y in (0, 0.2, 0.4, 0.6) for x in (0, 0.3, 0.6)]
    found = make_findings(explanation, looks_for_red, places[:n_described], places[n_described:])
    figure = plot_explanation(explanation, found)
    badges = [text.get_text() for axes in figure.axes for text in axes.texts]
    words = " ".join(texts(figure))
    for one in found:
        assert one.letter in badges
        assert f"{one.letter}, unpainted" in words or f"{one.letter} (rows" in words
    assert badges.count("A") == 1 + 5 + 1  # the image, each map, and its own row


def test_findings_beyond_three_rows_of_pictures_have_one_picture_each(explanation):
    size = explanation.plan.size
    places = [block(size, 0.25, x, 0.3, 0.3) for x in (0, 0.1, 0.2, 0.3, 0.4)]
    found = make_findings(explanation, looks_for_red, places)
    drawn = texts(plot_explanation(explanation, found))
    assert "C, unpainted" in drawn
    assert "D, unpainted" not in drawn
    assert f"D: {found[3].fill.name}" in drawn


def overlaps(figure):
    """Pairs of texts that overlap, and texts that leave the figure."""
    figure.canvas.draw()
    written = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in written if text.get_text()]
    outside = [words for words, box in boxes if box.x0 < 0 or box.x1 > figure.bbox.width
               or box.y0 < 0 or box.y1 > figure.bbox.height]  # fmt: skip
    return outside + [
        (words, other)
        for n, (words, box) in enumerate(boxes)
        for other, box2 in boxes[n + 1 :]
        if min(box.x1, box2.x1) - max(box.x0, box2.x0) > 1
        and min(box.y1, box2.y1) - max(box.y0, box2.y0) > 1
    ]


@pytest.mark.parametrize(
    ("rows", "columns", "fills"),
    [(48, 48, "rgbwk"), (24, 96, "rgbwk"), (96, 24, "rgbwk"), (8, 160, "red"), (48, 48, "cube8"),
     (48, 48, "gray"), (48, 48, "auto:12")],
)  # fmt: skip
def test_no_text_overlaps_another_or_leaves_the_figure(rows, columns, fills):
    explanation = explained(rows, columns, fills)
    long = ("a class with a very long name, longer than any column " * 3, "b" * 200, "c")
    explanation = replace(explanation, labels=long)
    size = explanation.plan.size
    places = [block(size, 0.25, 0.25, 0.3, 0.3), block(size, 0.5, 0.5, 0.4, 0.3)]
    more = [block(size, y, x, 0.3, 0.3) for y in (0, 0.3, 0.6) for x in (0, 0.3, 0.6)]
    found = make_findings(explanation, looks_for_red, places, more, closing="Not tested.")
    figure = plot_explanation(explanation, found)
    assert overlaps(figure) == []
    assert figure.bbox.width == 1400
    assert figure_png(figure)[:4] == b"\x89PNG"


def test_letters_keep_their_distance_and_stay_on_their_outlines():
    region = block((100, 100), 0.2, 0.2, 0.5, 0.5)
    spots = np.array(place_letters([region] * 5, (100, 100), 200))
    apart = np.hypot(*(spots[:, None] - spots[None]).transpose(2, 0, 1))
    assert apart[~np.eye(5, dtype=bool)].min() >= 8  # 17 pixels of 200
    assert tuple(spots[0]) == (20, 20)
    assert all(row in (20, 69) or column in (20, 69) for row, column in spots)


def test_no_text_is_too_small_to_be_read_at_900_pixels(explanation, findings):
    figure = plot_explanation(explanation, findings)
    assert min(text.get_fontsize() for text in figure.texts) >= 10  # 14 pixels of 1400


def test_stripes_mark_what_could_be_chance_and_not_what_has_no_effect(explanation):
    from matplotlib.figure import Figure

    maps = explanation.maps(0)
    values, beyond = np.zeros_like(maps.values), np.zeros(maps.values.shape, bool)
    values[:, :16], values[:, 16:32] = 0.5, 0.4
    beyond[:, :16] = True  # an effect; then what could be chance; then none
    maps = replace(maps, values=values, beyond=beyond, test=None)
    axis = Figure().subplots()
    axis.imshow(maps.image)
    hatch_chance(axis, maps, 0, scale_for([maps]))
    (stripes,) = axis.collections
    (path,) = [path for path in stripes.get_paths() if len(path.vertices)]
    rows = path.vertices[:, 1]
    assert 15 <= rows.min() <= 16
    assert 31 <= rows.max() <= 32


def test_texts_are_cut_and_wrapped_to_a_width():
    words = "Painted blue, the score falls from 0.91 to 0.10 and the model says no entry."
    for line in wrapped(words, 200, 9, 9):
        assert measured_width(line, 9) <= 200
    assert " ".join(wrapped(words, 200, 9, 9)) == words
    assert len(wrapped(words, 200, 9, 2)) == 2
    assert wrapped(words, 200, 9, 2)[-1].endswith("…")
    assert measured_width(cut(words, 120, 9), 9) <= 120


def test_scores_of_any_kind_are_written_with_three_digits():
    written = [number(score, "any") for score in (2013.44, 12.3456, 0.0015149, -3)]
    assert written == ["2,013", "12.3", "0.00151", "-3"]
    assert number(0.98765, "probability") == "0.99"
