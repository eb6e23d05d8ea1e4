"""Objects of other libraries: each is recognised without importing its library, and believed.

Stand-ins have the interface and the package names of the real ones, which `test_frameworks` takes
where they are installed.
"""

import enum
from functools import partial
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
from PIL import Image

import mcrise
from mcrise import InputError, ModelError, load_model
from mcrise.images import Geometry, unit_float
from planted import photo
from small_net import KERNEL, MEAN, STD, WEIGHTS, logits, maps_of, onnx_file, scores

torch = pytest.importorskip("torch")


def normal(images):
    return (unit_float(images) - np.float32(MEAN)) / np.float32(STD)


class Net(torch.nn.Module):
    """The small classifier without its softmax."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, stride=2, bias=False)
        self.last = torch.nn.Linear(4, 3, bias=False)
        self.conv.weight.data = torch.tensor(KERNEL)
        self.last.weight.data = torch.tensor(WEIGHTS.T.copy())

    def forward(self, pixel_values):
        return self.last(torch.relu(self.conv(pixel_values)).mean((2, 3)))


def of_package(cls, package):
    """A class as if that package had it."""
    return type(cls.__name__, (cls,), {"__module__": f"{package}.models.net"})


class Mode(enum.Enum):
    BICUBIC = "bicubic"


class Preset:
    """As torchvision's `ImageClassification`."""

    crop_size, resize_size, interpolation = [24], [30], Mode.BICUBIC
    mean, std = list(MEAN), list(STD)


class Weights:
    """As torchvision's `ResNet18_Weights.DEFAULT`."""

    meta = {"categories": ["apple", "pear", "plum"]}  # noqa: RUF012

    def transforms(self):
        return Preset()


# ---- torch and its libraries


@pytest.mark.parametrize("given", [Weights(), Preset()], ids=["weights", "transforms"])
def test_a_torchvision_model_takes_its_preprocessing_from_its_weights(given):
    module = of_package(Net, "torchvision")().eval()
    with pytest.raises(InputError, match=r"as in preprocess=ResNet18_Weights.DEFAULT"):
        load_model(module)
    model, image = load_model(module, preprocess=given), photo(50, 71)
    assert model.geometry == Geometry((24, 24), 30, "bicubic", "rounded")
    shown = model.view(image).pixels[None]
    np.testing.assert_allclose(model(shown), scores(normal(shown)), atol=1e-5)
    assert model.labels == (("apple", "pear", "plum") if isinstance(given, Weights) else None)
    assert model.notes == ()
    said = load_model(module, preprocess=given, size=32, score_kind="any")  # arguments win
    assert said.geometry.size == (32, 32)
    assert said.geometry.short_side is None
    assert not said.softmax


def test_the_settings_that_were_taken_over_continue_a_run(tmp_path):
    module = of_package(Net, "torchvision")().eval()
    image = Image.fromarray(photo(40, 50))
    run = mcrise.explain(image, module, preprocess=Weights(), n_masks=64, trials=False)
    run.save(tmp_path / "run.npz")
    again = mcrise.load(tmp_path / "run.npz")
    assert again.origin.settings["crop"] == "rounded"
    known = load_model(module, **again.origin.settings)
    assert known.identity == run.model
    np.testing.assert_array_equal(known.view(image).pixels, again.view.pixels)


TIMM = {
    "input_size": (3, 24, 24),
    "interpolation": "bicubic",
    "crop_pct": 0.9,
    "crop_mode": "center",
    "mean": MEAN,
    "std": STD,
}


def test_a_timm_model_says_how_its_images_go_in():
    module = of_package(Net, "timm")().eval()
    module.pretrained_cfg = TIMM
    model = load_model(module)
    assert model.geometry == Geometry((24, 24), 26, "bicubic", "rounded")  # 24 / 0.9, cut off
    image = photo(24, 24)[None]
    np.testing.assert_allclose(model(image), scores(normal(image)), atol=1e-5)
    module.pretrained_cfg = TIMM | {"crop_mode": "squash", "crop_pct": 1.0}
    assert load_model(module).geometry == Geometry((24, 24), None, "bicubic")
    module.pretrained_cfg = TIMM | {"crop_mode": "border"}
    with pytest.raises(InputError, match=r"mode 'border' .* give size=\(24, 24\)"):
        load_model(module)
    assert load_model(module, size=24, mean=MEAN, std=STD).geometry.size == (24, 24)


