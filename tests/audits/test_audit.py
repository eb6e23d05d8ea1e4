"""An audit: what is measured of an image, and that its tables are the same whoever did the work."""

import json
import math
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import mcrise
import planted_signs
from audit_runs import GIVEN, command, files
from mcrise import InputError, McriseError, Model, ModelError
from mcrise.audits import tables
from mcrise.audits.api import OWN_TRIALS, audit, prepare
from mcrise.audits.config import AuditConfig, AuditWorker, begun, choose_mask_prob, first_chunk
from mcrise.audits.confirmation import ConfirmationTask
from mcrise.audits.diff import compare_audits
from mcrise.audits.measure import Task, energies, half_maps, measure_image, repaint
from mcrise.audits.rule_check import check_rules
from mcrise.audits.rules import Rule
from mcrise.audits.transplants import Outcome, Transplant, traits
from mcrise.audits.zones import (
    NINTHS,
    RESERVED,
    box_share,
    covered,
    mask_share,
    onto_raster,
    parse_zones,
    zone_shares,
)
from mcrise.batch.datasets import Example, sample_of_each
from mcrise.batch.engine import BatchOptions, Stage
from mcrise.batch.storage import Storage
from mcrise.cli import cli, interrupted
from mcrise.colors import BASICS, LIGHTNESS, basic_colors, oklab, shades
from mcrise.config import RunConfig
from mcrise.explanation import Explanation
from mcrise.images import Geometry, View, png
from mcrise.mask_prob import LESS, choose
from mcrise.masks import Plan
from planted import Counting
from planted_signs import LABELS, SIZE, make_collection

HERE = Path(__file__).parents[1]
ZONES = parse_zones("thirds,rim", False)
RUN = RunConfig(n_masks=256, grid=(6, 6), mask_prob=0.3)


def picture(pixels=None):
    blank = np.full((SIZE, SIZE, 3), 128, np.uint8)
    return Geometry().view(blank if pixels is None else pixels)


def looked(view, predict=planted_signs.signs, config=RUN, truth=None, **example):
    model = Model(predict)
    if predict is planted_signs.signs:
        model = planted_signs.model
    zones = parse_zones("thirds,rim", bool(example))
    task = Task(0, Example("a.png", "a.png", **example), truth)
    return measure_image(view, model, replace(config, target=truth), zones, task)


def classes(folder):
    return {looks.target: looks for looks in tables.read_classes(Storage(folder))}


# ---- numbers of maps


def test_the_raster_has_the_means_of_its_cells():
    """Also of images that are smaller than it, and not square."""
    rng = np.random.default_rng(0)
    for size in ((64, 96), (17, 45), (8, 31)):
        values = rng.random(size)
        assert onto_raster(values).shape == (32, 32)
        assert onto_raster(values).mean() == pytest.approx(values.mean())
    large = np.kron(np.arange(1024.0).reshape(32, 32), np.ones((3, 2)))
    np.testing.assert_allclose(onto_raster(large), np.arange(1024.0).reshape(32, 32))


def noise_record(seed, n_chunks=2):
    """Scores that have nothing to do with the masks."""
    rng = np.random.default_rng(seed)
    plan = Plan((16, 16), grid=(4, 4), mask_prob=0.3, seed=seed)
    scores = {c: rng.random((64, 2), np.float32) for c in range(n_chunks)}
    untouched = np.array([0.5, 0.5], np.float32)
    return Explanation(plan, picture(np.zeros((16, 16, 3), np.uint8)), untouched, scores=scores,
                  kind="independent")  # fmt: skip


def test_noise_has_no_energy_on_average():
    """Products of two halves of the masks: squares would be far above zero."""
    found = [half_maps(noise_record(seed), 0) for seed in range(120)]
    products = np.array([energies(*halves) for halves in found])
    squares = np.array([energies(one, one) for one, _ in found])
    error = products.std(axis=0) / math.sqrt(len(products))
    assert (np.abs(products.mean(axis=0)) < 3 * error).all()
    assert (squares.mean(axis=0) > 20 * error).all()


def test_what_any_fill_does_is_presence_and_what_one_does_is_color():
    """A model that sees whether a corner is as it was, and one that sees how red it is."""

    def presence(images):
        corner = images[:, :8, :8].astype(np.float64)
        kept = np.exp(-np.abs(corner - 128).mean(axis=(1, 2, 3)) / 64)
        return np.stack([kept, 1 - kept], axis=1)

    def redness(images):
        corner = images[:, :8, :8].astype(np.float64) / 255
        red = 0.5 + 0.4 * (corner[..., 0] - corner[..., 1]).mean(axis=(1, 2))
        return np.stack([red, 1 - red], axis=1)

    config = replace(RUN, n_masks=1024, fills="red,#00ff00")
    for predict, low, high in ((presence, -0.05, 0.1), (redness, 0.9, 1.05)):
        facts = looked(picture(), predict, config, truth=0).facts
        share = facts["color_energy"] / (facts["color_energy"] + facts["presence_energy"])
        assert low < share < high


def test_effects_are_where_the_model_looks_and_in_its_colors():
    pixels = np.full((SIZE, SIZE, 3), 128, np.uint8)
    pixels[8:16, 8:16] = (220, 20, 30)
    found = looked(picture(pixels), truth=0)
    zones = [zone.name for zone in ZONES]
    effect = found.arrays["zone_effect"]  # (Z, K), fills red green blue white black
    center = effect[zones.index("center")]
    assert abs(center[0]) < 0.1  # it is red already
    assert (center[1:] < -0.06).all()
    assert np.abs(effect[zones.index("upper right")]).max() < 0.1
    energy = found.arrays["zone_energy"]
    assert energy[zones.index("center")] > 0.3 * energy[:9].sum()
    assert energy[:9].sum() == pytest.approx(
        found.facts["presence_energy"] + found.facts["color_energy"]
    )
    own = dict(zip(BASICS, found.arrays["color_area_effect"], strict=True))
    np.testing.assert_allclose(own["red"], center, atol=0.05)  # where it is red is the center
    assert np.isnan(own["green"]).all()
    share = dict(zip(BASICS, found.arrays["color_area"], strict=True))
    assert share["red"] == pytest.approx(1 / 9)
    assert share["gray"] == pytest.approx(8 / 9)


