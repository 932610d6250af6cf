"""Makes the :class:`ClusterConfig` of a context (client-go's ``tools/clientcmd/client_config.go``)."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterable, Mapping

import attrs

from ..errors import ConfigError
from ._checks import check_namespace
from ._clusters import read_server, with_connection, with_tls
from ._config import ClusterConfig
from ._credentials import with_credentials, with_impersonation
from ._entries import Entry
from ._files import Kubeconfig
from ._overrides import ConfigOverrides
from ._problems import Problems
from ._replace import apply_to_cluster, apply_to_context, apply_to_user
from ._values import Fields

_log = logging.getLogger("trioformer.kubeconfig")

_MAX_SHOWN = 20
UNKNOWN = "https://unknown"
"""The server of a configuration that has a problem with its server, and therefore is not returned."""


def resolve(
    kubeconfig: Kubeconfig,
    *,
    context: str | None = None,
    overrides: ConfigOverrides | None = None,
    default_namespace: Callable[[], str] = lambda: "default",
) -> ClusterConfig:
    """Make the configuration of a context, and check the context, its cluster and its user.

    If the server is not ``https``, credentials are checked and then omitted, as in client-go; impersonation is not.

    Args:
        kubeconfig: The merged kubeconfig files.
        context: The name of the context; None for the current one.
        overrides: What replaces values of the context, the cluster and the user.
        default_namespace: Called if the context has no namespace.

    Raises:
        ConfigError: Something that the context needs is missing, not valid, or not supported; it lists all of this.
    """
    overrides = overrides or ConfigOverrides()
    name, chosen = _choose_context(kubeconfig, context, overrides)
    chosen = apply_to_context(overrides, chosen)
    problems = Problems()
    # Without a user, requests are anonymous.
    empty = Entry(chosen.file, chosen.key, Fields())
    cluster = problems.attempt(lambda: _cluster(chosen, kubeconfig.clusters, overrides))
    user = problems.attempt(lambda: _follow(chosen, "user", kubeconfig.users))
    namespace = problems.attempt(lambda: _namespace(chosen) or default_namespace())
    return _configure(
        ClusterConfig(
            server=UNKNOWN,
            namespace=namespace or "",
            context=name,
            source=kubeconfig.source or "overrides",
        ),
        cluster and apply_to_cluster(overrides, cluster),
        apply_to_user(overrides, user or empty),
        problems,
    )


def replace_parts(config: ClusterConfig, overrides: ConfigOverrides) -> ClusterConfig:
    """Replace parts of the configuration of a service account.

    Raises:
        ConfigError: What replaces a part is not valid.
    """
    context = Entry("", config.source, Fields({"namespace": config.namespace}))
    cluster = Entry("", config.source, Fields({"server": config.server, "certificate-authority": config.ca_file}))
    user = Entry("", config.source, Fields({"tokenFile": config.token_file}))
    problems = Problems()
    namespace = problems.attempt(lambda: _namespace(apply_to_context(overrides, context)))
    bare = ClusterConfig(
        server=config.server, namespace=namespace or "", source=config.source, in_cluster=config.in_cluster
    )
    return _configure(bare, apply_to_cluster(overrides, cluster), apply_to_user(overrides, user), problems)


def _configure(config: ClusterConfig, cluster: Entry | None, user: Entry, problems: Problems) -> ClusterConfig:
    """Add what a cluster and a user have to a configuration.

    Args:
        config: The configuration, with namespace and source.
        cluster: The cluster; None if there is a problem with it.
        user: The user.
        problems: The problems that were found already.

    Raises:
        ConfigError: There is a problem; it lists all.
    """
    if cluster is None:
        cluster, server = Entry("", "", Fields()), None
    else:
        server = problems.attempt(functools.partial(read_server, cluster))
    config = attrs.evolve(config, server=server or UNKNOWN)
    reachable = with_impersonation(with_connection(config, cluster, problems), user, problems)
    verified = with_tls(reachable, cluster, problems)
    authenticated = with_credentials(verified, user, cluster, problems)
    problems.raise_if_any()
    if config.server.startswith("https:"):
        return authenticated
    if authenticated != verified:
        place = f"{user.file}: {user.key}" if user.file else config.source
        _log.warning("%s: no credentials are sent to %s, it is not https", place, config.server)
    return reachable


def _choose_context(
    kubeconfig: Kubeconfig, context: str | None, overrides: ConfigOverrides
) -> tuple[str | None, Entry]:
    known = f"known contexts: {_names(kubeconfig.contexts)}"
    files = os.pathsep.join(kubeconfig.files)
    name = kubeconfig.current_context if context is None else context
    if name is None and (overrides.server or overrides.cluster):
        return None, Entry("", "", Fields())
    if name is None:
        raise ConfigError(f"is not set, and no context was given; {known}", file=files, key="current-context")
    chosen = kubeconfig.contexts.get(name)
    if chosen is not None:
        return name, chosen
    if context is not None:
        raise ConfigError(f"there is no context {name!r}; {known}", file=files, key="contexts")
    message = f"names the context {name!r}, which does not exist; {known}"
    raise ConfigError(message, file=kubeconfig.current_context_file, key="current-context")


def _cluster(chosen: Entry, clusters: Mapping[str, Entry], overrides: ConfigOverrides) -> Entry:
    cluster = _follow(chosen, "cluster", clusters)
    if cluster is None and overrides.server:
        return Entry("", "", Fields())
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
