"""Encode the ExecCredential that a plugin receives, and decode the ExecCredential that it prints.

Source: client-go ``pkg/apis/clientauthentication`` and ``plugin/pkg/client/auth/exec/exec.go``.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
from datetime import UTC, datetime
from typing import Any, Final

from ..._certificates import CertificateRefusedError, load_certificate
from ..._files import read_file
from ..._secret import Secret
from ...kubeconfig import ClusterConfig
from ._credentials import ClientCertificate, Credential
from ._exec_policy import PluginError

_ANY_VERSION: Final = re.compile(r"client\.authentication\.k8s\.io/v[0-9]{1,3}(?:(?:alpha|beta)[0-9]{1,3})?")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
# RFC 3339, as in Go; fromisoformat() accepts more.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")


def exec_info(config: ClusterConfig, *, is_interactive: bool) -> Secret[str]:
    """Return the value of ``KUBERNETES_EXEC_INFO``.

    Raises:
        PluginError: The file with the certificate authorities cannot be read.
    """
    plugin = config.exec
    assert plugin is not None
    spec: dict[str, object] = {"interactive": is_interactive}
    if plugin.provide_cluster_info:
        ca_data = config.ca_data or b""
        if config.ca_file is not None:
            try:
                ca_data = read_file(config.ca_file).reveal()
            except OSError as exc:
                text = f"was not run: the certificate authority {config.ca_file} cannot be read: {exc.strerror}"
                raise PluginError(text) from None
        fields: dict[str, object] = {
            "tls-server-name": config.tls_server_name,
            "insecure-skip-tls-verify": config.insecure_skip_tls_verify,
            "certificate-authority-data": base64.b64encode(ca_data).decode("ascii"),
            "proxy-url": config.proxy_url,
            "disable-compression": config.disable_compression,
        }
        # As in Go, empty fields are omitted, except the server and the configuration.
        given = {name: value for name, value in fields.items() if value}
        spec = {"cluster": {"server": config.server, **given, "config": plugin.cluster_config}, **spec}
    document = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return Secret(json.dumps(document, separators=(",", ":"), ensure_ascii=False))


def parse_exec_credential(output: Secret[bytes], api_version: str) -> tuple[Credential, datetime | None]:
    """Return the credential that a plugin has printed, and its expiry time.

    The time is None if the credential does not expire.

    Raises:
        PluginError: The output is not an ExecCredential, or it does not contain a usable credential.
    """
    document = _loaded(output)
    # Like Go's decoder, check only the version, because the kind is expected.
    if (
        not isinstance(document, dict)
        or document.get("kind") not in (None, "", "ExecCredential")
        or not isinstance(document.get("spec") or {}, dict)
    ):
        raise PluginError("printed JSON that is not an ExecCredential; check the arguments of the plugin")
    version = document.get("apiVersion")
    if version != api_version:
        shown = version if isinstance(version, str) and _ANY_VERSION.fullmatch(version) else "another apiVersion"
        raise PluginError(
            f"printed an ExecCredential of {shown}, but the kubeconfig expects {api_version}; "
            "change the apiVersion in the kubeconfig, or update the plugin",
            permanent=True,
        )
    status = document.get("status")
    if not isinstance(status, dict):
        raise PluginError("printed an ExecCredential without a status")
    token, chain, key = (_text(status, name) for name in ("token", "clientCertificateData", "clientKeyData"))
    if not (token or chain or key):
        raise PluginError("printed neither a token nor a client certificate; log in with the plugin")
    if token and not _VISIBLE.fullmatch(token):
        raise PluginError("printed a token with white space, control or non-ASCII characters")
    if bool(chain) != bool(key):
        raise PluginError("printed a client certificate without its key, or a key without its certificate")
    certificate = None
    if chain:
        pems = [Secret(pem.encode("utf-8", "replace")) for pem in (chain, key)]
        certificate = ClientCertificate(*pems)
        try:
            load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), *pems)
        except CertificateRefusedError as exc:
            what = "key" if exc.is_key else "certificate"
            raise PluginError(f"printed a client {what} that {exc}") from None
    time = _text(status, "expirationTimestamp")
    expires = None if status.get("expirationTimestamp") is None else _parse_time(time)
    return Credential(Secret(f"Bearer {token}") if token else None, certificate), expires


def _loaded(output: Secret[bytes]) -> Any:
    try:
        return json.loads(output.reveal())
    except json.JSONDecodeError as exc:
        place = f"line {exc.lineno}, column {exc.colno}"
    except (ValueError, RecursionError):  # not UTF-8, a number of thousands of digits, brackets
        place = "not valid"
    raise PluginError(f"did not print an ExecCredential as JSON ({place}); run the plugin by hand to see its output")


def _text(status: dict[str, Any], field: str) -> str:
    value = status.get(field)
    if value is not None and not isinstance(value, str):
        raise PluginError(f"printed a status whose {field} is not a string")
    return value or ""


def _parse_time(text: str) -> datetime:
    try:
        if _TIME.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise PluginError("printed an expirationTimestamp that is not an RFC 3339 time")
