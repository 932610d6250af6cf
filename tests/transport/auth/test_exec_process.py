"""A plugin's process: its session or its terminal, its children, and what remains of it."""

from __future__ import annotations

import os
import pty
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from tests.support.plugins import HELD, Plugin, credential, has_ended
from trioformer.kubeconfig import ClusterConfig
from trioformer.kubeconfig._config import InteractiveMode
from trioformer.transport import PluginPolicy
from trioformer.transport.auth._exec_source import PluginCredentials


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path / "plugin")


@attrs.frozen
class Terminal:
    """A terminal, which is standard input and standard error of the plugins."""

    screen: int
    keyboard_and_screen: int

    def type(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def read(self) -> str:
        return os.read(self.screen, 4_096).decode()


@pytest.fixture
async def terminal() -> AsyncIterator[Terminal]:
    """Make standard input and standard error of this process a terminal, which plugins inherit.

    Asynchronous, so that it is set up inside of the test: pytest exchanges them before.
    """
    screen, terminal = pty.openpty()
    saved = [(number, os.dup(number)) for number in (0, 2)]
    for number, _ in saved:
        os.dup2(terminal, number)
    try:
        yield Terminal(screen, terminal)
    finally:
        for number, copy in saved:
            os.dup2(copy, number)
            os.close(copy)
        os.close(screen)
        os.close(terminal)


def source_of(plugin: Plugin, mode: InteractiveMode) -> PluginCredentials:
    exec_config = plugin.config(interactive_mode=mode)
    return PluginCredentials(ClusterConfig(server="https://x", exec=exec_config), PluginPolicy())


ASKING = "printf 'Password: ' >&2; read answer; echo \"$answer\" > seen; ps -o sid= -p $$ > session"


@pytest.mark.parametrize("mode", [InteractiveMode.IF_AVAILABLE, InteractiveMode.ALWAYS])
async def test_a_plugin_may_ask_on_the_terminal(plugin: Plugin, terminal: Terminal, mode: InteractiveMode) -> None:
    """client-go: TestRefreshCreds"""
    plugin.prints(credential(token="one"), before=ASKING)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(source_of(plugin, mode).get)
        assert await trio.to_thread.run_sync(terminal.read, abandon_on_cancel=True) == "Password: "
        terminal.type("open sesame\n")
    assert await trio.Path(plugin.directory / "seen").read_text() == "open sesame\n"
    assert plugin.info["spec"] == {"interactive": True}
    assert await plugin.pid_in("session") == os.getsid(0)


async def test_a_plugin_that_must_not_ask_has_no_terminal(plugin: Plugin, terminal: Terminal) -> None:
    plugin.prints(credential(token="one"), before=f"{ASKING}; echo $$ > pid; (: < /dev/tty) 2> /dev/null && touch tty")
    await source_of(plugin, InteractiveMode.NEVER).get()
    assert await trio.Path(plugin.directory / "seen").read_text() == "\n"  # the end of /dev/null
    assert plugin.info["spec"] == {"interactive": False}
    assert await plugin.pid_in("session") == await plugin.pid_in("pid")
    assert not await trio.Path(plugin.directory / "tty").exists()


async def test_a_plugin_without_the_terminal_is_killed_with_its_children(plugin: Plugin) -> None:
    children = "sleep 1000 & echo $! > one; sh -c 'sleep 1000 & echo $! > two; wait' &"
    plugin.prints("", before=f"echo $$ > pid; {children} until [ -s two ]; do :; done; {HELD}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(source_of(plugin, InteractiveMode.NEVER).get)
        await plugin.wait_until_held()
        nursery.cancel_scope.cancel()
    for name in ("pid", "one", "two"):
        assert await has_ended(await plugin.pid_in(name)), name


async def test_a_plugin_with_the_terminal_is_killed(plugin: Plugin, terminal: Terminal) -> None:
    plugin.prints("", before=f"echo $$ > pid; {HELD}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(source_of(plugin, InteractiveMode.ALWAYS).get)
        await plugin.wait_until_held()
        nursery.cancel_scope.cancel()
    assert await has_ended(await plugin.pid_in("pid"))


async def test_a_plugin_that_ends_on_sigterm_has_a_second(plugin: Plugin) -> None:
    plugin.prints("", before=f"trap 'echo saved > state; exit' TERM; : > started; sleep 1000 & wait; {HELD}")
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(source_of(plugin, InteractiveMode.NEVER).get)
            await plugin.wait_until_held()
            scope.cancel()
    assert await trio.Path(plugin.directory / "state").read_text() == "saved\n"


async def test_no_descriptor_is_left_over(plugin: Plugin) -> None:
    source = source_of(plugin, InteractiveMode.NEVER)
    source.reject(await source.get())  # the first run opens what trio keeps, such as its threads
    before = os.listdir("/proc/self/fd")
    for output, code in ((credential(token="one"), 0), ("", 1), ("x" * 2_000_000, 0)):
        plugin.prints(output, code=code)
        await source.get()
        source.reject(source.latest)
    assert os.listdir("/proc/self/fd") == before


async def test_what_is_printed_is_read_to_the_last_byte(plugin: Plugin) -> None:
    # Larger than a pipe, and the plugin exits at once.
    token = "x" * 300_000
    plugin.prints(credential(token=token))
    found = await source_of(plugin, InteractiveMode.NEVER).get()
    assert found.authorization is not None
    assert len(found.authorization.reveal()) == len("Bearer ") + len(token)
