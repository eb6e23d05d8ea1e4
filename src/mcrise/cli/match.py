"""`mcrise match`: how the similarity of a query to a gallery image responds to color."""

from pathlib import Path
from typing import Any

import click

from ..config import RunConfig
from ..errors import InputError
from ..models import load_model
from ..output.run_folder import RunFolder
from ..sampling import last, run, trial_budget, watched, with_trials
from ..similarity import DISTANCES, MASK_PROB, cache_folder, digest_of, open_gallery
from ..similarity import match as find_match
from .explain import print_result
from .options import (
    Command,
    estimator_option,
    json_option,
    model_options,
    option,
    out_option,
    overwrite_option,
    quiet_option,
    run_options,
    trials_option,
)
from .output import echo


@click.command(cls=Command)
@click.argument("query", type=click.Path(path_type=Path))
@click.argument("gallery", type=click.Path(path_type=Path))
@option("--model", "spec", required=True, help="A model that gives embeddings.")
@option("--against", type=click.Path(path_type=Path), metavar="FILE",
        help="Image of the gallery to compare with.  [default: the nearest]")  # fmt: skip
@option("--distance", type=click.Choice(DISTANCES), default="euclidean", show_default=True,
        help="Distance between embeddings.")  # fmt: skip
@run_options(mask_prob=MASK_PROB)
@estimator_option
@out_option("QUERY.match")
@trials_option
@json_option
@quiet_option
@overwrite_option
@model_options
def match(
    query: Path,
    gallery: Path,
    spec: str,
    against: Path | None,
    distance: str,
    config: RunConfig,
    estimator: str,
    out: Path | None,
    trials: int | bool,
    as_json: bool,
    quiet: bool,
    overwrite: bool,
    settings: dict[str, Any],
) -> None:
    """Show which colors make QUERY similar to an image of the folder GALLERY."""
    from ..output.plots import plot_match

    folder = RunFolder(out or Path(f"{query}.match"))
    folder.check_writable()
    if folder.path.resolve() == gallery.resolve():
        raise InputError(f"The images are in {gallery} themselves: choose another --out.")
    silent = quiet or as_json
    embed = load_model(spec, **{**settings, "score_kind": "any", "softmax": None, "sigmoid": None})
    view = embed.view(query)
    known = open_gallery(gallery, embed, cache_folder())
    found = find_match(query, known, embed, distance, against)
    file = folder.file()
    grown = run(view, found.model, config, None if overwrite else file.earlier())
    budget = trial_budget(trials)
    tested = with_trials(
        watched(grown, not silent), found.model, [None], budget, progress=not silent
    )
    explanation = last(file.keep(tested))
    pixels = embed.view(found.path).pixels
    picture = plot_match(explanation.maps(0, estimator), pixels, found.path.name)
    written = folder.save(picture, "match.png")
    if not (as_json or quiet):
        own = digest_of(query)  # which has no rank
        n_ranked = sum(digest != own for digest in known.digests)
        echo(
            f"Matched with {found.path} (rank {found.rank} of {n_ranked}, {distance} "
            f"distance {found.distance:.3g}): {written}"
        )
    notes = (*known.notes, *embed.notes)
    print_result(folder.draw(explanation, [None], estimator, notes), folder.run, as_json, quiet)
