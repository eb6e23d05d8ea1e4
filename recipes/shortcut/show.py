"""Show that an audit finds each planted shortcut, and nothing there in the twin.

    python recipes/shortcut/show.py --out build/shortcut

Makes the images, audits the network with the shortcut and its twin on them, holds both against
rules.toml and compares them. Fails if anything is not as it was planted. Stopped at any moment, the
same command goes on. `--images 16 --n-masks 128` is half of the work.

A background that is green altogether is asked less: every part of it tells as much as any other, so
no place is the finding, and painting one of them in a whole image changes little. What shows it are
the share of the effect in the rim, and with that the rules and the difference.
"""

import argparse
from pathlib import Path

import numpy as np

import mcrise
from make_images import make_images
from mcrise.auditing.difference import compare_audits
from mcrise.auditing.figures import read_figures
from mcrise.auditing.findings import ClassFinding
from mcrise.auditing.looks import RASTER
from mcrise.auditing.rules import check_rules, overall_state, read_rules
from mcrise.auditing.tables import read_asked
from mcrise.study.storage import Storage
from scenes import SHORTCUTS, STICKER

HERE = Path(__file__).parent
COLORS = {"sticker": "yellow", "background": "green"}
ZONES = "thirds,rim,sticker=0.69:0.69:0.95:0.95"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/shortcut"))
    parser.add_argument("--images", type=int, default=24, help="of each class  [default: 24]")
    parser.add_argument("--n-masks", type=int, default=256, help="of each image  [default: 256]")
    parser.add_argument("--workers", type=int, help="processes  [default: one per core]")
    parser.add_argument("names", nargs="*", default=list(SHORTCUTS), help="which  [default: all]")
    args = parser.parse_args()
    for shortcut in args.names:
        show(shortcut, args.out, args.images, args.n_masks, args.workers)


def show(shortcut: str, out: Path, n_images: int, n_masks: int, workers: int | None) -> None:
    label, color = SHORTCUTS[shortcut], COLORS[shortcut]
    images = make_images(out / "images", shortcut, n_images)
    audits = {}
    for name in (shortcut, "clean"):
        folder = out / f"{shortcut}-{name}"
        mcrise.audit(
            images, HERE / f"{name}.onnx", out=folder, fills="rgbwk,yellow", zones=ZONES,
            n_masks=n_masks, mask_prob=0.15, workers=workers, progress=True,
        )  # fmt: skip
        audits[name] = Storage(folder)
    asked = read_asked(audits[shortcut])
    print(f"\n== {shortcut}: {label!r} is the one with {color}")

    target = asked.labels.index(label)
    found, twin = (findings(audits[name], target) for name in (shortcut, "clean"))
    print("\n".join(f"{n}. {one.sentence}" for n, one in enumerate(found, start=1)))
    if shortcut != "background":
        assert found[0].verdict == "confirmed", found[0].verdict
        assert found[0].own == color, found[0].own
        assert is_there(found[0], shortcut), found[0].place
    assert any(is_there(one, shortcut) for one in found), [one.place for one in found]
    there = [one.sentence for one in twin if is_there(one, shortcut)]
    assert not there, there
    print(f"The twin has {len(twin)} findings of {label!r}, none of them there.")

    rules, _ = read_rules(HERE / "rules.toml")
    states = {}
    for name, audit in audits.items():
        judged = check_rules(audit, rules)
        states[name] = overall_state(judged)
        for one in judged:
            print(f"{name}.onnx: {one.rule.title}: {one.state}. {one.sentence}")
    assert states == {shortcut: "violated", "clean": "holds"}, states

    difference = compare_audits(audits["clean"], audits[shortcut])
    print("\n".join(difference.lines(asked)))
    changed = {one.label: one.findings for one in difference.changed()}
    assert any(is_there(one, shortcut) for one in changed[label]), changed


def findings(audit: Storage, target: int) -> tuple[ClassFinding, ...]:
    """Of a class, the most important first."""
    return next(one for one in read_figures(audit).classes if one.target == target).findings


def is_there(finding: ClassFinding, shortcut: str) -> bool:
    """Whether a finding lies for the most part where the shortcut was planted."""
    rows, cols = np.mgrid[:RASTER, :RASTER] / RASTER
    if shortcut == "sticker":  # or within a cell of it
        top, left, bottom, right = np.add(STICKER, (-1 / 8, -1 / 8, 1 / 8, 1 / 8))
        place = (rows >= top) & (rows < bottom) & (cols >= left) & (cols < right)
    else:  # outside of the sign
        place = np.hypot(rows - 0.5, cols - 0.5) > 0.36
    return bool((finding.region & place).sum() > 0.5 * finding.region.sum())


if __name__ == "__main__":
    main()
