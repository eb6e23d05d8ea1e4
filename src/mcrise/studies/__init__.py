"""How good explanations are, over many images: the paper's evaluation.

For each image a study makes an explanation by each method (MC-RISE, RISE, LIME, a random ranking),
measures deletion and insertion curves and their color-aware versions, and compares the methods on
the same images with bootstrap intervals.

- `config`: what a study asks, checked before the first call; its tasks, and their worker.
- `study`: which tasks are left, and which rows are done.
- `baselines`: LIME and the random ranking.
- `results`: tables, intervals, the summary and the example sheet.
- `api`: `run_study`, which is what the command and Python call.
"""
