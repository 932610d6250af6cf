"""The configuration of a client: the server and the credentials."""

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
    """Decorate a function to remove the frames and causes of its errors.

    The variables in these frames contain credentials, and tools such as ``pytest -l`` and Sentry show them.
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


def _strings(given: Collection[str]) -> tuple[str, ...]:
    if isinstance(given, str):  # for type checkers, this is a collection of strings
        raise TypeError("must be a list or tuple of strings, not a single string")
    return tuple(given)


def _lists(given: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    return {key: _strings(values) for key, values in given.items()}


def hide(secret: object) -> str:
    return "None" if secret is None else HIDDEN


def hide_user(url: str | None) -> str:
    return "None" if url is None else repr(re.sub(r"(?<=//).*@", f"{HIDDEN}@", url))


class InteractiveMode(enum.Enum):
    """Whether a credential plugin may read from the terminal (client-go ``ExecInteractiveMode``)."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@final
@attrs.frozen(kw_only=True)
class ExecConfig:
    """A credential plugin: a program that prints the user's credentials, from the ``exec`` field of a kubeconfig user.

    ``repr()`` shows neither arguments nor values of environment variables, because they may be secrets.

    Raises:
        TypeError: ``args`` is a string, not a list.
    """

    api_version: str
    """``client.authentication.k8s.io/v1`` or ``…/v1beta1``."""
    command: str
    """The program: a name that is looked up in ``$PATH``, or an absolute path."""
    args: tuple[str, ...] = attrs.field(default=(), converter=_strings, repr=hide)
    """The arguments of the program."""
    env: Mapping[str, str] = attrs.field(factory=dict[str, str], hash=False, repr=hide)
    """Variables to add to the environment of this process."""
    install_hint: str | None = None
    """Advice if the program is not installed."""
    interactive_mode: InteractiveMode = InteractiveMode.IF_AVAILABLE
    """Whether the plugin may read from the terminal."""
    provide_cluster_info: bool = False
    """Whether to pass the cluster to the plugin in ``$KUBERNETES_EXEC_INFO``."""
    cluster_config: object = attrs.field(default=None, hash=False, repr=hide)
    """The cluster's extension ``client.authentication.k8s.io/exec`` as JSON values; part of the cluster information."""


@final
@attrs.frozen(kw_only=True)
class Impersonation:
    """The user to impersonate in requests.

    The authenticated user needs permission to impersonate this user.

    Raises:
        TypeError: ``groups``, or a value of ``extra``, is a single string, not a list.
    """

    user: str
    """The name of the user, such as ``system:serviceaccount:default:web``."""
    uid: str | None = None
    """The UID of the user, or None."""
    groups: tuple[str, ...] = attrs.field(default=(), converter=_strings)
    """The groups of the user; if empty, the server adds the groups that it knows."""
    extra: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]], converter=_lists, hash=False)
    """Further attributes, keyed by lower-case names."""


@final
@attrs.frozen(kw_only=True)
class ClusterConfig:
    """The server and the credentials of a client.

    :func:`load_config` returns an instance.  For a server that is not in a kubeconfig, call the constructor instead.
    :func:`load_config` guarantees the following properties, which callers of the constructor must also ensure:

    - at most one of a ``*_data`` field and its ``*_file`` field is set. The file has an absolute path, is readable,
      and is read again when it may have changed; - a client certificate has a key; - a certificate authority is not
      combined with ``insecure_skip_tls_verify``; - a bearer token (``token`` or ``token_file``) is not combined with
      basic authentication; - an ``http://`` server has neither credentials nor TLS settings.

    ``repr()`` shows no secret.

    Raises:
        ConfigError: ``server`` is not a URL with a scheme and a host. The key of the error is ``server``.
    """

    server: str = attrs.field(converter=_server)
    """The URL of the API server: ``https://`` or ``http://``, host, port and path, without trailing slash."""
    namespace: str = "default"
    """The default namespace."""
    ca_data: bytes | None = attrs.field(default=None, repr=hide)
    """PEM certificates of the trusted authorities; by default, the system's authorities are trusted."""
    ca_file: str | None = attrs.field(default=None, converter=_path)
    """The file with the trusted authorities; it may be rotated while the program runs."""
    insecure_skip_tls_verify: bool = False
    """Whether to skip the verification of the server's certificate."""
    tls_server_name: str | None = None
    """The name for SNI and for the verification of the server's certificate, if it is not the host of the URL."""
    client_certificate_data: bytes | None = attrs.field(default=None, repr=hide)
    """The client's PEM certificate chain."""
    client_certificate_file: str | None = attrs.field(default=None, converter=_path)
    """The file with the client's certificate chain."""
    client_key_data: bytes | None = attrs.field(default=None, repr=hide)
    """The client certificate's PEM private key."""
    client_key_file: str | None = attrs.field(default=None, converter=_path)
    """The file with the client certificate's private key."""
    token: str | None = attrs.field(default=None, repr=hide)
    """The bearer token; with a ``token_file``, it is used until that file can be read."""
    token_file: str | None = attrs.field(default=None, converter=_path)
    """The file with the bearer token, possibly with white space; it may be rotated while the program runs."""
    username: str | None = None
    """The user of basic authentication; set if and only if ``password`` is set."""
    password: str | None = attrs.field(default=None, repr=hide)
    """The password of basic authentication, possibly empty."""
    exec: ExecConfig | None = None
    """A credential plugin; ignored if there is a token, a user name or a client certificate."""
    impersonate: Impersonation | None = None
    """The user that all requests act as; None for the authenticated user."""
    proxy_url: str | None = attrs.field(default=None, repr=hide_user)
    """The proxy: ``http://``, ``https://`` or ``socks5://``; None for the environment's proxy, if any."""
    disable_compression: bool = False
    """Whether to disable the compression of responses."""
    context: str | None = None
    """The context of the kubeconfig, or None."""
    source: str = "code"
    """The source of the configuration, for errors: the kubeconfig files, ``in-cluster``, or ``code``."""
    in_cluster: bool = False
    """Whether this is the service account of the program's own pod."""


for _class in (ExecConfig, ClusterConfig):
    _class.__init__ = hide_frames(_class.__init__)  # type: ignore[method-assign]  # the same arguments
