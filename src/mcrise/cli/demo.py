"""`mcrise demo`: the embedded model on signs that the project draws itself."""

from pathlib import Path

import click
import numpy as np

from ..demo.signs import SIGNS
from ..images import png
from ..loop import last, steps
from ..progress import with_progress
from ..runtimes import load_model
from .characters import say

N_MASKS = 1024


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default="mcrise-demo", show_default=True)
def demo(out: Path) -> None:
    """Explain drawn traffic signs with the embedded model; writes pictures and a report."""
    from ..folder import RISE, RunFolder
    from ..plots import plot_rise
    from ..report import Chapter, render

    model, chapters = load_model("demo"), []
    for name, draw_sign in SIGNS.items():
        picture = draw_sign()
        # The washed-out sign is hardly recognised as it is: paint less of it at a time.
        washed_out = name.startswith("washed-out")
        run = steps(picture, model, n_masks=N_MASKS, mask_prob=0.15 if washed_out else "auto")
        record = last(with_progress(run, f"{name:<26}"))
        targets = [record.resolve(None)]
        if washed_out:  # the error analysis of the paper: two classes compared
            targets.append(record.resolve("priority road"))
        folder = RunFolder(out / name)
        record.save(folder.run)
        RunFolder(out).write(f"{name}.png", png(np.asarray(picture)))
        folder.draw(record, list(dict.fromkeys(targets)), model=model)  # tries the findings too
        folder.save(plot_rise(*(record.maps(None, one) for one in ("rise", "debiased"))), RISE)
        chapters.append(Chapter(name, record, targets, folder=name))
        say(f"{name}: {record.label(targets[0])} {record.untouched[targets[0]]:.2f}")
    report = RunFolder(out).write("report.html", render(chapters).encode())
    say(f"Pictures: {out}/*/maps.png   records: {out}/*/run.npz   report: {report}")
