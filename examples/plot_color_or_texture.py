"""
Color or texture?
=================

The model knows this priority road sign by the color of its center. Filled with its average color,
the center loses all of its texture and the score stays; most other colors destroy it.
"""

from dataclasses import replace

import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.output.figure import plot_explanation

model = mcrise.load_model("demo")
explanation = mcrise.explain(SIGNS["priority-road"](), model)
print(explanation.findings[0].sentence)

# %%
# The first finding, its maps and its tests. The same figure with all findings is
# ``explanation.plot()``.

findings = explanation.findings
figure = plot_explanation(explanation, replace(findings, findings=findings[:1]))
