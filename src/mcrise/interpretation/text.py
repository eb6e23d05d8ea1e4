"""Wording: what trials came to, in sentences a person would write. At most two lines a finding."""

from collections.abc import Sequence

from ..explanation import Explanation
from .claims import CLAIM_KINDS, Claim, in_words, join, sentence_case
from .counterfactuals import Suggestion
from .experiments import FindingOutcome, PlaceboControl

# What a finding comes to, most telling first; the first claim that was made heads the sentence.
HEADLINES = {
    "brightness": "its brightness matters, not its hue",
    "finds color": "the model looks for {fills} here and finds it",
    "saturation": "its saturation matters",
    "hue": "its hue matters",
    "sharpness": "its sharpness matters",
    "color": "its color matters, not its texture",
    "structure": "its texture or shape matters, not only its color",
    "mixture": "its mix of colors matters, not how they are arranged",
    "missing color": "the model misses {fills} here",
    "unwanted color": "its color is in the way",
    "obstacle": "what is there is in the way",
    "saturation obstacle": "its saturation is in the way",
    "hue obstacle": "its hue is in the way",
    "sharpness obstacle": "its sharpness is in the way",
    "lowers": "it matters",
    "raises": "painting it raises the score",
}


def finding_lines(verdict: FindingOutcome, label: str) -> list[str]:
    """What came of trying a finding: what matters there and how that was tried."""
    return [
        f"{verdict.finding.where}: {headline(verdict)}. {movement(verdict, label)}",
        *filter(None, [" ".join(filter(None, [others(verdict), specificity(verdict)]))]),
    ]


def headline(verdict: FindingOutcome) -> str:
    """What matters there; what another place does as well is not left for the last words."""
    specific = verdict.control is None or verdict.control.verdict != "not specific"
    return meaning(verdict) if specific else f"{meaning(verdict)}, but not here alone"


def meaning(verdict: FindingOutcome) -> str:
    claim = main_claim(verdict)
    if claim is None:  # only together with another finding
        return "alone it is not needed"
    if claim.kind in ("lowers", "raises") and verdict.control and not verdict.control.fill.is_color:
        takes = verdict.control.fill.removes  # which would be a claim of its own, if it were that
        if takes not in CLAIM_KINDS:
            return f"its {takes} {'matters' if claim.kind == 'lowers' else 'is in the way'}"
    return HEADLINES[claim.kind].format(fills=join([fill.name for fill in claim.fills], "or"))


def main_claim(verdict: FindingOutcome) -> Claim | None:
    """What heads the sentence."""
    return next(filter(None, map(verdict.claim, HEADLINES)), None)


def movement(verdict: FindingOutcome, label: str) -> str:
    """`Painted blue: 'stop' 0.89 → 0.05; with its own mean color 0.88.`"""
    before = f"{verdict.before:.2f}"
    if verdict.control is None:
        span = span_of(list(verdict.after.values()))
        return f"{label!r} is {before} as it is and {span} under the colors tried."
    main = verdict.control.fill
    own = f"with its own mean color ({verdict.own_color.name}) {verdict.own_mean:.2f}"
    if verdict.claim("structure") or verdict.claim("mixture"):
        own += f", its pixels shuffled {verdict.mixed:.2f}"
    claim = main_claim(verdict)
    assert claim is not None
    moved = f"{verdict.control.here:.2f}"
    for fill in claim.fills:  # what the headline goes by, where that is not what moves it most
        if fill != main and fill.removes == claim.kind.removesuffix(" obstacle"):
            moved += f", {fill.name} {verdict.after[fill]:.2f}"
    return f"Painted {main.name}: {label!r} {before} → {moved}; {own}."


