"""What the server answers, and to whom."""

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import urllib.request
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastapi import HTTPException, Request
from PIL import Image
from scipy.special import stdtrit
from starlette.testclient import TestClient

import mcrise
from api import generated_requests
from mcrise import fills
from mcrise.audits.measure import energies, half_maps
from mcrise.audits.outliers import distances
from mcrise.audits.run_diff import compare_runs
from mcrise.batch.storage import Storage
from mcrise.cli.serve import load_models
from mcrise.config import RunConfig
from mcrise.estimators import NullThreshold
from mcrise.images import Geometry
from mcrise.models.model import Model
from mcrise.output.web_maps import pack
from mcrise.server.app import create_app
from mcrise.server.cache import ResultCache
from mcrise.server.job_queue import JobQueue, JobRequest
from mcrise.server.uploads import MOST_BYTES, Incoming, body_of
from planted import PatchModel, photo
from serving import sign_bytes, wait

HOSTILE = "<img src=x onerror=alert(1)>"
PLANTED = Model(
    PatchModel(slice(4, 12), slice(4, 12)), labels=(HOSTILE, "not red"), identity="planted"
)
N_REQUESTS = 150  # of all kinds; `make bench` sends 1,000


@pytest.fixture
def jobs(tmp_path):
    made = JobQueue(tmp_path / "data", {"planted": PLANTED})
    yield made
    made.close()


@pytest.fixture
def client(jobs):
    with TestClient(create_app(jobs), base_url="http://127.0.0.1:8700") as client:
        yield client


def picture(kind="PNG", size=(24, 32)):
    buffer = io.BytesIO()
    Image.fromarray(photo(*size)).save(buffer, kind)
    return buffer.getvalue()


def finished(client, jobs, **options):
    asked = {"n_masks": 128, "colors": "red,blue", **options}
    answer = client.post("/api/jobs", params=asked, content=picture())
    assert answer.status_code == 201, answer.text
    id = answer.json()["id"]
    wait(lambda: jobs.get(id).state == "done")
    return id


# ---- what it answers


def test_a_script_can_post_an_image_follow_it_and_load_the_record(client, jobs, tmp_path):
    id = finished(client, jobs)
    status = client.get(f"/api/jobs/{id}").json()
    assert (status["state"], status["n_masks"], status["preview"]) == ("done", 128, False)
    (tmp_path / "run.npz").write_bytes(client.get(f"/api/jobs/{id}/run.npz").content)
    explanation = mcrise.load(tmp_path / "run.npz")
    expected = mcrise.explain(picture(), PLANTED, n_masks=128, fills="red,blue")
    for chunk in expected.chunks:
        np.testing.assert_array_equal(explanation.scores[chunk], expected.scores[chunk])


@pytest.mark.parametrize("estimator", mcrise.estimators.ESTIMATORS)
def test_packed_maps_are_the_records_to_a_thirty_thousandth(client, jobs, estimator):
    id = finished(client, jobs)
    asked = {"target": 0, "estimator": estimator}
    _, values, se = unpacked(client.get(f"/api/jobs/{id}/maps", params=asked).content)
    maps = jobs.explanation(id).maps(0, estimator)
    np.testing.assert_allclose(values, maps.values, atol=np.abs(maps.values).max() / 3e4)
    np.testing.assert_allclose(se, maps.se, atol=maps.se.max() / 3e4)


@pytest.mark.slow
def test_maps_of_a_large_picture_travel_coarse_and_are_the_records_to_a_part_of_their_error():
    explanation = mcrise.explain(
        photo(750, 1000), PatchModel(slice(300, 450), slice(300, 450)), n_masks=128, mask_prob=0.4
    )
    maps = explanation.maps(0, "centered")
    content = pack(maps, explanation.plan.grid, explanation.chance(maps))
    assert len(content) < 1_500_000 / 10
    header, values, se = unpacked(content)
    assert header["size"] == [750, 1000]
    rows, columns = (
        np.linspace(0, n - 1, c) for n, c in zip((750, 1000), values.shape[1:], strict=True)
    )
    for told, true in ((values, maps.values), (se, maps.se)):
        down = np.stack([[np.interp(np.arange(1000), columns, line) for line in k] for k in told])
        for row in (0, 131, 374, 600, 749):
            at = np.interp(row, rows, np.arange(len(rows)))
            low, share = min(int(at), len(rows) - 2), at - min(int(at), len(rows) - 2)
            line = down[:, low] * (1 - share) + down[:, low + 1] * share
            assert np.abs(line - true[:, row]).max() < 0.25 * maps.se.max()


def test_a_grid_of_many_cells_and_colors_stays_below_a_megabyte_and_a_half(client, jobs):
    small = jobs.explanation(finished(client, jobs)).maps(0)
    many = fills.parse("cube8,gray,#123,#456,#789,#abc,#def,#fed,#cba")
    noise = np.random.default_rng(0).normal(size=(len(many), 512, 512)).astype(np.float32)
    maps = replace(small, values=noise, se=np.abs(noise), fills=many, image=photo(512, 512))
    assert len(pack(maps, (32, 32), NullThreshold(1.0, noise + 1))) < 1_500_000


