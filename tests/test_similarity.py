import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise.cli import cli
from mcrise.interpretation.repaints import own_mean
from mcrise.models.model import Model
from mcrise.models.provenance import Origin
from mcrise.similarity import distances_to, match, open_gallery
from planted import Counting, explain_masks
from planted_reading import shared_data

pytestmark = pytest.mark.usefixtures("undrawn")

SIZE = (32, 24)


def embed_colors(images):
    """An embedding one can check by hand: the mean color of the upper half, in 0..1."""
    return images[:, : SIZE[0] // 2].mean(axis=(1, 2)) / np.float32(255)


def embedder(predict=embed_colors):
    from mcrise.images import Geometry

    return Model(predict, geometry=Geometry(SIZE), kind="any", identity="mean color 1")


def from_file(model):
    """As if it were read from a file, whose digest says that its weights are the same."""
    return replace(model, origin=Origin("colors.onnx", "abc"))


@pytest.fixture
def gallery(tmp_path):
    """Three people by the color of their shirts; the query wears purple."""
    folder = tmp_path / "gallery"
    folder.mkdir()
    for name, color in {
        "purple": (120, 30, 130),
        "green": (20, 160, 40),
        "red": (200, 20, 20),
    }.items():
        Image.new("RGB", SIZE[::-1], color).save(folder / f"{name}.png")
    Image.new("RGB", SIZE[::-1], (130, 40, 140)).save(tmp_path / "query.png")
    return folder


def query_of(gallery):
    return gallery.parent / "query.png"


def test_the_nearest_is_matched_and_its_similarity_starts_at_one_over_e(gallery):
    embed = embedder()
    found = match(query_of(gallery), open_gallery(gallery, embed), embed)
    assert (found.path.name, found.rank) == ("purple.png", 1)
    assert found.distance == pytest.approx(np.sqrt(3) * 10 / 255, rel=1e-5)
    explanation = explain_masks(query_of(gallery), found.model, n_masks=64, mask_prob=0.1)
    assert explanation.untouched[0] == pytest.approx(np.exp(-1), rel=1e-5)
    assert explanation.maps().unit == "change of similarity"
    assert explanation.label(0) == "similarity to purple.png"


def test_similarity_falls_with_the_distance_in_units_of_the_untouched_one(gallery):
    embed = embedder()
    found = match(query_of(gallery), open_gallery(gallery, embed), embed)
    pixels = np.full((1, *SIZE, 3), (120, 30, 170), np.uint8)  # 40 away in blue alone
    assert found.model(pixels)[0, 0] == pytest.approx(np.exp(-40 / (np.sqrt(3) * 10)), rel=1e-4)


def test_painting_the_shirt_lowers_the_similarity_and_trousers_do_not_count(gallery):
    embed = embedder()
    found = match(query_of(gallery), open_gallery(gallery, embed), embed)
    maps = explain_masks(
        query_of(gallery), found.model, fills="green,white", n_masks=512, mask_prob=0.1
    ).maps()
    assert (maps.values[:, 4:12].mean(axis=(1, 2)) < 0).all()
    assert np.abs(maps.values[:, 24:].mean()) < 0.2 * np.abs(maps.values[:, 4:12].mean())


def test_against_names_any_image_of_the_gallery(gallery):
    embed = embedder()
    opened = open_gallery(gallery, embed)
    query = query_of(gallery)
    nearest = match(query, opened, embed)
    for name in ("green.png", gallery / "green.png"):
        other = match(query, opened, embed, against=type(gallery)(name))
        assert (other.path.name, other.rank) == ("green.png", 3)
        assert other.model.identity != nearest.model.identity
    with pytest.raises(mcrise.InputError, match="is not an image of the gallery"):
        match(query, opened, embed, against=gallery / "blue.png")


def test_a_name_that_two_images_of_the_gallery_have_is_refused_and_both_are_named(gallery):
    for folder in ("x", "y"):
        (gallery / folder).mkdir()
        shade = 40 if folder == "x" else 80
        Image.new("RGB", SIZE[::-1], (shade, 0, 0)).save(gallery / folder / "p.png")
    embed = embedder()
    opened = open_gallery(gallery, embed)
    one, other = gallery / "x" / "p.png", gallery / "y" / "p.png"
    with pytest.raises(mcrise.InputError) as refused:
        match(query_of(gallery), opened, embed, against="p.png")
    assert f"the name of 2 images of the gallery ({one} and {other})" in str(refused.value)
    assert match(query_of(gallery), opened, embed, against=other).path == other


def test_the_query_itself_is_left_out_by_content(gallery):
    (gallery / "copy.png").write_bytes(query_of(gallery).read_bytes())
    embed = embedder()
    found = match(query_of(gallery), open_gallery(gallery, embed), embed)
    assert found.path.name == "purple.png"


def test_the_same_picture_in_another_file_is_refused_for_lack_of_a_scale(gallery):
    Image.open(query_of(gallery)).save(gallery / "copy.bmp")
    embed = embedder()
    with pytest.raises(mcrise.InputError, match=r"same embedding \(distance 0\)"):
        match(query_of(gallery), open_gallery(gallery, embed), embed)


def test_cosine_distance_ignores_the_length_of_an_embedding():
    one, many = np.array([1.0, 0.0], np.float32), np.array([[2, 0], [0, 3], [1, 1]], np.float32)
    np.testing.assert_allclose(distances_to(many, one, "cosine"), [0, 1, 1 - np.sqrt(0.5)])
    np.testing.assert_allclose(distances_to(many, one, "euclidean"), [1, np.sqrt(10), 1])


def test_embeddings_are_cached_by_content(gallery, tmp_path):
    counted = Counting(embed_colors)
    embed = from_file(embedder(counted))
    first = open_gallery(gallery, embed, tmp_path / "cache")
    assert counted.n_images == 3
    (gallery / "red.png").rename(gallery / "rouge.png")
    Image.new("RGB", SIZE[::-1], (0, 0, 200)).save(gallery / "blue.png")
    second = open_gallery(gallery, embed, tmp_path / "cache")
    assert counted.n_images == 4  # only the new one
    assert [path.name for path in second.paths] == [
        "blue.png", "green.png", "purple.png", "rouge.png",
    ]  # fmt: skip
    assert np.array_equal(second.embeddings[1:], first.embeddings)


@pytest.mark.parametrize(
    "origin", [Origin(), Origin("colors:embed", "abc")], ids=["memory", "name"]
)
def test_what_a_callable_said_is_not_kept_since_its_weights_may_change(gallery, tmp_path, origin):
    counted = Counting(embed_colors)
    embed = replace(embedder(counted), origin=origin)
    for _ in range(2):
        open_gallery(gallery, embed, tmp_path / "cache")
    assert counted.n_images == 2 * 3
    assert not (tmp_path / "cache").exists()


def test_a_damaged_cache_is_only_a_cache(gallery, tmp_path):
    embed = from_file(embedder())
    open_gallery(gallery, embed, tmp_path / "cache")
    (stored,) = (tmp_path / "cache").iterdir()
    stored.write_bytes(b"nonsense")
    assert len(open_gallery(gallery, embed, tmp_path / "cache").paths) == 3


def test_an_unreadable_file_is_left_out_and_named(gallery):
    (gallery / "broken.jpg").write_bytes(b"not a picture")
    (gallery / "notes.txt").write_text("not meant to be one")
    opened = open_gallery(gallery, embedder())
    assert len(opened.paths) == 3
    assert opened.notes == (
        f"{gallery / 'broken.jpg'} is not an image and was left out of the gallery",
    )


def test_a_gallery_without_images_is_refused(gallery, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(mcrise.InputError, match="holds no image"):
        open_gallery(tmp_path / "empty", embedder())
    with pytest.raises(mcrise.InputError, match="is not a folder"):
        open_gallery(tmp_path / "nowhere", embedder())
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "me.png").write_bytes(query_of(gallery).read_bytes())
    with pytest.raises(mcrise.InputError, match="nothing but the query itself"):
        match(query_of(gallery), open_gallery(alone, embedder()), embedder())


def run(*arguments):
    cli([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def colors(tmp_path, monkeypatch):
    """The embedding of above as a model for the command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "colors.py").write_text(
        "def embed(images):\n    return images[:, :16].mean(axis=(1, 2)) / 255\n"
    )
    return "--model", "colors:embed", "--size", "32x24", "--n-masks", 64, "--trials", 4


def test_the_rank_is_among_all_images_but_the_query_itself(gallery, colors, capsys):
    (gallery / "copy.png").write_bytes(query_of(gallery).read_bytes())
    run("match", "query.png", gallery, "--against", "green.png", *colors)
    assert "green.png (rank 3 of 3, euclidean" in capsys.readouterr().out


def test_match_explains_a_query_that_is_not_rgb(gallery, colors, tmp_path, capsys):
    Image.open(query_of(gallery)).convert("L").save(tmp_path / "gray.png")
    run("match", "gray.png", gallery, *colors)
    out = capsys.readouterr().out
    assert "Matched with" in out
    assert "Note: converted from mode L to RGB." in out
    written = sorted(path.name for path in (tmp_path / "gray.png.match").iterdir())
    assert written == ["explanation.png", "maps.png", "match.png", "run.npz", "summary.json"]
    assert mcrise.load(tmp_path / "gray.png.match").plan.mask_prob == 0.1


@pytest.mark.parametrize("out", [None, "gallery/out", "gallery/found/out.mcrise"])
def test_what_match_has_drawn_is_no_image_of_the_gallery(gallery, colors, capsys, out):
    """The query lies in the gallery, so that by default the run does too."""
    query = gallery / "query.png"
    query_of(gallery).rename(query)
    said = []
    for _ in range(2):
        run("match", query, gallery, *colors, *(["--out", out] if out else []))
        said.append(capsys.readouterr().out)
    assert "purple.png (rank 1 of 3, " in said[0]
    assert said[0] == said[1]
    with pytest.raises(mcrise.InputError, match=r"The images are in .* themselves: choose another"):
        run("match", query, gallery, *colors, "--out", gallery)


@pytest.mark.slow
def test_a_purple_shirt_is_matched_with_a_purple_shirt_and_must_stay_purple(
    tmp_path, monkeypatch, capsys
):
    """OSNet, whose file fixes the batch to one, on crops of real people."""
    people, osnet = shared_data("reid", "people"), shared_data("reid", "osnet_x0_25_msmt17.onnx")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run("match", people / "purpleB_c1_002301.png", people, "--model", osnet, "--n-masks", 512,
        "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225", "--out", tmp_path / "out",
        "--json")  # fmt: skip
    summary = json.loads(capsys.readouterr().out)
    assert summary["maps"][0]["label"].startswith("similarity to purple")
    maps = mcrise.load(tmp_path / "out").maps(estimator="centered")
    torso = maps.values[:, 60:130, 35:95].mean(axis=(1, 2))
    error = maps.se[:, 60:130, 35:95].mean(axis=(1, 2))
    green, blue = maps.names.index("green"), maps.names.index("blue")
    assert torso[green] < -2 * error[green]
    assert torso[blue] < 0
    assert torso.mean() < 0
    found = summary["maps"][0]["findings"]["findings"]
    shirt = [one for one in found if one["box"][0] < 100 < one["box"][2]
             and one["box"][1] < 60 < one["box"][3]]  # fmt: skip
    assert min(one["after"] for one in shirt) < shirt[0]["before"] - 0.1
    # Its color matters, not its texture: its average color keeps most of the score, no other does.
    settings = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
    query = people / "purpleB_c1_002301.png"
    matched = match(query, open_gallery(people, osnet, **settings), osnet, **settings)
    run_of_it = mcrise.load(tmp_path / "out")
    region = np.zeros(run_of_it.plan.size, bool)
    region[60:130, 35:95] = True
    fills = (own_mean(run_of_it.view.pixels, region), *run_of_it.plan.fills)
    own, *others = (
        float(mcrise.intervene(run_of_it, matched.model, region, fill).after[0]) for fill in fills
    )
    before = float(run_of_it.untouched[0])
    assert own > 0.8 * before
    assert max(others) < 0.7 * before
