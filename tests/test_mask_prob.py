"""The pilot on models that die of little paint, or feel only much of it."""

import json

import numpy as np
import pytest

from mcrise.errors import InputError, ModelError
from mcrise.explanation_file import load
from mcrise.interpretation.regions import interpret
from mcrise.mask_prob import LESS, MORE, choose
from mcrise.masks import CHUNK
from mcrise.model_calls import FEW
from mcrise.sampling import iter_explain
from planted import Counting, PatchModel, constant_model, explain_masks, gray_image, photo
from planted_pilot import KINDS, draw, found

IMAGE = gray_image(32, 32)


def painted_share(images):
    return (np.abs(images.astype(float) - 128).max(axis=3) > 40).mean(axis=(1, 2))


def two(p):
    return np.stack([p, 1 - p], axis=1)


def fragile(images):
    """Little paint is enough to lose all."""
    return two(0.9 * np.exp(-20 * painted_share(images)))


def sound(images):
    """Some of it is lost with each bit of paint."""
    return two(0.9 - 0.9 * painted_share(images))


def robust(images):
    """Nothing is lost before much is painted."""
    return two(np.where(painted_share(images) > 0.4, 0.2, 0.9))


def test_chunk_0_of_the_run_is_the_pilots_and_the_same_as_without_one():
    explanation = explain_masks(IMAGE, fragile, n_masks=128)
    plain = explain_masks(IMAGE, fragile, n_masks=128, mask_prob=explanation.plan.mask_prob)
    assert plain.plan == explanation.plan
    for chunk in (0, 1):
        assert np.array_equal(explanation.scores[chunk], plain.scores[chunk])
    for mask_prob, scores in explanation.pilot.items():
        other = explain_masks(IMAGE, fragile, n_masks=64, mask_prob=mask_prob)
        assert np.array_equal(scores, other.scores[0])
    assert plain.pilot == {}
    assert plain.choice == ""


@pytest.mark.parametrize(
    ("model", "allowed"),
    [(fragile, LESS), (sound, (0.2,)), (robust, MORE), (constant_model, (0.5,))],
)
def test_less_is_painted_where_little_is_left_and_more_where_nothing_moves(model, allowed):
    for seed in range(4):
        explanation = explain_masks(IMAGE, model, n_masks=64, seed=seed)
        assert explanation.plan.mask_prob in allowed
        assert explanation.choice.startswith(
            f"{100 * explanation.plan.mask_prob:g}% of the image is painted at a time (mask_prob, "
        )
        assert explanation.plan.mask_prob not in explanation.pilot


@pytest.mark.parametrize("model", [fragile, sound, robust, constant_model])
def test_a_pilot_costs_three_chunks_at_most_and_one_of_them_is_the_runs(model):
    counted = Counting(model)
    explanation = explain_masks(IMAGE, counted, n_masks=256)
    assert len(explanation.pilot) <= 2
    # And the untouched image, and a few asked twice.
    assert counted.n_images == 256 + len(explanation.pilot) * CHUNK + 1 + FEW


def test_a_run_killed_in_its_pilot_chooses_the_same_when_begun_again(tmp_path):
    calls = []

    def dies(images):
        calls.append(len(images))
        if len(calls) == 5:
            raise ValueError("killed")
        return fragile(images)

    with pytest.raises(ModelError):
        explain_masks(IMAGE, dies, n_masks=128, save=tmp_path / "run.npz")
    again = explain_masks(IMAGE, dies, n_masks=128, save=tmp_path / "run.npz")
    never = explain_masks(IMAGE, fragile, n_masks=128)
    assert again.plan == never.plan
    assert np.array_equal(again.scores[1], never.scores[1])


def test_a_saved_record_has_the_whole_pilot_and_goes_on_without_another(tmp_path):
    explanation = explain_masks(IMAGE, fragile, n_masks=64, save=tmp_path / "run.npz")
    again = load(tmp_path / "run.npz")
    assert explanation.pilot
    assert again.pilot.keys() == explanation.pilot.keys()
    for mask_prob, scores in explanation.pilot.items():
        assert np.array_equal(again.pilot[mask_prob], scores)
    assert again.choice == explanation.choice
    counted = Counting(fragile)
    counted.__qualname__ = fragile.__qualname__
    grown = explain_masks(IMAGE, counted, n_masks=128, save=tmp_path / "run.npz")
    assert grown.plan == explanation.plan
    assert counted.n_images == CHUNK + 1 + FEW  # the untouched image and a few, to recognise it


