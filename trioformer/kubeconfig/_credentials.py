"""Read the cluster and the user of a context: server, proxy, certificates, tokens, plugins and impersonation.

Each function returns fields of a :class:`ClusterConfig`, and records mistakes as problems with the entry.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from .._files import read_file
from ._checks import CheckError, check_proxy_url, parse_server
from ._config import ExecConfig, Impersonation, InteractiveMode
from ._entries import Entry

EXTENSION: Final = "client.authentication.k8s.io/exec"
"""The name of a cluster's extension for credential plugins."""

_HOST_AND_PORT = re.compile(r"[^/@?#]+/?")
_AUTHORITY: Final = ("certificate-authority", "certificate-authority-data")
_V1: Final = "client.authentication.k8s.io/v1"
_VERSIONS: Final = (_V1, f"{_V1}beta1")


def read_server(cluster: Entry) -> str | None:
    """Return the URL of the API server, or None if it is missing or not valid.

    As in client-go (``DefaultServerURL``), the scheme of a ``host:port`` value is https if there are TLS settings, and
    otherwise http.
    """
    server = cluster.text("server")
    if server is None:
        if not cluster.fields.get("server"):
            cluster.report("server", "is missing: set the URL of the API server")
        return None
    if _HOST_AND_PORT.fullmatch(server):
        has_tls = cluster.has(*_AUTHORITY) or cluster.flag("insecure-skip-tls-verify")
        server = f"{'https' if has_tls else 'http'}://{server}"
    return cluster.check("server", parse_server, server)


def read_connection(cluster: Entry) -> dict[str, Any]:
    """Return the settings for the connection: the proxy, and whether responses are compressed."""
    return {
        "proxy_url": cluster.check("proxy-url", check_proxy_url, cluster.text("proxy-url")),
        "disable_compression": cluster.flag("disable-compression"),
    }


def read_tls(cluster: Entry) -> dict[str, Any]:
    """Return the settings for the verification of the server."""
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and cluster.has(*_AUTHORITY):
        cluster.report("insecure-skip-tls-verify", "excludes a certificate authority: remove one of the two")
    return {
        **_read_pem(cluster, "certificate-authority", "ca"),
        "insecure_skip_tls_verify": insecure,
        "tls_server_name": cluster.text("tls-server-name"),
    }


def _read_pem(entry: Entry, field: str, name: str) -> dict[str, Any]:
    """Return the data from ``<field>-data``, or the path from ``field``. The file at this path must be readable."""
    if entry.has(field) and entry.has(f"{field}-data"):
        entry.report(field, f"is set together with {field}-data: remove one of the two")
    data = entry.data(f"{field}-data")
    path = entry.path(field) if data is None else None
    entry.check(field, _content, path, f"file {path!r} ")
    return {f"{name}_data": data, f"{name}_file": path}


def _content(path: str) -> bytes:
    try:
        return read_file(path).reveal()
    except FileNotFoundError:
        raise CheckError("does not exist") from None
    except OSError as exc:
        raise CheckError(f"cannot be read: {exc.strerror}") from exc


def read_credentials(user: Entry, cluster: Entry) -> dict[str, Any]:
    """Return the credentials of the user. A plugin also receives the cluster's extension for plugins."""
    if user.fields.get("auth-provider") is not None:  # without an error the user would be anonymous
        text = "was removed from kubectl: use a credential plugin (exec), such as gke-gcloud-auth-plugin or kubelogin"
        user.report("auth-provider", text)
    has_certificate = user.has("client-certificate", "client-certificate-data")
    has_key = user.has("client-key", "client-key-data")
    has_token, has_username = user.has("token", "tokenFile"), user.has("username")
    # client-go ignores a key without a certificate; alone, it is a mistake, since requests would be anonymous.
    uses_key = has_certificate or not (has_token or has_username)
    certificate = _read_pem(user, "client-certificate", "client_certificate")
    if uses_key:
        certificate |= _read_pem(user, "client-key", "client_key")
    if uses_key and has_certificate != has_key:
        missing, given = ("client-key", "client-certificate")[:: 1 if has_certificate else -1]
        user.report(missing, f"is missing, but {given} is set: set {missing} or {missing}-data")
    if user.has("password") and not has_username:
        user.report("username", "is missing, but password is set")
    if has_username and has_token:
        user.report("", "has both a bearer token and a user name with password: remove one of the two")
    # With a token, the file does not have to exist yet (``getUserIdentificationPartialConfig``).
    token, token_file = user.text("token"), user.path("tokenFile")
    if not user.has("token"):
        content = user.check("tokenFile", _content, token_file, f"file {token_file!r} ")
        token = None if content is None else content.decode("latin-1")  # non-ASCII characters are refused later
    username = user.text("username")
    return {
        **certificate,
        "token": token and token.strip(),
        "token_file": token_file,
        "username": username,
        "password": None if username is None else user.text("password") or "",
        "exec": _exec(user, cluster),
    }


def _exec(user: Entry, cluster: Entry) -> ExecConfig | None:
    plugin = user.mapping("exec")
    if plugin is None:
        return None
    version, command, mode = plugin.text("apiVersion"), plugin.text("command"), plugin.text("interactiveMode")
    if version not in _VERSIONS:
        update = "update the plugin, and let its program write the kubeconfig again"
        plugin.report("apiVersion", f"must be {' or '.join(_VERSIONS)}: {update}")
    if command is None:
        plugin.report("command", "is missing: it must be the program that prints the credentials")
    elif os.path.dirname(command):  # it is not a name to look up
        command = plugin.path("command")
    modes = {mode.value: mode for mode in InteractiveMode} | {None: InteractiveMode.IF_AVAILABLE}
    if mode not in modes or (mode is None and version == _V1):
        plugin.report("interactiveMode", f"must be one of {', '.join(mode.value for mode in InteractiveMode)}")
    variables = plugin.mappings("env")
    names = [variable.text("name") for variable in variables]
    for variable, name in zip(variables, names, strict=True):
        if name is None:
            variable.report("name", "is missing: a variable requires a name")
    extensions = [extension for extension in cluster.mappings("extensions") if extension.text("name") == EXTENSION]
    if len(extensions) > 1:
        cluster.report("extensions", f"has {EXTENSION} twice: remove one of them")
    return ExecConfig(
        api_version=version or "",
        command=command or "",
        args=plugin.strings("args"),
        env={name or "": variable.text("value") or "" for variable, name in zip(variables, names, strict=True)},
        install_hint=plugin.text("installHint"),
        interactive_mode=modes.get(mode, InteractiveMode.NEVER),
        provide_cluster_info=plugin.flag("provideClusterInfo"),
        cluster_config=extensions[0].fields.get("extension") if extensions else None,
    )


def read_impersonation(user: Entry) -> Impersonation | None:
    """Return the user that requests act as."""
    for field in ("as-uid", "as-groups", "as-user-extra"):
        if user.has(field) and not user.has("as"):
            user.report("as", f"is missing, but {field} is set: name the user to impersonate")
    extra = user.mapping("as-user-extra")
    values = {} if extra is None else {key: extra.strings(key) for key in extra.fields}
    name, uid, groups = user.text("as"), user.text("as-uid"), user.strings("as-groups")
    return None if name is None else Impersonation(user=name, uid=uid, groups=groups, extra=values)
