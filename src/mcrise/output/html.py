"""HTML to look at: the report, what a notebook shows, and what the page of an audit shares with it.

A page is one file that needs no network. Its pictures are inline, and so are the maps as 16-bit
integers, from which the numbers are read; the browser code is that of the live page. The templates
escape all they are given.
"""

import base64
import hashlib
import json
import math
import re
import shlex
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..errors import InputError
from ..estimators import DEFAULT
from ..explanation import Explanation
from ..explanation_file import versions
from ..images import downsampling_step, image_file
from ..interpretation.findings import Findings
from ..maps import Maps
from ..metrics import curve_from_json
from .figure import plot_explanation
from .figure_tests import patch_name
from .plots import Scale, drawn, figure_pixels, figure_png, patch_title, plot_curves, scale_for
from .web_maps import pack, runs, swatch

WEB = Path(__file__).parents[1] / "server" / "web"
LARGEST = 768  # pixels of a side that a report shows; of a larger picture every second and so on
SMALL = 112  # pixels of a panel in a notebook
TINY = 64  # of one in the table of contents
LITTLE = 256  # most of one in a report, where the map that is read off is as large as the picture
NOT_TESTED = "Not tested by repainting."
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
TEMPLATES.tests["bounded"] = lambda estimate: not math.isnan(estimate.low)


# ---- what all pages share


@dataclass(frozen=True)
class Asset:
    """Styles and scripts of a page, and the policy that lets nothing else act in it.

    So a label that got through as HTML could still not run.
    """

    style: str
    script: str

    @property
    def policy(self) -> str:
        return (
            f"default-src 'none'; img-src data:; style-src {digest(self.style)}; "
            f"script-src {digest(self.script)}; base-uri 'none'; form-action 'none'"
        )


def assets(styles: Sequence[str], scripts: Sequence[str]) -> Asset:
    return Asset("".join(map(web_text, styles)), one_script(*scripts))


def render_page(template: str, asset: Asset, **values: Any) -> str:
    """A page that is one file."""
    policy, style, script = asset.policy, asset.style, asset.script
    return TEMPLATES.get_template(template).render(
        policy=policy, style=style, script=script, **values
    )


def one_script(*names: str) -> str:
    """Modules of the page as one script, which needs no server to import from."""
    joined = "".join(map(web_text, names))
    return re.sub(r"^import [^;]*;$", "", joined, flags=re.M).replace("\nexport ", "\n")


