"""Trials are asked once, kept with what was painted, and continued where they were cut short."""

import json
from functools import partial

import numpy as np
import pytest

import mcrise
from mcrise.errors import ExplanationError, InputError, ModelError
from mcrise.explanation import pack_region, unpack_region
from mcrise.explanation_file import RunFile
from mcrise.fills import Blur, Picture, Solid
from mcrise.interpretation import trial_calls
from mcrise.interpretation.repaints import Repaint, Stroke
from mcrise.interpretation.trial_calls import iter_trials, packed, restored
from planted import Counting, PatchModel, photo

MODEL = PatchModel(slice(4, 12), slice(4, 12))
RUN = {"n_masks": 128, "mask_prob": 0.3, "grid": 4}


def named(predict):
    """Any model as the same one."""
    return mcrise.Model(predict, labels=("red", "other"), identity="planted")


class StopsAt:
    """The planted model, which raises once it was asked about some images."""

    def __init__(self, n_images, error):
        self.n_left, self.error = n_images, error

    def __call__(self, images):
        self.n_left -= len(images)
        if self.n_left < 0:
            raise self.error
        return MODEL(images)


def refuse(*_):
    raise AssertionError("this is known already")


@pytest.fixture(scope="module")
def explanation():
    return mcrise.explain(photo(16, 16), named(MODEL), **RUN)


def test_one_call_gives_masks_and_tested_findings():
    model = Counting(MODEL)
    explanation = mcrise.explain(photo(16, 16), named(model), **RUN)
    calls = explanation.n_calls
    assert (calls.masks, calls.pilot, calls.checks) == (128, 0, 1 + 4)
    assert calls.trials == len(explanation.answers) > 0
    assert calls.total == model.n_images
    (finding, *_) = explanation.findings
    assert finding.letter == "A"
    assert finding.region[4:12, 4:12].sum() > 0.4 * finding.region.sum()
    assert finding.sentence in str(explanation)
    assert str(explanation).startswith("Prediction: ")


def test_findings_of_a_file_need_neither_model_nor_ranking(explanation, tmp_path, monkeypatch):
    explanation.save(tmp_path / "run.npz")
    loaded = mcrise.load(tmp_path / "run.npz")
    monkeypatch.setattr(trial_calls, "search", refuse)
    monkeypatch.setattr("mcrise.interpretation.candidates.Ranking.__init__", refuse)
    assert loaded.findings == explanation.findings
    assert str(loaded) == str(explanation)
    assert loaded.n_calls == explanation.n_calls


def test_maps_only_and_trials_later_asks_trials_only(tmp_path):
    path, model = tmp_path / "run.npz", Counting(MODEL)
    first = mcrise.explain(photo(16, 16), named(model), **RUN, save=path, trials=False)
    assert (first.n_calls.trials, first.trial_logs) == (0, {})
    assert "Not tested" in str(first)
    with pytest.raises(InputError, match="No trials were made for"):
        _ = first.findings
    n_images = model.n_images
    later = mcrise.explain(photo(16, 16), named(model), **RUN, save=path, trials=True)
    again = 1 + 4  # the untouched image and four masks: is it the same model?
    assert model.n_images - n_images == again + later.n_calls.trials
    n_images = model.n_images
    mcrise.explain(photo(16, 16), named(model), **RUN, save=path)
    assert model.n_images - n_images == again


@pytest.mark.parametrize("n_trials", [0, 1, 33, 70])
def test_a_run_that_fails_in_its_trials_asks_only_the_rest_and_says_the_same(
    explanation, tmp_path, n_trials
):
    path = tmp_path / "run.npz"
    before = 1 + 128 + 1 + n_trials
    stopping = StopsAt(before, ValueError("broken"))
    with pytest.raises(ModelError, match=r"128 masks.* before it are saved in"):
        mcrise.explain(photo(16, 16), named(stopping), **RUN, save=path, batch_size=1)
    kept = mcrise.load(path)
    assert len(kept.answers) == n_trials
    model = Counting(MODEL)
    whole = mcrise.explain(photo(16, 16), named(model), **RUN, save=path, batch_size=1)
    assert model.n_images == (1 + 1) + whole.n_calls.trials - n_trials
    alone = mcrise.explain(photo(16, 16), named(MODEL), **RUN, batch_size=1)
    assert str(whole) == str(alone)
    target = alone.prediction.target
    assert whole.trial_logs[target].notes == alone.trial_logs[target].notes


