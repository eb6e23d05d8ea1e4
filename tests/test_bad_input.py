"""Whatever comes in, the command answers bad input with one sentence and leaves results alone.

Each case runs `mcrise.cli.main`, the real entry point, in a folder that holds the finished run
of an earlier command, `out/run.npz`; three cases run the whole command from outside.
"""

import json
import shutil
import socket
import struct
import subprocess
import sys
import zlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

import mcrise
from mcrise.cli import main
from planted import photo

pytestmark = pytest.mark.usefixtures("undrawn")

MODELS = """
import os
import numpy as np

n_calls = 0

def steady(images):
    global n_calls
    n_calls += 1
    red = images[..., 0].mean(axis=(1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)

def failing_sometimes(images):
    answer = steady(images)
    if n_calls == int(os.environ.get("FAILS_AT_CALL", 0)):
        raise OSError("the other machine is gone")
    return answer

def raises(images):
    raise RuntimeError("the driver is too old\\nand a second line")

def gives_nan(images):
    return steady(images) * np.nan

def gives_logits(images):
    return 8 * steady(images) - 3

def gives_pictures(images):
    return np.repeat(steady(images)[..., None], 3, axis=2)

def gives_one_number(images):
    return steady(images)[:, 0]

def loses_a_column(images):  # after the untouched image, which comes alone
    return steady(images) if len(images) == 1 else np.full((len(images), 3), 1 / 3)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Everything the cases need, and an earlier run of the command `explain()`."""
    folder = tmp_path_factory.mktemp("made")
    Image.fromarray(photo(16, 24)).save(folder / "photo.png")
    (folder / "bad_models.py").write_text(MODELS)
    (folder / "labels.txt").write_text("stop\nyield\n")
    (folder / "three.txt").write_text("stop\nyield\nturn right\n")

    (folder / "text.png").write_text("This is not a picture.\n")
    Image.fromarray(photo(64, 64)).save(folder / "whole.jpg")
    (folder / "truncated.jpg").write_bytes((folder / "whole.jpg").read_bytes()[:1500])
    Image.new("RGB", (1, 1)).save(folder / "dot.png")
    (folder / "bomb.png").write_bytes(png_header(40_000, 40_000))

    fixed_onnx(folder / "fixed.onnx", 16)
    fixed_onnx(folder / "typo.onnx", 16)
    (folder / "typo.toml").write_text("[input]\nmeen = 0.5\n")
    (folder / "corrupt.onnx").write_bytes((folder / "fixed.onnx").read_bytes()[:99])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder), *sys.path])
        patch.chdir(folder)
        model = mcrise.load_model("bad_models:steady", labels="labels.txt")
        mcrise.explain("photo.png", model, n_masks=64, save="out/run.npz")
        del sys.modules["bad_models"]

    run = (folder / "out" / "run.npz").read_bytes()
    for name, content in {
        "corrupt": run[: len(run) // 2],
        "flipped": run.replace(b"probability", b"probabiliti"),
        "text": b"This is not a record.\n",
        "newer": changed_meta(folder / "out" / "run.npz", "mcrise_format", 99),
    }.items():
        (folder / name).mkdir()
        (folder / name / "run.npz").write_bytes(content)
    (folder / "foreign").mkdir()
    np.savez(folder / "foreign" / "run.npz", weights=np.zeros(3))
    return folder


def png_header(rows, cols):
    """A PNG that promises many pixels and holds none."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    size = struct.pack(">IIBBBBB", cols, rows, 8, 2, 0, 0, 0)
    parts = (b"IHDR", size), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def fixed_onnx(path, side):
    """Mean color as probabilities, of images of one size only."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["means"]),
        helper.make_node("Flatten", ["means"], ["flat"]),
        helper.make_node("Softmax", ["flat"], ["scores"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ("N", 3, side, side))
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ("N", 3))
    model = helper.make_model(
        helper.make_graph(nodes, "graph", [images], [scores]),
        opset_imports=[helper.make_opsetid("", 13)],
    )
    model.ir_version = 8
    onnx.save(model, path)


def changed_meta(path, name, value):
    with np.load(path) as saved:
        arrays = dict(saved)
    meta = json.loads(arrays["meta"].tobytes()) | {name: value}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(path.with_name("changed.npz"), **arrays)
    return path.with_name("changed.npz").read_bytes()


@pytest.fixture
def desk(made, tmp_path, monkeypatch):
    """A fresh copy of all that, as the current folder."""
    shutil.copytree(made, tmp_path / "desk")
    monkeypatch.chdir(tmp_path / "desk")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "desk"), *sys.path])
    monkeypatch.setitem(sys.modules, "bad_models", None)
    del sys.modules["bad_models"]  # the next import finds this copy, with n_calls = 0
    return tmp_path / "desk"


