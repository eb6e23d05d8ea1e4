import numpy as np
import pytest

from mcrise.errors import InputError
from mcrise.fills import RGBWK, parse
from mcrise.masks import CHUNK, Plan, draw, enlargement, enlargement_at
from planted import draw_many, full_masks


@pytest.mark.parametrize("mask_prob", [0.1, 0.3, 0.5])
def test_cells_are_painted_with_mask_prob_and_each_fill_equally_often(mask_prob):
    masks = draw_many(Plan((96, 96), mask_prob=mask_prob), 100)
    share = np.bincount(masks.cells.ravel(), minlength=6) / masks.cells.size
    expected = np.array([1 - mask_prob] + [mask_prob / 5] * 5)
    error = np.sqrt(expected * (1 - expected) / masks.cells.size)
    assert (np.abs(share - expected) < 4 * error).all()


def test_every_shift_smaller_than_a_cell_occurs_equally_often():
    plan = Plan((24, 40), grid=(8, 8))  # cells of 3 x 5 pixels
    shifts = draw_many(plan, 100).shifts
    for axis, cell in enumerate((3, 5)):
        share = np.bincount(shifts[:, axis], minlength=cell) / len(shifts)
        assert len(share) == cell
        assert np.abs(share - 1 / cell).max() < 0.02


@pytest.mark.parametrize(
    ("plan", "checksums"),
    [
        (Plan((96, 96)), (3957202943, 4122223267)),
        (Plan((224, 180), parse("red,blur:8"), (7, 5), 0.1, 2**63), (3705971717, 256073031)),
    ],
    ids=["defaults", "rectangular"],
)
def test_the_masks_of_a_plan_are_the_same_on_every_machine_and_release(plan, checksums):
    """If this fails, saved records can no longer be read: mend `draw`, not the numbers."""
    assert (draw(plan, 0).checksum(), draw(plan, 7).checksum()) == checksums


def test_chunks_and_seeds_differ():
    plan = Plan((96, 96))
    different = {draw(p, c).checksum() for p in (plan, Plan((96, 96), seed=1)) for c in range(20)}
    assert len(different) == 40
    # As floats, the first two are one.
    large = {draw(Plan((96, 96), seed=s), 0).checksum() for s in (2**63, 2**63 + 1, 2**64 - 1)}
    assert len(large) == 3


@pytest.mark.parametrize(
    ("size", "grid"), [((24, 24), (8, 8)), ((20, 33), (3, 7)), ((8, 9), (12, 4)), ((9, 8), (1, 1))]
)
def test_the_mean_and_the_variance_of_a_mask_are_the_same_at_every_pixel(size, grid):
    """Exactly, not on average over draws: cells are independent, and all shifts are listed."""
    plan = Plan(size, grid=grid, mask_prob=0.3)
    for n_pixels, n_cells, cell in zip(size, grid, plan.cell, strict=True):
        weights = enlargement(n_pixels, n_cells, cell)  # (pixels, shifts, cells)
        np.testing.assert_allclose(weights.sum(axis=2), 1)
        second = (weights**2).sum(axis=2).mean(axis=1)  # of a pixel, over the shifts
        np.testing.assert_allclose(second, second[0])


def test_images_smaller_than_the_grid_have_cells_of_one_pixel():
    plan = Plan((8, 10), grid=(16, 10))
    assert plan.cell == (1, 1)
    masks = draw(plan, 0)
    assert set(np.unique(full_masks(plan, masks))) == {0.0, 1.0}
    assert not masks.shifts.any()


def test_a_mask_is_a_byte_a_cell():
    masks = draw(Plan((224, 224), RGBWK), 3)
    assert masks.cells.dtype == np.uint8
    assert masks.cells.shape == (CHUNK, 10, 10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mask_prob": 0.0},
        {"mask_prob": 1.0},
        {"mask_prob": float("nan")},
        {"grid": (0, 8)},
        {"grid": (8, 1000)},
        {"seed": -1},
        {"fills": ()},
        {"fills": RGBWK[:1] * 2},
    ],
    ids=str,
)
def test_a_plan_refuses_nonsense(wrong):
    with pytest.raises(InputError):
        Plan((96, 96), **wrong)


def test_a_plan_takes_what_is_just_within_its_limits():
    assert Plan((96, 96), grid=(1, 128), seed=2**64 - 1).grid == (1, 128)
    for wrong in ({"grid": (1, 129)}, {"grid": (129, 1)}, {"seed": 2**64}):
        with pytest.raises(InputError):
            Plan((96, 96), **wrong)


def test_a_plan_tells_what_it_is_and_what_a_cell_is():
    plan = Plan((24, 41), parse("red,blue"), (8, 4), 0.3, 7)
    assert (plan.n_fills, plan.cell) == (2, (3, 11))
    assert plan.keep_prob == pytest.approx(0.7)
    told = plan.to_json()
    assert [told[name] for name in ("size", "grid", "mask_prob", "seed")] == [
        [24, 41], [8, 4], 0.3, 7,
    ]  # fmt: skip
    assert [fill["kind"] for fill in told["fills"]] == ["solid", "solid"]
    assert Plan((24, 24)) == Plan((24, 24), RGBWK, (8, 8), 0.5, 0)


def test_some_of_the_masks_are_masks():
    masks = draw(Plan((96, 96)), 0)
    some = masks[10:14]
    assert (len(masks), len(some)) == (CHUNK, 4)
    np.testing.assert_array_equal(some.cells, masks.cells[10:14])
    np.testing.assert_array_equal(some.shifts, masks.shifts[10:14])


def test_between_two_pixels_the_weights_are_between_theirs():
    at = enlargement_at(np.array([2.0, 2.5, 3.0]), 4, 5)
    np.testing.assert_allclose(at[1], (at[0] + at[2]) / 2)
    np.testing.assert_allclose(at[[0, 2]], enlargement(6, 4, 5)[[2, 3]])
