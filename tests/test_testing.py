"""`assert_ignores` tells on which side of what is allowed a model lies, and stops when it can."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mcrise import InputError, McriseError, Model, ModelError, load_model
from mcrise.demo.signs import SIGNS
from mcrise.testing import DependsOnZone, Interval, assert_ignores
from planted import Counting, PatchModel, constant_model, photo

ROOT = Path(__file__).resolve().parents[1]
CORNER = PatchModel(slice(24, 32), slice(24, 32))  # depends on the red of the lower right corner
PHOTOS = [photo(32, 32, seed) for seed in range(60)]


def test_a_model_that_looks_at_the_corner_is_caught_within_a_few_images():
    model = Counting(CORNER)
    with pytest.raises(DependsOnZone, match="moves the score by") as caught:
        assert_ignores(model, PHOTOS, zone="lower right", colors="red,black")
    assert caught.value.seen.low > 0.05
    assert caught.value.seen.n_images <= 5
    # Untouched twice, two colors whole and in part, two donors; and eight times before the blame.
    assert model.n_images == caught.value.seen.n_calls == 8 * caught.value.seen.n_images + 8


def test_the_same_model_ignores_the_opposite_corner_and_a_zone_just_beside():
    assert assert_ignores(CORNER, PHOTOS, zone="upper left").mean == 0
    seen = assert_ignores(CORNER, PHOTOS, zone=(0.0, 0.0, 0.75, 1.0))
    assert seen.mean == 0
    assert seen.high <= 0.05


def test_what_is_allowed_decides_to_the_last_image():
    """Exactly 3 of 60 images change by 1: 0.05 is allowed and 0.049 is not."""

    def model(images):
        red = (images[:, 0, 0, 0] == 0) & (images[:, -1, -1, 0] == 255)
        return np.stack([1.0 - red, red], axis=1)

    images = [np.full((16, 16, 3), 128, np.uint8) for _ in range(60)]
    for one in images[:3]:
        one[0, 0] = 0
    assert assert_ignores(model, images, zone="lower right", colors="red").mean == pytest.approx(
        0.05
    )
    with pytest.raises(DependsOnZone):
        assert_ignores(model, images, zone="lower right", colors="red", at_most=0.049)


def test_the_worst_image_is_attached_and_saved(tmp_path):
    with pytest.raises(DependsOnZone) as caught:
        assert_ignores(CORNER, PHOTOS, zone="lower right", save=tmp_path / "worst.png")
    before, after = np.split(caught.value.image, 2, axis=1)
    assert any((before == one).all() for one in PHOTOS)
    changed = (before != after).any(axis=2)
    assert changed[24:, 24:].any()
    assert not changed[:21].any()
    saved = np.asarray(Image.open(caught.value.path))
    np.testing.assert_array_equal(saved, caught.value.image)
    assert re.search(
        r"image \d+, 'class \d' 0\.\d\d → [01]\.\d\d painted \w+\. It is shown in .*worst\.png\.$",
        str(caught.value),
    )


def failure(images=PHOTOS, **given):
    with pytest.raises(DependsOnZone) as caught:
        assert_ignores(CORNER, images, **given)
    return str(caught.value)


def test_the_sentence_says_where_the_zone_is_and_how_to_see_it():
    sentence = failure(zone="lower right")
    assert sentence.startswith(
        "Changing the lower right (rows 21-32, columns 21-32 of 32 x 32) moves the score by "
    )
    assert sentence.endswith('. Give save="worst.png" to see it.')
    assert "of 60 images)" in sentence
    assert "Changing the zone (rows 16-32, columns 0-32 of 32 x 32)" in failure(zone="0.5:0:1:1")
    assert re.search(r"Changing the rim \(\d\d% of the image\)", failure(zone="rim"))
    several = [photo(32, 32), photo(48, 48)]
    last = PatchModel(slice(0, 32), slice(0, 32))
    with pytest.raises(DependsOnZone, match="Changing the zone moves the score"):
        assert_ignores(last, several, zone="0:0:0.9:0.9", at_most=0.4)


def test_there_is_no_interval_where_all_images_were_seen():
    assert "on average in all 2 images, and at most" in failure(
        PHOTOS[:2], zone="0.1:0.1:1:1", at_most=0.4
    )
    assert re.search(r"by 0\.\d+ in the one image, and", failure(PHOTOS[:1], zone="0.1:0.1:1:1"))


def test_pytest_shows_the_sentence_and_not_how_it_was_found(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import numpy as np\n"
        "from mcrise.testing import assert_ignores\n"
        "def model(images):\n"
        "    red = images[:, -1, -1, 0] / 255\n"
        "    return np.stack([red, 1 - red], axis=1)\n"
        "def test_it():\n"
        "    assert_ignores(model, [np.zeros((16, 16, 3), np.uint8)], zone='lower right')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "E       mcrise.testing.DependsOnZone: Changing the lower right" in done.stdout
    assert "raise DependsOnZone" not in done.stdout


def test_a_mask_for_each_image_is_painted_in_that_image_alone():
    masks = [np.zeros((32, 32), bool) for _ in PHOTOS]
    masks[7][24:, 24:] = True
    for one in masks:
        one[0, 0] = True
    assert assert_ignores(CORNER, PHOTOS[:7], zone=masks[:7]).mean == 0
    with pytest.raises(DependsOnZone):
        assert_ignores(CORNER, PHOTOS[7:8], zone=masks[7], at_most=0.2)


def test_a_model_of_floats_gets_floats():
    def model(images):
        assert images.dtype == np.float32
        assert images.max() <= 1
        return np.stack([images[:, -1, -1, 0], 1 - images[:, -1, -1, 0]], axis=1)

    images = [one.astype(np.float32) / 255 for one in PHOTOS]
    with pytest.raises(DependsOnZone) as caught:
        assert_ignores(model, images, zone="lower right")
    assert caught.value.image.dtype == np.uint8


@pytest.mark.parametrize("truth", ["even", "rare"])
def test_the_interval_holds_the_mean_at_every_look_in_nineteen_of_twenty(truth):
    random = np.random.default_rng(0)
    missed, n_runs = 0, 120
    for _ in range(n_runs):
        values = random.random(80) if truth == "even" else (random.random(80) < 0.08) * 0.9
        mean, interval, ends = values.mean(), Interval(len(values)), []
        for value in values:  # as drawn: in random order
            interval.add(float(value))
            ends.append(interval.ends)
        assert ends[-1] == pytest.approx((mean, mean))
        missed += any(not low - 1e-9 <= mean <= high + 1e-9 for low, high in ends)
    assert missed <= 0.05 * n_runs


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"zone": "attic"}, "The zone 'attic' is unknown: give upper left"),
        ({"zone": (0.7, 0.7, 0.6, 1.0)}, "is no part of an image"),
        ({"zone": np.ones((3, 3), bool)}, r"of shape \(3, 3\), but the model is shown 32 x 32"),
        ({"zone": np.zeros((32, 32), bool)}, "The zone is empty"),
        ({"zone": (0.0, 0.0, 0.001, 1.0)}, "The zone is empty"),
        ({"zone": [np.ones((32, 32), bool)]}, "1 masks came for 60 images"),
        ({"zone": "rim", "at_most": 1.5}, "at_most is 1.5"),
        ({"zone": "rim", "at_most": "0.05"}, "at_most is '0.05'"),
        ({"zone": "rim", "seed": -1}, "The seed is -1"),
        ({"zone": "rim", "save": ROOT}, "that is a folder"),
        ({"zone": "rim", "images": Path("stop.png")}, r"put it into \[\]"),
        ({"zone": "rim", "target": True}, "The target is True"),
        ({"zone": "rim", "target": 1.0}, "The target is 1.0"),
        ({"zone": []}, r"The zone is \[\], but a name"),
        ({"zone": None}, "The zone is None, but a name"),
        ({"zone": [0.7, 0.7, 0.6, 1.0]}, "is no part of an image"),
        ({"zone": "rim", "images": []}, "No images were given"),
        ({"zone": "rim", "target": 7}, "classes 0 to 1"),
        ({"zone": "rim", "target": "stop"}, "The model has no class 'stop'"),
        ({"zone": "rim", "model": Model(constant_model, kind="any")}, "may be any numbers"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence):
        assert_ignores(**{"model": CORNER, "images": PHOTOS, **given})


def test_a_model_that_answers_differently_each_time_is_told_from_one_that_depends_on_the_zone():
    random = np.random.default_rng(0)

    def model(images):
        red = np.clip(0.5 + 0.05 * random.standard_normal(len(images)), 0, 1)
        return np.stack([red, 1 - red], axis=1)

    with pytest.raises(InputError, match="differently each time"):
        assert_ignores(model, (one for one in PHOTOS), zone="rim")


def test_the_example_in_the_docs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/testing.md").read_text()
    block = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    folder = Path("mcrise-demo/signs")
    folder.mkdir(parents=True)
    for name, draw in SIGNS.items():
        draw().save(folder / f"{name}.png")
    names = {}
    exec(block, names)
    (test,) = (names[name] for name in names if name.startswith("test"))
    test()


def test_a_model_of_other_pixels_is_told_so():
    """A classifier that was fitted to 0..255 sees only black in 0..1, and would pass any test."""

    def fitted(batch):
        red = np.asarray(batch, np.float64)[..., 0].mean(axis=(1, 2))
        one = 1 / (1 + np.exp((90 - red) / 10))
        return np.stack([one, 1 - one], axis=1)

    note = "no preprocessing was given, so pixels go in scaled to 0..1"
    unsaid = load_model(fitted, scale=255, size=(16, 16))
    model = replace(unsaid, dtype="float32", notes=(note,))
    with pytest.warns(UserWarning, match="give scale=1"):
        assert_ignores(model, [photo(16, 16)] * 3, zone="center", at_most=0.1)


def test_the_target_is_a_label_in_any_capitals():
    model = Model(PatchModel(slice(0, 4), slice(0, 4)), labels=("Red", "rest"))
    for target in ("red", "RED", 0):
        result = assert_ignores(model, [photo(32, 32)], zone="0.5:0.5:1:1", target=target)
        assert result.mean == 0


def test_what_others_have_in_the_zone_is_given_and_counts():
    """A corner that no color on its own is, but that other images have: only donors show it."""
    images = [np.full((16, 16, 3), 90 + n, np.uint8) for n in range(12)]
    for image in images[::2]:
        image[12:, 12:] = [140, 50, 200]

    def model(given):
        there = np.abs(given[:, 13, 13].astype(int) - [140, 50, 200]).max(axis=1) < 5
        plain = given[:, 2, 2].astype(int).max(axis=1) % 2 == 0
        score = np.where(there & ~plain, 0.1, 0.9)
        return np.stack([score, 1 - score], axis=1)

    with pytest.raises(DependsOnZone, match="given the zone of"):
        assert_ignores(model, images[1::2] + images[::2], zone="lower right", colors="red")


def test_a_coin_is_not_blamed_and_a_picture_that_cannot_be_saved_is_part_of_the_sentence(tmp_path):
    random = np.random.default_rng(0)

    def coin(images):
        first = random.integers(0, 2, len(images))
        return np.stack([first, 1 - first], axis=1).astype(np.float32)

    for _ in range(20):
        with pytest.raises(InputError, match="differently each time"):
            assert_ignores(coin, PHOTOS, zone="rim", colors="red")
    (tmp_path / "file").touch()
    with pytest.raises(DependsOnZone, match="could not be saved") as caught:
        assert_ignores(CORNER, PHOTOS, zone="lower right", save=tmp_path / "file" / "a.png")
    assert caught.value.path is None


def test_a_model_that_ends_the_program_or_changes_its_classes_is_one_sentence():
    def ends(images):
        raise SystemExit(3)

    with pytest.raises(ModelError, match="ended the program"):
        assert_ignores(ends, PHOTOS, zone="rim")
    sizes = iter([2] * 1 + [3] * 1000)

    def grows(images):
        n = next(sizes)
        return np.full((len(images), n), 1 / n)

    with pytest.raises(McriseError, match="scores"):
        assert_ignores(grows, PHOTOS, zone="rim")
