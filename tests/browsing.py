"""A browser for tests: what they open, point at and compare; pictures of one color to explain."""

import io
import threading
from contextlib import contextmanager

import numpy as np
from PIL import Image
from playwright.sync_api import expect

from mcrise.config import RunConfig
from mcrise.models.model import Model
from mcrise.server.schemas import JobRequest
from serving import serving, wait

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SECONDS = 60_000  # in milliseconds, for a busy machine

expect.set_options(timeout=SECONDS)


class Held:
    """The embedded model, held back after some images until it is let go."""

    def __init__(self, model, n_free):
        self.model, self.n_free, self.n_images = model, n_free, 0
        self.go = threading.Event()

    def __call__(self, batch):
        while self.n_images >= self.n_free and not self.go.wait(0.01):
            pass
        self.n_images += len(batch)
        return self.model.predict(batch)


@contextmanager
def served(page, folder, models):
    """A server that the page has left before it ends."""
    with serving(folder, models) as server:
        try:
            yield server
        finally:
            page.goto("about:blank")


def move_to(page, selector, row, column, size):
    """Point at the middle of a pixel of a view, again if the view has moved meanwhile."""
    view = page.locator(f"{selector} .view").first
    view.scroll_into_view_if_needed()
    box = None
    while box != (box := view.bounding_box()):
        page.mouse.move(
            box["x"] + box["width"] * (column + 0.5) / size[1],
            box["y"] + box["height"] * (row + 0.5) / size[0],
        )
        page.wait_for_timeout(50)


def opened(page, address, id, **looks):
    """Open a job that is done, and wait for what is known of its findings."""
    asked = "&".join(f"{name}={value}" for name, value in looks.items())
    page.goto(f"{address}#image/{id}{'?' if asked else ''}{asked}")
    expect(page.locator("#stage .map canvas.map").first).to_be_visible()
    expect(page.locator("#findings-block")).not_to_have_attribute("aria-busy", "true")


def odds_shown(page):
    """The first of the scores after painting, when the model has answered all that was asked."""
    odds = page.locator("#odds .number").first
    expect(odds).to_contain_text("→")
    expect(page.locator("#odds")).not_to_have_attribute("aria-busy", "true")
    return odds.inner_text()


# ---- a small world: pictures of one color, told apart by it

COLORS = ("red", "green", "oystercatcher", "tom cat")  # two of them never meant


def center_color(images):
    """Which color the middle has; the other two classes are unlikely."""
    mean = images[:, 8:16, 8:16, :2].astype(np.float64).mean(axis=(1, 2)) / 255
    scores = np.exp(6 * np.concatenate([mean, np.full((len(mean), 2), -0.2)], axis=1))
    return scores / scores.sum(axis=1, keepdims=True)


def corner_color(images):
    """A shortcut: it looks at the upper left corner only."""
    return center_color(np.roll(images, (8, 8), axis=(1, 2)))


def color_picture(k, seed=0, alpha=False):
    pixels = np.random.default_rng(seed).integers(0, 90, (24, 24, 4 if alpha else 3), np.uint8)
    pixels[6:18, 6:18, k] = 230
    if alpha:
        pixels[..., 3] = 255
        pixels[:4, :, 3] = 0
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def ask(jobs, name="red/0.png", k=0, n_masks=256, model="center", seed=0, **options):
    config = RunConfig(n_masks=n_masks, mask_prob=0.4, grid=(4, 4), fills="rgbwk")
    return jobs.submit(JobRequest(model, name, config), color_picture(k, seed, **options))


def ask_and_wait(jobs, *given, **options):
    job = ask(jobs, *given, **options)
    wait(lambda: job.state == "done")
    return job


MODELS = {
    "center": Model(center_color, labels=COLORS, identity="center"),
    "corner": Model(corner_color, labels=COLORS, identity="corner"),
}
