"""`mcrise measure`: the numbers of the library, with their direction, and in the report."""

import json

import pytest
from click.testing import CliRunner

import mcrise
import planted_study
from mcrise.cli import cli
from mcrise.demo.signs import stop
from mcrise.metrics import METRICS, measure


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    mcrise.explain(stop(), mcrise.load_model("demo"), n_masks=128).save(folder / "run.npz")
    return folder


def told(*words):
    done = CliRunner().invoke(cli, ["measure", *map(str, words)], catch_exceptions=True)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_a_run_is_measured_as_the_library_does(run_folder):
    said = told(run_folder, "--step", "0.1")
    explanation, model = mcrise.load(run_folder / "run.npz"), mcrise.load_model("demo")
    curves = measure(explanation, model, step=0.1)
    written = json.loads((run_folder / "metrics.json").read_text())
    assert [curve["metric"] for curve in written["curves"]] == list(METRICS)
    for curve in written["curves"]:
        assert curve["area"] == curves[curve["metric"]].area
        assert curves[curve["metric"]].line() in said
    assert said.count("lower is better") == said.count("higher is better") == 2
    assert (run_folder / "curves.png").stat().st_size > 1000


def test_the_report_shows_the_curves_of_the_maps_it_shows(run_folder, tmp_path):
    told(run_folder, "--step", "0.1")
    for estimator, shown in (("smooth", True), ("paper", False)):
        out = tmp_path / f"{estimator}.html"
        CliRunner().invoke(
            cli, ["report", str(run_folder), "-o", str(out), "--estimator", estimator]
        )
        assert ("Quality of the maps" in out.read_text()) == shown


def test_an_image_is_explained_first_and_only_once(tmp_path):
    stop().save(tmp_path / "stop.png")
    given = [tmp_path / "stop.png", "--n-masks", "64", "--step", "0.5", "--metric", "ca_deletion",
             "--model", "planted_study:tint", "--mask-prob", "0.3"]  # fmt: skip
    planted_study.N_CALLS["images"] = 0
    first = told(*given)
    assert "CA-deletion" in first
    assert "insertion" not in first
    # Untouched, masks, a few again for jitter, the curve.
    assert planted_study.N_CALLS["images"] == 1 + 64 + 4 + 3
    planted_study.N_CALLS["images"] = 0
    assert told(*given) == first
    assert planted_study.N_CALLS["images"] == 1 + 4 + 3  # recognised, and the curve


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--step", "0"], "The step is 0"),
        (["--fill", "rgbwk"], "--fill rgbwk names 5 fills, but one is needed"),
        (["--target", "giraffe"], "'giraffe' is not a label"),
    ],
)
def test_what_cannot_be_measured_is_refused(run_folder, words, said):
    with pytest.raises(mcrise.InputError, match=said):
        told(run_folder, *words)


def test_an_image_whose_folder_holds_another_run_is_refused_with_a_way_out(tmp_path):
    stop().save(tmp_path / "stop.png")
    folder = tmp_path / "stop.png.mcrise"
    given = [tmp_path / "stop.png", "--n-masks", "64", "--metric", "deletion"]
    told(*given, "--colors", "red")
    with pytest.raises(mcrise.InputError, match=r"run.npz: .*other .*: choose another --out\.$"):
        told(*given)
    (folder / "run.npz").write_bytes(b"damaged")
    with pytest.raises(mcrise.InputError, match=r"choose another --out\.$"):
        told(*given)


def test_an_unknown_target_is_refused_before_the_work(tmp_path):
    stop().save(tmp_path / "stop.png")
    planted_study.N_CALLS["images"] = 0
    with pytest.raises(mcrise.InputError, match="giraffe"):
        told(tmp_path / "stop.png", "--model", "planted_study:tint", "--n-masks", "640",
             "--target", "giraffe")  # fmt: skip
    assert planted_study.N_CALLS["images"] <= 1 + 64


def test_what_was_assumed_is_said(tmp_path):
    stop().convert("L").save(tmp_path / "gray.png")
    text = told(tmp_path / "gray.png", "--n-masks", "64", "--metric", "deletion")
    assert "Note: " in text
    assert "mode L" in text
