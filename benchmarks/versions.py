"""Does it run with every Python and NumPy it says it does?

For each Python that is on this machine and each NumPy, a fresh virtual environment gets the package
as users do, explains an image, draws the maps of all estimators, saves, loads, and runs the tests
of masks, estimates and run files. Checksums of scores and maps should be the same in all rows.

The first row is of the oldest version of everything that pyproject.toml allows, the page and
studies included; `--oldest` makes that row alone.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from table import report

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NUMPYS = ("1.26", "2")
TESTS = ("test_masks", "estimators/test_averages", "test_explanation_file")
SMOKE = """
import hashlib, json, sys
from importlib.metadata import version
import numpy as np
import mcrise

def red(images):
    share = images[:, 4:12, 4:12, 0].mean(axis=(1, 2), dtype=np.float64) / 255
    return np.stack([share, 1 - share], axis=1)

image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
record = mcrise.explain(image, red, n_masks=256)
for estimator in ("rise", "debiased", "paper", "centered", "smooth"):
    assert np.isfinite(record.maps(0, estimator).values).all()
record.save("run.npz")
again = mcrise.load("run.npz")
assert all(np.array_equal(again.scores[n], record.scores[n]) for n in record.scores)
scores = b"".join(record.scores[n].tobytes() for n in sorted(record.scores))
print(json.dumps({
    **{name: version(name) for name in ("numpy", "numba", "scipy", "onnxruntime")},
    "scores": hashlib.sha256(scores).hexdigest()[:8],
    "maps": hashlib.sha256(record.maps(0, "paper").values.tobytes()).hexdigest()[:8],
}))
"""


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        sets = [(PYTHONS[0], "the oldest of all", oldest())]
        if "--oldest" not in sys.argv:
            sets += [(p, f"NumPy {n}", [f"numpy=={n}.*"]) for p in PYTHONS for n in NUMPYS]
        for number, (python, asked, pins) in enumerate(sets):
            rows.append(try_versions(python, asked, pins, wheel, Path(folder, str(number))))
            print(rows[-1], file=sys.stderr, flush=True)
    report("versions", rows)


def oldest() -> list[str]:
    """What is needed, of the page and of studies too, each in the oldest version allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    more = project["optional-dependencies"]
    needed = [*project["dependencies"], *more["web"], *more["study"]]
    return [f"{name}=={low}.*" for name, low in (one.split(">=") for one in needed)]


def build(folder: Path, *options: str) -> Path:
    """The package as a wheel, made from a copy so that nothing is left among the sources."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *options]
    subprocess.run([*pip, "--wheel-dir", folder, folder], check=True)
    return next(folder.glob("mcrise-*.whl"))


def try_versions(
    python: str, asked: str, pins: list[str], wheel: Path, folder: Path
) -> dict[str, Any]:
    row: dict[str, Any] = {"asked": f"Python {python}, {asked}", "outcome": ""}
    interpreter = find(python)
    if interpreter is None:
        return row | {"outcome": "this Python is not on this machine"}
    started = time.monotonic()
    subprocess.run([interpreter, "-m", "venv", folder], check=True)
    own = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    # Wheels only: what would have to be compiled first is not what users get.
    pip = [own, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--no-binary", "lime"]
    done = run([*pip, wheel, "pytest", *pins], folder)
    if done.returncode:
        missing = re.search(r"No matching distribution found for (\S+)", done.stderr)
        reason = f"there is no wheel of {missing[1]}" if missing else "pip finds no set of versions"
        return row | {"outcome": reason}
    more = "import mcrise.server.app, pyarrow, lime" if len(pins) > 1 else ""
    smoke = run([own, "-c", SMOKE + more], folder)
    if smoke.returncode:
        return row | {"outcome": f"fails: {smoke.stderr.strip().splitlines()[-1]}"}
    files = [f"tests/{name}.py" for name in TESTS]
    tests = run([own, "-m", "pytest", "-p", "no:cacheprovider", *files], ROOT)
    ending = tests.stdout.strip().splitlines()[-1] if tests.stdout.strip() else tests.stderr
    row |= {"outcome": "runs" if tests.returncode == 0 else "its tests fail"}
    row |= {"python": version_of(own), **json.loads(smoke.stdout)}
    return row | {"tests": ending.strip("= "), "minutes": (time.monotonic() - started) / 60}


def find(python: str) -> str | None:
    """An interpreter of this minor version: of the path, or one that pyenv has built."""
    built = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    places = [shutil.which(f"python{python}"), *sorted(built.glob(f"{python}.*/bin/python"))]
    for place in filter(None, places):  # pyenv's shim may lead nowhere
        if (version_of(place) or "").startswith(f"{python}."):
            return str(place)
    return None


def version_of(interpreter: Path | str) -> str | None:
    code = "import platform; print(platform.python_version())"
    return run([interpreter, "-c", code], ROOT).stdout.strip() or None


def run(command: list[Any], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


if __name__ == "__main__":
    main()
