"""OpenVINO and LiteRT: the same small classifier, and what each of them says of itself."""

import numpy as np
import onnxruntime
import openvino
import pytest
from openvino import opset13 as ops

from mcrise import InputError, ModelError, load_model
from mcrise.images import unit_float
from planted import photo
from small_net import KERNEL, MEAN, STD, WEIGHTS, logits, maps_of, onnx_file, scores
from tflite_files import tflite_file


def openvino_model(size=(16, 24), batch=-1, heads=("scores",), info=None):
    """The function as an OpenVINO model of images (N, 3, H, W) in 0..1."""
    images = ops.parameter([batch, 3, *size], np.float32, name="images")
    conv = ops.convolution(images, KERNEL, [2, 2], [0, 0], [0, 0], [1, 1])
    means = ops.reduce_mean(ops.relu(conv), np.array([2, 3]), keep_dims=False)
    linear = ops.matmul(means, WEIGHTS, False, False)
    outputs = {
        "logits": linear,
        "scores": ops.softmax(linear, 1),
        "pictures": ops.relu(conv),
        "pooled": ops.reshape(ops.softmax(linear, 1), np.array([0, 0, 1, 1]), special_zero=True),
    }
    results = []
    for name in heads:
        outputs[name].output(0).set_names({name})
        results.append(ops.result(outputs[name]))
    model = openvino.Model(results, [images], "net")
    for entry, value in (info or {}).items():
        model.set_rt_info(value, ["model_info", entry])
    return model


def saved(tmp_path, **made):
    openvino.save_model(openvino_model(**made), tmp_path / "net.xml", compress_to_fp16=False)
    return tmp_path / "net.xml"


@pytest.mark.parametrize(
    "made",
    [{}, {"batch": 1}, {"batch": 4}, {"size": (-1, -1)}, {"heads": ("pictures", "pooled")}],
    ids=["any batch", "a batch of one", "a batch of four", "any size", "a pooled output"],
)
def test_an_openvino_file_gives_the_maps_of_the_function_it_computes(made, tmp_path):
    model = load_model(saved(tmp_path, **made), mean=MEAN, std=STD)
    onnx = load_model(onnx_file(tmp_path / "net.onnx"), mean=MEAN, std=STD)
    image = photo(16, 24)
    np.testing.assert_allclose(maps_of(image, model), maps_of(image, onnx), atol=1e-5)
    six = np.stack([photo(16, 24, seed) for seed in range(6)])
    np.testing.assert_allclose(model(six), onnx(six), atol=1e-5)