class Resize:
    size, interpolation, max_size = 30, Mode.BICUBIC, None


class CenterCrop:
    size = (24, 20)


class ToTensor:
    pass


class Normalize:
    mean, std = torch.tensor(MEAN), torch.tensor(STD)


class RandomErasing:
    pass


class Compose:
    def __init__(self, *steps):
        self.transforms = list(steps)


def test_steps_of_a_transform_are_read_and_an_unknown_one_is_refused_by_name():
    steps = Compose(Resize(), CenterCrop(), ToTensor(), Normalize())
    model = load_model(Net().eval(), preprocess=steps, softmax=True)
    assert model.geometry == Geometry((24, 20), 30, "bicubic", "rounded")
    image = photo(24, 20)[None]
    np.testing.assert_allclose(model(image), scores(normal(image)), atol=1e-5)
    with pytest.raises(InputError, match="a step RandomErasing, which cannot be followed: give"):
        load_model(Net(), preprocess=Compose(Resize(), RandomErasing()))
    with pytest.raises(InputError, match="preprocess is a int, but weights or transforms"):
        load_model(Net(), preprocess=3)


def test_a_module_in_training_mode_is_put_into_use_and_that_is_noted():
    module = torch.nn.Sequential(Net(), torch.nn.Dropout(0.5)).train()
    model = load_model(module, scale=255, size=24, softmax=True)
    assert model.notes == ("the module was in training mode and was put into eval()",)
    assert not module.training


@pytest.mark.parametrize("batch", [1, 4, None])
def test_an_exported_program_is_called_in_the_size_it_was_exported_for(batch):
    images = torch.rand(batch or 2, 3, 16, 24)
    dynamic = {"pixel_values": {0: torch.export.Dim("n", min=1, max=64)}} if batch is None else None
    program = torch.export.export(Net().eval(), (images,), dynamic_shapes=dynamic)
    model = load_model(program, mean=MEAN, std=STD, softmax=True)
    assert model.geometry.size == (16, 24)
    six = np.stack([photo(16, 24, seed) for seed in range(6)])
    np.testing.assert_allclose(model(six), scores(normal(six)), atol=1e-5)


def test_heads_of_a_torch_module_are_listed_with_their_shapes():
    class Heads(Net):
        def forward(self, images):
            answer = super().forward(images)
            return {"color": answer, "type": answer[:, :2]}

    image = photo(16, 24)[None]
    with pytest.raises(InputError, match=r"color \(1 x 3\), type \(1 x 2\). Say .* output=.type"):
        load_model(Heads(), scale=255)(image)
    assert load_model(Heads(), scale=255, output="type", score_kind="any")(image).shape == (1, 2)


@pytest.mark.parametrize("kind", [dict, tuple])
def test_heads_of_a_function_are_picked_or_listed(kind):
    def predict(images):
        color = scores(unit_float(images))
        heads = {"0": color, "1": color[:, :2], "box": color[:, :, None].repeat(4, axis=2)}
        return heads if kind is dict else tuple(heads.values())

    image = photo(16, 24)[None]
    with pytest.raises(InputError, match=r"0 \(1 x 3\), 1 \(1 x 2\), .* x 4\). Say .* output=.1"):
        load_model(predict)(image)
    with pytest.raises(InputError, match="no output 'size': it has 0"):
        load_model(predict, output="size")(image)
    assert load_model(predict, output="1", score_kind="any")(image).shape == (1, 2)
    only = load_model(lambda images: (predict(images)[0], images) if kind is tuple else
                      {"logits": scores(unit_float(images)), "loss": None})  # fmt: skip
    assert only(image).shape == (1, 3)
    with pytest.raises(InputError, match="one output without a name: leave it out"):
        load_model(lambda images: scores(unit_float(images)), output="color")(image)


