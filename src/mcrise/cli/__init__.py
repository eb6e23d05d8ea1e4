"""The command `mcrise`: parses, calls the library and speaks once."""

import sys

import click

from ..errors import InputError, McriseError
from ..version import VERSION
from .characters import spell_out
from .demo import demo
from .explain import explain, show
from .match import match
from .measure import measure_command
from .report import report
from .serve import serve
from .study import study, study_status
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
    study,
    study_status,
):
    cli.add_command(command)


def main() -> None:
    """Run the command; what goes wrong becomes one sentence and an exit code."""
    spell_out()
    try:
        cli(prog_name="mcrise", standalone_mode=False)
    except click.exceptions.Abort:  # Ctrl-C, by way of click
        sys.exit(interrupted())
    except KeyboardInterrupt:
        sys.exit(interrupted())
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except McriseError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except MemoryError as error:
        click.echo(f"Error: Out of memory ({error}): give a smaller image or --size.", err=True)
        sys.exit(1)
    except BrokenPipeError:  # `mcrise ... | head`
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # of a path that nothing above has looked at
        click.echo(f"Error: {error.filename or 'A file'}: {error.strerror}.", err=True)
        sys.exit(2)


def interrupted() -> int:
    click.echo(
        "Stopped. What was computed is saved; the same command goes on from there.", err=True
    )
    return 130
