"""Commands from their start to their end, with input, output and exit code."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trioformer.client import Api
from trioformer.errors import CommandFailedError, LimitExceededError
from trioformer.models.core_v1 import Pod
from trioformer.pods import run_in_pod
from trioformer.pods._exec import CompletedCommand
from trioformer.testing import ScriptedPod, ScriptedProcess


async def test_a_command_returns_its_outputs(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.script_command(["ls"], stdout=b"one\xff\n", stderr="two\n")
    done = await run_in_pod(pods, "web-0", ["ls"])
    assert done == CompletedCommand(("ls",), 0, b"one\xff\n", b"two\n")
    assert done.text == "one\ufffd\n"
    assert repr(done) == "CompletedCommand(command=('ls',), exit_code=0)"


async def test_a_command_that_fails_is_an_error_unless_it_is_not_checked(web: ScriptedPod, pods: Api[Pod]) -> None:
    web.script_command(["ls"], stdout="some", stderr="ls: cannot\naccess\n", exit_code=2)
    web.script_command(["false"], exit_code=1)
    with pytest.raises(CommandFailedError) as raised:
        await run_in_pod(pods, "web-0", ["ls"])
    error = raised.value
    assert (error.exit_code, error.stdout, error.stderr) == (2, b"some", b"ls: cannot\naccess\n")
    begin = "exec in pods/web-0 in namespace default: the command"
    assert str(error).startswith(f"{begin} ls ended with exit code 2: ls: cannot")
    assert "\n" not in str(error)
    with pytest.raises(CommandFailedError, match=f"^{begin} false ended with exit code 1$"):
        await run_in_pod(pods, "web-0", ["false"])
    assert (await run_in_pod(pods, "web-0", ["ls"], check=False)).exit_code == 2


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"command": "ls"}, "sh"),
        ({"command": None}, "command must be a list of strings, not None"),
        ({"command": ["sleep", 1]}, "command .* an int"),
        ({"command": b"ls"}, "command .* an int"),
        ({"container": 1}, "container .* an int"),
        ({"input": ["x"]}, "input .* a list"),
        ({"max_output_bytes": "1"}, "max_output_bytes .* a str"),
        ({"max_output_bytes": True}, "max_output_bytes .* a bool"),
        ({"name": 3}, "an int"),
        ({"api": "pods"}, "api .* a str"),
    ],
)
async def test_an_argument_of_a_wrong_type_is_refused(
    web: ScriptedPod, pods: Api[Pod], given: dict[str, Any], text: str
) -> None:
    arguments: dict[str, Any] = {"api": pods, "name": "web-0", "command": ["ls"], **given}
    with pytest.raises(TypeError, match=text):
        await run_in_pod(**arguments)


async def test_a_command_reads_its_input(web: ScriptedPod, pods: Api[Pod]) -> None:
    for given in [b"\x00\xff" * 2_000_000, "hellö"]:

        async def cat(process: ScriptedProcess) -> None:
            async for data in process.stdin:
                await process.stdout.send_all(data)

        web.on_exec(cat)
        done = await run_in_pod(pods, "web-0", ["cat"], input=given)
        assert done.stdout == (given.encode() if isinstance(given, str) else given)


async def test_a_command_need_not_read_its_input(web: ScriptedPod, pods: Api[Pod], autojump_clock: MockClock) -> None:
    web.script_command(["true"], stdout="x")
    assert (await run_in_pod(pods, "web-0", ["true"], input=bytes(10_000_000))).text == "x"


async def test_too_much_output_is_an_error(web: ScriptedPod, pods: Api[Pod]) -> None:
    for given in [None, b"input"]:
        ended = trio.Event()

        async def yes(process: ScriptedProcess, ended: trio.Event = ended) -> None:
            try:
                while True:
                    await process.stdout.send_all(b"y\n" * 1000)
            finally:
                ended.set()

        web.on_exec(yes)
        with pytest.raises(LimitExceededError, match=r"more output than max_output_bytes \(100000\)"):
            await run_in_pod(pods, "web-0", ["yes"], input=given, max_output_bytes=100_000)
        await ended.wait()


async def test_a_command_that_is_cancelled_ends(web: ScriptedPod, pods: Api[Pod], autojump_clock: MockClock) -> None:
    ended = trio.Event()

    async def sleep(process: ScriptedProcess) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    web.on_exec(sleep)
    with trio.move_on_after(100) as scope:
        await run_in_pod(pods, "web-0", ["sleep"], input=b"input")
    assert scope.cancelled_caught
    await ended.wait()
