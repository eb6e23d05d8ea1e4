"""
The same masks, two estimators
==============================

``paper`` is the formula of the paper. ``smooth``, the default, is a regression that shares what it
knows between neighboring cells and colors, so it needs far fewer masks for the same accuracy.
"""

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.output.plots import plot_maps

model = mcrise.load_model("demo")
explanation = mcrise.explain(SIGNS["no-entry"](), model, n_masks=512, trials=False)
names = ["paper", "centered", "smooth"]
figure = plot_maps([explanation.maps(estimator=name) for name in names], names)