def test_colors_turned_or_gone_are_asked_about():
    pixels = np.full((SIZE, SIZE, 3), 128, np.uint8)
    pixels[8:16, 8:16] = (220, 20, 30)
    facts = looked(picture(pixels)).facts
    assert LABELS[facts["predicted"]] == "red"
    assert [LABELS[facts[name]] for name in ("gray", "hue120", "hue240")] == ["plain"] * 3


def rim_is_green(images):
    """A model that says `green` of what has a green edge, whatever is in the middle."""
    rim = np.ones(images.shape[1:3], bool)
    rim[2:-2, 2:-2] = False
    green = (images[:, rim, 1].astype(float) - images[:, rim, 0]).mean(axis=1) / 255
    chance = 1 / (1 + np.exp(-20 * (green - 0.4)))
    return np.stack([chance, 1 - chance], axis=1).astype(np.float32)


def test_all_of_the_rim_is_painted_with_each_color_and_with_its_own():
    pixels = np.full((SIZE, SIZE, 3), (10, 200, 20), np.uint8)
    pixels[8:16, 8:16] = 128
    found = looked(picture(pixels), rim_is_green, truth=0)
    assert found.facts["background_zone"] == "rim"
    red, green, blue, white, black, own, untouched = found.arrays["background_score"]
    assert min(green, own, untouched) > 0.99
    assert max(red, blue, white, black) < 0.01
    assert found.arrays["background_prediction"].tolist() == [1, 0, 1, 1, 1, 0, 0]


def test_where_the_object_is_known_its_background_is_painted():
    """The box is all that is looked at, so what lies outside of it does nothing at all."""

    def middle_is_red(images):
        red = images[:, 8:16, 8:16, 0].mean(axis=(1, 2)) / 255
        return np.stack([red, 1 - red], axis=1).astype(np.float32)

    pixels = np.full((SIZE, SIZE, 3), 128, np.uint8)
    pixels[8:16, 8:16] = (220, 20, 30)
    found = looked(picture(pixels), middle_is_red, truth=0, box=(6, 6, 18, 18))
    assert found.facts["background_zone"] == "background"
    np.testing.assert_allclose(found.arrays["background_score"], found.facts["score"], atol=1e-6)
    everything = looked(picture(pixels), middle_is_red, truth=0, box=(0, 0, SIZE, SIZE))
    assert (
        everything.facts["background_zone"] is None
    )  # there is no background, and the rim is of the object
    assert np.isnan(everything.arrays["background_score"]).all()


def test_a_mistake_for_want_of_a_color_is_put_right_by_painting_it():
    """The center should be red and is gray: it was to be `red`, and the model says `plain`."""
    facts = looked(picture(), truth=0).facts
    assert (facts["target"], LABELS[facts["predicted"]]) == (0, "plain")
    assert facts["corrected_by"] == "missing color"
    assert "the center with red" in facts["correction_sentence"]


def test_the_smallest_repaint_that_changes_the_decision_is_kept():
    pixels = np.full((SIZE, SIZE, 3), 128, np.uint8)
    pixels[8:16, 8:16] = (220, 20, 30)
    facts = looked(picture(pixels)).facts
    assert facts["counterfactual_kind"] == "color"
    assert facts["counterfactual_to"] == LABELS.index("plain")
    assert facts["counterfactual_share"] < 0.3
    assert "the model says 'plain'" in facts["counterfactual_sentence"]
    assert facts["corrected_by"] is None  # it was right


def test_a_wrong_image_has_maps_of_both_classes():
    found = looked(picture(), truth=0)
    assert found.arrays["maps"].shape == (2, 5, 32, 32)
    assert looked(picture(), truth=2).arrays["maps"].shape == (1, 5, 32, 32)
    assert {row["target"] for row in found.findings} >= {0}


def test_each_image_has_masks_of_its_own_and_the_same_in_every_audit():
    """Noise that images shared would not average out; two audits are compared image by image."""
    one, other = AuditConfig(RUN), AuditConfig(RUN, keep_runs=True)
    seeds = {one.run_of(name, None).seed for name in ("a.png", "b.png", "c.png")}
    assert len(seeds) == 3
    assert one.run_of("a.png", 1).seed == other.run_of("a.png", None).seed
    assert AuditConfig(replace(RUN, seed=1)).run_of("a.png", None).seed not in seeds


# ---- basic colors


def test_basic_colors_are_what_people_call_them():
    named = {
        "red": (200, 30, 40), "blue": (30, 80, 160), "yellow": (240, 190, 0),
        "green": (60, 120, 50), "white": (245, 245, 240), "black": (15, 15, 15),
        "gray": (120, 120, 122), "orange": (240, 130, 20), "pink": (250, 150, 190),
        "brown": (100, 60, 20), "purple": (110, 40, 140), "turquoise": (30, 190, 180),
    }  # fmt: skip
    image = np.array([list(named.values())], np.uint8)
    assert [BASICS[n] for n in basic_colors(image)[0]] == list(named)


def test_what_has_no_hue_is_black_gray_or_white():
    levels = np.arange(256, dtype=np.uint8)
    names = [BASICS[n] for n in basic_colors(levels[None, :, None].repeat(3, axis=2))[0]]
    assert names == sorted(names, key=["black", "gray", "white"].index)
    assert 25 < names.count("black") < 45
    assert 15 < names.count("white") < 35


