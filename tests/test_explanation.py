import json
import os
import pickle
import random
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from mcrise.demo.signs import stop
from mcrise.errors import ExplanationError, InputError
from mcrise.explanation import merge
from mcrise.explanation_file import load
from mcrise.fills import Picture, parse
from mcrise.masks import CHUNK, Plan, draw
from mcrise.sampling import iter_explain
from planted import Counting, PatchModel, explain_masks, photo

MODEL = PatchModel(slice(4, 12), slice(4, 12))


@pytest.fixture
def explanation():
    return explain_masks(photo(16, 20), MODEL, n_masks=4 * CHUNK, labels=["red", "other"])


def same(a, b):
    """Equal to the bit, maps and all."""
    return all(
        np.array_equal(a.maps(0, name).values, b.maps(0, name).values)
        and np.array_equal(a.maps(0, name).se, b.maps(0, name).se)
        for name in ("rise", "debiased", "paper", "centered")
    )


def with_chunks(explanation, chunks):
    part = replace(explanation, scores={})
    for chunk in chunks:
        part.add(chunk, explanation.scores[chunk])
    return part


def test_a_record_survives_saving(explanation, tmp_path):
    explanation.save(tmp_path / "run.npz")
    again = load(tmp_path / "run.npz")
    assert again.plan == explanation.plan
    assert again.labels == explanation.labels
    assert again.differences(explanation) == []
    assert same(again, explanation)
    assert load(tmp_path).n_masks == explanation.n_masks  # the folder will do


def test_a_picture_fill_is_saved_with_its_pixels(tmp_path):
    fills = (*parse("red,blur:2"), Picture(photo(16, 20, seed=3), "other"))
    explanation = explain_masks(photo(16, 20), MODEL, fills=fills, n_masks=CHUNK)
    explanation.save(tmp_path / "run.npz")
    assert load(tmp_path / "run.npz").plan == explanation.plan


def test_two_merged_halves_are_the_whole_to_the_bit(explanation):
    halves = [with_chunks(explanation, [2, 0]), with_chunks(explanation, [3, 1])]
    assert same(merge(halves), explanation)
    assert same(merge(halves[::-1]), explanation)
    assert same(merge([explanation]), explanation)


def test_the_order_in_which_chunks_come_changes_no_bit(explanation):
    for order in ([3, 1, 0, 2], [2, 3, 1, 0]):
        assert same(with_chunks(explanation, order), explanation)


@pytest.mark.parametrize("wrong", ["seed", "grid", "mask_prob", "fills", "image", "model"])
def test_records_of_different_runs_are_not_merged(explanation, wrong):
    changed = {"seed": 1, "grid": (4, 4), "mask_prob": 0.3, "fills": "red,green"}
    image = photo(16, 20, seed=9 if wrong == "image" else 0)
    other = explain_masks(
        image,
        (lambda images: MODEL(images)) if wrong == "model" else MODEL,
        n_masks=CHUNK,
        labels=["red", "other"],
        **{name: value for name, value in changed.items() if name == wrong},
    )
    named = {"fills": "colors"}.get(wrong, wrong)
    with pytest.raises(ExplanationError, match=named):
        merge([explanation, other])


def test_a_model_that_answers_differently_is_noticed_when_merging(explanation):
    other = with_chunks(explanation, [0, 1])
    other.add(1, 1 - explanation.scores[1])
    with pytest.raises(ExplanationError, match="chunk 1"):
        merge([explanation, other])


def tampered(explanation, path, **changes):
    """Save a record with some arrays replaced."""
    explanation.save(path)
    with np.load(path) as arrays:
        content = dict(arrays)
    meta = json.loads(content["meta"].tobytes())
    meta |= changes.pop("meta", {})
    content["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(path, **(content | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"checksums": np.zeros(4, np.uint32)}, "other masks in chunk 0"),
        ({"meta": {"mcrise_format": 2}}, "format 2"),
        ({"meta": {"plan": {}}}, "damaged"),
        ({"meta": {"kind": "magic"}}, "damaged"),
        ({"meta": {"box": [1, 2]}}, "damaged"),
        ({"image": np.zeros((3, 3, 3), np.uint8)}, "another size"),
        ({"scores": np.full((4, CHUNK, 2), np.nan, np.float32)}, "are not numbers"),
        ({"scores": np.zeros((4, 1, 2), np.float32)}, "wrong shape"),
        ({"scores": np.array([{"a": 1}], object)}, "damaged"),  # a pickle is never opened
    ],
    ids=["masks", "format", "plan", "kind", "box", "image", "nan", "shape", "pickle"],
)
def test_what_is_not_understood_is_refused(explanation, tmp_path, changes, reason):
    path = tampered(explanation, tmp_path / "run.npz", **changes)
    with pytest.raises(ExplanationError, match=reason):
        load(path)


