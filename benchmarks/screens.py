"""The set of screens to look at, what axe-core says of each, and how well things stand out on it.

    python benchmarks/screens.py [FOLDER]

Every level of the page, the page of an audit and that of a difference, at 360, 768, 1280 and 1920
pixels, light and dark; at 200% zoom, with forced colors and printed. A screen that scrolls
sideways, has a serious violation, or text below 4.5 : 1 (large 3 : 1), borders or marks below
3 : 1, is named and fails the run. axe-core is fetched by npm into benchmarks/cache the first time.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from playwright.async_api import Browser, Page, async_playwright

from browsing import ARGUMENTS, COLORS, MODELS, ask
from mcrise.server.job_queue import JobQueue
from serving import serving, wait
from table import report

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "build/screens")
CACHE = Path(__file__).parent / "cache"
RECIPE = Path(__file__).resolve().parents[1] / "recipes" / "shortcut"
AXE = "axe-core@4.14.0"
WIDTHS = (360, 768, 1280, 1920)
N_COLLECTION = 24
SERIOUS = ("serious", "critical")
# What is seen and what is spoken must agree: axe-core calls that rule experimental.
RUN_AXE = """async () => (await axe.run({
  rules: { "label-content-name-mismatch": { enabled: true } } })).violations"""
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
CONTRAST = CONTRAST[CONTRAST.index("() =>") :]


def axe() -> str:
    """The text of axe-core, fetched once."""
    path = CACHE / f"{AXE}.min.js"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["npm", "pack", "--silent", AXE], cwd=folder, check=True)
            (packed,) = Path(folder).glob("*.tgz")
            with tarfile.open(packed) as archive:
                content = archive.extractfile("package/axe.min.js")
                assert content is not None
                path.write_bytes(content.read())
    return path.read_text(encoding="utf-8")


def fill(address: str, jobs: JobQueue) -> dict[str, str]:
    """A world to look at; the addresses of its screens by name."""
    jobs.most_queued = 200
    for i in range(N_COLLECTION):
        ask(jobs, f"{COLORS[i % 2]}/{i}.png", (i + (i % 8 == 4)) % 2, n_masks=64, seed=i)
    image = ask(jobs, f"red/{'a_long_name_of_a_photograph_' * 3}.png", n_masks=512)
    other = ask(jobs, "green/1.png", 1, n_masks=512, seed=1)
    config = "&".join(["n_masks=64", "mask_prob=0.4", "rows=4", "columns=4", "model=center"])
    shades = ",".join(f"%23{k:02x}40{255 - 8 * k:02x}" for k in range(0, 32, 2))
    url = f"{address}api/jobs?sign=stop&colors={shades}&{config}&name=many colors".replace(
        " ", "%20"
    )
    with urllib.request.urlopen(urllib.request.Request(url, method="POST")) as answer:
        many = json.loads(answer.read())["id"]
    failed = ask(jobs, "failed.png", model="broken")
    wait(lambda: all(job.state in ("done", "failed") for job in jobs.all()), 300)
    return {
        "welcome": "#welcome",
        "collection": "#overview?of=red",
        "image": f"#image/{image.id}",
        "compare": f"#image/{image.id}?vs=1",
        "images": f"#image/{image.id}?with={other.id}",
        "whatif": f"#whatif/{image.id}",
        "many": f"#image/{many}",
        "failed": f"#image/{failed.id}",
        "menu": f"#image/{image.id}",
        "missing": "#image/0123456789abcdef",
        "new": "#welcome",
        "keys": "#welcome",
    }


def audited(folder: Path) -> dict[str, str]:
    """The pages of an audit and of a difference: a network with a shortcut, and its clean twin."""
    command = [sys.executable, "-m", "mcrise"]
    make = [sys.executable, str(RECIPE / "make_images.py"), str(folder / "images"), "--images", "8"]
    subprocess.run(make, check=True, capture_output=True)
    for name in ("clean", "sticker"):
        subprocess.run(
            [*command, "audit", str(folder / "images" / "sticker"), "--quiet", "--workers", "1",
             "--model", str(RECIPE / f"{name}.onnx"), "--out", str(folder / name)],
            check=True,
        )  # fmt: skip
    pair = [str(folder / name) for name in ("clean", "sticker")]
    subprocess.run(
        [*command, "diff", *pair, "--out", str(folder / "diff")], check=True, capture_output=True
    )
    audit, diff = folder / "sticker" / "audit.html", folder / "diff" / "diff.html"
    return {"audit": audit.as_uri(), "class": audit.as_uri(), "diff": diff.as_uri()}


async def visit(page: Page, address: str, name: str, place: str) -> None:
    """Open a screen and wait until it is finished."""
    await page.goto("about:blank")
    if place.startswith("file:"):
        await page.goto(place)
        if name == "class":
            await page.click("details.one >> nth=0")
        await page.wait_for_timeout(400)
        return
    await page.goto(address + place)
    await page.wait_for_selector("body[data-ready]")
    waits = {"welcome": "blockquote", "collection": "#gallery .says:not(:empty)",
             "failed": "#waiting .problem", "missing": "#missing h1"}  # fmt: skip
    if name in ("new", "keys"):
        await page.click("#new")
        if name == "new":
            await page.click("#ask summary")
            await page.click(".sign")
        else:
            await page.click("#close-new")
            await page.keyboard.press("?")
    else:
        await page.wait_for_selector(waits.get(name, "#stage .map canvas.map"))
        if name not in waits:
            await page.wait_for_selector("#findings-block:not([aria-busy]) #pending:not(:empty)")
    if name == "menu":
        await page.click("#view-menu summary")
    if name == "image" and await page.locator(".finding .said").count():
        await page.click(".finding .said >> nth=0")
    if name == "whatif":
        await page.wait_for_selector("#odds .number")
    await page.wait_for_timeout(400)


async def look(browser: Browser, address: str, places: dict[str, str]) -> list[dict[str, Any]]:
    """All screens; a row for each with what is wrong with it."""
    rows = []
    kinds: list[dict[str, Any]] = [
        {"name": f"{scheme}-{width}", "width": width, "scheme": scheme}
        for scheme in ("light", "dark") for width in WIDTHS
    ]  # fmt: skip
    kinds += [
        {"name": "zoom-200", "width": 640, "scheme": "light", "factor": 2},  # 1280 at 200%
        {"name": "forced", "width": 1280, "scheme": "dark", "forced": "active"},
    ]
    script = axe()
    for kind in kinds:
        context = await browser.new_context(
            viewport={"width": kind["width"], "height": 900}, color_scheme=kind["scheme"],
            forced_colors=kind.get("forced"), device_scale_factor=kind.get("factor", 1),
            bypass_csp=True, reduced_motion="reduce",
        )  # fmt: skip
        page = await context.new_page()
        for name, place in places.items():
            await visit(page, address, name, place)
            whole = name not in ("new", "keys")
            path = FOLDER / f"{name}-{kind['name']}.png"
            await page.screenshot(path=path, full_page=whole)
            wide = await page.evaluate("() => document.documentElement.scrollWidth")
            await page.evaluate(script)
            found = await page.evaluate(RUN_AXE)
            serious = [one for one in found if one["impact"] in SERIOUS]
            stands = await page.evaluate(CONTRAST)
            rows.append({"screen": path.stem, "kind": kind["name"].rpartition("-")[0] or "forced",
                         "sideways px": max(0, wide - kind["width"]), "serious": len(serious),
                         "below": len(stands["below"]), **stands["lowest"]})  # fmt: skip
            for line in stands["below"][:4]:
                print(f"{path.stem}: {line}")
            for one in serious:
                where = "; ".join(node["html"][:110] for node in one["nodes"][:3])
                print(f"{path.stem}: {one['id']} ({len(one['nodes'])}): {where}")
                if one["id"] == "color-contrast":
                    print("   ", one["nodes"][0]["any"][0]["message"])
        if kind["name"] == "light-1280":
            for name in ("image", "collection", "audit", "diff"):
                await visit(page, address, name, places[name])
                await page.emulate_media(media="print")
                await page.pdf(path=FOLDER / f"{name}-print.pdf", prefer_css_page_size=True)
                await page.screenshot(path=FOLDER / f"{name}-print.png", full_page=True)
                await page.emulate_media(media="screen")
        await context.close()
    return rows


async def main() -> None:
    from mcrise.models.model import Model

    def broken(images: Any) -> Any:
        raise RuntimeError("the weights of this model are not where they were")

    FOLDER.mkdir(parents=True, exist_ok=True)
    models = {**MODELS, "broken": Model(broken, labels=COLORS)}
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), models) as (address, jobs):
        places = fill(address, jobs) | audited(Path(folder) / "audits")
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=ARGUMENTS
            )
            rows = await look(browser, address, places)
            await browser.close()
    bad = [row for row in rows if row["sideways px"] or row["serious"] or row["below"]]
    summary = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        some = [row for row in rows if row["kind"] == kind]
        lowest = {
            f"lowest {what}": min(row.get(what, 21.0) for row in some)
            for what in ("text", "large", "border", "mark")
        }
        summary.append(
            {"kind": kind, "screens": len(some),
             "sideways": sum(row["sideways px"] > 0 for row in some),
             "with serious violations": sum(row["serious"] > 0 for row in some), **lowest}
        )  # fmt: skip
    report("screens", summary, folder=str(FOLDER))
    if bad:
        sys.exit("\n".join(f"{row['screen']}: {row}" for row in bad))


if __name__ == "__main__":
    asyncio.run(main())