def test_shades_are_called_what_people_call_them():
    """Of the survey, each by the others: the nearest that is not itself."""
    known = shades()
    assert known["dusty blue"][0] == "blue"
    assert not {"teal blue", "bluish grey", "rust"} & set(known)  # of two colors, or of none
    rgb = np.array(
        [[int(hexed[at : at + 2], 16) for at in (1, 3, 5)] for _, hexed in known.values()]
    )
    place = oklab(rgb / 255) * (LIGHTNESS, 1, 1)
    apart = np.square(place[:, None] - place).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    names = np.array([name for name, _ in known.values()])
    assert (names[apart.argmin(axis=1)] == names).mean() > 0.95


# ---- zones


def test_ninths_cover_the_image_once_and_the_object_has_the_background_as_its_rest():
    own = covered((0.1, 0.2, 0.55, 0.9))
    shares = zone_shares((*NINTHS, *parse_zones("rim", True)), own)
    np.testing.assert_allclose(shares[:9].sum(axis=0), 1)
    np.testing.assert_allclose(shares[-2] + shares[-1], 1)
    assert shares[-2].mean() == pytest.approx(0.45 * 0.7)
    assert shares[9].mean() == pytest.approx(1 - 0.75**2)  # the rim
    assert np.isnan(zone_shares(parse_zones("object", True), None)).all()


def test_a_box_is_where_the_model_sees_it():
    """It is shown the middle 40 x 40 pixels of 60 x 40: rows 10 to 50 of the original."""
    view = View(np.zeros((20, 20, 3), np.uint8), (60, 40), (10.0, 0.0, 50.0, 40.0))
    share = box_share((10, 0, 30, 10), view)
    np.testing.assert_allclose(share, covered((0, 0, 0.5, 0.25)))
    mask = np.zeros((60, 40), np.uint8)
    mask[10:30, :10] = 255
    np.testing.assert_allclose(mask_share(png(np.dstack([mask] * 3)), view), share)


def test_where_the_object_is_follows_from_its_box():
    found = looked(picture(), box=(8, 8, 16, 16))  # the center ninth
    effect, energy = found.arrays["zone_effect"], found.arrays["zone_energy"]
    np.testing.assert_allclose(effect[-2], effect[4])
    assert energy[-2] + energy[-1] == pytest.approx(energy[:9].sum())


@pytest.mark.parametrize(
    ("zones", "said"),
    [
        ("thirds,edge", "The zone 'edge' is unknown: give thirds, rim, object"),
        ("thirds,thirds", "listed twice"),
        ("a=0:0:1", "no part of an image"),
        ("a=0.5:0:0.4:1", "no part of an image"),
        ("a=0:0:1:2", "no part of an image"),
        ("", "No zones were given"),
        ("object", "says nothing of where its objects are"),
        ("edge=0:0:0.1:1", "'edge=0:0:0.1:1' has the name of something that an audit looks at"),
        ("rim=0:0:0.1:1", "give another name than object, background, rim, surroundings, edge"),
    ],
)
def test_zones_that_cannot_be_are_refused(zones, said):
    with pytest.raises(InputError, match=said):
        parse_zones(zones, has_objects=False)


def test_no_zone_of_ones_own_can_be_called_as_a_trait_is():
    own = {trait.name for known in (True, False) for trait in traits(ZONES, known)}
    assert {*RESERVED} == {*own} - {zone.name for zone in NINTHS} | {"object"}


@pytest.mark.parametrize("box", [(0, 0, 25, 10), (-1, 0, 5, 5), (5, 5, 5, 9), (0, 0, 10, 99)])
def test_a_box_outside_of_the_image_is_refused(box):
    with pytest.raises(InputError, match="it has 24 rows and 24 columns: give a box inside"):
        looked(picture(), box=box)


