"""Reads the cluster of a context: the server, how it is verified, and the proxy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import AnyStr

import attrs

from .._secret import Secret
from ._checks import check_certificates, check_proxy_url, parse_server, read_file
from ._config import ClusterConfig
from ._entries import Entry
from ._problems import Problems

_HOST_AND_PORT = re.compile(r"[^/@?#]+/?")


def read_server(cluster: Entry) -> str:
    """Return the URL of the API server.

    Raises:
        ConfigError: It is missing or not valid.
    """
    server = cluster.secret("server")  # it may contain a password
    if server is None:
        raise cluster.error("server", "is missing: a cluster needs the URL of its API server")
    return cluster.call("server", lambda: parse_server(_with_scheme(server.reveal(), cluster)))


def _with_scheme(server: str, cluster: Entry) -> str:
    """Complete ``host:port`` as client-go does (``DefaultServerURL``): https with TLS settings, otherwise http."""
    if not _HOST_AND_PORT.fullmatch(server):
        return server
    fields = ("insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data")
    has_tls = any(cluster.has(field) and cluster.fields.get(field) is not False for field in fields)
    return f"{'https' if has_tls else 'http'}://{server}"


def with_connection(config: ClusterConfig, cluster: Entry, problems: Problems) -> ClusterConfig:
    """Add how the server is reached: the proxy, and whether responses may be compressed."""
    proxy_url = problems.attempt(lambda: _proxy_url(cluster))
    return attrs.evolve(
        config,
        proxy_url=revealed(proxy_url),
        disable_compression=bool(problems.attempt(lambda: cluster.flag("disable-compression"))),
    )


def _proxy_url(cluster: Entry) -> Secret[str] | None:
    url = cluster.secret("proxy-url")  # it may contain a password
    if url is not None:
        cluster.call("proxy-url", lambda: check_proxy_url(url.reveal()))
    return url


def with_tls(config: ClusterConfig, cluster: Entry, problems: Problems) -> ClusterConfig:
    """Add how the server is verified."""
    ca_data, ca_file = read_pem(cluster, "certificate-authority", check_certificates, problems)
    insecure = bool(problems.attempt(lambda: cluster.flag("insecure-skip-tls-verify")))
    if insecure and (cluster.has("certificate-authority") or cluster.has("certificate-authority-data")):
        message = "excludes a certificate authority: remove one of the two"
        problems.add(cluster.error("insecure-skip-tls-verify", message))
    return attrs.evolve(
        config,
        ca_data=revealed(ca_data),
        ca_file=ca_file,
        insecure_skip_tls_verify=insecure,
        tls_server_name=problems.attempt(lambda: cluster.text("tls-server-name")),
    )


def revealed(secret: Secret[AnyStr] | None) -> AnyStr | None:
    """Reveal a credential; None stays None."""
    return None if secret is None else secret.reveal()


def read_pem(
    entry: Entry, field: str, check: Callable[[bytes], None], problems: Problems
) -> tuple[Secret[bytes] | None, str | None]:
    """Check ``field``-data, or the file that ``field`` names; return the data or the file's path."""
    if entry.has(field) and entry.has(f"{field}-data"):
        problems.add(entry.error(field, f"is set together with {field}-data: remove one of the two"))
    data = problems.attempt(lambda: entry.data(f"{field}-data"))
    if data is not None:
        problems.attempt(lambda: entry.call(f"{field}-data", lambda: check(data.reveal())))
        return data, None
    path = problems.attempt(lambda: entry.path(field))
    if path is not None:
        problems.attempt(lambda: entry.call(field, lambda: check(read_file(path).reveal()), f"file {path!r} "))
    return None, path
