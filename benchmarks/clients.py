"""How long the page takes to show a first map, and how it bears fifty clients at once.

    python benchmarks/clients.py [SECONDS]

The real command with the embedded model, and Debian's Chromium for the first figure. Then one
client explains sign after sign while 49 read twice a second each: the job's state and its maps in
turn. Last, a thousand requests generated from the OpenAPI schema.
"""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from playwright.sync_api import sync_playwright

from table import report

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
N_READERS = 49
ROUNDS = 5
SIGNS = ["stop", "no-entry", "priority-road", "speed-limit-50", "turn-right-ahead"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "mcrise", "serve", "--port", "0", "--data", folder],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        address = found.group()
        try:
            time.sleep(5)  # it warms up while a user looks for a picture
            waits = first_maps(address)
            row = {"runs": ROUNDS, "best s": min(waits), "median s": float(np.median(waits)),
                   "worst s": max(waits)}  # fmt: skip
            report("first map", [row])
            report("fifty clients", [asyncio.run(crowd(address))], seconds=SECONDS)
        finally:
            server.terminate()
            server.wait()
    report("generated requests", [generated()])


def first_maps(address: str) -> list[float]:
    """Seconds from pressing explain to a map on the screen."""
    waits = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = browser.new_page()
        for _ in range(ROUNDS):
            page.goto("about:blank")
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            page.click("#new")
            page.click(".sign")
            started = time.perf_counter()
            page.click("#explain")
            page.wait_for_selector("#stage .map canvas.map", timeout=60_000)
            waits.append(time.perf_counter() - started)
            page.click("#delete")
            page.wait_for_selector("#image", state="hidden")
        browser.close()
    return waits


async def crowd(address: str) -> dict[str, Any]:
    """One client explains, the others read; all must be answered."""
    end = time.monotonic() + SECONDS
    waits: list[float] = []
    wrong: list[str] = []
    current = {"id": submit(address, SIGNS[0])}
    n_jobs = 1

    async def read(number: int) -> None:
        async with httpx2.AsyncClient(base_url=address, timeout=30) as client:
            await asyncio.sleep(number / (2 * N_READERS))
            turn = number
            while time.monotonic() < end:
                id, turn = current["id"], turn + 1
                path = f"/api/jobs/{id}/maps" if turn % 2 else f"/api/jobs/{id}"
                started = time.perf_counter()
                answer = await client.get(path)
                spent = time.perf_counter() - started
                early = answer.status_code == 404 and "no masks yet" in answer.text
                if answer.status_code != 200 and not early:
                    wrong.append(f"{path}: {answer.status_code}")
                waits.append(spent)
                await asyncio.sleep(max(0.0, 0.5 - spent))

    async def explain() -> None:
        nonlocal n_jobs
        async with httpx2.AsyncClient(base_url=address, timeout=30) as client:
            while time.monotonic() < end:
                state = (await client.get(f"/api/jobs/{current['id']}")).json()["state"]
                if state == "failed":
                    wrong.append("the job failed")
                if state in ("done", "failed"):
                    sign = SIGNS[n_jobs % len(SIGNS)]
                    current["id"] = await asyncio.to_thread(submit, address, sign)
                    n_jobs += 1
                await asyncio.sleep(0.2)

    await asyncio.gather(explain(), *(read(number) for number in range(N_READERS)))
    p50, p99 = np.percentile(waits, [50, 99])
    return {
        "readers": N_READERS,
        "requests": len(waits),
        "errors": len(wrong),
        "jobs": n_jobs,
        "median ms": 1000 * float(p50),
        "p99 ms": 1000 * float(p99),
        "worst ms": 1000 * max(waits),
    }


def submit(address: str, sign: str) -> str:
    url = f"{address}api/jobs?sign={sign}&n_masks=1000"
    with urllib.request.urlopen(urllib.request.Request(url, method="POST")) as answer:
        return str(json.loads(answer.read())["id"])


def generated() -> dict[str, Any]:
    """Requests made from the schema, as in the tests, but a thousand."""
    for folder in ("tests", "attacks"):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / folder))
    from test_routes import PLANTED

    from api import generated_requests
    from mcrise.server.app import create_app
    from mcrise.server.job_queue import JobQueue

    with tempfile.TemporaryDirectory() as folder:
        jobs = JobQueue(Path(folder), {"planted": PLANTED})
        try:
            n_sent = generated_requests(create_app(jobs), 1500)
        finally:
            jobs.close()
    return {"requests": n_sent.total(), "server errors": 0}  # the first one raises


if __name__ == "__main__":
    main()
