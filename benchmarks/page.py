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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

from table import report

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "recipes" / "shortcut"
BEFORE = sys.argv[1] if len(sys.argv) > 1 else "773b96f"
ROUNDS = 5
N_JOBS, N_TABS, N_PICTURES = 40, 20, 200
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


def figures(browser: Browser, trees: dict[str, Path]) -> list[dict[str, Any]]:
    """A row for each figure. What takes time is asked of both pages in turn, so that whatever else
    the machine does falls on both."""
    rows: dict[str, dict[str, Any]] = {}

    def tell(figure: str, name: str, value: float) -> None:
        rows.setdefault(figure, {"figure": figure})[name] = value

    with ExitStack() as stack:
        served = {name: stack.enter_context(server(tree, "demo")) for name, tree in trees.items()}
        visits: dict[str, list[tuple[float, list[int]]]] = {name: [] for name in trees}
        findings: dict[str, list[float]] = {name: [] for name in trees}
        maps: dict[str, list[float]] = {name: [] for name in trees}
        switches: dict[str, list[float]] = {name: [] for name in trees}
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        for address in served.values():
            finish(address, post(address, "sign=stop&n_masks=64"))  # a new checkout compiles first
        for _ in range(ROUNDS):
            for name, address in served.items():
                visits[name].append(first_visit(browser, address))
                shown, found = first_map(page, address)
                maps[name].append(shown)
                findings[name].append(found)
        known = {name: post(served[name], "sign=stop&n_masks=512") for name in trees}
        for name, id in known.items():
            finish(served[name], id)
        for label in ("no entry", "yield", "priority road", "keep right", "road work"):
            for name, id in known.items():
                switches[name].append(class_switch(page, served[name], id, label))
        page.close()
        for name in trees:
            tell("first paint ms", name, float(np.median([one[0] for one in visits[name]])))
            tell("first visit kB", name, max(sum(one[1]) for one in visits[name]) / 1000)
            tell("first visit requests", name, max(len(one[1]) for one in visits[name]))
            tell("first finding s", name, float(np.median(findings[name])))
            tell("first map s", name, float(np.median(maps[name])))
            tell("first map s, slowest", name, max(maps[name]))
            tell("class switch ms", name, float(np.median(switches[name])))
            tell("class switch ms, slowest", name, max(switches[name]))
    for name, tree in trees.items():
        with server(tree, "demo") as address:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            asked = "sign=stop&n_masks=64&mask_prob=0.3"
            ids = [post_patiently(address, asked) for _ in range(N_JOBS)]
            finish(address, ids[-1])
            tell(f"heap after {N_JOBS} jobs MB", name, heap(page, address, ids))
            page.close()
            tell(f"of {N_TABS} tabs show a job", name, tabs(browser, address))
        with server(tree, "own:model") as address:
            id = post(address, "n_masks=64&mask_prob=0.4", png(LARGE))
            finish(address, id)
            packed = urllib.request.urlopen(f"{address}api/jobs/{id}/maps").read()
            tell("refresh kB at 1000 x 750", name, len(packed) / 1000)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            tell("slider tick ms at 1000 x 750", name, slider(page, address, id))
            page.close()
        with server(tree, "own:model") as address:
            tell(f"{N_PICTURES} pictures end to end s", name, many(address))
    return list(rows.values())


def first_visit(browser: Browser, address: str) -> tuple[float, list[int]]:
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
    return float(paint), sizes


MAP = "#stage .map canvas.map"


