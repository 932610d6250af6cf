"""The Secret with the certificate of the webhooks, and the states of its rotation.

Each write of the Secret moves the rotation to the next state.  All that a state needs is in the Secret, so a leader
continues where the last one was killed.  The configurations trust the CAs in ``ca.crt``, which contains both CAs while
replicas may serve either certificate.  A CA signs one certificate, and its key is never stored.

::

    STABLE ── the next certificate is made ──▶ PUBLISHING ── after 60 s ──▶ SWITCHING ──▶ STABLE
                                                                                every replica has announced it
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from typing import Final, final

import attrs

from .. import _secret
from ..models import ObjectMeta
from ..models.core_v1 import Secret
from ._issue import IssuedCertificate, Validity, check

STATE: Final = "webhooks.trioformer/rotation"
"""The annotation of the Secret with the state."""

CERTIFICATE, KEY, AUTHORITIES = "tls.crt", "tls.key", "ca.crt"
NEXT_CERTIFICATE, NEXT_KEY, NEXT_AUTHORITY = "next-tls.crt", "next-tls.key", "next-ca.crt"
_CURRENT: Final = (CERTIFICATE, KEY, AUTHORITIES)


class RotationState(enum.Enum):
    """A state of the rotation.  The value describes what the leader waits for."""

    STABLE = "until two thirds of the certificate's lifetime have passed"
    PUBLISHING = "until all configurations have contained both CAs for 60 s"
    SWITCHING = "until every live replica has announced the new certificate"


KEYS: Final[Mapping[RotationState, tuple[str, ...]]] = {
    RotationState.STABLE: _CURRENT,
    RotationState.PUBLISHING: (*_CURRENT, NEXT_CERTIFICATE, NEXT_KEY, NEXT_AUTHORITY),
    RotationState.SWITCHING: (*_CURRENT, NEXT_AUTHORITY),
}
"""The keys of the Secret in each state."""


@final
@attrs.frozen
class Contents:
    """The valid contents of the Secret."""

    state: RotationState
    data: Mapping[str, bytes] = attrs.field(repr=False)
    validity: Validity

    @classmethod
    def read(cls, secret: Secret, host: str) -> Contents:
        """Check and return the contents of a Secret.

        Raises:
            ValueError: Somebody has edited the Secret.  The message does not contain its data.
        """
        state = RotationState.__members__.get(secret.metadata.annotations.get(STATE, "").upper())
        if state is None:
            raise ValueError(f"the annotation {STATE} is not the name of a state")
        wanted = KEYS[state]
        if missing := [key for key in wanted if not secret.data.get(key)]:
            raise ValueError(f"it has no {', '.join(missing)}")
        data = {key: secret.data[key] for key in wanted}
        if state is RotationState.PUBLISHING:
            check(data[NEXT_CERTIFICATE], _secret.Secret(data[NEXT_KEY]), data[NEXT_AUTHORITY], host)
        if state is not RotationState.STABLE and data[NEXT_AUTHORITY] not in data[AUTHORITIES]:
            raise ValueError("ca.crt does not contain the new CA")
        return cls(state, data, check(data[CERTIFICATE], _secret.Secret(data[KEY]), data[AUTHORITIES], host))

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the current certificate."""
        return fingerprint(self.data[CERTIFICATE])

    @property
    def authorities(self) -> bytes:
        """The CAs that the configurations trust, in PEM."""
        return self.data[AUTHORITIES]


Written = tuple[RotationState, Mapping[str, bytes]]
"""A state and the data to write."""


def first(issued: IssuedCertificate) -> Written:
    """Return the first contents of the Secret."""
    data = {CERTIFICATE: issued.certificate, KEY: issued.key.reveal(), AUTHORITIES: issued.authority}
    return RotationState.STABLE, data


def begin(current: Contents, issued: IssuedCertificate) -> Written:
    """Return the contents that begin a rotation, from any state."""
    return RotationState.PUBLISHING, {
        **current.data,
        AUTHORITIES: current.authorities + issued.authority,
        NEXT_CERTIFICATE: issued.certificate,
        NEXT_KEY: issued.key.reveal(),
        NEXT_AUTHORITY: issued.authority,
    }


def proceed(current: Contents) -> Written:
    """Return the contents of the next state, when a rotation has begun."""
    data = {**current.data}
    if current.state is RotationState.PUBLISHING:
        following = RotationState.SWITCHING
        data |= {CERTIFICATE: data[NEXT_CERTIFICATE], KEY: data[NEXT_KEY]}
    else:
        following = RotationState.STABLE
        data[AUTHORITIES] = data[NEXT_AUTHORITY]
    return following, {key: data[key] for key in KEYS[following]}


def secret_with(stored: Secret | None, written: Written, *, name: str, namespace: str) -> Secret:
    """Return the Secret to write, with the metadata of the stored one."""
    state, data = written
    if stored is None:
        stored = Secret(metadata=ObjectMeta(name=name, namespace=namespace), type="kubernetes.io/tls")
    annotations = {**stored.metadata.annotations, STATE: state.name.lower()}
    return stored.evolve(metadata=stored.metadata.evolve(annotations=annotations), data=data)


def fingerprint(certificate: bytes) -> str:
    """Return the fingerprint of a certificate in PEM, by which replicas announce it."""
    return hashlib.sha256(certificate).hexdigest()
