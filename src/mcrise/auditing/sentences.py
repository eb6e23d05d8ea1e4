"""Sentences: an audit in words. The first five are what a release meeting needs.

Each says a number, its 95 % interval and how many images are behind it, and stays true where there
is nothing to say: no truths, one class, no findings.
"""

from collections.abc import Callable

from ..claims import join, sentence_case
from .figures import ClassFigures, Figures
from .findings import ClassFinding
from .looks import Asked
from .outer import OWN
from .statistics import Figure, widened
from .unlike import FEWEST as FEWEST_ALIKE
from .zones import OUTER

MOST_NAMED = 3  # classes in a sentence
OUTSIDE = {"background": "outside of the object", "rim": "in the rim of the image"}

Get = Callable[[ClassFigures], Figure | None]


def summary(asked: Asked, figures: Figures) -> list[str]:
    """The lines of `summary.md`."""
    return [
        "# Audit",
        "",
        *(f"{n}. {markdown(line)}" for n, line in enumerate(five_sentences(asked, figures), 1)),
        "",
        *class_table(figures),
        "",
        *class_details(figures),
        *map(markdown, remarks(asked, figures)),
    ]


def five_sentences(asked: Asked, figures: Figures) -> list[str]:
    return [
        decisions(figures),
        colors(asked, figures),
        outside(figures),
        findings(asked, figures),
        oddities(figures),
    ]


# ---- the five


def decisions(figures: Figures) -> str:
    """How often it is right, and how often without the right colors."""
    whole = figures.overall
    turned = [f for f in (whole.hue120, whole.hue240) if f]
    hues = f"with hues turned by 120 and 240 degrees on {join([percent(f) for f in turned], 'and')}"
    without = ([f"in gray on {percent(whole.gray)}"] if whole.gray else []) + [hues] * bool(turned)
    if whole.accuracy:
        told = f"The model is right on {percent(whole.accuracy)} of {images(whole.accuracy.n)}"
        return f"{join([told, *without], 'and')}." if without else f"{told}."
    told = f"The truth of these {images(whole.n)} is not known"
    if not without:
        return f"{told}, so nothing can be said of how often the model is right."
    return f"{told}; the model decides as before {join(without, 'and')} of them."


def colors(asked: Asked, figures: Figures) -> str:
    """How much of what it depends on is color, and in which classes most."""
    whole = figures.overall.color_share
    if len(asked.fills) < 2:
        return (
            f"With {asked.fills[0]} alone, what is color and what is presence cannot be told apart "
            f"({images(figures.overall.n)})."
        )
    if whole is None:
        return (
            f"Over {images(figures.overall.n)} no dependence on any color or place can be told "
            "from noise, so there is no share that is color."
        )
    told = (
        f"Of what it depends on, {percent(whole)} is color rather than presence ({images(whole.n)})"
    )
    own = own_color(figures.overall)
    where = f"; {own}" if own else ""
    return f"{told}{leaders(figures, lambda one: one.color_share)}{where}."


def own_color(one: ClassFigures) -> str:
    """Of which own color painted with what matters most: `where it is red, blue moves it by ...`.

    Empty where none is told from nothing, for as many as were looked at.
    """
    cells = [(own, fill, f) for own, row in one.own.items() for fill, f in row.items()]
    sure = [cell for cell in cells if widened(cell[2], len(cells)).excludes_zero]
    if not sure:
        return ""
    own, fill, figure = max(sure, key=lambda cell: abs(cell[2].value))
    return f"where an image is {own}, {fill} moves the score by {moved(figure)} under masks"


def outside(figures: Figures) -> str:
    """How much of it lies outside of the object, and in which classes most."""
    outer, told = figures.overall.outer, []
    zone = next((zone for zone in OUTER if zone in figures.overall.zones), None)
    if zone is not None:
        whole = figures.overall.zones[zone]
        told = [
            f"{percent(whole)} of the effect lies {OUTSIDE[zone]} ({images(whole.n)})"
            + leaders(figures, lambda one: one.zones.get(zone))
        ]
    if outer and zone in (None, outer.zone):
        worst, own = outer.flipped[outer.worst], outer.flipped[OWN]
        what = "it" if told else f"what lies {OUTSIDE[outer.zone]}"
        told.append(
            f"painted over whole in the color that does most ({outer.worst}) {what} changes "
            f"{percent(worst)} of decisions, in {OWN} {percent(own)} ({images(worst.n)})"
        )
    if not told:
        return (
            f"What lies outside of the object was not told apart in these "
            f"{images(figures.overall.n)}."
        )
    return f"{sentence_case('; '.join(told))}."


