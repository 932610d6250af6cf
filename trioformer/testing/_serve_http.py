"""A server that makes the embedded API server available on a socket, for kubectl and other processes."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Iterable
from os import PathLike
from typing import Final, final

import attrs
import trio

from .._listeners import TLSContexts, is_loopback, is_token, open_listener, server_contexts, url_of
from .._secret import Secret, conceal
from .._serving import ServerLimits, serve_app
from ._identity import Identity
from ._server import APIServer
from ._serving._guard import Guard, checked_host, plain_host
from ._storage._bodies import MAX_BYTES

logger: Final = logging.getLogger("trioformer.testing")

LIMITS: Final = ServerLimits(
    connections=512, head_size=64 * 1024, body_size=MAX_BYTES, request_period=60.0, send_period=60.0
)
"""The limits are higher than for a health port, because each watch is a connection, and selectors may be long."""


def _checked_hosts(names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):  # its characters would be the names
        raise TypeError("hosts= must be a collection of names, such as ['my-machine'], not a str")
    return tuple(map(checked_host, names))


@final
@attrs.frozen(kw_only=True)
class Access:
    """The access rules of a server on a socket, as given by the arguments of :func:`serve_http`.

    Raises:
        TypeError: ``hosts`` is a string.
        ValueError: Only one of the certificate and the key is given, the token is not valid, or a host name is not
            valid.
    """

    hosts: tuple[str, ...] = attrs.field(default=(), converter=_checked_hosts)
    certificate: str | PathLike[str] | None = None
    key: str | PathLike[str] | None = None
    token: Secret[str] | None = None
    identity: Identity | None = None
    """The certificate and the key that the server has made itself, instead of files."""
    allow_insecure: bool = False

    def __attrs_post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("TLS needs both a certificate and its key")
        if self.token is not None and not is_token(self.token):
            raise ValueError("the token must consist of printable ASCII characters, without white space")

    def tls_contexts(self, names: tuple[str, str] = ("certificate", "key")) -> TLSContexts | None:
        """Return the TLS contexts, or None for plain HTTP.

        Args:
            names: The names of the certificate and the key to use in error messages.

        Raises:
            ConfigError: A file cannot be read or is not valid, the key is encrypted, or the key does not belong to the
                certificate.
        """
        if self.identity is not None:
            context = self.identity.context()
            return lambda: context
        if self.certificate is None or self.key is None:
            return None
        return server_contexts(self.certificate, self.key, names=names)

    async def listen(self, bind: str) -> socket.socket:
        """Open the socket that the server listens on.

        Raises:
            ValueError: ``bind`` is not ``host:port``, or TLS or a token is missing.
            OSError: The server cannot listen on the address.
        """
        listener = await open_listener(bind)
        try:
            self._check(bind, listener)
        except ValueError:
            listener.close()
            raise
        return listener

    def _check(self, bind: str, listener: socket.socket) -> None:
        """Check that a server that other machines can reach has TLS and a token.

        With ``allow_insecure``, only log a warning.

        Raises:
            ValueError: TLS or a token is missing.
        """
        if is_loopback(listener.getsockname()[0]):
            return
        missing = [name for name, given in (("TLS", self.has_tls), ("a token", self.token)) if not given]
        if not missing:
            return
        if not self.allow_insecure:
            raise ValueError(
                f"listening on {bind!r} lets other machines read and change everything: pass a certificate, a key and "
                f"a token, or allow_insecure=True (--allow-insecure)"
            )
        logger.warning(
            "the embedded API server listens on %s without %s (allow_insecure): other machines can read and change "
            "everything",
            bind,
            " and ".join(missing),
        )

    @property
    def has_tls(self) -> bool:
        """Whether clients must use https."""
        return self.identity is not None or self.certificate is not None

    def guard(self, server: APIServer, bind: str, listener: socket.socket) -> Guard:
        """Return an ASGI application that checks each request before the server's application handles it."""
        address = listener.getsockname()[0]
        hosts = {*self.hosts, plain_host(bind.rpartition(":")[0].strip("[]")), plain_host(address)}
        return Guard(server.asgi_app, frozenset(hosts), _is_unspecified(address), self.token)

    def url(self, listener: socket.socket) -> str:
        """Return the URL for clients.

        If the server listens on all addresses, the host in the URL is the first of ``hosts``.  The address 0.0.0.0 is
        not used, because no certificate is valid for it and other machines cannot connect to it.
        """
        is_everywhere = _is_unspecified(listener.getsockname()[0])
        host = next(iter(self.hosts), "localhost") if is_everywhere else None
        return url_of(listener, "https" if self.has_tls else "http", host)


def _is_unspecified(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_unspecified


async def serve_http(
    server: APIServer,
    bind: str = "127.0.0.1:0",
    *,
    hosts: Iterable[str] = (),
    certificate: str | PathLike[str] | None = None,
    key: str | PathLike[str] | None = None,
    token: str | None = None,
    allow_insecure: bool = False,
    access_log: logging.Logger | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an embedded API server over HTTP/1.1 until cancelled.

    :meth:`APIServer.run` is not needed, but both can run at the same time and serve the same objects.

    Web pages in a browser on this machine cannot use the server.  The server rejects requests whose ``Origin`` header
    names another site.  The server also rejects requests unless their ``Host`` header is a loopback name or
    address, the server's own name or address, or one of ``hosts``.

    Args:
        server: The server.
        bind: The ``host:port`` to listen on.  Port 0 selects a free port.  An address that is not a loopback address
            requires TLS and a token, or ``allow_insecure``.
        hosts: Additional host names that clients use to reach the server.
        certificate: A PEM file with the server's certificate chain, for TLS.
        key: A PEM file with the private key of the certificate.
        token: The bearer token that requests must have, except for ``/healthz``, ``/livez`` and ``/readyz``.
        allow_insecure: Whether to accept requests from other machines without TLS or a token.  If such requests are
            accepted, the server logs a warning.
        access_log: The logger for finished requests.  A watch is logged when it ends.
        task_status: The status that reports the server's URL when the server accepts connections.

    Raises:
        TypeError: ``hosts`` is a string.
        ValueError: ``bind`` is not ``host:port``, one of ``hosts`` is not a host name or address, or other machines
            could use the server without TLS or a token.
        ConfigError: The certificate or the key cannot be read or is not valid.
        OSError: The server cannot listen on the address.

    Cancellation:
        The server ends all requests and watches immediately and closes the socket.

    Ownership:
        The tasks of all connections belong to a nursery of this function.
    """
    access = Access(
        hosts=hosts,
        certificate=certificate,
        key=key,
        token=None if token is None else conceal(token),
        allow_insecure=allow_insecure,
    )
    del token  # a traceback that prints variables would show it
    tls = access.tls_contexts()
    listener = await access.listen(bind)
    app = access.guard(server, bind, listener)
    await serve_app(app, listener, limits=LIMITS, tls=tls, access_log=access_log, task_status=task_status)
