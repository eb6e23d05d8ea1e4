"""Jobs are done in order, can be steered within a chunk, and survive their worker."""

import io
import json
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise.brief import Brief
from mcrise.masks import CHUNK
from mcrise.model import Model
from mcrise.page.jobs import Jobs, NotServed, Order, QueueFull, UnknownJob
from mcrise.page.order import parse_order
from mcrise.repaints import Repaint, Stroke
from mcrise.trials import try_strokes
from planted import PatchModel, photo

PLANTED = PatchModel(slice(4, 12), slice(4, 12))


class Gate:
    """A planted model that answers only as many batches as it is let through."""

    def __init__(self):
        self.passes = threading.Semaphore(0)
        self.n_images = 0

    def __call__(self, images):
        self.passes.acquire()
        self.n_images += len(images)
        return PLANTED(images)

    def let(self, n_batches):
        self.passes.release(n_batches)


def png(image):
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


PICTURE = png(photo(24, 32))
BATCH = 32
CHUNKS = 2  # batches in a chunk
FIRST = 1 + CHUNKS + 1  # batches: the untouched image, a chunk, and a batch of it a second time
BEFORE = Path(__file__).parent / "data" / "before" / "jobs"  # made by the version before briefs


def order(**asked):
    """Without a pilot, so that calls can be counted."""
    return Order("planted", brief=Brief(**{"mask_prob": 0.5, **asked}))


@pytest.fixture
def opened(tmp_path):
    """Opens the folder of jobs with a model, as often as a test asks for it."""
    made = []

    def open_jobs(model=PLANTED, **options):
        known = Model(model, identity="planted")
        made.append(Jobs(tmp_path, {"planted": known}, **options))
        return made[-1]

    yield open_jobs
    for jobs in made:
        if jobs.worker.is_alive():
            jobs.close()


def wait(jobs, condition):
    for _ in range(2000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError([(job.state, job.n_masks, job.note) for job in jobs.all()])


def undisturbed(n_masks, **options):
    return mcrise.explain(PICTURE, PLANTED, n_masks=n_masks, **options)


def test_a_job_ends_as_the_record_that_explain_returns(opened):
    jobs = opened()
    job = jobs.submit(order(n_masks=128, fills="red,blue", seed=3), PICTURE)
    wait(jobs, lambda: job.state == "done")
    expected = undisturbed(128, fills="red,blue", seed=3)
    found = mcrise.load(jobs.record_path(job))
    assert found.chunks == expected.chunks
    for chunk in expected.chunks:
        np.testing.assert_array_equal(found.scores[chunk], expected.scores[chunk])


def test_jobs_are_done_in_the_order_they_were_asked_for_and_the_queue_is_bounded(opened):
    gate = Gate()
    jobs = opened(gate, most_queued=2)
    first = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: first.state == "running")
    second, third = (jobs.submit(order(n_masks=64), PICTURE) for _ in range(2))
    assert jobs.queue() == [second, third]
    with pytest.raises(QueueFull, match="2 jobs are waiting"):
        jobs.submit(order(), PICTURE)
    gate.let(100)
    wait(jobs, lambda: third.state == "done")
    assert second.state == "done"


def test_pause_takes_effect_within_a_chunk_and_resuming_asks_only_one_batch_again(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=256), PICTURE)
    gate.let(FIRST)
    wait(jobs, lambda: job.n_masks == CHUNK)
    jobs.pause(job.id)
    gate.let(100)
    wait(jobs, jobs.record_path(job).exists)
    assert job.n_masks <= 2 * CHUNK
    assert job.state == "paused"
    jobs.resume(job.id)
    wait(jobs, lambda: job.state == "done")
    # Each time it begins, the untouched image and one batch are asked besides.
    assert gate.n_images == 256 + 2 * (1 + BATCH)


def test_more_masks_continue_a_finished_job(opened):
    jobs = opened()
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    jobs.more(job.id, 100)
    wait(jobs, lambda: job.state == "done")
    assert job.n_masks == 192  # whole chunks
    expected = undisturbed(192)
    np.testing.assert_array_equal(jobs.record(job.id).scores[2], expected.scores[2])


def test_more_masks_asked_for_while_it_runs_are_done_too(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=128), PICTURE)
    gate.let(FIRST)
    wait(jobs, lambda: job.n_masks == CHUNK)
    jobs.more(job.id, 64)
    gate.let(100)
    wait(jobs, lambda: job.state == "done")
    assert job.n_masks == 192


def test_a_cancelled_job_ends_within_a_chunk_and_leaves_no_file(opened, tmp_path):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=6400), PICTURE)
    gate.let(FIRST)
    wait(jobs, lambda: job.n_masks == CHUNK)
    jobs.delete(job.id)
    gate.let(100)
    wait(jobs, lambda: not [path for path in tmp_path.iterdir() if job.id in path.name])
    assert gate.n_images <= 1 + BATCH + 2 * CHUNK
    with pytest.raises(UnknownJob):
        jobs.get(job.id)


def test_unfinished_jobs_go_on_when_the_folder_is_opened_again(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=320), PICTURE)
    waiting = jobs.submit(order(n_masks=64), PICTURE)
    gate.let(FIRST)
    wait(jobs, lambda: job.n_masks == CHUNK)
    jobs.open = False  # as `close` does; the gate must open for the worker to notice
    gate.let(100)
    jobs.close()
    again = opened()
    wait(again, lambda: again.get(waiting.id).state == "done")
    found, expected = again.record(job.id), undisturbed(320)
    assert found.chunks == expected.chunks
    np.testing.assert_array_equal(found.scores[4], expected.scores[4])