def test_one_kind_of_answer_does_not_wait_for_another_but_for_its_own():
    result_cache, begun, go = ResultCache(), threading.Event(), threading.Event()
    made = []

    def slow():
        begun.set()
        go.wait()
        return "reading"

    reader = threading.Thread(
        target=lambda: made.append(result_cache.get(("id", "reading", 1), 64, slow))
    )
    reader.start()
    begun.wait()
    assert result_cache.get(("id", "maps", 2), 64, lambda: "maps") == "maps"  # would wait for ever
    second = threading.Thread(
        target=lambda: made.append(result_cache.get(("id", "reading", 1), 64, lambda: "again"))
    )
    second.start()
    go.set()
    reader.join()
    second.join()
    assert made == ["reading", "reading"]


def test_an_older_answer_is_given_at_once_only_to_who_takes_it(monkeypatch):
    monkeypatch.setattr("mcrise.server.cache.STALE_SECONDS", 0.0)
    result_cache, begun, go = ResultCache(), threading.Event(), threading.Event()

    def slow():
        begun.set()
        go.wait()
        return "new"

    key = ("id", "maps", 0)
    assert result_cache.get(key, 64, lambda: "old") == "old"
    for _ in range(3):  # however many ask, it is made once
        assert result_cache.get(key, 128, slow, older=True) == "old"
    begun.wait()
    assert result_cache.coming == {key}
    go.set()
    assert result_cache.get(key, 128, lambda: "made again") == "new"
    assert result_cache.get(key, 192, lambda: "last") == "last"


def test_of_auto_no_time_left_is_told_since_nobody_knows_it(client, jobs):
    job = jobs.submit(
        JobRequest("planted", config=RunConfig(n_masks="auto", tolerance=0.01)), picture()
    )
    wait(lambda: job.n_masks >= 128)
    told = client.get(f"/api/jobs/{job.id}").json()
    assert told["state"] == "running"
    assert told["seconds_left"] is None
    assert told["tolerance"] == 0.01
    jobs.delete(job.id)


def test_the_same_picture_is_asked_of_another_model_under_the_same_masks(client, jobs):
    id = finished(client, jobs, mask_prob=0.3, seed=3, rows=4, columns=6)
    answer = client.post("/api/jobs", params={"like": id, "model": "planted"})
    other = answer.json()["id"]
    wait(lambda: jobs.get(other).state == "done")
    assert jobs.explanation(other).plan == jobs.explanation(id).plan
    assert jobs.explanation(other).n_masks == jobs.explanation(id).n_masks
    both = client.post("/api/jobs", params={"like": id, "seed": 4})
    assert both.status_code == 400
    assert "leave one out" in both.json()["detail"]


def test_two_models_differ_on_the_page_as_diff_says(tmp_path):
    """Under the same masks, whose noise both share: the maps of `mcrise diff` and its limit."""
    other = Model(PatchModel(slice(12, 20), slice(4, 12)), labels=PLANTED.labels, identity="other")
    with (
        closing(JobQueue(tmp_path / "data", {"planted": PLANTED, "other": other})) as jobs,
        TestClient(create_app(jobs), base_url="http://127.0.0.1:8700") as client,
    ):
        one = finished(client, jobs, mask_prob=0.3, model="planted")
        two = client.post("/api/jobs", params={"like": one, "model": "other"}).json()["id"]
        wait(lambda: jobs.get(two).state == "done")
        asked = {"target": 0, "less": two, "less_target": 0, "estimator": "centered"}
        told, values, se = unpacked(client.get(f"/api/jobs/{one}/maps", params=asked).content)
        expected = compare_runs(
            jobs.explanation(two), jobs.explanation(one), 0, "centered"
        ).comparison
        refused = client.get(f"/api/jobs/{one}/maps", params={**asked, "against": 1})
    maps = expected.difference.maps
    np.testing.assert_allclose(values, maps.values, atol=np.abs(maps.values).max() / 3e4)
    np.testing.assert_allclose(se, maps.se, atol=maps.se.max() / 3e4)
    assert told["limit"] == pytest.approx(expected.difference.limit)
    assert refused.status_code == 400


def test_summaries_tell_prediction_truth_and_mean_effects_and_leave_out_what_is_not_there(
    client, jobs
):
    id = finished(client, jobs, name="not_red/7.png", mask_prob=0.4)
    told = client.get(f"/api/summaries?ids={id},0123456789abcdef").json()
    assert list(told) == [id]
    summary, explanation = told[id], jobs.explanation(id)
    maps = explanation.maps(1, "centered")
    assert summary["truth"] == {"target": 1, "label": "not red"}
    assert summary["right"] == (explanation.resolve(None) == 1)
    effects = [fill["effect"] for fill in summary["fills"]]
    np.testing.assert_allclose(effects, maps.values.mean(axis=(1, 2)), atol=1e-6)
    np.testing.assert_allclose(np.mean(summary["maps"], axis=(1, 2)), effects, atol=1e-4)  # 24 x 32
    # As an audit of this image would have it: of energies that two halves of the masks agree on.
    presence, color = energies(*half_maps(explanation, 1))
    assert summary["color_share"] == pytest.approx(np.clip(color / (presence + color), 0, 1))


