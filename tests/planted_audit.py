"""Audits with known answers: scores that are additive in the cells of masks, and what they come to.

The masks are the project's and so are the maps: `centered`, on pictures that have a pixel for each
point of the raster. Every image has masks of its own.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from mcrise.audits.class_data import RASTER, AuditInfo, ClassData
from mcrise.colors import BASICS
from mcrise.estimators.averages import contrast, group_count
from mcrise.masks import CHUNK, Masks, Plan, draw, enlargement

FILLS = ("red", "green", "blue", "white", "black")
ZONES = ("upper half", "background")  # the background is the lower half
ASKED = AuditInfo(FILLS, ("stop", "yield", "keep left"), ZONES, BASICS, n_masks=64, mask_prob=0.3)


@dataclass(frozen=True)
class Basis:
    """The masks of an image as weights: its maps are one product with its scores."""

    weights: np.ndarray  # (N, K, R, R): a mask's share in the map
    painted: np.ndarray  # (N, K, R, R): how much of a fill a mask has at each place

    def maps(self, scores):
        """Maps (..., K, R, R) of scores (..., N)."""
        n = scores.shape[-1]
        less = (scores - scores.mean(axis=-1, keepdims=True)) * (n / (n - 1))
        return np.tensordot(less, self.weights[:n], 1) / n

    def halves(self, scores):
        """Maps of every other mask, and of the rest."""
        return [
            Basis(self.weights[start::2], self.painted).maps(scores[..., start::2])
            for start in (0, 1)
        ]

    def errors(self, scores):
        """One number for all places of an image: (...,)."""
        n_groups = group_count(scores.shape[-1])
        less = scores - scores.mean(axis=-1, keepdims=True)
        parts = zip(
            np.split(less, n_groups, axis=-1), np.split(self.weights, n_groups), strict=True
        )
        means = np.stack([np.tensordot(s, w, 1) / s.shape[-1] for s, w in parts])
        return np.sqrt(np.mean(means.var(axis=0, ddof=1), axis=(-3, -2, -1)) / n_groups)


def make_basis(seed, mask_prob=ASKED.mask_prob, n_masks=64):
    plan, masks = plan_of(seed, mask_prob), masks_of(seed, mask_prob, n_masks)
    rows, cols = (
        enlargement(*axis)[:, shift].transpose(1, 0, 2).astype(np.float32)  # (N, R, cells)
        for *axis, shift in zip(plan.size, plan.grid, plan.cell, masks.shifts.T, strict=True)
    )
    onehot = masks.cells == np.arange(plan.n_fills + 1)[:, None, None, None]
    enlarged = rows @ onehot.astype(np.float32) @ cols.transpose(0, 2, 1)  # (K + 1, N, R, R)
    weights = contrast(plan, enlarged, 0.0).swapaxes(0, 1)
    return Basis(weights, enlarged[1:].swapaxes(0, 1))


def plan_of(seed, mask_prob=ASKED.mask_prob):
    return Plan((RASTER, RASTER), mask_prob=mask_prob, seed=seed)


def masks_of(seed, mask_prob=ASKED.mask_prob, n_masks=64):
    parts = [draw(plan_of(seed, mask_prob), chunk) for chunk in range(n_masks // CHUNK)]
    return Masks(*(np.concatenate([getattr(p, x) for p in parts]) for x in ("cells", "shifts")))


def expected(beta):
    """The maps (..., R, R) that scores `sum(beta * painted)` have on average: closed form."""
    side = enlargement(RASTER, ASKED.grid[0], RASTER // ASKED.grid[0])  # (R, shifts, cells)
    shared = np.einsum("xsi,ysi->xy", side, side) / side.shape[1]
    return shared @ beta @ shared.T


@dataclass(frozen=True)
class Population:
    """Images whose scores are `strength * presence + (another strength) * color`, and noise.

    Strengths are log-normal over images, so that a few depend on much more than most.
    """

    presence: np.ndarray  # (R, R) beta of all fills alike
    color: np.ndarray  # (K, R, R) what each fill has beyond it; no sum over fills
    spread: float = 0.5  # of the logarithm of strengths
    noise: float = 0.05  # of scores

    def draw(self, bases, generator, per_group=1):
        """The scores (n, N) of an image for each basis; so many in a row are of one strength."""
        strengths = generator.lognormal(0, self.spread, (2, len(bases) // per_group))
        one, other = strengths.repeat(per_group, axis=1)
        beta = self.presence[None, None] * one[:, None, None, None]
        beta = (beta + self.color * other[:, None, None, None]).astype(np.float32)  # (n, K, R, R)
        scores = [np.tensordot(b.painted, own, 3) for b, own in zip(bases, beta, strict=True)]
        scores = np.stack(scores)
        scores = 0.5 + scores + self.noise * generator.standard_normal(scores.shape)
        return scores.astype(np.float32)

    @property
    def mean(self):
        """(K, R, R) of the maps of all its images."""
        return np.exp(self.spread**2 / 2) * expected(self.presence + self.color)

    @property
    def color_share(self):
        """Strengths have the same mean square, so it is as of one image."""
        presence = np.square(expected(self.presence)).mean()
        color = np.square(expected(self.color)).mean()
        return float(color / (presence + color))


def some_population(**given):
    """Above the middle it matters that something is painted, below it that it is blue."""
    presence, color = np.zeros((RASTER, RASTER)), np.zeros((len(FILLS), RASTER, RASTER))
    presence[3:11, 10:22] = -0.004
    color[:, 21:29, 10:18] = np.array([0.008, 0, -0.012, 0.002, 0.002])[:, None, None]
    return Population(presence, color, **given)


def make_looks(maps, target=0, **given):
    """Looks of some maps (n, K, R, R), all else being plain and to be overridden."""
    n, n_fills = maps.shape[:2]
    halves = given.pop("halves", (maps, maps))
    presence = [one.mean(axis=1) for one in halves]
    colors = [one - one.mean(axis=1, keepdims=True) for one in halves]
    whole = (halves[0] * halves[1]).mean(axis=1)  # (n, R, R)
    half = RASTER // 2
    zones = np.stack([whole[:, :half].sum(axis=(1, 2)), whole[:, half:].sum(axis=(1, 2))], axis=1)
    number = np.arange(n)
    defaults = {
        "image": number + 1000 * target,
        "names": tuple(f"{target}-{i}.png" for i in number),
        "group": number + 1000 * target,
        "truth": np.full(n, target),
        "predicted": np.full(n, target),
        "score": np.full(n, 0.8),
        "errors": np.full(maps.shape, 0.01, np.float32),
        "presence_energy": (presence[0] * presence[1]).mean(axis=(1, 2)),
        "color_energy": (colors[0] * colors[1]).mean(axis=(1, 2, 3)),
        "zone_energy": zones / RASTER**2,
        "zone_effect": np.stack(
            [maps[:, :, :half].mean(axis=(2, 3)), maps[:, :, half:].mean(axis=(2, 3))], axis=1
        ),
        "color_area": np.zeros((n, len(BASICS))),
        "color_area_effect": np.full((n, len(BASICS), n_fills), np.nan),
        "gray": np.full(n, target),
        "hue120": np.full(n, target),
        "hue240": np.full(n, target),
        "counterfactual_kind": (None,) * n,
        "corrected_by": (None,) * n,
    }
    return ClassData(target=target, maps=maps.astype(np.float32), **(defaults | given))


def measured(bases, scores, target=0, **given):
    """Looks of the scores (n, N) of images, each with the basis of its own masks."""
    pairs = list(zip(bases, scores, strict=True))
    maps = np.stack([basis.maps(own) for basis, own in pairs])
    halves = [basis.halves(own) for basis, own in pairs]
    errors = np.array([basis.errors(own) for basis, own in pairs])
    return make_looks(
        maps,
        target,
        halves=tuple(np.stack([two[side] for two in halves]) for side in (0, 1)),
        errors=np.broadcast_to(errors[:, None, None, None], maps.shape).astype(np.float32),
        ranks=np.stack([basis.maps(rankdata(own) / len(own)) for basis, own in pairs]).astype(
            np.float32
        ),
        **given,
    )
