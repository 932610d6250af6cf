"""``examples/port_forward.py``: a response through a local port."""

from __future__ import annotations

import argparse

import pytest

from examples.command_line import parser_of
from examples.port_forward import main, url_path


async def test_a_pod_responds(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = parser_of("", is_namespaced=True).parse_args(["--embedded"])
    arguments.service, arguments.port, arguments.path, arguments.keep = "web", "web", "/a?b=c", False
    assert await main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("http://127.0.0.1:")
    assert lines[0].endswith(" is port 8080 of web-0")
    assert lines[1:] == ["200 OK: hello from web-0: GET /a?b=c HTTP/1.1"]


@pytest.mark.parametrize("path", ["", "healthz", "?a=b", "@example.com/"])
def test_a_path_must_begin_with_a_slash(path: str) -> None:
    assert url_path(f"/{path}") == f"/{path}"
    with pytest.raises(argparse.ArgumentTypeError, match=r"must begin with a slash$"):
        url_path(path)
