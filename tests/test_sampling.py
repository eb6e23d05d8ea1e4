import sys

import numpy as np
import pytest

import mcrise
from mcrise.errors import ExplanationError, InputError, ModelError
from mcrise.explanation_file import RunFile, load
from mcrise.images import unit_float
from mcrise.masks import CHUNK
from mcrise.sampling import iter_explain
from planted import Counting, PatchModel, constant_model, explain_masks, gray_image, photo

MODEL = PatchModel(slice(4, 12), slice(4, 12))


class FailsAt:
    """Raises at its n-th call."""

    def __init__(self, call):
        self.call, self.n_calls = call, 0

    def __call__(self, images):
        self.n_calls += 1
        if self.n_calls == self.call:
            raise ValueError("out of memory\nsecond line")
        return MODEL(images)


def test_the_model_is_called_on_the_masks_once_on_the_untouched_image_and_on_four_masks_twice():
    model = Counting(MODEL)
    explanation = explain_masks(
        photo(16, 16), model, n_masks=100, batch_size=16, mask_prob=0.3, trials=False
    )
    assert explanation.n_masks == 128  # whole chunks
    assert model.n_images == 128 + 1 + 4
    assert model.n_images == explanation.n_calls.total
    assert set(model.batches) == {1, 4, 16}
    np.testing.assert_allclose(explanation.untouched, MODEL(photo(16, 16)[None])[0], rtol=1e-6)


def test_steps_yields_the_record_as_it_grows():
    sizes = [explanation.n_masks for explanation in iter_explain(photo(16, 16), MODEL, n_masks=256)]
    assert sizes == [64, 128, 192, 256]


def test_a_callable_gets_the_dtype_and_range_of_the_image_it_was_given():
    seen = []

    def model(images):
        seen.append((images.dtype, images.shape[1:], images.min(), images.max()))
        return constant_model(images)

    explain_masks(photo(16, 24), model, n_masks=64, mask_prob=0.3, trials=False)
    explain_masks(unit_float(photo(16, 24)), model, n_masks=64, mask_prob=0.3, trials=False)
    for dtype, _, low, high in seen[:4]:
        assert (dtype, low, high) == (np.uint8, 0, 255)
    for dtype, shape, low, high in seen[4:]:
        assert dtype == np.float32
        assert shape == (16, 24, 3)
        assert low >= 0
        assert 0.9 < high <= 1


def test_the_batch_size_changes_no_bit_for_a_model_that_does_not_depend_on_it():
    one, sixteen, all_at_once = (
        explain_masks(photo(16, 16), MODEL, n_masks=256, batch_size=size).maps(0)
        for size in (1, 16, 64)
    )
    assert np.array_equal(one.values, sixteen.values)
    assert np.array_equal(one.values, all_at_once.values)


@pytest.mark.slow
def test_the_batch_size_hardly_matters_to_onnx_runtime():
    model = mcrise.load_model("demo")
    one, sixteen, all_at_once = (
        explain_masks(photo(96, 96), model, n_masks=128, batch_size=size).maps(14).values
        for size in (1, 16, 64)
    )
    np.testing.assert_allclose(one, sixteen, atol=1e-5)
    np.testing.assert_allclose(one, all_at_once, atol=1e-5)


def test_the_same_run_twice_is_the_same_to_the_bit_with_the_real_model():
    model = mcrise.load_model("demo")
    a, b = (explain_masks(photo(96, 96), model, n_masks=128).maps(14) for _ in range(2))
    assert np.array_equal(a.values, b.values)
    assert np.array_equal(a.se, b.se)


def test_batch_size_auto_picks_a_divisor_of_a_chunk_and_writes_it_down():
    explanation = explain_masks(photo(16, 16), MODEL, n_masks=64, batch_size="auto")
    assert explanation.batch_size in (4, 8, 16, 32, 64)


@pytest.mark.parametrize("batch_size", [0, 3, 48, 128, "many"])
def test_a_batch_that_would_straddle_chunks_is_refused(batch_size):
    with pytest.raises(InputError, match="divide a chunk"):
        explain_masks(photo(16, 16), MODEL, n_masks=64, batch_size=batch_size)


@pytest.mark.parametrize("n_masks", [0, -5])
def test_no_masks_are_refused(n_masks):
    with pytest.raises(InputError, match="at least 1"):
        explain_masks(photo(16, 16), MODEL, n_masks=n_masks)


def test_a_model_that_fails_is_one_sentence_and_nothing_before_it_is_lost():
    with pytest.raises(ModelError, match=r"chunk 2.*ValueError: out of memory") as caught:
        explain_masks(photo(16, 16), FailsAt(1 + 2 * 2 + 1 + 2), n_masks=512, mask_prob=0.3)
    assert "\n" not in str(caught.value)
    assert caught.value.explanation.n_masks == 2 * CHUNK


