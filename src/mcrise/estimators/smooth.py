"""The `smooth` estimator: the same maps from fewer masks, by regression with a prior.

Were the score additive in pixels, f = b0 + sum_k <beta_k, m_k>, its expected MC-RISE map would be
exactly C beta_k, where C is the covariance of an enlarged mask with itself. So regress the scores
on the masks, let the data say how strong beta is, where, and how alike the fills are, and show
C E[beta | scores]. What the regression misses is estimated as `centered` would and added as far as
it stands out from noise, so that the limit for many masks is the paper's map whatever the model.
One factorisation serves every class, and no mask is ever enlarged. All of it runs on one thread of
BLAS, so that a map, and with it where a run stops, is the same to the bit whatever their number.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._util.threads import one_thread
from ..masks import Masks, Plan, enlargement_at
from . import Estimate, NullThreshold, Sample, TargetScores
from .averages import blur, centers, contrast, impulses, impulses_at
from .raster import Line, Raster, raster_of
from .significance import CONFIDENCE, N_SHUFFLES, significance_limit

HATS_PER_CELL = 1.5  # along an axis
MOST_HATS = 16
LENGTHS = (0.05, 0.1, 0.2)  # over which beta may vary, in long sides of the image
RANK = 50  # fields a beta is made of
MOST_COLUMNS = 600  # of the regression: with many fills each gets fewer fields
POOL = 8  # classes, those whose scores vary most, that decide on the prior
AT_ONCE = 20  # shuffles of N_SHUFFLES that are regressed together
STRIDES = (4, 4, 1)  # of the rounds of adapting the prior, in steps of expectation maximisation
RATIOS = np.geomspace(1e-6, 1e3, 46)  # of noise to prior variance
SOFT = 0.01  # keeps log odds finite
# True errors over the posterior's, which takes the prior learned from the same scores as given:
# measured on the development images of benchmarks/calls.py.
SE_SCALE = 1.13

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axis:
    """Rows or columns: hat functions along them, which span beta, and C."""

    line: Line
    hats: Array  # (points, hats), adding up to one at each point
    centers: NDArray[np.int64]  # (hats,) the pixel at which each is largest
    overlap: Array  # (shifts, hats, cells) of a hat and an enlarged cell
    covariance: Array  # (points, points) C: one matrix for rows, one for columns

    @cached_property
    def shown(self) -> Array:
        """A hat of beta as the map shows it: (points, hats)."""
        return self.covariance @ (self.hats * self.line.widths[:, None])


def _make_axis(line: Line) -> Axis:
    n_pixels, n_cells, cell = line.n_pixels, line.n_cells, line.cell
    n_hats = min(math.ceil(HATS_PER_CELL * n_cells), MOST_HATS, n_pixels)
    place = (line.places + 0.5) / n_pixels * n_hats - 0.5
    distance = np.clip(place, 0, n_hats - 1)[:, None] - np.arange(n_hats)
    hats = np.maximum(0.0, 1.0 - np.abs(distance))
    enlarged = enlargement_at(line.places, n_cells, cell)
    overlap = np.einsum("xj,xsi->sji", hats * line.widths[:, None], enlarged)
    # All shifts are equally likely, so C only depends on how far apart two points are.
    triangle = np.convolve(np.ones(cell), np.ones(cell)) / cell
    reach = np.zeros(n_pixels + 2 * cell)
    reach[: 2 * cell - 1] = np.convolve(triangle, triangle)[2 * cell - 2 :] / cell
    # Within rounding a whole number of pixels, or between two of them.
    apart = np.abs(np.subtract.outer(line.places, line.places))
    centers = ((np.arange(n_hats) + 0.5) / n_hats * n_pixels).astype(np.int64)
    covariance = np.interp(apart.ravel(), np.arange(len(reach)), reach).reshape(apart.shape)
    return Axis(line, hats, centers, overlap, covariance)


@dataclass(frozen=True, eq=False)
class Hats:
    """The hats of rows times those of columns, and how they appear in a map."""

    down: Axis
    across: Axis

    def show(self, fields: Array) -> Array:
        """The maps (K, points) of beta (K, hats)."""
        return self.down.shown @ self.unfold(fields) @ self.across.shown.T

    def interpolate(self, values: Array) -> Array:
        """Values (K, hats) at the hats' centers, at every point."""
        return self.down.hats @ self.unfold(values) @ self.across.hats.T

    def unfold(self, values: Array) -> Array:
        return values.reshape(-1, len(self.down.centers), len(self.across.centers))

    @cached_property
    def at_centers(self) -> Array:
        """The map at the centers of the hats, of each hat of beta: (hats, hats)."""
        axes = (self.down, self.across)
        shown = (axis.line.at(axis.shown, axis.centers) for axis in axes)
        return np.asarray(np.kron(*shown), np.float64)

    def painted(self, masks: Masks, n_fills: int) -> NDArray[np.float32]:
        """How much of each fill each mask has under each hat: (N, K, hats)."""
        shape = (n_fills, len(self.at_centers))
        out = np.empty((len(masks), *shape), np.float32)
        for start in range(0, len(masks), 256):  # all at once would take more memory than the rest
            some = slice(start, start + 256)
            onehot = masks.cells[some, None] == np.arange(1, n_fills + 1)[:, None, None]
            rows = self.down.overlap[masks.shifts[some, 0], None]
            cols = self.across.overlap[masks.shifts[some, 1], None]
            sums = rows @ onehot.astype(np.float64) @ cols.swapaxes(2, 3)
            out[some] = sums.reshape(-1, *shape)
        return out