def test_classes_are_the_means_of_their_images_and_outliers_those_of_an_audit(client, jobs):
    """Of seven images of one class the one that was painted elsewhere is far from the others."""
    ids = [finished(client, jobs, name=f"not_red/{k}.png", mask_prob=0.4, seed=k) for k in range(7)]
    assert client.get("/api/overview").json()["classes"] == []  # of those that were summarized
    found = client.get("/api/summaries", params={"ids": ",".join(ids)}).json()
    odd = found[ids[3]]
    odd["maps"] = [[[-value for value in row] for row in one] for one in odd["maps"]]
    client.app.state.summaries.answers[ids[3], "summary"] = (128, 0.0, odd)
    answer = client.get("/api/overview").json()
    (one,) = answer["classes"]
    assert (one["label"], one["model"], one["n"]) == ("not red", "planted", 7)
    assert one["accuracy"] == np.mean([summary["right"] for summary in found.values()])
    effects = [summary["fills"][1]["effect"] for summary in found.values()]
    assert one["effects"]["blue"] == pytest.approx(np.mean(effects))
    maps = np.array([summary["maps"] for summary in found.values()])
    blue = maps[:, 1]
    np.testing.assert_allclose(answer["maps"]["blue"]["mean"], blue.mean(axis=0), atol=1e-5)
    times = stdtrit(6, 1 - 0.025 / (2 * 64))  # seven images; two colors of 64 places are tested
    noise = np.mean([summary["error"] ** 2 for summary in found.values()])  # of masks all share
    limit = times * np.sqrt(blue.var(axis=0, ddof=1) / 7 + noise)
    np.testing.assert_allclose(answer["maps"]["blue"]["limit"], limit, atol=1e-5)
    assert [(color["name"], color["n"]) for color in answer["colors"]] == [("red", 7), ("blue", 7)]
    noise = np.array([summary["error"] ** 2 for summary in found.values()])
    expected = dict(zip(found, distances(maps, noise), strict=True))
    assert answer["distances"] == pytest.approx(expected)
    assert max(expected, key=expected.get) == ids[3]
    other = client.get("/api/overview", params={"model": "other"}).json()
    assert (other["classes"], other["maps"], other["distances"]) == ([], None, {})
    jobs.delete(ids[0])
    jobs.delete(ids[1])
    few = client.get("/api/overview").json()  # five: too few to say what is usual
    assert (few["classes"][0]["n"], few["distances"]) == (5, {})


def test_the_error_of_a_summary_is_that_of_its_maps(client, jobs):
    """Twenty runs of other seeds scatter around their mean by about as much as each says."""
    ids = [finished(client, jobs, mask_prob=0.4, seed=k) for k in range(20)]
    found = client.get("/api/summaries", params={"ids": ",".join(ids)}).json().values()
    maps = np.array([summary["maps"] for summary in found])
    spread = np.sqrt(maps.var(axis=0, ddof=1).mean())
    errors = np.sqrt(np.mean([summary["error"] ** 2 for summary in found]))
    assert errors == pytest.approx(spread, rel=0.2)


def test_a_full_folder_answers_with_what_can_be_deleted(client, jobs):
    id = finished(client, jobs, name="old.png")
    jobs.quota.most_bytes = jobs.quota.n_bytes + 1
    answer = client.post("/api/jobs", content=picture())
    assert answer.status_code == 507
    assert "old.png" in answer.json()["detail"]
    storage = client.get("/api/info").json()["storage"]
    assert [one["id"] for one in storage["to_delete"]] == [id]
    assert storage["bytes"] == jobs.job_files.size(id) == storage["most_bytes"] - 1


def test_downloads_are_named_after_picture_model_and_class(client, jobs):
    id = finished(client, jobs, name="holidays/Käse & <b>.jpeg")
    named = {
        path: client.get(f"/api/jobs/{id}/{path}").headers["content-disposition"]
        for path in ("run.npz", "maps.png?target=1", "report.html?target=1")
    }
    assert [one.split("filename=")[1] for one in named.values()] == [
        '"Kase-b-planted.npz"',
        '"Kase-b-planted-not-red-maps.png"',
        '"Kase-b-planted-not-red-report.html"',
    ]


def test_a_picked_color_is_painted_as_it_is(client, jobs):
    id = finished(client, jobs)
    places = np.zeros((24, 32), np.uint8)
    places[4:12, 4:12] = 3  # beyond red and blue: the first of the paints
    path = f"/api/jobs/{id}/whatif?target=0&paints=%23800000"
    moved = client.post(path, content=places.tobytes()).json()["scores"][0]
    assert moved["after"] == pytest.approx(128 / 255, abs=1e-3)
    assert client.post(f"/api/jobs/{id}/whatif", content=places.tobytes()).status_code == 400


def test_no_color_at_all_is_refused_in_words(client):
    answer = client.post("/api/jobs", params={"colors": " , "}, content=picture())
    assert answer.status_code == 400
    assert "choose at least one" in answer.json()["detail"]


