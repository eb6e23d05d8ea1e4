"""What a model depends on, over many images: figures and findings per class.

The flow, and the order in which to read:

1. `config`, `zones`: what is asked, and which places have names.
2. `measure`: everything measured of one image, by a worker.
3. `audit`, `tables`: which images are left, and what is kept of each.
4. `class_data`: the arrays of one class, read back; its mean maps. `stats`: with intervals.
5. `class_findings`: where a class depends on a color more than chance allows.
6. `confirmation`: the same, painted in images that were not used to find it.
7. `background`, `outliers`: painting all that lies outside; images unlike their class.
8. `class_stats`: all of these for each class; `text`, `html`: in words, as a page.
9. `rules`, `rule_check`, `rule_formats`: release checks; `diff`, `run_diff`: what changed.
10. `api`: `audit`, which is what the command and Python call.

Halves of the images are kept apart by a hash: what one half proposes, the other confirms.
"""
