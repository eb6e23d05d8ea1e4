"""Job: how far an order has got, and the row of the ledger that says so."""

import json
import re
from dataclasses import dataclass
from typing import Any

from .. import told
from ..errors import InputError
from .order import Order, parse_order

ID = "[0-9a-f]{16}"  # of a job: part of the names of its files
OPEN = ("queued", "running")  # states of a job that still has work to do
STATES = (*OPEN, "paused", "stopped", "done", "failed")


class UnknownJob(InputError):
    """There is no such job, or not any more."""


@dataclass
class Job:
    """How far an order has got."""

    id: str
    number: int  # jobs are done in this order
    order: Order
    created: float
    state: str = "queued"  # then running, and paused, stopped, done or failed
    n_masks: int = 0
    goal: int = 0
    note: str = ""  # why it stopped or failed
    early: bool = False  # there is something to see, before the first masks that count
    speed: float | None = None  # masks a second
    leaves: float | None = None  # when it goes, where there is no room for it

    def to_row(self) -> tuple[Any, ...]:
        asked = json.dumps(self.order.to_json())
        return (self.number, self.id, asked, self.created, self.state, self.n_masks, self.goal,
                self.note)  # fmt: skip


def parse_job(row: tuple[Any, ...]) -> Job:
    """A job of a ledger that anybody may have written to, or an error that says what is wrong."""
    number, id, asked, created, state, n_masks, goal, note = row
    try:
        order = parse_order(json.loads(asked))
        if state not in STATES:
            raise ValueError(f"the state {state!r}")
        if not re.fullmatch(ID, id):
            raise ValueError("its id is none")
        return Job(id, int(number), order, told.number(created), state, int(n_masks), int(goal),
                   str(note))  # fmt: skip
    # Such as a fill of a package that is gone, or a list that is damaged.
    except (InputError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(str(error)) from None
