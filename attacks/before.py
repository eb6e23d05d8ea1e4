"""Which of the defects that are tested for does an earlier version have?

    python attacks/before.py [COMMIT]

Runs the tests that are marked as of a defect on the source of a commit, and on the present one: of
`tests/test_defects.py` if it is the commit that those were found on, else of
`tests/test_attacks.py`. They use the command, its server and what `import mcrise` gives, which both
have. A test that fails there because a name or an option is missing says so: of these, a defect
should have others.
"""

import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from attacking import serving

ROOT = Path(__file__).resolve().parents[1]
COMMIT = "4d2d6a6"
TESTS = {COMMIT: "tests/test_attacks.py", "773b96f": "tests/test_defects.py"}
MISSING = ("unexpected keyword", "No such option", "ImportError", "has no attribute", "No module")


class Outcomes:
    """What became of each test that is marked."""

    def __init__(self):
        self.found = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        marker = item.get_closest_marker("defect")
        if marker and (report.when == "call" or report.failed):
            said = "" if report.passed else reason(report)
            self.found.append((marker.args[0], item.name, report.outcome, said))
        return report


def reason(report):
    """Why a test failed in a line: what differs, the last error told of, or how it begins."""
    lines = [line[1:].strip() for line in report.longreprtext.splitlines() if line[:1] == "E"]
    differ = [line for line in lines if re.match(r"\{['\d]", line)]
    errors = [line for line in lines if re.match(r"(?!Assertion)[\w.]+(Error|Expired)\b", line)]
    said = " / ".join(differ or errors[-1:] or lines[:1] or ["?"])
    return re.sub(r"['\"]?/[^\s'\"]*/", "", said)  # without the folders of this machine


def run_here(out, tests):
    outcomes = Outcomes()
    # Warnings are no failures here: what would follow them is what is looked for.
    options = ["-m", "defect", "-p", "no:cacheprovider", "-vv", "-o", "filterwarnings="]
    pytest.main([*options, tests], [outcomes])
    Path(out).write_text(json.dumps(outcomes.found))


MODEL = """
import numpy as np
def model(images):
    red = images[:, :8, :8, 0].mean((1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)
"""


def time_here(out):
    """Seconds that a list of 5,000 jobs takes, and others wait while a long record is read."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "planted.py").write_text(MODEL)
        data, options = Path(place) / "data", ("--model", "planted:model")
        with serving(data, *options, path=place) as server:
            buffer = io.BytesIO()
            Image.new("RGB", (16, 16)).save(buffer, "PNG")
            job = server.submit("n_masks=100000&mask_prob=0.5&colors=red", buffer.getvalue())
            server.wait(job, seconds=600)
        with closing(sqlite3.connect(data / "jobs.sqlite")) as database, database:
            database.execute(
                "WITH RECURSIVE n(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM n WHERE x < 5000) "
                "INSERT INTO jobs SELECT x, printf('%016x', x), asked, created, state, n_masks, "
                "goal, note FROM n, jobs WHERE number = 1"
            )
        with serving(data, *options, path=place) as server:
            server.ask("api/jobs")
            listing = min(timed(server, "api/jobs") for _ in range(3))
            routes = server.ask("openapi.json")[1]["paths"]
            route = "run" if "/api/jobs/{id}/run" in routes else "record"
            reader = threading.Thread(target=server.ask, args=(f"api/jobs/{job}/{route}",))
            reader.start()
            waits = [0.0]
            while reader.is_alive():
                waits.append(timed(server, f"api/jobs/{job}"))
            reader.join()
    Path(out).write_text(json.dumps([listing, max(waits)]))


def timed(server, path):
    started = time.perf_counter()
    assert server.ask(path)[0] == 200
    return time.perf_counter() - started


def run(source, folder, what, *more):
    """What a part of this file finds, on the package in some folder."""
    out = Path(folder) / "outcomes.json"
    env = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, __file__, what, out, *more], cwd=ROOT, env=env, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    return json.loads(out.read_text())


def outcomes(source, folder, tests):
    found = run(source, folder, "--tests", tests)
    return {(number, name): (outcome, said) for number, name, outcome, said in found}


def cell(outcome, said):
    if outcome == "passed":
        return "passes"
    short = said[:140].replace("|", "/").replace("`", "'")
    return f"{'MISSING ' * any(word in said for word in MISSING)}`{short}`"


def main():
    commit = sys.argv[1] if sys.argv[1:] else COMMIT
    tests = TESTS.get(commit, TESTS[COMMIT])
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", commit, "src", "pyproject.toml"], cwd=ROOT,
                                capture_output=True, check=True).stdout  # fmt: skip
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        sources = (Path(folder) / "src", ROOT / "src")
        before, now = (outcomes(source, folder, tests) for source in sources)
        times = [run(source, folder, "--times") for source in sources] if commit == COMMIT else []
    print(f"| defect | test | {commit} | now |\n|---|---|---|---|")
    for (number, name), outcome in sorted(before.items()):
        here = cell(*now[number, name])
        print(f"| {number} | {name.removeprefix('test_')} | {cell(*outcome)} | {here} |")
    rows = ("listing 5,000 jobs", "others wait, while 100,000 masks are read")
    for what, then, here in zip(rows, *times, strict=True) if times else ():
        print(f"| 13 | {what} | {then:.2f} s | {here:.2f} s |")
    shown = {number for (number, _), (outcome, said) in before.items()
             if outcome != "passed" and not any(word in said for word in MISSING)}  # fmt: skip
    unshown = {number for number, _ in before} - shown
    failed = [name for (_, name), (outcome, _) in now.items() if outcome != "passed"]
    print(f"\nNot shown on {commit}: {sorted(unshown) or 'none'}; failing now: {failed or 'none'}")
    sys.exit(1 if unshown or failed else 0)


if __name__ == "__main__":
    parts = {"--tests": run_here, "--times": time_here}
    if sys.argv[1:2] and sys.argv[1] in parts:
        parts[sys.argv[1]](*sys.argv[2:])
    else:
        main()
