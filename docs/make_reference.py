"""Pages of the reference that follow from the program: commands, files and HTTP.

`make docs` writes them into docs/reference/, which is not kept.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import product
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
came. Nearly all say what to do. One that begins with a small letter is a part of a sentence, such as the reason in
"is damaged (…)": get the file again from where it was made. [Messages](../messages.md) explains notes and warnings, and
the refusals that people meet most.
"""
SUBJECTS = {
    "Images and fills": ("images.py", "fills.py", "colors.py", "image_sources.py"),
    "Models and scores": ("models/", "model_calls.py", "inspection.py"),
    "Settings of a run": (
        "config.py",
        "masks.py",
        "sampling.py",
        "estimators/",
        "cli/",
        "mask_prob.py",
        "_util/",
    ),
    "Findings and repaints": ("interpretation/",),
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
    left = set(SOURCE.rglob("*.py"))
    for subject, places in SUBJECTS.items():
        paths = [SOURCE / place for place in places]
        files = {one for path in paths for one in (path.rglob("*.py") if path.is_dir() else [path])}
        found = sorted({text for file in files for text in refused(file)})
        yield f"## {subject}\n\n" + "\n".join(f"- {escaped(text)}" for text in found) + "\n"
        left -= files
    forgotten = {str(file.relative_to(SOURCE)) for file in left if any(refused(file))}
    assert forgotten == set(), f"name a subject for {forgotten}"


def escaped(text: str) -> str:
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", text)


def refused(file: Path) -> Iterator[str]:
    """The sentences of the errors that a file makes."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and name_of(node.func) in errors():
            parts = [written(one) for one in node.args if not is_number(one)]
            texts = (": ".join(one for one in text if one != "…") for text in product(*parts))
            yield from (text for text in texts if len(text) > SHORT)


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)


@cache
def errors() -> set[str]:
    """The names of the classes of errors that the program raises, and the server's and click's."""
    classes = [
        node
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    names = {"HTTPException", "UsageError", "ValueError", "Exception", "InputError", "McriseError"}
    for _ in classes:
        names |= {one.name for one in classes if {name_of(base) for base in one.bases} & names}
    return names - {"Exception"}


@cache
def functions() -> dict[str, ast.FunctionDef]:
    """Functions that make a sentence, by name."""
    return {
        node.name: node
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and name_of(node.returns) == "str"
    }


def name_of(node: ast.expr | None) -> str:
    return getattr(node, "attr", None) or getattr(node, "id", None) or ""


def written(node: ast.expr) -> list[str]:
    """The texts that an expression of the source may be, with … for what is put in."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(written(part)[0] for part in node.values)]
    if isinstance(node, ast.BinOp):
        return [a + b for a in written(node.left) for b in written(node.right)]
    if isinstance(node, ast.IfExp):
        return [*written(node.body), *written(node.orelse)]
    if isinstance(node, ast.Call) and name_of(node.func) in functions():
        returned = ast.walk(functions()[name_of(node.func)])
        return [
            text
            for one in returned
            if isinstance(one, ast.Return) and isinstance(one.value, ast.JoinedStr | ast.Constant)
            for text in written(one.value)
        ] or ["…"]
    return ["…"]
