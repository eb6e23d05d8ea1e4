"""Masks are the same for ever, and records of earlier commits open, go on and keep their answers.

How the records were made is in make_record.py.
"""

import json

import numpy as np
import pytest
from internals import CHUNK, last
from planted_patches import GREEN, IDENTITY, LABELS, REGION, image, two_patches
from snapshots import DATA, compare
from stored_runs import RECORDS, describe, masks_text

import mcrise

KNOWN = json.loads((DATA / "records.json").read_text())
ANSWERED = [name for name in RECORDS if KNOWN[name]["n_answers"]]


def load(name):
    return mcrise.load(DATA / "records" / f"{name}.npz")


def refuse(images):
    raise AssertionError("the model was asked, though the record has the answer")


def test_masks_are_the_same_for_ever():
    compare("masks.json", masks_text())


def test_there_are_records_of_several_commits():
    assert sorted(KNOWN) == RECORDS
    assert len(RECORDS) >= 3
    assert {KNOWN[name]["mask_prob"] for name in RECORDS} >= {0.1, 0.3, 0.5}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_says_what_it_said_to_the_bit(name):
    """Smooth maps to the bit only where linear algebra rounds as on the machine of then."""
    now, known = describe(load(name)), KNOWN[name]
    for target, values in known.pop("smooth").items():
        own = f"smooth {target}"
        if now["maps"].pop(own) != known["maps"].pop(own):
            np.testing.assert_allclose(now["smooth"][target], values, rtol=1e-3, atol=1e-5)
    del now["smooth"]
    assert now == known


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_goes_on_and_ends_as_a_new_run(name):
    """The model is asked only about masks that are new, and once to be recognized."""
    explanation, asked = load(name), []
    before = {chunk: explanation.scores[chunk].copy() for chunk in explanation.chunks}

    def counted(images):
        asked.append(len(images))
        return two_patches(images)

    model = mcrise.Model(counted, labels=LABELS, identity=IDENTITY)
    n_masks = explanation.n_masks + 2 * CHUNK
    again = 2 * explanation.batch_size  # to recognize the model, and how far answers are apart
    explanation = last(mcrise.grow(explanation, model, n_masks=n_masks))
    assert explanation.n_masks == n_masks
    assert 2 * CHUNK <= sum(asked) <= 2 * CHUNK + 1 + again
    for chunk, scores in before.items():
        np.testing.assert_array_equal(explanation.scores[chunk], scores)
    plan = explanation.plan
    fresh = mcrise.explain(
        image(), model, n_masks=n_masks, mask_prob=plan.mask_prob, seed=plan.seed, fills=plan.fills
    )
    for chunk in fresh.chunks:
        np.testing.assert_array_equal(explanation.scores[chunk], fresh.scores[chunk])


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_is_saved_again_says_the_same(name, tmp_path):
    explanation = load(name)
    explanation.save(tmp_path / "run.npz")
    again = mcrise.load(tmp_path / "run.npz")
    assert describe(again) == describe(explanation)
    assert again.answers.keys() == explanation.answers.keys()
    assert again.pilot.keys() == explanation.pilot.keys()
    assert (again.stop_reason, again.choice, again.jitter) == (
        explanation.stop_reason,
        explanation.choice,
        explanation.jitter,
    )


@pytest.mark.parametrize("name", ANSWERED)
def test_what_was_repainted_is_known_without_a_call(name):
    """A repaint is found by its digest, which has not changed since the first that was kept."""
    explanation = load(name)
    model = mcrise.Model(refuse, labels=LABELS, identity=IDENTITY)
    trial = mcrise.intervene(explanation, model, REGION, mcrise.Solid(GREEN))
    painted = image()
    painted[REGION] = GREEN
    np.testing.assert_allclose(trial.after, two_patches(painted[None])[0], atol=1e-6)
    assert len(explanation.answers) == KNOWN[name]["n_answers"]


@pytest.mark.parametrize("name", RECORDS)
def test_findings_of_a_record_ask_nothing_twice_and_are_kept(name, tmp_path):
    """The search is younger than these records: it asks for what it needs beyond their answers."""
    explanation, asked = load(name), []
    before = set(explanation.answers)

    def counted(images):
        asked.extend(images.copy())
        return two_patches(images)

    model = mcrise.Model(counted, labels=LABELS, identity=IDENTITY)
    findings = explanation.findings_of(None, model)
    new = explanation.answers.keys() - before
    assert before <= explanation.answers.keys()
    assert len(asked) == len(new) + 1 + 4  # to recognize the model
    main = findings[0].region
    assert (main & REGION).sum() > 0.4 * main.sum()
    explanation.save(tmp_path / "run.npz")
    again = mcrise.load(tmp_path / "run.npz")
    assert again.findings == findings
    assert again.answers.keys() == explanation.answers.keys()