@pytest.mark.parametrize("cut", [0, 10, 1000, -30])
def test_a_damaged_file_is_refused(explanation, tmp_path, cut):
    explanation.save(tmp_path / "run.npz")
    whole = (tmp_path / "run.npz").read_bytes()
    (tmp_path / "run.npz").write_bytes(whole[:cut])
    with pytest.raises(ExplanationError, match="run the explanation again"):
        load(tmp_path / "run.npz")


def test_saving_replaces_the_old_file_only_when_the_new_one_is_whole(
    explanation, tmp_path, monkeypatch
):
    path = tmp_path / "run.npz"
    explanation.save(path)
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match="No space left"):
        explanation.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]  # no half-written file stays behind


def test_targets_are_found_by_index_label_and_default(explanation):
    assert explanation.resolve("RED") == explanation.resolve(0) == explanation.resolve("0") == 0
    assert explanation.resolve(None) == int(explanation.untouched.argmax())
    with pytest.raises(InputError, match="'red'"):
        explanation.resolve("rad")
    with pytest.raises(InputError, match="0 to 1"):
        explanation.resolve(7)
    for wrong in (True, 0.9, [0]):
        with pytest.raises(InputError, match="but a label or an index is needed"):
            explanation.resolve(wrong)


def test_a_name_of_two_classes_is_refused_with_their_indices():
    """As crane of ImageNet, a bird and a machine: the first was taken silently."""
    explanation = explain_masks(photo(16, 16), MODEL, n_masks=CHUNK, labels=["crane", "crane"])
    with pytest.raises(
        InputError, match="'crane' is the name of 2 classes: give the index, 0 or 1"
    ):
        explanation.maps("crane")


def test_labels_must_be_as_many_as_scores():
    with pytest.raises(InputError, match="3 labels, but the model gives 2"):
        explain_masks(photo(16, 16), MODEL, n_masks=CHUNK, labels=["a", "b", "c"])


def test_a_resumed_run_asks_only_for_what_is_missing(explanation):
    model, settings = Counting(MODEL), {"n_masks": 4 * CHUNK, "labels": ["red", "other"]}
    part = with_chunks(explain_masks(photo(16, 20), model, **settings), [1])
    model.n_images = 0
    run = iter_explain(photo(16, 20), model, resume=part, **settings)
    assert same(list(run)[-1], explanation)
    # And, once, the untouched image and four masks: is it still the same model?
    assert model.n_images == 3 * CHUNK + 1 + 4


# ---- what it says of itself


def test_the_best_classes_come_first_with_their_names_and_scores(explanation):
    scores = np.array([0.1, 0.4, 0.2, 0.05, 0.02, 0.03, 0.2], np.float32)
    seven = replace(explanation, untouched=scores, labels=None, scores={})
    assert [one.target for one in seven.top()] == [1, 2, 6, 0, 3]  # of equals the first
    assert [one.target for one in seven.top(2)] == [1, 2]
    (first,) = seven.top(1)
    assert first._replace(runner_up=None) == (
        1, "class 1", pytest.approx(0.4), None, "probability", False,
    )  # fmt: skip
    assert first.runner_up == seven.top(2)[1]
    near = replace(seven, untouched=np.array([0.38, 0.4, 0.2, 0, 0, 0, 0.02], np.float32))
    assert near.prediction.is_undecided
    assert explanation.top(1)[0].label == explanation.labels[explanation.top(1)[0].target]


def test_it_tells_what_it_holds(explanation):
    assert "16 x 20 pixels: 256 masks of 5 fills" in repr(explanation)
    assert "2 classes of " in repr(explanation)
    assert explanation.masks().cells.shape == (256, 10, 10)
    np.testing.assert_array_equal(explanation.masks().cells[:64], draw(explanation.plan, 0).cells)
    np.testing.assert_array_equal(
        explanation.masks().shifts[192:], draw(explanation.plan, 3).shifts
    )
    np.testing.assert_array_equal(explanation.scores_of(1)[64:128], explanation.scores[1][:, 1])
    assert replace(explanation, choice="").notes == ()
    assert replace(explanation, choice="chosen").notes == ("chosen",)


