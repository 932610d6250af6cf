"""Track whether the server of one client responds to its requests.

A watch on a dead connection looks the same as a watch for objects that do not change.
TCP keepalive shows only that the kernel of the peer, or a load balancer, responds.  A proxy or firewall that has lost
the connection drops all packets silently, and HTTP/1.1 does not have pings.

So when a watch has been silent for half a minute, a probe is sent on another connection. A probe is a request for
``/livez``, which every API server serves, and which is exempt from API priority and fairness.
If there is no response, the server is considered unreachable.
If the probe connection is older than the watch, a response verifies the watch, because a device that drops old
connections would drop both.
If the probe connection is newer, a response shows only that a new connection would work, and a resumable watch ends.

No task is started. The task that reads a silent watch sends a probe for all watches of the client while it holds
``_turn``.
The task may stop early because its watch received data or because it was cancelled. The next task with the turn then
waits for the response to the same probe.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

import attrs
import trio

from ..._secret import Secret
from ..._util import NoPublicConstructor
from .._errors import CONNECTION_ERRORS, SilentConnectionError, clear_locals, connection_failed
from ..auth._credentials import Credential, CredentialSource
from ..auth._tls import TLS
from ..http._connection import Connection
from ..http._messages import CONNECT_PATIENCE, Head, Headers, Request
from ..http._network import Network
from ..http._pool import Origin
from ._retries import RetryLine

if TYPE_CHECKING:
    from .._proxy._route import ForwardedRequests

SILENCE: Final = 30.0
"""Seconds without a byte after which the server of a watch is verified. This is also the minimum time between two
probes."""
PROBE_PATIENCE: Final = 15.0
"""The maximum number of seconds for the response to a probe."""
PREPARE_PATIENCE: Final = 1.0
"""The maximum number of seconds for which a watch waits for the probe connection, which must be opened first."""
PROBE_PATH: Final = "/livez?exclude=etcd"
"""The path of a probe. The check of etcd is excluded, because etcd may be slow although the connection works."""
MAX_IDLE_CLOSES: Final = 2
"""How many times in a row an idle probe connection may be closed before this counts as the normal behavior of a
proxy."""
_LATE: Final = 1.0
"""If this process notices a deadline more than this number of seconds late, the process was stopped."""


@final
@attrs.frozen
class _Exchange:
    """A probe, and its outcome."""

    began_at: float
    opened_at: float
    has_response: bool
    error: Exception | None = None
    """The reason for a missing response, or None if the response took too long."""


@final
@attrs.define(eq=False)
class ServerHealth(metaclass=NoPublicConstructor):
    """What is known about the health of a client's server. Each :class:`Transport` has one instance."""

    server_text: str
    """The server and its configuration source, for errors."""
    _connection: ProbeConnection | None
    """The probe connection; None for a server in the same process, because its connections cannot die."""
    silence: float = SILENCE
    """Seconds without a byte after which a watch is verified."""
    patience: float = PROBE_PATIENCE
    """The maximum number of seconds for the response to a probe."""
    credential_text: str = attrs.field(default="unknown", kw_only=True)
    """The kind of credential, for errors."""
    look: Callable[[], None] | None = attrs.field(default=None, init=False)
    """Checks for changed certificates without a request. It is called before a probe, and at ``look_at``."""
    look_at: float = attrs.field(default=math.inf, init=False)
    """The time when a watch that is never silent must call ``look``, which then sets a new time."""
    is_closed: bool = attrs.field(default=False, init=False)
    """Whether the client is closed."""
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _last: _Exchange | None = attrs.field(default=None, init=False)
    _prepared_at: float = attrs.field(default=-math.inf, init=False)
    _is_outdated: bool = attrs.field(default=False, init=False)
    """Whether the probe connection must be opened again, because the certificates have changed."""
    responded_at: float = attrs.field(default=-math.inf, init=False)
    """The time of the last response to a request of the client."""
    must_record: bool = attrs.field(default=False, init=False)
    """Whether a connection has failed, so that the next response must be recorded with :meth:`record_response`."""
    _has_failed: bool = attrs.field(default=False, init=False)
    """Whether a connection has failed since the last response."""
    _is_preparing: bool = attrs.field(default=False, init=False)
    _given_up_at: float = attrs.field(default=-math.inf, init=False)
    _idle_closes: int = attrs.field(default=0, init=False)
    """How many times in a row the probe connection was closed between two probes, so that it could not verify a
    watch."""
    _line: RetryLine = attrs.field(factory=RetryLine, init=False)

    def record_response(self) -> None:
        """Record that a request received a response, regardless of the status code."""
        self.responded_at = trio.current_time()
        if self._has_failed:
            # All watches are about to be opened again, and the probe connection must be older.
            self._has_failed = False
            self._prepared_at = -math.inf
        self.must_record = self._line.record_response()

    def record_failure(self) -> None:
        """Record that a connection failed."""
        self.must_record = self._has_failed = True
        self._line.record_failure(self.responded_at)

    @property
    def has_responded(self) -> bool:
        """Whether the client has received a response to any request."""
        return self.responded_at > -math.inf

    def record_rotation(self) -> None:
        """Record that new connections will replace all connections.

        The new probe connection is then opened before the watches.
        """
        self._is_outdated = True
        self._prepared_at = -math.inf

    def close(self) -> None:
        """Close the probe connection when the client is closed."""
        self.is_closed = True
        if self._connection is not None:
            self._connection.shut_down()

    async def wait_to_retry(self, until: float) -> None:
        """Wait until a request may be retried after a connection failure; see :meth:`Api.wait_to_retry`."""
        await self._line.wait(until)

    # --- silent watches ---

    async def prepare(self) -> None:
        """Open the probe connection before a watch, so that it can verify the watch.

        This is attempted at most once every half minute, and again when the server responds after a failure.
        The attempt delays a watch by at most a second. Errors are ignored, because the watch will raise them.
        """
        connection = self._connection
        if connection is None or not (self._must_prepare(connection) or self._is_preparing):
            return
        with trio.move_on_after(PREPARE_PATIENCE):
            async with self._turn:
                if self._must_prepare(connection):
                    self._prepared_at = trio.current_time()
                    self._is_preparing = True
                    try:
                        self._last = await self._exchange()
                    finally:
                        self._is_preparing = False

    def _must_prepare(self, connection: ProbeConnection) -> bool:
        return (self._is_outdated or not connection.is_live) and trio.current_time() >= self._prepared_at + self.silence

    async def verify(self, opened_at: float, *, resumable: bool) -> SilentConnectionError | None:
        """Send a probe for a silent watch, or use the result of another watch's probe.

        Return the error that ends the watch, or None. A ``resumable`` watch also ends if it cannot be verified.
        """
        async with self._turn:
            exchange = self._last
            if exchange is None or self._is_old(exchange):
                exchange = await self._probe()
        if not exchange.has_response and self.responded_at <= exchange.began_at:
            return SilentConnectionError(self._why_dead(exchange), server_failed=True)
        # If other requests received responses, only probes may be slow, and the watch cannot be verified.
        # A proxy that closes idle connections sooner would otherwise end a quiet watch repeatedly.
        is_vouched_for = exchange.has_response and exchange.opened_at <= opened_at
        if not resumable or is_vouched_for or self._idle_closes > MAX_IDLE_CLOSES:
            return None
        now = trio.current_time()
        if now < self._given_up_at + self.silence:
            return None
        self._given_up_at = now
        return SilentConnectionError(
            f"silent for {self.silence:g} s on a connection that cannot be verified; watch again", server_failed=False
        )

    def _why_dead(self, exchange: _Exchange) -> str:
        reason = f"did not respond to a probe within {self.patience:g} s"
        if exchange.error is not None:
            why = str(connection_failed(exchange.error, self.server_text)).removeprefix(f"{self.server_text}: ")
            reason = f"a probe failed ({why})"
        return f"the server has sent nothing for {self.silence:g} s and {reason}; the connection is presumed dead"

    def _is_old(self, exchange: _Exchange) -> bool:
        return trio.current_time() >= exchange.began_at + self.silence

    async def _probe(self) -> _Exchange:
        connection, last = self._connection, self._last
        assert connection is not None
        if last is not None and last.has_response and trio.current_time() < last.began_at + 2 * self.silence:
            self._idle_closes = 0 if connection.is_live else self._idle_closes + 1
        if self.look is not None:
            self.look()
        exchange = await self._exchange()
        if exchange.has_response and self._is_old(exchange):
            # The response to an earlier task's probe may have arrived long ago, and shows nothing about the present.
            exchange = await self._exchange()
        self._last = exchange
        return exchange

    async def _exchange(self) -> _Exchange:
        """Complete the pending probe of an earlier task, or send a new one. The caller must hold the turn."""
        connection = self._connection
        assert connection is not None
        if self._is_outdated:
            self._is_outdated = False
            connection.close()
        now = trio.current_time()
        is_taken_over = connection.is_pending
        began_at = connection.sent_at if is_taken_over else now
        deadline = (began_at if now < began_at + self.patience else now) + self.patience
        may_reconnect = may_extend = True
        while True:
            error: Exception | None = None
            with trio.CancelScope(deadline=deadline):
                try:
                    if not connection.is_pending:
                        await connection.send()
                    await connection.receive()
                except BaseException as exc:
                    clear_locals(exc)
                    if not isinstance(exc, CONNECTION_ERRORS):
                        raise
                    error = exc
                else:
                    self.record_response()
                    return _Exchange(began_at, connection.opened_at, has_response=True)
            if error is None and may_extend and trio.current_time() > deadline + _LATE:
                # This process was stopped, and the response may have arrived meanwhile.
                may_extend, deadline = False, trio.current_time() + self.patience
                continue
            connection.close()
            if error is not None and may_reconnect and (connection.was_reused or is_taken_over):
                may_reconnect = False  # the server has closed an idle connection, which it may do at any time
                continue
            self.record_failure()
            return _Exchange(began_at, connection.opened_at, has_response=False, error=error)


