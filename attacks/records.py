"""Damaged records: bytes changed, cut and moved, and fields of other types, sizes and values."""

import copy
import functools
import io
import json
import random
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

import mcrise
from mcrise.estimators import ESTIMATORS
from mcrise.output.html import Chapter, render
from mcrise.output.run_folder import summarise
from mcrise.output.web_maps import pack

ODD = (
    None, True, 0, -1, 1, 2**31, 2**63, 2**64, 10**400, 0.5, -0.0, 1e300, float("nan"),
    float("inf"), "", "x", "x" * 20_000, "\ud800", "\x00", "$\\frac", "<b>", [], [1], [None],
    ["a", 1], {}, {"kind": "solid"}, [[[[]]]], "any", "similarity",
)  # fmt: skip
DTYPES = ("f8", "f2", ">f4", "i8", "u1", "?", "c8", "S3")
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where files cost least


@functools.cache
def seeds():
    """A few small records that are right, as the arrays of their files."""
    picture = mcrise.Picture(np.full((9, 9, 3), 7, np.uint8), "a picture")
    colors = [["red", "blue"], ["red", "blur:3", "gray", "hue:90", "noise:2", "mean", picture]]
    found = []
    for n, fills in enumerate(colors):
        image = np.random.default_rng(n).integers(0, 256, (16 + 4 * n, 20, 3), np.uint8)
        image = image if n == 0 else (image / 255).astype(np.float32)

        def model(images):
            red = images[:, :8, :8, 0].mean((1, 2)) / (255 if images.dtype == np.uint8 else 1)
            return np.stack([red, 1 - red], axis=1)

        options = {"labels": ["red", "not"]} if n == 0 else {"mask_prob": 0.3}
        explanation = mcrise.explain(image, model, n_masks=128, fills=fills, grid=4, **options)
        with tempfile.TemporaryDirectory() as folder:
            explanation.save(Path(folder) / "run.npz")
            content = (Path(folder) / "run.npz").read_bytes()
        with np.load(io.BytesIO(content)) as arrays:
            found.append((content, dict(arrays)))
    return found


def variant(number):
    """The bytes of a damaged record; the same for the same number."""
    chance = random.Random(number)
    content, arrays = chance.choice(seeds())
    if number < 0:
        return content
    damage = chance.choice([flip, flip, cut, splice, other_array, other_meta, other_meta])
    return damage(chance, content, arrays)


def flip(chance, content, arrays):
    out = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 8, 64])):
        out[chance.randrange(len(out))] = chance.randrange(256)
    return bytes(out)


def cut(chance, content, arrays):
    at = chance.randrange(len(content))
    return chance.choice([content[:at], content[at:], content[:at] + bytes(len(content) - at)])


def splice(chance, content, arrays):
    a, b = sorted(chance.randrange(len(content)) for _ in range(2))
    at = chance.randrange(len(content))
    return content[:at] + content[a:b] + content[at:]


def other_array(chance, content, arrays):
    """One array left out, or of another type, shape or range."""
    out = dict(arrays)
    name = chance.choice([name for name in out if name != "meta"])
    array = out[name]
    changes = {
        "gone": lambda: None,
        "dtype": lambda: array.astype(
            chance.choice(["f8", "f2", ">f4", "i8", "u1", "?", "c8", "S3"])
        ),
        "flat": lambda: array.ravel(),
        "empty": lambda: array[:0],
        "deep": lambda: array[None],
        "twice": lambda: np.concatenate([array, array]),
        "turned": lambda: array.T,
        "values": lambda: np.where(
            np.random.default_rng(chance.randrange(99)).random(array.shape) < 0.1,
            np.array(chance.choice([0, 1, -1, 2, 1e30, np.nan, np.inf, 255])),
            array,
        ).astype(array.dtype),
        "scalar": lambda: np.array(chance.choice([0, 1.5])),
        "object": lambda: np.array([{"a": 1}], object),
    }
    with np.errstate(all="ignore"):
        made = chance.choice(list(changes.values()))()
    out.pop(name) if made is None else out.update({name: made})
    return packed(out)


def other_meta(chance, content, arrays):
    """Fields of what the file says of itself with other values, added or left out."""
    meta = json.loads(arrays["meta"].tobytes())
    for _ in range(chance.choice([1, 1, 1, 2])):
        place, key = chance.choice(list(places(meta)))
        if chance.random() < 0.2:
            del place[key]
        else:
            place[key] = copy.deepcopy(chance.choice(ODD))
    text = json.dumps(meta)
    if chance.random() < 0.02:
        text = "[" * 100_000
    return packed({**arrays, "meta": np.frombuffer(text.encode(), np.uint8)})


def places(value):
    """All entries of a JSON value, at any depth, as containers and keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


def packed(arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
            archive.writestr(f"{name}.npy", file.getvalue())
    return out.getvalue()


def use(content):
    """Open a record and do with it what one does with records."""
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as place:
        path = Path(place) / "run.npz"
        path.write_bytes(content)
        explanation = mcrise.load(path)
        explanation.save(path)
        mcrise.load(path)
    chance = random.Random(len(content))
    target = chance.randrange(explanation.n_classes)
    maps = explanation.maps(target, chance.choice(list(ESTIMATORS)))
    found = explanation.findings_of(target)
    summary = summarise(explanation, [maps], {target: found})
    json.dumps(summary.to_json())
    "\n".join([*summary.lines(), *found.lines(), *explanation.notes, repr(explanation)]).encode()
    pack(maps, explanation.plan.grid)
    if chance.random() < 0.05:
        render([Chapter("a run", explanation, [target])], "smooth").encode()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from fuzzing import main

    main("records")