def test_a_notebook_shows_it(explanation):
    assert "256 masks" in explanation._repr_html_()


def test_the_range_of_scores_is_one_or_what_was_seen(explanation):
    assert explanation.score_range == 1.0
    scores = {0: np.tile(np.float32([3, -1]), (CHUNK, 1)), 1: np.zeros((CHUNK, 2), np.float32)}
    anything = replace(explanation, kind="any", untouched=np.float32([2, 1]), scores=scores)
    assert anything.score_range == 4.0
    assert replace(anything, untouched=np.float32([9, 1])).score_range == 8.0


def test_the_first_masks_are_a_record_of_their_own(explanation):
    half = explanation.first(2 * CHUNK)
    assert half.chunks == (0, 1)
    assert same(half, with_chunks(explanation, [0, 1]))
    assert explanation.first(4 * CHUNK) is explanation
    assert explanation.n_masks == 4 * CHUNK


def test_more_classes_than_a_record_keeps_are_refused(explanation):
    most = np.zeros(2**15, np.float32)
    assert replace(explanation, untouched=most, labels=None, scores={}).n_classes == 2**15
    with pytest.raises(InputError, match="32,769 scores per image, but a file keeps at most"):
        replace(explanation, untouched=np.zeros(2**15 + 1, np.float32), labels=None, scores={})


def test_an_empty_record_has_no_maps(explanation):
    with pytest.raises(InputError, match="no masks yet"):
        replace(explanation, scores={}).maps()


def test_a_pickle_takes_along_neither_what_was_computed_nor_the_model(explanation):
    explanation.maps()
    explanation.recognised = lambda: "cannot be pickled"
    again = pickle.loads(pickle.dumps(explanation))
    assert (again.prepared, again.recognised) == ({}, None)
    assert same(again, explanation)


# ---- maps


def test_masks_that_came_since_are_in_the_maps(explanation):
    grown = with_chunks(explanation, [0, 1])
    grown.maps(0)
    grown.add(2, explanation.scores[2])
    grown.add(3, explanation.scores[3])
    assert same(grown, explanation)


def test_an_estimator_is_prepared_once_for_all_classes(explanation):
    assert explanation.prepare("centered") is explanation.prepare("centered")
    assert explanation.prepare("centered") is not explanation.prepare("paper")


def test_several_classes_give_a_list_and_two_a_difference(explanation):
    both = explanation.maps([0, 1], "centered")
    assert [one.target for one in both] == [0, 1]
    less = explanation.maps("red", "centered", against="other")
    np.testing.assert_allclose(less.values, both[0].values - both[1].values, atol=1e-6)
    assert (less.target, less.against, less.label) == (0, 1, "red \u2212 other")
    assert (both[0].against, both[0].label, both[0].n_masks) == (None, "red", 256)
    assert explanation.maps(0, "rise").fills == ()
    assert explanation.maps(0, "centered").fills == explanation.plan.fills


def test_what_is_told_of_a_difference_is_of_the_difference(explanation):
    """Untouched 0.9 less 0.9: nothing that masks could have taken away."""
    lost = {0: np.full((CHUNK, 2), 0.01, np.float32)}
    lost[0][::2] = 0.02
    faint = replace(explanation, untouched=np.float32([0.9, 0.9]), kind="independent", scores=lost)
    assert "untouched 0.9" in faint.maps(0, "centered").notes[0]
    lost[0][:, 1] = 0
    assert not any("untouched" in note for note in faint.maps(0, "centered", against=1).notes)


def test_chance_is_that_of_the_centered_maps_where_an_estimator_has_none_of_its_own(explanation):
    own, other = (explanation.chance(explanation.maps(0, name)) for name in ("centered", "rise"))
    assert own.limit == other.limit > 0
    np.testing.assert_array_equal(own.values, other.values)
    less = explanation.chance(explanation.maps(0, "centered", against=1))
    assert less.limit > own.limit


# ---- one model or two


def test_a_jitter_counts_where_it_is_more_than_rounding(explanation):
    for jitter, felt in ((None, 0.0), (0.0005, 0.0), (0.001, 0.0), (0.002, 0.002)):
        assert replace(explanation, jitter=jitter).nondeterminism == felt
    noisy = replace(explanation, jitter=0.002)
    assert any("differently each time" in note for note in noisy.maps(0).notes)


