"""Origin: where a model came from, so that a run finds its model again, and no other.

The name of its file, a digest of its weights and how images go in travel with a run; paths do
not. A callable has no origin, and weights may change in memory: so whoever goes on with a run
also compares the model's answers (`model_calls.recognise`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Origin:
    """What a model is made of, as far as it is known; nothing of it for a plain callable."""

    name: str = ""  # of its file, or package.module:name
    digest: str = ""  # of its file, its weights or its source
    settings: Mapping[str, Any] = field(default_factory=dict)  # as `load_model` takes them

    def differences(self, now: "Origin") -> list[str]:
        """In what the model of a run, this one, is not the model `now`, in words."""
        if self.digest != now.digest:
            changed = "which has changed since" if self.name == now.name else f"{now.name} now"
            return [f"model ({self.name} in the run, {changed})"]
        return [
            f"{name} ({said(before)} in the run, {said(after)} now)"
            for name in dict.fromkeys([*self.settings, *now.settings])
            for before, after in [(self.settings.get(name), now.settings.get(name))]
            if before != after
        ]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "digest": self.digest, "settings": dict(self.settings)}


def said(value: Any) -> Any:
    return "not given" if value is None else value


UNKNOWN = Origin()  # of a plain callable


def different_models(before: str, origin: Origin, now: str, origin_now: Origin) -> list[str]:
    """In what two models, each an identity and an origin, differ."""
    if origin.digest and origin_now.digest:
        return origin.differences(origin_now)
    # Of a callable, or of a run made before origins were kept, there is only the identity.
    return [] if before == now else [f"model ({before!r} in the run, {now!r} now)"]
