"""`mcrise study` and `mcrise study-status`: many images, several methods."""

import json
import time
from typing import Any

import click

from .._util import validation
from ..batch.datasets import SPLIT
from ..batch.storage import Storage
from ..batch.workers import TIMEOUT
from ..config import MAX_MASKS, TOLERANCE
from ..errors import InputError, McriseError
from ..estimators import DEFAULT, ESTIMATORS
from ..metrics import STEP
from ..studies.api import RETRIES, run_study
from ..studies.tasks import METHODS, N_MASKS
from .options import ChanceOrAuto, NumberOrAuto, Pair, model_options
from .output import echo, echo_text


@click.command()
@click.argument("data")
@click.option("--model", default="demo", show_default=True, help="As for explain.")
@click.option("--methods", metavar="NAME[,NAME...]", default="lime,rise,mcrise", show_default=True,
              help=f"Of {', '.join(METHODS)}.")  # fmt: skip
@click.option("--images", type=int, help="A random sample of so many.  [default: all]")
@click.option("--n-masks", type=NumberOrAuto(), default=N_MASKS, show_default=True)
@click.option("--tolerance", type=float, default=TOLERANCE, help="Of --n-masks auto.")
@click.option("--max-masks", type=int, default=MAX_MASKS, help="Of --n-masks auto.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of sample, masks and LIME.")
@click.option("--split", default=SPLIT, show_default=True, help="train, test or a subfolder.")
@click.option("--estimators", metavar="NAME[,NAME...]", default=DEFAULT, show_default=True,
              help=f"Of mcrise: {', '.join(ESTIMATORS)}.")  # fmt: skip
@click.option("--colors", "--fills", "fills", default="rgbwk", show_default=True)
@click.option("--grid", type=Pair(), default="8x8", show_default=True)
@click.option("--mask-prob", type=ChanceOrAuto(), default=0.5, show_default=True)
@click.option("--batch-size", type=int, default=32, show_default=True)
@click.option("--step", type=float, default=STEP, show_default=True,
              help="Share of the pixels changed at once in a curve.")  # fmt: skip
@click.option("--best-color", is_flag=True, help="Also paint lime and rise with their best color.")
@click.option("--out", required=True, help="Folder, local or s3://... and the like.")
@click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one per core]")
@click.option("--ray", is_flag=False, flag_value="", metavar="[ADDRESS]",
              help="Ray cluster, as in --ray HOST:6379; alone, at the end, one here.")  # fmt: skip
@click.option("--timeout", type=float, default=TIMEOUT, show_default=True,
              help="Seconds after which a task is given up.")  # fmt: skip
@click.option("--retries", type=click.IntRange(0), default=RETRIES, show_default=True,
              help="Of a task whose model raised, hung or died.")  # fmt: skip
@click.option("--keep-going", is_flag=True, help="Skip images that fail; they become rows.")
@click.option("--retry-failed", is_flag=True, help="Try images again that failed before.")
@click.option("--overwrite", is_flag=True, help="Replace another study in the folder.")
@click.option("--quiet", is_flag=True, help="No progress bar, no table.")
@model_options
def study(data: str, model: str, quiet: bool, settings: dict[str, Any], **options: Any) -> None:
    """Explain many images of DATA by several methods and measure how good that is.

    DATA is GTSRB, a folder of images or of class folders, or a CSV file of path and label. Killed
    at any moment, the same command goes on: no finished image is done again.
    """
    if settings.pop("threads") not in (None, 1):
        raise InputError("Each worker of a study has one thread: say --workers instead.")
    found = run_study(data, model, progress=not quiet, **options, **settings)
    if not quiet:
        echo(*found.summary, "", f"Table: {found.path}")
    if found.n_failed == found.n_images:
        raise McriseError(f"All {found.n_images} images failed; {found.path} says why each did.")


@click.command(name="study-status")
@click.argument("folder")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def study_status(folder: str, as_json: bool) -> None:
    """How far the study in FOLDER is; works while it runs elsewhere."""
    place = Storage(folder)
    try:
        n_images = len(json.loads((place / "study.json").read_text())["images"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise InputError(f"{folder} holds no study: give the --out of one.") from None
    try:
        status = read_status((place / "status.json").read_text())
    except (OSError, ValueError, LookupError, RecursionError):
        status = {"images": n_images, "done": 0, "failed": 0, "images_per_second": None,
                  "seconds_left": None, "written": None}  # fmt: skip
    if as_json:
        echo_text(json.dumps(status))
        return
    echo(f"{status['done']} of {status['images']} images done, {status['failed']} failed.")
    if status["done"] < status["images"] and None not in status.values():
        ago = time.time() - status["written"]
        echo(
            f"{status['images_per_second']:.3g} images/s, {clock(status['seconds_left'])} left, as "
            f"of {clock(ago)} ago."
        )


def read_status(text: str) -> dict[str, Any]:
    """What a study tells of itself, or a ValueError."""
    found = validation.table(json.loads(text))
    counts = {
        name: validation.whole(found[name], 0, 10**9) for name in ("images", "done", "failed")
    }
    times = {
        name: None if found[name] is None else validation.number(found[name], low=0)
        for name in ("images_per_second", "seconds_left", "written")
    }
    return {**counts, **times}


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
