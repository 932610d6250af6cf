"""The options of ``serve`` that the pages and the container file use exist."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from trioformer.testing.__main__ import _parser

ROOT = Path(__file__).parents[2]
CONTAINER = "examples/serve/Containerfile"


@pytest.mark.parametrize("page", ["embedded-server", "serve-other-languages", "repl"])
def test_the_commands_of_a_page_can_be_parsed(page: str) -> None:
    text = (ROOT / "docs" / "howto" / f"{page}.rst").read_text()
    commands = re.findall(r"-m trioformer\.testing (serve (?:[^\n]*\\\n)*[^\n]*)", text)
    assert commands
    for command in commands:
        arguments = shlex.split(command.replace("\\\n", " ").removesuffix("&"))
        assert _parser().parse_args(arguments).command == "serve"


def test_the_command_of_the_container_file_keeps_everything_in_its_volume() -> None:
    lines = dict(line.split(" ", 1) for line in (ROOT / CONTAINER).read_text().splitlines() if line[:1].isupper())
    arguments = [*json.loads(lines["ENTRYPOINT"]), *json.loads(lines["CMD"])]
    assert arguments[:3] == ["/venv/bin/python", "-m", "trioformer.testing"]
    options = _parser().parse_args(arguments[3:])
    assert options.bind.endswith(f":{lines['EXPOSE']}")
    assert {options.state.parent, options.write_kubeconfig.parent} == {Path(lines["VOLUME"])}
    assert lines["USER"].isdecimal()
