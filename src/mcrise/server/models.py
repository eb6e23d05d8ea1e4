"""The models that are served, asked by one thread only.

Whoever else needs an answer hands in a call, which that thread serves between two chunks of a job.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from ..errors import InputError, McriseError, ModelError, safe_str
from ..models.model import Model

T = TypeVar("T")


class NotServed(InputError):
    """A job's model is not here any more."""

    def __init__(self, model: str) -> None:
        super().__init__(f"The model {model!r} is not being served: start the server with it.")


class ServedModels(Mapping[str, Model]):
    """The models of a server by their names there, and what others want of them."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self.n_images = 0  # that were asked about, for whoever counts
        self.models = {name: self.counted(model) for name, model in models.items()}
        self.calls: deque[Callable[[], None]] = deque()
        self.open = True

    def __getitem__(self, name: str) -> Model:
        return self.models[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def served(self, name: str) -> Model:
        """One of them, or a sentence."""
        if name not in self.models:
            raise NotServed(name)
        return self.models[name]

    def counted(self, model: Model) -> Model:
        def predict(batch: Any) -> Any:
            self.n_images += len(batch)
            return model.predict(batch)

        return replace(model, predict=predict)

    def hand_in(self, name: str, function: Callable[[Model], T]) -> "Future[T]":
        """Have a function applied to a model, by whoever calls `serve` next."""
        answer: Future[T] = Future()

        def serve() -> None:
            if not answer.set_running_or_notify_cancel():  # nobody waits for it any more
                return
            try:
                if not self.open:
                    raise McriseError("The server is ending: ask again when it is back.")
                answer.set_result(function(self.served(name)))
            except Exception as error:
                answer.set_exception(error)
            except BaseException as error:  # of a model's own code: it must not end the server
                said = f"The model raised {type(error).__name__}: {safe_str(error)}."
                answer.set_exception(ModelError(said))

        self.calls.append(serve)
        return answer

    def serve(self) -> None:
        """Answer all that was handed in."""
        while self.calls:
            self.calls.popleft()()

    def close(self) -> None:
        """Tell whoever still waits that nobody will be answered any more."""
        self.open = False
        self.serve()
