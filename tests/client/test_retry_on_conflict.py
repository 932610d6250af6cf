"""Retries of a change after a conflict, and after no other error."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import trio
import trio.testing

from trioformer.client import retry_on_conflict
from trioformer.errors import ApplyConflictError, ConflictError, NotFoundError, StatusError


def conflict(number: int) -> ConflictError:
    return ConflictError(f"write {number} conflicts", code=409, reason="Conflict")


async def test_only_conflicts_are_retried_and_the_last_one_is_raised(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """client-go: TestRetryOnConflict"""
    times: list[float] = []

    async def change() -> None:
        times.append(trio.current_time())
        raise conflict(len(times))

    with pytest.raises(ConflictError, match="write 5 conflicts"):
        await retry_on_conflict(change)
    delays = [after - before for before, after in itertools.pairwise(times)]
    assert len(delays) == 4
    assert all(0.01 <= delay < 0.011 for delay in delays)


async def test_another_error_is_raised_unchanged(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestRetryOnConflict"""
    errors = [conflict(1), NotFoundError("gone", code=404)]

    async def change() -> None:
        raise errors.pop(0)

    with pytest.raises(NotFoundError, match="gone"):
        await retry_on_conflict(change)
    assert errors == []


async def test_a_conflict_is_what_apimachinery_calls_one(autojump_clock: trio.testing.MockClock) -> None:
    """apimachinery ``IsConflict``: the reason Conflict, or the code 409 with a reason that is not known."""
    for status, is_conflict in [
        ({"code": 409, "reason": "Conflict"}, True),
        ({"code": 409, "reason": "AlreadyExists"}, False),
        ({"code": 409, "reason": "SomethingNew"}, True),
        ({"code": 409}, True),
        ({"code": 422, "reason": "Conflict"}, True),
        ({"code": 409, "reason": "Invalid"}, False),
    ]:
        tries = 0

        async def change(status: Any = status) -> None:
            nonlocal tries
            tries += 1
            raise StatusError.from_status(status)

        with pytest.raises(StatusError):
            await retry_on_conflict(change)
        assert tries == (5 if is_conflict else 1)


async def test_cancellation_of_the_change_propagates(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestRetryOnConflictPreservesContextErrorWithoutLastError"""
    with trio.move_on_after(1) as scope:
        await retry_on_conflict(trio.sleep_forever)
    assert scope.cancelled_caught


async def test_an_apply_that_conflicts_with_another_manager_is_not_retried() -> None:
    """Other than in client-go: the same apply has the same conflict."""
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "other" using v1', "field": ".data.a"}
    status = {"code": 409, "reason": "Conflict", "details": {"causes": [cause]}}
    tries = 0

    async def apply() -> None:
        nonlocal tries
        tries += 1
        raise StatusError.from_status(status)

    with pytest.raises(ApplyConflictError):
        await retry_on_conflict(apply)
    assert tries == 1
