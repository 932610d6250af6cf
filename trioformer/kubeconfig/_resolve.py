"""Create the :class:`ClusterConfig` for a context, and apply overrides.

Source: client-go ``tools/clientcmd/client_config.go`` and ``overrides.go``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ..errors import ConfigError
from ._checks import check_namespace
from ._config import ClusterConfig
from ._credentials import read_connection, read_credentials, read_impersonation, read_server, read_tls
from ._entries import Entry
from ._files import Kubeconfig
from ._overrides import ConfigOverrides

_log = logging.getLogger("trioformer.kubeconfig")


def resolve(
    kubeconfig: Kubeconfig,
    *,
    context: str | None = None,
    overrides: ConfigOverrides | None = None,
    default_namespace: Callable[[], str] = lambda: "default",
) -> ClusterConfig:
    """Return the configuration for a context, after checking the context, its cluster and its user.

    If the server's URL is not ``https``, credentials are checked and then omitted, as in client-go. Impersonation is
    kept.

    Raises:
        ConfigError: A part of the context is missing, not valid, or not supported. The error lists all problems.
    """
    overrides = overrides or ConfigOverrides()
    name, chosen = _choose_context(kubeconfig, context, overrides)
    chosen = _override(chosen, overrides, _CONTEXT)
    cluster = _follow(chosen, "cluster", kubeconfig.clusters)
    if not overrides.server and not chosen.has("cluster"):
        chosen.report("cluster", "is missing: a context must name its cluster")
    # Without a user, requests are anonymous.
    user = _follow(chosen, "user", kubeconfig.users) or Entry(chosen.problems, chosen.file, chosen.key)
    source = ", ".join(kubeconfig.files) or "overrides"
    return configure(chosen, cluster, user, overrides, default_namespace, context=name, source=source)


def configure(
    chosen: Entry,
    cluster: Entry | None,
    user: Entry,
    overrides: ConfigOverrides,
    default_namespace: Callable[[], str],
    **about: Any,
) -> ClusterConfig:
    """Return the configuration for a context, its cluster and its user.

    If ``cluster`` is None, the caller has already recorded the problem.

    Raises:
        ConfigError: Problems were recorded. The error lists all of them.
    """
    problems = chosen.problems
    namespace = chosen.check("namespace", check_namespace, chosen.text("namespace")) or default_namespace()
    reached = _override(cluster or Entry(problems, "", ""), overrides, _CLUSTER)
    user = _override(user, overrides, _USER)
    server = None if cluster is None and not overrides.server else read_server(reached)
    impersonate = overrides.impersonate or read_impersonation(user)
    reachable = {**about, "namespace": namespace, **read_connection(reached), "impersonate": impersonate}
    tls, credentials = read_tls(reached), read_credentials(user, reached)
    problems.raise_if_any()
    assert server is not None
    if server.startswith("https:"):
        return ClusterConfig(server=server, **reachable, **tls, **credentials)
    if any(value is not None for value in credentials.values()):
        place = f"{user.file}: {user.key}" if user.file else about["source"]
        _log.warning("%s: not sending credentials to %s, because its URL is not https", place, server)
    return ClusterConfig(server=server, **reachable)


def _choose_context(
    kubeconfig: Kubeconfig, context: str | None, overrides: ConfigOverrides
) -> tuple[str | None, Entry]:
    known = f"known contexts: {', '.join(sorted(kubeconfig.contexts)) or 'none'}"
    files = os.pathsep.join(kubeconfig.files)
    name = kubeconfig.current_context if context is None else context
    if name is None and (overrides.server or overrides.cluster):
        return None, Entry(kubeconfig.problems, "", "")
    if name is None:
        raise ConfigError(f"is not set, and no context was given; {known}", file=files, key="current-context")
    chosen = kubeconfig.contexts.get(name)
    if chosen is not None:
        return name, chosen
    if context is not None:
        raise ConfigError(f"there is no context {name!r}; {known}", file=files, key="contexts")
    message = f"names the context {name!r}, which does not exist; {known}"
    raise ConfigError(message, file=kubeconfig.current_context_file, key="current-context")


def _follow(chosen: Entry, field: str, entries: Mapping[str, Entry]) -> Entry | None:
    name = chosen.text(field)
    if name is not None and name not in entries:
        known = f"known {field}s: {', '.join(sorted(entries)) or 'none'}"
        chosen.report(field, f"names the {field} {name!r}, which does not exist; {known}")
    return None if name is None else entries.get(name)


_Groups: TypeAlias = tuple[Mapping[str, str], ...]
"""Fields that are replaced together: their keys in a kubeconfig, and their names in :class:`ConfigOverrides`."""

_CONTEXT: Final[_Groups] = ({"cluster": "cluster"}, {"user": "user"}, {"namespace": "namespace"})
_CLUSTER: Final[_Groups] = (
    {"server": "server"},
    {"proxy-url": "proxy_url"},
    {"disable-compression": "disable_compression"},
    {
        "insecure-skip-tls-verify": "insecure_skip_tls_verify",
        "certificate-authority": "ca_file",
        "certificate-authority-data": "ca_data",
    },
    {"tls-server-name": "tls_server_name"},
)
_USER: Final[_Groups] = (
    {"username": "username"},
    {"password": "password"},
    {"client-certificate": "client_certificate_file", "client-certificate-data": "client_certificate_data"},
    {"client-key": "client_key_file", "client-key-data": "client_key_data"},
    {"token": "token", "tokenFile": "token_file"},
)


def _override(entry: Entry, overrides: ConfigOverrides, groups: _Groups) -> Entry:
    """Return a copy of an entry, replacing each group of fields if at least one of its values is given."""
    for names in groups:
        values = {key: getattr(overrides, name) or None for key, name in names.items()}
        if any(values.values()) or ("tls-server-name" in names and overrides.server):
            entry = entry.override(values, {key: f"overrides.{name}" for key, name in names.items()})
    return entry
