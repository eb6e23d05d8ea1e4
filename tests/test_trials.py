import json

import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise.cli import cli
from mcrise.demo.signs import SIGNS
from mcrise.fills import RGBWK
from mcrise.model import as_model
from mcrise.reading import read
from mcrise.trials import (
    Stroke,
    compare,
    repaint,
    smallest_flip,
    subtract,
    try_comparison,
    try_findings,
    try_out,
    try_region,
)
from planted import Counting
from planted_reading import CENTER, SIZE, ignores_color, striped_image, two_classes, wants_red

GRAY = np.full((*SIZE, 3), 128, np.uint8)
RED = RGBWK[0]
MIDDLE = np.zeros(SIZE, bool)
MIDDLE[CENTER] = True


@pytest.fixture(scope="module")
def red_record():
    return mcrise.explain(GRAY, wants_red, n_masks=1024, labels=["yes", "no"])


@pytest.fixture(scope="module")
def washed_out():
    model = mcrise.load_model("demo")
    picture = SIGNS["washed-out-priority-road"]()
    record = mcrise.explain(picture, model, fills="rgbwk,yellow", n_masks=640, mask_prob=0.15)
    return record, model


def trial_of(expected, after, before=0.5, kind="probability"):
    """A repaint of a model that answers `after`, whatever it is shown."""
    model = as_model(lambda images: two_classes(np.full(len(images), before)), kind)
    record = mcrise.explain(GRAY, model, n_masks=64)
    answer = as_model(lambda images: two_classes(np.full(len(images), after)), kind)
    return try_out(record, answer, [[Stroke(MIDDLE, RED)]], 0, expected=[expected])[0]


@pytest.mark.parametrize(
    ("expected", "before", "after", "verdict"),
    [
        (0.1, 0.5, 0.7, "confirmed"),
        (0.1, 0.5, 0.55, "weaker"),
        (0.1, 0.5, 0.505, "refuted"),
        (0.1, 0.5, 0.2, "refuted"),
        (-0.1, 0.5, 0.2, "confirmed"),
        (0.1, 0.99, 1.0, "no room"),
        (-0.1, 0.99, 0.95, "weaker"),
        (-0.1, 0.01, 0.0, "no room"),
        (None, 0.5, 0.9, ""),
    ],
)
def test_a_finding_is_held_to_what_the_map_said(expected, before, after, verdict):
    assert trial_of(expected, after, before).verdict == verdict


def test_painting_is_whole_inside_soft_at_the_edge_and_nothing_outside(red_record):
    painted = repaint(red_record, [Stroke(MIDDLE, RED)])
    assert painted.dtype == np.uint8
    assert painted[32, 32].tolist() == [255, 0, 0]
    assert 128 < painted[32, 24, 0] < 255
    assert np.array_equal(painted[:12], GRAY[:12])


def test_a_true_finding_is_confirmed_by_one_call(red_record):
    model = Counting(wants_red)
    reading = read(red_record, "yes", "centered")
    (trial,) = try_findings(red_record, as_model(model), reading)
    assert model.n_images == 1
    assert trial.verdict == "confirmed"
    assert trial.after[0] - trial.before[0] > 2 * reading.findings[0].strongest.value
    assert trial.line(red_record).startswith("Painting all of the center with red: 'yes' 0.10 → 0.")


def test_a_finding_that_fails_its_own_test_is_shown_as_such(red_record):
    """The map is that of a model that wants red; the model asked again does not."""
    other = as_model(lambda images: two_classes(np.full(len(images), 0.1)))
    (trial,) = try_findings(red_record, other, read(red_record, "yes", "centered"))
    assert trial.verdict == "refuted"
    assert trial.line(red_record).endswith("(tried: refuted).")


def test_the_smallest_repaint_that_flips_the_decision_is_found_in_a_few_calls(red_record):
    model = Counting(wants_red)
    flip = smallest_flip(red_record, as_model(model), read(red_record, "yes", "centered"))
    assert flip.flips
    assert [stroke.fill.name for stroke in flip.strokes] == ["red"]
    assert model.n_images <= 31


