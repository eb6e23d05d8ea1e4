"""What is written and printed, as lines of keys and types: JSON of all commands, HTTP, Parquet.

Small real runs are made in a folder, once for all: drawn signs by the embedded model, and images of
24 x 24 pixels by models with planted answers. A key that is there in one of several runs counts.
"""

import dataclasses
import json
import re
import shutil
import time

import numpy as np
from click.testing import CliRunner
from internals import SIGNS, JobQueue, Storage, cli, create_app
from PIL import Image
from pyarrow.parquet import ParquetFile
from starlette.testclient import TestClient
from surfaces import routes

import mcrise
import planted_signs

RULES = """
[[rule]]
name = "the rim is ignored"
measure = "zone_share"
zone = "rim"
at_most = 0.2

[[rule]]
measure = "zone_effect"
zone = "lower right"
at_most = 0.3
at_least = -0.3

[[rule]]
class = "red"
measure = "color_share"
at_most = 0.9
change = true
"""
PLAIN = {"red", "green", "blue", "white", "black"}
WORDS = {
    *PLAIN, "gray", "yellow", "orange", "brown", "purple", "pink", "cyan", "magenta", "rim",
    "its own mean color", "center", "sticker", "plain",
    *(f"{one} {other}" for one in ("upper", "lower") for other in ("left", "right")),
    *("left", "right", "top", "bottom"),
}  # fmt: skip
ESTIMATE = {"value": float, "low": float, "high": float, "n": int, "n_groups": int}
SETTLED = ("done", "failed", "stopped")  # states of a job
PASSING = ("position", "masks_per_second", "seconds_left")  # null sooner or later


# ---- shapes


def shape(*values):
    """Lines `key[].key: type`, of all values together; keys that are data are written as *."""
    found = {}
    for value in values:
        collect(value, "", found)
    lines = [f"{path or '(whole)'}: {' | '.join(sorted(kinds))}" for path, kinds in found.items()]
    return "\n".join(sorted(lines)) + "\n"


def collect(value, path, found):
    if isinstance(value, dict) and {key: type(one) for key, one in value.items()} == ESTIMATE:
        found.setdefault(path, set()).add(f"estimate({', '.join(ESTIMATE)})")
    elif isinstance(value, dict) and value:
        whole = all(map(is_data, value))
        for key, content in value.items():
            name = "*" if whole or key in PLAIN else key
            collect(content, f"{path}.{name}" if path else name, found)
    elif isinstance(value, list) and value:
        for content in value:
            collect(content, f"{path}[]", found)
    else:
        kind = type(value).__name__.replace("NoneType", "null")
        kind = {"dict": "{}", "list": "[]"}.get(kind, kind)  # empty ones
        found.setdefault(path, set()).add(kind)


def is_data(key):
    """Names of colors, zones and classes, numbers and identifiers are data, and no keys."""
    return key in WORDS or key.isdecimal() or bool(re.fullmatch("[0-9a-f]{16}", key))


def schema(path):
    """The columns of a Parquet file."""
    columns = ParquetFile(path).schema_arrow
    return "".join(f"{column.name}: {column.type}\n" for column in columns)


# ---- runs


def all_outputs(folder):
    """Every snapshot of this kind: the name of its file, and its text."""
    return {
        **command_outputs(folder),
        **study_outputs(folder),
        **audit_outputs(folder),
        **http_outputs(folder),
    }


def invoke(*arguments, codes=(0,)):
    done = CliRunner().invoke(cli, list(map(str, arguments)))
    assert done.exit_code in codes, (arguments, done.output, done.exception)
    return done.stdout


def printed(*arguments, codes=(0,)):
    return json.loads(invoke(*arguments, codes=codes))


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def embed(images):
    """Three numbers of an image, for matching."""
    return images.mean(axis=(1, 2)) / 255


def both_corners(images):
    """Only painting two corners together moves it: a pair of findings."""
    corners = [images[:, :8, :8], images[:, 16:, 16:]]
    dark = [1 - one[..., 0].mean(axis=(1, 2)) / 255 for one in corners]
    score = 0.9 - 0.8 * np.minimum(*dark)
    return np.stack([score, 1 - score], axis=1)


def constant(images):
    return np.tile([0.7, 0.3], (len(images), 1))


def command_outputs(folder):
    """JSON of what commands print and write about one image."""
    runs = folder / "runs"
    runs.mkdir()
    for name in ("stop", "washed-out-priority-road"):
        SIGNS[name]().save(runs / f"{name}.png")
    Image.new("RGB", (24, 24), (200, 120, 60)).save(runs / "flat.png")
    summaries = []
    for image, model in (
        ("stop", "demo"),
        ("washed-out-priority-road", "demo"),
        ("flat", "outputs:both_corners"),
        ("flat", "outputs:constant"),
    ):
        out = runs / f"{image}-{model.rpartition(':')[2]}"
        options = ("--mask-prob", 0.3, "--n-masks", 256, "--out", out, "--json")
        told = printed("explain", runs / f"{image}.png", "--model", model, *options)
        assert told == read(out / "summary.json")
        summaries.append(told)
    washed, stop = runs / "washed-out-priority-road-demo", runs / "stop-demo"
    whatif = printed("whatif", washed, "--json"), printed("whatif", stop, "--json")
    one = printed("whatif", stop, "--region", "A", "--paint", "green", "--json")
    classes = ("--target", "priority road", "--target", "no vehicles")
    compared = printed("compare", washed, *classes, "--json")
    measured = printed("measure", stop, "--step", 0.25, "--json")
    assert measured == read(stop / "metrics.json")
    shown = printed("show", stop, "--estimator", "rise", "--json")
    matched = printed(
        "match", runs / "stop.png", runs, "--model", "outputs:embed", "--n-masks", 128, "--json",
        "--size", "24x24", "--out", folder / "match",
    )  # fmt: skip
    other = folder / "other"
    like = ("--same-masks-as", stop, "--trials", "none", "--out", other, "--quiet")
    invoke("explain", runs / "stop.png", "--model", "demo", *like)
    differing = printed("diff", stop, other, "--out", folder / "diff-runs", "--json")
    return {
        "json/summary.txt": shape(*summaries),
        "json/show.txt": shape(shown),
        "json/whatif.txt": shape(*whatif),
        "json/whatif-region.txt": shape(one),
        "json/compare.txt": shape(compared),
        "json/measure.txt": shape(measured),
        "json/match.txt": shape(matched),
        "json/diff-runs.txt": shape(differing),
    }


