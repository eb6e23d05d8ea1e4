"""
More than colors
================

What is painted is up to you: eight colors, a blur, gray, a turned hue, noise. Gray and blur take
color or sharpness away and leave the rest.
"""

import mcrise
from mcrise.demo.signs import SIGNS

model = mcrise.load_model("demo")
explanation = mcrise.explain(
    SIGNS["stop"](),
    model,
    fills=["gray", "hue:180", "blur:8", "yellow"],
    n_masks=1024,
    trials=False,
)
figure = explanation.maps().plot()
