"""Make the example that a first visitor of the page sees: a stop sign, its maps and a finding.

    python docs/make_example.py

Run it when the embedded model, the wire format or the words of findings change.
"""

import io
import json
from pathlib import Path

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.packing import pack, reading_json, swatch
from mcrise.reading import read_maps
from mcrise.trials import try_reading

WEB = Path(mcrise.__file__).parent / "page" / "web"
MOST_BYTES = 40_000  # a first visit should not wait for it


def main() -> None:
    picture = io.BytesIO()
    SIGNS["stop"]().save(picture, "PNG")
    model = mcrise.load_model("demo")
    record = mcrise.explain(picture.getvalue(), model, n_masks=4096, mask_prob=0.35)
    tried = try_reading(record, read_maps(record), model)
    maps = tried.reading.maps
    packed = pack(maps, record.plan.grid, record.chance(maps), MOST_BYTES)
    (WEB / "example.bin").write_bytes(packed)
    told = {
        "swatches": {fill.name: swatch(fill, record.view.pixels) for fill in record.plan.fills},
        "findings": reading_json(tried)["findings"],
        "score": float(record.untouched.max()),
    }
    (WEB / "example.json").write_text(json.dumps(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
