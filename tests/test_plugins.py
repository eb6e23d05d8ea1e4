"""Packages from outside, each a real one: a module and its metadata in a folder on the path."""

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pyarrow.parquet
import pytest

import mcrise
from mcrise import estimators
from mcrise._util import plugins
from mcrise.demo.signs import stop
from mcrise.errors import InputError
from mcrise.fills import GROUP, Solid, parse
from mcrise.interpretation.regions import interpret

SEPIA = """
from dataclasses import dataclass

import numpy as np
from mcrise.fills import Fill


@dataclass(frozen=True)
class Sepia(Fill):
    kind = "sepia"
    action_text = "aging this part"
    removes = "freshness"
    strength: float = 1.0

    @property
    def name(self):
        return "sepia" if self.strength == 1 else f"sepia:{self.strength:g}"

    @classmethod
    def parse(cls, word, argument):
        return cls(float(argument)) if argument else cls()

    def render(self, image):
        brown = image.mean(axis=2, keepdims=True) * np.array([1, 0.8, 0.6], np.float32)
        return image + np.float32(self.strength) * (brown - image)
"""


MEDIAN = """
import numpy as np
from mcrise.estimators import Estimate, Estimator, contrast, estimate

N_GROUPS = 8


class MedianOfGroups:
    def __init__(self, sample):
        self.sample = sample

    def maps(self, column):
        plan, masks = self.sample.plan, self.sample.masks
        chunks = np.arange(len(masks)).reshape(len(self.sample.chunks), -1)
        groups = [group.ravel() for group in np.array_split(chunks, min(N_GROUPS, len(chunks)))]
        maps = np.stack(
            [estimate(plan, masks[g], column.scores[g], contrast)[0] for g in groups]
        )
        # A median of normal values spreads 1.25 times as much as their mean.
        se = 1.25 * maps.std(axis=0) / np.sqrt(max(len(maps) - 1, 1))
        return Estimate(np.median(maps, axis=0), se)

    def chance(self, column):
        return None


MEDIAN = Estimator("median-of-groups", prepare=MedianOfGroups)
"""


def install(folder, package, group, entries, **modules):
    """Put a package into a folder, as pip would."""
    for module, code in modules.items():
        (folder / f"{module}.py").write_text(code)
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entries}\n")


@pytest.fixture
def outside(tmp_path):
    """A folder with the package sepia-fills, on nobody's path yet."""
    folder = tmp_path / "outside"
    folder.mkdir()
    install(folder, "sepia-fills", GROUP, "sepia = sepia_fills:Sepia", sepia_fills=SEPIA)
    return folder


@pytest.fixture
def median(tmp_path):
    """A folder with the package robust-maps, on nobody's path yet."""
    folder = tmp_path / "robust"
    folder.mkdir()
    entry = "median-of-groups = robust_maps:MEDIAN"
    install(folder, "robust-maps", estimators.GROUP, entry, robust_maps=MEDIAN)
    return folder


def run(*words, path=None):
    """The command in a process of its own, with `path` on Python's."""
    paths = [*([str(path)] if path else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "mcrise", *map(str, words)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip


# ---- fills


@pytest.mark.slow
def test_a_fill_from_another_package_is_painted_saved_and_shown_by_the_command(outside, tmp_path):
    stop().save(tmp_path / "stop.png")
    out = tmp_path / "run"
    done = run("explain", tmp_path / "stop.png", "--model", "demo", "--colors", "red,sepia:0.5",
               "--n-masks", 64, "--trials", "none", "--out", out, path=outside)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "summary.json").read_text())["fills"] == ["red", "sepia:0.5"]
    with np.load(out / "run.npz") as arrays:
        saved = json.loads(arrays["meta"].tobytes())["plan"]["fills"][1]
    assert saved == {"kind": "sepia", "package": "sepia-fills", "strength": 0.5}
    assert run("show", out, path=outside).returncode == 0

    without = run("show", out)
    assert without.returncode == 2
    assert without.stderr == (
        f"Error: {out / 'run.npz'} paints with the fill 'sepia', which this mcrise does not know: "
        "pip install sepia-fills.\n"
    )


