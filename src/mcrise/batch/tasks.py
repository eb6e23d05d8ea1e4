"""What is done for many images: settings, tasks, and the worker that does a task.

A study and an audit each have their tasks, their settings (a `BatchConfig`) and their worker. The
settings travel to every process that works, and make the worker there.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from .._util.text import with_article
from ..config import RunConfig
from ..errors import InputError, McriseError, ModelError
from ..images import View
from ..masks import Plan, draw
from ..models.model import Model
from ..painting.canvas import paint
from .storage import Storage


class Task(Protocol):
    """What a worker is asked to do for one image."""

    @property
    def image(self) -> int:
        """Its number in the batch."""

    @property
    def key(self) -> Hashable:
        """What no other task of the batch has."""


@dataclass(frozen=True)
class Failure:
    """Why a task has no answer."""

    reason: str
    kind: type[McriseError] = ModelError
    final: bool = False  # another try would fail too


class Worker(ABC):
    """A model and what it is asked, in the process that does the tasks."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @abstractmethod
    def do(self, task: Any) -> Any:
        """The answer of a task, a pure function of it."""

    def attempt(self, task: Any) -> Any:
        """Do a task; an error becomes an answer, a `Failure`."""
        try:
            return self.do(task)
        except InputError as error:
            return Failure(str(error), type(error), final=True)
        except McriseError as error:
            # Which chunk failed first depends on who was faster: the reason does not.
            within = error.__cause__
            return Failure(str(within if isinstance(within, McriseError) else error))
        except MemoryError:
            return Failure("Out of memory: fewer workers need less.")
        except Exception as error:  # a bug must not take the other images with it
            return Failure(f"{type(error).__name__}: {error}")

    def warm_up(self) -> None:
        """Load and compile what painting needs, so that no task waits for it."""
        size = self.model.geometry.size or (32, 32)
        plan = Plan(size)
        canvas = self.model.canvas(np.zeros((*size, 3), np.uint8), plan.fills)
        paint(plan, canvas, draw(plan, 0)[:1], canvas.batch(1))

    def view(self, path: str) -> View:
        return self.model.view(read_image(path))


def read_image(path: str) -> bytes:
    try:
        return Storage(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise InputError(f"It cannot be read ({error.strerror or error}).") from None
    except OSError as error:  # a network may do better the next time
        raise McriseError(f"It cannot be read ({error.strerror or error}).") from None


def fill_names(fills: str | Sequence[str]) -> str:
    """Fills as one text; only names travel to other processes."""
    if isinstance(fills, str):
        return fills
    for fill in fills:
        if not isinstance(fill, str):
            raise InputError(
                f"A fill is {fill!r}, but the fills of a study or an audit go by name, as in red, "
                "#0f0 or blur:8."
            )
    return ",".join(fills)


@dataclass(frozen=True)
class BatchConfig(ABC):
    """What decides the numbers of a batch, apart from the images and the model."""

    what: ClassVar[str]  # "study" or "audit"
    target_rule: ClassVar[str]  # which class of an image is explained
    run: RunConfig  # of each image

    def __post_init__(self) -> None:
        run, what = self.run, with_article(self.what)
        if not isinstance(run.fills, str):
            raise InputError(f"The fills of {what} go by name, as in red,#0f0,blur:8: name them.")
        if run.batch_size == "auto":
            raise InputError(
                "The batch size is auto, but each worker would find another, and the tables would "
                "depend on who did what: give a number."
            )
        if run.target is not None:
            raise InputError(
                f"The target is {run.target!r}, but {what} {self.target_rule}: leave it out."
            )

    @property
    def batch_size(self) -> int:
        assert self.run.batch_size != "auto"
        return self.run.batch_size

    @abstractmethod
    def worker(self, model: Model) -> Worker:
        """Who does the tasks, with this model."""
