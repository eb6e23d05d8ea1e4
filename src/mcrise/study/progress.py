"""How far a study is, for whoever watches."""

from collections.abc import Iterator

from ..progress import Spot, followed
from .study import Study


def with_study_progress(run: Iterator[Study]) -> Iterator[Study]:
    """Pass a study on while its images are counted on stderr; the title counts failures."""
    return followed(run, "images", spot_of)


def spot_of(study: Study) -> Spot:
    title = f"images ({study.n_failed} failed)" if study.n_failed else "images"
    return Spot(len(study.done), len(study.examples), title)
