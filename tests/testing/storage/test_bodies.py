"""How many values a body may have, counted before it is decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trioformer.testing._storage._bodies import MAX_CONTAINERS, MAX_VALUES, check_size, count_values, decode_body
from trioformer.testing._storage._status import APIStatusError


def refusal(body: bytes) -> int:
    with pytest.raises(APIStatusError) as caught:
        decode_body(body)
    return int(caught.value.status["code"])


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"1," * MAX_VALUES + b"1]",
        b"{" + b",".join(b'"%d":1' % i for i in range(MAX_VALUES + 1)) + b"}",
        b"[" + b'"",' * (MAX_VALUES + 1) + b'""]',
        b"[" + b"[]," * MAX_CONTAINERS + b"[]]",
        b"[" + b"{}," * MAX_CONTAINERS + b"{}]",
        b"[" * (MAX_CONTAINERS + 1),
        b"[" + b'"",' * 1_000_000,
    ],
    ids=lambda body: body[:20].decode(),
)
def test_a_body_of_too_many_values_is_413(body: bytes) -> None:
    assert refusal(body) == 413


@pytest.mark.parametrize(
    "value",
    [
        [1] * (MAX_VALUES - 2),
        {str(i): "a" for i in range(MAX_VALUES - 1)},
        [[1, 2]] * (MAX_CONTAINERS - 1),
        {"data": {"a.json": json.dumps([{"a,": [1, {}]}] * 50_000)}},
        {"data": '"' * 500_000 + "\\" * 300_000 + '\\"{[,' * 100_000},
        ["\\"] * 30_000 + ["[{,"] * 60_000,
    ],
    ids=["numbers", "names", "lists", "JSON in a text", "quotation marks in a text", "backslashes"],
)
def test_a_body_of_fewer_values_or_of_long_texts_is_decoded(value: Any) -> None:
    assert decode_body(json.dumps(value, separators=(",", ":")).encode()) == value


def test_an_object_as_large_as_etcd_takes_is_accepted() -> None:
    field = {"type": "string", "description": "d" * 30}
    schema = {f"field{i}": field for i in range(1_500_000 // 75)}
    body = json.dumps({"spec": {"properties": schema}}, separators=(",", ":")).encode()
    assert 1_400_000 < len(body) < 3 * 1024 * 1024
    check_size(body)


def test_texts_do_not_count_in_large_bodies() -> None:
    body = json.dumps({"a": "[{," * 100_000, "b": [1, 2, {}]}).encode()
    assert count_values(body) == (7, 3)
