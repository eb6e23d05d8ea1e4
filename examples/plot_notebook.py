"""
In a notebook
=============

An explanation shows itself: the figure and the sentences, as below. ``examples/first_map.ipynb`` is
a notebook to start from.
"""

import mcrise
from mcrise.demo.signs import SIGNS

explanation = mcrise.explain(SIGNS["no-entry"](), "demo", n_masks=256, trials=24)

# %%
# The last line of a cell is shown.

# sphinx_gallery_thumbnail_path = "images/first.png"
explanation
