"""What is known of one image under one model: the scores under masks, and the trials.

Every map of every class, by every estimator, every standard error, every finding, every resume and
every merge of work done on several machines is computed from it without calling the model again.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ._util.text import did_you_mean, number
from ._util.validation import MOST, check_labels
from .errors import ExplanationError, InputError
from .estimators import (
    DEFAULT,
    EstimatorName,
    FittedEstimator,
    NullThreshold,
    Sample,
    find_estimator,
)
from .images import View
from .maps import Maps, diagnose
from .masks import CHUNK, Masks, Plan, draw
from .models.provenance import UNKNOWN, Origin, different_models
from .models.scores import check_kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .interpretation.findings import Findings

MOST_CLASSES = 2**15  # ImageNet-21k has 21,843
MOST_BYTES = 4 * 2**30  # of its file
SAME_ANSWER = 1e-3  # of the range of scores; runtimes round differently
TRIALS = 64  # repaints that a search for findings may try by default
UNDECIDED = 0.05  # of the range of scores: two classes that are closer share the decision

Target = int | str | None
Targets = list[Target] | tuple[Target, ...]


class Prediction(NamedTuple):
    """A class and its score on the untouched image, and the class that comes next."""

    target: int
    label: str
    score: float
    runner_up: "Prediction | None" = None
    kind: str = "probability"  # of scores
    is_undecided: bool = False  # whether the class that comes next has nearly the same score

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        if self.runner_up is None:
            # A single score decides nothing.
            return f"Score of {self.label}: {number(self.score, self.kind)}"
        after = ": undecided" if self.is_undecided else ""
        return (
            f"Prediction: {self.label} {number(self.score, self.kind)}, next "
            f"{self.runner_up.label} {number(self.runner_up.score, self.kind)}{after}"
        )

    def to_json(self) -> dict[str, Any]:
        return {"target": self.target, "label": self.label, "score": self.score}


class CallCounts(NamedTuple):
    """How many images the model was asked about, and what for."""

    masks: int  # that the maps are made of
    pilot: int  # to choose mask_prob
    checks: int  # the untouched image, whether answers repeat, whether it is the same model
    trials: int  # repaints

    @property
    def total(self) -> int:
        return sum(self)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return (
            f"{self.total:,} calls of the model: {self.masks:,} masks, {self.pilot:,} to choose "
            f"mask_prob, {self.checks:,} checks, {self.trials:,} trials"
        )


# ---- what was tried, as it is kept


class StoredStroke(NamedTuple):
    """A region that was painted and what with."""

    region: bytes  # its bits, packed
    fill: Mapping[str, Any]  # as JSON
    place: str  # in words
    pixels: NDArray[np.uint8] | None = None  # (n, 3) in the region, where the fill is a picture


class StoredRepaint(NamedTuple):
    """What was painted for a trial; `interpretation.trial_calls` packs and unpacks it."""

    strokes: tuple[StoredStroke, ...]
    soft: bool = False
    take: int = 0

    @property
    def n_bytes(self) -> int:
        """About how much of a file it takes."""
        pixels = [stroke.pixels.nbytes for stroke in self.strokes if stroke.pixels is not None]
        return sum(len(stroke.region) + 200 for stroke in self.strokes) + sum(pixels) + 100


class TrialNote(NamedTuple):
    """Why a repaint was tried."""

    digest: str  # of the repaint
    role: str
    letter: str = ""  # of the finding it is about


@dataclass(eq=False)
class TrialLog:
    """The trials of the search for one class, in the order in which they were asked."""

    budget: int
    n_masks: int  # that the maps had
    wanted: int | None = None  # a class to be reached
    finished: bool = False
    notes: list[TrialNote] = field(default_factory=list)
    n_earlier: int = 0  # notes of earlier searches, with fewer masks or another budget; they lead

    def __repr__(self) -> str:
        state = "finished" if self.finished else "unfinished"
        return f"<TrialLog: {len(self.notes)} trials after {self.n_masks:,} masks, {state}>"

    def is_of(self, budget: int, n_masks: int, wanted: int | None) -> bool:
        """Whether it is the whole of such a search."""
        asked = self.budget, self.n_masks, self.wanted
        return self.finished and asked == (budget, n_masks, wanted)


def pack_region(region: NDArray[np.bool_]) -> bytes:
    """A region (H, W) as compressed bits."""
    return zlib.compress(np.packbits(region).tobytes(), 9)


def unpack_region(content: bytes, size: tuple[int, int]) -> NDArray[np.bool_]:
    """A region (H, W) again; a ValueError if it has another size."""
    n_pixels = size[0] * size[1]
    n_bytes = -(-n_pixels // 8)
    unpacking = zlib.decompressobj()
    try:
        bits = unpacking.decompress(content, n_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"a region is damaged ({error})") from None
    if len(bits) != n_bytes or not unpacking.eof:
        raise ValueError("a region has another size than the image")
    flat = np.unpackbits(np.frombuffer(bits, np.uint8), count=n_pixels)
    return flat.reshape(size).astype(bool)


@dataclass(eq=False, repr=False)
class Explanation:
    """What is known of one image under one model; grows by `add`."""

    plan: Plan
    view: View
    untouched: NDArray[np.float32]  # (C,) scores of the image as it is
    labels: tuple[str, ...] | None = None
    kind: str = "probability"
    batch_size: int = 32  # runtimes round differently for different batches
    model: str = ""  # the model's identity
    origin: Origin = UNKNOWN  # where the model came from
    scores: dict[int, NDArray[np.float32]] = field(default_factory=dict)  # chunk -> (64, C)
    answers: dict[str, NDArray[np.float32]] = field(default_factory=dict)  # repaint -> (C,)
    goal: int = 0  # masks it is being grown to, as far as is known
    stop_reason: str = ""  # why an automatic run stopped
    jitter: float | None = None  # how far two answers to one image were apart; None: not tried
    pilot: dict[float, NDArray[np.float32]] = field(default_factory=dict)  # mask_probs not chosen
    choice: str = ""  # why its mask_prob, where that was chosen
    assumed: tuple[str, ...] = ()  # about the model, since nobody said otherwise
    n_checks: int = 1  # images that were asked about for other reasons; the untouched one is first
    n_rechecks: int = 0  # of these, to recognise the model of a saved run; its file keeps none
    repaints: dict[str, StoredRepaint] = field(default_factory=dict)  # digest -> what was painted
    trial_logs: dict[int, TrialLog] = field(default_factory=dict)  # target -> its trials
    versions: dict[str, str] = field(default_factory=dict)  # that wrote its file
    prepared: dict[str, tuple[FittedEstimator, Sample]] = field(default_factory=dict, init=False)
    last_chance: tuple[Any, ...] = field(default=(None,), init=False)  # of what, and the answer
    recognised: Any = field(default=None, init=False)  # the model that was found to be its own
    answered: Callable[[], None] | None = field(default=None, init=False)  # called with new answers

    def __post_init__(self) -> None:
        if len(self.untouched) > MOST_CLASSES:
            raise InputError(
                f"The model gives {len(self.untouched):,} scores per image, but a file keeps at "
                f"most {MOST_CLASSES:,}: wrap the model so that it returns those you ask about."
            )
        check_kind(self.kind)
        self.name_classes(self.labels)

    def __repr__(self) -> str:
        rows, cols = self.plan.size
        assumed = "".join(f"; {note}" for note in self.assumed)
        return (
            f"<Explanation of {self.prediction.label!r}, {rows} x {cols} pixels: "
            f"{self.n_masks:,} masks of {self.plan.n_fills} fills, {len(self.answers):,} trials, "
            f"{self.n_classes} classes of {self.model}{assumed}>"
        )

    def __str__(self) -> str:
        """The prediction and what was found, in sentences."""
        return "\n".join(self.lines())

    def __getstate__(self) -> dict[str, Any]:
        """For a pickle: what it is made of, not what was computed from it or holds a model."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.init}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(
            state, prepared={}, last_chance=(None,), recognised=None, answered=None
        )

    # ---- what it holds

    @property
    def chunks(self) -> tuple[int, ...]:
        """The chunks it has, in order."""
        return tuple(sorted(self.scores))

    @property
    def n_masks(self) -> int:
        return CHUNK * len(self.scores)

    @property
    def n_classes(self) -> int:
        return len(self.untouched)

    @property
    def score_range(self) -> float:
        """How far scores can be apart: one, or of scores of any kind what was seen."""
        if self.kind != "any":
            return 1.0
        seen = (self.untouched[None], *self.scores.values())
        # A class that never moves, such as one that is switched off by -1e4, says nothing.
        moving = np.logical_or.reduce([(some != self.untouched).any(axis=0) for some in seen])
        counted = moving if moving.any() else slice(None)
        return float(max(np.ptp(some[:, counted]) for some in seen))

    @property
    def n_calls(self) -> CallCounts:
        """How many images the model was asked about: masks, pilot, checks and trials apart."""
        pilot = sum(len(scores) for scores in self.pilot.values())
        return CallCounts(self.n_masks, pilot, self.n_checks, len(self.answers))

    @property
    def prediction(self) -> Prediction:
        """The class with the highest score on the untouched image, and the next one."""
        return self.top(1)[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of how it came about."""
        return (*self.view.notes, *([self.choice] if self.choice else ()), *self.assumed)

    def masks(self) -> Masks:
        """The masks of its chunks, drawn again."""
        drawn = [draw(self.plan, chunk) for chunk in self.chunks]
        return Masks(
            np.concatenate([masks.cells for masks in drawn]),
            np.concatenate([masks.shifts for masks in drawn]),
        )

    def sample(self) -> Sample:
        """Its masks and scores, as estimators take them."""
        if not self.scores:
            raise InputError("The explanation has no masks yet: run it for at least one chunk.")
        return Sample(self.plan, self.masks(), [self.scores[c] for c in self.chunks], self.kind)

    def scores_of(self, target: int) -> NDArray[np.float64]:
        """The score of one class under each mask, in the order of `masks`: (N,)."""
        columns = [self.scores[chunk][:, target] for chunk in self.chunks]
        return np.concatenate(columns).astype(np.float64)

    def label(self, target: int) -> str:
        return self.labels[target] if self.labels else f"class {target}"

    def top(self, n: int = 5) -> list[Prediction]:
        """The `n` classes with the highest scores on the untouched image, best first.

        The first has the next one as its runner-up.
        """
        order = np.argsort(-self.untouched, kind="stable")[: max(n, 2)]
        first, *others = (
            Prediction(int(c), self.label(int(c)), float(self.untouched[c]), kind=self.kind)
            for c in order
        )
        if others:
            near = first.score - others[0].score < UNDECIDED * self.score_range
            first = first._replace(runner_up=others[0], is_undecided=near)
        return [first, *others][:n]

    def add(self, chunk: int, scores: NDArray[Any]) -> None:
        """Take the scores (64, C) of a chunk; chunks may come in any order."""
        assert scores.shape == (CHUNK, self.n_classes), scores.shape
        self.scores[chunk] = np.asarray(scores, np.float32)
        self.prepared = {}

    def name_classes(self, labels: tuple[str, ...] | None) -> None:
        """Take labels, one for each class."""
        check_labels(labels)
        if labels is not None and len(labels) != self.n_classes:
            raise InputError(
                f"There are {len(labels)} labels, but the model gives {self.n_classes} scores per "
                "image: give one label per score, in order."
            )
        self.labels = labels

    def check_room(self, n_masks: int = 0, n_answers: int = 0) -> None:
        """Refuse to ask for what its file could not keep, before it is asked.

        That is `n_masks` in all, and `n_answers` about repaints more than it has.
        """
        n_answers += len(self.answers)
        if n_answers > MOST:
            raise InputError(
                f"There would be {n_answers:,} answers about repaints, but a file keeps at most "
                f"{MOST:,}: start a new run."
            )
        n_masks = max(n_masks, self.n_masks) + CHUNK * len(self.pilot)
        arrays = [self.view.pixels, *(fill.array for fill in self.plan.fills)]
        fixed = sum(one.nbytes for one in arrays if one is not None) + sum(
            6 * len(label) + 4 for label in self.labels or ()
        )
        fixed += sum(one.n_bytes for one in self.repaints.values())
        needed = 4 * self.n_classes * (1 + n_masks + n_answers) + 72 * n_answers + fixed + 2**20
        if needed > MOST_BYTES:
            raise InputError(
                f"{n_masks:,} masks and {n_answers:,} repaints with {self.n_classes:,} scores each "
                f"would make a file of {needed / 2**30:.1f} GB, but a file has at most "
                f"{MOST_BYTES / 2**30:.1f}: ask for fewer masks, or wrap the model so that it "
                "returns the scores you ask about."
            )

    def take_answers(
        self,
        answers: Mapping[str, NDArray[np.float32]],
        repaints: Mapping[str, StoredRepaint] | None = None,
    ) -> None:
        """Take what the model answered about repaints, and what they are, by their digests."""
        self.check_room(n_answers=len(answers.keys() - self.answers.keys()))
        self.repaints |= repaints or {}  # first: another thread may save what has an answer
        self.answers |= answers

    def first(self, n_masks: int) -> "Explanation":
        """The run as it was when it had its first `n_masks`."""
        chunks = range(n_masks // CHUNK)
        if self.chunks == tuple(chunks):
            return self
        return replace(self, scores={chunk: self.scores[chunk] for chunk in chunks})

    def resolve(self, target: Target) -> int:
        """The index of a class given by index, by label, or None for the image's top class."""
        if target is None:
            return int(self.untouched.argmax())
        if isinstance(target, str) and self.labels:
            lowered = [label.lower() for label in self.labels]
            named = [c for c, label in enumerate(lowered) if label == target.lower()]
            if len(named) > 1:
                raise InputError(
                    f"The target {target!r} is the name of {len(named)} classes: give the index, "
                    f"{', '.join(map(str, named[:-1]))} or {named[-1]}."
                )
            if named:
                return named[0]
        if isinstance(target, bool) or not isinstance(target, str | int | np.integer):
            raise InputError(f"The target is {target!r:.60}, but a label or an index is needed.")
        try:
            index = int(target)
        except ValueError:
            raise InputError(self.unknown_target(str(target))) from None
        if not 0 <= index < self.n_classes:
            raise InputError(
                f"The target is {index}, but the model has classes 0 to {self.n_classes - 1}."
            )
        return index

    def unknown_target(self, target: str) -> str:
        if not self.labels:
            return (
                f"The target is {target!r}, but the model's classes have no names here: give an "
                f"index from 0 to {self.n_classes - 1}, or labels."
            )
        asked = did_you_mean(target, self.labels, "give one of the labels, or an index.")
        return f"The target {target!r} is not a label of this model; {asked}"

    # ---- what follows from it

    @overload
    def maps(
        self,
        target: Target = None,
        estimator: EstimatorName | str = DEFAULT,
        against: Target = None,
    ) -> Maps: ...

    @overload
    def maps(
        self,
        target: Targets,
        estimator: EstimatorName | str = DEFAULT,
        against: Target = None,
    ) -> list[Maps]: ...

    @overload
    def maps(
        self,
        target: list[int] | list[str],
        estimator: EstimatorName | str = DEFAULT,
        against: Target = None,
    ) -> list[Maps]: ...

    def maps(
        self,
        target: Target | Targets | list[int] | list[str] = None,
        estimator: EstimatorName | str = DEFAULT,
        against: Target = None,
    ) -> Maps | list[Maps]:
        """Maps of one class: its index or label, or None for the image's top class.

        With `against`, of its score less that of this other class. Of a list of targets, a list.
        """
        if isinstance(target, list | tuple):
            return [self.maps(one, estimator, against) for one in target]
        index = self.resolve(target)
        other = None if against is None else self.resolve(against)
        chosen, (prepared, sample) = find_estimator(estimator), self.prepare(estimator)
        column = sample.column(index, other)
        made = prepared.maps(column)
        label, untouched = self.label(index), float(self.untouched[index])
        if other is not None:
            label, untouched = f"{label} − {self.label(other)}", untouched - self.untouched[other]
        maps = Maps(
            values=made.values,
            se=made.se,
            fills=self.plan.fills if chosen.per_fill else (),
            target=index,
            label=label,
            estimator=estimator,
            n_masks=self.n_masks,
            unit=chosen.unit(self.kind),
            image=self.view.pixels,
            diverging=chosen.diverging,
            against=other,
            test=partial(self.chance_of, prepared, sample, index, other),
        )
        notes = diagnose(
            self.plan,
            self.n_masks,
            float(untouched),
            float(column.scores.mean()),
            float(column.scores.std()),
            maps.relative_error,
            self.nondeterminism,
        )
        return replace(maps, notes=notes + made.notes)

    def chance(self, maps: Maps) -> NullThreshold:
        """What chance alone would show in maps of this run."""
        return self.chance_of(*self.prepare(maps.estimator), maps.target, maps.against)

    def chance_of(
        self, prepared: FittedEstimator, sample: Sample, target: int, against: int | None
    ) -> NullThreshold:
        """What chance alone would show in the maps that an estimator makes of a sample."""
        asked = prepared, target, against
        known = self.last_chance  # maps are drawn and then read, so one is enough
        if known[0] is not None and known[0][0] is prepared and known[0][1:] == asked[1:]:
            return known[1]  # type: ignore[no-any-return]
        column = sample.column(target, against)
        found = prepared.chance(column)
        if found is None:
            found = find_estimator("centered").prepare(sample).chance(column)
        assert found is not None
        self.last_chance = asked, found
        return found

    def prepare(self, estimator: str) -> tuple[FittedEstimator, Sample]:
        """An estimator for all classes of this run, made once and again when masks came."""
        kept = self.prepared  # its own name: another thread may add masks meanwhile
        if estimator not in kept:
            sample = self.sample()
            kept[estimator] = find_estimator(estimator).prepare(sample), sample
        return kept[estimator]

    # ---- findings

    @property
    def findings(self) -> "Findings":
        """What was found about the predicted class, each tested by repainting; prints as sentences.

        Where other classes were tested and the predicted one was not, of the first of these.
        """
        target = self.prediction.target
        if target not in self.trial_logs and self.trial_logs:
            target = next(iter(self.trial_logs))
        return self.findings_of(target)

    def findings_of(
        self,
        target: Target = None,
        model: Any = None,
        *,
        trials: int = TRIALS,
        wanted: Target = None,
    ) -> "Findings":
        """What was found about one class: its index or label, or None for the predicted one.

        With a model, what was not tried yet is tried, and the answers are kept: `trials` is how
        many repaints the search may try, before each place it finds is described. With `wanted`,
        a repaint is searched for that makes the model say this class.
        """
        from .interpretation.trial_calls import known_findings, search_findings

        index = self.resolve(target)
        if model is None:
            return known_findings(self, index)
        aim = None if wanted is None else self.resolve(wanted)
        return search_findings(self, index, model, trials, aim)

    def lines(self) -> list[str]:
        """The prediction and what was found about each class that was tested, to print."""
        out = [f"{self.prediction}."]
        for target, log in self.trial_logs.items():
            out += self.findings_of(target).lines()
            if not log.finished:
                out.append(
                    f"The trials of {self.label(target)!r} are not finished: "
                    f"explanation.findings_of({self.label(target)!r}, model) makes the rest."
                )
        if not self.trial_logs:
            label = self.prediction.label
            out.append(f"Not tested: explanation.findings_of({label!r}, model) makes the trials.")
        return out

    def plot(self) -> "Figure":
        """The image with its findings, its maps and the repaints, as a matplotlib figure.

        Where nothing was tested, the maps alone.
        """
        if not self.trial_logs:
            return self.maps().plot()
        from .output.figure import plot_explanation

        return plot_explanation(self, self.findings)

    @property
    def nondeterminism(self) -> float:
        """How far two answers to one image were apart, where that is more than rounding."""
        jitter = self.jitter or 0.0
        return jitter if jitter > SAME_ANSWER * self.score_range else 0.0

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .output.html import explanation_html

        return explanation_html(self)

    # ---- comparing, saving

    def differences(self, other: "Explanation") -> list[str]:
        """In what the two cannot be parts of the same run, in words; labels may differ."""
        ours, theirs = self.plan, other.plan
        found = [
            what
            for what, same in {
                "image": np.array_equal(self.view.pixels, other.view.pixels),
                "image size": ours.size == theirs.size,
                "colors": ours.fills == theirs.fills,
                "grid": ours.grid == theirs.grid,
                "mask_prob": ours.mask_prob == theirs.mask_prob,
                "seed": ours.seed == theirs.seed,
                "kind of score": self.kind == other.kind,
                "batch size": self.batch_size == other.batch_size,
                "number of classes": self.n_classes == other.n_classes,
            }.items()
            if not same
        ]
        return found + different_models(self.model, self.origin, other.model, other.origin)

    def other_answer(self, scores: NDArray[np.float32], known: NDArray[np.float32]) -> float:
        """How far scores are from those known, where that is too far for the same model; else 0."""
        apart = float(np.abs(scores - known).max())
        return apart if apart > max(SAME_ANSWER * self.score_range, 3 * (self.jitter or 0)) else 0.0

    def save(self, path: Path | str) -> None:
        """Write it, whole or not at all: an older file of that name survives a failure."""
        from .explanation_file import write_explanation

        write_explanation(self, Path(path))


def merge(explanations: Iterable[Explanation]) -> Explanation:
    """Put together parts of one run that were computed apart."""
    parts = list(explanations)
    if not parts:
        raise InputError("There is nothing to merge: give at least one explanation.")
    first = parts[0]
    nothing: dict[str, Any] = {"stop_reason": "", "n_checks": 0, "n_rechecks": 0}
    whole = replace(first, scores={}, answers={}, repaints={}, trial_logs={}, **nothing)
    for part in parts:
        if different := first.differences(part):
            raise ExplanationError(
                f"These runs cannot be joined: they differ in {', '.join(different)}",
                "merge only parts of one run",
            )
        if apart := first.other_answer(part.untouched, first.untouched):
            raise ExplanationError(
                f"These runs are of different models: scores of the untouched image differ by "
                f"{apart:.2g}",
                "merge only parts that one model has answered",
            )
        for chunk, scores in part.scores.items():
            if chunk in whole.scores and not np.array_equal(whole.scores[chunk], scores):
                raise ExplanationError(
                    f"Two runs have different scores for the same masks (chunk {chunk})",
                    "find out why the model answers differently each time, or on each machine",
                )
            whole.add(chunk, scores)
        whole.take_answers(part.answers, part.repaints)
        whole.trial_logs = {**part.trial_logs, **whole.trial_logs}
        whole.n_checks += part.n_checks
        whole.n_rechecks += part.n_rechecks
    whole.check_room()
    return whole
