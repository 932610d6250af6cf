"""What replaces values of a kubeconfig (client-go's ``clientcmd.ConfigOverrides``)."""

from __future__ import annotations

import os
from typing import final

import attrs

from ._fields import check_types, hide_arguments, path, show_hidden, show_size, show_without_user
from ._users import Impersonation


def _absolute(given: str | os.PathLike[str] | None) -> str | None:
    text = path(given)
    return os.path.abspath(text) if text else None


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

    Raises:
        TypeError: A field has another type.
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

    def __attrs_post_init__(self) -> None:
        check_types(self)


ConfigOverrides.__init__ = hide_arguments(ConfigOverrides.__init__)  # type: ignore[method-assign]  # the same arguments