def test_a_failed_run_is_saved_and_goes_on(tmp_path):
    path = tmp_path / "run.npz"
    model = FailsAt(1 + 2 * 2 + 1 + 2)  # two batches a chunk and one asked twice; in the third
    with pytest.raises(ModelError):
        explain_masks(photo(16, 16), model, n_masks=512, mask_prob=0.3, save=path)
    assert load(path).n_masks == 2 * CHUNK
    before = model.n_calls
    explanation = explain_masks(photo(16, 16), model, n_masks=512, save=path, trials=False)
    # Twice more: the untouched image and four masks, to recognize the model.
    assert model.n_calls - before == 2 * 6 + 2
    whole = explain_masks(photo(16, 16), MODEL, n_masks=512, mask_prob=0.3)
    assert np.array_equal(explanation.maps(0).values, whole.maps(0).values)


def test_a_record_of_another_run_is_not_continued(tmp_path):
    path = tmp_path / "run.npz"
    explain_masks(photo(16, 16), MODEL, n_masks=64, save=path)
    with pytest.raises(ExplanationError, match="differs in seed, kind of score"):
        explain_masks(photo(16, 16), MODEL, n_masks=64, seed=1, score_kind="any", save=path)


def test_a_watcher_that_stops_listening_leaves_a_saved_record(tmp_path):
    run = RunFile(tmp_path / "run.npz").keep(iter_explain(photo(16, 16), MODEL, n_masks=640))
    for explanation in run:
        if explanation.n_masks == 192:
            break
    run.close()
    assert load(tmp_path / "run.npz").n_masks == 192


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda n: np.full((n, 2), np.nan), "NaN"),
        (lambda n: np.tile([4.0, -2.0], (n, 1)), "softmax"),
        (lambda n: np.tile([0.4, 0.4], (n, 1)), "not probabilities"),
        (lambda n: np.full(n, 0.5), "one number per image"),
        (lambda n: np.zeros((n + 1, 2)), r"shape \(2, 2\)"),
        (lambda n: "yes", r"shape \(\)"),
    ],
    ids=["nan", "logits", "sums", "one-dimension", "too-many", "text"],
)
def test_scores_that_make_no_sense_are_refused_with_the_remedy(answer, sentence):
    with pytest.raises(ModelError, match=sentence):
        explain_masks(photo(16, 16), lambda images: answer(len(images)), n_masks=64)


def test_a_model_that_changes_its_number_of_classes_is_noticed():
    def model(images):
        return np.full(
            (len(images), 2 if len(images) == 1 else 4), 0.5 if len(images) == 1 else 0.25
        )

    with pytest.raises(ModelError, match="4 scores per image after 2"):
        explain_masks(photo(16, 16), model, n_masks=64)


@pytest.mark.parametrize(
    ("kind", "scores", "fine"),
    [("independent", [0.9, 0.9], True), ("independent", [1.5, 0.0], False),
     ("any", [7.0, -3.0], True), ("probability", [0.9, 0.1], True)],
)  # fmt: skip
def test_scores_are_checked_by_their_kind(kind, scores, fine):
    def run():
        return explain_masks(
            photo(16, 16),
            lambda images: np.tile(scores, (len(images), 1)),
            n_masks=64,
            score_kind=kind,
        )

    if fine:
        assert run().maps(0).unit == (
            "change of score" if kind == "any" else "change of probability"
        )
    else:
        with pytest.raises(ModelError, match="in 0"):
            run()


def test_a_model_that_sees_little_under_masks_is_told_of():
    def shy(images):  # confident on the whole image only
        p = (
            np.where((images == 128).all(axis=(1, 2, 3)), 0.98, 0.01)
            + 0.001 * images.std((1, 2, 3)) / 255
        )
        return np.stack([p, 1 - p], axis=1)

    notes = explain_masks(gray_image(16, 16), shy, n_masks=256, mask_prob=0.5).maps(0).notes
    assert any(
        "under masks the score averages 0.01" in note and "try 0.2" in note for note in notes
    )


def test_a_map_that_is_all_noise_says_so_and_what_would_help():
    rng = np.random.default_rng(0)

    def noise(images):
        p = rng.random(len(images))
        return np.stack([p, 1 - p], axis=1)

    maps = explain_masks(photo(32, 32), noise, n_masks=512).maps(0)
    assert maps.relative_error > 1
    assert any("1,536 more masks would halve its error" in note for note in maps.notes)


