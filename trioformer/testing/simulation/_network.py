"""The network between the replicas and the server, in which faults occur."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import Any, Final, final

import attrs
import httpx
import trio

from ..._text import one_line
from ...errors import StatusError
from ...models._internal import decode
from .._in_memory import EarlyEndError, Exchange, InMemoryTransport, connection_refused
from .._serving._requests import read_request
from .._storage._clock import timestamp
from .._storage._status import status_error
from ._life import Call, Life, revisions_in
from ._record import Record, acting, current_call
from ._story import Fault
from ._world import World

LATENCY: Final = 0.01
"""The seconds that each request takes, so that others can act in the meantime."""
GIVE_UP: Final = 60.0
"""The seconds after which a connection without a response breaks."""
LONGEST_MESSAGE: Final = 100
"""The number of letters of the server's message in the trace."""
RIVAL: Final = "simulation.trioformer/rival"
"""The annotation and the condition that a rival writes."""
_MESSAGES: Final = {403: "the simulation refuses this request", 409: "the simulation reports a conflict"}


@final
@attrs.define(eq=False)
class Network:
    """The faults of a story, and the state of the network."""

    record: Record
    world: World
    faults: list[Fault]
    """The faults that have not occurred."""
    struck: list[Fault] = attrs.field(factory=list)
    """The faults that have occurred."""
    counts: Counter[str] = attrs.field(factory=Counter)
    """The number of requests of each kind."""
    outage_until: float = 0.0
    stale_revision: int = 0
    """While caches stay behind, the last revision that they may see."""
    lives: list[Life] = attrs.field(factory=list)
    """The lives of all replicas, oldest first."""
    over: trio.Event = attrs.field(factory=trio.Event)
    """Set when replicas no longer start again."""
    _fresh: trio.Event = attrs.field(factory=trio.Event)
    _rivals: int = 0

    def end(self) -> None:
        """Do not start replicas again, and let no more faults occur: what is stopped should leave nothing behind."""
        self.over.set()
        self.faults.clear()

    def take(self, kind: str) -> list[Fault]:
        """Count a request, and return the faults that occur at it."""
        self.counts[kind] += 1
        due = [one for one in self.faults if one.at == kind and one.number == self.counts[kind]]
        for one in due:
            self.faults.remove(one)
            self.struck.append(one)
            self.record.disturb(GIVE_UP if one.kind in ("silent", "compact") else one.lasts)  # until caches list again
        return due

    def hold_caches(self, revision: int, seconds: float, nursery: trio.Nursery) -> None:
        """Hold all caches at a revision for some seconds."""
        self.stale_revision = revision
        nursery.start_soon(self._release_caches, seconds)

    async def _release_caches(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self.stale_revision = 0
        self._fresh.set()
        self._fresh = trio.Event()

    async def wait_until_visible(self, revision: int) -> None:
        """Wait until caches may see a revision."""
        while self.stale_revision and revision > self.stale_revision:
            await self._fresh.wait()

    def change_as_rival(self, call: Call) -> None:
        """Change the object of a request: a condition before a write of its status, or else an annotation."""
        record, self._rivals = call.record, self._rivals + 1
        if record.name is None:
            return
        resource = f"{record.resource}.{record.group}" if record.group else record.resource
        namespace = record.namespace or "default"
        patch: dict[str, object] = {"metadata": {"annotations": {RIVAL: str(self._rivals)}}}
        with acting("a rival"), suppress(StatusError):  # the object may not exist, or its schema may forbid the change
            if record.subresource == "status":
                found: Any = self.world.get(resource, record.name, namespace=namespace)
                if conditions := (found.get("status") or {}).get("conditions"):
                    now = timestamp(self.record.server.clock)
                    own = {"type": RIVAL, "status": "True", "reason": "Rival", "message": "", "lastTransitionTime": now}
                    patch = {"status": {"conditions": [*conditions, own]}}
            self.world.patch(resource, record.name, patch, namespace=namespace)


@final
@attrs.define(eq=False)
class StoryTransport(httpx.AsyncBaseTransport):
    """The connection of a replica to the server."""

    _life: Life
    _network: Network
    _server: InMemoryTransport = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._server = InMemoryTransport(lambda: _Door(self._life), self._life.server.asgi_app, is_operator=True)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request through the network."""
        life, network = self._life, self._network
        url = request.url
        record = read_request(request.method, url.path, url.query, user_agent="", time=trio.current_time())
        content_type = request.headers.get("content-type", "")
        call = life.new_call(record, await request.aread(), content_type)
        entry = network.record.add(life.name, call.what, "", call.cause)
        network.record.requests += 1
        life.check_rate()
        try:
            response = await self._send(request, call)
        except BaseException as error:
            entry.outcome = "no response" if isinstance(error, httpx.TransportError) else "cancelled"
            raise
        entry.outcome = str(response.status_code)
        if response.is_error and (message := _message(await response.aread())):
            entry.outcome += f": {message}"
        return response

    async def _send(self, request: httpx.Request, call: Call) -> httpx.Response:
        life, network = self._life, self._network
        await trio.sleep(LATENCY)
        self._check_reachable()
        life.check_leader(call)
        revision = network.record.server._storage.revision
        due = network.take(call.kind)
        for fault in due:
            if not fault.after and (response := await self._strike(fault, call, revision)) is not None:
                return response
        response = await self._carry_out(request, call)
        try:
            for fault in due:
                if fault.after and (other := await self._strike(fault, call, revision)) is not None:
                    await response.aclose()
                    return other
        except BaseException:  # the replica never gets the response, and so cannot close it
            await response.aclose()
            raise
        return response

    def _check_reachable(self, *, is_carried_out: bool = False) -> None:
        if self._life.is_cut_off or trio.current_time() < max(self._network.outage_until, self._life.partition_until):
            # A client may repeat a request that was refused, but not one that may have been carried out.
            raise EarlyEndError("the simulation has broken the connection") if is_carried_out else connection_refused()

    async def _strike(self, fault: Fault, call: Call, revision: int) -> httpx.Response | None:
        """Let a fault occur, and return the response if the server does not respond itself."""
        life, network = self._life, self._network
        network.record.add("the story", str(fault))
        life.was_struck = True
        match fault.kind:
            case "answer":
                if fault.code == httpx.codes.CONFLICT:  # there is no conflict without a change
                    network.change_as_rival(call)
                return _error(fault.code, after=fault.after)
            case "cut":
                raise EarlyEndError("the simulation has broken the connection")
            case "silent":
                await trio.sleep(GIVE_UP)
                raise httpx.ReadTimeout("the simulation has dropped the response")
            case "slow":
                await trio.sleep(fault.lasts)
                self._check_reachable(is_carried_out=fault.after)
            case "rival":
                network.change_as_rival(call)
            case "kill":
                life.kill(fault.lasts)
                await trio.lowlevel.checkpoint()
            case "rewind":
                network.hold_caches(network.record.revision_at(fault.back, revision), 2 * fault.lasts, life.cluster)
                network.record.disturb(2 * fault.lasts)
                # All of them, because another replica would lead before this one starts again.
                for one in [one for one in network.lives if not one.over.is_set()]:
                    one.was_struck = True
                    one.kill(fault.lasts)
                await trio.lowlevel.checkpoint()
            case "stop":
                life.stop(fault.lasts)
                await trio.lowlevel.checkpoint()
            case "stale":
                network.hold_caches(revision, fault.lasts, life.cluster)
            case "compact":
                life.break_streams()
                network.record.server.compact()
            case "outage":
                network.outage_until = trio.current_time() + fault.lasts
                for one in network.lives:
                    one.was_struck = True
                    one.break_streams()
                self._check_reachable(is_carried_out=fault.after)
            case "partition":
                life.partition_until = trio.current_time() + fault.lasts
                life.break_streams()
                self._check_reachable(is_carried_out=fault.after)
            case "pod fails":
                network.world.fail_a_pod()
            case _:
                network.world.delay_pods(fault.lasts)
        return None

    async def _carry_out(self, request: httpx.Request, call: Call) -> httpx.Response:
        life, network, record = self._life, self._network, call.record
        if network.stale_revision and record.verb == "list" and record.query.get("resourceVersion") == "0":
            # A cache of the server that is behind, as that of another API server may be.
            old = {"resourceVersion": str(network.stale_revision), "resourceVersionMatch": "Exact"}
            request = httpx.Request("GET", request.url.copy_merge_params(old), headers=request.headers)
        token = current_call.set(call)
        try:
            response = await self._server.handle_async_request(request)
        finally:
            current_call.reset(token)
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        if record.verb == "watch":
            watched = WatchedStream(stream, life, network, call)
            return httpx.Response(response.status_code, headers=response.headers, stream=watched, request=request)
        if "network_stream" in response.extensions:
            return response
        if record.is_resource and record.subresource != "log":
            content = await response.aread()
            if response.status_code < httpx.codes.MULTIPLE_CHOICES:
                life.note_response(call, content)
        return response


@final
@attrs.define(eq=False)
class _Door(trio.abc.SendChannel[Exchange]):
    """Starts the tasks that carry out the requests of a replica, on the server's side of its connections."""

    _life: Life

    async def send(self, value: Exchange) -> None:
        await trio.lowlevel.checkpoint()
        if self._life.is_cut_off:
            raise connection_refused()
        # The task inherits the context of the replica's task, and so the current call.
        self._life.connection.start_soon(self._life.carry_out, value)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@final
@attrs.define(eq=False)
class WatchedStream(httpx.AsyncByteStream):
    """A watch, which notes what the replica has seen, and stays behind while caches are held."""

    _stream: httpx.AsyncByteStream
    _life: Life
    _network: Network
    _call: Call
    _chunks: Any = None

    def __attrs_post_init__(self) -> None:
        self._life.open_watches += 1
        self._chunks = self._stream.__aiter__()

    def __aiter__(self) -> WatchedStream:
        return self

    async def __anext__(self) -> bytes:
        chunk: bytes = await self._chunks.__anext__()
        revision = max(revisions_in(chunk), default=0)
        await self._network.wait_until_visible(revision)
        self._life.note_revision(self._call.record, revision)
        return chunk

    async def aclose(self) -> None:
        """Close the stream."""
        if self._stream is not None:
            self._life.open_watches -= 1
            stream, self._stream = self._stream, None  # type: ignore[assignment]
            await stream.aclose()


def _message(content: bytes) -> str:
    found = decode(content) if content[:1] == b"{" else {}
    return one_line(str(found.get("message") or ""), longest=LONGEST_MESSAGE)


def _error(code: int, *, after: bool) -> httpx.Response:
    error = status_error(code, message=_MESSAGES.get(code, "the simulation has made this request fail"))
    headers = {"content-type": "application/json"}
    if code in (429, 503) and not after:  # it tells the client to send the request again
        headers["retry-after"] = "1"
    return httpx.Response(code, headers=headers, content=json.dumps(error.status).encode())