def _smooth_fields(plan: Plan, hats: Hats) -> Array:
    """The prior of beta as its strongest independent fields: (hats, rank)."""
    kernel = np.zeros((1, 1))
    for length in LENGTHS:
        near = (
            np.exp(-0.5 * (np.subtract.outer(at, at) / (length * max(plan.size))) ** 2)
            for at in (hats.down.centers, hats.across.centers)
        )
        kernel = kernel + np.kron(*near)
    power, fields = np.linalg.eigh(kernel)
    rank = max(1, min(RANK, MOST_COLUMNS // plan.n_fills))
    return np.asarray(fields[:, -rank:] * np.sqrt(np.maximum(power[-rank:], 0)))


@dataclass(frozen=True, eq=False)
class Factors:
    """The features of all masks turned to their principal axes: what every class shares."""

    rows: Array  # (N, D) centered
    power: Array  # (D,) squared length of each column of `rows`
    axes: Array  # (K, rank, D) from the principal axes back to coefficients
    fields: Array  # (hats, rank) what a coefficient adds to beta, before
    mixing: Array  # (K, K) it is spread over the fills

    @cached_property
    def squares(self) -> Array:
        return np.square(self.rows)

    @cached_property
    def volume(self) -> Array:
        """What the marginal likelihood has for each ratio, whatever the scores."""
        logs = np.log(self.power + RATIOS[:, None]).sum(axis=1)
        return np.asarray(logs - len(self.power) * np.log(RATIOS))

    def beta(self, coef: Array) -> Array:
        """Coefficients along the axes (D, q) as fields (q, K, hats)."""
        along = (self.axes @ coef).transpose(2, 0, 1)  # (q, K, rank)
        return np.asarray(self.mixing @ along @ self.fields.T)


def _factorise(painted: NDArray[np.float32], fields: Array, mixing: Array) -> Factors:
    """Columns for these fields, scaled so that a mask has squared length one on average."""
    shape = (*painted.shape[:2], fields.shape[1])  # N, K, rank
    flat = painted.reshape(-1, painted.shape[2])  # one product of matrices, not N small ones
    own = mixing.T.astype(np.float32) @ (flat @ fields.astype(np.float32)).reshape(shape)
    columns = own.reshape(len(own), -1).astype(np.float64)
    del own  # these are the largest arrays there are
    columns -= columns.mean(axis=0)
    scale = math.sqrt(len(columns) / np.square(columns).sum())
    columns *= scale
    power, axes = np.linalg.eigh(columns.T @ columns)
    split = axes.reshape(*shape[1:], -1)
    return Factors(columns @ axes, np.maximum(power, 0), split, fields, scale * mixing)


@dataclass(frozen=True, eq=False)
class Solution:
    """The regressions of q columns of scores."""

    coef: Array  # (D, q) along the principal axes
    precision: Array  # (D, q) of each, over that of the noise
    ratio: Array  # (q,) of noise to prior variance
    noise: Array  # (q,) its variance
    others: Array  # (N, q) what all other masks predict for each mask, less the mean


def _solve(factors: Factors, scores: Array) -> Solution:
    """Regress each column of scores (N, q), the prior's strength chosen by marginal likelihood."""
    n_masks = len(factors.rows)
    y = scores - scores.mean(axis=0)
    along = factors.rows.T @ y  # (D, q)
    total = np.square(y).sum(axis=0)
    precision = factors.power + RATIOS[:, None]  # (ratios, D)
    left = np.maximum(total - (1 / precision) @ np.square(along), 1e-12 * total)  # (ratios, q)
    best = (n_masks * np.log(left) + factors.volume[:, None]).argmin(axis=0)
    chosen = precision[best].T
    coef = along / chosen
    leverage = 1 / n_masks + factors.squares @ (1 / chosen)
    others = y - (y - factors.rows @ coef) / (1 - leverage)
    noise = left[best, np.arange(len(best))] / n_masks
    return Solution(coef, chosen, RATIOS[best], noise, others)


def _adapt_amplitude(hats: Hats, factors: Factors, solution: Solution, y: Array) -> Array:
    """How strong beta is expected to be at each hat: (hats,).

    Classes look at the same places, so where the maps of several are strong, others may be.
    """
    off = np.square(y - y.mean(axis=0) - solution.others).sum(axis=0)
    trust = np.maximum(1 - off / np.square(y - y.mean(axis=0)).sum(axis=0), 1e-3)  # R2
    maps = factors.beta(solution.coef) @ hats.at_centers.T  # (q, K, hats)
    energy = np.square(maps).mean(axis=1)
    energy /= np.maximum(energy.mean(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray((trust @ energy / trust.sum() + 0.2) ** 0.75)


def _adapt_mixing(factors: Factors, solution: Solution, stride: float) -> Array:
    """How alike the fills' betas are expected to be: (K, K).

    Black and blue may both just darken an image, and white do the opposite: the second moments of
    the coefficients, pooled over fields and classes, tell. A step of expectation maximisation
    multiplies by their root. With few masks it takes many steps, so that the first rounds take
    several at once; with many masks one is enough, and the last round mends what was too far.
    """
    coef = factors.axes @ solution.coef  # (K, rank, q)
    known = np.einsum("krq,lrq,q->kl", coef, coef, solution.ratio / solution.noise)
    unknown = (1 / solution.precision) @ solution.ratio  # (D,) the posterior's own spread
    spread = np.einsum("krd,d,lrd->kl", factors.axes, unknown, factors.axes, optimize=True)
    power, axes = np.linalg.eigh((known + spread) / coef[0].size)
    step = (axes * np.maximum(power, 0) ** (stride / 2)) @ axes.T
    return np.asarray(factors.mixing @ step)


@one_thread()
def fit(sample: Sample) -> "Fit":
    """Regress the scores of all classes of a run on its masks."""
    plan, masks, scores = sample.plan, sample.masks, sample.table()
    points = raster_of(plan)
    hats = Hats(_make_axis(points.down), _make_axis(points.across))
    painted = hats.painted(masks, plan.n_fills)
    varied = np.flatnonzero(np.ptp(scores, axis=0))
    spread = scores[:, varied].std(axis=0)
    y = scores[:, varied[np.argsort(-spread, kind="stable")[:POOL]]].astype(np.float64)
    y = y if sample.kind == "any" else _log_odds(y, 0.0)
    y = y[:, np.ptp(y, axis=0) > 0]  # beyond 0 and 1, within the tolerance, odds do not change
    smooth = fields = _smooth_fields(plan, hats)
    mixing = np.eye(plan.n_fills)
    for stride in STRIDES if y.size else ():
        fields, mixing = _adapt(hats, painted, smooth, fields, mixing, y, stride)
    return Fit(plan, masks, scores.shape[1], points, hats, _factorise(painted, fields, mixing))


def _adapt(
    hats: Hats,
    painted: NDArray[np.float32],
    smooth: Array,
    fields: Array,
    mixing: Array,
    y: Array,
    stride: float,
) -> tuple[Array, Array]:
    """One round of learning the prior, fields and mixing, from the scores (N, q) themselves."""
    factors = _factorise(painted, fields, mixing)
    solution = _solve(factors, y)
    amplitude = _adapt_amplitude(hats, factors, solution, y)
    return amplitude[:, None] * smooth, _adapt_mixing(factors, solution, stride)


def _regressed(column: TargetScores) -> Array:
    """What is regressed for some scores: these, and where they are bounded their log odds."""
    columns = [column.scores]
    if column.low is not None and np.ptp(odds := _log_odds(column.scores, column.low)) > 0:
        columns.append(odds)
    return np.stack(columns, axis=1)


def _log_odds(scores: Array, low: float) -> Array:
    """Of scores between `low` and one, where a model's evidence adds up better."""
    scores = np.clip(scores, low, 1)
    return np.asarray(np.log((scores - low + SOFT) / (1 - scores + SOFT)))


@dataclass(frozen=True, eq=False)
class Fit:
    """The regression of a run, from which the maps of any class follow."""

    plan: Plan
    masks: Masks
    n_classes: int
    points: Raster
    hats: Hats
    factors: Factors

    @one_thread()
    def maps(self, column: TargetScores) -> Estimate:
        """Maps of the scores of a class, or of the difference of two, under these masks."""
        found = self.predict(_regressed(column))
        if found is None:
            nothing = np.zeros((self.plan.n_fills, *self.plan.size), np.float32)
            return Estimate(nothing, nothing)
        solution, slopes, left = found
        values = self.hats.show(self.factors.beta(solution.coef @ slopes[:, None]))
        variances = solution.noise * (self.squared_axes @ (1 / solution.precision))  # (K, hats, q)
        variance = self.hats.interpolate(np.square(np.sqrt(variances) @ slopes))
        missed, share, noise = self.residual(left)
        se = SE_SCALE * np.sqrt((1 - share) * variance + share * noise)
        return Estimate(self.points.enlarge(values + missed), self.points.enlarge(se))

    @one_thread()
    def chance(self, column: TargetScores) -> NullThreshold | None:
        """About half of what the centered maps may show by chance.

        None, so that the centered maps are asked, where there is no regression, and where few
        classes decide on the prior: it was fitted to the very scores in question, and shuffling
        these afterwards no longer tells what chance does.
        """
        if self.n_classes < POOL or (found := self.by_chance(column)) is None:
            return None
        peaks, rest = found
        through_residual = significance_limit(self.plan, self.masks, rest, column.least)
        limit = math.hypot(float(np.quantile(peaks, CONFIDENCE)), through_residual)
        return NullThreshold(limit, self.maps(column).values)

    def predict(self, columns: Array) -> tuple[Solution, Array, Array] | None:
        """The regression of scores and their log odds (N, q), its slopes, and what it misses.

        Where the other masks tell nothing of a score, nothing can be measured by them, and its own
        regression is taken as it is. None where it never changes.
        """
        scores = columns[:, 0] - columns[:, 0].mean()
        if np.ptp(scores) == 0:
            return None
        solution = _solve(self.factors, columns)
        # The map is that of the score itself: whatever was regressed, its slope is measured there.
        slopes = _nonnegative_weights(solution.others, scores)
        left = scores - solution.others @ slopes
        explained = 1 - np.square(left).sum() / np.square(scores).sum()
        if explained * len(scores) < 4:
            slopes = np.eye(len(slopes))[0]
            left = scores - solution.others[:, 0]
        return solution, slopes, left

    def by_chance(self, column: TargetScores) -> tuple[Array, Array] | None:
        """What the maps would show if these scores had nothing to do with the masks.

        Returns the largest |value| for each shuffle of the scores, by the regression that they
        themselves got, and the scores (N,) that enter the maps through the residual, as
        `centered` would show them. None where there is no regression.
        """
        columns = _regressed(column)
        found = self.predict(columns)
        if found is None:
            return None
        solution, slopes, left = found
        weights = slopes / solution.precision  # (D, q)
        order = np.random.default_rng(self.plan.seed)
        columns = columns - columns.mean(axis=0)
        coef = np.empty((len(weights), N_SHUFFLES))
        for n in range(0, N_SHUFFLES, AT_ONCE):  # one by one, each would read all rows
            shuffled = [columns[order.permutation(len(columns))] for _ in range(AT_ONCE)]
            along = self.factors.rows.T @ np.concatenate(shuffled, axis=1)  # (D, AT_ONCE * q)
            along = along.reshape(len(weights), AT_ONCE, -1)
            coef[:, n : n + AT_ONCE] = (weights[:, None] * along).sum(axis=2)
        shown = self.factors.beta(coef) @ self.hats.at_centers.T  # (n, K, hats)
        _, share, _ = self.residual(left)
        return np.abs(shown).max(axis=(1, 2)), math.sqrt(share) * left

    @cached_property
    def squared_axes(self) -> Array:
        """The square of what each principal axis adds to the map at the hats: (K, hats, D)."""
        axes = np.tensordot(self.factors.mixing, self.factors.axes, axes=1)  # (K, rank, D)
        return np.asarray(np.square(self.hats.at_centers @ self.factors.fields @ axes))

    def residual(self, left: Array) -> tuple[Array, float, float]:
        """The map of what the other masks do not predict, as far as it is more than noise.

        Each band of spatial frequencies is kept by its share of signal. Also returns the share
        kept over all, and the noise variance there would be in a map with nothing held back.
        """
        plan, n_masks = self.plan, len(left)
        left = left - left.mean()
        drawn = contrast(plan, self.impulses(left / (n_masks - 1)), 0.0)
        waves = self.points.waves(blur(drawn, self.points.per_cell, self.points.shape))
        band, spectrum = self.bands
        noise = spectrum * (left.var() / n_masks)  # of each frequency
        power_in = np.bincount(band.ravel(), np.square(waves).mean(axis=0).ravel())
        noise_in = np.bincount(band.ravel(), noise.ravel())
        tiny = np.finfo(np.float64).tiny
        keep = np.maximum(0, 1 - noise_in / np.maximum(power_in, tiny))
        share = float(keep @ noise_in / max(noise_in.sum(), tiny))
        whole = float(noise.sum() / self.points.area)
        return self.points.unwaves(waves * keep[band]), share, whole

    def impulses(self, scores: Array) -> Array:
        if self.points.whole:
            return impulses(self.plan, self.places, scores)
        return impulses_at(self.points, self.plan, self.masks, scores)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Where the cells of all masks lie: (N, cells)."""
        return centers(self.plan, self.masks)

    @cached_property
    def bands(self) -> tuple[NDArray[np.int64], Array]:
        """Of each spatial frequency: its band, and the noise of scores of variance one."""
        plan = self.plan
        # The weights of the estimate have covariance C, times this for each cell.
        per_cell = plan.n_fills / plan.mask_prob + 1 / plan.keep_prob
        down, across = (
            self.points.spectrum(axis.line, axis.covariance)
            for axis in (self.hats.down, self.hats.across)
        )
        band = np.maximum(np.rint(np.hypot(*np.indices(self.points.shape))), 1).astype(np.int64)
        return band, per_cell * np.outer(down, across)


def _nonnegative_weights(columns: Array, scores: Array) -> Array:
    """Weights, none negative, with which one or two columns (N, q) predict the scores best."""
    gram, along = columns.T @ columns, columns.T @ scores
    weights = np.asarray(np.linalg.lstsq(gram, along, rcond=None)[0], np.float64)
    if (weights >= 0).all():
        return weights
    alone = np.maximum(along, 0) / np.maximum(gram.diagonal(), np.finfo(np.float64).tiny)
    better = (alone * along).argmax()
    return np.where(np.arange(len(alone)) == better, alone, 0.0)
