"""What can go wrong, in words that a user can act on."""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .explanation import Explanation


def safe_str(error: BaseException) -> str:
    """What an error says, even one of somebody else's code: text that can be written anywhere."""
    try:
        said = str(error)
    except BaseException:  # its own words fail
        said = "it cannot say why"
    return said.encode("utf-8", "backslashreplace").decode()


def first_line(error: BaseException) -> str:
    """The reason in an error of somebody else's code, to be quoted within a sentence."""
    lines = [line.strip() for line in safe_str(error).splitlines() if line.strip()]
    lines = [
        line for line in lines if not line.startswith("Exception from ")
    ] or lines  # OpenVINO's
    return lines[0].rstrip(".:") if lines else "no reason given"


class McriseError(Exception):
    """One sentence for the user: what came, what is needed, what to do."""


Ours = TypeVar("Ours", bound=McriseError)


def with_cause(ours: Ours, cause: BaseException) -> Ours:
    """An error with all that its cause says below the sentence, where that is more than a line."""
    whole = safe_str(cause).strip()
    for note in [whole] if "\n" in whole else getattr(cause, "__notes__", []):
        ours.add_note(note)
    return ours


class InputError(McriseError):
    """What was asked for cannot be: a wrong value, file or combination."""


class TooSmallError(InputError):
    """An image is too small to be explained; a batch leaves it out."""


class ExplanationError(InputError):
    """A run is damaged, foreign, or another one: the problem, and what to do about it."""

    def __init__(self, problem: str, remedy: str = "run the explanation again") -> None:
        super().__init__(f"{problem}: {remedy}.")
        self.problem, self.remedy = problem, remedy


class PluginError(InputError):
    """What another package brings cannot be used."""


class ModelError(McriseError):
    """The model failed. `explanation` holds every score it gave before, None if there was none."""

    def __init__(self, message: str, explanation: "Explanation | None" = None) -> None:
        super().__init__(message)
        self.explanation = explanation
