"""How far a study or an audit is, for whoever watches."""

from collections.abc import Iterator

from ..output.progress import ProgressState, show_progress
from .work import Batch, W


def with_study_progress(run: Iterator[W]) -> Iterator[W]:
    """Pass it on while its images are counted on stderr; the title counts failures."""
    return show_progress(run, "images", spot_of)


def spot_of(work: Batch) -> ProgressState:
    done, stage = work.counted
    title = f"{stage} ({work.n_failed} failed)" if work.n_failed else stage
    return ProgressState(done, len(work.examples), title)
