"""Jobs are done in order, can be steered within a chunk, and survive their worker."""

import io
import json
import os
import re
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import mcrise
from mcrise.config import RunConfig
from mcrise.fills import Picture, Solid, parse
from mcrise.interpretation.repaints import Repaint, Stroke
from mcrise.interpretation.trials import try_strokes
from mcrise.masks import CHUNK
from mcrise.models.model import Model
from mcrise.server.job_queue import JobQueue, JobRequest, QueueFull
from mcrise.server.models import NotServed
from mcrise.server.quota import Quota, StorageFull
from mcrise.server.schemas import Job, UnknownJob, parse_request
from mcrise.server.store import StorageError
from mcrise.server.uploads import MOST_MASKS
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
FEW = 4  # images asked twice, to know a model again
CHUNKS = 2  # batches in a chunk
FIRST = 1 + CHUNKS + 1  # batches: the untouched image, a chunk, and a batch of it a second time
BEFORE = Path(__file__).parents[1] / "data" / "before" / "jobs"  # made by the version before briefs


def order(**asked):
    """Without a pilot, so that calls can be counted."""
    return JobRequest("planted", config=RunConfig(**{"mask_prob": 0.5, **asked}))


@pytest.fixture
def opened(tmp_path):
    """Opens the folder of jobs with a model, as often as a test asks for it."""
    made = []

    def open_jobs(model=PLANTED, **options):
        known = Model(model, identity="planted")
        made.append(JobQueue(tmp_path, {"planted": known}, **options))
        return made[-1]

    yield open_jobs
    for jobs in made:
        if jobs.worker.is_alive():
            jobs.close()


def wait(jobs, condition):
    limit = time.monotonic() + 60
    while not condition():
        states = [(job.state, job.n_masks, job.note) for job in jobs.all()]
        assert time.monotonic() < limit, states
        threading.Event().wait(0.005)


def undisturbed(n_masks, **options):
    return mcrise.explain(
        PICTURE, PLANTED, n_masks=n_masks, trials=False, **{"mask_prob": 0.5, **options}
    )


def test_a_job_ends_as_the_record_that_explain_returns(opened):
    jobs = opened()
    job = jobs.submit(order(n_masks=128, fills="red,blue", seed=3), PICTURE)
    wait(jobs, lambda: job.state == "done")
    expected = undisturbed(128, fills="red,blue", seed=3)
    found = mcrise.load(jobs.job_files.record_path(job.id))
    assert found.chunks == expected.chunks
    for chunk in expected.chunks:
        np.testing.assert_array_equal(found.scores[chunk], expected.scores[chunk])


def test_something_can_be_seen_before_a_pilot_has_settled_and_changes_nothing(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(JobRequest("planted", config=RunConfig(n_masks=CHUNK)), PICTURE)
    gate.let(1 + CHUNKS)  # the untouched image and the first chunk that the pilot tries
    wait(jobs, lambda: job.preview)
    early = jobs.explanation(job.id)
    assert (early.n_masks, job.n_masks) == (CHUNK, 0)
    assert early.maps(0).values.any()
    gate.let(1000)
    wait(jobs, lambda: job.state == "done")
    explanation, expected = jobs.explanation(job.id), undisturbed(CHUNK, mask_prob="auto")
    assert not job.preview
    assert early.plan.mask_prob != explanation.plan.mask_prob  # the pilot chose another
    assert explanation.plan == expected.plan
    np.testing.assert_array_equal(explanation.scores[0], expected.scores[0])
    np.testing.assert_array_equal(explanation.maps(0).values, expected.maps(0).values)


def test_a_job_that_fails_in_its_pilot_has_nothing_to_show(opened):
    calls = []

    def fails(images):
        calls.append(len(images))
        if len(calls) > 1 + CHUNKS:
            raise RuntimeError("out of luck")
        return PLANTED(images)

    jobs = opened(fails)
    job = jobs.submit(JobRequest("planted", config=RunConfig(n_masks=CHUNK)), PICTURE)
    wait(jobs, lambda: job.state == "failed")
    with pytest.raises(UnknownJob, match="no masks yet"):
        jobs.explanation(job.id)


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


def test_pause_takes_effect_within_a_chunk_and_resuming_asks_only_a_few_again(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=256), PICTURE)
    gate.let(FIRST)
    wait(jobs, lambda: job.n_masks == CHUNK)
    jobs.pause(job.id)
    gate.let(100)
    wait(jobs, jobs.job_files.record_path(job.id).exists)
    assert job.n_masks <= 2 * CHUNK
    assert job.state == "paused"
    jobs.resume(job.id)
    wait(jobs, lambda: job.state == "done")
    # Each time it begins, the untouched image and a few masks are asked besides.
    assert gate.n_images == 256 + 2 * (1 + FEW)


