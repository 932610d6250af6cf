"""Random writes of three managers: an embedded and a real server agree on objects, managers and conflicts."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.e2e.contract.apply_cases import Step, apply, patch, replace, run_steps, serve_widgets
from tests.e2e.workloads import make_namespace
from trioformer.client import Client

SEQUENCES: Final = 120
MORE_SEQUENCES: Final = 2_000
"""Sequences that a test sends; each is up to six writes to either server."""

_SMALL = st.sampled_from(["x", "y", "z"])
_NUMBERS = st.integers(0, 2)


def _some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


def _by_key(items: st.SearchStrategy[dict[str, Any]], *keys: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(items, max_size=3, unique_by=lambda item: tuple(item.get(key) for key in keys))


_PAIR = _some(x=_SMALL, y=_SMALL)
_ITEM = st.builds(
    lambda name, rest: {"name": name, **rest},
    _SMALL,
    _some(value=_SMALL, size=_NUMBERS, options=_PAIR, tags=st.lists(_SMALL, max_size=2, unique=True)),
)
_PORT = st.builds(
    lambda port, rest: {"port": port, **rest},
    _NUMBERS,
    _some(protocol=st.sampled_from(["TCP", "UDP"]), label=_SMALL),
)
_ANY: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 1, 1.0, 1.5, "x", "", [], {}]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_SMALL, inner, max_size=2),
    max_leaves=5,
)
SPECS = _some(
    size=_NUMBERS,
    color=_SMALL,
    nothing=st.none() | _SMALL,
    either=st.sampled_from([1, "1", 2]),
    nested=_some(a=_SMALL, b=_some(c=_NUMBERS, d=_SMALL)),
    pair=_PAIR,
    names=st.dictionaries(_SMALL, _SMALL, max_size=2),
    selector=st.dictionaries(_SMALL, _SMALL, max_size=2),
    pairs=st.dictionaries(_SMALL, _PAIR, max_size=2),
    tags=st.lists(_SMALL, max_size=3, unique=True),
    numbers=st.lists(_NUMBERS, max_size=3, unique=True),
    atoms=st.lists(_SMALL, max_size=2),
    items=_by_key(_ITEM, "name"),
    ports=_by_key(_PORT, "port", "protocol"),
    extra=st.dictionaries(_SMALL, _ANY, max_size=2),
    defaulted=_some(mode=_SMALL, other=_SMALL, more=_some(x=_NUMBERS)),
)
_BODIES = st.one_of(
    st.builds(lambda spec: {"spec": spec}, SPECS),
    st.just({}),
    st.builds(lambda labels: {"metadata": {"labels": labels}}, st.dictionaries(_SMALL, _SMALL, max_size=2)),
)
_MANAGERS = st.sampled_from(["a", "b", "c"])
_APPLIES = st.builds(
    lambda manager, body, force: apply(manager, body, force=force),
    _MANAGERS,
    _BODIES,
    st.sampled_from([False, False, True]),
)
_UPDATES = st.one_of(
    st.builds(lambda manager, spec: replace(manager, spec=spec), _MANAGERS, SPECS),
    st.builds(lambda manager, spec: patch(manager, {"spec": spec}), _MANAGERS, SPECS),
)
_STEPS = st.one_of(_APPLIES, _APPLIES, _APPLIES, _UPDATES)
_SEQUENCE = st.builds(lambda first, rest: [first, *rest], _APPLIES, st.lists(_STEPS, min_size=2, max_size=5))


def sequences(count: int, start: int) -> list[list[Step]]:
    """Return random sequences, always the same ones: a test that sends requests cannot be called for each."""
    found: list[list[Step]] = []

    @seed(start)
    @settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(_SEQUENCE)
    def collect(steps: list[Step]) -> None:
        found.append(steps)

    collect()
    return found


async def test_random_writes_have_the_same_results(both_clients: tuple[Client, Client]) -> None:
    await _compare(both_clients, SEQUENCES, 15)


@pytest.mark.long
async def test_many_random_writes_have_the_same_results(both_clients: tuple[Client, Client]) -> None:
    await _compare(both_clients, MORE_SEQUENCES, random.randrange(10_000))


async def _compare(both_clients: tuple[Client, Client], count: int, start: int) -> None:
    spaces = []
    for client in both_clients:
        await serve_widgets(client)
        spaces.append(await make_namespace(client, "random"))
    for number, steps in enumerate(sequences(count, start)):
        name = f"w{number}"
        embedded, real = [
            await run_steps(client, space, "Widget", steps, name)
            for client, space in zip(both_clients, spaces, strict=True)
        ]
        for step, one, other in zip(steps, embedded, real, strict=True):
            assert one == other, (start, steps, step)
