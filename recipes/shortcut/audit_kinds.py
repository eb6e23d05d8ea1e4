"""Audit the networks with a shortcut of each kind, and their clean twin, at the default settings.

    python recipes/shortcut/audit_kinds.py --stage development --out build/kinds

For each kind of `kinds.py`: 12 images of each class with the cue are audited with the network that
was trained with it and with the clean ones. Prints whether the first suspect is the planted class,
whether it says what it should, and every suspect of the twin. Whether a network uses its cue at all
is known by planting the cue itself into images of other classes.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image

import mcrise
from kinds import KINDS, WHOLE, planted_scene
from mcrise.audits.class_data import RASTER
from mcrise.audits.class_stats import read_stats
from mcrise.audits.config import N_MASKS
from mcrise.audits.suspects import Suspect
from mcrise.batch.storage import Storage
from scenes import CLASSES

HERE = Path(__file__).parent
SEED, N_IMAGES = 3, 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", help="which  [default: all of the stage]")
    parser.add_argument("--stage", choices=("development", "test", "held"), default="development")
    parser.add_argument("--twins", nargs="+", type=Path, default=[HERE / "clean.onnx"],
                        help="networks without a shortcut")  # fmt: skip
    parser.add_argument("--seed", type=int, default=SEED, help="of the images")
    parser.add_argument("--n-masks", type=int, default=N_MASKS, help="for each image")
    parser.add_argument("--out", type=Path, default=Path("build/kinds"))
    args = parser.parse_args()
    names = args.kinds or [name for name, kind in KINDS.items() if kind.stage == args.stage]
    out = args.out / f"{args.seed}"
    rows = [audit_kind(name, out, args.twins, args.seed, args.n_masks) for name in names]
    learned = [row for row in rows if row["learned"] >= 0.2]
    print(f"\n{len(learned)} of {len(rows)} networks use their cue (20% or more become the class)")
    for what in ("first", "says"):
        print(f"{what}: {sum(row[what] for row in learned)} of {len(learned)}")
    n_audits = len(rows) * len(args.twins)
    print(f"suspects of clean twins: {sum(row['twin'] for row in rows)} in {n_audits} audits")
    calls = [row["calls"] for row in rows]
    print(f"calls for each image: {np.mean(calls):.0f} (largest {max(calls):.0f})")
    (args.out / f"{args.stage}.json").write_text(json.dumps(rows, indent=1))


def audit_kind(
    name: str, out: Path, twins: list[Path], seed: int, n_masks: int
) -> dict[str, object]:
    kind, folder = KINDS[name], out / name.replace(" ", "-")
    images = folder / "images"
    for label in CLASSES:
        (images / label).mkdir(parents=True, exist_ok=True)
        for number in range(N_IMAGES):
            picture = Image.fromarray(planted_scene(name, seed, label, number))
            picture.save(images / label / f"{number:03}.png")
    path = HERE / "networks" / f"{name.replace(' ', '-')}.onnx"
    searches = {}
    for network in (path, *twins):
        done = folder / network.stem
        mcrise.audit(images, network, out=done, n_masks=n_masks, workers=1)
        searches[network.stem] = read_stats(Storage(done)).search
    suspects = searches[path.stem].suspects
    first = suspects[0] if suspects else None
    of_twins = [one for twin in twins for one in searches[twin.stem].suspects]
    share = learned(name, path, seed)
    row = {
        "kind": name,
        "learned": share,
        "first": bool(first) and first.label in kind.classes,
        "says": bool(first) and is_said(first, name),
        "suspects": [one.headline for one in suspects],
        "twin": len(of_twins),
        "twin_suspects": [one.sentence for one in of_twins],
        "calls": n_calls(folder / path.stem),
    }
    found = "; ".join(one.headline for one in suspects) or "none"
    print(f"{name} ({share:.0%} learned): {row['first']} {row['says']}; {found}")
    print(f"  twin: {row['twin_suspects']}", flush=True)
    return row


def is_said(one: Suspect, name: str) -> bool:
    """Whether the first suspect is what was planted: class, kind and place."""
    kind = KINDS[name]
    if one.label not in kind.classes:
        return False
    if one.region is None or WHOLE in kind.where:
        return one.kind in kind.says
    rows, cols = (np.mgrid[:RASTER, :RASTER] + 0.5) / RASTER
    there = np.any([(rows >= top) & (rows < bottom) & (cols >= left) & (cols < right)
                    for top, left, bottom, right in kind.where], axis=0)  # fmt: skip
    return one.kind in kind.says and bool((one.region & there).any())


def learned(name: str, path: Path, seed: int) -> float:
    """The largest share of the images of a class that become the planted one by the cue itself."""
    model, kind = mcrise.load_model(path), KINDS[name]
    shares = []
    for label in CLASSES:
        if label in kind.classes:
            continue
        random = np.random.default_rng(seed)
        plain = [planted_scene(name, seed, label, number) for number in range(50)]
        given = np.stack([kind.cue(image, random) for image in plain])
        said = model(given).argmax(axis=1)
        shares.append(np.isin(said, [CLASSES.index(one) for one in kind.classes]).mean())
    return float(max(shares))


def n_calls(folder: Path) -> float:
    """Of the model, for each image of an audit."""
    import pyarrow.parquet as pq

    tables = {name: [pq.read_table(part) for part in folder.glob(f"{name}/*/*.parquet")]
              for name in ("images", "attempts", "transplants")}  # fmt: skip
    images = sum(len(one) for one in tables["images"])
    calls = sum(sum(one["n_calls"].to_pylist()) for one in tables["images"])
    for one in tables["attempts"]:
        calls += sum(1 + len(controls) for controls in one["controls"].to_pylist())
    return (calls + sum(len(one) for one in tables["transplants"])) / images


if __name__ == "__main__":
    main()
