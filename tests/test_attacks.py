"""Attacks that once succeeded, by the command and its server alone; issue by issue."""

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

import numpy as np
import pytest
from PIL import Image

import mcrise
from attacking import MCRISE, command, in_words, serving
from mcrise.reading import read_maps

MODEL = """
import numpy as np
from mcrise.images import Geometry
from mcrise.model import Model
def predict(images):
    red = images[:, :8, :8, {channel}].mean((1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)
model = Model(predict, Geometry(({side}, {side})))
"""
PLANTED = ("--model", "planted:model")


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


def test_jobs_end_and_the_model_answers_after_the_list_of_jobs_was_locked(tmp_path):
    with serving(tmp_path) as server:
        first, second = server.submit(), server.submit()
        with locked(tmp_path):
            status, refused = server.ask("api/jobs?sign=stop&n_masks=64", "POST")
            assert status == 503
            assert "locked" in refused["detail"]
            assert "locked" in server.ask("api/about")[1]["worker"]["trouble"]
            time.sleep(6)
        assert len(list(tmp_path.glob("*.upload"))) == 2
        for id in (first, second):
            assert server.wait(id, seconds=120)["state"] == "done"
        size = server.ask(f"api/jobs/{first}/record")[1]["size"]
        painted = b"\x01" * (size[0] * size[1])
        assert server.ask(f"api/jobs/{first}/whatif", "POST", painted, seconds=120)[0] == 200
        well = {"alive": True, "trouble": ""}
        wait_for(lambda: server.ask("api/about")[1]["worker"] == well)  # it looks now and then


# ---- whose scores


def test_after_a_restart_no_answer_mixes_two_models_and_pictures_stay_as_they_were(tmp_path):
    folder, body = tmp_path / "data", png((32, 32))
    with serving(folder, *PLANTED, path=planted_file(tmp_path)) as server:
        job = server.submit("n_masks=64&colors=red,blue&mask_prob=0.5", body)
        server.wait(job)
        before = server.ask(f"api/jobs/{job}/image.png")[1]
    painted = b"\x01" * 24 * 24
    with serving(folder, *PLANTED, path=planted_file(tmp_path, 1, 32)) as server:
        assert server.ask(f"api/jobs/{job}/image.png")[1] == before
        status, said = server.ask(f"api/jobs/{job}/whatif", "POST", painted)
        assert status == 400
        assert "another run" in said["detail"]
    with serving(folder) as server:
        status, said = server.ask(f"api/jobs/{job}/whatif", "POST", painted)
        assert status == 409
        assert "not being served" in said["detail"]


# ---- taking home


def test_a_record_taken_home_while_its_job_runs_is_whole(tmp_path):
    """Replaced every few milliseconds, with several who read it."""

    def take_home(_):
        status, content = server.ask(f"api/jobs/{job}/run.npz")
        assert status == 200
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert archive.testzip() is None
        return len(content)

    with serving(tmp_path, "--checkpoint", 0, *PLANTED, path=planted_file(tmp_path)) as server:
        job = server.submit("n_masks=100000&mask_prob=0.5&colors=red", png((32, 32)))
        server.wait(job, states=("running",))
        while not (tmp_path / f"{job}.npz").exists():
            time.sleep(0.01)
        with ThreadPoolExecutor(4) as pool:
            sizes = set(pool.map(take_home, range(400)))
        assert len(sizes) > 5  # it grew meanwhile


# ---- uploads


def test_a_small_file_that_unpacks_to_much_costs_the_server_no_memory(tmp_path):
    body = png((6300, 6300))
    assert len(body) < 200_000
    with serving(tmp_path) as server:
        server.wait(server.submit())  # warm
        before = server.memory()
        assert server.ask("api/jobs?n_masks=64", "POST", body)[0] == 201
        assert server.memory() - before < 100e6


def test_what_takes_long_to_paint_is_refused_before_it_is_tried(tmp_path):
    with serving(tmp_path) as server:
        for colors in ("blur:999", ",".join(f"blur:{90 + n}" for n in range(10))):
            status, said = server.ask(f"api/jobs?sign=stop&colors={colors}", "POST")
            assert status == 400
            assert "blur" in said["detail"].lower()


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


