"""Text: what trials came to, in sentences a person would write."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._util.text import magnitude, number, numbers
from ..explanation import Explanation
from ..fills import Fill, Gray
from ..maps import Maps
from .causes import key_of, same_place
from .claims import CLAIM_KINDS, Claim, in_words, join, sentence_case
from .controls import FEWEST_PLACES, control_of
from .findings import SEARCHED, Control, Finding, Trial, box_of
from .inquiry import answers_before, surely_says
from .regions import place_of
from .repaints import Region
from .score_change import KEPT, LOST, Scale

# What a finding comes to, most telling first; the first claim that was made heads the sentence.
HEADLINES = {
    "veto": "{fills} lowers the score almost wherever it is painted; nothing else tried here does",
    "brightness": "its brightness matters, not its hue",
    "finds color": "its color matters: of the colors tried, only {fills} will do",
    "saturation": "its saturation matters",
    "hue": "its hue matters",
    "sharpness": "its sharpness matters",
    "color": "its texture is not needed; {fills} here lower the score",
    "structure": "its texture or shape matters; no flat color keeps the score",
    "mixture": "its mix of colors matters, not how they are arranged",
    "missing color": "{fills} here raises the score",
    "unwanted color": "its color lowers the score; other colors give more",
    "obstacle": "covering it raises the score",
    "saturation obstacle": "its saturation lowers the score",
    "hue obstacle": "its hue lowers the score",
    "sharpness obstacle": "its sharpness lowers the score",
    "lowers": "covering it lowers the score",
    "raises": "painting it raises the score",
}
MOST_REACTS = 0.4  # of the image, on places that lower the score
COLORS = ("finding", "color")
SEVERAL = (
    "either suffices",
    "both needed",
    "must match",
    "structure",
    "together",
    "all together",
    "nothing matters",
)


@dataclass(frozen=True, eq=False)
class Words:
    """What all sentences about one class share."""

    explanation: Explanation
    scale: Scale
    trials: Sequence[Trial]  # of all, each repaint once for each role
    maps: Maps
    limit: float  # the largest effect that chance alone would show in one map of twenty

    @property
    def label(self) -> str:
        return self.explanation.label(self.scale.target)

    def number(self, score: float) -> str:
        return number(score, self.explanation.kind)

    @property
    def least(self) -> str:
        """The smallest change of the score that counts."""
        return f"{self.number(self.scale.least_change)} or more"

    @property
    def least_rise(self) -> str:
        return f"{self.number(self.scale.least_rise)} or more"

    def span(self, scores: Sequence[float]) -> str:
        """`0.11 to 0.35`."""
        low, high = self.number(min(scores)), self.number(max(scores))
        return low if low == high else f"{low} to {high}"

    # ---- one finding

    def about(self, finding: Finding) -> list[str]:
        """A finding in a sentence and a few lines, or in a few words where it is only listed."""
        if not finding.described:
            return [self.listed(finding)]
        first = f"{self.where(finding)}: {headline(finding)}. {self.movement(finding)}"
        rest = [self.other_colors(finding), self.own_colors(finding), self.control(finding)]
        return [first, *filter(None, rest)]

    def where(self, finding: Finding) -> str:
        """`A, the center (rows 30-60, columns 40-70 of 96 x 96)`."""
        height, width = finding.region.shape
        return (
            f"{finding.letter}, {finding.place} ({box_words(finding.region)} of {height} x {width})"
        )

    def listed(self, finding: Finding) -> str:
        """`F (rows 0-12, columns 36-60) white 0.41 'yield'`."""
        says = f" {finding.says!r}" if finding.changes_decision else ""
        box = box_words(finding.region)
        after = self.number(finding.after)
        return f"{finding.letter} ({box}) {finding.fill.name} {after}{says}"

    def movement(self, finding: Finding) -> str:
        """What was painted, the score after it, what the model then says, and how it was chosen."""
        verb = "falls" if finding.direction < 0 else "rises"
        before, after = numbers([finding.before, finding.after], self.explanation.kind)
        moved = f"{self.label!r} {verb} from {before} to {after}"
        spread = ""
        if finding.trial.repeats is not None:
            some = finding.trial.repeats[:, self.scale.target]
            spread = f" (mean of {len(some)} answers, {self.span(some.tolist())})"
        still = "still" if finding.trial.says == self.scale.predicted else "then"
        one_score = len(self.scale.before) == 1
        then = "" if one_score else f" and the model {still} says {self.answer(finding.trial)}"
        return (
            f"{sentence_case(painted(finding.trial))}, {moved}{spread}{then}{self.chosen(finding)}."
        )

    def answer(self, trial: Trial) -> str:
        """`'yield' (0.41)`: what the model says after a repaint; its score where that is news."""
        says = self.explanation.label(trial.says)
        if trial.says == self.scale.target:
            return repr(says)
        return f"{says!r} ({self.number(float(trial.scores[trial.says]))})"

    @property
    def n_places(self) -> int:
        """How many places were tried in the search."""
        return len({key_of(one.region) for one in self.trials if one.role in SEARCHED})

    def chosen(self, finding: Finding) -> str:
        """` (picked from 40 places tried; the strongest beside it leaves 0.62)`, of A only."""
        if finding.letter != "A":
            return ""
        tried = [one for one in self.trials if one.role in SEARCHED]
        away = [one.score for one in tried if not same_place(one, finding, 0.0)]
        if not away:
            return ""
        best = (min if finding.direction < 0 else max)(away)
        return (
            f" (picked from {self.n_places} places tried; the strongest that does not overlap it "
            f"leaves {self.number(best)})"
        )

    def other_colors(self, finding: Finding) -> str:
        """What the other colors did."""
        after = {one.fill: one.score for one in finding.tests if one.role == "color"}
        if not after:
            return ""
        words, named = [], {finding.fill}
        for moves, verb in ((self.scale.falls, "lower"), (self.scale.rises, "raise")):
            moving = [fill for fill, score in after.items() if moves(score)]
            too = " too" if verb == ("lower" if finding.direction < 0 else "raise") else ""
            words.append(self.colors_do(finding, moving, after, f"{verb}{{}} it{too}"))
            named.update(moving)
        keeping = [fill for fill, score in after.items()
                   if fill not in named and self.scale.keeps(score)]  # fmt: skip
        staying = all(self.scale.stays(after[fill]) for fill in keeping)
        keep = "keep{} it" if staying else "keep{0} or slightly raise{0} it"
        words.append(self.colors_do(finding, keeping, after, keep))
        rest = [fill for fill in after if fill not in named and fill not in keeping]
        words.append(self.colors_do(finding, rest, after, "leave{}", "{}"))
        return f"{sentence_case('; '.join(filter(None, words)))}." if any(words) else ""

    def colors_do(
        self,
        finding: Finding,
        fills: Sequence[Fill],
        after: dict[Fill, float],
        verb: str,
        scores: str = "({})",
    ) -> str:
        """`green, white and black lower it too (0.11 to 0.35)`."""
        fills = [fill for fill in fills if fill != finding.fill]
        if not fills:
            return ""
        among = [fill for fill in after if fill != finding.fill]
        every = len(fills) > 2 and len(fills) == len(among)
        names = f"all {len(fills)} other colors" if every else in_words(fills, among)
        does = verb.format("s" if len(fills) == 1 else "")
        span = self.span([after[fill] for fill in fills])
        return f"{names} {does} {scores.format(span)}"

    def own_colors(self, finding: Finding) -> str:
        """What its own colors did: the mean color, a gray, its pixels in another order."""
        own = next((one for one in finding.tests if one.role == "own mean"), None)
        if own is None:
            return ""
        goes = "rises to" if self.scale.rises(own.score) else "is"
        goes = "falls to" if self.scale.falls(own.score) else goes
        goes = "stays at" if self.scale.stays(own.score) else goes
        words = [f"filled with its average color ({own.fill.name}), the score {goes} "
                 f"{self.number(own.score)}"]  # fmt: skip
        if finding.claim("brightness"):
            # The first is as bright as the place, and taking the color out is not painting.
            grays = [one.score for one in finding.tests
                     if one.role == "gray" and one.fill != Gray()][1:]  # fmt: skip
            words.append(f"grays as bright as these colors leave {self.span(grays)}")
        if finding.claim("structure") or finding.claim("mixture"):
            mixed = [one.score for one in finding.tests if one.role == "shuffle"]
            words.append(
                f"its pixels in random order leave {self.span(mixed)} ({len(mixed)} orders)"
            )
        return f"{sentence_case('; '.join(words))}."

    def control(self, finding: Finding) -> str:
        if finding.control is None:
            return ""
        return control_words(finding.control, self.explanation.kind, finding.direction)

    # ---- all of them

    def disagreements(self, claims: Sequence[Claim]) -> list[str]:
        """Where a trial does not do what the map says on average, in the map's strongest area."""
        paired = {key_of(region) for claim in claims for region in claim.regions
                  if claim.kind in ("either suffices", "together")}  # fmt: skip
        lobe = next((one for one in self.trials if one.role == "lobe"), None)
        if lobe is None or key_of(lobe.region) in paired:
            return []
        values = self.maps.values[self.maps.fills.index(lobe.fill)]
        effect = float(values[lobe.region].mean())
        direction = self.scale.direction(lobe.scores)
        moved = lobe.score - self.scale.score
        if direction == np.sign(effect) or not (direction or self.scale.stays(lobe.score)):
            return []
        if not direction and np.sign(effect) * moved >= abs(effect):  # it does as the map says
            return []
        verb = "raises" if effect > 0 else "lowers"
        does = {0: "leaves it at", 1: "raises it to", -1: "lowers it to"}[direction]
        return [
            f"The map and the trial disagree about {lobe.repaint.strokes[0].place} "
            f"({box_words(lobe.region)}). On average under masks, {lobe.fill.name} there {verb} "
            f"{self.label!r} by {magnitude(abs(effect))}; painted alone, it {does} "
            f"{self.number(lobe.score)} (from {self.number(self.scale.score)})."
        ]

    def opening(self, found: Sequence[Finding]) -> list[str]:
        """What is true of most of the image."""
        anywhere = self.anywhere(found)
        first = found[0].control if found else None
        if len(anywhere) > 1 and first is not None and first.verdict == "almost anywhere":
            return [
                f"Painting almost anywhere destroys this score: {join(anywhere, 'and')} "
                "do as much in nearly all other places tried."
            ]
        lowering = [one for one in found if one.direction < 0 and one.share <= 1 / 6]
        if len(lowering) > 2:
            covered = np.logical_or.reduce([one.region for one in lowering]).mean()
            if covered >= MOST_REACTS:
                return [
                    f"Many places matter: {self.label!r} falls when any of {len(lowering)} is "
                    f"painted, and together they cover {100 * covered:.0f}% of the image."
                ]
        return []

    def anywhere(self, found: Sequence[Finding]) -> list[str]:
        """The fills that do as much almost anywhere."""
        fills = []
        for finding in found:
            groups: dict[str, list[Trial]] = {}
            for one in self.trials:
                if one.role == "control" and one.letter == finding.letter:
                    groups.setdefault(one.fill.name, []).append(one)
            for name, some in groups.items():
                tried = (finding.trial, *finding.tests)
                main = next((one for one in tried if one.fill.name == name), None)
                if main and control_of(self.scale, main, some).verdict == "almost anywhere":
                    fills.append(name)
        return list(dict.fromkeys(fills))

    def remarks(self, found: Sequence[Finding], claims: Sequence[Claim]) -> list[str]:
        """What is said of several findings or of none."""
        letters = {key_of(one.region): one.letter for one in found}
        needed = [claim for claim in claims if claim.kind == "both needed"]
        out = [self.claim_line(claim, letters) for claim in claims
               if claim.kind in SEVERAL and "own mean" not in claim.numbers
               and (claim.kind != "both needed" or len(needed) == 1)]  # fmt: skip
        if len(needed) > 1:
            out.append(self.needed_line(needed, letters))
        if not found and not out:
            out.append(self.nothing_found())
        return out

    def claim_line(self, claim: Claim, letters: dict[str, str]) -> str:
        numbers, label = claim.numbers, self.label
        if claim.kind == "nothing matters":
            before, most = self.number(numbers["before"]), abs(numbers["most"])
            return (
                f"Nothing here matters: {label!r} is {before}, and no color on any block, half or "
                f"all of the image moves it by more than {magnitude(most)}."
            )
        if claim.kind == "all together":
            colors = join([fill.name for fill in claim.fills], "or")
            return (
                f"No place that was tried changes {label!r} by {self.least}, but the whole "
                f"image matters: {colors} on any half of it leaves "
                f"{self.span([numbers['least'], numbers['most']])} "
                f"(from {self.number(numbers['before'])})."
            )
        if claim.kind == "structure":
            return (
                f"No flat color keeps {label!r} on two places that lie side by side "
                f"({box_words(claim.regions[0])}), though some do on each alone: what tells them "
                f"apart matters. Both painted alike leave "
                f"{self.span([numbers['least'], numbers['most']])}."
            )
        fill = claim.fills[0].name
        names = [letters.get(key_of(region)) or f"{place_of(region)} ({box_words(region)})"
                 for region in claim.regions]  # fmt: skip
        if claim.kind == "together":
            alone = self.span([numbers["least"], numbers["most"]])
            return (
                f"None of {join(names, 'and')} is needed alone, but all are together: {fill} on "
                f"one leaves {label!r} at {alone}, on all at {self.number(numbers['all'])}."
            )
        said = f"Both {join(names, 'and')} are needed"
        if claim.kind == "must match":
            said = f"{join(names, 'and')} must match"
        if claim.kind == "either suffices":
            said = f"Either of {join(names, 'and')} is enough"
        alone = self.span([numbers["first"], numbers["second"]])
        return (
            f"{said}: {fill} on one leaves {label!r} at {alone}, "
            f"on both at {self.number(numbers['both'])}."
        )

    def needed_line(self, claims: Sequence[Claim], letters: dict[str, str]) -> str:
        """Several pairs of places that are both needed, in one sentence."""
        pairs = [join([letters.get(key_of(one)) or box_words(one) for one in claim.regions], "and")
                 for claim in claims]  # fmt: skip
        alone = [claim.numbers[one] for claim in claims for one in ("first", "second")]
        both = self.span([claim.numbers["both"] for claim in claims])
        return (
            f"Both are needed in each of these pairs: {', '.join(pairs)}. One of two painted alike "
            f"leaves {self.label!r} at {self.span(alone)}, both at {both}."
        )

    def nothing_found(self) -> str:
        before = answers_before(self.trials)
        large = [one for one in self.trials if one.role == "whole"
                 and self.scale.direction(one.scores)
                 and surely_says(self.scale, before, one)]  # fmt: skip
        first = f"None of the {self.n_places} places tried changes {self.label!r} by {self.least}."
        if not large:
            return first
        least = min(large, key=lambda one: (one.repaint.share, -abs(one.score - self.scale.score)))
        return (
            f"{first} Only larger parts do: {painted(least)}, {place_of(least.region)} "
            f"({100 * least.repaint.share:.0f}% of the image) gives "
            f"{self.number(least.score)} (from {self.number(self.scale.score)})."
        )

    def large(self, trial: Trial | None) -> list[str]:
        """An area that is too large for a place: what painting it does, and as much elsewhere."""
        if trial is None:
            return []
        pieces = [one.score for one in self.trials
                  if one.role == "pieces" and one.letter == trial.letter]  # fmt: skip
        rest = f"; the same area in pieces elsewhere leaves {self.span(pieces)}" if pieces else ""
        verb = "falls" if trial.score < self.scale.score else "rises"
        return [
            f"A large area matters as a whole ({100 * trial.repaint.share:.0f}% of the image, "
            f"{box_words(trial.region)}): {painted(trial)}, {self.label!r} {verb} from "
            f"{self.number(self.scale.score)} to {self.number(trial.score)}{rest}."
        ]

    def counterfactual_line(
        self, smallest: Trial | None, wanted: int | None, found: Sequence[Finding] = ()
    ) -> str:
        """What was found to change the answer; nothing where a single score decides nothing."""
        if len(self.scale.before) < 2:
            return ""
        letters = {key_of(one.region): one.letter for one in found}
        if wanted is not None:
            label = self.explanation.label(wanted)
            if wanted == self.scale.predicted:
                return f"The model already says {label!r}; there is nothing to suggest."
            does = f"makes the model say {label!r}"
        elif self.scale.target != self.scale.predicted:
            does = f"makes the model say {self.label!r}"
        else:
            does = "changes the answer"
        if smallest is None:
            return f"No repaint that was tried {does}."
        strokes = smallest.repaint.strokes
        places = [letters.get(key_of(stroke.region)) or stroke.place for stroke in strokes]
        names = [f"{place} ({box_words(stroke.region)}) in {stroke.fill.name}"
                 for place, stroke in zip(places, strokes, strict=True)]  # fmt: skip
        says = f"; the model then says {self.answer(smallest)}"
        share = f"{100 * smallest.repaint.share:.1f}% of the image"
        return (
            f"Smallest repaint found that {does} ({share}): {join(names, 'and')}"
            f"{says if does == 'changes the answer' else ''}."
        )

    def closing(self) -> str:
        """What was not tested, and what the map cannot tell."""
        names = join([fill.name for fill in self.explanation.plan.fills], "and")
        # The map is of averages under masks; no average can be larger than the range.
        limit = min(self.limit, self.explanation.score_range)
        return (
            f"Not tested: places and combinations other than the {self.n_places} places tried, and "
            f"fills other than {names}. Cannot tell: effects in other places that average less "
            f"than {magnitude(limit)} under masks ({self.maps.n_masks:,} masks)."
        )


