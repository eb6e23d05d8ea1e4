"""`mcrise explain`: from an image to maps and tested findings."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..config import FIELDS, RunConfig
from ..errors import ExplanationError
from ..explanation import Explanation
from ..explanation_file import load
from ..interpretation.claims import join
from ..models import load_model
from ..output.progress import with_progress
from ..output.run_folder import EXPLANATION, MAPS, Drawing, RunFolder, folder_of
from ..output.terminal import print_lines
from ..sampling import grow, last, run, trial_budget, watched, with_trials
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
from .output import echo_text


@click.command(cls=Command)
@click.argument("image", type=click.Path(path_type=Path), required=False)
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
@quiet_option
@overwrite_option
@model_options
def explain(
    image: Path | None,
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
    quiet: bool,
    overwrite: bool,
    settings: dict[str, Any],
) -> None:
    """Show which colors matter, and where, in IMAGE.

    Writes run.npz, maps.png, explanation.png and summary.json, and tests each finding by repainting
    the image. The same command continues a run that was interrupted. Of a finished run it draws the
    pictures again.
    """
    if (image is None) == (resume is None):
        raise click.UsageError("Give either an IMAGE to explain or --resume RUN to continue one.")
    if resume:
        refuse_other_plan(config, same_masks_as)
    config, budget = replace(config, target=targets[0] if targets else None), trial_budget(trials)
    if same_masks_as:
        other = load(same_masks_as)
        config = config.like(other.plan, other.n_masks)
    own = folder_of(resume) if resume else RunFolder(Path(f"{image}.mcrise"))
    folder = RunFolder(out) if out else own
    folder.check_writable()
    file, progress = folder.file(seconds=save_every), not (quiet or as_json)
    grown: Iterator[Explanation]
    if resume:
        before = load(resume)
        with file.refusing():
            there = None if overwrite or not out else file.earlier()
            if there is not None and (different := there.differences(before)):
                raise ExplanationError(f"Another run is there (other {', '.join(different)})")
        model = folder_of(resume).model(before, spec, settings)
        grown = grow(
            before, model, n_masks=config.n_masks, tolerance=config.tolerance,
            max_masks=config.max_masks, target=config.target,
        )  # fmt: skip
    else:
        model = load_model(spec, **settings)
        grown = run(model.view(image), model, config, None if overwrite else file.earlier())
    asked = targets or (None,)
    grown = with_trials(watched(grown, progress), model, asked, budget, truth, progress)
    explanation = last(file.keep(grown))
    drawing = folder.draw(explanation, asked, estimator, model.notes)
    print_result(drawing, folder.run, as_json, quiet)


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