def test_more_masks_continue_a_finished_job(opened):
    jobs = opened()
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    jobs.more(job.id, 100)
    wait(jobs, lambda: job.state == "done")
    assert job.n_masks == 192  # whole chunks
    expected = undisturbed(192)
    np.testing.assert_array_equal(jobs.explanation(job.id).scores[2], expected.scores[2])


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


def test_more_masks_for_a_job_that_has_not_begun_are_added_to_those_asked_for(opened):
    gate = Gate()
    jobs = opened(gate)
    first = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: first.state == "running")
    waiting = jobs.submit(order(n_masks=256), PICTURE)
    assert jobs.more(waiting.id, 64).goal == 320
    auto = jobs.submit(order(n_masks="auto"), PICTURE)
    with pytest.raises(mcrise.InputError, match="has not begun"):
        jobs.more(auto.id, 64)
    assert auto.job_request.config.n_masks == "auto"
    jobs.delete(auto.id)
    gate.let(1000)
    wait(jobs, lambda: waiting.state == "done")
    assert waiting.n_masks == 320


def test_however_many_ask_at_once_a_job_has_no_more_masks_than_allowed(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.pause(jobs.submit(order(n_masks=MOST_MASKS // 2), PICTURE).id)
    refused, together = [], threading.Barrier(8)

    def ask():
        together.wait()
        try:
            jobs.more(job.id, MOST_MASKS // 4)
        except mcrise.InputError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert MOST_MASKS // 2 < job.goal <= MOST_MASKS
    assert len(refused) == 7
    assert "at most 100,000 masks" in refused[0]
    jobs.delete(job.id)
    gate.let(1000)


def test_a_cancelled_job_ends_within_a_chunk_and_leaves_no_file(opened, tmp_path):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=6400), PICTURE)
    gate.let(FIRST)
    wait(jobs, lambda: job.n_masks == CHUNK)
    jobs.delete(job.id)
    gate.let(100)
    wait(jobs, lambda: not [path for path in tmp_path.iterdir() if job.id in path.name])
    assert gate.n_images <= 1 + FEW + 2 * CHUNK
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
    found, expected = again.explanation(job.id), undisturbed(320)
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


def test_a_call_that_nobody_waits_for_any_more_is_not_made_and_ends_nothing(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=128), PICTURE)
    gate.let(FIRST)
    wait(jobs, lambda: job.n_masks == CHUNK)
    made = []
    assert jobs.call("planted", made.append).cancel()
    gate.let(100)
    wait(jobs, lambda: job.state == "done")
    assert (made, jobs.worker.is_alive()) == ([], True)


# ---- what goes wrong around it


def test_nothing_is_left_behind_by_an_order_that_cannot_be_written_down(opened, tmp_path):
    jobs = opened()
    jobs.job_table.database.execute("PRAGMA query_only = ON")  # as on a disk that is read-only
    with pytest.raises(StorageError, match="readonly"):
        jobs.submit(order(n_masks=64), PICTURE)
    assert jobs.all() == []
    assert not list(tmp_path.glob("*.upload"))
    assert "readonly" in jobs.health()["trouble"]


@pytest.mark.parametrize(
    "full", ["mcrise.server.store.write_atomically", "mcrise.explanation_file.replacing"]
)
def test_nothing_is_left_behind_by_a_record_for_which_there_is_no_room(
    opened, tmp_path, monkeypatch, full
):
    def no_room(*given):
        raise OSError(28, "No space left on device")

    jobs = opened()
    monkeypatch.setattr(full, no_room)
    with pytest.raises(StorageError, match="No space left"):
        jobs.adopt("0123456789abcdef", order(n_masks=64), undisturbed(64))
    assert jobs.all() == []
    assert not [path for path in tmp_path.iterdir() if "0123456789abcdef" in path.name]


def test_what_the_worker_could_not_write_down_is_written_later(opened):
    gate = Gate()
    jobs = opened(gate)
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "running")
    jobs.job_table.database.execute("PRAGMA query_only = ON")
    gate.let(100)
    wait(jobs, lambda: job.state == "done")
    with pytest.raises(StorageError):
        jobs.pause(job.id)
    assert job.state == "done"
    jobs.job_table.database.execute("PRAGMA query_only = OFF")
    wait(jobs, lambda: not jobs.health()["trouble"])
    jobs.close()
    assert opened().get(job.id).state == "done"


def test_a_model_that_ends_the_program_fails_its_job_only(opened):
    def leaves(images):
        raise SystemExit(3)

    jobs = opened(leaves)
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "failed")
    assert "SystemExit" in job.note
    with pytest.raises(mcrise.ModelError, match="SystemExit: 3"):  # not the server either
        jobs.call("planted", lambda model: model(photo(24, 32)[None])).result(timeout=10)
    assert jobs.health() == {"alive": True, "trouble": ""}


