"""Values that replace those of a kubeconfig (client-go's ``clientcmd.ConfigOverrides``)."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Final, final

import attrs

from ._config import hide_arguments, show_hidden, show_size, show_without_user
from ._entries import Entry
from ._users import Impersonation
from ._values import Fields, Items, RawValue

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


def _absolute(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.abspath(path)


@final
@attrs.frozen(kw_only=True)
class ConfigOverrides:
    """Values that replace those of a kubeconfig, as kubectl's options such as ``--server`` do.

    Each has the name of the field of :class:`ClusterConfig`; None, False and an empty text leave a value as it is.
    What is replaced together, so that nothing contradicts the new value:

    - ``insecure_skip_tls_verify``, ``ca_file`` and ``ca_data``;
    - ``server`` and ``tls_server_name``: a new server clears the name;
    - the file and the data of the client certificate, and those of its key;
    - ``token`` and ``token_file``;
    - all of ``impersonate``.

    With a ``server``, no kubeconfig is needed, and the service account of a pod is not used.
    Files are relative to the working directory.
    ``repr()`` shows no secret.
    """

    cluster: str | None = None
    """The name of a cluster in the kubeconfig, to be used instead of the context's."""
    user: str | None = None
    """The name of a user in the kubeconfig, to be used instead of the context's."""
    namespace: str | None = None
    """The default namespace; also in a pod without a kubeconfig."""
    server: str | None = None
    """The URL of the API server."""
    ca_data: bytes | None = attrs.field(default=None, repr=show_size)
    """PEM certificates of the trusted authorities."""
    ca_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file that contains them."""
    insecure_skip_tls_verify: bool = False
    """Whether the server's certificate is not verified."""
    tls_server_name: str | None = None
    """The name that the server's certificate must be valid for."""
    proxy_url: str | None = attrs.field(default=None, repr=show_without_user)
    """The proxy."""
    disable_compression: bool = False
    """Whether responses are never compressed."""
    client_certificate_data: bytes | None = attrs.field(default=None, repr=show_size)
    """The client's PEM certificate chain."""
    client_certificate_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file that contains it."""
    client_key_data: bytes | None = attrs.field(default=None, repr=show_hidden)
    """The client certificate's PEM private key."""
    client_key_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file that contains it."""
    token: str | None = attrs.field(default=None, repr=show_hidden)
    """The bearer token; with a ``token_file``, the token to use until that file can be read."""
    token_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file that contains the bearer token."""
    username: str | None = None
    """The user of basic authentication."""
    password: str | None = attrs.field(default=None, repr=show_hidden)
    """The password of basic authentication."""
    impersonate: Impersonation | None = None
    """The user that all requests are made for."""


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


def _given(overrides: ConfigOverrides, names: Mapping[str, str]) -> dict[str, RawValue]:
    return {key: _raw(getattr(overrides, name)) for name, key in names.items() if getattr(overrides, name)}


def _together(overrides: ConfigOverrides, names: Mapping[str, str], is_given: bool) -> dict[str, RawValue]:
    return {key: _raw(getattr(overrides, name)) for name, key in names.items()} if is_given else {}


def _override(entry: Entry, fields: Mapping[str, RawValue]) -> Entry:
    return entry.override(fields, {key: f"overrides.{_NAMES[key]}" for key in fields})


def _raw(value: object) -> RawValue:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if isinstance(value, (str, bool)) else None


def _impersonation(impersonate: Impersonation) -> dict[str, RawValue]:
    extra: dict[str, RawValue] = {key: Items(list(values)) for key, values in impersonate.extra.items()}
    return {
        "as": impersonate.user,
        "as-uid": impersonate.uid,
        "as-groups": Items(list(impersonate.groups)),
        "as-user-extra": Fields(extra),
    }


ConfigOverrides.__init__ = hide_arguments(ConfigOverrides.__init__)  # type: ignore[method-assign]  # the same arguments