def others(verdict: FindingOutcome) -> str:
    """What the other colors did: those that move the score as the main one does, and those kept."""
    if verdict.control is None:
        return ""
    fills = list(verdict.after)
    moving = verdict.claim("lowers") or verdict.claim("raises")
    assert moving is not None
    verb = "lower" if moving.kind == "lowers" else "raise"
    words = []
    if len(moving.fills) > 1:
        words.append(f"{sentence_case(in_words(moving.fills, fills))} {verb} it.")
    if moving.kind == "lowers" and (better := verdict.claim("raises")):
        scores = [verdict.after[fill] for fill in better.fills]
        raise_ = "raises" if len(scores) == 1 else "raise"
        named = sentence_case(in_words(better.fills, fills))
        words.append(f"{named} {raise_} it ({span_of(scores)}).")
    if (kept := verdict.claim("as good")) and not verdict.claim("finds color"):
        scores = [verdict.after[fill] for fill in kept.fills]
        named = sentence_case(in_words(kept.fills, fills))
        are = "is" if len(kept.fills) == 1 else "are"
        words.append(f"{named} {are} as good as the original ({span_of(scores)}).")
    return " ".join(words)


def specificity(verdict: FindingOutcome) -> str:
    if verdict.control is None:
        return ""
    if verdict.control.verdict == "no control possible":
        share = f"{100 * verdict.finding.share:.0f} %"
        return f"No control possible: at {share} of the image it fits nowhere else often enough."
    return control_words(verdict.control)


def control_words(control: PlaceboControl) -> str:
    """`The same patch elsewhere: 0.86 (0.80 to 0.89, 19 places): confirmed.`"""
    if control.verdict == "no control possible":
        return "No control possible: the patch fits nowhere else often enough."
    middle = sorted(control.there)[len(control.there) // 2]
    if control.verdict == "not specific":
        return f"Not specific: the same patch elsewhere gives {control.most:.2f}."
    span = f"{min(control.there):.2f} to {max(control.there):.2f}"
    return (
        f"The same patch elsewhere: {middle:.2f} ({span}, {len(control.there)} places): confirmed."
    )


def pair_line(claim: Claim, numbers: Sequence[int], label: str) -> str:
    """What findings are to each other."""
    fill = claim.fills[0].name
    if claim.kind == "together":
        alone = span_of([claim.numbers["least"], claim.numbers["most"]])
        return (
            f"None of {join([str(n) for n in numbers], 'and')} is needed alone, but all together: "
            f"{fill} on one leaves {label!r} at {alone}, on all at {claim.numbers['all']:.2f}."
        )
    one, other = numbers
    said = f"Both {one} and {other} are needed"
    if claim.kind == "either suffices":
        said = f"Either of {one} and {other} suffices"
    first, second, both = (f"{claim.numbers[name]:.2f}" for name in ("first", "second", "both"))
    return f"{said}: {fill} on one leaves {label!r} at {first} or {second}, on both at {both}."


def nothing_line(claim: Claim, label: str) -> str:
    moved = abs(claim.numbers["most"])
    return (
        f"Nothing here matters: {label!r} is {claim.numbers['before']:.2g}, and no color on any "
        f"quarter of the image moves it by more than {moved:.2g}."
    )


def too_little_line(verdicts: Sequence[FindingOutcome], label: str) -> str:
    """What the map shows, but matters too little when it is painted alone."""
    scores = [score for verdict in verdicts for score in verdict.after.values()]
    places = join(list(dict.fromkeys(one.finding.place for one in verdicts)), "and")
    return (
        f"Painted alone, {places} {'matters' if len(verdicts) == 1 else 'matter'} too little: "
        f"{label!r} {verdicts[0].before:.2f} becomes {span_of(scores)}."
    )


def suggestion_line(one: Suggestion, explanation: Explanation) -> str:
    """Whether a repaint raises the wanted class, and whether the model then says so."""
    before, after = one.before[one.target], one.after[one.target]
    label = explanation.label(one.target)
    says = explanation.label(int(one.after.argmax()))
    then = f"but the model {'still' if one.after.argmax() == one.before.argmax() else 'then'} says"
    then = f"{'and the model says' if one.reaches else then} {says!r}"
    control = f" {control_words(one.control)}" if one.control else ""
    return (
        f"{sentence_case(one.stroke.words)}: {label!r} {before:.2f} → {after:.2f}, {then}.{control}"
    )


def span_of(scores: Sequence[float]) -> str:
    low, high = f"{min(scores):.2f}", f"{max(scores):.2f}"
    return low if low == high else f"{low} to {high}"