class Speechless(BaseException):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("cannot read caf\udce9.png"), r"ValueError: cannot read caf\\udce9\.png"),
        (Speechless(), "Speechless: it cannot say why"),
    ],
)
def test_whatever_a_model_says_when_it_fails_can_be_written_down(opened, error, words):
    def fails(images):
        raise error

    jobs = opened(fails)
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "failed")
    assert re.search(words, job.note)
    jobs.close()
    again = opened().get(job.id)
    assert (again.state, again.note) == ("failed", job.note)


ADOPTED = "0123456789abcdef"
ANY_FILLS = (Picture(photo(24, 32), "picture:/etc/hostname"), Solid((200, 10, 10), "a(b, c"))


def adopted(opened):
    """Jobs that have taken over a record of such fills, and that record."""
    known = Model(PLANTED, identity="planted")
    explanation = mcrise.explain(PICTURE, known, n_masks=64, fills=ANY_FILLS, mask_prob=0.5)
    jobs = opened()
    config = RunConfig(explanation.plan.fills, mask_prob=0.5, n_masks=64)
    jobs.adopt(ADOPTED, JobRequest("planted", "adopted.png", config), explanation)
    return jobs, explanation


def test_a_record_of_any_fills_is_taken_kept_and_grown_and_names_open_no_file(opened):
    jobs, explanation = adopted(opened)
    jobs.close()
    again = opened()
    job = again.more(ADOPTED, 64)
    wait(again, lambda: job.state in ("done", "failed"))
    assert (job.state, job.n_masks, job.note) == ("done", 128, "")
    assert again.explanation(job.id).plan == explanation.plan


def test_a_number_that_another_has_taken_overwrites_nothing(opened):
    jobs = opened()
    first = jobs.submit(order(n_masks=64), PICTURE)
    del jobs.jobs[first.id]  # as by a server that shares the folder in spite of its lock
    with pytest.raises(StorageError):
        jobs.submit(order(n_masks=64), PICTURE)
    assert [row[1] for row in jobs.job_table.rows()] == [first.id]


