"""Which model a record is of: by digest, by settings, and by its answers."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import mcrise
from mcrise.cli import cli
from mcrise.demo import MODEL
from mcrise.demo.signs import stop
from mcrise.errors import ExplanationError, InputError
from mcrise.sampling import grow, iter_explain
from planted import Counting, PatchModel, explain_masks, photo

pytestmark = pytest.mark.usefixtures("undrawn")


class Weighted:
    """The mean red of the image, as strongly as its weight says."""

    def __init__(self, weight, offset=0.0):
        self.weight, self.offset = weight, offset

    def __call__(self, images):
        red = images[..., 0].mean(axis=(1, 2)) / 255.0
        score = np.clip(0.5 + self.weight * (red - 0.5) + self.offset, 0, 1)
        return np.stack([score, 1 - score], axis=1)


def bright(rows=16, cols=16):
    image = photo(rows, cols)
    image[..., 0] = 200
    return image


def test_two_lambdas_are_two_models_where_their_answers_differ():
    first, second = (lambda images: Weighted(1)(images)), (lambda images: Weighted(-1)(images))
    explanations = [explain_masks(bright(), model, n_masks=64) for model in (first, second)]
    assert explanations[0].model == explanations[1].model  # by name they are one
    with pytest.raises(ExplanationError, match="of different models: scores of the untouched"):
        mcrise.merge(explanations)


def test_a_half_finished_record_is_not_finished_by_other_weights():
    model = Weighted(1)
    half = explain_masks(bright(), model, n_masks=64)
    half.recognised = None  # as if it came from a file
    model.weight = -1
    with pytest.raises(ExplanationError, match=r"answers differently now, by 0\.57"):
        list(iter_explain(bright(), model, n_masks=128, resume=half))


def test_a_model_of_other_classes_is_refused_by_their_number(tmp_path):
    path = tmp_path / "run.npz"
    explain_masks(bright(), Weighted(1), n_masks=64, save=path)
    explanation = mcrise.load(path)
    three = mcrise.load_model(lambda images: np.full((len(images), 3), 1 / 3))
    other = replace(three, identity=explanation.model, origin=explanation.origin)
    with pytest.raises(ExplanationError, match="gives 3 scores per image, and the run has 2 class"):
        list(grow(explanation, other, n_masks=128))


def test_weights_that_agree_on_the_untouched_image_are_told_apart_by_a_batch(tmp_path):
    """At a score of one, say, every good network answers the same."""
    gray = np.full((16, 16, 3), 128, np.uint8)  # where the weight does not show
    explain_masks(gray, Weighted(0.8, -0.0), n_masks=64, save=tmp_path / "run.npz")
    with pytest.raises(ExplanationError, match="answers differently now"):
        explain_masks(gray, Weighted(0.4, 0.0), n_masks=128, save=tmp_path / "run.npz")


def test_rounding_is_no_other_model(tmp_path):
    path = tmp_path / "run.npz"
    explain_masks(bright(), Weighted(0.8), n_masks=64, save=path)
    explanation = explain_masks(bright(), Weighted(0.8, 5e-4), n_masks=128, save=path)
    assert explanation.n_masks == 128


def test_recognising_costs_the_untouched_image_and_a_few_once():
    model = Counting(PatchModel(slice(4, 12), slice(4, 12)))
    explanation = explain_masks(photo(16, 16), model, n_masks=64, batch_size=16)
    explanation.recognised = None
    model.n_images = 0
    list(mcrise.grow(explanation, model, n_masks=128))
    assert model.n_images == 64 + 1 + 4
    list(mcrise.grow(explanation, model, n_masks=192))
    assert model.n_images == 128 + 1 + 4


def test_a_model_that_answers_differently_each_time_is_told_with_the_size_of_it():
    chance = np.random.default_rng(0)

    def dropout(images):
        score = np.clip(Weighted(0.5)(images)[:, 0] + chance.uniform(-0.1, 0.1, len(images)), 0, 1)
        return np.stack([score, 1 - score], axis=1)

    explanation = explain_masks(bright(), dropout, n_masks=64)
    assert 0.1 < explanation.jitter < 0.2
    assert (
        f"differently each time, by up to {explanation.jitter:.2g}" in explanation.maps().notes[0]
    )
    steady = explain_masks(bright(), Weighted(0.5), n_masks=64)
    assert steady.jitter == 0
    assert not any("differently" in note for note in steady.maps().notes)


def test_a_jitter_that_is_known_is_no_other_model(tmp_path):
    chance = np.random.default_rng(0)

    def dropout(images):
        score = 0.5 + chance.uniform(-0.1, 0.1, len(images))
        return np.stack([score, 1 - score], axis=1)

    path = tmp_path / "run.npz"
    explain_masks(bright(), dropout, n_masks=64, save=path)
    assert explain_masks(bright(), dropout, n_masks=128, save=path).n_masks == 128


def test_other_labels_are_no_other_run(tmp_path):
    path = tmp_path / "run.npz"
    explain_masks(bright(), Weighted(1), n_masks=64, labels=["a", "b"], save=path)
    explanation = explain_masks(bright(), Weighted(1), n_masks=128, labels=["x", "y"], save=path)
    assert explanation.labels == ("x", "y")
    explanation = explain_masks(bright(), Weighted(1), n_masks=128, save=path)
    assert explanation.labels == ("x", "y")


# ---- what travels with a record


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a picture, a model whose settings matter, and a run of it."""
    monkeypatch.chdir(tmp_path)
    stop().save("stop.png")
    shutil.copy(MODEL, "signs.onnx")
    made = run("explain", "stop.png", "--model", "signs.onnx", "--mean", "0.5", "--std", "0.5",
               "--n-masks", "64", "--trials", "none",
               "--labels", str(MODEL.with_suffix(".txt")))  # fmt: skip
    assert made.exit_code == 0, made.output
    return tmp_path


