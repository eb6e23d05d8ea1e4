"""Studies on processes and on a real Ray cluster: the same to the byte, whatever dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import audit_runs
import mcrise
import planted_signs
from mcrise import ModelError
from mcrise.batch.engine import run
from mcrise.batch.workers import ProcessPool, WorkerFactory, restore
from mcrise.studies.config import StudyConfig
from planted_study import HANGS, KILLS, RAISES
from study_runs import RUN, command, finish, make_images, make_study, ran, table

HERE = Path(__file__).parents[1]
SOURCE = Path(mcrise.__file__).parents[1]
TABLES = ("results.parquet", "summary.md", "summary.csv")


CHOSEN = ("--mask-prob", "auto")  # by a task of its own for each image


def tables(folder):
    return [(folder / name).read_bytes() for name in TABLES]


def n_done(folder):
    return len(list((folder / "images").glob("*.json")))


def wait_for(condition, process=None, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def started(tmp_path, *more, env=None, **options):
    return subprocess.Popen(
        command(tmp_path, *more, **options), cwd=HERE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})},
    )  # fmt: skip


def ended(process):
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    return out


@pytest.mark.slow
def test_any_number_of_processes_gives_the_same_table(tmp_path):
    make_images(tmp_path / "images", 5)
    assert ran(tmp_path, "--workers", "1", out="one").returncode == 0
    assert ran(tmp_path, "--workers", "3", out="three").returncode == 0
    assert tables(tmp_path / "one") == tables(tmp_path / "three")
    protocol = StudyConfig(RUN, ("mcrise", "random", "rise"), step=0.1)
    model = json.loads((tmp_path / "one/study.json").read_text())["model"]  # as summaries name it
    finish(make_study(tmp_path, protocol, out="here", model=model))
    assert tables(tmp_path / "one") == tables(tmp_path / "here")


def poison(tmp_path):
    """Six images, three of which end in an error, a hang and a dead worker."""
    folder = make_images(tmp_path / "images", 3)
    for columns in (RAISES, HANGS, KILLS):
        make_images(tmp_path / "bad", 1, columns=12)
        from PIL import Image

        with Image.open(tmp_path / "bad" / "000.png") as good:
            good.resize((columns, 12)).save(folder / f"bad-{columns}.png")


def check_poison(tmp_path, killed, seconds):
    found = table(tmp_path / "out")
    errors = dict(zip(found["image"], found["error"], strict=True))
    assert len(found["image"]) == 3 * 6
    assert "no images like this one" in errors.pop(f"bad-{RAISES}.png")
    assert errors.pop(f"bad-{HANGS}.png") == f"No answer within {seconds} seconds."
    assert killed in errors.pop(f"bad-{KILLS}.png")
    assert set(errors.values()) == {None}


@pytest.mark.slow
def test_poisonous_images_become_rows_and_the_rest_is_complete(tmp_path):
    poison(tmp_path)
    done = ran(tmp_path, "--timeout", "3", "--retries", "1", "--keep-going",
               spec="planted_study:poisoned")  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_poison(tmp_path, "The worker process ended (SIGKILL).", 3)


@pytest.mark.slow
def test_without_keep_going_a_poisonous_image_ends_the_study(tmp_path):
    poison(tmp_path)
    done = ran(tmp_path, "--timeout", "3", "--retries", "0", spec="planted_study:poisoned")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("Error: bad-")  # a slow one says how far it is
    assert "Traceback" not in done.stderr


def test_a_worker_without_the_model_is_one_sentence(tmp_path):
    make_images(tmp_path / "images", 1)
    study = make_study(tmp_path)
    crew = ProcessPool(WorkerFactory("gone.onnx", {}, study.config), 1)
    with pytest.raises(ModelError, match=r"A worker cannot start: The model gone\.onnx does not"):
        list(run(study, crew))


def test_a_worker_with_another_model_is_refused(tmp_path):
    make_images(tmp_path / "images", 1)
    study = make_study(tmp_path)
    crew = ProcessPool(
        WorkerFactory("planted_study:tint", {}, study.config, "another", str(HERE)), 1
    )
    with pytest.raises(ModelError, match="but that of the study is 'another'"):
        list(run(study, crew))


@pytest.mark.slow
def test_a_worker_in_the_middle_of_a_call_ends_with_a_killed_driver(tmp_path):
    poison(tmp_path)
    process = started(tmp_path, "--keep-going", spec="planted_study:poisoned")
    pids = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for(lambda: n_done(tmp_path / "out") >= 3, process)  # only poison is left
    workers = [int(pid) for pid in pids.read_text().split()]
    assert workers
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), seconds=10)


def test_workers_that_die_at_the_start_end_the_study(tmp_path):
    make_images(tmp_path / "images", 1)
    study = make_study(tmp_path)
    crew = ProcessPool(
        WorkerFactory("planted_exit:model", {}, study.config, folder=str(tmp_path)), 1
    )
    (tmp_path / "planted_exit.py").write_text("import os; os._exit(7)")
    with pytest.raises(ModelError, match=r"cannot start: .* ended \(exit code 7\)"):
        list(run(study, crew))


@pytest.mark.slow
def test_the_driver_killed_and_started_again_repeats_no_finished_image(tmp_path):
    make_images(tmp_path / "images", 12)
    calls = {"MCRISE_TEST_CALLS": str(tmp_path / "calls")}
    spec = "planted_study:counted_tint"
    ended(started(tmp_path, *CHOSEN, env=calls, spec=spec, out="whole"))
    n_whole = (tmp_path / "calls").stat().st_size
    (tmp_path / "calls").unlink()
    process = started(tmp_path, *CHOSEN, env=calls, spec=spec)
    wait_for(lambda: n_done(tmp_path / "out") >= 4, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    time.sleep(1)  # workers notice that nobody listens when their task is done
    n_finished = n_done(tmp_path / "out")
    (tmp_path / "calls").unlink()
    ended(started(tmp_path, *CHOSEN, env=calls, spec=spec))
    n_again = (tmp_path / "calls").stat().st_size
    assert 4 <= n_finished < 12
    # Half an image is to spare: a worker that meets an image asks about it untouched.
    assert n_again < n_whole * (12 - n_finished + 0.5) / 12
    assert tables(tmp_path / "out") == tables(tmp_path / "whole")


# ---- Ray


@pytest.fixture(scope="module")
def ray_cluster():
    """A head and a second node on this machine, a core each; yields its address and both."""
    from ray.cluster_utils import Cluster

    before = os.environ.get("PYTHONPATH")
    # Where the nodes find the planted models.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *([before] if before else [])])
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        yield cluster
    finally:
        cluster.shutdown()
        restore("PYTHONPATH", before)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_node_of_a_ray_cluster_dies_and_nothing_is_lost(tmp_path, ray_cluster):
    make_images(tmp_path / "images", 16)
    spec = "planted_study:slow_tint"
    assert ran(tmp_path, *CHOSEN, spec=spec, out="whole").returncode == 0
    node = ray_cluster.add_node(num_cpus=1)
    process = subprocess.Popen(
        [*command(tmp_path, spec=spec)[:-2], *CHOSEN, "--ray", ray_cluster.address], cwd=HERE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: n_done(tmp_path / "out") >= 3, process)
    raylets = node.all_processes["raylet"]
    os.kill(raylets[0].process.pid, signal.SIGKILL)
    ended(process)
    assert tables(tmp_path / "out") == tables(tmp_path / "whole")


@pytest.mark.filterwarnings("default")
def test_poison_on_ray(tmp_path, ray_cluster):
    poison(tmp_path)
    done = subprocess.run(
        [*command(tmp_path, spec="planted_study:poisoned")[:-2], "--ray", ray_cluster.address,
         "--timeout", "8", "--retries", "0", "--keep-going"],
        cwd=HERE, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_poison(tmp_path, "The worker died", 8)


def test_an_unreachable_ray_address_is_one_sentence(tmp_path):
    make_images(tmp_path / "images", 1)
    done = ran(tmp_path, "--ray", "127.0.0.1:9")
    assert done.returncode == 1
    assert "There is no Ray cluster at 127.0.0.1:9" in done.stderr
    assert done.stderr.count("\n") == 1


# ---- an object store


@pytest.mark.slow
def test_images_from_and_results_to_a_bucket(tmp_path):
    from moto.server import ThreadedMotoServer

    make_images(tmp_path / "images", 3)
    assert ran(tmp_path, out="local").returncode == 0
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    env = {
        **os.environ,
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    fill = (
        "import s3fs, sys; fs = s3fs.S3FileSystem(); fs.mkdir('signs'); "
        "fs.put(sys.argv[1], 'signs/images', recursive=True)"
    )
    fetch = "import s3fs, sys; s3fs.S3FileSystem().get('signs/out', sys.argv[1], recursive=True)"
    try:
        python = [sys.executable, "-c"]
        subprocess.run([*python, fill, str(tmp_path / "images")], env=env, check=True)
        given = command(tmp_path)
        given[4], given[given.index("--out") + 1] = "s3://signs/images", "s3://signs/out"
        for _ in range(2):  # the second finds everything done
            done = subprocess.run(given, cwd=HERE, env=env, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        subprocess.run([*python, fetch, str(tmp_path / "fetched")], env=env, check=True)
    finally:
        server.stop()
    assert tables(tmp_path / "fetched") == tables(tmp_path / "local")
    assert json.loads((tmp_path / "fetched" / "status.json").read_text())["done"] == 3


# ---- audits


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_an_audit_on_a_ray_cluster_of_which_a_node_dies_has_the_same_bytes(tmp_path, ray_cluster):
    data = planted_signs.make_collection(tmp_path / "data", 12)  # enough for findings to be tried
    mcrise.audit(data, planted_signs.model, out=tmp_path / "whole", **audit_runs.GIVEN)
    node = ray_cluster.add_node(num_cpus=1)
    process = subprocess.Popen(
        audit_runs.command(data, tmp_path / "out", "--ray", ray_cluster.address), cwd=HERE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: len(list((tmp_path / "out/pieces").glob("*.npz"))) >= 2, process, 600)
    os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)
    ended(process)
    assert audit_runs.files(tmp_path / "out") == audit_runs.files(tmp_path / "whole")
    assert any(name.startswith("attempts/") for name in audit_runs.files(tmp_path / "out"))
