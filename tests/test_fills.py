import json
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

from mcrise.errors import ExplanationError, InputError
from mcrise.fills import (
    CUBE8,
    FILL_KINDS,
    RGBWK,
    Blur,
    Color,
    Fill,
    Gray,
    Hue,
    Mean,
    Noise,
    Picture,
    Solid,
    as_fills,
    checked,
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


@pytest.mark.parametrize("word", ["gray", "grey", "Grey"])
def test_gray_is_spelled_either_way(word):
    assert parse(word) == (Gray(),)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("rde", "'red'"), ("purpel", "'purple'"), ("blurr:3", "'blur'"), ("#12", "CSS names"),
     ("rgbkw", "'rgbwk'"), ("blur:much", "number after the colon"), ("blur:-2", "0.01 to 1000"),
     ("red,green,red", "twice"), ("", "not a color"), ("noise:x", "whole number"),
     ("picture:none.png", "does not exist"), ("auto", "from an image"), ("picture", "a file"),
     ("blur:0", "0.01 to 1000"), ("blur:1e-200", "0.01 to 1000"), ("blur:nan", "0.01 to 1000"),
     ("blur:1001", "0.01 to 1000"), ("hue:inf", "not an angle"), ("hue:nan", "not an angle"),
     (f"noise:{2**64}", "up to 2"), ("noise:-1", "whole number"), ("gray:3", "gray alone"),
     ("noise:" + 5000 * "9", "whole number"), ("solid:red", "not a color")],
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


@pytest.mark.parametrize("given", [2**64, -1, 1.5])
def test_a_seed_of_noise_is_a_whole_number_of_64_bits(given):
    with pytest.raises(InputError, match="from 0 up to"):
        Noise(given)


def test_a_list_mixes_words_palettes_and_fills():
    image = np.full((4, 4, 3), (200, 30, 30), np.uint8)
    given = ["red", " #0f0 ", Solid((1, 2, 3)), "rgb(4,5,6)", "blur:8", "auto:1"]
    expected = ["red", "#0f0", "#010203", "rgb(4,5,6)", "blur:8", "#c81e1e"]
    assert names(as_fills(given, image)) == expected
    assert parse(given, image) == as_fills(given, image)
    assert parse(["rgbwk", Gray()]) == (*RGBWK, Gray())
    assert parse(RGBWK) == RGBWK


@pytest.mark.parametrize(
    ("given", "hint"),
    [([], "0 fills"), (["red", 7], "7 is not a fill"), (["auto"], "from an image"),
     (["rgbwk", Solid((0, 0, 0), "red")], "twice")],
)  # fmt: skip
def test_a_list_that_cannot_be_fills_gets_a_sentence(given, hint):
    with pytest.raises(InputError, match=hint):
        as_fills(given)


@pytest.mark.parametrize(
    "fill",
    [Blur(2), Blur(0.01), Gray(), Hue(120), Hue(-1e300), Mean(), Noise(3), Noise(2**64 - 1),
     Solid((9, 8, 7))],
)  # fmt: skip
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


def test_noise_has_the_bits_it_always_had_and_differs_for_all_64_bits_of_its_seed():
    image = np.zeros((10, 10, 3), np.float32)
    for seed in (0, 3, 2**63):
        bits = np.random.Philox(key=[seed, 0]).random_raw(300) >> 40
        assert np.array_equal(Noise(seed).render(image).ravel() * 2**24, bits)
    seeds = (0, 2**63, 2**63 + 1, 2**64 - 1)  # as floats, the second and third are one
    assert len({Noise(seed).render(image).tobytes() for seed in seeds}) == 4


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


@pytest.mark.parametrize(
    "fill",
    [*RGBWK, Solid((1, 2, 3)), Blur(3.5), Gray(), Hue(90), Mean(), Noise(2**64 - 1),
     Picture(photo(3, 4), "other")],
)  # fmt: skip
def test_a_fill_survives_saving(fill):
    assert from_json(json.loads(json.dumps(fill.to_json())), fill.array) == fill


def test_a_picture_without_its_pixels_is_refused():
    with pytest.raises(InputError, match="needs uint8 pixels"):
        from_json(Picture(photo(3, 4)).to_json())


def test_a_built_in_fill_names_no_package():
    assert not any("package" in fill.to_json() for fill in parse("red,mean,blur,gray,hue,noise"))


@pytest.mark.parametrize(
    ("package", "remedy"),
    [("sepia-fills", "pip install sepia-fills"), (None, "where that fill was defined"),
     ("--index-url=evil x", "where that fill was defined"), (7, "where that fill was defined")],
)  # fmt: skip
def test_a_saved_fill_of_an_unknown_kind_says_what_to_install(package, remedy):
    with pytest.raises(
        ExplanationError, match=f"'nosuch', which this mcrise does not know: .*{remedy}"
    ):
        from_json({"kind": "nosuch", "package": package})


def test_every_fill_says_what_it_does_and_what_it_takes_away():
    fills = [*parse("red,mean,blur:8,gray,hue:90,noise"), Picture(photo(3, 4), "a cat")]
    assert {fill.kind for fill in fills} == set(FILL_KINDS)
    assert [(fill.is_color, fill.action_text, fill.removes) for fill in fills] == [
        (True, "a patch of red", "texture"),
        (True, "a patch of mean", "texture"),
        (False, "blurring this part", "sharpness"),
        (False, "taking the color out of this part", "saturation"),
        (False, "turning the hue of this part by 90 degrees", "hue"),
        (False, "covering this part with noise", "texture"),
        (False, "showing a cat in this part", "content"),
    ]


def test_a_kind_of_fill_without_words_or_pixels_is_an_error_not_a_color():
    @dataclass(frozen=True)
    class Silent(Fill):
        kind = "silent"
        removes = ""

        def render(self, image):
            return image

    class Colorless(Color):
        kind = "colorless"

    for kind, given, hint in [
        ("silent", Silent, "no action_text and no removes"),
        ("colorless", Colorless, "no color"),
        ("seven", 7, "is 7"),
        ("table", dict, "derived from"),
        ("smear", Blur, "another word"),
    ]:
        with pytest.raises(InputError, match=hint):
            checked(kind, given)
    with pytest.raises(TypeError, match="abstract"):
        Silent()


def test_capitals_do_not_matter_but_in_the_name_of_a_file(tmp_path):
    for word in ("Red", "RGBWK", "Gray", "Blur:8", "MEAN"):
        assert parse(word) == parse(word.lower())
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "File.png")
    assert parse(f"Picture:{tmp_path}/File.png")[0].array.shape == (8, 8, 3)
