"""The connections of a client, which are replaced when its certificates are.

The problem: a connection was verified with the authorities, and authenticated with the client certificate, that were in
the files when it was opened.
When these are rotated, an authority that is trusted no more may have signed for a server that is still connected, and
the server refuses a request on a connection whose client certificate has expired.
A new connection for each request would cost a TLS handshake each, and an OpenSSL context cannot forget an authority.

So the connections form generations, each with one context.
A request is sent on the present generation.
When the certificates have changed, a new generation replaces the present one, which is retired: its idle connections
are closed at once, its requests in flight finish and then close theirs, and its watches end as if the server had ended
them, so that whoever reads them watches again.
A streamed body of any length that is not a watch ends with them, because its server may be trusted no more; nobody
resumes it, so its reader gets an error (``client/_raw.py``).
Only what is read is a watch here: a write whose response is streamed is a request in flight, and is not sent again.
Three cases would be errors that nobody needs to see.
A watch that is a second old would look like one that the server refuses to keep, so its end is reported later.
A watch that begins with a list, a watch-list, would have to begin again, so it has a minute more.
A watch that is still being opened is sent again.

Files are looked at when a request is sent, before a probe of silent watches, and when a watch receives something half a
minute after the last look; there is no task.
When one side refuses the certificate of the other during a handshake, the server has not begun the request.
If changed files are found then, it is sent once more on the new generation.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable
from typing import Final, final

import attrs
import httpx
import trio

from ._errors import is_about_certificates
from .auth._credentials import Credential
from .auth._tls import TLS
from .http._connection import ResponseStream
from .http._httpx_transport import HTTPXTransport
from .http._messages import Request
from .http._pool import Pool
from .policy._liveness import ServerHealth

WATCH_LIST_PATIENCE: Final = 60.0
"""Seconds that a watch which begins with a list may go on after its connections were replaced."""

_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
"""Errors of a connection that was never opened."""


@final
@attrs.define(eq=False)
class Generation:
    """Connections that use the same certificates."""

    requests: Pool | HTTPXTransport
    """Those for requests and lists."""
    watches: Pool | HTTPXTransport
    """Those for watches, one each."""
    is_retired: bool = attrs.field(default=False, init=False)
    """Whether others have replaced them."""

    def of(self, *, for_watch: bool) -> Pool | HTTPXTransport:
        """Return the connections for one kind of request."""
        return self.watches if for_watch else self.requests


@final
@attrs.define(eq=False)
class _Retired:
    """A generation that was replaced."""

    requests: Pool
    watches: Pool
    ends_at: float
    """When its watch-lists end, too."""

    @property
    def is_empty(self) -> bool:
        return self.requests.is_empty and self.watches.is_empty


@final
@attrs.define(eq=False)
class Generations:
    """The connections of a client.

    Args:
        present: The first generation.
        tls: The certificates; None for connections that have none.
        open_pools: Makes the pools for requests and for watches of a generation, which use a context.
        health: Must open its connection again when the certificates are others.
    """

    present: Generation
    """The connections that the next request gets."""
    _tls: TLS | None = None
    _open_pools: Callable[[ssl.SSLContext], tuple[Pool, Pool]] | None = None
    _health: ServerHealth | None = None
    _context: ssl.SSLContext | None = attrs.field(init=False)
    _retired: list[_Retired] = attrs.field(factory=list, init=False)
    _sweep_at: float = attrs.field(default=math.inf, init=False)
    """When watch-lists of retired generations end: with the next look after that."""

    def __attrs_post_init__(self) -> None:
        self._context = self._tls.context if self._tls is not None else None
        if self._health is not None and self._tls is not None:
            self._health.look = self._look

    def current(self, credential: Credential) -> Generation:
        """Return the connections for a request that is sent now with ``credential``.

        Raises:
            ConfigError: The certificate of the credential is not valid.
        """
        if self._tls is not None:
            self._tls.use(credential.certificate)
            self._refresh(self._tls)
        return self.present

    def _refresh(self, tls: TLS) -> None:
        if self._health is not None and self._health.is_closed:
            return  # a new generation would not be closed
        tls.refresh()
        if tls.context is not self._context:
            self._replace(tls.context)
        now = trio.current_time()
        if now >= self._sweep_at:
            self._sweep()
        if self._health is not None:
            self._health.look_at = min(now + self._health.silence, self._sweep_at)

    async def send(
        self, request: Request, credential: Credential, *, for_watch: bool
    ) -> tuple[ResponseStream, Generation]:
        """Send a request, and receive the head of its response.

        Args:
            request: The request.
            credential: What it is authenticated with.
            for_watch: Whether it is a watch, and so a GET.

        Returns:
            The response, and the connections that it was received on.

        Raises:
            ConfigError: The certificate of the credential is not valid.
            Exception: What httpx raises when a request fails.
        """
        self.current(credential)
        may_renew = True
        while True:
            generation = self.present
            # no checkpoint between choosing the generation and giving it the request
            try:
                return await generation.of(for_watch=for_watch).send(request, credential.authorization), generation
            except httpx.TransportError as exc:
                if may_renew and is_about_certificates(exc):
                    may_renew = False
                    if self.reject(generation):
                        continue
                elif generation.is_retired and (for_watch or isinstance(exc, _NOT_SENT)):
                    continue
                raise

    def reject(self, used: object) -> bool:
        """Record that the server has refused a client's credential, or one side the other's certificate.

        Args:
            used: The generation that the request was sent on.

        Returns:
            Whether there are newer connections: of several requests that are refused, the first one finds the changes.
        """
        if self._tls is None:
            return False
        self._tls.record_rejection()
        self._refresh(self._tls)
        return self.present is not used

    def _replace(self, context: ssl.SSLContext) -> None:
        assert self._open_pools is not None
        old, now = self.present, trio.current_time()
        self._context, self.present = context, Generation(*self._open_pools(context))
        assert isinstance(old.requests, Pool)
        assert isinstance(old.watches, Pool)
        old.is_retired = True
        retired = _Retired(old.requests, old.watches, now + WATCH_LIST_PATIENCE)
        self._retired = [*(each for each in self._retired if not each.is_empty), retired]
        retired.requests.retire()
        retired.watches.retire()
        retired.watches.end_watches(spares_lists=True)
        self._sweep_at = min(each.ends_at for each in self._retired)
        if self._health is not None:
            self._health.record_rotation()

    def _sweep(self) -> None:
        now = trio.current_time()
        for retired in self._retired:
            if retired.ends_at <= now:
                retired.watches.end_watches(spares_lists=False)
        self._retired = [each for each in self._retired if not each.is_empty]
        self._sweep_at = min((each.ends_at for each in self._retired if each.ends_at > now), default=math.inf)

    async def _look(self) -> None:
        """Replace the connections if the files have changed, and end watch-lists in time; when no request does that."""
        assert self._tls is not None
        self._refresh(self._tls)

    def close(self) -> None:
        """Close all connections, including those of retired generations."""
        for retired in self._retired:
            retired.requests.close()
            retired.watches.close()
        self.present.requests.close()
        self.present.watches.close()