def test_a_full_folder_takes_no_job_and_names_the_oldest_to_delete(opened):
    gate = Gate()
    jobs = opened(gate, most_bytes=3 * len(PICTURE))
    long = jobs.submit(order(n_masks=64_000), PICTURE)
    wait(jobs, lambda: long.state == "running")
    names = ("old.png", "new.png")
    old, new = (
        jobs.stop(jobs.submit(replace(order(n_masks=64), name=name), PICTURE).id) for name in names
    )
    assert jobs.quota.n_bytes == 3 * len(PICTURE)
    # Two: a fourth picture and a tenth of the limit need more than one; the long job is at work.
    with pytest.raises(StorageFull, match=r"Delete the oldest \(old\.png, new\.png: .*--keep-gb"):
        jobs.submit(order(n_masks=64), PICTURE)
    assert [job.id for job in jobs.quota.to_delete(jobs.all())] == [old.id]
    assert {long.id, old.id, new.id} == set(jobs.jobs)  # nothing goes by itself
    jobs.delete(old.id)
    assert jobs.quota.n_bytes == 2 * len(PICTURE)
    jobs.submit(order(n_masks=64), PICTURE)
    jobs.delete(long.id)
    gate.let(1000)


def test_a_full_folder_with_jobs_at_work_only_offers_nothing_to_delete(opened):
    gate = Gate()
    jobs = opened(gate, most_bytes=len(PICTURE))
    job = jobs.submit(order(n_masks=64), PICTURE)
    with pytest.raises(StorageFull, match=r"^The jobs here take .* Serve with a larger --keep-gb"):
        jobs.submit(order(n_masks=64), PICTURE)
    jobs.delete(job.id)
    gate.let(100)


def test_the_bytes_of_a_running_job_are_counted_as_its_record_grows(opened, monkeypatch):
    monkeypatch.setattr("mcrise.server.job_queue.COUNT_SECONDS", 0.0)
    gate = Gate()
    jobs = opened(gate, checkpoint_seconds=0.0)
    job = jobs.submit(order(n_masks=64_000), PICTURE)
    gate.let(FIRST + 10 * CHUNKS)
    wait(jobs, lambda: jobs.quota.n_bytes > len(PICTURE))
    assert job.state == "running"
    jobs.delete(job.id)
    gate.let(100)


def test_a_folder_has_one_server_and_whoever_comes_second_is_told_which(opened, tmp_path):
    opened()
    with pytest.raises(mcrise.InputError, match=f"in use: a server .*process {os.getpid()} on"):
        opened()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a database " * 100,
        "CREATE TABLE jobs (id, x)",
        "INSERT INTO jobs VALUES (1, '0123456789abcdef', '[]', 0, 'done', 0, 0, '')",
        "INSERT INTO jobs VALUES (1, '0123456789abcdef', '{', 0, 'done', 0, 0, '')",
        """INSERT INTO jobs VALUES (1, '0123456789abcdef', '{"model": 1, "name": 2}', 'x', 'done',
        0, 0, '')""",
        """INSERT INTO jobs VALUES (1, '0123456789abcdef', '{"model": "planted", "name": "b"}', 0,
        'odd', 0, 0, '')""",
        """INSERT INTO jobs VALUES (1, '0123456789abcdef', '{"model": "planted", "name": "b"}',
        9e999, 'done', 0, 0, '')""",
        """INSERT INTO jobs VALUES (1, '../../../../a/b', '{"model": "planted", "name": "b"}', 0,
        'done', 0, 0, '')""",
    ],
)
def test_a_list_of_jobs_that_is_damaged_or_foreign_is_refused_in_words(opened, tmp_path, content):
    if not content or isinstance(content, bytes):
        (tmp_path / "jobs.sqlite").write_bytes(content)
    else:
        if "INSERT" in content:
            opened().close()
        with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as database, database:
            database.execute(content)
    if content == b"":
        assert opened().all() == []  # as SQLite itself leaves it
    else:
        with pytest.raises(mcrise.InputError, match="another --data"):
            opened()


def test_nobody_comes_round_the_limit_of_the_queue(opened):
    gate = Gate()
    jobs = opened(gate, most_queued=1)
    first = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: first.state == "running")
    paused = jobs.submit(order(n_masks=64), PICTURE)
    jobs.pause(paused.id)
    jobs.submit(order(n_masks=64), PICTURE)
    for again in (lambda: jobs.resume(paused.id), lambda: jobs.more(paused.id, 64)):
        with pytest.raises(QueueFull):
            again()
    assert (paused.state, paused.goal) == ("paused", 0)
    gate.let(100)


