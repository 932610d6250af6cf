"""The server and the credentials of a client."""

from __future__ import annotations

from typing import final

import attrs

from ..errors import ConfigError
from ._checks import CheckError, parse_server
from ._fields import check_type, check_types, hide_arguments, path, show_hidden, show_size, show_without_user
from ._users import ExecConfig, Impersonation


def _server(url: str) -> str:
    check_type("server", url, "str")
    try:
        return parse_server(url)
    except CheckError as exc:
        problem = str(exc)
    raise ConfigError(problem, key="server")


@final
@attrs.frozen(kw_only=True)
class ClusterConfig:
    """The server and the credentials of a client.

    :func:`load_config`, :func:`load_kubeconfig` and :func:`load_in_cluster` return one; for a server that is not in a
    kubeconfig, make one with the constructor.
    The loaders guarantee the following, and callers of the constructor must:

    - at most one of a ``*_data`` field and its ``*_file`` field is set; the file has an absolute path and is readable,
      and it is read again when it may have changed;
    - a client certificate has a key;
    - ``insecure_skip_tls_verify`` excludes a certificate authority;
    - a bearer token (``token`` or ``token_file``) excludes basic authentication;
    - when the server is ``http://``, there are neither credentials nor TLS settings.

    ``repr()`` shows no secret.

    Raises:
        ConfigError: ``server`` is not a URL with scheme and host; its key is ``server``.
        TypeError: A field has another type.
    """

    server: str = attrs.field(converter=_server)
    """The URL of the API server: ``https://`` or ``http://``, host, port and path, without trailing slash."""
    namespace: str = "default"
    """The default namespace."""
    ca_data: bytes | None = attrs.field(default=None, repr=show_size)
    """PEM certificates of the trusted authorities; without CA data and file, the system's authorities are trusted."""
    ca_file: str | None = attrs.field(default=None, converter=path)
    """The file that contains them; it may be rotated while the program runs."""
    insecure_skip_tls_verify: bool = False
    """Whether the server's certificate is not verified."""
    tls_server_name: str | None = None
    """The name for SNI that the server's certificate must be valid for, if it is not the host of the URL."""
    client_certificate_data: bytes | None = attrs.field(default=None, repr=show_size)
    """The client's PEM certificate chain."""
    client_certificate_file: str | None = attrs.field(default=None, converter=path)
    """The file that contains it."""
    client_key_data: bytes | None = attrs.field(default=None, repr=show_hidden)
    """The client certificate's PEM private key."""
    client_key_file: str | None = attrs.field(default=None, converter=path)
    """The file that contains it."""
    token: str | None = attrs.field(default=None, repr=show_hidden)
    """The bearer token; with a ``token_file``, the token to use until that file can be read."""
    token_file: str | None = attrs.field(default=None, converter=path)
    """The file that contains the bearer token, with optional white space; it may be rotated while the program runs."""
    username: str | None = None
    """The user of basic authentication; set if and only if ``password`` is."""
    password: str | None = attrs.field(default=None, repr=show_hidden)
    """The password of basic authentication, possibly empty."""
    exec: ExecConfig | None = None
    """A credential plugin; not used if there is a token, a user name or a client certificate."""
    impersonate: Impersonation | None = None
    """The user that all requests are made for, or None for the authenticated one."""
    proxy_url: str | None = attrs.field(default=None, repr=show_without_user)
    """The proxy: ``http://``, ``https://`` or ``socks5://``; None for the one that the environment has, if any."""
    disable_compression: bool = False
    """Whether responses are never compressed."""
    context: str | None = None
    """The context of the kubeconfig, or None."""
    source: str = "code"
    """The source of the configuration, for errors: the kubeconfig files, ``in-cluster``, or ``code``."""
    in_cluster: bool = False
    """Whether it is the service account of the pod that the program runs in."""

    def __attrs_post_init__(self) -> None:
        check_types(self)


ClusterConfig.__init__ = hide_arguments(ClusterConfig.__init__)  # type: ignore[method-assign]  # the same arguments