def test_two_places_that_must_go_together_flip_only_together():
    left, right = (slice(24, 40), slice(4, 20)), (slice(24, 40), slice(44, 60))

    def either_will_do(images):
        red = [images[:, *place, 0].astype(float).mean((1, 2)) / 255 for place in (left, right)]
        return two_classes(0.2 + 0.4 * (red[0] + red[1]))

    image = GRAY.copy()
    image[...] = (255, 128, 128)
    record = mcrise.explain(image, either_will_do, n_masks=1024)
    reading = read(record, estimator="centered")
    assert [finding.place for finding in reading.findings[:2]] in (
        ["left part", "right part"], ["right part", "left part"],
    )  # fmt: skip
    flip = smallest_flip(record, as_model(either_will_do), reading)
    assert len(flip.strokes) == 2


def test_that_no_flip_was_found_is_said():
    record = mcrise.explain(striped_image(CENTER), ignores_color, n_masks=512)
    stubborn = as_model(lambda images: two_classes(np.full(len(images), 0.9)))
    assert smallest_flip(record, stubborn, read(record, estimator="centered")) is None


def test_a_region_of_the_wrong_size_or_without_pixels_is_refused(red_record):
    maps = red_record.maps("yes")
    with pytest.raises(mcrise.InputError, match="The region is 10 x 12 pixels, but the image"):
        try_region(red_record, as_model(wants_red), np.ones((10, 12), bool), RED, maps, "there")
    with pytest.raises(mcrise.InputError, match="empty"):
        try_region(red_record, as_model(wants_red), np.zeros(SIZE, bool), RED, maps, "there")


# ---- comparing two classes


def test_the_maps_of_a_difference_are_the_difference_of_the_maps(washed_out):
    record, _ = washed_out
    a, b = record.resolve("priority road"), record.resolve("no vehicles")
    for estimator in ("centered", "paper"):
        both = [record.maps(target, estimator).values for target in (a, b)]
        difference = subtract(record, a, b).maps(0, estimator).values
        np.testing.assert_allclose(difference, both[0] - both[1], atol=1e-5)


def test_the_standard_error_of_a_difference_covers_the_truth():
    """Nominal 95 % intervals against a run of 32 times as many masks, over pixels and seeds."""

    # Three classes that trade places: errors of the two compared are neither equal nor independent.
    def model(images):
        red, green, _ = np.moveaxis(images.astype(float) / 255, 3, 0)
        logits = np.stack(
            [4 * red[:, *CENTER].mean((1, 2)), 3 * green[:, 8:24, 8:24].mean((1, 2)),
             2 * red[:, 40:60, 40:60].mean((1, 2))], axis=1,
        )  # fmt: skip
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)

    image = np.full((*SIZE, 3), 128, np.uint8)
    long = subtract(mcrise.explain(image, model, n_masks=16384, seed=99), 0, 1).maps(0, "centered")
    inside = []
    for seed in range(6):
        short = subtract(mcrise.explain(image, model, n_masks=512, seed=seed), 0, 1).maps(
            0, "centered"
        )
        error = np.hypot(short.se, long.se)
        inside.append(np.abs(short.values - long.values) <= 1.96 * error)
    assert 0.90 <= np.mean(inside) <= 0.99


def test_the_washed_out_sign_lacks_a_color_in_its_center_and_restoring_it_helps(washed_out):
    record, model = washed_out
    comparison = compare(record, "priority road", "no vehicles", "centered")
    best = comparison.difference.findings[0]
    assert (best.place, best.kind, best.direction) == ("center", "missing color", 1)
    missing = {effect.fill.name for effect in best.effects if effect.verdict == "raises"}
    assert "yellow" in missing
    assert not missing & {"white", "blue"}  # it is white already, and blue is another sign
    trials = try_comparison(record, model, comparison)
    assert trials[0].verdict == "confirmed"
    right, wrong = (record.resolve(name) for name in ("priority road", "no vehicles"))
    assert trials[0].after[right] > trials[0].before[right] + 0.3
    assert trials[0].after[wrong] < trials[0].before[wrong]
    for trial in trials:
        if trial.verdict == "confirmed":  # it moved the way the map said
            moved = trial.score(trial.after) - trial.score(trial.before)
            assert np.sign(moved) == np.sign(trial.expected)


