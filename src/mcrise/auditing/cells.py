"""Cells and tables of the page of an audit, as HTML."""

import html
from collections.abc import Sequence

from .sentences import images
from .statistics import Figure


def share_cell(figure: Figure | None, n: int) -> str:
    """A share in percent, its interval, both as a bar, and of how many images if not of all n."""
    if figure is None:
        return '<td data-sort="-1"><span class="none">–</span></td>'
    ends, bar = "", ""
    if figure.low == figure.low:  # not NaN
        low, high = 100 * figure.low, 100 * figure.high
        ends = f" <small>{low:.0f}–{high:.0f}</small>"
        reach = (
            f'<rect class="reach" x="{low:.1f}" y="0" width="{max(high - low, 1):.1f}" height="4"/>'
        )
        bar = (
            f'<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">{reach}'
            f'<rect x="{100 * figure.value - 0.8:.1f}" y="0" width="1.6" height="4"/></svg>'
        )
    some = f" <small>of {figure.n:,}</small>" if figure.n != n else ""
    return f'<td data-sort="{figure.value:.6f}">{100 * figure.value:.0f} %{some}{ends}{bar}</td>'


def share_of(figure: Figure | None) -> str:
    if figure is None:
        return '<td><span class="none">–</span></td>'
    ends = f"<small>{100 * figure.low:.0f}–{100 * figure.high:.0f}</small>"
    return f"<td>{short(figure)} {ends if figure.low == figure.low else ''}</td>"


def effects_table(
    title: str,
    hint: str,
    heads: Sequence[str],
    rows: dict[str, dict[str, Figure]],
    second: dict[str, str],
) -> str:
    """Effects by row and fill; `second` is what stands before them, by row."""
    if not rows:
        return ""
    most = max(abs(figure.value) for row in rows.values() for figure in row.values())
    digits = 2 if most >= 0.1 else 3
    fills = heads[1 + bool(second) :]
    cells = {
        name: [second.get(name, ""), *(effect_cell(row.get(fill), digits) for fill in fills)]
        for name, row in rows.items()
    }
    return table(title, hint, heads, cells)


def table(title: str, hint: str, heads: Sequence[str], rows: dict[str, list[str]]) -> str:
    """Cells that are HTML, by row."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in heads)
    lines = "".join(
        f'<tr><th scope="row">{text(name)}</th>{"".join(cells)}</tr>'
        for name, cells in rows.items()
    )
    return (
        f'<h3>{title}</h3><p class="hint">{hint} Bold: its 95 % interval is without zero.</p>'
        f'<div class="wide"><table class="effects"><thead><tr>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def effect_cell(figure: Figure | None, digits: int) -> str:
    if figure is None:
        return '<td><span class="none">–</span></td>'
    value = f"{figure.value:+.{digits}f}"
    if figure.low != figure.low:  # NaN
        return f"<td>{value} <small>({figure.n})</small></td>"
    reach = f"<small>{figure.low:+.{digits}f} to {figure.high:+.{digits}f}</small>"
    title = f' title="{images(figure.n)}"'
    if not figure.excludes_zero:
        return f"<td{title}>{value} {reach}</td>"
    way = "up" if figure.value > 0 else "down"
    return f'<td class="{way}"{title}><b>{value}</b> {reach}</td>'


def short(figure: Figure) -> str:
    return f"{100 * figure.value:.0f} %"


def text(words: str) -> str:
    return html.escape(words)
