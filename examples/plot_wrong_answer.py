"""
A wrong answer and its cure
===========================

Glare has washed out the center of a priority road sign, and the model says something else.
``compare`` puts the right class beside the predicted one, and searches for repaints that make the
model right.
"""

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.output.plots import plot_comparison

model = mcrise.load_model("demo")
sign = SIGNS["washed-out-priority-road"]()
explanation = mcrise.explain(sign, model, n_masks=512, mask_prob=0.15, trials=False)
print(explanation.prediction)

comparison = mcrise.compare(explanation, "priority road", model=model)
print("\n".join(comparison.lines(explanation)))

# %%
# Orange raises the score: red at the center would raise *priority road*.

figure = plot_comparison(comparison)
