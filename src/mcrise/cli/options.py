"""Options that several commands share, and the kinds of value they take."""

from typing import Any

import click

from ..record import DEFAULT, ESTIMATORS, KINDS


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


def model_options(command: Any) -> Any:
    """What can be said of a model on the command line instead of in the file beside it."""
    for option in reversed(
        [
            click.option("--labels", type=click.Path(), help="Text file, one label a line."),
            click.option("--size", type=Pair(), help="Input size, where the model leaves it open."),
            click.option(
                "--short-side", type=int, help="Resize the short side to this, then crop."
            ),
            click.option("--filter", help="nearest, bilinear, bicubic, lanczos or area."),
            click.option("--scale", type=float, help="Pixels are divided by this.  [default: 255]"),
            click.option("--mean", type=Numbers(), help="Subtracted after scaling."),
            click.option("--std", type=Numbers(), help="Divided by after that."),
            click.option("--layout", type=click.Choice(["NCHW", "NHWC"])),
            click.option("--channels", type=click.Choice(["rgb", "bgr"])),
            click.option("--output", "name", help="Which output, where the model has several."),
            click.option("--softmax", is_flag=True, default=None, help="The model gives logits."),
            click.option("--scores", type=click.Choice(list(KINDS))),
            click.option("--threads", type=click.IntRange(1), help="For the model's runtime."),
        ]
    ):
        command = option(command)
    return command


estimator_option = click.option(
    "--estimator", type=click.Choice(ESTIMATORS), default=DEFAULT, show_default=True
)


def target_options(command: Any) -> Any:
    return click.option(
        "--target", "targets", multiple=True, help="Class name or index; repeat for several."
    )(estimator_option(command))