def headline(finding: Finding) -> str:
    """What matters there; that other places do as much is not left for the last words."""
    verdict = finding.control.verdict if finding.control else ""
    spread = verdict in ("in many places", "almost anywhere") and not finding.claim("veto")
    ending = " (other places react as strongly)" if spread else ""
    return f"{meaning(finding)}{ending}"


def meaning(finding: Finding) -> str:
    claim = next(filter(None, map(finding.claim, HEADLINES)), None)
    if claim is None:
        return f"painting it {'lowers' if finding.direction < 0 else 'raises'} the score"
    if claim.kind == "color" and needs_hue(finding):
        return "its color matters, not its texture"
    if claim.kind in ("lowers", "raises") and finding.fill.is_color and not covering(finding):
        verb = "lowers" if finding.direction < 0 else "raises"
        among = [one.fill for one in (finding.trial, *finding.tests) if one.role in COLORS]
        return f"{in_words(claim.fills, list(dict.fromkeys(among)), 'or')} here {verb} the score"
    takes = finding.fill.removes  # which would be a claim of its own, if it were that
    if (
        claim.kind in ("lowers", "raises")
        and not finding.fill.is_color
        and takes not in CLAIM_KINDS
    ):
        return f"its {takes} {'matters' if finding.direction < 0 else 'lowers the score'}"
    if claim.kind == "veto" and (
        finding.control is None or finding.control.verdict != "almost anywhere"
    ):
        return f"{finding.fill.name} here lowers the score; nothing else tried here does"
    return HEADLINES[claim.kind].format(fills=join([fill.name for fill in claim.fills], "or"))


