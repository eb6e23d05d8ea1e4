"""Options that several commands share, and the kinds of value they take."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..batch.engine import RETRIES, BatchOptions
from ..batch.workers import TIMEOUT
from ..config import RunConfig
from ..estimators import DEFAULT, find_estimator
from ..models.scores import SCORE_KINDS


class Pair(click.ParamType):  # type: ignore[type-arg]
    """Two whole numbers: `8x8`, rows first."""

    name = "ROWSxCOLUMNS"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        parts = str(value).lower().split("x")
        if len(parts) == 1:
            parts *= 2
        if len(parts) != 2 or not all(part.isdecimal() for part in parts):
            self.fail(f"{value!r} is not of the form 8x8 (rows x columns).", param, ctx)
        return int(parts[0]), int(parts[1])


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers with commas between: `0.5` or `0.485,0.456,0.406`."""

    name = "NUMBER[,NUMBER,NUMBER]"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as 0.5,0.5,0.5.", param, ctx)


class NumberOrAuto(click.ParamType):  # type: ignore[type-arg]
    """A whole number or `auto`."""

    name = "NUMBER|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | str:
        if value == "auto":
            return "auto"
        if not str(value).isdecimal():
            self.fail(f"{value!r} is neither a whole number nor auto.", param, ctx)
        return int(value)


class ChanceOrAuto(click.ParamType):  # type: ignore[type-arg]
    """A number or `auto`."""

    name = "CHANCE|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        if value == "auto":
            return "auto"
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor auto.", param, ctx)


class OutFile(click.ParamType):  # type: ignore[type-arg]
    """The one file that a command writes."""

    name = "FILE"

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        if os.path.isdir(value):
            self.fail(f"{value} is a folder, but a file is needed: name one in it.", param, ctx)
        return Path(value)


class EstimatorName(click.ParamType):  # type: ignore[type-arg]
    """An estimator, ours or another package's."""

    name = "NAME"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        return find_estimator(str(value)).name


def gathered(command: Any, name: str, options: dict[str, Any], make: Any = dict) -> Any:
    """Give a command some options, handed to it together as one argument."""

    @functools.wraps(command)
    def called(*args: Any, **given: Any) -> Any:
        return command(*args, **{name: make(**{key: given.pop(key) for key in options})}, **given)

    for option in reversed(options.values()):
        called = option(called)
    return called


def run_options(**defaults: Any) -> Callable[[Any], Any]:
    """What a run is asked, handed to the command as `config`."""
    usual = RunConfig(**defaults)

    def option(*names: str, **about: Any) -> Any:
        default = getattr(usual, names[-1].strip("-").replace("-", "_"))
        if isinstance(default, tuple):
            default = "x".join(map(str, default))
        return click.option(*names, default=default, show_default=True, **about)

    options = {
        "fills": option("--colors", "--fills", "fills",
                        help="rgbwk, cube8, auto, or a list: red,#0f0,blur:8,gray."),
        "grid": option("--grid", type=Pair(), help="Cells of a mask."),
        "mask_prob": option("--mask-prob", type=ChanceOrAuto(),
                            help="Chance that a cell is painted; auto tries which tells most."),
        "n_masks": option("--n-masks", type=NumberOrAuto(),
                          help="Model calls to spend; auto stops when the map is good enough."),
        "tolerance": option("--tolerance", type=float,
                            help="Good enough for auto: relative error of the target's map."),
        "max_masks": option("--max-masks", type=int, help="Most masks for auto."),
        "seed": option("--seed", type=int),
        "batch_size": option("--batch-size", type=NumberOrAuto(), help="Images at once."),
    }  # fmt: skip
    return lambda command: gathered(command, "config", options, RunConfig)


def batch_options(command: Any) -> Any:
    """How the work on many images is done, handed to the command as `batch`."""
    options = {
        "workers": click.option("--workers", type=click.IntRange(1),
                                help="Processes.  [default: one per core]"),
        "ray": click.option("--ray", is_flag=False, flag_value="", metavar="[ADDRESS]",
                            help="Ray cluster, as in --ray HOST:6379; alone and last, one here."),
        "timeout": click.option("--timeout", type=float, default=TIMEOUT, show_default=True,
                                help="Seconds after which a task is given up."),
        "retries": click.option("--retries", type=click.IntRange(0), default=RETRIES,
                                show_default=True,
                                help="Tries more for an image whose model raised, hung or died."),
        "keep_going": click.option("--keep-going", is_flag=True,
                                   help="Leave out images that fail; tables say why."),
        "retry_failed": click.option("--retry-failed", is_flag=True,
                                     help="Try images again that failed before."),
        "overwrite": click.option("--overwrite", is_flag=True,
                                  help="Replace another study or audit in the folder."),
    }  # fmt: skip
    return gathered(command, "batch", options, BatchOptions)


def model_options(command: Any) -> Any:
    """What can be said of a model instead of in the file beside it, handed over as `settings`."""
    options = {
        "labels": click.option("--labels", type=click.Path(), help="Text file, one label a line."),
        "size": click.option("--size", type=Pair(), help="Input size, where it is left open."),
        "short_side": click.option("--short-side", type=int,
                                   help="Resize the short side to this, then crop."),
        "filter": click.option("--filter", help="nearest, bilinear, bicubic, lanczos or area."),
        "scale": click.option("--scale", type=float,
                              help="Pixels are divided by this.  [default: 255]"),
        "mean": click.option("--mean", type=Numbers(), help="Subtracted after scaling."),
        "std": click.option("--std", type=Numbers(), help="Divided by after that."),
        "layout": click.option("--layout", type=click.Choice(["NCHW", "NHWC"])),
        "channels": click.option("--channels", type=click.Choice(["rgb", "bgr"])),
        "name": click.option("--output", "name", help="Which output, where there are several."),
        "softmax": click.option("--softmax", is_flag=True, default=None,
                                help="The model gives logits."),
        "sigmoid": click.option("--sigmoid", is_flag=True, default=None,
                                help="The model gives logits, each class on its own."),
        "scores": click.option("--scores", type=click.Choice(SCORE_KINDS)),
        "threads": click.option("--threads", type=click.IntRange(1),
                                help="For the model's runtime."),
    }  # fmt: skip
    return gathered(command, "settings", options)


MODEL_HELP = "An .onnx, .pt or .pt2 file, package.module:callable, or demo."
OWN_MODEL_HELP = "The model of the run.  [default: its ONNX file, here or beside the run]"

estimator_option = click.option(
    "--estimator", type=EstimatorName(), default=DEFAULT, show_default=True
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")


def target_options(command: Any) -> Any:
    return click.option(
        "--target", "targets", multiple=True, help="Class name or index; repeat for several."
    )(estimator_option(command))