def test_what_chance_shows_is_worked_out_once_for_maps_and_anew_for_others(explanation):
    maps = explanation.maps(0, "centered")
    found = explanation.chance(maps)
    assert explanation.chance(maps) is found
    other = explanation.chance(explanation.maps(1, "paper"))
    assert other is not found
    assert explanation.chance(maps).limit == found.limit > 0


def test_an_answer_is_anothers_beyond_rounding_and_three_times_the_jitter(explanation):
    known = np.float32([0.5, 0.5])
    assert explanation.other_answer(known + np.float32([0, 0.0009]), known) == 0
    assert explanation.other_answer(known - np.float32([0, 0.002]), known) == pytest.approx(
        0.002, 1e-3
    )
    shaky = replace(explanation, jitter=0.01)
    assert shaky.other_answer(known + np.float32(0.029), known) == 0
    assert shaky.other_answer(known + np.float32(0.031), known) == pytest.approx(0.031, 1e-3)
    logits = replace(explanation, kind="any", untouched=np.float32([-5, 5]))
    assert logits.other_answer(known + np.float32(0.009), known) == 0
    assert logits.other_answer(known + np.float32(0.011), known) == pytest.approx(0.011, 1e-3)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "independent"}, ["kind of score"]),
        ({"batch_size": 16}, ["batch size"]),
        ({"untouched": np.zeros(3, np.float32), "labels": None}, ["number of classes"]),
        ({"labels": ("a", "b")}, []),
        ({"plan": Plan((16, 21))}, ["image size"]),
    ],
)
def test_what_differs_is_named(explanation, changed, words):
    plain = replace(explanation, plan=Plan((16, 20)), scores={})
    assert plain.differences(replace(plain, **changed)) == words


def test_merging_keeps_all_answers_and_drops_why_a_part_stopped(explanation):
    parts = [replace(with_chunks(explanation, [n]), answers={f"paint {n}": explanation.untouched},
                     stop_reason="stopped") for n in (0, 1)]  # fmt: skip
    whole = merge(parts)
    assert set(whole.answers) == {"paint 0", "paint 1"}
    assert whole.stop_reason == ""
    assert parts[0].chunks == (0,)


def test_nothing_and_parts_of_two_models_are_not_merged(explanation):
    with pytest.raises(InputError, match="nothing to merge"):
        merge([])
    other = replace(explanation, untouched=explanation.untouched + np.float32(0.01))
    with pytest.raises(ExplanationError, match=r"untouched image differ by 0\.01"):
        merge([explanation, other])


def test_a_target_that_is_unknown_is_told_what_there_is(explanation):
    assert explanation.resolve(1) == 1
    for index in (-1, 2):
        with pytest.raises(
            InputError, match=f"target is {index}, but the model has classes 0 to 1"
        ):
            explanation.resolve(index)
    with pytest.raises(InputError, match="give one of the labels, or an index"):
        explanation.resolve("zebra crossing")
    nameless = replace(explanation, labels=None)
    assert nameless.resolve("1") == 1
    with pytest.raises(InputError, match="have no names here: give an index from 0 to 1"):
        nameless.resolve("red")


# ---- kills


def run_command(folder, *, wait=None):
    """The real command on the real model; killed after `wait` seconds if given."""
    image = str(folder / "stop.png")
    command = [sys.executable, "-m", "mcrise", "explain", image, "--model", "demo",
               "--n-masks", "2048", "--save-every", "0.1", "--quiet"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        process.communicate(timeout=wait)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return False
    assert process.returncode == 0
    return True


@pytest.mark.slow
def test_a_run_killed_at_random_moments_ends_as_one_never_killed(tmp_path):
    """With the real ONNX model and SIGKILL."""
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
        Image.fromarray(np.asarray(stop())).save(tmp_path / name / "stop.png")
    assert run_command(tmp_path / "whole")
    moments = random.Random(0)
    path = tmp_path / "killed" / "stop.png.mcrise"
    n_kills, seen = 0, []
    for _ in range(2):
        n_kills += not run_command(tmp_path / "killed", wait=1.5 + 1.5 * moments.random())
        if (path / "run.npz").exists():
            seen.append(load(path).n_masks)  # always whole, never damaged
    while not run_command(tmp_path / "killed", wait=60):
        pass
    assert n_kills > 0
    assert seen == sorted(seen)
    assert same(load(path), load(tmp_path / "whole" / "stop.png.mcrise"))
