import importlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import mcrise
import planted_folder
from mcrise._util.text import digits, magnitude, one_line, visible
from mcrise.cli import cli, main
from mcrise.demo import MODEL
from mcrise.demo.signs import stop
from planted import PatchModel, photo

UNTESTED = ("explain", "--model", "demo", "--trials", "none")
EXPLAIN = (*UNTESTED, "--n-masks", 64)
pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def image(tmp_path):
    stop().save(tmp_path / "stop.png")
    return tmp_path / "stop.png"


def run(*arguments):
    """The command as a user types it, but for the process: raises SystemExit like main."""
    cli([str(argument) for argument in arguments], standalone_mode=False)


def test_explain_writes_a_record_a_picture_and_a_summary(image, capsys, monkeypatch):
    monkeypatch.undo()
    run("explain", image, "--model", "demo", "--n-masks", 128)
    folder = image.with_name("stop.png.mcrise")
    written = sorted(path.name for path in folder.iterdir())
    assert written == ["explanation.png", "maps.png", "run.npz", "summary.json"]
    assert mcrise.load(folder).n_masks == 128
    with Image.open(folder / "maps.png") as picture:
        assert picture.width > 800
    shown = capsys.readouterr()
    assert "Prediction: stop" in shown.out
    assert str(folder / "maps.png") in shown.out
    assert "\r" not in shown.err  # the bar is for a terminal; a slow run tells lines


def test_json_is_alone_on_stdout(image, capsys):
    run(*EXPLAIN, image, "--json")
    shown = capsys.readouterr()
    summary = json.loads(shown.out)
    assert summary["predicted"][0]["label"] == "stop"
    assert summary["n_masks"] == 64
    assert [spot["fill"] for spot in summary["maps"][0]["strongest"]] == summary["fills"]


def test_quiet_says_nothing(image, capsys):
    run(*EXPLAIN, image, "--quiet")
    assert capsys.readouterr() == ("", "")


def test_a_finished_run_is_recognised_and_drawn_again_and_more_masks_go_on(image, monkeypatch):
    monkeypatch.chdir(image.parent)
    (image.parent / "counted.py").write_text(
        "import numpy as np\n"
        "calls = []\n"
        "def model(images):\n"
        "    calls.append(len(images))\n"
        "    red = images[..., 0].mean((1, 2)) / 255\n"
        "    return np.stack([red, 1 - red], axis=1)\n"
    )
    arguments = ("explain", image, "--model", "counted:model", "--quiet", "--size", "32x32",
                 "--mask-prob", 0.3)  # fmt: skip
    run(*arguments, "--n-masks", 128)
    import counted

    # First the untouched image and the masks, with four asked twice for jitter; then the trials.
    assert counted.calls[:6] == [1, 32, 32, 4, 32, 32]
    counted.calls.clear()
    run(*arguments, "--n-masks", 128)
    assert counted.calls == [1, 4]  # is it still the same model?
    counted.calls.clear()
    run("show", image.with_name("stop.png.mcrise"))
    assert counted.calls == []
    run(*arguments, "--n-masks", 256)
    assert counted.calls[:6] == [1, 4, 32, 32, 32, 32]  # and then trials, by better maps


def test_overwrite_replaces_another_run(image):
    folder = image.with_name("stop.png.mcrise")
    run(*EXPLAIN, image, "--quiet")
    run(*EXPLAIN, image, "--seed", 5, "--quiet", "--overwrite")
    assert mcrise.load(folder).plan.seed == 5


def test_show_draws_other_classes_and_estimators_without_a_model(image, capsys):
    run(*EXPLAIN, image, "--quiet")
    folder = image.with_name("stop.png.mcrise")
    run("show", folder, "--target", "yield", "--target", "no entry", "--out", folder / "other")
    out = capsys.readouterr().out
    assert "Map of 'yield': 64 masks" in out
    assert "Map of 'no entry': 64 masks" in out
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    run("show", folder / "run.npz", "--estimator", "debiased")
    assert (folder / "rise-debiased.png").exists()
    run("show", folder, "--target", "no entry")
    assert (folder / "maps-no-entry.png").exists()
    assert all(path.read_bytes() == content for path, content in before.items())  # kept beside


def test_colors_and_fills_are_the_same_option(image):
    for option in ("--colors", "--fills"):
        run(*EXPLAIN, image, option, "red,gray", "--quiet", "--overwrite")
        explanation = mcrise.load(image.with_name("stop.png.mcrise"))
        assert [fill.name for fill in explanation.plan.fills] == ["red", "gray"]


def test_the_command_and_the_library_say_the_same(image):
    run(*EXPLAIN, image, "--quiet", "--grid", "4x6")
    explanation = mcrise.load(image.with_name("stop.png.mcrise"))
    library = mcrise.explain(
        image, mcrise.load_model("demo"), n_masks=64, grid=(4, 6), trials=False
    )
    assert np.array_equal(explanation.maps().values, library.maps().values)


