"""A study: what is in its table, and that it is the same however often it was killed."""

import csv
import io
import json
import math
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import mcrise
import planted_study
from mcrise import InputError, McriseError, Model, ModelError
from mcrise.batch.datasets import open_dataset, sample
from mcrise.batch.storage import Storage
from mcrise.batch.tasks import Failure
from mcrise.cli import cli
from mcrise.config import RunConfig
from mcrise.metrics import BLACK, measure
from mcrise.studies.api import run_study
from mcrise.studies.config import METHODS, StudyConfig, StudyWorker
from mcrise.studies.results import COLUMNS, intervals, summarise, table_bytes, timing
from study_runs import (
    HERE,
    RUN,
    command,
    finish,
    make_images,
    make_study,
    ran,
    table,
)


def test_the_table_has_a_row_per_image_and_method_sorted(tmp_path):
    make_images(tmp_path / "images")
    finish(make_study(tmp_path))
    found = table(tmp_path / "out")
    assert list(found) == list(COLUMNS)
    assert list(zip(found["image"], found["method"], strict=True)) == [
        (f"{n:03d}.png", method) for n in range(3) for method in METHODS
    ]
    assert set(found["error"]) == {None}
    by_method = dict(zip(found["method"], found["n_masks"], strict=True))
    assert by_method == {"debiased": 128, "lime": 50, "mcrise": 128, "random": 0, "rise": 128}
    for metric in ("deletion", "insertion", "ca_deletion", "ca_insertion"):
        assert all(0 <= value <= 1 for value in found[metric])
    times = (tmp_path / "out" / "timing.csv").read_text().splitlines()
    assert len(times) == 1 + 3 * len(METHODS)
    assert (tmp_path / "out" / "examples.png").stat().st_size > 1000


def test_no_name_of_an_image_is_a_formula_to_a_spreadsheet():
    names = ["=cmd|x/a.png", "+1.png", "-1.png", "@a.png", "\ta.png", "\ra.png"]
    rows = [
        {"image": name, "method": "rise", "seconds": (-0.5, 1.0)}
        for name in (*names, "a=b.png", "a\r=b.png", 'a\n"=b.png')
    ]
    found = list(csv.DictReader(io.StringIO(timing(rows).decode(), newline="")))
    told = [*(f"'{name}" for name in names[:-1]), r"'\ra.png", "a=b.png", r"a\r=b.png"]
    assert [row["image"] for row in found] == [*told, 'a\n"=b.png']
    assert found[0]["explain_seconds"] == "-0.5"  # a number stays one
    assert table_bytes(["a"], [{"a": -1.5}]) == b"a\n-1.5\n"


def test_the_rows_are_those_of_the_library(tmp_path):
    """What the study says of mcrise is what explaining and measuring by hand says."""
    make_images(tmp_path / "images", 1)
    finish(make_study(tmp_path))
    path = tmp_path / "images" / "000.png"
    model = Model(planted_study.tint, identity="planted")
    explanation = mcrise.explain(path, model, n_masks=128, grid=(3, 3), mask_prob=0.5)
    curves = measure(explanation, model, step=0.1)
    found = table(tmp_path / "out")
    row = found["method"].index("mcrise")
    for metric, curve in curves.items():
        assert found[metric][row] == curve.area


def test_a_finished_image_is_not_asked_about_again(tmp_path):
    make_images(tmp_path / "images")
    finish(make_study(tmp_path))
    before = (tmp_path / "out" / "results.parquet").read_bytes()
    planted_study.N_CALLS["images"] = 0
    study = make_study(tmp_path)
    assert study.complete
    finish(study)
    assert planted_study.N_CALLS["images"] == 0
    assert (tmp_path / "out" / "results.parquet").read_bytes() == before


def test_another_study_in_the_folder_is_refused_unless_overwritten(tmp_path):
    make_images(tmp_path / "images", 1)
    finish(make_study(tmp_path))
    other = StudyConfig(methods=("random",), step=0.1)
    with pytest.raises(InputError, match=r"holds another study \(other settings\)"):
        make_study(tmp_path, other)
    finish(make_study(tmp_path, other, overwrite=True))
    assert table(tmp_path / "out")["method"] == ["random"]


