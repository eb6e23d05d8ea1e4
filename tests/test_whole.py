"""The judge of benchmarks/whole.py: what it calls named, false or reached is so, by arithmetic."""

import ast
from pathlib import Path

import numpy as np
import pytest

import mcrise
from exhaustive import COLORS, Image, answers_of, lattice, paint, region_of
from mcrise.images import png
from reported import Place, Report, counted
from whole import Cover, fresh_places, judge_places, judge_truth, log_odds

SIZE = 32  # pixels; a cell has 4, half of one has 2
HERE = Path(__file__).parent.parent / "benchmarks"
PATCH = region_of((SIZE, SIZE), (8, 12, 16, 20))  # two cells a side
CORNER = region_of((SIZE, SIZE), (28, 28, 32, 32))  # one cell, in the corner


def by_patches(images):
    """0.9 less what of PATCH is no longer gray, and more where the corner is red."""
    gray = (images == 128).all(axis=3)
    red = (images == (255, 0, 0)).all(axis=3)
    lost = 1 - gray[:, PATCH].mean(axis=1)
    score = 0.7 - 0.6 * lost + 0.2 * red[:, CORNER].mean(axis=1)
    return np.stack([score, 1 - score], axis=1)


@pytest.fixture
def case(tmp_path):
    """The network, an image of it as a file, its pixels and the answers to all blocks."""
    pixels = np.full((SIZE, SIZE, 3), 128, np.uint8)
    (tmp_path / "gray.png").write_bytes(png(pixels))
    model = mcrise.load_model(by_patches, labels=["one", "other"])
    image = Image(str(tmp_path / "gray.png"), 0)
    return model, image, pixels, answers_of("planted", model, image, tmp_path)


def place(region, color, direction, after, **more):
    return Place(region, np.array(COLORS[color]), direction, after, **more)


def told(*places):
    return Report(list(places), [], {})


def test_the_lattice_has_all_blocks_at_half_cells():
    blocks = lattice((96, 224))
    assert len(blocks) == 15**2 + 13**2 + 11**2
    assert len({tuple(block) for block in blocks}) == len(blocks)
    side, top, left, bottom, right = blocks.T
    assert (bottom - top == 12 * side).all()
    assert (right - left == 28 * side).all()
    assert set(top) == set(range(0, 85, 6))
    assert right.max() == 224


def test_answers_are_those_of_each_block_painted_alone(case):
    _, _, _, answers = case
    covered = np.array([(region_of((SIZE, SIZE), b[1:]) & PATCH).sum() for b in answers.blocks])
    lost = covered[:, None] / PATCH.sum()
    on_corner = np.array([(region_of((SIZE, SIZE), b[1:]) & CORNER).sum() for b in answers.blocks])
    red = np.array([1, 0, 0, 0, 0]) * (on_corner / CORNER.sum())[:, None]
    np.testing.assert_allclose(answers.score, 0.7 - 0.6 * lost + 0.2 * red, atol=1e-6)
    np.testing.assert_array_equal(answers.says == 1, answers.score < 0.5)


def test_answers_are_kept_and_not_asked_again(case, tmp_path):
    model, image, _, answers = case
    model, counter = counted(model)
    again = answers_of("planted", model, image, tmp_path)
    assert counter.n == 0
    np.testing.assert_array_equal(again.score, answers.score)


def test_a_block_is_named_by_half_on_places_of_its_direction(case):
    model, _, pixels, answers = case
    nothing = judge_places(answers, told(), model, pixels)
    n_deciding, n_named = nothing["deciding blocks named"]
    assert n_deciding > 0
    assert n_named == 0
    assert nothing["images uncovered"] == (1, 1)

    low = place(PATCH, "blue", "lowers", 0.1)
    high = place(CORNER, "red", "raises", 0.9)
    both = judge_places(answers, told(low, high), model, pixels)
    assert both["images uncovered"] == (1, 0)
    deciding = (answers.score < 0.5).any(axis=1)
    on = Cover([low], "lowers", (SIZE, SIZE))(answers.blocks)
    assert both["deciding blocks named"] == (deciding.sum(), (on[deciding] >= 0.5).sum())
    assert both["rises named"][1] > 0
    assert both["images with a rise, highest named"] == (1, 1)
    assert both["places false"] == (2, 0)

    other_way = judge_places(answers, told(place(PATCH, "blue", "raises", 0.1)), model, pixels)
    assert other_way["deciding blocks named"] == (n_deciding, 0)
    assert other_way["places false"] == (1, 1)


