"""Folder: where a run lives on disk, and what is there already.

`run.npz` is the record, from which all else can be made again; `maps.png`, `regions.png` and
`summary.json` are what was made of it. Another run is never written over unless that was asked for.
"""

import inspect
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .archive import load
from .asking import recognise
from .errors import InputError, ModelError, RecordError
from .estimators import DEFAULT, find_estimator
from .files import RUN, write_atomically
from .loop import CHECKPOINT_SECONDS, checkpointed
from .model import Model
from .plots import figure_png, plot_maps, plot_regions, plot_rise
from .reading import read_maps
from .record import Record, Target
from .runtimes import find_file, load_model
from .summary import Summary, summarise
from .trials import Tried, answers_saved, try_reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPS, REGIONS, RISE = "maps.png", "regions.png", "rise.png"
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

    def earlier(self, remedy: str = ELSEWHERE) -> Record | None:
        """The record that is there, if there is one."""
        if not os.path.exists(self.run):
            return None
        try:
            return load(self.run)
        except RecordError as error:
            raise RecordError(error.problem, remedy) from None

    @contextmanager
    def refusing(self, remedy: str = ELSEWHERE) -> Iterator[None]:
        """Say of another run that is there which it is, and what to do."""
        try:
            yield
        except RecordError as error:
            raise RecordError(f"{self.run}: {error.problem}", remedy) from None

    # ---- a run

    def keep(
        self, grown: Iterator[Record], seconds: float = CHECKPOINT_SECONDS
    ) -> Iterator[Record]:
        """Pass a run on, saving it here every few seconds and however it ends."""
        try:
            yield from checkpointed(grown, self.run, seconds)
        except ModelError as error:
            if error.record is None or not error.record.n_masks:
                raise
            raise ModelError(
                f"{error} The {error.record.n_masks:,} masks before it are saved in {self.run}; "
                "the same command goes on from there.",
                error.record,
            ) from error

    def model(self, record: Record, spec: str | None, said: Mapping[str, Any]) -> Model:
        """The model of a record: the one given, or its ONNX file where it lies at hand.

        How images go in is known from the record; `said` wins. Any other model is refused.
        """
        origin = record.origin
        if spec is None:
            known = find_file(origin, (self.path, Path.cwd())) or find_old_demo(record)
            if known is None:
                name = origin.name or record.model
                raise InputError(
                    f"The run was made with {name}, and no ONNX file of the same content is here: "
                    "give the model with --model."
                )
            spec = str(known)
        if unknown := set(origin.settings) - set(inspect.signature(load_model).parameters):
            raise RecordError(
                f"{self.run} says {', '.join(sorted(unknown))} of its model, which this mcrise "
                "does not know",
                "open it with the mcrise that made it",
            )
        settings = {**origin.settings, **{k: v for k, v in said.items() if v is not None}}
        model = load_model(spec, **settings)
        recognise(record, model)
        if said.get("labels"):
            record.name_classes(model.labels)
        return model

    # ---- what is made of it

    def draw(
        self,
        record: Record,
        targets: Sequence[Target],
        estimator: str = DEFAULT,
        model: Model | None = None,
        notes: tuple[str, ...] = (),
        suffix: str = "",
        seconds: float = CHECKPOINT_SECONDS,
    ) -> "Drawing":
        """Draw and write what a record says of some classes; `model` tries the findings.

        What it answers is kept in the record, which is saved every few `seconds` meanwhile. A
        `suffix`, as in `maps-stop.png`, keeps what was drawn before.
        """
        chosen = find_estimator(estimator)
        readings = [read_maps(record, one, chosen.reading.name) for one in targets]
        maps = [reading.maps for reading in readings]
        if chosen.reading is not chosen:  # one map for all fills: nothing to read in it
            maps = [record.maps(one, estimator) for one in targets]
        with keeping_answers(record, self.run, seconds):
            tried = [try_reading(record, reading, model) for reading in readings]
        summary = summarise(record, maps, [one.to_json() for one in tried], notes)
        files = {MAPS: plot_maps(maps), REGIONS: plot_regions(tried)}
        if not chosen.per_fill:
            pair = [record.maps(maps[0].target, name) for name in ("rise", "debiased")]
            files[RISE] = plot_rise(*pair)
        written = {name: self.save(figure, named(name, suffix)) for name, figure in files.items()}
        self.write_json(named(SUMMARY, suffix), summary.to_json())
        return Drawing(summary, tuple(tried), written)

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
    """What was drawn of a record, and what there is to say of it."""

    summary: Summary
    tried: tuple[Tried, ...]  # the reading of each class
    files: Mapping[str, Path]  # by what they are called without a suffix

    def lines(self) -> list[str]:
        """To print."""
        return [*self.summary.lines(), *(line for one in self.tried for line in one.lines())]


def keeping_answers(
    record: Record, path: Path, seconds: float = CHECKPOINT_SECONDS
) -> AbstractContextManager[None]:
    """Save what is answered meanwhile in a RUN, every few seconds and however that ends."""
    place = path / RUN if path.is_dir() else path
    return answers_saved(record, lambda: record.save(place), seconds)


def folder_of(run: Path) -> RunFolder:
    """The folder of a RUN, which may be given as that folder or as the file in it."""
    return RunFolder(run if run.is_dir() else run.parent)


def find_old_demo(record: Record) -> str | None:
    """The embedded model, for a record that was made before origins were kept."""
    if record.origin.digest or load_model("demo").identity != record.model:
        return None
    return "demo"


def named(name: str, suffix: str) -> str:
    """`maps-stop.png` for `maps.png` and `stop`."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}-{slug(suffix)}.{ending}" if suffix else name


def slug(words: str) -> str:
    """Words as a part of a file's name: no word of a user's becomes a path."""
    return re.sub(r"[^\w.+]+", "-", words).strip("-.")[:60] or "class"
