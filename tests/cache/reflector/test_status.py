"""How often reflectors log their failures, in virtual time."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import ScriptedListWatch, listing
from trioformer.cache import SharedInformer
from trioformer.client import ObjectList
from trioformer.errors import (
    ConnectionFailedError,
    ForbiddenError,
    InternalServerError,
    ServiceUnavailableError,
    TrioformerError,
)
from trioformer.models.core_v1 import Pod


def refused(operation: str) -> ConnectionFailedError:
    return ConnectionFailedError(f"{operation}: https://k: connection refused; check the port", refused=True)


UNAVAILABLE = ServiceUnavailableError("no backend", code=503)
BROKEN = InternalServerError("etcd", code=500)


def informer_of(*lists: ObjectList[Pod] | Exception, name: str = "Pod") -> SharedInformer[Pod]:
    return SharedInformer(ScriptedListWatch([*lists], name=name), resync_period=0)


async def logged(caplog: pytest.LogCaptureFixture, seconds: float, *informers: SharedInformer[Pod]) -> list[str]:
    """Run informers, and return the lines that they log as warnings, or at a higher level."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "trioformer"), trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            for each in informers:
                nursery.start_soon(each.run)
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_server_that_is_down_is_one_line_at_once_and_one_a_minute(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informer = informer_of(refused("GET /version"), *[refused("list pods"), refused("watch pods")] * 100, listing())
    first, *later = await logged(caplog, 600, informer)
    assert "connection refused" in first
    assert "retrying in " in first
    assert "trio.fail_after" in first
    assert 5 <= len(later) <= 9  # at least one minute apart, and less than two, because a retry may be a minute away
    assert all("connection refused" in line and "fail_after" not in line for line in later)


@pytest.mark.parametrize("errors", [(UNAVAILABLE, BROKEN), (refused("list pods"), BROKEN)])
async def test_each_cause_is_logged_at_once_and_once_a_minute_also_when_they_alternate(
    errors: tuple[TrioformerError, ...], autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    lines = await logged(caplog, 300, informer_of(*errors * 100))
    for error in errors:
        assert sum(str(error) in line for line in lines) in (3, 4, 5)
    assert [sum(str(error) in line for line in lines[:2]) for error in errors] == [1, 1]


async def test_fifty_informers_log_a_server_that_is_down_in_one_line(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    informers = [informer_of(refused(f"list kind-{number}"), name=f"Kind{number}") for number in range(50)]
    assert len(await logged(caplog, 59, *informers)) == 1


async def test_informers_that_are_forbidden_have_a_line_each_that_says_until_when(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    forbidden = ForbiddenError("forbidden", code=403, reason="Forbidden")
    lines = await logged(caplog, 29, informer_of(forbidden), informer_of(forbidden, name="Node"))
    assert sorted(line.split(":")[0] for line in lines) == ["Node", "Pod"]
    assert all("30 s" in line and "fail_after" not in line for line in lines)


async def test_one_line_says_that_requests_succeed_again(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    await logged(caplog, 600, informer_of(*[UNAVAILABLE] * 10, listing()))
    *_, last = caplog.records
    assert (last.levelno, "again" in last.getMessage()) == (logging.INFO, True)
    assert sum("again" in record.getMessage() for record in caplog.records) == 1


async def test_failures_of_the_next_run_are_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "trioformer"), trio.move_on_after(0.1):
        await informer_of(UNAVAILABLE).run()
    assert len(caplog.records) == 1