def test_a_model_that_ignores_the_image_is_told_of():
    maps = explain_masks(photo(16, 16), constant_model, n_masks=64).maps(0)
    assert "does not look at the image" in maps.notes[0]


def test_a_progress_bar_shows_speed_and_time_left(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    explain_masks(photo(16, 16), MODEL, n_masks=128, progress=True)
    shown = capsys.readouterr()
    assert "128/128" in shown.err
    assert "masks/s" in shown.err
    assert shown.out == ""


def test_something_that_cannot_be_called_is_no_model():
    with pytest.raises(InputError, match="dict"):
        explain_masks(photo(16, 16), {}, n_masks=64)


def noisy_red(images):
    """Red of a patch, drowned in noise that is a function of the image."""
    p = MODEL(images)[:, 0]
    jitter = (images[:, ::3, ::5, 1].sum(axis=(1, 2), dtype=np.int64) * 2654435761 % 1000) / 1000
    p = 0.3 * p + 0.7 * jitter
    return np.stack([p, 1 - p], axis=1)


def test_auto_stops_when_the_promised_error_is_reached_and_says_so():
    explanation = explain_masks(photo(32, 32), MODEL, n_masks="auto", tolerance=0.3, grid=(4, 4))
    assert explanation.n_masks < 8000
    assert explanation.maps(explanation.resolve(None)).relative_error <= 0.3
    assert explanation.stop_reason.startswith(
        f"stopped at {explanation.n_masks:,} masks: relative error 0."
    )


def test_auto_stops_at_the_cap_and_says_that_it_is_not_settled():
    explanation = explain_masks(
        photo(32, 32), noisy_red, n_masks="auto", tolerance=0.05, max_masks=500
    )
    assert explanation.n_masks == 512
    assert "the limit of 512 masks (max_masks) was reached" in explanation.stop_reason
    assert "not certain" in explanation.stop_reason


def test_an_automatic_run_that_was_cut_short_stops_where_one_never_cut_does():
    options = {"n_masks": "auto", "tolerance": 0.3, "grid": (4, 4)}
    whole = explain_masks(photo(32, 32), MODEL, **options)
    for n_chunks in (1, 5, whole.n_masks // CHUNK):
        run = iter_explain(photo(32, 32), MODEL, **options)
        for explanation in run:
            if explanation.n_masks == n_chunks * CHUNK:
                break
        again = list(iter_explain(photo(32, 32), MODEL, **options, resume=explanation))[-1]
        assert again.n_masks == whole.n_masks
        assert np.array_equal(again.maps(0).values, whole.maps(0).values)


def test_a_finished_run_grows_by_what_is_missing():
    model = Counting(MODEL)
    explanation = explain_masks(photo(16, 16), model, n_masks=128, mask_prob=0.3, trials=False)
    grown = list(mcrise.grow(explanation, model, n_masks=256))[-1]
    assert model.n_images == 1 + 256 + 4
    whole = explain_masks(photo(16, 16), MODEL, n_masks=256, mask_prob=0.3)
    assert np.array_equal(grown.maps(0).values, whole.maps(0).values)


def test_a_run_is_not_continued_with_another_model():
    explanation = explain_masks(photo(16, 16), MODEL, n_masks=64)
    with pytest.raises(ExplanationError, match="constant_model"):
        next(mcrise.grow(explanation, constant_model, n_masks=128))


@pytest.mark.parametrize("wrong", [{"grid": 0}, {"mask_prob": 1.5}, {"fills": "rad"},
                                   {"max_masks": 0},
                                   {"batch_size": 3}, {"softmax": True, "sigmoid": True},
                                   {"fills": "red", "colors": "blue"}], ids=str)  # fmt: skip
def test_what_is_asked_is_checked_at_the_call_not_at_the_first_step(wrong):
    with pytest.raises(InputError):
        iter_explain(photo(16, 16), MODEL, **wrong)


def test_an_unknown_target_is_refused_before_the_first_mask():
    model = Counting(MODEL)
    with pytest.raises(InputError, match="'yellow' is not a label"):
        explain_masks(photo(16, 16), model, target="yellow", labels=["red", "other"])
    assert model.n_images == 1


def test_a_list_of_images_gives_a_list_of_records():
    explanations = explain_masks([photo(16, 16), photo(16, 20)], MODEL, n_masks=64, progress=True)
    assert [explanation.plan.size for explanation in explanations] == [(16, 16), (16, 20)]
    with pytest.raises(InputError, match="one place to save"):
        explain_masks([photo(16, 16)], MODEL, n_masks=64, save="run.npz")


@pytest.mark.parametrize("in_file", [True, False])
def test_settings_of_a_model_count_for_several_images_as_for_one(in_file, tmp_path):
    from mcrise.demo import MODEL as demo

    copy = tmp_path / "x.onnx"  # without the TOML file that lies beside the original
    copy.write_bytes(demo.read_bytes())
    model = copy if in_file else MODEL
    given = {"mean": 0.5, "std": 0.5, "n_masks": 64, "mask_prob": 0.3}
    images = [photo(48, 48), photo(48, 48)[::-1].copy()]
    several = explain_masks(images, model, **given)
    for image, explanation in zip(images, several, strict=True):
        alone = explain_masks(image, model, **given)
        assert not alone.differences(explanation)
        np.testing.assert_array_equal(alone.scores[0], explanation.scores[0])


def test_what_one_would_guess_works():
    torch = pytest.importorskip("torch")
    image = photo(16, 20)
    plain = explain_masks(image, MODEL, n_masks=64, fills="red,#0f0", grid=(4, 4))
    for guess in ({"fills": ["red", "#0f0"]}, {"colors": "red,#0f0"}, {"colors": ["red", "#0f0"]}):
        explanation = explain_masks(image, MODEL, n_masks=64, grid=4, **guess)
        assert explanation.plan == plain.plan
        assert np.array_equal(explanation.scores[0], plain.scores[0])
    chosen = plain.maps(0)
    assert np.array_equal(chosen["red"], chosen.values[0])
    with pytest.raises(InputError, match="there are red, #0f0"):
        chosen["blue"]
    tensor = torch.from_numpy(image).permute(2, 0, 1)  # as torch has images
    answers = lambda images: torch.from_numpy(MODEL(images)).requires_grad_()  # noqa: E731
    explanation = explain_masks(tensor, answers, n_masks=64, fills="red,#0f0", grid=4)
    assert np.array_equal(explanation.scores[0], plain.scores[0])


def test_logits_are_turned_into_probabilities_where_that_is_said():
    logits = lambda images: np.log(MODEL(images) + 1e-6)  # noqa: E731
    plain = explain_masks(photo(16, 16), MODEL, n_masks=64)
    explanation = explain_masks(photo(16, 16), logits, n_masks=64, softmax=True)
    np.testing.assert_allclose(explanation.scores[0], plain.scores[0], atol=1e-4)
    odds = lambda images: logits(images) - np.log(1 - MODEL(images) + 1e-6)  # noqa: E731
    explanation = explain_masks(photo(16, 16), odds, n_masks=64, sigmoid=True)
    np.testing.assert_allclose(explanation.scores[0], plain.scores[0], atol=1e-4)
    assert explanation.kind == "independent"


def test_any_callable_may_be_given_the_size_and_the_numbers_it_wants():
    seen = []

    def model(images):
        seen.append((images.shape[1:], images.dtype, images.min(), images.max()))
        return constant_model(images)

    explain_masks(photo(40, 30), model, n_masks=64, size=(16, 24), mean=0.5, std=0.5)
    assert {(shape, str(dtype)) for shape, dtype, _, _ in seen} == {((16, 24, 3), "float32")}
    assert min(low for *_, low, _ in seen) == pytest.approx(-1, abs=0.02)
    assert max(high for *_, high in seen) == pytest.approx(1, abs=0.02)


def test_batch_size_auto_takes_the_size_that_is_fastest_per_image(monkeypatch):
    """By a clock of the test's own: 8 at once take as long as one."""
    now = [0.0]

    def model(images):
        now[0] += 1.0 + max(0, len(images) - 8)
        return MODEL(images)

    monkeypatch.setattr(mcrise.model_calls.time, "perf_counter", lambda: now[0])
    explanation = explain_masks(photo(16, 16), model, n_masks=64, batch_size="auto")
    assert explanation.batch_size == 8


@pytest.mark.parametrize(
    "wrong", [{"tolerance": 0.0}, {"max_masks": 0}, {"n_masks": "plenty"}], ids=str
)
def test_impossible_stopping_rules_are_refused(wrong):
    with pytest.raises(InputError):
        explain_masks(photo(16, 16), MODEL, **({"n_masks": "auto"} | wrong))


def test_a_chunk_too_large_for_the_buffer_is_painted_in_parts_to_the_same_bit(monkeypatch):
    whole = explain_masks(photo(16, 16), MODEL, n_masks=128, batch_size=8)
    monkeypatch.setattr("mcrise.model_calls.MOST_BUFFER", 10_000)  # a dozen such images
    parts = explain_masks(photo(16, 16), MODEL, n_masks=128, batch_size=8)
    assert np.array_equal(parts.scores[1], whole.scores[1])
