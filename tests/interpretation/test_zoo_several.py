"""Of planted models whose score comes about by several places, the truth is said, no untruth."""

import pytest

import judge_whole
from mcrise.models import load_model
from mcrise.sampling import explain
from zoo_several import SEVERAL
from zoo_whole import draw_whole


@pytest.mark.parametrize(
    "kind", ["three of five", "exactly three", "mirrored", "alike pair", "slope", "vivid"]
)
def test_what_is_true_of_several_places_is_said(kind):
    case = draw_whole(kind, 0, SEVERAL)
    model = load_model(case.model, labels=case.labels)
    found = explain(case.image, model, seed=case.seed, trials=False).findings_of(case.target, model)
    claims = [*found.claims, *(claim for one in found for claim in one.claims)]
    for saying in case.sayings:
        assert judge_whole.is_said(saying, claims), saying.kind
    for claim in found.claims:
        if claim.kind in judge_whole.STRICT and len(claim.regions) > 1:
            names = tuple(fill.name for fill in claim.fills)
            saying = judge_whole.Saying(claim.kind, tuple(claim.regions), names)
            assert judge_whole.is_true(case, saying), claim


@pytest.mark.parametrize("kind", ["brightest", "each of three", "far apart"])
def test_places_that_count_on_their_own_need_not_match(kind):
    case = draw_whole(kind, 0, SEVERAL)
    model = load_model(case.model, labels=case.labels)
    found = explain(case.image, model, n_masks=512, seed=0, trials=False).findings_of(
        case.target, model
    )
    assert not {"must match", "together", "either suffices"} & {one.kind for one in found.claims}
