"""The page and the report in a real browser: Debian's Chromium, driven by Playwright."""

import json
import re
import threading
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import TimeoutError as TookTooLong
from playwright.sync_api import expect

import mcrise
from browsing import (
    COLORS,
    MODELS,
    SECONDS,
    Held,
    ask,
    ask_and_wait,
    center_color,
    color_picture,
    move_to,
    odds_shown,
    opened,
    served,
)
from mcrise.config import RunConfig
from mcrise.models.model import Model
from mcrise.output.html import Chapter, render
from mcrise.server.job_queue import JobQueue
from mcrise.server.schemas import JobRequest
from planted import PatchModel, photo
from serving import serving, sign_bytes, wait

SCREENS = Path(__file__).resolve().parents[2] / "build" / "screens"
HOSTILE = "<img src=x onerror=alert(1)>"
N_MASKS = 500  # the page's smallest choice: 512 in whole chunks

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Playwright's own pipes


def shoot(page, name):
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"{name}.png", full_page=True)


def numbers(page, selector):
    """The values and 95% margins shown as bars, by color."""
    names = page.locator(f"{selector} .bar .name").all_inner_texts()
    texts = page.locator(f"{selector} .bar .number").all_inner_texts()
    read = [[float(part) for part in re.sub("−", "-", t).split("±")] for t in texts]
    return dict(zip(names, read, strict=True))


def assert_numbers_of(page, maps, row, column, pane="#stage", bars="#values"):
    """What the bars say is the record's, to the digits shown and a tenth of the margin."""
    place = f"{maps.label}: row {row}, column {column}"
    with suppress(TookTooLong):  # pointed at again: a sentence above may have come in between
        move_to(page, pane, row, column, maps.image.shape)
        page.locator(f"{bars} .head", has_text=place).wait_for(timeout=2_000)
    move_to(page, pane, row, column, maps.image.shape)
    expect(page.locator(f"{bars} .head")).to_have_text(place)
    told = numbers(page, bars)
    assert set(told) == set(maps.names)
    for name, value, se in zip(
        maps.names, maps.values[:, row, column], maps.se[:, row, column], strict=True
    ):
        margin = 1.96 * float(se)
        assert told[name][0] == pytest.approx(float(value), abs=0.1 * margin + 0.006)
        assert told[name][1] == pytest.approx(margin, abs=0.1 * margin + 0.006)


def drawn(page, pane="#stage .map"):
    return page.locator(f"{pane} canvas.map").first.evaluate("canvas => canvas.toDataURL()")


def choose(page, path, *, masks=N_MASKS, colors=None):
    """Choose a picture in the dialog, and ask for it to be explained."""
    if not page.locator("#new-dialog").evaluate("dialog => dialog.open"):
        page.click("#new")
    page.set_input_files("#file", path)
    page.locator("#ask summary").click()
    page.fill("#masks", str(masks))
    page.click("#explain")


def with_findings(page):
    """Test the class that is open, and wait for its findings."""
    page.click("#test-class")
    expect(page.locator(".finding").first).to_be_visible()
    expect(page.locator("#test-class")).to_be_hidden()


