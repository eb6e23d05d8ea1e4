"""An audit of 5,000 tiny images: the memory of whoever hands out the work, and what lies on disk.

    python benchmarks/audit_size.py [N_IMAGES]

What workers answer is drawn, so that only the driver is measured: it takes answers, writes pieces,
makes tables of them, has the findings of classes tried, and makes figures and pages of it all.
Last, the page is opened from its file in Debian's Chromium, five times.
"""

import io
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from mcrise import Model
from mcrise.audits.api import prepare, write_pages
from mcrise.audits.config import AuditConfig, AuditWorker
from mcrise.audits.measure import COUNTERFACTUAL, ImageMeasurement, Repainted, Task
from mcrise.batch.engine import BatchOptions, run
from mcrise.batch.workers import InlinePool
from mcrise.config import RunConfig
from memory import peak, reset_peak, status
from table import report

N_IMAGES = 5000
N_CLASSES = 50
STEPS = 5  # rows of the table
ROUNDS = 5
THUMBNAIL = (96, 96)  # as large as any


class Drawn(AuditWorker):
    """Answers at once: maps of noise, and of a patch that each class depends on."""

    def do(self, task: Task) -> ImageMeasurement | Repainted:
        rng = np.random.default_rng(task.image)
        target = task.truth or 0
        if task.confirmations is not None:
            after = {
                one.key: (0.4, target, (0.9,) * len(one.controls)) for one in task.confirmations
            }
            return Repainted(target, 0.9, target, after)
        maps = rng.normal(0, 0.03, (1, 5, 32, 32))
        region = np.ones((32, 32), bool)
        region[4:-4, 4:-4] = False
        maps[..., target % 24 : target % 24 + 8, 12:20] -= 0.1
        parts = {"zone_energy": (10,), "zone_effect": (10, 5), "color_area": (12,),
                 "color_area_effect": (12, 5)}  # fmt: skip
        facts = {
            "target": target, "predicted": target, "score": 0.9, "predicted_score": 0.9,
            "n_masks": 64, "gray": target, "hue120": target, "hue240": target,
            **dict.fromkeys(COUNTERFACTUAL), "corrected_by": None, "correction_sentence": None,
            "notes": [], "n_calls": 150, "presence_energy": 0.01, "color_energy": 0.02,
            "background_zone": "rim",
        }  # fmt: skip
        arrays: dict[str, Any] = {name: rng.random(shape) for name, shape in parts.items()}
        arrays |= {"maps": maps.astype(np.float16), "ranks": maps[0].astype(np.float16)}
        arrays |= {"errors": np.full_like(arrays["maps"], 0.03)}
        arrays["pixels"] = rng.integers(0, 256, (32, 32, 3), np.uint8)
        arrays |= {"background_score": np.full(7, 0.9), "background_prediction": np.full(7, target)}
        arrays |= {"background_region": np.packbits(region), "thumbnail": drawn_thumbnail(rng)}
        return ImageMeasurement(facts, [], arrays)


def drawn_thumbnail(rng: np.random.Generator) -> Any:
    """A file of a few kB, as photographs have."""
    coarse = Image.fromarray(rng.integers(0, 256, (24, 24, 3), np.uint8))
    out = io.BytesIO()
    coarse.resize(THUMBNAIL).save(out, "WEBP", quality=70)
    return np.frombuffer(out.getvalue(), np.uint8)


def main() -> None:
    n_images = int(sys.argv[1]) if sys.argv[1:] else N_IMAGES
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        for n in range(n_images):
            place = data / str(n % N_CLASSES)
            place.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (n % 256, 90, 60)).save(place / f"{n:06d}.png")
        rows = measure(data, Path(folder) / "out", n_images)
    report("audit_size", rows, images=n_images, classes=N_CLASSES)


def measure(data: Path, out: Path, n_images: int) -> list[dict[str, Any]]:
    """Memory while images come in, while tables are made, and while figures are."""
    model = Model(lambda images: np.full((len(images), N_CLASSES), 1 / N_CLASSES))
    labels = list(map(str, range(N_CLASSES)))
    config = RunConfig(n_masks=64, mask_prob=0.2)
    order = prepare(data, model, config, BatchOptions(), out=out, labels=labels)
    before, started, rows = reset_peak(), time.perf_counter(), []

    def note(what: str) -> None:
        rows.append({"done": what, "MB now": (status("VmRSS") - before) / 1e6,
                     "peak MB": (peak() - before) / 1e6,
                     "seconds": time.perf_counter() - started})  # fmt: skip

    told = 0
    for work in run(order.audit, InlinePool(Drawn(model, AuditConfig()))):
        if len(work.done) >= told + n_images // STEPS and not work.confirming:
            told = len(work.done)
            note(f"{told:,} images")
    note("tables, and findings tried")
    write_pages(order.audit.out, ())
    note("figures and pages")
    for name in ("images", "maps", "attempts"):
        size = sum(file.stat().st_size for file in (out / name).rglob("*.parquet"))
        rows.append({"done": f"{name}, MB on disk", "MB now": size / 1e6})
    page = out / "audit.html"
    rows.append({"done": "audit.html, MB on disk", "MB now": page.stat().st_size / 1e6})
    rows.append({"done": "audit.html opened, median", "seconds": float(np.median(opened(page)))})
    return rows


def opened(path: Path) -> list[float]:
    """Seconds until a browser that has never seen the page has loaded and painted all of it."""
    waits = []
    with sync_playwright() as playwright:
        for _ in range(ROUNDS):
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"),
                args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            )
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            started = time.perf_counter()
            page.goto(path.as_uri(), wait_until="load")
            page.screenshot()
            waits.append(time.perf_counter() - started)
            browser.close()
    return waits


if __name__ == "__main__":
    main()
