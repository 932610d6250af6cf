"""Patterns of schemas are Go's: what Python writes in another way, and what Go does not compile."""

from __future__ import annotations

import pytest

from trioformer.testing._storage._patterns import compiled, go_problem


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("^a$", "a\n", False),
        ("(?m)^a$", "a\nb", True),
        (r"^a\z", "a", True),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:alpha:]]+$", "ab1", False),
        ("^[^[:digit:]]$", "a", True),
        (r"^\d+$", "٣", False),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern: str, text: str, is_found: bool) -> None:
    found = compiled(pattern)
    assert found is not None
    assert (found.search(text) is not None) is is_found
    assert go_problem(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("[a", "missing closing ]: `[a`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)b", "invalid or unsupported Perl syntax: `(?<=`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        ("[[:colour:]]", "invalid character class range: `[:colour:]`"),
    ],
)
def test_a_pattern_that_go_does_not_compile_has_its_error(pattern: str, problem: str) -> None:
    assert go_problem(pattern) == f"error parsing regexp: {problem}"


@pytest.mark.parametrize("pattern", [r"\p{L}", "a{2,1}{3}", "(?P<a>x)(?P<a>y)"])
def test_a_pattern_that_only_python_does_not_compile_is_not_checked(pattern: str) -> None:
    assert compiled(pattern) is None
    assert go_problem(pattern) == ""
