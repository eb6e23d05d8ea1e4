"""Options that several commands share, and the kinds of value they take."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..batch.datasets import SPLIT
from ..batch.engine import RETRIES
from ..batch.workers import TIMEOUT
from ..config import FIELDS, FloatOrAuto, IntOrAuto, RunConfig
from ..errors import InputError
from ..estimators import DEFAULT, ESTIMATORS, find_estimator
from ..explanation import TRIALS
from ..explanation_file import CHECKPOINT_SECONDS
from ..images import CROPS
from ..models.scores import SCORE_KINDS
from .help_examples import EXAMPLES


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


class TrialBudget(click.ParamType):  # type: ignore[type-arg]
    """A whole number, or `none`, which becomes False."""

    name = "NUMBER|none"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | bool:
        if value == "none" or value is False:
            return False
        if not str(value).isdecimal() or not int(value):
            self.fail(f"{value!r} is neither a whole number above 0 nor none.", param, ctx)
        return int(value)


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


class Option(click.Option):
    """An option with the section of the help that it stands in."""

    def __init__(self, *args: Any, section: str = "Options", **about: Any) -> None:
        super().__init__(*args, **about)
        self.section = section


class Command(click.Command):
    """A command whose help has its options in sections, the common ones first."""

    def __init__(self, *given: Any, **about: Any) -> None:
        about.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*given, **about)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for one in self.get_params(ctx):
            row = one.get_help_record(ctx) if isinstance(one, click.Option) else None
            if row is not None:
                sections[getattr(one, "section", "Options")].append(row)
        for name, rows in sections.items():
            if rows:
                with formatter.section(name):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.name in EXAMPLES:
            with formatter.section("Example"):
                formatter.write(f"  {EXAMPLES[self.name]}\n")  # uncut, to be copied


SECTIONS = ("Options", "Model input", "Advanced")
Decorator = Callable[[Any], Any]


def option(*names: str, section: str = "Options", **about: Any) -> Decorator:
    kind = about.get("type")
    if isinstance(kind, click.ParamType) and type(kind).__module__ == __name__:
        about.setdefault("metavar", kind.name)  # which click would write in capitals
    return click.option(*names, cls=Option, section=section, **about)


def advanced(*names: str, **about: Any) -> Decorator:
    return option(*names, section="Advanced", **about)


def gathered(command: Any, name: str, options: dict[str, Any], make: Any = dict) -> Any:
    """Give a command some options, handed to it together as one argument."""

    @functools.wraps(command)
    def called(*args: Any, **given: Any) -> Any:
        return command(*args, **{name: make(**{key: given.pop(key) for key in options})}, **given)

    return with_options(called, options)


def with_options(command: Any, options: dict[str, Any]) -> Any:
    for one in reversed(options.values()):
        command = one(command)
    return command


def run_options(**defaults: Any) -> Decorator:
    """The fields of `RunConfig`, handed to the command together as `config`."""
    options = {name: run_option(name, **defaults) for name in RUN_FIELDS}
    return lambda command: gathered(command, "config", options, RunConfig)


def run_keywords(**defaults: Any) -> Decorator:
    """The fields of `RunConfig`, handed to the command one by one."""
    return lambda command: with_options(
        command, {name: run_option(name, **defaults) for name in RUN_FIELDS}
    )


RUN_FIELDS = [name for name in FIELDS if name != "target"]  # commands have their own --target
COMMON = ("fills", "n_masks")
KINDS: dict[Any, Any] = {
    int: int,
    float: float,
    tuple[int, int]: Pair(),
    IntOrAuto: NumberOrAuto(),
    FloatOrAuto: ChanceOrAuto(),
}


def run_option(name: str, **defaults: Any) -> Decorator:
    """The option of a field; its default is that of the field, unless a command has another."""
    known = FIELDS[name]
    default = defaults.get(name, known.default)
    names = (
        ("--colors", "--fills", "fills") if name == "fills" else (f"--{name.replace('_', '-')}",)
    )
    return option(
        *names,
        type=KINDS.get(known.type),
        default="x".join(map(str, default)) if isinstance(default, tuple) else default,
        show_default=True,
        help=known.metadata["help"],
        section="Options" if name in COMMON else "Advanced",
    )


def model_options(command: Any) -> Any:
    """The settings of a model, instead of in the file beside it, handed over as `settings`."""

    def about(*names: str, **more: Any) -> Decorator:
        return option(*names, section="Model input", **more)

    options = {
        "labels": about("--labels", type=click.Path(), help="Text file with one label per line."),
        "size": about("--size", type=Pair(),
                      help="Input size, where the model leaves it open, such as 224x224."),
        "short_side": about("--short-side", type=int,
                            help="Resize the short side to this, then crop to --size."),
        "filter": about("--filter", help="How to resize: nearest, bilinear, bicubic, lanczos or "
                        "area.  [default: bilinear]"),
        "crop": about("--crop", type=click.Choice(CROPS),
                      help="How to cut --size from --short-side: at fractions of a pixel, or at "
                      "whole ones: rounded as by torchvision and timm, floored as by Hugging "
                      "Face.  [default: exact]"),
        "scale": about("--scale", type=float,
                       help="Divide pixels by this; 1 for models that take 0 to 255.  "
                       "[default: 255]"),
        "mean": about("--mean", type=Numbers(),
                      help="Subtract this after scaling, such as 0.485,0.456,0.406."),
        "std": about("--std", type=Numbers(),
                     help="Divide by this after --mean, such as 0.229,0.224,0.225."),
        "layout": about("--layout", type=click.Choice(["NCHW", "NHWC", "pillow"]),
                        help="Order of axes, where the shape of the input does not tell."),
        "channels": about("--channels", type=click.Choice(["rgb", "bgr"]),
                          help="Order of colors that the model expects.  [default: rgb]"),
        "name": about("--output", "name", help="Name of the output, where there are several."),
        "softmax": about("--softmax", is_flag=True, default=None,
                         help="Apply a softmax: the model gives logits of exclusive classes."),
        "sigmoid": about("--sigmoid", is_flag=True, default=None,
                         help="Apply a sigmoid: the model gives a logit per independent class."),
        "score_kind": about("--score-kind", type=click.Choice(SCORE_KINDS),
                            help="What the scores are.  [default: probability]"),
        "threads": about("--threads", type=click.IntRange(1),
                         help="Threads of the model's runtime.  [default: all cores]"),
        "device": about("--device", help="Device of torch, OpenVINO or ONNX Runtime, such as "
                        "cuda, GPU or CUDA."),
    }  # fmt: skip
    return gathered(command, "settings", options)


MODEL_HELP = (
    "An .onnx, .pt, .pt2, .xml, .tflite or .keras file, hf:FOLDER, package.module:callable or demo."
)
OWN_MODEL_HELP = "The model of the run.  [default: its ONNX file, in this folder or beside the run]"

target_option = option("--target", help=FIELDS["target"].metadata["help"])
estimator_option = advanced(
    "--estimator", type=EstimatorName(), default=DEFAULT, show_default=True,
    help=f"How maps are computed: {', '.join(ESTIMATORS)}, or one of a plugin.",
)  # fmt: skip
json_option = option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
quiet_option = option("--quiet", is_flag=True, help="Print no progress and no result.")
overwrite_option = option("--overwrite", is_flag=True, help="Replace another run in the folder.")
trials_option = option(
    "--trials", type=TrialBudget(), default=TRIALS, show_default=True,
    help="Repaints that the search for findings may try; none for maps only.",
)  # fmt: skip
save_every_option = advanced(
    "--save-every", type=float, default=CHECKPOINT_SECONDS, show_default=True, metavar="SECONDS",
    help="Seconds between two saves of a running job.",
)  # fmt: skip


def out_option(default: str) -> Decorator:
    return option("--out", type=click.Path(path_type=Path),
                  help=f"Folder of the results.  [default: {default}]")  # fmt: skip


def target_options(command: Any) -> Any:
    """Several targets, and the estimator."""
    targets = option("--target", "targets", multiple=True,
                     help="Class name or index; repeat for several.  [default: the predicted class]"
                     )  # fmt: skip
    return targets(estimator_option(command))


def batch_options(what: str) -> Decorator:
    """Who does the work of a study or audit, and what becomes of tasks that fail."""
    options = {
        "workers": option("--workers", type=click.IntRange(1),
                          help="Number of processes.  [default: one per core]"),
        "ray": advanced("--ray", is_flag=False, flag_value="", metavar="[ADDRESS]",
                        help="Use a Ray cluster, as in --ray HOST:6379; without an address, as the "
                        "last option, start one here."),
        "timeout": advanced("--timeout", type=float, default=TIMEOUT, show_default=True,
                            help="Give up an image after this many seconds."),
        "retries": advanced("--retries", type=click.IntRange(0), default=RETRIES, show_default=True,
                            help="Try an image this many times more if the model raises, hangs or "
                            "dies."),
        "keep_going": option("--keep-going", is_flag=True,
                             help="Leave out images that fail, and list them."),
        "retry_failed": option("--retry-failed", is_flag=True,
                               help="Try images again that failed before."),
        "overwrite": option("--overwrite", is_flag=True,
                            help=f"Replace another {what} in the folder."),
        "quiet": quiet_option,
    }  # fmt: skip
    return lambda command: with_options(command, options)


def data_options(command: Any) -> Any:
    """Which images a study or audit takes, and where its results go."""
    options = {
        "images": option("--images", type=int, metavar="N",
                         help="Take a random sample of N images.  [default: all]"),
        "split": advanced("--split", default=SPLIT, show_default=True,
                          help="Part of the collection: train, test or a subfolder."),
        "out": option("--out", required=True,
                      help="Folder of the results, here or at an address such as s3://..."),
    }  # fmt: skip
    return with_options(command, options)


def refuse_threads(settings: dict[str, Any], what: str) -> None:
    if settings.pop("threads") not in (None, 1):
        raise InputError(f"Each worker of a {what} has one thread: give --workers instead.")
