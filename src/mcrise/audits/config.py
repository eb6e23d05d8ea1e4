"""Protocol: what decides the figures of an audit, but for the images and the model."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from ..batch.work import Worker
from ..config import RunConfig
from ..errors import InputError
from ..models.model import Model
from .class_data import RASTER
from .measure import POOLED, ImageMeasurement, Task, Tries, measure_image, repaint
from .zones import NINTHS, Zone

N_MASKS = 512


@dataclass(frozen=True)
class AuditConfig:
    """The same for all images; it travels to every worker."""

    run: RunConfig = RunConfig(n_masks=N_MASKS)  # noqa: RUF009  # it is frozen
    zones: tuple[Zone, ...] = NINTHS
    keep_records: bool = False

    def __post_init__(self) -> None:
        run = self.run
        if not isinstance(run.fills, str):
            raise InputError("The fills of an audit go by name, as in red,#0f0,blur:8: name them.")
        if "auto" in run.fills.replace(" ", "").split(","):
            raise InputError(
                "The colors are auto, but these would be others in each image, and an audit "
                "compares images: name them, as in rgbwk."
            )
        if run.batch_size == "auto":
            raise InputError(
                "The batch size is auto, but each worker would find another, and the tables would "
                "depend on who did what: give a number."
            )
        if run.target is not None:
            raise InputError(
                f"The target is {run.target!r}, but an audit asks about the true class of each "
                "image, or where that is not known the predicted one: leave it out."
            )

    def brief_of(self, name: str, target: int | None) -> RunConfig:
        """For one image, by its name; `target` None is the predicted class.

        Each image has masks of its own: noise that all images shared would not average out. It has
        the same ones in every audit with the same seed, so that two can be compared in pairs.
        """
        text = f"{self.run.seed} {name}".encode()
        seed = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
        return replace(self.run, seed=seed, target=target)

    def worker(self, model: Model) -> "Looker":
        return Looker(model, self)

    def to_json(self) -> dict[str, Any]:
        """As audit.json has it, where an audit to go on with is known by it."""
        run = self.run.to_json()
        return {
            **{name: value for name, value in run.items() if name != "target"},
            "estimator": POOLED,
            "zones": [[zone.name, zone.box and list(zone.box), zone.inside] for zone in self.zones],
            "raster": RASTER,
            "keep_records": self.keep_records,
        }


class Looker(Worker):
    """Does the tasks of an audit."""

    def __init__(self, model: Model, config: AuditConfig) -> None:
        super().__init__(model)
        self.config = config

    def do(self, task: Task) -> ImageMeasurement | Tries:
        view, given = self.view(task.example.path), self.config
        run = given.brief_of(task.example.name, task.truth)
        if task.confirmations is not None:
            return repaint(view, self.model, run, task)
        return measure_image(view, self.model, run, given.zones, task, given.keep_records)
