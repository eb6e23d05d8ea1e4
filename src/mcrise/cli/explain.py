"""`mcrise explain`: from an image to maps and tested findings."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from .._util.text import duration
from ..config import FIELDS, RunConfig, whole_chunks
from ..errors import ExplanationError, InputError, McriseError
from ..explanation import Explanation
from ..explanation_file import RunFile, load
from ..inspection import speed_of
from ..interpretation.claims import join
from ..models import load_model
from ..models.model import Model
from ..output.run_folder import EXPLANATION, MAPS, Drawing, RunFolder, folder_of
from ..output.terminal import print_lines, with_progress
from ..sampling import FIRST_LOOK, grow, last, run, trial_budget, watched, with_trials
from .image_arguments import Named, named_pictures
from .options import (
    MODEL_HELP,
    Command,
    json_option,
    model_options,
    option,
    out_option,
    overwrite_option,
    quiet_option,
    run_options,
    save_every_option,
    target_options,
    trials_option,
)
from .output import echo, echo_text, sentence


@click.command(cls=Command)
@click.argument("images", nargs=-1, metavar="[IMAGE]...")
@option("--model", "spec", required=True, help=MODEL_HELP)
@target_options
@option("--truth", metavar="CLASS",
        help="The right class: search a repaint that makes a wrong image right.")  # fmt: skip
@run_options()
@option("--resume", type=click.Path(path_type=Path), metavar="RUN",
        help="Add masks to a finished RUN instead of explaining IMAGE.")  # fmt: skip
@option("--same-masks-as", type=click.Path(path_type=Path), metavar="RUN",
        help="Use the colors, grid, chance, seed and number of masks of RUN, to compare with it.",
        )  # fmt: skip
@out_option("IMAGE.mcrise")
@save_every_option
@trials_option
@json_option
@option("--jsonl", is_flag=True, help="Print one line of JSON per image, as each is finished.")
@option("--dry-run", is_flag=True, help="Say what would be done and what it costs, and do nothing.")
@quiet_option
@overwrite_option
@model_options
def explain(
    images: tuple[str, ...],
    spec: str,
    targets: tuple[str, ...],
    estimator: str,
    truth: str | None,
    config: RunConfig,
    resume: Path | None,
    same_masks_as: Path | None,
    out: Path | None,
    save_every: float,
    trials: int | bool,
    as_json: bool,
    jsonl: bool,
    dry_run: bool,
    quiet: bool,
    overwrite: bool,
    settings: dict[str, Any],
) -> None:
    """Show which colors matter, and where, in IMAGE.

    Writes run.npz, maps.png, explanation.png and summary.json, and tests each finding by repainting
    the image. The same command continues a run that was interrupted. Of a finished run it draws the
    pictures again.

    Several images, folders and patterns may be given, and - for standard input, which is an image
    or a list of paths. Each image gets its own folder. One that fails is named, and the rest goes
    on.
    """
    if bool(images) == (resume is not None):
        raise click.UsageError("Give either an IMAGE to explain or --resume RUN to continue one.")
    if resume:
        refuse_other_plan(config, same_masks_as)
    config, budget = replace(config, target=targets[0] if targets else None), trial_budget(trials)
    if same_masks_as:
        other = load(same_masks_as)
        config = config.like(other.plan, other.n_masks)
    silent = quiet or as_json or jsonl
    work = Work(config, targets or (None,), truth, budget, estimator, save_every, overwrite, silent)
    if resume:
        if dry_run or jsonl:
            raise click.UsageError("--dry-run and --jsonl are for IMAGES: leave them out.")
        folder = RunFolder(out) if out else folder_of(resume)
        print_result(work.go_on(resume, folder, bool(out), spec, settings), folder.run, as_json,
                     quiet)  # fmt: skip
        return
    pictures = named_pictures(images)
    alone = len(pictures) == 1 and pictures[0].name in (images[0], "stdin")
    if as_json and not alone:
        raise click.UsageError(
            "--json is for one image: give --jsonl for a line of JSON per image."
        )
    folders = [
        RunFolder(one.beside if out is None else out if alone else out / one.inside)
        for one in pictures
    ]
    if len({folder.path for folder in folders}) < len(folders):
        raise click.UsageError("Two images would go to the same folder: give each image once.")
    for folder in folders[:1]:
        folder.check_writable()  # before the model is loaded
    model = load_model(spec, **settings)
    if dry_run:
        echo(*planned(model, pictures, folders, work))
        return
    failures: list[McriseError] = []
    for one, folder in zip(pictures, folders, strict=True):
        try:
            drawing = work.explain(one, folder, model)
        except McriseError as error:
            if alone and not jsonl:
                raise
            failures.append(error)
            print_failure(one.name, error, jsonl)
            continue
        if jsonl:
            about = {"image": one.name, "run": str(folder.run), **drawing.summary.to_json()}
            echo_text(json.dumps(about))
        else:
            if not (alone or silent):
                echo("", f"{one.name}:")
            print_result(drawing, folder.run, as_json, quiet)
    if failures:
        bad_input = all(isinstance(error, InputError) for error in failures)
        n, words = len(failures), "have no explanation; each"
        raise (InputError if bad_input else McriseError)(
            f"{n} of {len(pictures)} images {words if n > 1 else 'has no explanation; it'} is "
            "named above."
        )


@dataclass(frozen=True)
class Work:
    """What is to be done with each image."""

    config: RunConfig
    targets: tuple[str | None, ...]
    truth: str | None
    budget: int | None
    estimator: str
    save_every: float
    overwrite: bool
    silent: bool

    def explain(self, one: Named, folder: RunFolder, model: Model) -> Drawing:
        """From the image, or from where its run is."""
        folder.check_writable()
        file = folder.file(seconds=self.save_every)
        view = one.view(model)
        view = view if view.name else replace(view, name=one.name)
        before = None if self.overwrite else file.earlier()
        return self.finish(run(view, model, self.config, before), file, folder, model)

    def go_on(
        self, resume: Path, folder: RunFolder, elsewhere: bool, spec: str, settings: dict[str, Any]
    ) -> Drawing:
        """Add masks to a finished run, in its folder or in another."""
        folder.check_writable()
        file, before = folder.file(seconds=self.save_every), load(resume)
        with file.refusing():
            there = None if self.overwrite or not elsewhere else file.earlier()
            if there is not None and (different := there.differences(before)):
                raise ExplanationError(
                    f"Another run is there, which differs in {', '.join(different)}"
                )
        model = folder_of(resume).model(before, spec, settings)
        grown = grow(
            before, model, n_masks=self.config.n_masks, tolerance=self.config.tolerance,
            max_masks=self.config.max_masks, target=self.config.target,
        )  # fmt: skip
        return self.finish(grown, file, folder, model)

    def finish(
        self, grown: Iterator[Explanation], file: RunFile, folder: RunFolder, model: Model
    ) -> Drawing:
        shown = not self.silent
        grown = with_trials(
            watched(grown, shown), model, self.targets, self.budget, self.truth, shown
        )
        return folder.draw(last(file.keep(grown)), self.targets, self.estimator, model.notes)


def planned(
    model: Model, pictures: Sequence[Named], folders: Sequence[RunFolder], work: Work
) -> list[str]:
    """What would be done with each image, and what the model's calls would take."""
    lines, readable = [], []
    for one, folder in zip(pictures, folders, strict=True):
        try:
            readable.append(one.view(model).pixels)
        except InputError as error:
            lines.append(f"{one.name}: cannot be read. {error}")
            continue
        there = "continues or draws again the run in" if folder.run.exists() else "writes"
        lines.append(f"{one.name}: {there} {folder.path}")
    if not readable:
        return lines
    size = 32 if work.config.batch_size == "auto" else work.config.batch_size
    speed = speed_of(model, readable[0], size)
    least, most = mask_range(work.config)
    masks = f"{least:,} masks" if least == most else f"{least:,} to {most:,} masks"
    times = dict.fromkeys(duration(n / speed) for n in (least, most))
    total = dict.fromkeys(duration(len(readable) * n / speed) for n in (least, most))
    in_all = f", {' to '.join(total)} in all" if len(readable) > 1 else ""
    trials = (
        "no tests" if work.budget is None else "and then a hundred or two tests of what they show"
    )
    return [
        *lines,
        f"Images: {len(readable)}. Model: {model.identity}. Per image {masks}, {trials}.",
        f"The model answers {speed:,.0f} images per second in batches of {size}: the masks take "
        f"{' to '.join(times)} per image{in_all}.",
        "Nothing was written.",
    ]