@pytest.fixture
def mcrise_command(desk, monkeypatch, capfd):
    """The command as a function: arguments to exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mcrise", *arguments])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code
        return code, *capfd.readouterr()

    return run


def explain(*more, image="photo.png"):
    """The command of the earlier run; of an option given twice the last counts."""
    usual = "--model bad_models:steady --labels labels.txt --n-masks 64 --estimator centered"
    return ("explain", image, *usual.split(), "--out", "out", *more)


def with_model(spec, *more):
    """Another model is another run, so `out` may be replaced; but not by a run that failed."""
    return explain("--model", spec, "--overwrite", *more)


# The fact: what is typed, and what the sentence must say.
BAD_INPUT = {
    "an image that does not exist": (
        explain(image="none.png"),
        "none.png does not exist: give the path of an image",
    ),
    "a folder without images": (
        explain(image="out"),
        "out holds no images",
    ),
    "a text file named .png": (
        explain(image="text.png"),
        "text.png is not an image that Pillow can read: give a PNG or JPEG",
    ),
    "a truncated JPEG": (
        explain(image="truncated.jpg"),
        "truncated.jpg is damaged (image file is truncated",
    ),
    "an image of one pixel": (
        explain(image="dot.png"),
        "dot.png is 1 x 1 pixels, but each side needs at least 8",
    ),
    "a decompression bomb": (
        explain(image="bomb.png"),
        "bomb.png unpacks to more than the 100,000,000 pixels read here: make it smaller",
    ),
    "an unknown color": (
        explain("--colors", "rad,blue"),
        "'rad' is not a color or fill; did you mean 'red'?",
    ),
    "a color listed twice": (
        explain("--colors", "red,red"),
        "'red' is listed twice",
    ),
    "a mask_prob of 0": (
        explain("--mask-prob", "0"),
        "mask_prob is 0.0, but it must lie strictly between 0 and 1",
    ),
    "a mask_prob of 1": (
        explain("--mask-prob", "1"),
        "mask_prob is 1.0, but it must lie strictly between 0 and 1",
    ),
    "no masks": (
        explain("--n-masks", "0"),
        "n_masks is 0, but a whole number of at least 1, or auto, is needed",
    ),
    "a negative number of masks": (
        explain("--n-masks", "-64"),
        "'-64' is neither a whole number nor auto",
    ),
    "a tolerance of 0": (
        explain("--n-masks", "auto", "--tolerance", "0"),
        "tolerance is 0.0, but a relative error above 0 is needed",
    ),
    "a cap of 0": (
        explain("--n-masks", "auto", "--max-masks", "0"),
        "max_masks is 0, but a whole number of at least 1 is needed",
    ),
    "a negative seed": (
        explain("--seed", "-1"),
        "seed is -1, but a whole number from 0 to 2**64 - 1 is needed",
    ),
    "an unknown target": (
        explain("--target", "yeild"),
        "'yeild' is not a label of this model; did you mean 'yield'?",
    ),
    "a target out of range": (
        explain("--target", "2"),
        "The target is 2, but the model has classes 0 to 1",
    ),
    "labels of the wrong length": (
        explain("--labels", "three.txt"),
        "3 labels, but the model gives 2 scores per image",
    ),
    "labels that do not exist": (
        explain("--labels", "none.txt"),
        "none.txt cannot be read (No such file or directory)",
    ),
    "a grid that is none": (
        explain("--grid", "8by8"),
        "'8by8' is not of the form 8x8",
    ),
    "a grid without cells": (
        explain("--grid", "0x8"),
        "grid is (0, 8), but two whole numbers from 1 to 128 are needed",
    ),
    "a batch size that is none": (
        explain("--batch-size", "many"),
        "'many' is neither a whole number nor auto",
    ),
    "a batch size that divides no chunk": (
        explain("--batch-size", "7"),
        "batch_size is 7, but it must divide a chunk of 64 masks",
    ),
    "an estimator that is none": (
        explain("--estimator", "mean"),
        "The estimator is 'mean', but it must be one of rise, ",
    ),
    "a plan other than that in the folder": (
        explain("--seed", "1"),
        "Another run is there, which differs in seed: choose another --out, or --overwrite it",
    ),
    "an output folder below a file": (
        explain("--out", "photo.png/out"),
        "photo.png/out cannot be written (",
    ),
    "an output folder that is a file": (
        explain("--out", "photo.png"),
        "photo.png is a file): choose another --out",
    ),
    "an output folder with too long a name": (
        explain("--out", 300 * "x"),
        "cannot be written (File name too long)",
    ),
    "a model with too long a name": (
        explain("--model", 300 * "x" + ".onnx"),
        "File name too long",
    ),
    "a model file that does not exist": (
        with_model("none.onnx"),
        "The model none.onnx does not exist",
    ),
    "a corrupt ONNX file": (
        with_model("corrupt.onnx"),
        "corrupt.onnx is not a model that ONNX Runtime can load",
    ),
    "a file of no known kind": (
        with_model("photo.png"),
        "'photo.png', but an .onnx, .pt, .pt2, .xml, .tflite, .keras file, hf:FOLDER, package.mod",
    ),
    "a module that does not exist": (
        with_model("none:f"),
        "none:f cannot be imported (ModuleNotFoundError: No module named 'none')",
    ),
    "a size the model does not take": (
        with_model("fixed.onnx", "--size", "24x24"),
        "The size is 24 x 24, but the model takes only 16 x 16: leave the size out",
    ),
    "a size beyond all memory": (
        with_model("bad_models:steady", "--size", "99999"),
        "99999 x 99999, but at most 100,000,000 pixels",
    ),
    "an unknown setting beside the model": (
        with_model("typo.onnx"),
        "typo.toml: 'meen' is not a setting of [input]; did you mean 'mean'?",
    ),
    "a corrupt record in the folder": (
        explain("--out", "corrupt"),
        "corrupt/run.npz is not a run of mcrise, or it is damaged: choose another --out",
    ),
    "a foreign record in the folder": (
        explain("--out", "foreign"),
        "foreign/run.npz is not a run of mcrise, or it is damaged: choose another --out",
    ),
    "a newer record in the folder": (
        explain("--out", "newer"),
        "newer/run.npz has format 99, but this mcrise reads format 1: choose another --out",
    ),
    "no record to continue": (
        ("explain", "--resume", "none", "--model", "bad_models:steady"),
        "none does not exist: give a run.npz or the folder it is in",
    ),
    "a record to continue with another model": (
        ("explain", "--resume", "out", "--model", "bad_models:raises"),
        "Error: The run is of another model: model (bad_models:steady in the run, "
        "bad_models:raises now)",
    ),
    "neither an image nor a record to continue": (
        ("explain", "--model", "bad_models:steady"),
        "Give either an IMAGE to explain or --resume RUN",
    ),
    "no record to show": (
        ("show", "none"),
        "none does not exist: give a run.npz or the folder it is in",
    ),
    "a corrupt record to show": (
        ("show", "corrupt"),
        "corrupt/run.npz is not a run of mcrise, or it is damaged",
    ),
    "a record to show with bytes changed": (
        ("show", "flipped"),
        "flipped/run.npz is not a run of mcrise, or it is damaged",
    ),
    "a text file as a record to show": (
        ("show", "text/run.npz"),
        "text/run.npz is not a run of mcrise, or it is damaged",
    ),
    "a foreign record to show": (
        ("show", "foreign"),
        "foreign/run.npz is not a run of mcrise, or it is damaged",
    ),
    "a newer record to show": (
        ("show", "newer"),
        "has format 99, but this mcrise reads format 1: run the explanation again",
    ),
    "an unknown target to show": (
        ("show", "out", "--target", "stopp"),
        "'stopp' is not a label of this model; did you mean 'stop'?",
    ),
    "a place to show that is a file": (
        ("show", "out", "--out", "photo.png/maps"),
        "photo.png/maps cannot be written",
    ),
    "a record with too long a name": (
        ("show", 300 * "x"),
        "x cannot be read (File name too long): give a run.npz or the folder it is in",
    ),
    "a folder as the report": (
        ("report", "out", "-o", "text"),
        "'--out': text is a folder, but a file is needed: name one in it",
    ),
    "a report with too long a name": (
        ("report", "out", "-o", 300 * "x"),
        "x cannot be written (File name too long): choose another --out",
    ),
    "a folder for the verdicts": (
        ("check", "out", "--rules", "labels.txt", "--out", "text"),
        "'--out': text is a folder, but a file is needed: name one in it",
    ),
    "an address of another machine to serve at": (
        ("serve", "--host", "192.0.2.1", "--port", "0"),  # of a network that is for examples
        "The page cannot be served at 192.0.2.1, port 0 (Cannot assign requested address): give "
        "another --host",
    ),
    "an address to serve at that is none": (
        ("serve", "--host", 300 * "x"),
        "The page cannot be served at x",
    ),
}

FAILURES = {  # of the model: exit code 1
    "raises": "the model raised RuntimeError: the driver is too old.",
    "gives_nan": "gave NaN or infinite scores for 1 of 1 images: look for overflow",
    "gives_logits": "add a softmax (--softmax) if they are logits, or say what they are (--sc",
    "gives_pictures": "shape (1, 2, 3), but (1, number of classes) is needed; for pictures or",
    "gives_one_number": "give --score-kind independent if it is the probability of one class (--s",
    "loses_a_column": "Failed at chunk 0: the model gave 3 scores per image after 2 before",
}


def assert_one_sentence(stderr, sentence):
    said = [line for line in stderr.splitlines() if not line.startswith("  ")]  # a whole cause
    *usage, last = said
    assert last.startswith("Error: ")
    assert sentence in last
    assert last.endswith((".", "?"))
    assert not last.endswith("..")
    if usage:  # click's own, where it could not read an option
        assert usage[0].startswith("Usage: mcrise")
        assert len(usage) <= 3
    assert "Error" not in "".join(usage)


@pytest.mark.parametrize(("typed", "sentence"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_gets_one_sentence_and_exit_code_2(typed, sentence, mcrise_command, desk):
    before = contents(desk)
    code, stdout, stderr = mcrise_command(*typed)
    assert_one_sentence(stderr, sentence)
    assert (code, stdout) == (2, "")
    assert contents(desk) == before


@pytest.mark.parametrize(("name", "sentence"), FAILURES.items())
def test_a_model_that_fails_gets_one_sentence_and_exit_code_1(name, sentence, mcrise_command, desk):
    before = contents(desk)
    code, stdout, stderr = mcrise_command(*with_model(f"bad_models:{name}", "--json"))
    assert_one_sentence(stderr, sentence)
    assert (code, stdout) == (1, "")
    assert contents(desk) == before


def test_a_port_in_use_is_one_sentence_and_exit_code_2(mcrise_command, desk):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, stdout, stderr = mcrise_command("serve", "--port", port)
    assert_one_sentence(stderr, f"127.0.0.1, port {port} (Address already in use): give another "
                        "--port, or 0 for any that is free.")  # fmt: skip
    assert (code, stdout) == (2, "")


def test_what_is_quoted_in_a_sentence_is_cut_and_its_remedy_is_not(mcrise_command, desk):
    note = {"format": 10**6 * "1", "mcrise": "9"}
    (desk / "audit").mkdir()
    (desk / "audit" / "audit.json").write_text(json.dumps(note))
    (desk / "rules.toml").write_text('[[rule]]\nmeasure = "accuracy"\nat_least = 0.5\n')
    code, stdout, stderr = mcrise_command("check", "audit", "--rules", "rules.toml")
    assert_one_sentence(stderr, "The audit in audit has format 111")
    assert stderr.endswith("update mcrise.\n")
    assert len(stderr) < 1100
    assert (code, stdout) == (2, "")


def contents(folder):
    """Every file that a case might have touched or left behind."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_logits_are_explained_once_they_are_called_what_they_are(mcrise_command, desk):
    softmax = with_model("bad_models:gives_logits", "--softmax", "--out", "first")
    assert mcrise_command(*softmax)[0] == 0
    logits = with_model("bad_models:gives_logits", "--score-kind", "any", "--out", "second")
    assert mcrise_command(*logits)[0] == 0
    assert mcrise.load("second").kind == "any"