def test_findings_are_tested_on_request_and_then_known(client, jobs):
    id = finished(client, jobs, n_masks=512, mask_prob=0.5)
    untested = client.get(f"/api/jobs/{id}/findings?target=0").json()
    assert untested == {"target": 0, "label": HOSTILE, "tested": False}
    n_before = jobs.models.n_images
    tested = client.post(f"/api/jobs/{id}/trials?target=0").json()
    assert tested["tested"]
    assert tested["findings"][0]["claims"]
    assert 5 < jobs.models.n_images - n_before < 200
    n_before = jobs.models.n_images
    assert client.get(f"/api/jobs/{id}/findings?target=0").json() == tested
    assert client.post(f"/api/jobs/{id}/trials?target=0").json() == tested
    assert jobs.models.n_images == n_before
    jobs.explanation(id).trial_logs[0].finished = False  # as while they are being made
    assert client.get(f"/api/jobs/{id}/findings?target=0").json() == untested
    expected = mcrise.load(jobs.job_files.record_path(id)).findings_of(0)  # it was saved
    sentences = [found["sentence"] for found in tested["findings"]]
    assert sentences == [found.sentence for found in expected]


def test_of_a_wrong_answer_a_repaint_that_makes_it_right_is_searched_for(tmp_path):
    model = replace(PLANTED, labels=("red", "not red"))
    with (
        closing(JobQueue(tmp_path / "data", {"planted": model})) as jobs,
        TestClient(create_app(jobs), base_url="http://127.0.0.1:8700") as client,
    ):
        asked = {"n_masks": 512, "mask_prob": 0.5}
        wrong, right = (
            finished(client, jobs, name=f"{label}/1.png", **asked) for label in ("red", "not red")
        )
        truth, predicted = (
            client.get(f"/api/jobs/{wrong}/run").json()[k] for k in ("truth", "predicted")
        )
        assert (truth, predicted[0]["target"]) == (0, 1)
        corrected, as_it_is = (
            client.post(f"/api/jobs/{id}/trials").json() for id in (wrong, right)
        )
        known = client.get(f"/api/jobs/{wrong}/findings").json()
    assert re.match(r"Painting .* red .*, the model says 'red'\.$", corrected["correction"])
    assert known["correction"] == corrected["correction"]
    assert "correction" not in as_it_is


@pytest.mark.parametrize("estimator", mcrise.estimators.ESTIMATORS)
def test_maps_of_a_difference_are_the_records_to_a_thirty_thousandth(client, jobs, estimator):
    id = finished(client, jobs)
    asked = {"target": 0, "against": 1, "estimator": estimator}
    header, values, se = unpacked(client.get(f"/api/jobs/{id}/maps", params=asked).content)
    explanation = jobs.explanation(id)
    maps = explanation.maps(0, estimator, against=1)
    assert header["label"] == f"{HOSTILE} − not red"
    np.testing.assert_allclose(values, maps.values, rtol=0, atol=header["step"])
    np.testing.assert_allclose(se, maps.se, rtol=0, atol=header["se_step"])
    if estimator == "centered":  # linear in the scores
        difference = explanation.maps(0, estimator).values - explanation.maps(1, estimator).values
        np.testing.assert_allclose(values, difference, rtol=0, atol=header["step"])
        assert header["step"] * 32767 == pytest.approx(np.abs(difference).max(), rel=1e-4)


def unpacked(content):
    """The header, values and errors of packed maps, as `web_maps.pack` describes them."""
    length = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + length])
    n = int(np.prod(header["shape"]))
    values = np.frombuffer(content, "<i2", n, 4 + length).reshape(header["shape"])
    se = np.frombuffer(content, "<u2", n, 4 + length + 2 * n).reshape(header["shape"])
    return header, values * header["step"], se * header["se_step"]


def test_looking_never_calls_the_model_and_painting_calls_it_once(client, jobs):
    id = finished(client, jobs)
    before = jobs.models.n_images
    for path in ("maps", "maps?target=1", "maps?target=0&against=1&estimator=paper", "findings",
                 "run", "image.png", "maps.png", "report.html"):  # fmt: skip
        assert client.get(f"/api/jobs/{id}/{path}").status_code == 200, path
    assert jobs.models.n_images == before
    places = np.zeros((24, 32), np.uint8)
    places[:12] = 1  # red over the patch that the planted model looks at
    answer = client.post(f"/api/jobs/{id}/whatif", params={"target": 0}, content=places.tobytes())
    moved = answer.json()["scores"][0]
    assert moved["after"] > moved["before"] + 0.2
    assert jobs.models.n_images == before + 1