def test_answers_are_saved_while_trials_run(tmp_path, monkeypatch):
    """Not at the end only: what costs money must survive a SIGKILL."""
    path, seen = tmp_path / "run.npz", []
    monkeypatch.setattr("mcrise.sampling.RunFile", partial(RunFile, seconds=0.0))

    def model(images):
        if path.exists():
            seen.append(len(mcrise.load(path).answers))
        return MODEL(images)

    mcrise.explain(photo(16, 16), named(model), **RUN, save=path, batch_size=8)
    assert len(set(seen)) > 3
    assert max(seen) < len(mcrise.load(path).answers)


@pytest.mark.parametrize(("n_images", "n_masks"), [(1 + 64 + 4, 64), (1 + 128 + 4 + 40, 128)])
def test_an_interrupt_returns_what_there_is(tmp_path, n_images, n_masks):
    path = tmp_path / "run.npz"
    model = StopsAt(n_images, KeyboardInterrupt())
    explanation = mcrise.explain(photo(16, 16), named(model), **RUN, save=path)
    assert explanation.n_masks == n_masks
    assert mcrise.load(path).n_masks == n_masks
    if n_masks == 64:
        assert explanation.stop_reason == "interrupted at 64 masks"
    else:
        assert "are not finished" in str(explanation)
        assert mcrise.load(path).answers.keys() == explanation.answers.keys() != set()


def test_an_interrupt_before_anything_is_known_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        mcrise.explain(photo(16, 16), StopsAt(0, KeyboardInterrupt()), **RUN)
    done = mcrise.explain(
        [photo(16, 16), photo(16, 16)], StopsAt(1 + 4 + 128, KeyboardInterrupt()), **RUN,
        trials=False,
    )  # fmt: skip
    assert [one.n_masks for one in done] == [128]


def test_another_class_is_asked_once_and_kept(tmp_path):
    model = Counting(MODEL)
    explanation = mcrise.explain(photo(16, 16), named(model), **RUN)
    target = 1 - explanation.prediction.target
    label = explanation.label(target)
    n_before = model.n_images
    findings = explanation.findings_of(label, named(model))
    assert findings.target == target
    assert model.n_images >= n_before
    n_images = model.n_images
    assert explanation.findings_of(label, named(model)) == findings
    assert explanation.findings_of(label) == findings
    assert model.n_images == n_images
    explanation.save(tmp_path / "run.npz")
    assert mcrise.load(tmp_path / "run.npz").findings_of(label) == findings
    assert explanation.findings.target == explanation.prediction.target


def test_chunk_by_chunk_makes_no_trials():
    for explanation in mcrise.iter_explain(photo(16, 16), MODEL, **RUN):
        assert explanation.answers == {}
    assert explanation.trial_logs == {}


@pytest.mark.parametrize("trials", [0, -1, 1.5, 10_001, "many"])
def test_a_budget_that_is_none_is_refused_before_any_call(trials):
    with pytest.raises(InputError, match="False for maps only"):
        mcrise.explain(photo(16, 16), refuse, **RUN, trials=trials)


# ---- what is kept of a repaint


