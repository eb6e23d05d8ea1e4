"""The file format: what was written before still opens, and means what it meant."""

import json
import os
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mcrise
from mcrise import InputError
from mcrise.demo.signs import stop
from mcrise.explanation_file import load
from mcrise.fills import RGBWK
from mcrise.interpretation.trials import intervene
from mcrise.masks import draw
from mcrise.models.provenance import Origin
from planted import Counting, PatchModel, explain_masks, photo

BEFORE = Path(__file__).parent / "data" / "before"  # written by commit 4d2d6a6
CHECKSUMS = json.loads((BEFORE / "checksums.json").read_text())
# Not in files of before; `stop_reason` has another name there.
YOUNGER = {
    "origin", "jitter", "image_name", "answers", "choice", "assumed", "n_checks", "stop_reason",
}  # fmt: skip
FORMULAS = [words for words in CHECKSUMS if " smooth " not in words]
SMOOTH = [words for words in CHECKSUMS if " smooth " in words]


def maps_of(words, estimator=None):
    """The maps that `callable rise 0` names: file, estimator and class."""
    name, own, target = words.split()
    explanation = load(BEFORE / f"{name}.npz")
    return explanation.maps(None if target == "None" else int(target), estimator or own)


def checksums(maps):
    return [zlib.crc32(array.tobytes()) for array in (maps.values, maps.se)]


def read_meta(path):
    with np.load(path) as arrays:
        return json.loads(arrays["meta"].tobytes())


@pytest.mark.parametrize("words", FORMULAS)
def test_a_record_of_before_gives_the_maps_of_before_to_the_bit(words):
    assert checksums(maps_of(words)) == CHECKSUMS[words]


@pytest.mark.parametrize("words", SMOOTH)
def test_a_record_of_before_gives_the_smooth_map_of_before(words):
    """To the bit where linear algebra rounds as it did then.

    Elsewhere this says less: that it tells what the centered map does, whose bits are known, within
    one of its standard errors on average. An empty map is 1.2 away, one of the wrong sign 1.6.
    """
    smooth, centered = maps_of(words), maps_of(words, "centered")
    if checksums(smooth) != CHECKSUMS[words]:
        assert np.mean(np.abs(smooth.values - centered.values) / centered.se) < 1


def test_every_kind_of_maps_is_compared():
    assert {words.split()[1] for words in CHECKSUMS} == set(mcrise.estimators.ESTIMATORS)


def test_a_run_of_before_goes_on_and_ends_as_a_new_one():
    """The masks of before keep their scores; the others are those of a new run to the bit.

    What a network answers may differ in its last bits from one kind of processor to another.
    """
    model, explanation = mcrise.load_model("demo"), load(BEFORE / "demo.npz")
    assert explanation.n_masks == 128
    before = explanation.scores_of(14).copy()
    for grown in mcrise.iter_explain(stop(), model, n_masks=256, resume=explanation):
        explanation = grown
    fresh = explain_masks(stop(), model, n_masks=256, mask_prob=0.5).scores_of(14)
    assert explanation.n_masks == 256
    np.testing.assert_array_equal(explanation.scores_of(14)[:128], before)
    np.testing.assert_allclose(before, fresh[:128], atol=1e-5)
    np.testing.assert_array_equal(explanation.scores_of(14)[128:], fresh[128:])


