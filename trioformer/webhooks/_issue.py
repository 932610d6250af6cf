"""Issue and check the certificates of webhooks.

This module needs cryptography, which the extra ``trioformer[webhooks]`` installs.  So it is imported only if a
`WebhookServer` has a Service, and not if its certificate comes from files.
"""

from __future__ import annotations

import ipaddress
import secrets
from datetime import UTC, datetime, timedelta
from typing import Final, final

import attrs

from .._secret import Secret

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ModuleNotFoundError as _missing:
    raise ModuleNotFoundError(
        f"certificates of webhooks need {_missing.name}; install it with `pip install 'trioformer[webhooks]'`, or pass"
        " certificate= and key= to WebhookServer",
        name=_missing.name,
    ) from _missing

LIFETIME: Final = timedelta(days=90)
"""The lifetime of a certificate and its CA."""
SKEW: Final = timedelta(days=1)
"""How long before its creation a certificate is already valid, because clocks differ."""
CERT_SIGN: Final = 5
"""The bit ``keyCertSign`` of the nine bits of a KeyUsage (RFC 5280, section 4.2.1.3)."""


@final
@attrs.frozen
class IssuedCertificate:
    """A certificate with its key and its CA, all in PEM."""

    certificate: bytes
    key: Secret[bytes]
    authority: bytes


@final
@attrs.frozen
class Validity:
    """When a certificate is valid, in seconds since 1970."""

    begins: float
    ends: float

    @property
    def renew_at(self) -> float:
        """When the next certificate is made: after two thirds of the lifetime."""
        return self.begins + (self.ends - self.begins) * 2 / 3


def issue(host: str, now: float) -> IssuedCertificate:
    """Make a CA and a certificate for a host name or an IP address.  The key of the CA is not kept.

    Args:
        host: The name that the API server connects to, such as ``website-webhooks.default.svc``.
        now: The time, in seconds since 1970.
    """
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    # A different name for each CA, so that a client that trusts two of them finds the right one by its name.
    authority_name = _name(f"trioformer webhooks {secrets.token_hex(8)}")
    authority_id = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    begins = datetime.fromtimestamp(now, UTC) - SKEW

    def unsigned(subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder(subject_name=subject, issuer_name=authority_name, public_key=public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(begins + SKEW + LIFETIME)
        )

    authority = (
        unsigned(authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(*(bit == CERT_SIGN for bit in range(9))), critical=True)
        .add_extension(authority_id, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        unsigned(_name("webhooks"), key.public_key())
        .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_id), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return IssuedCertificate(certificate.public_bytes(pem), Secret(private), authority.public_bytes(pem))


def check(certificate: bytes, key: Secret[bytes], authorities: bytes, host: str) -> Validity:
    """Check that a certificate is for a host, has this key, and was signed by one of the authorities.

    Raises:
        ValueError: It is not.  The message contains neither the certificate nor the key.
    """
    try:
        found = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key.reveal(), password=None)
        trusted = x509.load_pem_x509_certificates(authorities)
    except (ValueError, TypeError, UnsupportedAlgorithm) as exc:
        raise ValueError("the certificate, the key or the CA is not in PEM format") from exc
    if private.public_key() != found.public_key():
        raise ValueError("the key is not the key of the certificate")
    extensions = {type(each.value): each.value for each in found.extensions}
    if _general_name(host) not in extensions.get(x509.SubjectAlternativeName, ()):
        raise ValueError(f"the certificate is not for {host}")
    if not any(_is_signed_by(found, each) for each in trusted):
        raise ValueError("no CA in ca.crt has signed the certificate")
    return Validity(found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp())


def _is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
