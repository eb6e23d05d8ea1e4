"""How many class findings of an audit are confirmed, and how many of their control places would be.

    mcrise audit ../shared/data/gtsrb --per-class 20 --n-masks 256 --out audit/
    python benchmarks/audit_controls.py audit/

Each place where the same patch was painted as a control is judged by the rule for findings, against
the other control places; the finding itself is not among those, which is easier for the control.
"""

import sys
from collections import Counter

import numpy as np

from mcrise.auditing.figures import read_figures
from mcrise.auditing.findings import (
    Answer,
    Answers,
    Attempt,
    candidates,
    confirm,
    largest_by_chance,
    too_few,
    tries,
)
from mcrise.auditing.statistics import threshold
from mcrise.auditing.tables import read_answers, read_asked, read_classes
from mcrise.study.storage import Storage
from table import report


def main() -> None:
    folder = Storage(sys.argv[1])
    asked, answers, figures = read_asked(folder), read_answers(folder), read_figures(folder)
    verdicts = Counter(one.verdict for own in figures.classes for one in own.findings)
    controls: Counter[str] = Counter()
    for looks in read_classes(folder):
        if too_few(len(looks), len(np.unique(looks.group))):
            continue
        limit = threshold(largest_by_chance(looks, asked.seed))
        found = candidates(looks, limit, asked.cell)
        attempts: dict[int, list[Attempt]] = {}
        for number, some in tries(looks, asked, found, asked.seed):
            attempts.setdefault(number, []).extend(some)
        for number, some in attempts.items():
            if found[number].z <= figures.threshold:
                continue  # it is no finding of the whole audit
            for place in range(min(len(one.controls) for one in some)):
                instead = as_finding(some, answers, place)
                controls[confirm(looks, some, instead).verdict] += 1
    rows = [
        {"painted": what, "tried": sum(said.values()), "confirmed": said["confirmed"],
         "share": said["confirmed"] / max(sum(said.values()), 1), "others": told(said)}
        for what, said in (("findings", verdicts), ("control places", controls))
    ]  # fmt: skip
    report("audit_controls", rows, images=asked.n_images, masks=asked.n_masks)


def as_finding(attempts: list[Attempt], answers: Answers, place: int) -> Answers:
    """The answers as if one of the control places were the finding."""
    given = {(one.image, one.key): answers[one.image, one.key] for one in attempts}
    return {
        key: Answer(said.before, said.controls[place], said.predicted,
                    said.controls[:place] + said.controls[place + 1 :])
        for key, said in given.items()
    }  # fmt: skip


def told(verdicts: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in verdicts.most_common() if name != "confirmed")


if __name__ == "__main__":
    main()
