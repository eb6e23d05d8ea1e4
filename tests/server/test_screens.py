"""What the screens show is what was asked for: comparisons, filters, marks and what survives."""

import re
import threading
from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import expect

from browsing import (
    COLORS,
    MODELS,
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
from mcrise.images import Geometry
from mcrise.models.model import Model
from mcrise.server.schemas import JobRequest
from serving import serving, wait

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Playwright's own pipes
CUT = Geometry((16, 16), 24)  # the middle of a picture of 24 x 24 pixels


def middle_color(images):
    """As `center_color`, of the middle that is left of a picture."""
    return center_color(np.pad(images, ((0, 0), (4, 4), (4, 4), (0, 0))))


def source(page, n):
    return page.locator("#stage .view").nth(n).locator("img").first.get_attribute("src")


# ---- comparing


def test_models_that_crop_differently_have_no_difference_and_each_its_own_picture(page, tmp_path):
    models = {**MODELS, "cut": Model(middle_color, CUT, labels=COLORS, identity="cut")}
    with served(page, tmp_path, models) as (address, jobs):
        one, two = ask_and_wait(jobs), ask_and_wait(jobs, model="cut")
        opened(page, address, one.id, **{"with": two.id})
        expect(page.locator("#differs")).to_contain_text(
            "B rows 4 to 20 and columns 4 to 20 of 24 x 24 pixels"
        )
        expect(page.locator("#stage figure")).to_have_count(2)
        assert (source(page, 0), source(page, 1)) == (
            f"/api/jobs/{one.id}/image.png",
            f"/api/jobs/{two.id}/image.png",
        )
        opened(page, address, two.id)  # and the crop is said where it is the only picture
        expect(page.locator("#frame-words")).to_contain_text("Rows 4 to 20 and columns 4 to 20")
        expect(page.locator("#frame-photo img")).to_be_visible()
        box = page.locator("#frame-photo rect").evaluate(
            "e => [e.x, e.width].map(x => x.baseVal.value)"
        )
        assert box == [4, 16]


def test_two_pictures_of_one_name_are_two_pictures(page, tmp_path):
    with served(page, tmp_path, MODELS) as (address, jobs):
        one, two = ask_and_wait(jobs), ask_and_wait(jobs, model="corner", k=1, seed=1)
        opened(page, address, one.id, **{"with": two.id})
        expect(page.locator("#cards .card")).to_have_count(2)
        assert source(page, 1) == f"/api/jobs/{two.id}/image.png"
        expect(page.locator("#cards h2").first).to_contain_text("red/0.png")  # not the model alone
        expect(page.locator("#get-png")).to_have_attribute("href", re.compile(f"less={two.id}"))
        expect(page.locator("#get-report")).to_have_attribute("href", re.compile(f"less={two.id}"))


def test_unrelated_classes_are_not_subtracted(page, tmp_path):
    fruit = ("banana", "keep right", "apple", "pear")
    models = {**MODELS, "fruit": Model(center_color, labels=fruit, identity="fruit")}
    with served(page, tmp_path, models) as (address, jobs):
        one, two = ask_and_wait(jobs), ask_and_wait(jobs, model="fruit")
        opened(page, address, one.id, **{"with": two.id})
        expect(page.locator("#differs")).to_have_text(
            "No difference: A is about 'red' and B about 'banana', which are different classes."
        )
        expect(page.locator("#stage figure")).to_have_count(2)


# ---- what is asked for is what is shown


def test_after_an_outage_class_map_and_findings_agree(page, tmp_path):
    with served(page, tmp_path, MODELS) as (address, jobs):
        opened(page, address, ask_and_wait(jobs).id)
        page.route(re.compile("/api/"), lambda route: route.abort())
        page.locator(".class-chip", has_text="green").click()
        expect(page.locator("#lost")).to_be_visible()
        page.unroute_all(behavior="ignoreErrors")
        expect(page.locator("#stage .map figcaption")).to_contain_text("green")
        expect(page.locator(".class-chip[aria-pressed=true]")).to_contain_text("green")
        expect(page.locator("#pending")).to_contain_text("Not tested yet")
        expect(page.locator("#lost")).to_be_hidden()
    page.wrong.clear()  # the browser tells of every request that failed


def test_a_first_look_does_not_claim_no_masks(page, tmp_path):
    held = Held(Model(center_color), 1 + 4 + 64)  # the image, a few again, and a first look
    model = Model(held, labels=COLORS, identity="held")
    with served(page, tmp_path, {"held": model}) as (address, jobs):
        try:
            config = RunConfig(grid=(4, 4))  # it chooses its mask_prob: that takes a pilot
            job = jobs.submit(JobRequest("held", "auto.png", config), color_picture(0))
            wait(lambda: job.preview)
            page.goto(f"{address}#image/{job.id}")
            expect(page.locator("#stage .map figcaption")).to_contain_text("64 masks")
            assert "0 masks" not in page.locator("#state").inner_text().replace("640 masks", "")
        finally:
            held.go.set()


# ---- one filter


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """Sixteen images, of which four of the class red are wrong."""
    with serving(tmp_path_factory.mktemp("collection"), MODELS) as (address, jobs):
        made = [
            ask(jobs, f"{COLORS[i % 2]}/{i}.png", int(i % 2 or i % 4 == 2), n_masks=64, seed=i)
            for i in range(16)
        ]
        wait(lambda: all(job.state == "done" for job in made))
        yield address, jobs


def test_the_keys_and_the_list_stay_within_the_filter(page, collection):
    address, _ = collection
    # By age: the usual order moves when the numbers of outliers arrive.
    page.goto(f"{address}#overview?answers=wrong&sort=newest")
    expect(page.locator("#gallery li")).to_have_count(4)
    expect(page.locator("#jobs li")).to_have_count(4)
    expect(page.locator("#n-jobs")).to_have_text("4 of 16")
    names = page.locator("#gallery .name").all_inner_texts()
    page.locator("#gallery a").first.click()
    page.click("#test-class")
    expect(page.locator("#correction")).to_contain_text("the model says 'red'")
    for name in names[1:]:
        expect(page.locator("#headline .mark.wrong")).to_contain_text("the true label is ‘red’")
        page.keyboard.press("]")
        expect(page.locator("#picture-name")).to_have_text(name)
    page.keyboard.press("]")  # there is no next one
    expect(page.locator("#picture-name")).to_have_text(names[-1])
    assert "answers=wrong" in page.url
    page.goto("about:blank")


def test_the_filter_of_the_list_filters_the_gallery_and_is_in_the_address(page, collection):
    page.goto(f"{collection[0]}#overview")
    expect(page.locator("#gallery li")).to_have_count(16)
    page.fill("#filter", "red/1")
    expect(page.locator("#gallery li")).to_have_count(3)
    assert "find=red" in page.url
    page.reload()
    expect(page.locator("#filter")).to_have_value("red/1")
    expect(page.locator("#gallery li")).to_have_count(3)
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("#gallery li")).to_have_count(16)
    page.goto("about:blank")


