"""Requests for port-forward, whose connections are passed to the handlers of a test.

client-go sends all connections of ``kubectl port-forward`` through one WebSocket, with two SPDY streams for each
connection.
If the handler of a connection does not receive data, all connections of the same WebSocket are blocked, as on a real
node.

Source: kubernetes ``pkg/registry/core/pod/strategy.go`` (PortForwardLocation) and cri-streaming
``pkg/streaming/portforward/httpstream.go``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import final

import attrs
import trio

from ..._channels import ChannelSocket
from ..._spdy import TUNNEL, Pinged, SpdyError, SpdyEvent, SpdyFrames, StreamData, StreamOpened, StreamReset
from .._storage._status import bad_request
from .._storage._storage import JSONObject
from ._pod_scripts import PodScripts
from ._requests import RequestRecord
from ._scripted_connections import PortForwarding, ScriptedConnection


@final
@attrs.define(eq=False)
class PortForwardRequest:
    """A request for port-forward, whose connection is switched to a WebSocket."""

    _scripts: PodScripts
    _pod: JSONObject

    protocols: tuple[str, ...] = (TUNNEL,)
    """The supported WebSocket subprotocols."""

    @classmethod
    def parse(cls, scripts: PodScripts, record: RequestRecord) -> PortForwardRequest:
        """Check and parse a request."""
        pod = scripts.pod(record.namespace or "", record.name or "")
        if not pod["spec"].get("nodeName"):
            raise bad_request(f"pod {record.name} does not have a host assigned")
        return cls(scripts, pod)

    async def run(self, socket: ChannelSocket) -> None:
        """Run the handlers of the connections until the client disconnects or the pod has ended."""
        forwarding = PortForwarding(socket, SpdyFrames(is_client=False))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_at_end, nursery.cancel_scope)
            # The client has disconnected, or does not send SPDY.
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError, SpdyError):
                while received := await socket.receive_batch():
                    for _, data in received:
                        for event in forwarding.frames.receive(data):
                            await self._handle(event, forwarding, nursery)
            nursery.cancel_scope.cancel()

    async def _cancel_at_end(self, scope: trio.CancelScope) -> None:
        """Cancel the handlers when the pod has terminated, or has been deleted, after it was running."""
        if self._is_running():
            while self._is_running():
                await self._scripts.wait()
            scope.cancel()

    def _is_running(self) -> bool:
        pod = self._scripts.current(self._pod)
        return pod is not None and (pod.get("status") or {}).get("phase") == "Running"

    async def _handle(self, event: SpdyEvent, forwarding: PortForwarding, nursery: trio.Nursery) -> None:
        if isinstance(event, StreamOpened):
            await self._open(event, forwarding, nursery)
        elif isinstance(event, StreamData):
            connection = forwarding.connections.get(event.stream)
            if connection is not None:
                await connection._feed(event.data, is_end=event.is_end)
        elif isinstance(event, StreamReset):
            connection = forwarding.connections.pop(event.stream, None)
            if connection is not None:
                connection._break()
        elif isinstance(event, Pinged):
            await forwarding.socket.send(0, event.frame)

    async def _open(self, event: StreamOpened, forwarding: PortForwarding, nursery: trio.Nursery) -> None:
        request, kind, port = (event.headers.get(name, "") for name in ("requestid", "streamtype", "port"))
        if kind not in ("data", "error") or not port.isdecimal():
            await forwarding.send(forwarding.frames.reset(event.stream))
            return
        await forwarding.send(forwarding.frames.accept(event.stream))
        streams = forwarding.opened.setdefault(request, {})
        streams[kind] = event.stream
        if len(streams) == 2:
            del forwarding.opened[request]
            connection = ScriptedConnection._create(int(port), forwarding, streams["data"])
            forwarding.connections[streams["data"]] = connection
            nursery.start_soon(self._play, connection, streams["error"])

    async def _play(self, connection: ScriptedConnection, error: int) -> None:
        forwarding, uid = connection._forwarding, self._pod["metadata"]["uid"]
        handler = self._scripts.connections[uid].get(connection.port) if self._is_running() else None
        frames = forwarding.frames
        # The client has reset the connection or has disconnected.
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            try:
                problem = ""
                if handler is None:
                    problem = f"dial tcp4 127.0.0.1:{connection.port}: connect: connection refused"
                else:
                    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        await handler(connection)
                    problem = connection._problem
                if problem:
                    name = self._pod["metadata"]["name"]
                    text = f"error forwarding port {connection.port} to pod {name}, uid {uid}: {problem}"
                    await forwarding.send(frames.data(error, text.encode()))
                    await forwarding.send(frames.reset(connection._stream) + frames.reset(error))
                elif not connection._is_broken:
                    await forwarding.send(frames.data(error, b"", is_end=True))
                    await connection._send_end()
            finally:
                connection._break()
                forwarding.connections.pop(connection._stream, None)
