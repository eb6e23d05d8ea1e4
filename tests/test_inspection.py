"""What `inspect_model` warns of: each planted mistake has its warning, and nothing else has one."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise.demo import MODEL
from mcrise.demo.signs import SIGNS, stop
from mcrise.inspection import preprocessing_hint
from planted import PatchModel, constant_model, photo

DEMO = mcrise.load_model("demo")
PICTURES = [sign() for sign in SIGNS.values()]
UNIT = {"scale": 255, "mean": 0, "std": 1}


def about(model, images=PICTURES, **settings):
    return [one.about for one in mcrise.inspect_model(model, images, **settings).warnings]


def exchanged(images):
    """The embedded network, as a function of pictures in blue, green, red."""
    return DEMO(np.ascontiguousarray(images[..., ::-1]))


def logits(images):
    return 3 * np.log(DEMO(images)) + 5


class WithDropout:
    """Drops a tenth of the pixels, other ones each time."""

    def __init__(self):
        self.random = np.random.default_rng(0)

    def __call__(self, images):
        return DEMO((images * (self.random.random(images.shape) < 0.9)).astype(np.uint8))


def normalised_over_batch(images):
    """The mean of all images of the batch is taken off each."""
    mean = images.mean(axis=(0, 1, 2)) - 128
    return DEMO(np.clip(images - mean, 0, 255).astype(np.uint8))


def large_network(images):
    """A random network without any normalization: with large inputs it is sure of anything."""
    random = np.random.default_rng(1)
    small = images[:, ::8, ::8].reshape(len(images), -1).astype(np.float64)
    out = np.maximum(small @ random.normal(size=(small.shape[1], 32)), 0) @ random.normal(
        size=(32, 10)
    )
    out = np.exp((out - out.max(axis=1, keepdims=True)) / 1e4)
    return out / out.sum(axis=1, keepdims=True)


def one_at_a_time(images):
    assert len(images) == 1, "one image only"
    return DEMO(images)


def sized(function):
    """A function of whole pixels at the size of the embedded network."""
    return mcrise.load_model(function, size=(96, 96))


WRONG = {
    "wants bgr": (sized(exchanged), {}, ["channels"]),
    "gets bgr": ("demo", {"channels": "bgr"}, ["channels"]),
    "gives logits": (sized(logits), {}, ["logits"]),
    "dropout is on": (sized(WithDropout()), {}, ["random"]),
    "normalizes over the batch": (sized(normalised_over_batch), {}, ["batch"]),
    "takes no batches": (sized(one_at_a_time), {}, ["batch"]),
    "gets 0..255": ("demo", {"scale": 1, "mean": 0, "std": 1}, ["range"]),
    "softmax twice": ("demo", {"softmax": True}, ["activation"]),
    "sigmoid twice": ("demo", {"sigmoid": True}, ["activation"]),
    "independent scores": (sized(lambda images: 0.9 * DEMO(images)), {}, ["logits"]),
    "always the same": (sized(constant_model), {}, ["constant"]),
}
RIGHT = {
    "as trained": ("demo", {}),
    "pixels from 0 to 1, which it knows as well": ("demo", UNIT),
    "a function": (sized(lambda images: DEMO(images)), {}),
    "logits with a softmax": (mcrise.load_model(logits, size=(96, 96), softmax=True), {}),
    "logits as any numbers": (mcrise.load_model(logits, size=(96, 96), score_kind="any"), {}),
    "a function that gets blue first": (
        mcrise.load_model(exchanged, size=(96, 96), channels="bgr"),
        {},
    ),
    "half precision": (sized(lambda images: DEMO(images).astype(np.float16)), {}),
    "a patch": (sized(PatchModel(slice(8, 24), slice(8, 24))), {}),
    "random weights": (sized(large_network), {}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_model_that_is_asked_wrongly_has_its_warning_and_no_other(case):
    model, settings, expected = WRONG[case]
    assert about(model, **settings) == expected


@pytest.mark.parametrize("case", RIGHT)
def test_a_model_that_is_asked_rightly_has_no_warning(case):
    model, settings = RIGHT[case]
    assert about(model, **settings) == []


def test_a_warning_names_the_remedy_and_the_gain():
    (warning,) = mcrise.inspect_model("demo", PICTURES, channels="bgr").warnings
    assert "channels='rgb' (--channels rgb)" in warning.text
    now, then = (np.mean([top(picture, order) for picture in PICTURES]) for order in ("bgr", "rgb"))
    assert f"averages {then:.2f} instead of {now:.2f}" in warning.text


def top(picture, order):
    model = replace(DEMO, channels=order)
    return model(model.view(picture).pixels[None]).max()


def test_without_pictures_the_input_is_not_judged_and_that_is_said():
    found = mcrise.inspect_model("demo", channels="bgr")
    assert found.warnings == ()
    assert "order of channels" in found.unchecked
    assert "order of channels" in str(found)


def test_what_was_found_is_printed():
    shown = str(mcrise.inspect_model("demo", PICTURES))
    for words in ("96 x 96", "NCHW", "rgb", "pixels from -1 to 1", "43", "stop 0.89",
                  "images per second"):  # fmt: skip
        assert words in shown
    assert shown.endswith("\nNothing looks wrong.")


def test_few_pictures_are_not_enough_and_that_is_said():
    assert mcrise.inspect_model("demo", [stop()]).lines()[-1] == (
        "Nothing looks wrong in 1 picture. Give about a dozen that the model should know: few "
        "pictures show only large mistakes."
    )


def test_scores_of_any_kind_say_nothing_of_the_input_and_that_is_said():
    model = mcrise.load_model(logits, size=(96, 96), score_kind="any")
    found = mcrise.inspect_model(model, PICTURES)
    assert "only probabilities of several classes" in found.lines()[-1]


def test_logits_are_not_called_probabilities():
    found = mcrise.inspect_model(sized(logits), PICTURES)
    assert found.output == "43 scores per image, not as assumed: see the warning"


def test_a_picture_that_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path):
    stop().save(tmp_path / "stop.png")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    found = mcrise.inspect_model("demo", [tmp_path / "bad.png", tmp_path / "stop.png"])
    assert [one.image for one in found.answers] == ["stop.png"]
    assert "bad.png" in found.failed[0]
    with pytest.raises(mcrise.InputError, match=r"bad\.png"):
        mcrise.inspect_model("demo", [tmp_path / "bad.png"])


def test_what_was_assumed_is_listed(tmp_path):
    found = mcrise.inspect_model(without_settings(tmp_path), PICTURES)
    assert found.assumed[0].startswith("no preprocessing was given")
    assert f"Assumed: {found.assumed[0]}." in found.lines()


def without_settings(folder):
    """The embedded network where no TOML file lies beside it."""
    path = folder / "bare.onnx"
    path.write_bytes(MODEL.read_bytes())
    return path


def test_explain_says_what_other_preprocessing_would_do(tmp_path):
    """Only where none was given and the model knows the picture far better with another."""
    model = mcrise.load_model(without_settings(tmp_path))
    view = model.view(stop())
    assert preprocessing_hint(model, view)[0] == ""  # pixels from 0 to 1 are fine
    wrong = replace(model, gain=(1.0,) * 3)
    hint, n_asked = preprocessing_hint(wrong, view)
    assert "with pixels from 0 to 1 the top score would be 0.95 instead of 0.33" in hint
    explanation = mcrise.explain(stop(), wrong, n_masks=64, mask_prob=0.3, trials=False)
    assert hint in explanation.notes
    assert explanation.n_calls.checks == 1 + 4 + n_asked
    said = replace(wrong, notes=())
    assert preprocessing_hint(said, view) == ("", 0)


@pytest.mark.parametrize("wrong", ["pixels from 0 to 255", "whole pixels", "one score"])
def test_all_images_that_a_hint_takes_are_counted(tmp_path, wrong):
    """What is asked depends on the model: its range may be none of ours, or be known."""
    model = mcrise.load_model(without_settings(tmp_path))
    model = {
        "pixels from 0 to 255": replace(model, gain=(1.0,) * 3),
        "whole pixels": replace(sized(lambda images: DEMO(images)), notes=model.notes),
        "one score": replace(model, predict=lambda batch: np.full((len(batch), 1), 0.5)),
    }[wrong]
    if wrong == "whole pixels":
        model = replace(model, dtype="uint8")
    n_seen = 0

    def counted(batch):
        nonlocal n_seen
        n_seen += len(batch)
        return model.predict(batch)

    _, n_asked = preprocessing_hint(replace(model, predict=counted), model.view(stop()))
    assert n_asked == n_seen


def test_a_small_model_of_pixels_up_to_255_is_told_from_one_of_the_unit_range():
    """A fitted forest or line is as sure of plain pictures as of any: it answers all alike."""

    def predict(batch):  # (N, H, W, 3) of 0..255, flattened or not
        red = np.asarray(batch, np.float64)[..., 0].mean(axis=(1, 2))
        one = 1 / (1 + np.exp((90 - red) / 10))
        return np.stack([one, 1 - one], axis=1)

    model = replace(
        mcrise.load_model(predict, scale=255, size=(32, 32)),
        notes=("no preprocessing was given, so pixels go in scaled to 0..1",),
    )
    hint, _ = preprocessing_hint(replace(model, dtype="float32"), model.view(photo(32, 32)))
    assert "give scale=1, mean=0, std=1" in hint
    known = replace(model, dtype="float32", gain=(1.0,) * 3)
    assert preprocessing_hint(known, model.view(photo(32, 32)))[0] == ""


def test_pictures_of_several_sizes_and_kinds():
    pictures = [photo(40, 60), Image.fromarray(photo(33, 31)), photo(20, 20) / 255]
    found = mcrise.inspect_model(PatchModel(slice(8, 16), slice(8, 16)), pictures)
    assert len(found.answers) == 3
    assert found.warnings == ()
