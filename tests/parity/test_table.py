"""The table of client-go's tests against ours: complete and without contradictions."""

from __future__ import annotations

import re

import pytest

from tests.parity.table import Claim, Group, Row, claims_of, complaints, counts, covering, read_claims, read_rows, table

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


def test_every_row_says_in_a_sentence_what_is_asserted() -> None:
    each = [row for group in read_rows() for row in group.rows]
    assert [row.name for row in each if not (row.asserts[:1].isupper() and row.asserts.endswith("."))] == []
    assert [row.name for row in each if row.left_out and not row.left_out.endswith(".")] == []
    assert [row.name for row in each if row.differs and not row.differs.endswith(".")] == []
    assert [row.name for row in each if row.not_yet.endswith(".")] == []


def test_names_are_read_from_the_lines_of_docstrings() -> None:
    assert [(found.function, found.name) for found in claims_of(SOURCE, "tests/test_x.py")] == [
        ("the module", "TestOfTheModule"),
        ("helper", "TestOfAHelper"),
        ("test_one_thing_is_so", "TestOne"),
        ("test_one_thing_is_so", "TestFirst"),
        ("test_one_thing_is_so", "TestMore"),
    ]


def test_a_test_that_names_a_row_twice_covers_it_once() -> None:
    row = Row(("TestOne", "TestFirst"), "One.")
    assert covering(row, [claim("TestOne"), claim("TestFirst")]) == [claim("TestFirst")]


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


def test_the_table_shows_and_counts_the_three_kinds_of_rows() -> None:
    groups = rows(
        Row(("TestOne", "TestFirst"), "One thing is so.", differs="A little."),
        Row(("TestTwo",), "Another is."),
        Row(("TestThree",), "A third is.", left_out="It is not."),
        Row(("TestFour",), "A fourth is.", not_yet="the fourth"),
    )
    claims = [claim("TestFirst"), claim("TestTwo")]
    assert counts(groups, claims) == {"covered": 2, "left out": 1, "not yet": 1}
    shown = table(groups, claims)
    for part in (
        "Things\n~~~~~~\n",
        "``things_test.go``: 2 covered, 1 left out, 1 not yet.",
        "   * - | ``TestOne``\n       | ``TestFirst``\n     - One thing is so.\n",
        "     - - one thing is so (``tests/test_x.py``)\n\n       *Differs.* A little.\n",
        "     - *Left out.* It is not.\n",
        "     - *Not yet*; comes with the fourth.\n",
    ):
        assert part in shown
