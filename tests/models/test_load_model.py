"""Models from files, modules and names: whatever the way in, the same function, the same maps.

All of them compute `scores` of `small_net`: a convolution, a mean over the picture and a softmax.
"""

import logging
import sys
import tomllib
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from matplotlib.text import Text
from onnx import TensorProto, helper

import mcrise
from mcrise import InputError, Model, load_model
from mcrise.fills import parse
from mcrise.images import unit_float
from mcrise.masks import Plan, draw
from mcrise.models.settings import SECTIONS
from mcrise.painting.canvas import paint, paint_reference
from planted import photo
from small_net import KERNEL, MEAN, STD, WEIGHTS, logits, maps_of, onnx_file, scores


@pytest.fixture
def importable(tmp_path, monkeypatch):
    """A function that writes a module to import by name; afterwards it was never there."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(Path(__file__).parent), *sys.path])
    monkeypatch.chdir(tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setitem(sys.modules, name, None)  # so that its removal is undone too
        del sys.modules[name]

    return write


# ---- ONNX


@pytest.mark.parametrize(
    "made",
    [
        pytest.param({}, id="any batch"),
        pytest.param({"batch": 1}, id="a batch of one"),
        pytest.param({"batch": 4}, id="a batch of four"),
        pytest.param({"size": (16, 24)}, id="a fixed size"),
        pytest.param({"layout": "NHWC"}, id="channels last"),
        pytest.param({"layout": "NHWC", "batch": 1, "size": (16, 24)}, id="channels last, fixed"),
        pytest.param({"dtype": "UINT8"}, id="whole pixels"),
        pytest.param({"dtype": "UINT8", "layout": "NHWC"}, id="whole pixels, channels last"),
        pytest.param({"dtype": "FLOAT16"}, id="half floats"),
        pytest.param({"opset": 9}, id="opset 9"),
        pytest.param({"opset": 22}, id="opset 22"),
        pytest.param({"outputs": ("features", "scores", "logits")}, id="several outputs"),
    ],
)
def test_an_onnx_file_gives_the_maps_of_the_function_it_computes(made, tmp_path):
    model = load_model(onnx_file(tmp_path / "model.onnx", **made))
    if made.get("dtype") == "UINT8":
        image, function = photo(16, 24), lambda pixels: scores(pixels / np.float32(255))
    else:  # floats reach a plain callable unrounded, as they do the model
        image, function = unit_float(photo(16, 24)), scores
    tolerance = 1e-3 if made.get("dtype") == "FLOAT16" else 1e-5
    np.testing.assert_allclose(
        maps_of(image, model), maps_of(image, function), rtol=0, atol=tolerance
    )
    # Six images are one batch of four and a rest.
    six = np.stack([photo(16, 24, seed) for seed in range(6)])
    np.testing.assert_allclose(model(six), scores(unit_float(six)), atol=tolerance)


def test_another_output_is_taken_by_name(tmp_path):
    path = onnx_file(tmp_path / "model.onnx", outputs=("features", "scores", "logits"))
    model = load_model(path, name="logits", score_kind="any")
    image = photo(16, 24)[None]
    np.testing.assert_allclose(model(image), logits(unit_float(image)), atol=1e-5)
    listed = r"features \(N x 4 x N x N\), scores \(N x 3\), logits \(N x 3\)"
    with pytest.raises(InputError, match=f"no output 'score': it has {listed}"):
        load_model(path, name="score")


def test_scores_of_one_pixel_are_scores_but_larger_pictures_are_not(tmp_path):
    path = onnx_file(tmp_path / "model.onnx", outputs=("means", "features"))
    image = photo(16, 24)[None]
    answer = load_model(path, score_kind="any")(image)
    np.testing.assert_allclose(answer @ WEIGHTS, logits(unit_float(image)), atol=1e-5)
    with pytest.raises(mcrise.ModelError, match=r"shape \(1, 4, 7, 11\), but \(1, number of"):
        load_model(path, name="features", score_kind="any")(image)


def test_logits_become_probabilities_with_softmax(tmp_path):
    path = onnx_file(tmp_path / "model.onnx", outputs=("logits",))
    image = photo(16, 24)[None]
    np.testing.assert_allclose(
        load_model(path, softmax=True)(image), scores(unit_float(image)), atol=1e-6
    )
    with pytest.raises(mcrise.ModelError, match=r"add a softmax \(softmax=True\)"):
        load_model(path)(image)


def test_a_model_of_any_size_is_shown_the_image_as_it_is_unless_a_size_is_given(tmp_path):
    path = onnx_file(tmp_path / "model.onnx")
    assert load_model(path).view(photo(20, 30)).pixels.shape == (20, 30, 3)
    assert load_model(path, size=(16, 24)).view(photo(20, 30)).pixels.shape == (16, 24, 3)
    assert load_model(path, size=16).view(photo(20, 30)).pixels.shape == (16, 16, 3)


def test_a_model_of_fixed_size_is_shown_the_image_in_that_size(tmp_path):
    path = onnx_file(tmp_path / "model.onnx", size=(16, 24))
    view = load_model(path).view(photo(40, 80))
    assert view.pixels.shape == (16, 24, 3)
    assert view.box == (0, 0, 40, 80)
    # Shrunk twofold to 24 x 48, its middle 16 x 24 pixels were 32 x 48 in the original.
    cut = load_model(path, short_side=24).view(photo(48, 96))
    assert cut.pixels.shape == (16, 24, 3)
    assert cut.box == (8, 24, 40, 72)
    with pytest.raises(InputError, match="16 x 16, but the model takes only 16 x 24: leave"):
        load_model(path, size=(16, 16))


def one_input(path, shape, dtype=TensorProto.FLOAT, n_inputs=1):
    """A file that has inputs and does nothing with them."""
    inputs = [helper.make_tensor_value_info(f"in{k}", dtype, shape) for k in range(n_inputs)]
    output = helper.make_tensor_value_info("out", dtype, shape)
    nodes = [helper.make_node("Identity", ["in0"], ["out"])]
    graph = helper.make_graph(nodes, "graph", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        pytest.param({"shape": ("N", 1, 28, 28)}, "sees no colors to explain", id="one channel"),
        pytest.param({"shape": ("N", 28, 28, 1)}, "sees no colors", id="one channel, last"),
        pytest.param({"shape": ("N", 4, 28, 28)}, "4 channels in layout NCHW", id="four channels"),
        pytest.param({"shape": ("N", 588)}, "one batch of images", id="no picture"),
        pytest.param(
            {"shape": ("N", 3, 28, 28), "n_inputs": 2}, "takes in0 .* in1 .* one batch", id="two"
        ),
        pytest.param(
            {"shape": ("N", 3, 28, 28), "dtype": TensorProto.INT64}, "takes tensor.int64", id="ints"
        ),
    ],
)
def test_a_model_that_takes_no_color_images_gets_a_sentence(made, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        load_model(one_input(tmp_path / "model.onnx", **made))


def test_what_had_to_be_assumed_is_said(tmp_path):
    path = onnx_file(tmp_path / "model.onnx")
    preprocessing = "no preprocessing was given, so pixels go in scaled to 0..1"
    size = "no size was given, so images go in at their own size"
    assert load_model(path).notes == (preprocessing, size)
    assert load_model(path, scale=255).notes == (size,)
    assert load_model(path, size=(16, 24)).notes == (preprocessing,)
    assert load_model(path, scale=255, size=(16, 24)).notes == ()
    open_layout = one_input(tmp_path / "open.onnx", ("N", "A", "B", "C"))
    assert "NCHW was assumed" in load_model(open_layout).notes[0]
    assert load_model(open_layout, layout="NHWC", scale=1, size=16).notes == ()


def test_what_was_assumed_is_in_the_run_its_repr_its_file_its_figure_and_one_warning(tmp_path):
    note = "no preprocessing was given, so pixels go in scaled to 0..1"
    path = onnx_file(tmp_path / "model.onnx", size=(16, 24))
    with pytest.warns(UserWarning, match="^Assumed: no preprocessing was given") as warned:
        explanation = mcrise.explain(photo(16, 24), path, n_masks=64, grid=(4, 4), mask_prob=0.4)
    assert [Path(one.filename).name for one in warned] == [Path(__file__).name]
    with pytest.warns(UserWarning, match="^Assumed: ") as warned:
        mcrise.explain([photo(16, 24)] * 3, path, n_masks=64, mask_prob=0.4, trials=False)
    assert len(warned) == 1
    assert explanation.notes == (note,)
    assert note in repr(explanation)
    explanation.save(tmp_path / "run.npz")
    assert mcrise.load(tmp_path / "run.npz").notes == (note,)
    words = " ".join(" ".join(t.get_text().split()) for t in explanation.plot().findobj(Text))
    assert note in words
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = mcrise.explain(photo(16, 24), path, scale=255, n_masks=64, trials=False)
    assert said.assumed == ()


def test_pixels_in_the_wrong_size_are_named_as_a_likely_reason(tmp_path):
    # The file leaves rows and columns open, but the model cannot: Squeeze wants sides of one.
    path = one_input(tmp_path / "model.onnx", ("N", 3, "H", "W"))
    model = onnx.load(path)
    model.graph.node[0].CopyFrom(helper.make_node("Squeeze", ["in0", "sides"], ["out"]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 3]), "sides"))
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("out", TensorProto.FLOAT, ("N", 3))
    )
    onnx.save(model, path)
    with pytest.raises(mcrise.ModelError, match=r"if the model wants another, give size=\("):
        load_model(path)(photo(16, 24)[None])


# ---- preprocessing


def test_mean_std_and_channel_order_are_applied_in_that_order(tmp_path):
    """Mean and std are red, green, blue also where the model wants blue first."""
    path = onnx_file(tmp_path / "model.onnx")
    images = np.stack([photo(16, 24, seed) for seed in range(3)])
    normal = (unit_float(images) - np.float32(MEAN)) / np.float32(STD)
    rgb = load_model(path, mean=MEAN, std=STD)
    np.testing.assert_allclose(rgb(images), scores(normal), atol=1e-5)
    bgr = load_model(path, mean=MEAN, std=STD, channels="bgr")
    np.testing.assert_allclose(bgr(images), scores(normal[..., ::-1]), atol=1e-5)
    whole = load_model(path, scale=1, mean=[100], std=[50])  # one number serves all channels
    np.testing.assert_allclose(whole(images), scores((images - np.float32(100)) / 50), atol=1e-5)


@pytest.mark.parametrize("channels", ["rgb", "bgr"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_blending_in_model_space_is_blending_pixels_and_preprocessing_them(
    layout, channels, tmp_path
):
    path = onnx_file(tmp_path / "model.onnx", layout=layout)
    model = load_model(path, mean=MEAN, std=STD, channels=channels)
    pixels, fills = photo(16, 24), parse("red,#123456,mean,blur:2,gray")
    plan = Plan((16, 24), fills, grid=(4, 5), mask_prob=0.4)
    masks = draw(plan, 0)
    raw = paint_reference(plan, Model(scores).canvas(unit_float(pixels), fills), masks)
    normal = (raw - np.float32(MEAN)) / np.float32(STD)  # (N, H, W, 3)
    normal = normal[..., ::-1] if channels == "bgr" else normal
    wanted = normal.transpose(0, 3, 1, 2) if layout == "NCHW" else normal
    canvas = model.canvas(pixels, fills)
    np.testing.assert_allclose(paint_reference(plan, canvas, masks), wanted, atol=1e-5)
    blended = paint(plan, canvas, masks, canvas.batch(len(masks)))
    np.testing.assert_allclose(blended, wanted, atol=1e-5)
    np.testing.assert_allclose(model.scores(blended), scores(normal), atol=1e-5)
    np.testing.assert_allclose(model(raw), scores(normal), atol=1e-5)


# ---- settings


def test_the_toml_file_beside_a_model_is_read_and_arguments_override_it(tmp_path):
    path = onnx_file(tmp_path / "model.onnx", outputs=("scores", "logits"))
    (tmp_path / "names.txt").write_text("apple\n\npear\nplum\n", encoding="utf-8-sig")
    (tmp_path / "model.toml").write_text(
        '[input]\nsize = [16, 24]\nfilter = "area"\nmean = [0.1, 0.4, 0.6]\nstd = [0.2, 0.3, 0.5]\n'
        'channels = "bgr"\n[output]\nname = "logits"\nsoftmax = true\nlabels = "names.txt"\n'
    )
    model = load_model(path)
    image = photo(16, 24)[None]
    normal = (unit_float(image) - np.float32(MEAN)) / np.float32(STD)
    np.testing.assert_allclose(model(image), scores(normal[..., ::-1]), atol=1e-5)
    assert model.geometry.size == (16, 24)
    assert model.geometry.filter == "area"
    assert model.labels == ("apple", "pear", "plum")

    other = load_model(path, channels="rgb", labels=["a", "b", "c"], size=(20, 20))
    np.testing.assert_allclose(other(image), scores(normal), atol=1e-5)
    assert other.geometry.size == (20, 20)
    assert other.geometry.filter == "area"
    assert other.labels == ("a", "b", "c")


def test_labels_name_the_classes_of_the_maps(tmp_path):
    path = onnx_file(tmp_path / "model.onnx")
    (tmp_path / "names.txt").write_text("apple\npear\nplum\n")
    model = load_model(path, labels=tmp_path / "names.txt")
    explanation = mcrise.explain(photo(16, 24), model, n_masks=64)
    assert explanation.maps("pear", "centered").target == 1
    with pytest.raises(InputError, match="2 labels, but the model gives 3 scores"):
        mcrise.explain(photo(16, 24), load_model(path, labels=["a", "b"]), n_masks=64)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("[input]\nsise = 16", r"'sise' is not a setting of \[input\]; did you mean 'size'"),
        ("[input]\nlabels = ['a']", r"'labels' is not a setting of \[input\]; there are size, "),
        ("[imput]\nsize = 16", r"'imput' stands at the top, but there are only \[input\] and"),
        ("size = 16", "'size' stands at the top"),
        ("[input", r"this is not TOML \("),
        ("[input]\nsize = [1, 2, 3]", "rows and columns, as in .224, 224., are needed"),
        ("[input]\nsize = 16.5", "rows and columns"),
        ("[input]\nscale = 'x'", "scale is 'x', but a number above zero is needed"),
        ("[input]\nscale = 0", "scale is 0, but"),
        ("[input]\nscale = nan", "scale is nan, but"),
        ("[input]\nmean = [1, 2]", "one number or three"),
        ("[input]\nstd = [1, 0, 1]", "three .red, green, blue. above zero"),
        ("[input]\nshort_side = -3", "whole number above zero"),
        ("[input]\nfilter = ['area']", "filter is .'area'., but a word is needed"),
        ("[input]\nfilter = 'box'", "one of nearest, bilinear"),
        ("[input]\nlayout = 'HWC'", "must be NCHW or NHWC"),
        ("[input]\nchannels = 'gbr'", "must be one of rgb, bgr"),
        ("[output]\nscore_kind = 'logit'", "must be one of probability, independent, similarity"),
        ("[output]\nsoftmax = 'yes'", "true or false is needed"),
        ("[output]\nlabels = [1, 2, 3]", "a list of names"),
        ("[output]\nlabels = 'none.txt'", r"none.txt cannot be read \(No such file"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_in_words(said, sentence, tmp_path):
    path = onnx_file(tmp_path / "model.onnx")
    (tmp_path / "model.toml").write_text(said)
    with pytest.raises(InputError, match=sentence):
        load_model(path)


def test_preprocessing_is_refused_where_the_model_takes_whole_pixels(tmp_path):
    with pytest.raises(InputError, match="takes whole pixels"):
        load_model(onnx_file(tmp_path / "model.onnx", dtype="UINT8"), mean=MEAN)


def test_identity_changes_with_the_file_and_the_settings_and_with_nothing_else(tmp_path):
    path = onnx_file(tmp_path / "model.onnx")
    plain = load_model(path).identity
    assert load_model(path).identity == plain
    assert load_model(path, threads=1, labels=["a", "b", "c"]).identity == plain
    others = [
        load_model(path, **given).identity
        for given in ({"mean": 0.5}, {"mean": 0.4}, {"channels": "bgr"}, {"softmax": True})
    ]
    (tmp_path / "model.toml").write_text("[input]\nmean = [0.5]\n")
    assert load_model(path).identity == others[0]  # said here or there, as 0.5 or as [0.5]
    (tmp_path / "model.toml").unlink()
    others.append(load_model(onnx_file(path, opset=18)).identity)
    assert len({plain, *others}) == 6


def test_identity_changes_with_weights_in_a_file_of_their_own(tmp_path):
    path = onnx_file(tmp_path / "model.onnx")
    onnx.save(
        onnx.load(path), path, save_as_external_data=True, location="large.bin", size_threshold=0
    )
    before = load_model(path).identity
    weights = np.frombuffer((tmp_path / "large.bin").read_bytes(), np.uint8).copy()
    weights[0] ^= 1
    (tmp_path / "large.bin").write_bytes(weights.tobytes())
    assert load_model(path).identity != before


# ---- torch, and names in Python

NET = f"""
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, stride=2, bias=False)
        self.last = torch.nn.Linear(4, 3, bias=False)
        self.conv.weight.data = torch.tensor({KERNEL.tolist()})
        self.last.weight.data = torch.tensor({WEIGHTS.T.tolist()})

    def forward(self, images):
        return torch.softmax(self.last(torch.relu(self.conv(images)).mean((2, 3))), 1)

