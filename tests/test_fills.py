import numpy as np
import pytest
from PIL import Image

from mcrise.errors import InputError
from mcrise.fills import (
    CUBE8,
    RGBWK,
    Blur,
    Gray,
    Hue,
    Mean,
    Noise,
    Picture,
    Solid,
    from_json,
    parse,
)
from mcrise.images import unit_float
from planted import photo


def names(fills):
    return [fill.name for fill in fills]


def test_the_palettes_are_the_papers_colors_at_full_intensity():
    assert names(parse("rgbwk")) == ["red", "green", "blue", "white", "black"]
    assert parse("rgbwk") == RGBWK
    assert parse("cube8") == CUBE8
    assert parse("green")[0].rgb == (0, 255, 0)  # CSS says (0, 128, 0)
    assert parse("magenta,cyan")[0].rgb == (255, 0, 255)


@pytest.mark.parametrize(
    ("text", "rgb"),
    [("#0f0", (0, 255, 0)), ("#102030", (16, 32, 48)), ("rgb(1,2,3)", (1, 2, 3)),
     ("orange", (255, 165, 0)), ("RED", (255, 0, 0)), (" teal ", (0, 128, 128))],
)  # fmt: skip
def test_colors_are_read_in_every_usual_form(text, rgb):
    assert parse(text)[0].rgb == rgb


def test_a_list_mixes_colors_palettes_and_other_fills_in_its_order():
    fills = parse("red,rgb(1,2,3),blur:8,gray,hue:90,noise:4,mean")
    assert names(fills) == ["red", "rgb(1,2,3)", "blur:8", "gray", "hue:90", "noise:4", "mean"]
    assert fills[2] == Blur(8.0)
    assert names(parse("rgbwk,yellow")) == [*names(RGBWK), "yellow"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [("rde", "'red'"), ("purpel", "'purple'"), ("blurr:3", "'blur'"), ("#12", "CSS names"),
     ("rgbkw", "'rgbwk'"), ("blur:much", "number after the colon"), ("blur:-2", "above 0"),
     ("red,green,red", "twice"), ("", "not a color"), ("noise:x", "whole number"),
     ("picture:none.png", "does not exist"), ("auto", "from an image")],
)  # fmt: skip
def test_what_cannot_be_read_gets_a_sentence_with_the_nearest_name(text, hint):
    with pytest.raises(InputError, match=hint.replace("(", r"\(")):
        parse(text)


def test_auto_finds_the_colors_of_the_image_most_frequent_first():
    image = np.zeros((30, 30, 3), np.uint8)
    image[:20] = (200, 30, 30)
    image[25:] = (0, 0, 250)
    first, second, third = (fill.rgb for fill in parse("auto:3", image))
    assert first == (200, 30, 30)
    assert {second, third} == {(0, 0, 0), (0, 0, 250)}


@pytest.mark.parametrize("fill", [Blur(2), Gray(), Hue(120), Mean(), Noise(3), Solid((9, 8, 7))])
def test_a_fill_renders_a_picture_of_the_images_size_in_range(fill):
    image = unit_float(photo(12, 17))
    rendered = fill.render(image)
    assert rendered.shape == image.shape
    assert rendered.dtype == np.float32
    assert rendered.min() >= 0
    assert rendered.max() <= 1


def test_gray_keeps_the_brightness_and_removes_the_color():
    image = photo(12, 17)
    rendered = Gray().render(unit_float(image))
    luma = np.asarray(Image.fromarray(image).convert("L")) / 255
    np.testing.assert_allclose(rendered, np.repeat(luma[..., None], 3, axis=2), atol=0.005)


def test_a_hue_of_120_degrees_turns_red_green_blue_around():
    image = unit_float(photo(6, 6))
    np.testing.assert_allclose(Hue(120).render(image), image[..., [2, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(Hue(0).render(image), image, atol=1e-6)


def test_a_blur_leaves_a_plain_image_alone_and_smooths_an_edge():
    plain = np.full((20, 20, 3), 0.3, np.float32)
    np.testing.assert_allclose(Blur(4).render(plain), plain, atol=1e-6)
    edge = np.zeros((20, 20, 3), np.float32)
    edge[:, 10:] = 1
    row = Blur(2).render(edge)[10, :, 0]
    assert (np.diff(row[4:16]) > 0).all()


def test_noise_is_the_same_for_the_same_seed_only():
    image = unit_float(photo(10, 10))
    assert np.array_equal(Noise(1).render(image), Noise(1).render(image))
    assert not np.array_equal(Noise(1).render(image), Noise(2).render(image))
    assert 0.4 < Noise(1).render(unit_float(photo(40, 40))).mean() < 0.6


def test_the_mean_is_a_solid_fill():
    image = unit_float(photo(10, 10))
    np.testing.assert_allclose(Mean().color(image), image.mean(axis=(0, 1)), atol=1e-6)


def test_a_picture_is_resized_to_the_image_and_known_by_its_content(tmp_path):
    pixels = photo(10, 10)
    Image.fromarray(pixels).save(tmp_path / "other.png")
    (fill,) = parse(f"picture:{tmp_path / 'other.png'}")
    assert fill.render(unit_float(photo(20, 30))).shape == (20, 30, 3)
    np.testing.assert_allclose(fill.render(unit_float(photo(10, 10))), unit_float(pixels))
    assert Picture(pixels) == Picture(pixels.copy())
    assert Picture(pixels) != Picture(photo(10, 10, seed=5))


@pytest.mark.parametrize("fill", [*RGBWK, Blur(3.5), Gray(), Hue(90), Mean(), Noise(3)])
def test_a_fill_survives_saving(fill):
    assert from_json(fill.to_json()) == fill