def web_text(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def data_url(content: bytes, kind: str = "png") -> str:
    """A picture as the address of itself."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def picture_url(pixels: Any, most: int | None = None, kind: str = "png") -> str:
    """Pixels (H, W, 3), no side longer than `most`."""
    return data_url(image_file(pixels, most, kind), kind)


@dataclass(frozen=True)
class Panel:
    """A map as pages show it."""

    k: int
    name: str  # of the fill
    title: str
    swatch: str | None
    source: str


def draw_map(maps: Maps, k: int, scale: Scale, most: int | None = None, kind: str = "png") -> Panel:
    """Map k for a page; `map` in macros.html shows it."""
    color = swatch(maps.fills[k], maps.image) if maps.fills else None
    source = picture_url(drawn(maps, k, scale), most, kind)
    return Panel(k, maps.names[k], patch_title(maps, k), color, source)


def strongest_first(maps: Maps) -> list[int]:
    return sorted(range(len(maps.values)), key=lambda k: -float(np.abs(maps.values[k]).max()))


@dataclass(frozen=True)
class ScaleBar:
    """A color scale as pages show it: its ends in words."""

    low: str
    high: str
    source: str


def scale_bar(scale: Scale) -> ScaleBar:
    values = np.linspace(scale.low, scale.high, 160, dtype=np.float32)[None].repeat(8, 0)
    if scale.diverging:
        ends = f"lowers {scale.low:+.2g}", f"{scale.high:+.2g} raises"
    else:
        ends = f"{scale.low:.2g}", f"{scale.high:.2g}"
    return ScaleBar(*ends, picture_url(scale.colors(values)))


# ---- the report


@dataclass(frozen=True)
class Chapter:
    """One run in a report."""

    name: str  # of the picture
    explanation: Explanation
    targets: Sequence[int | str | None] = (None,)  # the top class
    metrics: Mapping[str, Any] = field(default_factory=dict)  # what metrics.json says it is worth
    folder: str = ""  # of the run, if it is not the one `explain` chooses by itself


def render(chapters: Sequence[Chapter], estimator: str = DEFAULT) -> str:
    """The report as HTML: one file that needs no network."""
    sections = [
        make_section(chapter, target, estimator)
        for chapter in chapters
        for target in chapter.targets
    ]
    return render_page(
        "report.html",
        assets(
            ["style.css", "report.css"],
            ["element.js", "maps.js", "outline.js", "stage.js", "report.js"],
        ),
        title=", ".join(dict.fromkeys(chapter.name for chapter in chapters)),
        sections=sections,
    )


@dataclass(frozen=True, eq=False)
class Section:
    """One class of one run."""

    chapter: Chapter
    maps: Maps
    findings: Findings | None  # None: not tested

    @property
    def name(self) -> str:
        return self.chapter.name

    @property
    def explanation(self) -> Explanation:
        return self.chapter.explanation

    @property
    def prediction(self) -> str:
        """What the model says of the untouched image, and the score of the class explained."""
        explanation, target = self.explanation, self.maps.target
        words = str(explanation.prediction)
        if target in (explanation.prediction.target, self.runner_up):
            return words
        return f"{words}; {explanation.label(target)} {explanation.untouched[target]:.2f}"

    @property
    def runner_up(self) -> int | None:
        second = self.explanation.prediction.runner_up
        return second.target if second else None

    @property
    def noise(self) -> str:
        return f"{self.explanation.n_masks:,} masks, {map_noise(self.maps)}"

    @property
    def first_finding(self) -> str:
        if self.findings is None:
            return NOT_TESTED
        return next((one.sentence for one in self.findings), "No finding.")

    @property
    def figure(self) -> str | None:
        """The figure that shows the tests."""
        if self.findings is None:
            return None
        picture = figure_pixels(plot_explanation(self.explanation, self.findings))
        return picture_url(picture, kind="webp")  # a fifth of a PNG, where the image is a photo

    @property
    def before(self) -> Sequence[str]:
        """What is said before the findings."""
        return self.findings.opening if self.findings else [NOT_TESTED]

    @property
    def found(self) -> list[dict[str, Any]]:
        return [
            {"runs": runs(one.region), "words": " ".join([one.sentence, *one.lines])}
            for one in self.findings or ()
        ]

    @property
    def after(self) -> list[str]:
        """What is said after the findings."""
        if self.findings is None:
            return []
        return [*self.findings.remarks, *filter(None, [self.findings.closing])]

    @property
    def tests(self) -> list[tuple[str, str, float, float, str]]:
        """What was painted to test each finding, the score before and after, and the answer."""
        return [
            (f"{one.letter}, {one.place}", patch_name(trial), one.before, trial.score,
             self.explanation.label(trial.says))
            for one in self.findings or ()
            for trial in {t.repaint.digest: t for t in (one.trial, *one.tests)}.values()
        ]  # fmt: skip

    # ---- maps

    @property
    def thumbnail(self) -> str:
        return picture_url(self.explanation.view.pixels, TINY)

    @property
    def picture(self) -> str:
        return picture_url(self.shown.image)

    @property
    def shown(self) -> Maps:
        """With as many pixels as are shown."""
        return self.maps.thinned(LARGEST)

    @property
    def swatches(self) -> str:
        shown = self.shown
        return json.dumps({fill.name: swatch(fill, shown.image) for fill in shown.fills})

    @property
    def strongest(self) -> Panel:
        return draw_map(self.shown, strongest_first(self.shown)[0], scale_for([self.maps]))

    @property
    def panels(self) -> list[Panel]:
        shown, scale = self.shown, scale_for([self.maps])
        return [draw_map(shown, k, scale, LITTLE) for k in strongest_first(shown)]

    @property
    def bar(self) -> ScaleBar:
        return scale_bar(scale_for([self.maps]))

    @property
    def hint(self) -> str:
        """How to read the maps."""
        maps = self.maps
        if not maps.diverging:
            return (
                "The mean score while a place is kept: only its differences count. "
                "Findings are those of the default maps."
            )
        what = "painting a place with that color, instead of keeping it,"
        if not maps.fills:
            what = "keeping a place, instead of painting it with any of the colors,"
        return f"Each map: what {what} does to the score, on average over masks. {maps.faint}"

    @property
    def notes(self) -> list[str]:
        every = downsampling_step(self.maps.image.shape, LARGEST)
        fewer = [f"shown here at every {every}. row and column"] if every > 1 else []
        return [*self.explanation.notes, *self.maps.notes, *fewer]

    @property
    def packed(self) -> str:
        """The maps, for the script."""
        explanation, maps = self.explanation, self.maps
        chance = explanation.chance(maps) if maps.diverging else None
        content = zlib.compress(pack(maps, explanation.plan.grid, chance), 6)
        return base64.b64encode(content).decode()

    # ---- the rest

    @property
    def curves(self) -> dict[str, Any] | None:
        """The curves of `mcrise measure`, where it was run on these maps."""
        metrics, maps = self.chapter.metrics, self.maps
        if (metrics.get("target"), metrics.get("estimator")) != (maps.target, maps.estimator):
            return None
        try:
            curves = [curve_from_json(curve) for curve in metrics["curves"]]
            assert all(np.isfinite(curve.scores).all() and curve.scores.size for curve in curves)
        except (LookupError, TypeError, ValueError, OverflowError, AssertionError, InputError):
            raise InputError(
                "The metrics.json of the run is damaged: remove it, or mcrise measure it again."
            ) from None
        picture = data_url(figure_png(plot_curves(curves)))
        return {"picture": picture, "lines": [curve.line() for curve in curves]}

    @property
    def facts(self) -> dict[str, str]:
        """How it was made."""
        explanation, plan = self.explanation, self.explanation.plan
        return {
            "model": explanation.model,
            "kind of score": explanation.kind,
            "image": f"{plan.size[0]} x {plan.size[1]} pixels",
            "colors": ", ".join(fill.name for fill in plan.fills),
            "grid": f"{plan.grid[0]} x {plan.grid[1]} cells",
            "mask probability": f"{plan.mask_prob:g}",
            "seed": str(plan.seed),
            "versions": ", ".join(
                f"{name} {number}" for name, number in (explanation.versions or versions()).items()
            ),
        }

    @property
    def command(self) -> str:
        """That repeats it."""
        explanation, plan, chapter = self.explanation, self.explanation.plan, self.chapter
        return shlex.join(
            ["mcrise", "explain", explanation.view.name or chapter.name, "--model", "SPEC",
             "--target", str(self.maps.target), "--estimator", self.maps.estimator,
             "--colors", ",".join(fill.name for fill in plan.fills),
             "--grid", f"{plan.grid[0]}x{plan.grid[1]}", "--mask-prob", f"{plan.mask_prob:g}",
             "--n-masks", str(explanation.n_masks), "--seed", str(plan.seed),
             "--batch-size", str(explanation.batch_size),
             *(["--out", chapter.folder] if chapter.folder else [])]
        )  # fmt: skip


def make_section(chapter: Chapter, target: int | str | None, estimator: str) -> Section:
    explanation = chapter.explanation
    maps = explanation.maps(target, estimator)
    tested = maps.target in explanation.trial_logs
    return Section(chapter, maps, explanation.findings_of(maps.target) if tested else None)


def map_noise(maps: Maps) -> str:
    error = maps.relative_error
    return f"map noise {100 * error:.0f}%" if math.isfinite(error) else "maps not above noise"


# ---- the notebook: small and static


def explanation_html(explanation: Explanation) -> str:
    """The figure and the sentences; the maps where nothing was tested."""
    figure, maps, lines = None, None, []
    if explanation.trial_logs:
        figure = data_url(figure_png(plot_explanation(explanation, explanation.findings)))
        lines = explanation.lines()
    elif explanation.scores:
        maps, lines = Markup(maps_html(explanation.maps())), explanation.lines()
    return TEMPLATES.get_template("notebook_explanation.html").render(
        figure=figure, maps=maps, lines=lines, about=repr(explanation)[1:-1]
    )


def maps_html(maps: Maps) -> str:
    """The image and one small panel per fill, strongest first, on one scale that is drawn."""
    scale = scale_for([maps])
    faint = f". {maps.faint}" if maps.diverging else ""
    words = (
        f"{maps.label}: {maps.n_masks:,} masks, {maps.estimator} estimator, {maps.unit} "
        f"{scale.words}{faint}"
    )
    return TEMPLATES.get_template("notebook_maps.html").render(
        label=maps.label,
        picture=picture_url(maps.image, SMALL),
        panels=[draw_map(maps, k, scale, SMALL) for k in strongest_first(maps)],
        bar=scale_bar(scale),
        width=SMALL,
        words=words,
    )
