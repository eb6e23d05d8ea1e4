"""The command `mcrise`: parses, calls the library and prints once.

Each command is a module of its name that is imported when the command is called, so that `mcrise
--help` is quick. `COMMANDS` lists them with the first sentence of their help. Besides:

- `options`: options that several commands share; those of a run follow from `RunConfig`.
- `image_arguments`: which images a command line names.
- `output`: printing that cannot harm a terminal.
- `help_examples`: the command line at the end of each help.
"""

import importlib
import os
import signal
import sys
from textwrap import indent

import click

from .._util.text import did_you_mean
from .._version import VERSION
from ..errors import InputError, McriseError
from .output import echo, echo_text, install_encoding_fallback, sentence

# The command draws files only, and matplotlib refuses to be imported at all where this names a
# backend that it does not have.
os.environ["MPLBACKEND"] = "Agg"

COMMANDS = {
    "demo": "Explain drawn traffic signs with the embedded model; write pictures and a report.",
    "explain": "Show which colors matter, and where, in IMAGE.",
    "inspect": "Say what MODEL takes and gives, how it answers IMAGES, and what looks wrong.",
    "show": "Draw the maps and findings of a saved RUN again, without calling the model.",
    "compare": "Explain why one class won over another in RUN, and what would change the decision.",
    "whatif": "Repaint parts of the image of RUN and ask the model again.",
    "match": "Show which colors make QUERY similar to an image of the folder GALLERY.",
    "measure": "Measure how well the map of a RUN or an IMAGE finds what the model needs.",
    "report": "Write one HTML file about one or several saved RUNs, without calling the model.",
    "serve": "Show maps in the browser while they are computed.",
    "audit": "Find which colors and places a model depends on, over the images of DATA.",
    "diff": "Compare two audits, or two runs, BEFORE and AFTER.",
    "check": "Test an AUDIT against rules (for CI): each holds, is violated or is undecided.",
    "study": "Explain the images of DATA by several methods and measure how good each method is.",
    "status": "Show how far the study or audit in FOLDER is, also while it runs.",
}


class LazyGroup(click.Group):
    """Imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        own = name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f".{own}", __package__), own)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            asked = did_you_mean(args[0], list(COMMANDS))
            raise click.UsageError(f"{args[0]!r} is not a command; {asked}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(VERSION, prog_name="mcrise")
def cli() -> None:
    """Which colors, where in an image, a model's decision depends on."""


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
        from ..models.settings import as_options  # not where only --help is asked for

        complain(as_options(str(error)))
        for note in getattr(error, "__notes__", []):  # all that a framework had to say
            echo_text(indent(as_options(note), "  "), err=True)
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
    saves = {"explain", "study", "audit"} & {*sys.argv[1:2]}
    rest = " What was computed is saved; the same command goes on from there." if saves else ""
    echo(f"Stopped.{rest}", err=True)
    return 128 + (signal.SIGTERM if isinstance(by, Ended) else signal.SIGINT)
