"""The words that lint keeps out."""

from __future__ import annotations

import pytest

from tests.project.words import PHRASES, findings_in


def test_a_phrase_is_found_with_its_line_and_the_better_word() -> None:
    found = list(findings_in("a\nThe version is none.\n", "docs/a.rst"))
    assert [str(each) for each in found] == ["docs/a.rst:2: 'is none': write 'is not a valid …'"]


def test_phrases_are_found_in_names_and_in_any_case() -> None:
    found = list(findings_in("def test_a_front_door() -> None: ...\nMailbox\n", "a.py"))
    assert [(each.line, each.phrase) for each in found] == [(1, "front door"), (2, "Mailbox")]


@pytest.mark.parametrize("line", ["if error is None:", "its own handler", "nonetheless"])
def test_what_only_looks_like_a_phrase_is_not_found(line: str) -> None:
    assert list(findings_in(line, "a.py")) == []


def test_every_phrase_has_a_better_word() -> None:
    assert all(PHRASES.values())
