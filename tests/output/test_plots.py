import pickle
from dataclasses import replace

import numpy as np
import pytest

from mcrise.interpretation.trials import compare, intervene
from mcrise.output import plots
from mcrise.output.figure import plot_explanation
from mcrise.output.plots import DIVERGING, SEQUENTIAL, Scale, drawn, plot_maps, plot_rise, scale_for
from planted import PatchModel, explain_masks, photo

UNIT = Scale(-1.0, 1.0, DIVERGING)

MODEL = PatchModel(slice(4, 12), slice(4, 12))


@pytest.fixture(scope="module")
def explanation():
    return explain_masks(
        photo(24, 32), MODEL, fills="red,blur:2,#00ff7f", n_masks=256, labels=["red", "not red"]
    )


def test_all_panels_of_a_figure_share_one_symmetric_scale(explanation):
    figure = plot_maps([explanation.maps(0), explanation.maps(1)])
    bars = [axis for axis in figure.axes if axis.get_label() == "<colorbar>"]
    assert len(bars) == 1
    low, high = bars[0].get_ylim()
    assert low == -high
    assert bars[0].get_ylabel() == "change of probability"


def test_each_fill_heads_its_panel_and_each_class_its_row(explanation):
    figure = plot_maps([explanation.maps(0), explanation.maps(1)])
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles == ["red", "patch of red", "blur:2", "patch of #00ff7f", "not red"]


def as_found(explanation, maps, k, scale):
    """Map k as it is to be drawn: strong where it exceeds what findings have to exceed."""
    chance = explanation.chance(maps)
    opacity = np.where(np.abs(chance.values[k]) > chance.limit, 0.9, 0.25)
    opacity = opacity * np.clip(np.abs(maps.values[k]) / (0.25 * scale.high), 0.35, 1)
    gray = 0.35 + 0.65 * (maps.image / 255 @ [0.299, 0.587, 0.114])
    return opacity[..., None] * scale.colors(maps.values[k]) + ((1 - opacity) * gray)[..., None]


@pytest.mark.parametrize("estimator", ["smooth", "centered", "paper", "debiased"])
def test_pale_is_what_findings_take_for_chance_whoever_draws_the_map(explanation, estimator):
    maps = explanation.maps(0, estimator)
    scale = scale_for([maps])
    expected = as_found(explanation, maps, 0, scale)
    np.testing.assert_allclose(drawn(maps, 0, scale), expected, atol=0.02)
    alone = maps.plot()
    np.testing.assert_allclose(shown(alone)[1], expected, atol=0.02)
    of = "" if estimator == "centered" else " in the centered maps"  # two classes are too few
    words = f"areas (below ±{explanation.chance(maps).limit:.2g}{of}) could be chance."
    # Figures have stripes there too; a page has none.
    assert alone.get_supxlabel() == f"Striped {words} Plain gray: no visible effect."
    assert f"Pale {words}" in maps._repr_html_()
    copied = pickle.loads(pickle.dumps(maps))  # of which no record is asked any more
    np.testing.assert_array_equal(drawn(copied, 0, scale), drawn(maps, 0, scale))
    assert copied == maps.tested()


def test_masks_that_come_after_maps_do_not_change_what_is_pale(explanation):
    grown = replace(explanation, scores=dict(explanation.scores))
    maps = grown.maps(0, "centered")
    grown.add(4, np.tile(np.float32([0.9, 0.1]), (64, 1)))
    before = explanation.chance(explanation.maps(0, "centered"))
    assert maps.tested().limit == before.limit != grown.chance(maps).limit


def test_all_rows_of_a_comparison_are_pale_by_one_rule(explanation):
    """On the classes themselves by their limits, not by their own intervals."""
    comparison = compare(explanation, 1, 0)
    rows = [comparison.wanted, comparison.given, comparison.difference.maps]
    figure = plots.plot_comparison(comparison)
    pictures, scale = shown(figure), scale_for(rows)
    pictures = [one for one in pictures if one.shape == (24, 32, 3)]
    for row, maps in enumerate(rows):
        for k in range(3):
            expected = as_found(explanation, maps, k, scale)
            np.testing.assert_allclose(pictures[4 * row + 1 + k], expected, atol=0.02)
    limits = [f"±{explanation.chance(maps).limit:.2g} in the centered maps" for maps in rows]
    assert all(limit in figure.get_supxlabel() for limit in limits)


def test_maps_that_nobody_tested_are_pale(explanation):
    maps = replace(explanation.maps(0), test=None)
    scale = scale_for([maps])
    strong = drawn(replace(maps, beyond=np.ones(maps.values.shape, bool)), 0, scale)
    pale = drawn(replace(maps, beyond=np.zeros(maps.values.shape, bool)), 0, scale)
    np.testing.assert_array_equal(drawn(maps, 0, scale), pale)
    assert np.abs(strong - pale).max() > 0.2
    assert maps.faint == "Pale areas could be chance."


def shown(figure):
    """The pictures in the panels of a figure, as they are drawn."""
    return [axis.get_images()[0].get_array() for axis in figure.axes if axis.get_images()]


