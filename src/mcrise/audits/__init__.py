"""What a model depends on, over many images: figures and findings per class.

The flow, and the order in which to read:

1. `config`, `zones`: what is asked, and which places have names.
2. `measure`: everything measured of one image, by a worker.
3. `audit`, `tables`: which images are left, and what is kept of each.
4. `class_data`: the arrays of one class, read back; its mean maps. `stats`: with intervals, and
   `paired_stats`: before and after in the same images.
5. `class_findings`: where a class depends on a color more than chance allows.
6. `confirmation`: the same, painted in images that were not used to find it; `control_places`:
   where else the patch would fit.
7. `background`, `outliers`: painting all that lies outside; images unlike their class.
8. `transplants`, `suspects`: what one class's images have, given to images of other classes, and
   which classes the model tells by it; `appearance`: how these look, in words.
9. `class_stats`: all of these for each class, `figures_json`: as JSON; `headlines`: what stands
   out in one class; `summary`, `audit_page`: in words, as a page.
10. `rules`, `rule_check`, `rule_formats`: release checks; `diff`, `run_diff`, `diff_page`: what
    changed from one audit or run to another.
11. `api`: `audit`, which is what the command and Python call.

Halves of the images are kept apart by a hash: what one half proposes, the other confirms.
"""
