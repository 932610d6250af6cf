"""Reads the cluster and the user of a context: server, proxy, certificates, tokens, plugins and impersonation."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from typing import AnyStr, Final

import attrs

from .._secret import Secret
from ._checks import check_proxy_url, parse_server, parse_token, read_file, read_token
from ._config import ClusterConfig
from ._entries import Entry, Problems
from ._users import ExecConfig, Impersonation, InteractiveMode
from ._values import reveal

_HOST_AND_PORT = re.compile(r"[^/@?#]+/?")


def read_server(cluster: Entry) -> str:
    """Return the URL of the API server.

    Raises:
        ConfigError: It is missing or not valid.
    """
    server = cluster.secret("server")  # it may contain a password
    if server is None:
        raise cluster.error("server", "is missing: a cluster needs the URL of its API server")
    return cluster.call("server", lambda: parse_server(_with_scheme(server.reveal(), cluster)))


def _with_scheme(server: str, cluster: Entry) -> str:
    """Complete ``host:port`` as client-go does (``DefaultServerURL``): https with TLS settings, otherwise http."""
    if not _HOST_AND_PORT.fullmatch(server):
        return server
    fields = ("insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data")
    has_tls = any(cluster.has(field) and cluster.fields.get(field) is not False for field in fields)
    return f"{'https' if has_tls else 'http'}://{server}"


def with_connection(config: ClusterConfig, cluster: Entry, problems: Problems) -> ClusterConfig:
    """Add how the server is reached: the proxy, and whether responses may be compressed."""
    proxy_url = problems.attempt(lambda: _proxy_url(cluster))
    return attrs.evolve(
        config,
        proxy_url=revealed(proxy_url),
        disable_compression=bool(problems.attempt(lambda: cluster.flag("disable-compression"))),
    )


def _proxy_url(cluster: Entry) -> Secret[str] | None:
    url = cluster.secret("proxy-url")  # it may contain a password
    if url is not None:
        cluster.call("proxy-url", lambda: check_proxy_url(url.reveal()))
    return url


def with_tls(config: ClusterConfig, cluster: Entry, problems: Problems) -> ClusterConfig:
    """Add how the server is verified."""
    ca_data, ca_file = read_pem(cluster, "certificate-authority", problems)
    insecure = bool(problems.attempt(lambda: cluster.flag("insecure-skip-tls-verify")))
    if insecure and (cluster.has("certificate-authority") or cluster.has("certificate-authority-data")):
        message = "excludes a certificate authority: remove one of the two"
        problems.add(cluster.error("insecure-skip-tls-verify", message))
    return attrs.evolve(
        config,
        ca_data=revealed(ca_data),
        ca_file=ca_file,
        insecure_skip_tls_verify=insecure,
        tls_server_name=problems.attempt(lambda: cluster.text("tls-server-name")),
    )


def revealed(secret: Secret[AnyStr] | None) -> AnyStr | None:
    """Reveal a credential; None stays None."""
    return None if secret is None else secret.reveal()


def read_pem(entry: Entry, field: str, problems: Problems) -> tuple[Secret[bytes] | None, str | None]:
    """Return ``field``-data, or the path of the file that ``field`` names, which must be readable."""
    if entry.has(field) and entry.has(f"{field}-data"):
        problems.add(entry.error(field, f"is set together with {field}-data: remove one of the two"))
    data = problems.attempt(lambda: entry.data(f"{field}-data"))
    if data is not None:
        return data, None
    path = problems.attempt(lambda: entry.path(field))
    if path is not None:
        problems.attempt(lambda: entry.call(field, lambda: read_file(path), f"file {path!r} "))
    return None, path


EXTENSION: Final = "client.authentication.k8s.io/exec"
"""The name of a cluster's extension whose content is for credential plugins."""

