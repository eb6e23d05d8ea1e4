"""Jobs are done in order, can be steered within a chunk, and survive their worker."""

import io
import threading

import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise.masks import CHUNK
from mcrise.model import Model
from mcrise.page.jobs import Jobs, Order, QueueFull, UnknownJob
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
CHUNKS = 2  # batches of 32 in a chunk


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
    job = jobs.submit(Order("planted", n_masks=128, fills="red,blue", seed=3), PICTURE)
    wait(jobs, lambda: job.state == "done")
    expected = undisturbed(128, fills="red,blue", seed=3)
    found = mcrise.load(jobs.record_path(job))
    assert found.chunks == expected.chunks
    for chunk in expected.chunks:
        np.testing.assert_array_equal(found.scores[chunk], expected.scores[chunk])


def test_jobs_are_done_in_the_order_they_were_asked_for_and_the_queue_is_bounded(opened):
    gate = Gate()
    jobs = opened(gate, most_queued=2)
    first = jobs.submit(Order("planted", n_masks=64), PICTURE)
    wait(jobs, lambda: first.state == "running")
    second, third = (jobs.submit(Order("planted", n_masks=64), PICTURE) for _ in range(2))
    assert jobs.queue() == [second, third]
    with pytest.raises(QueueFull, match="2 jobs are waiting"):
        jobs.submit(Order("planted"), PICTURE)
    gate.let(100)
    wait(jobs, lambda: third.state == "done")
    assert second.state == "done"


def test_pause_takes_effect_within_a_chunk_and_resuming_asks_nothing_twice(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(Order("planted", n_masks=256), PICTURE)
    gate.let(1 + CHUNKS)  # the untouched image and one chunk
    wait(jobs, lambda: job.n_masks == CHUNK)
    jobs.pause(job.id)
    gate.let(100)
    wait(jobs, jobs.record_path(job).exists)
    assert job.n_masks <= 2 * CHUNK
    assert job.state == "paused"
    jobs.resume(job.id)
    wait(jobs, lambda: job.state == "done")
    assert gate.n_images == 1 + 256


def test_more_masks_continue_a_finished_job(opened):
    jobs = opened()
    job = jobs.submit(Order("planted", n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    jobs.more(job.id, 100)
    wait(jobs, lambda: job.state == "done")
    assert job.n_masks == 192  # whole chunks
    expected = undisturbed(192)
    np.testing.assert_array_equal(jobs.record(job.id).scores[2], expected.scores[2])


def test_more_masks_asked_for_while_it_runs_are_done_too(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(Order("planted", n_masks=128), PICTURE)
    gate.let(1 + CHUNKS)
    wait(jobs, lambda: job.n_masks == CHUNK)
    jobs.more(job.id, 64)
    gate.let(100)
    wait(jobs, lambda: job.state == "done")
    assert job.n_masks == 192


def test_a_cancelled_job_ends_within_a_chunk_and_leaves_no_file(opened, tmp_path):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(Order("planted", n_masks=6400), PICTURE)
    gate.let(1 + CHUNKS)
    wait(jobs, lambda: job.n_masks == CHUNK)
    jobs.delete(job.id)
    gate.let(100)
    wait(jobs, lambda: not [path for path in tmp_path.iterdir() if job.id in path.name])
    assert gate.n_images <= 1 + 2 * CHUNK
    with pytest.raises(UnknownJob):
        jobs.get(job.id)


def test_unfinished_jobs_go_on_when_the_folder_is_opened_again(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(Order("planted", n_masks=320), PICTURE)
    waiting = jobs.submit(Order("planted", n_masks=64), PICTURE)
    gate.let(1 + CHUNKS)
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
    job = jobs.submit(Order("planted", n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "failed")
    assert "out of luck" in job.note
    assert jobs.worker.is_alive()


def test_a_call_is_served_between_two_chunks_of_a_running_job(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(Order("planted", n_masks=6400), PICTURE)
    gate.let(1 + CHUNKS)
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