def test_what_is_younger_may_be_missing_in_a_file(tmp_path):
    """And is missing in those of before."""
    model = PatchModel(slice(4, 12), slice(4, 12))
    explanation = explain_masks(photo(16, 20), model, n_masks=64, trials=False)
    path = tmp_path / "run.npz"
    explanation.save(path)
    assert read_meta(path).keys() - read_meta(BEFORE / "demo.npz").keys() == YOUNGER
    with np.load(path) as arrays:
        content = dict(arrays)
    meta = {name: value for name, value in read_meta(path).items() if name not in YOUNGER}
    content["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(path, **content)
    again = load(path)
    assert (again.origin, again.jitter, again.view.name) == (Origin(), None, "")
    np.testing.assert_array_equal(again.maps(0).values, explanation.maps(0).values)


def test_where_a_model_and_an_image_came_from_and_its_jitter_are_kept(tmp_path):
    stop().save(tmp_path / "stop.png")
    explanation = explain_masks(tmp_path / "stop.png", "demo", n_masks=64)
    explanation.save(tmp_path / "run.npz")
    again = load(tmp_path / "run.npz")
    assert again.origin == explanation.origin
    assert again.origin.digest
    assert again.jitter == explanation.jitter == 0
    assert again.view.name == "stop.png"


@pytest.mark.parametrize("name", [300 * "a", "a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_one_sentence(name):
    with pytest.raises(InputError, match=r": \w.*\.$"):
        load(name)


def test_a_file_that_cannot_be_read_is_not_called_damaged(tmp_path):
    with pytest.raises(
        InputError, match=r"a cannot be read \(File name too long\): give a run.npz"
    ):
        load(tmp_path / (300 * "a"))


def test_answers_that_come_while_a_record_is_written_leave_it_whole(tmp_path, monkeypatch):
    model = PatchModel(slice(4, 12), slice(4, 12))
    explanation = explain_masks(photo(16, 20), model, n_masks=64, trials=False)
    explanation.answers["first"] = explanation.untouched

    def meanwhile(plan, chunk):
        explanation.answers["second"] = explanation.untouched  # as another thread of the page does
        return draw(plan, chunk)

    monkeypatch.setattr("mcrise.explanation_file.draw", meanwhile)
    explanation.save(tmp_path / "run.npz")
    monkeypatch.undo()
    assert list(mcrise.load(tmp_path / "run.npz").answers) == ["first"]


# ---- what is written can be read


def two(images):
    return np.full((len(images), 2), 0.5)


@pytest.mark.parametrize(
    ("label", "said"),
    [("x" * 20_000, "class 1 has 20,000 characters, but a file keeps at most 10,000: give a"),
     ("\ud800", r"class 1 is .* \(half a surrogate pair\): give another")],
)  # fmt: skip
def test_a_label_that_no_file_keeps_is_refused_before_the_first_call(tmp_path, label, said):
    model = Counting(two)
    ready = mcrise.Model(model)
    for given in (model, ready):
        with pytest.raises(InputError, match=f"The label of {said}"):
            explain_masks(photo(16, 20), given, labels=["a", label], save=tmp_path / "run.npz")
    assert model.n_images == 0
    assert not (tmp_path / "run.npz").exists()
    longest = "x" * 10_000
    explain_masks(photo(16, 20), model, n_masks=64, labels=["a", longest]).save(tmp_path / "b.npz")
    explanation = load(tmp_path / "b.npz")
    assert explanation.labels == ("a", longest)
    with pytest.raises(InputError, match=f"The label of {said}"):
        explanation.name_classes(("a", label))


def test_an_image_whose_name_is_not_utf8_has_a_record_that_can_be_read(tmp_path):
    stop().save(tmp_path / "a.png")
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.png")
    os.rename(tmp_path / "a.png", name)
    explain_masks(name, two, n_masks=64, save=tmp_path / "run.npz")
    assert load(tmp_path / "run.npz").view.name == "caf\\xe9.png"


def test_as_many_answers_are_taken_as_can_be_read(tmp_path):
    model = Counting(two)
    explanation = explain_masks(photo(16, 20), model, n_masks=64, mask_prob=0.3)
    explanation.answers = {f"{n:064x}": explanation.untouched for n in range(99_999)}
    region = np.zeros((16, 20), bool)
    region[:8] = True
    intervene(explanation, model, region, RGBWK[0])
    explanation.save(tmp_path / "run.npz")
    assert len(load(tmp_path / "run.npz").answers) == 100_000
    n_asked = model.n_images
    said = "would be 100,001 answers about repaints, but a file keeps at most 100,000: start a"
    with pytest.raises(InputError, match=said):
        intervene(explanation, model, region, RGBWK[1])
    assert model.n_images == n_asked
    other = replace(explanation, answers={"another": explanation.untouched})
    with pytest.raises(InputError, match=said):
        mcrise.merge([explanation, other])
    intervene(explanation, model, region, RGBWK[0])  # known


def test_more_masks_than_a_file_keeps_are_refused_before_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr("mcrise.explanation.MOST_BYTES", 2**20 + 2**14)
    monkeypatch.setattr("mcrise.explanation_file.MOST_BYTES", 2**20 + 2**14)
    given = {"mask_prob": 0.3, "save": tmp_path / "run.npz", "trials": False}
    model = Counting(two)
    for n_masks in ({"n_masks": 2048}, {"n_masks": "auto", "max_masks": 2048}):
        with pytest.raises(InputError, match=r"2,048 masks .*GB, but a file has at most .* fewer"):
            explain_masks(photo(16, 20), model, **n_masks, **given)
    assert model.n_images == 2  # the untouched image, to know how many scores there are
    explanation = explain_masks(photo(16, 20), model, n_masks=1024, **given)
    assert load(tmp_path / "run.npz").n_masks == 1024
    n_asked = model.n_images
    with pytest.raises(InputError, match="2,048 masks"):
        next(mcrise.grow(explanation, model, n_masks=2048))
    assert model.n_images == n_asked