def test_a_torch_module_of_several_tables_is_no_guess():
    class Pair(Net):
        def forward(self, images):
            answer = super().forward(images)
            return answer, answer[:, :2]

    with pytest.raises(InputError, match=r"several outputs: 0 \(1 x 3\), 1 \(1 x 2\)"):
        load_model(Pair(), scale=255)(photo(16, 24)[None])


# ---- Hugging Face


class Config:
    id2label = {0: "apple", 1: "pear", 2: "plum"}  # noqa: RUF012
    problem_type, num_labels = None, 3


class Classifier(Net):
    config = Config()

    def forward(self, pixel_values):
        return {"loss": None, "logits": super().forward(pixel_values)}


class Processor:
    """As an image processor that works with Pillow."""

    def __init__(self, **said):
        self.said = {
            "do_resize": True, "resample": 3, "size": {"shortest_edge": 30},
            "do_center_crop": True, "crop_size": {"height": 24, "width": 24},
            "do_rescale": True, "rescale_factor": 1 / 255,
            "do_normalize": True, "image_mean": MEAN, "image_std": STD, **said,
        }  # fmt: skip
        self.image_mean = self.said["image_mean"]

    def to_dict(self):
        return self.said


class Pipeline:
    task = "image-classification"

    def __init__(self, model, processor):
        self.model, self.image_processor = model, processor

    def __call__(self, images):
        raise AssertionError("its answers are sorted by score")


HF_PIPELINE, HF_CLASSIFIER = (
    of_package(Pipeline, "transformers"),
    of_package(Classifier, "transformers"),
)


def test_a_classifier_of_hugging_face_takes_its_processor_or_comes_as_a_pipeline():
    net, image = HF_CLASSIFIER().eval(), photo(24, 24)[None]
    with pytest.raises(InputError, match="preprocess=AutoImageProcessor"):
        load_model(net)
    for model in (
        load_model(net, preprocess=Processor()),
        load_model(HF_PIPELINE(net, Processor())),
    ):
        assert model.geometry == Geometry((24, 24), 30, "bicubic", "floored")
        assert model.labels == ("apple", "pear", "plum")
        np.testing.assert_allclose(model(image), scores(normal(image)), atol=1e-5)
    whole = Processor(size={"height": 20, "width": 16}, do_center_crop=False)
    assert load_model(net, preprocess=whole).geometry == Geometry((20, 16), None, "bicubic")
    convnext = Processor(crop_pct=0.75, size={"shortest_edge": 30}, do_center_crop=False)
    assert load_model(net, preprocess=convnext).geometry.short_side == 40
    odd = Processor(size={"longest_edge": 20})
    with pytest.raises(InputError, match=r"longest_edge.* cannot be followed"):
        load_model(net, preprocess=odd)


@pytest.mark.parametrize(
    ("problem", "n", "kind"),
    [
        (None, 3, "probability"),
        ("multi_label_classification", 3, "independent"),
        ("regression", 1, "any"),
        (None, 1, "independent"),
    ],
)
def test_the_kind_of_score_is_what_the_configuration_says(problem, n, kind):
    net = HF_CLASSIFIER().eval()
    net.config = type("Config", (Config,), {"problem_type": problem, "num_labels": n})
    assert load_model(net, preprocess=Processor()).kind == kind


def test_a_pipeline_for_something_else_is_refused():
    pipeline = HF_PIPELINE(HF_CLASSIFIER(), Processor())
    pipeline.task = "object-detection"
    with pytest.raises(InputError, match=r'for object-detection, but .* layout="pillow"'):
        load_model(pipeline)


def test_answers_with_labels_sorted_by_score_are_refused():
    def pipe(images):
        return [[{"label": "a", "score": 0.9}, {"label": "b", "score": 0.1}] for _ in images]

    with pytest.raises(InputError, match=r"sorted by score.* give the pipeline itself"):
        load_model(pipe)(photo(16, 24)[None])


# ---- Keras, scikit-learn, JAX


class Layer:
    def __init__(self, name="dense", activation="softmax"):
        self.name = name
        self.activation = SimpleNamespace(__name__=activation)


class Rescaling:
    name = "rescaling"


class Tensor:
    def __init__(self, *shape):
        self.shape, self.name = shape, "images"


