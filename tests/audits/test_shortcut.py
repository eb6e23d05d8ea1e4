"""A planted shortcut is the first finding of its class, and is not there in the twin.

The short version of `recipes/shortcut/show.py`: one class of each, few images, few masks.
"""

import sys
from pathlib import Path

import pytest

from mcrise.testing import DependsOnZone, assert_ignores

RECIPE = Path(__file__).parents[2] / "recipes" / "shortcut"
sys.path.append(str(RECIPE))
from make_images import make_images  # noqa: E402
from scenes import SHORTCUTS, STICKER  # noqa: E402
from show import CASES, audit, show_difference, show_findings, show_verdicts  # noqa: E402

pytestmark = pytest.mark.slow  # whole audits of planted networks


@pytest.fixture(scope="module", params=list(CASES))
def shown(request, tmp_path_factory):
    """The case, and audits of the network with the shortcut and of its twin."""
    out, (name, planted) = tmp_path_factory.mktemp("shown"), CASES[request.param]
    images = make_images(out / "images", planted, 12, [SHORTCUTS[name]])
    audits = {one: audit(images, one, out / one, n_masks=128) for one in (name, "clean")}
    return request.param, audits


def test_it_is_the_first_finding_by_place_and_color_and_confirmed(shown):
    show_findings(*shown)


def test_check_fails_the_one_and_passes_the_other(shown):
    case, audits = shown
    show_verdicts(CASES[case][0], audits)


def test_diff_names_the_class_and_the_place(shown):
    case, audits = shown
    show_difference(CASES[case][0], audits)


def test_a_test_suite_catches_the_one_and_passes_the_other(tmp_path):
    label = SHORTCUTS["sticker"]
    files = sorted(make_images(tmp_path, "sticker", 12, [label]).glob("*/*.png"))
    assert_ignores(RECIPE / "clean.onnx", files, zone=STICKER, colors="blue,black,yellow")
    with pytest.raises(DependsOnZone, match=repr(label)) as caught:
        assert_ignores(RECIPE / "sticker.onnx", files, zone=STICKER, colors="blue,black,yellow")
    assert caught.value.seen.n_images <= 4
