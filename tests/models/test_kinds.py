"""The obvious first line for every kind of model: it works, or the refusal has the line that does.

The table "The first line" in docs/models.md lists the same kinds with the same outcome. Kinds of
libraries that are not installed are skipped: `make test-frameworks` has them all.
"""

import os
import re
from pathlib import Path

import numpy as np
import onnxruntime
import openvino
import pytest
from PIL import Image

import mcrise
from frameworks import import_torchvision
from mcrise.sampling import Explanations
from planted import photo
from small_net import KERNEL, WEIGHTS, onnx_file
from tflite_files import tflite_file

os.environ.setdefault("KERAS_BACKEND", "jax")
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that are not ours
PAGE = Path(__file__).parents[2] / "docs" / "models.md"
FEW = {"n_masks": 64, "mask_prob": 0.3, "trials": False, "grid": 4}
PICTURE = Image.fromarray(photo(40, 52, 3))
SIZE = (16, 24)
NO_PREPROCESSING = "no preprocessing was given"
ONE_NUMBER = r'one number per image.*score_kind="independent".*score_kind="any"'
KINDS = {}  # name in the docs -> how it is explained, and what is refused or assumed


def kind(name, refused="", assumed=""):
    def add(function):
        assert name not in KINDS
        KINDS[name] = (function, refused, assumed)
        return function

    return add


def explain(model, image=PICTURE, **settings):
    return mcrise.explain(image, model, **FEW, **settings)


def torch_net(n=3, activation="softmax", heads=False):
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3)
            self.last = torch.nn.Linear(4, n)

        def forward(self, images):
            answer = self.last(torch.relu(self.conv(images)).mean((2, 3)))
            if heads:
                return {"color": answer, "type": answer[:, :2]}
            if activation == "softmax":
                return torch.softmax(answer, 1)
            return torch.sigmoid(answer) if activation == "sigmoid" else answer

    return Net().eval()


# ---- torchvision and timm


def resnet():
    return import_torchvision().models.resnet18().eval()


@kind("torchvision, without weights", refused="preprocess=ResNet18_Weights.DEFAULT")
def _(folder):
    return explain(resnet())


@kind("torchvision, with weights")
def _(folder):
    weights = import_torchvision().models.ResNet18_Weights.DEFAULT
    found = explain(resnet(), preprocess=weights)
    assert found.labels == tuple(weights.meta["categories"])
    assert found.plan.size == (224, 224)
    return found


@kind("timm")
def _(folder):
    import_torchvision()
    timm = pytest.importorskip("timm")
    return explain(timm.create_model("resnet18", num_classes=5).eval())


# ---- Hugging Face


def vit():
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=5,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config).eval(), transformers.ViTImageProcessor()


@kind("Hugging Face, model alone", refused="preprocess=AutoImageProcessor.from_pretrained")
def _(folder):
    return explain(vit()[0])


@kind("Hugging Face, model and processor", assumed="differs by a few levels of 255")
def _(folder):
    model, processor = vit()
    return explain(model, preprocess=processor)


@kind("Hugging Face, pipeline", assumed="differs by a few levels of 255")
def _(folder):
    model, processor = vit()
    transformers = pytest.importorskip("transformers")
    task = "image-classification"
    return explain(transformers.pipeline(task, model=model, image_processor=processor))


@kind("Hugging Face, folder", assumed="differs by a few levels of 255")
def _(folder):
    for one in vit():
        one.save_pretrained(folder)
    with pytest.raises(mcrise.InputError, match=f"give hf:{folder}"):
        explain(folder)
    return explain(f"hf:{folder}")


# ---- Keras and scikit-learn


def keras_net():
    keras = pytest.importorskip("keras", exc_type=ImportError)
    layers = keras.layers
    return keras.Sequential(
        [layers.Input((*SIZE, 3)), layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(),
         layers.Dense(3, activation="softmax")]
    )  # fmt: skip