def test_a_compiled_openvino_model_is_taken_as_it_is():
    image = photo(16, 24)[None]
    compiled = openvino.compile_model(openvino_model(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    np.testing.assert_allclose(load_model(compiled)(image), scores(unit_float(image)), atol=1e-5)
    read = load_model(openvino_model())
    np.testing.assert_allclose(read(image), scores(unit_float(image)), atol=1e-5)
    assert read.notes == ("no preprocessing was given, so pixels go in scaled to 0..1",)


def test_what_an_openvino_file_says_of_its_images_is_used_and_arguments_win(tmp_path):
    info = {
        "mean_values": "127.5 127.5 127.5",
        "scale_values": "50 60 70",
        "reverse_input_channels": "True",
        "labels": "apple pear plum",
    }
    path = saved(tmp_path, info=info)
    model, image = load_model(path), photo(16, 24)[None]
    normal = (image - np.float32(127.5)) / np.float32([50, 60, 70])
    np.testing.assert_allclose(model(image), scores(normal[..., ::-1]), atol=1e-5)
    assert model.labels == ("apple", "pear", "plum")
    assert model.notes == ()
    plain = load_model(path, scale=255, channels="rgb", labels=["a", "b", "c"])
    np.testing.assert_allclose(plain(image), scores(unit_float(image)), atol=1e-5)
    assert plain.labels == ("a", "b", "c")


def test_of_several_outputs_one_must_be_named(tmp_path):
    path = saved(tmp_path, heads=("logits", "pictures", "scores"))
    with pytest.raises(InputError, match=r"logits \(N x 3\), pictures .* as in output=.scores"):
        load_model(path)
    with pytest.raises(InputError, match=r"no output 'score': it has logits \(N x 3\), pict"):
        load_model(path, output="score")
    image = photo(16, 24)[None]
    model = load_model(path, output="logits", score_kind="any")
    np.testing.assert_allclose(model(image), logits(unit_float(image)), atol=1e-4)
    with pytest.raises(InputError, match=r"gives pictures \(N x 4 x 7 x 11\), but a row of scores"):
        load_model(saved(tmp_path, heads=("pictures",)))


def test_an_onnx_file_of_several_tables_says_which_was_taken(tmp_path):
    path = onnx_file(tmp_path / "net.onnx", outputs=("scores", "features", "logits"))
    said = {"scale": 255, "size": (16, 24)}
    assert load_model(path, **said).notes == ("the model also gives logits; 'scores' was taken",)
    assert load_model(path, **said, output="scores").notes == ()


def test_openvino_files_that_cannot_be_read_get_a_sentence(tmp_path):
    path = saved(tmp_path)
    path.with_suffix(".bin").unlink()
    with pytest.raises(InputError, match=r"net.xml is not a model .*\(net.bin is not beside it\)"):
        load_model(path)
    path.write_text("<net/>")
    with pytest.raises(InputError, match="not a model that OpenVINO can load") as raised:
        load_model(path)
    assert len("".join(raised.value.__notes__).splitlines()) > 1  # all that OpenVINO says


# ---- LiteRT


@pytest.mark.parametrize("batch", [None, 1, 4])
def test_a_litert_file_gives_the_maps_of_the_function_it_computes(batch, tmp_path):
    path = tflite_file(tmp_path / "net.tflite", KERNEL, WEIGHTS, (16, 24), batch=batch)
    model = load_model(path, mean=MEAN, std=STD)
    onnx = load_model(onnx_file(tmp_path / "net.onnx"), mean=MEAN, std=STD)
    image = photo(16, 24)
    np.testing.assert_allclose(maps_of(image, model), maps_of(image, onnx), atol=1e-5)
    six = np.stack([photo(16, 24, seed) for seed in range(6)])
    np.testing.assert_allclose(model(six), onnx(six), atol=1e-5)
    assert load_model(path).notes == ("no preprocessing was given, so pixels go in scaled to 0..1",)


@pytest.mark.parametrize(
    ("takes", "low", "high"),
    [
        (("uint8", 1 / 255, 0), 0, 1),
        (("uint8", 1 / 127.5, 127), -1, 1),
        (("int8", 1 / 255, -128), 0, 1),
        (("int8", 1 / 127.5, -1), -1, 1),
    ],
)
def test_whole_numbers_go_in_as_pixels_or_by_the_scale_of_the_file(takes, low, high, tmp_path):
    """Quantised inputs take pixels as they are; what is said is of the values behind them."""
    path = tflite_file(tmp_path / "net.tflite", KERNEL, WEIGHTS, (16, 24), takes=takes)
    image = photo(16, 24)[None]
    wanted = scores(unit_float(image) * np.float32(high - low) + np.float32(low))
    plain = load_model(path)
    assert plain.notes == ()
    np.testing.assert_allclose(plain(image), wanted, atol=0.02)  # -1 is 127 / 127.5 here
    said = load_model(path, scale=255 / (high - low), mean=-low)
    np.testing.assert_allclose(said(image), wanted, atol=0.01)
    half = load_model(path, scale=255, mean=0.5, std=2.0)  # within what the whole numbers reach
    inside = np.clip((unit_float(image) - 0.5) / 2, low, high)
    np.testing.assert_allclose(half(image), scores(inside.astype(np.float32)), atol=0.02)


@pytest.mark.parametrize("gives", ["uint8", "int8"])
def test_scores_in_whole_numbers_are_read_by_their_scale(gives, tmp_path):
    path = tflite_file(tmp_path / "net.tflite", KERNEL, WEIGHTS, (16, 24), gives=gives)
    model, image = load_model(path, scale=255), photo(16, 24)[None]
    np.testing.assert_allclose(model(image), scores(unit_float(image)), atol=1 / 256)
    many = np.zeros((4, 400))  # of 400 classes, each is rounded from 1/400 to 1/256
    wide = tflite_file(tmp_path / "wide.tflite", KERNEL, many, (16, 24), gives=gives)
    assert abs(load_model(wide, scale=255)(image).sum() - 1) > 0.1  # and yet probabilities


def test_litert_files_that_cannot_be_read_get_a_sentence(tmp_path):
    path = tflite_file(tmp_path / "net.tflite", KERNEL, WEIGHTS, (16, 24))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match=r"net.tflite is not a model that LiteRT can load \("):
        load_model(path)


# ---- what comes out, whatever the runtime


def test_one_number_per_image_needs_a_word_on_what_it_is():
    image = photo(16, 24)[None]

    def chance(images):  # (N,)
        return images.mean(axis=(1, 2, 3)) / 255

    lines = 'score_kind="independent" .* or score_kind="any"'
    for model in (chance, lambda images: chance(images)[:, None]):
        with pytest.raises(ModelError, match=lines):
            load_model(model)(image)
        wanted = chance(image)[:, None]
        np.testing.assert_allclose(load_model(model, score_kind="any")(image), wanted, rtol=1e-6)
        np.testing.assert_allclose(
            load_model(model, score_kind="independent")(image), wanted, rtol=1e-6
        )
    with pytest.raises(ModelError, match="a softmax of one number is always 1: give sigmoid=True"):
        load_model(chance, softmax=True)(image)


def test_a_softmax_or_sigmoid_of_probabilities_is_refused():
    images = np.stack([photo(16, 24, seed) for seed in range(8)])
    with pytest.raises(ModelError, match=r"probabilities already: leave softmax=True out"):
        load_model(scores, scale=255, softmax=True)(images)
    with pytest.raises(ModelError, match=r"leave sigmoid=True out, and give score_k"):
        load_model(scores, scale=255, sigmoid=True)(images)
    for word in ("softmax", "sigmoid"):  # of logits, nothing is to be said
        load_model(logits, scale=255, **{word: True})(images)


@pytest.mark.parametrize("runtime", ["onnx", "session", "openvino", "torch"])
def test_a_device_is_chosen_by_its_name_and_is_no_part_of_the_model(runtime, tmp_path):
    path = onnx_file(tmp_path / "net.onnx", size=(16, 24))
    model = {
        "onnx": lambda: path,
        "session": lambda: onnxruntime.InferenceSession(path),
        "openvino": lambda: saved(tmp_path),
        "torch": lambda: pytest.importorskip("torch").nn.Conv2d(3, 2, 1),
    }[runtime]()
    known = load_model(model, device="cpu", scale=255)
    assert known.identity == load_model(model, scale=255).identity
    assert "device" not in known.origin.settings
    with pytest.raises(InputError, match="device 'quantum'"):
        load_model(model, device="quantum")


def test_a_device_is_refused_where_nobody_is_told(tmp_path):
    for model in (scores, tflite_file(tmp_path / "net.tflite", KERNEL, WEIGHTS, (16, 24))):
        with pytest.raises(InputError, match="only ONNX Runtime, OpenVINO and torch are told"):
            load_model(model, device="cpu")
    compiled = openvino.compile_model(openvino_model(), "CPU")
    with pytest.raises(InputError, match="compiled for a device already"):
        load_model(compiled, device="CPU")
