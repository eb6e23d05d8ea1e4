"""What we show, we run: the README's blocks and the examples."""

import email
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mcrise
from doc_blocks import assert_printed, run_page
from mcrise.cli import cli
from mcrise.cli.examples import EXAMPLES
from mcrise.demo import MODEL
from mcrise.demo.signs import stop
from table import update_figures

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
RULES = ROOT / "tests" / "data" / "rules.toml"


def blocks(language, page=README):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A folder with what the README's commands name."""
    monkeypatch.chdir(tmp_path)
    stop().save("stop.png")
    stop().save("photo.jpg")
    shutil.copy(MODEL, "classifier.onnx")
    Path("classifier.toml").write_text("[input]\nmean = [0.5]\nstd = [0.5]\n")
    shutil.copy(MODEL.with_suffix(".txt"), "labels.txt")
    Path("mypackage").mkdir()
    Path("mypackage/models.py").write_text(
        "import numpy as np\n"
        "def predict(images):\n"
        "    red = images[..., 0].mean((1, 2)) / 255\n"
        "    return np.stack([red, 1 - red], axis=1)\n"
    )
    return tmp_path


def test_the_readme_runs_from_top_to_bottom(tmp_path):
    assert run_page(ROOT / "README.md", tmp_path) == 5


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


def test_the_commands_of_the_page_on_studies_run(user):
    page = (ROOT / "docs" / "studies.md").read_text()
    Path("signs").mkdir()
    stop().save("signs/stop.png")
    lines = [line for block in blocks("sh", page) for line in block.splitlines()]
    assert [line.split()[1] for line in lines] == ["measure", "study"]
    for line in lines:
        less = ["--n-masks", "64", "--step", "0.2"]
        cli([*shlex.split(line)[1:], *less], standalone_mode=False)
    assert Path("study/results.parquet").exists()
    assert Path("photo.jpg.mcrise/curves.png").exists()


def test_what_the_page_on_audits_shows_runs(user):
    import duckdb

    page = (ROOT / "docs" / "auditing.md").read_text()
    Path("signs").mkdir()
    stop().save("signs/stop.png")
    (line,) = blocks("sh", page)
    cli([*shlex.split(line)[1:], "--n-masks", "64", "--workers", "1"], standalone_mode=False)
    (query,) = blocks("sql", page)
    assert len(duckdb.sql(query).fetchall()) == 1
    (block,) = blocks("python", page)
    exec(block.replace("256", "64"), {})  # finds it done


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


def test_messages_that_are_explained_are_in_the_source(pages):
    (page,) = [page for path, page in pages.items() if path.name == "messages.md"]
    source = "".join(file.read_text() for file in (ROOT / "src" / "mcrise").rglob("*.py"))
    source = re.sub(r'"\s*\n\s*f?"', "", source)  # texts over several lines
    quoted = re.findall(r'^\| "([^"]+)"', page, re.M)
    assert len(quoted) >= 20
    lost = [one for one in quoted if re.split(r" \d|\d| \.\.\.", one)[0] not in source]
    assert lost == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "install",
        "onnx",
        "torch-models",
        "functions",
        "reading",
        "wrong-answers",
        "coming-from",
    ],
)
def test_a_page_runs_from_top_to_bottom(name, tmp_path):
    assert run_page(ROOT / "docs" / f"{name}.md", tmp_path) >= 1


def test_the_tutorial_runs_from_top_to_bottom(tmp_path):
    assert run_page(ROOT / "docs" / "tutorial.md", tmp_path) == 6


def test_the_picture_of_the_packages_names_each_of_them():
    drawn = blocks("", (ROOT / "CONTRIBUTING.md").read_text())[0]
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
def test_the_example_of_each_help_runs(tmp_path):
    lines = [line for name, line in EXAMPLES.items() if name != "serve"]
    before = {"diff": "cp -r audit audit-next", "check": f"cp {RULES} rules.toml"}
    script = "\n".join(f"{before.get(line.split()[1], '')}\n{line}" for line in lines)
    page = tmp_path / "page.md"
    page.write_text(f"```sh\n{script}\n```\n", encoding="utf-8")
    assert run_page(page, tmp_path) == 1
