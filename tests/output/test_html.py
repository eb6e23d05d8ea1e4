"""The report and what a notebook shows: whole, small, and never reading a label as HTML."""

import html
import os
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import mcrise
from mcrise.cli import cli
from mcrise.estimators import ESTIMATORS
from mcrise.output.html import Chapter, render
from mcrise.output.web_maps import findings_json, runs
from planted import PatchModel, explain_masks, photo

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def explanation():
    """224 x 224 with five colors, and a label that would like to run."""
    model = PatchModel(slice(60, 160), slice(60, 160))
    labels = [HOSTILE, f"not {HOSTILE}"]
    made = mcrise.explain(photo(224, 224), model, n_masks=256, labels=labels, trials=24)
    made.findings_of(0, model, trials=24)
    return made


@pytest.fixture(scope="module")
def report(explanation):
    return render([Chapter(f"{HOSTILE}.png", explanation, [0])])


@pytest.fixture(scope="module")
def shown(explanation):
    """What a notebook shows."""
    return explanation._repr_html_()


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def assert_harmless(text):
    assert "&lt;img src=x" in text
    for tag, attributes in Tags(text).tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        if tag == "img":
            assert attributes["src"].startswith("data:image/")


def test_a_report_of_224_pixels_and_five_colors_is_under_3_mb(report):
    assert len(report.encode()) < 3e6


def test_a_report_asks_nobody_for_anything(report):
    for tag, attributes in Tags(report).tags:
        assert tag not in ("link", "iframe", "object")
        assert not attributes.get("src", "data:").startswith(("http", "/", "file"))
    assert not re.search(r"@import|url\(|\bfetch\(", report)


def test_html_in_a_label_is_shown_as_text(report, explanation, shown):
    assert_harmless(report)
    assert_harmless(shown)
    assert_harmless(explanation.maps(0)._repr_html_())


def test_what_a_notebook_shows_is_small(explanation, shown):
    assert len(shown) < 3e6  # of noise, which PNG cannot pack
    assert len(explanation.maps()._repr_html_()) < 300_000


def test_regions_are_sent_as_runs_of_pixels(explanation):
    found = explanation.findings[0]
    lengths = runs(found.region)
    inside = np.repeat(np.arange(len(lengths)) % 2, lengths).astype(bool)
    flat = found.region.ravel()
    np.testing.assert_array_equal(inside, flat[: len(inside)])
    # What is left after the last run goes on as it began: outside, or inside to the end.
    assert not flat[len(inside) :].any() or len(lengths) % 2 == 1
    assert findings_json(explanation.findings)["findings"][0]["runs"] == lengths


def test_the_command_writes_the_report_with_each_finding_and_its_tests(explanation, tmp_path):
    """From the answers in the file: no model is called."""
    folder = tmp_path / "stop.png.mcrise"
    explanation.save(folder / "run.npz")
    out = tmp_path / "report.html"
    answer = CliRunner().invoke(cli, ["report", str(folder), "-o", str(out), "--target", "1"])
    assert answer.exit_code == 0, answer.output
    text = html.unescape(out.read_text())
    first = explanation.findings_of(1)[0]
    assert " ".join([first.sentence, *first.lines]) in text
    assert f"{first.before:.3f} → {first.after:.3f}" in text
    assert 'class="explanation"' in text
    assert "Not tested by repainting" not in text
    assert "mcrise explain stop.png --model SPEC --target 1" in text


def test_a_report_without_trials_says_so(explanation):
    text = render([Chapter("x", replace(explanation, trial_logs={}), [1])])
    assert "Not tested by repainting." in text
    assert 'class="explanation"' not in text


def test_the_command_to_make_it_again_names_the_folder_where_that_was_chosen(tmp_path):
    image = tmp_path / "photo.png"
    Image.fromarray(photo(24, 24)).save(image)
    own = explain_masks(image, PatchModel(slice(6, 16), slice(6, 16)), n_masks=64)
    own.save(tmp_path / "elsewhere" / "run.npz")
    out = tmp_path / "report.html"
    CliRunner().invoke(cli, ["report", str(tmp_path / "elsewhere"), "-o", str(out)])
    text = out.read_text()
    assert "mcrise explain photo.png --model SPEC" in text
    assert "--out elsewhere" in text


def test_the_command_of_a_report_goes_on_with_the_run_wherever_its_folder_was_put(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Image.fromarray(photo(96, 96)).save("photo.png")
    asked = ["explain", "photo.png", "--model", "demo", "--n-masks", "64", "--mask-prob", "0.5",
             "--trials", "none", "--out", "deep/down"]  # fmt: skip
    assert CliRunner().invoke(cli, asked).exit_code == 0
    assert CliRunner().invoke(cli, ["report", "deep/down"]).exit_code == 0
    text = (tmp_path / "report.html").read_text()
    command = html.unescape(re.search("<pre>mcrise (.*)</pre>", text)[1]).replace("SPEC", "demo")
    again = CliRunner().invoke(cli, [*shlex.split(command), "--trials", "none"])
    assert again.exit_code == 0, again.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "photo.png", "report.html"]


def test_a_report_of_several_runs_opens_with_a_table_that_leads_to_each(explanation):
    explanation = replace(explanation, trial_logs={})
    text = render([Chapter("one.png", explanation, [0, 1]), Chapter("two.png", explanation, [1])])
    links = re.findall(r'<a href="#(part-\d)">', text)
    assert links == re.findall(r'<article id="(part-\d)"', text) == ["part-1", "part-2", "part-3"]
    assert 'class="contents"' not in render([Chapter("one.png", explanation, [1])])


def test_colors_are_shown_strongest_first_each_with_its_swatch(report, explanation):
    maps = explanation.maps(0)
    strongest = np.abs(maps.values).max(axis=(1, 2)).argsort()[::-1]
    panels = re.findall(r'class="panel" data-k="(\d)".*?fill="(#\w{6})"', report, re.DOTALL)
    swatches = {"red": "#ff0000", "green": "#00ff00", "blue": "#0000ff", "white": "#ffffff",
                "black": "#000000"}  # fmt: skip
    assert panels == [(str(k), swatches[maps.names[k]]) for k in strongest]


def test_a_notebook_shows_the_figure_and_the_sentences(explanation, shown):
    for line in explanation.lines():
        assert line in html.unescape(shown)
    assert shown.count("<img") == 1
    untested = replace(explanation, trial_logs={})._repr_html_()
    assert "raises" in untested
    assert untested.count("<img") == 2 + len(explanation.plan.fills)  # image, maps, scale


def test_a_report_can_be_made_with_every_estimator(explanation):
    untested = replace(explanation, trial_logs={})  # the figure of the tests has its own maps
    for estimator in ESTIMATORS:
        assert estimator in render([Chapter("x", untested, [1])], estimator)


@pytest.mark.slow
def test_the_example_notebook_runs_and_shows_maps(monkeypatch):
    import nbclient
    import nbformat

    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    here = os.path.dirname(os.path.dirname(__file__))
    path = os.path.join(here, "..", "examples", "first_map.ipynb")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120).execute()
    shown = [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    assert any("data:image/png;base64," in one for one in shown)


def test_the_versions_are_those_of_the_run(explanation):
    """A report that is made years later says what the run was made with."""
    old = replace(explanation, versions={"mcrise": "0.0.9", "numpy": "1.26"})
    assert "mcrise 0.0.9, numpy 1.26" in render([Chapter("old.png", old, [0])])