def test_a_failing_model_fails_its_job_only(opened):
    def breaks(images):
        if len(images) > 1:
            raise RuntimeError("out of luck")
        return PLANTED(images)

    jobs = opened(breaks)
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "failed")
    assert "out of luck" in job.note
    assert jobs.worker.is_alive()


def test_a_call_is_served_between_two_chunks_of_a_running_job(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=6400), PICTURE)
    gate.let(FIRST)
    wait(jobs, lambda: job.n_masks == CHUNK)
    answer = jobs.call("planted", lambda model: model(photo(24, 32)[None]).shape)
    gate.let(2 * CHUNKS + 1)
    assert answer.result(timeout=10) == (1, 2)
    assert job.state == "running"
    jobs.delete(job.id)
    gate.let(1000)


def test_a_call_that_fails_tells_its_caller(opened):
    jobs = opened()
    with pytest.raises(ZeroDivisionError):
        jobs.call("planted", lambda model: 1 / 0).result(timeout=10)
    assert jobs.worker.is_alive()


# ---- the folder, from one version to the next


@pytest.fixture
def before(tmp_path):
    """A folder of jobs that the version before has left: one done, one paused half-way."""
    folder = shutil.copytree(BEFORE, tmp_path / "jobs")
    jobs = Jobs(folder, {"gtsrb": mcrise.load_model("demo")})
    yield jobs
    jobs.close()


def test_a_folder_of_the_version_before_opens_and_its_half_done_job_ends_equal_to_the_bit(before):
    half, done = before.all()
    assert (done.state, done.n_masks) == ("done", 64)
    assert done.order == Order("gtsrb", "done.png", Brief(n_masks=64, mask_prob=0.5))
    assert (half.state, half.n_masks) == ("paused", 128)
    asked = Brief(n_masks=640, mask_prob=0.3, grid=(4, 4), seed=3)
    assert half.order == Order("gtsrb", "half.png", asked)
    before.resume(half.id)
    wait(before, lambda: half.state in ("done", "failed"))
    assert (half.state, half.n_masks) == ("done", 640)
    picture = before.upload_path(half).read_bytes()
    expected = mcrise.explain(picture, "demo", n_masks=640, mask_prob=0.3, grid=4, seed=3)
    found = mcrise.load(before.record_path(half))
    assert found.chunks == expected.chunks
    found_maps, expected_maps = found.maps("stop", "centered"), expected.maps("stop", "centered")
    np.testing.assert_array_equal(found_maps.values, expected_maps.values)
    np.testing.assert_array_equal(found_maps.se, expected_maps.se)


def test_a_stored_order_is_flat_and_comes_back_as_it_was(opened, tmp_path):
    asked = order(
        fills="red,blur:4", grid=(4, 6), mask_prob=0.3, seed=3, n_masks=64, tolerance=0.5,
        cap=640, target="1", batch_size=16,
    )  # fmt: skip
    opened().submit(asked, PICTURE)
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as database:
        (told,) = database.execute("SELECT asked FROM jobs").fetchone()
    flat = json.loads(told)
    assert {"model": "planted", "fills": "red,blur:4", "grid": [4, 6]}.items() <= flat.items()
    assert parse_order(flat) == asked


def test_of_an_order_told_by_another_version_what_is_missing_is_default_and_the_rest_left_out():
    told = {"model": "planted", "name": "a.png", "seed": 3, "invented": "later"}
    assert parse_order(told) == Order("planted", "a.png", Brief(seed=3))


def test_no_file_is_opened_for_a_stored_order(tmp_path):
    Image.fromarray(photo(24, 32)).save(tmp_path / "secret.png")
    told = {"model": "planted", "name": "a.png", "fills": f"red, picture:{tmp_path}/secret.png"}
    with pytest.raises(mcrise.InputError, match="files are not read"):
        parse_order(told)


def test_a_job_that_cannot_be_read_is_named_when_the_folder_is_opened(opened, tmp_path):
    jobs = opened()
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    jobs.close()
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as database, database:
        database.execute("""UPDATE jobs SET asked = replace(asked, 'rgbwk', 'sparkle')""")
    with pytest.raises(mcrise.InputError, match=f"Job {job.id} .* 'sparkle' is not a color"):
        opened()


# ---- the model


def test_a_record_that_was_begun_here_is_repainted_without_asking_who_the_model_is(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=64), PICTURE)
    gate.let(100)
    wait(jobs, lambda: job.state == "done")
    asked = gate.n_images
    repaint(jobs, job)
    assert gate.n_images == asked + 1


def test_of_a_record_from_disk_the_model_is_recognised_once(opened):
    jobs = opened()
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    jobs.close()
    again = opened()
    repaint(again, job)
    assert again.n_images == 1 + BATCH + 1
    repaint(again, job, fill=1)
    assert again.n_images == 1 + BATCH + 2
    repaint(again, job)  # and what was asked before is known
    assert again.n_images == 1 + BATCH + 2


def repaint(jobs, job, fill=0):
    record = jobs.record(job.id)
    stroke = Stroke(np.ones(record.plan.size, bool), record.plan.fills[fill])
    call = jobs.call("planted", lambda model: try_strokes(record, model, Repaint((stroke,)), 0))
    return call.result(timeout=10)


def test_a_job_whose_model_is_not_served_can_be_looked_at_but_not_gone_on_with(opened, tmp_path):
    jobs = opened()
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    jobs.close()
    with closing(Jobs(tmp_path, {"other": Model(PLANTED)})) as again:
        found = again.get(job.id)
        assert found.state == "done"
        np.testing.assert_array_equal(again.view(job.id).pixels, photo(24, 32))
        with pytest.raises(NotServed, match="'planted' is not being served"):
            again.call("planted", lambda model: model).result(timeout=10)
        again.more(job.id, 64)
        wait(again, lambda: found.state == "failed")
        assert "'planted' is not being served" in found.note
