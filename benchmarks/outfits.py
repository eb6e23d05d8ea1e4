"""By which colors does a re-identification network tell people apart? An audit of matches.

    python benchmarks/outfits.py --data ../shared/data/reid [--n-masks 512] [--out build/outfits]

OSNet embeds a crop; its score for an outfit is the similarity exp(-d / d0) to the nearest crop of a
gallery with that outfit, d0 being the median distance between crops of the gallery. The gallery has
the first crop of each outfit, and the audit asks about all others. Prints what painting does where
people wear which color, and writes benchmarks/results/outfits.json.
"""

import argparse
import csv
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import mcrise
from mcrise.audits.class_stats import read_stats
from mcrise.batch.storage import Storage
from table import report

MASK_PROB = 0.1  # as the paper has it for matching: with more paint no person is left


def outfit_of(path: Path) -> str:
    """`purpleA_c1_002301.png` and `purpleB_...` wear the same."""
    return path.name.partition("_")[0].rstrip("AB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/reid"))
    parser.add_argument("--n-masks", type=int, default=512)
    parser.add_argument("--out", type=Path, default=Path("build/outfits"))
    given = parser.parse_args()
    crops = sorted((given.data / "people").glob("*.png"))
    outfits = sorted({outfit_of(crop) for crop in crops})
    gallery = [next(crop for crop in crops if outfit_of(crop) == name) for name in outfits]
    embed = mcrise.load_model(
        given.data / "osnet_x0_25_msmt17.onnx", score_kind="any",
        mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225),
    )  # fmt: skip
    known = embed(np.stack([embed.view(crop).pixels for crop in gallery]))  # (outfits, D)
    apart = np.linalg.norm(known[:, None] - known, axis=2)
    usual = float(np.median(apart[apart > 0]))

    def similarity(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        far = np.linalg.norm(embed(images)[:, None] - known, axis=2)
        return np.exp(-far / usual).astype(np.float32)

    asked = [crop for crop in crops if crop not in gallery]
    given.out.mkdir(parents=True, exist_ok=True)
    table = given.out / "crops.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "label"])
        rows.writerows((os.path.abspath(crop), outfit_of(crop)) for crop in asked)
    found = mcrise.audit(
        table, mcrise.load_model(similarity, labels=outfits, score_kind="independent", size=(256, 128)),
        out=given.out / "audit", n_masks=given.n_masks, mask_prob=MASK_PROB, progress=True,
        fills="rgbwk,purple", overwrite=True,
    )  # fmt: skip
    print("\n".join(found.summary))
    figures = read_stats(Storage(given.out / "audit"))
    cells = [
        {"outfit": one.label, "images": one.n, "where it is": own,
         **{fill: f"{f.value:+.3f} [{f.low:+.3f}, {f.high:+.3f}]" for fill, f in row.items()}}
        for one in (*figures.classes, figures.overall)
        for own, row in one.own.items()
    ]  # fmt: skip
    report("outfits", cells, masks=given.n_masks, gallery=[crop.name for crop in gallery])


if __name__ == "__main__":
    main()