def run(*words):
    return CliRunner().invoke(cli, list(words), catch_exceptions=True)


def sentence(result):
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def test_settings_travel_with_the_record_and_paths_do_not(desk):
    content = (desk / "stop.png.mcrise" / "run.npz").read_bytes()
    assert str(desk).encode() not in content
    origin = mcrise.load("stop.png.mcrise").origin
    assert origin.name == "signs.onnx"
    assert origin.settings == {"mean": [0.5] * 3, "std": [0.5] * 3}


@pytest.mark.parametrize("command", ["whatif", "compare", "measure"])
def test_an_onnx_file_beside_needs_neither_flag_nor_settings(desk, command):
    more = {"compare": ["--truth", "yield"], "measure": ["--step", "0.5"]}.get(command, [])
    result = run(command, "stop.png.mcrise", *more)
    assert result.exit_code == 0, result.output
    if command == "compare":
        assert "Give --model" not in result.output


def test_a_model_that_is_not_at_hand_is_named(desk):
    (desk / "signs.onnx").unlink()
    assert "was made with signs.onnx, and no ONNX file of the same content" in sentence(
        run("whatif", "stop.png.mcrise")
    )


def test_a_refusal_names_the_setting_that_differs(desk):
    said = sentence(run("whatif", "stop.png.mcrise", "--model", "signs.onnx", "--mean", "0.4"))
    assert "mean ([0.5, 0.5, 0.5] in the run, [0.4, 0.4, 0.4] now)" in said
    said = sentence(run("whatif", "stop.png.mcrise", "--model", "signs.onnx", "--scale", "1"))
    assert "scale (not given in the run, 1.0 now)" in said


def test_what_runs_code_when_loaded_is_opened_on_request_alone(desk):
    (desk / "loud.py").write_text(
        "from pathlib import Path\nimport numpy as np\nPath('ran').touch()\n"
        "def predict(images):\n"
        "    red = images[..., 0].mean((1, 2)) / 255\n"
        "    return np.stack([red, 1 - red], axis=1)\n"
    )
    made = run("explain", "stop.png", "--model", "loud:predict", "--n-masks", "64", "--out", "loud")
    assert made.exit_code == 0, made.output
    (desk / "ran").unlink()
    assert "give the model with --model" in sentence(run("whatif", "loud"))
    assert not (desk / "ran").exists()
    assert run("whatif", "loud", "--model", "loud:predict").exit_code == 0


def test_changed_weights_under_the_same_name_are_refused_by_every_command(desk, monkeypatch):
    """`explain` printed the old model's map, `whatif` mixed both."""
    (desk / "weights.json").write_text("1.0")
    (desk / "thinker.py").write_text(
        "from pathlib import Path\nimport numpy as np\n"
        "def predict(images):\n"
        "    weight = float(Path('weights.json').read_text())\n"
        "    red = 0.5 + weight * (images[..., 0].mean((1, 2)) / 255 - 0.5)\n"
        "    return np.stack([red, 1 - red], axis=1)\n"
    )
    words = ("explain", "stop.png", "--model", "thinker:predict", "--n-masks", "64", "--out", "t")
    assert run(*words).exit_code == 0
    (desk / "weights.json").write_text("-1.0")
    for again in (words, ("whatif", "t", "--model", "thinker:predict"),
                  ("measure", "t", "--model", "thinker:predict"),
                  ("explain", "--resume", "t", "--model", "thinker:predict")):  # fmt: skip
        assert "answers differently now" in sentence(run(*again))
    shown = run("show", "t", "--json")  # which asks nobody
    assert json.loads(shown.output)["n_masks"] == 64
