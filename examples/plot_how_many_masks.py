"""
Too few masks, and enough
=========================

With few masks most of a map could be chance: those areas are pale and striped. ``n_masks="auto"``
adds masks until the noise is small beside the signal.
"""

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.output.plots import plot_maps

model = mcrise.load_model("demo")
sign = SIGNS["stop"]()
runs = [mcrise.explain(sign, model, n_masks=n, trials=False) for n in (64, 256, 1024)]
for run in runs:
    print(f"{run.n_masks} masks: relative error {run.maps().relative_error:.2f}")
figure = plot_maps([run.maps() for run in runs], [f"{run.n_masks} masks" for run in runs])
