"""`mcrise explain` and `mcrise show`: from an image to maps, and from a record to maps again."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..config import RunConfig
from ..errors import ExplanationError
from ..estimators import DEFAULT
from ..explanation import Explanation
from ..explanation_file import load
from ..interpretation.claims import join
from ..models import load_model
from ..output.progress import with_progress
from ..output.run_folder import MAPS, REGIONS, Drawing, RunFolder, folder_of
from ..sampling import CHECKPOINT_SECONDS, grow, last, run
from .options import MODEL_HELP, json_option, model_options, run_options, target_options
from .output import echo, echo_text


@click.command()
@click.argument("image", type=click.Path(path_type=Path), required=False)
@click.option("--model", "spec", required=True, help=MODEL_HELP)
@target_options
@run_options()
@click.option("--more", type=click.Path(path_type=Path), metavar="RUN",
              help="Continue a finished RUN instead of explaining IMAGE.")  # fmt: skip
@click.option("--like", type=click.Path(path_type=Path), metavar="RUN",
              help="Paint as RUN did, to compare: its colors, grid, chance, seed, number of masks.",
              )  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: IMAGE.mcrise]")
@click.option("--checkpoint", type=float, default=CHECKPOINT_SECONDS, show_default=True,
              help="Save the record every so many seconds.")  # fmt: skip
@click.option(
    "--trials",
    type=click.Choice(["all", "none"]),
    default="all",
    show_default=True,
    help="Put findings to the test by repainting; none for models that cost money.",
)
@json_option
@click.option("--quiet", is_flag=True, help="No progress bar, no sentences.")
@click.option("--overwrite", is_flag=True, help="Replace another run in the folder.")
@model_options
def explain(
    image: Path | None,
    spec: str,
    targets: tuple[str, ...],
    estimator: str,
    config: RunConfig,
    more: Path | None,
    like: Path | None,
    out: Path | None,
    checkpoint: float,
    trials: str,
    as_json: bool,
    quiet: bool,
    overwrite: bool,
    settings: dict[str, Any],
) -> None:
    """Show which colors matter where in IMAGE.

    Writes run.npz, maps.png, regions.png and summary.json, and tries each finding. An unfinished
    run of the same plan found in the folder goes on; a finished one is only drawn again.
    """
    if (image is None) == (more is None):
        raise click.UsageError("Give either an IMAGE to explain or --more RUN to continue one.")
    if more:
        refuse_other_plan(config, like)
    config = replace(config, target=targets[0] if targets else None)
    if like:
        other = load(like)
        config = config.like(other.plan, other.n_masks)
    folder = (
        RunFolder(out) if out else folder_of(more) if more else RunFolder(Path(f"{image}.mcrise"))
    )
    folder.check_writable()
    if more:
        before = load(more)
        with folder.refusing():
            there = None if overwrite or not out else folder.earlier()
            if there is not None and (different := there.differences(before)):
                raise ExplanationError(f"Record of another run (other {', '.join(different)})")
        model = folder_of(more).model(before, spec, settings)
        grown: Iterator[Explanation] = grow(
            before, model, n_masks=config.n_masks, tolerance=config.tolerance,
            max_masks=config.max_masks,
            target=config.target,
        )  # fmt: skip
        explanation = follow(folder.keep(known(grown, targets), checkpoint), quiet or as_json)
    else:
        model = load_model(spec, **settings)
        with folder.refusing():
            there = None if overwrite else folder.earlier()
            grown = known(run(model.view(image), model, config, there), targets)
            explanation = follow(folder.keep(grown, checkpoint), quiet or as_json)
    asked = model if trials == "all" else None
    drawing = folder.draw(
        explanation, targets or (None,), estimator, asked, model.notes, seconds=checkpoint
    )
    print_result(drawing, folder.run, as_json, quiet)


def refuse_other_plan(config: RunConfig, like: Path | None) -> None:
    """A run that is continued goes on as it is."""
    said = {"--colors": "fills", "--grid": "grid", "--mask-prob": "mask_prob", "--seed": "seed"}
    given = [
        word for word, name in said.items() if getattr(config, name) != getattr(RunConfig(), name)
    ]
    given += ["--like"] if like else []
    if given:
        raise click.UsageError(
            f"A RUN that is continued is painted as it was: leave {join(given, 'and')} out."
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


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@target_options
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: that of RUN]")
@json_option
def show(
    run: Path, targets: tuple[str, ...], estimator: str, out: Path | None, as_json: bool
) -> None:
    """Draw the maps of a saved RUN (a run.npz or its folder) again; calls no model.

    Pictures of a class or estimator asked for are named after it, beside those there are.
    """
    explanation = load(run)
    folder = RunFolder(out) if out else folder_of(run)
    folder.check_writable()
    words = [explanation.label(explanation.resolve(target)) for target in targets]
    suffix = " ".join([*words, *([] if estimator == DEFAULT else [estimator])])
    drawing = folder.draw(explanation, targets or (None,), estimator, suffix=suffix)
    print_result(drawing, folder_of(run).run if run.is_dir() else run, as_json)
