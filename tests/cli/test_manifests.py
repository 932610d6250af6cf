"""Standard input as a file: from a pipe, closed, and while the user ends the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.support.cli import run
from trioformer.testing import APIServer

CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"


def test_ctrl_c_ends_the_wait_for_standard_input_without_a_word() -> None:
    command = [sys.executable, "-m", "trioformer", "-s", "http://127.0.0.1:1", "apply", "-f", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"#" * 500_000)  # more than a pipe holds, so some of it was read
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert (process.wait(), process.stdout.read(), process.stderr.read()) == (130, b"", b"")


async def test_a_pipe_is_read_to_its_end(api_server: APIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, CONFIG)
    os.close(writer)
    with os.fdopen(reader) as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert (await run(api_server, "apply", "-f", "-")).out == "configmap/web created\n"


async def test_standard_input_that_cannot_be_read_is_an_error(
    api_server: APIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    result = await run(api_server, "apply", "-f", "-")
    assert (result.code, result.err) == (1, "error: standard input is closed\n")
    with open(os.devnull, "w") as file:  # noqa: ASYNC230  # no file on a disk
        monkeypatch.setattr(sys, "stdin", file)
        result = await run(api_server, "apply", "-f", "-")
    assert (result.code, result.err) == (1, "error: standard input cannot be read: Bad file descriptor\n")