def test_what_a_brief_says_can_be_asked_and_is_a_briefs_default_where_it_is_not(client, jobs):
    answer = client.post("/api/jobs", content=picture())
    assert jobs.get(answer.json()["id"]).job_request == JobRequest("planted")
    asked = {"colors": "red,blue", "n_masks": "auto", "tolerance": 0.5, "max_masks": 128,
             "mask_prob": 0.3, "rows": 4, "columns": 6, "seed": 3, "batch_size": 16,
             "target": "not red"}  # fmt: skip
    answer = client.post("/api/jobs", params=asked, content=picture())
    job = jobs.get(answer.json()["id"])
    config = RunConfig("red,blue", (4, 6), 0.3, 3, "auto", 0.5, 128, "not red", 16)
    assert job.job_request == JobRequest("planted", "picture", config)
    wait(lambda: job.state == "done")
    explanation = mcrise.load(jobs.job_files.record_path(job.id))
    assert (explanation.n_masks, explanation.batch_size) == (128, 16)


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"n_masks": 0}, 400, "1 to 100,000 or auto"),
        ({"n_masks": 100_001}, 400, "1 to 100,000 or auto"),
        ({"max_masks": 100_001}, 422, "less than or equal to 100000"),
        ({"tolerance": 0}, 422, "greater than 0"),
        ({"batch_size": 33}, 400, "must divide a chunk"),
        ({"target": "stop"}, 400, "'stop' is not a label"),
        ({"target": "2"}, 400, "classes 0 to 1"),
    ],
)
def test_what_no_run_could_do_is_refused_before_it_is_queued(client, jobs, asked, status, words):
    answer = client.post("/api/jobs", params=asked, content=picture())
    assert answer.status_code == status
    assert words in str(answer.json()["detail"])
    assert jobs.all() == []


def test_painting_for_a_model_that_is_not_served_any_more_is_refused_in_words(client, jobs):
    id = finished(client, jobs)
    jobs.close()
    places = np.zeros((24, 32), np.uint8)
    with (
        closing(JobQueue(jobs.folder, {"other": PLANTED})) as again,
        TestClient(create_app(again), base_url="http://127.0.0.1:8700") as later,
    ):
        for path in ("run", "image.png", "maps", "findings"):  # what was found is still there
            assert later.get(f"/api/jobs/{id}/{path}").status_code == 200, path
        (first, _) = later.post(f"/api/jobs/{id}/whatif", content=places.tobytes()).json()["scores"]
        assert first["after"] == first["before"]  # known without asking
        places[:12] = 1
        answer = later.post(f"/api/jobs/{id}/whatif", content=places.tobytes())
    assert answer.status_code == 409
    assert "'planted' is not being served" in answer.json()["detail"]


def test_painting_is_refused_where_another_model_goes_by_the_name(client, jobs):
    id = finished(client, jobs)
    jobs.close()
    changed = Model(PatchModel(slice(0, 3), slice(0, 3)), labels=PLANTED.labels, identity="planted")
    with (
        closing(JobQueue(jobs.folder, {"planted": changed})) as again,
        TestClient(create_app(again), base_url="http://127.0.0.1:8700") as later,
    ):
        answer = later.post(f"/api/jobs/{id}/whatif", content=b"\x01" * (24 * 32))
    assert answer.status_code == 400
    assert "answers differently now" in answer.json()["detail"]


def test_bad_requests_are_refused_in_words(client, jobs):
    id = finished(client, jobs)
    for path, status, words in [
        ("/api/jobs/0123456789abcdef", 404, "no job"),
        (f"/api/jobs/{id}/maps?target=7", 400, "classes 0 to 1"),
        (f"/api/jobs/{id}/fills/9", 404, "2 fills"),
    ]:
        answer = client.get(path)
        assert answer.status_code == status
        assert words in answer.json()["detail"]
    assert client.post(f"/api/jobs/{id}/whatif", content=b"\x01\x02").status_code == 400
    full = b"\x09" * (24 * 32)
    assert client.post(f"/api/jobs/{id}/whatif", content=full).status_code == 400


def test_listing_many_jobs_looks_at_the_queue_once(client, jobs, monkeypatch):
    """Once a job made the list of 5,000 take a second."""
    for _ in range(5):
        jobs.submit(JobRequest("planted", config=RunConfig(n_masks=64)), picture())
    looked = []
    monkeypatch.setattr(
        JobQueue, "queue", lambda self, own=JobQueue.queue: looked.append(1) or own(self)
    )
    jobs.worker.join(0)
    before = len(looked)
    assert len(client.get("/api/jobs").json()) == 5
    assert len(looked) - before < 5  # the worker looks too


# ---- what it takes


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(MOST_BYTES), 413),
        (b"", 415),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415),
        (b"GIF89a", 415),
        (picture("PPM"), 201),
        (picture("TIFF"), 415),  # Pillow would read it; the page does not need it
        (picture(size=(2, 2)), 400),
        (picture()[:200], 400),
    ],
    ids=["too long", "nothing", "svg", "cut off", "ppm", "tiff", "tiny", "damaged"],
)
def test_uploads_are_limited_and_judged_by_content(client, content, status):
    answer = client.post("/api/jobs", params={"name": "stop.png"}, content=content)
    assert answer.status_code == status, answer.text


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_unpacked(client):
    buffer = io.BytesIO()
    Image.new("1", (8000, 8000)).save(buffer, "PNG")  # a few kB that unpack to 64 million pixels
    answer = client.post("/api/jobs", content=buffer.getvalue())
    assert answer.status_code == 413
    assert "pixels" in answer.json()["detail"]


