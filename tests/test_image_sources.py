"""What `explain` takes besides one picture, and that one bad picture keeps no other back."""

import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise.errors import InputError
from mcrise.image_sources import find_paths, open_sources
from planted import PatchModel, photo

MODEL = PatchModel(slice(4, 12), slice(4, 12))
FEW = {"n_masks": 64, "mask_prob": 0.3, "trials": False}


@pytest.fixture
def folder(tmp_path):
    """Three pictures, one of them damaged, and what must not be taken for one."""
    for name in ("a.png", "sub/c.JPG", "a.png.mcrise/maps.png", ".hidden/d.png", "b.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(photo(16, 20, seed=len(name))).save(tmp_path / name)
    (tmp_path / "b.png").write_bytes(b"no picture")
    (tmp_path / "notes.txt").write_text("not a picture")
    return tmp_path


def names(explanations):
    return [one.view.name for one in explanations]


def test_a_folder_has_its_pictures_and_neither_hidden_files_nor_results(folder):
    assert [path[len(str(folder)) + 1 :] for path in find_paths(folder)] == [
        "a.png", "b.png", "sub/c.JPG"]  # fmt: skip
    assert find_paths(folder / "a.png") is None
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="holds no images"):
        find_paths(folder / "empty")


def test_a_folder_is_explained_past_a_bad_picture_which_is_named(folder):
    with pytest.warns(UserWarning, match=r"b\.png is left out"):
        explanations = mcrise.explain(folder, MODEL, **FEW)
    assert names(explanations) == ["a.png", "c.JPG"]
    assert list(explanations.failed) == [str(folder / "b.png")]
    assert "not an image" in explanations.failed[str(folder / "b.png")]


def test_a_pattern_and_one_that_matches_nothing(folder):
    assert names(mcrise.explain(f"{folder}/a*.png", MODEL, **FEW)) == ["a.png"]
    with pytest.raises(InputError, match="No image is named like"):
        mcrise.explain(f"{folder}/x*.png", MODEL, **FEW)


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    Image.fromarray(photo(16, 16)).save(tmp_path / "a[1].png")
    assert mcrise.explain(tmp_path / "a[1].png", MODEL, **FEW).view.name == "a[1].png"


def test_one_bad_path_of_a_list_is_left_out_and_only_bad_ones_are_an_error(folder):
    with pytest.warns(UserWarning, match="missing.png is left out"):
        explanations = mcrise.explain([folder / "missing.png", folder / "a.png"], MODEL, **FEW)
    assert names(explanations) == ["a.png"]
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(InputError, match="does not exist"),
    ):
        mcrise.explain([folder / "missing.png"], MODEL, **FEW)


def test_a_batch_is_explained_picture_by_picture():
    batch = np.stack([photo(16, 16, seed) for seed in range(3)])
    explanations = mcrise.explain(batch, MODEL, **FEW)
    assert names(explanations) == ["image 0", "image 1", "image 2"]
    for one, pixels in zip(explanations, batch, strict=True):
        assert np.array_equal(one.view.pixels, pixels)
        alone = mcrise.explain(pixels, MODEL, **FEW)
        assert np.array_equal(one.maps(0).values, alone.maps(0).values)


class Pairs:
    """As torch has data sets: entries by number, each an image and a label; one fails."""

    def __init__(self, n=3):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, number):
        if number == 1:
            raise OSError("disk on fire")
        return photo(16, 16, number), 7


class Columns:
    """As Hugging Face has them: entries by number, each with named columns."""

    def __init__(self, column):
        self.column = column

    def __len__(self):
        return 2

    def __getitem__(self, number):
        return {self.column: Image.fromarray(photo(16, 16, number)), "label": 3}


def test_data_sets_by_what_they_can_do():
    with pytest.warns(UserWarning, match="image 1 is left out.*disk on fire"):
        explanations = mcrise.explain(Pairs(), MODEL, **FEW)
    assert names(explanations) == ["image 0", "image 2"]
    assert names(mcrise.explain(Columns("img"), MODEL, **FEW)) == ["image 0", "image 1"]
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(InputError, match="rename the column"),
    ):
        mcrise.explain(Columns("scan"), MODEL, **FEW)
    streamed = (Columns("image")[number] for number in range(2))
    assert names(mcrise.explain(streamed, MODEL, **FEW)) == ["image 0", "image 1"]


def test_torch_data_sets_and_loaders():
    torch = pytest.importorskip("torch")
    pixels = torch.from_numpy(np.stack([photo(16, 20, seed) for seed in range(5)]))
    images = pixels.permute(0, 3, 1, 2) / 255
    data = torch.utils.data.TensorDataset(images, torch.arange(5))
    loader = torch.utils.data.DataLoader(data, batch_size=2)
    unit = mcrise.load_model(lambda images: MODEL(images * 255))
    for given in (data, loader, images, list(images)):
        explanations = mcrise.explain(given, unit, **FEW)
        assert len(explanations) == 5
        for one, expected in zip(explanations, pixels.numpy() / np.float32(255), strict=True):
            assert np.allclose(one.view.pixels, expected)


def test_what_is_no_picture_at_all_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="The image is a int"):
        mcrise.explain(3, MODEL, **FEW)
    with pytest.raises(InputError, match="one place to save"):
        mcrise.explain(np.stack([photo(16, 16)] * 2), MODEL, save="run.npz")


def test_one_picture_is_no_list():
    for one in (photo(16, 16), Image.fromarray(photo(16, 16)), "a.png", b"bytes"):
        assert open_sources(one) is None
