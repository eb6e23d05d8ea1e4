"""Image classifiers of Hugging Face: folders, models with their processor, and pipelines."""

import hashlib
from pathlib import Path
from typing import Any

from ..errors import InputError, first_line, with_cause
from .model import Model
from .preprocessing import notes_on, settings_of
from .settings import Settings, file_digest, with_known
from .torch import make_model, weights_digest

TASK = "image-classification"
WEIGHTS = (".safetensors", ".bin")


def from_folder(folder: Path, settings: Settings) -> Model:
    """A folder that `save_pretrained` wrote, with its processor; no code in it is run."""
    if not folder.is_dir():
        raise InputError(
            f"The folder {folder} does not exist: download the model first, and give the folder "
            "that has its config.json."
        )
    try:
        from transformers import AutoImageProcessor, AutoModelForImageClassification
    except ImportError:
        raise InputError(
            "This model needs transformers (the extra hf): pip install transformers torch."
        ) from None
    try:
        local = {"local_files_only": True, "trust_remote_code": False}
        model = AutoModelForImageClassification.from_pretrained(folder, **local)
        processor = AutoImageProcessor.from_pretrained(folder, **local)
    except Exception as error:
        refused = InputError(
            f"{folder} is not an image classifier that transformers can load "
            f"({first_line(error)}): give a folder that save_pretrained of the model and of its "
            "processor wrote."
        )
        raise with_cause(refused, error) from None
    files = sorted(one for one in folder.iterdir() if one.suffix in (*WEIGHTS, ".json"))
    digest = hashlib.sha256(" ".join(file_digest(one) for one in files).encode()).hexdigest()
    return classifier(model, processor, settings, folder.resolve().name, digest)


def from_object(model: Any, settings: Settings) -> Model:
    """A pipeline, or a classifier whose processor was given as `preprocess`."""
    processor = None
    if hasattr(model, "task"):  # a pipeline, whose answers are sorted by score: go around it
        if model.task != TASK:
            raise InputError(
                f"The pipeline is for {model.task}, but one for {TASK} is needed: give a function "
                "of a list of Pillow images that gives one row of scores per image, with "
                'layout="pillow".'
            )
        model, processor = model.model, model.image_processor
    return classifier(model, processor, settings, type(model).__qualname__, weights_digest(model))


def classifier(model: Any, processor: Any, settings: Settings, name: str, digest: str) -> Model:
    notes: tuple[str, ...] = ()
    if processor is not None:
        settings = with_known(settings, settings_of(processor))
        notes = notes_on(processor)
    if not settings.normalised:
        raise InputError(
            f"The model {name} does not say how its images are prepared: give its processor, "
            "preprocess=AutoImageProcessor.from_pretrained(...), or a pipeline, or mean and std."
        )
    return make_model(model, with_known(settings, told_by(model.config)), name, digest, notes)


def told_by(config: Any) -> dict[str, Any]:
    """Labels, and what the logits mean."""
    labels = {int(place): str(label) for place, label in (config.id2label or {}).items()}
    known: dict[str, Any] = {}
    if sorted(labels) == list(range(len(labels))) and labels:
        known["labels"] = [labels[place] for place in range(len(labels))]
    if config.problem_type == "regression":
        return known | {"score_kind": "any"}
    several = config.problem_type == "multi_label_classification" or config.num_labels == 1
    return known | ({"sigmoid": True} if several else {"softmax": True})
