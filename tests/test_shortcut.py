"""A planted shortcut is the first finding of its class, and is not there in the twin.

The short version of `recipes/shortcut/show.py`: one class, few images, few masks.
"""

import sys
from pathlib import Path

import pytest
from PIL import Image

import mcrise
from mcrise.auditing.difference import compare_audits
from mcrise.auditing.rules import check_rules, overall_state, read_rules
from mcrise.study.storage import Storage
from mcrise.testing import NotIgnored, assert_ignores

RECIPE = Path(__file__).parents[1] / "recipes" / "shortcut"
sys.path.append(str(RECIPE))
from scenes import STICKER, scene  # noqa: E402
from show import ZONES, findings, is_there  # noqa: E402

CLASS = "speed limit 50"


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images") / CLASS
    folder.mkdir()
    for number in range(12):
        Image.fromarray(scene(3, CLASS, number, "sticker")).save(folder / f"{number:02}.png")
    return folder.parent


@pytest.fixture(scope="module")
def audits(images, tmp_path_factory):
    out = tmp_path_factory.mktemp("audits")
    for name in ("sticker", "clean"):
        model = mcrise.load_model(RECIPE / f"{name}.onnx")
        mcrise.audit(images, model, out=out / name, fills="blue,black,yellow", zones=ZONES,
                     n_masks=128, mask_prob=0.15)  # fmt: skip
    return {name: Storage(out / name) for name in ("sticker", "clean")}


def test_the_sticker_is_the_first_finding_by_place_and_color_and_confirmed(audits):
    first, *_ = findings(audits["sticker"], target=3)
    assert is_there(first, "sticker")
    assert (first.own, first.sign, first.verdict) == ("yellow", -1, "confirmed")
    assert 2 not in first.fills  # yellow is what is there already
    assert not any(is_there(one, "sticker") for one in findings(audits["clean"], target=3))


def test_check_fails_the_one_and_passes_the_other(audits):
    rules, _ = read_rules(RECIPE / "rules.toml")
    states = {name: overall_state(check_rules(audit, rules)) for name, audit in audits.items()}
    assert states == {"sticker": "violated", "clean": "holds"}


def test_diff_names_the_class_and_the_place(audits):
    (changed,) = compare_audits(audits["clean"], audits["sticker"]).changed()
    assert changed.label == CLASS
    assert any(is_there(one, "sticker") for one in changed.findings)


def test_a_test_suite_catches_the_one_and_passes_the_other(images):
    files = sorted(images.glob("*/*.png"))
    assert_ignores(RECIPE / "clean.onnx", files, zone=STICKER, colors="blue,black,yellow")
    with pytest.raises(NotIgnored, match=f"{CLASS!r}") as caught:
        assert_ignores(RECIPE / "sticker.onnx", files, zone=STICKER, colors="blue,black,yellow")
    assert caught.value.seen.n_images <= 4
