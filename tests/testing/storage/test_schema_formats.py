"""The formats of texts in schemas, as kube-apiserver checks them; contract/test_values.py compares random texts."""

from __future__ import annotations

import pytest

from trioformer.testing._storage._schema_formats import text_format

GOOD = {
    "byte": ["aGVsbG8=", "YQ=="],
    "cidr": ["10.0.0.0/8", "2001:db8::/32"],
    "date": ["2026-11-22", "2024-02-29"],
    "datetime": ["2026-11-22T19:00:00Z", "2026-11-22t19:00:00.5+01:00"],
    "duration": ["1h30m", "3 days", "5s"],
    "email": ["a@example.com", "A B <a.b@example.com>"],
    "hostname": ["example.com", "a"],
    "ipv4": ["10.0.0.1"],
    "ipv6": ["2001:db8::1"],
    "mac": ["01:23:45:67:89:ab"],
    "password": [""],
    "uri": ["https://example.com/a?b=c", "/a", "*"],
    "uuid": ["a8098c1a-f86e-11da-bd1a-00112444be1e"],
    "uuid4": ["16fd2706-8baf-433b-82eb-8c7fada847da"],
}
BAD = {
    "cidr": ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/x", "x/8"],
    "date": ["2026-13-01", "2025-02-29", "22.11.2026"],
    "datetime": ["2026-11-22", "2026-11-22T25:00:00Z", "2026-11-22T10:61:00Z"],
    "duration": ["soon", ""],
    "email": ["a", "@example.com"],
    "hostname": ["a" * 64, "a b", ".".join(["a" * 60] * 5)],
    "ipv4": ["2001:db8::1", "300.1.1.1"],
    "ipv6": ["10.0.0.1", "fe80::1%eth0"],
    "mac": ["01:23"],
    "uri": ["", "a b", "example.com", "https://[::1", "/%zz", "a:%zz", "1a:b"],
    "uuid": ["a8098c1a"],
    "uuid4": ["16fd2706-8baf-533b-82eb-8c7fada847da"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in GOOD.items() for text in texts])
def test_a_text_of_the_format_is_accepted(name: str, text: str) -> None:
    check = text_format(name)
    assert check is not None
    assert check(text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_a_text_of_another_format_is_refused(name: str, text: str) -> None:
    check = text_format(name)
    assert check is not None
    assert not check(text)


def test_an_unknown_format_is_ignored() -> None:
    assert text_format("colour-of-the-sky") is None