def test_a_sign_is_uploaded_explained_compared_painted_and_found_again(page, tmp_path):
    demo = mcrise.load_model("demo")
    n_tried = len(mcrise.explain(sign_bytes(), demo, n_masks=64).pilot)
    held = Held(demo, 1 + 128 + 4 + 64 * n_tried)  # two chunks, a few again, and the pilot
    (tmp_path / "my sign.png").write_bytes(sign_bytes())
    with served(page, tmp_path / "data", {"demo": replace(demo, predict=held)}) as (address, jobs):
        try:
            page.goto(address)
            expect(page.locator("#welcome h1")).to_be_visible()
            choose(page, tmp_path / "my sign.png")

            # A first map before the job has finished, then the final one.
            caption = page.locator("#stage .map figcaption").first
            expect(caption).to_contain_text("128 masks", timeout=SECONDS)
            expect(page.locator("#state")).to_contain_text("running 25% · 128 masks")
            expect(page).to_have_title(re.compile("^25% my sign.png"))
            first = drawn(page)
            held.go.set()
            expect(page.locator("#state")).to_contain_text("done · 512", timeout=SECONDS)
            expect(caption).to_contain_text("512 masks", timeout=SECONDS)
            assert first != drawn(page)
            expect(page).to_have_title("my sign.png · stop · mcrise")

            # Pointing shows the record's own numbers, for another class and estimator too.
            (job,) = jobs.all()
            assert job.job_request.name == "my sign.png"
            explanation = mcrise.load(jobs.job_files.record_path(job.id))
            assert_numbers_of(page, explanation.maps("stop"), 40, 50)
            expect(page.locator(".finding").first).to_be_visible()  # tested by itself
            expect(page.locator("#findings-block")).not_to_have_attribute("aria-busy", "true")
            page.route(re.compile("/trials"), lambda route: route.abort())  # of other classes not
            asked = jobs.models.n_images
            page.fill("#target", "no entry")
            page.press("#target", "Tab")
            expect(caption).to_contain_text("no entry · ")
            assert_numbers_of(page, explanation.maps("no entry"), 30, 70)
            page.click("#view-menu summary")
            page.select_option("#estimator", "paper")
            expect(caption).to_contain_text("paper")
            assert_numbers_of(page, explanation.maps("no entry", "paper"), 31, 71)
            page.fill("#against", "stop")
            page.press("#against", "Tab")
            expect(page.locator("#colors h3")).to_have_text(["A: no entry", "B: stop", "A − B"])
            expect(page.locator("#stage figure")).to_have_count(3)
            page.go_back()
            expect(page.locator("#stage figure")).to_have_count(2)
            page.go_back()
            page.go_back()
            expect(caption).to_contain_text("stop · ")
            expect(caption).to_contain_text("smooth")
            assert jobs.models.n_images == asked  # all of it without a model call

            # A finding that is clicked chooses its color and outlines its region on all panes.
            page.unroute_all(behavior="ignoreErrors")
            page.wrong.clear()  # the browser tells of the requests that were aborted
            finding = page.locator(".finding .said").first
            expect(finding).to_contain_text("'stop' falls from 0.89")
            strongest = page.locator("#strongest")
            expect(strongest).to_contain_text("lowers ‘stop’ from 0.89 to ")
            assert strongest.evaluate("line => line.scrollWidth <= line.clientWidth")  # all of it
            shots = page.locator(".finding").first.locator(".shot")
            expect(shots.first).to_contain_text("its average color")
            assert shots.locator("img").first.evaluate("image => image.naturalWidth") > 20
            finding.click()
            for region in page.locator(":is(#stage, #colors) .region:not(.under)").all():
                expect(region).to_have_attribute("d", re.compile("^M"))
            expect(page.locator(".finding.pinned .verdict")).to_contain_text("0.89 → ")

            # Green over the middle of a stop sign: the model doubts.
            page.keyboard.press("b")
            page.locator("#paints label", has_text="green").click()
            odds = page.locator("#odds .number").first
            before = odds_shown(page)
            move_to(page, "#stage", 48, 30, (96, 96))
            page.mouse.down()
            move_to(page, "#stage", 48, 66, (96, 96))
            page.mouse.up()
            expect(odds).not_to_have_text(before)
            was, now = odds_shown(page).split(" → ")
            assert abs(float(now) - float(was)) > 0.02

            # Reloading finds everything, by the address alone.
            here = page.url
            page.reload()
            assert page.url == here
            expect(page.locator("#to-whatif")).to_have_attribute("aria-pressed", "true")
            expect(page.locator(".finding.pinned .verdict")).to_contain_text("0.89 → ")
            expect(page.locator("#jobs .name")).to_have_text("my sign.png")
            expect(page.locator("#jobs .says")).to_have_text("stop 0.89")

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
        page.keyboard.press("n")
        page.locator(".sign").first.focus()
        page.keyboard.press("Enter")
        page.focus("#explain")
        page.keyboard.press("Enter")
        expect(page.locator("#state")).to_contain_text("done", timeout=SECONDS)
        expect(page.locator("#test-class")).to_be_visible()
        page.focus("#test-class")
        page.keyboard.press("Enter")
        expect(page.locator(".finding").first).to_be_visible()
        page.locator("#stage .view").first.focus()
        before = page.locator("#values .head").inner_text()
        page.keyboard.press("ArrowRight")
        assert page.locator("#values .head").inner_text() != before
        page.keyboard.press("2")
        expect(page.locator("#colors .panel").nth(1)).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("b")
        odds = page.locator("#odds .number").first
        shown = odds_shown(page)
        page.locator("#stage .view").first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Space")
        expect(odds).not_to_have_text(shown)
        page.keyboard.press("Control+z")
        expect(odds).to_have_text(shown)
        page.keyboard.press("?")
        expect(page.locator("#help-dialog")).to_be_visible()
        page.keyboard.press("Escape")
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, a, [tabindex='0']")]
              .filter((one) => !(one.labels?.length || one.textContent.trim()
                                 || one.getAttribute("aria-label")))
              .map((one) => one.outerHTML)"""
        )
        assert unnamed == []


NAMES = """() => {
  const dialog = document.querySelector("dialog[open]") ?? document;
  return [...dialog.querySelectorAll("button, input, select, a[href], [tabindex='0']")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .map((one) => `${one.localName}: ${one.getAttribute("aria-label")
      ?? one.labels?.[0]?.textContent.trim() ?? one.textContent.trim()}`)
    .concat([...dialog.querySelectorAll("[id]")].map((one) => `#${one.id}`)); }"""


def test_no_two_controls_of_a_screen_have_the_same_name(bench, page, first):
    address, jobs = bench
    again = ask_and_wait(jobs, "red/0.png")  # the same picture, asked about twice
    opened(page, address, first)
    names = {"image": page.evaluate(NAMES)}
    page.keyboard.press("b")
    expect(page.locator("#odds .number").first).to_contain_text("→")
    names["whatif"] = page.evaluate(NAMES)
    page.goto(f"{address}#overview")
    expect(page.locator("#gallery .says").first).not_to_be_empty()
    page.locator("#jobs input").first.check()
    names["overview"] = page.evaluate(NAMES)
    page.keyboard.press("n")
    names["new"] = page.evaluate(NAMES)
    jobs.delete(again.id)
    for screen, told in names.items():
        assert len(told) > 20
        assert [one for one in set(told) if told.count(one) > 1] == [], screen


@pytest.mark.slow
def test_live_regions_change_at_most_twice_a_second(page, tmp_path):
    with served(page, tmp_path, MODELS) as (address, jobs):
        job = ask(jobs, n_masks=100_000)
        page.goto(f"{address}#image/{job.id}")
        expect(page.locator("#stage .map canvas.map")).to_be_visible()
        page.evaluate(
            """() => { window.told = [];
              const live = "[aria-live]:not([aria-live=off]), [role=status], [role=alert]";
              for (const one of document.querySelectorAll(live))
                new MutationObserver(() => told.push([performance.now(), one.id, one.textContent]))
                  .observe(one, { childList: true, characterData: true, subtree: true }); }"""
        )
        page.focus("#target")
        page.keyboard.press("Control+a")
        page.keyboard.type("gre")
        for step in range(60):  # three seconds of a running job, pointed at all the time
            move_to(page, "#stage", 2 + step % 20, 12, (24, 24))
            page.wait_for_timeout(50)
        told = page.evaluate("() => told")
        expect(page.locator("#target")).to_have_value("gre")  # news leaves what is being written
        jobs.delete(job.id)
    assert len(told) >= 2  # the pointer's values are spoken
    # In any second there are two; the third comes after it.
    assert [
        (first, third)
        for first, third in zip(told, told[2:], strict=False)
        if third[0] - first[0] <= 1000
    ] == []


def test_html_in_labels_and_names_is_shown_as_text_on_the_page(page, tmp_path):
    with served(page, tmp_path / "data", {"planted": planted()}) as (address, _):
        (tmp_path / f"{HOSTILE}.png").write_bytes(sign_bytes())
        page.goto(address)
        choose(page, tmp_path / f"{HOSTILE}.png")
        expect(page.locator("#state")).to_contain_text("done", timeout=SECONDS)
        expect(page.locator("#jobs .name")).to_have_text(f"{HOSTILE}.png")
        with_findings(page)
        expect(page.locator(".finding").first).to_contain_text(HOSTILE)
        page.keyboard.press("b")
        expect(page.locator("#odds")).to_contain_text(HOSTILE)
        expect(page.locator("#chips")).to_contain_text(HOSTILE)
        expect(page.locator("#stage .map figcaption")).to_contain_text(HOSTILE)
        assert page.locator("img[src=x]").count() == 0


def planted():
    labels = (HOSTILE, f"not {HOSTILE}")
    return Model(PatchModel(slice(60, 130), slice(60, 130)), labels=labels, identity="planted")


def test_the_report_opens_without_a_network_and_can_be_read_by_hovering(page, tmp_path):
    model = PatchModel(slice(60, 160), slice(60, 160))
    explanation = mcrise.explain(photo(224, 224), model, n_masks=256, labels=[HOSTILE, "not red"])
    path = tmp_path / "report.html"
    path.write_text(render([Chapter(HOSTILE, explanation, [0])]), encoding="utf-8")
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.context.set_offline(True)
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]")
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert_numbers_of(page, explanation.maps(0), 100, 120, ".stage", ".bars")
    page.locator(".panel", has_text="blue").click()
    expect(page.locator(".map figcaption")).to_have_text(f"{HOSTILE} · blue")
    assert page.locator("img[src=x]").count() == 0
    shoot(page, "report-light-1280")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 900})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    shoot(page, "report-dark-360")


def test_the_contents_of_a_report_have_room_on_a_narrow_screen(page, tmp_path):
    model = PatchModel(slice(60, 160), slice(60, 160))
    explanation = mcrise.explain(photo(224, 224), model, n_masks=256, labels=["red", "not red"])
    path = tmp_path / "report.html"
    path.write_text(render([Chapter("a.png", explanation, [0, 1])]), encoding="utf-8")
    for width, least in ((360, 250), (768, 180)):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready]")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        first = page.locator(".contents tbody tr").first.locator("td").nth(3)
        assert first.bounding_box()["width"] >= least
        shoot(page, f"report-contents-{width}")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A server with some finished jobs; tests may add more."""
    with serving(tmp_path_factory.mktemp("world"), MODELS) as (address, jobs):
        ask_and_wait(jobs, "red/0.png")
        ask_and_wait(jobs, "green/1.png", 1, seed=1)
        yield address, jobs


@pytest.fixture
def first(world):
    return next(job for job in world[1].all() if job.job_request.name == "red/0.png").id


@pytest.fixture
def bench(world, page):
    """The world's address and jobs; the page has left it when the test ends."""
    yield world
    page.goto("about:blank")


# ---- the address


def test_reload_back_forward_and_a_copied_link_keep_all_that_is_seen(bench, page, first):
    address, _ = bench
    opened(page, address, first)
    page.locator(".class-chip", has_text="green").click()
    expect(page.locator("#stage .map figcaption")).to_contain_text("green")
    expect(page.locator("#pending")).to_contain_text("Not tested yet")
    page.locator("#colors .panel").nth(1).click()
    color = page.locator("#colors .panel[aria-pressed=true] .name").inner_text()
    page.locator("#above").evaluate("e => { e.value = e.max / 2; e.oninput(); e.onchange(); }")
    page.locator("#strength").evaluate("e => { e.value = 0.5; e.oninput(); e.onchange(); }")
    page.click("#view-menu summary")
    page.uncheck("#contours")
    for part in ("class=1", f"color={color}", "above=", "map=0.5", "contours=no"):
        assert part in page.url
    here, drawn_here = page.url, drawn(page)
    page.reload()
    expect(page.locator("#colors .panel[aria-pressed=true] .name")).to_have_text(color)
    expect(page.locator(".class-chip[aria-pressed=true]")).to_contain_text("green")
    assert drawn(page) == drawn_here
    assert page.locator("#stage").evaluate("e => e.style.getPropertyValue('--strength')") == "0.5"
    page.go_back()
    page.go_back()
    expect(page.locator(".class-chip[aria-pressed=true]")).to_contain_text("red")
    page.go_forward()
    page.go_forward()
    expect(page.locator("#colors .panel[aria-pressed=true] .name")).to_have_text(color)
    assert page.url == here


# ---- what a visitor of many jobs relied on


def test_a_long_name_widens_nothing(bench, page):
    address, jobs = bench
    job = ask_and_wait(jobs, f"{'a_photograph_of_something_' * 5}.png")
    opened(page, address, job.id)
    for width in (1280, 768, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        center, right = (page.locator(one).bounding_box() for one in (".center", ".right"))
        apart = center["x"] + center["width"] <= right["x"]
        assert apart or center["y"] + center["height"] <= right["y"]
    jobs.delete(job.id)


def test_a_waiting_and_a_failed_job_show_nothing_of_the_one_before(page, tmp_path):
    gate = threading.Event()

    def held(images):
        gate.wait()
        return center_color(images)

    def broken(images):
        raise RuntimeError("out of luck")

    models = {**MODELS, "held": Model(held, labels=COLORS), "broken": Model(broken, labels=COLORS)}
    with served(page, tmp_path, models) as (address, jobs):
        try:
            done = ask_and_wait(jobs)
            failed = ask(jobs, "failed.png", model="broken")
            wait(lambda: failed.state == "failed")
            ask(jobs, "before.png", model="held")
            waits = ask(jobs, "waits.png")
            opened(page, address, done.id)
            page.keyboard.press("b")
            expect(page.locator("#odds .number").first).to_be_visible()
            page.locator("#jobs a", has_text="waits.png").click()
            expect(page.locator("#picture-name")).to_have_text("waits.png")
            expect(page.locator("#waiting")).to_contain_text("its turn")
            expect(page.locator("#looking")).to_be_hidden()
            expect(page.locator("#right")).to_be_hidden()
            page.locator("#jobs a", has_text="failed.png").click()
            expect(page.locator("#waiting")).to_contain_text("out of luck")
            expect(page.get_by_role("button", name="Try again")).to_be_visible()
            expect(page.locator("#looking")).to_be_hidden()
            assert waits.state == "queued"
        finally:
            gate.set()


def test_after_stop_the_page_has_every_mask_that_the_server_has(page, tmp_path):
    held = Held(Model(center_color), 1 + 64 + 4 + 32)  # a chunk, a few again, half a chunk
    model = Model(held, labels=COLORS, identity="held")
    with served(page, tmp_path, {"held": model}) as (address, jobs):
        try:
            job = ask(jobs, n_masks=640, model="held")
            wait(lambda: job.n_masks == 64 and held.n_images >= held.n_free)
            page.goto(f"{address}#image/{job.id}")
            expect(page.locator("#state")).to_contain_text("64 masks")
            page.click("#stop")
            expect(page.locator("#state")).to_contain_text("stopped")
            held.go.set()
            wait(lambda: job.n_masks == 128)  # the chunk that it was at
            expect(page.locator("#state")).to_contain_text("128 masks")
            expect(page.locator("#stage .map figcaption")).to_contain_text("128 masks")
        finally:
            held.go.set()


def test_of_auto_the_bar_never_falls_back_and_no_time_left_is_told(page, tmp_path):
    held = Held(Model(center_color), 1 + 64 + 4)  # a chunk and a few again
    model = Model(held, labels=COLORS, identity="held")
    goal = 0.02  # the error that is good enough: it falls with the root of the masks
    errors = {64: 2 * goal, 128: 4 * goal, 192: 1.5 * goal}  # at 64 it seemed better than it was

    def tell_error(route):
        content = route.fetch().body()
        length = int.from_bytes(content[:4], "little")
        told = json.loads(content[4 : 4 + length])
        told["relative_error"] = errors[told["n_masks"]]
        text = json.dumps(told).encode()
        text += b" " * (-len(text) % 4)
        route.fulfill(body=len(text).to_bytes(4, "little") + text + content[4 + length :])

    page.route(re.compile("/api/jobs/.*/maps"), tell_error)
    with served(page, tmp_path, {"held": model}) as (address, jobs):
        try:
            config = RunConfig(mask_prob=0.4, grid=(4, 4), tolerance=goal)
            job = jobs.submit(JobRequest("held", "auto.png", config), color_picture(0))
            wait(lambda: job.n_masks == 64)
            page.goto(f"{address}#image/{job.id}")
            reached = []
            for n_masks, error in errors.items():
                expect(page.locator("#state")).to_contain_text(f"relative error {error:.2f}")
                expect(page.locator("#state")).to_contain_text(f"{n_masks} masks")
                assert "left" not in page.locator("#state").inner_text()
                reached.append(page.locator("#bar").evaluate("bar => bar.value"))
                held.n_free += 64
            assert reached == pytest.approx([1 / 4, 1 / 4, 1 / 2.25])
        finally:
            held.go.set()
            page.unroute_all(behavior="ignoreErrors")


@pytest.mark.slow
def test_many_tabs_on_a_running_job_all_show_it(page, tmp_path):
    held = Held(Model(center_color), 1 + 64 + 4)
    model = Model(held, labels=COLORS, identity="held")
    with served(page, tmp_path, {"held": model}) as (address, jobs):
        job = ask(jobs, n_masks=256, model="held")
        wait(lambda: job.n_masks == 64)
        tabs = [page.context.new_page() for _ in range(8)]
        try:
            for tab in tabs:  # a browser has six connections to a server
                tab.goto(f"{address}#image/{job.id}")
                expect(tab.locator("#stage .map figcaption")).to_contain_text("64 masks")
            held.go.set()
            for tab in tabs:
                expect(tab.locator("#state")).to_contain_text("done · 256 masks")
        finally:
            held.go.set()
            for tab in tabs:
                tab.close()


def test_an_unknown_or_deleted_job_says_so_and_leads_on(bench, page):
    page.on("console", lambda message: None)
    wrong = page.wrong
    page.goto(f"{bench[0]}#image/0123456789abcdef")
    expect(page.locator("#missing h1")).to_have_text("This explanation is not here")
    expect(page.locator("#image")).to_be_hidden()
    page.get_by_role("link", name="Open the overview").click()
    expect(page.locator("#overview-title")).to_be_visible()
    assert all("404" in one for one in wrong)
    wrong.clear()


def test_an_unknown_class_is_said_and_cat_is_no_oystercatcher(bench, page, first):
    opened(page, bench[0], first)
    before = page.locator("#stage .map figcaption").inner_text()
    page.fill("#target", "dog")
    page.press("#target", "Enter")
    expect(page.locator("#target-problem")).to_contain_text("No class is called “dog”")
    expect(page.locator("#target")).to_have_attribute("aria-invalid", "true")
    assert page.locator("#stage .map figcaption").inner_text() == before
    page.fill("#target", "catch")
    page.press("#target", "Enter")
    expect(page.locator("#target-problem")).to_contain_text("Did you mean")
    page.fill("#target", "cat")  # a whole word of one class, some letters of another
    page.press("#target", "Enter")
    expect(page.locator("#stage .map figcaption")).to_contain_text("tom cat")
    expect(page.locator("#target-problem")).to_have_text("")


def test_the_findings_of_the_class_before_go_at_once(page, tmp_path):
    with served(page, tmp_path, MODELS) as (address, jobs):
        opened(page, address, ask_and_wait(jobs).id)
        with_findings(page)
        expect(page.locator(".finding").first).to_contain_text("'red'")
        held, free = [], threading.Event()
        page.route(
            re.compile("/findings"),
            lambda route: route.continue_() if free.is_set() else held.append(route),
        )
        page.locator(".class-chip", has_text="green").click()
        expect(page.locator(".finding")).to_have_count(0)
        expect(page.locator("#pending")).to_contain_text("Loading the findings of this class")
        expect(page.locator("#stage .map figcaption")).to_contain_text("green")
        while not held:  # asked for when the maps are there
            page.wait_for_timeout(20)
        free.set()
        for route in held:
            route.continue_()
        expect(page.locator("#pending")).to_contain_text("Not tested yet")
        page.locator(".class-chip", has_text="red").click()
        expect(page.locator(".finding").first).to_contain_text("'red'")


def test_a_long_run_shows_tested_findings_before_it_ends_and_others_afterwards(page, tmp_path):
    with served(page, tmp_path, {"demo": mcrise.load_model("demo")}) as (address, jobs):
        request = JobRequest("demo", "stop.png", RunConfig(n_masks=100_000, mask_prob=0.3))
        job = jobs.submit(request, sign_bytes())
        page.goto(f"{address}#image/{job.id}")
        block, title = page.locator("#findings-block"), page.locator("#strongest")
        expect(block).to_have_class(re.compile("so-far"), timeout=SECONDS)
        expect(page.locator(".finding .shot").first).to_be_visible()  # of real tests
        expect(title).to_contain_text("Strongest finding so far: painting ")
        assert job.state == "running"
        assert not jobs.explanation(job.id).trial_logs  # the run does not know of them
        page.click("#stop")
        expect(block).not_to_have_class(re.compile("so-far"), timeout=SECONDS)
        expect(block).not_to_have_attribute("aria-busy", "true")
        expect(title).to_contain_text("Strongest finding: painting ")
        (log,) = jobs.explanation(job.id).trial_logs.values()
        assert log.n_masks == job.n_masks


def test_what_was_done_to_a_picture_is_told(bench, page):
    address, jobs = bench
    job = ask_and_wait(jobs, "clear.png", alpha=True)
    opened(page, address, job.id)
    expect(page.locator("#notes")).to_contain_text("transparent parts were laid over white")
    jobs.delete(job.id)


def test_news_of_jobs_leave_the_focus_where_it_is(bench, page, first):
    address, jobs = bench
    page.goto(f"{address}#overview")
    link = page.locator(f"#jobs li[data-key='{first}'] a")
    link.focus()
    job = ask_and_wait(jobs, "newer.png", n_masks=64)
    expect(page.locator("#jobs .name", has_text="newer.png")).to_be_visible(timeout=20_000)
    expect(link).to_be_focused()
    jobs.delete(job.id)


def test_rise_has_its_own_hint_bars_from_its_lowest_value_and_the_reading_of_smooth(
    bench, page, first
):
    opened(page, bench[0], first, estimator="rise")
    expect(page.locator("#hint")).to_contain_text("mean score where that place is kept")
    expect(page.locator("#hint")).to_contain_text("read from the smooth maps")
    expect(page.locator("#state")).to_contain_text("masks · center")  # nothing about its error
    maps = bench[1].explanation(first).maps(None, "rise")
    assert_numbers_of(page, maps, 12, 12)
    share = page.locator("#values .value").evaluate("bar => parseFloat(bar.style.width) / 100")
    value = maps.values[0, 12, 12]
    low, high = maps.values.min(), maps.values.max()
    assert share == pytest.approx((value - low) / (high - low), abs=0.02)
    assert "±" in page.locator("#values .number").inner_text()


def test_values_beyond_the_scale_are_marked(bench, page, first):
    opened(page, bench[0], first)
    maps = bench[1].explanation(first).maps()
    _, row, column = max(
        ((k, r, c) for k, r, c in np.ndindex(maps.values.shape)),
        key=lambda at: abs(maps.values[at]),
    )
    move_to(page, "#stage", row, column, (24, 24))
    expect(page.locator("#values .track.over, #values .track.under").first).to_be_visible()
    expect(page.locator("#scale")).to_contain_text(re.compile("[≤≥]"))


def test_a_deleted_job_can_be_had_back(bench, page):
    address, jobs = bench
    job = ask_and_wait(jobs, "precious.png", n_masks=64)
    opened(page, address, job.id)
    page.click("#delete")
    expect(page.locator("#overview")).to_be_visible()
    expect(page.locator("#jobs .name", has_text="precious.png")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#picture-name")).to_have_text("precious.png")
    expect(page.locator("#jobs .name", has_text="precious.png")).to_be_visible()
    page.click("#delete")
    expect(page.locator("#jobs .name", has_text="precious.png")).to_have_count(0)
    page.goto("about:blank")  # whoever leaves wants it gone
    wait(lambda: job.id not in jobs.jobs)


@pytest.mark.slow
def test_each_deletion_can_be_undone_though_another_follows(bench, page):
    address, jobs = bench
    made = [ask_and_wait(jobs, name, n_masks=64) for name in ("one.png", "two.png")]
    page.goto(f"{address}#overview")
    for job in made:
        page.locator(f"#jobs li[data-key='{job.id}'] input").check()
        page.click("#delete-selected")
    expect(page.get_by_role("button", name="Undo")).to_have_count(2)
    expect(page.get_by_role("button", name="Undo: Deleted two.png")).to_be_focused()
    page.get_by_role("button", name="Undo: Deleted one.png").click()
    expect(page.locator("#jobs .name", has_text="one.png")).to_be_visible()
    expect(page.locator("#main")).to_be_focused()
    wait(lambda: made[1].id not in jobs.jobs)  # the other goes in its own time
    assert made[0].id in jobs.jobs
    page.goto("about:blank")
    jobs.delete(made[0].id)


def test_colors_and_masks_of_a_new_explanation_are_said_before_they_are_refused(bench, page):
    page.goto(bench[0])
    page.wait_for_selector("body[data-ready]")
    page.keyboard.press("n")
    page.locator(".sign").first.click()
    page.fill("#own", "sparkle")
    page.click("#add")
    expect(page.locator("#palette")).to_contain_text("sparkle")
    page.get_by_role("button", name="Remove sparkle").click()
    expect(page.locator("#palette")).not_to_contain_text("sparkle")
    for name in ("red", "green", "blue", "white", "black"):
        page.locator("#palette .chip", has_text=name).click()
    page.click("#explain")
    expect(page.locator(".field-problem")).to_have_text(
        "No color is chosen: choose at least one to paint with."
    )
    expect(page.locator("#own")).to_be_focused()
    page.locator("#ask summary").click()
    page.fill("#masks", "1000")
    expect(page.locator("#masks-note")).to_have_text("1,024 in whole chunks of 64.")


def test_several_files_and_the_same_again_can_be_chosen_and_left_out(bench, page, tmp_path):
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(color_picture(0))
    page.goto(bench[0])
    page.click("#new")
    page.set_input_files("#file", [tmp_path / "a.png", tmp_path / "b.png"])
    page.set_input_files("#file", tmp_path / "a.png")
    expect(page.locator("#previews .name")).to_have_text(["a.png", "b.png", "a.png"])
    expect(page.locator("#explain")).to_have_text("Explain 3 pictures")
    page.get_by_role("button", name="Leave out b.png").click()
    expect(page.locator("#previews .name")).to_have_text(["a.png", "a.png"])


GIVEN = """([kind, bytes]) => { const given = new DataTransfer();
  given.items.add(new File([new Uint8Array(bytes)], `${kind}.png`, { type: "image/png" }));
  const how = kind === "paste" ? new ClipboardEvent(kind, { clipboardData: given, bubbles: true })
    : new DragEvent(kind, { dataTransfer: given, bubbles: true, cancelable: true });
  document.body.dispatchEvent(how); }"""


def test_pictures_are_pasted_dropped_and_given_as_a_folder(bench, page, tmp_path):
    (tmp_path / "red").mkdir()
    for name in ("red/1.png", "red/2.png", "red/notes.txt"):
        (tmp_path / name).write_bytes(color_picture(0))
    page.goto(bench[0])
    page.wait_for_selector("body[data-ready]")
    names = page.locator("#previews .name")
    for kind in ("paste", "drop"):
        page.evaluate(GIVEN, [kind, list(color_picture(0))])
        expect(names.last).to_have_text(f"{kind}.png")  # and the dialog is open
    page.set_input_files("#folder", tmp_path / "red")
    expect(names).to_have_count(4)  # two of them in the folder
    assert sorted(names.all_inner_texts()[2:]) == ["red/1.png", "red/2.png"]


@pytest.mark.slow
def test_while_pictures_wait_in_the_tab_the_page_can_be_used(page, tmp_path):
    gate = threading.Event()

    def held(images):
        gate.wait()
        return center_color(images)

    names = [f"{letter}.png" for letter in "abc"]
    for name in names:
        (tmp_path / name).write_bytes(color_picture(0))
    models = {**MODELS, "held": Model(held, labels=COLORS)}
    with served(page, tmp_path / "data", models) as (address, jobs):

        def refused_again():
            with page.expect_response(lambda answer: answer.status == 429):
                pass

        try:
            done, other = ask_and_wait(jobs), ask_and_wait(jobs, "other.png", n_masks=64)
            running = ask(jobs, "held.png", model="held")
            wait(lambda: running.state == "running")
            jobs.most_queued = 1
            ask(jobs, "queued.png", n_masks=64)
            page.goto(f"{address}#image/{done.id}")
            page.click("#new")
            page.set_input_files("#file", [tmp_path / name for name in names])
            page.click("#explain")
            sending = page.locator("#sending")
            expect(sending).to_have_text("Sent 0 of 3 · the server is busy · keep this tab open")
            expect(page.locator("#new-dialog")).to_be_hidden()
            expect(page.locator("#overview")).to_be_visible()
            page.evaluate(
                """() => { window.told = []; const place = document.getElementById("toast");
                  new MutationObserver(() => told.push(place.textContent))
                    .observe(place, { childList: true, subtree: true }); }"""
            )
            page.locator(f"#jobs li[data-key='{done.id}'] a").click()
            expect(page.locator("#picture-name")).to_have_text("red/0.png")
            page.keyboard.press("n")
            refused_again()
            refused_again()
            expect(page.locator("#new-dialog")).to_be_visible()
            expect(page.locator("#previews li")).to_have_count(0)  # they are on their way
            page.keyboard.press("Escape")
            page.locator(f"#jobs li[data-key='{other.id}'] input").check()
            page.click("#delete-selected")
            refused_again()
            assert page.evaluate("told")[:1] == ["Deleted other.png.Undo"]
            gate.set()
            wait(lambda: {*names} <= {job.job_request.name for job in jobs.all()})
            expect(sending).to_be_empty()
            assert not any("wait" in words for words in page.evaluate("told"))
            assert page.url.endswith(f"#image/{done.id}")
            page.goto("about:blank")
        finally:
            gate.set()
        assert all("429" in one for one in page.wrong)
        page.wrong.clear()  # the browser tells of every request that was refused


def test_what_cannot_be_taken_stays_in_the_list_and_the_rest_is_sent(bench, page, tmp_path):
    address, jobs = bench
    for name in ("first.png", "broken.png", "last.png"):
        (tmp_path / name).write_bytes(b"no" if "broken" in name else color_picture(0))
    page.goto(address)
    page.click("#new")
    files = [tmp_path / name for name in ("first.png", "broken.png", "last.png")]
    page.set_input_files("#file", files)
    page.click("#explain")
    expect(page.locator("#problem")).to_contain_text("1 of 3 could not be taken: broken.png: ")
    expect(page.locator("#previews .name")).to_have_text(["broken.png"])
    expect(page.locator("#previews .problem")).not_to_be_empty()
    sent = [job for job in jobs.all() if job.job_request.name in ("first.png", "last.png")]
    assert len(sent) == 2
    expect(page.locator("#explain")).to_be_focused()
    page.goto("about:blank")
    for job in sent:
        jobs.delete(job.id)
    page.wrong.clear()  # the browser tells of the request that was refused


def test_a_full_server_offers_the_oldest_jobs_for_deletion(page, tmp_path):
    (tmp_path / "a.png").write_bytes(color_picture(0))
    with serving(tmp_path / "data", MODELS) as (address, jobs):
        old, new = (ask_and_wait(jobs, name, n_masks=64) for name in ("old.png", "new.png"))
        jobs.quota.count([old.id, new.id])
        jobs.quota.most_bytes = jobs.quota.n_bytes
        page.goto(address)
        page.click("#new")
        page.set_input_files("#file", tmp_path / "a.png")
        page.click("#explain")
        expect(page.locator("#problem")).to_contain_text("Delete the oldest (old.png: ")
        page.get_by_role("button", name="Delete the oldest job").click()
        expect(page.locator("#jobs .name")).to_have_text(["new.png"])
        expect(page.get_by_role("button", name="Undo")).to_be_focused()
        page.goto("about:blank")
        wait(lambda: old.id not in jobs.jobs)
        assert new.id in jobs.jobs
    assert all("507" in one for one in page.wrong)
    page.wrong.clear()  # the browser tells of the request that was refused


def test_signs_stand_beside_files_and_what_is_left_out_is_named(bench, page, tmp_path):
    for name in ("a.png", "notes.txt"):
        (tmp_path / name).write_bytes(color_picture(0))
    page.goto(bench[0])
    page.click("#new")
    page.set_input_files("#file", [tmp_path / "a.png", tmp_path / "notes.txt"])
    expect(page.locator("#problem")).to_have_text("Left out, no picture: notes.txt.")
    sign = page.get_by_role("button", name="stop", exact=True)
    sign.click()
    expect(page.locator("#previews .name")).to_have_text(["a.png", "stop"])
    expect(page.locator("#explain")).to_have_text("Explain 2 pictures")
    sign.click()
    expect(page.locator("#previews .name")).to_have_text(["a.png"])
    for name in ("red", "green", "blue", "white", "black"):
        page.locator("#palette .chip", has_text=name).click()
    page.fill("#own", "teal")  # and no Add
    with page.expect_request(lambda request: request.method == "POST") as sent:
        page.click("#explain")
    assert "colors=teal&" in sent.value.url
    expect(page.locator("#picture-name")).to_have_text("a.png")
    page.goto("about:blank")
    (job,) = [job for job in bench[1].all() if job.job_request.name == "a.png"]
    bench[1].delete(job.id)


def test_keys_go_from_image_to_image_compare_and_swap(bench, page, first):
    # By age: the usual order moves when the numbers of outliers arrive.
    opened(page, bench[0], first, sort="newest")
    before = page.locator("#picture-name").inner_text()
    other = page.locator("#jobs a[aria-current]").evaluate(
        "link => link.closest('li').nextElementSibling ? ']' : '['"
    )
    page.keyboard.press(other)
    expect(page.locator("#picture-name")).not_to_have_text(before)
    page.keyboard.press({"]": "[", "[": "]"}[other])
    expect(page.locator("#picture-name")).to_have_text(before)
    expect(page.locator("#stage .map canvas.map")).to_be_visible()
    page.keyboard.press("Space")
    expect(page.locator("#stage .map canvas.map")).to_be_hidden()
    page.keyboard.press("Space")
    expect(page.locator("#stage .map canvas.map")).to_be_visible()
    page.keyboard.press("c")
    expect(page.locator("#colors h3")).to_have_text(["A: red", "B: green", "A − B"])
    page.keyboard.press("c")
    expect(page.locator("#stage figure")).to_have_count(2)


def test_an_image_left_while_its_maps_come_leaves_the_next_one_whole(bench, page, first):
    """The maps of the one come while nothing is known of the other yet."""
    (other,) = [job.id for job in bench[1].all() if job.job_request.name == "green/1.png"]
    page.add_init_script(f"""
      const now = window.fetch, late = {{ "/{first}/maps": 500, "/{other}$": 1500 }};
      window.fetch = async (...given) => {{
        const answer = await now(...given);
        const [, wait] = Object.entries(late).find(([end]) => answer.url.match(end)) ?? [];
        if (wait) await new Promise((done) => {{ setTimeout(done, wait); }});
        return answer;
      }};""")
    with page.expect_response(re.compile(f"{first}/maps")):
        page.goto(f"{bench[0]}#image/{first}")
    page.evaluate(f"location.hash = 'image/{other}'")
    expect(page.locator("#picture-name")).to_have_text("green/1.png")
    expect(page.locator("#stage .map canvas.map")).to_be_visible()


def test_a_record_whose_model_is_gone_can_still_be_read(page, tmp_path):
    with closing(JobQueue(tmp_path, MODELS)) as jobs:
        job = ask_and_wait(jobs)
    with served(page, tmp_path, {"other": MODELS["center"]}) as (address, _):
        opened(page, address, job.id)
        expect(page.locator("#pending")).to_contain_text("the model is not served")
        expect(page.locator("#to-whatif")).to_be_disabled()
        expect(page.locator("#test-class")).to_be_hidden()
        expect(page.locator("#more")).to_be_hidden()


def test_where_the_connection_is_lost_what_is_there_stays(bench, page, first):
    opened(page, bench[0], first)
    page.route(re.compile("/api/"), lambda route: route.abort())
    page.locator(".class-chip", has_text="green").click()
    expect(page.locator("#lost")).to_be_visible()
    expect(page.locator("#stage .map canvas.map")).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")
    expect(page.locator("#lost")).to_be_hidden()
    page.wrong.clear()  # the browser tells of every request that failed


# ---- comparing


def test_two_images_are_compared_with_their_difference(bench, page):
    address, jobs = bench
    page.goto(f"{address}#overview")
    for name in ("red/0.png", "green/1.png"):
        page.get_by_role("checkbox", name=f"Select {name}").check()
    page.click("#compare-selected")
    expect(page.locator("#colors h3").nth(2)).to_have_text("A − B")
    expect(page.locator("#stage figure")).to_have_count(3)
    one, other = (
        next(job for job in jobs.all() if job.job_request.name == name)
        for name in ("green/1.png", "red/0.png")
    )
    if f"image/{other.id}" in page.url:
        one, other = other, one
    target = jobs.explanation(one.id).resolve(None)
    maps = [jobs.explanation(job.id).maps(target) for job in (one, other)]
    move_to(page, "#stage", 12, 12, (24, 24))
    told = page.locator("#values .bars").nth(2)
    expect(told.locator(".head")).to_contain_text("row 12, column 12")
    k = maps[0].names.index("blue")
    shown = told.locator(".bar", has_text="blue").locator(".number").inner_text()
    value, margin = (float(part) for part in shown.replace("−", "-").split("±"))
    (a, b) = maps
    assert value == pytest.approx(float(a.values[k, 12, 12] - b.values[k, 12, 12]), abs=0.02)
    both = 1.96 * np.hypot(a.se[k, 12, 12], b.se[k, 12, 12])
    assert margin == pytest.approx(float(both), abs=0.02)


def test_between_two_runs_of_one_picture_nothing_is_beyond_chance(page, tmp_path):
    with served(page, tmp_path, MODELS) as (address, jobs):
        made = []
        for seed in (1, 2):  # of the masks: all that differs
            config = RunConfig(n_masks=256, mask_prob=0.4, grid=(4, 4), fills="rgbwk", seed=seed)
            made.append(jobs.submit(JobRequest("center", f"{seed}.png", config), color_picture(0)))
        wait(lambda: all(job.state == "done" for job in made))
        opened(page, address, made[0].id, **{"with": made[1].id})
        expect(page.locator("#stage figure")).to_have_count(3)
        expect(page.locator("#differs")).to_contain_text("No significant difference")
        limits = [
            jobs.explanation(job.id).chance(jobs.explanation(job.id).maps()).limit for job in made
        ]
        for limit in (*limits, np.hypot(*limits)):
            expect(page.locator("#hint")).to_contain_text(
                f"±{float(limit):#.2g} in the centered maps for "
            )
        edges = page.locator("#stage .map .contour:not(.under)")
        for panel in page.locator("#colors .strip").first.locator(".panel").all():
            panel.click()
            expect(panel).to_have_attribute("aria-pressed", "true")
            expect(edges.nth(2)).to_have_attribute("d", "")
        page.locator("#colors .panel").first.click()
        expect(edges.first).to_have_attribute("d", re.compile("^M"))  # of a map alone there is


def test_another_model_is_asked_about_a_picture_under_the_same_masks(bench, page, first):
    address, jobs = bench
    opened(page, address, first)
    page.get_by_role("button", name="Compare with corner, same masks").click()
    expect(page.locator("#colors h3")).to_have_text(["A: red · center", "B: red · corner", "A − B"])
    other = jobs.explanation(re.search(r"with=([0-9a-f]{16})", page.url).group(1))
    own = jobs.explanation(first)
    assert other.plan == own.plan
    assert other.n_masks == own.n_masks
    expect(page.locator("#cards .card")).to_have_count(2)
    expect(page.locator("#differs")).to_contain_text("The largest difference is at the ")
    page.click("#view-menu summary")
    page.check("#own-scales")
    assert "scale=row" in page.url
    expect(page.locator("#colors .scale:visible")).to_have_count(3)  # each row has its own
    expect(page.locator("#scale")).to_be_hidden()


def test_a_matrix_of_many_colors_scrolls_inside_its_card_and_keeps_its_classes(page, tmp_path):
    shades = ",".join(f"#{k:02x}40{255 - k:02x}" for k in range(0, 256, 16))
    with served(page, tmp_path, MODELS) as (address, jobs):
        config = RunConfig(n_masks=64, mask_prob=0.4, grid=(4, 4), fills=shades)
        for k in (0, 1):
            jobs.submit(JobRequest("center", f"{COLORS[k]}/{k}.png", config), color_picture(k))
        wait(lambda: all(job.state == "done" for job in jobs.all()))
        page.goto(f"{address}#overview")
        matrix = page.locator(".matrix")
        expect(matrix).to_be_visible()
        assert matrix.evaluate("e => e.scrollWidth - e.clientWidth") > 100
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 1280
        name = matrix.get_by_role("button", name="red", exact=True)
        before = name.bounding_box()["x"]
        matrix.evaluate("e => { e.scrollLeft = 100; }")
        assert name.bounding_box()["x"] == pytest.approx(before, abs=3)  # the space between cells


def test_a_matrix_of_five_colors_fits_though_the_names_of_classes_are_long(page, tmp_path):
    labels = [f"a rather long name of a class, number {k}" for k in range(len(COLORS))]
    with served(page, tmp_path, {"center": Model(center_color, labels=labels)}) as (address, jobs):
        for k in (0, 1):
            ask_and_wait(jobs, f"{k}.png", k, n_masks=64)
        page.goto(f"{address}#overview")
        expect(page.locator(".matrix .cell.name")).to_have_count(2)
        wide, room = page.locator(".matrix").evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert wide <= room


def test_the_wheel_zooms_all_panes_and_scrolls_the_page_where_all_is_shown(bench, page, first):
    opened(page, bench[0], first)
    page.set_viewport_size({"width": 1280, "height": 500})
    move_to(page, "#stage", 6, 6, (24, 24))
    page.mouse.wheel(0, -400)
    sheets = page.locator("#stage .sheet")
    for sheet in sheets.all():
        expect(sheet).to_have_attribute("style", re.compile(r"scale\(2\)"))
    page.mouse.wheel(0, 400)
    expect(sheets.first).to_have_attribute("style", re.compile(r"scale\(1\)"))
    top = page.evaluate("() => scrollY")
    page.mouse.wheel(0, 150)
    page.wait_for_function("top => scrollY > top", arg=top)


# ---- what if


def test_strokes_have_no_gaps_can_be_undone_and_the_right_button_paints_nothing(bench, page, first):
    opened(page, bench[0], first)
    page.keyboard.press("b")
    expect(page.locator("#odds .number").first).to_contain_text("→")
    page.locator("#brush-size").evaluate("e => { e.value = 0.04; }")
    painted = "canvas => [...canvas.getContext('2d').getImageData(0, 0, 24, 24).data]"
    paint = page.locator("#stage canvas.paint")

    def row(n):
        return np.reshape(paint.evaluate(painted), (24, 24, 4))[n, :, 3] > 0

    move_to(page, "#stage", 12, 2, (24, 24))
    page.mouse.down(button="right")
    page.mouse.up(button="right")
    expect(page.locator("#undo")).to_be_disabled()
    page.mouse.down()
    move_to(page, "#stage", 12, 21, (24, 24))  # in one leap
    page.mouse.up()
    expect(page.locator("#undo")).to_be_enabled()
    assert row(12)[2:22].all()
    assert not row(2).any()
    page.keyboard.press("Control+z")
    assert not row(12).any()
    page.keyboard.press("Control+Shift+z")
    assert row(12)[2:22].all()
    assert (
        page.locator("#stage .view").first.evaluate("view => getComputedStyle(view).touchAction")
        == "pan-x pan-y"
    )  # a finger scrolls


def test_a_finding_is_filled_and_a_color_of_the_picture_can_be_picked(bench, page, first):
    address, jobs = bench
    opened(page, address, first)
    if page.locator("#test-class").is_visible():  # its answers are kept
        with_findings(page)
    page.locator(".finding .said").first.click()
    page.get_by_role("button", name="Paint it myself").click()
    odds = page.locator("#odds .number").first
    before = odds_shown(page)
    page.click("#fill-finding")
    expect(odds).not_to_have_text(before)
    page.click("#clear")
    expect(odds).to_have_text(before)
    page.click("#pick")
    move_to(page, "#stage", 12, 12, (24, 24))
    page.mouse.down()
    page.mouse.up()
    red, green, blue = jobs.explanation(first).view.pixels[12, 12]
    name = f"#{red:02x}{green:02x}{blue:02x}"
    expect(page.locator("#paints label").last).to_have_text(name)
    expect(page.locator("#paints input").last).to_be_checked()
    page.click("#fill-finding")
    expect(odds).not_to_have_text(before)


def test_what_is_chosen_below_is_brought_into_view_and_the_focus_stays(bench, page, first):
    opened(page, bench[0], first)
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 360, "height": 640})
    expect(page.locator(".finding .said").first).to_be_visible()
    expect(page.locator("#test-class")).to_be_hidden()  # a local model is asked by itself
    picture = page.locator("#stage .view").first
    said = page.locator("#findings .said").last  # the rest may be folded up
    said.scroll_into_view_if_needed()
    expect(picture).not_to_be_in_viewport()
    said.press("Enter")
    expect(picture).to_be_in_viewport(ratio=0.5)
    expect(said).to_be_focused()
    page.get_by_role("button", name="Paint it myself").press("Enter")
    expect(picture).to_be_in_viewport(ratio=0.5)
    expect(picture).to_be_focused()
    page.keyboard.press("Space")
    expect(page.locator("#undo")).to_be_enabled()
    page.locator("#undo").press("Enter")
    expect(page.locator("#redo")).to_be_focused()
    page.locator("#redo").press("Enter")
    expect(page.locator("#undo")).to_be_focused()


# ---- the overview


AUDIT = {
    "name": "signs",
    "page": "/audit.html",
    "fills": [{"name": "red", "swatch": "#ff0000"}],
    "classes": [{"label": "red", "anchor": "class-0", "n": 3, "accuracy": 1.0, "effects": [0.1]}],
}


AUDIT_PAGE = '<link rel="icon" href="data:,">The audit'  # else the browser asks for an icon


def test_an_audit_is_linked_to_with_jobs_and_without(page, tmp_path):
    def with_audit(route):
        route.fulfill(json={**route.fetch().json(), "audit": True})

    page.route(re.compile("/api/info$"), with_audit)
    page.route(re.compile("/api/audit$"), lambda route: route.fulfill(json=AUDIT))
    with served(page, tmp_path, MODELS) as (address, jobs):
        page.goto(address)
        link = page.get_by_role("link", name="The audit")
        expect(page.get_by_role("link", name="Audit signs")).to_be_visible()  # and no welcome
        expect(link).to_have_attribute("href", "/audit.html")
        ask_and_wait(jobs, "no such class/0.png")
        page.goto(f"{address}#overview")
        page.reload()
        expect(page.get_by_role("link", name="Audit signs")).to_be_visible()
        expect(page.locator("#overview-count")).to_contain_text(
            "no class of the model is called “no such class”"
        )
        expect(link).to_be_visible()
        opens = page.locator("#overview-audit").get_by_role("button", name="red", exact=True)
        page.route(re.compile("/audit.html"), lambda route: route.fulfill(body=AUDIT_PAGE))
        opens.click()  # not a filter of the images here, of which none may be in the audit
        page.wait_for_url(re.compile("/audit.html#class-0$"))
        page.unroute_all(behavior="ignoreErrors")


def test_the_example_starts_where_its_strongest_color_is_and_says_what_is_shown(page, tmp_path):
    with served(page, tmp_path, MODELS) as (address, _):
        page.goto(address)
        first = page.locator("#welcome .bar").first
        expect(first.locator(".name")).to_have_text("white")
        shown = numbers(page, "#welcome")
        assert min(shown, key=lambda name: shown[name][0]) == "white"
        expect(page.locator(".map figcaption")).to_contain_text("The map of white")
        steps = page.locator(".steps")
        for name in ("red", "white"):
            words = f"{shown[name][0]:+.2f}".replace("-", "−")
            expect(steps).to_contain_text(words)


def test_what_colors_do_is_averaged_for_each_model_apart(page, tmp_path):
    with served(page, tmp_path, MODELS) as (address, jobs):
        for model in MODELS:
            for i in range(3):
                ask_and_wait(jobs, f"red/{i}.png", n_masks=64, model=model, seed=i)
        page.goto(f"{address}#overview")
        rows = page.locator("#overview-matrix tbody .name")
        expect(rows).to_have_text(["red · center", "red · corner"])
        expect(page.get_by_label("Class", exact=True)).to_contain_text("red (6)")
        expect(page.locator("#overview-means")).to_be_hidden()
        for model in MODELS:
            said = page.locator("#gallery .what", has_text=re.compile(rf" · {model}\b"))
            expect(said).to_have_count(3)
        rows.nth(1).click()
        expect(page.locator("#overview-count")).to_have_text("3 images")
        expect(page.locator("#means-title")).to_have_text("Mean maps of red, 3 images")
        expect(page.get_by_label("Model", exact=True)).to_have_value("corner")
        expect(rows).to_have_text(["red"])


def test_two_classes_that_are_compared_say_why_nothing_is_tested(page, world):
    address, jobs = world
    page.goto(f"{address}#image/{ask_and_wait(jobs, seed=77).id}")
    expect(page.locator("#test-class")).to_be_visible()
    page.fill("#against", "green")
    page.press("#against", "Tab")
    expect(page.locator("#pending")).to_contain_text("two classes is not tested")
    expect(page.locator("#test-class")).to_be_hidden()


def test_many_images_are_filtered_to_the_wrong_ones_of_a_class(page, tmp_path):
    n_images = 60
    with served(page, tmp_path, MODELS) as (address, jobs):
        jobs.most_queued = n_images
        made = [
            ask(jobs, f"{COLORS[i % 2]}/{i}.png", (i + (i % 10 == 4)) % 2, n_masks=64, seed=i)
            for i in range(n_images)
        ]  # every tenth is of the other color: 6 wrong ones, all called red
        wait(lambda: all(job.state == "done" for job in made))
        page.goto(f"{address}#overview")
        expect(page.locator("#overview-count")).to_have_text("60 images · 6 wrong")
        for item in page.locator("#gallery li").all()[:6]:  # wrong first
            expect(item).to_have_class("wrong")
        matrix = page.locator(".matrix").evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert matrix[0] <= matrix[1]  # five colors have room at 1280 pixels
        page.get_by_role("button", name=re.compile("^red, green: ")).click()  # a cell of the matrix
        expect(page.locator("#overview-count")).to_contain_text("30 of 60 images")
        expect(page.locator("#means-title")).to_have_text("Mean maps of red, 30 images")
        page.go_back()
        expect(page.locator("#overview-count")).to_have_text("60 images · 6 wrong")
        expect(page.locator("#overview-means")).to_be_hidden()  # what is below stays where it is
        expect(page.locator(".dot.wrong")).to_have_count(6)
        box = page.locator(".scatter").bounding_box()
        page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.6 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.98 * box["width"], box["y"] + 0.9 * box["height"])
        page.mouse.up()
        expect(page.locator("#overview-count")).to_contain_text("6 of 60 images")
        page.get_by_role("button", name="Show all").click()
        page.get_by_role("button", name="red", exact=True).click()
        page.get_by_label("Answers").select_option("wrong")
        expect(page.locator("#overview-count")).to_contain_text("6 of 60 images")
        expect(page.locator("#gallery li")).to_have_count(6)
        said = page.locator("#gallery .what", has_text=re.compile("^is red · "))
        expect(said).to_have_count(6)
        here = page.url
        page.locator("#gallery a").first.click()
        expect(page.locator("#state")).to_contain_text("done")
        page.go_back()
        expect(page.locator("#gallery li")).to_have_count(6)
        assert page.url == here
