"""`mcrise audit`: on which colors, and where, a model depends over many images."""

from typing import Any

import click

from ..audits.api import prepare
from ..audits.config import N_MASKS
from ..audits.zones import DEFAULT
from ..batch.datasets import SPLIT
from ..batch.engine import BatchOptions
from ..config import RunConfig
from ..errors import McriseError
from .options import MODEL_HELP, batch_options, model_options, run_options
from .output import echo


@click.command()
@click.argument("data")
@click.option("--model", default="demo", show_default=True, help=MODEL_HELP)
@click.option("--images", type=int, help="Draw this many images at random.  [default: all]")
@click.option("--per-class", type=int, help="At most this many of each class.  [default: all]")
@click.option("--split", default=SPLIT, show_default=True, help="train, test or a subfolder.")
@run_options(n_masks=N_MASKS)
@click.option("--zones", default=DEFAULT, show_default=True, metavar="NAME[,NAME...]",
              help="Any of thirds, rim, object, or NAME=TOP:LEFT:BOTTOM:RIGHT, "
                   "0 to 1.")  # fmt: skip
@click.option("--masks", help="Folder of pictures named like the images, black but for the object.")
@click.option("--group", metavar="COLUMN",
              help="Column of a CSV file: which images belong together.")  # fmt: skip
@click.option("--keep-records", is_flag=True, help="Keep the record of each image.")
@click.option("--out", required=True, help="Folder, local or s3://... and the like.")
@batch_options
@click.option("--quiet", is_flag=True, help="No cost, no progress bar, no summary.")
@model_options
def audit(
    data: str,
    model: str,
    quiet: bool,
    config: RunConfig,
    batch: BatchOptions,
    settings: dict[str, Any],
    **options: Any,
) -> None:
    """Find which colors and places a model depends on, over the images of DATA.

    DATA is GTSRB, a folder of images or of class folders, or a CSV file of path and label, and may
    say where objects are and which images belong together. One mask_prob serves all images; auto
    chooses it on eight of them. If the command is killed, the same command goes on; for a finished
    audit it makes only figures and pages again.
    """
    prepared = prepare(data, model, config, batch, **options, **settings)
    found = prepared.run(not quiet, None if quiet else lambda cost: echo(*cost.lines(), err=True))
    if not quiet:
        echo(*found.summary, "", f"Audit: {found.path}")
    if found.n_failed == found.n_images:
        raise McriseError(f"All {found.n_images} images failed; {found.path} says why each did.")