def test_a_token_is_kept_only_where_it_is_right_and_sends_nobody_elsewhere(tmp_path):
    with serving(tmp_path, "--host", "127.0.0.1") as server:
        address, token = server.address.rstrip("/"), server.token
        status, place, cookie = answer(address, f"/?token={token}")
        assert (status, place) == (303, "/")
        kept = {"cookie": cookie.partition(";")[0]}
        port = address.rpartition(":")[2]
        assert port in kept["cookie"].partition("=")[0]  # all ports of a host share their cookies
        assert answer(address, "/?token=wrong", **kept)[::2] == (200, None)
        assert answer(address, f"//evil.example/..?token={token}")[1] is None
        assert answer(address, f"/api/jobs?sign=stop&token={token}", "POST")[0] == 201
        for odd in ("/?token=%ff%fe", "/?token=%F0%9F%92%A9"):
            assert answer(address, odd)[0] == 401
        for headers in ({"cookie": "mcrise_token=\xe9"}, {"authorization": "Bearer \xe9"}):
            assert answer(address, "/", **headers)[0] == 401
        assert answer(address, "/", origin="http://[")[0] == 403


def test_half_requests_do_not_make_the_server_deaf_nor_fill_its_log(tmp_path):
    with ExitStack() as stack:
        server = stack.enter_context(serving(tmp_path, files=128))
        port = int(server.address.strip("/").rpartition(":")[2])
        for _ in range(300):
            half = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            half.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1")
        for _ in range(3):
            assert server.ask("api/about", seconds=5)[0] == 200
            time.sleep(0.5)
        assert len(server.end("kill")) < 10_000


# ---- scores


def explained(scores_of, **options):
    def model(images):
        return scores_of(images[:, :8, :8, 0].mean((1, 2)) / 255)

    image = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    given = {"n_masks": 512, "mask_prob": 0.5, "fills": "red,blue", **options}
    return mcrise.explain(image, model, **given)


@pytest.mark.parametrize(
    ("scores_of", "options"),
    [
        (lambda red: np.stack([1 + 0.009 * red, -0.009 * red], axis=1), {}),
        (lambda red: np.stack([1 + 0.009 * red, 0 * red], axis=1), {}),
        (lambda red: 1 + 0.009 * red[:, None], {"scores": "independent"}),
        (lambda red: np.stack([1e-40 * red, 1 - 0 * red], axis=1), {}),
        (lambda red: np.stack([1e15 * red, -1e15 * red], axis=1), {"scores": "any"}),
        (lambda red: np.stack([1e-30 * red, 0 * red], axis=1), {"scores": "any"}),
    ],
    ids=["outside 0..1", "one above 1", "all above 1", "denormal", "huge", "tiny"],
)
def test_any_accepted_scores_give_maps(scores_of, options):
    record = explained(scores_of, **options)
    for target in range(record.n_classes):
        maps = record.maps(target)
        assert np.isfinite(maps.values).all()
        assert np.isfinite(maps.se).all()


def test_what_is_read_does_not_depend_on_the_unit_of_scores_that_may_be_anything():
    found = [
        len(read_maps(explained(lambda red, unit=unit: unit * red[:, None], scores="any")).findings)
        for unit in (1.0, 1e-9)
    ]
    assert found[0] == found[1] > 0


def test_scores_that_cannot_be_reckoned_with_are_refused_in_words():
    with pytest.raises(mcrise.ModelError, match=r"range from .* clip"):
        explained(lambda red: 3e38 * red[:, None].astype(np.float32), scores="any")


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
    with pytest.raises(mcrise.RecordError):
        mcrise.load(other(saved, tmp_path / "run.npz", **fields))


LOAD = "import sys, mcrise\ntry: mcrise.load(sys.argv[1])\nexcept mcrise.RecordError: print('ours')"


def test_what_is_no_file_is_not_read_as_a_record(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    for path in (tmp_path / "pipe.npz", "/dev/zero"):
        done = subprocess.run(
            [sys.executable, "-c", LOAD, path], capture_output=True, text=True, timeout=20,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31)),
        )  # fmt: skip
        assert done.stdout == "ours\n", done.stderr


def test_a_record_takes_no_more_memory_than_it_has_bytes(saved, tmp_path):
    with np.load(saved) as arrays:
        np.savez_compressed(tmp_path / "run.npz", **{**arrays, "extra": np.zeros(10**8, np.uint8)})
    with pytest.raises(mcrise.RecordError, match="compressed"):
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


def test_a_study_whose_driver_was_killed_is_free_again(tmp_path, photos):
    first = start_study(tmp_path, seconds=0.5)
    wait_for(lambda: (tmp_path / "out" / "study.json").exists())
    first.kill()
    first.communicate()
    second = start_study(tmp_path)
    _, said = second.communicate(timeout=120)
    assert second.returncode == 0, said


def rows_of(tmp_path):
    table = (tmp_path / "out" / "summary.csv").read_text()
    return table, (tmp_path / "out" / "summary.md").read_text()


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


# ---- ends


