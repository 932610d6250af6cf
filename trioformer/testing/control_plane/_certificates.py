"""Temporary certificates for the certificate authority, the servers and the administrator of a control plane.

This module needs trustme, which the extra ``trioformer[testing]`` installs.  So ``trioformer.testing`` imports this
module only on first use.
"""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import final

import attrs

try:
    import trustme
except ModuleNotFoundError as _missing:
    raise ModuleNotFoundError(
        f"trioformer.testing.ControlPlane needs {_missing.name}; install it with `pip install 'trioformer[testing]'`",
        name=_missing.name,
    ) from _missing

from ..._files import write_private
from ..._secret import Secret
from .._identity import kubeconfig_content

__all__ = ["Certificates", "issue_certificates"]

SERVER_NAMES = ("127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADMINISTRATOR = "trioformer-admin"
ADMINISTRATORS = "system:masters"
"""The group with all permissions in RBAC.  The API server reads a user's group from the organization in the client
certificate."""


@final
@attrs.frozen
class Certificates:
    """The paths of the PEM files of a control plane, which trusts only its own certificate authority."""

    authority: Path
    """The authority's certificate."""
    server_certificate: Path
    """The certificate for 127.0.0.1, localhost and the service names of the API server."""
    server_key: Path
    """The server's private key."""
    client_certificate: Path
    """The certificate of an administrator, with the organization ``system:masters``."""
    client_key: Path
    """The administrator's private key."""
    service_account_key: Path
    """The private key that signs service account tokens."""

    def client_context(self) -> ssl.SSLContext:
        """Return a TLS context that trusts only this authority and uses the administrator's certificate."""
        context = ssl.create_default_context(cafile=self.authority)
        context.load_cert_chain(self.client_certificate, self.client_key)
        return context

    def kubeconfig(self, url: str) -> dict[str, object]:
        """Return a kubeconfig for the administrator of the server at `url`, with embedded certificates."""
        credentials = {
            "client-certificate-data": _encoded(self.client_certificate),
            "client-key-data": _encoded(self.client_key),
        }
        return kubeconfig_content("control-plane", url, self.authority.read_bytes(), ADMINISTRATOR, credentials)


def issue_certificates(directory: Path) -> Certificates:
    """Create a certificate authority and the certificates that it signs, and write the PEM files to `directory`."""
    authority = trustme.CA(organization_name="trioformer testing")
    server = authority.issue_cert(*SERVER_NAMES)
    client = authority.issue_cert(ADMINISTRATOR, common_name=ADMINISTRATOR, organization_name=ADMINISTRATORS)
    service_account = authority.issue_cert("service-account")
    paths = Certificates(
        authority=directory / "ca.crt",
        server_certificate=directory / "server.crt",
        server_key=directory / "server.key",
        client_certificate=directory / "client.crt",
        client_key=directory / "client.key",
        service_account_key=directory / "service-account.key",
    )
    for path, content in (
        (paths.authority, authority.cert_pem),
        (paths.server_certificate, server.cert_chain_pems[0]),
        (paths.server_key, server.private_key_pem),
        (paths.client_certificate, client.cert_chain_pems[0]),
        (paths.client_key, client.private_key_pem),
        (paths.service_account_key, service_account.private_key_pem),
    ):
        write_private(path, Secret(content.bytes()))
    return paths


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")