def test_no_file_of_the_server_can_be_made_a_fill_or_a_model(client, tmp_path, monkeypatch):
    secret = tmp_path / "secret.png"
    secret.write_bytes(picture())
    opened = []
    monkeypatch.setattr(fills, "open_picture", opened.append)
    for colors in (f"red,picture:{secret}", f"picture:{secret}", f"red, picture:{secret} ",
                   "picture", "picture:"):  # fmt: skip
        answer = client.post("/api/jobs", params={"colors": colors}, content=picture())
        assert answer.status_code == 400
        assert "not read" in answer.json()["detail"]
    assert opened == []
    for model in (str(secret), "os:system", "demo", "../planted"):
        answer = client.post("/api/jobs", params={"model": model}, content=picture())
        assert answer.status_code == 404


@pytest.mark.parametrize(
    "colors",
    [
        "noise:9999999999999999999999",
        "hue:inf",
        "hue:nan",
        "auto:200",
        "blur:0",
        "nosuch",
        "red,red",
    ],
)
def test_fills_that_cannot_be_painted_are_refused_at_once(client, colors):
    assert client.post("/api/jobs", params={"colors": colors}, content=picture()).status_code == 400


def test_no_path_in_a_request_reaches_the_file_system(client, jobs, tmp_path):
    (jobs.folder.parent / "secret.npz").write_bytes(b"secret")
    (jobs.folder / "0123456789abcdef.npz").symlink_to(jobs.folder.parent / "secret.npz")
    for name in ("..%2fsecret", "%2e%2e%2fsecret", "%2e%2e", "/etc/passwd", "%2fetc%2fpasswd",
                 "a%00b", "0123456789abcdef", "secret"):  # fmt: skip
        for path in (f"/api/jobs/{name}/run.npz", f"/api/jobs/{name}/maps", f"/web/{name}",
                     f"/api/signs/{name}", "/web/%2e%2e/jobs.py"):  # fmt: skip
            answer = client.get(path)
            assert answer.status_code in (404, 422), path
            assert b"secret" not in answer.content.replace(name.encode(), b"")


# ---- whom it answers


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8700"},
        {"host": "127.0.0.1.evil.example"},
        {"host": ""},
        {"host": "192.168.0.7:8700"},  # an address of ours perhaps, but nobody asked for it
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_requests_under_another_name_or_from_another_page_are_refused(client, headers):
    for method, path in (("GET", "/"), ("GET", "/api/jobs"), ("POST", "/api/jobs?sign=stop")):
        assert client.request(method, path, headers=headers).status_code == 403


def test_the_page_itself_is_answered(client):
    own = {"origin": "http://127.0.0.1:8700"}
    assert client.post("/api/jobs?sign=stop&n_masks=64", headers=own).status_code == 201
    assert client.get("/", headers={"host": "localhost:8700"}).status_code == 200


def test_scripts_and_styles_come_from_this_server_alone(client):
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert not re.search(r"https?://|<script>|\son\w+=|style=", page.text)
    assert page.headers["x-content-type-options"] == "nosniff"


def test_with_a_host_a_token_is_needed(jobs):
    app = create_app(jobs, host="0.0.0.0", token="secret-token")
    with TestClient(app, base_url="http://192.168.0.7:8700") as client:
        assert client.get("/api/jobs").status_code == 401
        assert client.get("/api/jobs?token=wrong").status_code == 401
        bearer = {"authorization": "Bearer secret-token"}
        assert client.get("/api/jobs", headers=bearer).status_code == 200
        assert client.get("/", headers={"host": "evil.example", **bearer}).status_code == 403
        landed = client.get("/?token=secret-token")  # as printed; then a cookie does
        assert landed.status_code == 200
        assert "token" not in str(landed.url)
        assert client.get("/api/jobs").status_code == 200


def test_a_record_that_is_damaged_and_a_picture_that_is_gone_are_told_in_words(client, jobs):
    good, bad = finished(client, jobs), finished(client, jobs)
    jobs.job_files.record_path(bad).write_bytes(b"no record")
    jobs.job_files.held.clear()
    assert client.get("/api/summaries", params={"ids": f"{good},{bad}"}).json().keys() == {good}
    assert client.get(f"/api/jobs/{bad}/run").status_code == 400
    for id in (good, bad):
        jobs.job_files.upload_path(id).unlink()
    jobs.job_files.record_path(bad).unlink()
    jobs.job_files.views.clear()
    assert client.get(f"/api/jobs/{bad}/image.png").status_code == 404
    again = client.post("/api/jobs", params={"like": good})
    assert (again.status_code, "send it again" in again.text) == (404, True)


