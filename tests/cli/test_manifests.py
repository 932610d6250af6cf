"""Standard input and FIFOs as files: what is read, what is not, and while the user ends the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.support.cli import run
from trioformer.testing import APIServer

CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"


TOOL = """
import signal, sys
from trioformer.cli import main
signal.signal(signal.SIGHUP, signal.{disposition})
sys.exit(main(["-s", "http://127.0.0.1:1", "apply", "-f", "-"]))
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)], ids=["INT", "TERM", "HUP"]
)
def test_signals_end_the_wait_for_standard_input_without_a_word(number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-c", TOOL.format(disposition="SIG_DFL")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"#" * 500_000)  # more than a pipe holds, so some of it was read
        process.stdin.flush()
        process.send_signal(number)
        assert (process.wait(), process.stdout.read(), process.stderr.read()) == (code, b"", b"")


def test_a_hangup_that_is_ignored_as_by_nohup_ends_nothing() -> None:
    command = [sys.executable, "-c", TOOL.format(disposition="SIG_IGN")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"#" * 500_000)
        process.stdin.flush()
        process.send_signal(signal.SIGHUP)
        _, err = process.communicate()
        assert (process.returncode, err) == (1, b"error: STDIN: contains no manifests: write at least one document\n")


async def test_a_pipe_is_read_to_its_end(api_server: APIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, CONFIG)
    os.close(writer)
    with os.fdopen(reader) as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert (await run(api_server, "apply", "-f", "-")).out == "configmap/web created\n"


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        (CONFIG, 0, "configmap/web created\n"),
        (b"a: 1", 1, "error: FIFO: line 1, column 1: a manifest has no apiVersion: add one, such as apps/v1\n"),
        (
            CONFIG.replace(b"ConfigMap", b"None"),
            1,
            'error: resource mapping not found for name: "web" namespace: "" from "FIFO": no matches for kind "None"',
        ),
    ],
    ids=["valid", "not valid", "not served"],
)
async def test_a_fifo_that_is_named_is_read_to_its_end(
    text: bytes, code: int, expected: str, api_server: APIServer, tmp_path: Path
) -> None:
    fifo = tmp_path / "one"
    os.mkfifo(fifo)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.to_thread.run_sync, fifo.write_bytes, text, abandon_on_cancel=True))
        result = await run(api_server, "apply", "-f", str(fifo))
        nursery.cancel_scope.cancel()  # it would wait for ever, if nobody had opened the file
    assert result.code == code
    assert (result.out + result.err).startswith(expected.replace("FIFO", str(fifo)))


async def test_a_device_is_read(api_server: APIServer) -> None:
    result = await run(api_server, "apply", "-f", os.devnull)
    assert (result.code, result.err) == (1, "error: /dev/null: contains no manifests: write at least one document\n")


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
