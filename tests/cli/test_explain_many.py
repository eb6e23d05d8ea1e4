"""`mcrise explain` of several images: folders, patterns, lists and standard input."""

import io
import json
import sys

import pytest

import mcrise
from mcrise.cli import main
from mcrise.demo.signs import no_entry, stop

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = ("--model", "demo", "--n-masks", "64", "--mask-prob", "0.3", "--trials", "none")


@pytest.fixture
def signs(tmp_path, monkeypatch):
    """Two pictures and a damaged one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "signs").mkdir()
    stop().save("signs/stop.png")
    no_entry().save("signs/no-entry.png")
    (tmp_path / "signs" / "bad.png").write_bytes(b"no picture")
    return tmp_path / "signs"


@pytest.fixture
def typed(monkeypatch, capsys):
    """Run the command; gives its exit code, what it printed and what it complained about."""

    def run(*words, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["mcrise", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            main()
            code = 0
        except SystemExit as stopped:
            code = stopped.code
        return code, *capsys.readouterr()

    return run


def test_a_folder_gives_a_line_of_json_per_image_and_goes_on_past_a_bad_one(signs, typed):
    code, out, err = typed("explain", "signs", "--jsonl", *QUICK)
    bad, first, second = map(json.loads, out.splitlines())
    assert (bad["image"], list(bad)) == ("signs/bad.png", ["image", "error"])
    assert [one["predicted"][0]["label"] for one in (first, second)] == ["no entry", "stop"]
    assert mcrise.load(second["run"]).view.name == "stop.png"
    assert code == 2
    assert "signs/bad.png is not an image" in err
    assert "1 of 3 images has no explanation; it is named above" in err


def test_a_missing_path_of_a_list_does_not_keep_the_others_back(signs, typed):
    words = ("missing.png", "signs/n*.png", "signs/x*.png", "--out", "runs", *QUICK)
    code, out, err = typed("explain", *words)
    assert code == 2
    assert "signs/no-entry.png:\nPrediction: no entry" in out
    assert "missing.png does not exist" in err
    assert "No image is named like signs/x*.png" in err
    assert mcrise.load("runs/no-entry.png.mcrise").n_masks == 64


def test_standard_input_is_a_picture_or_a_list_of_paths(signs, typed):
    code, out, _ = typed("explain", "-", *QUICK, stdin=(signs / "stop.png").read_bytes())
    assert code == 0
    assert "Prediction: stop" in out
    assert mcrise.load("stdin.mcrise").view.name == "stdin"
    code, out, _ = typed("explain", "-", "--jsonl", *QUICK, stdin=b"signs/stop.png\n")
    assert (code, json.loads(out)["image"]) == (0, "signs/stop.png")
    code, _, err = typed("explain", "-", *QUICK)
    assert code == 2
    assert "Nothing came on standard input" in err


def test_folders_of_results_among_the_words_of_a_shell_are_no_images(signs, typed):
    """`mcrise explain signs/*`, given twice: what the first wrote lies beside the pictures."""
    (signs / "bad.png").unlink()
    assert typed("explain", "signs/stop.png", *QUICK)[0] == 0
    code, out, _ = typed("explain", "signs/stop.png", "signs/stop.png.mcrise", "--jsonl", *QUICK)
    assert (code, [json.loads(line)["image"] for line in out.splitlines()]) == (
        0,
        ["signs/stop.png"],
    )
    code, _, err = typed("explain", "signs/stop.png.mcrise", *QUICK)
    assert code == 2
    assert "stop.png.mcrise holds results of mcrise: give the image that they are of." in err


def test_a_dry_run_says_what_it_costs_and_writes_nothing(signs, typed):
    before = sorted(signs.rglob("*"))
    code, out, _ = typed("explain", "signs", "--model", "demo", "--dry-run")
    assert code == 0
    for words in ("signs/bad.png: cannot be read", "writes signs/stop.png.mcrise", "Images: 2.",
                  "128 to 8,000 masks", "images per second", "Nothing was written."):  # fmt: skip
        assert words in out
    assert sorted(signs.rglob("*")) == before


def test_what_cannot_be_meant_is_refused(signs, typed):
    for words, needed in (
        (("signs", "--json"), "--jsonl"),
        (("signs/stop.png", "signs/stop.png"), "give each image once"),
        (("--resume", "x", "--dry-run"), "leave them out"),
    ):
        code, _, err = typed("explain", *words, *QUICK[:2])
        assert code == 2
        assert needed in err
