"""The states of the reflector, from its table of transitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from trioformer._retry import Outcome, Wait
from trioformer.cache.reflector._states import TRANSITIONS, WATCHES, State

from ._shapes import drawing, lines, wrap

ALT = "The states of the reflector, and the outcomes of requests that lead from one to another"

# x, y, width, height
STATE_BOXES: dict[State, tuple[int, int, int, int]] = {
    State.WATCH_LIST: (110, 20, 270, 110),
    State.LIST: (660, 20, 270, 110),
    State.LIST_NEWEST: (660, 230, 270, 110),
    State.WATCH: (110, 430, 870, 84),
    State.RESUME: (250, 590, 670, 98),
}


class Route(NamedTuple):
    """The corners of an arrow, and where its label is."""

    path: str
    label: tuple[int, int]
    columns: int = 30
    anchor: str = "start"


# An arrow for each pair of states; a pair that is missing here, or that the table does not have, is an error.
ROUTES: dict[tuple[State, State], Route] = {
    (State.WATCH_LIST, State.LIST): Route("M380 50 H660", (392, 42)),
    (State.WATCH_LIST, State.LIST_NEWEST): Route("M320 130 V285 H660", (328, 278)),
    (State.WATCH_LIST, State.WATCH): Route("M180 130 V430", (188, 290), 20),
    (State.LIST, State.LIST_NEWEST): Route("M760 130 V230", (768, 184), 30),
    (State.LIST, State.WATCH): Route("M930 90 H960 V430", (954, 390), 12, "end"),
    (State.LIST_NEWEST, State.WATCH): Route("M760 340 V430", (768, 390), 12),
    (State.WATCH, State.RESUME): Route("M400 514 V590", (408, 536), 44),
    (State.WATCH, State.LIST): Route("M560 430 V100 H660", (552, 180), 18, "end"),
    (State.RESUME, State.WATCH): Route("M780 590 V514", (788, 556)),
    (State.RESUME, State.LIST): Route("M920 640 H1030 V60 H930", (1024, 620), 20, "end"),
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
        wait, following = steps[State.LIST].wait, {step.state for step in steps.values()}
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
        body.append(f'<path class="line" d="{route.path}" marker-end="url(#head-reflector)"/>')
        body += lines("label", *route.label, wrap(between[pair], route.columns), route.anchor)
    for state in State:
        body += state_box(state, between.get((state, state), []))
    everywhere = "; ".join(f"{outcome.name} → {text}" for outcome, text in in_every_state().items())
    notes = [
        f"in every state: {everywhere}",
        "green: requests a watch; ↻: the same state again; after each colon: the wait",
    ]
    return drawing("reflector", ALT, 1050, 740, [*body, *lines("small", 20, 716, notes, "start")])
