"""Whole objects, as kubectl prints them."""

from __future__ import annotations

import io

from trioformer.cli.printing import make_printer


def test_an_event_of_a_watch_is_one_line_of_json() -> None:
    out = io.StringIO()
    printer = make_printer("json", out)
    assert printer is not None
    printer.print({"object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "<a>"}}, "type": "ADDED"})
    expected = '{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\\u003ca\\u003e"}}}\n'
    assert out.getvalue() == expected
