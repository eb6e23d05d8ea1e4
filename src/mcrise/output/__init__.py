"""Everything that a person sees or keeps: figures, pages, folders, progress, the terminal.

The rest of the program computes and yields; only this package scales a map into colors, and where
it does, it shows the scale. One rule decides what is drawn pale everywhere: what chance alone
could show (`estimators.significance`).

- `plots`: figures of maps and curves, by matplotlib.
- `figure`: the figure of an explanation, which shows findings with their tests; `figure_layout`
  places its parts, `figure_tests` draws the repainted pictures.
- `html`: the report of runs and what a notebook shows, from `templates/` (jinja2, always escaped).
- `web_maps`: maps as the small binary format that the browser reads.
- `run_folder`: the files of one run: run.npz, pictures, summary.json; resuming and checkpoints.
- `terminal`: findings with color swatches; progress as a bar, or as lines in a log.

matplotlib, jinja2 and rich are imported by the one file that needs each.
"""
