"""Cells and tables of the page of an audit, as HTML."""

import html
from collections.abc import Sequence

from .stats import Estimate
from .text import images


def share_cell(estimate: Estimate | None, n: int) -> str:
    """A share in percent, its interval, both as a bar, and of how many images if not of all n."""
    if estimate is None:
        return '<td data-sort="-1"><span class="none">–</span></td>'
    ends, bar = "", ""
    if estimate.low == estimate.low:  # not NaN
        low, high = 100 * estimate.low, 100 * estimate.high
        ends = f" <small>{low:.0f}–{high:.0f}</small>"
        reach = (
            f'<rect class="reach" x="{low:.1f}" y="0" width="{max(high - low, 1):.1f}" height="4"/>'
        )
        bar = (
            f'<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">{reach}'
            f'<rect x="{100 * estimate.value - 0.8:.1f}" y="0" width="1.6" height="4"/></svg>'
        )
    some = f" <small>of {estimate.n:,}</small>" if estimate.n != n else ""
    return (
        f'<td data-sort="{estimate.value:.6f}">{100 * estimate.value:.0f} %{some}{ends}{bar}</td>'
    )


def share_of(estimate: Estimate | None) -> str:
    if estimate is None:
        return '<td><span class="none">–</span></td>'
    ends = f"<small>{100 * estimate.low:.0f}–{100 * estimate.high:.0f}</small>"
    return f"<td>{short(estimate)} {ends if estimate.low == estimate.low else ''}</td>"


def effects_table(
    title: str,
    hint: str,
    heads: Sequence[str],
    rows: dict[str, dict[str, Estimate]],
    second: dict[str, str],
) -> str:
    """Effects by row and fill; `second` is what stands before them, by row."""
    if not rows:
        return ""
    most = max(abs(estimate.value) for row in rows.values() for estimate in row.values())
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


def effect_cell(estimate: Estimate | None, digits: int) -> str:
    if estimate is None:
        return '<td><span class="none">–</span></td>'
    value = f"{estimate.value:+.{digits}f}"
    if estimate.low != estimate.low:  # NaN
        return f"<td>{value} <small>({estimate.n})</small></td>"
    reach = f"<small>{estimate.low:+.{digits}f} to {estimate.high:+.{digits}f}</small>"
    title = f' title="{images(estimate.n)}"'
    if not estimate.excludes_zero:
        return f"<td{title}>{value} {reach}</td>"
    way = "up" if estimate.value > 0 else "down"
    return f'<td class="{way}"{title}><b>{value}</b> {reach}</td>'


def short(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.0f} %"


def text(words: str) -> str:
    return html.escape(words)
