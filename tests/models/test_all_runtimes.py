"""One small classifier in every form there is: the same map, whichever runtime computes it.

Keras and transformers are not in the environment of `make test`, which skips their forms; `make
test-frameworks` has them.
"""

import numpy as np
import openvino
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import mcrise
from mcrise import load_model
from planted import photo
from small_net import KERNEL, MEAN, STD, WEIGHTS, maps_of, onnx_file, scores
from tflite_files import tflite_file

SIZE = (16, 24)
NORMAL = {"mean": MEAN, "std": STD}
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that are not ours


def torch_net():
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, stride=2, bias=False)
            self.last = torch.nn.Linear(4, 3, bias=False)
            self.conv.weight.data = torch.tensor(KERNEL)
            self.last.weight.data = torch.tensor(WEIGHTS.T.copy())

        def forward(self, images):
            return torch.softmax(self.last(torch.relu(self.conv(images)).mean((2, 3))), 1)

    return Net().eval()


def as_onnx(folder):
    return load_model(onnx_file(folder / "net.onnx"), **NORMAL)


def as_onnx_of_one(folder):
    return load_model(onnx_file(folder / "net.onnx", batch=1, size=SIZE), threads=2, **NORMAL)


def as_module(folder):
    return load_model(torch_net(), **NORMAL)


def as_program(folder):
    import torch

    program = torch.export.export(torch_net(), (torch.rand(1, 3, *SIZE),))
    torch.export.save(program, folder / "net.pt2")
    return load_model(folder / "net.pt2", **NORMAL)


def as_openvino(folder):
    net = openvino.convert_model(onnx_file(folder / "net.onnx", size=SIZE))
    openvino.save_model(net, folder / "net.xml", compress_to_fp16=False)
    return load_model(folder / "net.xml", **NORMAL)


def as_litert(folder):
    return load_model(tflite_file(folder / "net.tflite", KERNEL, WEIGHTS, SIZE), **NORMAL)


class Flat(ClassifierMixin, BaseEstimator):
    """The function as an estimator of flattened images."""

    n_features_in_ = 3 * SIZE[0] * SIZE[1]
    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, rows):
        return scores(np.reshape(rows, (-1, *SIZE, 3)))


def as_estimator(folder):
    return load_model(Flat(), size=SIZE, **NORMAL)


def as_keras(folder):
    keras = pytest.importorskip("keras", exc_type=ImportError)
    layers = keras.layers
    net = keras.Sequential(
        [layers.Input((*SIZE, 3)), layers.Conv2D(4, 3, 2, use_bias=False, activation="relu"),
         layers.GlobalAveragePooling2D(), layers.Dense(3, "softmax", use_bias=False)]
    )  # fmt: skip
    net.set_weights([KERNEL.transpose(2, 3, 1, 0), WEIGHTS])
    net.save(folder / "net.keras")
    return load_model(folder / "net.keras", **NORMAL)


def as_hugging_face(folder):
    transformers = pytest.importorskip("transformers")
    import torch

    class SmallConfig(transformers.PretrainedConfig):
        model_type = "mcrise_small"

    class SmallNet(transformers.PreTrainedModel):
        config_class = SmallConfig

        def __init__(self, config):
            super().__init__(config)
            self.conv = torch.nn.Conv2d(3, 4, 3, stride=2, bias=False)
            self.last = torch.nn.Linear(4, 3, bias=False)
            self.post_init()

        def forward(self, pixel_values):
            means = torch.relu(self.conv(pixel_values)).mean((2, 3))
            return {"logits": self.last(means)}

    transformers.AutoConfig.register("mcrise_small", SmallConfig, exist_ok=True)
    kinds = transformers.AutoModelForImageClassification
    kinds.register(SmallConfig, SmallNet, exist_ok=True)
    net = SmallNet(SmallConfig(num_labels=3))
    net.load_state_dict(torch_net().state_dict())
    net.save_pretrained(folder)
    transformers.ViTImageProcessor(
        size={"height": SIZE[0], "width": SIZE[1]}, image_mean=MEAN, image_std=STD
    ).save_pretrained(folder)
    return load_model(f"hf:{folder}")


FORMS = (
    as_onnx, as_onnx_of_one, as_module, as_program, as_openvino, as_litert, as_estimator, as_keras,
    as_hugging_face,
)  # fmt: skip


@pytest.fixture(scope="module")
def wanted():
    """The map of the function itself, in NumPy."""
    maps = maps_of(photo(*SIZE), scores, **NORMAL)
    assert np.abs(maps).max() > 0.01  # there is something to agree on
    return maps


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_form_of_a_classifier_has_the_same_map(form, wanted, tmp_path):
    found = maps_of(photo(*SIZE), form(tmp_path))
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_a_map_of_other_preprocessing_is_another_map(wanted, tmp_path):
    other = load_model(onnx_file(tmp_path / "net.onnx"), scale=255)
    assert isinstance(other, mcrise.Model)
    assert np.abs(maps_of(photo(*SIZE), other) - wanted).max() > 1e-2
