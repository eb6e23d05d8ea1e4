"""`audit.html`: one file that asks nobody, shows all classes, and opens images when served."""

import base64
import functools
import io
import json
import os
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect, sync_playwright
from starlette.testclient import TestClient

import mcrise
from mcrise.audits import audit_page, tables
from mcrise.audits.audit_page import render
from mcrise.audits.class_stats import read_stats
from mcrise.audits.headlines import striking
from mcrise.batch.storage import Storage, parquet
from mcrise.models.model import Model
from mcrise.output.html import digest
from mcrise.server.app import create_app
from mcrise.server.job_queue import JobQueue
from planted import PatchModel, photo
from planted_folder import LABELS, planted_looks, write_audit

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
HOSTILE = "<img src=x onerror=alert(1)>\"'&"

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Playwright's own pipes


class Seen(HTMLParser):
    """Tags with their attributes, and all text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    looks = [planted_looks(0, corner=0.4), planted_looks(1, right=0.75), planted_looks(2, n=5)]
    return write_audit(tmp_path_factory.mktemp("audit") / "one", looks)


def test_the_page_tells_each_class_its_figures_and_its_images(folder):
    text = render(folder)
    seen = Seen(text)
    opened = [one["id"] for one in seen.all("details") if "id" in one]
    assert opened == ["class-0", "class-1", "class-2", "all-classes"]
    assert sorted(one["href"] for one in seen.all("a")) == sorted(f"#{id}" for id in opened)
    assert seen.text.count("The lower right part") == 1  # of 'stop' alone
    assert "6 of 24 are wrong; repainting a finding corrects 0 of them." in seen.text
    assert "Too few images: 5 images, and 12 are needed (7 more)." in seen.text
    assert "predicted as keep left." in seen.text
    sortable = [float(x) for x in re.findall(r'<td data-sort="([-\d.]+)"', text)]
    assert len(sortable) == 4 * 7  # classes and all of them, by column


def hue_sensitive(target, n_right, n=24):
    """Images of a class of which the model knows only some when hues are turned."""
    looks = planted_looks(target, n=n)
    turned = np.where(np.arange(n) < n_right, target, (target + 1) % 3)
    return replace(looks, hue120=turned)


def test_the_most_striking_figure_of_a_class_comes_first_with_its_images(tmp_path):
    """A quarter of one class is known when hues are turned; over all classes it is three."""
    looks = [planted_looks(0), hue_sensitive(1, 6), planted_looks(2, n=5)]
    folder = write_audit(tmp_path / "one", looks)
    text = render(folder)
    above = text[: text.index('id="classes"')]
    assert "yield</a>: 25% right with hues turned by 120 degrees" in above
    (share,) = [one.accuracy_hue120 for one in read_stats(folder).classes if one.label == "yield"]
    assert f"(95%: {100 * share.low:.0f}–{100 * share.high:.0f}%, 24 images)" in above
    assert above.count("taken for “keep left”") == 3
    assert above.count("The same image as the model was asked") == 3
    sections = [one["id"] for one in Seen(text).all("details") if "id" in one]
    assert sections[0] == "class-1"
    row = text.split('id="class-1"')[1].split("</summary>")[0]
    assert "25% right with hues turned by 120 degrees" in Seen(row).text


def test_a_class_that_is_no_worse_than_all_together_is_not_called_striking(tmp_path):
    same = [hue_sensitive(target, 12) for target in range(3)]  # half of each
    assert "most striking figure" not in render(write_audit(tmp_path / "same", same))
    few = [planted_looks(0), hue_sensitive(1, 1, n=2), planted_looks(2)]  # one of two: no interval
    text = render(write_audit(tmp_path / "few", few))
    assert "50% right with hues turned" not in text.split('id="classes"')[0]


def test_of_many_classes_the_worst_has_to_be_worse_to_stand_out(tmp_path):
    stats = read_stats(write_audit(tmp_path / "two", [planted_looks(0), hue_sensitive(1, 6)]))
    assert striking(stats.classes[1], stats).kind == "hue120"
    assert striking(stats.classes[1], replace(stats, classes=20 * stats.classes)) is None


def test_a_row_outlines_and_tells_what_is_confirmed_and_nothing_else(folder, tmp_path):
    def row(audit):
        return render(audit).split('id="class-0"')[1].split("</summary>")[0]

    assert "<path" not in row(folder).split('class="maps"')[0]  # nothing was tried
    assert "No single place and color matters significantly." in row(folder)
    change = {"value": -0.3, "low": -0.4, "high": -0.2, "n": 12, "n_groups": 12}
    finding = "classes__0__findings__0__"
    tried = {f"{finding}verdict": "confirmed", f"{finding}change": change,
             f"{finding}painted": [0]}  # fmt: skip
    told = row(changed(folder, tmp_path, "figures.json", **tried))
    assert '<path d="M' in told.split('class="maps"')[0]
    assert "painted red: the score falls by 0.3." in Seen(told).text
    assert told.count(": mean map") == 3


def test_tables_of_colors_have_swatches_and_strong_effects_stand_out(folder):
    text = render(folder)
    table = re.search(r'<table class="effects">.*?</table>', text, re.DOTALL)[0]
    for color in ("#ff0000", "#00ff00", "#ffff00"):
        assert f'fill="{color}"' in table.split("</thead>")[0]
    assert 'class="up heat-4"' in text  # what is planted in the corner


def mean_map(text, target, fill):
    """A mean map of a class as the page shows it: (R, R, 3) in 0..1."""
    part = text.split(f'id="class-{target}"')[1].split("</details>")[0]
    content = re.search(rf'base64,([^"]+)" alt="{fill}: mean map"', part)[1]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB")) / 255


def test_mean_maps_are_pale_where_the_class_findings_would_be_chance(folder):
    """The mean image is gray; a map near zero is white, at 0.35 of 0.9 or else of 0.25."""
    text = render(folder)
    gray = 0.35 + 0.65 * 100 / 255
    pale = 0.35 * 0.25 * 0.97 + (1 - 0.35 * 0.25) * gray
    stop, few = mean_map(text, 0, "red"), mean_map(text, 2, "red")
    assert np.median(stop[:8]) == pytest.approx(pale, abs=0.02)  # nothing but noise
    # What is planted in the middle of all classes: found in one, and of five images not testable.
    assert np.ptp(stop[14:18, 14:18], axis=2).mean() > 2 * np.ptp(few[14:18, 14:18], axis=2).mean()
    assert "Pale areas could be chance." in Seen(text).text
    assert "standard errors" not in Seen(text).text


def test_the_page_of_few_images_says_so_and_no_number_that_is_none(tmp_path):
    text = Seen(render(write_audit(tmp_path / "few", [planted_looks(0, n=5)]))).text
    assert not re.search(r"\bnan\b", text)
    assert "All areas are pale: no class has enough images to rule out chance." in text
    assert "none: no class has the 12 images that findings need" in text


def test_the_page_asks_nobody_and_runs_only_what_is_its_own(folder):
    text = render(folder)
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    script = re.search(r'<script type="module">(.*?)</script>', text, re.DOTALL)[1]
    assert f"style-src {digest(style)}; script-src {digest(script)};" in text
    assert "import " not in script
    assert " style=" not in text  # a policy that names the style forbids it


def test_html_in_names_is_shown_as_text(tmp_path):
    looks = planted_looks(0)
    looks = replace(looks, names=(HOSTILE, *looks.names[1:]))
    folder = write_audit(tmp_path / HOSTILE.replace("/", ""), [looks], (HOSTILE, "a", "b"))
    text = render(folder)
    seen = Seen(text)
    assert "<img src=x" not in text
    assert HOSTILE in seen.text
    assert all(one["src"].startswith("data:image/") for one in seen.all("img"))


def test_pictures_are_limited_whatever_the_number_of_images(folder, monkeypatch):
    n_maps = 3 * 4 + 1  # of three classes: the mean image and three fills; and the scale
    monkeypatch.setattr(audit_page, "MOST_PICTURES", 18)
    seen = Seen(render(folder))
    assert len(seen.all("img")) - n_maps <= 18
    assert len(seen.all("img")) > n_maps
    monkeypatch.setattr(audit_page, "MOST_DRAWN", 1)
    assert "Its maps are in the tables." in Seen(render(folder)).text


def test_a_single_image_and_a_model_without_labels_make_a_page_too(tmp_path):
    folder = write_audit(tmp_path / "one", [planted_looks(0, n=1)], labels=None)
    assert "class 0" in Seen(render(folder)).text


# ---- served


@pytest.fixture
def client(folder, tmp_path):
    model = mcrise.Model(PatchModel(slice(0, 8), slice(0, 8)), identity="planted")
    explanation = mcrise.explain(photo(32, 32), model, n_masks=64, mask_prob=0.3)
    (folder / "runs/000003.npz").write(saved(explanation, tmp_path))
    jobs = JobQueue(tmp_path / "data", {"patch": model})
    app = create_app(jobs, audit=folder)
    with TestClient(app, base_url="http://127.0.0.1:8700") as client:
        yield client
    jobs.close()


def saved(explanation, tmp_path):
    explanation.save(tmp_path / "run.npz")
    return (tmp_path / "run.npz").read_bytes()


def test_an_image_with_a_record_opens_in_the_workbench_once(client):
    page = client.get("/audit.html")
    assert page.headers["content-security-policy"].startswith(audit_page.POLICY)
    inside = {"#all-classes", *(f"#class-{n}" for n in range(3))}
    links = {one["href"] for one in Seen(page.text).all("a")} - inside
    assert links == {"/audit/3", "/#overview"}  # and the way back
    there = client.get("/audit/3", follow_redirects=False)
    assert there.status_code == 303
    id = there.headers["location"].removeprefix("/#")
    assert client.get("/audit/3", follow_redirects=False).headers["location"] == f"/#{id}"
    (job,) = client.get("/api/jobs").json()
    assert (job["id"], job["name"], job["state"], job["n_masks"]) == (id, "003.png", "done", 64)
    assert client.get(f"/api/jobs/{id}/run").json()["size"] == [32, 32]
    assert client.get(f"/api/jobs/{id}/findings").status_code == 200
    assert client.post(f"/api/jobs/{id}/trials").status_code == 200  # its model is served


def test_an_audit_that_was_made_again_opens_its_new_records(client, folder, tmp_path):
    before = client.get("/audit/3", follow_redirects=False).headers["location"]
    jobs = client.app.state.jobs
    again = mcrise.explain(photo(32, 32), jobs.models["patch"], n_masks=64, seed=2)
    (folder / "runs/000003.npz").write(saved(again, tmp_path))
    after = client.get("/audit/3", follow_redirects=False).headers["location"]
    assert after != before
    assert jobs.explanation(after.removeprefix("/#")).plan.seed == 2


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_of_another_page_puts_nothing_among_the_jobs(client, site):
    followed = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/audit/3", headers=followed).status_code == 403
    assert client.get("/audit.html", headers=followed).status_code == 200
    assert client.get("/api/jobs").json() == []


def test_what_the_audit_has_no_record_of_is_a_sentence(client):
    found = client.get("/audit/4")
    assert found.status_code == 404
    assert "--keep-runs" in found.json()["detail"]
    assert client.get("/audit/-1").status_code == 422


def test_the_figures_are_served_and_refused_where_there_is_no_audit(client, tmp_path):
    told = client.get("/api/audit").json()
    assert [one["label"] for one in told["classes"]] == list(LABELS)
    assert told["classes"][0]["effects"][2] > 0 > told["classes"][0]["effects"][0]
    assert told["fills"][2] == {"name": "yellow", "swatch": "#ffff00"}
    client.app.state.audit = None
    assert client.get("/audit.html").status_code == 404


# ---- in a browser


def test_classes_are_sorted_and_opened_by_keyboard_in_a_browser(folder, tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    file = tmp_path / "audit.html"
    file.write_text(render(folder), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 360, "height": 800})
        wrong = []
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(file.as_uri())

        def names():
            return page.locator(".classes tbody th").all_inner_texts()

        by_color = page.get_by_role("button", name="color")
        by_color.focus()
        page.keyboard.press("Enter")
        assert (names()[0], names()[-1]) == ("stop", "all classes")
        page.keyboard.press("Enter")
        assert (names()[2], names()[-1]) == ("stop", "all classes")
        page.get_by_role("button", name="class").click()
        assert names() == ["keep left", "stop", "yield", "all classes"]
        page.get_by_role("link", name="yield").press("Enter")
        expect(page.locator("details[open] summary b")).to_have_text(["yield"])  # a moment later
        shown = page.locator("details[open] img").evaluate_all(
            "images => images.map((image) => image.complete && image.naturalWidth > 0)"
        )
        assert shown
        assert all(shown)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert wrong == []
        browser.close()


# ---- folders of strangers


def changed(folder, tmp_path, name, **places):
    """A copy of an audit in which one file says something else; `a__0__b` is a place in it."""
    copy = Storage(shutil.copytree(folder.path, tmp_path / "copy"))
    told = json.loads((copy / name).read_text())
    for where, value in places.items():
        *path, last = (int(key) if key.isdecimal() else key for key in where.split("__"))
        inner = functools.reduce(lambda place, key: place[key], path, told)
        inner[last] = value
    (copy / name).write(json.dumps(told).encode())
    return copy


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("audit.json", "fills", 5),
        ("audit.json", "fills__0", None),
        ("audit.json", "labels", [1, 2, 3]),
        ("audit.json", "kind", "kindness"),
        ("audit.json", "settings__raster", 10**9),
        ("audit.json", "settings", []),
        ("audit.json", "chosen__mask_prob", "much"),
        ("audit.json", "images", {"a": 1}),
        ("figures.json", "classes__0__n", HOSTILE),
        ("figures.json", "classes__0__n_groups", "2"),
        ("figures.json", "classes__0__label", 5),
        ("figures.json", "classes__0__target", HOSTILE),
        ("figures.json", "classes__0__mean__shape", [10**6, 10**6]),
        ("figures.json", "classes__0__mean__float32", "AAAA"),
        ("figures.json", "classes__0__findings__0__verdict", HOSTILE),
        ("figures.json", "classes__0__findings__0__fill", 99),
        ("figures.json", "classes__0__findings__0__effect__value", "1"),
        ("figures.json", "classes__0__zones__rim__low", [1]),
        ("figures.json", "overall", None),
    ],
)
def test_what_an_audit_says_is_checked_before_it_is_shown(folder, tmp_path, name, place, value):
    odd = changed(folder, tmp_path, name, **{place: value})
    with pytest.raises(mcrise.InputError, match=r"is damaged|kind of score"):
        render(odd)


@pytest.mark.parametrize("name", ["images/class=0/part-00000.parquet", "figures.json"])
@pytest.mark.parametrize("content", [b"", b"PAR1 and no more PAR1", b"[" * 100_000])
def test_a_file_of_an_audit_that_is_none_is_a_sentence(folder, tmp_path, name, content):
    copy = Storage(shutil.copytree(folder.path, tmp_path / "copy"))
    (copy / name).write(content)
    with pytest.raises(mcrise.InputError, match="is damaged"):
        render(copy)


def test_columns_of_another_kind_are_a_sentence(folder, tmp_path):
    copy = Storage(shutil.copytree(folder.path, tmp_path / "copy"))
    kinds = {**tables.IMAGES, "name": "int64"}
    (copy / "images/class=0/part-00000.parquet").write(parquet([{"name": 1}], kinds))
    with pytest.raises(mcrise.InputError, match=r"name of part-00000.parquet is int64"):
        render(copy)


def test_a_pipe_in_the_folder_is_not_waited_for(folder, tmp_path):
    copy = shutil.copytree(folder.path, tmp_path / "copy")
    (copy / "figures.json").unlink()
    os.mkfifo(copy / "figures.json")
    with pytest.raises(mcrise.InputError, match="not finished"):
        render(Storage(copy))


def test_no_file_is_opened_for_the_name_of_a_fill(folder, tmp_path, monkeypatch):
    odd = changed(folder, tmp_path, "audit.json", fills__0="picture:/etc/passwd")
    monkeypatch.setattr("mcrise.fills.open_picture", None)
    assert "picture:/etc/passwd" in Seen(render(odd)).text


def test_the_page_answers_in_words_for_an_audit_that_was_damaged_since(folder, tmp_path):
    copy = Storage(shutil.copytree(folder.path, tmp_path / "copy"))
    (copy / "runs/000000.npz").write(b"no run")
    jobs = JobQueue(tmp_path / "data", {"planted": Model(PatchModel(slice(0, 8), slice(0, 8)))})
    with TestClient(create_app(jobs, audit=copy), base_url="http://127.0.0.1") as client:
        assert "is damaged" in client.get("/audit/0", follow_redirects=False).json()["detail"]
        figures = json.loads((copy / "figures.json").read_text())
        figures["classes"][0]["accuracy"]["value"] = None
        (copy / "figures.json").write(json.dumps(figures).encode())
        assert client.get("/api/audit").json()["classes"][0]["accuracy"] is None  # no NaN in JSON
        (copy / "figures.json").write(b"{}")
        for path in ("/api/audit", "/audit.html"):
            answer = client.get(path)
            assert (answer.status_code, "is damaged" in answer.text) == (400, True)
    jobs.close()
