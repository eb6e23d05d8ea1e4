"""Blocks, their order, and the places where a control is painted."""

import numpy as np
import pytest

from mcrise.fills import RGBWK
from mcrise.interpretation.candidates import LARGEST, Ranking, lattice_of, region_of
from mcrise.interpretation.controls import N_CONTROLS, control_regions

SIZE = (96, 64)


@pytest.mark.parametrize("grid", [(1, 1), (2, 3), (4, 4), (8, 8), (13, 13), (40, 8)])
def test_every_grid_has_blocks_of_at_most_a_sixth_that_cover_the_image(grid):
    lattice = lattice_of(SIZE, grid)
    covered = np.zeros(SIZE, bool)
    for block in range(len(lattice.blocks)):
        region = lattice.region(block)
        assert 0 < region.mean() <= LARGEST
        covered |= region
    assert covered.all()


def test_the_usual_lattice_has_515_blocks_in_steps_of_half_a_cell():
    lattice = lattice_of((96, 96), (8, 8))
    assert len(lattice.blocks) == 15**2 + 13**2 + 11**2
    assert set(np.diff(lattice.rows)) == {6}


def test_means_are_those_of_the_pixels():
    lattice = lattice_of(SIZE, (8, 8))
    maps = np.random.default_rng(0).normal(size=(3, *SIZE))
    means = lattice.means(maps)
    for block in (0, 100, 400):
        inside = maps[:, lattice.region(block)].mean(axis=1)
        np.testing.assert_allclose(means[:, block], inside, atol=1e-12)


def planted(sign):
    lattice = lattice_of((96, 96), (8, 8))
    maps = np.zeros((2, 96, 96), np.float32)
    maps[1, 24:48, 24:48] = sign
    return lattice, maps


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_first_block_is_the_one_that_the_map_shows(sign):
    lattice, maps = planted(sign)
    first = Ranking(lattice, maps).next_round(1)[0]
    assert first.fill == 1
    assert first.direction == sign
    region = lattice.region(first.block)
    assert region[24:48, 24:48].all() or (region & (maps[1] != 0)).sum() == region.sum()


def test_upwards_asks_only_for_blocks_that_raise():
    lattice, maps = planted(-1)
    assert Ranking(lattice, maps, upwards=True).next_round(8) == []
    lattice, maps = planted(1)
    picked = Ranking(lattice, maps, upwards=True).next_round(8)
    assert picked
    assert all(one.direction == 1 and one.fill == 1 for one in picked)


def test_upwards_tries_each_size_where_larger_ones_do_nothing():
    lattice, maps = planted(1)
    ranking = Ranking(lattice, maps, upwards=True)
    sides = [int(lattice.blocks[one.block, 0]) for _ in range(4) for one in ranking.next_round(8)]
    assert set(sides) == {1, 2, 3}


def test_around_a_block_that_matters_the_same_fill_is_tried():
    lattice, maps = planted(-1)
    ranking = Ranking(lattice, maps)
    hit = ranking.scan()[4]
    region = lattice.region(hit.block)
    ranking.learn(region, 1)
    picked = ranking.around([(hit, 1)], 8)
    assert 2 <= len(picked) <= 8
    for one in picked:
        shared = lattice.region(one.block) & region
        assert one.fill == hit.fill
        assert 0 < shared.sum() < 0.5 * region.sum()


def test_an_area_is_tried_twice_at_most_and_not_again_once_it_is_known():
    lattice, maps = planted(-1)
    ranking = Ranking(lattice, maps)
    while True:
        tried = lattice.means(ranking.n_tried[0])
        picked = ranking.next_round(8)
        if not picked:
            break
        assert all(tried[int(one.direction > 0), one.block] < 2 for one in picked)
    assert ranking.taken.sum() < ranking.taken.size / 4
    fresh = Ranking(lattice, maps)
    fresh.learn(region_of((96, 96), (0, 0, 96, 96)), -1)
    assert all(one.direction > 0 for one in fresh.next_round(8))


def test_blocks_of_a_round_are_spread():
    lattice, maps = planted(-1)
    picked = Ranking(lattice, maps).next_round(8)
    for n, one in enumerate(picked):
        before = np.zeros((96, 96), bool)
        for other in picked[:n]:
            if other.direction == one.direction:
                before |= lattice.region(other.block)
        assert (before & lattice.region(one.block)).sum() <= 0.5 * lattice.region(one.block).sum()


def test_a_scan_covers_the_image():
    lattice, maps = planted(-1)
    ranking = Ranking(lattice, maps)
    scanned = ranking.scan()
    for fill in range(2):
        covered = np.zeros((96, 96), bool)
        for one in scanned:
            covered |= lattice.region(one.block) & (one.fill == fill)
        assert covered.all()


def test_controls_depend_on_block_and_color_alone_and_never_overlap():
    lattice = lattice_of((96, 96), (8, 8))
    region = region_of((96, 96), (36, 36, 60, 60))
    first, again = (control_regions(region, RGBWK[0], lattice) for _ in range(2))
    assert len(first) == N_CONTROLS
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    assert not any((one & region).any() for one in first)
    assert all(one.sum() == region.sum() for one in first)
    assert len({one.tobytes() for one in first}) == N_CONTROLS
    other = control_regions(region, RGBWK[1], lattice)
    assert any(not np.array_equal(*pair) for pair in zip(first, other, strict=True))


def test_a_block_in_the_center_that_is_too_large_has_no_controls():
    lattice = lattice_of((96, 96), (8, 8))
    assert control_regions(region_of((96, 96), (30, 30, 66, 66)), RGBWK[0], lattice) == []
