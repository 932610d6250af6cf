"""Draws docs/images/pipe.svg: ``python docs/diagrams.py`` writes it, ``python docs/diagrams.py check`` compares it.

The drawing is committed, so that the documentation builds without a program that lays out graphs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

IMAGES = Path(__file__).parent / "images"

# x, y, width, height, name, what it does, package
Box = tuple[int, int, int, int, str, str, str]
BOXES: dict[str, Box] = {
    "server": (20, 20, 150, 56, "API server", "list and watch", ""),
    "transport": (220, 20, 150, 56, "transport", "bytes, frames", "transport/"),
    "client": (420, 20, 150, 56, "client", "objects, WatchEvents", "client/"),
    "reflector": (620, 20, 170, 56, "reflector", "list, watch, retry", "cache/reflector/"),
    "fifo": (620, 132, 170, 56, "delta FIFO", "pending changes by key", "cache/store/"),
    "loop": (620, 244, 170, 56, "process loop", "pops, stores, distributes", "cache/informer/"),
    "indexer": (420, 244, 150, 56, "indexer", "objects and indices", "cache/store/"),
    "lister": (220, 244, 150, 56, "lister", "read-only view", "cache/store/"),
    "processor": (620, 356, 170, 56, "processor", "one batch for all", "cache/processor/"),
    "buffer1": (620, 468, 170, 56, "listener buffers", "bounded, one per listener", "cache/processor/"),
    "handler": (420, 468, 150, 56, "handlers", "tasks; or async for", "cache/processor/"),
    "queue": (220, 468, 150, 56, "work queue", "keys, rate-limited", "workqueue/"),
    "reconcile": (20, 468, 150, 56, "controller", "workers: reconcile", "controller/"),
}
ARROWS: Sequence[tuple[str, str, str]] = (
    ("server", "transport", "HTTP"),
    ("transport", "client", "frames"),
    ("client", "reflector", "events"),
    ("reflector", "fifo", "Delta, Replaced"),
    ("fifo", "loop", "pop"),
    ("loop", "indexer", "write"),
    ("indexer", "lister", "read"),
    ("loop", "processor", "notifications"),
    ("processor", "buffer1", "distribute"),
    ("buffer1", "handler", "next"),
    ("handler", "queue", "enqueue"),
    ("queue", "reconcile", "take"),
)
DASHED: Sequence[tuple[str, str, str]] = (("lister", "reconcile", "get"),)
# Around what the nursery of SharedInformer.run() owns.
NURSERY = "M606 4 L806 4 L806 550 L404 550 L404 228 L606 228 Z"
WIDTH, HEIGHT = 820, 564

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1c2733; }
  .small { font-size: 11px; fill: #4a5866; }
  .label { font-size: 11px; fill: #3c6e9e; }
  .box { fill: #eef4fa; stroke: #3c6e9e; stroke-width: 1.4; }
  .task { fill: #dcebdc; stroke: #3d7a43; }
  .group { fill: none; stroke: #3d7a43; stroke-dasharray: 6 4; }
  .line { fill: none; stroke: #3c6e9e; stroke-width: 1.4; }
  .dash { stroke-dasharray: 4 4; }
"""
HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" fill="#3c6e9e"/></marker></defs>'
)
TASKS = {"reflector", "loop", "handler", "reconcile"}


def ends(start: Box, end: Box) -> tuple[int, int, int, int]:
    """Where an arrow leaves one box and meets another: at facing sides."""
    x, y, width, height = start[:4]
    to_x, to_y, to_width, to_height = end[:4]
    if y == to_y:
        leaves = x + width if to_x > x else x
        meets = to_x if to_x > x else to_x + to_width
        return leaves, y + height // 2, meets, to_y + to_height // 2
    middle = x + width // 2
    return middle, y + height, middle if x == to_x else to_x + to_width // 2, to_y


def arrow(start: str, end: str, label: str, *, dashed: bool = False) -> str:
    x, y, to_x, to_y = ends(BOXES[start], BOXES[end])
    style = "line dash" if dashed else "line"
    parts = [f'<path class="{style}" d="M{x} {y} L{to_x} {to_y}" marker-end="url(#head)"/>']
    if y == to_y:
        at = f'x="{(x + to_x) // 2}" y="{y - 6}" text-anchor="middle"'
    else:
        at = f'x="{(x + to_x) // 2 + 8}" y="{(y + to_y) // 2 + 4}"'
    parts.append(f'<text class="label" {at}>{escape(label)}</text>')
    return "\n".join(parts)


def box(name: str) -> str:
    x, y, width, height, title, what, package = BOXES[name]
    middle = x + width // 2
    style = "box task" if name in TASKS else "box"
    parts = [
        f'<rect class="{style}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>',
        f'<text x="{middle}" y="{y + 20}" text-anchor="middle" font-weight="600">{escape(title)}</text>',
        f'<text class="small" x="{middle}" y="{y + 35}" text-anchor="middle">{escape(what)}</text>',
    ]
    if package:
        parts.append(f'<text class="small" x="{middle}" y="{y + 49}" text-anchor="middle">{escape(package)}</text>')
    return "\n".join(parts)


def pipe() -> str:
    """Draw the data path."""
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>The data path from the API server to a controller</title>",
        f"<style>{STYLE}</style>",
        HEAD,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<path class="group" d="{NURSERY}"/>',
        '<text class="small" x="414" y="543">owned by the nursery of SharedInformer.run()</text>',
        *(arrow(*each) for each in ARROWS),
        *(arrow(*each, dashed=True) for each in DASHED),
        *(box(name) for name in BOXES),
        f'<text class="small" x="20" y="{HEIGHT - 8}">green: runs in tasks; blue: no task of its own</text>',
        "</svg>",
    ]
    return "\n".join(body) + "\n"


DRAWINGS = {"pipe.svg": pipe}


def outdated() -> list[str]:
    """Names of the drawings that are not what this program draws."""
    return [
        name for name, draw in DRAWINGS.items() if not (IMAGES / name).exists() or (IMAGES / name).read_text() != draw()
    ]


def main(arguments: Sequence[str]) -> int:
    if arguments == ["check"]:
        for name in outdated():
            print(f"docs/images/{name} is outdated: run python docs/diagrams.py", file=sys.stderr)
        return 1 if outdated() else 0
    for name, draw in DRAWINGS.items():
        (IMAGES / name).write_text(draw())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