def test_generated_requests_find_no_server_error(jobs):
    # Of some operations there are not as many as their share: so more are asked for.
    assert generated_requests(create_app(jobs), 4 * N_REQUESTS // 3).total() >= N_REQUESTS


# ---- the command


def serve(folder, *options):
    """`mcrise serve` on a free port; returns the process and the address it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mcrise", "serve", "--port", "0", "--data", str(folder), *options],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    line = process.stdout.readline()
    return process, re.search(r"http://\S+", line).group()


def ask(address, path, method="GET"):
    request = urllib.request.Request(address + path, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def test_a_job_survives_kill_9_and_its_record_is_equal_to_the_bit(tmp_path):
    """The real model, the real command, and a checkpoint every few chunks."""
    n_masks = 384
    process, address = serve(tmp_path, "--save-every", "0.1")
    try:
        job = ask(address, f"api/jobs?sign=stop&n_masks={n_masks}", "POST")
        wait(lambda: (tmp_path / f"{job['id']}.npz").exists())
        state = ask(address, f"api/jobs/{job['id']}")
        assert state["state"] == "running"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        process.stdout.close()
    kept = mcrise.load(tmp_path / f"{job['id']}.npz").n_masks
    assert 0 < kept < n_masks
    process, address = serve(tmp_path)
    try:
        wait(lambda: ask(address, f"api/jobs/{job['id']}")["state"] == "done")
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
    model = mcrise.load_model("demo")
    undisturbed = mcrise.explain(sign_bytes(), model, n_masks=n_masks, trials=False)
    undisturbed.save(tmp_path / "undisturbed.npz")
    found = (tmp_path / f"{job['id']}.npz").read_bytes()
    assert found == (tmp_path / "undisturbed.npz").read_bytes()


@pytest.mark.slow
def test_a_model_that_gives_logits_is_served_with_softmax(tmp_path, monkeypatch):
    (tmp_path / "logits.py").write_text(
        "import numpy as np\n"
        "def model(images):\n"
        "    red = images[..., 0].mean((1, 2)) / 255\n"
        "    return np.stack([3 * red, -3 * red], axis=1)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    for options, state in (((), "failed"), (("--softmax",), "done")):
        folder = tmp_path / state
        process, address = serve(folder, "--model", "logits:model", *options)
        try:
            job = ask(address, "api/jobs?sign=stop&n_masks=64&colors=red,blue", "POST")
            path = f"api/jobs/{job['id']}"
            wait(lambda path=path, a=address: ask(a, path)["state"] in ("failed", "done"))
            found = ask(address, path)
        finally:
            process.terminate()
            process.wait(60)
            process.stdout.close()
        assert found["state"] == state, found["note"]
        assert ("--softmax" in found["note"]) == (state == "failed")
    scores = mcrise.load(folder / f"{job['id']}.npz").scores[0]
    assert scores.min() > 0
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-6)


def test_two_models_of_one_name_are_refused_with_both_named():
    with pytest.raises(mcrise.InputError, match=r"a/signs\.onnx and b/signs\.onnx .* 'signs'"):
        load_models(["a/signs.onnx", "b/signs.onnx"], {})


def test_it_listens_on_this_machine_alone_unless_a_host_is_given_and_then_prints_a_token(tmp_path):
    process, address = serve(tmp_path)
    port = address.rsplit(":", 1)[1].strip("/")
    try:
        bound = Path("/proc/net/tcp").read_text().upper()
        assert f"0100007F:{int(port):04X}" in bound
        assert f"00000000:{int(port):04X}" not in bound
        assert "token" not in address
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
    process, address = serve(tmp_path, "--host", "0.0.0.0")
    try:
        assert re.search(r"\?token=[\w-]{30,}", address)
    finally:
        process.terminate()
        rest = process.stdout.read()
        process.wait(60)
        process.stdout.close()
    assert "token" not in rest


def test_an_upload_that_breaks_off_is_no_fault_of_the_server():
    messages = [
        {"type": "http.request", "body": b"abc", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive():
        return messages.pop(0)

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(HTTPException, match="broke off"):  # an answer, and no traceback in the log
        asyncio.run(body_of(request, 1000))
    assert Incoming.n_bytes == 0


@pytest.mark.parametrize("name", ["audit.json", "figures.json"])
@pytest.mark.parametrize("kind", ["missing", "folder", "loop", "pipe", "large"])
def test_an_audit_whose_files_are_gone_while_it_is_served_is_told_in_words(
    jobs, tmp_path, name, kind
):
    audit = tmp_path / "audit"
    audit.mkdir()
    for other in ("audit.json", "figures.json"):
        (audit / other).write_text("{}")
    file = audit / name
    if kind == "large":
        os.truncate(file, 5 * 10**9)  # takes no room on the disk
    else:
        file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind == "loop":
        file.symlink_to(file)
    elif kind == "pipe":
        os.mkfifo(file)
    app = create_app(jobs, audit=Storage(str(audit)))
    with TestClient(app, base_url="http://127.0.0.1:8700") as client:
        answers = [client.get(path) for path in ("/audit.html", "/api/audit")]
    for answer in answers:
        assert answer.status_code == (400 if kind == "large" else 404)
        assert name in answer.json()["detail"]


def test_a_run_of_an_audit_that_is_too_large_is_refused_before_it_is_read(jobs, tmp_path):
    file = tmp_path / "audit" / "runs" / "000003.npz"
    file.parent.mkdir(parents=True)
    with file.open("wb") as opened:
        opened.truncate(5 * 10**9)  # takes no room on the disk
    app = create_app(jobs, audit=Storage(str(tmp_path / "audit")))
    tracemalloc.start()
    try:
        with TestClient(app, base_url="http://127.0.0.1:8700") as client:
            answer = client.get("/audit/3")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.status_code == 400
    assert "takes 5 GB, but the page opens at most 1 GB" in answer.json()["detail"]
    assert most < 100e6


def other_frame(tmp_path):
    """Two models of one picture: one gets all of it, the other its middle."""
    cut = Model(
        PatchModel(slice(8, 16), slice(8, 16)), Geometry((24, 24), 24), labels=("red", "no")
    )
    whole = replace(PLANTED, labels=("red", "yes"))
    return closing(JobQueue(tmp_path / "data", {"planted": whole, "cut": cut}))


def test_maps_of_other_places_or_classes_are_not_subtracted(tmp_path):
    with (
        other_frame(tmp_path) as jobs,
        TestClient(create_app(jobs), base_url="http://127.0.0.1:8700") as client,
    ):
        one = finished(client, jobs, model="planted", mask_prob=0.4)
        two = finished(client, jobs, model="cut", mask_prob=0.4)
        asked = {"target": 0, "less": two, "less_target": 0}
        places = client.get(f"/api/jobs/{one}/maps", params=asked)
        classes = client.get(f"/api/jobs/{one}/maps", params={**asked, "less_target": 1})
        frames = [client.get(f"/api/jobs/{id}/run").json() for id in (one, two)]
        photo = client.get(f"/api/jobs/{two}/photo.jpg")
    assert places.status_code == classes.status_code == 400
    assert "rows 0 to 24 and columns 4 to 28 of 24 x 32 pixels" in places.json()["detail"]
    assert "'red' and B about 'no'" in classes.json()["detail"]
    assert frames[0]["picture"] == frames[1]["picture"]
    assert [frame["box"] for frame in frames] == [[0, 0, 24, 32], [0, 4, 24, 28]]
    assert Image.open(io.BytesIO(photo.content)).size == (32, 24)  # all of it


def test_a_difference_says_what_differs_most_or_that_nothing_does(tmp_path):
    other = Model(PatchModel(slice(12, 20), slice(20, 30)), labels=PLANTED.labels, identity="other")
    with (
        closing(JobQueue(tmp_path / "data", {"planted": PLANTED, "other": other})) as jobs,
        TestClient(create_app(jobs), base_url="http://127.0.0.1:8700") as client,
    ):
        one = finished(client, jobs, mask_prob=0.4, model="planted", n_masks=512)
        same = finished(client, jobs, mask_prob=0.4, model="planted", n_masks=512, seed=1)
        two = finished(client, jobs, mask_prob=0.4, model="other", n_masks=512)
        said = []
        for id in (same, two):
            asked = {"target": 0, "less": id, "less_target": 0}
            said.append(unpacked(client.get(f"/api/jobs/{one}/maps", params=asked).content)[0])
        pictures = [
            client.get(f"/api/jobs/{one}/maps.png", params=given)
            for given in ({"target": 0}, {"target": 0, "less": two, "less_target": 0})
        ]
        report = client.get(
            f"/api/jobs/{one}/report.html", params={"target": 0, "less": two, "less_target": 0}
        )
        maps = jobs.explanation(one).maps(0)
    assert said[0]["sentence"].startswith("No significant difference between A and B")
    assert said[1]["sentence"].startswith("The largest difference is at the ")
    assert re.search(
        r"by −0\.\d+ for A \(planted\) and by .* for B \(other\)\.$", said[1]["sentence"]
    )
    assert said[1]["strongest"] in maps.names
    heights = [Image.open(io.BytesIO(picture.content)).height for picture in pictures]
    assert heights[1] > 2 * heights[0]  # A, B and A - B
    assert report.text.count("<article") == 2


def test_findings_so_far_leave_the_run_as_it_was(client, jobs):
    id = finished(client, jobs, n_masks=512, mask_prob=0.5)
    before = jobs.job_files.record_path(id).read_bytes()
    so_far = client.post(f"/api/jobs/{id}/trials?target=0&keep=false").json()
    assert so_far["findings"][0]["shots"]
    assert client.get(f"/api/jobs/{id}/findings?target=0").json()["tested"] is False
    assert jobs.job_files.record_path(id).read_bytes() == before
    kept = client.post(f"/api/jobs/{id}/trials?target=0").json()
    assert kept == so_far  # of as many masks
    assert jobs.job_files.record_path(id).read_bytes() != before  # these are kept


def test_trials_are_of_all_masks_that_a_run_has_when_they_begin(client, jobs, monkeypatch):
    id = finished(client, jobs, n_masks=64, mask_prob=0.5)
    call = jobs.call

    def after_more_masks(name, function):
        jobs.more(id, 64)
        while jobs.get(id).n_masks < 128 or jobs.get(id).state != "done":
            time.sleep(0.01)
        return call(name, function)

    monkeypatch.setattr(jobs, "call", after_more_masks)
    client.post(f"/api/jobs/{id}/trials?target=0")
    assert jobs.explanation(id).trial_logs[0].n_masks == 128