def leaders(figures: Figures, get: Get) -> str:
    """`: most in 'stop', 85 % [82, 88] (20 images), and ...`; nothing if there is one class.

    They are those with the highest lower ends of intervals, so that none leads for being little
    known.
    """
    known = [(figure, one.label) for one in figures.classes if (figure := get(one)) is not None]
    sure = sorted((pair for pair in known if pair[0].low > 0), key=lambda pair: -pair[0].low)
    if len(figures.classes) < 2 or not sure:
        return ""
    first = sorted(sure[:MOST_NAMED], key=lambda pair: -pair[0].value)
    named = [f"{label!r}, {percent(f)} ({images(f.n)})" for f, label in first]
    return f": most in {join(named, 'and')}"


def findings(asked: Asked, figures: Figures) -> str:
    """What exceeds chance, what of it is confirmed, and the strongest."""
    judged = [one for one in figures.classes if one.too_few is None]
    few = len(figures.classes) - len(judged)
    rest = f" ({classes(few)} had too few images)" if few else ""
    if not judged:
        return f"No class has images enough for findings over images{rest}."
    found = [finding for one in judged for finding in one.findings]
    only = sum(len(one.under_masks) for one in judged)
    places = f"{only} place{'s' * (only > 1)} move{'s' * (only == 1)} scores under masks only"
    if not found and only:
        return (
            f"No finding in {classes(len(judged))}{rest}: {places}, and painted by "
            f"{'themselves' if only > 1 else 'itself'} could not be told from other places."
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
    return (
        f"{len(found)} finding{'s' * (len(found) > 1)} in {n_classes} of {classes(len(judged))} "
        f"exceed{'s' * (len(found) == 1)} chance, {held or 'untried as yet'}{rest}"
        f"{f', and {places}' if only else ''}; the strongest: {short(first, asked)}."
    )


def short(one: ClassFinding, asked: Asked) -> str:
    """The place, the color and the number of a finding."""
    own = f", {one.own} there in {100 * one.own_share:.0f} % of the images" if one.own else ""
    told = one.change or one.effect
    how = "painting it" if one.change else "painting it under masks"
    fill = asked.fills[one.painted[0] if one.change and one.painted else one.fill]
    return (
        f"{asked.label(one.target)!r} depends on {one.place}{own}: {how} {fill} moves the score by "
        f"{moved(told)}"
    )


def oddities(figures: Figures) -> str:
    """Images that are decided differently, and what rights mistakes."""
    whole = figures.overall
    n_unlike = sum(len(one.unlike) for one in figures.classes)
    n_looked_at = sum(one.n for one in figures.classes if one.n >= FEWEST_ALIKE)
    told = f"No image of {n_looked_at:,} is decided unlike the rest of its class"
    if not n_looked_at:
        told = "No class has images enough to tell which is decided unlike the rest"
    if n_unlike:
        first = whole.unlike[0]
        label = next(one.label for one in figures.classes if one.target == first.target)
        some = "image is decided unlike the rest of its"
        many = "images are decided unlike the rest of their"
        told = (
            f"{n_unlike} {some if n_unlike == 1 else many} class, most of all "
            f"{first.name} ({label!r}, {first.distance:.1f} times as far as usual)"
        )
    if whole.accuracy is None:
        return f"{told}; mistakes are not known, since the truth is not."
    wrong, righted = whole.mistakes["wrong"], whole.mistakes["righted"]
    if not wrong:
        return f"{told}; none of {images(whole.accuracy.n)} is decided wrongly."
    kinds = [f"{kind} {n}" for kind, n in mistakes_by_kind(whole)]
    how = f" ({', '.join(kinds)})" if kinds else ""
    return f"{told}; of {wrong} wrong ones a repaint of a finding puts {righted} right{how}."


def mistakes_by_kind(one: ClassFigures) -> list[tuple[str, int]]:
    """Most frequent first."""
    kinds = [(kind, n) for kind, n in one.mistakes.items() if kind not in ("wrong", "righted")]
    return sorted(kinds, key=lambda pair: (-pair[1], pair[0]))


# ---- the rest


def class_table(figures: Figures) -> list[str]:
    zone = next((zone for zone in OUTER if zone in figures.overall.zones), None)
    heads = ["class", "images", "right", "in gray", "color share", zone or "", "findings"]
    lines = []
    for one in (*figures.classes, figures.overall):
        confirmed = sum(finding.verdict == "confirmed" for finding in one.findings)
        found = f"{len(one.findings)} ({confirmed} confirmed)" if one.findings else ""
        cells = [
            markdown(one.label),
            str(one.n),
            *(percent(figure) if figure else "" for figure in (
                one.accuracy, one.gray, one.color_share, one.zones.get(zone or ""))),
            "too few images" if one.too_few else found,
        ]  # fmt: skip
        lines.append(cells)
    columns = [n for n, head in enumerate(heads) if head]
    rows = [heads, ["---"] * len(heads), *lines]
    return ["| " + " | ".join(row[n] for n in columns) + " |" for row in rows]


def class_details(figures: Figures) -> list[str]:
    """What was found in each class that has something to tell."""
    lines = []
    for one in figures.classes:
        told = [f"- {finding.sentence}" for finding in (*one.findings, *one.under_masks)]
        own = own_color(one)
        told += [f"- {sentence_case(own)}."] if own else []
        told += [f"- Unlike the others: {image.sentence}" for image in one.unlike]
        if told:
            lines += [f"## {markdown(one.label)}", "", *map(markdown, told), ""]
    return lines


def remarks(asked: Asked, figures: Figures) -> list[str]:
    named = f" ({asked.group})" if asked.group not in ("", "group") else ""
    over = f"groups of images{named}" if asked.group else "images"
    few = [f"{one.label} ({one.n})" for one in figures.classes if one.too_few]
    lines = [f"Brackets are 95 % intervals over {over}."]
    if figures.threshold > 0:  # not NaN
        lines[0] += (
            f" Findings exceed |z| = {figures.threshold:.1f}, which chance does in one audit of "
            "twenty, over all classes, fills and places together."
        )
    lines.append(
        f"Model: {asked.model}. Data: {asked.data}. Colors: {', '.join(asked.fills)}; "
        f"{asked.n_masks} masks an image, grid {asked.grid[0]} x {asked.grid[1]}, mask_prob "
        f"{asked.mask_prob:g}{f' ({asked.why})' if asked.why else ''}, seed {asked.seed}. "
        f"mcrise {asked.version}."
    )
    if few:
        lines.insert(0, f"Too few images for findings: {', '.join(few)}.")
    return lines


# ---- numbers


def percent(figure: Figure) -> str:
    """`85 % [82, 88]`."""
    value = f"{100 * figure.value:.0f} %"
    if figure.low != figure.low:  # NaN
        return value
    return f"{value} [{100 * figure.low:.0f}, {100 * figure.high:.0f}]"


def markdown(text: str) -> str:
    """A label or a sentence with labels, as one line that marks nothing up."""
    line = " ".join(text.split())
    for mark, harmless in {"|": "\\|", "<": "&lt;", "`": "\\`", "*": "\\*", "](": "]\\("}.items():
        line = line.replace(mark, harmless)
    return line


def moved(figure: Figure) -> str:
    """`-0.21 [-0.23, -0.19] (20 images)`."""
    return f"{figure.value:+.2g} [{figure.low:+.2g}, {figure.high:+.2g}] ({images(figure.n)})"


def images(n: int) -> str:
    return f"{n:,} image{'s' * (n != 1)}"


def classes(n: int) -> str:
    return f"{n:,} class{'es' * (n != 1)}"
