"""The messages of ``docs/howto/troubleshooting.rst`` are those of the library."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/howto/troubleshooting.rst"
ENTRY = re.compile(r"^(\S.*)\n   (\S.*(?:\n   \S.*)*)", re.MULTILINE)
"""A definition: the message or the symptom, and the lines below it."""
WRITTEN = re.compile(r"(?:%[-+#0]*[.\d]*[a-z])|…")
"""A value in a log line, or in a message of the page."""
STATUS = re.compile(r" \(HTTP \d+, (\w+)\)$")
"""The end of an error of the API server."""


def entries() -> list[tuple[str, str]]:
    return [(term, text) for term, text in ENTRY.findall(PAGE.read_text()) if not term.startswith("..")]


def messages() -> list[str]:
    return [term[2:].removesuffix("``") for term, _ in entries() if term.startswith("``")]


@functools.cache
def texts_of_the_library() -> str:
    """Return every piece of text in the code, values left out, a line for each."""
    return "\n".join(piece for path in sorted((ROOT / "trioformer").rglob("*.py")) for piece in _pieces(path))


def _pieces(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from WRITTEN.split(node.value)


@pytest.mark.parametrize("message", messages())
def test_each_part_of_a_message_is_in_the_code_of_the_library(message: str) -> None:
    status = STATUS.search(message)
    pieces = [piece for piece in WRITTEN.split(STATUS.sub("", message)) if len(piece.strip()) > 2]
    pieces += [status[1]] if status else []
    assert pieces
    assert [piece for piece in pieces if piece.strip() not in texts_of_the_library()] == []


def test_there_are_many_entries_and_each_says_what_to_do() -> None:
    assert len(messages()) >= 40
    assert [term for term, text in entries() if "**Fix:**" not in text] == []