def test_a_class_is_not_compared_with_itself(red_record):
    with pytest.raises(mcrise.InputError, match="Both classes are 'no'"):
        compare(red_record, "no")


# ---- the commands


def run(*arguments):
    cli([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def saved(washed_out, tmp_path):
    washed_out[0].save(tmp_path / "run.npz")
    return tmp_path


def test_explain_reads_tries_and_outlines(tmp_path, capsys):
    SIGNS["stop"]().save(tmp_path / "stop.png")
    arguments = ("explain", tmp_path / "stop.png", "--model", "demo", "--n-masks", 256)
    run(*arguments)
    out = capsys.readouterr().out
    assert "Reading of 'stop'" in out
    assert "(tried: confirmed)" in out
    folder = tmp_path / "stop.png.mcrise"
    assert (folder / "regions.png").exists()
    reading = json.loads((folder / "summary.json").read_text())["maps"][0]["reading"]
    assert reading["findings"][0]["place"] == "center"
    assert reading["findings"][0]["tried"]["verdict"] == "confirmed"
    assert "more masks" in reading["not_established"]


def test_compare_names_the_missing_color_and_what_would_move_the_decision(saved, capsys):
    run("compare", saved, "--truth", "priority road")
    out = capsys.readouterr().out
    assert "Reading of 'priority road − no vehicles'" in out
    assert "yellow" in out
    assert "(tried: confirmed)" in out
    assert (saved / "compare.png").exists()


def test_whatif_tries_all_findings_one_or_the_users_own_region(saved, capsys):
    run("whatif", saved, "--target", "priority road")
    assert "Smallest repaint found that changes the decision" in capsys.readouterr().out
    run("whatif", saved, "--target", "priority road", "--paint", "yellow", "--region", 1, "--json")
    trial = json.loads(capsys.readouterr().out)["trials"][0]
    assert trial["after"] > trial["before"]
    assert len(trial["scores"]) >= 5
    mask = np.zeros((96, 96), np.uint8)
    mask[30:66, 30:66] = 255
    Image.fromarray(mask).save(saved / "mask.png")
    run("whatif", saved, "--target", "priority road", "--paint", "#f0b800", "--mask",
        saved / "mask.png")  # fmt: skip
    shown = capsys.readouterr().out
    assert "Painting all of the region of the mask with #f0b800" in shown
    assert "tried" not in shown  # no map says anything of this color


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("whatif", "--paint", "red"), "give --region or --mask"),
        (("whatif", "--region", "9"), "There is no region 9"),
        (("whatif", "--mask", "small.png", "--paint", "red"), "The region is 20 x 30 pixels"),
        (("whatif", "--mask", "small.png"), "give --paint"),
        (("whatif", "--target", "prority road"), "Did you mean 'priority road'"),
        (("compare", "--target", "stop"), "give --target twice"),
        (("compare", "--truth", "a sign"), "is not a label"),
        (("compare", "--truth", "no vehicles"), "Both classes are"),
    ],
)
def test_bad_input_gets_one_sentence(saved, monkeypatch, arguments, sentence):
    monkeypatch.chdir(saved)
    Image.new("L", (30, 20), 255).save("small.png")
    with pytest.raises(mcrise.InputError, match=sentence) as refused:
        run(arguments[0], saved, *arguments[1:])
    assert "\n" not in str(refused.value)


def test_another_model_than_that_of_the_run_is_refused(red_record, tmp_path):
    red_record.save(tmp_path / "run.npz")
    with pytest.raises(mcrise.InputError, match="give the model of the run"):
        run("whatif", tmp_path)


def test_a_record_of_another_version_is_refused(red_record, tmp_path, monkeypatch):
    monkeypatch.setattr("mcrise.record.FORMAT", 0)
    red_record.save(tmp_path / "run.npz")
    monkeypatch.undo()
    with pytest.raises(mcrise.RecordError, match="has format 0, but this mcrise reads format 1"):
        run("compare", tmp_path, "--truth", "yes")