def test_while_a_long_record_is_read_nobody_else_waits(opened, monkeypatch):
    jobs = opened()
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    jobs.close()
    again = opened()
    reading, go_on = threading.Event(), threading.Event()

    def slowly(path):
        reading.set()
        assert go_on.wait(10)
        return mcrise.load(path)

    monkeypatch.setattr("mcrise.server.store.load", slowly)
    reader = threading.Thread(target=again.explanation, args=(job.id,))
    reader.start()
    assert reading.wait(10)
    assert again.all()[0].id == job.id  # and so on: the lock is free
    go_on.set()
    reader.join()


def test_a_record_that_goes_while_it_is_read_is_not_held(opened, monkeypatch):
    jobs = opened()
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    jobs.job_files.let_go(job.id)

    def meanwhile_deleted(path):
        explanation = mcrise.load(path)
        jobs.delete(job.id)
        return explanation

    monkeypatch.setattr("mcrise.server.store.load", meanwhile_deleted)
    with pytest.raises(UnknownJob):
        jobs.explanation(job.id)
    assert not jobs.job_files.held


def test_answers_are_added_to_the_record_there_is_by_now_and_no_mask_is_lost(opened):
    jobs = opened()
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    early = jobs.explanation(job.id)
    jobs.more(job.id, 64)
    wait(jobs, lambda: job.state == "done" and job.n_masks == 128)
    early.answers["a repaint"] = early.untouched
    jobs.keep_answers(job.id, early)
    kept = mcrise.load(jobs.job_files.record_path(job.id))
    assert kept.n_masks == 128
    assert "a repaint" in kept.answers


def test_the_oldest_are_offered_until_a_tenth_of_the_limit_is_free():
    quota = Quota(None, 100)
    jobs = [Job(name, number, order(), 0.0, "done") for number, name in enumerate("abc")]
    quota.sizes = {"a": 5, "b": 20, "c": 60}
    assert quota.to_delete(jobs) == []  # 85 of 100
    assert [job.id for job in quota.to_delete(jobs, 10)] == ["a"]
    assert [job.id for job in quota.to_delete(reversed(jobs), 11)] == ["a", "b"]
    jobs[0].state = "running"
    assert [job.id for job in quota.to_delete(jobs, 10)] == ["b"]


# ---- the folder, from one version to the next


@pytest.fixture
def before(tmp_path):
    """A folder of jobs that the version before has left: one done, one paused half-way."""
    folder = shutil.copytree(BEFORE, tmp_path / "jobs")
    jobs = JobQueue(folder, {"gtsrb": mcrise.load_model("demo")})
    yield jobs
    jobs.close()


def test_a_folder_of_the_version_before_opens_and_its_half_done_job_ends_as_a_new_one(before):
    half, done = before.all()
    assert (done.state, done.n_masks) == ("done", 64)
    assert done.job_request == JobRequest("gtsrb", "done.png", RunConfig(n_masks=64, mask_prob=0.5))
    assert (half.state, half.n_masks) == ("paused", 128)
    asked = RunConfig(n_masks=640, mask_prob=0.3, grid=(4, 4), seed=3)
    assert half.job_request == JobRequest("gtsrb", "half.png", asked)
    before.resume(half.id)
    wait(before, lambda: half.state in ("done", "failed"))
    assert (half.state, half.n_masks) == ("done", 640)
    picture = before.job_files.upload_path(half.id).read_bytes()
    expected = mcrise.explain(picture, "demo", n_masks=640, mask_prob=0.3, grid=4, seed=3)
    found = mcrise.load(before.job_files.record_path(half.id))
    assert found.chunks == expected.chunks
    scores, new = found.scores_of(14), expected.scores_of(14)
    np.testing.assert_allclose(scores[:128], new[:128], atol=1e-5)  # by another processor, perhaps
    np.testing.assert_array_equal(scores[128:], new[128:])


