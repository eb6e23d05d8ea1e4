"""One list of fields: keywords, options, parameters of HTTP and JSON follow from it."""

import inspect
from dataclasses import fields

import click
import numpy as np
import pytest

import mcrise
from mcrise.cli import cli
from mcrise.config import FIELDS, RunConfig, RunKeywords
from mcrise.errors import InputError
from mcrise.models import ModelSettings
from mcrise.models.settings import KINDS, SECTIONS, Settings

NAMES = [one.name for one in fields(RunConfig)]


def test_keywords_are_the_fields_and_colors():
    assert set(RunKeywords.__annotations__) == {*NAMES, "colors"}


@pytest.mark.parametrize("name", ["explain", "match", "measure", "study", "audit"])
def test_options_have_the_help_of_the_fields_and_their_defaults(name):
    command = cli.get_command(click.Context(cli), name)
    options = {one.name: one for one in command.params if isinstance(one, click.Option)}
    own = {"match": {"mask_prob": 0.1}, "study": {"mask_prob": 0.5, "n_masks": 2000},
           "audit": {"n_masks": 128}}.get(name, {})  # fmt: skip
    for field in set(NAMES) - {"target"}:
        assert options[field].help == FIELDS[field].metadata["help"]
        default = own.get(field, FIELDS[field].default)
        shown = "x".join(map(str, default)) if isinstance(default, tuple) else default
        assert options[field].default == shown


def test_parameters_of_http_are_the_fields():
    pytest.importorskip("fastapi")
    from mcrise.server.parameters import config_of

    found = inspect.signature(config_of).parameters
    renamed = {"fills": ["colors"], "grid": ["rows", "columns"]}
    assert list(found) == [name for one in NAMES for name in renamed.get(one, [one])]
    assert found["tolerance"].default == FIELDS["tolerance"].default
    given = {name: one.default for name, one in found.items()}
    assert config_of(**given) == RunConfig()
    with pytest.raises(InputError, match=r"mask_prob is 0.995, but 0.01 to 0.99 or auto is needed"):
        config_of(**given | {"mask_prob": 0.995})
    with pytest.raises(InputError, match="n_masks is 0, but 1 to 100,000 or auto is needed"):
        config_of(**given | {"n_masks": 0})


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5, "auto"])
def test_json_gives_the_configuration_again(mask_prob):
    config = RunConfig(
        "red,blur:4", (4, 6), mask_prob, 2**64 - 1, 128, 0.1, 999, target="stop", batch_size="auto"
    )
    assert RunConfig.from_json(config.to_json()) == config
    assert RunConfig.from_json({}) == RunConfig()
    assert RunConfig.from_json({"of_a_later_version": 1, "seed": 3}) == RunConfig(seed=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", "0"), ("seed", True), ("seed", 1.5), ("grid", [4]), ("grid", 4), ("fills", 3),
     ("mask_prob", "half"), ("n_masks", 0.5), ("tolerance", None), ("target", 1.5),
     ("batch_size", [32])],
)  # fmt: skip
def test_json_of_another_type_is_refused_with_the_name_of_the_field(name, value):
    with pytest.raises(ValueError, match=f"^{name}: "):
        RunConfig.from_json({name: value})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [({"n_masks": 0}, "n_masks is 0, but a whole number of at least 1"),
     ({"n_masks": 12.5}, "n_masks is 12.5, but a whole number"),
     ({"n_masks": 128.0}, "n_masks is 128.0, but a whole number"),
     ({"n_masks": "128"}, "n_masks is '128', but a whole number"),
     ({"n_masks": float("inf")}, "n_masks is inf, but a whole number"),
     ({"n_masks": True}, "n_masks is True, but a whole number"),
     ({"n_masks": float("nan")}, "n_masks is nan, but"),
     ({"tolerance": 0}, "tolerance is 0, but a relative error above 0"),
     ({"tolerance": 10}, "tolerance is 10, but"),
     ({"tolerance": "auto"}, "tolerance is 'auto', but"),
     ({"max_masks": 0}, "max_masks is 0, but a whole number"),
     ({"max_masks": 99.5}, "max_masks is 99.5, but a whole number"),
     ({"batch_size": 7}, "batch_size is 7, but it must divide a chunk of 64 masks"),
     ({"mask_prob": "half"}, "mask_prob is 'half', but it must lie strictly between 0 and 1"),
     ({"mask_prob": 1.0}, "mask_prob is 1.0, but"),
     ({"batch_size": 32.0}, "batch_size is 32.0, but"),
     ({"seed": -1}, "seed is -1, but a whole number from 0"),
     ({"seed": 2**64}, "seed is 18446744073709551616, but"),
     ({"seed": 1.5}, "seed is 1.5, but a whole number from 0"),
     ({"seed": True}, "seed is True, but a whole number from 0"),
     ({"seed": None}, "seed is None, but a whole number from 0"),
     ({"grid": (8, 129)}, r"grid is \(8, 129\), but two whole numbers from 1 to 128"),
     ({"grid": (8.0, 8)}, r"grid is \(8.0, 8\), but two whole numbers"),
     ({"grid": (8, 8, 8)}, r"grid is \(8, 8, 8\), but two whole numbers"),
     ({"grid": "8x8"}, "grid is '8x8', but two whole numbers"),
     ({"grid": None}, "grid is None, but two whole numbers")],
)  # fmt: skip
def test_values_outside_of_the_limits_are_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        RunConfig(**given)


