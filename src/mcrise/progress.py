"""A progress bar for whoever watches a run: masks per second and the time left."""

from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from .record import Record
from .study import Study


class Speed(ProgressColumn):
    """The speed so far."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        figures = "" if speed is None else f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"
        return Text(f"{figures} {self.unit}/s" if figures else "", style="progress.data.speed")


def bar_of(unit: str) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Speed(unit),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=Console(stderr=True),
    )


def with_progress(run: Iterator[Record], title: str = "masks") -> Iterator[Record]:
    """Pass a run on while a bar on stderr follows it to its goal, which may move."""
    with bar_of("masks") as bar:
        task = bar.add_task(title, total=None)
        for record in run:
            bar.update(task, completed=record.n_masks, total=record.goal)
            yield record


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