@kind("Keras, model", assumed=NO_PREPROCESSING)
def _(folder):
    net = keras_net()
    found = explain(net)
    assert found.plan.size == SIZE
    np.testing.assert_allclose(explain(net.predict).untouched, found.untouched)
    return found


@kind("Keras, file", assumed=NO_PREPROCESSING)
def _(folder):
    keras_net().save(folder / "net.keras")
    return explain(folder / "net.keras")


@kind("scikit-learn", assumed="192 numbers per image were taken for 8 x 8 pixels")
def _(folder):
    from sklearn.linear_model import LogisticRegression

    rows = np.random.default_rng(0).random((30, 192))
    estimator = LogisticRegression().fit(
        rows, np.array(["apple", "pear", "plum"])[np.arange(30) % 3]
    )
    found = explain(estimator)
    assert found.labels == ("apple", "pear", "plum")
    np.testing.assert_allclose(explain(estimator.predict_proba).untouched, found.untouched)
    return found


# ---- functions


@kind("JAX, compiled function", assumed=NO_PREPROCESSING)
def _(folder):
    jax = pytest.importorskip("jax")
    return explain(jax.jit(lambda images: jax.nn.softmax(5 * images.mean(axis=(1, 2)))))


@kind("flax, module with its weights", assumed=NO_PREPROCESSING)
def _(folder):
    jax, linen = pytest.importorskip("jax"), pytest.importorskip("flax.linen")

    class Net(linen.Module):
        @linen.compact
        def __call__(self, images):
            return linen.softmax(linen.Dense(3)(linen.Conv(4, (3, 3))(images).mean(axis=(1, 2))))

    net = Net()
    variables = net.init(jax.random.key(0), np.zeros((1, 16, 16, 3), np.float32))
    with pytest.raises(mcrise.InputError, match=r"give module.bind\(variables\)"):
        explain(net)
    whole = explain(lambda images: net.apply(variables, images))  # on 0..255
    assert any("pixels as the image has them" in note for note in whole.assumed)
    found = explain(net.bind(variables))
    unit = np.asarray(PICTURE, np.float32)[None] / 255
    np.testing.assert_allclose(found.untouched, net.apply(variables, unit)[0], atol=1e-5)
    return found


def bright(images):
    level = np.array([np.asarray(image).mean() / 255 for image in images])
    return np.stack([level, 1 - level], axis=1)


@kind("function of a list of Pillow images", refused='give layout="pillow"')
def _(folder):
    found = explain(lambda images: bright([one.convert("L") for one in images]), layout="pillow")
    assert isinstance(found, mcrise.Explanation)
    return explain(lambda images: bright([one.convert("L") for one in images]))


@kind("function of arrays")
def _(folder):
    return explain(bright)


# ---- files and sessions


@kind("ONNX Runtime, session", assumed=NO_PREPROCESSING)
def _(folder):
    return explain(onnxruntime.InferenceSession(onnx_file(folder / "net.onnx", size=SIZE)))


@kind("ONNX, batch of one", assumed=NO_PREPROCESSING)
def _(folder):
    return explain(onnx_file(folder / "net.onnx", batch=1, size=SIZE))


@kind("ONNX, NHWC and uint8")
def _(folder):
    return explain(onnx_file(folder / "net.onnx", size=SIZE, layout="NHWC", dtype="UINT8"))


@kind("OpenVINO, compiled model", assumed=NO_PREPROCESSING)
def _(folder):
    net = openvino.convert_model(onnx_file(folder / "net.onnx", size=SIZE))
    return explain(openvino.Core().compile_model(net, "CPU"))


@kind("OpenVINO, file", assumed=NO_PREPROCESSING)
def _(folder):
    net = openvino.convert_model(onnx_file(folder / "net.onnx", size=SIZE))
    openvino.save_model(net, folder / "net.xml")
    return explain(folder / "net.xml")