_MAX_BODY: Final = 64 * 1024
_WRITE_PATIENCE: Final = 1.0
"""Seconds to write a request; the socket's buffer is empty, so the write does not wait."""


@final
@attrs.define(eq=False)
class ProbeConnection:
    """The connection for probes, which does not belong to a pool.

    A probe opens this connection, and only one task at a time uses it.
    """

    _origin: Origin
    _tls: TLS | None
    _network: Network
    _headers: Headers
    _credentials: CredentialSource
    _forwarded: ForwardedRequests | None = attrs.field(default=None, alias="forwarded", kw_only=True)
    is_pending: bool = attrs.field(default=False, init=False)
    """Whether the response to the last probe is incomplete."""
    sent_at: float = attrs.field(default=-math.inf, init=False)
    """The time when the last probe was sent."""
    opened_at: float = attrs.field(default=math.inf, init=False)
    """The time when the connection of the last probe was opened."""
    was_reused: bool = attrs.field(default=False, init=False)
    """Whether the last probe used the connection of an earlier probe."""
    _connection: Connection | None = attrs.field(default=None, init=False)
    _sent_with: Credential = attrs.field(init=False)
    _head: Head | None = attrs.field(default=None, init=False)
    _body_size: int = attrs.field(default=0, init=False)
    """The number of received bytes of the response's body."""
    _is_shut_down: bool = attrs.field(default=False, init=False)

    @property
    def is_live(self) -> bool:
        """Whether the connection is open, as far as this side knows."""
        # An idle connection becomes readable when the server closes it.
        connection = self._connection
        return connection is not None and (self.is_pending or not connection.stream.is_readable)

    async def send(self) -> None:
        """Send a probe. If there is no live connection, open one first."""
        self.was_reused = self.is_live
        if not self.was_reused:
            self.close()
            await self._open()
        connection = self._connection
        assert connection is not None
        self._head, self._body_size = None, 0
        self._sent_with = self._credentials.latest
        request = Request(method="GET", path=PROBE_PATH, headers=self._headers, where="")
        encoded = Secret(self._origin.encode(request, self._sent_with.authorization, self._forwarded))
        self.sent_at, self.is_pending = trio.current_time(), True
        # Half a request would make the connection useless for later ones.
        with trio.CancelScope(shield=True):
            await connection.send(encoded.reveal(), _WRITE_PATIENCE)

    async def _open(self) -> None:
        if not self._is_shut_down:
            origin = self._origin
            stream = await self._network.connect(origin.host, origin.port, CONNECT_PATIENCE)
            if self._tls is not None:
                self._tls.refresh()
                stream = await stream.start_tls(self._tls.context, origin.server_name, CONNECT_PATIENCE)
            self._connection = Connection(stream)
            self.opened_at = stream.opened_at
        self._check_open()  # also after the connection was opened, which takes time

    def _check_open(self) -> None:
        if self._is_shut_down:
            self.close()
            raise trio.ClosedResourceError("this client is closed")

    async def receive(self) -> None:
        """Receive the response to the last probe. If the call is cancelled, another task may call this method again."""
        self._check_open()
        connection = self._connection
        assert connection is not None
        if self._head is None:
            self._head = await connection.receive_head(None)
        # A long error page is also a response; the rest of it is not read.
        while self._body_size <= _MAX_BODY and (data := await connection.receive()):
            self._body_size += len(data)
        head, self.is_pending = self._head, False
        connection.release()
        if connection.is_closed:
            self.close()
        if self._forwarded is not None:
            self._forwarded.check(head.code)
        if head.code == 401:
            self._credentials.reject(self._sent_with)

    def close(self) -> None:
        """Close the connection. The next probe opens another one."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self.is_pending = None, False

    def shut_down(self) -> None:
        """Close the connection permanently."""
        self._is_shut_down = True
        self.close()
