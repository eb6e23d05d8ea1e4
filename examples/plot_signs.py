"""The pictures of the README: two drawn signs, explained by the embedded model.

python examples/plot_signs.py [FOLDER]
"""

import sys
from pathlib import Path

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.output.plots import plot_maps, plot_rise, save

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images")
n_masks = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
model = mcrise.load_model("demo")

# A stop sign: green or blue on its red face lowers the score, red does not.
explanation = mcrise.explain(SIGNS["stop"](), model, n_masks=n_masks)
save(explanation.maps("stop").plot(), folder / "stop.png")
save(
    plot_rise(explanation.maps(estimator="rise"), explanation.maps(estimator="debiased")),
    folder / "rise.png",
)

# A priority road sign whose center is washed out by glare: the model says "no vehicles". What
# would have made it a priority road? Red or yellow at the center, says the upper row.
explanation = mcrise.explain(
    SIGNS["washed-out-priority-road"](),
    model,
    fills="rgbwk,yellow",
    n_masks=n_masks,
    mask_prob=0.15,
)
maps = [explanation.maps("priority road"), explanation.maps(explanation.resolve(None))]
save(plot_maps(maps), folder / "washed-out.png")
