"""The tables of docs/design/recovery.rst, from the code that they describe; the documentation's build puts them in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from trioformer._retry import Outcome, Wait, _outcomes, _pacing
from trioformer.cache.reflector import _states
from trioformer.cache.reflector._states import TRANSITIONS, State, Step
from trioformer.watchtools import _resuming_watch
from trioformer.watchtools._resuming_watch import RETRIES

SOURCES = (_outcomes, _pacing, _states, _resuming_watch)
"""The modules that the tables describe."""

NOT_REPORTED = "no"


def list_table(widths: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in (header, *rows):
        lines += [f"   {'-' if index else '* -'} {cell}".replace("   -", "     -") for index, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def code(names: Iterable[str]) -> str:
    return ", ".join(f"``{name}``" for name in names)


def states() -> str:
    """What each state requests."""
    return list_table(
        "25 75", ("state", "what the reflector requests next"), ((code([s.name]), s.value) for s in State)
    )


def outcomes() -> str:
    """How a request can end."""
    return list_table("20 80", ("outcome", "how a request ended"), ((code([o.name]), o.value) for o in Outcome))


def waits() -> str:
    """What is waited for before a request."""
    return list_table("20 80", ("wait", "before the next request"), ((code([w.name]), w.value) for w in Wait))


def transitions() -> str:
    """What follows each outcome in each state; outcomes with the same step are one row."""
    groups: dict[tuple[State, Step], list[str]] = defaultdict(list)
    for state in State:
        for outcome in Outcome:
            if (state, outcome) in TRANSITIONS:
                groups[state, TRANSITIONS[state, outcome]].append(outcome.name)
    rows = [
        (
            code([state.name]),
            code(names),
            code([step.state.name]),
            code([step.wait.name]),
            "yes" if step.is_reported else NOT_REPORTED,
        )
        for (state, step), names in groups.items()
    ]
    return list_table("22 34 24 12 8", ("state", "outcome", "next state", "wait", "reported"), rows)


def retries() -> str:
    """What the resuming watch retries."""
    raised = [outcome.name for outcome in Outcome if outcome not in RETRIES and outcome in RAISED]
    rows = [(code([outcome.name]), code([wait.name])) for outcome, wait in RETRIES.items()]
    return list_table("60 40", ("outcome", "wait before the next watch"), [*rows, (code(raised), "raised")])


RAISED = (Outcome.UNAVAILABLE, Outcome.REJECTED, Outcome.DENIED)
"""What a watch without a list can end with, and a resuming watch does not retry."""

PLACES = {
    ".. recovery-states": states,
    ".. recovery-outcomes": outcomes,
    ".. recovery-waits": waits,
    ".. recovery-transitions": transitions,
    ".. recovery-retries": retries,
}
"""Where the tables are in the page."""