def test_sigterm_saves_as_ctrl_c_does(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "stop.png").write_bytes(png((32, 32)))
    words = ["explain", "stop.png", "--model", "slow:model", "--n-masks", "640",
             "--mask-prob", "0.5", "--checkpoint", "1000"]  # fmt: skip
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


def test_odd_files_get_a_sentence(tmp_path):
    image = tmp_path / "stop.png"
    image.write_bytes(png((32, 32)))
    demo = Path(mcrise.__file__).parent / "demo"
    model = tmp_path / "odd.onnx"
    model.write_bytes(next(demo.glob("*.onnx")).read_bytes())
    model.with_suffix(".toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    for folder, table in (("a", b""), ("b", b"Filename;ClassId\n"), ("c", b"Filename\xff;\xfe\n")):
        gtsrb(tmp_path / folder, table)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text('{"images": ["a"]}')
    (tmp_path / "study" / "status.json").write_text('{"done": "many"}')
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "jobs.sqlite").write_bytes(b"no database" * 100)
    explain = ("explain", image, "--model", "demo", "--n-masks", 64)
    for words in (
        ("explain", image, "--model", model),
        ("study", tmp_path / "a", "--out", tmp_path / "out"),
        ("study", tmp_path / "b", "--out", tmp_path / "out"),
        ("study", tmp_path / "c", "--out", tmp_path / "out"),
        ("study", tmp_path, "--out", "zzz://x"),
        ("serve", "--port", 0, "--data", tmp_path / "data"),
    ):
        done = command(*words)
        assert in_words(done), (words, done.stderr[-500:])
        assert "None" not in done.stderr
    assert command("study-status", tmp_path / "study").returncode == 0
    odd = command(*explain, env={**os.environ, "MCRISE_THREADS": "abc"})
    assert in_words(odd), odd.stderr
    assert "MCRISE_THREADS" in odd.stderr
    closed = command(*explain, preexec_fn=lambda: os.close(2))
    assert closed.returncode == 0, closed.stdout
    folder = tmp_path / "stop.png.mcrise"
    summary = json.loads((folder / "summary.json").read_text())["maps"][0]
    odd_metrics = {"target": summary["target"], "estimator": summary["estimator"], "curves": [1]}
    (folder / "metrics.json").write_text(json.dumps(odd_metrics))
    assert in_words(command("report", folder, "-o", tmp_path / "report.html"))


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
        identities.append(mcrise.load_model(tmp_path / "model.onnx", scores="any").identity)
        (tmp_path / ("weights-" + "x" * 150)).unlink()
    assert identities[0] != identities[1]


@pytest.mark.parametrize("seeds", [(2**63, 2**63 + 1), (2**64 - 1, 2**64 - 2)])
def test_two_seeds_are_two_sets_of_masks_however_large(seeds):
    drawn = [explained(lambda red: np.stack([red, 1 - red], axis=1), seed=seed).masks()
             for seed in seeds]  # fmt: skip
    assert not np.array_equal(drawn[0].cells, drawn[1].cells)


@pytest.mark.parametrize("fill", ["hue:inf", "hue:nan", f"noise:{2**64}"])
def test_a_fill_that_cannot_be_painted_is_refused_before_the_model_is_asked(fill):
    asked = []
    with pytest.raises(mcrise.InputError):
        explained(lambda red: asked.append(red), fills=f"red,{fill}")
    assert asked == []


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


def test_a_model_whose_names_are_not_utf_8_is_refused_in_words(tmp_path):
    demo = next((Path(mcrise.__file__).parent / "demo").glob("*.onnx")).read_bytes()
    (tmp_path / "odd.onnx").write_bytes(demo.replace(b"images", b"im\xff\xfees"))
    with pytest.raises(mcrise.InputError):
        mcrise.load_model(tmp_path / "odd.onnx")


# ---- fuzzing, a little of it: `make attack` does more


@pytest.mark.parametrize(
    ("name", "n_variants"), [("records", 150), ("pictures", 60), ("words", 300)]
)
def test_damaged_input_brings_forth_nothing_but_our_own_errors(name, n_variants):
    fuzzing = pytest.importorskip("fuzzing")
    outcomes, bad, _, _ = fuzzing.attack(name, n_variants)
    assert bad == {}
    assert outcomes.total() == n_variants


def test_tabs_end_with_the_server_and_leave_no_traceback(tmp_path):
    with serving(tmp_path, *PLANTED, path=planted_file(tmp_path)) as server:
        running = server.submit("n_masks=100000&mask_prob=0.5&colors=red", png((32, 32)))
        with urllib.request.urlopen(f"{server.address}api/jobs/{running}/events") as stream:
            stream.readline()
            assert "Traceback" not in server.end("terminate")
