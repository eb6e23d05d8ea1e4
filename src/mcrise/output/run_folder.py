"""The folder of a run on disk, and what is in it.

`run.npz` is the explanation, from which all else can be made again; `maps.png`, `explanation.png`
and `summary.json` are made from it. Another run is overwritten only if the user asks for it.
"""

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._util.files import RUN, write_atomically
from ..errors import ExplanationError, InputError
from ..estimators import DEFAULT, find_estimator
from ..explanation import Explanation, Prediction, Target
from ..explanation_file import CHECKPOINT_SECONDS, RunFile
from ..fills import Fill
from ..interpretation.findings import Findings
from ..interpretation.trial_calls import answers_saved
from ..maps import Maps
from ..model_calls import recognise
from ..models import ModelSettings, find_file, load_model
from ..models.model import Model
from .figure import plot_explanation
from .plots import figure_png, plot_maps, plot_rise


@dataclass(frozen=True)
class Extreme:
    """The pixel of a map where it is farthest from zero."""

    fill: str
    row: int
    column: int
    value: float
    se: float


@dataclass(frozen=True)
class MapsSummary:
    """What the maps of one class come to."""

    target: int
    label: str
    estimator: str
    unit: str
    relative_error: float | None  # None: not above noise
    strongest: tuple[Extreme, ...]  # of each map
    notes: tuple[str, ...] = ()
    findings: Mapping[str, Any] | None = None  # as `Findings.to_json` has it; None: not tested


@dataclass(frozen=True)
class Summary:
    """A run, and what its maps of some classes come to."""

    model: str
    n_masks: int
    stop_reason: str
    mask_prob: float
    grid: tuple[int, int]
    seed: int
    fills: tuple[str, ...]
    scores: str  # their kind
    size: tuple[int, int]
    predicted: tuple[Prediction, ...]  # best first
    maps: tuple[MapsSummary, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        content = asdict(self)
        content["predicted"] = [one.to_json() for one in self.predicted]
        return content

    @property
    def prediction(self) -> Prediction:
        """The class with the highest score, and the next one."""
        return self.predicted[0]

    def lines(self) -> list[str]:
        """To print."""
        lines = [f"{self.prediction}."]
        reached = self.stop_reason.startswith("stopped at")  # then the lines below say the rest
        if self.stop_reason and not reached:
            lines.append(self.stop_reason.capitalize() + ".")
        for maps in self.maps:
            error, by = maps.relative_error, maps.estimator
            own = "" if by == DEFAULT else f", {by} estimator"
            quality = "not above its noise" if error is None else f"relative error {error:.2f}"
            lines.append(
                f"Map of {maps.label!r}: {self.n_masks:,} masks{own}, {quality}"
                f"{', which is low enough to stop' if reached else ''}."
            )
            lines += [f"Note: {note}." for note in maps.notes]
        return lines + [f"Note: {note}." for note in self.notes]


def summarise(
    explanation: Explanation,
    maps: Sequence[Maps],
    tested: Mapping[int, Findings],
    notes: tuple[str, ...] = (),
) -> Summary:
    """The summary of a run, with the findings of classes that were tested."""
    plan = explanation.plan
    return Summary(
        model=explanation.model,
        n_masks=explanation.n_masks,
        stop_reason=explanation.stop_reason,
        mask_prob=plan.mask_prob,
        grid=plan.grid,
        seed=plan.seed,
        fills=tuple(fill.name for fill in plan.fills),
        scores=explanation.kind,
        size=plan.size,
        predicted=tuple(explanation.top()),
        maps=tuple(_summarise_maps(one, tested.get(one.target)) for one in maps),
        notes=tuple(dict.fromkeys((*explanation.notes, *notes))),
    )


def _summarise_maps(maps: Maps, findings: Findings | None) -> MapsSummary:
    error = maps.relative_error
    return MapsSummary(
        maps.target,
        maps.label,
        maps.estimator,
        maps.unit,
        error if math.isfinite(error) else None,
        tuple(_extreme(maps, panel, name) for panel, name in enumerate(maps.names)),
        maps.notes,
        None if findings is None else findings.to_json(),
    )


def _extreme(maps: Maps, panel: int, name: str) -> Extreme:
    values, se = maps.values[panel], maps.se[panel]
    row, column = (int(at) for at in np.unravel_index(np.abs(values).argmax(), values.shape))
    return Extreme(name, row, column, float(values[row, column]), float(se[row, column]))


if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPS, EXPLANATION, RISE = "maps.png", "explanation.png", "rise.png"
SUMMARY, METRICS, CURVES = "summary.json", "metrics.json", "curves.png"
ELSEWHERE = "choose another --out, or --overwrite it"


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def run(self) -> Path:
        return self.path / RUN

    @property
    def title(self) -> str:
        """`stop.png` for `stop.png.mcrise`."""
        return self.path.resolve().name.removesuffix(".mcrise")

    # ---- before any work

    def check_writable(self) -> None:
        """Refuse a folder that cannot be made or written, before any work is spent."""
        place = next(p for p in (self.path, *self.path.parents) if os.path.exists(p))
        if not place.is_dir() or not os.access(place, os.W_OK):
            reason = "no permission" if place.is_dir() else f"{place} is a file"
            raise InputError(
                f"The folder {self.path} cannot be written ({reason}): choose another --out."
            )

    def file(self, remedy: str = ELSEWHERE, seconds: float = CHECKPOINT_SECONDS) -> RunFile:
        """The file of its run, in which it is kept while it goes on."""
        return RunFile(self.run, remedy, seconds)

    def model(self, explanation: Explanation, spec: str | None, said: Mapping[str, Any]) -> Model:
        """The model of a run: the one given, or its ONNX file where it lies at hand.

        How images go in is known from the run; `said` wins. Any other model is refused.
        """
        origin = explanation.origin
        if spec is None:
            known = find_file(origin, (self.path, Path.cwd())) or _find_old_demo(explanation)
            if known is None:
                name = origin.name or explanation.model
                raise InputError(
                    f"The run was made with {name}, and no ONNX file of the same content is here: "
                    "give the model with --model."
                )
            spec = str(known)
        if unknown := set(origin.settings) - ModelSettings.__annotations__.keys():
            raise ExplanationError(
                f"{self.run} says {', '.join(sorted(unknown))} of its model, which this mcrise "
                "does not know",
                "open it with the mcrise that made it",
            )
        settings = {**origin.settings, **{k: v for k, v in said.items() if v is not None}}
        model = load_model(spec, **settings)
        recognise(explanation, model)
        if said.get("labels"):
            explanation.name_classes(model.labels)
        return model

    # ---- what is made of it

    def draw(
        self,
        explanation: Explanation,
        targets: Sequence[Target],
        estimator: str = DEFAULT,
        notes: tuple[str, ...] = (),
        suffix: str = "",
    ) -> "Drawing":
        """Draw and write what is known of some classes; no model is called.

        A `suffix`, as in `maps-stop.png`, keeps what was drawn before.
        """
        maps = [explanation.maps(one, estimator) for one in targets]
        tested = {one.target: explanation.findings_of(one.target) for one in maps
                  if one.target in explanation.trial_logs}  # fmt: skip
        summary = summarise(explanation, maps, tested, notes)
        files = {MAPS: plot_maps(maps)}
        for target, findings in tested.items():
            name = EXPLANATION if EXPLANATION not in files else _named(
                EXPLANATION, explanation.label(target)
            )  # fmt: skip
            files[name] = plot_explanation(explanation, findings)
        if not find_estimator(estimator).per_fill:
            pair = [explanation.maps(maps[0].target, name) for name in ("rise", "debiased")]
            files[RISE] = plot_rise(*pair)
        written = {name: self.save(figure, _named(name, suffix)) for name, figure in files.items()}
        self.write_json(_named(SUMMARY, suffix), summary.to_json())
        return Drawing(summary, tested, written, explanation.plan.fills)

    def save(self, figure: "Figure", name: str) -> Path:
        """Write a picture."""
        return self.write(name, figure_png(figure))

    def write_json(self, name: str, content: Any) -> Path:
        return self.write(name, (json.dumps(content, indent=2) + "\n").encode())

    def write(self, name: str, content: bytes) -> Path:
        try:
            write_atomically(self.path / name, content)
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be written ({error.strerror}): choose another --out."
            ) from None
        return self.path / name

    # ---- what was made of it

    def metrics(self) -> dict[str, Any]:
        """What `mcrise measure` wrote, if it did."""
        return self.read_json(METRICS)

    def read_json(self, name: str) -> dict[str, Any]:
        try:
            content = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}


