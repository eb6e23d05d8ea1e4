"""Attacks that once succeeded, by the command, its server and what `import mcrise` gives alone.

Nothing here knows what is inside, so that `attacks/before.py` can run the same tests on an earlier
version and tell which of these defects it has; `defect` is the number under which it was found.
"""

import http.client
import io
import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

import mcrise
from attacking import MCRISE, Server, command, in_words, many_scans, serving

MODEL = """
import numpy as np
from mcrise.images import Geometry
from mcrise.models.model import Model
def predict(images):
    red = images[:, :8, :8, {channel}].mean((1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)
model = Model(predict, Geometry(({side}, {side})))
"""
PLANTED = ("--model", "planted:model")
defect = pytest.mark.defect


def planted_file(tmp_path, channel=0, side=24):
    """The folder of a module `planted`, whose model looks at one channel."""
    folder = tmp_path / "code"
    folder.mkdir(exist_ok=True)
    (folder / "planted.py").write_text(MODEL.format(channel=channel, side=side))
    return folder


def png(size, mode="RGB", kind="PNG", **options):
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, kind, **options)
    return buffer.getvalue()


# ---- the list of jobs


@contextmanager
def locked(folder):
    """The list of jobs, held by another program."""
    with closing(sqlite3.connect(folder / "jobs.sqlite", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


@defect(1)
def test_what_cannot_be_written_down_is_refused_in_words_and_leaves_nothing_behind(tmp_path):
    with serving(tmp_path) as server:
        with locked(tmp_path):
            status, refused = server.ask("api/jobs?sign=stop&n_masks=64", "POST")
            worker = server.ask("api/info")[1].get("worker", {})
        found = {
            "status": status,
            "in words": "locked" in str(refused),
            "uploads": len(list(tmp_path.glob("*.upload"))),
            "told": "locked" in worker.get("trouble", ""),
        }
        assert found == {"status": 503, "in words": True, "uploads": 0, "told": True}


@pytest.mark.slow
@defect(1)
def test_jobs_end_and_the_model_answers_after_the_list_of_jobs_was_locked(tmp_path):
    with serving(tmp_path) as server:
        first, second = server.submit(), server.submit()
        with locked(tmp_path):
            server.wait(first)
            time.sleep(6)  # SQLite itself waits for five
        for id in (first, second):
            assert server.wait(id, seconds=30)["state"] == "done"
        size = server.ask(f"api/jobs/{first}/run")[1]["size"]
        painted = b"\x01" * (size[0] * size[1])
        assert server.ask(f"api/jobs/{first}/whatif", "POST", painted, seconds=30)[0] == 200
        well = {"alive": True, "trouble": ""}
        wait_for(lambda: server.ask("api/info")[1]["worker"] == well)  # it looks now and then


@pytest.mark.slow
@defect(1)
def test_after_a_full_disk_jobs_are_done_again_and_what_failed_has_a_sentence(tmp_path):
    """A disk on which no file can have a second byte, as the limit of a file's size has it."""
    with serving(tmp_path, "--save-every", 0, *PLANTED, path=planted_file(tmp_path)) as server:
        first = server.submit("n_masks=640&mask_prob=0.5&colors=red", png((32, 32)))
        limit = resource.RLIMIT_FSIZE
        before = resource.prlimit(server.process.pid, limit, (1, resource.RLIM_INFINITY))
        time.sleep(3)
        refused = server.ask("api/jobs?n_masks=64", "POST", png((32, 32)))
        resource.prlimit(server.process.pid, limit, before)
        second = server.submit("n_masks=64&mask_prob=0.5&colors=red", png((32, 32)))
        assert server.wait(second, seconds=20)["state"] == "done"
        ended = server.wait(first, seconds=20)
        assert ended["state"] == "done" or "cannot be written" in ended["note"]
        assert refused[0] == 503


# ---- whose scores


@pytest.mark.slow
@defect(2)
def test_after_a_restart_no_answer_mixes_two_models_and_pictures_stay_as_they_were(tmp_path):
    folder, body = tmp_path / "data", png((32, 32))
    with serving(folder, *PLANTED, path=planted_file(tmp_path)) as server:
        job = server.submit("n_masks=64&colors=red,blue&mask_prob=0.5", body)
        server.wait(job)
        before = server.ask(f"api/jobs/{job}/image.png")[1]
    painted = b"\x01" * 24 * 24
    with serving(folder, *PLANTED, path=planted_file(tmp_path, 1, 32)) as server:
        same_picture = server.ask(f"api/jobs/{job}/image.png")[1] == before
    with serving(folder, *PLANTED, path=planted_file(tmp_path, 1, 24)) as server:
        other = server.ask(f"api/jobs/{job}/whatif", "POST", painted)
    with serving(folder) as server:
        gone = server.ask(f"api/jobs/{job}/whatif", "POST", painted)
    found = {"the same picture": same_picture, "another model": other[0], "no model": gone[0]}
    assert found == {"the same picture": True, "another model": 400, "no model": 409}
    assert "another model" in other[1]["detail"]
    assert "not being served" in gone[1]["detail"]


# ---- taking home


@pytest.mark.slow
@defect(13)
def test_a_record_taken_home_while_its_job_runs_is_whole(tmp_path):
    """Replaced every few milliseconds, with several who read it."""

    def take_home(_):
        status, content = server.ask(f"api/jobs/{job}/run.npz")
        assert status == 200
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert archive.testzip() is None
        return len(content)

    with serving(tmp_path, "--save-every", 0, *PLANTED, path=planted_file(tmp_path)) as server:
        job = server.submit("n_masks=100000&mask_prob=0.5&colors=red", png((32, 32)))
        server.wait(job, states=("running",))
        while not (tmp_path / f"{job}.npz").exists():
            time.sleep(0.01)
        with ThreadPoolExecutor(4) as pool:
            sizes = set(pool.map(take_home, range(400)))
        assert len(sizes) > 5  # it grew meanwhile


@pytest.mark.slow
@defect(13)
def test_a_record_that_is_deleted_while_it_is_taken_home_arrives_whole(tmp_path):
    """More of it than what lies on its way at once, and nobody reads until it is deleted."""
    with serving(tmp_path, *PLANTED, path=planted_file(tmp_path, side=1000)) as server:
        job = server.submit("n_masks=64&mask_prob=0.5&colors=red", png((1000, 1000)))
        server.wait(job)
        request = urllib.request.Request(f"{server.address}api/jobs/{job}/run.npz")
        with urllib.request.urlopen(request, timeout=30) as answer:
            start = answer.read(1000)
            assert server.ask(f"api/jobs/{job}", "DELETE")[0] == 204
            content = start + answer.read()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert archive.testzip() is None


@pytest.mark.slow
@defect(13)
def test_nobody_comes_round_the_limit_of_the_queue_by_pausing(tmp_path):
    with serving(tmp_path, *PLANTED, path=planted_file(tmp_path)) as server:
        query = "n_masks=100000&mask_prob=0.5&colors=red"
        jobs = [server.submit(query, png((32, 32)))]
        server.wait(jobs[0], states=("running",))
        while (answer := server.ask(f"api/jobs?{query}", "POST", png((32, 32))))[0] == 201:
            jobs.append(answer[1]["id"])
        assert answer[0] == 429
        assert server.ask(f"api/jobs/{jobs[-1]}/actions/pause", "POST")[0] == 200
        server.submit(query, png((32, 32)))
        assert server.ask(f"api/jobs/{jobs[-1]}/actions/resume", "POST")[0] == 429


@defect(13)
def test_the_storage_of_jobs_has_a_limit_that_the_server_reports(tmp_path):
    with serving(tmp_path, "--keep-gb", 1) as server:
        storage = server.ask("api/info")[1]["storage"]
        assert storage == {"bytes": 0, "most_bytes": 10**9, "to_delete": []}


# ---- whose folder


@pytest.mark.slow
@defect(7)
def test_a_folder_has_one_server_until_it_ends_by_a_kill_too(tmp_path):
    first = Server(tmp_path)
    try:
        second = command("serve", "--port", 0, "--data", tmp_path, seconds=30)
        assert in_words(second)
        assert f"process {first.process.pid}" in second.stderr
    finally:
        first.end("kill")
    with serving(tmp_path) as third:
        assert third.ask("api/info")[0] == 200


# ---- uploads


@pytest.mark.slow
@defect(5)
def test_a_small_file_that_unpacks_to_much_costs_the_server_no_memory(tmp_path):
    body = png((6300, 6300))
    assert len(body) < 200_000
    with serving(tmp_path) as server:
        server.wait(server.submit())  # warm
        before = server.memory()
        assert server.ask("api/jobs?n_masks=64", "POST", body)[0] == 201
        assert server.memory() - before < 100e6


@defect(5)
def test_what_takes_long_to_paint_is_refused_before_it_is_tried(tmp_path):
    with serving(tmp_path) as server:
        for colors in ("blur:999", ",".join(f"blur:{90 + n}" for n in range(10))):
            status, said = server.ask(f"api/jobs?sign=stop&colors={colors}", "POST")
            assert status == 400
            assert "blur" in said["detail"].lower()


@pytest.mark.slow
@defect(5)
def test_nothing_is_unpacked_for_somebody_who_has_left(tmp_path):
    """A JPEG that takes long; the processor is at rest again soon after its sender has gone."""
    body = many_scans(1000, 5000, noise=False)
    with serving(tmp_path) as server:
        server.wait(server.submit())  # warm
        port = int(server.address.strip("/").rpartition(":")[2])
        head = (
            f"POST /api/jobs?n_masks=64 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}"
        )
        with socket.create_connection(("127.0.0.1", port), timeout=30) as sender:
            sender.sendall(head.encode() + b"\r\n\r\n" + body)
            wait_for(lambda: busy(server))
        wait_for(lambda: not busy(server), seconds=8)


def busy(server, seconds=0.5):
    """Whether a server and what it has started use the processor."""
    before = server.ticks()
    time.sleep(seconds)
    return server.ticks() - before > 0.2 * seconds * os.sysconf("SC_CLK_TCK")


@defect(13)
def test_a_picture_of_far_too_many_pixels_is_called_that(tmp_path):
    body = bytearray(png((8, 8), kind="JPEG"))
    at = body.index(b"\xff\xc0") + 5
    body[at : at + 4] = (65_500).to_bytes(2, "big") * 2
    with serving(tmp_path) as server:
        status, said = server.ask("api/jobs", "POST", bytes(body))
    assert status == 413
    assert "pixels" in said["detail"]


# ---- tokens and connections


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


def answer(address, path, method="GET", **headers):
    """Status, place it sends to, and cookie of an answer, as it comes."""
    request = urllib.request.Request(address + path, method=method, headers=headers)
    opener = urllib.request.build_opener(NoRedirect)
    try:
        with opener.open(request, timeout=30) as got:
            return got.status, got.headers.get("location"), got.headers.get("set-cookie")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("location"), error.headers.get("set-cookie")


@defect(11)
def test_a_token_is_kept_only_where_it_is_right_and_sends_nobody_elsewhere(tmp_path):
    with serving(tmp_path, "--host", "127.0.0.1") as server:
        address, token = server.address.rstrip("/"), server.token
        status, place, cookie = answer(address, f"/?token={token}")
        assert (status, place) == (303, "/")
        kept = {"cookie": cookie.partition(";")[0]}
        port = address.rpartition(":")[2]
        found = {  # all ports of a host share their cookies
            "its port is in the cookie": port in kept["cookie"].partition("=")[0],
            "wrong beside good": answer(address, "/?token=wrong", **kept)[::2],
            "sent elsewhere": answer(address, f"//evil.example/..?token={token}")[1],
            "posted": answer(address, f"/api/jobs?sign=stop&token={token}", "POST")[0],
            "no UTF-8": answer(address, "/?token=%ff%fe")[0],
            "no ASCII": answer(address, "/?token=%F0%9F%92%A9")[0],
            "odd cookie": answer(address, "/", cookie="mcrise_token=\xe9")[0],
            "odd header": answer(address, "/", authorization="Bearer \xe9")[0],
            "odd origin": answer(address, "/", origin="http://[")[0],
        }
    assert found == {
        "its port is in the cookie": True,
        "wrong beside good": (200, None),
        "sent elsewhere": None,
        "posted": 201,
        "no UTF-8": 401,
        "no ASCII": 401,
        "odd cookie": 401,
        "odd header": 401,
        "odd origin": 403,
    }


@pytest.mark.slow
@defect(11)
def test_half_requests_do_not_make_the_server_deaf_nor_fill_its_log(tmp_path):
    with ExitStack() as stack:
        server = stack.enter_context(serving(tmp_path, files=128))
        port = int(server.address.strip("/").rpartition(":")[2])
        for _ in range(300):
            half = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            half.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1")
        answered = []
        for _ in range(3):
            try:
                answered.append(server.ask("api/info", seconds=5)[0])
            except OSError:
                answered.append("deaf")
            time.sleep(0.5)
        found = {"answered": answered, "log below 10 kB": len(server.end("kill")) < 10_000}
        assert found == {"answered": [200, 200, 200], "log below 10 kB": True}


# ---- scores


def explained(scores_of, **options):
    def model(images):
        return scores_of(images[:, :8, :8, 0].mean((1, 2)) / 255)

    image = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    given = {"n_masks": 512, "mask_prob": 0.5, "fills": "red,blue", **options}
    return mcrise.explain(image, model, **given)


@defect(4)
@pytest.mark.parametrize(
    ("scores_of", "options"),
    [
        (lambda red: np.stack([1 + 0.009 * red, -0.009 * red], axis=1), {}),
        (lambda red: np.stack([1 + 0.009 * red, 0 * red], axis=1), {}),
        (lambda red: 1 + 0.009 * red[:, None], {"score_kind": "independent"}),
        (lambda red: np.stack([1e-40 * red, 1 - 0 * red], axis=1), {}),
        (lambda red: np.stack([1e15 * red, -1e15 * red], axis=1), {"score_kind": "any"}),
        (lambda red: np.stack([1e-30 * red, 0 * red], axis=1), {"score_kind": "any"}),
    ],
    ids=["outside 0..1", "one above 1", "all above 1", "denormal", "huge", "tiny"],
)
def test_any_accepted_scores_give_maps(scores_of, options):
    explanation = explained(scores_of, **options)
    for target in range(explanation.n_classes):
        maps = explanation.maps(target)
        assert np.isfinite(maps.values).all()
        assert np.isfinite(maps.se).all()


UNITS = """
import numpy as np
from mcrise.images import Geometry
from mcrise.models.model import Model
def of(unit):
    def predict(images):
        return unit * images[:, :8, :8, 0].mean((1, 2))[:, None] / 255
    return Model(predict, Geometry((24, 24)), kind="any")
usual, tiny = of(1.0), of(1e-9)
"""


@defect(12)
def test_what_is_read_does_not_depend_on_the_unit_of_scores_that_may_be_anything(tmp_path):
    (tmp_path / "units.py").write_text(UNITS)
    models = ("units:usual", "units:tiny")
    options = [word for model in models for word in ("--model", model)]
    found = []
    with serving(tmp_path / "data", *options, path=tmp_path) as server:
        for model in models:
            query = f"model={model}&n_masks=512&mask_prob=0.5&colors=red,blue"
            job = server.submit(query, png((24, 24)))
            server.wait(job)
            found.append(len(server.ask(f"api/jobs/{job}/trials", "POST")[1]["findings"]))
    assert found[0] == found[1] > 0


@defect(12)
def test_scores_that_cannot_be_reckoned_with_are_refused_in_words():
    with pytest.raises(mcrise.ModelError, match=r"range from .* clip"):
        explained(lambda red: 3e38 * red[:, None].astype(np.float32), score_kind="any")


# ---- records


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("record") / "run.npz"
    explained(lambda red: np.stack([red, 1 - red], axis=1), labels=["a", "b"]).save(path)
    return path


def other(saved, path, **fields):
    """A copy of a record with other arrays, or other fields of what it says of itself."""
    with np.load(saved) as arrays:
        content = dict(arrays)
    meta = json.loads(content["meta"].tobytes())
    for name, value in fields.items():
        if name in content:
            content[name] = value
        elif name in meta["plan"]:
            meta["plan"][name] = value
        else:
            meta[name] = value
    content["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(path, **content)
    return path


@defect(8)
@pytest.mark.parametrize(
    "fields",
    [
        {"labels": [1, 2]},
        {"labels": ["a", "\ud800"]},
        {"view_notes": [1]},
        {"view_notes": "abc"},
        {"verdict": ["a"]},
        {"model": 1},
        {"jitter": "much"},
        {"batch_size": 2.5},
        {"batch_size": 10**400},
        {"seed": 1.0},
        {"fills": [{"kind": "solid", "rgb": [1, 2, 3], "label": 5}] * 2},
        {"fills": [{"kind": ["a"]}, {"kind": "gray"}]},
        {"fills": [{"kind": "blur", "sigma": "wide"}, {"kind": "gray"}]},
        {"untouched": np.array(["a", "b"])},
        {"untouched": np.array([7.0, -6.0], np.float32)},
        {"scores": np.full((8, 64, 2), 9, np.float32)},
        {"image": np.full((24, 32, 3), 7, np.float32)},
        {"chunks": np.zeros(8, np.int64)},
        {"checksums": np.zeros((8, 1), np.float64)},
        {"labels": json.loads("[" * 900 + "]" * 900)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_record_whose_fields_are_of_another_type_or_range_is_refused(saved, tmp_path, fields):
    with pytest.raises(mcrise.ExplanationError):
        mcrise.load(other(saved, tmp_path / "run.npz", **fields))


LOAD = "import sys, mcrise\ntry: mcrise.load(sys.argv[1])\nexcept mcrise.McriseError: print('ours')"


@defect(8)
def test_what_is_no_file_is_not_read_as_a_record(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    for path in (tmp_path / "pipe.npz", "/dev/zero"):
        done = subprocess.run(
            [sys.executable, "-c", LOAD, path], capture_output=True, text=True, timeout=20,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31)),
        )  # fmt: skip
        assert done.stdout == "ours\n", done.stderr


@defect(8)
def test_a_record_takes_no_more_memory_than_it_has_bytes(saved, tmp_path):
    with np.load(saved) as arrays:
        np.savez_compressed(tmp_path / "run.npz", **{**arrays, "extra": np.zeros(10**8, np.uint8)})
    with pytest.raises(mcrise.ExplanationError, match="compressed"):
        mcrise.load(tmp_path / "run.npz")


def test_a_setting_that_nobody_knows_is_named_and_not_a_traceback(saved, tmp_path):
    origin = {"name": "demo.onnx", "digest": "0", "settings": {"sparkle": 1}}
    other(saved, tmp_path / "run.npz", origin=origin)
    done = command("measure", tmp_path, "--model", "demo")
    assert in_words(done), done.stderr
    assert "sparkle" in done.stderr


# ---- studies


SLOW = """
import os, time
import numpy as np
def model(images):
    time.sleep(float(os.environ.get("SECONDS", "0")))
    with open("asked", "a") as file:
        file.write("x")
    red = images[:, :8, :8, 0].mean((1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)
"""
QUICK = ("--methods", "rise,random", "--n-masks", 64, "--step", 0.2, "--workers", 1, "--quiet")


@pytest.fixture
def photos(tmp_path):
    """A folder with images and, beside them, a model."""
    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(3):
        pixels = np.random.default_rng(n).integers(0, 256, (24, 32, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{n}.png")
    (tmp_path / "slow.py").write_text(SLOW)
    return folder


def start_study(cwd, *options, seconds=0.0):
    return subprocess.Popen(
        [*MCRISE, "study", "images", "--model", "slow:model", "--out", "out", *map(str, QUICK),
         *map(str, options)],
        cwd=cwd, env={**os.environ, "SECONDS": str(seconds)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for(condition, seconds=120):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.mark.slow
@defect(7)
def test_two_drivers_of_one_study_do_not_mix_their_tables(tmp_path, photos):
    first = start_study(tmp_path, seconds=0.5)
    try:
        wait_for(lambda: (tmp_path / "out" / "study.json").exists())
        second = start_study(tmp_path, "--seed", 1, "--overwrite")
        _, said = second.communicate(timeout=120)
        assert second.returncode == 2
        assert f"process {first.pid}" in said
        # All of it removed and begun anew under its hands: the first one stops.
        shutil.rmtree(tmp_path / "out")
        third = start_study(tmp_path, "--seed", 1)
        assert third.wait(120) == 0, third.stderr.read()
        _, said = first.communicate(timeout=120)
        assert first.returncode == 1
        assert "not this one's any more" in said
        third.communicate()
    finally:
        first.kill()
    files = [*(tmp_path / "out" / "images").iterdir()]
    assert {row["seed"] for file in files for row in json.loads(file.read_text())["rows"]} == {1}


@pytest.mark.slow
@defect(7)
def test_a_study_whose_driver_was_killed_is_free_again(tmp_path, photos):
    first = start_study(tmp_path, seconds=0.5)
    wait_for(lambda: (tmp_path / "out" / "study.json").exists())
    first.kill()
    first.communicate()
    second = start_study(tmp_path)
    _, said = second.communicate(timeout=120)
    assert second.returncode == 0, said


@pytest.mark.slow
@defect(3)
@pytest.mark.parametrize("name", ["onnxruntime", "socket"])
def test_a_file_beside_the_images_is_not_taken_for_a_module(tmp_path, photos, name):
    """Images come from anywhere, and code may lie among them."""
    (photos / f"{name}.py").write_text("open('ran', 'w').close()\nraise SystemExit\n")
    module, function = entry_point(Path(mcrise.__file__).parents[1])
    words = ["study", ".", "--model", "demo", "--images", "1", "--methods", "random", "--step",
             "0.5", "--workers", "1", "--out", tmp_path / "out"]  # fmt: skip
    done = subprocess.run(  # as the installed script, which does not look in the current folder
        [sys.executable, "-P", "-c", f"from {module} import {function}; {function}()", *words],
        cwd=photos, capture_output=True, text=True,
    )  # fmt: skip
    assert not (photos / "ran").exists()
    assert done.returncode == 0, done.stderr


@defect(6)
def test_a_study_takes_a_model_that_says_how_it_wants_its_images(tmp_path, photos):
    planted_file(tmp_path)
    done = command("study", "../images", "--model", "planted:model", "--out", "out", *QUICK,
                   "--images", 1, cwd=tmp_path / "code")  # fmt: skip
    assert done.returncode == 0, done.stderr


def rows_of(tmp_path):
    table = (tmp_path / "out" / "summary.csv").read_text()
    return table, (tmp_path / "out" / "summary.md").read_text()


@pytest.mark.slow
@defect(10)
def test_an_image_that_was_replaced_after_its_row_is_done_again(tmp_path, photos):
    start_study(tmp_path).communicate(timeout=120)
    before, _ = rows_of(tmp_path)
    Image.fromarray(np.full((24, 32, 3), 200, np.uint8)).save(photos / "1.png")
    start_study(tmp_path).communicate(timeout=120)
    after, said = rows_of(tmp_path)
    assert after != before
    assert "replaced" in said
    shutil.rmtree(tmp_path / "out")
    start_study(tmp_path).communicate(timeout=120)
    assert rows_of(tmp_path)[0] == after  # as if it had always been so


@pytest.mark.slow
@defect(10)
def test_rows_of_a_model_that_answers_at_random_are_not_mixed(tmp_path, photos):
    (tmp_path / "slow.py").write_text(
        "import numpy as np\n"
        "def model(images):\n"
        "    red = np.random.default_rng().random(len(images))\n"
        "    return np.stack([red, 1 - red], axis=1)\n"
    )
    start_study(tmp_path).communicate(timeout=120)
    (tmp_path / "out" / "images" / "000002.json").unlink()
    again = start_study(tmp_path)
    _, said = again.communicate(timeout=120)
    assert again.returncode == 2
    assert "at random" in said


EMBED = """
import numpy as np
def embed(images):
    channel = int(open("weights.txt").read())
    return images.mean((1, 2))[:, [channel]] / 255 + 0.01
"""


@pytest.mark.slow
@defect(10)
def test_what_a_callable_said_before_is_not_what_it_says_now(tmp_path):
    """The nearest by red, then by blue: the same function with other weights.

    By the blue of the query and the red of the gallery, it would still be the first.
    """
    (tmp_path / "gallery").mkdir()
    for name, color in (("query.png", (200, 0, 180)), ("gallery/a.png", (190, 0, 50)),
                        ("gallery/b.png", (20, 0, 170))):  # fmt: skip
        Image.new("RGB", (32, 32), color).save(tmp_path / name)
    found = []
    (tmp_path / "embedding.py").write_text(EMBED)
    for channel in ("0", "2"):
        (tmp_path / "weights.txt").write_text(channel)
        done = command("match", "query.png", "gallery", "--model", "embedding:embed", "--n-masks",
                       64, "--overwrite", cwd=tmp_path,
                       env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")})  # fmt: skip
        found += [name for name in ("a.png", "b.png") if name in done.stdout]
    assert found == ["a.png", "b.png"]


# ---- ends


@defect(9)
def test_sigterm_saves_as_ctrl_c_does(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "stop.png").write_bytes(png((32, 32)))
    words = ["explain", "stop.png", "--model", "slow:model", "--n-masks", "640",
             "--mask-prob", "0.5", "--save-every", "1000"]  # fmt: skip
    process = subprocess.Popen(
        [*MCRISE, *words], cwd=tmp_path, env={**os.environ, "SECONDS": "0.3"}, text=True,
        stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    asked = tmp_path / "asked"
    wait_for(lambda: asked.exists() and asked.stat().st_size > 6)  # and no record is on disk yet
    process.terminate()
    _, said = process.communicate(timeout=120)
    assert "Traceback" not in said
    assert "saved" in said
    assert process.returncode == 143
    assert 0 < mcrise.load(tmp_path / "stop.png.mcrise").n_masks < 640


@defect(9)
def test_a_report_is_written_whole_or_the_old_one_stays(saved, tmp_path):
    """A disk that is full after 20 kB, as the limit of a file's size has it."""
    out = tmp_path / "report.html"
    out.write_text("the old one")
    done = command(
        "report", saved, "-o", out,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode in (1, 2)
    assert out.read_text() == "the old one"


# ---- sentences


def gtsrb(folder, table):
    (folder / "GTSRB" / "Final_Test" / "Images").mkdir(parents=True)
    (folder / "GTSRB" / "GT-final_test.csv").write_bytes(table)
    return folder


@pytest.fixture
def desk(tmp_path):
    """Files that are not what they seem."""
    (tmp_path / "stop.png").write_bytes(png((32, 32)))
    demo = next((Path(mcrise.__file__).parent / "demo").glob("*.onnx")).read_bytes()
    for name in ("odd", "a/same", "b/same"):
        (tmp_path / f"{name}.onnx").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.onnx").write_bytes(demo)
    (tmp_path / "odd.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    for name, table in (("empty", b""), ("head", b"Filename;ClassId\n"), ("odd", b"F\xff;\xfe\n")):
        gtsrb(tmp_path / name, table)
    for name, content in (("corrupt", b"no database" * 100), ("foreign", None)):
        (tmp_path / name).mkdir()
        if content:
            (tmp_path / name / "jobs.sqlite").write_bytes(content)
            continue
        with closing(sqlite3.connect(tmp_path / name / "jobs.sqlite")) as database, database:
            database.execute("CREATE TABLE jobs (id, x)")
            database.execute("INSERT INTO jobs VALUES (1, 2)")
    return tmp_path


EXPLAIN = ("explain", "stop.png", "--model", "demo", "--n-masks", 64)


@defect(14)
@pytest.mark.parametrize(
    "words",
    [
        ("explain", "stop.png", "--model", "odd.onnx"),
        ("study", "empty", "--out", "out"),
        ("study", "head", "--out", "out"),
        ("study", "odd", "--out", "out"),
        ("study", ".", "--out", "zzz://x"),
        ("serve", "--port", 0, "--data", "corrupt"),
        ("serve", "--port", 0, "--data", "foreign"),
    ],
    ids=lambda words: " ".join(map(str, words[:2])) + f" {words[-1]}",
)
def test_odd_files_get_a_sentence(desk, words):
    done = command(*words, cwd=desk, seconds=30)
    assert in_words(done), done.stderr[-500:]
    assert "None" not in done.stderr


def test_two_models_of_one_name_are_refused_before_they_are_loaded(desk):
    done = command("serve", "--port", 0, "--model", "a/same.onnx", "--model", "b/same.onnx",
                   cwd=desk, seconds=30)  # fmt: skip
    assert in_words(done)
    assert "a/same.onnx" in done.stderr


@defect(14)
def test_a_number_of_threads_that_is_none_gets_a_sentence(desk):
    odd = command(*EXPLAIN, cwd=desk, env={**os.environ, "MCRISE_THREADS": "abc"})
    assert in_words(odd), odd.stderr
    assert "MCRISE_THREADS" in odd.stderr


@pytest.mark.slow
@defect(14)
def test_a_command_needs_no_stderr(desk):
    closed = command(*EXPLAIN, cwd=desk, preexec_fn=lambda: os.close(2))
    assert closed.returncode == 0, closed.stdout


@pytest.mark.slow
@defect(14)
@pytest.mark.parametrize("name", ["status.json", "summary.json", "metrics.json"])
@pytest.mark.parametrize("content", ['{"done": "many"}', '{"maps": [1], "curves": 1}', "[[1]]"])
def test_an_odd_file_of_our_own_is_no_traceback(saved, tmp_path, name, content):
    (tmp_path / "study.json").write_text('{"images": ["a"]}')
    shutil.copy(saved, tmp_path / "run.npz")
    (tmp_path / name).write_text(content)
    words = (
        ("status", tmp_path)
        if name == "status.json"
        else ("report", tmp_path, "-o", tmp_path / "report.html")
    )
    done = command(*words)
    assert done.returncode == 0 or in_words(done), done.stderr[-500:]


@pytest.mark.slow
@defect(14)
def test_metrics_of_the_right_maps_and_of_no_sense_get_a_sentence(desk):
    assert command(*EXPLAIN, cwd=desk).returncode == 0
    folder = desk / "stop.png.mcrise"
    summary = json.loads((folder / "summary.json").read_text())["maps"][0]
    odd_metrics = {"target": summary["target"], "estimator": summary["estimator"], "curves": [1]}
    (folder / "metrics.json").write_text(json.dumps(odd_metrics))
    assert in_words(command("report", folder, "-o", desk / "report.html"))


@defect(14)
def test_no_program_is_started_for_a_picture_whatever_it_is_called(tmp_path):
    """Pillow would hand PostScript to Ghostscript."""
    gs = tmp_path / "bin" / "gs"
    gs.parent.mkdir()
    gs.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    gs.chmod(0o755)
    Image.new("RGB", (32, 32)).save(tmp_path / "photo.eps")
    (tmp_path / "photo.eps").rename(tmp_path / "photo.jpg")
    path = f"{gs.parent}{os.pathsep}{os.environ['PATH']}"
    done = command("explain", tmp_path / "photo.jpg", "--model", "demo",
                   env={**os.environ, "PATH": path})  # fmt: skip
    assert in_words(done)
    assert not (tmp_path / "started").exists()


@defect(10)
def test_a_long_name_of_external_data_is_part_of_who_a_model_is(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    identities = []
    for value in (0.0, 1.0):
        weight = helper.make_tensor(
            "w", TensorProto.FLOAT, [3, 2], np.full((3, 2), value, np.float32).tobytes(), raw=True
        )
        graph = helper.make_graph(
            [
                helper.make_node("GlobalAveragePool", ["x"], ["p"]),
                helper.make_node("Flatten", ["p"], ["f"]),
                helper.make_node("MatMul", ["f", "w"], ["y"]),
            ],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 16, 16])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
            [weight],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.save_model(
            made, tmp_path / "model.onnx", save_as_external_data=True, size_threshold=0,
            location="weights-" + "x" * 150, all_tensors_to_one_file=True,
        )  # fmt: skip
        identities.append(mcrise.load_model(tmp_path / "model.onnx", score_kind="any").identity)
        (tmp_path / ("weights-" + "x" * 150)).unlink()
    assert identities[0] != identities[1]


@defect(12)
@pytest.mark.parametrize("seeds", [(2**63, 2**63 + 1), (2**64 - 1, 2**64 - 2)])
def test_two_seeds_are_two_sets_of_masks_however_large(seeds):
    drawn = [explained(lambda red: np.stack([red, 1 - red], axis=1), seed=seed).masks()
             for seed in seeds]  # fmt: skip
    assert not np.array_equal(drawn[0].cells, drawn[1].cells)


@defect(12)
@pytest.mark.parametrize("fill", ["hue:inf", "hue:nan", f"noise:{2**64}"])
def test_a_fill_that_cannot_be_painted_is_refused_before_the_model_is_asked(fill):
    asked = []
    with pytest.raises(mcrise.InputError):
        explained(lambda red: asked.append(red), fills=f"red,{fill}")
    assert asked == []


@defect(14)
def test_ctrl_c_while_the_command_is_imported_is_no_traceback(tmp_path):
    """A package that takes a minute to import, as a cold disk makes it."""
    (tmp_path / "mcrise").mkdir()
    (tmp_path / "mcrise" / "__init__.py").write_text(
        "import time\nopen('importing', 'w').close()\ntime.sleep(60)\n"
    )
    source = Path(mcrise.__file__).parents[1]
    script = entry_point(source)
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {script[0]} import {script[1]}; {script[1]}()"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for((tmp_path / "importing").exists)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "Stopped.\n"


def entry_point(source):
    """Module and function that the command `mcrise` is, by the project's own file."""
    told = tomllib.loads((source.parent / "pyproject.toml").read_text(encoding="utf-8"))
    return told["project"]["scripts"]["mcrise"].split(":")


@defect(14)
def test_a_model_whose_names_are_not_utf_8_is_refused_in_words(tmp_path):
    demo = next((Path(mcrise.__file__).parent / "demo").glob("*.onnx")).read_bytes()
    (tmp_path / "odd.onnx").write_bytes(demo.replace(b"images", b"im\xff\xfees"))
    with pytest.raises(mcrise.InputError):
        mcrise.load_model(tmp_path / "odd.onnx")


# ---- fuzzing, a little of it: `make attack` does more


@pytest.mark.parametrize(
    ("name", "n_variants"), [("records", 150), ("pictures", 60), ("words", 300), ("audits", 12)]
)
def test_damaged_input_brings_forth_nothing_but_our_own_errors(name, n_variants):
    fuzzing = pytest.importorskip("fuzzing")
    outcomes, bad, _, _ = fuzzing.attack(name, n_variants)
    assert bad == {}
    assert outcomes.total() == n_variants


@pytest.mark.parametrize(
    "name", ["records", "settings", "labels", "tables", "GTSRB tables", "rules", "pictures"]
)
def test_made_up_input_brings_forth_nothing_but_our_own_errors(name):
    strategies = pytest.importorskip("strategies")
    counts = strategies.attack(name, 50, derandomize=True)
    assert sum(counts.values()) >= 50


@pytest.mark.slow
def test_a_report_and_the_list_of_jobs_are_whole_after_a_kill_in_the_middle_of_writing_them():
    torn = Path(__file__).parents[1] / "attacks" / "torn.py"
    done = subprocess.run([sys.executable, torn, "report", "jobs"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kills" in done.stdout


def test_tabs_end_with_the_server_and_leave_no_traceback(tmp_path):
    with serving(tmp_path, *PLANTED, path=planted_file(tmp_path)) as server:
        running = server.submit("n_masks=100000&mask_prob=0.5&colors=red", png((32, 32)))
        tab = http.client.HTTPConnection(urlsplit(server.address).netloc)  # kept open
        tab.request("GET", f"/api/jobs/{running}")
        assert tab.getresponse().read()
        assert "Traceback" not in server.end("terminate")
        tab.close()
