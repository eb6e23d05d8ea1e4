"""What a terminal shows: sentences, and how far a run is.

Each color that a sentence names has a swatch before it. Where stdout is no terminal, or the user
wants no colors, sentences are plain text. Of a run, a terminal gets a bar, a notebook a bar in its
cell, and a log a plain line now and then: how much of how much, how fast, and the time left.
"""

import html
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import click
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

from .._util.text import duration, one_line
from ..colors import rgb_of
from ..explanation import Explanation
from ..fills import Fill, Solid

SWATCH = "■ "
QUOTED = r"'[^']*'|“[^”]*”"  # a label may hold the name of a color


def print_lines(lines: Iterable[str], fills: Sequence[Fill] = ()) -> None:
    """Print lines, with a swatch before each color among `fills` or written as #rrggbb."""
    console = Console()
    safe = [one_line(line) for line in lines]
    if not console.is_terminal or console.color_system is None or console.no_color:
        click.echo("\n".join(safe))
        return
    for line in safe:
        console.print(with_swatches(line, fills), soft_wrap=True, highlight=False)


def with_swatches(line: str, fills: Sequence[Fill]) -> Text:
    """A line in which the names of colors have swatches."""
    names = [re.escape(fill.name) for fill in fills if isinstance(fill, Solid)]
    colors = {fill.name.lower(): fill.rgb for fill in fills if isinstance(fill, Solid)}
    words = "|".join([r"#[0-9a-f]{6}\b", *(rf"\b{name}\b" for name in names)])
    out, end = Text(), 0
    for found in re.finditer(f"{QUOTED}|(?P<color>{words})", line, re.IGNORECASE):
        name = found["color"]
        rgb = name and (colors.get(name.lower()) or rgb_of(name))
        if rgb:
            out.append(line[end : found.start()])
            out.append(SWATCH, style="rgb({},{},{})".format(*rgb))
            end = found.start()
    out.append(line[end:])
    return out


# ---- progress


FIRST_LINE, NEXT_LINE = 5.0, 30.0  # seconds: a short run needs no line in a log, a long one few
NEXT_LOOK = 0.2  # seconds between two states of a notebook's bar

T = TypeVar("T")


@dataclass(frozen=True)
class ProgressState:
    """Where a run is; its goal may move, and so may its title."""

    done: int
    goal: int
    title: str


def with_progress(run: Iterator[Explanation], title: str = "masks") -> Iterator[Explanation]:
    """Pass a run on while its progress is shown on stderr."""
    return show_progress(
        run,
        "masks",
        lambda explanation: ProgressState(explanation.n_masks, explanation.goal, title),
    )


def show_progress(run: Iterator[T], unit: str, look: Callable[[T], ProgressState]) -> Iterator[T]:
    """Pass anything on while `look` says where it is, in the way that suits who watches."""
    with _watcher(unit) as show:
        for state in run:
            show(look(state))
            yield state


def _watcher(unit: str) -> AbstractContextManager[Callable[[ProgressState], None]]:
    console = Console(stderr=True)
    if console.is_jupyter:
        return cell(unit)
    if console.is_interactive and console.file.isatty():
        return bar(unit, console)
    return lines(unit, console)


# ---- a terminal


class Speed(ProgressColumn):
    """The speed so far."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else _pace(speed, self.unit), style="progress.data.speed")


@contextmanager
def bar(unit: str, console: Console) -> Iterator[Callable[[ProgressState], None]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Speed(unit),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as shown:
        task = shown.add_task(unit, total=None)
        yield lambda spot: shown.update(
            task, completed=spot.done, total=spot.goal, description=spot.title
        )


# ---- a log


@contextmanager
def lines(unit: str, console: Console) -> Iterator[Callable[[ProgressState], None]]:
    telling = ProgressLog(unit)
    due = time.monotonic() + FIRST_LINE

    def show(spot: ProgressState) -> None:
        nonlocal due
        line = telling.line(spot)
        if time.monotonic() >= due:
            due = time.monotonic() + NEXT_LINE
            console.file.write(f"{line}\n")
            console.file.flush()

    yield show


class ProgressLog:
    """Where a run is, in words; what it had at the first look is not part of its speed."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.first = 0.0, 0
        self.n_last = -1

    def line(self, spot: ProgressState) -> str:
        now = time.monotonic()
        if self.n_last < 0 or spot.done < self.n_last:  # it begins, or its next stage does
            self.first = now, spot.done
        self.n_last = spot.done
        since, n_before = self.first
        words = [f"{spot.done:,} of {spot.goal:,} {self.unit}"]
        if spot.done > n_before and now > since:
            speed = (spot.done - n_before) / (now - since)
            words.append(_pace(speed, self.unit))
            if spot.done < spot.goal:
                words.append(f"{duration((spot.goal - spot.done) / speed)} left")
        title = "" if spot.title == self.unit else f"{spot.title.strip()}: "
        return title + ", ".join(words)


def _pace(speed: float, unit: str) -> str:
    return f"{speed:,.0f} {unit}/s" if speed >= 10 else f"{speed:.2g} {unit}/s"


# ---- a notebook


@contextmanager
def cell(unit: str) -> Iterator[Callable[[ProgressState], None]]:
    """One output that is replaced as the run goes on. Rich would need ipywidgets for it."""
    from IPython.display import display

    telling, due = ProgressLog(unit), 0.0
    handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(spot: ProgressState) -> None:
        nonlocal due
        words = telling.line(spot)
        if time.monotonic() >= due or spot.done >= spot.goal:
            due = time.monotonic() + NEXT_LOOK
            bar = f'<progress value="{spot.done}" max="{spot.goal}"></progress>'
            shown = {"text/plain": words, "text/html": f"{bar} {html.escape(words)}"}
            handle.update(shown, raw=True)

    yield show