def needs_hue(finding: Finding) -> bool:
    """Whether its average color keeps the score, and the gray that is as bright does not."""
    gray = next((one.score for one in finding.tests if one.role == "gray"), finding.before)
    return finding.before - gray >= LOST * abs(finding.before)


def covering(finding: Finding) -> bool:
    """Whether all that was painted there moves the score, its average color too."""
    asked = [one for one in finding.tests if one.role in ("color", "own mean")]
    lost = (1 - KEPT) * abs(finding.before)
    return all(finding.direction * (one.score - finding.before) > lost for one in asked)


def painted(trial: Trial) -> str:
    """`painted blue`, or what another fill does."""
    fill = trial.fill
    if fill == Gray():
        return "with its colors removed"
    return f"painted {fill.name}" if fill.is_color else f"with {fill.name}"


def control_words(control: Control, kind: str, direction: int = -1) -> str:
    """`Control: the same block in 19 other places leaves 0.84 (median; lowest 0.45); only here.`"""
    scores = control.scores
    if len(scores) < FEWEST_PLACES:
        said = "No control: a block of this size fits into too few other places."
        some = sorted({number(one.score, kind): one.score for one in control.pieces}.values())
        span = " to ".join(dict.fromkeys(number(one, kind) for one in (some[:1] + some[-1:])))
        return f"{said} The same area in pieces elsewhere leaves {span}." if some else said
    most, word = (min(scores), "lowest") if direction < 0 else (max(scores), "highest")
    n = len(scores)
    verdict = f"none of the {n} has about as large an effect"
    if control.n_as_much:
        which = f"all {n}" if control.n_as_much == n else f"{control.n_as_much} of the {n}"
        have = "has" if control.n_as_much == 1 else "have"
        verdict = f"{which} {have} about as large an effect, or a larger one"
    return (
        f"Control: the same block in {len(scores)} other places leaves "
        f"{number(float(np.median(scores)), kind)} (median; {word} {number(most, kind)}); "
        f"{verdict}."
    )


def box_words(region: Region) -> str:
    """`rows 30-60, columns 40-70`."""
    top, left, bottom, right = box_of(region)
    return f"rows {top}-{bottom}, columns {left}-{right}"
