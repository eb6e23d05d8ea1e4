"""What we show, we run: the README's blocks and the examples."""

import email
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mcrise
from mcrise.cli import cli
from mcrise.demo import MODEL
from mcrise.demo.signs import stop

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


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


def test_the_python_block_of_the_readme_runs(user):
    (block,) = blocks("python")
    less = block.replace('"stop.png", model)', '"stop.png", model, n_masks=64)')
    exec(less.replace('"blur:8"])', '"blur:8"], n_masks=64)'), {})
    assert (user / "stop-maps.png").exists()


def test_the_commands_of_the_readme_run(user):
    lines = [line for block in blocks("sh") for line in block.splitlines() if "mcrise " in line]
    assert len(lines) >= 3
    for line in lines:
        words = shlex.split(re.split(r"\s#", line)[0])[1:]
        if words[0] == "explain":
            words += ["--n-masks", "64", "--overwrite"]
        if words[0] == "show":  # the README shows it on the first command's run
            cli(["explain", "photo.jpg", "--model", "demo", "--n-masks", "64", "--overwrite",
                 "--quiet"], standalone_mode=False)  # fmt: skip
        cli(words, standalone_mode=False)


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
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "make_api.py")
    make_api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_api)
    shown = [name for names in make_api.SECTIONS.values() for name in names]
    assert sorted(shown) == mcrise.__all__
    assert make_api.PAGE.read_text(encoding="utf-8") == make_api.page(), "run `make api`"


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
)
def test_what_a_page_links_to_is_there(page):
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / page).read_text())
    assert links or page != "README.md"
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


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
    assert "(`docs/method.md`)" in shown
    assert "![" not in shown
    assert re.findall(r"\]\((?!https?:)[^)]*\)", shown) == []


@pytest.mark.parametrize(
    "script", sorted(path.name for path in (ROOT / "examples").glob("plot_*.py"))
)
def test_the_examples_run(script, tmp_path):
    subprocess.run([sys.executable, ROOT / "examples" / script, tmp_path, "64"], check=True)
    assert list(tmp_path.glob("*.png"))
