"""Two runs of one image under the same masks, as one: a model before and after.

The scores of both become two columns of one record, so that all that is known of comparing two
classes of a record serves to compare two models.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..claims import join
from ..content import ByContent
from ..errors import InputError
from ..estimators import DEFAULT
from ..reading import read_maps
from ..record import Record, Target
from ..trials import Comparison
from .change import Change, mean_change
from .statistics import widened
from .zones import NINTHS, onto_raster, zone_shares

FEWEST = 4  # chunks, to tell how sure a mean over a zone is
MAY_DIFFER = ("batch size", "number of classes")  # of two runs


@dataclass(frozen=True, eq=False)
class RunDifference(ByContent):
    """What the score of a class depends on more or less than before, in one image."""

    record: Record  # of both: class 0 is after, class 1 before
    comparison: Comparison
    zones: dict[str, dict[str, Change]]  # mean change of the score, by zone and fill

    def lines(self) -> list[str]:
        """To print."""
        after, before = self.record.untouched
        out = [f"{self.comparison.given.label}: {before:.2f} → {after:.2f}"]
        out += self.comparison.difference.lines()
        rows = [(zone, *pair) for zone, row in self.zones.items() for pair in row.items()]
        sure = [row for row in rows if widened(row[2].by, len(rows)).excludes_zero]
        sure.sort(key=lambda row: -abs(row[2].by.value))
        for zone, fill, change in sure[:5]:
            moved = f"{change.before.value:+.3f} → {change.after.value:+.3f}"
            ends = f"[{change.by.low:+.3f}, {change.by.high:+.3f}]"
            out.append(f"- {fill} on the {zone}: {moved}, {change.by.value:+.3f} {ends}.")
        return out


def compare_runs(
    before: Record, after: Record, target: Target = None, estimator: str = DEFAULT
) -> RunDifference:
    """Compare two runs of the same image; `target` None is the class predicted before."""
    check_alike(before, after)
    index = before.resolve(target)
    label = before.label(index)
    other = after.resolve(label if before.labels and after.labels else index)
    chunks = sorted({*before.chunks} & {*after.chunks})
    if not chunks:
        raise InputError("The two runs have no masks in common: run both from the first mask on.")

    both = replace(
        before,
        scores={
            c: np.stack([after.scores[c][:, other], before.scores[c][:, index]], axis=1)
            for c in chunks
        },
        untouched=np.array([after.untouched[other], before.untouched[index]], np.float32),
        kind="any" if before.kind == "any" else "independent",
        labels=(f"{label}, after", f"{label}, before"),
        answers={},
    )
    difference = read_maps(both, 0, estimator, against=1)
    now, then = both.maps([0, 1], estimator)
    return RunDifference(both, Comparison(now, then, difference), zone_changes(both))


def check_alike(before: Record, after: Record) -> None:
    same_model = replace(after, model=before.model, origin=before.origin)
    different = [what for what in before.differences(same_model) if what not in MAY_DIFFER]
    if different:
        raise InputError(
            f"The two runs differ in their {join(different, 'and')}, and only runs of one image "
            "under the same masks can be compared: run one of them again as the other was."
        )


def zone_changes(both: Record) -> dict[str, dict[str, Change]]:
    """The mean effect in each third, with intervals over chunks of masks."""
    if len(both.chunks) < FEWEST:
        return {}
    shares = zone_shares(NINTHS, None)
    weights = shares / shares.sum(axis=(1, 2), keepdims=True)
    effects = []  # `centered` is linear: the mean over chunks is unbiased, however noisy each is
    for chunk in both.chunks:
        one = replace(both, scores={chunk: both.scores[chunk]})
        maps = one.maps([0, 1], "centered")
        effects.append([np.einsum("kij,zij->zk", onto_raster(m.values), weights) for m in maps])
    after, before = np.array(effects).swapaxes(0, 1)  # (chunks, Z, K)
    own = np.arange(len(both.chunks))
    found: dict[str, dict[str, Change]] = {}
    for z, zone in enumerate(NINTHS):
        for k, fill in enumerate(both.plan.fills):
            if change := mean_change(before[:, z, k], after[:, z, k], own):
                found.setdefault(zone.name, {})[fill.name] = change
    return found