class Keras:
    """As a functional model of Keras 3."""

    name, output_names = "net", ["dense"]

    def __init__(self, *layers):
        self.layers, self.inputs = [*layers], [Tensor(None, 16, 24, 3)]
        self.outputs = [Tensor(None, 3)]

    def get_weights(self):
        return [KERNEL, WEIGHTS]

    def predict_on_batch(self, batch):
        self.seen = batch
        return scores(batch / max(1, batch.max()))


def test_a_keras_model_is_asked_in_its_own_size_and_with_its_own_rescaling():
    kind = of_package(Keras, "keras")
    image, net = photo(16, 24)[None], kind(Layer())
    model = load_model(net)
    assert model.geometry.size == (16, 24)
    assert model.notes == ("no preprocessing was given, so pixels go in scaled to 0..1",)
    np.testing.assert_allclose(model(image), scores(unit_float(image)), atol=1e-5)
    inside = kind(Rescaling(), Layer(activation="sigmoid"))
    model = load_model(inside)
    assert (model.notes, model.kind) == ((), "independent")
    model(image)
    np.testing.assert_array_equal(inside.seen, image)  # 0..255, as they are
    caffe = kind(Layer())
    caffe.name = "resnet50"
    load_model(caffe, score_kind="any")(image)
    np.testing.assert_allclose(
        caffe.seen, image[..., ::-1] - np.float32([103.939, 116.779, 123.68]), atol=1e-4
    )
    unbuilt = kind(Layer())
    unbuilt.inputs = None
    with pytest.raises(InputError, match="has not been built"):
        load_model(unbuilt)
    unbuilt.get_build_config = lambda: {"input_shape": (1, 16, 24, 3)}
    own = load_model(unbuilt, scale=255)
    assert own.geometry.size == (16, 24)
    assert own.notes == ("the model was built on images of 16 x 24 pixels",)
    np.testing.assert_allclose(own(image), scores(unit_float(image)), atol=1e-5)


def test_a_method_of_a_library_is_taken_for_its_model_and_one_of_the_user_is_not():
    class Fitted(Estimator):
        __module__ = "sklearn.linear_model"

        def predict(self, rows):
            raise AssertionError("it gives labels")

    Fitted.predict.__module__ = "sklearn.linear_model"
    image = photo(16, 16)[None]
    model = load_model(Fitted().predict)
    np.testing.assert_allclose(model(image), scores(unit_float(image)), atol=1e-5)

    class Mine(Net):
        def predict(self, images):
            return scores(unit_float(images))

    mine = load_model(Mine().predict)
    assert mine.notes == ()
    np.testing.assert_allclose(mine(image), scores(unit_float(image)), atol=1e-5)


class Estimator:
    """As a classifier of scikit-learn, of flattened images."""

    n_features_in_, classes_ = 3 * 16 * 16, np.array(["apple", "pear", "plum"])

    def predict_proba(self, rows):
        return scores(rows.reshape(len(rows), -1, 16, 3))


def test_an_estimator_takes_flattened_images_and_names_its_classes():
    model, image = load_model(Estimator()), photo(16, 16)[None]
    np.testing.assert_allclose(model(image), scores(unit_float(image)), atol=1e-5)
    assert model.labels == ("apple", "pear", "plum")
    assert model.notes[0] == "768 numbers per image were taken for 16 x 16 pixels"
    gray = type("Gray", (Estimator,), {"n_features_in_": 64})()
    with pytest.raises(InputError, match=r"64 numbers per image, .* sees no colors"):
        load_model(gray)
    oblong = type("Oblong", (Estimator,), {"n_features_in_": 3 * 8 * 16})()
    with pytest.raises(InputError, match="not rows x columns x 3 of a square image"):
        load_model(oblong)
    assert load_model(oblong, size=(8, 16)).geometry.size == (8, 16)


def test_an_estimator_without_probabilities_needs_a_word_on_its_numbers():
    class Machine:
        __module__ = "sklearn.svm"
        n_features_in_ = 3 * 16 * 16

        def decision_function(self, rows):
            return logits(rows.reshape(len(rows), 16, 16, 3))

    with pytest.raises(InputError, match='no predict_proba: give score_kind="any"'):
        load_model(Machine())
    image = photo(16, 16)[None]
    model = load_model(Machine(), score_kind="any")
    np.testing.assert_allclose(model(image), logits(unit_float(image)), atol=1e-4)


