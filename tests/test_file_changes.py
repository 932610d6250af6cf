"""When files that may be rotated are read again: soon after a change, and not while they are being written."""

# ruff: noqa: ASYNC240  # small local files
from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.support.rotated_files import rotate
from trioformer._file_changes import LOOK_PERIOD, SETTLED_AFTER, FileChanges

Clock = trio.testing.MockClock


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "token"
    rotate(written, "one", age=3600)
    return written


async def test_a_file_of_equal_size_and_date_in_another_place_is_a_change(file: Path, autojump_clock: Clock) -> None:
    """Kubernetes replaces a link, and a secret has no date of its own."""
    dates = file.stat().st_atime_ns, file.stat().st_mtime_ns
    link = file.with_name("link")
    link.symlink_to(file)
    changes = FileChanges([str(link)], period=3600)
    other = file.with_name("other")
    other.write_text("two")
    os.utime(other, ns=dates)
    link.unlink()
    link.symlink_to(other)
    await trio.sleep(LOOK_PERIOD)
    assert changes.must_read()


async def test_a_file_is_not_read_while_it_is_being_written(file: Path, autojump_clock: Clock) -> None:
    changes = FileChanges([str(file)], period=3)
    for size in range(4, 10):
        rotate(file, "x" * size, age=0)
        await trio.sleep(LOOK_PERIOD)
        assert not changes.must_read()
    await trio.sleep(SETTLED_AFTER)
    assert changes.must_read()


@pytest.mark.parametrize("ahead", [0, 3600])
async def test_a_file_dated_in_the_future_is_read_when_two_looks_are_equal(
    file: Path, autojump_clock: Clock, ahead: float
) -> None:
    changes = FileChanges([str(file)], period=3600)
    rotate(file, "three", age=-ahead)
    await trio.sleep(1800)
    assert not changes.must_read()
    await trio.sleep(SETTLED_AFTER)
    assert changes.must_read()


async def test_one_file_that_is_being_written_delays_the_other(file: Path, autojump_clock: Clock) -> None:
    """A certificate without its key is of no use."""
    other = file.with_name("key")
    rotate(other, "one", age=3600)
    changes = FileChanges([str(file), str(other)], period=3600)
    rotate(file, "three", age=5)
    rotate(other, "t", age=0)
    await trio.sleep(LOOK_PERIOD)
    assert not changes.must_read()


async def test_after_a_rejection_changed_files_are_read_immediately(file: Path, autojump_clock: Clock) -> None:
    changes = FileChanges([str(file)], period=3600)
    changes.record_rejection()
    assert not changes.must_read(), "they have not changed"
    rotate(file, "three", age=0)
    changes.record_rejection()
    assert changes.must_read()
    changes.record_read()
    assert not changes.must_read()


async def test_a_missing_file_is_read_once_and_again_when_it_is_back(file: Path, autojump_clock: Clock) -> None:
    changes = FileChanges([str(file)], period=3600)
    file.unlink()
    read = []
    for _ in range(10):
        await trio.sleep(LOOK_PERIOD)
        read.append(changes.must_read())
        if read[-1]:
            changes.record_read()
    assert read == [False, True, *[False] * 8]
    rotate(file, "two", age=5)
    await trio.sleep(LOOK_PERIOD)
    assert changes.must_read()