def test_version_and_module_work_in_a_process_of_their_own():
    printed = subprocess.run(
        [sys.executable, "-m", "mcrise", "--version"], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == f"mcrise, version {mcrise.__version__}"


def test_a_backend_that_matplotlib_does_not_have_keeps_the_command_from_nothing(tmp_path):
    explanation = mcrise.explain(photo(16, 24), PatchModel(slice(4, 12), slice(4, 12)), n_masks=64)
    explanation.save(tmp_path / "run.npz")
    shown = subprocess.run(
        [sys.executable, "-m", "mcrise", "show", str(tmp_path)],
        capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "nope"},
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    assert (tmp_path / "maps.png").exists()


def test_demo_explains_and_tries_every_sign_and_says_where_it_is(tmp_path, capsys, monkeypatch):
    demo = importlib.import_module("mcrise.cli.demo")
    some = {name: demo.SIGNS[name] for name in ("stop", *demo.TRUTH)}
    monkeypatch.setattr(demo, "N_MASKS", 64)
    monkeypatch.setattr(demo, "SIGNS", some)
    run("demo", "--out", tmp_path)
    out = capsys.readouterr().out
    assert len(list(tmp_path.glob("*/explanation.png"))) == 2
    assert len(list(tmp_path.glob("signs/*.png"))) == 2
    assert (tmp_path / "model.onnx").read_bytes() == MODEL.read_bytes()
    found, where, then = out.splitlines()[-3:]
    assert found.startswith("Found: ")
    assert found.rpartition("makes it")[2].startswith(" 'priority road' (0.")
    assert where == f"Report: {tmp_path / 'report.html'}"
    assert then.startswith("Next: mcrise explain ")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert report.count("<article") == 3  # of the washed-out sign two classes
    assert "(not tested)" not in report


def test_ctrl_c_keeps_what_was_computed(image, monkeypatch, capsys):
    def impatient(self, batch):
        if len(batch) > 1:
            impatient.calls += 1
        if impatient.calls > 5:
            raise KeyboardInterrupt
        return original(self, batch)

    impatient.calls = 0
    original = mcrise.Model.scores
    monkeypatch.setattr(mcrise.Model, "scores", impatient)
    argv = ["mcrise", "explain", str(image), "--model", "demo", "--n-masks", "640",
            "--mask-prob", "0.5"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130
    assert "goes on from there" in capsys.readouterr().err
    assert mcrise.load(image.with_name("stop.png.mcrise")).n_masks == 128


def test_more_continues_a_finished_run_where_it_lies(image, capsys):
    run(*EXPLAIN, image, "--quiet")
    folder = image.with_name("stop.png.mcrise")
    run(*UNTESTED, "--resume", folder, "--n-masks", 192, "--quiet")
    assert mcrise.load(folder).n_masks == 192
    run(*UNTESTED, "--resume", folder / "run.npz", "--max-masks", 256, "--tolerance", 0.01)
    assert "The limit of 256 masks (max_masks) was reached" in capsys.readouterr().out


def test_more_takes_the_labels_given_and_keeps_those_there_are(image, tmp_path):
    run(*EXPLAIN, image, "--quiet")
    folder, names = image.with_name("stop.png.mcrise"), tmp_path / "names.txt"
    names.write_text("".join(f"sign {n}\n" for n in range(43)))
    for masks, more in ((128, ("--labels", names)), (192, ())):
        run(*UNTESTED, "--resume", folder, "--n-masks", masks, "--quiet", *more)
        assert mcrise.load(folder).labels[0] == "sign 0"


def test_show_elsewhere_names_the_record_that_is_there(image, tmp_path, capsys):
    run(*EXPLAIN, image, "--quiet")
    run("show", f"{image}.mcrise", "--out", tmp_path / "drawn")
    shown = capsys.readouterr().out
    assert f"{image}.mcrise/run.npz" in shown
    assert (tmp_path / "drawn" / "maps.png").exists()


# ---- names and labels are others': they are shown, and do nothing

ACTING = "\x1b]0;renamed\x07\x7f\x9b2J\u202egnp.\u2069\r\nPrediction: forged"
SPELLED = r"\x1b]0;renamed\x07\u007f\x9b2J\u202egnp.\u2069\r\nPrediction: forged"


@pytest.fixture
def hostile(tmp_path):
    """A run of whose classes one is called that."""
    explanation = mcrise.explain(photo(16, 24), PatchModel(slice(4, 12), slice(4, 12)), n_masks=64)
    labels = [
        ACTING if k == explanation.resolve(None) else "other" for k in range(explanation.n_classes)
    ]
    replace(explanation, labels=tuple(labels)).save(tmp_path / "out" / "run.npz")
    return tmp_path / "out"


def assert_harmless(shown):
    assert "renamed" in shown
    assert visible(shown) == shown
    assert not [line for line in shown.splitlines() if line.startswith("Prediction: forged")]


def test_what_acts_on_a_terminal_is_spelled():
    assert one_line(ACTING) == SPELLED
    assert one_line("\ta\n") == r"\ta\n"
    assert visible("\ta\n") == "\ta\n"
    assert one_line("a\u200eb\u200fc\u061cd") == r"a\u200eb\u200fc\u061cd"
    shown = "arr\u00eat\u00a0! \u505c\u6b62 \U0001f6d1 \u05e2\u05e6\u05d5\u05e8 caf\udce9"
    assert one_line(shown) == shown


@pytest.mark.parametrize(
    "command",
    [("show", "{}"), ("compare", "{}", "--target", "0", "--target", "1"), ("diff", "{}", "{}")],
    ids=lambda command: command[0],
)
def test_a_label_is_shown_and_does_nothing(command, hostile, monkeypatch, capsys):
    monkeypatch.chdir(hostile.parent)
    run(*(word.format(hostile) for word in command))
    assert_harmless(capsys.readouterr().out)


def test_json_is_the_same_whatever_a_label_holds(hostile, capsys):
    run("show", hostile, "--json")
    shown = capsys.readouterr().out
    assert json.loads(shown)["predicted"][0]["label"] == ACTING
    assert visible(shown) == shown


def test_the_name_of_an_image_is_shown_and_does_nothing(tmp_path, capsys):
    image = tmp_path / f"{ACTING}.png"
    stop().save(image)
    run(*EXPLAIN, image)
    assert_harmless(capsys.readouterr().out)


def test_the_names_in_an_audit_are_shown_and_do_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, corner in (("before", 0.0), ("after", 0.3)):
        looks = [planted_folder.planted_looks(0, corner=corner)]
        labels = (ACTING, *planted_folder.LABELS[1:])
        planted_folder.write_audit(tmp_path / name, looks, labels=labels)
    run("diff", "before", "after")
    assert_harmless(capsys.readouterr().out)


@pytest.mark.parametrize(
    "typed",
    [
        ("show", ACTING),  # a sentence of ours
        ("explain", "a.png", ACTING, "--model", "demo"),  # of click's
        ("report", f"--{ACTING}"),
    ],
    ids=["ours", "argument", "option"],
)
def test_what_is_quoted_in_an_error_is_shown_and_does_nothing(typed, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mcrise", *typed])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    shown = capsys.readouterr().err
    assert_harmless(shown)
    assert shown.splitlines()[-1].startswith("Error: ")


def test_the_command_says_nothing_but_by_the_functions_that_make_it_harmless():
    files = Path(mcrise.__file__).parent.glob("cli/*.py")
    speaking = {file.name for file in files if "click.echo(" in file.read_text(encoding="utf-8")}
    assert speaking == {"output.py"}


def test_the_command_alone_shows_its_help(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mcrise"])
    with suppress(SystemExit):  # older clicks call that success
        main()
    shown = capsys.readouterr()
    assert "\nCommands:\n" in shown.out + shown.err


def test_an_audit_says_what_to_open_and_where_true_classes_are_from(monkeypatch):
    module = importlib.import_module("mcrise.cli.audit")
    inside = [SimpleNamespace(label=label, sure=False) for label in ("stop", "holiday", None)]
    result = SimpleNamespace(summary=("Found.",), path="here/audit", n_failed=0, n_images=3)
    prepared = SimpleNamespace(
        audit=SimpleNamespace(examples=inside, truths=[14, None, None]), run=lambda *given: result
    )
    monkeypatch.setattr(module, "prepare", lambda *given, **more: prepared)
    said = CliRunner().invoke(cli, ["audit", "signs", "--out", "here/audit"]).output
    assert "1 of 3 images lie in a folder named after a class" in said
    assert said.endswith("Open here/audit/audit.html in a browser.\n")


def test_a_command_that_is_not_known_has_a_suggestion():
    said = CliRunner().invoke(cli, ["exlpain"])
    assert said.exit_code == 2
    assert "'exlpain' is not a command; did you mean 'explain'?" in said.output


def test_numbers_of_any_size_are_readable():
    assert [digits(one) for one in (0.8191, 1.0, 4356.087, -12.345)] == [
        "0.819", "1.000", "4,356", "-12.3"
    ]  # fmt: skip
    assert [magnitude(one) for one in (0.0571, 1.24, 600.4, 4356.1)] == [
        "0.057", "1.2", "600", "4,356"
    ]  # fmt: skip
