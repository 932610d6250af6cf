"""Values that override a kubeconfig."""

from __future__ import annotations

import os
from typing import final

import attrs

from ._config import Impersonation, hide, hide_frames, hide_user


def _absolute(given: str | os.PathLike[str] | None) -> str | None:
    return os.path.abspath(given) if given else None


@final
@attrs.frozen(kw_only=True)
class ConfigOverrides:
    """Values that override a kubeconfig, as kubectl options such as ``--server`` do.

    Most fields have the same name as the corresponding field of :class:`ClusterConfig`. A field that is None, False or
    an empty string keeps the old value.
    These fields are replaced together, so that old values do not contradict new ones:

    - ``insecure_skip_tls_verify``, ``ca_file`` and ``ca_data``;
    - ``server`` and ``tls_server_name``: a new server clears the name;
    - the files and the data of the client certificate and its key;
    - ``token`` and ``token_file``;
    - all of ``impersonate``.

    If ``server`` is set, no kubeconfig is needed, and the service account of a pod is not used.
    Relative file names are relative to the working directory.
    ``repr()`` shows no secret.
    """

    cluster: str | None = None
    """The name of a cluster in the kubeconfig, to use instead of the context's."""
    user: str | None = None
    """The name of a user in the kubeconfig, to use instead of the context's."""
    namespace: str | None = None
    """The default namespace; also applies in a pod without a kubeconfig."""
    server: str | None = None
    """The URL of the API server."""
    ca_data: bytes | None = attrs.field(default=None, repr=hide)
    """PEM certificates of the trusted authorities."""
    ca_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file with the certificates of the trusted authorities."""
    insecure_skip_tls_verify: bool = False
    """Whether to skip the verification of the server's certificate."""
    tls_server_name: str | None = None
    """The name for the verification of the server's certificate."""
    proxy_url: str | None = attrs.field(default=None, repr=hide_user)
    """The proxy."""
    disable_compression: bool = False
    """Whether to disable the compression of responses."""
    client_certificate_data: bytes | None = attrs.field(default=None, repr=hide)
    """The client's PEM certificate chain."""
    client_certificate_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file with the client's certificate chain."""
    client_key_data: bytes | None = attrs.field(default=None, repr=hide)
    """The client certificate's PEM private key."""
    client_key_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file with the client certificate's private key."""
    token: str | None = attrs.field(default=None, repr=hide)
    """The bearer token; with a ``token_file``, it is used until that file can be read."""
    token_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file that contains the bearer token."""
    username: str | None = None
    """The user of basic authentication."""
    password: str | None = attrs.field(default=None, repr=hide)
    """The password of basic authentication."""
    impersonate: Impersonation | None = None
    """The user that all requests act as."""


ConfigOverrides.__init__ = hide_frames(ConfigOverrides.__init__)  # type: ignore[method-assign]  # the same arguments
