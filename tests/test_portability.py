"""Other systems: fewer calls, no place to write, other separators and locales, no terminal."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbclient
import nbformat
import pytest

import mcrise
from mcrise import InputError
from mcrise._util.files import write_atomically
from mcrise._util.text import duration
from mcrise._util.threads import n_cores
from mcrise.batch.datasets import open_dataset
from mcrise.batch.engine import Stage, run, with_progress
from mcrise.batch.storage import Storage
from mcrise.batch.workers import ProcessPool, WorkerFactory, ending, inherited
from mcrise.demo.signs import SIGNS
from mcrise.masks import CHUNK
from mcrise.output import terminal as progress
from mcrise.output.terminal import ProgressLog, ProgressState
from planted import PatchModel, photo
from study_runs import SMALL, make_images, make_study

HERE = Path(__file__).parent
SOURCE = Path(mcrise.__file__).parent
MODEL = PatchModel(slice(4, 12), slice(4, 12))


def python(*arguments, folder, **variables):
    """A process that finds the package under test, with variables set, or unset by None."""
    env = {**os.environ, "PYTHONPATH": str(SOURCE.parent), **variables}
    env = {name: value for name, value in env.items() if value is not None}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=env, capture_output=True)


# ---- cores


def test_an_image_is_explained_where_affinity_cannot_be_asked(monkeypatch):
    """As on macOS and Windows."""
    expected = mcrise.explain(photo(16, 16), MODEL, n_masks=CHUNK)
    monkeypatch.delenv("MCRISE_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert n_cores() == 3
    found = mcrise.explain(photo(16, 16), MODEL, n_masks=CHUNK)
    assert (found.scores[0] == expected.scores[0]).all()
    monkeypatch.setattr(os, "cpu_count", lambda: None)  # where even that is unknown
    assert n_cores() == 1


def test_the_user_says_how_many_cores(monkeypatch):
    monkeypatch.setenv("MCRISE_THREADS", "5")
    assert n_cores() == 5
    monkeypatch.setenv("MCRISE_THREADS", "")
    assert n_cores() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("told", ["two", "0", "-1", "1.5"])
def test_a_number_of_cores_that_is_none_is_one_sentence(monkeypatch, told):
    monkeypatch.setenv("MCRISE_THREADS", told)
    with pytest.raises(InputError, match=f"MCRISE_THREADS is '{told}', but a whole number above 0"):
        mcrise.explain(photo(16, 16), MODEL, n_masks=CHUNK)


# ---- files


def test_a_file_is_as_private_as_the_umask_says_when_it_is_written(tmp_path):
    """Not as it said when the module was imported."""
    before = os.umask(0o077)
    try:
        Storage(tmp_path / "private").write(b"x")
        os.umask(0o002)
        Storage(tmp_path / "shared").write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o664


def test_the_package_never_touches_the_umask():
    """It belongs to all threads: for a moment, theirs would write files that all may write."""
    assert [file for file in SOURCE.rglob("*.py") if "os.umask" in file.read_text("utf-8")] == []


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_atomically(tmp_path / "file", b"old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    for write in (lambda: write_atomically(tmp_path / "file", b"new"),
                  lambda: Storage(tmp_path / "file").write(b"new")):  # fmt: skip
        with pytest.raises(OSError, match="No space left"):
            write()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_names_the_file_that_was_asked_for_and_leaves_nothing(tmp_path):
    """Not the temporary one, which nobody has heard of."""
    (tmp_path / "folder").mkdir()
    for name, kind in (("folder", IsADirectoryError), (300 * "x", OSError)):
        with pytest.raises(kind) as told:
            write_atomically(tmp_path / name, b"new")
        assert told.value.filename == str(tmp_path / name)
        assert told.value.filename2 is None
    assert os.listdir(tmp_path) == ["folder"]


# ---- the compiled loops


def copy_of_the_package(folder):
    """One that cannot keep what it compiles, not even by root: a file is in the folder's place."""
    shutil.copytree(SOURCE, folder / "mcrise", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "mcrise" / "__pycache__").touch()
    return folder


