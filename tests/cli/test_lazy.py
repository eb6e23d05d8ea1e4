"""The command imports a subcommand when it is called, and its help is complete."""

import inspect
import os
import re
import subprocess
import sys

import click
import pytest

from mcrise.cli import COMMANDS, cli
from mcrise.cli.help_examples import EXAMPLES

HEAVY = ("matplotlib", "numba", "numpy", "onnxruntime", "PIL", "scipy")
QUICK = 0.3  # seconds of CPU


def command(name):
    return cli.get_command(click.Context(cli), name)


def help_of(name):
    return command(name).get_help(command(name).make_context(name, [], resilient_parsing=True))


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_take_little_time(word):
    process = subprocess.Popen([sys.executable, "-m", "mcrise", word], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert used.ru_utime + used.ru_stime <= QUICK


def test_the_list_of_commands_imports_none_of_them():
    script = (
        "import sys\nfrom click.testing import CliRunner\nfrom mcrise.cli import cli\n"
        "print(CliRunner().invoke(cli, ['--help']).exit_code)\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))\n"
        "print([name for name in sys.modules if name.startswith('mcrise.')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    code, packages, modules = done.stdout.splitlines()
    assert code == "0"
    assert not [name for name in HEAVY if f"'{name}'" in packages]
    assert not [name for name in COMMANDS if f"mcrise.cli.{name}'" in modules]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_sentence_of_each_help(name):
    first = inspect.cleandoc(command(name).help).split("\n\n")[0]
    assert " ".join(first.split()) == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_help_ends_with_an_example(name):
    last = help_of(name).rstrip().splitlines()[-1]
    assert last.strip() == EXAMPLES[name]
    assert last.split()[1] == name


def test_the_list_of_commands_is_not_cut(capsys):
    context = cli.make_context("mcrise", [], resilient_parsing=True, terminal_width=60)
    words = " ".join(cli.get_help(context).split())
    assert "..." not in words.replace("[ARGS]...", "")
    assert all(sentence in words for sentence in COMMANDS.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_text_and_a_section(name):
    options = [one for one in command(name).params if isinstance(one, click.Option)]
    assert [one.opts for one in options if not one.help] == []
    shown = help_of(name)
    for one in options:
        assert len(re.findall(rf"^  {', '.join(one.opts)}\b(?!-)", shown, re.M)) == 1


def test_options_stand_in_groups_the_common_ones_first():
    shown = help_of("explain")
    places = [shown.index(title) for title in ("\nOptions:", "\nModel input:", "\nAdvanced:")]
    assert places == sorted(places)
    assert shown.index("--n-masks") < places[1] < shown.index("--mean") < places[2]
    assert shown.index("--tolerance") > places[2]