def test_means_have_their_noise_and_a_scale_and_loading_is_not_missing(page, collection):
    held = []
    page.route(re.compile("/api/summaries"), lambda route: held.append(route))
    page.goto(f"{collection[0]}#overview?answers=wrong")
    expect(page.locator("#jobs-empty")).to_have_text("Loading the numbers of the images…")
    expect(page.locator("#gallery-rest")).to_be_empty()
    page.goto(f"{collection[0]}#overview")
    expect(page.locator("#overview-count")).to_have_text("16 images · loading the numbers of 16")
    page.unroute_all(behavior="ignoreErrors")
    for route in held:
        route.continue_()
    expect(page.locator("#overview-count")).to_have_text("16 images · 4 wrong")
    page.get_by_role("button", name="green", exact=True).click()
    expect(page.locator("#means-title")).to_have_text("Mean maps of green, 8 images")
    expect(page.locator("#means figcaption", has_text="of 64").first).to_be_visible()
    words = page.locator("#means figcaption").all_inner_texts()
    counts = [int(found[1]) for one in words if (found := re.search(r"in (\d+) of 64", one))]
    assert counts  # red paint hides the green,
    assert max(counts) < 64  # but not everywhere
    expect(page.locator("#means-scale canvas")).to_be_visible()
    drawn = "c => c.getContext('2d').getImageData(0, 0, 48, 48).data.some(Boolean)"
    wait(lambda: page.locator("#gallery canvas").first.evaluate(drawn))
    page.goto("about:blank")


def test_a_folder_of_many_pictures_is_taken_at_once(page, tmp_path):
    gate = threading.Event()

    def slow(images):
        gate.wait()
        return center_color(images)

    files = [tmp_path / f"{k}.png" for k in range(40)]
    for k, file in enumerate(files):
        file.write_bytes(color_picture(k % 2, seed=k))
    with served(page, tmp_path / "data", {"slow": Model(slow, labels=COLORS)}) as (address, jobs):
        try:
            page.goto(address)
            page.click("#new")
            page.set_input_files("#file", files)
            page.click("#explain")
            expect(page.locator("#overview-count")).to_contain_text("40 images · 40 at work")
            expect(page.locator("#sending")).to_be_empty()  # nothing waits in the tab
            assert len(jobs.all()) == 40
            page.goto("about:blank")
        finally:
            for job in jobs.all():
                jobs.delete(job.id)
            gate.set()


# ---- pointing and painting


def test_values_stand_beside_the_pointer_and_lines_stay_thin_when_enlarged(page, collection):
    address, jobs = collection
    page.set_viewport_size({"width": 1280, "height": 500})
    opened(page, address, jobs.all()[0].id)
    move_to(page, "#stage", 12, 20, (24, 24))
    expect(page.locator("#tip")).to_be_in_viewport(ratio=1)
    line = page.locator("#stage .map .contour:not(.under)")
    wide = "line => parseFloat(getComputedStyle(line).strokeWidth)"
    before = line.evaluate(wide)
    page.mouse.wheel(0, -400)
    expect(page.locator("#stage .sheet").first).to_have_attribute(
        "style", re.compile(r"scale\(2\)")
    )
    assert line.evaluate(wide) == pytest.approx(before / 2)  # twice as large on the screen
    page.mouse.move(5, 5)
    expect(page.locator("#tip")).to_be_hidden()
    page.goto("about:blank")


def test_a_painting_survives_reloading_and_a_tap_can_be_started_over(browser, collection):
    address, jobs = collection
    context = browser.new_context(has_touch=True, viewport={"width": 640, "height": 900})
    touched = context.new_page()
    touched.goto(f"{address}#whatif/{jobs.all()[0].id}")
    odds = touched.locator("#odds .number").first
    before = odds_shown(touched)
    box = touched.locator("#stage .view").first.bounding_box()
    touched.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(touched.locator("#clear")).to_be_enabled()
    expect(odds).not_to_have_text(before)
    painted = odds_shown(touched)
    touched.reload()
    expect(odds).to_have_text(painted)
    # At twice the size the scores cover neither the brush nor the picture.
    places = [
        touched.locator(one).bounding_box()
        for one in ("#tools", "#stage .view >> nth=0", "#odds-block")
    ]
    for above, below in pairwise(places):
        assert above["y"] + above["height"] <= below["y"] + 1
    touched.locator("#clear").click()
    expect(odds).to_have_text(before)
    context.close()
