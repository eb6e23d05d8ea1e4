"""`mcrise match`: how the similarity of a query to a gallery image responds to color."""

from pathlib import Path
from typing import Any

import click

from ..loop import CHECKPOINT_SECONDS, steps
from ..matching import DISTANCES, MASK_PROB, cache_folder, open_gallery
from ..matching import match as find_match
from ..runtimes import load_model
from .explain import RUN, check_writable, earlier, elsewhere, finish, watch
from .options import Pair, estimator_option, model_options


@click.command()
@click.argument("query", type=click.Path(path_type=Path))
@click.argument("gallery", type=click.Path(path_type=Path))
@click.option("--model", "spec", required=True, help="A model that gives embeddings.")
@click.option("--against", type=click.Path(path_type=Path),
              help="A file of the gallery.  [default: the nearest]")  # fmt: skip
@click.option("--distance", type=click.Choice(DISTANCES), default="euclidean", show_default=True)
@click.option("--colors", "--fills", "fills", default="rgbwk", show_default=True)
@click.option("--grid", type=Pair(), default="8x8", show_default=True, help="Cells of a mask.")
@click.option("--mask-prob", type=float, default=MASK_PROB, show_default=True)
@click.option("--n-masks", type=int, default=2000, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@estimator_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: QUERY.match]")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, nothing else.")
@click.option("--quiet", is_flag=True, help="No progress bar, no sentences.")
@click.option("--overwrite", is_flag=True, help="Replace another run in the folder.")
@model_options
def match(
    query: Path,
    gallery: Path,
    spec: str,
    against: Path | None,
    distance: str,
    fills: str,
    grid: tuple[int, int],
    mask_prob: float,
    n_masks: int,
    seed: int,
    estimator: str,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    overwrite: bool,
    **settings: Any,
) -> None:
    """Show which colors make QUERY similar to an image of the folder GALLERY."""
    from ..plots import plot_match, save

    folder = out or Path(f"{query}.match")
    check_writable(folder)
    embed = load_model(spec, **{**settings, "scores": "any", "softmax": None})
    query_view = embed.view(query)
    known = open_gallery(gallery, embed, cache_folder())
    found = find_match(query, known, embed, distance, against)
    run = steps(
        query, found.model, fills=fills, grid=grid, mask_prob=mask_prob, n_masks=n_masks,
        seed=seed, resume=None if overwrite else earlier(folder),
    )  # fmt: skip
    with elsewhere(folder):
        record = watch(run, folder / RUN, CHECKPOINT_SECONDS, quiet or as_json)
    maps = record.maps(0, estimator)
    save(plot_match(maps, embed.view(found.path).pixels, found.path.name), folder / "match.png")
    notes = (*query_view.notes, *known.notes, *embed.notes)
    if not (as_json or quiet):
        click.echo(
            f"Matched with {found.path} (rank {found.rank} of {len(known.paths)}, {distance} "
            f"distance {found.distance:.3g}): {folder / 'match.png'}"
        )
    finish(record, (), estimator, folder, as_json, quiet, notes, found.model)
