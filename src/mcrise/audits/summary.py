"""Summary: an audit in words. The verdict and the suspects are what a release meeting needs.

Each says a number, its 95% interval and how many images are behind it, and stays true where there
is nothing to say: no truths, one class, no findings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .._util.text import one_line
from ..interpretation.claims import join, sentence_case
from .background import OWN
from .class_data import AuditInfo
from .class_findings import ClassFinding
from .class_stats import AuditStats, ClassStats
from .outliers import FEWEST as FEWEST_ALIKE
from .stats import Estimate, bonferroni
from .suspects import Suspect, SuspectSearch, sentences
from .zones import OUTER

MOST_NAMED = 3  # classes in a sentence, suspects on the first page
WELL_TRIED = 0.5  # of the pairs: fewer say little of places
MOST_WORDS = 150  # before the table of classes
OUTSIDE = {"background": "outside of the object", "rim": "in the rim of the image"}

Get = Callable[[ClassStats], Estimate | None]


def summary(info: AuditInfo, stats: AuditStats, rules: str = "") -> list[str]:
    """The lines of `summary.md`; `rules` are the verdicts on them in a line."""
    return [
        "# Audit",
        "",
        *map(markdown, first_page(stats, rules).lines),
        "",
        *class_table(stats),
        "",
        "## All figures",
        "",
        *(f"{n}. {markdown(line)}" for n, line in enumerate(five_sentences(info, stats), 1)),
        "",
        *class_details(stats),
        *map(markdown, remarks(info, stats)),
    ]


def five_sentences(info: AuditInfo, stats: AuditStats) -> list[str]:
    return [
        decisions(stats),
        colors(info, stats),
        outside(stats),
        findings(info, stats),
        oddities(stats),
    ]


# ---- suspects


@dataclass(frozen=True)
class FirstPage:
    """What comes before the table of classes."""

    verdict: str
    suspects: Sequence[Sequence[str]]  # sentences on each of the first ones
    remarks: Sequence[str]  # what was left out or not tested, and what came of the rules

    @property
    def lines(self) -> list[str]:
        said = enumerate(self.suspects, start=1)
        suspects = [f"{n}. {' '.join(some)}" for n, some in said if some]
        return [line for line in (self.verdict, *suspects, *self.remarks) if line]


def first_page(stats: AuditStats, rules: str = "") -> FirstPage:
    """The verdict, the first suspects, what was not tested, and what came of the rules."""
    if stats.search is None:
        return FirstPage("", (), [rules])
    suspects = stats.search.suspects
    left = len(suspects) - MOST_NAMED
    more = f"{left} more suspects are in summary.json." if left > 0 else ""
    page = FirstPage(
        verdict(stats.search), (), [more, truth_unknown(stats), not_tested(stats), rules]
    )
    n_words = sum(len(line.split()) for line in page.lines)
    return replace(page, suspects=suspect_sentences(suspects[:MOST_NAMED], n_words))


def suspect_sentences(suspects: Sequence[Suspect], n_words: int) -> list[list[str]]:
    """What is said of each, as many sentences as there is room for beside so many words.

    None at all where labels are very long: the verdict names the first suspects.
    """
    said = [sentences(one) for one in suspects]
    while any(said):
        if n_words + sum(len(line.split()) + 1 for lines in said for line in lines) <= MOST_WORDS:
            break
        longest = max(map(len, said))
        said[max(n for n, lines in enumerate(said) if len(lines) == longest)].pop()
    return said


def verdict(search: SuspectSearch) -> str:
    """One line: what the model follows that it should not."""
    if search.reason:
        return f"Suspects were not looked for, because {search.reason}."
    if search.suspects:
        n, first = len(search.suspects), [one.headline for one in search.suspects[:MOST_NAMED]]
        more = "; and others" if n > MOST_NAMED else ""
        enough = "This is" if n == 1 else "Each is"
        return (
            f"{n} suspect{'s' * (n > 1)}: {'; '.join(first)}{more}. {enough} enough to turn images "
            "of other classes into that class."
        )
    each = "each of " * (search.n_classes > 1)
    found = f"A trait that turns at least {100 * search.sees:.0f}% of them would have been noticed"
    if 0 <= search.n_sure < search.n_classes:
        found += f" (in {search.n_sure} of these classes; the others have too few images)"
    if search.n_sure == 0:
        found = "There are too few images to be sure that one would have been noticed"
    return (
        f"No suspect found. {search.n_traits} traits (surroundings, tone, colors, texture and so "
        f"on) of {each}{classes(search.n_classes)} were given to images of other classes, and none "
        f"was found that turns these into its own class. {found}."
    )


def not_tested(stats: AuditStats) -> str:
    """What the verdict does not speak of."""
    assert stats.search is not None
    untried, open_ = len(stats.classes) - stats.search.n_classes, len(stats.search.untested)
    parts = [
        "what lies on the object (in the center, where no box is given)",
        "cues that only work together with the object",
    ]
    if not stats.search.reason:
        parts.insert(0, "small spots that turn fewer than half of the other images")
    if stats.overall.zone_effect.get("background") == {}:
        parts.insert(0, "the background, because the objects' boxes or masks cover whole images")
    elif stats.search.places < WELL_TRIED and not stats.search.reason:
        parts.insert(0, "places around most objects, which are unknown or fill their images")
    if untried and not stats.search.reason:
        parts.insert(0, f"{classes(untried)} with too few images that the model gets right")
    if open_:
        parts.insert(0, f"{classes(open_)} where a first look found something and was not repeated")
    return f"Not tested: {'; '.join(parts)}."


def truth_unknown(stats: AuditStats) -> str:
    """Of how many images the true class is not known; empty where it is of all."""
    n, known = stats.overall.n, stats.overall.accuracy
    if known is None:
        return "The true classes are not known, so those that the model predicts stand for them."
    if known.n == n:
        return ""
    return (
        f"The true class of {n - known.n:,} of {images(n)} is not known: accuracy is that of the "
        "others."
    )


# ---- the five


def decisions(stats: AuditStats) -> str:
    """How often it is right, and how often without the right colors."""
    whole = stats.overall
    turned = [f for f in (whole.accuracy_hue120, whole.accuracy_hue240) if f]
    hues = f"with hues turned by 120 and 240 degrees on {join([percent(f) for f in turned], 'and')}"
    without = ([f"in gray on {percent(whole.accuracy_gray)}"] if whole.accuracy_gray else []) + [
        hues
    ] * bool(turned)
    if whole.accuracy:
        said = f"The model is right on {percent(whole.accuracy)} of {images(whole.accuracy.n)}"
        return f"{join([said, *without], 'and')}." if without else f"{said}."
    said = f"The true classes of these {images(whole.n)} are not known"
    if not without:
        return f"{said}, so neither is how often the model is right."
    return f"{said}; the model keeps its answer {join(without, 'and')} of them."


def colors(info: AuditInfo, stats: AuditStats) -> str:
    """How much of what it depends on is color, and in which classes most."""
    whole = stats.overall.color_share
    if len(info.fills) < 2:
        return (
            f"With {info.fills[0]} alone, effects of color cannot be separated from effects of "
            f"covering ({images(stats.overall.n)})."
        )
    if whole is None:
        return (
            f"Over {images(stats.overall.n)} no color or place has a significant effect, so the "
            "share of color is not known."
        )
    said = f"Color accounts for {percent(whole)} of the effect ({images(whole.n)})"
    own = own_color(stats.overall)
    where = f"; {own}" if own else ""
    return f"{said}{leaders(stats, lambda one: one.color_share)}{where}."


def own_color(one: ClassStats) -> str:
    """Of which own color painted with what matters most: `where an image is red, ...`.

    Empty where none is more than nothing, for as many as were looked at.
    """
    cells = [
        (own, fill, f) for own, row in one.color_area_effect.items() for fill, f in row.items()
    ]
    sure = [cell for cell in cells if bonferroni(cell[2], len(cells)).excludes_zero]
    if not sure:
        return ""
    own, fill, estimate = max(sure, key=lambda cell: abs(cell[2].value))
    return (
        f"where an image is {own}, painting it {fill} changes the score by {moved(estimate)} on "
        "average over random masks"
    )


def outside(stats: AuditStats) -> str:
    """How much of it lies outside of the object, and in which classes most."""
    outer, said = stats.overall.background, []
    zone = next((zone for zone in OUTER if zone in stats.overall.zones), None)
    if zone is not None:
        whole = stats.overall.zones[zone]
        said = [
            f"{percent(whole)} of the effect lies {OUTSIDE[zone]} ({images(whole.n)})"
            + leaders(stats, lambda one: one.zones.get(zone))
        ]
    if outer and zone in (None, outer.zone):
        worst, own = outer.flipped[outer.worst], outer.flipped[OWN]
        what = "it" if said else f"what lies {OUTSIDE[outer.zone]}"
        said.append(
            f"painting all of {what} in the color that changes most ({outer.worst}) changes "
            f"{percent(worst)} of decisions, in {OWN} {percent(own)} ({images(worst.n)})"
        )
    if not said:
        return (
            f"Effects outside of the object were not measured in these {images(stats.overall.n)}."
        )
    return f"{sentence_case('; '.join(said))}."


def leaders(stats: AuditStats, get: Get) -> str:
    """`: most in 'stop', 85% [82, 88] (20 images), and ...`; nothing if there is one class.

    They are those with the highest lower ends of intervals, so that none leads for being little
    known.
    """
    known = [(estimate, one.label) for one in stats.classes if (estimate := get(one)) is not None]
    sure = sorted((pair for pair in known if pair[0].low > 0), key=lambda pair: -pair[0].low)
    if len(stats.classes) < 2 or not sure:
        return ""
    first = sorted(sure[:MOST_NAMED], key=lambda pair: -pair[0].value)
    named = [f"{label!r}, {percent(f)} ({images(f.n)})" for f, label in first]
    return f": most in {join(named, 'and')}"


def findings(info: AuditInfo, stats: AuditStats) -> str:
    """What exceeds chance, what of it is confirmed, and the strongest."""
    judged = [one for one in stats.classes if one.too_few is None]
    few = len(stats.classes) - len(judged)
    rest = f" ({classes(few)} had too few images)" if few else ""
    if not judged:
        return f"No class has enough images for findings over images{rest}."
    found = [finding for one in judged for finding in one.findings]
    only = sum(len(one.under_masks) for one in judged)
    places = f"{only} place{'s' * (only > 1)} move{'s' * (only == 1)} scores under masks only"
    if not found and only:
        return (
            f"No finding in {classes(len(judged))}{rest}: {places}, and painted alone "
            f"{'do' if only > 1 else 'does'} not do significantly more than other places."
        )
    if not found:
        return (
            f"In none of {classes(len(judged))} does any color at any place move the score by more "
            f"than chance would over {images(sum(one.n for one in judged))}{rest}."
        )
    n_classes = len({finding.target for finding in found})
    tried = [finding for finding in found if finding.verdict != "untried"]
    confirmed = [finding for finding in tried if finding.verdict == "confirmed"]
    held = f"{len(confirmed)} of them confirmed on images not used to find them" if tried else ""
    leading = [one.findings[0] for one in judged if one.findings]  # of each class
    first = max(leading, key=lambda one: (one.verdict == "confirmed", one.weight))
    are = "are" if len(found) > 1 else "is"
    return (
        f"{len(found)} finding{'s' * (len(found) > 1)} in {n_classes} of {classes(len(judged))} "
        f"{are} significant, {held or 'and not tested yet'}{rest}"
        f"{f', and {places}' if only else ''}. The strongest: {short(first, info)}."
    )


def short(one: ClassFinding, info: AuditInfo) -> str:
    """The place, the color and the number of a finding."""
    own = f" ({one.own} in {100 * one.own_share:.0f}% of the images)" if one.own else ""
    said = one.change or one.effect
    how = "painted" if one.change else "under random masks, painted"
    fill = info.fills[one.painted[0] if one.change and one.painted else one.fill]
    depends = "depends on" if one.verdict == "confirmed" else "may depend on"
    return (
        f"{info.label(one.target)!r} {depends} {one.place}{own}; {how} {fill}, it changes the "
        f"score by {moved(said)}"
    )


def oddities(stats: AuditStats) -> str:
    """Images that are decided differently, and what rights mistakes."""
    whole = stats.overall
    n_unlike = sum(len(one.outliers) for one in stats.classes)
    n_looked_at = sum(one.n for one in stats.classes if one.n >= FEWEST_ALIKE)
    said = f"No image of {n_looked_at:,} is decided unlike the rest of its class"
    if not n_looked_at:
        said = "No class has enough images to look for outliers"
    if n_unlike:
        first = whole.outliers[0]
        label = next(one.label for one in stats.classes if one.target == first.target)
        some = "image is decided unlike the rest of its"
        many = "images are decided unlike the rest of their"
        said = (
            f"{n_unlike} {some if n_unlike == 1 else many} class, most of all "
            f"{first.name} ({label!r}, {first.distance:.1f} times as far as usual)"
        )
    if whole.accuracy is None:
        return f"{said}. No true labels were given, so mistakes cannot be counted."
    wrong, righted = whole.mistakes["wrong"], whole.mistakes["corrected"]
    if not wrong:
        return f"{said}; none of {images(whole.accuracy.n)} is decided wrongly."
    kinds = [f"{kind} {n}" for kind, n in mistakes_by_kind(whole)]
    how = f" ({', '.join(kinds)})" if kinds else ""
    return f"{said}; of {wrong} wrong ones a repaint of a finding puts {righted} right{how}."


def mistakes_by_kind(one: ClassStats) -> list[tuple[str, int]]:
    """Most frequent first."""
    kinds = [(kind, n) for kind, n in one.mistakes.items() if kind not in ("wrong", "corrected")]
    return sorted(kinds, key=lambda pair: (-pair[1], pair[0]))


# ---- the rest


def class_table(stats: AuditStats) -> list[str]:
    zone = next((zone for zone in OUTER if zone in stats.overall.zones), None)
    heads = ["class", "images", "right", "in gray", "color share", zone or "", "findings"]
    lines = []
    for one in (*stats.classes, stats.overall):
        confirmed = sum(finding.verdict == "confirmed" for finding in one.findings)
        found = f"{len(one.findings)} ({confirmed} confirmed)" if one.findings else ""
        cells = [
            markdown(one.label),
            str(one.n),
            *(percent(estimate) if estimate else "" for estimate in (
                one.accuracy, one.accuracy_gray, one.color_share, one.zones.get(zone or ""))),
            "too few images" if one.too_few else found,
        ]  # fmt: skip
        lines.append(cells)
    columns = [n for n, head in enumerate(heads) if head]
    rows = [heads, ["---"] * len(heads), *lines]
    return ["| " + " | ".join(row[n] for n in columns) + " |" for row in rows]


def class_details(stats: AuditStats) -> list[str]:
    """What was found in each class that has something to tell."""
    lines = []
    for one in stats.classes:
        said = [f"- {finding.sentence}" for finding in (*one.findings, *one.under_masks)]
        own = own_color(one)
        said += [f"- {sentence_case(own)}."] if own else []
        said += [f"- Unlike the others: {image.sentence}" for image in one.outliers]
        if said:
            lines += [f"## {markdown(one.label)}", "", *map(markdown, said), ""]
    return lines


def remarks(info: AuditInfo, stats: AuditStats) -> list[str]:
    named = f" ({info.group})" if info.group not in ("", "group") else ""
    over = f"groups of images{named}" if info.group else "images"
    few = [f"{one.label} ({one.n})" for one in stats.classes if one.too_few]
    lines = [f"Brackets are 95% intervals over {over}."]
    if stats.threshold > 0:  # not NaN
        lines[0] += (
            " Findings are significant over all classes, colors and places together: chance alone "
            "shows one in one audit of twenty."
        )
    lines.append(
        f"Model: {info.model}. Data: {info.data}. Colors: {', '.join(info.fills)}; "
        f"{info.n_masks} masks per image, grid {info.grid[0]} x {info.grid[1]}, mask_prob "
        f"{info.mask_prob:g}, seed {info.seed}.{f' {info.why}.' if info.why else ''} "
        f"mcrise {info.version}."
    )
    if few:
        lines.insert(0, f"Too few images for findings: {', '.join(few)}.")
    return lines


# ---- numbers


def percent(estimate: Estimate) -> str:
    """`85% [82, 88]`."""
    value = f"{100 * estimate.value:.0f}%"
    if estimate.low != estimate.low:  # NaN
        return value
    return f"{value} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


def markdown(text: str) -> str:
    """A label or a sentence with labels, as one line that marks nothing up and acts on nothing."""
    line = one_line(" ".join(text.split()))
    for mark, harmless in {"|": "\\|", "<": "&lt;", "`": "\\`", "*": "\\*", "](": "]\\("}.items():
        line = line.replace(mark, harmless)
    return line


def moved(estimate: Estimate) -> str:
    """`-0.21 [-0.23, -0.19] (20 images)`."""
    return (
        f"{estimate.value:+.2g} [{estimate.low:+.2g}, {estimate.high:+.2g}] ({images(estimate.n)})"
    )


def images(n: int) -> str:
    return f"{n:,} image{'s' * (n != 1)}"


def classes(n: int) -> str:
    return f"{n:,} class{'es' * (n != 1)}"