_CERTIFICATE_AND_KEY: Final = ("client-certificate", "client-key")
_GROUP: Final = "client.authentication.k8s.io"
_VERSIONS: Final = {f"{_GROUP}/v1": None, f"{_GROUP}/v1beta1": InteractiveMode.IF_AVAILABLE}
"""The versions of credential plugins, and the interactive mode without one; in v1 it must be given."""
_IMPERSONATION: Final = ("as-uid", "as-groups", "as-user-extra")
_INSTEAD: Final = "use a credential plugin (exec), a token or a client certificate"
_REMOVED: Final = "was removed from kubectl"
_PROVIDERS: Final[Mapping[str, str]] = {
    "gcp": f"gcp {_REMOVED}: install gke-gcloud-auth-plugin, and run 'gcloud container clusters get-credentials' again",
    "azure": f"azure {_REMOVED}: install kubelogin, and run 'kubelogin convert-kubeconfig'",
    "oidc": "oidc is not supported: use a credential plugin (exec), such as 'kubectl oidc-login get-token'",
    "openstack": f"openstack {_REMOVED}: use the credential plugin client-keystone-auth (exec)",
}


def with_credentials(config: ClusterConfig, user: Entry, cluster: Entry, problems: Problems) -> ClusterConfig:
    """Add what the user is authenticated with; a plugin gets an extension of the cluster."""
    problems.attempt(lambda: _check_provider(user))
    certificate_data, certificate_file = read_pem(user, "client-certificate", problems)
    has_certificate, has_key = (user.has(field) or user.has(f"{field}-data") for field in _CERTIFICATE_AND_KEY)
    # client-go ignores a key without a certificate; alone, it is a mistake, since requests would be anonymous.
    is_ignored = not has_certificate and any(user.has(field) for field in ("token", "tokenFile", "username"))
    key_data, key_file = (None, None) if is_ignored else read_pem(user, "client-key", problems)
    if has_certificate != has_key and not is_ignored:
        missing, given = reversed(_CERTIFICATE_AND_KEY) if has_certificate else _CERTIFICATE_AND_KEY
        problems.add(user.error(missing, f"is missing, but {given} is set: set {missing} or {missing}-data"))
    token, token_file = problems.attempt(lambda: _token(user)) or (None, None)
    username = problems.attempt(lambda: user.text("username"))
    password = problems.attempt(lambda: user.secret("password"))
    if user.has("password") and not user.has("username"):
        problems.add(user.error("username", "is missing, but password is set"))
    if user.has("username") and (user.has("token") or user.has("tokenFile")):
        problems.add(user.error("", "has both a bearer token and a user name with password: remove one of the two"))
    return attrs.evolve(
        config,
        client_certificate_data=revealed(certificate_data),
        client_certificate_file=certificate_file,
        client_key_data=revealed(key_data),
        client_key_file=key_file,
        token=revealed(token),
        token_file=token_file,
        username=username,
        exec=problems.attempt(lambda: _exec(user, cluster, problems)),
        password=None if username is None else revealed(password) or "",
    )


def _token(user: Entry) -> tuple[Secret[str] | None, str | None]:
    """Return the token and the path of the token's file.

    With a token, the file need not exist yet: the token is used until the file can be read
    (``getUserIdentificationPartialConfig``).
    """
    text, path = user.secret("token"), user.path("tokenFile")
    if text is not None:
        return user.call("token", lambda: parse_token(text.reveal())), path
    if path is not None:
        return user.call("tokenFile", lambda: read_token(path), f"file {path!r} "), path
    return None, None


def _check_provider(user: Entry) -> None:
    """Say what has replaced the authentication providers; without it the user would be anonymous."""
    if user.fields.get("auth-provider") is not None:
        provider = user.mapping("auth-provider")
        name = provider and provider.text("name")
        raise user.error("auth-provider", _PROVIDERS.get(name or "", f"is not supported: {_INSTEAD}"))


def _exec(user: Entry, cluster: Entry, problems: Problems) -> ExecConfig | None:
    plugin = user.mapping("exec")
    if plugin is None:
        return None
    version = problems.attempt(lambda: _version(plugin))
    command = problems.attempt(lambda: _command(plugin))
    args = problems.attempt(lambda: tuple(_argument(plugin, "args", arg) for arg in plugin.strings("args")))
    env = problems.attempt(lambda: dict(_variable(variable) for variable in plugin.mappings("env")))
    hint = problems.attempt(lambda: plugin.text("installHint"))
    mode = problems.attempt(lambda: _interactive_mode(plugin, version))
    provides = problems.attempt(lambda: plugin.flag("provideClusterInfo"))
    extension = problems.attempt(lambda: _extension(cluster))
    if problems:
        return None
    return ExecConfig(
        api_version=version or "",
        command=command or "",
        args=tuple(arg.reveal() for arg in args or ()),
        env={name: value.reveal() for name, value in (env or {}).items()},
        install_hint=None if hint is None else "".join(map(_printable, hint)),
        interactive_mode=mode or InteractiveMode.IF_AVAILABLE,
        provide_cluster_info=bool(provides),
        cluster_config=extension and reveal(extension.fields.get("extension")),
    )


