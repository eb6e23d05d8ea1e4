"""Findings made by hand: blocks of an image, painted and asked of the model."""

import numpy as np

from mcrise.interpretation.findings import Control, Finding, Findings, Trial, letter_of
from mcrise.interpretation.regions import place_of
from mcrise.interpretation.repaints import Repaint, Stroke, own_mean, shuffled


def block(size, top, left, high, wide):
    """A region (H, W) given in shares of the image."""
    region = np.zeros(size, bool)
    rows, cols = size
    region[round(top * rows) : round((top + high) * rows),
           round(left * cols) : round((left + wide) * cols)] = True  # fmt: skip
    return region


def ask(explanation, model, target, region, fill, role, letter=""):
    painted = Repaint((Stroke(region, fill, place_of(region)),))
    pixels = painted.render(explanation.view.pixels, explanation.plan.cell)
    scores = np.asarray(model(pixels[None])[0], np.float32)
    return Trial(painted, role, scores, target, letter)


def make_finding(explanation, model, target, n, region, described=True, n_places=19):
    """The color that moves the score most, then all other tests."""
    image, before = explanation.view.pixels, float(explanation.untouched[target])
    letter = letter_of(n)
    colors = [
        ask(explanation, model, target, region, fill, "color", letter)
        for fill in explanation.plan.fills
    ]
    main = max(colors, key=lambda trial: abs(trial.score - before))
    label, says = explanation.label(target), explanation.label(main.says)
    moved = "lowers" if main.score < before else "raises"
    sentence = (
        f"{letter}: {place_of(region)}: painting it {main.fill.name} {moved} '{label}' from "
        f"{before:.2f} to {main.score:.2f}; the model then says '{says}'."
    )
    control, tests = None, ()
    if described:
        own = [own_mean(image, region), shuffled(image, region)]
        roles = ["own mean", "shuffle"]
        tests = (
            *colors,
            *(ask(explanation, model, target, region, f, r, letter)
              for f, r in zip(own, roles, strict=True)),
        )  # fmt: skip
        places = [
            np.roll(region, shift, axis=(0, 1))
            for shift in np.random.default_rng(0).integers(4, min(region.shape), (n_places, 2))
        ]
        trials = tuple(
            ask(explanation, model, target, place, main.fill, "control", letter) for place in places
        )
        control = Control(trials, 0, "only here" if trials else "not controlled")
    return Finding(
        letter, main, before, says, main.says != int(explanation.untouched.argmax()), tests,
        control, described=described, sentence=sentence,
    )  # fmt: skip


def make_findings(explanation, model, described, listed=(), target=None, **given):
    """Findings of blocks: those described in full, and those that are only listed."""
    target = explanation.resolve(target)
    found = tuple(
        make_finding(explanation, model, target, n, region, n < len(described))
        for n, region in enumerate([*described, *listed])
    )
    trials = tuple(trial for one in found for trial in (one.trial, *one.tests))
    given.setdefault("trials", trials)
    return Findings(target, explanation.label(target), found, **given)