def study_outputs(folder):
    out = folder / "study"
    data = planted_signs.make_collection(folder / "few")
    mcrise.run_study(
        data, planted_signs.model, out=out, methods=("rise", "mcrise"), n_masks=128, step=0.25,
        estimators=("centered", "smooth"),
    )  # fmt: skip
    written = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    return {
        "files/study.txt": files(written),
        "json/study.txt": shape(read(out / "study.json")),
        "json/study-image.txt": shape(*map(read, sorted(out.glob("images/*.json")))),
        "json/status.txt": shape(printed("status", out, "--json")),
        "parquet/study-results.txt": schema(out / "results.parquet"),
        "csv/study-summary.txt": header(out / "summary.csv"),
        "csv/study-timing.txt": header(out / "timing.csv"),
    }


def files(names):
    """Names of files, with numbers and classes as *."""
    return "\n".join(sorted({re.sub(r"\d{2,}|(?<==)-?\d+", "*", name) for name in names})) + "\n"


def header(path):
    return path.read_text(encoding="utf-8").partition("\n")[0].replace(",", "\n") + "\n"


def audit_outputs(folder):
    data = planted_signs.make_collection(folder / "collection", 12)
    (data / "red" / "broken.png").write_bytes(b"no image")
    shutil.copy(data / "sticker" / "000.png", data / "red" / "unlike.png")
    duller = dataclasses.replace(
        planted_signs.model, predict=lambda images: planted_signs.signs(images // 2 + 60)
    )
    before, after = folder / "audit", folder / "audit-after"
    for out, model in ((before, planted_signs.model), (after, duller)):
        mcrise.audit(
            data, model, out=out, n_masks=64, mask_prob=0.3, keep_going=True, keep_runs=True
        )
    written = [path.relative_to(before).as_posix() for path in before.rglob("*") if path.is_file()]
    tables = {}
    for kind in ("images", "findings", "maps", "attempts"):
        tables[f"parquet/audit-{kind}.txt"] = schema(next((before / kind).rglob("*.parquet")))
    rules = folder / "rules.toml"
    rules.write_text(RULES)
    checked = printed(
        "check", after, "--rules", rules, "--against", before, "--format", "json", codes=(0, 3, 4)
    )
    return {
        **tables,
        "parquet/audit-failed.txt": schema(before / "failed.parquet"),
        "files/audit.txt": files(written),
        "json/audit.txt": shape(read(before / "audit.json"), read(after / "audit.json")),
        "json/audit-figures.txt": shape(
            read(before / "figures.json"), read(after / "figures.json")
        ),
        "json/audit-done.txt": shape(read(before / "done.json")),
        "json/diff-audits.txt": shape(
            printed("diff", before, after, "--out", folder / "diff", "--json")
        ),
        "json/check.txt": shape(checked),
    }


def http_outputs(folder):
    """Routes, and what those that answer JSON answer; needs the audit."""
    jobs = JobQueue(folder / "jobs", {"demo": mcrise.load_model("demo")})
    app = create_app(jobs, audit=Storage(folder / "audit"))
    try:
        with TestClient(app, base_url="http://127.0.0.1:8700") as client:
            return {
                "http/routes.txt": routes(client.get("/openapi.json").json()),
                **answers(client),
            }
    finally:
        jobs.close()


def answers(client):
    asked = "sign=stop&n_masks=256&mask_prob=0.3"
    submitted = answer(client.post(f"/api/jobs?{asked}"))
    job = f"/api/jobs/{submitted['id']}"
    limit = time.monotonic() + 120
    while (now := answer(client.get(job)))["state"] not in SETTLED:
        assert time.monotonic() < limit, now
        time.sleep(0.05)
    about = answer(client.get(f"{job}/run"))
    mask = np.zeros(about["size"], np.uint8)
    mask[:10, :10] = 1
    untested = answer(client.get(f"{job}/findings"))
    tried = answer(client.post(f"{job}/trials"))
    repainted = answer(client.post(f"{job}/whatif", content=mask.tobytes()))
    listed = answer(client.get("/api/jobs"))
    found = {
        "info": [answer(client.get("/api/info"))],
        "health": [answer(client.get("/api/health"))],
        "job": [{**one, **dict.fromkeys(PASSING)} for one in (submitted, now, *listed)],
        "summaries": [answer(client.get(f"/api/summaries?ids={submitted['id']}"))],
        "overview": [answer(client.get("/api/overview"))],
        "run": [about],
        "findings": [untested, answer(client.get(f"{job}/findings"))],
        "trials": [tried],
        "whatif": [repainted],
        "audit": [answer(client.get("/api/audit"))],
        "refusal": [client.get("/api/jobs/0123456789abcdef").json()],
    }
    return {f"http/{name}.txt": shape(*values) for name, values in found.items()}


def answer(response):
    assert response.is_success, response.text
    return response.json()
