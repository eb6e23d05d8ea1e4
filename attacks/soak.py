"""A server that is used and mistreated for a while, and what has become of every job it took.

    python attacks/soak.py --minutes 60

Several ask, read and follow at once, while the server is killed at random (SIGKILL and SIGTERM) and
started again, its disk is full (a small tmpfs, where root may mount one) and its list of jobs is
locked by somebody else. At the end every job that was accepted is done, or failed in words, or was
deleted on request; no request was answered by a server error that is none of ours.
"""

import argparse
import contextlib
import io
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from http.client import HTTPException
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))
from attacking import Server

DISK = 48  # MB
OURS = (502, 503)  # statuses above 499 that have a sentence: of a model, or of a full disk
DOWN = (OSError, HTTPException, urllib.error.URLError, ValueError)  # while it is started again


class Soak:
    """What happens, and the count of it."""

    def __init__(self, folder, seed):
        self.folder, self.chance = folder, random.Random(seed)
        self.counts, self.wrong = Counter(), []
        self.accepted, self.deleted, self.unsure = set(), set(), set()
        self.memory = []  # after a start, and before its end
        self.slowest_end = 0.0  # seconds
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.start()

    def start(self):
        self.server = Server(self.folder, "--save-every", 0.2)
        job = self.ask("api/jobs?sign=stop&n_masks=64", "POST")
        if job:
            with contextlib.suppress(*DOWN, AssertionError, TypeError, KeyError):
                self.server.wait(job["id"], seconds=120)
        self.memory.append([self.server.memory("VmRSS")] * 2)

    def end(self, how):
        with contextlib.suppress(OSError, TypeError):
            self.memory[-1][1] = self.server.memory("VmRSS")
        began = time.monotonic()
        said = self.server.end(how)
        self.slowest_end = max(self.slowest_end, time.monotonic() - began)
        if "Traceback" in said:
            self.wrong.append(f"on stderr: {said[:4000]}")

    # ---- asking

    def ask(self, path, method="GET", body=None, seconds=30):
        """The answer, or None; a job that was taken is remembered."""
        try:
            status, answer = self.server.ask(path, method, body, seconds=seconds)
        except DOWN:
            self.counts["unanswered while it was down"] += 1
            return None
        self.counts["requests"] += 1
        self.counts[f"status {status}"] += 1
        if status >= 500 and not (status in OURS and isinstance(answer, dict) and answer["detail"]):
            self.wrong.append(f"{status} {method} {path}: {answer}")
        if status == 201:
            self.accepted.add(answer["id"])
        return answer if status < 300 else None

    def submit(self, chance):
        masks = chance.choice([64, 64, 128, 320])
        query = f"n_masks={masks}&mask_prob=0.5&colors={chance.choice(['rgbwk', 'red,blur:4'])}"
        kind = chance.random()
        if kind < 0.5:
            self.ask(f"api/jobs?sign=stop&{query}", "POST")
        elif kind < 0.8:
            side = chance.choice([48, 300, 1500])
            pixels = np.random.default_rng(side).integers(0, 256, (side, side, 3), np.uint8)
            out = io.BytesIO()
            Image.fromarray(pixels).save(out, "JPEG")
            self.ask(f"api/jobs?{query}", "POST", out.getvalue())
        else:
            self.ask(f"api/jobs?{query}", "POST", chance.randbytes(1000))

    def known(self, chance):
        with self.lock:
            ids = sorted(self.accepted - self.deleted)
        return chance.choice(ids[-30:]) if ids else None

    def read(self, chance):
        if (id := self.known(chance)) is None:
            return
        path = chance.choice(["", "/run", "/maps", "/maps?estimator=paper", "/reading",
                              "/image.png", "/run.npz", "/fills/0", "/maps.png"])  # fmt: skip
        self.ask(f"api/jobs/{id}{path}")
        if chance.random() < 0.2:
            self.ask(chance.choice(["api/jobs", "api/info", ""]))

    def steer(self, chance):
        if (id := self.known(chance)) is None:
            return
        what = chance.random()
        if what < 0.6:
            action = chance.choice(["pause", "resume", "resume", "resume"])
            self.ask(f"api/jobs/{id}/actions/{action}", "POST")
        elif what < 0.8:
            self.ask(f"api/jobs/{id}/masks?n_masks=64", "POST")
        elif what < 0.9:
            size = (self.ask(f"api/jobs/{id}/run") or {}).get("size")
            if size:
                self.ask(f"api/jobs/{id}/whatif", "POST", b"\x01" * (size[0] * size[1]))
        else:
            self.unsure.add(id)  # it may go though nobody hears of it
            if self.ask(f"api/jobs/{id}", "DELETE") is not None:
                self.deleted.add(id)

    def follow(self, chance):
        """A tab of the page: asks for the status until the job rests, or the server is gone."""
        if (id := self.known(chance)) is None:
            return
        with contextlib.suppress(*DOWN):
            limit = time.monotonic() + 10
            while time.monotonic() < limit and (status := self.ask(f"api/jobs/{id}")):
                if status["state"] not in ("queued", "running"):
                    break
                time.sleep(0.5)
            self.counts["jobs followed"] += 1

    def go_on(self, act, seconds, seed):
        chance = random.Random(seed)
        while not self.over.wait(chance.random() * seconds):
            try:
                act(chance)
            except Exception as error:
                self.wrong.append(f"{act.__name__}: {type(error).__name__}: {error}")

    # ---- faults

    def kill(self):
        self.counts["killed by SIGKILL"] += 1
        self.end("kill")
        self.start()

    def terminate(self):
        self.counts["ended by SIGTERM"] += 1
        self.end("terminate")
        self.start()

    def fill_disk(self):
        self.counts["full disks"] += 1
        ballast = self.folder / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(bytes(2**16))
                file.flush()
        self.over.wait(3 + 5 * self.chance.random())
        ballast.unlink(missing_ok=True)

    def lock_jobs(self):
        self.counts["locked lists"] += 1
        with (
            contextlib.closing(
                sqlite3.connect(self.folder / "jobs.sqlite", isolation_level=None, timeout=5)
            ) as database,
            contextlib.suppress(sqlite3.Error),
        ):
            database.execute("BEGIN IMMEDIATE")
            self.over.wait(1 + 7 * self.chance.random())
            database.execute("ROLLBACK")

    # ---- the whole

    def run(self, minutes, faults):
        acts = [(self.submit, 3.0), (self.read, 0.3), (self.read, 0.3), (self.steer, 2.0),
                (self.follow, 2.0), (self.follow, 2.0)]  # fmt: skip
        threads = [
            threading.Thread(target=self.go_on, args=(act, seconds, n), daemon=True)
            for n, (act, seconds) in enumerate(acts)
        ]
        for thread in threads:
            thread.start()
        limit, round_of = time.monotonic() + 60 * minutes, []
        while time.monotonic() < limit:
            time.sleep(min(5 + 15 * self.chance.random(), max(0.1, limit - time.monotonic())))
            if not round_of:
                round_of = self.chance.sample(faults, len(faults))
            getattr(self, round_of.pop())()
        self.over.set()
        for thread in threads:
            thread.join(60)

    def account(self, minutes=30):
        """What has become of the jobs, once nobody disturbs them any more."""
        limit = time.monotonic() + 60 * minutes
        while time.monotonic() < limit:
            jobs = {job["id"]: job for job in self.ask("api/jobs") or []}
            for id, job in jobs.items():
                if job["state"] == "paused":
                    self.ask(f"api/jobs/{id}/actions/resume", "POST")
            if not any(job["state"] in ("queued", "running", "paused") for job in jobs.values()):
                break
            time.sleep(1)
        states = Counter()
        for id in sorted(self.accepted):
            job = jobs.get(id)
            if job is None:
                known = id in self.deleted or id in self.unsure
                states["deleted on request" if known else "LOST"] += 1
            elif job["state"] == "failed" and not job["note"]:
                states["FAILED WITHOUT A WORD"] += 1
            else:
                states[job["state"]] += 1
        return states


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", place]
        small = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
        faults = ["kill", "kill", "terminate", "lock_jobs", *(["fill_disk"] * 2 if small else [])]
        try:
            soak = Soak(Path(place) / "data", given.seed)
            soak.run(given.minutes, faults)
            if small:  # it is full of jobs by now: somebody makes room
                more = ["mount", "-o", f"remount,size={8 * DISK}m", place]
                subprocess.run(more, check=True)
            states = soak.account()
            soak.end("terminate")
        finally:
            if small:
                subprocess.run(["umount", "-l", place], check=False)
    lines = {"minutes": f"{given.minutes:g}", "disk": f"{DISK} MB tmpfs" if small else "not small",
             **{name: f"{n:,}" for name, n in sorted(soak.counts.items())},
             "jobs accepted": f"{len(soak.accepted):,}",
             **{f"jobs {state}": f"{n:,}" for state, n in sorted(states.items())}}  # fmt: skip
    grown = [(after - before) / 2**20 for before, after in soak.memory]
    lines |= {
        "memory after the first start, at the end": f"{soak.memory[0][0] / 2**20:.0f} MB, "
        f"{soak.memory[-1][1] / 2**20:.0f} MB",
        "most grown in one life": f"{max(grown):.0f} MB",
        "slowest end": f"{soak.slowest_end:.1f} s",
        "wrong": str(len(soak.wrong)),
    }
    print("| what | how many |\n|---|---|")
    print("\n".join(f"| {name} | {value} |" for name, value in lines.items()))
    print("\n".join(soak.wrong[:20]))
    lost = any(state.isupper() for state in states) or {*states} - {
        "done", "failed", "deleted on request", "stopped"}  # fmt: skip
    sys.exit(1 if soak.wrong or lost else 0)


if __name__ == "__main__":
    main()
