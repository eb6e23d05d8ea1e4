"""How the records in data/records were made, with the source of an earlier commit:

    git archive COMMIT src | tar -x -C FOLDER
    PYTHONPATH=FOLDER/src python tests/contract/make_record.py COMMIT

It calls what `mcrise` had at each of these commits, so it runs there and not with the present code.
"""

import sys
from pathlib import Path

from planted_patches import GREEN, IDENTITY, LABELS, REGION, image, two_patches

import mcrise

DATA = Path(__file__).parent / "data" / "records"
# Chances at which cells are painted, fills and seeds differ, so that all entries of a file occur.
OPTIONS = {
    "6929595": {"n_masks": 256, "mask_prob": 0.5, "seed": 5},  # the first that wrote records
    "d74790c": {"n_masks": 256, "mask_prob": 0.3, "seed": 5},  # the first that kept answers
    "bcc8276": {"n_masks": 256, "mask_prob": "auto", "seed": 2**64 - 1},
    "773b96f": {"n_masks": 512, "mask_prob": 0.1, "seed": 1},
}


def main():
    commit = sys.argv[1]
    model = mcrise.Model(two_patches, labels=LABELS, identity=IDENTITY)
    options = dict(OPTIONS[commit])
    if commit == "773b96f":
        turned = mcrise.Picture(image()[::-1, ::-1].copy(), "turned")
        options["fills"] = (*mcrise.parse_fills("red,green,black,blur:4"), turned)
    explanation = mcrise.explain(image(), model, **options)
    if commit != "6929595":
        tried = mcrise.try_findings(explanation, mcrise.interpret(explanation), model)
        print("\n".join(tried.lines()))
        mcrise.intervene(explanation, model, REGION, mcrise.Solid(GREEN), control=True)
    if commit == "773b96f":  # entries that only some runs have
        explanation.pilot = {0.2: explanation.scores[0], 0.05: explanation.scores[1]}
        explanation.choice, explanation.verdict = "mask_prob 0.1 of three", "stopped at 512 masks"
    explanation.save(DATA / f"{commit}.npz")


if __name__ == "__main__":
    main()
