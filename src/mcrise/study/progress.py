"""A bar for whoever watches a study."""

from collections.abc import Iterator

from ..progress import bar_of
from .study import Study


def with_study_progress(run: Iterator[Study]) -> Iterator[Study]:
    """Pass a study on while a bar follows its images; failures are counted in the title."""
    with bar_of("images") as bar:
        task = None
        for study in run:
            if task is None:  # the images done before are not part of the speed
                task = bar.add_task("images", total=len(study.examples), completed=len(study.done))
            title = f"images ({study.n_failed} failed)" if study.n_failed else "images"
            bar.update(task, completed=len(study.done), description=title)
            yield study
