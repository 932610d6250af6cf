"""Whole objects, as kubectl prints them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from trioformer.cli._failures import CommandError
from trioformer.cli.printing import make_printer


def test_an_event_of_a_watch_is_one_line_of_json() -> None:
    out = io.StringIO()
    printer = make_printer("json", out)
    assert printer is not None
    printer.print({"object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "<a>"}}, "type": "ADDED"})
    expected = '{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\\u003ca\\u003e"}}}\n'
    assert out.getvalue() == expected


def test_a_template_of_a_file_is_read_first(tmp_path: Path) -> None:
    file = tmp_path / "template"
    file.write_text("{.kind}!")
    out = io.StringIO()
    printer = make_printer(f"jsonpath-file={file}", out)
    assert printer is not None
    printer.print({"kind": "Pod"})
    assert out.getvalue() == "Pod!"


@pytest.mark.parametrize("form", ["jsonpath-file", "custom-columns-file"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, form: str) -> None:
    file = tmp_path / "template"
    what = "--template" if form == "jsonpath-file" else "template"
    with pytest.raises(CommandError) as caught:
        make_printer(f"{form}={file}", io.StringIO())
    assert str(caught.value) == f"error reading {what} {file}, open {file}: no such file or directory"
    file.write_bytes(b"\xff")
    with pytest.raises(CommandError) as caught:
        make_printer(f"{form}={file}", io.StringIO())
    assert str(caught.value) == f"error reading {what} {file}, {file} is not UTF-8"
