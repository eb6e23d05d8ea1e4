"""
From RISE to MC-RISE
====================

The first figure of the paper. RISE paints in one color and says where. Its map is large everywhere,
since it is an average of scores. Debiased RISE is zero where the model does not look. MC-RISE has a
map for each color.
"""

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.output.plots import plot_rise

model = mcrise.load_model("demo")
explanation = mcrise.explain(SIGNS["stop"](), model, n_masks=2048, trials=False)
figure = plot_rise(explanation.maps(estimator="rise"), explanation.maps(estimator="debiased"))

# %%
# One run has the maps of all estimators.

maps_figure = explanation.maps(estimator="paper").plot()