def test_places_that_are_untested_or_too_large_do_not_count(case):
    model, _, pixels, answers = case
    whole = np.ones((SIZE, SIZE), bool)
    ones = told(place(PATCH, "blue", "lowers", 0.1, verified=False),
                place(whole, "blue", "lowers", 0.1))  # fmt: skip
    counts = judge_places(answers, ones, model, pixels)
    assert counts["images uncovered"] == (1, 1)
    assert counts["places false"] == (0, 0)


def test_a_score_that_is_not_the_models_is_noticed(case):
    model, _, pixels, answers = case
    right = place(PATCH, "blue", "lowers", 0.1, says="other", only_here=True)
    wrong = place(PATCH, "blue", "lowers", 0.2, says="one", only_here=True)
    counts = judge_truth(answers, told(right, wrong), model, pixels, 0)
    assert counts["scores reproduced"] == (2, 1)
    assert counts["answers reproduced"] == (2, 1)
    assert counts["hold at hard edges"] == (2, 2)
    assert counts["moved: keep half"] == (2, 2)
    assert counts["fresh places that do 90%"] == (38, 0)


def test_an_effect_that_any_place_has_is_not_only_here(case, tmp_path):
    """The score is the share of gray: the same patch does as much anywhere."""
    _, image, pixels, _ = case

    def by_area(images):
        score = (images == 128).all(axis=3).mean(axis=(1, 2))
        return np.stack([score, 1 - score], axis=1)

    model = mcrise.load_model(by_area, labels=["one", "other"])
    answers = answers_of("area", model, image, tmp_path)
    one = place(PATCH, "blue", "lowers", 1 - PATCH.mean(), only_here=True)
    counts = judge_truth(answers, told(one), model, pixels, 0)
    assert counts["fresh places that do 90%"] == (19, 19)
    assert counts["'only here' with a fresh place that does 90%"] == (1, 1)


def test_fresh_places_have_the_shape_and_share_no_pixel():
    shape = PATCH.copy()
    shape[8, 12] = False
    found = list(fresh_places(shape, np.random.default_rng(0)))
    assert len(found) == 19
    assert len({one.tobytes() for one in found}) == 19
    assert all(one.sum() == shape.sum() and not (one & shape).any() for one in found)


def test_soft_edges_are_painted_as_weights():
    pixels = np.full((1, 2, 3), 100, np.uint8)
    out = paint(pixels, np.array([[0.25, 0.0]]), np.array([200, 100, 0]))
    assert out.tolist() == [[[125, 100, 75], [100, 100, 100]]]


def test_log_odds_are_clipped():
    assert log_odds(1.0) == log_odds(0.99) == pytest.approx(-log_odds(0.0))


def test_the_judge_imports_nothing_of_the_interpretation():
    """It may ask for networks, lists of images and pixels, and no more."""
    allowed = {"mcrise", "mcrise.batch.datasets", "mcrise.demo.signs"}
    for file in ("exhaustive.py", "whole.py"):
        nodes = ast.walk(ast.parse((HERE / file).read_text()))
        modules = {node.module: [n.name for n in node.names] for node in nodes
                   if isinstance(node, ast.ImportFrom) and node.module}  # fmt: skip
        ours = {name: names for name, names in modules.items() if name.startswith("mcrise")}
        assert set(ours) <= allowed
        assert set(ours.get("mcrise", [])) <= {"Model"}
