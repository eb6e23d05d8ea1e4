import io

import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise.errors import InputError
from mcrise.images import Geometry
from planted import PatchModel, photo


def saved(picture, path, **options):
    picture.save(path, **options)
    return path


def test_a_picture_without_geometry_is_shown_as_it_is(tmp_path):
    pixels = photo(20, 30)
    view = Geometry().view(saved(Image.fromarray(pixels), tmp_path / "a.png"))
    assert np.array_equal(view.pixels, pixels)
    assert view.box == (0, 0, 20, 30)
    assert view.notes == ()


@pytest.mark.parametrize(
    ("shape", "short_side", "said"),
    [((300, 400, 3), None, True), ((400, 300, 3), None, True), ((300, 360, 3), None, False),
     ((300, 400, 3), 256, False)],
)  # fmt: skip
def test_a_picture_that_is_squeezed_is_told(shape, short_side, said):
    view = Geometry((224, 224), short_side).view(np.zeros(shape, np.uint8))
    words = f"the whole picture of {shape[0]} x {shape[1]} was squeezed to 224 x 224"
    assert any(note.startswith(words) and "such as 256" in note for note in view.notes) == said


def test_the_short_side_is_resized_and_the_middle_cut_out():
    picture = Image.fromarray(photo(200, 300))
    view = Geometry((64, 64), short_side=80, filter="bicubic").view(picture)
    assert view.pixels.shape == (64, 64, 3)
    assert view.original_size == (200, 300)
    np.testing.assert_allclose(view.box, (20, 70, 180, 230))  # 64 of 80 is 160 of 200
    resized = picture.resize((120, 80), Image.Resampling.BICUBIC)
    expected = np.asarray(resized.crop((28, 8, 92, 72))).astype(int)
    assert np.abs(view.pixels - expected).max() <= 2  # one step or two


def test_without_a_short_side_the_whole_picture_is_squeezed():
    view = Geometry((32, 16)).view(photo(100, 50))
    assert view.pixels.shape == (32, 16, 3)
    assert view.box == (0, 0, 100, 50)


@pytest.mark.parametrize(
    ("orientation", "made", "note"),
    [
        (1, lambda pixels: pixels, None),
        (2, np.fliplr, "mirrored"),
        (3, lambda pixels: np.rot90(pixels, 2), "turned upright"),
        (4, np.flipud, "turned upright and mirrored"),
        (5, lambda pixels: np.swapaxes(pixels, 0, 1), "turned upright and mirrored"),
        (6, lambda pixels: np.rot90(pixels, -1), "turned upright"),
        (7, lambda pixels: np.rot90(np.swapaxes(pixels, 0, 1), 2), "turned upright and mirrored"),
        (8, np.rot90, "turned upright"),
        (9, lambda pixels: pixels, None),
    ],
)
@pytest.mark.parametrize("size", [(20, 30), (24, 24)])
def test_a_picture_is_shown_as_the_camera_was_held_and_that_is_said(
    tmp_path, orientation, made, note, size
):
    pixels = photo(*size)
    exif = Image.Exif()
    exif[274] = orientation
    path = saved(Image.fromarray(pixels), tmp_path / "a.png", exif=exif)
    view = Geometry().view(path)
    assert np.array_equal(view.pixels, made(pixels))
    assert view.notes == (() if note is None else (f"{note} as its EXIF says",))


@pytest.mark.parametrize(
    "mode",
    [
        "1",
        "L",
        "LA",
        "P",
        "RGB",
        "RGBA",
        "CMYK",
        "YCbCr",
        "HSV",
        "LAB",
        "I",
        "F",
        "I;16",
        "La",
        "RGBa",
    ],
)
def test_every_mode_pillow_reads_becomes_rgb_and_it_is_said(mode):
    source = Image.fromarray(photo(12, 16))
    if mode == "I;16":
        picture = Image.fromarray(np.asarray(source.convert("L")).astype(np.uint16) * 257)
    elif mode == "HSV":
        picture = source.convert("HSV")
    elif mode == "LAB":
        picture = Image.new("LAB", (16, 12))
    elif mode in ("La", "RGBa"):
        picture = source.convert(mode.upper()).convert(mode)
    else:
        picture = source.convert(mode)
    view = Geometry().view(picture)
    assert view.pixels.shape == (12, 16, 3)
    assert view.pixels.dtype == np.uint8
    assert bool(view.notes) == (mode != "RGB")
    if mode in ("L", "I", "F", "I;16"):
        luma = np.asarray(source.convert("L")).astype(int)
        assert np.abs(view.pixels[..., 0] - luma).max() <= 1


def test_transparent_parts_are_laid_over_white():
    clear = np.zeros((10, 10, 4), np.uint8)
    assert (Geometry().view(Image.fromarray(clear)).pixels == 255).all()
    assert (Geometry().view(clear).pixels == 255).all()


def test_gray_arrays_are_repeated_in_three_channels():
    view = Geometry().view(photo(10, 10)[..., 0])
    assert view.pixels.shape == (10, 10, 3)
    assert view.notes


@pytest.mark.parametrize(
    ("array", "hint"),
    [
        (np.zeros((1, 1, 3), np.uint8), "at least 8"),
        (np.zeros((4, 3, 20, 20), np.uint8), "one image"),
        (np.zeros((20, 20, 5), np.uint8), "channels last"),
        (np.zeros((20, 20, 3), np.int64), "int64"),
        (np.full((20, 20, 3), 200.0), "divide by 255"),
        (np.full((20, 20, 3), np.nan), "0..1"),
    ],
    ids=["tiny", "batch", "channels", "dtype", "range", "nan"],
)
def test_arrays_that_are_no_image_are_refused(array, hint):
    with pytest.raises(InputError, match=hint):
        Geometry().view(array)


@pytest.mark.parametrize("size", [(8, 8), (9, 31), (100, 8), (17, 23)])
@pytest.mark.parametrize("grid", [(8, 8), (3, 5), (20, 20), (1, 1)])
def test_any_size_from_eight_pixels_up_works_with_any_grid(size, grid):
    model = PatchModel(slice(0, 4), slice(0, 4))
    maps = mcrise.explain(photo(*size), model, n_masks=64, grid=grid).maps()
    assert maps.values.shape == (5, *size)
    assert np.isfinite(maps.values).all()


@pytest.mark.parametrize(
    "wrong",
    [{"filter": "magic"}, {"short_side": 64}, {"size": (64, 64), "short_side": 32},
     {"size": (2, 2)}],
    ids=str,
)  # fmt: skip
def test_impossible_geometry_is_refused(wrong):
    with pytest.raises(InputError):
        Geometry(**wrong)


def test_bytes_of_a_file_are_read_too():
    buffer = io.BytesIO()
    Image.fromarray(photo(10, 12)).save(buffer, "PNG")
    assert Geometry().view(buffer.getvalue()).pixels.shape == (10, 12, 3)


def test_a_jpeg_that_says_it_has_more_pixels_than_its_bytes_can_hold_is_not_unpacked(monkeypatch):
    out = io.BytesIO()
    Image.new("L", (800, 800)).save(out, "JPEG", quality=1, progressive=True, optimize=True)
    assert Geometry().view(out.getvalue()).pixels.shape == (800, 800, 3)  # as few as there can be
    head = out.getvalue().index(b"\xff\xc2") + 5
    lying = out.getvalue()[:head] + (9999).to_bytes(2, "big") * 2 + out.getvalue()[head + 4 :]
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", None)
    with pytest.raises(InputError, match=r"damaged \(it has .* bytes, too few for its size\)"):
        Geometry().view(lying)
