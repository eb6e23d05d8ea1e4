"""Work on many images: tasks to be done, and what a crew asks of whoever hands them out.

A study and an audit are both such work. Each has tasks of its own, a protocol that makes the
workers who can do them, and takes their answers in.
"""

from abc import ABC, abstractmethod
from collections.abc import Sized
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from ..errors import InputError, McriseError, ModelError
from ..images import View
from ..masks import Plan, draw
from ..models.model import Model
from ..painting.canvas import paint
from .storage import Storage


@dataclass(frozen=True)
class Failure:
    """Why a task has no answer."""

    reason: str
    kind: type[McriseError] = ModelError
    final: bool = False  # another try would fail as well


class Worker(ABC):
    """A model, and what it is asked; lives wherever tasks are done."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @abstractmethod
    def do(self, task: Any) -> Any:
        """The answer of a task, a pure function of it."""

    def attempt(self, task: Any) -> Any:
        """Do a task; what goes wrong is an answer too, a `Failure`."""
        try:
            return self.do(task)
        except InputError as error:
            return Failure(str(error), InputError, final=True)
        except McriseError as error:
            # Which chunk failed first depends on who was faster: the reason does not.
            within = error.__cause__
            return Failure(str(within if isinstance(within, McriseError) else error))
        except MemoryError:
            return Failure("Out of memory: fewer workers need less.")
        except Exception as error:  # a bug must not take the other images with it
            return Failure(f"{type(error).__name__}: {error}")

    def warm_up(self) -> None:
        """Load and compile what painting needs, so that no task is late for it."""
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


class WorkerMaker(Protocol):
    """What decides the answers, but for the images and the model; it travels to every worker."""

    def worker(self, model: Model) -> Worker: ...


class Batch(Protocol):
    """Tasks that are left, and who takes the answers."""

    @property
    def complete(self) -> bool: ...

    @property
    def examples(self) -> Sized: ...

    @property
    def done(self) -> Sized:
        """The images that are finished, or have failed."""

    @property
    def counted(self) -> tuple[int, str]:
        """How many images are through the present stage of the work, and what it is called."""

    @property
    def n_failed(self) -> int: ...

    def next_task(self) -> Any:
        """A task that can be done now; None: all that is left waits for answers."""

    def take(self, task: Any, answer: Any) -> None:
        """Take the answer of a task, or the `Failure` that it came to."""


W = TypeVar("W", bound=Batch)