def test_a_note_that_is_nested_without_end_is_another_study(tmp_path):
    make_images(tmp_path / "images", 1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "study.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match="holds another study"):
        make_study(tmp_path)


def test_overwriting_replaces_another_study_not_this_one(tmp_path):
    make_images(tmp_path / "images", 2)
    finish(make_study(tmp_path, overwrite=True))
    assert make_study(tmp_path, overwrite=True).complete


def test_other_data_labels_or_versions_make_another_study(tmp_path, monkeypatch):
    make_images(tmp_path / "images", 1)
    finish(make_study(tmp_path, data="train"))
    with pytest.raises(InputError, match=r"other data\)"):
        make_study(tmp_path, data="test")
    with pytest.raises(InputError, match=r"other labels\)"):
        make_study(tmp_path, data="train", labels=("dark", "bright"))
    monkeypatch.setattr("mcrise.studies.study.VERSION", "99")
    with pytest.raises(InputError, match=r"other mcrise\)"):
        make_study(tmp_path, data="train")


@pytest.mark.parametrize("note", [None, "[]", "{}", "{"])
def test_foreign_files_in_the_folder_are_not_taken_for_finished_images(tmp_path, note):
    make_images(tmp_path / "images", 1)
    (tmp_path / "out" / "images").mkdir(parents=True)
    (tmp_path / "out" / "images" / "000000.json").write_text("{}")
    if note is not None:
        (tmp_path / "out" / "study.json").write_text(note)
    with pytest.raises(InputError, match="holds another study"):
        make_study(tmp_path)


def test_a_folder_in_use_keeps_what_is_not_of_a_study(tmp_path):
    make_images(tmp_path / "images", 1)
    mine = [tmp_path / name for name in ("images/000000.txt", "images/note.json", "examples/a.txt")]
    for file in mine:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    finish(make_study(tmp_path, out="."))
    finish(make_study(tmp_path, StudyConfig(methods=("random",)), out=".", overwrite=True))
    assert [file.read_text() for file in mine] == ["mine"] * 3


def test_a_damaged_file_is_named(tmp_path):
    make_images(tmp_path / "images", 1)
    finish(make_study(tmp_path))
    (tmp_path / "out" / "images" / "000000.json").write_text("{")
    with pytest.raises(McriseError, match=r"000000\.json is damaged: remove it"):
        finish(make_study(tmp_path))


@pytest.mark.parametrize(
    "wrong",
    [{"mask_prob": 1.5}, {"grid": (0, 8)}, {"seed": -1}, {"seed": 2**32}, {"step": 0.0},
     {"batch_size": 5}, {"batch_size": "auto"}, {"fills": "octarine"}, {"fills": [BLACK]},
     {"estimators": ()}, {"estimators": ["rough"]}, {"methods": []}, {"methods": "rise,rise"},
     {"lime_samples": 0}, {"images": 0}, {"workers": 0}, {"timeout": 0}, {"retries": -1}],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused_before_any_work(tmp_path, wrong):
    images = make_images(tmp_path / "images", 1)
    with pytest.raises(InputError):
        run_study(images, planted_study.tint, out=tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_the_settings_are_written_by_which_a_study_is_known():
    assert StudyConfig().to_json() == {
        "fills": "rgbwk", "grid": [8, 8], "mask_prob": 0.5, "seed": 0, "n_masks": 2000,
        "tolerance": 0.3, "max_masks": 8000, "batch_size": 32,
        "methods": ["lime", "rise", "mcrise"], "estimators": ["smooth"], "step": 0.01,
        "lime_samples": 1000, "best_color": False,
    }  # fmt: skip


def test_a_failure_reads_the_same_whichever_chunk_failed_first(tmp_path):
    make_images(tmp_path / "images", 1)

    def broken(images):
        if len(images) > 1:
            raise RuntimeError("out of order")
        return planted_study.tint(images)

    protocol = StudyConfig(
        RunConfig(n_masks=1024, grid=(3, 3), mask_prob=0.3), ("mcrise",), step=0.1
    )
    worker = StudyWorker(Model(broken, identity="planted"), protocol)
    study = make_study(tmp_path, protocol)
    reasons = {worker.attempt(study.next_task()).reason for _ in range(2)}
    assert reasons == {"the model raised RuntimeError: out of order"}


def test_automatic_numbers_of_masks_are_those_that_were_needed(tmp_path):
    make_images(tmp_path / "images", 1)
    config = RunConfig(n_masks="auto", tolerance=0.2, grid=(3, 3))
    finish(make_study(tmp_path, StudyConfig(config, ("mcrise",), step=0.1)))
    model = Model(planted_study.tint, identity="planted")
    explanation = mcrise.explain(
        tmp_path / "images" / "000.png", model, n_masks="auto", tolerance=0.2, grid=(3, 3)
    )
    assert table(tmp_path / "out")["n_masks"] == [explanation.n_masks]


def test_a_corrupt_image_stops_the_study_or_becomes_rows_with_the_reason(tmp_path):
    make_images(tmp_path / "images")
    (tmp_path / "images" / "001.png").write_bytes(b"not a picture")
    with pytest.raises(InputError, match=r"001\.png: .* --keep-going skips such images"):
        finish(make_study(tmp_path))
    study = make_study(tmp_path, keep_going=True)
    assert study.done == {0}  # what was finished before it is kept
    lines = finish(study)
    assert "1 of 3 images failed and are left out:" in lines
    found = table(tmp_path / "out")
    assert len(found["image"]) == 3 * len(METHODS)
    for image, error, area in zip(found["image"], found["error"], found["deletion"], strict=True):
        assert (error is not None) == (area is None) == (image == "001.png")


def test_failed_images_are_tried_again_only_on_request(tmp_path):
    make_images(tmp_path / "images", 2)
    good = (tmp_path / "images" / "001.png").read_bytes()
    (tmp_path / "images" / "001.png").write_bytes(b"not a picture")
    finish(make_study(tmp_path, keep_going=True))
    (tmp_path / "images" / "001.png").write_bytes(good)
    assert make_study(tmp_path, keep_going=True).complete
    study = make_study(tmp_path, keep_going=True, retry_failed=True)
    assert study.done == {0}
    finish(study)
    assert set(table(tmp_path / "out")["error"]) == {None}


def test_a_model_that_raises_is_named_with_the_image(tmp_path):
    make_images(tmp_path / "images", 1)

    def broken(images):
        raise RuntimeError("out of order")

    with pytest.raises(ModelError, match=r"000\.png: .*out of order"):
        finish(make_study(tmp_path), broken)


def test_a_sample_is_random_but_the_same_for_the_same_seed(tmp_path):
    examples = open_dataset(make_images(tmp_path / "images", 20))
    one, again, other = sample(examples, 5, 0), sample(examples, 5, 0), sample(examples, 5, 1)
    assert one == again != other
    assert one == sorted(one, key=lambda example: example.name)
    assert sample(examples, 50, 0) == examples


def test_differences_are_paired_by_image():
    """RISE differs wildly among images, the other is always 0.1 better: of that we are sure."""
    rise = np.linspace(0, 1, 30)
    rows = [
        {"image": str(n), "method": method, "estimator": method,
         **dict.fromkeys(("deletion", "insertion", "ca_deletion", "ca_insertion"), value)}
        for n in range(30)
        for method, value in (("rise", rise[n]), ("mcrise", rise[n] - 0.1))
    ]  # fmt: skip
    found = {(row["method"], row["metric"]): row for row in summarise(rows, seed=0)}
    row = found["mcrise", "ca_deletion"]
    assert row["mean_high"] - row["mean_low"] > 0.1
    assert row["difference_low"] == pytest.approx(-0.1)
    assert row["difference_high"] == pytest.approx(-0.1)


def test_one_image_has_no_interval(tmp_path):
    make_images(tmp_path / "images", 1)
    protocol = StudyConfig(RunConfig(n_masks=64), ("random", "rise"), step=0.5)
    lines = finish(make_study(tmp_path, protocol))
    assert not any("[" in line for line in lines)


def test_each_color_is_tried_for_methods_that_name_none(tmp_path):
    """Class 0 is how red the image is, class 1 the rest: each loses by the other's color."""
    make_images(tmp_path / "images", 6)
    config = RunConfig(n_masks=64, fills="red,blue")
    protocol = StudyConfig(config, ("mcrise", "rise"), step=0.1, best_color=True)
    lines = finish(make_study(tmp_path, protocol))
    predicted = set()
    for file in (tmp_path / "out" / "images").iterdir():
        one = json.loads(file.read_text())
        rows = {row["method"]: row for row in one["rows"]}
        assert "colors" not in rows["mcrise"]
        worse, better = ("red", "blue") if one["predicted"] == 0 else ("blue", "red")
        assert rows["rise"]["colors"][better] < rows["rise"]["colors"][worse]
        predicted.add(one["predicted"])
    assert predicted == {0, 1}
    assert any(line.startswith("| rise, best color | rise |") for line in lines)


def test_the_stricter_comparison_is_with_the_best_color_of_each_image():
    rows = []
    for n in range(10):
        base = {"image": str(n), "insertion": 0.5, "ca_insertion": 0.5}
        plain = dict.fromkeys(("deletion", "ca_deletion"), 0.4 + n / 100)
        own = dict.fromkeys(("deletion", "ca_deletion"), 0.1)
        colors = {"red": 0.3, "blue": 0.2} if n % 2 else {"red": 0.2, "blue": 0.3}
        rows += [
            {**base, **plain, "method": "rise", "estimator": "rise", "colors": colors},
            {**base, **own, "method": "mcrise", "estimator": "smooth"},
        ]
    found = {(row["method"], row["metric"]): row for row in summarise(rows, seed=0)}
    own, best = found["mcrise", "ca_deletion"], found["rise", "best_color_deletion"]
    assert own["difference"] == pytest.approx(0.1 - 0.445)
    assert own["best_difference"] == pytest.approx(-0.1)
    assert own["best_difference_high"] == pytest.approx(-0.1)
    assert best["mean"] == pytest.approx(0.2)
    assert best["difference"] == pytest.approx(0.2 - 0.445)
    assert math.isnan(best["best_difference"])  # it is what the others are compared with
    assert math.isnan(found["rise", "ca_deletion"]["difference"])


def test_the_bootstrap_interval_is_that_of_a_mean():
    """Of 400 normal values the mean has standard error 1/20: an interval of about 4/20."""
    values = np.random.default_rng(0).normal(size=(400, 1))
    middle, low, high = intervals(values, seed=0)
    assert low < middle == values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 / 20, rel=0.15)


# ---- the function

GIVEN = {"methods": "rise,mcrise,random", "n_masks": 128, "grid": 3, "step": 0.1}


def test_a_model_in_memory_gives_the_table_that_workers_give(tmp_path):
    images = make_images(tmp_path / "images")
    here = run_study(images, planted_study.tint, out=tmp_path / "here", **GIVEN)
    there = run_study(images, "planted_study:tint", out=tmp_path / "there", workers=1, **GIVEN)
    assert Path(here.path).read_bytes() == Path(there.path).read_bytes()
    assert (tmp_path / "here/summary.csv").read_bytes() == (
        tmp_path / "there/summary.csv"
    ).read_bytes()


def test_a_study_that_chooses_mask_prob_is_the_same_on_any_number_of_workers(tmp_path):
    """And has the maps that `explain` would have, image by image."""
    images = make_images(tmp_path / "images")
    given = {**GIVEN, "mask_prob": "auto", "estimators": "centered"}
    here = run_study(images, planted_study.tint, out=tmp_path / "here", **given)
    there = run_study(images, "planted_study:tint", out=tmp_path / "there", workers=2, **given)
    assert Path(here.path).read_bytes() == Path(there.path).read_bytes()
    rows = {row["image"]: row for row in here.rows() if row["method"] == "mcrise"}
    for path in sorted(images.glob("*.png")):
        explanation = mcrise.explain(path, planted_study.tint, n_masks=128, grid=3)
        curves = mcrise.measure(explanation, planted_study.tint, estimator="centered", step=0.1)
        assert rows[path.name]["ca_deletion"] == pytest.approx(curves["ca_deletion"].area)


def test_the_result_says_where_the_table_is_and_reads_it(tmp_path):
    images = make_images(tmp_path / "images")
    (images / "001.png").write_bytes(b"not a picture")
    given = {**GIVEN, "out": tmp_path / "out", "keep_going": True}
    found = run_study(images, planted_study.tint, **given)
    assert found.path == str(tmp_path / "out" / "results.parquet")
    assert (found.n_images, found.n_failed) == (3, 1)
    assert "\n".join(found.summary) + "\n" == (tmp_path / "out/summary.md").read_text()
    rows = found.rows()
    assert [(row["image"], row["method"]) for row in rows] == [
        (f"{n:03d}.png", method) for n in range(3) for method in ("mcrise", "random", "rise")
    ]
    assert {row["image"] for row in rows if row["error"]} == {"001.png"}
    assert found.table().column_names == list(COLUMNS)
    planted_study.N_CALLS["images"] = 0
    assert run_study(images, planted_study.tint, **given) == found
    assert planted_study.N_CALLS["images"] == 0


def test_a_model_in_memory_that_raises_is_tried_again_as_often_as_asked(tmp_path):
    images = make_images(tmp_path / "images", 1)
    calls = []

    def broken(images):
        calls.append(len(images))
        raise RuntimeError("out of order")

    with pytest.raises(ModelError, match=r"000\.png: .*out of order"):
        run_study(images, broken, out=tmp_path / "out", methods="random", retries=3)
    assert calls == [1] * 4


@pytest.mark.parametrize("more", [{"workers": 2}, {"ray": ""}])
def test_a_model_in_memory_is_not_for_other_processes(tmp_path, more):
    images = make_images(tmp_path / "images", 1)
    with pytest.raises(InputError, match="in memory cannot be sent to other processes"):
        run_study(images, planted_study.tint, out=tmp_path / "out", **more)


def test_a_keyword_that_a_study_does_not_have_is_refused_and_colors_are_fills(tmp_path):
    with pytest.raises(InputError, match=r"'n_mask' is not a setting of run_study; did you mean"):
        run_study(tmp_path, n_mask=64, out=tmp_path / "out")  # type: ignore[call-arg]
    with pytest.raises(InputError, match="A fill is Solid"):
        run_study(tmp_path, colors=[mcrise.Solid((1, 2, 3))], out=tmp_path / "out")
    with pytest.raises(InputError, match="Both fills and colors"):
        run_study(tmp_path, colors=["red"], fills="blue", out=tmp_path / "out")


def test_a_script_needs_no_guard_around_a_study(tmp_path):
    """Worker processes do not run the program that started them."""
    make_images(tmp_path / "images", 2)
    (tmp_path / "script.py").write_text(
        "from mcrise.studies.api import run_study\n"
        "found = run_study('images', methods='random', step=0.5, out='out', workers=1)\n"
        "print(len(found.rows()))\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("2\n", "")


# ---- the command


class Killed(BaseException):
    """Ends a process, as far as what it wrote is concerned."""


def killed_at(patch, n):
    """End at the nth write from now: every other time before it, else just after it."""
    real, left = Storage.write, [n]

    def write(file, content):
        left[0] -= 1
        if left[0] >= 0 or n % 2:
            real(file, content)
        if left[0] < 0:
            raise Killed

    patch.setattr(Storage, "write", write)


@pytest.mark.slow
def test_ended_at_any_write_a_study_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    make_images(tmp_path / "images", 2)
    protocol = StudyConfig(RUN, ("mcrise", "random"), step=0.1)
    whole = finish(make_study(tmp_path, protocol, out="whole"))
    for n in range(100):
        with monkeypatch.context() as patch:
            killed_at(patch, n)
            try:
                finish(make_study(tmp_path, protocol, out=f"{n}"))
                break
            except Killed:
                pass
        assert finish(make_study(tmp_path, protocol, out=f"{n}")) == whole
        for name in ("results.parquet", "summary.md", "summary.csv"):
            own, other = (tmp_path / out / name for out in (f"{n}", "whole"))
            assert own.read_bytes() == other.read_bytes()
    assert n > 8


def test_a_model_that_says_itself_how_images_go_in_is_studied(tmp_path):
    images = make_images(tmp_path / "images", 1)
    run_study(images, planted_study.model, out=tmp_path / "out", **GIVEN)
    assert set(table(tmp_path / "out")["label"]) <= {"red", "other"}


def test_bad_input_is_one_sentence(tmp_path, monkeypatch):
    make_images(tmp_path / "images", 2)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "images" / "list.csv").write_text("000.png,giraffe\n")
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    images = str(tmp_path / "images")
    for given, kind, said in (
        ([str(tmp_path / "empty"), "--out", "x"], InputError, "holds no images"),
        ([str(tmp_path / "gone"), "--out", "x"], InputError, "There is no"),
        ([images + "/list.csv", "--out", "o"], InputError, "'giraffe', but the model"),
        ([images, "--out", "file/o"], McriseError, "cannot be written"),
        ([images, "--methods", "rise,gradcam", "--out", "x"], InputError, "one of debiased, lime"),
        ([images, "--images", "0", "--out", "x"], InputError, "at least 1"),
        ([images, "--model", "gone.onnx", "--out", "x"], InputError, "does not exist"),
        ([images, "--seed", "-1", "--images", "1", "--out", "x"], InputError, "seed is -1"),
        ([images, "--threads", "2", "--out", "x"], InputError, "one thread"),
        ([images, "--batch-size", "auto", "--out", "x"], InputError, "The batch size is auto"),
        ([images, "--out", images], InputError, "choose another --out"),
        ([images, "--out", ""], InputError, "is empty"),
        (["s3://nowhere/x", "--out", "x"], InputError, "cannot be read"),
    ):
        with pytest.raises(kind) as refused:  # `main` makes one line and an exit code of it
            cli(["study", *given], standalone_mode=False)
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)
    done = subprocess.run(
        [sys.executable, "-m", "mcrise", "study", "empty", "--out", "x"], capture_output=True,
        text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_earlier_rows_stay(tmp_path):
    """Files may not grow beyond 5 kB, so that small ones fit and the table does not."""
    make_images(tmp_path / "images", 3)
    finish(make_study(tmp_path, out="whole"))  # warms caches that would not fit either

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    done = subprocess.run(
        command(tmp_path), cwd=HERE, capture_output=True, text=True, preexec_fn=limit
    )
    assert done.returncode == 1
    assert "cannot be written (File too large)" in done.stderr
    assert "Traceback" not in done.stderr
    kept = sorted((tmp_path / "out").glob("images/*.json"))
    assert len(kept) == 3
    assert all(json.loads(file.read_text())["rows"] for file in kept)
    assert not list((tmp_path / "out").glob("**/.*"))  # no torn files lie about
    assert ran(tmp_path).returncode == 0


def test_the_status_is_read_from_elsewhere(tmp_path):
    make_images(tmp_path / "images", 2)
    run_study(tmp_path / "images", planted_study.tint, out=tmp_path / "out", **GIVEN)
    shown = CliRunner().invoke(cli, ["status", str(tmp_path / "out")])
    assert shown.stdout == "2 of 2 images done, 0 failed.\n"
    status = json.loads(CliRunner().invoke(cli, ["status", str(tmp_path / "out"), "--json"]).stdout)
    assert (status["images"], status["done"], status["complete"]) == (2, 2, True)
    with pytest.raises(InputError, match="holds no study and no audit"):
        cli(["status", str(tmp_path)], standalone_mode=False)


# ---- retries


def test_an_image_has_one_budget_of_retries_whatever_its_tasks(tmp_path):
    """Of five tasks each fails once at a time: with two retries, the third failure is the last."""
    make_images(tmp_path / "images", 1)
    protocol = StudyConfig(RunConfig(n_masks=2048, mask_prob=0.3), ("mcrise",), step=0.1)
    study = make_study(tmp_path, protocol, retries=2)
    for _ in range(2):
        study.take(study.next_task(), Failure("no answer"))
    with pytest.raises(ModelError, match=r"000\.png: no answer. 0 of 1 images are finished"):
        study.take(study.next_task(), Failure("no answer"))


def test_tasks_that_fail_together_count_once(tmp_path):
    """As when a machine goes down on which several workers were busy with one image."""
    make_images(tmp_path / "images", 1)
    protocol = StudyConfig(RunConfig(n_masks=2048, mask_prob=0.3), ("mcrise",), step=0.1)
    study = make_study(tmp_path, protocol, retries=1)
    busy = [study.next_task() for _ in range(4)]
    for task in busy:
        study.take(task, Failure("the machine went down"))
    assert not study.failed
    with pytest.raises(ModelError, match="the machine went down"):
        study.take(study.next_task(), Failure("the machine went down"))


def test_what_another_try_would_not_change_is_not_tried_again(tmp_path):
    make_images(tmp_path / "images", 1)
    study = make_study(tmp_path, retries=5, keep_going=True)
    study.take(study.next_task(), Failure("no picture", InputError, final=True))
    assert (study.complete, study.failed, study.next_task()) == (True, {0}, None)
