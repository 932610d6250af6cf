"""The fuzzers by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .engine import Fuzzer
from .lists import Lists
from .messages import Messages
from .server import Server
from .statuses import Statuses
from .watches import Watches

FUZZERS: Mapping[str, type[Fuzzer[Any]]] = {each.name: each for each in (Lists, Watches, Statuses, Messages, Server)}
INPUTS: Mapping[str, int] = {
    "lists": 30_000,
    "watches": 30_000,
    "statuses": 20_000,
    "messages": 20_000,
    "server": 2_000,  # of ten requests each
}
"""How many inputs of each a long run has."""
LONG_SEED = 1
"""The seed of a long run."""


def cases_of(name: str) -> Iterator[tuple[str, Any]]:
    """Make the inputs in the corpus of a fuzzer, each with its name."""
    cases: Mapping[str, Callable[[], Any]] = importlib.import_module(f"tests.fuzz.corpus.{name}").CASES
    for label, make in cases.items():
        yield label, make()
