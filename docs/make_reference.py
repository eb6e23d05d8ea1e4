"""Pages of the reference that follow from the program: commands, files and HTTP.

`make docs` writes them into docs/reference/, which is not kept.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

import mcrise
from mcrise.cli import COMMANDS, cli

SOURCE = Path(mcrise.__file__).parent
SHORT = 12  # letters: less is no sentence
CONTRACT = Path(__file__).parents[1] / "tests" / "contract" / "data"

COMMANDS_HEAD = """# Commands

`mcrise COMMAND --help` prints the same. Exit codes: 0 success, 1 failure, 2 bad input; `mcrise check`
also has 3 (a rule is violated) and 4 (undecided). For completion by the tab key, add this to the
file that your shell reads at its start:

| shell | file | line |
|---|---|---|
| bash | `~/.bashrc` | `eval "$(_MCRISE_COMPLETE=bash_source mcrise)"` |
| zsh | `~/.zshrc` | `eval "$(_MCRISE_COMPLETE=zsh_source mcrise)"` |
| fish | `~/.config/fish/completions/mcrise.fish` | `_MCRISE_COMPLETE=fish_source mcrise \\| source` |

Environment: `MCRISE_THREADS` sets the number of cores that `mcrise` uses, for painting and for ONNX
Runtime.
"""
FILES_HEAD = """# Files and schemas

Files are written whole or not at all. A test fails when a field below disappears or changes its type.

`mcrise explain` writes into `IMAGE.mcrise/`:

| file | what |
|---|---|
| `run.npz` | the explanation: scores of all masks and answers of all trials; `mcrise.load` opens it |
| `explanation.png` | the figure: maps, findings and their tests |
| `maps.png` | the maps alone |
| `summary.json` | the results as data |

Files of [audits](../auditing.md#the-folder) and of [studies](../studies.md#what-a-study-writes) are listed on
their pages. `[]` is an element of a list and `*` any key.
"""
HTTP_HEAD = """# HTTP

What `mcrise serve` answers. The browser page uses nothing else. `/openapi.json` of a running server
has all of it for programs. [Security](../trust.md) says who may ask.
"""
REFUSALS_HEAD = """# All refusals

Every sentence with which `mcrise` refuses bad input or reports a failure, as it stands in the source; `…` is what
came. [Messages](../messages.md) explains the ones that people meet most.
"""
SUBJECTS = {
    "Images and fills": ("images.py", "fills.py", "colors.py"),
    "Models and scores": ("models/", "model_calls.py", "inspection.py"),
    "Settings of a run": (
        "config.py",
        "masks.py",
        "sampling.py",
        "estimators/",
        "cli/",
        "mask_prob.py",
    ),
    "Saved runs": ("explanation.py", "explanation_file.py", "maps.py", "output/"),
    "Audits, rules and tests": ("audits/", "testing.py"),
    "Studies and many images": ("studies/", "batch/", "metrics.py"),
    "Matching": ("similarity.py",),
    "The server": ("server/",),
}
SCHEMAS = {
    "`summary.json` of `explain` and `show`": "json/summary.txt",
    "`whatif --json`": "json/whatif.txt",
    "`compare --json`": "json/compare.txt",
    "`measure --json`": "json/measure.txt",
    "`match --json`": "json/match.txt",
    "`diff.json` of two audits": "json/diff-audits.txt",
    "`diff.json` of two runs": "json/diff-runs.txt",
    "`check --format json`": "json/check.txt",
    "`figures.json` of an audit": "json/audit-figures.txt",
    "`images/` of an audit (Parquet)": "parquet/audit-images.txt",
    "`findings/` of an audit (Parquet)": "parquet/audit-findings.txt",
    "`maps/` of an audit (Parquet)": "parquet/audit-maps.txt",
    "`attempts/` of an audit (Parquet)": "parquet/audit-attempts.txt",
    "`failed.parquet` of an audit": "parquet/audit-failed.txt",
    "`results.parquet` of a study": "parquet/study-results.txt",
    "`summary.csv` of a study": "csv/study-summary.txt",
}


def write(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for make in (commands, files, http, refusals):
        (folder / f"{make.__name__}.md").write_text("\n".join(make()), encoding="utf-8")


def commands() -> Iterator[str]:
    yield COMMANDS_HEAD
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        context = command.make_context(
            f"mcrise {name}", [], resilient_parsing=True, terminal_width=82
        )
        yield f"## {name}\n\n```text\n{command.get_help(context)}\n```\n"


def files() -> Iterator[str]:
    yield FILES_HEAD
    for title, name in SCHEMAS.items():
        yield f"## {title}\n\n```text\n{(CONTRACT / name).read_text()}```\n"


def http() -> Iterator[str]:
    yield HTTP_HEAD
    for route in re.split(r"\n(?=\S)", (CONTRACT / "http/routes.txt").read_text()):
        title, _, rows = route.partition("\n")
        yield f"## `{title}`\n\n```text\n{textwrap.dedent(rows).strip()}\n```\n"


def refusals() -> Iterator[str]:
    yield REFUSALS_HEAD
    for subject, places in SUBJECTS.items():
        paths = [SOURCE / place for place in places]
        files = [one for path in paths for one in (path.rglob("*.py") if path.is_dir() else [path])]
        found = sorted({text for file in files for text in raised(file)})
        yield f"## {subject}\n\n" + "\n".join(f"- {text}" for text in found) + "\n"


def raised(file: Path) -> Iterator[str]:
    """The sentences of the errors that a file raises."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        called = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(called, ast.Call) and called.args and is_ours(called):
            text = written(called.args[0])
            if len(text) > SHORT:
                yield re.sub(r"([\\`*_<>\[\]|])", r"\\\1", text)


def is_ours(called: ast.Call) -> bool:
    return isinstance(called.func, ast.Name) and called.func.id.endswith(("Error", "Refusal"))


def written(node: ast.expr) -> str:
    """A text of the source, with … for what is put in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(written(part) for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "…"
