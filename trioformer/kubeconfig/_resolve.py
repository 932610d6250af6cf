"""Makes the :class:`ClusterConfig` of a context, and replaces values of it.

Source: client-go ``tools/clientcmd/client_config.go`` and ``overrides.go``.
"""

from __future__ import annotations

import base64
import functools
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from ..errors import ConfigError
from ._checks import check_namespace
from ._config import ClusterConfig
from ._credentials import read_server, with_connection, with_credentials, with_impersonation, with_tls
from ._entries import Entry, Problems
from ._files import Kubeconfig
from ._overrides import ConfigOverrides
from ._users import Impersonation
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


_CONTEXT: Final = {"cluster": "cluster", "user": "user", "namespace": "namespace"}
_CONNECTION: Final = {"server": "server", "proxy_url": "proxy-url", "disable_compression": "disable-compression"}
_AUTHORITY: Final = {
    "insecure_skip_tls_verify": "insecure-skip-tls-verify",
    "ca_file": "certificate-authority",
    "ca_data": "certificate-authority-data",
}
_SERVER: Final = {"tls_server_name": "tls-server-name"}
_CERTIFICATE: Final = {
    "client_certificate_file": "client-certificate",
    "client_certificate_data": "client-certificate-data",
}
_KEY: Final = {"client_key_file": "client-key", "client_key_data": "client-key-data"}
_TOKEN: Final = {"token": "token", "token_file": "tokenFile"}
_BASIC: Final = {"username": "username", "password": "password"}
_NAMES: Final = {
    **{
        key: name
        for names in (_CONTEXT, _CONNECTION, _AUTHORITY, _SERVER, _CERTIFICATE, _KEY, _TOKEN, _BASIC)
        for name, key in names.items()
    },
    "as": "impersonate.user",
    "as-uid": "impersonate.uid",
    "as-groups": "impersonate.groups",
    "as-user-extra": "impersonate.extra",
}
"""The fields here, by their keys in a kubeconfig."""


def apply_to_context(overrides: ConfigOverrides, context: Entry) -> Entry:
    """Return a context with the other cluster, user and namespace."""
    return _override(context, _given(overrides, _CONTEXT))


def apply_to_cluster(overrides: ConfigOverrides, cluster: Entry) -> Entry:
    """Return a cluster with the other server, authorities and proxy."""
    fields = _given(overrides, _CONNECTION)
    fields |= _together(overrides, _AUTHORITY, any(getattr(overrides, name) for name in _AUTHORITY))
    fields |= _together(overrides, _SERVER, bool(overrides.server or overrides.tls_server_name))
    return _override(cluster, fields)


def apply_to_user(overrides: ConfigOverrides, user: Entry) -> Entry:
    """Return a user with the other credentials and impersonation."""
    fields = _given(overrides, _BASIC)
    for names in (_CERTIFICATE, _KEY, _TOKEN):
        fields |= _together(overrides, names, any(getattr(overrides, name) for name in names))
    if overrides.impersonate is not None:
        fields |= _impersonation(overrides.impersonate)
    return _override(user, fields)


def _given(overrides: ConfigOverrides, names: Mapping[str, str]) -> dict[str, object]:
    return {key: _raw(getattr(overrides, name)) for name, key in names.items() if getattr(overrides, name)}


def _together(overrides: ConfigOverrides, names: Mapping[str, str], is_given: bool) -> dict[str, object]:
    return {key: _raw(getattr(overrides, name)) for name, key in names.items()} if is_given else {}


def _override(entry: Entry, fields: Mapping[str, object]) -> Entry:
    return entry.override(fields, {key: f"overrides.{_NAMES[key]}" for key in fields})


def _raw(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, (str, bool)) else None


def _impersonation(impersonate: Impersonation) -> dict[str, object]:
    return {
        "as": impersonate.user,
        "as-uid": impersonate.uid,
        "as-groups": list(impersonate.groups),
        "as-user-extra": {key: list(values) for key, values in impersonate.extra.items()},
    }