@dataclass(frozen=True, eq=False)
class Drawing:
    """What was drawn of an explanation, and what there is to say of it."""

    summary: Summary
    findings: Mapping[int, Findings]  # of each class that was tested
    files: Mapping[str, Path]  # by what they are called without a suffix
    fills: tuple[Fill, ...] = ()

    def lines(self) -> list[str]:
        """To print."""
        out = self.summary.lines()
        for findings in self.findings.values():
            out += findings.lines()
        return out


def keeping_answers(
    explanation: Explanation, path: Path, seconds: float = CHECKPOINT_SECONDS
) -> AbstractContextManager[None]:
    """Save what is answered meanwhile in a RUN, every few seconds and however that ends."""
    place = path / RUN if path.is_dir() else path
    return answers_saved(explanation, lambda: explanation.save(place), seconds)


def folder_of(run: Path) -> RunFolder:
    """The folder of a RUN, which may be given as that folder or as the file in it."""
    return RunFolder(run if run.is_dir() else run.parent)


def _find_old_demo(explanation: Explanation) -> str | None:
    """The embedded model, for a run that was made before origins were kept."""
    if explanation.origin.digest or load_model("demo").identity != explanation.model:
        return None
    return "demo"


def _named(name: str, suffix: str) -> str:
    """`maps-stop.png` for `maps.png` and `stop`."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}-{slug(suffix)}.{ending}" if suffix else name


def slug(words: str) -> str:
    """Words as a part of a file's name: no word of a user's becomes a path."""
    return re.sub(r"[^\w.+]+", "-", words).strip("-.")[:60] or "class"
