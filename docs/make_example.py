"""Make what first visitors see: the figure of the README, and the example of the browser page.

    python docs/make_example.py

The figure is that of a script of the gallery. The example is a stop sign, its maps and a finding.
Run it when the embedded model, the wire format, or the figure or the words of findings change.
"""

import io
import json
import runpy
from pathlib import Path

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.output.web_maps import findings_json, pack, swatch

ROOT = Path(__file__).parents[1]
WEB = Path(mcrise.__file__).parent / "server" / "web"
MOST_BYTES = 40_000  # a first visit should not wait for it
SHOWN = ("letter", "sentence", "lines", "runs", "fill", "place")  # of the finding


def main() -> None:
    shown = runpy.run_path(str(ROOT / "examples" / "plot_color_or_texture.py"))
    shown["figure"].savefig(ROOT / "docs" / "images" / "first.png", dpi=100)
    picture = io.BytesIO()
    SIGNS["stop"]().save(picture, "PNG")
    model = mcrise.load_model("demo")
    explanation = mcrise.explain(picture.getvalue(), model, n_masks=4096, mask_prob=0.35)
    maps = explanation.maps()
    packed = pack(maps, explanation.plan.grid, explanation.chance(maps), MOST_BYTES)
    (WEB / "example.bin").write_bytes(packed)
    finding = findings_json(explanation.findings)["findings"][0]
    example = {
        "swatches": {
            fill.name: swatch(fill, explanation.view.pixels) for fill in explanation.plan.fills
        },
        "findings": [{name: finding[name] for name in SHOWN}],
        "score": float(explanation.untouched.max()),
    }
    (WEB / "example.json").write_text(json.dumps(example) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
