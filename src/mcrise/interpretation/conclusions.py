"""Conclusions: what trials say of a class, without a model; the letters are those of the trials."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..explanation import Explanation
from .causes import all_together, claims_of, is_nothing, key_of, pair_claims, scores_alone
from .claims import Claim
from .controls import controls_of
from .findings import Finding, Findings, Trial
from .inquiry import LARGE, answers_before, merge_takes, surely_says
from .score_change import Scale, scale_of
from .text import Words

TESTS = ("color", "own mean", "dominant", "gray", "tint", "shuffle")


def findings_from(
    explanation: Explanation,
    target: int,
    trials: Sequence[Trial],
    wanted: int | None = None,
) -> Findings:
    """What trials say of a class, without a model; the letters are those of the trials."""
    untouched = [one.scores for one in trials if one.role == "untouched"]
    scale = scale_of(explanation, target, untouched)
    known = merge_takes(trials)
    maps = explanation.maps(target)
    words = Words(explanation, scale, known, maps, explanation.chance(maps).limit)
    found = []
    for main in (one for one in known if one.role == "finding"):
        tests = tuple(one for one in known if one.letter == main.letter and one.role in TESTS)
        control = controls_of(scale, main, known)
        finding = Finding(
            letter=main.letter,
            trial=main,
            before=scale.score,
            says=explanation.label(main.says),
            changes_decision=scale.changes_decision(main.scores),
            tests=tests,
            control=control,
            claims=claims_of(scale, explanation.view.pixels, main, tests, control),
            described=bool(tests),
        )
        sentence, *lines = words.about(finding)
        found.append(replace(finding, sentence=sentence, lines=tuple(lines)))
    claims = several_claims(scale, known, found)
    large = next(
        (one for one in known if one.role == "large" and scale.direction(one.scores)), None
    )
    if large is not None:
        own = tuple(one for one in known if one.letter == LARGE and one.role in TESTS)
        claims += claims_of(scale, explanation.view.pixels, large, own, None)
    smallest = counterfactual_of(scale, known, wanted)
    disagreements = words.disagreements(claims)
    change = filter(None, [words.counterfactual_line(smallest, wanted, found)])
    return Findings(
        target=target,
        label=explanation.label(target),
        findings=tuple(found),
        opening=(*(change if wanted is not None else ()), *disagreements, *words.opening(found)),
        remarks=(
            *words.remarks(found, claims),
            *(change if wanted is None else ()),
            *words.large(large),
        ),
        closing=words.closing(),
        counterfactual=smallest,
        trials=tuple(trials),
        claims=tuple(claims),
        disagrees=bool(disagreements),
    )


def several_claims(scale: Scale, known: Sequence[Trial], found: Sequence[Finding]) -> list[Claim]:
    """What is true of several regions, or of none."""
    claims = pair_claims(scale, known, scores_alone(known))
    paired = {key_of(region) for claim in claims for region in claim.regions}
    by_region: dict[str, list[Trial]] = {}
    for one in known:
        if one.role == "lobe":
            by_region.setdefault(key_of(one.region), []).append(one)
    for key, some in by_region.items():
        if key not in paired and len(some) > 1 and all(scale.stays(one.score) for one in some):
            fills = tuple(one.fill for one in some)
            numbers = {"before": scale.score} | {one.fill.name: one.score for one in some}
            claims.append(Claim("saturated", (some[0].region,), fills, scale.target, numbers))
    if not found and not paired:
        claims += filter(None, [is_nothing(scale, known) or all_together(scale, known)])
    return claims


def counterfactual_of(scale: Scale, trials: Iterable[Trial], wanted: int | None) -> Trial | None:
    """The smallest repaint that changes the answer, or makes the model say the class wanted.

    Where answers differ each time, one that was asked afresh and surely does.
    """
    known = list(trials)
    before = answers_before(known)
    if before is not None:
        known = [one for one in known if one.role == "counterfactual" and one.repeats is not None]
    changing = [one for one in known if one.repaint.strokes and one.role != "whole"
                and gives(scale, one, wanted) and surely_says(scale, before, one)]  # fmt: skip
    return min(changing, key=lambda one: one.repaint.share, default=None)


def gives(scale: Scale, trial: Trial, wanted: int | None) -> bool:
    """Whether the model then says the class wanted or, if none is, changes its answer."""
    return trial.says == wanted if wanted is not None else scale.changes_decision(trial.scores)
