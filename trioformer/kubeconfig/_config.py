"""What a client is configured with: a server and credentials, and what replaces values of a kubeconfig."""

from __future__ import annotations

import enum
import functools
import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import ParamSpec, TypeVar, final

import attrs

from .._secret import HIDDEN
from ..errors import ConfigError
from ._checks import CheckError, parse_server

P = ParamSpec("P")
T = TypeVar("T")


def hide_frames(function: Callable[P, T]) -> Callable[P, T]:
    """Let errors leave a function without its frames and causes, whose variables are credentials.

    Tracebacks may print the variables of each frame, as those of ``pytest -l`` and Sentry do.
    """

    @functools.wraps(function)
    def without_frames(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (ConfigError, TypeError) as exc:
            error = exc.with_traceback(None)
        del args, kwargs
        error.__cause__ = error.__context__ = None
        raise error

    return without_frames


def _server(url: str) -> str:
    try:
        return parse_server(url)
    except CheckError as exc:
        raise ConfigError(str(exc), key="server") from None


def _path(given: str | os.PathLike[str] | None) -> str | None:
    return None if given is None else os.fspath(given)


def _absolute(given: str | os.PathLike[str] | None) -> str | None:
    return os.path.abspath(given) if given else None


def _strings(given: Collection[str]) -> tuple[str, ...]:
    if isinstance(given, str):  # which is a collection of strings for type checkers
        raise TypeError("must be a list or tuple of strings, not a single string; write [text]")
    return tuple(given)


def _lists(given: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    return {key: _strings(values) for key, values in given.items()}


def _hide(secret: object) -> str:
    return "None" if secret is None else HIDDEN


def _hide_user(url: str | None) -> str:
    return "None" if url is None else repr(re.sub(r"(?<=//).*@", f"{HIDDEN}@", url))


class InteractiveMode(enum.Enum):
    """Whether a credential plugin may read from the terminal (client-go ``ExecInteractiveMode``)."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@final
@attrs.frozen(kw_only=True)
class ExecConfig:
    """A credential plugin: a program that prints the user's credentials (a user's ``exec`` in a kubeconfig).

    ``repr()`` shows neither arguments nor values of variables, which may be secrets.

    Raises:
        TypeError: ``args`` is a command line, not a list.
    """

    api_version: str
    """``client.authentication.k8s.io/v1`` or ``…/v1beta1``."""
    command: str
    """The program: a name that is looked up in ``$PATH``, or an absolute path."""
    args: tuple[str, ...] = attrs.field(default=(), converter=_strings, repr=_hide)
    """Its arguments."""
    env: Mapping[str, str] = attrs.field(factory=dict[str, str], hash=False, repr=_hide)
    """Variables that are added to the environment of this process."""
    install_hint: str | None = None
    """What to do if the program is not installed."""
    interactive_mode: InteractiveMode = InteractiveMode.IF_AVAILABLE
    """Whether it may read from the terminal."""
    provide_cluster_info: bool = False
    """Whether the plugin gets the cluster in ``$KUBERNETES_EXEC_INFO``."""
    cluster_config: object = attrs.field(default=None, hash=False, repr=_hide)
    """The cluster's extension ``client.authentication.k8s.io/exec``, as JSON values; part of that."""


@final
@attrs.frozen(kw_only=True)
class Impersonation:
    """The user that a request is made for, instead of the authenticated one, who must be allowed to impersonate.

    Raises:
        TypeError: ``groups``, or the values of a key of ``extra``, are a single string, not a list.
    """

    user: str
    """The name of the user, such as ``system:serviceaccount:default:web``."""
    uid: str | None = None
    """The UID of the user, or None."""
    groups: tuple[str, ...] = attrs.field(default=(), converter=_strings)
    """The groups of the user; without any, the server adds those that it knows of."""
    extra: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]], converter=_lists, hash=False)
    """Further attributes, by lower-case key."""


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
    """

    server: str = attrs.field(converter=_server)
    """The URL of the API server: ``https://`` or ``http://``, host, port and path, without trailing slash."""
    namespace: str = "default"
    """The default namespace."""
    ca_data: bytes | None = attrs.field(default=None, repr=_hide)
    """PEM certificates of the trusted authorities; without CA data and file, the system's authorities are trusted."""
    ca_file: str | None = attrs.field(default=None, converter=_path)
    """The file that contains them; it may be rotated while the program runs."""
    insecure_skip_tls_verify: bool = False
    """Whether the server's certificate is not verified."""
    tls_server_name: str | None = None
    """The name for SNI that the server's certificate must be valid for, if it is not the host of the URL."""
    client_certificate_data: bytes | None = attrs.field(default=None, repr=_hide)
    """The client's PEM certificate chain."""
    client_certificate_file: str | None = attrs.field(default=None, converter=_path)
    """The file that contains it."""
    client_key_data: bytes | None = attrs.field(default=None, repr=_hide)
    """The client certificate's PEM private key."""
    client_key_file: str | None = attrs.field(default=None, converter=_path)
    """The file that contains it."""
    token: str | None = attrs.field(default=None, repr=_hide)
    """The bearer token; with a ``token_file``, the token to use until that file can be read."""
    token_file: str | None = attrs.field(default=None, converter=_path)
    """The file that contains the bearer token, with optional white space; it may be rotated while the program runs."""
    username: str | None = None
    """The user of basic authentication; set if and only if ``password`` is."""
    password: str | None = attrs.field(default=None, repr=_hide)
    """The password of basic authentication, possibly empty."""
    exec: ExecConfig | None = None
    """A credential plugin; not used if there is a token, a user name or a client certificate."""
    impersonate: Impersonation | None = None
    """The user that all requests are made for, or None for the authenticated one."""
    proxy_url: str | None = attrs.field(default=None, repr=_hide_user)
    """The proxy: ``http://``, ``https://`` or ``socks5://``; None for the one that the environment has, if any."""
    disable_compression: bool = False
    """Whether responses are never compressed."""
    context: str | None = None
    """The context of the kubeconfig, or None."""
    source: str = "code"
    """The source of the configuration, for errors: the kubeconfig files, ``in-cluster``, or ``code``."""
    in_cluster: bool = False
    """Whether it is the service account of the pod that the program runs in."""


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
    ca_data: bytes | None = attrs.field(default=None, repr=_hide)
    """PEM certificates of the trusted authorities."""
    ca_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file that contains them."""
    insecure_skip_tls_verify: bool = False
    """Whether the server's certificate is not verified."""
    tls_server_name: str | None = None
    """The name that the server's certificate must be valid for."""
    proxy_url: str | None = attrs.field(default=None, repr=_hide_user)
    """The proxy."""
    disable_compression: bool = False
    """Whether responses are never compressed."""
    client_certificate_data: bytes | None = attrs.field(default=None, repr=_hide)
    """The client's PEM certificate chain."""
    client_certificate_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file that contains it."""
    client_key_data: bytes | None = attrs.field(default=None, repr=_hide)
    """The client certificate's PEM private key."""
    client_key_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file that contains it."""
    token: str | None = attrs.field(default=None, repr=_hide)
    """The bearer token; with a ``token_file``, the token to use until that file can be read."""
    token_file: str | None = attrs.field(default=None, converter=_absolute)
    """The file that contains the bearer token."""
    username: str | None = None
    """The user of basic authentication."""
    password: str | None = attrs.field(default=None, repr=_hide)
    """The password of basic authentication."""
    impersonate: Impersonation | None = None
    """The user that all requests are made for."""


for _class in (ExecConfig, ClusterConfig, ConfigOverrides):
    _class.__init__ = hide_frames(_class.__init__)  # type: ignore[method-assign]  # the same arguments
