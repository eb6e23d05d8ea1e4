"""`mcrise audit`: which colors and places a model depends on, over many images."""

from dataclasses import fields
from typing import Any

import click

from ..audits.api import prepare
from ..audits.audit import Audit
from ..audits.config import N_MASKS
from ..audits.zones import DEFAULT
from ..batch.engine import BatchOptions
from ..config import RunConfig
from ..errors import McriseError
from .options import (
    MODEL_HELP,
    RUN_FIELDS,
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
@data_options
@option("--per-class", type=int, metavar="N",
        help="Take at most N images of each class.  [default: all]")  # fmt: skip
@run_keywords(n_masks=N_MASKS)
@option("--zones", default=DEFAULT, show_default=True, metavar="NAME[,NAME...]",
        help="Parts of the images to report on: thirds, rim, object, or "
        "NAME=TOP:LEFT:BOTTOM:RIGHT from 0 to 1.")  # fmt: skip
@option("--masks", metavar="FOLDER",
        help="Folder of pictures named like the images, black outside of the object.")  # fmt: skip
@option("--group", metavar="COLUMN",
        help="Column of a CSV that says which images belong together.")  # fmt: skip
@option("--suggest-rules", is_flag=True,
        help="Write rules.toml into the audit's folder, for `mcrise check`.")  # fmt: skip
@advanced("--keep-runs", is_flag=True, help="Keep the run.npz of each image.")
@batch_options("audit")
@model_options
def audit(
    data: str,
    model: str,
    quiet: bool,
    suggest_rules: bool,
    settings: dict[str, Any],
    **options: Any,
) -> None:
    """Find which colors and places a model depends on, over the images of DATA.

    Suspects come first: classes that images of other classes are taken for when they are given a
    part, the tone or the texture of their images.

    DATA is GTSRB, a folder of images or of class folders, or a CSV file of path and label, which
    may also say where objects are and which images belong together. The same command continues an
    audit that was interrupted. Of a finished one it makes the figures and pages again.
    """
    refuse_threads(settings, "audit")
    config = RunConfig(**{name: options.pop(name) for name in RUN_FIELDS})
    batch = BatchOptions(**{one.name: options.pop(one.name) for one in fields(BatchOptions)})
    prepared = prepare(data, model, config, batch, **options, **settings)
    if not quiet:
        echo(*truths_from_folders(prepared.audit), err=True)
    tell = None if quiet else lambda cost: echo(*cost.lines(), err=True)
    found = prepared.run(not quiet, tell, suggest_rules)
    if not quiet:
        echo(
            *found.summary,
            "",
            f"Audit: {found.path}",
            f"Open {found.path}/audit.html in a browser.",
        )
    if found.n_failed == found.n_images:
        raise McriseError(f"All {found.n_images} images failed; {found.path} says why each did.")


def truths_from_folders(audit: Audit) -> list[str]:
    """That class folders were taken as the true classes, where they were."""
    pairs = zip(audit.examples, audit.truths, strict=True)
    n = sum(one.label is not None and not one.sure and truth is not None for one, truth in pairs)
    if not n:
        return []
    return [
        f"{n:,} of {len(audit.truths):,} images lie in a folder named after a class, which is "
        "taken as their true class."
    ]
