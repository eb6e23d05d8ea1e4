"""The figure of an explanation: the conclusion, where colors matter, and the tests that show it.

Each test is shown as the picture that the model was asked about, with the score and the answer
below it. All is placed in pixels of a page 1400 wide, so that nothing overlaps: texts are measured
and wrapped or cut before the figure is made.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from .._util.text import number, one_line
from ..explanation import Explanation
from ..interpretation.claims import join
from ..interpretation.findings import Finding, Findings
from ..interpretation.text import box_words
from .figure_layout import (
    LEAD,
    MARGIN,
    SENTENCE,
    SMALL,
    SOFT,
    TITLE,
    Layout,
    MapsRow,
    Page,
    Row,
    ShotsRow,
    Words,
    letters_title,
)
from .figure_tests import MOST_LISTED, Shots, patch_name, smallest_change
from .plots import MOST_SIDE

MOST_LINES = 3  # of pictures, of findings with all their tests; the rest have one picture each


def plot_explanation(explanation: Explanation, findings: Findings) -> Figure:
    """What the model says, where colors change that, and the pictures that were tested."""
    maps = explanation.maps(findings.target).tested().thinned(MOST_SIDE)
    layout, shots = Layout.of(maps), Shots(explanation, findings, maps)
    said = conclusion(findings)
    rows: list[Row] = [
        Words(title(explanation, findings), TITLE, bold=True, most_lines=2),
        *(Words(line, LEAD, most_lines=4) for line in said),
        MapsRow(maps, findings),
    ]
    tested: list[Finding] = []
    n_lines = 0
    for finding in findings.described:
        some = tests_of(finding, shots, finding.sentence in said)
        n_lines += len(some[-1].rows(layout))
        if tested and n_lines > MOST_LINES:
            break
        tested.append(finding)
        rows += some
    rows += other_tests(findings, [one for one in findings if one not in tested], shots)
    rows += [Words(line, SMALL, SOFT) for line in foot(explanation, findings)]
    height = MARGIN + sum(row.height(layout) for row in rows) + MARGIN // 2
    page = Page(height)
    top: float = MARGIN
    for row in rows:
        row.draw(page, layout, top)
        top += row.height(layout)
    return page.figure


def tests_of(finding: Finding, shots: Shots, said: bool) -> tuple[Words, Words, ShotsRow]:
    """A finding and its control in words, and its tests as pictures."""
    words = finding.sentence
    if said or not words:
        words = f"Test of {finding.letter}: all of it is painted, and the model is asked again."
    control = finding.lines[-1] if finding.control and finding.lines else ""
    before = shots.before_test(f"{finding.letter}, unpainted")
    return (
        Words(words, SENTENCE, above=8),
        Words(control, SMALL, SOFT),
        ShotsRow(before, [finding], shots.tests(finding)),
    )


def other_tests(findings: Findings, places: Sequence[Finding], shots: Shots) -> list[Row]:
    """Places with one picture each, and the smallest change; or what was tested in vain."""
    if shown := shots.others(places):
        words, explanation = [], shots.explanation
        if (smallest := smallest_change(findings)) is not None:
            boxes = [box_words(stroke.region) for stroke in smallest.repaint.strokes]
            says = one_line(explanation.label(smallest.says))
            words.append(f"Smallest change of the answer that was found: {join(boxes, 'and')} "
                         f"painted {patch_name(smallest)}; the model then says “{says}” "
                         f"({shots.number(float(smallest.scores[smallest.says]))})."
                         )  # fmt: skip
        if places:
            first = places[:MOST_LISTED]
            listed = "; ".join(f"{one.letter} ({box_words(one.region)}) {patch_name(one.trial)} "
                               f"{shots.number(one.after)}" for one in first)  # fmt: skip
            more = f"; and {len(places) - len(first)} more" if len(places) > len(first) else ""
            words.append(f"Other places that matter, each with one of its tests: {listed}{more}.")
        places = places[: len(shown)]
        before = shots.before_test(letters_title(places))
        return [
            *(Words(line, SMALL, most_lines=8, above=8) for line in words),
            ShotsRow(before, places, shown),
        ]
    if findings.findings or not (strongest := shots.strongest()):
        return []
    heading = f"The {len(strongest)} tests that changed the score most:"
    if not any(one.change for one in strongest):
        heading = f"{len(strongest)} of the tests; none changes the score:"
    before = shots.before_test("unpainted")
    return [Words(heading, SENTENCE, above=8), ShotsRow(before, (), strongest)]


# ---- words


def title(explanation: Explanation, findings: Findings) -> str:
    """What the model says, with the runner-up."""
    first = explanation.prediction
    label, score = one_line(first.label), number(first.score, explanation.kind)
    if first.runner_up is None:
        return f"{label}: {score}"
    next_score = number(first.runner_up.score, explanation.kind)
    second = f"“{one_line(first.runner_up.label)}” {next_score}"
    says = f"The model says “{label}” ({score}; next: {second})"
    if first.is_undecided:
        says = f"The model is undecided: “{label}” {score}, next {second}"
    if findings.target == first.target:
        return says
    own = number(float(explanation.untouched[findings.target]), explanation.kind)
    return f"“{one_line(findings.label)}” scores {own}. {says}"


def conclusion(findings: Findings) -> list[str]:
    """What is to be said first, and the first finding."""
    first = [one.sentence for one in findings.described[:1] if one.sentence]
    said = [*findings.opening, *(first or findings.remarks)]
    if said:
        return said
    if findings.trials:
        return [f"None of {len(findings.trials)} tests changed the score: no place was found."]
    return ["Not tested by repainting: the maps are averages over random paintings."]


def foot(explanation: Explanation, findings: Findings) -> list[str]:
    """Controls, how to read the tests, and what it cost."""
    by_verdict: dict[str, list[str]] = {}
    for one in findings.described:
        if one.control:
            by_verdict.setdefault(one.control.verdict, []).append(one.letter)
    verdicts = [f"{join(letters, 'and')} {words}" for words, letters in by_verdict.items()]
    control = "Controls (the same patch is painted in other places, too):"
    lines = [f"{control} {'; '.join(verdicts)}."] if verdicts else []
    tests = "Tests: ▼ lowers, ▲ raises, = keeps the score."
    frames = (
        "Frames: thick, the answer changes; medium, the score clearly does; thin, it hardly does."
    )
    lines += [f"{tests} {frames}", f"Cost: {explanation.n_calls}."]
    return [*lines, *(f"Note: {note}." for note in explanation.assumed)]
