"""`mcrise demo`: the embedded model on signs that the project draws itself."""

from pathlib import Path

import click
import numpy as np

from ..demo import MODEL
from ..demo.signs import SIGNS
from ..explanation import TRIALS, Explanation
from ..images import png
from ..models import load_model
from ..output.terminal import with_progress
from ..sampling import iter_explain, last, with_trials
from .options import Command, option
from .output import echo

N_MASKS = 512
TRUTH = {"washed-out-priority-road": "priority road"}  # where the model is wrong


@click.command(cls=Command)
@option("--out", type=click.Path(path_type=Path), default="mcrise-demo", show_default=True,
        help="Folder of the results.")  # fmt: skip
def demo(out: Path) -> None:
    """Explain drawn traffic signs with the embedded model; write pictures and a report.

    The signs and the model are written too (signs/, model.onnx, labels.txt): the commands of the
    README run on them.
    """
    from ..output.html import Chapter, render
    from ..output.run_folder import RunFolder

    model, chapters, cures = load_model("demo"), [], []
    for name, draw_sign in SIGNS.items():
        picture, truth = draw_sign(), TRUTH.get(name)
        # A sign that is hardly recognised as it is: less of it is painted at a time.
        run = iter_explain(picture, model, n_masks=N_MASKS, mask_prob=0.15 if truth else "auto")
        # The error analysis of the paper: two classes compared.
        wanted = [None, truth] if truth else [None]
        explanation = last(with_trials(with_progress(run, f"{name:<26}"), model, wanted, TRIALS))
        targets = [explanation.resolve(target) for target in wanted]
        folder = RunFolder(out / name)
        explanation.save(folder.run)
        RunFolder(out / "signs").write(f"{name}.png", png(np.asarray(picture)))
        folder.draw(explanation, list(dict.fromkeys(targets)))
        chapters.append(Chapter(name, explanation, targets, folder=name))
        first = next((one.sentence for one in explanation.findings), "No finding.")
        echo(f"{name}.png. {explanation.prediction}.")
        echo(f"  {first}")
        if truth:
            cures.append(cure(name, explanation, truth))
    RunFolder(out).write("model.onnx", MODEL.read_bytes())
    RunFolder(out).write("labels.txt", MODEL.with_suffix(".txt").read_bytes())
    report = RunFolder(out).write("report.html", render(chapters).encode())
    echo(f"Found: what each of {len(SIGNS)} signs is recognized by (above). {' '.join(cures)}")
    echo(f"Report: {report}")
    echo("Next: mcrise explain YOUR_IMAGE.png --model YOUR_MODEL.onnx")


def cure(name: str, explanation: Explanation, truth: str) -> str:
    """What would make the model right."""
    says = f"The {name.replace('-', ' ')} sign is taken for {explanation.prediction.label!r}"
    trial = explanation.findings_of(truth).counterfactual
    if trial is None:
        return f"{says}; no repaint that was tried makes it {truth!r}."
    paint = " and ".join(f"{one.fill.name} on {one.place}" for one in trial.repaint.strokes)
    share = f"{100 * trial.repaint.share:.1f}% of the image"
    return f"{says}; {paint} ({share}) makes it {truth!r} ({trial.score:.2f})."
