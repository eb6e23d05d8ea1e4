"""The page and the report in a real browser: Debian's Chromium, driven by Playwright."""

import os
import re
import shutil
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

import mcrise
from mcrise.model import Model
from mcrise.report import Chapter, render
from planted import PatchModel, photo
from serving import serving, sign_bytes

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SCREENS = Path(__file__).resolve().parents[1] / "build" / "screens"
HOSTILE = "<img src=x onerror=alert(1)>"
N_MASKS = 500  # the page's smallest choice: 512 in whole chunks
SECONDS = 60_000  # in milliseconds, for a busy machine

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Playwright's own pipes


class Held:
    """The embedded model, held back after some images until it is let go."""

    def __init__(self, model, n_free):
        self.model, self.n_free, self.n_images = model, n_free, 0
        self.go = threading.Event()

    def __call__(self, batch):
        if self.n_images >= self.n_free:
            self.go.wait()
        self.n_images += len(batch)
        return self.model.predict(batch)


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed, and CI is set")
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    """A page on which nothing may go wrong, neither loudly nor in the console."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    yield page
    context.close()
    assert wrong == []


@contextmanager
def served(page, folder, models):
    """A server that the page has left before it ends."""
    with serving(folder, models) as server:
        try:
            yield server
        finally:
            page.goto("about:blank")


def shoot(page, name):
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"{name}.png", full_page=True)


def move_to(page, selector, row, column, size):
    """Point at the middle of a pixel of a canvas."""
    canvas = page.locator(f"{selector} canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(
        box["x"] + box["width"] * (column + 0.5) / size[1],
        box["y"] + box["height"] * (row + 0.5) / size[0],
    )


def numbers(page, selector=".bars"):
    """The values and errors shown as bars: (K, 2)."""
    texts = page.locator(f"{selector} .number").all_inner_texts()
    return np.array([[float(part) for part in re.sub("−", "-", t).split("±")] for t in texts])


def assert_numbers_of(page, maps, row, column):
    move_to(page, "#large", row, column, maps.image.shape)
    expect(page.locator("#bars .head")).to_have_text(f"{maps.label}: row {row}, column {column}")
    recorded = np.stack([maps.values[:, row, column], maps.se[:, row, column]], axis=1)
    np.testing.assert_allclose(numbers(page, "#bars"), recorded, atol=6e-5)  # four decimals


def test_a_sign_is_uploaded_explained_compared_painted_and_found_again(page, tmp_path):
    demo = mcrise.load_model("demo")
    n_tried = len(mcrise.explain(sign_bytes(), demo, n_masks=64).pilot)
    held = Held(demo, 1 + 128 + 32 + 64 * n_tried)  # two chunks, a batch again, and the pilot
    (tmp_path / "my sign.png").write_bytes(sign_bytes())
    with served(page, tmp_path / "data", {"demo": replace(demo, predict=held)}) as (address, jobs):
        try:
            page.goto(address)
            page.set_input_files("#file", tmp_path / "my sign.png")
            page.select_option("#masks", str(N_MASKS))
            page.click("#explain")

            # A first map before the job has finished, then the final one.
            expect(page.locator("#caption")).to_contain_text("128 masks", timeout=SECONDS)
            expect(page.locator("#state")).to_contain_text("running · 128 of 512 masks")
            first = page.locator("#large canvas").first.evaluate("canvas => canvas.toDataURL()")
            held.go.set()
            expect(page.locator("#state")).to_contain_text("done · 512", timeout=SECONDS)
            expect(page.locator("#caption")).to_contain_text("512 masks", timeout=SECONDS)
            final = page.locator("#large canvas").first.evaluate("canvas => canvas.toDataURL()")
            assert first != final

            # Hovering shows the record's own numbers, for another class and estimator too.
            (job,) = jobs.all()
            assert job.order.name == "my sign.png"
            record = mcrise.load(jobs.record_path(job))
            assert_numbers_of(page, record.maps("stop"), 40, 50)
            expect(page.locator("#odds .number").first).to_be_visible()
            asked = jobs.n_images
            page.fill("#target", "no entry")
            page.press("#target", "Tab")
            expect(page.locator("#caption")).to_contain_text("no entry · red")
            assert_numbers_of(page, record.maps("no entry"), 30, 70)
            page.select_option("#estimator", "paper")
            expect(page.locator("#caption")).to_contain_text("paper")
            assert_numbers_of(page, record.maps("no entry", "paper"), 31, 71)
            page.fill("#against", "stop")
            page.press("#against", "Tab")
            expect(page.locator("#panels h3")).to_have_text(["no entry", "stop", "no entry − stop"])
            page.fill("#against", "")
            page.press("#against", "Tab")
            expect(page.locator("#panels h3")).to_have_count(1)
            page.select_option("#estimator", "smooth")
            page.fill("#target", "stop")
            page.press("#target", "Tab")
            expect(page.locator("#caption")).to_contain_text("stop · red · smooth")
            assert jobs.n_images == asked  # all of it without a model call

            # A sentence outlines its region.
            sentence = page.locator("#findings li").first
            expect(sentence).to_contain_text("stop")
            marks = page.locator("#large canvas").nth(1)
            bare = marks.evaluate("canvas => canvas.toDataURL()")
            sentence.hover()
            assert marks.evaluate("canvas => canvas.toDataURL()") != bare

            # Green over the middle of a stop sign: the model doubts.
            page.locator("#paints label", has_text="green").click()
            before = page.locator("#odds .number").first.inner_text()
            move_to(page, "#brush", 48, 30, (96, 96))
            page.mouse.down()
            move_to(page, "#brush", 48, 66, (96, 96))
            page.mouse.up()
            expect(page.locator("#odds .number").first).not_to_have_text(before)
            was, now = page.locator("#odds .number").first.inner_text().split(" → ")
            assert abs(float(now) - float(was)) > 0.02
            assert jobs.n_images > asked

            # Reloading finds the job, by its address and in the list.
            page.reload()
            expect(page.locator("#state")).to_contain_text("done · 512")
            expect(page.locator("#caption")).to_contain_text("512 masks", timeout=SECONDS)
            expect(page.locator("#jobs a")).to_contain_text("my sign.png")

            for scheme in ("light", "dark"):
                for width in (1280, 360):
                    page.emulate_media(color_scheme=scheme)
                    page.set_viewport_size({"width": width, "height": 900})
                    overflow = page.evaluate("() => document.documentElement.scrollWidth")
                    assert overflow <= width
                    shoot(page, f"page-{scheme}-{width}")
        finally:
            held.go.set()


def test_the_page_can_be_used_by_keyboard_and_every_control_has_a_name(page, tmp_path):
    with served(page, tmp_path, {"planted": planted()}) as (address, _):
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        page.focus("#explain")
        page.keyboard.press("Enter")
        expect(page.locator("#state")).to_contain_text("done", timeout=SECONDS)
        expect(page.locator("#findings li").first).to_be_visible()
        page.locator("#large canvas").first.focus()
        before = page.locator("#bars .head").inner_text()
        page.keyboard.press("ArrowRight")
        assert page.locator("#bars .head").inner_text() != before
        odds = page.locator("#odds .number").first
        shown = odds.inner_text()
        page.locator("#brush canvas").first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Space")
        expect(odds).not_to_have_text(shown)
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, a, canvas[tabindex]")]
              .filter((one) => !(one.labels?.length || one.textContent.trim()
                                 || one.getAttribute("aria-label")))
              .map((one) => one.outerHTML)"""
        )
        assert unnamed == []


