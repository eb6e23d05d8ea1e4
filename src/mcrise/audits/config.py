"""The settings of an audit, its worker, and the choice of one mask_prob for all images."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..batch.datasets import Example
from ..batch.engine import RETRIES
from ..batch.tasks import BatchConfig, Worker, read_image
from ..config import FIRST_TRY, RunConfig
from ..errors import InputError, McriseError, ModelError
from ..explanation import Explanation
from ..images import View
from ..mask_prob import say, settle, share_unchanged
from ..model_calls import buffer_of, chunk_scores
from ..models.model import Model
from ..sampling import begin
from .class_data import RASTER
from .measure import (
    POOLED,
    ImageMeasurement,
    Repainted,
    Task,
    measure_image,
    object_share,
    repaint,
)
from .transplants import Outcome, Trait, receive, traits
from .zones import NINTHS, Zone

N_MASKS = 128  # figures of classes gain more by images than by masks
MOST_DONORS = 256  # views that a worker keeps


@dataclass(frozen=True)
class AuditConfig(BatchConfig):
    """The same for all images; it travels to every worker."""

    what = "audit"
    target_rule = (
        "asks about the true class of each image, or the predicted one where that is not known"
    )
    run: RunConfig = RunConfig(n_masks=N_MASKS)  # noqa: RUF009  # it is frozen
    zones: tuple[Zone, ...] = NINTHS
    keep_runs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        assert isinstance(self.run.fills, str)
        if "auto" in self.run.fills.replace(" ", "").split(","):
            raise InputError(
                "The colors are auto, but these would be others in each image, and an audit "
                "compares images: name them, as in rgbwk."
            )

    def run_of(self, name: str, target: int | None) -> RunConfig:
        """For one image, by its name; `target` None is the predicted class.

        Each image has masks of its own: noise that all images shared would not average out. It has
        the same ones in every audit with the same seed, so that two can be compared in pairs.
        """
        text = f"{self.run.seed} {name}".encode()
        seed = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
        return replace(self.run, seed=seed, target=target)

    @property
    def has_objects(self) -> bool:
        """Whether the collection says where objects are."""
        return any(zone.needs_object for zone in self.zones)

    @property
    def traits(self) -> list[Trait]:
        """What images of other classes are given."""
        return traits(self.zones, self.has_objects)

    def worker(self, model: Model) -> "AuditWorker":
        return AuditWorker(model, self)

    def to_json(self) -> dict[str, Any]:
        """As audit.json has it, where an audit to go on with is known by it."""
        run = self.run.to_json()
        return {
            **{name: value for name, value in run.items() if name != "target"},
            "estimator": POOLED,
            "zones": [[zone.name, zone.box and list(zone.box), zone.inside] for zone in self.zones],
            "raster": RASTER,
            "keep_runs": self.keep_runs,
        }


def asked_of_all(model: Model) -> Model:
    """The model without its notes, which would have each image asked about its preprocessing."""
    return replace(model, notes=())


class AuditWorker(Worker):
    """Does the tasks of an audit."""

    def __init__(self, model: Model, config: AuditConfig) -> None:
        super().__init__(asked_of_all(model))
        self.config = config
        self.donors: dict[int, tuple[View, NDArray[np.float64] | None]] = {}

    def do(self, task: Task) -> ImageMeasurement | Repainted | list[Outcome]:
        view, given = self.view(task.example.path), self.config
        run = given.run_of(task.example.name, task.truth)
        if task.stage == "measure":
            return measure_image(view, self.model, run, given.zones, task, given.keep_runs)
        if task.stage == "confirm":
            return repaint(view, self.model, run, task)
        return self.receive(view, task)

    def receive(self, view: View, task: Task) -> list[Outcome]:
        """Give an image what its task says, of donors that are read once."""
        donors = {}
        for number, example in task.donors:
            if number not in self.donors:
                if len(self.donors) >= MOST_DONORS:
                    self.donors.clear()
                donor = self.view(example.path)
                self.donors[number] = donor, object_share(example, donor)
            donors[number] = self.donors[number]
        objects = {number: share for number, (_, share) in donors.items()}
        objects[-1] = object_share(task.example, view)
        views = {number: donor for number, (donor, _) in donors.items()}
        size = self.config.run.batch_size
        assert size != "auto"  # an AuditConfig refuses it
        return receive(
            view, views, objects, dict(task.spots), self.model, self.config.traits,
            task.transplants, size, self.config.has_objects,
        )  # fmt: skip


# ---- one mask_prob for all images


Pilots = Sequence[tuple[Example, int | None]]


def choose_mask_prob(model: Model, config: AuditConfig, pilots: Pilots) -> tuple[float, str]:
    """Choose by the rule of a single run, by the mean over a few images; and why."""
    if config.run.mask_prob != "auto":
        return config.run.mask_prob, ""
    explanations = [
        (explanation, explanation.resolve(truth))
        for explanation, truth in begun(model, config, pilots)
    ]

    def share_left(mask_prob: float) -> float:
        shares = []
        for explanation, target in explanations:
            scores = explanation.scores[0]
            if mask_prob != explanation.plan.mask_prob:
                painted = replace(explanation, plan=replace(explanation.plan, mask_prob=mask_prob))
                scores = first_chunk(model, painted)
            shares.append(share_unchanged(scores, explanation.untouched, explanation.kind, target))
        return float(np.mean(shares))

    if not explanations:
        return FIRST_TRY, ""  # what is wrong with them is told when their turn comes
    best, left = settle(share_left)
    n = len(explanations)
    over = f"over {n} images the score then changes by" if n > 1 else "the score then changes by"
    return best, say(best, left, over)


def begun(
    model: Model, config: AuditConfig, pilots: Pilots
) -> Iterator[tuple[Explanation, int | None]]:
    """Runs of those images that the model can be asked about, with their first chunk."""
    model = asked_of_all(model)
    usual = replace(config, run=replace(config.run, mask_prob=FIRST_TRY))
    for example, truth in pilots:
        with contextlib.suppress(McriseError):
            view = model.view(read_image(example.path))
            explanation = begin(view, model, usual.run_of(example.name, truth))
            explanation.add(0, first_chunk(model, explanation))
            yield explanation, truth


def first_chunk(model: Model, explanation: Explanation) -> NDArray[np.float32]:
    """The scores of the first chunk; a model that raises now and then is asked again."""
    canvas = model.canvas(explanation.view.pixels, explanation.plan.fills)
    buffer = buffer_of(canvas, explanation.batch_size)
    for _ in range(RETRIES):
        with contextlib.suppress(ModelError):
            return chunk_scores(model, canvas, buffer, explanation, 0)
    return chunk_scores(model, canvas, buffer, explanation, 0)
