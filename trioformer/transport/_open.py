"""Open the transport for one cluster: check the configuration, and combine the parts of this package."""

from __future__ import annotations

import platform
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from .._secret import Secret
from .._version import __version__
from ..errors import ConfigError
from ..kubeconfig import ClusterConfig
from ._connection import RequestObserver, Transport
from ._errors import credential_text, server_text
from ._options import DEFAULT_OPTIONS, ClientOptions
from ._warnings import WarningLog
from .auth._credentials import Authorization, CredentialSource
from .auth._exec_policy import PluginPolicy
from .auth._tls import TLS
from .http._messages import Header, RequestHeaders, impersonation_headers
from .http._network import Network
from .http._pool import Generation, Generations, Origin, Pool
from .policy._liveness import ProbeConnection, ServerHealth
from .policy._throttle import RequestRateLimiter

if TYPE_CHECKING:
    import httpx

# Seconds without traffic before the kernel sends a keepalive probe, seconds between two probes, and the number of
# unanswered probes that ends a connection.  A dead peer is detected 42 s after its last byte; each of the kernel's
# timers may be half a second late.
KEEPALIVE_IDLE: Final = 15
KEEPALIVE_INTERVAL: Final = 9
KEEPALIVE_COUNT: Final = 3


@asynccontextmanager
async def open_transport(
    config: ClusterConfig,
    *,
    http_transport: httpx.AsyncBaseTransport | None = None,
    rate_limiter: RequestRateLimiter | None = None,
    observer: RequestObserver | None = None,
    options: ClientOptions = DEFAULT_OPTIONS,
    credentials: CredentialSource | None = None,
) -> AsyncGenerator[Transport, None]:
    """Open a transport, which connects to a cluster on demand. All connections are closed at the end of the block.

    The arguments are as in :func:`trioformer.client.open_client`.  To share the credentials of another transport, pass
    its source of credentials as ``credentials``.

    Raises:
        ConfigError: A host name, certificate, key, token or proxy is not valid, or a credential would be sent without
            TLS.

    Ownership:
        No task is started, so exceptions of the block are not wrapped in a group.
        ``http_transport`` belongs to the caller and is not closed.
    """
    user_agent = default_user_agent() if options.user_agent is None else options.user_agent
    headers = _request_headers(config, user_agent, options.compression, is_in_process=http_transport is not None)
    if http_transport is not None:
        credentials = credentials or _credentials(config, options.plugin_policy)
        health = ServerHealth._create(server_text(config), None, credential_text=credential_text(config))
        from .http._httpx_transport import HTTPXTransport  # noqa: PLC0415  # httpx is a tenth of a program's start

        sender = HTTPXTransport(http_transport, config.server, config.tls_server_name)
        generations = Generations(Generation(sender, sender))
    else:
        tls: TLS | None = None
        if config.server.startswith("https:"):
            tls = TLS(config)
        elif config.exec is not None or _has_own_credentials(config):
            raise ConfigError("credentials are sent only over https://", file=config.source, key="server")
        credentials = credentials or _credentials(config, options.plugin_policy)
        proxy_url = None if config.proxy_url is None else Secret(config.proxy_url)
        from ._proxy._environment import find_route  # noqa: PLC0415  # not needed for a caller's transport

        route = find_route(config.server, proxy_url, source=config.source)
        forwarded = None if route is None else route.forwarded
        try:
            origin = Origin.of(config.server, config.tls_server_name)
        except ValueError as exc:
            raise ConfigError(f"is not a valid URL: {exc}", file=config.source, key="server") from None

        def network(verified: ServerHealth | None, context: ssl.SSLContext | None) -> Network:
            return Network(verified, route=route, context=context, socket_options=socket_options())

        def open_generation(context: ssl.SSLContext | None) -> Generation:
            def pool(network: Network) -> Pool:
                return Pool(origin, context, network, forwarded=forwarded, header_bytes=options.limits.header_bytes)

            return Generation(pool(network(None, context)), pool(network(health, context)))

        context = None if tls is None else tls.context
        probe_headers = headers.of(accept="application/json", content_type=None, accepts_gzip=False)
        probes = ProbeConnection(origin, tls, network(None, context), probe_headers, credentials, forwarded=forwarded)
        health = ServerHealth._create(server_text(config), probes, credential_text=credential_text(config))
        generations = Generations(open_generation(context), tls, open_generation, health)
    transport = Transport._create(
        server=config.server,
        plugin="" if config.exec is None else config.exec.command,
        health=health,
        limits=options.limits,
        generations=generations,
        credentials=credentials,
        headers=headers,
        rate_limiter=rate_limiter,
        warning_handler=options.warning_handler or WarningLog(),
        observer=observer,
        max_retries=options.retries,
    )
    with credentials.in_use():
        try:
            yield transport
        finally:
            transport._close()


def _credentials(config: ClusterConfig, policy: PluginPolicy) -> CredentialSource:
    """Choose the source of credentials. As in client-go, a plugin is used only if there are no other credentials."""
    has_certificate = config.client_certificate_data is not None or config.client_certificate_file is not None
    if config.exec is None or has_certificate or _has_own_credentials(config):
        return Authorization(config)
    from .auth._exec_source import PluginCredentials  # noqa: PLC0415  # most clients do not have a plugin

    return PluginCredentials(config, policy)


def _has_own_credentials(config: ClusterConfig) -> bool:
    return config.token is not None or config.token_file is not None or config.username is not None


def default_user_agent() -> str:
    """Return the value of the ``User-Agent`` header: the library, its version and the platform."""
    return f"trioformer/{__version__} ({platform.system().lower()}/{platform.machine().lower()})"


def _request_headers(
    config: ClusterConfig, user_agent: str, compression: bool | None, *, is_in_process: bool
) -> RequestHeaders:
    uses_gzip = not is_in_process and not config.disable_compression
    uses_gzip = uses_gzip and (pays_to_compress(config) if compression is None else compression)
    impersonation: tuple[Header, ...] = ()
    if config.impersonate is not None:
        try:
            impersonation = impersonation_headers(config.impersonate)
        except ValueError as exc:
            raise ConfigError(str(exc), file=config.source, key="impersonate") from exc
    return RequestHeaders(user_agent, uses_gzip, impersonation)


def pays_to_compress(config: ClusterConfig) -> bool:
    """Return whether responses are compressed by default.

    They are not compressed if the server is in the same cluster or on this machine.

    In these cases, the network is faster than the server's compression.  On a slow link, a compressed list arrives in
    a seventh of the time (docs/performance.rst).
    """
    host = urlsplit(config.server).hostname or ""
    return not (config.in_cluster or host in ("localhost", "::1") or host.startswith("127."))


def socket_options() -> list[tuple[int, int, int]]:
    """Return socket options that let the kernel detect a dead peer, even while no data is sent."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    after = KEEPALIVE_IDLE + KEEPALIVE_COUNT * KEEPALIVE_INTERVAL
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", KEEPALIVE_COUNT),
        ("TCP_USER_TIMEOUT", after * 1000),  # milliseconds; the same timeout for unacknowledged data
    ):
        number: int | None = getattr(socket, name, None)  # not every platform has all of them
        if number is not None:
            options.append((socket.IPPROTO_TCP, number, value))
    return options