def test_its_deed_is_read_in_its_own_words(outside, monkeypatch):
    monkeypatch.syspath_prepend(outside)
    image = np.full((32, 32, 3), (128, 128, 128), np.uint8)

    def wants_gray(images):
        away = np.abs(images[:, 8:24, 8:24].astype(float) / 255 - 0.5).mean(axis=(1, 2, 3))
        score = np.clip(1 - 8 * away, 0, 1)
        return np.stack([score, 1 - score], axis=1)

    explanation = mcrise.explain(image, wants_gray, fills=["gray", "sepia"], n_masks=1024)
    reading = interpret(explanation, 0, "centered")
    assert "aging this part lowers" in reading.lines()[1]
    assert "its freshness matters" in str(explanation.findings)


def test_what_is_built_in_cannot_be_overridden(tmp_path, monkeypatch):
    words = ("blur", "orange", "rgbwk", "auto", "solid")
    install(tmp_path, "bold", GROUP, "\n".join(f"{word} = nosuch:X" for word in words))
    monkeypatch.syspath_prepend(tmp_path)
    assert set(words) <= set(plugins.names(GROUP))
    assert [fill.name for fill in parse("blur,orange")] == ["blur:8", "orange"]
    assert parse("orange") == (Solid((255, 165, 0), "orange"),)
    assert len(parse("rgbwk")) == 5


def test_a_misspelt_word_finds_the_nearest_of_other_packages_too(outside, monkeypatch):
    monkeypatch.syspath_prepend(outside)
    with pytest.raises(InputError, match="did you mean 'sepia'"):
        parse("speia")


