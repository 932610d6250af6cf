"""How long a failed request waits: limiters, ``Retry-After``, lost connections, and what follows an outage."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from tests.support.controllers import Reconcile, pods, watch_and_start
from tests.support.scripted_list_watch import modified, pod
from trioformer.controller import Controller, Request
from trioformer.errors import ConnectionFailedError, ForbiddenError, QuarantinedError, StatusError
from trioformer.workqueue import default_controller_rate_limiter

OUTAGE = 60.0


def throttled(seconds: int = 10, code: int = 429) -> StatusError:
    return StatusError.from_status({"code": code, "details": {"retryAfterSeconds": seconds}}, where="create pods")


def with_cause(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def wrapped(cause: Exception) -> Exception:
    return with_cause(RuntimeError("cannot create the pod"), cause)


# --- Retry-After ---

WITH_RETRY_AFTER: dict[str, Callable[[], Exception]] = {
    "429": throttled,
    "503": lambda: throttled(code=503),
    "in a group": lambda: ExceptionGroup("two calls", [OSError(), ExceptionGroup("", [throttled(3), throttled()])]),
    "as the cause of another error": lambda: wrapped(throttled()),
    "in a group that is a cause": lambda: wrapped(ExceptionGroup("", [throttled()])),
}


@pytest.mark.parametrize("how", WITH_RETRY_AFTER)
async def test_a_request_is_not_retried_before_the_servers_retry_after(
    nursery: trio.Nursery, autojump_clock: MockClock, how: str
) -> None:
    informer, reconcile = pods("a"), Reconcile([WITH_RETRY_AFTER[how](), OSError()])
    controller = Controller("pods", reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(60)
    first, second = reconcile.gaps()
    assert 10 <= first <= 11
    assert second <= 0.01  # the limiter's second delay


async def test_a_retry_after_counts_for_five_minutes_at_most(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    informer, reconcile = pods("a"), Reconcile([throttled(86_400)])
    controller = Controller("pods", reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(1_000)
    (gap,) = reconcile.gaps()
    assert 300 <= gap <= 330


async def test_an_event_adds_a_request_before_the_retry_after(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    informer, reconcile = pods("a", steps=[4.0, modified(pod("a", 2))]), Reconcile([throttled()])
    controller = Controller("pods", reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(60)
    assert reconcile.gaps() == [4]


# --- an outage ---


class Outage:
    """Objects whose reconcile fails during an outage, which begins at 0."""

    def __init__(self, make_error: Callable[[], Exception], length: float = OUTAGE) -> None:
        self.make_error = make_error
        self.length = length
        self.done: dict[str, float] = {}
        self.calls = 0

    async def reconcile(self, request: Request) -> None:
        self.calls += 1
        if trio.current_time() < self.length:
            raise self.make_error()
        self.done[request.name] = trio.current_time() - self.length


def quarantined() -> Exception:
    return QuarantinedError("an object is in quarantine", key="default/b", reason="undecodable", since=0.0)


def refused() -> Exception:
    return ConnectionFailedError("create pods: connection refused", refused=True)


@pytest.fixture
def _no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "trioformer")


@pytest.mark.usefixtures("_no_log")
@pytest.mark.parametrize(
    ("make_error", "objects"), [(refused, 2_000), (lambda: StatusError.from_status({"code": 500}), 300)]
)
async def test_after_a_minutes_outage_2000_objects_are_reconciled_in_30_seconds(
    nursery: trio.Nursery, autojump_clock: MockClock, make_error: Callable[[], Exception], objects: int
) -> None:
    outage = Outage(make_error)
    informer = pods(*(f"p{n}" for n in range(objects)))
    controller = Controller("pods", outage.reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep_until(OUTAGE + 30)
    assert len(outage.done) == objects
    in_one_second = [sum(second <= at < second + 1 for at in outage.done.values()) for second in range(30)]
    assert max(in_one_second) < objects / 4  # they do not come all at once


@pytest.mark.usefixtures("_no_log")
@pytest.mark.parametrize("length", [60.0, 45.0, 3_600.0])
async def test_a_request_waits_30_seconds_at_most_after_any_outage_of_the_connection(
    nursery: trio.Nursery, autojump_clock: MockClock, length: float
) -> None:
    outage, rng = Outage(refused, length), random.Random(3)
    informer, controller = pods(), Controller("pods", outage.reconcile)
    await watch_and_start(nursery, controller, informer)
    for n, at in enumerate(sorted(rng.uniform(0, length) for _ in range(50))):
        await trio.sleep_until(at)
        controller.add(Request("default", f"p{n}"))
    await trio.sleep_until(length + 30)
    assert len(outage.done) == 50
    assert outage.calls < 50 * (14 + length / 20)


async def test_the_first_retry_does_not_depend_on_the_failures_of_other_objects(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    outage = Outage(lambda: StatusError.from_status({"code": 500}))
    informer, controller = pods(*(f"p{n}" for n in range(100))), Controller("pods", outage.reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep_until(OUTAGE - 0.001)
    controller.add(Request("default", "another"))
    await trio.sleep(0.01)
    assert "another" in outage.done


async def test_a_lost_connection_does_not_count_as_a_failure_of_the_object(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    page = StatusError.from_status(
        {"code": 503, "details": {"causes": [{"reason": "UnexpectedServerResponse", "message": "no healthy upstream"}]}}
    )
    lost = [refused(), wrapped(refused()), ExceptionGroup("", [refused(), refused()]), page]
    informer, reconcile = pods("a"), Reconcile([*lost * 10, OSError(), OSError()])
    controller = Controller("pods", reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(1_000)
    gaps = reconcile.gaps()
    assert max(gaps) <= 30
    assert (gaps[-2] <= 0.005, gaps[-1] <= 0.01) == (True, True)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailedError("certificate verify failed", permanent=True),
        ExceptionGroup("", [ConnectionFailedError("reset"), KeyError("a bug")]),
        ForbiddenError("forbidden", code=403, reason="Forbidden"),
    ],
)
async def test_every_other_error_is_a_failure_of_the_object(
    nursery: trio.Nursery, autojump_clock: MockClock, error: Exception
) -> None:
    informer, reconcile = pods("a"), Reconcile([error] * 20)
    controller = Controller("pods", reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(5_000)
    assert max(reconcile.gaps()) > 700


@pytest.mark.parametrize("error", [refused(), quarantined()], ids=["lost connection", "quarantine"])
async def test_failures_that_say_nothing_about_the_object_drop_no_request(
    nursery: trio.Nursery, autojump_clock: MockClock, error: Exception
) -> None:
    informer, reconcile = pods("a"), Reconcile([error] * 30 + [OSError()] * 4)
    dropped: list[float] = []

    async def on_error(request: Request, error: Exception, then: str) -> None:
        if then == "dropped":
            dropped.append(len(reconcile.calls))

    controller = Controller("pods", reconcile, max_retries=3, on_error=on_error)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert max(reconcile.gaps()[:30]) <= 25.0
    assert dropped == [34], "three retries after the first failure of the object itself"


def unwrapped() -> Exception:
    """What ``raise group.exceptions[0] from group`` raises: a cycle."""
    group = ExceptionGroup("a nursery", [OSError(), ValueError()])
    return with_cause(group.exceptions[0], group)


async def test_an_error_whose_cause_contains_it_is_retried(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    informer, reconcile = pods("a"), Reconcile([unwrapped()])
    controller = Controller("pods", reconcile)
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(1)
    assert len(reconcile.calls) == 2


async def test_a_limiter_of_the_user_decides_after_a_lost_connection_too(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    informer, reconcile = pods("a"), Reconcile([refused()] * 16)
    controller = Controller("pods", reconcile, limiter=default_controller_rate_limiter())
    await watch_and_start(nursery, controller, informer)
    await trio.sleep(1_000)
    assert reconcile.gaps() == [0.005 * 2**n for n in range(16)]
