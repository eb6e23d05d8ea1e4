"""`mcrise demo`: the embedded model on signs that the project draws itself."""

from pathlib import Path

import click
import numpy as np

from ..demo.signs import SIGNS
from ..explanation import TRIALS
from ..images import png
from ..models import load_model
from ..output.progress import with_progress
from ..sampling import iter_explain, last, with_trials
from .options import Command, option
from .output import echo

N_MASKS = 1024


@click.command(cls=Command)
@option("--out", type=click.Path(path_type=Path), default="mcrise-demo", show_default=True,
        help="Folder of the results.")  # fmt: skip
def demo(out: Path) -> None:
    """Explain drawn traffic signs with the embedded model; write pictures and a report."""
    from ..output.html import Chapter, render
    from ..output.plots import plot_rise
    from ..output.run_folder import RISE, RunFolder

    model, chapters = load_model("demo"), []
    for name, draw_sign in SIGNS.items():
        picture = draw_sign()
        # The washed-out sign is hardly recognised as it is: paint less of it at a time.
        washed_out = name.startswith("washed-out")
        run = iter_explain(
            picture, model, n_masks=N_MASKS, mask_prob=0.15 if washed_out else "auto"
        )
        # The error analysis of the paper: two classes compared.
        wanted = [None, "priority road"] if washed_out else [None]
        grown = with_progress(run, f"{name:<26}")
        explanation = last(with_trials(grown, model, wanted, TRIALS))
        targets = [explanation.resolve(target) for target in wanted]
        folder = RunFolder(out / name)
        explanation.save(folder.run)
        RunFolder(out).write(f"{name}.png", png(np.asarray(picture)))
        folder.draw(explanation, list(dict.fromkeys(targets)))
        folder.save(plot_rise(*(explanation.maps(None, one) for one in ("rise", "debiased"))), RISE)
        chapters.append(Chapter(name, explanation, targets, folder=name))
        echo(f"{name}: {explanation.label(targets[0])} {explanation.untouched[targets[0]]:.2f}")
    report = RunFolder(out).write("report.html", render(chapters).encode())
    echo(f"Pictures: {out}/*/maps.png   records: {out}/*/run.npz   report: {report}")
