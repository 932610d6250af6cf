"""What the tool prints for the invocations that the end-to-end tests compare with kubectl, on the same embedded server.

``python -m tests.cli.test_commands`` writes the expected file again; look at the difference, and run the end-to-end
tests, which say whether kubectl prints it too.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from tests.support.cli import run
from tests.support.kubectl_changes import CHANGES, needs_cluster, write_files
from tests.support.kubectl_invocations import OF_SERVERS, OF_THE_TOOL
from tests.support.kubectl_pods import OF_PODS, create_pods
from tests.support.kubectl_server import make_server
from trioformer.testing import APIServer

EXPECTED: Final = Path(__file__).with_name("invocations.txt")
LARGEST: Final = 4000
"""Characters of an output that is kept; of a larger one only the exit code and the number of its lines."""
VARIABLE: Final = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} [-+]\d{4}|20\d\d-\d\d-\d\d[T ][\d:.]+(Z| \+0000( UTC)?)"), "TIME"),
    (re.compile(r'(resourceVersion"?: ")\d+'), r"\1N"),
    (re.compile(r"(?<![\w.=/])\d+[dhms](?:\d+[hms])?(?![\w/])"), "AGE"),
    (re.compile(r"/\S*/(LIVE|MERGED)-\w+/"), r"\1/"),
    (re.compile(r"(?<=\S) {3,}"), "  "),  # an age changes how wide its column is
    (re.compile(r"(Client Version: |\"gitVersion\": \"|gitVersion: )v?0\.\S*"), r"\1OURS"),
    (re.compile(r"Python \S+|python\d\S*"), "PYTHON"),
)


async def printed(directory: Path) -> str:
    """Return what each invocation prints, without what differs between any two runs."""
    pods = APIServer()
    create_pods(pods)
    changes = [each for each in CHANGES if not needs_cluster(each)]
    texts = [
        *await printed_by(make_server(), [*OF_SERVERS, *OF_THE_TOOL]),
        *await printed_by(pods, OF_PODS),
        *await printed_by(APIServer(), changes, write_files(directory)),
    ]
    return "\n".join(texts) + "\n"


async def printed_by(server: APIServer, invocations: Sequence[str], directory: Path = Path()) -> list[str]:
    texts = list[str]()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        for invocation in invocations:
            result = await run(server, *shlex.split(invocation.replace("FILES", str(directory))))
            text = "".join(f"{line}\n" for line in result.out.splitlines())
            text += "".join(f"! {line}\n" for line in result.err.splitlines())
            text = text.replace(str(directory), "FILES") if directory.is_absolute() else text
            for pattern, replacement in VARIABLE:
                text = pattern.sub(replacement, text)
            lines = [line.rstrip() for line in text.splitlines()]
            if len(text) > LARGEST:
                lines = [f"{len(lines)} lines"]
            texts.append("\n".join([f"=== [{result.code}] {invocation}", *lines]))
        nursery.cancel_scope.cancel()
    return texts


async def test_each_invocation_prints_what_kubectl_was_compared_with(tmp_path: Path) -> None:
    actual = (await printed(tmp_path)).split("\n=== ")
    expected = EXPECTED.read_text().split("\n=== ")
    differing = [ours for theirs, ours in zip(expected, actual, strict=True) if ours != theirs]
    assert not differing, f"{len(differing)} differ:\n\n" + "\n\n".join(differing)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        EXPECTED.write_text(trio.run(printed, Path(temporary)))
