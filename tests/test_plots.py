import numpy as np
import pytest

import mcrise
from mcrise.plots import overlay, plot_maps, plot_rise, scale_of
from planted import PatchModel, photo

MODEL = PatchModel(slice(4, 12), slice(4, 12))


@pytest.fixture(scope="module")
def record():
    return mcrise.explain(
        photo(24, 32), MODEL, fills="red,blur:2,#00ff7f", n_masks=256, labels=["red", "not red"]
    )


def test_all_panels_of_a_figure_share_one_symmetric_scale(record):
    figure = plot_maps([record.maps(0), record.maps(1)])
    bars = [axis for axis in figure.axes if axis.get_label() == "<colorbar>"]
    assert len(bars) == 1
    low, high = bars[0].get_ylim()
    assert low == -high
    assert bars[0].get_ylabel() == "change of probability"


def test_each_fill_heads_its_panel_and_each_class_its_row(record):
    figure = plot_maps([record.maps(0), record.maps(1)])
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles == ["red", "red", "blur:2", "#00ff7f", "not red"]


def test_a_value_below_two_standard_errors_is_faint():
    image = np.full((1, 2, 3), 0.5, np.float32)
    values = np.full((1, 2), 0.8, np.float32)
    se = np.array([[0.1, 0.7]], np.float32)
    sure, unsure = overlay(image, values, se, 1.0)[0]
    gray = overlay(image, 0 * values, se, 1.0)[0, 0]
    assert np.abs(unsure - gray).sum() < 0.5 * np.abs(sure - gray).sum()


def test_the_same_value_has_the_same_color_in_every_panel(record):
    maps = record.maps(0)
    limit = scale_of([maps.values])
    assert limit <= np.abs(maps.values).max()
    assert limit > 0.5 * np.abs(maps.values).max()


def test_rise_stands_next_to_debiased_rise_each_with_its_own_scale(record):
    figure = plot_rise(record.maps(0, "rise"), record.maps(0, "debiased"))
    labels = [axis.get_ylabel() for axis in figure.axes if axis.get_label() == "<colorbar>"]
    assert labels == ["probability", "change of probability when kept"]


def test_a_map_of_nothing_can_be_drawn():
    record = mcrise.explain(
        photo(16, 16), lambda images: np.tile([0.5, 0.5], (len(images), 1)), n_masks=64
    )
    record.maps(0).plot().canvas.draw()
