"""``-o custom-columns`` and ``-o custom-columns-file``: what each prints, and what is no column."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from trioformer.cli._failures import CommandError
from trioformer.cli.printing import make_printer

OBJECT = {"metadata": {"name": "one", "labels": {"a": "b"}}, "spec": {"ports": [{"port": 80}, {"port": 443}]}}
FORMAT = "Expected format is one line of space separated headers, one line of space separated column specs."
PATH = "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'"


def printed(form: str, *objects: dict[str, Any], has_headers: bool = True) -> list[list[str]]:
    """Return the cells of the lines of a format."""
    out = io.StringIO()
    printer = make_printer(form, out, has_headers=has_headers)
    assert printer is not None
    for each in objects:
        printer.print(each)
    printer.finish()
    return [line.split() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        (".metadata.name", "one"),
        ("metadata.name", "one"),
        ("{metadata.name}", "one"),
        ("{.metadata.name}", "one"),
        (".spec.ports[*].port", "80,443"),
        (".metadata.labels", "map[a:b]"),
        (".status.phase", "<none>"),
    ],
)
def test_a_path_may_lack_its_braces_and_its_dot(path: str, cell: str) -> None:
    assert printed(f"custom-columns=X:{path}", OBJECT) == [["X"], [cell]]
    assert printed(f"custom-columns=X:{path}", OBJECT, has_headers=False) == [[cell]]


def test_the_headers_are_printed_once() -> None:
    listed = {"kind": "List", "apiVersion": "v1", "items": [OBJECT, {"metadata": {"name": "two"}}]}
    expected = [["N", "P"], ["one", "80"], ["two", "<none>"], ["one", "80"]]
    assert printed("custom-columns=N:.metadata.name,P:.spec.ports[0].port", listed, OBJECT) == expected


def test_a_file_has_a_line_of_headers_and_one_of_paths(tmp_path: Path) -> None:
    file = tmp_path / "columns.txt"
    file.write_text("NAME   PORTS\nmetadata.name  {.spec.ports[*].port}\n")
    assert printed(f"custom-columns-file={file}", OBJECT) == [["NAME", "PORTS"], ["one", "80,443"]]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", f"invalid template, missing header line. {FORMAT}"),
        (b"NAME\n", f"invalid template, missing spec line. {FORMAT}"),
        (b"NAME AGE\nmetadata.name\n", "number of headers (2) and field specifications (1) don't match"),
        (b"NAME\n{.a}{.b}\n", PATH),
        (b"\xff\n", "error reading template {file}, {file} is not UTF-8"),
        (None, "error reading template {file}, open {file}: no such file or directory"),
    ],
)
def test_a_file_that_is_no_template_is_an_error(tmp_path: Path, content: bytes | None, error: str) -> None:
    file = tmp_path / "columns.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CommandError) as caught:
        make_printer(f"custom-columns-file={file}", io.StringIO())
    assert str(caught.value) == error.replace("{file}", str(file))


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ("custom-columns", "custom-columns format specified but no custom columns given"),
        ("custom-columns-file=", "custom-columns format specified but no custom columns given"),
        ("custom-columns=X", "unexpected custom-columns spec: X, expected <header>:<json-path-expr>"),
        ("custom-columns=X:{.a}{.b}", PATH),
    ],
)
def test_columns_that_are_not_valid_are_an_error(form: str, error: str) -> None:
    with pytest.raises(CommandError) as caught:
        make_printer(form, io.StringIO())
    assert str(caught.value) == error


def test_a_path_that_does_not_fit_an_object_is_an_error() -> None:
    with pytest.raises(CommandError) as caught:
        printed("custom-columns=X:.spec.ports[7].port", OBJECT)
    assert str(caught.value) == "array index out of bounds: index 7, length 2"
