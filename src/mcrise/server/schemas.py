"""What a client asks for (`JobRequest`), and how far it has got (`Job`), as rows of `JobTable`."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._util import validation
from ..config import RunConfig
from ..errors import InputError
from ..masks import MOST_CELLS

BLANK = np.zeros((64, 64, 3), np.uint8)


@dataclass(frozen=True)
class JobRequest:
    """Which model is asked about a picture of which name, and what."""

    model: str  # its name here
    name: str = "picture"  # what the user calls the picture; never a path
    config: RunConfig = field(default_factory=RunConfig)
    as_recorded: bool = False  # its fills are those of the record, whatever the config says

    def to_json(self) -> dict[str, Any]:
        said = {"model": self.model, "name": self.name, **self.config.to_json()}
        return said if self.is_named(said["fills"]) else {**said, "fills": None}

    def is_named(self, names: str) -> bool:
        """Whether names identify its fills: fills of other records can have any name."""
        if isinstance(self.config.fills, str):
            return not self.as_recorded
        try:
            return make_config(fills=names).plan(BLANK).fills == self.config.fills
        except InputError:
            return False


def parse_request(said: Any) -> JobRequest:
    """A request as another version has stored it, with fewer entries or more."""
    try:
        said = validation.table(said)
        known = {
            name: read(said[name])
            for name, read in BRIEF.items()
            if name in said and not (name == "fills" and said[name] is None)
        }
        model, name = validation.text(said["model"]), validation.text(said["name"])
    except (ValueError, LookupError, RecursionError) as error:
        raise InputError(f"it is no request ({error}).") from None
    return JobRequest(model, name, make_config(**known), "fills" in said and said["fills"] is None)


def auto_or(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: value if value == "auto" else read(value)


def whole(value: Any) -> int:
    return validation.whole(value, 0, 2**64 - 1)


def target(value: Any) -> int | str | None:
    return (
        value
        if value is None
        else validation.text(value)
        if isinstance(value, str)
        else whole(value)
    )


# How the entries of a configuration are read.
BRIEF: dict[str, Callable[[Any], Any]] = {
    "fills": validation.text,
    "grid": lambda value: validation.pair(value, MOST_CELLS),
    "mask_prob": auto_or(validation.number),
    "seed": whole,
    "n_masks": auto_or(whole),
    "tolerance": validation.number,
    "max_masks": whole,
    "target": target,
    "batch_size": auto_or(whole),
}


def make_config(**values: Any) -> RunConfig:
    """A configuration from values of a client."""
    # A configuration reads its fills when it is made, and would open a picture then.
    if "picture" in str(values.get("fills", "")).lower():
        raise InputError("A picture from a file cannot be a fill here: files are not read.")
    return RunConfig(**values)


ID = "[0-9a-f]{16}"  # of a job: part of the names of its files
OPEN = ("queued", "running")  # states of a job that still has work to do
STATES = (*OPEN, "paused", "stopped", "done", "failed")


class UnknownJob(InputError):
    """There is no such job, or not any more."""


@dataclass
class Job:
    """How far a request has got."""

    id: str
    number: int  # jobs are done in this order
    job_request: JobRequest
    created: float
    state: str = "queued"  # then running, and paused, stopped, done or failed
    n_masks: int = 0
    goal: int = 0
    note: str = ""  # why it stopped or failed
    preview: bool = False  # there are maps of the pilot, before the first masks that count
    speed: float | None = None  # masks per second

    def to_row(self) -> tuple[Any, ...]:
        asked = json.dumps(self.job_request.to_json())
        return (self.number, self.id, asked, self.created, self.state, self.n_masks, self.goal,
                self.note)  # fmt: skip


def parse_job(row: tuple[Any, ...]) -> Job:
    """The job of a row, which another program may have written, or an error that says why not."""
    number, id, asked, created, state, n_masks, goal, note = row
    try:
        job_request = parse_request(json.loads(asked))
        if state not in STATES:
            raise ValueError(f"the state {state!r}")
        if not re.fullmatch(ID, id):
            raise ValueError("its id is none")
        return Job(id, int(number), job_request, validation.number(created), state, int(n_masks),
                   int(goal),
                   str(note))  # fmt: skip
    # Such as a fill of a package that is gone, or a list that is damaged.
    except (InputError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(str(error)) from None
