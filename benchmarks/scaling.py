"""Do two Ray workers do twice the work, and does the driver stay small?

    python benchmarks/scaling.py [--data FOLDER]

The same 40 traffic signs by one worker process and by two Ray workers, one thread each, and in the
same run as many bare calls of the model by one and by two processes: what the machine itself can
give. Clocks start when the workers are ready. Then the peak memory of the driver for 200 and for
2,000 tiny images.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from calls import DATA
from mcrise import load_model
from mcrise.batch.datasets import open_dataset, sample
from mcrise.batch.engine import BatchOptions, run
from mcrise.batch.storage import Storage
from mcrise.batch.workers import ProcessPool, RayPool, WorkerFactory, WorkerPool
from mcrise.config import RunConfig
from mcrise.studies.config import StudyConfig
from mcrise.studies.results import TABLE, write_results
from mcrise.studies.study import Study
from table import report

N_IMAGES, N_MASKS, BATCH, ROUNDS = 40, 256, 32, 2
PROTOCOL = StudyConfig(methods=("mcrise",), run=RunConfig(n_masks=N_MASKS))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA, help="holds gtsrb/")
    examples = sample(open_dataset(parser.parse_args().data / "gtsrb"), N_IMAGES, 0)
    recipe = WorkerFactory("demo", {}, PROTOCOL)
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for number in range(ROUNDS):
            bare = [bare_seconds(n) for n in (1, 2)]
            one = study_seconds(examples, f"{folder}/{number}-one", ProcessPool(recipe, 1))
            two = study_seconds(examples, f"{folder}/{number}-two", RayPool(recipe, n_workers=2))
            tables = {
                Path(folder, f"{number}-{name}", TABLE).read_bytes() for name in ("one", "two")
            }
            row = {"bare, 1 s": bare[0], "bare, 2 s": bare[1], "study, 1 s": one, "Ray, 2 s": two,
                   "bare gain": bare[0] / bare[1], "study gain": one / two}  # fmt: skip
            row |= {"share": row["study gain"] / row["bare gain"], "same bytes": len(tables) == 1}
            rows.append(row)
        report("scaling", rows, images=N_IMAGES, masks=N_MASKS)
        report("driver memory", [memory(n, folder) for n in (200, 2000)])


def study_seconds(examples: list[Any], out: str, crew: WorkerPool) -> float:
    """From the moment all workers are ready."""
    study = Study(examples, PROTOCOL, "demo", None, Storage(out), BatchOptions())
    started = 0.0
    for _ in run(study, crew):
        n_ready = len(crew.idle) + sum(one.task is not None for one in crew.assignments.values())
        if not started and n_ready == crew.n_workers:
            started = time.monotonic()
            n_before = len(study.done)
    assert n_before == 0
    spent = time.monotonic() - started
    write_results(study)
    return spent


def bare_seconds(n_processes: int) -> float:
    """The calls of a study's masks, shared by some processes, a thread each."""
    spawn = get_context("spawn")
    n_batches = N_IMAGES * N_MASKS // BATCH // n_processes
    gate = spawn.Barrier(n_processes + 1, timeout=600)
    workers = [spawn.Process(target=call, args=(n_batches, gate)) for _ in range(n_processes)]
    for worker in workers:
        worker.start()
    gate.wait()
    started = time.monotonic()
    gate.wait()
    spent = time.monotonic() - started
    for worker in workers:
        worker.join()
    return spent


def call(n_batches: int, gate: Any) -> None:
    model = load_model("demo", threads=1)
    image = np.zeros((96, 96, 3), np.uint8)
    batch = np.repeat(model.canvas(image, ()).untouched(), BATCH, axis=0)
    model.predict(batch)
    gate.wait()
    for _ in range(n_batches):
        model.predict(batch)
    gate.wait()


def memory(n_images: int, folder: str) -> dict[str, Any]:
    """The peak of the driver alone: `mcrise study` in a process of its own."""
    images = Path(folder, f"images-{n_images}")
    images.mkdir()
    from PIL import Image

    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8))
    for n in range(n_images):
        picture.save(images / f"{n:05d}.png")
    code = (
        "import sys; from mcrise.cli import cli; cli(sys.argv[1:], standalone_mode=False); "
        "print(next(x for x in open('/proc/self/status') if x.startswith('VmHWM')).split()[1])"
    )
    given = ["study", str(images), "--model", "planted_study:tint", "--methods", "mcrise",
             "--n-masks", "64", "--step", "0.25", "--grid", "2x2", "--quiet",
             "--out", f"{folder}/out-{n_images}"]  # fmt: skip
    tests = Path(__file__).resolve().parents[1] / "tests"
    out = subprocess.run(
        [sys.executable, "-c", code, *given], cwd=tests, check=True, capture_output=True
    )
    return {"images": n_images, "driver MB": int(out.stdout.splitlines()[-1]) / 1000}


if __name__ == "__main__":
    main()
