"""Times as Go parses and encodes them; the messages are those of kube-apiserver v1.36."""

from __future__ import annotations

import pytest

from trioformer.testing._storage._go_times import time_problem, utc_time


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("2020-01-01", 'parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2020-01-01T00:00:00Zx", 'parsing time "2020-01-01T00:00:00Zx": extra text: "x"'),
        ("2020-13-01T00:00:00Z", 'parsing time "2020-13-01T00:00:00Z": month out of range'),
        ("2020-02-30T00:00:00Z", 'parsing time "2020-02-30T00:00:00Z": day out of range'),
        ("2020-01-01T00:60:00Z", 'parsing time "2020-01-01T00:60:00Z": minute out of range'),
        ("2020-01-01T00:00:00.5+01:00", ""),
    ],
)
def test_the_message_for_a_text_that_is_not_a_time_is_go_s(text: str, problem: str) -> None:
    assert time_problem(text, "T") == problem


def test_a_time_with_microseconds_has_six_digits() -> None:
    assert time_problem("2020-01-01T00:00:00.000001Z", "U") == ""
    assert time_problem("2020-01-01T00:00:00Z", "U").endswith('cannot parse "Z" as ".000000"')


def test_times_are_in_utc_and_lose_their_fraction_unless_they_have_microseconds() -> None:
    assert utc_time("2020-01-01T01:00:00.75+01:00", is_micro=False) == "2020-01-01T00:00:00Z"
    assert utc_time("2020-01-01T01:00:00.75+01:00", is_micro=True) == "2020-01-01T00:00:00.750000Z"
    assert utc_time("no time", is_micro=False) == "no time"
    assert utc_time("0001-01-01T00:00:00+01:00", is_micro=False) == "0001-01-01T00:00:00+01:00"