def test_html_in_labels_and_names_is_shown_as_text_on_the_page(page, tmp_path):
    with served(page, tmp_path / "data", {"planted": planted()}) as (address, _):
        (tmp_path / f"{HOSTILE}.png").write_bytes(sign_bytes())
        page.goto(address)
        page.set_input_files("#file", tmp_path / f"{HOSTILE}.png")
        page.click("#explain")
        expect(page.locator("#state")).to_contain_text("done", timeout=SECONDS)
        expect(page.locator("#jobs .name")).to_have_text(f"{HOSTILE}.png")
        expect(page.locator("#findings li").first).to_contain_text(HOSTILE)
        expect(page.locator("#odds")).to_contain_text(HOSTILE)
        expect(page.locator("#panels h3")).to_contain_text(HOSTILE)
        assert page.locator("img[src=x]").count() == 0


def planted():
    labels = (HOSTILE, f"not {HOSTILE}")
    return Model(PatchModel(slice(60, 130), slice(60, 130)), labels=labels, identity="planted")


def test_the_report_opens_without_a_network_and_can_be_read_by_hovering(page, tmp_path):
    model = PatchModel(slice(60, 160), slice(60, 160))
    record = mcrise.explain(photo(224, 224), model, n_masks=256, labels=[HOSTILE, "not red"])
    path = tmp_path / "report.html"
    path.write_text(render([Chapter(HOSTILE, record, [0])]), encoding="utf-8")
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.context.set_offline(True)
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]")
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    maps = record.maps(0)
    move_to(page, ".view", 100, 120, (224, 224))
    expect(page.locator(".bars .head")).to_have_text(f"{HOSTILE}: row 100, column 120")
    recorded = np.stack([maps.values[:, 100, 120], maps.se[:, 100, 120]], axis=1)
    np.testing.assert_allclose(numbers(page), recorded, atol=6e-5)
    page.locator(".panel").nth(2).click()
    expect(page.locator("figcaption")).to_have_text(f"{HOSTILE} · blue")
    assert page.locator("img[src=x]").count() == 0
    shoot(page, "report-light-1280")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 900})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    shoot(page, "report-dark-360")
