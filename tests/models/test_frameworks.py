"""The real libraries, where they are installed: their own preprocessing, number for number.

Weights are random and configurations real. `make test` has none of these libraries and skips this;
`make test-frameworks` installs them.
"""

import numpy as np
import pytest
from PIL import Image

from frameworks import import_torchvision
from mcrise import InputError, load_model
from mcrise.images import unit_float
from planted import photo

pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that are not ours
SIZES = [(50, 71), (301, 200), (97, 98), (240, 333)]  # odd and even rests on both sides


READ = ("input_size", "interpolation", "crop_pct", "crop_mode", "mean", "std")


def pictures():
    return [Image.fromarray(photo(*size, seed)) for seed, size in enumerate(SIZES)]


def assert_as_its_own(model, transform, tolerance=1e-5):
    """Each picture as the model gets it is what its own library makes of it."""
    for picture in pictures():
        ours = model.prepare(model.view(picture).pixels).transpose(2, 0, 1)
        np.testing.assert_allclose(ours, np.asarray(transform(picture)), rtol=1e-5, atol=tolerance)


# ---- torchvision and timm


def test_torchvision_weights_are_followed_to_the_pixel():
    models = import_torchvision().models
    net, seen = models.resnet18().eval(), set()
    for name in models.list_models(module=models):
        for weights in models.get_model_weights(name):
            own = weights.transforms()
            key = (*own.crop_size, *own.resize_size, own.interpolation, *own.mean)
            if key in seen:
                continue
            seen.add(key)
            model = load_model(net, preprocess=weights)
            assert model.labels == (tuple(weights.meta["categories"] or ()) or None)
            assert_as_its_own(model, own)
    assert len(seen) > 10


def test_every_configuration_of_timm_is_followed_or_refused_in_a_sentence():
    import_torchvision()
    timm = pytest.importorskip("timm")
    from timm.data import create_transform, resolve_data_config

    followed, refused, seen = 0, 0, set()
    for name in timm.list_pretrained():
        config = timm.get_pretrained_cfg(name).to_dict()
        key = str([config.get(one) for one in READ])
        if key in seen or max(config["input_size"]) > 256:
            continue
        seen.add(key)
        try:
            model = load_model(lambda images: images, preprocess=config)
        except InputError as error:
            assert "cannot be followed" in str(error)  # noqa: PT017
            refused += 1
            continue
        transform = create_transform(**resolve_data_config({}, pretrained_cfg=config))
        assert_as_its_own(model, transform)
        assert load_model(lambda images: images, preprocess=transform).geometry == model.geometry
        followed += 1
    assert followed > 20
    assert refused <= 10
    net = timm.create_model("resnet18", num_classes=5).eval()
    assert load_model(net)(photo(224, 224)[None]).shape == (1, 5)


# ---- Hugging Face


@pytest.fixture(scope="module")
def vit():
    transformers = pytest.importorskip("transformers")
    labels = {place: f"class {place}" for place in range(5)}
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=5, id2label=labels, label2id={name: place for place, name in labels.items()},
    )  # fmt: skip
    return transformers.ViTForImageClassification(config).eval()


@pytest.mark.parametrize("name", ["ViT", "MobileNetV2", "ConvNext", "CLIP"])
@pytest.mark.parametrize("backend", ["ImageProcessorPil", "ImageProcessor"])
def test_processors_of_hugging_face_are_followed(name, backend, vit):
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, name + backend, None)
    if kind is None:
        pytest.skip(f"this transformers has no {name}{backend}")
    processor = kind()
    model = load_model(vit, preprocess=processor)
    level = 0.0
    if model.notes:
        assert "differs by a few levels of 255" in model.notes[0]
        level = 4 / 255 / min(np.ravel(processor.image_std))
    else:
        assert backend.endswith("Pil")

    def own(picture):
        return processor(picture, return_tensors="np")["pixel_values"][0]

    assert_as_its_own(model, own, level + 1e-5)


def test_a_pipeline_gives_its_scores_in_the_order_of_the_labels(vit, tmp_path):
    transformers = pytest.importorskip("transformers")
    processor = transformers.ViTImageProcessor()
    pipe = transformers.pipeline("image-classification", model=vit, image_processor=processor)
    picture = pictures()[1]
    wanted = {one["label"]: one["score"] for one in pipe(picture, top_k=5)}
    vit.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    for model in (load_model(pipe), load_model(f"hf:{tmp_path}")):
        found = model(model.view(picture).pixels[None])[0]
        assert found.argsort().tolist() != [0, 1, 2, 3, 4]
        for label, score in zip(model.labels, found, strict=True):
            assert abs(wanted[label] - score) < 1e-3


# ---- Keras and scikit-learn


def test_a_keras_model_and_its_file(tmp_path):
    keras = pytest.importorskip("keras")
    layers = keras.layers
    net = keras.Sequential(
        [layers.Input((16, 24, 3)), layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(),
         layers.Dense(3, activation="softmax")]
    )  # fmt: skip
    net.save(tmp_path / "net.keras")
    image = photo(16, 24)[None]
    wanted = np.asarray(net.predict_on_batch(unit_float(image)))
    for model in (load_model(net), load_model(tmp_path / "net.keras")):
        assert model.geometry.size == (16, 24)
        np.testing.assert_allclose(model(image), wanted, atol=1e-6)
    chance = keras.Sequential(
        [layers.Input((16, 24, 3)), layers.Rescaling(1 / 255), layers.Flatten(),
         layers.Dense(1, activation="sigmoid")]
    )  # fmt: skip
    model = load_model(chance)
    assert (model.kind, model.notes) == ("independent", ())
    np.testing.assert_allclose(
        model(image), np.asarray(chance.predict_on_batch(image.astype(np.float32))), atol=1e-6
    )


def test_a_pipeline_of_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.stack([photo(8, 8, seed).ravel() / 255 for seed in range(30)])
    names = np.array(["apple", "pear", "plum"])[np.arange(30) % 3]
    estimator = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, names)
    model, image = load_model(estimator), photo(8, 8, 3)[None]
    wanted = estimator.predict_proba(image.reshape(1, -1) / 255)
    np.testing.assert_allclose(model(image), wanted, atol=1e-5)
    assert model.labels == ("apple", "pear", "plum")


def test_a_function_of_jax():
    jax = pytest.importorskip("jax")

    @jax.jit
    def predict(images):
        means = images.mean(axis=(1, 2))
        return jax.nn.softmax(means * 5)

    image = photo(8, 8)[None]
    means = 5 * unit_float(image).mean(axis=(1, 2))
    wanted = np.exp(means) / np.exp(means).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(load_model(predict)(image), wanted, atol=1e-5)
