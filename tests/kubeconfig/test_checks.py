"""PEM is scanned in linear time, and what a file contains is not quoted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cpu_time import least_seconds
from trioformer.kubeconfig._checks import CheckError, check_certificates, check_private_key, parse_server

MEBIBYTE = 1 << 20
CERTIFICATE = b"-----BEGIN CERTIFICATE-----\nQUFB\n-----END CERTIFICATE-----\n"
KEY = b"-----BEGIN PRIVATE KEY-----\nQUFB\n-----END PRIVATE KEY-----\n"


def problem(check: Callable[[bytes], None], pem: bytes) -> str | None:
    try:
        check(pem)
    except CheckError as exc:
        return str(exc)
    return None


def filled(piece: bytes) -> bytes:
    return (piece * (MEBIBYTE // len(piece) + 1))[:MEBIBYTE]


@pytest.mark.parametrize(
    "pem",
    [
        filled(b"-----BEGIN"),
        filled(b"-----BEGIN CERTIFICATE-----\n"),
        filled(b"-----BEGIN PRIVATE KEY-----\n"),
        filled(b"-----BEGIN CERTIFICATE-----\n-----END PRIVATE KEY-----\n"),
        filled(b"-----END CERTIFICATE-----\n"),
        b"-----BEGIN " + filled(b"A"),
        filled(b"-----BEGIN " + b"A" * 64),
        filled(b"-"),
        filled(b"-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"),
        filled(b"\n"),
        filled(b"-----BEGIN CERTIFICATE----- \t" + b" " * 1000),
    ],
    ids=lambda pem: pem[:60].decode(),
)
@pytest.mark.long
def test_a_mebibyte_of_pem_is_checked_in_linear_time(pem: bytes) -> None:
    for check in (check_certificates, check_private_key):
        assert problem(check, pem) is not None
        assert least_seconds(lambda check=check: problem(check, pem), rounds=3) < 0.06


@pytest.mark.long
def test_a_mebibyte_of_certificates_is_checked_quickly() -> None:
    pem = filled(CERTIFICATE)
    check_certificates(pem)
    assert problem(check_private_key, pem) == "contains no PEM private key, only CERTIFICATE"
    assert least_seconds(lambda: problem(check_private_key, pem), rounds=3) < 0.06


@pytest.mark.parametrize(
    ("pem", "is_found"),
    [
        (CERTIFICATE, True),
        (b"text\n" + CERTIFICATE, True),
        (CERTIFICATE.replace(b"\n", b"\r\n"), True),
        (b"-----BEGIN CERTIFICATE-----\n" + CERTIFICATE, True),
        (KEY + CERTIFICATE, True),
        (b"-----BEGIN PRIVATE KEY-----\n" + CERTIFICATE, True),
        (b"-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n", False),
        (b"-----BEGIN CERTIFICATE-----\n-----END PRIVATE KEY-----\n", False),
        (b"-----BEGIN certificate-----\n-----END certificate-----\n", False),
        (b"", False),
    ],
)
def test_a_block_is_from_a_begin_to_the_next_end_of_its_label(pem: bytes, is_found: bool) -> None:
    assert (problem(check_certificates, pem) is None) is is_found


def test_an_encrypted_key_is_found_by_either_sign() -> None:
    for pem in (
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nQUFB\n-----END ENCRYPTED PRIVATE KEY-----\n",
        b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nQUFB\n-----END RSA PRIVATE KEY-----\n",
    ):
        assert problem(check_private_key, CERTIFICATE + pem) == (
            "is encrypted with a passphrase, which is not supported; store it decrypted"
        )


@pytest.mark.parametrize(
    ("pem", "found"),
    [
        (b"s3cret", ""),
        (b"-----BEGIN S3CRET-----\ns3cret\n-----END S3CRET-----\n", ", only something else"),
        (CERTIFICATE + b"-----BEGIN S3CRET-----\n-----END S3CRET-----\n", ", only CERTIFICATE, something else"),
    ],
)
def test_labels_that_are_not_those_of_pem_files_are_not_shown(pem: bytes, found: str) -> None:
    assert problem(check_private_key, pem) == f"contains no PEM private key{found}"


def test_a_wrong_url_is_shown_without_query_and_fragment(tmp_path: Path) -> None:
    for url in ("ftp://h/p?token=s3cret", "https://h:port/p?token=s3cret", "h/p#s3cret?", "https:///p?s3cret#s3cret"):
        with pytest.raises(CheckError) as caught:
            parse_server(url)
        assert "s3cret" not in str(caught.value)
        assert "/p'" in str(caught.value)
