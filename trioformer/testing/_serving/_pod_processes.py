"""Requests for exec and attach, which are passed to the handlers of a test.

Source: kubernetes ``pkg/registry/core/pod/strategy.go`` (ExecLocation, AttachLocation) and
``pkg/kubelet/server/remotecommand``.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias, final
from urllib.parse import parse_qsl

import attrs
import trio

from ..._channels import CLOSE, V4, V5, ChannelSocket, accept_token
from ...models._internal import decode, dumps
from .._storage._status import bad_request
from .._storage._storage import JSONObject
from ._logs import chosen_container
from ._pod_scripts import ContainerLog, PodScripts, is_running
from ._requests import RequestRecord
from ._scripted_processes import ScriptedInput, ScriptedOutput, ScriptedProcess

UPGRADE: Final = "trioformer.upgrade"
"""The ASGI extension that switches to another protocol.

In ``scope["extensions"]``, it is a function that takes the headers of the response with status 101 and returns the
stream.
"""
Upgrade: TypeAlias = Callable[[list[tuple[bytes, bytes]]], Awaitable[trio.abc.Stream]]

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE = range(5)
_KILLED: Final = 137
"""The exit code of a process that is killed with its container."""
_MAX_INPUT: Final = 16
"""The maximum number of chunks of input that wait for the process."""


@final
@attrs.define(eq=False)
class ProcessRequest:
    """A request for exec or attach, whose connection is switched to a WebSocket."""

    _scripts: PodScripts
    _pod: JSONObject
    _container: str
    _query: tuple[tuple[str, str], ...]
    _is_attach: bool

    protocols: tuple[str, ...] = (V5, V4)
    """The supported WebSocket subprotocols."""

    @classmethod
    def parse(cls, scripts: PodScripts, record: RequestRecord, query: bytes) -> ProcessRequest:
        """Check and parse a request."""
        name = record.name or ""
        pod = scripts.pod(record.namespace or "", name)
        container = chosen_container(pod, record.query.get("container", ""))
        if not pod["spec"].get("nodeName"):
            raise bad_request(f"pod {name} does not have a host assigned")
        pairs = tuple(parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True))
        return cls(scripts, pod, container, pairs, record.subresource == "attach")

    async def run(self, socket: ChannelSocket) -> None:
        """Run the handler of the process until it returns, the container terminates, or the client disconnects."""
        flags = {name for name, value in self._query if value in ("true", "1")}
        send, receive = trio.open_memory_channel[bytes](_MAX_INPUT)
        process = ScriptedProcess._create(
            tuple(value for name, value in self._query if name == "command"),
            self._container,
            "tty" in flags,
            ScriptedInput._create(receive),
            ScriptedOutput._create(socket, _STDOUT, "stdout" in flags),
            ScriptedOutput._create(socket, _STDERR, "stderr" in flags and "tty" not in flags),
        )
        if "stdin" not in flags:
            send.close()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_receive, socket, process, send, nursery.cancel_scope)
            try:
                status = await self._play(process, nursery)
                await socket.send(_ERROR, dumps(status))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the client has disconnected
            nursery.cancel_scope.cancel()

    async def _play(self, process: ScriptedProcess, nursery: trio.Nursery) -> JSONObject:
        if not is_running(self._pod, self._container):
            return _failure(f'unable to upgrade connection: container not found ("{self._container}")')
        scripts = self._scripts.processes[self._pod["metadata"]["uid"]]
        handler = scripts.find(self._container, process.command, is_attach=self._is_attach)
        log = self._scripts.log_of(self._pod, self._container)
        code: int | None = _KILLED
        if handler is not None:
            with trio.CancelScope() as scope:
                nursery.start_soon(self._cancel_at_end, log, scope)
                code = await handler(process)
        elif self._is_attach:
            await self._follow(process, log)
        else:
            program = process.command[0] if process.command else ""
            return _failure(
                f'error executing command in container: exec: "{program}": executable file not found in $PATH'
            )
        return _ended(code or 0) if not self._is_attach else {"metadata": {}, "status": "Success"}

    async def _cancel_at_end(self, log: ContainerLog, scope: trio.CancelScope) -> None:
        """Cancel the handler of a process when its container terminates."""
        while not self._has_ended(log):
            await self._scripts.wait()
        scope.cancel()

    async def _follow(self, process: ScriptedProcess, log: ContainerLog) -> None:
        """Send new log entries of the container until it terminates."""
        position = log.dropped + len(log.entries)
        while True:
            entries = log.entries[max(position - log.dropped, 0) :]
            position = log.dropped + len(log.entries)
            if entries:
                await process.stdout.send_all(b"".join(each.data for each in entries))
            elif self._has_ended(log):
                return
            else:
                await self._scripts.wait()

    def _has_ended(self, log: ContainerLog) -> bool:
        pod = self._scripts.running(self._pod, self._container, log)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return True
        # The node stops the containers of such a pod.
        return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


async def _receive(
    socket: ChannelSocket, process: ScriptedProcess, stdin: trio.MemorySendChannel[bytes], scope: trio.CancelScope
) -> None:
    with stdin:
        try:
            while (received := await socket.receive()) is not None:
                channel, data = received
                if channel == _RESIZE and data:
                    size: Any = decode(data)
                    process.sizes.append(os.terminal_size((size["Width"], size["Height"])))
                    process._resized.unpark_all()
                elif channel == CLOSE and data == bytes((_STDIN,)):
                    stdin.close()
                elif channel == _STDIN and data:
                    # The process may have stopped reading, or not have any input.
                    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        await stdin.send(data)
        except trio.BrokenResourceError:
            pass
        except trio.ClosedResourceError:
            return  # the process has disconnected
        scope.cancel()


def _ended(code: int) -> JSONObject:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    text = f"command terminated with non-zero exit code: error executing command, exit code {code}"
    failed = {"metadata": {}, "status": "Failure", "message": text, "reason": "NonZeroExitCode"}
    return {**failed, "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]}}


def _failure(problem: str) -> JSONObject:
    message = f"Internal error occurred: {problem}"
    details = {"causes": [{"message": problem}]}
    made = {"status": "Failure", "message": message, "reason": "InternalError", "details": details, "code": 500}
    return {"metadata": {}, **made}


async def accept(protocols: Sequence[str], headers: Mapping[str, str], upgrade: Upgrade | None) -> ChannelSocket:
    """Switch the connection of a request to a WebSocket with one of the protocols.

    Raises:
        APIStatusError: The request does not ask for a WebSocket, or the ASGI server does not support WebSockets (400).
    """
    key = headers.get("sec-websocket-key", "")
    asks = "upgrade" in headers.get("connection", "").lower() and headers.get("upgrade", "").lower() == "websocket"
    if upgrade is None or not asks or not key or headers.get("sec-websocket-version") != "13":
        raise bad_request("Upgrade request required")
    asked = [each.strip() for each in headers.get("sec-websocket-protocol", "").split(",")]
    protocol = next((each for each in asked if each in protocols), None)
    if protocol is None:
        raise bad_request(f"requested protocol(s) are not supported: {asked}; supports {list(protocols)}")
    stream = await upgrade(
        [
            (b"upgrade", b"websocket"),
            (b"connection", b"Upgrade"),
            (b"sec-websocket-accept", accept_token(key.encode("latin-1"))),
            (b"sec-websocket-protocol", protocol.encode()),
        ]
    )
    return ChannelSocket(stream, protocol, is_client=False)
