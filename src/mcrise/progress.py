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
