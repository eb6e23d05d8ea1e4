"""Made-up input, by Hypothesis: what `records.py`, `pictures.py` and `words.py` damage, made anew.

    python attacks/strategies.py [EXAMPLES]

Those change what is right in places; here values of all types meet all names, so that also what is
far from right is tried. What fails is made as small as it can be before it is shown.
"""

import json
import struct
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pictures
import records
import words
from mcrise.errors import McriseError

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-2, 300)
    | st.floats()
    | st.text()
    | st.sampled_from(["any", "auto", "stop", "red", "rim", "NCHW", "blur:3", "nan", "a.png"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def tables(*names):
    """Some of these names, and perhaps others, with any values."""
    return st.dictionaries(st.sampled_from(names) | st.text(max_size=8), VALUES, max_size=6)


def toml(value):
    """A value as TOML has it, more or less."""
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return "'''nothing'''" if value is None else json.dumps(value).replace("Infinity", "inf")


def lines(head, table):
    return "\n".join([head, *(f"{json.dumps(k)} = {toml(v)}" for k, v in table.items()), ""])


def as_bytes(texts):
    return texts.map(lambda text: text.encode(errors="replace")) | st.binary()


SETTINGS = as_bytes(
    st.builds(
        lambda one, other: lines("[input]", one) + lines("[output]", other),
        tables("size", "short_side", "filter", "scale", "mean", "std", "layout", "channels"),
        tables("name", "scores", "softmax", "sigmoid", "labels"),
    )
)
LABELS = as_bytes(st.text())
CELLS = st.text(max_size=6) | st.sampled_from(["a.png", "b.png", "stop", "1", "-1", "nan", "1e9"])


def csv_of(mark, first, others):
    """A table that may have its first column, others and any cells; often the files are there."""
    names = st.sampled_from(["a.png", "b.png"])
    rows = st.lists(st.builds(lambda name, rest: [name, *rest], names | CELLS,
                              st.lists(CELLS, max_size=8)), max_size=3)  # fmt: skip
    heads = st.lists(st.sampled_from(others) | CELLS, max_size=8)
    return as_bytes(
        st.builds(
            lambda head, rows: "\n".join(mark.join(row) for row in [[first, *head], *rows]),
            heads, rows,
        )
    )  # fmt: skip


TABLES = csv_of(",", "path", ["label", "group", "mask", "x1", "y1", "x2", "y2"])
GTSRB = csv_of(";", "Filename;ClassId", ["Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2"])


RULES = as_bytes(
    st.lists(
        st.builds(
            lambda right, other: {**right, **other},
            st.sampled_from(
                [
                    {},
                    {"measure": "accuracy_gray", "at_least": 0.5},
                    {"measure": "zone_effect", "zone": "rim", "fill": "red", "at_most": 0.1},
                ]
            ),
            st.just({})
            | tables("name", "class", "measure", "zone", "fill", "at_most", "at_least", "change"),
        ),
        max_size=3,
    ).map(lambda rules: "".join(lines("[[rule]]", rule) for rule in rules))
)
KINDS = [b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"eXIf", b"iCCP", b"zTXt", b"acTL",
         b"fdAT"]  # fmt: skip
HEADS_OF_PNG = st.builds(
    lambda *given: struct.pack(">IIBBBBB", *given, 0, 0, 0),
    *[st.integers(0, 60) | st.integers(0, 2**31 - 1)] * 2,
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([0, 2, 3, 4, 6]),
)  # fmt: skip


def png_of(head, parts):
    """Parts of a PNG, each with its right length and check sum."""
    found = [(b"IHDR", head), *parts, (b"IDAT", zlib.compress(bytes(4000))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in found
    )  # fmt: skip


PICTURES = (
    st.binary()
    | st.builds(png_of, HEADS_OF_PNG, st.lists(st.tuples(st.sampled_from(KINDS), st.binary())))
    | st.builds(
        lambda seed, at, more: pictures.seeds()[seed % len(pictures.seeds())][:at] + more,
        st.integers(0, 10**6),
        st.integers(2, 400),
        st.binary(),
    )
)
ARRAYS = hnp.arrays(
    hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
)


def record_of(number, array_names, arrays, meta_names, values):
    """A record with some arrays and some entries of what it says of itself replaced."""
    _, known = records.seeds()[number]
    out = dict(known)
    for n, array in zip(array_names, arrays, strict=False):
        out[list(known)[n % len(known)]] = array
    if out["meta"] is not known["meta"]:
        return records.packed(out)
    meta = json.loads(known["meta"].tobytes())
    spots = list(records.places(meta))
    for n, value in zip(meta_names, values, strict=False):
        place, key = spots[n % len(spots)]
        place[key] = value
    text = json.dumps(meta).encode()
    return records.packed({**out, "meta": np.frombuffer(text, np.uint8)})


NUMBERS = st.lists(st.integers(0, 10**6), max_size=2)
RECORDS = st.builds(
    record_of, st.integers(0, 1), NUMBERS, st.lists(ARRAYS, max_size=2), NUMBERS,
    st.lists(VALUES, max_size=2),
)  # fmt: skip


def in_folder(use):
    def used(content):
        with tempfile.TemporaryDirectory(dir=words.MEMORY) as folder:
            use(content, Path(folder))

    return used


ATTACKS = {
    "records": (RECORDS, records.use),
    "settings": (SETTINGS, in_folder(words.settings)),
    "labels": (LABELS, in_folder(words.labels)),
    "tables": (TABLES, in_folder(words.table)),
    "GTSRB tables": (GTSRB, in_folder(words.gtsrb)),
    "rules": (RULES, in_folder(words.rules)),
    "pictures": (PICTURES, pictures.use),
}


def attack(name, n_examples, derandomize=False):
    """Try so many; raises the first exception that is not ours, on the smallest input that has it.

    Returns how many were refused and accepted.
    """
    strategy, use = ATTACKS[name]
    counts = {"refused": 0, "accepted": 0}

    @settings(max_examples=n_examples, deadline=None, database=None, derandomize=derandomize,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(strategy)
    def try_one(content):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                use(content)
                counts["accepted"] += 1
            except McriseError:
                counts["refused"] += 1

    try_one()
    return counts


def main():
    n_examples = int(sys.argv[1]) if sys.argv[1:] else 1000
    for name in ATTACKS:
        print(f"{name}: {attack(name, n_examples)}, nothing else", flush=True)


if __name__ == "__main__":
    main()
