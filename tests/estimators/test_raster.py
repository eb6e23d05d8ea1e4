"""Large images: maps worked out at some points, and what follows from them, at a cost of pixels."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

from mcrise import model_calls, sampling
from mcrise.estimators import raster
from mcrise.estimators.raster import raster_of
from mcrise.explanation import Explanation
from mcrise.images import Geometry, View, downsample, touched_blocks
from mcrise.interpretation.findings import Findings
from mcrise.interpretation.regions import dilate, interpret
from mcrise.masks import CHUNK, Plan, draw
from mcrise.models.provenance import UNKNOWN
from mcrise.output.figure import plot_explanation
from mcrise.output.html import Chapter, render
from mcrise.output.plots import plot_maps
from mcrise.output.web_maps import pack
from planted import draw_many, estimated


def planted_record(size, n_masks=512, grid=(8, 8), n_classes=10):
    """A record as a model would leave it that likes red in the middle, without painting pixels."""
    plan = Plan(size, grid=grid, mask_prob=0.3)
    image = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    view = View(image, size, (0.0, 0.0, float(size[0]), float(size[1])))
    untouched = np.full(n_classes, 1 / n_classes, np.float32)
    explanation = Explanation(plan, view, untouched, None, "probability", 32, "planted", UNKNOWN)
    taste = np.linspace(4, -1, n_classes)
    for chunk in range(n_masks // CHUNK):
        cells = draw(plan, chunk).cells
        middle = tuple(slice(n // 2, n // 2 + 2) for n in cells.shape[1:])
        noise = np.random.default_rng(chunk).normal(0, 0.3, (CHUNK, n_classes))
        evidence = np.exp(np.outer((cells == 1)[:, *middle].mean(axis=(1, 2)), taste) + noise)
        explanation.add(chunk, evidence / evidence.sum(axis=1, keepdims=True))
    return explanation


def both_ways(monkeypatch, make):
    """What is made with every pixel a point, and with fewer points than pixels."""
    monkeypatch.setattr(raster, "LARGE", 10**9)
    exact = make()
    monkeypatch.setattr(raster, "LARGE", 0)
    return exact, make()


def rms(array):
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64))))


@pytest.mark.parametrize("estimator", ["rise", "debiased", "paper", "centered", "smooth"])
@pytest.mark.parametrize(
    ("size", "grid"), [((320, 280), (8, 7)), ((217, 331), (5, 6)), ((210, 480), (3, 10))]
)
def test_a_map_from_points_is_within_a_hundredth_of_its_error(monkeypatch, estimator, size, grid):
    """`smooth`, whose errors are smaller and whose bands depend on where a map ends, within two.

    Cells of 40 to 70 pixels: a little more than the 24 points, as in the smallest large images.
    """

    def make():
        return planted_record(size, 512, grid).maps(0, estimator)

    exact, few = both_ways(monkeypatch, make)
    assert few.values.shape == exact.values.shape
    assert few.values.tobytes() != exact.values.tobytes()
    allowed = 0.02 if estimator == "smooth" else 0.01
    assert rms(few.values - exact.values) < allowed * rms(exact.se)
    assert rms(few.se / exact.se - 1) < 0.01
    if exact.relative_error < 1:  # beyond, the signal is a small difference of two noisy sums
        assert few.relative_error == pytest.approx(exact.relative_error, rel=0.01)


def test_waves_are_normalised_alike_and_come_back(monkeypatch):
    values = np.random.default_rng(0).normal(size=(2, 193, 145))
    monkeypatch.setattr(raster, "LARGE", 0)
    points = raster_of(Plan((400, 300), grid=(8, 6)))
    assert points.shape == values.shape[1:]
    np.testing.assert_allclose(points.unwaves(points.waves(values)), values, atol=1e-12)
    flat = points.waves(np.ones(points.shape))
    assert np.square(flat).sum() == pytest.approx(points.area) == flat[0, 0] ** 2


def test_up_to_512_x_512_every_pixel_is_a_point():
    assert raster_of(Plan((512, 512))).whole
    assert raster_of(Plan((512, 512), grid=(1, 1))).whole
    assert not raster_of(Plan((512, 513))).whole
    assert raster_of(Plan((1024, 1024), grid=(64, 64))).whole  # no cell has more pixels than points


@pytest.mark.parametrize("cell", [(1, 1), (3, 5), (7, 2), (40, 50)])
def test_a_region_is_widened_as_a_dilation_by_two_cells_would(cell):
    generator = np.random.default_rng(0)
    for share in (0.001, 0.02, 0.5):
        region = generator.random((40, 50)) < share
        border = np.ones((2 * cell[0] + 1, 2 * cell[1] + 1), bool)
        np.testing.assert_array_equal(dilate(region, cell), binary_dilation(region, border))


@pytest.mark.slow
def test_what_follows_the_calls_takes_memory_for_a_few_maps_only():
    """Not cells times pixels: a dilation by two cells took 740 MB of a map of 6 MB."""
    explanation = planted_record((600, 600))
    for estimator in ("centered", "smooth"):
        explanation.maps(0, estimator)  # loads and compiles
    size = explanation.maps(0).values.nbytes
    tracemalloc.start()
    maps = [explanation.maps(0, estimator) for estimator in ("paper", "smooth")]
    reading = interpret(explanation, 0)
    plot_maps(maps)
    plot_explanation(explanation, Findings(0, "class 0", ()))
    pack(reading.maps, explanation.plan.grid)
    render([Chapter("a", explanation, [0])])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reading.findings
    assert peak < 25 * size


def test_thinned_pictures_regions_and_maps_fit_each_other():
    image = np.random.default_rng(0).integers(0, 256, (101, 53, 3), np.uint8)
    region = np.zeros((101, 53), bool)
    region[100, 52] = True
    maps = planted_record((101, 53), CHUNK).maps(0).thinned(51)
    assert (
        downsample(image, 2).shape[:2] == touched_blocks(region, 2).shape == maps.values.shape[1:]
    )
    assert maps.image.shape[:2] == maps.se.shape[1:] == (51, 27)
    assert np.argwhere(touched_blocks(region, 2)).tolist() == [[50, 26]]
    np.testing.assert_array_equal(touched_blocks(region, 1), region)


def test_a_report_of_a_large_picture_says_that_it_shows_fewer_pixels():
    words = render([Chapter("a", planted_record((800, 400), CHUNK), [0])])
    assert "every 2. row and column" in words
    assert "row and column" not in render([Chapter("a", planted_record((80, 40), CHUNK), [0])])


THREADS = """
import zlib
from test_raster import planted_record
from mcrise.interpretation.regions import interpret
record = planted_record((96, 96), 1024, n_classes=43)
maps = [record.maps(target, "smooth") for target in range(3)]
print([zlib.crc32(m.values.tobytes() + m.se.tobytes()) for m in maps], interpret(record, 0).limit)
"""


@pytest.mark.slow
def test_smooth_is_the_same_to_the_bit_whatever_the_number_of_blas_threads():
    path = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
    found = {
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{THREADS}"],
            env={**os.environ, "OPENBLAS_NUM_THREADS": n, "MKL_NUM_THREADS": n},
            check=True,
            capture_output=True,
        ).stdout
        for n in ("1", "2")
    }
    assert len(found) == 1


def test_a_call_gets_no_more_images_than_memory_should_hold(monkeypatch):
    image = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    seen = set()

    def model(images):
        seen.add(len(images))
        return np.full((len(images), 2), 0.5)

    monkeypatch.setattr(model_calls, "MOST_BATCH", 5 * image.nbytes)
    explanation = sampling.explain(image, model, n_masks=64, batch_size=32)
    assert (explanation.batch_size, max(seen)) == (4, 4)
    list(
        sampling.iter_explain(image, model, n_masks=128, batch_size=32, resume=explanation)
    )  # is not another run
    assert (explanation.n_masks, max(seen)) == (128, 4)
    assert sampling.explain(image, model, n_masks=64, batch_size="auto").batch_size <= 4
    assert max(seen) == 4
    monkeypatch.setattr(model_calls, "MOST_BATCH", 1)
    assert sampling.explain(image, model, n_masks=64).batch_size == 1


def test_a_model_that_is_shown_very_many_pixels_has_a_note_with_the_remedy():
    large = np.zeros((2001, 2000, 3), np.uint8)
    (note,) = Geometry().view(large).notes
    assert "4,002,000 pixels" in note
    assert "give a size" in note
    assert Geometry((224, 224)).view(large).notes == ()


def test_estimates_of_planted_masks_use_the_points_too(monkeypatch):
    """The same seam serves what calls the estimator without a record."""
    plan = Plan((200, 240), grid=(4, 3), mask_prob=0.3)
    masks = draw_many(plan, 4)
    scores = np.random.default_rng(0).random(len(masks))
    exact, few = both_ways(monkeypatch, lambda: estimated(plan, masks, scores))
    assert rms(few[0] - exact[0]) < 0.01 * rms(exact[1])
