import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise.archive import load
from mcrise.demo.signs import stop
from mcrise.errors import InputError, RecordError
from mcrise.fills import Picture, parse
from mcrise.loop import steps
from mcrise.masks import CHUNK
from mcrise.record import merge
from planted import Counting, PatchModel, photo

MODEL = PatchModel(slice(4, 12), slice(4, 12))


@pytest.fixture
def record():
    return mcrise.explain(photo(16, 20), MODEL, n_masks=4 * CHUNK, labels=["red", "other"])


def same(a, b):
    """Equal to the bit, maps and all."""
    return all(
        np.array_equal(a.maps(0, name).values, b.maps(0, name).values)
        and np.array_equal(a.maps(0, name).se, b.maps(0, name).se)
        for name in ("rise", "debiased", "paper", "centered")
    )


def with_chunks(record, chunks):
    part = replace(record, scores={})
    for chunk in chunks:
        part.add(chunk, record.scores[chunk])
    return part


def test_a_record_survives_saving(record, tmp_path):
    record.save(tmp_path / "run.npz")
    again = load(tmp_path / "run.npz")
    assert again.plan == record.plan
    assert again.labels == record.labels
    assert again.differences(record) == []
    assert same(again, record)
    assert load(tmp_path).n_masks == record.n_masks  # the folder will do


def test_a_picture_fill_is_saved_with_its_pixels(tmp_path):
    fills = (*parse("red,blur:2"), Picture(photo(16, 20, seed=3), "other"))
    record = mcrise.explain(photo(16, 20), MODEL, fills=fills, n_masks=CHUNK)
    record.save(tmp_path / "run.npz")
    assert load(tmp_path / "run.npz").plan == record.plan


def test_two_merged_halves_are_the_whole_to_the_bit(record):
    halves = [with_chunks(record, [2, 0]), with_chunks(record, [3, 1])]
    assert same(merge(halves), record)
    assert same(merge(halves[::-1]), record)


def test_the_order_in_which_chunks_come_changes_no_bit(record):
    for order in ([3, 1, 0, 2], [2, 3, 1, 0]):
        assert same(with_chunks(record, order), record)


@pytest.mark.parametrize("wrong", ["seed", "grid", "mask_prob", "fills", "image", "model"])
def test_records_of_different_runs_are_not_merged(record, wrong):
    changed = {"seed": 1, "grid": (4, 4), "mask_prob": 0.3, "fills": "red,green"}
    image = photo(16, 20, seed=9 if wrong == "image" else 0)
    other = mcrise.explain(
        image,
        (lambda images: MODEL(images)) if wrong == "model" else MODEL,
        n_masks=CHUNK,
        labels=["red", "other"],
        **{name: value for name, value in changed.items() if name == wrong},
    )
    named = {"fills": "colors"}.get(wrong, wrong)
    with pytest.raises(RecordError, match=named):
        merge([record, other])


def test_a_model_that_answers_differently_is_noticed_when_merging(record):
    other = with_chunks(record, [0, 1])
    other.add(1, 1 - record.scores[1])
    with pytest.raises(RecordError, match="chunk 1"):
        merge([record, other])


def tampered(record, path, **changes):
    """Save a record with some arrays replaced."""
    record.save(path)
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
def test_what_is_not_understood_is_refused(record, tmp_path, changes, reason):
    path = tampered(record, tmp_path / "run.npz", **changes)
    with pytest.raises(RecordError, match=reason):
        load(path)


@pytest.mark.parametrize("cut", [0, 10, 1000, -30])
def test_a_damaged_file_is_refused(record, tmp_path, cut):
    record.save(tmp_path / "run.npz")
    whole = (tmp_path / "run.npz").read_bytes()
    (tmp_path / "run.npz").write_bytes(whole[:cut])
    with pytest.raises(RecordError, match="run the explanation again"):
        load(tmp_path / "run.npz")


def test_saving_replaces_the_old_file_only_when_the_new_one_is_whole(record, tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    record.save(path)
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match="No space left"):
        record.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]  # no half-written file stays behind


def test_targets_are_found_by_index_label_and_default(record):
    assert record.resolve("RED") == record.resolve(0) == record.resolve("0") == 0
    assert record.resolve(None) == int(record.untouched.argmax())
    with pytest.raises(InputError, match="'red'"):
        record.resolve("rad")
    with pytest.raises(InputError, match="0 to 1"):
        record.resolve(7)


def test_a_name_of_two_classes_is_refused_with_their_indices():
    """As crane of ImageNet, a bird and a machine: the first was taken silently."""
    record = mcrise.explain(photo(16, 16), MODEL, n_masks=CHUNK, labels=["crane", "crane"])
    with pytest.raises(
        InputError, match="'crane' is the name of 2 classes: give the index, 0 or 1"
    ):
        record.maps("crane")


def test_labels_must_be_as_many_as_scores():
    with pytest.raises(InputError, match="3 labels, but the model gives 2"):
        mcrise.explain(photo(16, 16), MODEL, n_masks=CHUNK, labels=["a", "b", "c"])


def test_a_resumed_run_asks_only_for_what_is_missing(record):
    model, settings = Counting(MODEL), {"n_masks": 4 * CHUNK, "labels": ["red", "other"]}
    part = with_chunks(mcrise.explain(photo(16, 20), model, **settings), [1])
    model.n_images = 0
    run = steps(photo(16, 20), model, resume=part, **settings)
    assert same(list(run)[-1], record)
    # And, once, the untouched image and a batch: is it still the model of the record?
    assert model.n_images == 3 * CHUNK + 1 + part.batch_size


def run_command(folder, *, wait=None):
    """The real command on the real model; killed after `wait` seconds if given."""
    image = str(folder / "stop.png")
    command = [sys.executable, "-m", "mcrise", "explain", image, "--model", "demo",
               "--n-masks", "2048", "--checkpoint", "0.1", "--quiet"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        process.communicate(timeout=wait)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return False
    assert process.returncode == 0
    return True


def test_a_run_killed_at_random_moments_ends_as_one_never_killed(tmp_path):
    """With the real ONNX model and SIGKILL."""
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
        Image.fromarray(np.asarray(stop())).save(tmp_path / name / "stop.png")
    assert run_command(tmp_path / "whole")
    moments = random.Random(0)
    path = tmp_path / "killed" / "stop.png.mcrise"
    n_kills, seen = 0, []
    for _ in range(4):
        n_kills += not run_command(tmp_path / "killed", wait=1.5 + 1.5 * moments.random())
        if (path / "run.npz").exists():
            seen.append(load(path).n_masks)  # always whole, never damaged
    while not run_command(tmp_path / "killed", wait=60):
        pass
    assert n_kills > 0
    assert seen == sorted(seen)
    assert same(load(path), load(tmp_path / "whole" / "stop.png.mcrise"))
