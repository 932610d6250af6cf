"""Warnings of the API server: how the header is read, and what is logged."""

from __future__ import annotations

import pytest

from trioformer.transport._warnings import (
    MAX_REMEMBERED,
    ServerWarning,
    WarningLog,
    parse_warnings,
    report_warnings,
)

DATE = '"Wed, 21 Oct 2026 07:28:00 GMT"'


def test_the_header_is_read_as_rfc_7234_has_it() -> None:
    """Codes, agents, quoted texts and dates, one or several in a value.

    client-go: TestParseWarningHeader
    """
    for header, warnings in [
        ('299 - "text"', [(299, "-", "text")]),
        ('299 a,b"c "text"', [(299, 'a,b"c', "text")]),
        (r'  299 - "text\"\\\a\b\c"  "Tue, 15 Nov 1994 08:12:31 GMT" , ', [(299, "-", 'text"\\abc')]),
        (r'  299 - "text\"\\\a\b\c"  ,remainder text,second remainder', [(299, "-", 'text"\\abc')]),
        (r'  299 - "text\"\\\a\b\c"  "Tue, 15 Nov 1994 08:12:31 GMT" other', []),
        (' 299 - "Test of Iñtërnâtiônàlizætiøn,💝🐹🌇⛔" ', [(299, "-", "Test of Iñtërnâtiônàlizætiøn,💝🐹🌇⛔")]),
        ('1 - "text"', []),
        ('299 - "text"content', []),
        (r'299 - "a\\b, c\d"', [(299, "-", r"a\b, cd")]),
        (
            f'299 - "one" {DATE} , 299 - "two",199 x "three"',
            [(299, "-", "one"), (299, "-", "two"), (199, "x", "three")],
        ),
        ('299 - "one", oops, 299 - "two"', [(299, "-", "one")]),
        ("", []),
        ('29 - "text"', []),
        ('299 - "text', []),
        ('299 - "text" "date', []),
    ]:
        assert list(parse_warnings([header])) == warnings


def test_a_value_that_is_not_valid_does_not_hide_the_others() -> None:
    """The values of several headers are read one by one.

    client-go: TestParseWarningHeaders
    """
    values = ['299 - "one', '299 - "two"', "oops", '299 - "three"']
    assert [text for _, _, text in parse_warnings(values)] == ["two", "three"]


def test_a_header_of_64_kib_that_does_not_end_has_no_warning() -> None:
    for header in [
        '299 - "' + "x" * 64_000,
        '299 - "' + '\\"' * 32_000,
        '299 - "x"' + " " * 64_000 + "x",
        " " * 64_000,
    ]:
        assert list(parse_warnings([header])) == []


def reported(*headers: str) -> list[str]:
    found: list[ServerWarning] = []
    report_warnings(found.append, headers, where="get pods/web", server="https://cluster")
    return [str(warning) for warning in found]


def test_a_handler_receives_code_299_alone() -> None:
    assert reported('199 - "one", 299 - "two", 110 - "three"', '299 - ""', '299 - " "') == [
        "https://cluster: get pods/web: two"
    ]


def test_a_text_is_one_printable_line() -> None:
    assert reported('299 - "a\tb\x1b[31m\u202e"') == [r"https://cluster: get pods/web: a b\x1b[31m\u202e"]
    (long,) = reported('299 - "' + "x" * 60_000 + '"')
    assert len(long) < 4_100


def warning(text: str) -> ServerWarning:
    return ServerWarning(text=text, agent="-", where="list pods", server="https://cluster")


def test_the_texts_that_are_remembered_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    log = WarningLog()
    log(warning("first"))
    log(warning("often"))
    for number in range(MAX_REMEMBERED - 1):
        log(warning(str(number)))
        log(warning("often"))
    caplog.clear()
    log(warning("often"))
    assert caplog.records == []
    log(warning("first"))
    assert len(caplog.records) == 1
