"""The table of client-go's tests against ours: complete and without contradictions."""

from __future__ import annotations

import re

import pytest

from tests.parity.table import Claim, Group, Row, claims_of, complaints, covering, read_claims, read_rows

SOURCE = '''
"""Of the module.

    client-go: TestOfTheModule
"""

class TestThings:
    async def test_one_thing_is_so(self):
        """Something else first.

        client-go: TestOne, TestFirst
        client-go: TestMore.
        """

def test_none():
    """Not client-go: TestInProse, nor without a colon client-go TestOne."""
    text = "client-go: TestInAString"

def helper():
    """client-go: TestOfAHelper"""
'''


def rows(*each: Row) -> tuple[Group, ...]:
    return (Group("Things", "things_test.go", each),)


def claim(name: str, function: str = "test_one_thing_is_so") -> Claim:
    return Claim("tests/test_x.py", function, name)


def test_every_row_is_covered_or_has_a_reason_and_every_name_has_a_row() -> None:
    assert complaints(read_rows(), read_claims()) == []


def test_names_are_read_from_the_lines_of_docstrings() -> None:
    assert [(found.function, found.name) for found in claims_of(SOURCE, "tests/test_x.py")] == [
        ("the module", "TestOfTheModule"),
        ("helper", "TestOfAHelper"),
        ("test_one_thing_is_so", "TestOne"),
        ("test_one_thing_is_so", "TestFirst"),
        ("test_one_thing_is_so", "TestMore"),
    ]


@pytest.mark.parametrize("name", ["TestOne/goes_on", "TestOne/goes on", 'TestOne/"…whether it goes on when it rains"'])
def test_a_subtest_may_be_named_by_its_title(name: str) -> None:
    assert covering(Row(("TestOne/goes_on",), "One."), [claim(name)])
    assert not covering(Row(("TestTwo/goes_on", "TestOne/stops", "TestOne"), "One."), [claim(name)])


@pytest.mark.parametrize(
    ("row", "claims", "complaint"),
    [
        (Row(("TestOne",), "One."), [], "TestOne is neither covered by a test nor listed with a reason"),
        (Row(("TestOne",), "One."), [claim("TestOne", "helper")], "helper is no test and names TestOne"),
        (Row(("TestOne",), "One.", left_out="No."), [claim("TestOne")], "TestOne is covered by test_one.*its left_out"),
        (Row(("TestOne",), "One.", not_yet="it"), [claim("TestOne")], "TestOne is covered by test_one.*its not_yet"),
        (Row(("TestOne",), "One.", left_out="No.", not_yet="it"), [], "TestOne is left out and not yet there"),
        (Row(("TestOne", "TestOne"), "One.", left_out="No."), [], "TestOne is in 2 rows"),
        (Row(("TestOne",), "One."), [claim("TestOne"), claim("TestTwo")], "names 'TestTwo', which is in no row"),
    ],
)
def test_what_does_not_fit_is_said(row: Row, claims: list[Claim], complaint: str) -> None:
    found = complaints(rows(row), claims)
    assert re.search(complaint, found[0])