def test_an_unknown_target_costs_the_untouched_image_and_a_second_one_a_chunk(mcrise_command, desk):
    command = explain("--n-masks", "640", "--mask-prob", "0.3", "--out", "new")
    assert mcrise_command(*command, "--target", "yeild")[0] == 2
    assert sys.modules["bad_models"].n_calls == 1
    sys.modules["bad_models"].n_calls = 0
    assert mcrise_command(*command, "--target", "yield", "--target", "yeild")[0] == 2
    assert sys.modules["bad_models"].n_calls == 1 + 2 + 1  # two batches of 32, and one again


def test_after_a_failure_the_chunks_before_it_are_saved_and_the_same_command_goes_on(
    mcrise_command, desk, monkeypatch
):
    command = explain("--model", "bad_models:failing_sometimes", "--n-masks", "256",
                      "--mask-prob", "0.3", "--trials", "none", "--out", "resumed")  # fmt: skip
    # One call for the untouched image, then two batches of 32 a chunk, the first of them again for
    # jitter: the seventh is in chunk 2.
    monkeypatch.setenv("FAILS_AT_CALL", "7")
    code, _, stderr = mcrise_command(*command)
    assert code == 1
    assert_one_sentence(stderr, "Failed at chunk 2: the model raised OSError: the other machine is "
                        "gone. The 128 masks before it are saved in resumed/run.npz")  # fmt: skip
    assert mcrise.load("resumed").chunks == (0, 1)

    monkeypatch.delenv("FAILS_AT_CALL")
    sys.modules["bad_models"].n_calls = 0
    assert mcrise_command(*command)[0] == 0
    assert sys.modules["bad_models"].n_calls == 2 + 4  # is it still the model, chunks 2 and 3

    assert mcrise_command(*command, "--out", "whole")[0] == 0
    resumed, whole = mcrise.load("resumed"), mcrise.load("whole")
    for chunk in range(4):
        np.testing.assert_array_equal(resumed.scores[chunk], whole.scores[chunk])


def test_a_finished_run_is_drawn_again_when_its_model_is_recognised(mcrise_command, desk):
    code, stdout, stderr = mcrise_command(
        *explain("--target", "Yield", "--json", "--trials", "none")
    )
    assert (code, stderr) == (0, "")
    assert json.loads(stdout)["maps"][0]["label"] == "yield"
    assert sys.modules["bad_models"].n_calls == 2  # the untouched image and one batch


def test_the_command_as_a_process_leaves_no_traceback(desk):
    cases = {
        explain(image="truncated.jpg"): (2, "truncated.jpg is damaged"),
        with_model("corrupt.onnx"): (2, "corrupt.onnx is not a model that ONNX Runtime can load"),
        with_model("bad_models:raises"): (1, "the driver is too old"),
    }
    before = contents(desk)
    processes = {  # all at once: most of the time goes into starting
        typed: subprocess.Popen(
            [sys.executable, "-m", "mcrise", *typed],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for typed in cases
    }  # fmt: skip
    for typed, (wanted, sentence) in cases.items():
        stdout, stderr = processes[typed].communicate(timeout=120)
        assert_one_sentence(stderr, sentence)
        assert (processes[typed].returncode, stdout) == (wanted, "")
    assert contents(desk) == before
