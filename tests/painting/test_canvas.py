import os
from dataclasses import replace

import numpy as np
import pytest

from mcrise._util.threads import n_cores, shared_pool
from mcrise.fills import CUBE8, parse
from mcrise.images import unit_float
from mcrise.masks import Masks, Plan, draw
from mcrise.models.model import Model
from mcrise.painting.canvas import channels_first, paint, paint_reference
from mcrise.painting.prefetch import Painter
from planted import full_masks, photo


def painted(plan, canvas, masks):
    return paint(plan, canvas, masks, canvas.batch(len(masks)))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize(
    ("size", "grid", "fills"),
    [
        ((96, 96), (8, 8), "rgbwk"),
        ((37, 52), (5, 3), "red,blur:3,#123456,gray,noise"),
        ((9, 8), (12, 12), "hue:120"),
        ((16, 130), (1, 7), "cube8"),
    ],
    ids=["square", "rectangle-with-pictures", "smaller-than-the-grid", "one-row-of-cells"],
)
def test_the_kernel_paints_what_the_formula_says(layout, dtype, size, grid, fills):
    image = photo(*size)
    plan = Plan(size, parse(fills), grid, 0.3)
    gain = (1.0,) * 3 if dtype == "uint8" else (0.01, 0.02, 0.03)
    offset = (0.0,) * 3 if dtype == "uint8" else (-1.0, 0.5, 0.0)
    model = Model(None, layout=layout, dtype=dtype, gain=gain, offset=offset)
    canvas = model.canvas(image, plan.fills)
    masks = draw(plan, 3)
    found = painted(plan, canvas, masks).astype(float)
    exact = replace(canvas, dtype=np.dtype(np.float64))  # before rounding to the dtype
    expected = paint_reference(plan, exact, masks)
    tolerance = {"float32": 2e-6, "float16": 5e-3, "uint8": 0.5001}[dtype]
    np.testing.assert_allclose(found, expected, atol=tolerance)
    if dtype == "uint8":  # both round, and are of two minds only about a half
        assert (found == paint_reference(plan, canvas, masks)).mean() > 0.8


def test_the_blend_is_the_image_where_kept_and_the_fill_where_painted():
    """painted = image * m0 + sum_k fill_k * m_k, at full size, with the fills written out."""
    image = photo(30, 40)
    plan = Plan((30, 40), parse("red,gray,blur:2"), (4, 5), 0.3)
    masks = draw(plan, 0)
    weights = full_masks(plan, masks)  # (K + 1, N, H, W)
    unit = unit_float(image)
    pictures = np.stack([unit] + [fill.render(unit) for fill in plan.fills])
    expected = np.einsum("knyx,kyxc->nyxc", weights, pictures)
    canvas = Model(None).canvas(unit, plan.fills)
    np.testing.assert_allclose(painted(plan, canvas, masks), expected, atol=1e-6)


def test_nothing_painted_is_the_untouched_image_and_all_painted_is_the_fill():
    image = photo(24, 24)
    plan = Plan((24, 24), CUBE8[:2], (3, 3))
    canvas = Model(None).canvas(image, plan.fills)
    cells = np.stack([np.full((5, 5), k, np.uint8) for k in range(3)])
    batch = painted(plan, canvas, Masks(cells, np.array([[0, 0], [3, 5], [7, 7]])))
    assert np.array_equal(batch[0], image)
    assert np.array_equal(canvas.untouched()[0], image)
    assert (batch[1] == [255, 0, 0]).all()
    assert (batch[2] == [0, 255, 0]).all()


def test_any_number_of_solid_fills_costs_the_same_channels():
    image = photo(16, 16)
    for n_fills in (1, 5, 8):
        canvas = Model(None).canvas(image, CUBE8[:n_fills])
        assert canvas.palette.shape == (n_fills + 1, 4)  # red, green, blue, keep
        assert len(canvas.pictures) == 1


def test_how_the_work_is_shared_out_changes_no_bit(monkeypatch):
    image = photo(40, 40)
    plan = Plan((40, 40))
    canvas = Model(None, dtype="float32", layout="NCHW").canvas(image, plan.fills)
    masks = draw(plan, 1)
    both = painted(plan, canvas, masks)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert np.array_equal(painted(plan, canvas, masks), both)
    one_by_one = [
        painted(plan, canvas, Masks(masks.cells[n : n + 1], masks.shifts[n : n + 1]))[0]
        for n in range(len(masks))
    ]
    assert np.array_equal(np.stack(one_by_one), both)


def test_both_layouts_hold_the_same_pixels():
    image = photo(20, 28)
    plan = Plan((20, 28))
    first, last = (
        painted(
            plan,
            Model(None, dtype="float32", layout=layout).canvas(image, plan.fills),
            draw(plan, 0),
        )
        for layout in ("NCHW", "NHWC")
    )
    assert np.array_equal(first, channels_first(last, "NHWC"))


def test_normalising_before_blending_is_normalising_after():
    image = photo(20, 28)
    plan = Plan((20, 28), mask_prob=0.3)
    masks = draw(plan, 0)
    gain, offset = (0.02, 0.03, 0.05), (-1.0, -2.0, 0.5)
    before = Model(None, dtype="float32", channels="bgr", gain=gain, offset=offset)
    raw = painted(plan, Model(None, dtype="float32").canvas(image, plan.fills), masks)
    after = (raw * gain + offset)[..., ::-1]
    found = painted(plan, before.canvas(image, plan.fills), masks)
    np.testing.assert_allclose(found, after, atol=1e-5)


def test_what_is_painted_ahead_is_what_is_painted_at_once():
    plan = Plan((40, 36), parse("rgbwk"), (5, 3), 0.3)
    canvas = Model(None, dtype="float32").canvas(photo(40, 36), plan.fills)
    painter = Painter(plan, canvas, canvas.batch(64))
    for chunk, following in ((0, 1), (1, 5), (3, 4), (4, None), (2, None)):  # also not as announced
        assert painter.turn_to(chunk, following) == (n_cores() > 1)
        if n_cores() > 1:
            assert np.array_equal(painter.buffer, painted(plan, canvas, draw(plan, chunk)))
    assert not Painter(plan, canvas, canvas.batch(32)).turn_to(0, 1)  # half a chunk at a time


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system starts processes only afresh")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_pool_of_threads_is_made_once_and_again_in_a_forked_child():
    plan = Plan((16, 16), parse("rgbwk"), (4, 4), 0.3)
    canvas = Model(None, dtype="uint8").canvas(photo(16, 16), plan.fills)
    expected = painted(plan, canvas, draw(plan, 0))
    assert shared_pool() is shared_pool()
    child = os.fork()
    if child == 0:
        same = np.array_equal(painted(plan, canvas, draw(plan, 0)), expected)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
