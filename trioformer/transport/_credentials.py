"""What requests are authenticated with, and where it comes from.

A source is asked before each request, so what it has may change while the program runs: token files are rotated, and
plugins' credentials expire.
"""

from __future__ import annotations

import base64
from contextlib import AbstractContextManager
from typing import Protocol, final

import attrs

from .._secret import Secret


@final
@attrs.frozen(eq=False)
class ClientCertificate:
    """A client certificate and its private key, as PEM."""

    chain: Secret[bytes]
    """The certificate, and those of intermediate authorities."""
    key: Secret[bytes]
    """The private key, not encrypted."""


@final
@attrs.frozen(eq=False)
class Credential:
    """What a request is authenticated with.

    A source returns the same object until it has obtained a credential again, be it an equal one: so a 401 to a request
    that was sent before counts no more.
    A certificate stays the same object as long as it has not changed.
    """

    authorization: Secret[str] | None = None
    """The value of the ``Authorization`` header; None for no header."""
    certificate: ClientCertificate | None = None
    """A certificate of a plugin, used instead of that of the configuration."""

    def is_equal(self, other: Credential) -> bool:
        """Whether a server that has rejected one of the two rejects the other, too."""
        return self.authorization == other.authorization and self.certificate is other.certificate


def basic_authorization(user: str, password: Secret[str]) -> Secret[str]:
    """Return the header value of basic authentication, of a server or a proxy."""
    pair = Secret(f"{user}:{password.reveal()}".encode())
    return Secret(f"Basic {base64.b64encode(pair.reveal()).decode('ascii')}")


class CredentialSource(Protocol):
    """Where the credentials of a client come from; any number of tasks may use it at the same time."""

    @property
    def latest(self) -> Credential:
        """The credential that was used last, for probes, which need no valid one: never reads or runs anything."""
        ...

    async def get(self) -> Credential:
        """Return the credential for a request that is sent now; a checkpoint only if that takes time.

        Raises:
            TrioformerError: No credential was obtained.
        """
        ...

    def reject(self, credential: Credential) -> None:
        """Record that the server responded with 401 to a request with ``credential``.

        If that is the latest one, the next :meth:`get` tries to obtain another one.
        """
        ...

    def in_use(self) -> AbstractContextManager[None]:
        """Use it until the end of the block; each client does.

        When no client is left, what it runs is killed, and each :meth:`get` that waits raises trio.ClosedResourceError.
        """
        ...
