"""What the transport needs to know of a cluster."""

from __future__ import annotations

from typing import final

import attrs

from ..errors import ConfigError
from ._checks import CheckError, parse_server


def _server(url: str) -> str:
    try:
        return parse_server(url)
    except CheckError as exc:
        raise ConfigError(str(exc), key="server") from exc


def _size(data: bytes | None) -> str:
    return "None" if data is None else f"<{len(data)} bytes>"


def _hidden(secret: object) -> str:
    return "None" if secret is None else "<hidden>"


@final
@attrs.frozen(kw_only=True)
class ClusterConfig:
    """How to reach one cluster, and as whom.

    Made by :func:`load_config`, :func:`load_kubeconfig` and :func:`load_in_cluster`, or by hand for a server that
    no kubeconfig knows.
    The loaders keep these promises, and whoever makes one by hand has to:

    - of a ``*_data`` field and the ``*_file`` field beside it at most one is set; the file has an absolute path, could
      be read, and is to be read again when it may have changed;
    - a client certificate comes with its key, and the key is not encrypted;
    - ``insecure_skip_tls_verify`` excludes a certificate authority;
    - a bearer token (``token`` or ``token_file``) excludes basic authentication;
    - when the server is ``http://``, there are neither credentials nor TLS settings.

    ``repr()`` shows no secret.

    Raises:
        ConfigError: ``server`` is not a URL with scheme and host; its key is ``server``.
    """

    server: str = attrs.field(converter=_server)
    """URL of the API server: ``https://`` or ``http://``, host, port and path, without trailing slash."""
    namespace: str = "default"
    """The namespace that requests without one of their own are meant for."""
    ca_data: bytes | None = attrs.field(default=None, repr=_size)
    """PEM certificates that the server's certificate must descend from; without CA data or file, the system's."""
    ca_file: str | None = None
    """The file that holds them instead; it may be rotated while the program runs."""
    insecure_skip_tls_verify: bool = False
    """Whether the server's certificate is not checked at all."""
    tls_server_name: str | None = None
    """The name that the server's certificate must carry and that SNI sends, if it is not the URL's host."""
    client_certificate_data: bytes | None = attrs.field(default=None, repr=_size)
    """The client's PEM certificate chain."""
    client_certificate_file: str | None = None
    """The file that holds it instead."""
    client_key_data: bytes | None = attrs.field(default=None, repr=_hidden)
    """The client certificate's PEM private key."""
    client_key_file: str | None = None
    """The file that holds it instead."""
    token: str | None = attrs.field(default=None, repr=_hidden)
    """The bearer token; beside a ``token_file`` it is what to send for as long as that file cannot be read."""
    token_file: str | None = None
    """The file whose content, stripped of white space, is the bearer token; it is rotated while the program runs."""
    username: str | None = None
    """The user of basic authentication; set together with ``password`` or not at all."""
    password: str | None = attrs.field(default=None, repr=_hidden)
    """The password of basic authentication, possibly empty."""
    context: str | None = None
    """The kubeconfig context that was used, or None."""
    source: str = "code"
    """Where all this comes from, for people: the kubeconfig file or files, ``in-cluster``, or ``code``."""
    in_cluster: bool = False
    """Whether this is the service account of the pod that the program runs in."""
