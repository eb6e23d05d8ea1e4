"""Killed in the middle of a write, of every output there is: what lies there afterwards is whole.

    python attacks/torn.py [COMMAND...]

A command is run in a copy of a folder, and the kernel kills it (SIGXFSZ, by the limit of a file's
size) a few bytes into the n-th file that it writes; for every n, but of many files of one kind only
the first and the last. Then every file there must be readable, be it the one of before or the new
one, and the same command, run again, must end well.
"""

import io
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from contextlib import closing
from pathlib import Path

os.environ.update(OPENBLAS_NUM_THREADS="1", MPLBACKEND="Agg")
import numpy as np
from PIL import Image

import mcrise
from mcrise.cli import main as run_command
from mcrise.output.plots import figure_png  # noqa: F401  matplotlib, once for all

FEW = 10  # bytes: shorter than any file that is written
QUICK = "--n-masks 64 --mask-prob 0.5 --seed 1"
COMMANDS = {  # by what is written
    "explain": f"explain stop.png --model demo {QUICK} --overwrite",
    "show": "show old.mcrise --target 3",
    "report": "report old.mcrise -o report.html",
    "measure": "measure old.mcrise --step 0.25",
    "whatif": "whatif old.mcrise",
    "compare": "compare old.mcrise --target 3 --target 1",
    "match": "match stop.png images --model planted:embed --n-masks 64 --overwrite",
    "demo": "demo --out demo",
    "study": "study images --methods rise,random --n-masks 64 --step 0.25 --workers 1 --out study",
    "audit": "audit images --model planted:model --n-masks 64 --mask-prob 0.5 --workers 1 "
    "--keep-runs --out audit",
    "diff": "diff old.audit new.audit --out diff",
    "check": "check old.audit --rules rules.toml --format junit --out verdicts.xml",
}
PLANTED = """
import numpy as np
def model(images):
    red = images[:, :8, :8, 0].mean((1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)
def embed(images):
    return images.mean((1, 2)) / 255 + 0.01
"""
RULES = '[[rule]]\nmeasure = "color_share"\nat_most = 1\n'


def prepare(folder, wanted):
    """What these commands need, and what they write over."""
    pixels = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), np.uint8)
    (folder / "images").mkdir()
    for n, one in enumerate(pixels[1:]):
        Image.fromarray(one).save(folder / "images" / f"{n}.png")
    Image.fromarray(pixels[0]).save(folder / "stop.png")
    (folder / "planted.py").write_text(PLANTED)
    (folder / "rules.toml").write_text(RULES)
    audit = COMMANDS["audit"].removesuffix("--out audit")
    first = {
        "old.mcrise": f"explain stop.png --model demo {QUICK} --out old.mcrise",
        "stop.png --model": f"explain stop.png --model demo {QUICK} --seed 2",
        "old.audit": f"{audit} --out old.audit",
        "new.audit": f"{audit} --out new.audit",
    }
    for needed, words in first.items():
        if any(needed in COMMANDS.get(name, "") for name in wanted):
            assert done(words, folder) == 0, words


