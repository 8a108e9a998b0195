"""Pieces of HTML: escaped text, tables, bars. Every text of the user's passes through `text`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from numbers import Integral, Real
from typing import Any

import numpy as np


def text(value: Any) -> str:
    """Any value as text that is safe in HTML, in attributes too."""
    return escape(str(value), quote=True)


def shortened(value: Any, most: int = 15) -> str:
    """A name without its middle if it is long: names often differ at their ends. It is not yet escaped."""
    name = str(value)
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half].rstrip()}…{name[-half:].lstrip()}"


def name_of(value: Any, most: int = 15) -> str:
    """A name, shortened where it is long; the whole name is its title."""
    name = str(value)
    return (
        text(name)
        if len(name) <= most
        else f'<span title="{text(name)}">{text(shortened(name, most))}</span>'
    )


def number(value: Any, digits: int = 4) -> str:
    """A number as it is read: whole ones with commas, others with some digits; other values as text."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return text(value)
    if isinstance(value, Integral):
        return f"{int(value):,}"
    value = float(value)
    if not np.isfinite(value):
        return {"inf": "∞", "-inf": "−∞"}.get(str(value), "–")
    return f"{value:.{digits}g}".replace("-", "−")


def counted(n: int, noun: str) -> str:
    """Such as: 1 row, 2 rows."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def percent(share: float, digits: int = 1) -> str:
    """A share in percent."""
    return f"{100 * share:.{digits}f} %" if np.isfinite(share) else "–"


def paragraph(content: str, kind: str = "") -> str:
    """A paragraph of HTML."""
    return f'<p class="{kind}">{content}</p>' if kind else f"<p>{content}</p>"


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    marked: Sequence[bool] = (),
    kind: str = "",
) -> str:
    """A table that scrolls in its own box; cells are HTML, the first of a row is its heading."""
    lines = []
    for k, (first, *rest) in enumerate(rows):
        mark = ' class="marked"' if len(marked) and marked[k] else ""
        cells = "".join(f"<td>{cell}</td>" for cell in rest)
        lines.append(f'<tr{mark}><th scope="row">{first}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col">{name}</th>' for name in head)
    top = f"<thead><tr>{heads}</tr></thead>" if any(head) else ""
    return boxed(caption, f"{top}<tbody>{''.join(lines)}</tbody>", kind)


def boxed(caption: str, content: str, kind: str) -> str:
    """A table in a box that scrolls; its caption stays in place."""
    name = text(caption)
    return (
        f'<p class="caption">{name}</p><div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        f'<table class="{kind}" aria-label="{name}">{content}</table></div>'
    )


def bar(share: float, label: str, second: float = 0.0) -> str:
    """A bar with its label; a part of it, `second`, is hatched."""
    share, second = (min(max(float(part), 0.0), 1.0) for part in (share, second))
    inner = f'<i style="width:{100 * second:.2f}%"></i>' if second else ""
    return (
        f'<span class="bar" aria-hidden="true"><b style="width:{100 * share:.2f}%"></b>{inner}</span>'
        f'<span class="of-bar">{label}</span>'
    )


def tiles(values: Sequence[tuple[str, str, str]]) -> str:
    """Main figures in large type: name, value, and a remark."""
    return '<dl class="tiles">' + "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd><dd class=\"remark\">{remark}</dd></div>"
        for name, value, remark in values
    ) + "</dl>"  # fmt: skip


def picture(svg: str, caption: str) -> str:
    """A figure with its caption."""
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"
