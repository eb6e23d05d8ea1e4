"""What we show, we run: the README's blocks and the examples."""

import ast
import email
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import mcrise
from doc_blocks import assert_printed, blocks, install_wheel, run_page
from mcrise.cli import cli
from mcrise.cli.help_examples import EXAMPLES
from mcrise.demo.signs import stop
from table import update_figures

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
RULES = ROOT / "tests" / "data" / "rules.toml"


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Those of an environment in which the package is installed from its wheel."""
    return install_wheel(tmp_path_factory.mktemp("installed"))


@pytest.mark.slow
def test_the_readme_runs_from_top_to_bottom(tmp_path, programs):
    assert run_page(ROOT / "README.md", tmp_path, programs) == 5


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 130


def test_what_a_page_shows_is_compared_with_what_came():
    came = "Prediction: stop 0.89, next yield 0.01.\nmore\nControl: 19 places."
    assert_printed("Prediction: stop 0.90, next yield 0.01.\n...\nControl: 19 places.", came)
    for wrong in (
        "Prediction: stop 0.80",
        "Prediction: yield 0.89",
        "Control: 19 places. And more",
    ):
        with pytest.raises(AssertionError):
            assert_printed(wrong, came)


def test_the_page_of_the_api_is_what_the_docstrings_say():
    make_api = load_script("make_api")
    shown = [name for names in make_api.SECTIONS.values() for name in names]
    assert sorted(shown) == mcrise.__all__
    assert make_api.PAGE.read_text(encoding="utf-8") == make_api.page(), "run `make api`"


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_results_shows_the_figures_that_benchmarks_wrote():
    make_results = load_script("make_results")
    assert make_results.PAGE.read_text(encoding="utf-8") == make_results.page(), "make results"
    for figure in json.loads(make_results.FIGURES.read_text(encoding="utf-8")):
        shown = make_results.shown(figure["value"])
        for name in figure.get("quoted", []):
            assert shown in re.findall(r"[\d.]+", (ROOT / name).read_text()), figure["what"]


def test_a_benchmark_writes_its_headline_figures(tmp_path):
    source = {"benchmark": "speed", "where": {"model": "a"}, "column": "seconds"}
    figures = [{"what": "one", "value": 1.0, "from": source}, {"what": "other", "value": 5.0}]
    file = tmp_path / "figures.json"
    file.write_text(json.dumps(figures))
    rows = [{"model": "b", "seconds": 9.0}, {"model": "a", "seconds": 2.5}]
    update_figures("memory", rows, file)
    assert json.loads(file.read_text()) == figures
    update_figures("speed", rows, file)
    assert [figure["value"] for figure in json.loads(file.read_text())] == [2.5, 5.0]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages, with those that `make docs` makes, by where they lie."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("gallery"))
    load_script("make_reference").write(folder / "docs" / "reference")
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff"):
        shutil.copy(ROOT / name, folder)
    (folder / "docs" / "gallery").mkdir()
    (folder / "docs" / "gallery" / "index.md").touch()
    return {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}


def test_what_a_page_links_to_is_there(pages):
    lost = [
        (path.name, link)
        for path, page in pages.items()
        for link in re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", page)
        if not (path.parent / link).exists()
    ]
    assert lost == []


def test_every_page_is_in_the_contents(pages):
    (index,) = [page for path, page in pages.items() if path.name == "index.md" and page]
    listed = set(re.findall(r"^([\w/-]+)$", index, re.M))
    docs = [path for path in pages if "docs" in path.parts]
    there = {str(path).rpartition("/docs/")[2].removesuffix(".md") for path in docs} - {"index"}
    assert there == listed


NOTED = {  # where notes and warnings for users are written: functions, or names of a module
    "images.py": ("view", "whole_view", "upright_rgb", "TURNED"),
    "inspection.py": (
        "output_warnings",
        "repeat_warnings",
        "input_warnings",
        "preprocessing_hint",
        "gain_words",
    ),
    "maps.py": ("diagnose",),
    "mask_prob.py": ("say",),
    "models/outputs.py": ("several",),
    "models/inputs.py": ("NO_PREPROCESSING", "NO_LAYOUT"),
    "models/preprocessing.py": ("HF_RESIZE",),
    "models/torch.py": ("from_object",),
    "similarity.py": ("open_gallery",),
    "audits/api.py": ("unknown_folders",),
    "studies/api.py": ("run_study",),
}


def notes_of_the_source(make_reference):
    """The sentences of notes and warnings, with … for what is put in."""
    for file, names in NOTED.items():
        refusals = set(make_reference.refused(make_reference.SOURCE / file))
        tree = ast.parse((make_reference.SOURCE / file).read_text())
        defined = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        defined |= {node.targets[0].id: node for node in tree.body if isinstance(node, ast.Assign)
                    and isinstance(node.targets[0], ast.Name)}  # fmt: skip
        for name in names:
            nodes = list(ast.walk(defined[name]))
            inner = [
                id(part) for one in nodes if isinstance(one, ast.JoinedStr) for part in one.values
            ]
            strings = [one for one in nodes if isinstance(one, ast.JoinedStr | ast.Constant)]
            texts = [make_reference.written(one)[0] for one in strings if id(one) not in inner]
            own = isinstance(defined[name], ast.FunctionDef) and ast.get_docstring(
                defined[name], clean=False
            )
            others = {*refusals, own}
            yield from (one for one in texts if one.count(" ") >= 3 and one not in others)


def test_every_note_and_warning_is_explained(pages):
    (page,) = [page for path, page in pages.items() if path.name == "messages.md"]
    explained = [part for one in re.findall(r'^\| "([^"]+)"', page, re.M) for part in parts(one)]
    notes = list(notes_of_the_source(load_script("make_reference")))
    assert len(notes) >= 25
    assert [one for one in notes if not any(part in one for part in explained)] == []


def test_messages_that_are_explained_are_in_the_source(pages):
    (page,) = [page for path, page in pages.items() if path.name == "messages.md"]
    source = "".join(file.read_text() for file in (ROOT / "src" / "mcrise").rglob("*.py"))
    source = re.sub(r'"\s*\n\s*f?"', "", source)  # texts over several lines
    quoted = re.findall(r'^\| "([^"]+)"', page, re.M)
    assert len(quoted) >= 40
    lost = [one for one in quoted if not any(part in source for part in parts(one))]
    assert lost == []


def parts(quoted):
    """What of an example is no number, name or quoted word, the longest first."""
    found = re.split(r"\d[\d.,]*|'[^']*'|\.\.\.|\b\w+\.(?:txt|png)", quoted)
    return [part for part in found if part.count(" ") >= 2 or part == quoted]


NOT_RUN = ("api",)  # signatures
RUN = sorted(
    path.stem for path in (ROOT / "docs").glob("*.md") if path.stem not in NOT_RUN and blocks(path)
)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_page_runs_from_top_to_bottom(name, tmp_path, programs):
    page = ROOT / "docs" / f"{name}.md"
    typed = [one for one in blocks(page) if not one.file]
    only_read = [one.body for one in typed if one.kind not in ("sh", "python", "text")]
    assert only_read == [], "say `<!-- not run: reason -->` above it"
    n_run = run_page(page, tmp_path, programs)
    assert n_run == sum(one.kind != "text" for one in typed) > 0


@pytest.mark.parametrize("name", ["../README", "tutorial", "studies", "auditing"])
def test_commands_that_a_page_shows_have_the_options_that_there_are(name):
    """That they also do what the page says is seen in `make test-all`."""
    shown = [one.body for one in blocks(ROOT / "docs" / f"{name}.md") if one.kind == "sh"]
    lines = "".join(shown).replace("\\\n", " ").splitlines()
    typed = [shlex.split(line, comments=True) for line in lines if line.startswith("mcrise ")]
    assert typed
    for _, name, *words in typed:
        command = cli.get_command(click.Context(cli), name)
        assert command, name
        command.make_context(name, words, resilient_parsing=True)


def test_the_function_of_the_readme_is_explained_as_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mcrise-demo/signs").mkdir(parents=True)
    stop().save("mcrise-demo/signs/stop.png")
    (code,) = [one.body for one in blocks(ROOT / "README.md") if "def predict" in one.body]
    exec(code, {})
    assert capsys.readouterr().out.startswith("Prediction: red 0.22")


def test_the_picture_of_the_packages_names_each_of_them():
    drawn = next(one.body for one in blocks(ROOT / "CONTRIBUTING.md") if not one.kind)
    source = ROOT / "src" / "mcrise"
    packages = {f"{file.parent.name}/" for file in source.glob("*/__init__.py")}
    modules = {file.stem for file in source.glob("*.py")} - {"__init__", "__main__", "_version"}
    assert (packages | modules) - set(drawn.split()) == set()


def test_the_page_of_a_package_index_links_to_nothing_it_lacks(tmp_path):
    """An index shows the long description, where relative links and pictures lead nowhere."""
    pytest.importorskip("setuptools", minversion="77")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    package = tmp_path / "src" / "mcrise"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(ROOT / "src" / "mcrise" / "_version.py", package)
    code = "import setuptools.build_meta as b; print(b.prepare_metadata_for_build_wheel('.'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    folder = tmp_path / done.stdout.split()[-1]
    metadata = email.message_from_bytes((folder / "METADATA").read_bytes())
    shown = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert shown.startswith("# mcrise\n")
    assert "(`docs/results.md`)" in shown
    assert "![" not in shown
    assert re.findall(r"\]\((?!https?:)[^)]*\)", shown) == []


SCRIPTS = sorted(path.name for path in (ROOT / "examples").glob("plot_*.py"))


@pytest.mark.parametrize(
    "script",
    [pytest.param(name, marks=[] if name == SCRIPTS[0] else pytest.mark.slow) for name in SCRIPTS],
)
def test_the_examples_run(script, tmp_path):
    assert len(SCRIPTS) >= 10
    subprocess.run([sys.executable, ROOT / "examples" / script], cwd=tmp_path, check=True)


@pytest.mark.slow
def test_the_example_of_each_help_runs(tmp_path, programs):
    lines = [line for name, line in EXAMPLES.items() if name != "serve"]
    before = {"diff": "cp -r audit audit-next", "check": f"cp {RULES} rules.toml"}
    script = "\n".join(f"{before.get(line.split()[1], '')}\n{line}" for line in lines)
    page = tmp_path / "page.md"
    page.write_text(f"```sh\n{script}\n```\n", encoding="utf-8")
    assert run_page(page, tmp_path, programs) == 1


def test_a_link_that_leads_nowhere_is_named(tmp_path):
    lost = load_script("check_links").lost
    (tmp_path / "other.html").write_text('<h1 id="place">Other</h1>')
    (tmp_path / "page.html").write_text(
        '<a href="other.html#place"></a> <a href="https://example.org"></a> <img src="gone.png">'
        '<a href="other.html#gone"></a>'
    )
    assert list(lost(tmp_path)) == ["page.html: gone.png", "page.html: other.html#gone"]
