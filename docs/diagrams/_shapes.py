"""Boxes, arrows and texts.  The colours are in docs/_static/trioformer.css: they follow the theme, light or dark.

A drawing for phones is at most 370 units wide, so that its texts are readable there.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

PHONE = 370
"""The width of a drawing that needs no scrolling on a phone."""


class Box(NamedTuple):
    """Where something is, and what it says."""

    x: int
    y: int
    width: int
    height: int
    title: str
    texts: tuple[str, ...] = ()
    style: str = "box"
    page: str = ""
    """The page of the documentation that a click opens."""


def lines(style: str, x: int, y: int, texts: Iterable[str], anchor: str = "middle") -> list[str]:
    """Return a text of several lines."""
    return [
        f'<text class="{style}" x="{x}" y="{y + 14 * index}" text-anchor="{anchor}">{escape(text)}</text>'
        for index, text in enumerate(texts)
    ]


def wrap(texts: Iterable[str], columns: int) -> list[str]:
    """Return lines of at most this length."""
    return [line for text in texts for line in textwrap.wrap(text, columns, break_long_words=False)]


def show(box: Box) -> str:
    """Return a rectangle with its title and its texts, as a link if it has a page."""
    middle = box.x + box.width // 2
    parts = [
        f'<rect class="{box.style}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6"/>',
        *lines("title", middle, box.y + 20, [box.title]),
        *lines("small", middle, box.y + 36, box.texts),
    ]
    inside = "\n".join(parts)
    return f'<a href="page:{box.page}">{inside}</a>' if box.page else inside


def line(name: str, path: str, label: Iterable[str] = (), at: tuple[int, int] = (0, 0), anchor: str = "middle") -> str:
    """Return an arrow along a path, and what is written beside it; ``name`` is that of the drawing."""
    arrow = f'<path class="line" d="{path}" marker-end="url(#head-{name})"/>'
    return "\n".join([arrow, *lines("label", *at, label, anchor)])


def drawing(name: str, alt: str, width: int, height: int, body: Iterable[str]) -> str:
    """Return a whole drawing.

    It has neither a ``title`` nor styles of its own: the script that marks the words of a search fails in them.
    """
    head = (
        f'<defs><marker id="head-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    )
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    root = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(alt)}>'
    return "\n".join([root, head, *body, "</svg>"]) + "\n"
