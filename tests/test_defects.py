"""Defects of the version before the packages had plain names, as a user meets them.

Like `test_attacks.py` it uses the command, its server and what `import mcrise` gives, and of these
only what both versions have: so `attacks/before.py 773b96f` can show that each test fails there.
What is inside is tested beside its package.
"""

import base64
import io
import itertools
import re
import signal
import subprocess
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pyarrow.parquet import read_table

import mcrise
from attacking import MCRISE, command, serving

defect = pytest.mark.defect
pytestmark = pytest.mark.slow  # each fact has a shorter test beside its package
GIVEN = {"n_masks": 64, "mask_prob": 0.3, "grid": 4}


def reddish(images):
    """How red the upper left is."""
    red = images[:, :8, :8, 0].mean(axis=(1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)


def known(predict):
    return mcrise.Model(predict, labels=("red", "other"), identity="planted")


def photo(seed=0, side=24):
    return np.random.default_rng(seed).integers(0, 256, (side, side, 3), np.uint8)


def collection(folder, n, picture=photo):
    """So many images of the class 'red'."""
    (folder / "red").mkdir(parents=True)
    for number in range(n):
        Image.fromarray(picture(number)).save(folder / "red" / f"{number:02d}.png")
    return folder


def chroma(pixels):
    """How far a drawn map is from gray, at most."""
    return float(np.ptp(np.asarray(pixels, float)[..., :3], axis=-1).max())


@defect("a")
def test_mean_maps_of_an_audit_are_pale_where_nothing_was_found(tmp_path):
    """Of white noise alone: a pale map has at most a quarter of the color of the scale."""
    noise = np.random.default_rng(0)

    def model(images):
        score = 0.5 + 0.1 * noise.standard_normal(len(images)).clip(-3, 3)
        return np.stack([score, 1 - score], axis=1)

    data = collection(tmp_path / "data", 13, lambda n: np.full((24, 24, 3), 100 + n, np.uint8))
    mcrise.audit(data, known(model), out=tmp_path / "out", **GIVEN)
    page = (tmp_path / "out" / "audit.html").read_text(encoding="utf-8")
    maps = re.findall(r'base64,([^"]+)" alt="[^"]*: mean map"', page)
    assert maps
    drawn = [Image.open(io.BytesIO(base64.b64decode(one))).convert("RGB") for one in maps]
    assert max(chroma(one) / 255 for one in drawn) < 0.3


@defect("b")
def test_settings_of_a_model_count_for_several_images_too(tmp_path):
    file = tmp_path / "x.onnx"  # without the settings that lie beside the original
    file.write_bytes(next(Path(mcrise.__file__).parent.glob("demo/*.onnx")).read_bytes())
    images = [photo(0, 48), photo(1, 48)]
    several = mcrise.explain(images, file, mean=0.5, std=0.5, **GIVEN)
    alone = mcrise.explain(images[1], file, mean=0.5, std=0.5, **GIVEN)
    np.testing.assert_array_equal(several[1].scores[0], alone.scores[0])


@defect("c")
def test_a_second_audit_in_a_folder_is_refused_while_the_first_runs(tmp_path):
    data, said = collection(tmp_path / "data", 2), []

    def model(images):
        if not said:
            said.append("")
            try:
                mcrise.audit(data, known(reddish), out=tmp_path / "out", overwrite=True, **GIVEN)
            except mcrise.InputError as error:
                said[0] = str(error)
        return reddish(images)

    mcrise.audit(data, known(model), out=tmp_path / "out", **GIVEN)
    assert "in use" in said[0]


@defect("d")
def test_an_audit_asks_about_no_painted_image_twice(tmp_path):
    """But for the few masks by which jitter is seen, and what recognizes the model."""
    asked = []

    def model(images):
        asked.extend(image.tobytes() for image in images)
        return reddish(images)

    data = collection(tmp_path / "data", 3)
    mcrise.audit(data, known(model), out=tmp_path / "out", **GIVEN)
    assert len(asked) - len(set(asked)) < 64


@defect("e")
def test_the_color_share_of_a_job_is_that_of_an_audit_of_its_image(tmp_path):
    (tmp_path / "planted.py").write_text(
        "import numpy as np\n"
        "from mcrise import Model\n"
        "def predict(images):\n"
        "    red = images[:, :8, :8, 0].mean(axis=(1, 2)) / 255\n"
        "    return np.stack([red, 1 - red], axis=1)\n"
        "model = Model(predict, labels=('red', 'other'), identity='planted')\n"
    )
    data = collection(tmp_path / "data", 1)
    seed, masks = next(  # of the audit, and of the masks of this image: as small as a URL's
        (seed, masks)
        for seed in itertools.count()
        if (masks := int(sha256(f"{seed} red/00.png".encode()).hexdigest()[:16], 16)) < 2**53
    )
    mcrise.audit(data, known(reddish), out=tmp_path / "out", seed=seed, **{**GIVEN, "n_masks": 256})
    table = read_table(next((tmp_path / "out" / "images").rglob("*.parquet")))
    (row,) = table.to_pylist()
    presence, color = (
        next(row[name] for name in row if re.fullmatch(f"{one}(_energy)?", name))
        for one in ("presence", "color")
    )
    with serving(tmp_path / "jobs", "--model", "planted:model", path=tmp_path) as server:
        query = f"n_masks=256&mask_prob=0.3&rows=4&columns=4&seed={masks}&name=red/00.png"
        job = server.submit(query, (data / "red" / "00.png").read_bytes())
        server.wait(job)
        paths = server.ask("openapi.json")[1]["paths"]
        route = "summaries" if "/api/summaries" in paths else "cards"
        (told,) = server.ask(f"api/{route}?ids={job}")[1].values()
    wanted = np.clip(color / (presence + color), 0, 1)
    assert told["color_share"] == pytest.approx(wanted, abs=1e-3)


@defect("f")
def test_of_noise_no_figure_shows_a_strong_place():
    """What findings take for chance is pale whoever draws it, not what has a narrow interval."""
    noise = np.random.default_rng(1)

    def model(images):
        score = 0.5 + 0.1 * noise.standard_normal(len(images)).clip(-3, 3)
        return np.stack([score, 1 - score], axis=1)

    gray = np.full((24, 24, 3), 100, np.uint8)
    (run,) = list(mcrise.explain([gray], model, n_masks=256, mask_prob=0.3, grid=4))
    figure = run.maps(0, "centered").plot()
    drawn = [axis.get_images()[0].get_array() for axis in figure.axes if axis.get_images()]
    panels = [one for one in drawn if one.ndim == 3]
    assert len(panels) > 1
    assert max(map(chroma, panels)) < 0.3


@defect("g")
def test_the_page_of_a_small_audit_shows_no_number_that_is_none(tmp_path):
    mcrise.audit(collection(tmp_path / "data", 2), known(reddish), out=tmp_path / "out", **GIVEN)
    page = (tmp_path / "out" / "audit.html").read_text(encoding="utf-8")
    text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", text)


@defect("g")
def test_the_error_of_rise_is_relative_to_what_differs_in_its_map():
    """A level of 0.9 that no mask changes: all that differs is noise, so the error is large."""
    noise = np.random.default_rng(0)

    def model(images):
        score = 0.9 + 0.01 * noise.standard_normal(len(images)).clip(-3, 3)
        return np.stack([score, 1 - score], axis=1)

    run = mcrise.explain([photo()], model, n_masks=512, mask_prob=0.3, grid=4)[0]
    assert run.maps(0, "rise").relative_error > 0.5


@defect("h")
def test_match_finds_in_its_gallery_nothing_that_it_has_drawn(tmp_path):
    gallery = tmp_path / "gallery"
    gallery.mkdir()
    for name, color in {
        "query": (130, 40, 140),
        "purple": (120, 30, 130),
        "red": (200, 20, 20),
    }.items():
        Image.new("RGB", (24, 32), color).save(gallery / f"{name}.png")
    (tmp_path / "colors.py").write_text(
        "def embed(images):\n    return images[:, :16].mean(axis=(1, 2)) / 255\n"
    )
    said = []
    for _ in range(2):
        done = command(
            "match", "gallery/query.png", "gallery", "--model", "colors:embed", "--size", "32x24",
            "--n-masks", 64, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(re.search(r"rank \d+ of \d+", done.stdout)[0])
    assert said == ["rank 1 of 2"] * 2


@defect("i")
def test_what_is_saved_can_be_read_or_was_refused(tmp_path):
    """A label of 20,000 characters."""
    try:
        mcrise.explain(
            photo(), reddish, labels=["red", "x" * 20_000], save=tmp_path / "run.npz", **GIVEN
        )
    except mcrise.InputError:
        assert not (tmp_path / "run.npz").exists()
    else:
        mcrise.load(tmp_path / "run.npz")


@defect("i")
def test_as_many_answers_as_can_be_read_are_taken(tmp_path):
    run = mcrise.explain(photo(), reddish, **GIVEN)
    run.answers = {f"{n:064x}": run.untouched for n in range(100_001)}
    try:
        run.save(tmp_path / "run.npz")
    except mcrise.InputError:
        assert not (tmp_path / "run.npz").exists()
    else:
        mcrise.load(tmp_path / "run.npz")


SLOW = """
import time
import numpy as np
n_images = 0
def model(images):
    global n_images
    n_images += len(images)
    if n_images > 520:  # trials
        open("trials", "w").close()
        time.sleep(1)
    red = images[:, :8, :8, 0].mean(axis=(1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)
"""


@defect("j")
def test_a_kill_in_the_middle_of_trials_costs_ten_seconds_of_answers(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    pixels = photo()
    pixels[:8, :8] = 255, 0, 0
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    process = subprocess.Popen(
        [*MCRISE, "explain", "photo.png", "--model", "slow:model", "--n-masks", "512",
         "--mask-prob", "0.3", "--grid", "4x4", "--batch-size", "1", "--quiet"],
        cwd=tmp_path,
    )  # fmt: skip
    limit = time.monotonic() + 120
    while not (tmp_path / "trials").exists():
        assert time.monotonic() < limit
        time.sleep(0.1)
    time.sleep(14)
    assert process.poll() is None  # in the middle of them
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert mcrise.load(tmp_path / "photo.png.mcrise").answers
