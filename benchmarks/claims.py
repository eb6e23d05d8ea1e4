"""How many claims of a reading are true and how many truths it says: on planted models.

    PYTHONPATH=src python benchmarks/claims.py --seeds 10
    PYTHONPATH=src python benchmarks/claims.py --held --first-seed 1000
    PYTHONPATH=src python benchmarks/claims.py --fresh --first-seed 2000
    PYTHONPATH=src python benchmarks/claims.py --whole --first-seed 3000 --seeds 3

A claim is judged from outside, by hard-edged repaints the reading never made: `tests/judge.py`.
Prints a table by kind of model and one by kind of claim, and writes benchmarks/results/claims.json
with every false claim and every truth not said. Kinds of `tests/zoo_held.py` and `zoo_whole.py` and
seeds from 1000 on are for figures only: whoever develops a reading does not look at them. `--whole`
has a stricter judge, `tests/judge_whole.py`.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads of BLAS wait for each other
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # the zoo lives there

import judge_whole
from judge import PREDICATES, Claim, Claimed, is_said, judge
from mcrise.interpretation.trials import compare
from mcrise.models import load_model
from mcrise.sampling import explain
from table import report
from zoo import KINDS, Case, NoRoom, Plant, draw_case
from zoo_held import FRESH, HELD
from zoo_several import SEVERAL
from zoo_whole import WHOLE, WholeCase, draw_whole


def cases(kind: str, first_seed: int, kinds: Mapping[str, Any]) -> Iterator[Case]:
    """Of the seeds from the first on, but for those whose regions find no room in the image."""
    for seed in count(first_seed):
        with suppress(NoRoom):
            strict = kinds is WHOLE or kinds is SEVERAL
            yield (draw_whole if strict else draw_case)(kind, seed, kinds)


def claims_of(case: Case, n_masks: int | None, mask_prob: float | None) -> list[Claimed]:
    """All that is printed about a case: the only function that knows the reading."""
    model = load_model(case.model, labels=case.labels)
    explanation = explain(
        case.image,
        model,
        n_masks="auto" if n_masks is None else n_masks,
        mask_prob="auto" if mask_prob is None else mask_prob,
        fills=case.palette,
        seed=case.seed,
        trials=False,
    )
    claims: list[Claimed] = []
    found = explanation.findings_of(case.target, model)
    claims += [*found.claims, *(claim for one in found for claim in one.claims)]
    if case.against is not None:
        comparison = compare(explanation, case.target, case.against, model=model)
        claims += [
            Claim("raises", (one.region,), (one.fill,), case.target)
            for one in comparison.suggestions
        ]
    return claims


@dataclass(frozen=True)
class Outcome:
    """What a reading said of a case, and what the judge says of that."""

    case: Case
    claims: list[Claimed]
    true: list[bool]  # one per claim
    said: list[bool]  # one per truth of the case
    n_calls: int


def outcome_of(case: Case, n_masks: int | None, mask_prob: float | None) -> Outcome:
    counted, n_calls = counting(case)
    claims = claims_of(counted, n_masks, mask_prob)
    if isinstance(case, WholeCase):
        true = [judge_strictly(case, claim) for claim in claims]
        said = [judge_whole.is_said(saying, claims) for saying in case.sayings]
    else:
        true = [judge(case, claim) for claim in claims]
        said = [is_said(truth, claims) for truth in case.truths]
    return Outcome(case, claims, true, said, n_calls())


def judge_strictly(case: WholeCase, claim: Claimed) -> bool:
    """By the strict judge, where it knows the kind of claim and the colors."""
    names = tuple(fill.name for fill in claim.fills)
    if claim.kind not in judge_whole.STRICT or not set(names) <= set(judge_whole.COLORS):
        return judge(case, claim)
    return judge_whole.is_true(case, judge_whole.Saying(claim.kind, tuple(claim.regions), names))


def truths_of(case: Case) -> Sequence[Any]:
    return case.sayings if isinstance(case, WholeCase) else case.truths


def counting(case: Case) -> tuple[Case, Callable[[], int]]:
    """The case with a model that counts the images it is asked about."""
    asked: list[int] = []

    def model(images: Any) -> Any:
        asked.append(len(images))
        return case.model(images)

    return replace(case, model=model), lambda: sum(asked)


def row(name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    true = [one for outcome in outcomes for one in outcome.true]
    said = [one for outcome in outcomes for one in outcome.said]
    return {
        "kind": name,
        "claims": len(true),
        "true %": percent(true),
        "truths": len(said),
        "said %": percent(said),
        "calls": median(outcome.n_calls for outcome in outcomes),
    }


def percent(hits: Sequence[bool]) -> float | str:
    return 100 * sum(hits) / len(hits) if hits else "-"


def by_claim(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    judged = [
        (claim.kind, true)
        for outcome in outcomes
        for claim, true in zip(outcome.claims, outcome.true, strict=True)
    ]
    rows = []
    for kind in PREDICATES:
        true = [one for name, one in judged if name == kind]
        if true:
            rows.append({"claim": kind, "printed": len(true), "true %": percent(true)})
    return rows


def slips(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Every false claim and every truth that was not said."""
    false = [
        {"case": [o.case.kind, o.case.seed], "false": claim.kind,
         "fills": [fill.name for fill in claim.fills],
         "share": [float(region.mean()) for region in claim.regions]}
        for o in outcomes
        for claim, true in zip(o.claims, o.true, strict=True)
        if not true
    ]  # fmt: skip
    unsaid = [
        {"case": [o.case.kind, o.case.seed], "unsaid": truth.kind, "fills": list(truth.fills)}
        for o in outcomes
        for truth, said in zip(truths_of(o.case), o.said, strict=True)
        if not said
    ]
    return [*false, *unsaid]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--kinds", help="some of them, separated by commas")
    parser.add_argument("--seeds", type=int, default=10, help="how many of each kind")
    parser.add_argument("--first-seed", type=int, default=0)
    others = parser.add_mutually_exclusive_group()
    others.add_argument("--held", action="store_true", help="the kinds held back instead")
    others.add_argument("--fresh", action="store_true", help="the kinds held back since instead")
    others.add_argument("--several", action="store_true", help="places that depend on each other")
    others.add_argument("--whole", action="store_true", help="kinds drawn up from outside instead")
    parser.add_argument("--n-masks", type=int, help="[default: auto]")
    parser.add_argument("--mask-prob", type=float, help="[default: auto]")
    given = parser.parse_args()

    kinds: Mapping[str, Callable[..., Plant]] = KINDS
    chosen = {"held": HELD, "fresh": FRESH, "several": SEVERAL, "whole": WHOLE}
    for name, some in chosen.items():
        kinds = some if getattr(given, name) else kinds
    names = [name.strip() for name in given.kinds.split(",")] if given.kinds else list(kinds)
    if unknown := [name for name in names if name not in kinds]:
        parser.error(f"no kind {unknown[0]!r}; there are {', '.join(kinds)}")
    started = time.perf_counter()
    outcomes: dict[str, list[Outcome]] = {}
    for name in names:
        outcomes[name] = [
            outcome_of(case, given.n_masks, given.mask_prob)
            for case in islice(cases(name, given.first_seed, kinds), given.seeds)
        ]
        print(".", end="", flush=True, file=sys.stderr)
    everything = [one for some in outcomes.values() for one in some]
    rows = [row(name, some) for name, some in outcomes.items()]
    report("claims-by-claim", by_claim(everything))
    report("claims", [*rows, row("all", everything)], **vars(given), slips=slips(everything))
    print(f"\n{len(everything)} cases in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