def test_a_region_is_packed_and_unpacked():
    region = np.random.default_rng(0).random((17, 23)) < 0.3
    np.testing.assert_array_equal(unpack_region(pack_region(region), (17, 23)), region)
    for damaged in (pack_region(region[:8]), pack_region(region)[:-3], b"", b"no zip at all"):
        with pytest.raises(ValueError, match="region"):
            unpack_region(damaged, (17, 23))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_repaint_is_kept_so_that_it_can_be_painted_again(dtype):
    image = photo(16, 16) if dtype == np.uint8 else (photo(16, 16) / 255).astype(dtype)
    own = Picture(photo(16, 16, seed=3), "another photo")
    (explanation,) = mcrise.iter_explain(
        image, PatchModel(slice(4, 12), slice(4, 12)), n_masks=64, fills=[Solid((9, 8, 7)), own]
    )
    region = np.zeros((16, 16), bool)
    region[2:9, 3:7] = True
    elsewhere = Picture(photo(40, 24, seed=5), "a picture of another size")
    for fill in (Solid((1, 2, 3), "ink"), Blur(2.0), own, elsewhere):
        repaint = Repaint((Stroke(region, fill, "here"), Stroke(region.T, own, "there")), take=2)
        explanation.repaints[repaint.digest] = packed(repaint, explanation)
        again = restored(explanation, repaint.digest)
        np.testing.assert_allclose(
            again.render(image, (4, 4)), repaint.render(image, (4, 4)), atol=1 / 254
        )
        assert (again.digest, again.take, again.soft) == (repaint.digest, 2, False)
        assert [one.place for one in again.strokes] == ["here", "there"]
        assert [one.fill.name for one in again.strokes] == [fill.name, own.name]


def change_meta(path, change):
    with np.load(path) as arrays:
        content = dict(arrays)
    meta = json.loads(content["meta"].tobytes())
    change(meta, content)
    content["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(path, **content)


@pytest.mark.parametrize(
    "change",
    [
        lambda meta, arrays: meta["repaints"][0].update(digest="another"),
        lambda meta, arrays: meta["repaints"][0].update(strokes=[]),
        lambda meta, arrays: meta["repaints"][0]["strokes"][0].update(region=10_000),
        lambda meta, arrays: meta["repaints"][0]["strokes"][0].update(fill={"kind": "solid"}),
        lambda meta, arrays: meta["repaints"][0]["strokes"][0].update(n_pixels=3),
        lambda meta, arrays: meta["trials"][0].update(target=2),
        lambda meta, arrays: meta["trials"][0]["notes"][0].__setitem__(0, "another"),
        lambda meta, arrays: arrays.update(regions=arrays["regions"][:-1]),
        lambda meta, arrays: arrays.update(regions=np.zeros_like(arrays["regions"])),
        lambda meta, arrays: arrays.update(repaint_pixels=np.zeros((7, 3), np.uint8)),
    ],
)
def test_damaged_trials_are_refused(explanation, tmp_path, change):
    explanation.save(tmp_path / "run.npz")
    change_meta(tmp_path / "run.npz", change)
    with pytest.raises(ExplanationError, match=r"run\.npz .*damaged"):
        mcrise.load(tmp_path / "run.npz")


def test_more_masks_keep_the_letters_also_when_the_search_is_cut_short(tmp_path):
    """The search with more masks begins with the places that have letters."""
    path = tmp_path / "run.npz"
    more = {**RUN, "n_masks": 256}
    mcrise.explain(photo(16, 16), named(MODEL), **RUN, save=path)
    before = path.read_bytes()
    whole = mcrise.explain(photo(16, 16), named(MODEL), **more, save=path)
    path.write_bytes(before)
    stopping = StopsAt((1 + 4) + 128 + 3, KeyboardInterrupt())
    mcrise.explain(photo(16, 16), named(stopping), **more, save=path, batch_size=32)
    again = mcrise.explain(photo(16, 16), named(MODEL), **more, save=path)
    assert str(again) == str(whole)
    assert [one.letter for one in whole.findings][:1] == ["A"]


def test_a_search_yields_each_time_there_are_answers(explanation):
    fresh = named(MODEL)
    (run,) = list(mcrise.iter_explain(photo(16, 16), named(MODEL), **{**RUN, "n_masks": 64}))
    counts = [len(run.answers) for _ in iter_trials(run, [0], fresh, 64)]
    assert counts == sorted(counts)
    assert len(set(counts)) > 2
