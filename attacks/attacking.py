"""What attacks have in common: the command as a process, and requests to a server of it.

Nothing here knows the inside of the package, so the same attack can be run on any version of it.
"""

import functools
import io
import json
import os
import re
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from PIL import Image

MCRISE = [sys.executable, "-m", "mcrise"]


def command(*words, cwd=None, seconds=120, **options):
    """The finished command; its output as text."""
    return subprocess.run(
        [*MCRISE, *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=seconds,
        **options,
    )


def in_words(done):
    """Whether a command was refused, or failed, with one sentence and no traceback."""
    return done.returncode in (1, 2) and "Traceback" not in done.stderr and "Error" in done.stderr


class Server:
    """`mcrise serve` on a free port."""

    def __init__(self, folder, *options, path=None, files=None):
        paths = [str(path)] if path else []
        paths += [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(paths)}
        words = ["serve", "--port", "0", "--data", str(folder), *map(str, options)]
        self.process = subprocess.Popen(
            [*MCRISE, *words],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files,) * 2)),
        )
        found = re.search(r"(http://[^\s?]+)(\?token=(\S+))?", self.process.stdout.readline())
        assert found, self.process.stderr.read()
        self.address, self.token = found[1], found[3]

    def ask(self, path, method="GET", body=None, headers=(), seconds=60):
        """The status and the body of an answer, read as JSON where it is that."""
        request = urllib.request.Request(
            self.address + path, data=body, method=method, headers=dict(headers)
        )
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return answer.status, parsed(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, parsed(error)

    def submit(self, query="sign=stop&n_masks=64&colors=red,blue&mask_prob=0.5", body=None):
        status, job = self.ask(f"api/jobs?{query}", "POST", body)
        assert status == 201, job
        return job["id"]

    def wait(self, id, states=("done", "failed"), seconds=60):
        limit = time.monotonic() + seconds
        while (status := self.ask(f"api/jobs/{id}")[1])["state"] not in states:
            assert time.monotonic() < limit, status
            time.sleep(0.02)
        return status

    def memory(self, entry="VmHWM"):
        """The most memory it ever had, in bytes; `VmRSS`: now."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return 1024 * int(re.search(rf"{entry}:\s+(\d+)", file.read()).group(1))

    def ticks(self):
        """What it and the processes that it has started have used of the processor."""
        total = 0
        for pid in [self.process.pid, *children(self.process.pid)]:
            with suppress(OSError), open(f"/proc/{pid}/stat") as file:
                total += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
        return total

    def end(self, how="terminate", seconds=120):
        """End it; returns what it said on stderr."""
        getattr(self.process, how)()
        _, errors = self.process.communicate(timeout=seconds)
        return errors


@contextmanager
def serving(folder, *options, **more):
    server = Server(folder, *options, **more)
    try:
        yield server
    finally:
        server.end("kill")


def children(pid):
    """The processes that any thread of a process has started."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, file.read_text().split())
    return found


def parsed(answer):
    content = answer.read()
    is_json = "json" in answer.headers.get("content-type", "")
    return json.loads(content) if is_json and content else content


@functools.cache
def many_scans(n_scans, side, noise=True):
    """A progressive JPEG whose last scan is repeated; without noise, one that is small."""
    out = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256 if noise else 1, (side, side, 3), np.uint8)
    Image.fromarray(pixels).save(out, "JPEG", progressive=True, quality=95)
    content = out.getvalue()
    last = content.rindex(b"\xff\xda")
    return content[:-2] + content[last:-2] * n_scans + content[-2:]
