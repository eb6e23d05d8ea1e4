"""`mcrise study`: many images, several methods."""

from typing import Any

import click

from ..errors import McriseError
from ..estimators import DEFAULT, ESTIMATORS
from ..metrics import STEP
from ..studies.api import run_study
from ..studies.config import METHODS, N_MASKS, PAPERS
from .options import (
    MODEL_HELP,
    Command,
    advanced,
    batch_options,
    data_options,
    model_options,
    option,
    refuse_threads,
    run_keywords,
)
from .output import echo


@click.command(cls=Command)
@click.argument("data")
@option("--model", default="demo", show_default=True, help=MODEL_HELP)
@option("--methods", metavar="NAME[,NAME...]", default="lime,rise,mcrise", show_default=True,
        help=f"Methods to compare, out of {', '.join(METHODS)}.")  # fmt: skip
@data_options
@run_keywords(n_masks=N_MASKS, mask_prob=PAPERS)
@advanced("--estimators", metavar="NAME[,NAME...]", default=DEFAULT, show_default=True,
          help=f"Estimators of the method mcrise, out of {', '.join(ESTIMATORS)}.")  # fmt: skip
@advanced("--step", type=float, default=STEP, show_default=True,
          help="Share of the pixels changed per step of a curve.")  # fmt: skip
@option("--best-color", is_flag=True, help="Also paint lime and rise with their best color.")
@batch_options("study")
@model_options
def study(data: str, model: str, quiet: bool, settings: dict[str, Any], **options: Any) -> None:
    """Explain the images of DATA by several methods and measure how good each method is.

    DATA is GTSRB, a folder of images or of class folders, or a CSV file of path and label. The same
    command continues a study that was interrupted: no finished image is done again.
    """
    refuse_threads(settings, "study")
    found = run_study(data, model, progress=not quiet, **options, **settings)
    if not quiet:
        echo(*found.summary, "", f"Table: {found.path}")
    if found.n_failed == found.n_images:
        raise McriseError(f"All {found.n_images} images failed; {found.path} says why each did.")
