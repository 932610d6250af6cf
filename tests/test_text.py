"""Text of servers and tenants becomes one printable line of bounded length."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer._text import LONGEST, one_line

ESCAPES = "\x1b[2J\x1b]0;owned\x07"
BIDI = "\u202e\u2066\u200f\u061c"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("nodes are not found", "nodes are not found"),
        ("größe 🦑 名前", "größe 🦑 名前"),
        (" a\n b\r\n\tc\u2028d\u2029e\x85f\xa0g\x1ch ", "a b c d e f g h"),
        (f"a{ESCAPES}b", r"a\x1b[2J\x1b]0;owned\x07b"),
        (f"a{BIDI}b", r"a\u202e\u2066\u200f\u061cb"),
        ("a\x00b\x7fc\x9bd", r"a\x00b\x7fc\x9bd"),
        ("a\ud800b\udcffc", r"a\ud800b\udcffc"),
        ("a\u200bb\ufeffc\U000e0041", r"a\u200bb\ufeffc\U000e0041"),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, line: str) -> None:
    assert one_line(text) == line


@given(st.text(st.one_of(st.sampled_from("\\'\"x\x1b \n\u202e"), st.characters())))
def test_only_what_is_not_printable_is_changed(text: str) -> None:
    plain = " ".join(text.split())
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)
    assert one_line(text) == escaped


def test_every_character_becomes_a_part_of_one_line() -> None:
    line = one_line("".join(map(chr, range(0x110000))), longest=20_000_000)
    assert line.isprintable()
    assert len(line.splitlines()) == 1
    line.encode()
    assert {unicodedata.category(char) for char in line} & {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"} == set()


@pytest.mark.parametrize("char", ["x", "x ", "\x1b", "\U000e0041", " ", "\n"])
@pytest.mark.parametrize("size", [LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST + 1, 300_000])
def test_a_long_text_is_cut_and_says_how_long_it_was(char: str, size: int) -> None:
    text = "begin" + char * size
    line = one_line(text)
    assert len(line) <= LONGEST
    assert line.startswith("begin")
    assert one_line(line) == line
    if len(line) == LONGEST and char != "x":
        assert line.endswith(f"… ({len(text)} characters)")


def test_only_a_text_that_is_too_long_is_cut() -> None:
    assert one_line("x" * LONGEST) == "x" * LONGEST
    assert one_line("x" * (LONGEST + 1)).endswith(f"x… ({LONGEST + 1} characters)")
    assert one_line("a" + " " * 20_000 + "b") == "a… (20002 characters)"
    assert one_line("x" * 50, longest=40) == "x" * 23 + "… (50 characters)"
