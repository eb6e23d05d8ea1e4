"""A request for a job, a job and how far it is, and the row of the table that stores it."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._util import validation
from ..config import RunConfig
from ..errors import InputError

BLANK = np.zeros((64, 64, 3), np.uint8)


@dataclass(frozen=True)
class JobRequest:
    """Which model is asked about a picture of which name, and what."""

    model: str  # its name here
    name: str = "picture"  # what the user calls the picture; never a path
    config: RunConfig = field(default_factory=RunConfig)
    as_recorded: bool = False  # its fills are those of the job's run, whatever its config says

    def to_json(self) -> dict[str, Any]:
        said = {"model": self.model, "name": self.name, **self.config.to_json()}
        return said if self.is_named(said["fills"]) else {**said, "fills": None}

    def is_named(self, names: str) -> bool:
        """Whether names tell its fills: those of others' runs may be called anything."""
        if isinstance(self.config.fills, str):
            return not self.as_recorded
        try:
            return make_config(fills=names).plan(BLANK).fills == self.config.fills
        except InputError:
            return False


def parse_request(said: Any) -> JobRequest:
    """A request as an earlier or a later version wrote it: it may have fewer fields, or more."""
    try:
        said = validation.table(said)
        known = {
            name: value for name, value in said.items() if name != "fills" or value is not None
        }
        _refuse_pictures(known.get("fills"))
        config = RunConfig.from_json(known)
        model, name = validation.text(said["model"]), validation.text(said["name"])
    except (ValueError, LookupError, RecursionError) as error:
        raise InputError(f"it is not a job request ({error}).") from None
    return JobRequest(model, name, config, "fills" in said and said["fills"] is None)


def make_config(**given: Any) -> RunConfig:
    """A configuration that somebody else asks for."""
    _refuse_pictures(given.get("fills"))
    return RunConfig(**given)


def _refuse_pictures(fills: Any) -> None:
    """A configuration reads its fills when it is made, and a picture would be opened then."""
    if "picture" in str(fills).lower():
        raise InputError("A picture from a file cannot be a fill here: files are not read.")


ID = "[0-9a-f]{16}"  # of a job: part of the names of its files
OPEN = ("queued", "running")  # states of a job that still has work to do
STATES = (*OPEN, "paused", "stopped", "done", "failed")


class UnknownJob(InputError):
    """There is no such job, or not any more."""


@dataclass
class Job:
    """A request, and how far the work on it is."""

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
    """A job from a table that anybody may have written to, or an error that says what is wrong."""
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
