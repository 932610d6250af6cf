"""Values of hypothesis' strategies for tests that send them to a server."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Return values of a strategy, always the same ones: a test that sends requests cannot be called for each."""
    found: list[Any] = []

    @seed(15)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found
