"""Makes the :class:`ClusterConfig` of a context (client-go's ``tools/clientcmd/client_config.go``)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping

from ..errors import ConfigError
from ._checks import check_namespace
from ._clusters import read_server, with_connection, with_tls
from ._config import ClusterConfig
from ._credentials import with_credentials, with_impersonation
from ._entries import Entry
from ._files import Kubeconfig
from ._problems import Problems
from ._values import Fields

_log = logging.getLogger("trioformer.kubeconfig")

_MAX_SHOWN = 20
_UNKNOWN = "https://unknown"
"""The server of a configuration that has a problem with its server, and therefore is not returned."""


def resolve(
    kubeconfig: Kubeconfig, *, context: str | None = None, default_namespace: Callable[[], str] = lambda: "default"
) -> ClusterConfig:
    """Make the configuration of a context, and check the context, its cluster and its user.

    If the server is not ``https``, credentials are checked and then omitted, as in client-go; impersonation is not.

    Args:
        kubeconfig: The merged kubeconfig files.
        context: The name of the context; None for the current one.
        default_namespace: Called if the context has no namespace.

    Raises:
        ConfigError: Something that the context needs is missing, not valid, or not supported; it lists all of this.
    """
    name, chosen = _choose_context(kubeconfig, context)
    problems = Problems()
    # A cluster that is missing is a problem; without a user, requests are anonymous.
    empty = Entry(chosen.file, chosen.key, Fields())
    found = problems.attempt(lambda: _cluster(chosen, kubeconfig.clusters))
    cluster = found or empty
    user = problems.attempt(lambda: _follow(chosen, "user", kubeconfig.users)) or empty
    config = ClusterConfig(
        server=(found and problems.attempt(lambda: read_server(cluster))) or _UNKNOWN,
        namespace=problems.attempt(lambda: _namespace(chosen) or default_namespace()) or "",
        context=name,
        source=kubeconfig.source,
    )
    reachable = with_impersonation(with_connection(config, cluster, problems), user, problems)
    verified = with_tls(reachable, cluster, problems)
    authenticated = with_credentials(verified, user, cluster, problems)
    problems.raise_if_any()
    if config.server.startswith("https:"):
        return authenticated
    if authenticated != verified:
        _log.warning("%s: %s: no credentials are sent to %s, it is not https", user.file, user.key, config.server)
    return reachable


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


def _namespace(chosen: Entry) -> str | None:
    namespace = chosen.text("namespace")
    if namespace is not None:
        chosen.call("namespace", lambda: check_namespace(namespace))
    return namespace
