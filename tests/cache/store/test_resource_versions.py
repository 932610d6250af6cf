"""ResourceVersions that no etcd has made."""

from __future__ import annotations

import pytest
import trio

from trioformer.cache.store._resource_versions import MAX_DIGITS, ResourceVersions, parse_resource_version
from trioformer.errors import DecodeError

NO_NUMBERS = [
    "",
    "-1",
    "+1",
    " 1",
    "1.5",
    "1e9",
    "0x1",
    "1_000",
    "²",
    "٣",
    "१",
    "\x1b[2J",
    "9" * (MAX_DIGITS + 1),
    "9" * 5_000,
]


@pytest.mark.parametrize("version", NO_NUMBERS)
async def test_a_version_that_is_no_number_of_bounded_length_is_an_error_of_the_library(version: str) -> None:
    with pytest.raises(DecodeError, match="is not a number") as caught:
        parse_resource_version(version)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 250
    versions = ResourceVersions({"": version})
    if version:  # an empty one is that of a cache without data
        with pytest.raises(DecodeError):
            await versions.wait_until_at_least("7", [""])
    with pytest.raises(DecodeError):
        await versions.wait_until_at_least(version, [""])


@pytest.mark.parametrize(
    ("version", "number"), [("0", 0), ("007", 7), (str(2**64), 2**64), ("9" * MAX_DIGITS, 10**100 - 1)]
)
async def test_a_version_of_any_honest_length_is_a_number(version: str, number: int) -> None:
    assert parse_resource_version(version) == number
    versions = ResourceVersions({"": version})
    with trio.fail_after(1):
        await versions.wait_until_at_least(str(number), [""])
