"""Models with known answers, and small pieces that several tests need."""

import itertools

import numpy as np

import mcrise
from mcrise.estimators import ESTIMATORS, Sample
from mcrise.masks import Masks, Plan, draw, enlargement


def gray_image(rows, cols):
    return np.full((rows, cols, 3), 128, np.uint8)


def photo(rows, cols, seed=0):
    """Pixels without any pattern to rely on."""
    return np.random.default_rng(seed).integers(0, 256, (rows, cols, 3), np.uint8)


def constant_model(images):
    return np.tile([0.7, 0.3], (len(images), 1))


class PatchModel:
    """The probability is the mean red of one patch: it depends on nothing else."""

    def __init__(self, rows, cols):
        self.rows, self.cols = rows, cols

    def __call__(self, images):
        red = images[:, self.rows, self.cols, 0].mean(axis=(1, 2)) / np.float64(255)
        return np.stack([red, 1 - red], axis=1)


class Counting:
    """Any model, with its calls counted image by image."""

    def __init__(self, model):
        self.model, self.n_images, self.batches = model, 0, []

    def __call__(self, images):
        self.n_images += len(images)
        self.batches.append(len(images))
        return self.model(images)


def draw_many(plan, n_chunks):
    parts = [draw(plan, chunk) for chunk in range(n_chunks)]
    return Masks(
        np.concatenate([p.cells for p in parts]), np.concatenate([p.shifts for p in parts])
    )


def estimated(plan, masks, scores, estimator="centered", kind="any"):
    """Values and standard errors of the maps of some scores (N,), and notes."""
    sample = Sample(plan, masks, [np.asarray(scores)[:, None]], kind)
    made = ESTIMATORS[estimator].prepare(sample).maps(sample.column(0))
    return made.values, made.se, made.notes


def every_mask(n_cells, n_fills, mask_prob):
    """All assignments of "kept" and the fills to some cells, with their chances."""
    cells = np.array(list(itertools.product(range(n_fills + 1), repeat=n_cells)), np.uint8)
    chance = np.where(cells == 0, 1 - mask_prob, mask_prob / n_fills).prod(axis=1)
    return cells, chance


def full_masks(plan: Plan, masks: Masks):
    """The masks at full size, kept first: (K + 1, N, H, W). Only tests can afford this."""
    rows, cols = (enlargement(*axis) for axis in zip(plan.size, plan.grid, plan.cell, strict=True))
    onehot = masks.cells == np.arange(plan.n_fills + 1)[:, None, None, None]
    return np.einsum(
        "yni,knij,xnj->knyx",
        rows[:, masks.shifts[:, 0]],
        onehot.astype(float),
        cols[:, masks.shifts[:, 1]],
        optimize=True,
    )


def explain_masks(image, model, **settings):
    """What is known of an image from masks alone: nobody looks at trials here."""
    return mcrise.explain(image, model, **{"trials": False, **settings})