def first_map(page: Page, address: str) -> tuple[float, float]:
    """Seconds from asking to the first map, and to the first finding."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.click("#new")
    page.click(".sign")
    started = time.perf_counter()
    page.click("#explain")
    page.wait_for_selector(MAP, timeout=60_000)
    shown = time.perf_counter() - started
    finding, test = page.locator(".finding"), page.locator("#test-class:not([aria-disabled])")
    finding.or_(test).first.wait_for(timeout=120_000)
    if not finding.count():  # it does not test by itself, or has not begun
        with suppress(TimeoutError):
            test.click(timeout=1000)
    finding.first.wait_for(timeout=120_000)
    found = time.perf_counter() - started
    page.click("#delete")
    page.wait_for_selector("#image", state="hidden")
    return shown, found


def open_job(page: Page, address: str, id: str) -> None:
    page.goto(f"{address}#image/{id}")
    page.wait_for_selector(MAP)


def class_switch(page: Page, address: str, id: str, label: str) -> float:
    """Milliseconds from asking for a class that was not asked for before to its map."""
    page.goto("about:blank")
    open_job(page, address, id)
    page.wait_for_timeout(2000)
    caption = "#stage .map figcaption"
    page.fill("#target", label)
    started = time.perf_counter()
    page.press("#target", "Enter")
    page.locator(caption, has_text=label).first.wait_for()
    return 1000 * (time.perf_counter() - started)


def post_patiently(address: str, asked: str, body: bytes = b"") -> str:
    while True:
        try:
            return post(address, asked, body)
        except urllib.error.HTTPError:  # the queue is full
            time.sleep(0.5)


def heap(page: Page, address: str, ids: list[str]) -> float:
    page.goto("about:blank")
    for id in ids:
        open_job(page, address, id)
        page.wait_for_timeout(150)
    client = page.context.new_cdp_session(page)
    client.send("HeapProfiler.collectGarbage")
    return float(client.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def tabs(browser: Browser, address: str) -> int:
    context = browser.new_context()
    id = post(address, "sign=stop&n_masks=100000&mask_prob=0.3")
    time.sleep(5)
    pages = [context.new_page() for _ in range(N_TABS)]
    for page in pages:
        with suppress(TimeoutError):  # where each holds a stream, the seventh cannot even load
            page.goto(f"{address}#image/{id}", timeout=5000)
    time.sleep(30)
    shown = sum(page.locator(MAP).count() > 0 for page in pages)
    context.close()
    request = urllib.request.Request(f"{address}api/jobs/{id}", method="DELETE")
    urllib.request.urlopen(request)
    return shown


def slider(page: Page, address: str, id: str) -> float:
    """What the script takes for one tick of the slower of the sliders."""
    open_job(page, address, id)
    page.wait_for_timeout(3000)
    tick = """(slider) => { const spent = []; for (let i = 1; i <= 9; i++) {
      slider.value = slider.max * i / 10; const start = performance.now();
      slider.dispatchEvent(new Event("input")); spent.push(performance.now() - start); }
      return spent.sort((a, b) => a - b)[4]; }"""
    names = ["#strength", "#above"]
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
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, permissions=["clipboard-write"]
    )
    page = context.new_page()
    twins = [str(RECIPE / f"{name}.onnx") for name in ("sticker", "clean")]
    with server(tree, *twins) as address:
        rows = shortcut_tasks(page, address)
    with server(tree, "own:model") as address:
        rows.append(collection_task(page, address))
    context.close()
    return rows


def shortcut_tasks(page: Page, address: str) -> list[dict[str, Any]]:
    """A photograph of a sign with a sticker, by which one of two networks knows its class."""
    sys.path.append(str(RECIPE))
    from scenes import scene

    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine.png"
        Image.fromarray(scene(3, "speed limit 50", 0, "sticker")).save(path)
        by = Counted(page)
        by.do(lambda: page.click("#new"))
        by.do(lambda: page.set_input_files("#file", path))
        by.do(lambda: page.click("#explain"))
        page.wait_for_selector(MAP, timeout=60_000)
        rows = [by.row("explain an own photograph", 3)]
    page.wait_for_selector(".finding", timeout=120_000)
    by.do(lambda: page.click(".finding .said >> nth=0"))
    assert "lower right" in page.locator(".finding.pinned").inner_text()  # where the sticker is
    page.locator(".finding.pinned .shot").first.wait_for()  # the pictures of its tests
    by.do(lambda: page.click("#copy"))
    page.get_by_text("The link is copied.").wait_for()
    rows.append(by.row("find the shortcut, see its tests, send the link, from the start", 9))
    by = Counted(page)
    by.do(lambda: page.get_by_role("button", name="Compare with clean, same masks").click())
    page.locator("#colors h3", has_text="A − B").wait_for(timeout=120_000)
    rows.append(by.row("compare two models on one image", None))
    return rows


def many(address: str) -> float:
    """Seconds from sending the first of many pictures until all are explained; one in ten is
    wrong."""
    started = time.perf_counter()
    for i in range(N_PICTURES):
        truth = ("class 0", "class 1")[i % 2]
        asked = f"n_masks=64&mask_prob=0.4&rows=4&columns=4&name={truth}/{i}.png"
        picture = png((24, 24), (i + (i % 10 == 4)) % 2)
        last = post_patiently(address, asked.replace(" ", "%20"), picture)
    finish(address, last)
    return time.perf_counter() - started


def collection_task(page: Page, address: str) -> dict[str, Any]:
    many(address)
    page.goto(f"{address}#overview")
    page.locator("#overview-count", has_text="200 images · 20 wrong").wait_for(timeout=300_000)
    by = Counted(page)
    by.do(lambda: page.get_by_label("Class", exact=True).select_option("class 0"))
    by.do(lambda: page.get_by_label("Answers").select_option("wrong"))
    page.locator("#overview-count", has_text="20 of 200").wait_for()
    return by.row("filter 200 images to the wrong ones of a class", None)


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
            report("page", figures(browser, {BEFORE: tree, "now": ROOT}))
            report("page tasks", tasks(browser, ROOT))
        finally:
            browser.close()
            subprocess.run([*git, "remove", "--force", str(tree)], check=True, capture_output=True)


if __name__ == "__main__":
    main()
