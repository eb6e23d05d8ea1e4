"""The page beside the one before it, in one run; and what a visitor comes for, counted and timed.

    python benchmarks/page.py [COMMIT]

Both servers are the real command, each from its own checkout (COMMIT in a git worktree that is
removed afterwards), on the same machine and in the same Chromium. A model of any size is served
for the figures at 1000 x 750.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

from table import report

ROOT = Path(__file__).resolve().parents[1]
BEFORE = sys.argv[1] if len(sys.argv) > 1 else "0433676"
ROUNDS = 5
N_JOBS, N_TABS = 40, 20
LARGE = (750, 1000)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MODEL = """
import numpy as np
def model(images):
    rows, columns = (n // 3 for n in images.shape[1:3])
    mean = images[:, rows:-rows, columns:-columns, :2].mean((1, 2)) / 255
    scores = np.exp(4 * np.concatenate([mean, np.zeros((len(mean), 1))], axis=1))
    return scores / scores.sum(1, keepdims=True)
def corner(images):
    return model(np.roll(images, (images.shape[1] // 3, images.shape[2] // 3), (1, 2)))
"""


@contextmanager
def server(tree: Path, *models: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "own.py").write_text(MODEL)
        named = [word for model in models for word in ("--model", model)]
        process = subprocess.Popen(
            [sys.executable, "-m", "mcrise", "serve", "--port", "0", "--data", f"{folder}/data",
             *named],
            stdout=subprocess.PIPE, text=True, cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{folder}"},
        )  # fmt: skip
        assert process.stdout is not None
        try:
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            yield found.group()
        finally:
            process.terminate()
            process.wait()


def post(address: str, asked: str, body: bytes = b"") -> str:
    request = urllib.request.Request(f"{address}api/jobs?{asked}", data=body, method="POST")
    with urllib.request.urlopen(request) as answer:
        id = re.search(rb'"id":"(\w+)"', answer.read())
    assert id is not None
    return id.group(1).decode()


def finish(address: str, id: str) -> None:
    while b'"done"' not in urllib.request.urlopen(f"{address}api/jobs/{id}").read():
        time.sleep(0.1)


def png(size: tuple[int, int], color: int = 0) -> bytes:
    import io

    pixels = np.random.default_rng(0).integers(0, 100, (*size, 3), np.uint8)
    pixels[size[0] // 3 : -size[0] // 3, size[1] // 3 : -size[1] // 3, color] = 220
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


# ---- figures of both


def figures(browser: Browser, tree: Path, old: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"page": "before" if old else "now"}
    with server(tree, "demo") as address:
        finish(address, post(address, "sign=stop&n_masks=64"))  # a new checkout compiles first
        visits = [first_visit(browser, address) for _ in range(ROUNDS)]
        row["first paint ms"] = float(np.median([one[0] for one in visits]))
        row["first visit kB"] = max(one[1] for one in visits) / 1000
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        row["first map s"] = float(np.median([first_map(page, address, old) for _ in range(3)]))
        id = post(address, "sign=stop&n_masks=512")
        finish(address, id)
        row["class switch ms"] = class_switch(page, address, id, old)
        ids = [post_patiently(address, "sign=stop&n_masks=64&mask_prob=0.3") for _ in range(N_JOBS)]
        finish(address, ids[-1])
        row[f"heap after {N_JOBS} jobs MB"] = heap(page, address, ids, old)
        page.close()
        row[f"of {N_TABS} tabs show a running job"] = tabs(browser, address, old)
    with server(tree, "own:model") as address:
        id = post(address, "n_masks=64&mask_prob=0.4", png(LARGE))
        finish(address, id)
        maps = urllib.request.urlopen(f"{address}api/jobs/{id}/maps").read()
        row["refresh kB at 1000 x 750"] = len(maps) / 1000
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        row["slider tick ms at 1000 x 750"] = slider(page, address, id, old)
        page.close()
    return row


def first_visit(browser: Browser, address: str) -> tuple[float, int]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    client = context.new_cdp_session(page)
    sizes: list[int] = []
    client.on(
        "Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"]))
    )
    client.send("Network.enable")
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_timeout(700)
    paint = page.evaluate(
        "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    context.close()
    return float(paint), sum(sizes)


MAP = {True: ".panel canvas", False: "#stage .map canvas.map"}


def first_map(page: Page, address: str, old: bool) -> float:
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    if not old:
        page.click("#new")
        page.click(".sign")
    started = time.perf_counter()
    page.click("#explain")
    page.wait_for_selector(MAP[old], timeout=60_000)
    waited = time.perf_counter() - started
    page.click("#delete")
    page.wait_for_selector("#job" if old else "#image", state="hidden")
    return waited


def open_job(page: Page, address: str, id: str, old: bool) -> None:
    page.goto(f"{address}#{id}" if old else f"{address}#image/{id}")
    page.wait_for_selector(MAP[old])


def class_switch(page: Page, address: str, id: str, old: bool) -> float:
    """From asking for another class to its map, each of a class that was not asked for before."""
    page.goto("about:blank")
    open_job(page, address, id, old)
    page.wait_for_timeout(3000)
    caption, spent = "#caption" if old else "#stage .map figcaption", []
    for label in ("no entry", "yield", "priority road", "keep right", "road work"):
        page.fill("#target", label)
        started = time.perf_counter()
        page.press("#target", "Enter")
        page.locator(caption, has_text=label).first.wait_for()
        spent.append(1000 * (time.perf_counter() - started))
    return float(np.median(spent))


def post_patiently(address: str, asked: str, body: bytes = b"") -> str:
    while True:
        try:
            return post(address, asked, body)
        except urllib.error.HTTPError:  # the queue is full
            time.sleep(0.5)


def heap(page: Page, address: str, ids: list[str], old: bool) -> float:
    page.goto("about:blank")
    for id in ids:
        open_job(page, address, id, old)
        page.wait_for_timeout(150)
    client = page.context.new_cdp_session(page)
    client.send("HeapProfiler.collectGarbage")
    return float(client.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def tabs(browser: Browser, address: str, old: bool) -> int:
    context = browser.new_context()
    id = post(address, "sign=stop&n_masks=100000&mask_prob=0.3")
    time.sleep(5)
    pages = [context.new_page() for _ in range(N_TABS)]
    for page in pages:
        with suppress(TimeoutError):  # where each holds a stream, the seventh cannot even load
            page.goto(f"{address}#{id}" if old else f"{address}#image/{id}", timeout=5000)
    time.sleep(30)
    shown = sum(page.locator(MAP[old]).count() > 0 for page in pages)
    context.close()
    request = urllib.request.Request(f"{address}api/jobs/{id}", method="DELETE")
    urllib.request.urlopen(request)
    return shown


def slider(page: Page, address: str, id: str, old: bool) -> float:
    """What the script takes for one tick of the slower of the sliders."""
    open_job(page, address, id, old)
    page.wait_for_timeout(3000)
    tick = """(slider) => { const spent = []; for (let i = 1; i <= 9; i++) {
      slider.value = slider.max * i / 10; const start = performance.now();
      slider.dispatchEvent(new Event("input")); spent.push(performance.now() - start); }
      return spent.sort((a, b) => a - b)[4]; }"""
    names = ["#strength"] if old else ["#strength", "#above"]
    return max(float(page.locator(name).evaluate(tick)) for name in names)


# ---- what people come for


class Counted:
    """A page whose interactions are counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.n, self.started = page, 0, time.perf_counter()

    def do(self, act: Callable[[], Any]) -> None:
        self.n += 1
        act()

    def row(self, task: str, most: int | None) -> dict[str, Any]:
        spent = time.perf_counter() - self.started
        return {"task": task, "interactions": self.n, "at most": most, "seconds": spent}


def tasks(browser: Browser, tree: Path) -> list[dict[str, Any]]:
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        server(tree, "own:model", "own:corner") as address,
    ):
        path = Path(folder) / "mine.png"
        path.write_bytes(png((96, 96)))
        context = browser.new_context(
            viewport={"width": 1280, "height": 900}, permissions=["clipboard-write"]
        )
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        by = Counted(page)
        by.do(lambda: page.click("#new"))
        by.do(lambda: page.set_input_files("#file", path))
        by.do(lambda: page.click("#explain"))
        page.wait_for_selector(MAP[False], timeout=60_000)
        rows.append(by.row("explain an own photograph", 3))

        page.wait_for_selector(".finding", timeout=120_000)
        by = Counted(page)
        by.do(
            lambda: page.get_by_role("button", name="Compare with own:corner, same masks").click()
        )
        page.locator("#colors h3", has_text="difference").wait_for(timeout=120_000)
        rows.append(by.row("compare two models on one image", None))

        # The corner decides, though the color is in the middle: find it, try it, send it.
        id = post(
            address, "n_masks=512&mask_prob=0.4&model=own:corner&name=shortcut", png((96, 96))
        )
        finish(address, id)
        page.goto(f"{address}#collection")
        by = Counted(page)
        by.do(lambda: page.locator("#jobs a", has_text="shortcut").click())
        page.wait_for_selector(".finding", timeout=60_000)
        by.do(lambda: page.click(".finding .said >> nth=0"))
        by.do(lambda: page.get_by_role("button", name="Try it").first.click())
        page.wait_for_selector(".verdict")
        by.do(lambda: page.click("#copy"))
        page.get_by_text("The link is copied.").wait_for()
        assert "upper left" in page.locator(".finding.pinned").inner_text()
        rows.append(by.row("find a shortcut, try it, send the link", 9))

        for i in range(200):
            truth = ("class 0", "class 1")[i % 2]
            asked = f"n_masks=64&mask_prob=0.4&rows=4&columns=4&name={truth}/{i}.png"
            picture = png((24, 24), (i + (i % 10 == 4)) % 2)
            post_patiently(address, asked.replace(" ", "%20"), picture)
        page.goto(f"{address}#collection?model=own:model")
        page.locator("#collection-count", has_text="20 wrong").wait_for(timeout=300_000)
        by = Counted(page)
        by.do(lambda: page.get_by_label("Class", exact=True).select_option("class 0"))
        by.do(lambda: page.get_by_label("Answers").select_option("wrong"))
        page.locator("#collection-count", has_text="20 of 20").wait_for()
        rows.append(by.row("filter 200 images to the wrong ones of a class", None))
        context.close()
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        tree = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run(
            [*git, "add", "--detach", str(tree), BEFORE], check=True, capture_output=True
        )
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        try:
            rows = [figures(browser, where, where is tree) for where in (tree, ROOT)]
            turned = [
                {"figure": name, **{row["page"]: row[name] for row in rows}} for name in rows[1]
            ]
            report("page", turned[1:], before=BEFORE)
            report("page tasks", tasks(browser, ROOT))
        finally:
            browser.close()
            subprocess.run([*git, "remove", "--force", str(tree)], check=True, capture_output=True)


if __name__ == "__main__":
    main()
