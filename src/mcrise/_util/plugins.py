"""Plugins: what other packages bring, found by their entry points.

A package says in its own metadata what it brings under which name, so nothing has to be imported to
find it, worker processes find it too, and only what is asked for by name is ever loaded.
"""

from dataclasses import dataclass
from typing import Any

from ..errors import PluginError


@dataclass(frozen=True)
class Plugin:
    """What an entry point leads to, and the package to install for it."""

    thing: Any
    package: str


def names(group: str) -> list[str]:
    """What other packages bring to a group, such as `mcrise.fills`."""
    from importlib.metadata import entry_points  # late: most runs never ask

    return sorted(entry_points(group=group).names)


def find(group: str, name: str) -> Plugin | None:
    """What another package brings by this name, loaded; None if none does."""
    from importlib.metadata import entry_points

    entries = entry_points(group=group, name=name)
    packages = [entry.dist.name if entry.dist else "" for entry in entries]
    if not packages:
        return None
    if len(packages) > 1:
        raise PluginError(
            f"{name!r} ({group}) is brought by the packages {' and '.join(sorted(packages))}, but "
            "it can mean only one: uninstall all but one."
        )
    (entry,) = entries
    try:
        return Plugin(entry.load(), packages[0])
    except Exception as error:  # whatever the package's own code raises
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise PluginError(
            f"{name!r} ({group}) of the package {packages[0]} cannot be loaded ({reason}): "
            "correct that package or uninstall it."
        ) from None
