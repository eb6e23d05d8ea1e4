"""Asking about repaints: once, in batches, kept in the record; comparing; the commands."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import click
import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise import InputError
from mcrise.cli import cli
from mcrise.demo.signs import SIGNS
from mcrise.explanation_file import load
from mcrise.fills import RGBWK
from mcrise.interpretation.regions import interpret
from mcrise.interpretation.repaints import Repaint, Stroke
from mcrise.interpretation.trials import (
    Untried,
    ask,
    compare,
    find_counterfactual,
    intervene,
    try_findings,
)
from mcrise.output.run_folder import RunFolder, keeping_answers
from planted import Counting
from planted_reading import CENTER, SIZE, striped_image, two_classes, wants_red

GRAY = np.full((*SIZE, 3), 128, np.uint8)
RED = RGBWK[0]
MIDDLE = np.zeros(SIZE, bool)
MIDDLE[CENTER] = True


@pytest.fixture(scope="module")
def red_record():
    return mcrise.explain(GRAY, wants_red, n_masks=1024, mask_prob=0.5, labels=["yes", "no"])


@pytest.fixture(scope="module")
def washed_out():
    model = mcrise.load_model("demo")
    picture = SIGNS["washed-out-priority-road"]()
    explanation = mcrise.explain(picture, model, fills="rgbwk,yellow", n_masks=640, mask_prob=0.15)
    return explanation, model


# ---- painting and asking


def test_painting_is_whole_inside_and_nothing_outside_and_soft_only_on_request(red_record):
    stroke = Stroke(MIDDLE, RED)
    hard, soft = (Repaint((stroke,), soft).render(GRAY, (8, 8)) for soft in (False, True))
    assert (hard[MIDDLE] == (255, 0, 0)).all()
    assert (hard[~MIDDLE] == 128).all()
    assert tuple(soft[32, 32]) == (255, 0, 0)
    edge = soft[32, CENTER[1].start]
    assert 128 < edge[0] < 255
    assert tuple(soft[2, 2]) == (128, 128, 128)


def test_a_repaint_is_known_by_what_it_paints():
    repaints = [
        Repaint((Stroke(MIDDLE, RED),)),
        Repaint((Stroke(MIDDLE, RED, "another name"),)),
        Repaint((Stroke(MIDDLE, RED),), soft=True),
        Repaint((Stroke(~MIDDLE, RED),)),
        Repaint((Stroke(MIDDLE, RGBWK[1]),)),
    ]
    digests = [one.digest for one in repaints]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4


def test_what_was_asked_once_is_kept_saved_and_merged(tmp_path):
    model = Counting(wants_red)
    explanation = mcrise.explain(GRAY, model, n_masks=512, mask_prob=0.5)
    first = try_findings(explanation, interpret(explanation, 0), model)
    n_asked = model.n_images
    again = try_findings(explanation, interpret(explanation, 0), model)
    assert model.n_images == n_asked
    explanation.save(tmp_path / "run.npz")
    loaded = load(tmp_path / "run.npz")
    from_file = try_findings(loaded, interpret(loaded, 0))  # with no model at all
    assert first.lines() == again.lines() == from_file.lines()
    assert mcrise.merge([loaded, explanation]).answers.keys() == explanation.answers.keys()


def test_an_interrupted_trial_asks_only_for_what_is_missing():
    explanation = mcrise.explain(GRAY, wants_red, n_masks=512, mask_prob=0.5)
    whole = try_findings(explanation, interpret(explanation, 0), wants_red)
    lost = dict(list(explanation.answers.items())[-3:])
    for digest in lost:
        del explanation.answers[digest]
    model = Counting(wants_red)
    explanation.recognised = model
    assert try_findings(explanation, interpret(explanation, 0), model).lines() == whole.lines()
    assert model.n_images == 3


def test_without_a_model_a_finding_is_said_to_be_untried(red_record):
    explanation = mcrise.explain(GRAY, wants_red, n_masks=512, mask_prob=0.5)
    tried = try_findings(explanation, interpret(explanation, 0))
    assert tried.verdicts == (None,)
    assert "(untried)" in tried.lines()[1]
    assert tried.claims == []
    with pytest.raises(Untried):
        ask(explanation, [Repaint((Stroke(MIDDLE, RED),))], None)


def test_repaints_are_asked_in_batches_of_the_size_of_the_record():
    model = Counting(wants_red)
    explanation = mcrise.explain(GRAY, model, n_masks=512, mask_prob=0.5, batch_size=4)
    model.batches.clear()
    try_findings(explanation, interpret(explanation, 0), model)
    assert max(model.batches) == 4


def test_what_matters_is_confirmed_with_its_numbers(red_record):
    tried = try_findings(red_record, interpret(red_record, "yes"), wants_red)
    first, second = tried.lines()[1:3]
    assert "The center (" in first
    assert "the model misses red here. Painted red: 'yes' 0.10 → 0." in first
    assert "with its own mean color (#808080) 0.10" in first
    assert second.endswith("places): confirmed.")
    found = tried.to_json()["findings"][0]
    assert found["sentence"] == " ".join([first[3:], second.strip()])
    assert found["tried"]["after"]["red"] > 0.3
    assert found["tried"]["control"]["verdict"] == "confirmed"
    assert found["tried"]["control"]["places"] == 19


def test_what_is_not_established_goes_by_the_numbers_that_findings_have_when_tried(red_record):
    """Trials put findings in another order and drop some: what was said before is not kept."""
    reading = replace(interpret(red_record), pending="Not established: green in 3.")
    tried = try_findings(red_record, reading)
    assert tried.reading.pending == interpret(red_record).pending


def test_a_region_of_the_wrong_size_or_without_pixels_is_refused(red_record):
    with pytest.raises(mcrise.InputError, match="The region is 10 x 12 pixels, but the image"):
        intervene(red_record, wants_red, np.ones((10, 12), bool), RED)
    with pytest.raises(mcrise.InputError, match="The region is empty"):
        intervene(red_record, wants_red, np.zeros(SIZE, bool), RED)


def test_a_repaint_of_ones_own_has_a_control_where_that_is_wanted(red_record):
    trial = intervene(red_record, wants_red, MIDDLE, RED, "yes", control=True)
    assert trial.after[0] > trial.before[0] + 0.3
    assert trial.control.verdict == "confirmed"
    assert trial.line(red_record).startswith("Painting the region with red: 'yes' 0.10 → 0.")


# ---- what changes the decision


def test_the_smallest_repaint_that_flips_the_decision_is_found_in_a_few_calls():
    model = Counting(wants_red)
    explanation = mcrise.explain(GRAY, model, n_masks=1024, mask_prob=0.5, labels=["yes", "no"])
    tried = try_findings(explanation, interpret(explanation, "yes"), model)
    n_before = model.n_images
    flip = find_counterfactual(explanation, model, tried)
    assert flip.flips
    assert flip.repaint.share < 0.2
    assert model.n_images - n_before <= 31 + 19


def test_two_places_that_must_go_together_flip_only_together():
    """Stripes at either of two places are enough, so that both must be covered."""
    first, second = (slice(4, 20), slice(4, 20)), (slice(44, 60), slice(44, 60))
    image = striped_image(first)
    image[second] = striped_image(second)[second]
    stripes = np.where(np.arange(16) % 4 < 2, 1.0, -1.0)

    def either_will_do(images):
        gray = images.astype(float).mean(axis=3)
        seen = [
            np.clip((gray[:, *place] * stripes).mean(axis=(1, 2)) / 60, 0, 1)
            for place in (first, second)
        ]
        return two_classes(0.1 + 0.8 * np.maximum(*seen))

    explanation = mcrise.explain(image, either_will_do, n_masks=2048, mask_prob=0.5)
    tried = try_findings(explanation, interpret(explanation), either_will_do)
    flip = find_counterfactual(explanation, either_will_do, tried)
    assert len(flip.repaint.strokes) == 2
    assert any("Either of 1 and 2 suffices" in line for line in tried.lines())


def test_that_no_flip_was_found_is_said():
    stubborn = lambda images: two_classes(np.full(len(images), 0.9))  # noqa: E731
    explanation = mcrise.explain(GRAY, stubborn, n_masks=64)
    assert (
        find_counterfactual(
            explanation, stubborn, try_findings(explanation, interpret(explanation), stubborn)
        )
        is None
    )


# ---- comparing


def test_the_maps_of_a_difference_are_the_difference_of_the_maps(washed_out):
    explanation, _ = washed_out
    a, b = explanation.resolve("priority road"), explanation.resolve("no vehicles")
    for estimator in ("centered", "paper"):
        both = [explanation.maps(target, estimator).values for target in (a, b)]
        difference = explanation.maps(a, estimator, b).values
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
    long = mcrise.explain(image, model, n_masks=16384, seed=99).maps(0, "centered", 1)
    inside = []
    for seed in range(6):
        short = mcrise.explain(image, model, n_masks=512, seed=seed).maps(0, "centered", 1)
        error = np.hypot(short.se, long.se)
        inside.append(np.abs(short.values - long.values) <= 1.96 * error)
    assert 0.90 <= np.mean(inside) <= 0.99


def test_the_washed_out_sign_lacks_a_color_in_its_center_and_restoring_it_helps(washed_out):
    explanation, model = washed_out
    comparison = compare(explanation, "priority road", "no vehicles", "centered", model)
    best = comparison.suggestions[0]
    assert best.stroke.place == "the center"
    assert best.stroke.fill.name in ("yellow", "red")
    right, wrong = (explanation.resolve(name) for name in ("priority road", "no vehicles"))
    assert best.after[right] > best.before[right] + 0.3
    assert best.after[wrong] < best.before[wrong]
    assert best.reaches
    assert comparison.flip.flips


def test_the_difference_of_eight_classes_or_more_has_the_limit_of_the_smooth_maps(washed_out):
    """And is made by the regression that the record has already, not by one of its own."""
    explanation, _ = washed_out
    fitted = explanation.prepare("smooth")[0]
    reading = interpret(explanation, "priority road", against="no vehicles")
    assert explanation.prepare("smooth")[0] is fitted
    assert reading.limit < interpret(explanation, "priority road", "centered", "no vehicles").limit


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
    words = ("explain", tmp_path / "stop.png", "--model", "demo", "--n-masks", 256)
    run(*words, "--mask-prob", "0.5")
    out = capsys.readouterr().out
    assert "Reading of 'stop'" in out
    assert "Painted " in out
    folder = tmp_path / "stop.png.mcrise"
    assert (folder / "regions.png").exists()
    reading = json.loads((folder / "summary.json").read_text())["maps"][0]["reading"]
    assert reading["findings"][0]["tried"]["claims"]
    assert "more masks" in reading["not_established"]
    run("show", folder)  # asks nobody, and knows what was tried
    assert "Painted " in capsys.readouterr().out
    run(*words, "--mask-prob", "0.5", "--trials", "none", "--overwrite")
    assert "(untried)" in capsys.readouterr().out


def test_compare_names_the_missing_color_and_what_would_move_the_decision(saved, capsys):
    run("compare", saved, "--truth", "priority road")
    out = capsys.readouterr().out
    assert "Reading of 'priority road − no vehicles'" in out
    assert "yellow" in out
    assert "and the model says 'priority road'" in out
    assert "Smallest repaint found that makes it 'priority road'" in out
    assert (saved / "compare.png").exists()


def test_whatif_tries_all_findings_one_or_the_users_own_region(saved, capsys):
    run("whatif", saved, "--target", "priority road")
    assert "Smallest repaint found that makes it 'priority road'" in capsys.readouterr().out
    run("whatif", saved, "--target", "priority road", "--paint", "yellow", "--region", 1, "--json")
    trial = json.loads(capsys.readouterr().out)["trial"]
    assert trial["after"] > trial["before"]
    assert trial["control"]["verdict"]
    assert len(trial["scores"]) >= 5
    mask = np.zeros((96, 96), np.uint8)
    mask[30:66, 30:66] = 255
    Image.fromarray(mask).save(saved / "mask.png")
    run("whatif", saved, "--target", "priority road", "--paint", "#f0b800", "--mask",
        saved / "mask.png")  # fmt: skip
    assert "Painting the region of the mask with #f0b800" in capsys.readouterr().out


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
    with pytest.raises(mcrise.InputError, match="give the model with --model"):
        run("whatif", tmp_path)


def test_a_record_of_another_version_is_refused(red_record, tmp_path, monkeypatch):
    monkeypatch.setattr("mcrise.explanation_file.FORMAT", 0)
    red_record.save(tmp_path / "run.npz")
    monkeypatch.undo()
    with pytest.raises(
        mcrise.ExplanationError, match="has format 0, but this mcrise reads format 1"
    ):
        run("compare", tmp_path, "--truth", "yes")


# ---- what is kept


def test_answers_are_kept_however_trying_ends(tmp_path):
    left = [10_000]

    def model(images):
        left[0] -= len(images)
        if left[0] < 0:
            raise ValueError("no more money")
        return wants_red(images)

    known = mcrise.load_model(model)
    explanation = mcrise.explain(GRAY, known, n_masks=512, mask_prob=0.5)
    left[0] = 12
    with pytest.raises(mcrise.ModelError, match="no more money"):
        RunFolder(tmp_path).draw(explanation, ("0",), model=known)
    assert len(mcrise.load(tmp_path).answers) >= 5


def test_answers_are_saved_every_ten_seconds_while_trials_run(tmp_path, monkeypatch):
    explanation = mcrise.explain(GRAY, wants_red, n_masks=64, mask_prob=0.5)
    explanation.save(tmp_path / "run.npz")
    now = [0.0]
    monkeypatch.setattr("mcrise.interpretation.trials.time.monotonic", lambda: now[0])
    saved = []
    with keeping_answers(explanation, tmp_path):
        for row in range(1, 9):
            now[0] += 4.0  # of one answer
            region = np.zeros(SIZE, bool)
            region[:row] = True
            intervene(explanation, wants_red, region, RED)
            saved.append(len(mcrise.load(tmp_path).answers))
    assert saved == [0, 0, 3, 3, 3, 6, 6, 6]
    assert len(mcrise.load(tmp_path).answers) == 8


MORTAL = """
import os, signal
from planted_reading import wants_red