def test_a_mask_of_another_size_is_refused(tmp_path):
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "mask.png")
    with pytest.raises(InputError, match="mask is 9 x 9 pixels, but the image is 24 x 24"):
        looked(picture(), mask=str(tmp_path / "mask.png"))
    (tmp_path / "mask.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="mask cannot be used: The image is not an image"):
        looked(picture(), mask=str(tmp_path / "mask.png"))


def test_a_mask_is_not_unpacked_if_it_is_too_large_or_handed_to_another_program(tmp_path):
    Image.new("1", (12_000, 12_000)).save(tmp_path / "large.png")
    Image.new("RGB", (24, 24)).save(tmp_path / "program.eps")
    for name, words in (("large.png", "144,000,000 pixels"), ("program.eps", "not an image")):
        with pytest.raises(InputError, match=words):
            looked(picture(), mask=str(tmp_path / name))


# ---- the second stage


def test_an_attempt_paints_its_region_and_the_same_patch_elsewhere():
    region, elsewhere = np.zeros((2, 32, 32), bool)
    region[11:21, 11:21], elsewhere[:10, :10] = True, True
    attempt = ConfirmationTask("k", 0, 7, 0, True, 0, 1, region, (elsewhere,))
    model = Model(planted_signs.signs, labels=LABELS)
    task = Task(7, Example("a.png", "a.png"), 0, "confirm", (attempt,))
    said = repaint(picture(), model, RUN, task)
    ((after, predicted, (control,)),) = said.after.values()
    assert said.prediction_before == LABELS.index("plain")
    assert predicted == LABELS.index("red")
    assert after > said.before + 0.5
    assert control == pytest.approx(said.before, abs=0.01)


# ---- an audit


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An audit by a model in memory, 12 images a class."""
    folder = tmp_path_factory.mktemp("whole")
    data = make_collection(folder / "data", 12)
    audit(data, planted_signs.model, out=folder / "out", **GIVEN)
    return folder


def test_classes_are_read_as_arrays(whole):
    found = classes(whole / "out")
    assert {t: len(looks.image) for t, looks in found.items()} == {0: 12, 1: 12, 2: 12}
    for target, looks in found.items():
        assert looks.names[0] == f"{LABELS[target]}/000.png"
        assert (looks.truth == target).all()
        assert looks.maps.shape == looks.errors.shape == (12, 5, 32, 32)
        assert looks.pixels.shape == (12, 32, 32, 3)
        assert len(set(looks.group)) == 12  # each its own
    sticker = found[1]
    assert (sticker.predicted == 1).all()
    assert (sticker.gray != 1).all()
    mean = sticker.maps.mean(axis=0)
    assert mean[2, 22:, 22:].mean() < -0.1  # blue on the sticker
    assert abs(mean[2, :10, :10].mean()) < 0.02
    asked = tables.read_asked(Storage(whole / "out"))
    assert (asked.mask_prob, asked.why, asked.n_masks, asked.n_images) == (0.3, "", 128, 36)
    assert asked.label(1) == "sticker"
    with pytest.raises(InputError, match="no images of 'class 7'"):
        tables.read_class(Storage(whole / "out"), 7)


def test_a_class_s_findings_are_tried_in_its_other_half(whole):
    answers = tables.read_answers(Storage(whole / "out"))
    sticker = classes(whole / "out")[1]
    said = [one for (image, _), one in answers.items() if image in sticker.image]
    assert said
    assert min(one.after - one.before for one in said) < -0.3


def test_pandas_polars_and_duckdb_read_the_tables(whole):
    import duckdb
    import pandas
    import polars

    out = whole / "out"
    by_pandas = pandas.read_parquet(out / "maps").sort_values("image")
    by_polars = polars.read_parquet(out / "maps/**/*.parquet", hive_partitioning=True).sort("image")
    by_duckdb = duckdb.sql(f"SELECT * FROM '{out}/maps/*/*.parquet' ORDER BY image")
    looks = classes(out)
    known = {i: m for one in looks.values() for i, m in zip(one.image, one.maps, strict=True)}
    columns = by_duckdb.fetchnumpy()
    for values in (by_pandas["values"], by_polars["values"].to_list(), columns["values"]):
        for n, one in enumerate(values):
            np.testing.assert_array_equal(np.ravel(one), known[n].ravel())
    assert columns["class"].tolist() == by_polars["class"].to_list()
    for table in ("images", "findings"):
        n = pandas.read_parquet(out / table).shape
        assert polars.read_parquet(out / f"{table}/**/*.parquet", hive_partitioning=True).shape == n
        assert duckdb.sql(f"SELECT * FROM '{out}/{table}/*/*.parquet'").shape == n


def test_pieces_are_gone_when_there_are_tables_and_nothing_is_asked_again(whole):
    assert not list((whole / "out" / "pieces").iterdir())
    (whole / "out" / "figures.json").unlink()
    before = files(whole / "out")

    asked = []

    def counting(images):
        asked.append(len(images))
        return planted_signs.signs(images)

    model = replace(planted_signs.model, predict=counting)
    found = audit(whole / "data", model, out=whole / "out", **GIVEN)
    assert asked == [1]  # whether it is the same model
    assert (found.n_images, found.n_failed) == (36, 0)
    assert files(whole / "out") == before
    for name in ("figures.json", "summary.md", "audit.html"):
        assert (whole / "out" / name).exists()
    assert "\n".join(found.summary) + "\n" == (whole / "out" / "summary.md").read_text()


def test_another_model_of_the_same_name_is_refused(whole):
    other = replace(
        planted_signs.model, predict=lambda images: planted_signs.signs(images[:, ::-1])
    )
    with pytest.raises(InputError, match="by another model of the name"):
        audit(whole / "data", other, out=whole / "out", **GIVEN)


def test_another_audit_in_the_folder_is_refused_unless_overwritten(tmp_path, monkeypatch):
    data = make_collection(tmp_path / "data", 1)
    given = {**GIVEN, "n_masks": 64, "out": tmp_path / "out"}
    audit(data, planted_signs.model, **given)
    with pytest.raises(InputError, match=r"holds another audit \(other settings\)"):
        audit(data, planted_signs.model, **{**given, "seed": 3})
    with monkeypatch.context() as other:
        other.setattr("mcrise.audits.api.VERSION", "99")
        with pytest.raises(InputError, match=r"other mcrise\)"):
            audit(data, planted_signs.model, **given)
    (tmp_path / "out" / "mine.txt").write_text("kept")
    audit(data, planted_signs.model, **{**given, "seed": 3, "overwrite": True})
    assert (tmp_path / "out" / "mine.txt").exists()
    note = tmp_path / "out" / "audit.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), "format": 2}))
    again = r"has format 2 .* reads format 4: make it again by `mcrise audit` with --overwrite"
    with pytest.raises(InputError, match=again):
        tables.read_asked(Storage(tmp_path / "out"))
    note.write_text(json.dumps({**json.loads(note.read_text()), "format": 5}))
    with pytest.raises(InputError, match=r"has format 5 .* reads format 4: update mcrise"):
        tables.read_asked(Storage(tmp_path / "out"))
    with pytest.raises(InputError, match="holds no audit"):
        tables.read_asked(Storage(tmp_path))


def test_a_folder_has_one_audit_at_a_time(tmp_path):
    data, out = make_collection(tmp_path / "data", 1), tmp_path / "out"
    said = f"in use: an audit runs there already .process {os.getpid()} on"
    refused = []

    def second(images):
        if not refused:
            with pytest.raises(InputError, match=said) as error:
                audit(data, planted_signs.model, out=out, **GIVEN, overwrite=True)
            refused.append(error)
        return planted_signs.signs(images)

    model = replace(planted_signs.model, predict=second)
    assert audit(data, model, out=out, **GIVEN).n_failed == 0
    assert refused
    assert audit(data, planted_signs.model, out=out, **GIVEN).n_failed == 0  # it has let go


def test_an_audit_whose_folder_is_another_s_by_now_writes_nothing_there(tmp_path):
    data, out = make_collection(tmp_path / "data", 1), tmp_path / "out"
    n_asked = 0

    def removed(images):
        nonlocal n_asked
        n_asked += len(images)
        if n_asked > 100 and out.exists():
            shutil.rmtree(out)
        return planted_signs.signs(images)

    model = replace(planted_signs.model, predict=removed)
    with pytest.raises(McriseError, match=r"The audit in .* is not this one's any more"):
        audit(data, model, out=out, **GIVEN)
    assert not out.exists()


def test_one_image_is_an_audit_too(tmp_path):
    data = make_collection(tmp_path / "data", 1)
    found = audit(data, planted_signs.model, out=tmp_path / "out", images=1, **GIVEN)
    assert found.n_images == 1
    assert sum(len(looks.image) for looks in classes(tmp_path / "out").values()) == 1


def test_an_image_that_fails_ends_the_audit_or_is_left_out(tmp_path):
    data = make_collection(tmp_path / "data", 1)
    (data / "red" / "000.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"red/000\.png: .* --keep-going skips such images"):
        audit(data, planted_signs.model, out=tmp_path / "out", **GIVEN)
    found = audit(data, planted_signs.model, out=tmp_path / "out", keep_going=True, **GIVEN)
    assert (found.n_images, found.n_failed) == (3, 1)
    assert set(classes(tmp_path / "out")) == {1, 2}
    (row,) = tables.read_failed(Storage(tmp_path / "out"))
    assert row["name"] == "red/000.png"
    assert "is not an image" in row["error"]


def test_an_image_that_is_too_small_does_not_end_the_audit(tmp_path):
    data = make_collection(tmp_path / "data", 2)
    Image.new("RGB", (9, 7)).save(data / "red" / "000.png")
    found = audit(data, planted_signs.model, out=tmp_path / "out", **GIVEN)
    assert (found.n_images, found.n_failed) == (6, 1)
    assert "- red/000.png: The image is 7 x 9 pixels" in str(found)


def test_each_step_of_an_image_has_tries_of_its_own(tmp_path, monkeypatch):
    """A model that raises now and then does so in several steps of one image."""
    data, tried, do = make_collection(tmp_path / "data", 6), set(), AuditWorker.do

    def at_second_try(worker, task):
        if task.key not in tried:
            tried.add(task.key)
            raise ModelError("now and then")
        return do(worker, task)

    monkeypatch.setattr(AuditWorker, "do", at_second_try)
    found = audit(data, planted_signs.model, out=tmp_path / "out", retries=1, **GIVEN)
    assert found.n_failed == 0
    assert len({stage for _, stage in tried}) >= 2


def test_a_model_that_raises_while_mask_prob_is_chosen_is_asked_again(tmp_path):
    data, n_calls = make_collection(tmp_path / "data", 1), 0

    def now_and_then(images):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 2:  # after the image as it is, the first of its masks
            raise RuntimeError("now and then")
        return planted_signs.signs(images)

    model = replace(planted_signs.model, predict=now_and_then)
    given = {**GIVEN, "mask_prob": "auto"}
    assert audit(data, model, out=tmp_path / "out", **given).n_failed == 0
    assert "over 3 images" in tables.read_asked(Storage(tmp_path / "out")).why  # none is left out


def test_where_all_images_fail_each_has_its_reason(tmp_path):
    data = make_collection(tmp_path / "data", 1)
    for file in data.rglob("*.png"):
        file.write_bytes(b"no picture")
    given = {**GIVEN, "mask_prob": "auto", "keep_going": True}
    found = audit(data, planted_signs.model, out=tmp_path / "out", **given)
    assert (found.n_images, found.n_failed, found.summary) == (3, 3, ())
    place = Storage(tmp_path / "out")
    assert len(tables.read_failed(place)) == 3
    reason = "Not one of the 3 images of .* could be measured: failed.parquet there says why"
    with pytest.raises(InputError, match=reason):
        check_rules(place, [Rule(1, "accuracy", at_least=0.5)])
    with pytest.raises(InputError, match=reason):
        compare_audits(place, place)


def test_images_that_are_there_twice_are_refused(whole, tmp_path):
    copy = shutil.copytree(whole / "out", tmp_path / "copy")
    for table in ("images", "maps"):
        part = copy / table / "class=1" / "part-00000.parquet"
        shutil.copy(part, part.with_name("part-00001.parquet"))
    with pytest.raises(InputError, match="an image of class 1 is there twice"):
        list(tables.read_classes(Storage(copy)))


@pytest.mark.parametrize(
    "name", ["class=00", "class=-1", "class=7", f"class={'9' * 30}", "class=x"]
)
def test_a_class_that_cannot_be_is_refused(whole, tmp_path, name):
    """A part of 00 would be another one of class 0, and its images would count twice."""
    copy = shutil.copytree(whole / "out", tmp_path / "copy")
    for table in ("images", "maps"):
        shutil.copytree(copy / table / "class=0", copy / table / name)
    with pytest.raises(InputError, match="is damaged"):
        list(tables.read_classes(Storage(copy)))


def test_a_model_that_raises_is_named_with_the_image_and_nothing_is_lost(tmp_path):
    data = make_collection(tmp_path / "data", 1)

    Image.new("RGB", (27, SIZE)).save(data / "sticker" / "000.png")  # the last

    def broken(images):
        if images.shape[2] == 27:
            raise RuntimeError("out of order")
        return planted_signs.signs(images)

    model = replace(planted_signs.model, predict=broken)
    given = {**GIVEN, "out": tmp_path / "out"}
    with pytest.raises(ModelError, match=r"sticker/000\.png: .*out of order"):
        audit(data, model, **given, retries=1)
    pieces = sorted((tmp_path / "out" / "pieces").glob("*.npz"))
    assert len(pieces) == 2
    pieces[0].write_bytes(b"PK\3\4 torn")
    (data / "sticker" / "000.png").unlink()
    Image.new("RGB", (SIZE, SIZE)).save(data / "sticker" / "000.png")
    with pytest.raises(McriseError, match=r"000000\.npz is damaged: remove it"):
        audit(data, model, **given)
    pieces[0].unlink()
    assert audit(data, model, **given).n_failed == 0


def test_boxes_and_groups_of_a_table_come_through(tmp_path):
    data = make_collection(tmp_path / "data", 4)
    rows = [f"{label}/{n:03d}.png,{label},{n // 2},{8},{8},{16},{16}"
            for label in LABELS for n in range(4)]  # fmt: skip
    rows[0] = "red/000.png,red,0,,,,"  # nothing is known of this one
    (data / "list.csv").write_text("\n".join(["path,label,clip,x1,y1,x2,y2", *rows]))
    audit(data / "list.csv", planted_signs.model, out=tmp_path / "out", group="clip", **GIVEN)
    red = classes(tmp_path / "out")[0]
    assert len(set(red.group)) == 2
    assert np.isnan(red.zone_energy[0, -2:]).all()
    assert np.isnan(red.zone_effect[0, -2:]).all()
    share = np.nansum(red.zone_energy[:, -2]) / np.nansum(red.zone_energy[1:, :9])
    assert share > 0.3  # what makes it red is in the box
    assert tables.read_asked(Storage(tmp_path / "out")).zones[-2:] == ("object", "background")


def test_runs_are_kept_on_request_and_say_the_same(tmp_path):
    data = make_collection(tmp_path / "data", 1)
    audit(data, planted_signs.model, out=tmp_path / "out", keep_runs=True, **GIVEN)
    plain = classes(tmp_path / "out")[2]
    explanation = mcrise.load(tmp_path / "out" / "runs" / f"{plain.image[0]:06d}.npz")
    assert (explanation.n_masks, explanation.plan.mask_prob) == (128, 0.3)
    maps = explanation.maps(2, "centered")
    np.testing.assert_allclose(onto_raster(maps.values), plain.maps[0], atol=1e-3)


def test_one_mask_prob_is_chosen_for_all_and_written_down(tmp_path):
    data = make_collection(tmp_path / "data", 3)
    given = {**GIVEN, "mask_prob": "auto", "keep_runs": True}
    audit(data, planted_signs.model, out=tmp_path / "out", **given)
    asked = tables.read_asked(Storage(tmp_path / "out"))
    assert asked.why.startswith(f"{100 * asked.mask_prob:g}% of the image is painted at a time")
    assert ": over 8 images the score then changes by " in asked.why
    explanations = [mcrise.load(file) for file in (tmp_path / "out" / "runs").glob("*.npz")]
    assert {explanation.plan.mask_prob for explanation in explanations} == {asked.mask_prob}
    assert len(explanations) == 9


def test_a_score_that_masks_move_up_as_often_as_down_has_changed_all_the_same(tmp_path):
    """The pilot of an audit goes by the rule of a single run: the change, and not the mean."""

    def restless(images):
        rises = images.reshape(len(images), -1).sum(axis=1, dtype=np.int64) % 2 == 0
        painted = (images != images[:, :1, :1]).any(axis=(1, 2, 3))
        score = np.where(painted, np.where(rises, 0.99, 0.01), 0.5)
        return np.stack([score, 1 - score], axis=1)

    Image.fromarray(np.full((32, 32, 3), 90, np.uint8)).save(tmp_path / "gray.png")
    model, example = mcrise.load_model(restless), Example(str(tmp_path / "gray.png"), "gray.png")
    config = AuditConfig(RunConfig(n_masks=64, mask_prob="auto"), ZONES)
    explanation = next(iter(begun(model, config, [(example, None)])))[0]

    def ask(mask_prob):
        plan = replace(explanation.plan, mask_prob=mask_prob)
        return first_chunk(model, replace(explanation, plan=plan))

    alone = choose(ask, explanation.untouched, explanation.kind, 0)
    found, why = choose_mask_prob(model, config, [(example, 0)])
    assert found == alone.mask_prob == min(LESS)
    assert why.endswith(alone.sentence.rpartition(" then ")[2])


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5, "auto"])
def test_an_audit_asks_for_what_it_measures_and_for_no_more(tmp_path, mask_prob):
    """Of one image a class nothing is tried in others, so all calls are of single images."""
    data = make_collection(tmp_path / "data", 1)
    model = Counting(planted_signs.signs)
    known = replace(planted_signs.model, predict=model)
    given = {**GIVEN, "mask_prob": mask_prob}
    audit(data, known, out=tmp_path / "out", **given)
    n_asked, model.n_images = model.n_images, 0
    asked = tables.read_asked(Storage(tmp_path / "out"))
    config = RunConfig(n_masks=128, grid=(6, 6), mask_prob=asked.mask_prob)
    worker = AuditConfig(config, ZONES).worker(known)
    for target, label in enumerate(LABELS):
        name = f"{label}/000.png"
        worker.do(Task(0, Example(str(data / name), name), target))
    pilots = n_asked - model.n_images - 1  # and by what the model will be recognised
    wanted = {3 * (1 + 64 * n_tried) for n_tried in (1, 2, 3)} if mask_prob == "auto" else {0}
    assert pilots in wanted


def test_an_image_knows_its_calls_and_is_asked_about_as_it_is_twice():
    asked = []

    def recorded(images):
        asked.extend(images.copy())
        return planted_signs.signs(images)

    view = picture(np.random.default_rng(0).integers(0, 255, (SIZE, SIZE, 3)).astype(np.uint8))
    facts = looked(view, recorded).facts
    assert facts["n_calls"] == len(asked)
    assert sum(np.array_equal(image, view.pixels) for image in asked) == 2
    masked = [image.tobytes() for image in asked]
    assert len(set(masked)) >= len(masked) - 2  # no mask is asked about twice


def test_preprocessing_that_was_not_given_is_not_looked_for_in_each_image(tmp_path):
    data, n_asked = make_collection(tmp_path / "data", 1), []
    for notes in ((), ("no preprocessing was given, so pixels go in scaled to 0..1",)):
        model = Counting(planted_signs.signs)
        known = replace(planted_signs.model, predict=model, notes=notes)
        found = audit(data, known, out=tmp_path / f"{len(notes)}", **{**GIVEN, "mask_prob": "auto"})
        n_asked.append(model.n_images)
    assert n_asked[0] == n_asked[1]
    assert found.summary[-1].startswith("Note: no preprocessing was given")


def test_the_first_image_of_a_worker_does_not_set_the_time(tmp_path):
    """While libraries are loaded it takes many times as long as any other."""
    data = make_collection(tmp_path / "data", 4)
    prepared = prepare(data, planted_signs.model, RUN, BatchOptions(), out=tmp_path / "out")
    seconds = iter([50.0, 1.0, 2.0, 3.0, 9.0])

    def work():
        for image in range(4):
            prepared.pool.took.append(next(seconds))
            prepared.audit.done.add(image)
            yield prepared.audit

    with prepared.lock:
        price = prepared.price(work())
    shared = prepared.shared_calls() / 12
    assert price.seconds == pytest.approx(12 * 1.5 * (1 + shared / (256 + OWN_TRIALS)))


def test_the_price_is_of_images_that_are_not_measured_again(tmp_path):
    data = make_collection(tmp_path / "data", 2)
    model = Counting(planted_signs.signs)
    known = replace(planted_signs.model, predict=model)
    config = RunConfig(n_masks=128, grid=(6, 6), mask_prob=0.3)
    n_asked, prices = [], []
    for out, tell in (("quiet", None), ("priced", prices.append)):
        prepare(data, known, config, BatchOptions(), out=tmp_path / out).run(tell=tell)
        n_asked.append(model.n_images)
        model.n_images = 0
    assert n_asked[0] == n_asked[1]
    assert files(tmp_path / "quiet") == files(tmp_path / "priced")
    (price,) = prices
    assert (price.n_images, price.n_done, price.n_calls) == (6, 0, 6 * 176)
    assert 0 < price.seconds < 60
    prepare(data, known, config, BatchOptions(), out=tmp_path / "priced").run(tell=prices.append)
    assert prices[1].lines() == [
        "The audit is finished: only its figures and pages are made again."
    ]
    assert model.n_images == 1


def test_the_price_of_an_audit_that_goes_on_is_of_what_is_left(tmp_path):
    data = make_collection(tmp_path / "data", 4)
    prepared = prepare(data, planted_signs.model, RUN, BatchOptions(), out=tmp_path / "out")
    audit = prepared.audit
    with prepared.lock:
        whole = prepared.price(iter(()))
        audit.done.update(range(9))
        rest = prepared.price(iter(()))
        assert rest.n_calls == whole.n_calls - 9 * (256 + OWN_TRIALS)
        (told,) = rest.lines()
        assert told.startswith(f"3 of 12 images are left: about {rest.n_calls:,} calls of the mod")
        assert told.endswith(". What was done before is not counted.")
        audit.done.update(range(12))
        shared = prepared.price(iter(()))
        assert shared.lines() == [
            f"All 12 images are measured. What is left takes about {shared.n_calls:,} calls of "
            "the model."
        ]
        given = Outcome(Transplant("edge", 0, "screen", 1, False), 0, 0.5)
        audit.now = "screen"
        audit.write_outcomes(audit.task(5), [given] * 10)
        assert prepared.price(iter(())).n_calls == shared.n_calls - 10
        audit.n_planned = 4
        assert audit.stage == Stage("transplants, first look", 1, 4)
        assert audit.status()["stage"] == "transplants, first look"


def test_at_most_so_many_of_each_class_are_drawn():
    examples = [Example(f"{n}", f"{n:02d}", "ab"[n % 3 == 0]) for n in range(30)]
    some = sample_of_each(examples, 4, 0)
    assert [sum(one.label == label for one in some) for label in "ab"] == [4, 4]
    assert some == sorted(some, key=lambda one: one.name) == sample_of_each(examples, 4, 0)
    assert some != sample_of_each(examples, 4, 1)
    assert len(sample_of_each(examples, 15, 0)) == 25


@pytest.mark.parametrize(
    "wrong",
    [{"fills": "auto"}, {"fills": "octarine"}, {"batch_size": "auto"}, {"zones": "edge"},
     {"images": 0}, {"per_class": 0}, {"workers": 0}, {"workers": 2}, {"mask_prob": 1.0},
     {"group": "clip"}, {"masks": "nowhere"}],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused_before_any_work(tmp_path, wrong):
    data = make_collection(tmp_path / "data", 1)
    with pytest.raises(InputError):
        audit(data, planted_signs.model, out=tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


# ---- the command


def test_two_workers_and_a_killed_driver_leave_the_same_bytes(whole, tmp_path):
    out = tmp_path / "out"
    calls = {**os.environ, "MCRISE_TEST_CALLS": str(tmp_path / "calls")}
    given = command(whole / "data", out, "--workers", "2", spec="planted_signs:counted")
    process = subprocess.Popen(given, cwd=HERE, env=calls, stderr=subprocess.PIPE)
    end = time.monotonic() + 300
    while len(list((out / "pieces").glob("*"))) < 8 and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    done = subprocess.run(given, cwd=HERE, env=calls, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "What was done before is not counted." in done.stderr
    assert files(out) == files(whole / "out")
    assert (out / "figures.json").read_bytes() == (whole / "out" / "figures.json").read_bytes()


class Killed(BaseException):
    """Ends a process, as far as what it wrote is concerned."""


def test_ended_at_any_write_an_audit_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    """Each time one write later than the time before, before the file is there or just after."""
    data = make_collection(tmp_path / "data", 12)
    (data / "red" / "broken.png").write_bytes(b"no picture")
    given = {"n_masks": 64, "grid": 6, "mask_prob": 0.3, "keep_going": True}
    model = replace(planted_signs.model, predict=remembered())
    audit(data, model, out=tmp_path / "whole", **given)
    assert any(name.startswith("attempts/") for name in files(tmp_path / "whole"))
    real, n_ended = Storage.write, 0

    while n_ended < 50:
        left = [2 + n_ended]

        def write(file, content, left=left, after=n_ended % 2):
            left[0] -= 1
            if left[0] >= 0 or after:
                real(file, content)
            if left[0] < 0:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(Storage, "write", write)
            try:
                audit(data, model, out=tmp_path / "out", **given)
                break
            except Killed:
                n_ended += 1
    assert 8 < n_ended < 50
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    for name in ("failed.parquet", "figures.json", "summary.md"):
        own, other = (tmp_path / out / name for out in ("out", "whole"))
        assert own.read_bytes() == other.read_bytes()


def remembered():
    """A model that answers the same batch at once the second time."""
    known = {}

    def predict(images):
        key = images.tobytes()
        if key not in known:
            known[key] = planted_signs.signs(images)
        return known[key]

    return predict


# ---- what failed is tried again


def test_images_that_failed_are_tried_again_on_request_and_nothing_tells_they_failed(tmp_path):
    data = make_collection(tmp_path / "data", 6)
    audit(data, planted_signs.model, out=tmp_path / "whole", **GIVEN)
    good = (data / "red" / "003.png").read_bytes()
    (data / "red" / "003.png").write_bytes(b"no picture")
    given = {**GIVEN, "out": tmp_path / "out", "keep_going": True}
    assert audit(data, planted_signs.model, **given).n_failed == 1
    (data / "red" / "003.png").write_bytes(good)
    asked = Counting(planted_signs.signs)
    model = replace(planted_signs.model, predict=asked)
    assert audit(data, model, **given).n_failed == 1  # only on request
    n_before = asked.n_images
    assert audit(data, model, **given, retry_failed=True).n_failed == 0
    assert n_before < 10
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    for name in ("figures.json", "done.json"):
        own, other = (tmp_path / out / name for out in ("out", "whole"))
        assert own.read_bytes() == other.read_bytes()
    assert not (tmp_path / "out" / "failed.parquet").exists()
    assert not list((tmp_path / "out" / "pieces").iterdir())
    n_before = asked.n_images
    assert audit(data, model, **given, retry_failed=True).n_failed == 0  # nothing is left to retry
    assert asked.n_images - n_before == 1


def test_the_status_of_an_audit_is_read_from_elsewhere(whole):
    shown = CliRunner().invoke(cli, ["status", str(whole / "out")])
    assert shown.stdout == "36 of 36 images done, 0 failed.\n"


def test_the_cost_is_told_before_it_starts(tmp_path, capsys):
    data = make_collection(tmp_path / "data", 1)
    cli(command(data, tmp_path / "out", "--workers", "1")[3:], standalone_mode=False)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("3 of 3 images lie in a folder named after a class")
    assert told[1].startswith("3 images: about 528 calls of the model, about ")
    assert "with 1 worker" in told[1]


def test_bad_input_is_one_sentence(tmp_path):
    data = make_collection(tmp_path / "data", 1)
    (data / "box.csv").write_text("path,label,x1,y1,x2,y2\nred/000.png,red,0,0,99,9\n")
    zones = command(data, tmp_path / "out", "--quiet", "--zones", "edge")[3:]
    with pytest.raises(InputError, match="The zone 'edge' is unknown"):
        cli(zones, standalone_mode=False)
    done = subprocess.run(
        command(data / "box.csv", tmp_path / "out", "--quiet", "--workers", "1"),
        cwd=HERE, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "red/000.png: Its box goes from row 0 to 9" in done.stderr
    assert done.stderr.count("\n") == 1


def test_folders_that_no_class_is_named_after_are_told_first(tmp_path):
    data = make_collection(tmp_path / "data", 1)
    (data / "red").rename(data / "giraffe")
    prices, config = [], RunConfig(n_masks=128, grid=(6, 6), mask_prob=0.3)
    prepared = prepare(data, planted_signs.model, config, BatchOptions(), out=tmp_path / "out")
    found = prepared.run(tell=prices.append)
    note = "Note: 1 images lie in folders that no class is named after ('giraffe')."
    assert prices[0].lines()[0] == note
    table = next(n for n, line in enumerate(found.summary) if line.startswith("|"))
    told = "The true class of 1 of 3 images is not known: accuracy is that of the others."
    assert told in found.summary[:table]
    assert told in (tmp_path / "out" / "audit.html").read_text()


def test_boxes_that_cover_whole_images_leave_no_background_to_test(tmp_path):
    data = make_collection(tmp_path / "data", 1)
    rows = [f"{label}/000.png,{label},0,0,{SIZE},{SIZE}" for label in LABELS]
    (data / "list.csv").write_text("\n".join(["path,label,x1,y1,x2,y2", *rows]))
    found = audit(data / "list.csv", planted_signs.model, out=tmp_path / "out", **GIVEN)
    assert found.n_failed == 0
    told = "Not tested: the background, because the objects' boxes or masks cover whole images; "
    assert any(line.startswith(told) for line in found.summary)


def test_a_label_that_the_model_does_not_have_is_refused(tmp_path):
    data = make_collection(tmp_path / "data", 1)
    (data / "list.csv").write_text("red/000.png,giraffe\n")
    with pytest.raises(InputError, match="'giraffe', but the model has no such class"):
        audit(data / "list.csv", planted_signs.model, out=tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no images"):
        audit(tmp_path / "empty", planted_signs.model, out=tmp_path / "out")


@pytest.mark.parametrize(("command", "saves"), [("audit", True), ("check", False)])
def test_a_command_says_that_it_saved_where_it_did(command, saves, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mcrise", command])
    interrupted(KeyboardInterrupt())
    assert ("What was computed is saved" in capsys.readouterr().err) == saves