@pytest.mark.slow
def test_painting_needs_no_place_to_keep_what_it_compiles(tmp_path):
    """As in a container with read-only packages and no home."""
    code = (
        "import numpy as np, mcrise\n"
        "model = lambda images: images.mean(axis=(1, 2))[:, :2] / 510\n"
        "image = np.zeros((16, 16, 3), np.uint8)\n"
        "record = mcrise.explain(image, model, n_masks=64, score_kind='any')\n"
        "print(record.n_masks, mcrise.__file__)"
    )
    done = python(
        "-c", code, folder=tmp_path, PYTHONPATH=str(copy_of_the_package(tmp_path)),
        HOME="/dev/null/home", XDG_CACHE_HOME=None, NUMBA_CACHE_DIR=None,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().split() == ["64", str(tmp_path / "mcrise" / "__init__.py")]


def test_where_there_is_a_place_it_is_used(tmp_path):
    code = "from mcrise.painting.kernels import paint_rows; print(paint_rows.stats.cache_path)"
    done = python("-c", code, folder=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert done.stdout.decode().startswith(str(tmp_path / "kept")), done.stderr.decode()


# ---- processes and signals


def test_a_worker_ended_by_any_signal_is_told_of():
    told = [ending(SimpleNamespace(exitcode=code)) for code in (-int(signal.SIGTERM), -35, 7, None)]
    assert told == ["SIGTERM", "signal 35", "exit code 7", "exit code None"]  # 35 has no name


def test_a_worker_ignores_ctrl_c_also_where_it_does_not_inherit_that(monkeypatch):
    """Windows starts every process with the handler it has by default."""
    from mcrise.batch import workers

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(workers, "follow_parent", lambda: None)
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    try:
        workers.work_in_process(
            theirs, SimpleNamespace(attempt=lambda: workers.Failure("none")), None
        )
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    with inherited({}):
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_a_study_needs_no_fork(tmp_path, monkeypatch):
    make_images(tmp_path / "images", 1)
    study = make_study(tmp_path, SMALL)
    monkeypatch.delattr(os, "fork")
    crew = ProcessPool(WorkerFactory("planted_study:tint", {}, study.config, folder=str(HERE)), 1)
    assert [study.complete for _ in run(study, crew)][-1]


# ---- paths


def test_a_path_with_backslashes_is_the_same_place_where_they_separate(monkeypatch):
    folder = Storage(r"C:\images\signs")
    assert folder.name == r"C:\images\signs"  # here, they are letters like others
    monkeypatch.setattr(os, "sep", "\\")
    folder = Storage(r"C:\images\signs")
    assert (folder.path, folder.name) == ("C:/images/signs", "signs")
    assert (folder / "a" / "1.png").relative_to(folder) == "a/1.png"
    assert Storage(r"s3://bucket/a\b").path == r"s3://bucket/a\b"


def test_names_in_a_table_have_slashes_on_every_system(tmp_path, monkeypatch):
    make_images(tmp_path / "stop", 1)
    (tmp_path / "list.csv").write_text("path,label\nstop\\000.png,14\n")
    monkeypatch.setattr(os, "sep", "\\")
    assert [one.name for one in open_dataset(tmp_path / "list.csv")] == ["stop/000.png"]


# ---- locales


@pytest.fixture(scope="module")
def sign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locale")
    SIGNS["stop"]().save(folder / "stop.png")
    return folder


EXPLAIN = ("explain", "stop.png", "--trials", "none", "--model", "demo", "--n-masks", "64")
TESTED = ("explain", "stop.png", "--trials", "4", "--model", "demo", "--n-masks", "64")
COMMANDS = (TESTED, ("show", "stop.png.mcrise"), ("report", "stop.png.mcrise"))
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.slow
def test_no_file_is_read_or_written_in_the_encoding_of_the_locale(sign):
    for command in COMMANDS:
        done = python("-X", "warn_default_encoding", "-m", "mcrise", *command, folder=sign, **ASCII)
        told = done.stderr.decode()
        assert done.returncode == 0, told
        warned = re.findall(r"^(.*):\d+: EncodingWarning", told, re.M)
        assert [file for file in warned if Path(file).is_relative_to(SOURCE)] == []  # others' may
    assert "decision depend on" in (sign / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_sentences_are_printed_in_any_encoding(sign, encoding):
    code = (
        "from mcrise.cli.output import echo, install_encoding_fallback\n"
        "install_encoding_fallback(); echo('0.89 \\u2192 0.04')"
    )
    done = python("-c", code, folder=sign, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr.decode()
    arrow = {"latin-1": b"->", "cp1252": b"->"}.get(encoding, "→".encode())
    assert b"0.89 " + arrow in done.stdout


def test_a_name_that_is_no_text_is_printed_as_it_is(sign):
    name = os.fsencode(sign) + b"/caf\xe9.png"
    shutil.copy(os.fsencode(sign / "stop.png"), name)
    command = ("explain", os.fsdecode(name), *EXPLAIN[2:])
    done = python("-m", "mcrise", *command, folder=sign, PYTHONIOENCODING="utf-8")
    assert done.returncode == 0, done.stderr.decode()
    assert b"caf\xe9.png.mcrise/maps.png" in done.stdout


# ---- no terminal


class Clock:
    """Time that passes a little at each look."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def monotonic(self):
        self.now += self.step
        return self.now


def test_a_log_gets_a_line_after_five_seconds_and_then_every_half_minute(capsys, monkeypatch):
    monkeypatch.setattr(progress, "time", Clock(0.5))
    shown = list(progress.show_progress(iter(range(0, 6400, 64)), "masks",
                                   lambda done: ProgressState(done, 6400, "masks")))  # fmt: skip
    assert shown == list(range(0, 6400, 64))  # all is passed on
    lines = capsys.readouterr().err.splitlines()
    assert 3 <= len(lines) <= 4  # of a hundred seconds
    assert re.fullmatch(r"\d{3} of 6,400 masks, \d+ masks/s, \d+ s left", lines[0])


def test_a_short_run_leaves_no_line_in_a_log(capsys):
    mcrise.explain(photo(16, 16), MODEL, n_masks=128, progress=True)
    assert capsys.readouterr() == ("", "")


def test_a_line_tells_where_speed_and_time_left(monkeypatch):
    clock = Clock(0)
    monkeypatch.setattr(progress, "time", clock)
    telling = ProgressLog("masks")
    assert (
        telling.line(ProgressState(512, 8000, "masks")) == "512 of 8,000 masks"
    )  # resumed: no speed yet
    clock.now = 10
    line = telling.line(ProgressState(1024, 8000, "masks"))
    assert line == "1,024 of 8,000 masks, 51 masks/s, 2.3 min left"
    line = telling.line(ProgressState(1024, 1024, "stop   "))
    assert line == "stop: 1,024 of 1,024 masks, 51 masks/s"
    assert [duration(s) for s in (0.001, 0.42, 7, 119, 300, 7000, 9000)] == [
        "under 0.1 s", "0.42 s", "7 s", "119 s", "5 min", "117 min", "2.5 h"
    ]  # fmt: skip


def test_the_next_stage_has_a_speed_of_its_own(monkeypatch):
    clock = Clock(0)
    monkeypatch.setattr(progress, "time", clock)
    telling = ProgressLog("images")
    telling.line(ProgressState(0, 40, "images"))
    clock.now = 100
    telling.line(ProgressState(40, 40, "images"))
    assert telling.line(ProgressState(0, 40, "tried in")) == "tried in: 0 of 40 images"
    clock.now = 102
    line = telling.line(ProgressState(20, 40, "tried in"))
    assert line == "tried in: 20 of 40 images, 10 images/s, 2 s left"


@pytest.mark.slow
def test_explain_without_a_terminal_says_how_far_it_is(sign):
    hurried = (
        "import mcrise.output.terminal as progress\n"
        "progress.FIRST_LINE = progress.NEXT_LINE = 0.0\n"
        "from mcrise.cli import main; main()"
    )
    command = (*EXPLAIN[:-1], "128", "--overwrite")
    told = python("-c", hurried, *command, folder=sign).stderr.decode()
    assert re.search(r"^128 of 128 masks, .* masks/s$", told, re.M), told
    for silent in ("--quiet", "--json"):
        assert python("-c", hurried, *command, silent, folder=sign).stderr == b""


def test_a_study_without_a_terminal_says_how_far_it_is(capsys, monkeypatch):
    monkeypatch.setattr(progress, "time", Clock(4))
    studies = [SimpleNamespace(stage=Stage("images", n, 9), n_failed=2) for n in range(9)]
    assert list(with_progress(iter(studies), True)) == studies
    told = capsys.readouterr().err
    assert "images (2 failed): 4 of 9 images, 0.11 images/s, 45 s left\n" in told


@pytest.mark.slow
def test_a_notebook_shows_a_bar_and_figures_and_no_warning(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE.parent), str(HERE)]))
    cell = nbformat.v4.new_code_cell(
        "import mcrise, planted\n"
        "model = planted.PatchModel(slice(4, 12), slice(4, 12))\n"
        "record = mcrise.explain(planted.photo(16, 16), model, n_masks=256, progress=True)"
    )
    figures = nbformat.v4.new_code_cell("display(record.plot(), record.maps().plot())")
    notebook = nbformat.v4.new_notebook(cells=[cell, figures])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert ["image/png" in one["data"] for one in figures["outputs"]] == [True, True]
    shown, trials = cell["outputs"]  # replaced as they went, and nothing on stderr
    assert {one["output_type"] for one in cell["outputs"]} == {"display_data"}
    assert " trials" in trials["data"]["text/plain"]
    assert '<progress value="256" max="256">' in shown["data"]["text/html"]
    assert "256 of 256 masks, " in shown["data"]["text/plain"]
    assert json.dumps(shown).count("masks/s") == 2
