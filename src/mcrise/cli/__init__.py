"""The command `mcrise`: parses, calls the library and speaks once."""

import os

# The command draws files only, and matplotlib, which the imports below load, refuses to be loaded
# at all where this names a backend that it does not have.
os.environ["MPLBACKEND"] = "Agg"

import signal
import sys

import click

from .._version import VERSION
from ..errors import InputError, McriseError
from .audit import audit
from .check import check
from .demo import demo
from .diff import diff
from .explain import explain, show
from .match import match
from .measure import measure_command
from .output import echo, install_encoding_fallback, sentence
from .report import report
from .serve import serve
from .status import status
from .study import study
from .whatif import compare, whatif


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="mcrise")
def cli() -> None:
    """Which colors, where in an image, a model's decision depends on."""


for command in (
    demo,
    explain,
    show,
    compare,
    whatif,
    match,
    measure_command,
    report,
    serve,
    audit,
    diff,
    check,
    study,
    status,
):
    cli.add_command(command)


class Ended(KeyboardInterrupt):
    """SIGTERM, which saves what Ctrl-C does."""


def end(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends it at once
    raise Ended


def main() -> None:
    """Run the command; what goes wrong becomes one sentence and an exit code."""
    install_encoding_fallback()
    signal.signal(signal.SIGTERM, end)
    try:
        cli(prog_name="mcrise", standalone_mode=False)
    except click.exceptions.Abort as error:  # by way of click
        sys.exit(interrupted(error.__cause__))
    except KeyboardInterrupt as error:
        sys.exit(interrupted(error))
    except click.ClickException as error:
        readable(error).show()
        sys.exit(error.exit_code)
    except McriseError as error:
        complain(str(error))
        sys.exit(2 if isinstance(error, InputError) else 1)
    except MemoryError as error:
        complain(f"Out of memory ({error}): give a smaller image or --size.")
        sys.exit(1)
    except BrokenPipeError:  # `mcrise ... | head`
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # of a path that nothing above has looked at
        complain(f"{error.filename or 'A file'}: {error.strerror or error}.")
        sys.exit(2)


def complain(text: str) -> None:
    echo(sentence(f"Error: {text}"), err=True)


def readable(error: click.ClickException) -> click.ClickException:
    """What click has against how the command was typed, which it quotes as it came."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        return error  # the help itself, of newer clicks
    return click.UsageError(sentence(error.format_message()), getattr(error, "ctx", None))


def interrupted(by: BaseException | None) -> int:
    echo("Stopped. What was computed is saved; the same command goes on from there.", err=True)
    return 128 + (signal.SIGTERM if isinstance(by, Ended) else signal.SIGINT)
