"""Numbers as Go prints them; the expected texts are kubectl's."""

from __future__ import annotations

import pytest
import yaml

from trioformer.cli.printing import human_duration, sprint
from trioformer.cli.printing._yaml import to_yaml


@pytest.mark.parametrize(
    ("value", "text", "in_yaml"),
    [
        (1e20, "1e+20", "1e+20"),
        (10**20, "1e+20", "1e+20"),
        (1e21, "1e+21", "1e+21"),
        (-1e19, "-1e+19", "-1e+19"),
        (1.5e300, "1.5e+300", "1.5e+300"),
        (123456789.5, "1.234567895e+08", "1.234567895e+08"),
        (1000000.5, "1.0000005e+06", "1.0000005e+06"),
        (999999.5, "999999.5", "999999.5"),
        (1234567.0, "1234567", "1234567"),
        (1e18, "1000000000000000000", "1000000000000000000"),
        (2**63 - 1, "9223372036854775807", "9223372036854775807"),
        (9223372036854776000, "9.223372036854776e+18", "9223372036854776000"),
        (0.1, "0.1", "0.1"),
        (0.0001, "0.0001", "0.0001"),
        (0.00001234, "1.234e-05", "1.234e-05"),
        (1e-7, "1e-07", "1e-07"),
        (-2.5e-5, "-2.5e-05", "-2.5e-05"),
        (0.0, "0", "0"),
        (3, "3", "3"),
        (10**400, "1e+400", "1e+400"),
        (True, "true", "true"),
    ],
)
def test_a_number_is_printed_as_by_go(value: float, text: str, in_yaml: str) -> None:
    assert sprint(value) == text
    assert to_yaml({"a": value}) == f"a: {in_yaml}\n"


@pytest.mark.parametrize("text", ["1e+20", "1e5", "1.5e-07", "-1e+19"])
def test_a_text_that_looks_like_a_number_stays_a_text(text: str) -> None:
    assert yaml.safe_load(to_yaml({"a": text})) == {"a": text}
    assert to_yaml({"a": text}) == f'a: "{text}"\n'


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (141, "2m21s"),
        (600, "10m"),
        (3 * 3600 + 60, "3h1m"),
        (47 * 3600, "47h"),
        (49 * 3600, "2d1h"),
        (100 * 86400, "100d"),
        (3 * 365 * 86400 + 86400, "3y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_an_age_has_two_units_at_most(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text
