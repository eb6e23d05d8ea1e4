"""Requests made from the API's own schema, valid and not, to jobs in every state they can be in.

    python attacks/api.py [COUNT]

Jobs that wait, run, are paused, stopped, done, failed, deleted, or of a model that is gone; with an
audit open, and with a token set. Any answer of 500 or more fails.
"""

import itertools
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

TOKEN = "a-token"
OURS = {"host": "127.0.0.1"}
KNOWN = {**OURS, "authorization": f"Bearer {TOKEN}"}


def generated_requests(app, n_requests, ids=(), headers=OURS):
    """Send requests made from the schema; those for a job are for one of `ids` in turn.

    Returns how often each status was answered.
    """
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=KNOWN)
    operations = [found.ok() for found in schema.get_all_operations()]
    operations.sort(key=lambda one: one.method.upper() == "DELETE")  # last: then there is nothing
    each = -(-n_requests // len(operations))
    sent, turn = Counter(), itertools.cycle(ids)
    modes = schemathesis.GenerationMode
    for operation in operations:
        for mode in (modes.POSITIVE, modes.NEGATIVE):

            @settings(max_examples=-(-each // 2), deadline=None, database=None,
                      derandomize=True, suppress_health_check=list(HealthCheck))  # fmt: skip
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case):
                if "id" in (case.path_parameters or {}) and (id := next(turn, None)):
                    case.path_parameters["id"] = id
                answer = case.call(headers=headers)
                assert answer.status_code < 500, case.as_curl_command()
                sent[answer.status_code] += 1

            with suppress(Unsatisfiable):  # nothing can be wrong where nothing can be said
                ask()
    return sent


def jobs_in_every_state(folder):
    """A server's jobs, and ids of one done, failed, running, stopped, paused, waiting, of a model
    that is gone, and deleted."""
    import numpy as np
    from PIL import Image

    from mcrise.config import RunConfig
    from mcrise.models.model import Model
    from mcrise.server.job_queue import JobQueue
    from mcrise.server.schemas import JobRequest

    slow = threading.Event()

    def predict(images):
        if slow.is_set():
            time.sleep(0.2)
        if images[0].mean() < 1:
            raise RuntimeError("out of luck")
        red = images[:, :8, :8, 0].mean((1, 2)) / 255
        return np.stack([red, 1 - red], axis=1)

    def submit(n_masks=64, value=200, name="planted"):
        path = folder / "picture.png"
        Image.fromarray(np.full((24, 32, 3), value, np.uint8)).save(path)
        config = RunConfig(n_masks=n_masks, mask_prob=0.5, fills="black,red")
        return jobs.submit(JobRequest(name, config=config), path.read_bytes())

    def rest(*made):
        while {job.state for job in made} & {"queued", "running"}:
            time.sleep(0.01)

    planted = Model(predict, labels=("red", "not red"))
    jobs = JobQueue(folder, {"planted": planted, "gone": planted})
    gone = submit(name="gone")
    rest(gone)
    jobs.close()
    jobs = JobQueue(folder, {"planted": planted})
    done, failed, deleted = submit(128), submit(64, value=0), submit()
    rest(done, failed, deleted)
    jobs.delete(deleted.id)
    slow.set()
    running, stopped, paused, waiting = (submit(100_000) for _ in range(4))
    jobs.stop(stopped.id)
    jobs.pause(paused.id)
    while not running.n_masks:
        time.sleep(0.01)
    made = (done, failed, running, stopped, paused, waiting, gone, deleted)
    return jobs, {job.id: job.state for job in made}


def small_audit(folder, n_images=3):
    """The folder of an audit of a few images, with their records."""
    import numpy as np
    from PIL import Image

    from mcrise.audits.api import audit

    images = folder / "images"
    images.mkdir(parents=True)
    for n in range(n_images):
        pixels = np.random.default_rng(n).integers(0, 256, (32, 32, 3), np.uint8)
        Image.fromarray(pixels).save(images / f"{n}.png")

    def predict(batch):
        red = batch[:, :8, :8, 0].mean((1, 2)) / 255
        return np.stack([red, 1 - red], axis=1)

    out = folder / "audit"
    audit(str(images), predict, n_masks=64, mask_prob=0.5, keep_runs=True, out=str(out))
    return out


def attack(folder, n_requests):
    """All states, without and with an audit and a token; returns what was answered."""
    from mcrise.batch.storage import Storage
    from mcrise.server.app import create_app

    audit = Storage(small_audit(folder))
    found = {}
    guarded = {"host": OURS["host"], "token": TOKEN, "audit": audit}
    for name, share, options, headers in (
        ("no audit", 4, {}, OURS),
        ("an audit", 2, {"audit": audit}, OURS),
        ("a token that nobody gives", 8, guarded, OURS),
        ("a token that is given", 8, guarded, KNOWN),
    ):
        jobs, states = jobs_in_every_state(folder / name)
        app = create_app(jobs, **options)
        found[name] = generated_requests(app, n_requests // share, states, headers)
        assert jobs.health() == {"alive": True, "trouble": ""}
        for job in jobs.all():
            jobs.stop(job.id)
        jobs.close()
    return found


def main():
    n_requests = int(sys.argv[1]) if sys.argv[1:] else 1000
    with tempfile.TemporaryDirectory() as folder:
        found = attack(Path(folder), n_requests)
    for name, statuses in found.items():
        told = ", ".join(f"{status}: {n}" for status, n in sorted(statuses.items()))
        print(f"api, {name}: {statuses.total():,} requests, no server error ({told})")


if __name__ == "__main__":
    main()