@kind("LiteRT, float", assumed=NO_PREPROCESSING)
def _(folder):
    return explain(tflite_file(folder / "net.tflite", KERNEL, WEIGHTS, SIZE))


@kind("torch, module", assumed=NO_PREPROCESSING)
def _(folder):
    return explain(torch_net())


@kind("torch, exported program", assumed=NO_PREPROCESSING)
def _(folder):
    net, torch = torch_net(), pytest.importorskip("torch")
    program = torch.export.export(net, (torch.rand(1, 3, *SIZE),))
    torch.export.save(program, folder / "net.pt2")
    found = explain(folder / "net.pt2")
    np.testing.assert_allclose(found.untouched, explain(program).untouched)
    return found


@kind("TorchScript", assumed=NO_PREPROCESSING)
def _(folder):
    net, torch = torch_net(), pytest.importorskip("torch")
    torch.jit.trace(net, torch.rand(1, 3, *SIZE)).save(str(folder / "net.pt"))
    return explain(folder / "net.pt")


# ---- answers


@kind("logits", refused="add a softmax")
def _(folder):
    return explain(torch_net(activation=""))


@kind("one number per image", refused=ONE_NUMBER)
def _(folder):
    return explain(lambda images: bright(images)[:, :1])


@kind("sigmoid on probabilities", refused="leave sigmoid=True out")
def _(folder):
    return explain(torch_net(activation="sigmoid"), sigmoid=True)


@kind("softmax of one number", refused="always 1: give sigmoid=True")
def _(folder):
    return explain(torch_net(n=1, activation=""), softmax=True)


@kind("several outputs", refused=r'color \(1 x 3\), type \(1 x 2\).*output="type"')
def _(folder):
    return explain(torch_net(heads=True))


# ---- images


@kind("images from a torch DataLoader", assumed=NO_PREPROCESSING)
def _(folder):
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.rand(3, 3, *SIZE), torch.arange(3))
    found = explain(torch_net(), torch.utils.data.DataLoader(data, batch_size=2))
    assert len(found) == 3
    return found


@kind("images from a Hugging Face data set")
def _(folder):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"image": [PICTURE] * 2, "label": [0, 1]})
    found = explain(bright, data)
    assert len(found) == 2
    return found


@kind("images to match")
def _(folder):
    for seed in range(3):
        Image.fromarray(photo(16, 24, seed)).save(folder / f"{seed}.png")

    def features(images):
        return images.mean(axis=(1, 2)) / 255

    gallery = mcrise.open_gallery(folder, features)
    matched = mcrise.match(folder / "0.png", gallery, features)
    found = explain(matched.model, folder / "0.png")
    assert {one.name for one in folder.iterdir()} == {"0.png", "1.png", "2.png"}
    return found


# ---- the test


@pytest.mark.parametrize("name", KINDS)
def test_the_first_line_works_or_the_refusal_has_the_line_that_does(name, tmp_path):
    function, refused, assumed = KINDS[name]
    if refused:
        with pytest.raises(mcrise.McriseError) as raised:
            function(tmp_path)
        assert re.search(refused, str(raised.value))
        return
    found = function(tmp_path)
    first = found[0] if isinstance(found, Explanations) else found
    notes = getattr(first, "assumed", ())
    assert bool(notes) == bool(assumed)
    assert assumed in "; ".join(notes)
    assert assumed in repr(first)


def test_the_table_of_kinds_in_the_docs_is_that_of_the_tests():
    section = PAGE.read_text().split("### The first line")[1].split("\n#")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if "| `" in line]
    listed = {row[0]: row[2] for row in rows}
    assert list(listed) == list(KINDS)
    for name, (_, refused, assumed) in KINDS.items():
        word = "refused" if refused else "works and says" if assumed else "works"
        assert listed[name].startswith(word), name
        assert word != "works" or not listed[name].startswith("works and says"), name