def _version(plugin: Entry) -> str:
    version = plugin.text("apiVersion")
    if version in _VERSIONS:
        return version or ""
    versions = " or ".join(_VERSIONS)
    if version is None:
        raise plugin.error("apiVersion", f"is missing: it must be {versions}")
    given = ", not v1alpha1" if version == f"{_GROUP}/v1alpha1" else ""
    raise plugin.error(
        "apiVersion", f"must be {versions}{given}: update the plugin, and let its program write the kubeconfig again"
    )


def _command(plugin: Entry) -> str:
    """Return the command; one that has a separator, and so is no name to look up, is relative to its file."""
    command = plugin.text("command")
    if command is None:
        raise plugin.error("command", "is missing: it must be the program that prints the credentials")
    _argument(plugin, "command", Secret(command))
    return (plugin.path("command") or "") if os.sep in command else command


def _argument(plugin: Entry, field: str, text: Secret[str]) -> Secret[str]:
    if "\0" in text.reveal():
        raise plugin.error(field, "contains a NUL, which no program can be given")
    return text


def _variable(variable: Entry) -> tuple[str, Secret[str]]:
    name = variable.text("name")
    if name is None:
        raise variable.error("name", "is missing: a variable needs a name")
    if "=" in name or "\0" in name:
        raise variable.error("name", "contains an = or a NUL, which the name of a variable must not")
    return name, _argument(variable, "value", variable.secret("value") or Secret(""))


def _interactive_mode(plugin: Entry, version: str | None) -> InteractiveMode | None:
    name = plugin.text("interactiveMode")
    modes = ", ".join(mode.value for mode in InteractiveMode)
    if name is None:
        default = _VERSIONS.get(version or "")
        if default is None and version is not None:
            raise plugin.error("interactiveMode", f"is missing: it must be one of {modes}")
        return default
    try:
        return InteractiveMode(name)
    except ValueError:
        pass
    raise plugin.error("interactiveMode", f"must be one of {modes}")


def _extension(cluster: Entry) -> Entry | None:
    """Return the cluster's extension for credential plugins."""
    found = [extension for extension in cluster.mappings("extensions") if extension.text("name") == EXTENSION]
    if len(found) > 1:
        raise cluster.error("extensions", f"has {EXTENSION} twice: remove one of them")
    return found[0] if found else None


def _printable(character: str) -> str:
    """Return a character of a text for the terminal; instead of one that controls it, its code point."""
    if character.isspace() or not unicodedata.category(character).startswith("C"):
        return character
    return f"U+{ord(character):04X}"


def with_impersonation(config: ClusterConfig, user: Entry, problems: Problems) -> ClusterConfig:
    """Add the user that requests are made for."""
    name = problems.attempt(lambda: _header(user, "as", user.text("as")))
    uid = problems.attempt(lambda: _header(user, "as-uid", user.text("as-uid")))
    groups = problems.attempt(lambda: _values(user, "as-groups"))
    extra = problems.attempt(lambda: _extra(user))
    if not user.has("as"):
        given = [field for field in _IMPERSONATION if user.has(field)]
        if given:
            problems.add(user.error("as", f"is missing, but {given[0]} is set: name the user to impersonate"))
    if not name:
        return config
    return attrs.evolve(
        config, impersonate=Impersonation(user=name, uid=uid or None, groups=groups or (), extra=extra or {})
    )


def _values(entry: Entry, field: str) -> tuple[str, ...]:
    return tuple(_header(entry, field, value.reveal()) or "" for value in entry.strings(field))


def _extra(user: Entry) -> dict[str, tuple[str, ...]]:
    extra = user.mapping("as-user-extra")
    return {} if extra is None else {key: _values(extra, key) for key in extra.fields.keys()}  # noqa: SIM118  # no dict


def _header(entry: Entry, field: str, value: str | None) -> str | None:
    """Check what is sent as a header."""
    if value is not None and any(unicodedata.category(character) == "Cc" for character in value):
        raise entry.error(field, "contains a control character, which a header must not")
    return value