def done(words, folder, at=0, listing=None):
    """Run a command in a fork of this process; its exit code, negative if it was killed.

    `at` says in which of its writes; the names of all are listed in a file.
    """
    child = os.fork()
    if child == 0:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        os.chdir(folder)
        sys.argv = ["mcrise", *words.split()]
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python would rather raise
        watch_writes(Path(folder).resolve(), at, listing)
        code = 1
        try:
            run_command()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        finally:
            sys.stdout.flush()
            os._exit(code or 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def watch_writes(folder, at, listing):
    """Let the kernel kill this process in the write after so many files were opened for one."""
    names = []

    def look(event, given):
        if event != "open" or not isinstance(given[0], str | bytes):
            return
        writes = (given[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        path = Path(os.fsdecode(given[0])).absolute()
        if not writes or not path.is_relative_to(folder) or path.suffix in (".pyc", ".lock"):
            return
        names.append(str(path.relative_to(folder)))
        if len(names) == at:
            resource.setrlimit(resource.RLIMIT_FSIZE, (FEW, FEW))
        if listing is not None:
            os.write(listing, f"{names[-1]}\n".encode())

    sys.addaudithook(look)


def read_whole(path):
    """Read a file as whoever uses it would; raises what is wrong with it."""
    content = path.read_bytes()
    match path.suffix:
        case ".npz" if "pieces" in path.parts:
            with np.load(path) as arrays:
                assert [arrays[name] for name in arrays]
        case ".npz":
            mcrise.load(path)
        case ".png":
            with Image.open(io.BytesIO(content)) as picture:
                picture.load()
        case ".json":
            json.loads(content)
        case ".xml":
            ElementTree.fromstring(content)
        case ".html":
            assert content.rstrip().endswith(b"</html>"), "cut off"
        case ".parquet":
            from pyarrow.parquet import read_table

            read_table(io.BytesIO(content))
        case ".csv" | ".md" | ".txt":
            assert content.endswith(b"\n"), "cut off"
        case ".toml" | ".py" | ".lock" | ".pyc" | ".nbi" | ".nbc":
            pass
        case _:
            raise AssertionError("a kind of file that nobody has told how to read")


def chosen(names):
    """The first and the last file of each kind, by their places in the order of writing."""
    kinds = {}
    for n, name in enumerate(names, start=1):
        kind = re.sub(r"\d+", "0", re.sub(r"\.[0-9a-f]{8}$", "", name))
        kinds.setdefault(kind, []).append(n)
    return sorted({n for places in kinds.values() for n in (places[0], places[-1])})


def attack(name, source, scratch):
    """Kill a command in each of its writes; returns in how many, and what was wrong."""
    words = COMMANDS[name]

    def fresh():
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(source, scratch)
        return scratch

    reading, listing = os.pipe()
    expected = done(words, fresh(), listing=listing)
    os.close(listing)
    with open(reading) as file:
        names = file.read().split("\n")[:-1]
    wrong = [] if names else [f"{name}: writes nothing, and ends with {expected}"]
    places = chosen(names)
    for at in places:
        ended = done(words, fresh(), at)
        if ended != -signal.SIGXFSZ:
            wrong.append(f"{name}: not killed in {names[at - 1]}, but ended with {ended}")
        for path in sorted(scratch.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                try:
                    read_whole(path)
                except Exception as error:
                    wrong.append(f"{name}, killed in {names[at - 1]}: {path.name}: {error}")
        again = done(words, scratch)
        if again != expected:
            wrong.append(f"{name}, killed in {names[at - 1]}: the next time it ends with {again}")
    return len(places), names, wrong


def attack_jobs(folder):
    """Kill a server's list of jobs in the middle of writing a row; the earlier rows are there."""
    from mcrise.models.model import Model
    from mcrise.server.job_queue import JobQueue
    from mcrise.server.schemas import JobRequest

    buffer = io.BytesIO()
    Image.new("RGB", (32, 32)).save(buffer, "PNG")

    def model(images):
        return np.ones((len(images), 1), np.float32)

    folder.mkdir()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        jobs = JobQueue(folder, {"planted": Model(model)})
        for _ in range(3):
            jobs.stop(jobs.submit(JobRequest("planted"), buffer.getvalue()).id)
        size = (folder / "jobs.sqlite-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, size + 100))
        jobs.submit(JobRequest("planted"), buffer.getvalue())
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    wrong = [] if ended == -signal.SIGXFSZ else [f"jobs: not killed, but ended with {ended}"]
    with closing(sqlite3.connect(folder / "jobs.sqlite")) as database:
        (whole,) = database.execute("PRAGMA integrity_check").fetchone()
    with closing(JobQueue(folder, {"planted": Model(model)})) as jobs:
        states = [job.state for job in jobs.all()]
    if whole != "ok" or states != ["stopped"] * 3:
        wrong.append(f"jobs: {whole}, {states}")
    return wrong


def main():
    wanted = sys.argv[1:] or [*COMMANDS, "jobs"]
    wrong, total = [], 0
    with tempfile.TemporaryDirectory() as place:
        source, scratch = Path(place) / "source", Path(place) / "scratch"
        source.mkdir()
        prepare(source, wanted)
        print("| command | writes | killed in | wrong |\n|---|---|---|---|")
        for name in wanted:
            if name == "jobs":
                n, names, found = 1, ["jobs.sqlite"], attack_jobs(Path(place) / "jobs")
            else:
                n, names, found = attack(name, source, scratch)
            total += n
            wrong += found
            print(f"| {name} | {len(names)} | {n} | {len(found)} |", flush=True)
    print(f"\n{total} kills", *wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
