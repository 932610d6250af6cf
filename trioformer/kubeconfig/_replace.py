"""Replaces fields of a context, a cluster and a user, and clears those that would contradict them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from ._entries import Entry
from ._overrides import ConfigOverrides
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
