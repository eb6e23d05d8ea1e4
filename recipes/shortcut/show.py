"""Show that an audit finds each planted shortcut, and nothing there in the twin.

    python recipes/shortcut/show.py --out build/shortcut

Makes the images, audits the network with the shortcut and its twin on them, holds both against
rules.toml and compares them. Fails if anything is not as it was planted. Stopped at any moment, the
same command goes on. `--images 16 --n-masks 128` is a third of the work.

The background is looked for on scenes that have it, where all of it tells the same and no part
matters while the rest stays, and (`missing-background`) on scenes that may have any.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import mcrise
from make_images import make_images
from mcrise.audits.class_data import RASTER
from mcrise.audits.class_findings import ClassFinding
from mcrise.audits.class_stats import read_stats
from mcrise.audits.diff import NAMES, compare_audits
from mcrise.audits.rule_check import check_rules, overall_state
from mcrise.audits.rules import read_rules
from mcrise.audits.tables import read_asked
from mcrise.batch.storage import Storage
from scenes import CLASSES, SHORTCUTS, STICKER

HERE = Path(__file__).parent
CASES: dict[str, tuple[str, str | None]] = {  # which shortcut, and on scenes with which
    "sticker": ("sticker", "sticker"),
    "background": ("background", "background"),
    "missing-background": ("background", None),
}
ZONES = "thirds,rim,sticker=0.69:0.69:0.95:0.95"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/shortcut"))
    parser.add_argument("--images", type=int, default=24, help="of each class  [default: 24]")
    parser.add_argument("--n-masks", type=int, default=256, help="of each image  [default: 256]")
    parser.add_argument("--workers", type=int, help="processes  [default: one per core]")
    parser.add_argument("--classes", nargs="+", default=CLASSES, help="[default: all]")
    parser.add_argument("cases", nargs="*", default=list(CASES), help="which  [default: all]")
    args = parser.parse_args()
    for case in args.cases:
        shortcut, planted = CASES[case]
        images = make_images(args.out / "images", planted, args.images, args.classes)
        audits = {
            name: audit(images, name, args.out / f"{case}-{name}", args.n_masks, args.workers)
            for name in (shortcut, "clean")
        }
        print(f"\n== {case}")
        show_findings(case, audits)
        show_verdicts(shortcut, audits)
        show_difference(shortcut, audits)


def audit(
    images: Path, name: str, out: Path, n_masks: int = 256, workers: int | None = None
) -> Storage:
    mcrise.audit(
        images, HERE / f"{name}.onnx", out=out, fills="rgbwk,yellow", zones=ZONES,
        n_masks=n_masks, mask_prob=0.15, workers=workers, progress=True,
    )  # fmt: skip
    return Storage(out)


Audits = Mapping[str, Storage]  # of the network with the shortcut, and of its twin


def show_findings(case: str, audits: Audits) -> None:
    """The first is the shortcut by place and color, confirmed; the twin has none there."""
    shortcut, planted = CASES[case]
    target = CLASSES.index(SHORTCUTS[shortcut])
    found, twin = (findings(one, target) for one in audits.values())
    print("\n".join(f"{n}. {one.sentence}" for n, one in enumerate(found, start=1)))
    first = found[0]
    assert first.verdict == "confirmed", first.verdict
    assert is_there(first, shortcut), first.place
    if planted:  # it is yellow or green, and whatever is not lowers the score
        own = {"sticker": "yellow", "background": "green"}[shortcut]
        assert (first.own, first.sign) == (own, -1)
    else:  # it is not green, and that would raise it
        fills = read_asked(audits[shortcut]).fills
        assert (fills[first.fill], first.sign) == ("green", 1)
    assert not any(is_there(one, shortcut) for one in twin), [one.sentence for one in twin]
    n_findings = f"{len(twin)} finding{'' if len(twin) == 1 else 's'}"
    print(f"The twin has {n_findings} of that class, none of them there.")


def show_verdicts(shortcut: str, audits: Audits) -> None:
    """The one fails, the twin passes."""
    rules, _ = read_rules(HERE / "rules.toml")
    states = {}
    for name, one in audits.items():
        judged = check_rules(one, rules)
        states[name] = overall_state(judged)
        for rule in judged:
            print(f"{name}.onnx: {rule.rule.title}: {rule.state}. {rule.sentence}")
    assert states == {shortcut: "violated", "clean": "holds"}, states


def show_difference(shortcut: str, audits: Audits) -> None:
    """The class is named with the place, or with what painting all of the background changes."""
    difference = compare_audits(audits["clean"], audits[shortcut])
    lines = difference.lines(read_asked(audits[shortcut]))
    print("\n".join(lines))
    label = SHORTCUTS[shortcut]
    changed = {one.label: one.findings for one in difference.changed()}
    there = any(is_there(one, shortcut) for one in changed.get(label, ()))
    assert there or any(
        repr(label) in line and NAMES["background_flip_rate"] in line for line in lines
    ), lines


def findings(audit: Storage, target: int) -> tuple[ClassFinding, ...]:
    """Of a class, the most important first."""
    return next(one for one in read_stats(audit).classes if one.target == target).findings


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
