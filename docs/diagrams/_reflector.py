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
    return drawing("reflector", ALT, 1050, 950, [*body, *lines("small", 20, 926, notes, "start")])