def model(images):
    n_left = int(open("left").read()) - len(images)
    if n_left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    open("left", "w").write(str(n_left))
    return wants_red(images)
"""


def test_killed_at_any_trial_the_same_command_asks_only_the_rest_and_prints_the_same(tmp_path):
    """The model ends its process, by SIGKILL, when it has answered so many images."""
    (tmp_path / "mortal.py").write_text(MORTAL)
    Image.fromarray(GRAY).save(tmp_path / "gray.png")
    paths = [os.path.dirname(os.path.dirname(__file__)), os.environ.get("PYTHONPATH", "")]
    left = tmp_path / "left"

    def explained(n_images):
        """What it printed, or None where it was killed, and how many images it has asked about."""
        left.write_text(str(n_images))
        done = subprocess.run(
            [sys.executable, "-m", "mcrise", "explain", "gray.png", "--model", "mortal:model",
             "--n-masks", "512", "--mask-prob", "0.5", "--save-every", "0", "--out", "out"],
            cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )  # fmt: skip
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.stdout if done.returncode == 0 else None, n_images - int(left.read_text())

    whole, n_whole = explained(10_000)
    before = mcrise.load(tmp_path / "out").answers
    masks = 1 + 512 + 32  # the untouched image, all masks, and a batch twice
    assert n_whole == masks + len(before)
    shutil.rmtree(tmp_path / "out")
    again = 1 + 32  # to see that it is the same model
    n_asked, n_killed, said = 0, 0, None
    budget = masks + len(before) // 4
    while said is None:
        said, n_new = explained(budget)
        n_asked += n_new
        if said is None:
            n_killed += 1
            assert len(mcrise.load(tmp_path / "out").answers) == n_asked - masks - again * (
                n_killed - 1
            )
        budget = again + len(before) // 3
    assert n_killed >= 2
    assert n_asked == n_whole + again * n_killed
    assert said == whole
    assert mcrise.load(tmp_path / "out").answers.keys() == before.keys()


def test_more_goes_into_no_other_run_and_is_painted_as_before(tmp_path, capsys):
    for name in ("a", "b"):
        picture = tmp_path / f"{name}.png"
        SIGNS["stop" if name == "a" else "no-entry"]().save(picture)
        run("explain", picture, "--model", "demo", "--n-masks", 64, "--trials", "none",
            "--out", tmp_path / name)  # fmt: skip
    before = (tmp_path / "b" / "run.npz").read_bytes()
    words = ("explain", "--resume", tmp_path / "a", "--model", "demo", "--n-masks", 128, "--trials",
             "none")  # fmt: skip
    with pytest.raises(InputError, match="another run"):
        run(*words, "--out", tmp_path / "b")
    assert (tmp_path / "b" / "run.npz").read_bytes() == before
    with pytest.raises(click.UsageError, match="painted as it was: leave --colors and --seed out"):
        run(*words, "--seed", 3, "--colors", "red")
    run(*words, "--out", tmp_path / "b", "--overwrite")
    assert mcrise.load(tmp_path / "b").n_masks == 128