def test_a_compiled_function_of_jax_gets_floats():
    class Jitted:
        __module__ = "jaxlib._jax"

        def __call__(self, images):
            return scores(images)

    image = photo(16, 24)[None]
    model = load_model(Jitted())
    np.testing.assert_allclose(model(image), scores(unit_float(image)), atol=1e-5)
    assert model.notes == ("no preprocessing was given, so pixels go in scaled to 0..1",)


def test_a_module_of_flax_without_weights_is_refused_with_the_line_that_works():
    class Module:
        __module__ = "flax.linen"
        scope = None

        def __call__(self, images):
            return scores(images)

    with pytest.raises(InputError, match=r"has no weights: give module.bind\(variables\)"):
        load_model(Module())
    bound = Module()
    bound.scope = object()
    assert load_model(bound)(photo(16, 24)[None]).shape == (1, 3)


def test_a_function_that_calls_jax_or_keras_says_that_it_gets_the_pixels_as_they_are():
    kind = of_package(Keras, "keras")
    net, factor = kind(Layer()), 255

    def unscaled(images):
        return net.predict_on_batch(images)

    note = "no preprocessing was given, so the function gets pixels as the image has them"
    assert load_model(unscaled).notes == (note,)
    assert load_model(partial(unscaled)).notes == (note,)
    assert load_model(partial(kind.predict_on_batch, net)).notes == (note,)
    assert load_model(unscaled, scale=255).notes == ()
    assert load_model(lambda images: scores(images / factor)).notes == ()


# ---- sessions and functions


def test_a_session_of_onnx_runtime_gives_the_maps_of_its_file(tmp_path):
    path = onnx_file(tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(path)
    image = photo(16, 24)
    np.testing.assert_allclose(
        maps_of(image, session, mean=MEAN, std=STD), maps_of(image, path, mean=MEAN, std=STD)
    )
    memory = onnxruntime.InferenceSession(path.read_bytes())
    assert load_model(memory).origin.digest != ""


def test_a_function_of_pillow_images_is_recognised_or_named():
    def plain(images):
        assert isinstance(images[0], Image.Image)
        return scores(unit_float(np.stack([np.asarray(image) for image in images])))

    def written(images: list[Image.Image]):
        return plain(images)

    with pytest.raises(ModelError, match=r'no attribute .convert.; .* give layout="pillow"'):
        load_model(lambda images: [one.convert("L") for one in images])(photo(16, 24)[None])
    with pytest.raises(ModelError, match=r"no attribute .cuda.$"):
        load_model(lambda images: images.cuda())(photo(16, 24)[None])
    batch = np.stack([photo(16, 24, seed) for seed in range(3)])
    wanted = scores(unit_float(batch))
    np.testing.assert_allclose(load_model(written)(batch), wanted, atol=1e-5)
    np.testing.assert_allclose(load_model(plain, layout="pillow")(batch), wanted, atol=1e-5)
    np.testing.assert_allclose(load_model(written)(unit_float(batch)), wanted, atol=1e-5)
    with pytest.raises(ModelError, match="AssertionError"):
        load_model(plain)(batch)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("https://there/net.onnx", "is an address: download it"),
        ("net.pth", "weights without the code of their network, or a pickle"),
        ("net.pkl", "is a pickle, which can run any code"),
        ("net.h5", "save it as .keras"),
        ("hf:not_there", "The folder not_there does not exist"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_what_to_do(spec, sentence):
    with pytest.raises(InputError, match=sentence):
        load_model(spec)


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        ("https://there/photo.png", "is an address"),
        (np.linspace(-2.1, 2.6, 768, dtype=np.float32).reshape(16, 16, 3), "normalized already"),
        (np.full((16, 16, 3), 200.0), "divide by 255"),
        (iter([1]), "is a list_iterator, .* give its images, one by one"),
    ],
)
def test_what_is_no_image_is_refused_with_what_to_do(image, sentence):
    with pytest.raises(InputError, match=sentence):
        load_model(scores).view(image)