def mask_range(config: RunConfig) -> tuple[int, int]:
    """The fewest and the most masks of an image."""
    if config.n_masks != "auto":
        return whole_chunks(config.n_masks), whole_chunks(config.n_masks)
    most = whole_chunks(config.max_masks)
    return min(FIRST_LOOK, most), most


def print_failure(name: str, error: McriseError, jsonl: bool) -> None:
    """Say which image has no explanation, and why."""
    if jsonl:
        echo_text(json.dumps({"image": name, "error": str(error)}))
    words = str(error) if name in str(error) else f"{name}: {error}"
    echo(sentence(f"Error: {words}"), err=True)


def refuse_other_plan(config: RunConfig, same_masks_as: Path | None) -> None:
    """A run that is continued keeps its masks."""
    said = {"--colors": "fills", "--grid": "grid", "--mask-prob": "mask_prob", "--seed": "seed"}
    given = [word for word, name in said.items() if getattr(config, name) != FIELDS[name].default]
    given += ["--same-masks-as"] if same_masks_as else []
    if given:
        raise click.UsageError(
            f"A RUN that is continued keeps its masks: leave {join(given, 'and')} out."
        )


def follow(grown: Iterator[Explanation], silent: bool) -> Explanation:
    """Follow a run to its end, telling whoever watches."""
    return last(grown if silent else with_progress(grown))


def print_result(drawing: Drawing, run: Path, as_json: bool, quiet: bool = False) -> None:
    """Print what was found, and where the files are."""
    if as_json:
        echo_text(json.dumps(drawing.summary.to_json(), indent=2))
    elif not quiet:
        files = drawing.files
        drawn = {"Maps": files[MAPS], "explanation": files.get(EXPLANATION), "run": run}
        written = [f"{what}: {path}" for what, path in drawn.items() if path is not None]
        print_lines([*drawing.lines(), "   ".join(written)], drawing.fills)