@pytest.mark.parametrize(
    ("entries", "hint"),
    [("tint = no_such_module:Tint", r"of the package broken cannot be loaded \(ModuleNotFound"),
     ("tint = broken_tint:Missing", r"cannot be loaded \(AttributeError"),
     ("tint = broken_tint:raised", "derived from mcrise.fills.Fill"),
     ("tint = broken_tint:Tint", "has no action_text and no removes")],
)  # fmt: skip
def test_a_broken_package_is_one_sentence(entries, hint, tmp_path, monkeypatch):
    code = (
        "from mcrise.fills import Fill\n"
        "class Tint(Fill):\n    kind = 'tint'\n    def render(self, image): return image\n"
        "raised = 7\n"
    )
    install(tmp_path, "broken", GROUP, entries, broken_tint=code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_tint", raising=False)
    with pytest.raises(InputError, match=hint):
        parse("red,tint")


def test_a_record_is_not_blamed_for_a_broken_package(outside, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.syspath_prepend(outside)
        image = np.zeros((16, 16, 3), np.uint8)
        model = lambda images: np.full((len(images), 2), 0.5)  # noqa: E731
        mcrise.explain(image, model, fills="sepia", n_masks=64).save(tmp_path / "run.npz")
    (tmp_path / "broken").mkdir()
    install(tmp_path / "broken", "sepia-fills", GROUP, "sepia = no_such_module:Sepia")
    monkeypatch.syspath_prepend(tmp_path / "broken")
    with pytest.raises(InputError, match="package sepia-fills cannot be loaded"):
        mcrise.load(tmp_path / "run.npz")


# ---- estimators


@pytest.mark.slow
def test_an_estimator_from_another_package_is_shown_by_the_command(median, tmp_path):
    stop().save(tmp_path / "stop.png")
    out = tmp_path / "run"
    done = run("explain", tmp_path / "stop.png", "--model", "demo", "--n-masks", 128, "--out", out,
               "--estimator", "median-of-groups", "--trials", "none", path=median)  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert [one["estimator"] for one in summary["maps"]] == ["median-of-groups"]
    shown = run("show", out, "--estimator", "median-of-groups", "--target", "yield", path=median)
    assert (shown.returncode, shown.stderr) == (0, "")

    without = run("show", out, "--estimator", "median-of-groups")
    assert without.returncode == 2
    assert without.stderr == (
        "Error: The estimator is 'median-of-groups', but it must be one of rise, debiased, paper, "
        "centered, smooth.\n"
    )


def test_its_maps_are_made_read_and_compared_like_any_other(median, monkeypatch):
    monkeypatch.syspath_prepend(median)
    image = np.full((32, 32, 3), 128, np.uint8)

    def wants_red(images):
        red = images[:, 8:24, 8:24, 0].mean(axis=(1, 2)) / np.float64(255)
        return np.stack([red, 1 - red], axis=1)

    explanation = mcrise.explain(image, wants_red, n_masks=1024)
    maps = explanation.maps(0, "median-of-groups")
    eighths = [
        replace(
            explanation, scores={chunk: explanation.scores[chunk] for chunk in (2 * n, 2 * n + 1)}
        )
        for n in range(8)
    ]
    paper = np.stack([part.maps(0, "paper").values for part in eighths])
    np.testing.assert_array_equal(maps.values, np.median(paper, axis=0))
    assert (maps.unit, maps.diverging, maps.names) == (
        "change of probability", True, ("red", "green", "blue", "white", "black"),
    )  # fmt: skip
    assert explanation.maps(0, "median-of-groups", against=1).label == "class 0 − class 1"
    # So noisy that its own intervals hold zero: what exceeds chance is there to be tried.
    assert interpret(explanation, 0, "median-of-groups", unsure=True).findings


RAY = pytest.param(("--ray",), marks=pytest.mark.slow)


@pytest.mark.parametrize("where", [("--workers", 1), RAY])
def test_processes_started_anew_have_fill_and_estimator_too(where, outside, median, tmp_path):
    (tmp_path / "images").mkdir()
    stop().save(tmp_path / "images" / "stop.png")
    both = os.pathsep.join([str(outside), str(median)])
    done = run("study", tmp_path / "images", "--colors", "red,sepia", "--methods", "mcrise",
               "--estimators", "median-of-groups,centered", "--n-masks", 128, "--step", 0.2,
               "--out", tmp_path / "out", *where, path=both)  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pyarrow.parquet.read_table(tmp_path / "out" / "results.parquet").to_pydict()
    assert table["estimator"] == ["centered", "median-of-groups"]
    assert table["error"] == [None, None]


@pytest.mark.parametrize(
    ("entry", "hint"),
    [("no_such_module:MEDIAN", r"of the package broken cannot be loaded \(ModuleNotFound"),
     ("math:pi", "of the package broken is no mcrise Estimator of that name"),
     ("mcrise.estimators:prepare_centered", "is no mcrise Estimator of that name"),
     ("robust_maps:MEDIAN", "is no mcrise Estimator of that name")],
)  # fmt: skip
def test_a_broken_estimator_is_one_sentence(entry, hint, median, tmp_path, monkeypatch):
    install(tmp_path, "broken", estimators.GROUP, f"mine = {entry}")
    for folder in (median, tmp_path):
        monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "robust_maps", raising=False)
    with pytest.raises(InputError, match=hint):
        estimators.find_estimator("mine")


def test_the_example_for_authors_of_estimators_runs(tmp_path, monkeypatch):
    """The one in the docstring of `mcrise.estimators`, with the entry point that it names."""
    example = textwrap.dedent(
        estimators.__doc__.partition("such as `contrast`.")[2].partition("In the order")[0]
    )
    names = "from mcrise.estimators import Estimate, Estimator, contrast, estimate\n"
    install(tmp_path, "half-maps", estimators.GROUP, "half = half_maps:HALF",
            half_maps=names + example)  # fmt: skip
    monkeypatch.syspath_prepend(tmp_path)
    explanation = mcrise.explain(
        np.zeros((16, 16, 3), np.uint8), lambda images: images.mean(axis=(1, 2)) / 765, n_masks=64,
        score_kind="any",
    )  # fmt: skip
    half, whole = explanation.maps(0, "half"), explanation.maps(0, "paper")
    np.testing.assert_allclose(2 * half.values, whole.values)


# ---- any group


def test_a_name_is_found_with_its_package_or_not_at_all(tmp_path, monkeypatch):
    install(tmp_path, "math-things", "mcrise.tests", "root = math:sqrt\ntau = math:tau")
    monkeypatch.syspath_prepend(tmp_path)
    found = plugins.find("mcrise.tests", "root")
    assert (found.thing(9), found.package) == (3, "math-things")
    assert plugins.names("mcrise.tests") == ["root", "tau"]
    assert plugins.find("mcrise.tests", "nosuch") is None
    assert plugins.names("mcrise.nosuch") == []


def test_a_name_that_two_packages_bring_is_refused(tmp_path, monkeypatch):
    for package in ("one", "two"):
        install(tmp_path, package, "mcrise.tests", "root = math:sqrt")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="packages one and two"):
        plugins.find("mcrise.tests", "root")
