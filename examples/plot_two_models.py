"""
What changed between two models
===============================

Two models under the same masks: the noise of the masks is the same and drops out of the difference.
Here the second version has stopped to look at blue.
"""

import numpy as np

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.output.plots import plot_maps

sign = SIGNS["turn-right-ahead"]()


def before(images):
    score = images[:, 60:130, 60:130, 2].mean(axis=(1, 2)) / 255
    return np.stack([score, 1 - score], axis=1)


def after(images):
    score = images[:, 60:130, 60:130].mean(axis=(1, 2, 3)) / 255
    return np.stack([score, 1 - score], axis=1)


runs = [
    mcrise.explain(sign, mcrise.load_model(model, labels=["turn", "other"]), n_masks=512,
                   mask_prob=0.3, seed=0, trials=False)
    for model in (before, after)
]  # fmt: skip
figure = plot_maps([run.maps("turn") for run in runs], ["before", "after"])
