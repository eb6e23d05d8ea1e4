"""A planted shortcut is the first finding of its class, and is not there in the twin.

The short version of `recipes/shortcut/show.py`: one class of each, few images, few masks.
"""

import sys
from pathlib import Path

import pytest

from mcrise.testing import NotIgnored, assert_ignores

RECIPE = Path(__file__).parents[1] / "recipes" / "shortcut"
sys.path.append(str(RECIPE))
from make_images import make_images  # noqa: E402
from scenes import SHORTCUTS, STICKER  # noqa: E402
from show import IMAGES, audit, show_difference, show_findings, show_verdicts  # noqa: E402


@pytest.fixture(scope="module", params=list(SHORTCUTS))
def shown(request, tmp_path_factory):
    """The shortcut, and audits of its network and of the twin."""
    out, name = tmp_path_factory.mktemp("shown"), request.param
    images = make_images(out / "images", IMAGES[name], 12, [SHORTCUTS[name]])
    return name, {one: audit(images, one, out / one, n_masks=128) for one in (name, "clean")}


def test_it_is_the_first_finding_by_place_and_color_and_confirmed(shown):
    show_findings(*shown)


def test_check_fails_the_one_and_passes_the_other(shown):
    show_verdicts(*shown)


def test_diff_names_the_class_and_the_place(shown):
    show_difference(*shown)


def test_a_test_suite_catches_the_one_and_passes_the_other(tmp_path):
    label = SHORTCUTS["sticker"]
    files = sorted(make_images(tmp_path, "sticker", 12, [label]).glob("*/*.png"))
    assert_ignores(RECIPE / "clean.onnx", files, zone=STICKER, colors="blue,black,yellow")
    with pytest.raises(NotIgnored, match=repr(label)) as caught:
        assert_ignores(RECIPE / "sticker.onnx", files, zone=STICKER, colors="blue,black,yellow")
    assert caught.value.seen.n_images <= 4
