"""The ExecCredential that a plugin is given, and the one that it prints.

Source: client-go ``pkg/apis/clientauthentication`` and ``plugin/pkg/client/auth/exec/exec.go``.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, final

import attrs

from ..._certificates import CertificateRefusedError, load_certificate
from ..._secret import Secret
from ._exec_policy import Problem

GROUP: Final = "client.authentication.k8s.io"
API_VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")

_ANY_VERSION: Final = re.compile(rf"{re.escape(GROUP)}/v[0-9]{{1,3}}(?:(?:alpha|beta)[0-9]{{1,3}})?")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
# RFC 3339, as Go reads it; fromisoformat() takes more.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")


@final
@attrs.frozen(eq=False)
class ClusterInfo:
    """What a plugin may learn about the cluster."""

    server: str
    """Its URL."""
    tls_server_name: str | None = None
    """The name that its certificate must be valid for."""
    insecure_skip_tls_verify: bool = False
    """Whether that is not verified."""
    ca_data: bytes | None = attrs.field(default=None, repr=False)
    """PEM certificates of its authorities, also those of a file."""
    proxy_url: str | None = attrs.field(default=None, repr=False)
    """The proxy on the way to it."""
    disable_compression: bool = False
    """Whether responses are not to be compressed."""
    config: object = attrs.field(default=None, repr=False)
    """The cluster's extension for plugins, as JSON has it."""


def exec_info(api_version: str, *, is_interactive: bool, cluster: ClusterInfo | None) -> Secret[str]:
    """Make the value of ``KUBERNETES_EXEC_INFO``.

    Args:
        api_version: The version that the plugin is configured for.
        is_interactive: Whether it gets a terminal as its standard input.
        cluster: What it is given of the cluster; None for nothing.
    """
    spec: dict[str, object] = {} if cluster is None else {"cluster": _cluster(cluster)}
    spec["interactive"] = is_interactive
    return Secret(_encoded({"kind": "ExecCredential", "apiVersion": api_version, "spec": spec}))


def _cluster(cluster: ClusterInfo) -> dict[str, object]:
    """Omit what Go omits: empty fields, but for the server and the configuration."""
    fields: dict[str, object] = {
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(cluster.ca_data or b"").decode("ascii"),
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
    }
    given = {name: value for name, value in fields.items() if value}
    return {"server": cluster.server, **given, "config": cluster.config}


def _encoded(document: Mapping[str, object]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


@final
@attrs.frozen(eq=False)
class PrintedCredential:
    """What a plugin has printed."""

    token: Secret[str] | None
    """The bearer token."""
    chain: Secret[bytes] | None
    """The PEM client certificate."""
    key: Secret[bytes] | None
    """Its PEM private key; with a certificate only."""
    expires: datetime | None
    """When it expires; None for never."""


def parse_exec_credential(output: Secret[bytes], api_version: str) -> PrintedCredential | Problem:
    """Parse what a plugin has printed.

    Returns what is wrong with it: an exception would have the document in its traceback.

    Args:
        output: All of its standard output.
        api_version: The version that it must have, one of :data:`API_VERSIONS`.
    """
    if not output.reveal().strip():
        return Problem("has printed nothing; it must print an ExecCredential")
    document = _loaded(output)
    if isinstance(document, Problem):
        return document
    # Go's decoder knows the kind that it expects, and needs only the version.
    if (
        not isinstance(document, dict)
        or document.get("kind") not in (None, "", "ExecCredential")
        or not isinstance(document.get("spec") or {}, dict)
    ):
        return Problem("has printed JSON that is not an ExecCredential; check its arguments")
    version = document.get("apiVersion")
    if version != api_version:
        shown = version if isinstance(version, str) and _ANY_VERSION.fullmatch(version) else "another apiVersion"
        return Problem(
            f"has printed an ExecCredential of {shown}, and is configured for {api_version}; "
            "change the apiVersion in the kubeconfig, or update the plugin",
            permanent=True,
        )
    status = document.get("status")
    if status is None:
        return Problem("has printed an ExecCredential without a status")
    if not isinstance(status, dict):
        return Problem("has printed an ExecCredential whose status is not an object")
    return _parse_status(status)


def _loaded(output: Secret[bytes]) -> object:
    try:
        return json.loads(output.reveal())
    except json.JSONDecodeError as exc:  # which quotes the document
        place = f"line {exc.lineno}, column {exc.colno}"
    except (ValueError, RecursionError):  # not UTF-8, a number of thousands of digits, brackets
        place = "not valid"
    return Problem(f"has not printed an ExecCredential as JSON ({place}); run it by hand to see what it prints")


def _parse_status(status: dict[str, object]) -> PrintedCredential | Problem:
    texts: dict[str, Secret[str]] = {}
    for field in ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp"):
        value = status.get(field)
        if isinstance(value, str):
            texts[field] = Secret(value)
        elif value is not None:
            return Problem(f"has printed a status whose {field} is not a string")
    token = texts.get("token") or None
    chain, key = (_pem(texts.get(field)) for field in ("clientCertificateData", "clientKeyData"))
    if token is None and chain is None and key is None:
        return Problem("has printed neither a token nor a client certificate; log in with it, or check its arguments")
    if (chain is None) != (key is None):
        given, missing = ("certificate", "key") if key is None else ("key", "certificate")
        return Problem(f"has printed a client {given} without its {missing}")
    if token is not None and not _VISIBLE.fullmatch(token.reveal()):
        return Problem("has printed a token with white space, control or non-ASCII characters")
    if chain is not None and (problem := _problem_of_certificate(chain, key)):
        return Problem(f"has printed a client {problem}")
    expires = _parse_time(texts["expirationTimestamp"]) if "expirationTimestamp" in texts else None
    if expires is None and "expirationTimestamp" in texts:
        return Problem("has printed an expirationTimestamp that is not a time as in RFC 3339")
    return PrintedCredential(token, chain, key, expires)


def _pem(text: Secret[str] | None) -> Secret[bytes] | None:
    return Secret(text.reveal().encode("utf-8", "replace")) if text else None


def _problem_of_certificate(chain: Secret[bytes], key: Secret[bytes] | None) -> str:
    try:
        load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), chain, key)
    except CertificateRefusedError as exc:
        return f"{'key' if exc.is_key else 'certificate'} that {exc}"
    return ""


def _parse_time(text: Secret[str]) -> datetime | None:
    """Parse a time; None if it is not valid."""
    try:
        found = _TIME.fullmatch(text.reveal())
        return datetime.fromisoformat(found[0]).astimezone(UTC) if found else None
    except (ValueError, OverflowError):
        return None
