"""How far a study or an audit is, for whoever watches."""

from collections.abc import Iterator

from ..progress import Spot, followed
from .work import W, Work


def with_study_progress(run: Iterator[W]) -> Iterator[W]:
    """Pass it on while its images are counted on stderr; the title counts failures."""
    return followed(run, "images", spot_of)


def spot_of(work: Work) -> Spot:
    done, stage = work.counted
    title = f"{stage} ({work.n_failed} failed)" if work.n_failed else stage
    return Spot(done, len(work.examples), title)
