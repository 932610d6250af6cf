"""Names of hosts that httpx, DNS or TLS cannot use, found before there is a connection."""

from __future__ import annotations

import ssl

import httpx

from ..errors import ConfigError
from ..kubeconfig import ClusterConfig


def check_host_names(config: ClusterConfig) -> None:
    """Check the host of the server's URL and the ``tls-server-name``.

    Each library encodes names in its own way, so they are encoded here by those that will use them.
    What is valid but does not exist, such as a name with an underscore, is left to DNS.

    Raises:
        ConfigError: A label is empty, longer than 63 characters or not valid IDNA, or an address is not valid.
    """
    try:
        url = httpx.URL(config.server)
        _ = url.host  # which decodes xn-- labels
        check_for_tls(url.raw_host.decode("ascii"))
    except (httpx.InvalidURL, ValueError, ssl.SSLError) as exc:  # an SSLError: it is too long
        raise ConfigError(
            f"has no valid host name or address: {config.server!r}", file=config.source, key="server"
        ) from exc
    if config.tls_server_name:
        try:
            check_for_tls(config.tls_server_name)
        except (TypeError, ValueError, ssl.SSLError) as exc:  # a TypeError: it contains NUL
            problem = f"is not a valid host name: {config.tls_server_name!r}"
            raise ConfigError(problem, file=config.source, key="tls-server-name") from exc


def check_for_tls(name: str) -> None:
    """Check the name of a host, in ASCII, or an address.

    Raises:
        ValueError: A label is empty or too long.
        TypeError: It contains NUL.
        ssl.SSLError: It is too long.
    """
    # OpenSSL has limits of its own; before, the name is encoded by the codec that socket.getaddrinfo uses.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name)