def test_numbers_of_numpy_are_numbers():
    config = RunConfig.of(
        n_masks=np.int64(128), seed=np.uint64(2**63), grid=np.array([4, 6]),
        mask_prob=np.float64(0.3), batch_size=np.int32(16), max_masks=np.int64(999),
    )  # fmt: skip
    same = RunConfig(n_masks=128, seed=2**63, grid=(4, 6), mask_prob=0.3, batch_size=16,
                     max_masks=999)  # fmt: skip
    assert config == same
    assert all(
        type(value) in (int, float, tuple, str, type(None)) for value in vars(config).values()
    )
    assert RunConfig.of(grid=np.int64(4)).grid == (4, 4)


def test_short_forms_of_keywords():
    assert RunConfig.of(grid=4, colors="red") == RunConfig(fills="red", grid=(4, 4))
    assert RunConfig.of(fills=["red"]).plan(np.zeros((8, 8, 3), np.uint8)).n_fills == 1
    with pytest.raises(InputError, match="3 is not a fill: give words such as 'red'"):
        RunConfig.of(fills=3)
    with pytest.raises(InputError, match="Both fills and colors were given"):
        RunConfig.of(fills="red", colors="blue")


# ---- settings of a model


def test_the_settings_of_a_model_are_declared_once():
    names = set(ModelSettings.__annotations__)
    of_objects = {"preprocess", "output"}  # taken over before the rest is read
    assert names - of_objects == {one.name for one in fields(Settings)} - {"given"} == set(KINDS)
    assert names - of_objects == {
        *SECTIONS["input"], *SECTIONS["output"], "device", "threads"
    }  # fmt: skip


def halves(images):
    """Logits (N, 2) of images in 0..1, so that `scale` and `softmax` decide the scores."""
    red = np.asarray(images, np.float64)[..., 0].mean(axis=(1, 2))
    return np.stack([red, -red], axis=1)


SAID = {"scale": 255.0, "softmax": True, "labels": ["red", "other"]}


def test_every_function_that_takes_a_model_takes_its_settings(tmp_path):
    from PIL import Image

    from mcrise.testing import assert_ignores

    for n, color in enumerate([(250, 20, 20), (20, 20, 250), (240, 90, 90)]):
        Image.new("RGB", (32, 32), color).save(tmp_path / f"{n}.png")
    image, files = tmp_path / "0.png", sorted(tmp_path.glob("*.png"))
    wanted = mcrise.load_model(halves, **SAID)
    pixels = wanted.view(image).pixels[None]
    scores = wanted(pixels)[0]
    np.testing.assert_allclose(scores[0], 1 / (1 + np.exp(-2 * 250 / 255)), rtol=1e-6)
    one = mcrise.explain(image, halves, n_masks=64, **SAID)
    (several,) = mcrise.explain([image], halves, n_masks=64, **SAID)
    *_, last = mcrise.iter_explain(image, halves, n_masks=64, **SAID)
    for explanation in (one, several, last):
        np.testing.assert_array_equal(explanation.untouched, scores)
        assert explanation.labels == ("red", "other")
    result = assert_ignores(halves, files, zone="rim", at_most=0.9, target="red", **SAID)
    assert result.n_images >= 1
    gallery = mcrise.open_gallery(tmp_path, halves, size=16)
    match = mcrise.match(image, gallery, halves, size=16)
    assert match.path.name == "2.png"
    assert match.model.view(image).pixels.shape == (16, 16, 3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [(lambda: mcrise.explain("a.png", halves, n_mask=64), "'n_mask' .* did you mean 'n_masks'"),
     (lambda: mcrise.explain("a.png", halves, savee="x"), "'savee' .* did you mean 'save'"),
     (lambda: mcrise.iter_explain("a.png", halves, shortside=3), "did you mean 'short_side'"),
     (lambda: mcrise.load_model(halves, scores="any"), "did you mean 'score_kind'"),
     (lambda: mcrise.open_gallery(".", halves, sise=3), "did you mean 'size'"),
     (lambda: mcrise.match("a.png", None, halves, sise=3), "did you mean 'size'")],
)  # fmt: skip
def test_a_keyword_that_is_not_known_gets_a_suggestion(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
