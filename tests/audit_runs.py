"""Audits of planted models: what several tests run and read."""

import sys

GIVEN = {"n_masks": 128, "grid": 6, "mask_prob": 0.3}
FOLDERS = ("images", "findings", "maps", "attempts", "transplants")


def files(folder):
    """The tables of an audit, and their bytes."""
    found = [file for name in FOLDERS for file in sorted((folder / name).rglob("*.parquet"))]
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def command(data, out, *more, spec="planted_signs:model"):
    return [
        sys.executable, "-m", "mcrise", "audit", str(data), "--model", spec, "--n-masks", "128",
        "--grid", "6x6", "--mask-prob", "0.3", "--out", str(out), *more,
    ]  # fmt: skip
