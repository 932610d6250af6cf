"""The hash of kube-apiserver, and the limits of the ranges, which the server must understand in the same way."""

from __future__ import annotations

import itertools
import re

import hypothesis
import pytest
from hypothesis import strategies as st

from trioformer.sharding._ranges import fnv1a, range_of, shard_selector


@pytest.mark.parametrize(
    ("text", "value"),  # from the FNV page of Landon Curt Noll
    [
        ("", 0xCBF29CE484222325),
        ("a", 0xAF63DC4C8601EC8C),
        ("b", 0xAF63DF4C8601F1A5),
        ("foo", 0xDCB27518FED9D577),
        ("chongo was here!\n", 0x46810940EFF5F915),
        ("foobar", 0x85944171F73967E8),
    ],
)
def test_the_hash_is_fnv_1a_with_64_bits(text: str, value: int) -> None:
    assert fnv1a(text) == value


def limits(number: int, count: int) -> list[str]:
    return re.findall(r"'(\w+)'", shard_selector("metadata.uid", [number], count))


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, ["0x0000000000000000", "0x10000000000000000"]),
        (3, ["0x0000000000000000", "0x5555555555555556", "0xaaaaaaaaaaaaaaab", "0x10000000000000000"]),
        (16, [*(f"{number:#018x}" for number in range(0, 2**64, 2**60)), "0x10000000000000000"]),
    ],
)
def test_the_selectors_cover_all_hashes_without_gaps(count: int, expected: list[str]) -> None:
    assert [limits(number, count) for number in range(count)] == [list(each) for each in itertools.pairwise(expected)]


def test_a_selector_names_the_field() -> None:
    expected = "shardRange(object.metadata.namespace, '0xf000000000000000', '0x10000000000000000')"
    assert shard_selector("metadata.namespace", [15], 16) == expected


def test_a_selector_of_several_ranges_joins_those_that_follow_one_another() -> None:
    selector = shard_selector("metadata.uid", [0, 1, 3, 14, 15], 16)
    assert re.findall(r"'0x(1?.)0+', '0x(1?.)0+'", selector) == [("0", "2"), ("3", "4"), ("e", "10")]
    assert selector.count(" || ") == 2


@hypothesis.given(text=st.text(), count=st.integers(1, 1024))
def test_a_text_is_in_the_range_whose_selector_has_its_hash(text: str, count: int) -> None:
    begin, end = (int(each, 16) for each in limits(range_of(text, count), count))
    assert begin <= fnv1a(text) < end