def test_the_same_value_has_the_same_color_in_every_panel_of_a_figure(explanation):
    """Drawn: two classes whose maps are constant, one of them the half of the other."""
    maps = explanation.maps(0)
    flat = [
        replace(
            maps, values=np.full_like(maps.values, value), beyond=np.ones(maps.values.shape, bool)
        )
        for value in (0.2, 0.1)
    ]
    flat[0].values[1] = 0.1  # the same value in another panel of another class
    pictures = [picture for picture in shown(plot_maps(flat)) if picture.shape == (24, 32, 3)]
    first, second, other = pictures[1], pictures[2], pictures[5]
    assert np.array_equal(second, other)
    assert np.abs(first - second).max() > 0.05


def test_a_figure_shows_the_scale_its_colors_are_of(explanation):
    for maps, colormap in (
        (explanation.maps(0), DIVERGING),
        (explanation.maps(0, "rise"), SEQUENTIAL),
    ):
        figure = maps.plot()
        (bar,) = [axis for axis in figure.axes if axis.get_label() == "<colorbar>"]
        scale = scale_for([maps])
        assert scale.colormap == colormap
        assert bar.get_ylim() == pytest.approx((scale.low, scale.high))
        assert bar.get_ylabel() == maps.unit
    assert scale.low == maps.values.min()  # of RISE: its scores are not around zero
    assert "(blue) to" in explanation.maps(0, "rise")._repr_html_()
    assert "(purple) to" in explanation.maps(0)._repr_html_()


def test_a_figure_can_be_given_its_axes_its_scale_and_its_colors(explanation):
    from matplotlib.figure import Figure

    maps = explanation.maps(0)
    figure = Figure()
    assert maps.plot(ax=figure.subplots(), vmax=0.5, cmap="coolwarm") is figure
    bar = figure.axes[-1]
    assert bar.get_ylim() == pytest.approx((-0.5, 0.5))
    assert maps.plot(vmax=0.5).axes[-1].get_ylim() == pytest.approx((-0.5, 0.5))


def test_rise_stands_next_to_debiased_rise_each_with_its_own_scale(explanation):
    figure = plot_rise(explanation.maps(0, "rise"), explanation.maps(0, "debiased"))
    labels = [axis.get_ylabel() for axis in figure.axes if axis.get_label() == "<colorbar>"]
    assert labels == ["probability", "change of probability when kept"]


def test_a_map_of_nothing_can_be_drawn():
    explanation = explain_masks(
        photo(16, 16), lambda images: np.tile([0.5, 0.5], (len(images), 1)), n_masks=64
    )
    explanation.maps(0).plot().canvas.draw()


# ---- labels are others': no formulas, lines or characters of theirs

HOSTILE = ["a $\\frac{ b$", "\u505c\u6b62\n\x1b]0;$x$"]  # and a script that the font lacks
AS_DRAWN = ["a $\\frac{ b$", "\u505c\u6b62\\n\\x1b]0;$x$"]


@pytest.fixture(scope="module")
def hostile(explanation):
    return replace(explanation, labels=tuple(HOSTILE))


def figures(explanation):
    """One of each kind."""
    maps = [explanation.maps(0), explanation.maps(1)]
    region = np.zeros((24, 32), bool)
    region[4:12, 4:12] = True
    trials = [
        intervene(explanation, MODEL, region, maps[0].fills[0], k, HOSTILE[1]) for k in (0, 1)
    ]
    pair = explanation.maps(0, "rise"), explanation.maps(0, "debiased")
    title, name = HOSTILE
    return {
        "maps": plot_maps(maps),
        "rise": plot_rise(*pair),
        "explanation": plot_explanation(explanation, explanation.findings_of(0, MODEL)),
        "comparison": plots.plot_comparison(compare(explanation, 0, 1)),
        "trials": plots.plot_trials(explanation, trials),
        "match": plots.plot_match(maps[0], maps[0].image, name),
        "sheet": plots.plot_sheet(title, [(f"{name}\udce9", [(title, maps[0].image)])]),
    }


def test_a_label_is_drawn_as_it_is_written_in_every_figure(hostile):
    for kind, figure in figures(hostile).items():
        assert plots.figure_png(figure), kind


def test_a_label_keeps_to_its_line(hostile):
    figure = plot_maps([hostile.maps(0), hostile.maps(1)])
    titles = [axis.get_title() for axis in figure.axes]
    assert [title for title in titles if "$" in title] == AS_DRAWN


def test_a_label_is_no_formula_in_the_axes_of_the_caller_or_on_a_canvas_of_theirs(hostile):
    from matplotlib.figure import Figure

    figure = Figure()
    hostile.maps(0).plot(ax=figure.subplots())
    figure.canvas.draw()
    hostile.maps(0).plot().canvas.draw()


def test_two_lines_above_a_row_are_two_lines(explanation):
    figure = plot_maps([explanation.maps(0)], ["stop\nbefore"])
    assert figure.axes[0].get_title() == "stop\nbefore"
