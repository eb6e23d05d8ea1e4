"""The figure of an explanation: the conclusion, where colors matter, and the tests that show it.

Each test is shown as the picture that the model was asked about, with the score and the answer
below it. All is placed in pixels of a page 1400 wide, so that nothing overlaps: texts are measured
and wrapped or cut before the figure is made.
"""

import numpy as np
from matplotlib.figure import Figure

from .._util.text import one_line
from ..explanation import Explanation
from ..interpretation.findings import Finding, Findings
from ..maps import Maps
from .page import MANY, MARGIN, SOFT, Layout, MapsRow, Page, Row, ShotsRow, Words, legend
from .plots import (
    MOST_SIDE,
)
from .shots import Shots, box_words, number


def plot_explanation(explanation: Explanation, findings: Findings) -> Figure:
    """What the model says, where colors change that, and the pictures that were tested."""
    maps = explanation.maps(findings.target).tested().thinned(MOST_SIDE)
    layout = Layout.of(maps)
    said = conclusion(findings)
    rows: list[Row] = [
        Words(title(explanation, findings), 16, bold=True, most_lines=2),
        *(Words(line, 11.5, most_lines=4) for line in said),
        MapsRow(maps, findings),
    ]
    shots = Shots(explanation, findings, maps)
    for finding in findings.described:
        if finding.sentence and finding.sentence not in said:
            rows.append(Words(finding.sentence, 10.5, most_lines=3, above=8))
        rows.append(ShotsRow(caption_of(finding, shots), shots.tests(finding)))
    rows += [ShotsRow(words, some) for words, some in shots.others()]
    words = foot(explanation, findings, maps, len(findings) > MANY)
    rows += [Words(line, 9, SOFT, most_lines=3) for line in words]
    height = MARGIN + sum(row.height(layout) for row in rows) + MARGIN // 2
    page = Page(height)
    top: float = MARGIN
    for row in rows:
        row.draw(page, layout, top)
        top += row.height(layout)
    return page.figure


# ---- words


def title(explanation: Explanation, findings: Findings) -> str:
    """What the model says, with the runner-up."""
    first = explanation.prediction
    label, score = one_line(first.label), number(explanation, first.score)
    if first.runner_up is None:
        return f"{label}: {score}"
    next_score = number(explanation, first.runner_up.score)
    second = f"“{one_line(first.runner_up.label)}” {next_score}"
    says = f"The model says “{label}” ({score}; next: {second})"
    if first.is_undecided:
        says = f"The model is undecided: “{label}” {score}, next {second}"
    if findings.target == first.target:
        return says
    own = number(explanation, float(explanation.untouched[findings.target]))
    return f"“{one_line(findings.label)}” scores {own}. {says}"


def conclusion(findings: Findings) -> list[str]:
    """What is to be said first, and the first finding."""
    first = [one.sentence for one in findings.described[:1] if one.sentence]
    if said := [*findings.opening, *first]:
        return said
    if findings.remarks:
        return [*findings.remarks]
    if findings.trials:
        return [f"None of {len(findings.trials)} tests changed the score: no place was found."]
    return ["Not tested by repainting: the maps are averages over random paintings."]


def caption_of(finding: Finding, shots: "Shots") -> list[str]:
    lines = [
        f"{finding.letter}: {finding.place}",
        box_words(finding.region),
        "",
        "TEST: paint all of it and ask the model.",
        "",
        f"unpainted: {shots.number(finding.before)}",
    ]
    if finding.control:
        lines += ["", f"control: {finding.control.verdict}"]
    return lines


def foot(explanation: Explanation, findings: Findings, maps: Maps, enlarged: bool) -> list[str]:
    """Controls, how to read the maps, and what it cost."""
    lines = []
    for one in findings.described[:2]:
        if one.control and one.control.trials:
            scores = one.control.scores
            worst, word = (min(scores), "lowest") if one.direction < 0 else (max(scores), "highest")
            lines.append(
                f"Control for {one.letter}: the same {one_line(one.fill.name)} patch in "
                f"{len(scores)} other places leaves {number(explanation, float(np.median(scores)))}"
                f" (median; {word} {number(explanation, worst)}): {one.control.verdict}."
            )
    tests = "Tests: ▼ lowers, ▲ raises, = keeps the score; thick frame: the answer changes."
    lines += [] if enlarged else [legend(maps)]
    assumed = [f"Note: {note}." for note in explanation.assumed]
    return [*lines, f"{tests} Cost: {explanation.n_calls}.", *assumed]
