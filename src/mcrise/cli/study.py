"""`mcrise study`: many images, several methods."""

from dataclasses import asdict
from typing import Any

import click

from ..batch.datasets import SPLIT
from ..batch.engine import BatchOptions
from ..config import RunConfig
from ..errors import McriseError
from ..estimators import DEFAULT, ESTIMATORS
from ..metrics import STEP
from ..studies.api import run_study
from ..studies.config import METHODS, N_MASKS, PAPERS
from .options import MODEL_HELP, batch_options, model_options, run_options
from .output import echo


@click.command()
@click.argument("data")
@click.option("--model", default="demo", show_default=True, help=MODEL_HELP)
@click.option("--methods", metavar="NAME[,NAME...]", default="lime,rise,mcrise", show_default=True,
              help=f"Any of {', '.join(METHODS)}.")  # fmt: skip
@click.option("--estimators", metavar="NAME[,NAME...]", default=DEFAULT, show_default=True,
              help=f"For mcrise: any of {', '.join(ESTIMATORS)}.")  # fmt: skip
@click.option("--images", type=int, help="Draw this many images at random.  [default: all]")
@click.option("--split", default=SPLIT, show_default=True, help="train, test or a subfolder.")
@run_options(n_masks=N_MASKS, mask_prob=PAPERS)
@click.option("--step", type=float, default=STEP, show_default=True,
              help="Share of the pixels changed at once in a curve.")  # fmt: skip
@click.option("--best-color", is_flag=True, help="Also paint lime and rise with their best color.")
@click.option("--out", required=True, help="Folder, local or s3://... and the like.")
@batch_options
@click.option("--quiet", is_flag=True, help="No progress bar, no table.")
@model_options
def study(
    data: str,
    model: str,
    quiet: bool,
    config: RunConfig,
    batch: BatchOptions,
    settings: dict[str, Any],
    **options: Any,
) -> None:
    """Explain many images of DATA by several methods and measure how good that is.

    DATA is GTSRB, a folder of images or of class folders, or a CSV file of path and label. If the
    command is killed, the same command goes on: no finished image is done again.
    """
    run = {name: value for name, value in asdict(config).items() if name != "target"}
    found = run_study(
        data, model, progress=not quiet, **run, **asdict(batch), **options, **settings
    )
    if not quiet:
        echo(*found.summary, "", f"Table: {found.path}")
    if found.n_failed == found.n_images:
        raise McriseError(f"All {found.n_images} images failed; {found.path} says why each did.")
