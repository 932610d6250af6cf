"""Draws the images of the documentation: ``python docs/diagrams.py`` writes them, ``… check`` compares them.

- docs/images/pipe.svg: the data path, from the lists below
- docs/images/reflector.svg: the states of the reflector, from its table of transitions

The drawings are committed, so that the documentation builds without a program that lays out graphs.
"""

from __future__ import annotations

import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from trioformer._retry import Outcome, Wait
from trioformer.cache.reflector._states import TRANSITIONS, WATCHES, State

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


def drawing(title: str, width: int, height: int, body: Iterable[str]) -> str:
    """Return a whole picture."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        HEAD,
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *body,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def pipe() -> str:
    """Draw the data path."""
    body = [
        f'<path class="group" d="{NURSERY}"/>',
        '<text class="small" x="414" y="543">owned by the nursery of SharedInformer.run()</text>',
        *(arrow(*each) for each in ARROWS),
        *(arrow(*each, dashed=True) for each in DASHED),
        *(box(name) for name in BOXES),
        f'<text class="small" x="20" y="{HEIGHT - 8}">green: runs in tasks; blue: no task of its own</text>',
    ]
    return drawing("The data path from the API server to a controller", WIDTH, HEIGHT, body)


# --- the states of the reflector ---

# x, y, width, height
STATE_BOXES: dict[State, tuple[int, int, int, int]] = {
    State.CHOOSE: (250, 20, 230, 80),
    State.WATCH_LIST: (250, 160, 230, 84),
    State.WATCH_LIST_AGAIN: (250, 320, 230, 84),
    State.WATCH_LIST_NEWEST: (250, 480, 230, 84),
    State.LIST: (690, 160, 230, 98),
    State.LIST_NEWEST: (690, 480, 230, 84),
    State.WATCH: (110, 650, 870, 84),
    State.RESUME: (250, 800, 670, 98),
}


class Route(NamedTuple):
    """The corners of an arrow, and where its label is."""

    path: str
    label: tuple[int, int]
    columns: int = 30
    anchor: str = "start"


# An arrow for each pair of states; a pair that is missing here, or that the table does not have, is an error.
ROUTES: dict[tuple[State, State], Route] = {
    (State.CHOOSE, State.WATCH_LIST): Route("M365 100 V160", (373, 134)),
    (State.WATCH_LIST, State.CHOOSE): Route("M280 160 V100", (272, 134), 30, "end"),
    (State.CHOOSE, State.LIST): Route("M480 60 H805 V160", (500, 52)),
    (State.LIST, State.WATCH): Route("M920 210 H950 V650", (956, 340), 12),
    (State.LIST, State.LIST_NEWEST): Route("M830 258 V480", (838, 350), 12),
    (State.LIST_NEWEST, State.WATCH): Route("M870 564 V650", (862, 612), 30, "end"),
    (State.WATCH_LIST, State.WATCH): Route("M250 190 H150 V650", (244, 170), 12, "end"),
    (State.WATCH_LIST_AGAIN, State.WATCH): Route("M250 350 H150 V650", (224, 330), 12, "end"),
    (State.WATCH_LIST_NEWEST, State.WATCH): Route("M250 540 H150 V650", (244, 520), 12, "end"),
    (State.WATCH_LIST, State.LIST): Route("M480 190 H690", (492, 166)),
    (State.WATCH_LIST_AGAIN, State.LIST): Route("M480 350 H720 V258", (492, 312)),
    (State.WATCH_LIST_NEWEST, State.LIST): Route("M480 500 H590 V430 H760 V258", (596, 448), 30),
    (State.WATCH_LIST, State.WATCH_LIST_AGAIN): Route("M365 244 V320", (373, 286)),
    (State.WATCH_LIST, State.WATCH_LIST_NEWEST): Route("M250 225 H230 V500 H250", (224, 270), 12, "end"),
    (State.WATCH_LIST_AGAIN, State.WATCH_LIST_NEWEST): Route("M365 404 V480", (373, 446)),
    (State.WATCH_LIST_NEWEST, State.LIST_NEWEST): Route("M480 540 H690", (492, 560)),
    (State.WATCH, State.RESUME): Route("M400 734 V800", (408, 756), 44),
    (State.WATCH, State.CHOOSE): Route("M110 690 H30 V60 H250", (38, 90), 16),
    (State.WATCH, State.LIST_NEWEST): Route("M720 650 V564", (712, 632), 30, "end"),
    (State.RESUME, State.WATCH): Route("M700 800 V734", (708, 770)),
    (State.RESUME, State.CHOOSE): Route("M250 850 H30 V60 H250", (38, 866), 34),
    (State.RESUME, State.LIST_NEWEST): Route("M920 850 H1030 V520 H920", (1024, 790), 12, "end"),
}


def words(wait: Wait) -> str:
    return "immediately" if wait is Wait.NONE else wait.name.lower().replace("_", " ")


def in_every_state() -> dict[Outcome, str]:
    """What follows the outcomes that have the same successor and wait in every state; they have no arrows."""
    found = {}
    for outcome in Outcome:
        steps = {state: TRANSITIONS[state, outcome] for state in State if (state, outcome) in TRANSITIONS}
        if len(steps) < len(State) or len({step.wait for step in steps.values()}) > 1:
            continue
        wait, following = steps[State.CHOOSE].wait, {step.state for step in steps.values()}
        if len(following) == 1:
            found[outcome] = f"{following.pop().name}, {words(wait)}"
        elif all(state is step.state for state, step in steps.items()):
            found[outcome] = f"the same state, {words(wait)}"
    return found


def outcomes_between() -> dict[tuple[State, State], list[str]]:
    """A line for each wait between two states: the outcomes, and the wait."""
    names: dict[tuple[State, State], dict[Wait, list[str]]] = defaultdict(lambda: defaultdict(list))
    left_out = in_every_state()
    for (state, outcome), step in TRANSITIONS.items():
        if outcome not in left_out:
            names[state, step.state][step.wait].append(outcome.name)
    return {
        pair: [f"{', '.join(outcomes)}: {words(wait)}" for wait, outcomes in waits.items()]
        for pair, waits in names.items()
    }


def lines(style: str, x: int, y: int, texts: Iterable[str], anchor: str = "middle") -> list[str]:
    return [
        f'<text class="{style}" x="{x}" y="{y + 14 * index}" text-anchor="{anchor}">{escape(text)}</text>'
        for index, text in enumerate(texts)
    ]


def wrap(texts: Iterable[str], columns: int) -> list[str]:
    return [line for text in texts for line in textwrap.wrap(text, columns, break_long_words=False)]


def state_box(state: State, again: Sequence[str]) -> list[str]:
    """Draw a state, with the outcomes that lead back to it."""
    x, y, width, height = STATE_BOXES[state]
    style, middle = "box task" if state in WATCHES else "box", x + width // 2
    columns = width // 6
    return [
        f'<rect class="{style}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>',
        f'<text x="{middle}" y="{y + 20}" text-anchor="middle" font-weight="600">{state.name}</text>',
        *lines(
            "small", middle, y + 36, [*wrap([state.value], columns), *wrap((f"↻ {each}" for each in again), columns)]
        ),
    ]


def reflector() -> str:
    """Draw the states of the reflector, and what leads from one to another."""
    between = outcomes_between()
    if wrong := set(ROUTES) ^ {(start, end) for start, end in between if start is not end}:
        raise KeyError(f"ROUTES and TRANSITIONS differ in {sorted((start.name, end.name) for start, end in wrong)}")
    body = []
    for pair, route in ROUTES.items():
        body.append(f'<path class="line" d="{route.path}" marker-end="url(#head)"/>')
        body += lines("label", *route.label, wrap(between[pair], route.columns), route.anchor)
    for state in State:
        body += state_box(state, between.get((state, state), []))
    everywhere = "; ".join(f"{outcome.name} → {text}" for outcome, text in in_every_state().items())
    notes = [
        f"in every state: {everywhere}",
        "green: requests a watch; ↻: the same state again; after each colon: the wait",
    ]
    return drawing("The states of the reflector", 1050, 950, [*body, *lines("small", 20, 926, notes, "start")])


DRAWINGS = {"pipe.svg": pipe, "reflector.svg": reflector}


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
