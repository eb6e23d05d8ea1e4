"""`mcrise audit`: on which colors, and where, a model depends over many images."""

from typing import Any

import click

from ..audits.api import prepare
from ..audits.config import N_MASKS
from ..audits.zones import DEFAULT
from ..batch.datasets import SPLIT
from ..batch.workers import TIMEOUT
from ..config import MAX_MASKS, TOLERANCE
from ..errors import InputError, McriseError
from ..studies.api import RETRIES
from .options import MODEL_HELP, ChanceOrAuto, NumberOrAuto, Pair, model_options
from .output import echo


@click.command()
@click.argument("data")
@click.option("--model", default="demo", show_default=True, help=MODEL_HELP)
@click.option("--images", type=int, help="A random sample of so many.  [default: all]")
@click.option("--per-class", type=int, help="At most so many of each class.  [default: all]")
@click.option("--n-masks", type=NumberOrAuto(), default=N_MASKS, show_default=True,
              help="Of each image.")  # fmt: skip
@click.option("--tolerance", type=float, default=TOLERANCE, help="Of --n-masks auto.")
@click.option("--max-masks", type=int, default=MAX_MASKS, help="Of --n-masks auto.")
@click.option("--colors", "--fills", "fills", default="rgbwk", show_default=True)
@click.option("--zones", default=DEFAULT, show_default=True, metavar="NAME[,NAME...]",
              help="Of thirds, rim, object, or NAME=TOP:LEFT:BOTTOM:RIGHT, 0 to 1.")  # fmt: skip
@click.option("--masks", help="Folder of pictures named like the images, black but for the object.")
@click.option("--group", metavar="COLUMN", help="Of a CSV: images that belong together.")
@click.option("--grid", type=Pair(), default="8x8", show_default=True)
@click.option("--mask-prob", type=ChanceOrAuto(), default="auto", show_default=True,
              help="One for all images; auto chooses on eight of them.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of sample and masks.")
@click.option("--split", default=SPLIT, show_default=True, help="train, test or a subfolder.")
@click.option("--batch-size", type=int, default=32, show_default=True)
@click.option("--out", required=True, help="Folder, local or s3://... and the like.")
@click.option("--keep-records", is_flag=True, help="Keep the record of each image.")
@click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one per core]")
@click.option("--ray", is_flag=False, flag_value="", metavar="[ADDRESS]",
              help="Ray cluster, as in --ray HOST:6379; alone, at the end, one here.")  # fmt: skip
@click.option("--timeout", type=float, default=TIMEOUT, show_default=True,
              help="Seconds after which an image is given up.")  # fmt: skip
@click.option("--retries", type=click.IntRange(0), default=RETRIES, show_default=True,
              help="Of an image whose model raised, hung or died.")  # fmt: skip
@click.option("--keep-going", is_flag=True, help="Leave out images that fail.")
@click.option("--overwrite", is_flag=True, help="Replace another audit in the folder.")
@click.option("--quiet", is_flag=True, help="No cost, no progress bar, no summary.")
@model_options
def audit(data: str, model: str, quiet: bool, settings: dict[str, Any], **options: Any) -> None:
    """Tell on which colors, and where, a model depends over the images of DATA.

    DATA is GTSRB, a folder of images or of class folders, or a CSV file of path and label, and may
    say where objects are and which images belong together. Killed at any moment, the same command
    goes on; of an audit that is finished it makes figures and pages anew.
    """
    if settings.pop("threads") not in (None, 1):
        raise InputError("Each worker of an audit has one thread: say --workers instead.")
    order = prepare(data, model, **options, **settings)
    found = order.run(not quiet, None if quiet else lambda cost: echo(*cost.lines(), err=True))
    if not quiet:
        echo(*found.summary, "", f"Audit: {found.path}")
    if found.n_failed == found.n_images:
        raise McriseError(f"All {found.n_images} images failed; {found.path} says why each did.")
