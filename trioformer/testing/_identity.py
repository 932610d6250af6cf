"""The certificate, the key and the token of a server on a socket, which the server makes itself."""

from __future__ import annotations

import base64
import secrets
import ssl
from collections.abc import Iterable
from typing import Any, Final, final

import attrs

from .._listeners import pem_context
from .._secret import Secret

LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")


@final
@attrs.frozen
class Identity:
    """A certificate and its private key, the authority that signed the certificate, and a token for clients."""

    authority: str
    """The certificate of the authority, in PEM like the others.  The authority's private key is not kept."""
    certificate: str
    key: Secret[str]
    token: Secret[str]
    names: frozenset[str]
    """The host names and addresses for which the certificate is valid."""

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of the server."""
        return pem_context(Secret(self.certificate.encode()), Secret(self.key.reveal().encode()))


def make_identity(names: Iterable[str]) -> Identity:
    """Make the identity of a server with these names and addresses.

    Raises:
        ModuleNotFoundError: trustme is not installed.
    """
    import trustme  # noqa: PLC0415  # an extra, which only this function needs

    authority = trustme.CA(organization_name="trioformer testing")
    valid = frozenset((*LOCAL_NAMES, *names))
    issued = authority.issue_cert(*sorted(valid))
    return Identity(
        authority=authority.cert_pem.bytes().decode(),
        certificate=issued.cert_chain_pems[0].bytes().decode(),
        key=Secret(issued.private_key_pem.bytes().decode()),
        token=new_token(),
        names=valid,
    )


def new_token() -> Secret[str]:
    """Return a random token."""
    return Secret(secrets.token_urlsafe(32))


def kubeconfig_content(
    name: str, url: str, authority: bytes | None, user: str, credentials: dict[str, str], **context: str
) -> dict[str, Any]:
    """Return a kubeconfig with one cluster and one user.  The certificate of the authority is embedded."""
    cluster = {"server": url}
    if authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user, **context}}],
        "current-context": name,
    }
