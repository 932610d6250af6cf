"""Ages and cells of tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trioformer.cli import _printing
from trioformer.cli._printing import age_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(hours=3), "3h"),
        (timedelta(days=3), "3d"),
    ],
)
def test_an_age_has_one_unit(monkeypatch: pytest.MonkeyPatch, age: timedelta, text: str) -> None:
    monkeypatch.setattr(_printing, "now", lambda: NOW)
    assert age_of((NOW - age).isoformat()) == text


@pytest.mark.parametrize("timestamp", [None, "", "x", 5])
def test_an_age_without_a_time_is_unknown(timestamp: object) -> None:
    assert age_of(timestamp) == "<unknown>"
