"""Dates of certificates; what loads them is tested with the TLS of clients and servers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trustme

from trioformer._certificates import expires_at
from trioformer._secret import Secret

CA = trustme.CA()
SOON, LATE = datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("expires", [SOON, LATE, datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)])
@pytest.mark.parametrize("key_type", list(trustme.KeyType))
def test_the_date_of_the_first_certificate_of_a_chain_is_found(expires: datetime, key_type: trustme.KeyType) -> None:
    """Dates since 2050 have another form."""
    issued = CA.issue_cert("a.test", not_before=datetime(2000, 1, 1), not_after=expires, key_type=key_type)
    pem = b"# a comment\n" + issued.cert_chain_pems[0].bytes() + CA.cert_pem.bytes()
    assert expires_at(Secret(pem)) == expires
    assert expires_at(Secret(CA.cert_pem.bytes() + pem)) != expires


def test_a_certificate_that_is_not_valid_has_no_date_or_another_one() -> None:
    """It never raises: OpenSSL says what is wrong when the certificate is loaded."""
    pem = CA.issue_cert("a.test").cert_chain_pems[0].bytes()
    for data in (b"", b"junk", pem[:28], pem[:200], pem.replace(b"MII", b"!!!")):
        assert expires_at(Secret(data)) is None
    for at in range(28, len(pem) - 30):
        expires_at(Secret(pem[:at]))
        expires_at(Secret(pem[:at] + b"/" + pem[at + 1 :]))