net = Net()
"""


@pytest.fixture(scope="module")
def torch_files(tmp_path_factory):
    """The function as a torch module, as TorchScript and as an exported program."""
    import torch

    folder = tmp_path_factory.mktemp("torch")
    scope = {"__name__": "nets"}
    exec(NET, scope)
    net, images = scope["net"].eval(), torch.rand(2, 3, 16, 24)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        torch.jit.save(torch.jit.trace(net, images), folder / "net.pt")
    batch = {"images": {0: torch.export.Dim("n", min=1, max=64)}}
    torch.export.save(torch.export.export(net, (images,), dynamic_shapes=batch), folder / "net.pt2")
    return net, folder


def test_every_way_to_bring_a_model_gives_the_same_maps(torch_files, tmp_path, importable):
    net, folder = torch_files
    importable("nets", NET)
    importable(
        "functions",
        "from test_load_model import scores\nclass Named:\n    scores = staticmethod(scores)\n",
    )
    ways = {
        "onnx": load_model(onnx_file(tmp_path / "net.onnx"), mean=MEAN, std=STD),
        "module": load_model(net, mean=MEAN, std=STD),
        "TorchScript": load_model(folder / "net.pt", mean=MEAN, std=STD),
        "exported": load_model(folder / "net.pt2", mean=MEAN, std=STD),
        "named module": load_model("nets:net", mean=MEAN, std=STD),
        "named callable": load_model("functions:scores", mean=MEAN, std=STD),
        "in a namespace": load_model("functions:Named.scores", mean=MEAN, std=STD),
    }
    image = photo(16, 24)
    wanted = maps_of(image, ways["onnx"])
    assert np.abs(wanted).max() > 0.01  # there is something to agree on
    for way, model in ways.items():
        np.testing.assert_allclose(maps_of(image, model), wanted, atol=1e-5, err_msg=way)
    assert len({model.identity for model in ways.values()}) == len(ways)


def test_a_named_callable_gets_the_pixels_of_the_image_unless_told_otherwise(importable):
    importable(
        "seen",
        "import numpy as np\n"
        "def look(batch):\n"
        "    global last\n"
        "    last = batch.copy()\n"
        "    return np.full((len(batch), 2), 0.5)\n",
    )
    image = photo(16, 24)
    model = load_model("seen:look")
    maps_of(image, model)
    import seen

    assert (seen.last.shape, seen.last.dtype) == ((4, 16, 24, 3), np.uint8)  # jitter: a few again
    load_model("seen:look", layout="NCHW", scale=255)(image[None])
    assert (seen.last.shape, seen.last.dtype) == ((1, 3, 16, 24), np.float32)
    np.testing.assert_allclose(seen.last[0].transpose(1, 2, 0), unit_float(image), atol=1e-6)


def test_the_identity_of_a_named_callable_changes_with_its_file(importable):
    text = "import numpy as np\ndef look(batch):\n    return np.ones((len(batch), 1))\n"
    importable("seen", text)
    before = load_model("seen:look").identity
    importable("seen", text + "# changed\n")
    assert load_model("seen:look").identity != before
    assert load_model("seen:look", mean=0.5).identity != load_model("seen:look").identity


def test_a_named_model_of_ours_keeps_its_input_and_takes_labels(importable):
    importable(
        "ours",
        "import mcrise\nfrom test_load_model import logits\n"
        "model = mcrise.Model(logits, dtype='float32', gain=(1 / 255,) * 3)\n",
    )
    model = load_model("ours:model", softmax=True, labels=["a", "b", "c"])
    image = photo(16, 24)[None]
    np.testing.assert_allclose(model(image), scores(unit_float(image)), atol=1e-5)
    assert model.labels == ("a", "b", "c")
    with pytest.raises(InputError, match="says itself how images go in"):
        load_model("ours:model", mean=0.5)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("net.onnx", "The model net.onnx does not exist"),
        ("net.pt", "The model net.pt does not exist"),
        ("net.xyz", "'net.xyz', but an .onnx, .pt, .pt2, .xml, .tflite, .keras file, hf:FOLDER"),
        ("not_there:f", "cannot be imported .ModuleNotFoundError: No module named 'not_there'"),
        ("odd:not_there", "cannot be imported .AttributeError"),
        ("odd:number", "is a int, but something to call on images is needed"),
        ("odd:Class", "is a class, but something to call on images is needed"),
        ("broken:f", "cannot be imported .ZeroDivisionError: division by zero"),
        ("leaving:f", "cannot be imported .SystemExit"),
    ],
)
def test_what_is_no_model_is_refused_in_words(spec, sentence, importable):
    importable("odd", "number = 3\nclass Class:\n    pass\n")
    importable("broken", "1 / 0\n")
    importable("leaving", "import sys\nsys.exit()\n")
    with pytest.raises(InputError, match=sentence):
        load_model(spec)


def test_a_function_is_a_model_and_settings_say_how_images_go_in():
    pixels = photo(9, 7)[None]
    wanted = scores(pixels / 255)
    np.testing.assert_allclose(load_model(scores)(pixels / 255), wanted, rtol=1e-5)
    np.testing.assert_allclose(load_model(scores, scale=255)(pixels), wanted, rtol=1e-5)
    with pytest.raises(InputError, match="The model is a int, but something that can be called"):
        load_model(3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_torch_module_gets_its_images_in_the_type_of_its_weights(dtype, torch_files):
    import torch

    scope = {"__name__": "nets"}
    exec(NET, scope)
    image = photo(16, 24)[None]
    model = load_model(scope["net"].to(getattr(torch, dtype)))
    np.testing.assert_allclose(model(image), scores(unit_float(image)), atol=0.05)


def test_the_scores_of_a_torch_module_are_found_among_its_outputs(torch_files):
    import torch

    class Several(torch.nn.Module):
        def __init__(self, pack):
            super().__init__()
            self.net, self.pack = torch_files[0], pack

        def forward(self, images):
            return self.pack(self.net(images))

    image = photo(16, 24)[None]
    wanted = scores(unit_float(image))
    for pack, name in (
        (lambda answer: (answer, "more"), None),
        (lambda answer: {"loss": 0, "logits": answer}, None),
        (lambda answer: {"loss": 0, "chances": answer}, "chances"),
    ):
        np.testing.assert_allclose(load_model(Several(pack), name=name)(image), wanted, atol=1e-5)
    with pytest.raises(InputError, match="no output 'chance': it has chances"):
        load_model(Several(lambda answer: {"chances": answer}), name="chance")(image)
    with pytest.raises(InputError, match="one output without a name"):
        load_model(Several(lambda answer: answer), name="chance")(image)


def test_a_torch_module_is_asked_as_in_use_and_not_as_in_training(torch_files):
    import torch

    net = torch.nn.Sequential(torch_files[0], torch.nn.Dropout(0.5)).train()
    image = photo(16, 24)[None]
    np.testing.assert_allclose(load_model(net)(image), scores(unit_float(image)), atol=1e-5)


class Bomb:
    """What a pickle can do to whoever opens it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("suffix", [".pt", ".pt2"])
def test_pickled_modules_are_refused_unopened(suffix, tmp_path, monkeypatch, caplog):
    import torch

    monkeypatch.setattr(logging.getLogger("torch"), "handlers", [caplog.handler])
    torch.save({"net": Bomb(str(tmp_path / "it ran"))}, tmp_path / f"net{suffix}")
    with pytest.raises(InputError, match="pickled modules are not opened"):
        load_model(tmp_path / f"net{suffix}")
    assert not (tmp_path / "it ran").exists()
    assert not caplog.records  # torch would log a traceback beside our sentence


def test_the_page_on_models_shows_every_setting_and_only_those():
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    shown = tomllib.loads(page.partition("```toml\n")[2].partition("```")[0])
    assert {name: tuple(entries) for name, entries in shown.items()} == SECTIONS
    listed = page.partition("| key |")[2].partition("\n\n")[0]
    for key in (key for keys in SECTIONS.values() for key in keys):
        assert f"`{key}`" in listed


def test_a_folder_without_its_prefix_is_refused_with_the_line_that_works(tmp_path):
    with pytest.raises(InputError, match=f"is a folder: give hf:{tmp_path} if"):
        load_model(tmp_path)