def test_a_record_of_a_number_goes_on_with_it_where_auto_is_asked():
    given = explain_masks(IMAGE, fragile, n_masks=64, mask_prob=0.37)
    *_, grown = iter_explain(IMAGE, fragile, n_masks=128, resume=given)
    assert grown.plan.mask_prob == 0.37
    assert grown.choice == ""


def test_the_asked_class_decides_unless_it_has_nothing_to_lose():
    untouched = np.array([0.6, 0.35, 0.05], np.float32)
    # At any probability the first class keeps its score and the second loses it.
    scores = np.tile(np.array([0.6, 0.05, 0.35], np.float32), (CHUNK, 1))
    by_target = [choose(lambda _: scores, untouched, "probability", c).mask_prob for c in range(3)]
    assert by_target == [MORE[-1], LESS[-1], MORE[-1]]


def test_scores_of_any_kind_are_judged_by_how_far_they_stand_out():
    """Logits may have any level: adding to all of them changes nothing."""
    untouched = np.array([9.0, 1.0, 0.0, -1.0], np.float32)
    share = np.linspace(0.3, 1, CHUNK)[:, None]
    for level in (-100.0, 0.0, 100.0):
        shifted = np.float32(untouched + level)
        middle = np.median(shifted)
        scores = np.float32(middle + share * (shifted - middle))
        assert choose(lambda _, s=scores: s, shifted, "any", 0).mask_prob == 0.2


def test_the_choice_is_said_with_the_summary_and_kept_there(tmp_path):
    from mcrise.output.run_folder import RunFolder

    explanation = explain_masks(IMAGE, fragile, n_masks=64)
    lines = RunFolder(tmp_path).draw(explanation, [None]).lines()
    assert any(line.startswith("Note: 5% of the image is painted at a time") for line in lines)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert explanation.choice in summary["notes"]
    assert summary["mask_prob"] == explanation.plan.mask_prob


def test_a_run_like_another_has_its_plan_on_another_image_with_another_model(tmp_path):
    model = PatchModel(slice(4, 12), slice(4, 12))
    other = explain_masks(photo(16, 20), model, fills="red,blur:2", grid=4, n_masks=192, seed=5)
    other.save(tmp_path / "run.npz")
    for like in (other, tmp_path / "run.npz", str(tmp_path)):
        explanation = explain_masks(photo(24, 24, seed=1), sound, same_masks_as=like)
        assert explanation.plan.size == (24, 24)
        assert explanation.n_masks == 192
        for what in ("fills", "grid", "mask_prob", "seed"):
            assert getattr(explanation.plan, what) == getattr(other.plan, what)
    assert explain_masks(photo(24, 24), sound, same_masks_as=other, n_masks=64).n_masks == 64


@pytest.mark.parametrize("given", [{"seed": 1}, {"mask_prob": 0.5}, {"grid": 4}, {"fills": "red"}])
def test_like_another_and_otherwise_at_once_is_refused(given):
    other = explain_masks(IMAGE, sound, n_masks=64)
    with pytest.raises(InputError, match=f"and {next(iter(given))} too"):
        explain_masks(IMAGE, sound, same_masks_as=other, **given)


def test_a_word_that_is_not_auto_is_refused():
    with pytest.raises(InputError, match="between 0 and 1, or be auto"):
        explain_masks(IMAGE, sound, mask_prob="half")


@pytest.mark.parametrize("kind", KINDS)
def test_a_chosen_mask_prob_hides_nothing_that_one_half_shows(kind):
    """Also of models that feel only much paint; benchmarks/pilot.py has more of them."""
    n_found = {"auto": 0, 0.5: 0}
    for seed in range(2):
        image, model, regions = draw(kind, seed)
        for mask_prob in n_found:
            explanation = explain_masks(image, model, n_masks=384, mask_prob=mask_prob, seed=seed)
            n_found[mask_prob] += sum(found(interpret(explanation, 0).findings, regions))
    assert n_found["auto"] >= n_found[0.5]
