"""YAML bodies."""

from __future__ import annotations

import pytest

from trioformer.testing._storage._bodies import decode_yaml


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"", {}),
        (b"# nothing", {}),
        (b'{"a": 1}', {"a": 1}),
        (b"{a: 1}", {"a": 1}),
        (b"a: 1\n---\nb: 2", {"a": 1}),
        (b"- 012", [10]),
    ],
)
def test_a_body_is_the_first_document(body: bytes, value: object) -> None:
    assert decode_yaml(body) == value


@pytest.mark.parametrize("body", [b"a: [", b"a: *b", b"a: .nan", b"a: !!binary x", b"a: 1\na: 2", b"\xff", b"[" * 200])
def test_other_bodies_are_not_valid(body: bytes) -> None:
    with pytest.raises(ValueError, match="yaml: "):
        decode_yaml(body)
