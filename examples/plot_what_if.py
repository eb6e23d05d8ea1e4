"""
What if this part were red?
===========================

Any region can be painted and the model asked again. With ``control``, the same patch is painted in
other places too.
"""

import numpy as np

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.output.plots import plot_trials

model = mcrise.load_model("demo")
explanation = mcrise.explain(SIGNS["priority-road"](), model, n_masks=256, trials=False)
region = np.zeros((96, 96), bool)
region[36:60, 36:60] = True

trials = [
    mcrise.intervene(explanation, model, region, fill, place="the center", control=True)
    for fill in mcrise.parse_fills("red,yellow,blue,gray")
]
for trial in trials:
    print(trial.line(explanation))
figure = plot_trials(explanation, trials)
