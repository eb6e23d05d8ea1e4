"""`mcrise explain`: from an image to maps and tested findings."""

import json
from collections.abc import Iterator, Sequence
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
from ..output.run_folder import MAPS, REGIONS, Drawing, RunFolder, folder_of
from ..sampling import grow, last, run
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
)
from .output import echo, echo_text


@click.command(cls=Command)
@click.argument("image", type=click.Path(path_type=Path), required=False)
@option("--model", "spec", required=True, help=MODEL_HELP)
@target_options
@run_options()
@option("--resume", type=click.Path(path_type=Path), metavar="RUN",
        help="Add masks to a finished RUN instead of explaining IMAGE.")  # fmt: skip
@option("--same-masks-as", type=click.Path(path_type=Path), metavar="RUN",
        help="Use the colors, grid, chance, seed and number of masks of RUN, to compare with it.",
        )  # fmt: skip
@out_option("IMAGE.mcrise")
@save_every_option
@option("--trials", type=click.Choice(["all", "none"]), default="all", show_default=True,
        help="Test findings by repainting the image; none if each call costs money.")  # fmt: skip
@json_option
@quiet_option
@overwrite_option
@model_options
def explain(
    image: Path | None,
    spec: str,
    targets: tuple[str, ...],
    estimator: str,
    config: RunConfig,
    resume: Path | None,
    same_masks_as: Path | None,
    out: Path | None,
    save_every: float,
    trials: str,
    as_json: bool,
    quiet: bool,
    overwrite: bool,
    settings: dict[str, Any],
) -> None:
    """Show which colors matter, and where, in IMAGE.

    Writes run.npz, maps.png, regions.png and summary.json, and tests each finding by repainting the
    image. The same command continues a run that was interrupted. Of a finished run it draws the
    pictures again.
    """
    if (image is None) == (resume is None):
        raise click.UsageError("Give either an IMAGE to explain or --resume RUN to continue one.")
    if resume:
        refuse_other_plan(config, same_masks_as)
    config = replace(config, target=targets[0] if targets else None)
    if same_masks_as:
        other = load(same_masks_as)
        config = config.like(other.plan, other.n_masks)
    own = folder_of(resume) if resume else RunFolder(Path(f"{image}.mcrise"))
    folder = RunFolder(out) if out else own
    folder.check_writable()
    if resume:
        before = load(resume)
        with folder.refusing():
            there = None if overwrite or not out else folder.earlier()
            if there is not None and (different := there.differences(before)):
                raise ExplanationError(f"Record of another run (other {', '.join(different)})")
        model = folder_of(resume).model(before, spec, settings)
        grown: Iterator[Explanation] = grow(
            before, model, n_masks=config.n_masks, tolerance=config.tolerance,
            max_masks=config.max_masks,
            target=config.target,
        )  # fmt: skip
        explanation = follow(folder.keep(known(grown, targets), save_every), quiet or as_json)
    else:
        model = load_model(spec, **settings)
        with folder.refusing():
            there = None if overwrite else folder.earlier()
            grown = known(run(model.view(image), model, config, there), targets)
            explanation = follow(folder.keep(grown, save_every), quiet or as_json)
    asked = model if trials == "all" else None
    drawing = folder.draw(
        explanation, targets or (None,), estimator, asked, model.notes, seconds=save_every
    )
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


def known(grown: Iterator[Explanation], targets: Sequence[str]) -> Iterator[Explanation]:
    """Pass a run on, refusing targets the model does not have after one chunk, not after all."""
    for explanation in grown:
        for target in targets:
            explanation.resolve(target)
        yield explanation


def follow(grown: Iterator[Explanation], silent: bool) -> Explanation:
    """Follow a run to its end, telling whoever watches."""
    return last(grown if silent else with_progress(grown))


def print_result(drawing: Drawing, explanation: Path, as_json: bool, quiet: bool = False) -> None:
    """Say what was drawn, and where it is."""
    if as_json:
        echo_text(json.dumps(drawing.summary.to_json(), indent=2))
    elif not quiet:
        files = drawing.files
        written = f"Maps: {files[MAPS]}   regions: {files[REGIONS]}   record: {explanation}"
        echo(*drawing.lines(), written)
