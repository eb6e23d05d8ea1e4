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


class MasksPerSecond(ProgressColumn):
    """The speed so far."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} masks/s", style="progress.data.speed")


def with_progress(run: Iterator[Record], title: str = "masks") -> Iterator[Record]:
    """Pass a run on while a bar on stderr follows it to its goal, which may move."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        MasksPerSecond(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task(title, total=None)
        for record in run:
            bar.update(task, completed=record.n_masks, total=record.goal)
            yield record
