"""What can go wrong, in words that a user can act on."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .explanation import Explanation


def safe_str(error: BaseException) -> str:
    """What an error says, even one of somebody else's code: text that can be written anywhere."""
    try:
        said = str(error)
    except BaseException:  # its own words fail
        said = "it cannot say why"
    return said.encode("utf-8", "backslashreplace").decode()


class McriseError(Exception):
    """One sentence for the user: what came, what is needed, what to do."""


class InputError(McriseError):
    """What was asked for cannot be: a wrong value, file or combination."""


class ExplanationError(InputError):
    """A run is damaged, foreign, or another one: the problem, and what to do about it."""

    def __init__(self, problem: str, remedy: str = "run the explanation again") -> None:
        super().__init__(f"{problem}: {remedy}.")
        self.problem, self.remedy = problem, remedy


class PluginError(InputError):
    """What another package brings cannot be used."""


class ModelError(McriseError):
    """The model failed. `record` holds every score it gave before, None if there was none."""

    def __init__(self, message: str, explanation: "Explanation | None" = None) -> None:
        super().__init__(message)
        self.explanation = explanation
