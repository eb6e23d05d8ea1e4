"""Studies of planted models: what several tests make, run and read."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
from PIL import Image

import planted_study
from mcrise import Model
from mcrise.batch.datasets import open_dataset
from mcrise.batch.engine import BatchOptions
from mcrise.batch.storage import Storage
from mcrise.config import RunConfig
from mcrise.studies.config import METHODS, StudyConfig, StudyWorker
from mcrise.studies.results import write_results
from mcrise.studies.study import Study

HERE = Path(__file__).parent
RUN = RunConfig(n_masks=128, grid=(3, 3), mask_prob=0.5)
SMALL = StudyConfig(RUN, METHODS, step=0.1, lime_samples=50)


def make_images(folder, n_images=3, columns=16):
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(n_images):
        pixels = np.repeat(np.repeat(rng.integers(0, 256, (3, 4, 3), np.uint8), 4, 0), 4, 1)
        Image.fromarray(pixels[:, :columns]).save(folder / f"{n:03d}.png")
    return folder


def make_study(
    tmp_path, protocol=SMALL, out="out", labels=None, model="planted", data="", **options
):
    examples = open_dataset(tmp_path / "images")
    given = BatchOptions(**{"retries": 0, **options})
    return Study(examples, protocol, model, labels, Storage(tmp_path / out), given, data=data)


def finish(study, predict=planted_study.tint):
    worker = StudyWorker(Model(predict, identity="planted"), study.config)
    while (task := study.next_task()) is not None:
        study.take(task, worker.attempt(task))
    return write_results(study)


def table(folder):
    return pyarrow.parquet.read_table(folder / "results.parquet").to_pydict()


def command(tmp_path, *more, spec="planted_study:tint", out="out"):
    return [
        sys.executable, "-m", "mcrise", "study", str(tmp_path / "images"), "--model", spec,
        "--n-masks", "128", "--grid", "3x3", "--step", "0.1", "--methods", "rise,mcrise,random",
        "--out", str(tmp_path / out), "--workers", "2", *more,
    ]  # fmt: skip


def ran(tmp_path, *more, **options):
    return subprocess.run(
        command(tmp_path, *more, **options), cwd=HERE, capture_output=True, text=True
    )