def test_a_stored_order_is_flat_and_comes_back_as_it_was(opened, tmp_path):
    asked = order(
        fills="red,blur:4", grid=(4, 6), mask_prob=0.3, seed=3, n_masks=64, tolerance=0.5,
        max_masks=640, target="1", batch_size=16,
    )  # fmt: skip
    opened().submit(asked, PICTURE)
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as database:
        (told,) = database.execute("SELECT asked FROM jobs").fetchone()
    flat = json.loads(told)
    assert {"model": "planted", "fills": "red,blur:4", "grid": [4, 6]}.items() <= flat.items()
    assert parse_request(flat) == asked


def test_of_an_order_told_by_another_version_what_is_missing_is_default_and_the_rest_left_out():
    told = {"model": "planted", "name": "a.png", "seed": 3, "invented": "later"}
    assert parse_request(told) == JobRequest("planted", "a.png", RunConfig(seed=3))


def test_no_file_is_opened_for_a_stored_order(tmp_path):
    Image.fromarray(photo(24, 32)).save(tmp_path / "secret.png")
    told = {"model": "planted", "name": "a.png", "fills": f"red, picture:{tmp_path}/secret.png"}
    with pytest.raises(mcrise.InputError, match="files are not read"):
        parse_request(told)


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
    assert again.models.n_images == 1 + FEW + 1
    repaint(again, job, fill=1)
    assert again.models.n_images == 1 + FEW + 2
    repaint(again, job)  # and what was asked before is known
    assert again.models.n_images == 1 + FEW + 2


def repaint(jobs, job, fill=0):
    explanation = jobs.explanation(job.id)
    stroke = Stroke(np.ones(explanation.plan.size, bool), explanation.plan.fills[fill])
    call = jobs.call(
        "planted", lambda model: try_strokes(explanation, model, Repaint((stroke,)), 0)
    )
    return call.result(timeout=10)


def test_a_job_whose_model_is_not_served_can_be_looked_at_but_not_gone_on_with(opened, tmp_path):
    jobs = opened()
    job = jobs.submit(order(n_masks=64), PICTURE)
    wait(jobs, lambda: job.state == "done")
    jobs.close()
    with closing(JobQueue(tmp_path, {"other": Model(PLANTED)})) as again:
        found = again.get(job.id)
        assert found.state == "done"
        np.testing.assert_array_equal(again.view(job.id).pixels, photo(24, 32))
        with pytest.raises(NotServed, match="'planted' is not being served"):
            again.call("planted", lambda model: model).result(timeout=10)
        again.more(job.id, 64)
        wait(again, lambda: found.state == "failed")
        assert "'planted' is not being served" in found.note


def test_a_job_like_another_that_waits_at_a_restart_is_painted_as_the_other(opened):
    gate = Gate()
    jobs = opened(gate)
    jobs.submit(order(n_masks=64), PICTURE)
    like = RunConfig(parse("red,yellow"), mask_prob=0.5, n_masks=64)
    waiting = jobs.submit(JobRequest("planted", config=like), PICTURE)
    gate.let(1)
    closing_thread = threading.Thread(target=jobs.close)
    closing_thread.start()
    gate.let(100)
    closing_thread.join()
    again = opened()
    wait(again, lambda: again.get(waiting.id).state == "done")
    assert again.explanation(waiting.id).plan.fills == parse("red,yellow")


def test_a_job_whose_fills_are_gone_with_its_record_fails_in_words(opened):
    jobs, _ = adopted(opened)
    jobs.close()
    jobs.job_files.record_path(ADOPTED).unlink()
    again = opened()
    job = again.more(ADOPTED, 64)
    wait(again, lambda: job.state in ("done", "failed"))
    assert (job.state, "run of this job is gone" in job.note) == ("failed", True)


def test_what_is_kept_is_nothing_again_when_all_is_deleted(opened):
    jobs = opened()
    for _ in range(2):
        job = jobs.submit(order(n_masks=64), PICTURE)
        wait(jobs, lambda job=job: job.state == "done" and jobs.quota.n_bytes > len(PICTURE))
        jobs.delete(job.id)
        assert jobs.quota.n_bytes == 0
