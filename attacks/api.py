"""Requests made from the API's own schema, valid and not, to jobs in every state they can be in.

    python attacks/api.py [COUNT]

An answer of 500 or more fails, unless it is one of ours with its sentence.
"""

import itertools
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

OURS = {"host": "127.0.0.1"}


def generated_requests(app, n_requests, ids=()):
    """Send requests made from the schema; those for a job are for one of `ids` in turn.

    Returns how many were sent.
    """
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=OURS)
    operations = [found.ok() for found in schema.get_all_operations()]
    each = -(-n_requests // len(operations))
    sent, turn = 0, itertools.cycle(ids)
    modes = schemathesis.GenerationMode
    for operation in operations:
        for mode in (modes.POSITIVE, modes.NEGATIVE):

            @settings(max_examples=-(-each // 2), deadline=None, database=None,
                      derandomize=True, suppress_health_check=list(HealthCheck))  # fmt: skip
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case):
                nonlocal sent
                endless = case.path.endswith("/events")  # of a job that runs
                if ids and "id" in (case.path_parameters or {}) and not endless:
                    case.path_parameters["id"] = next(turn)
                answer = case.call(headers=OURS)
                assert answer.status_code < 500, case.as_curl_command()
                sent += 1

            with suppress(Unsatisfiable):  # nothing can be wrong where nothing can be said
                ask()
    return sent


def jobs_in_every_state(folder):
    """A server's jobs: one done, failed, stopped, paused, running and waiting."""
    import numpy as np
    from PIL import Image

    from mcrise.brief import Brief
    from mcrise.model import Model
    from mcrise.page.jobs import Jobs
    from mcrise.page.order import Order

    slow = threading.Event()

    def predict(images):
        if slow.is_set():
            time.sleep(0.2)
        if images[0].mean() < 1:
            raise RuntimeError("out of luck")
        red = images[:, :8, :8, 0].mean((1, 2)) / 255
        return np.stack([red, 1 - red], axis=1)

    def submit(n_masks=64, value=200):
        path = folder / "picture.png"
        Image.fromarray(np.full((24, 32, 3), value, np.uint8)).save(path)
        brief = Brief(n_masks=n_masks, mask_prob=0.5, fills="black,red")
        return jobs.submit(Order("planted", brief=brief), path.read_bytes())

    jobs = Jobs(folder, {"planted": Model(predict, labels=("red", "not red"))})
    made = [submit(128), submit(64, value=0)]
    while {job.state for job in made} & {"queued", "running"}:
        time.sleep(0.01)
    slow.set()
    running, stopped, paused, waiting = (submit(100_000) for _ in range(4))
    jobs.stop(stopped.id)
    jobs.pause(paused.id)
    while not running.n_masks:
        time.sleep(0.01)
    return jobs, [job.id for job in (*made, running, stopped, paused, waiting)]


def main():
    from mcrise.page.app import create_app

    n_requests = int(sys.argv[1]) if sys.argv[1:] else 1000
    with tempfile.TemporaryDirectory() as folder:
        jobs, ids = jobs_in_every_state(Path(folder))
        sent = generated_requests(create_app(jobs), n_requests, ids)
        print(f"api: {sent:,} requests, no server error; the worker: {jobs.health()}")
        for job in jobs.all():
            jobs.stop(job.id)
        jobs.close()


if __name__ == "__main__":
    main()
