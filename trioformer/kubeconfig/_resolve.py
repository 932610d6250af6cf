"""Makes the :class:`ClusterConfig` of a context (client-go's ``tools/clientcmd/client_config.go``)."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import AnyStr

import attrs

from .._secret import Secret
from ..errors import ConfigError
from ._checks import (
    check_certificates,
    check_namespace,
    check_private_key,
    parse_server,
    parse_token,
    read_file,
    read_token,
)
from ._config import ClusterConfig
from ._entries import Entry
from ._files import Kubeconfig
from ._problems import Problems
from ._values import Fields

_log = logging.getLogger("trioformer.kubeconfig")

_MAX_SHOWN = 20
_UNKNOWN = "https://unknown"
"""The server of a configuration that has a problem with its server, and therefore is not returned."""
_CERTIFICATE_AND_KEY = ("client-certificate", "client-key")
_ALTERNATIVE = "give the user a token or a client certificate, or use a server started by 'kubectl proxy'"
_HOST_AND_PORT = re.compile(r"[^/@?#]+/?")
_UNSUPPORTED_IN_USER: Mapping[str, str] = {
    "exec": f"credential plugins are not supported yet; {_ALTERNATIVE}",
    "auth-provider": f"authentication providers are not supported; {_ALTERNATIVE}",
    "as": f"impersonation is not supported yet; {_ALTERNATIVE}",
    "as-uid": f"impersonation is not supported yet; {_ALTERNATIVE}",
    "as-groups": f"impersonation is not supported yet; {_ALTERNATIVE}",
    "as-user-extra": f"impersonation is not supported yet; {_ALTERNATIVE}",
}
_UNSUPPORTED_IN_CLUSTER: Mapping[str, str] = {
    "proxy-url": "proxies are not supported yet; use a server without a proxy, or 'kubectl proxy'",
}


def resolve(
    kubeconfig: Kubeconfig, *, context: str | None = None, default_namespace: Callable[[], str] = lambda: "default"
) -> ClusterConfig:
    """Make the configuration of a context, and check the context, its cluster and its user.

    If the server is not ``https``, credentials are checked and then omitted, as in client-go.

    Args:
        kubeconfig: The merged kubeconfig files.
        context: The name of the context; None for the current one.
        default_namespace: Called if the context has no namespace.

    Raises:
        ConfigError: Something that the context needs is missing, not valid, or not supported; it lists all of this.
    """
    name, chosen = _choose_context(kubeconfig, context)
    problems = Problems()
    cluster = problems.attempt(lambda: _cluster(chosen, kubeconfig.clusters))
    # Without a user, requests are anonymous.
    anonymous = Entry(chosen.file, chosen.key, Fields())
    user = problems.attempt(lambda: _follow(chosen, "user", kubeconfig.users)) or anonymous
    config = ClusterConfig(
        server=(cluster and problems.attempt(lambda: _server(cluster))) or _UNKNOWN,
        namespace=problems.attempt(lambda: _namespace(chosen) or default_namespace()) or "",
        context=name,
        source=kubeconfig.source,
    )
    with_tls = config if cluster is None else _with_tls(config, cluster, problems)
    with_credentials = _with_credentials(with_tls, user, problems)
    problems.raise_if_any()
    if config.server.startswith("https:"):
        return with_credentials
    if with_credentials != with_tls:
        _log.warning("%s: %s: no credentials are sent to %s, it is not https", user.file, user.key, config.server)
    return config


def _choose_context(kubeconfig: Kubeconfig, context: str | None) -> tuple[str, Entry]:
    known = f"known contexts: {_names(kubeconfig.contexts)}"
    files = os.pathsep.join(kubeconfig.files)
    name = kubeconfig.current_context if context is None else context
    if name is None:
        raise ConfigError(f"is not set, and no context was given; {known}", file=files, key="current-context")
    chosen = kubeconfig.contexts.get(name)
    if chosen is not None:
        return name, chosen
    if context is not None:
        raise ConfigError(f"there is no context {name!r}; {known}", file=files, key="contexts")
    message = f"names the context {name!r}, which does not exist; {known}"
    raise ConfigError(message, file=kubeconfig.current_context_file, key="current-context")


def _cluster(chosen: Entry, clusters: Mapping[str, Entry]) -> Entry:
    cluster = _follow(chosen, "cluster", clusters)
    if cluster is None:
        raise chosen.error("cluster", "is missing: a context must name its cluster")
    return cluster


def _follow(chosen: Entry, field: str, entries: Mapping[str, Entry]) -> Entry | None:
    name = chosen.text(field)
    if name is None:
        return None
    if name not in entries:
        known = f"known {field}s: {_names(entries)}"
        raise chosen.error(field, f"names the {field} {name!r}, which does not exist; {known}")
    return entries[name]


def _names(names: Iterable[str]) -> str:
    ordered = [name if name.isprintable() else repr(name) for name in sorted(names)]
    more = f" and {len(ordered) - _MAX_SHOWN} more" if len(ordered) > _MAX_SHOWN else ""
    return (", ".join(ordered[:_MAX_SHOWN]) or "none") + more


def _check_unsupported(entry: Entry, unsupported: Mapping[str, str], problems: Problems) -> None:
    for field, message in unsupported.items():
        # A plugin may have an empty mapping; if it were ignored, the user would be anonymous.
        if entry.has(field) or (field in ("exec", "auth-provider") and entry.fields.get(field) is not None):
            problems.add(entry.error(field, message))


def _namespace(chosen: Entry) -> str | None:
    namespace = chosen.text("namespace")
    if namespace is not None:
        chosen.call("namespace", lambda: check_namespace(namespace))
    return namespace


def _server(cluster: Entry) -> str:
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


def _with_tls(config: ClusterConfig, cluster: Entry, problems: Problems) -> ClusterConfig:
    _check_unsupported(cluster, _UNSUPPORTED_IN_CLUSTER, problems)
    ca_data, ca_file = _pem(cluster, "certificate-authority", check_certificates, problems)
    insecure = bool(problems.attempt(lambda: cluster.flag("insecure-skip-tls-verify")))
    if insecure and (cluster.has("certificate-authority") or cluster.has("certificate-authority-data")):
        message = "excludes a certificate authority: remove one of the two"
        problems.add(cluster.error("insecure-skip-tls-verify", message))
    return attrs.evolve(
        config,
        ca_data=_revealed(ca_data),
        ca_file=ca_file,
        insecure_skip_tls_verify=insecure,
        tls_server_name=problems.attempt(lambda: cluster.text("tls-server-name")),
    )


def _with_credentials(config: ClusterConfig, user: Entry, problems: Problems) -> ClusterConfig:
    _check_unsupported(user, _UNSUPPORTED_IN_USER, problems)
    certificate_data, certificate_file = _pem(user, "client-certificate", check_certificates, problems)
    has_certificate, has_key = (user.has(field) or user.has(f"{field}-data") for field in _CERTIFICATE_AND_KEY)
    # client-go ignores a key without a certificate; alone, it is a mistake, since requests would be anonymous.
    is_ignored = not has_certificate and any(user.has(field) for field in ("token", "tokenFile", "username"))
    key_data, key_file = (None, None) if is_ignored else _pem(user, "client-key", check_private_key, problems)
    if has_certificate != has_key and not is_ignored:
        missing, given = reversed(_CERTIFICATE_AND_KEY) if has_certificate else _CERTIFICATE_AND_KEY
        problems.add(user.error(missing, f"is missing, but {given} is set: set {missing} or {missing}-data"))
    token, token_file = problems.attempt(lambda: _token(user)) or (None, None)
    username = problems.attempt(lambda: user.text("username"))
    password = problems.attempt(lambda: user.secret("password"))
    if user.has("password") and not user.has("username"):
        problems.add(user.error("username", "is missing, but password is set"))
    if user.has("username") and (user.has("token") or user.has("tokenFile")):
        problems.add(user.error("", "has both a bearer token and a user name with password: remove one of the two"))
    return attrs.evolve(
        config,
        client_certificate_data=_revealed(certificate_data),
        client_certificate_file=certificate_file,
        client_key_data=_revealed(key_data),
        client_key_file=key_file,
        token=_revealed(token),
        token_file=token_file,
        username=username,
        password=None if username is None else _revealed(password) or "",
    )


def _revealed(secret: Secret[AnyStr] | None) -> AnyStr | None:
    return None if secret is None else secret.reveal()


def _pem(
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


def _token(user: Entry) -> tuple[Secret[str] | None, str | None]:
    """Return the token and the path of the token's file.

    With a token, the file need not exist yet: the token is used until the file can be read
    (``getUserIdentificationPartialConfig``).
    """
    text, path = user.secret("token"), user.path("tokenFile")
    if text is not None:
        return user.call("token", lambda: parse_token(text.reveal())), path
    if path is not None:
        return user.call("tokenFile", lambda: read_token(path), f"file {path!r} "), path
    return None, None
