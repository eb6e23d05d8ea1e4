"""`mcrise study` and `mcrise study-status`: many images, several methods."""

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from ..errors import InputError, McriseError
from ..record import DEFAULT, ESTIMATORS
from ..runtimes import load_model
from ..study import crew as cluster
from ..study.datasets import SPLIT, open_dataset
from ..study.results import TABLE, write_results
from ..study.storage import Storage
from ..study.study import Study, sample
from ..study.tasks import METHODS, Settings
from .options import NumberOrAuto, Pair, model_options


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names with commas between."""

    name = "NAME[,NAME...]"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        return value if isinstance(value, tuple) else tuple(str(value).replace(" ", "").split(","))


@click.command()
@click.argument("data")
@click.option("--model", "spec", default="demo", show_default=True, help="As for explain.")
@click.option("--methods", type=Names(), default="lime,rise,mcrise", show_default=True,
              help=f"Of {', '.join(METHODS)}.")  # fmt: skip
@click.option("--images", "n_images", type=int, help="A random sample of so many.  [default: all]")
@click.option("--n-masks", type=NumberOrAuto(), default="2000", show_default=True)
@click.option("--tolerance", type=float, default=Settings.tolerance, help="Of --n-masks auto.")
@click.option("--cap", type=int, default=Settings.cap, help="Of --n-masks auto.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of sample, masks and LIME.")
@click.option("--split", default=SPLIT, show_default=True, help="train, test or a subfolder.")
@click.option("--estimators", type=Names(), default=DEFAULT, show_default=True,
              help=f"Of mcrise: {', '.join(ESTIMATORS)}.")  # fmt: skip
@click.option("--colors", "--fills", "fills", default="rgbwk", show_default=True)
@click.option("--grid", type=Pair(), default="8x8", show_default=True)
@click.option("--mask-prob", type=float, default=0.5, show_default=True)
@click.option("--batch-size", type=int, default=32, show_default=True)
@click.option("--step", type=float, default=Settings.step, show_default=True,
              help="Share of the pixels changed at once in a curve.")  # fmt: skip
@click.option("--best-color", is_flag=True, help="Also paint lime and rise with their best color.")
@click.option("--out", required=True, help="Folder, local or s3://... and the like.")
@click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one per core]")
@click.option("--ray", "address", is_flag=False, flag_value="", metavar="[ADDRESS]",
              help="Ray cluster, as in --ray HOST:6379; alone, at the end, one here.")  # fmt: skip
@click.option("--timeout", type=float, default=cluster.TIMEOUT, show_default=True,
              help="Seconds after which a task is given up.")  # fmt: skip
@click.option("--retries", type=click.IntRange(0), default=2, show_default=True,
              help="Of a task whose model raised, hung or died.")  # fmt: skip
@click.option("--keep-going", is_flag=True, help="Skip images that fail; they become rows.")
@click.option("--retry-failed", is_flag=True, help="Try images again that failed before.")
@click.option("--overwrite", is_flag=True, help="Replace another study in the folder.")
@click.option("--quiet", is_flag=True, help="No progress bar, no table.")
@model_options
def study(
    data: str,
    spec: str,
    methods: tuple[str, ...],
    n_images: int | None,
    n_masks: int | str,
    tolerance: float,
    cap: int,
    seed: int,
    split: str,
    estimators: tuple[str, ...],
    fills: str,
    grid: tuple[int, int],
    mask_prob: float,
    batch_size: int,
    step: float,
    best_color: bool,
    out: str,
    workers: int | None,
    address: str | None,
    timeout: float,
    retries: int,
    keep_going: bool,
    retry_failed: bool,
    overwrite: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Explain many images of DATA by several methods and measure how good that is.

    DATA is GTSRB, a folder of images or of class folders, or a CSV file of path and label. Killed
    at any moment, the same command goes on: no finished image is done again.
    """
    settings = Settings(
        methods=tuple(sorted(methods)), n_masks=n_masks, seed=seed,
        estimators=tuple(sorted(estimators)),
        fills=fills, grid=grid, mask_prob=mask_prob, tolerance=tolerance, cap=cap,
        batch_size=batch_size, step=step, best_color=best_color,
    )  # fmt: skip
    if timeout <= 0:
        raise InputError(f"The timeout is {timeout:g} seconds, but it must be above 0.")
    check_packages(settings)
    place = Storage(out)
    if os.path.abspath(out) == os.path.abspath(data):
        raise InputError(f"The images are in {data} themselves: choose another --out.")
    examples = sample(open_dataset(data, split), n_images, seed)
    if options.pop("threads") not in (None, 1):
        raise InputError("Each worker of a study has one thread: say --workers instead.")
    options = {name: value for name, value in options.items() if value is not None}
    model = load_model(spec, **{**options, "threads": 1})
    plan = Study(
        examples, settings, model.identity, model.labels, place,
        data=f"{data if Storage(data).remote else os.path.abspath(data)} ({split})",
        keep_going=keep_going, retries=retries, retry_failed=retry_failed, overwrite=overwrite,
    )  # fmt: skip
    recipe = cluster.Recipe(spec, options, settings, model.identity)
    crew: cluster.Crew
    if plan.complete:
        crew = cluster.Processes(recipe, 1)  # which will have nothing to do
    elif address is not None:
        crew = cluster.OnRay(recipe, address or None, workers, timeout)
    else:
        crew = cluster.Processes(recipe, workers or n_cores(), timeout)
    follow(cluster.run(plan, crew), sys.stderr.isatty() and not quiet)
    notes = list(model.notes)
    if n_images is not None and n_images > len(examples):
        notes.append(f"{n_images} images were asked for, and {data} holds {len(examples)}")
    lines = write_results(plan, notes)
    if not quiet:
        click.echo("\n".join([*lines, "", f"Table: {(place / TABLE).path}"]))
    if plan.n_failed == len(examples):
        raise McriseError(
            f"All {len(examples)} images failed; {(place / TABLE).path} says why each did."
        )


def n_cores() -> int:
    return len(os.sched_getaffinity(0))


def check_packages(settings: Settings) -> None:
    """Say what is missing before the work, not after it."""
    import importlib.util

    for package, needed in (("pyarrow", True), ("lime", "lime" in settings.methods)):
        if needed and importlib.util.find_spec(package) is None:
            raise InputError(f"A study needs {package}: pip install 'mcrise[study]'.")


def follow(run: Iterator[Study], watched: bool) -> None:
    if watched:
        from ..study.progress import with_study_progress

        run = with_study_progress(run)
    for _ in run:
        pass


@click.command(name="study-status")
@click.argument("folder")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def study_status(folder: str, as_json: bool) -> None:
    """How far the study in FOLDER is; works while it runs elsewhere."""
    place = Storage(folder)
    try:
        n_images = len(json.loads((place / "study.json").read_text())["images"])
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(f"{folder} holds no study: give the --out of one.") from None
    try:
        status = json.loads((place / "status.json").read_text())
    except (OSError, ValueError):
        status = {"images": n_images, "done": 0, "failed": 0, "images_per_second": None,
                  "seconds_left": None, "written": None}  # fmt: skip
    if as_json:
        click.echo(json.dumps(status))
        return
    click.echo(f"{status['done']} of {status['images']} images done, {status['failed']} failed.")
    if status["done"] < status["images"] and status["images_per_second"]:
        ago = time.time() - status["written"]
        click.echo(
            f"{status['images_per_second']:.3g} images/s, {clock(status['seconds_left'])} left, as "
            f"of {clock(ago)} ago."
        )


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
