"""The request that a task works on: for log lines, and for code that is not given the request."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import attrs
import pytest
import trio
from trio.testing import MockClock

from tests.support.controllers import Reconcile, pods, start
from trioformer.controller import Controller, Request, RequestFilter, current_request
from trioformer.controller._current_request import CurrentRequest
from trioformer.metrics import Metrics
from trioformer.models import key_of
from trioformer.models.core_v1 import Pod


class NoQueueObserver:
    def added(self, key: Request, *, priority: int) -> None: ...
    def delayed(self, key: Request, *, delay: float) -> None: ...
    def taken(self, key: Request, *, waited: float) -> None: ...


@pytest.fixture
def text() -> Iterator[io.StringIO]:
    """What a handler with the filter has written."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RequestFilter())
    handler.setFormatter(logging.Formatter("[%(controller)s|%(request)s|%(reconcile_id).8s] %(message).40s"))
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


async def test_a_reconcile_and_its_tasks_have_the_request(autojump_clock: MockClock) -> None:
    seen: list[CurrentRequest | None] = []

    async def record() -> None:
        await trio.sleep(1)
        seen.append(current_request())

    async def reconcile(request: Request) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(record)
            nursery.start_soon(record)

    class AfterIt(NoQueueObserver):
        def finished(self, key: Request, *, duration: float) -> None:
            after.append(current_request())

    after: list[CurrentRequest | None] = []
    informer = pods("a", "b")
    controller = Controller("pods", reconcile, workers=2, observer=AfterIt())
    controller.watch(informer)
    async with trio.open_nursery() as nursery:
        await start(nursery, informer, controller)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert current_request() is None
    assert after == [None, None]
    found = [each for each in seen if each is not None]
    assert len(found) == 4
    assert {(each.controller, str(each.request)) for each in found} == {("pods", "default/a"), ("pods", "default/b")}
    assert len({each.reconcile_id for each in found}) == 2


async def test_every_line_of_a_reconcile_names_it(
    autojump_clock: MockClock, text: io.StringIO, caplog: pytest.LogCaptureFixture
) -> None:
    async def reconcile(request: Request) -> None:
        logging.getLogger("of.the.user").warning("working")
        raise OSError("disk full")

    informer = pods("a")
    controller = Controller("pods", reconcile, max_retries=0)
    controller.watch(informer)
    async with trio.open_nursery() as nursery:
        await start(nursery, informer, controller)
        logging.getLogger("of.the.user").warning("outside")
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    lines = [line for line in text.getvalue().splitlines() if line.startswith("[")]
    assert "[||] outside" in lines
    working = next(line for line in lines if line.endswith("] working"))
    failed = next(line for line in lines if "reconcile of" in line)
    assert working.startswith("[pods|default/a|")
    assert working.partition("]")[0] == failed.partition("]")[0]
    # The library's own line has the fields without a filter, for formatters that write JSON.
    record = next(each for each in caplog.records if "reconcile of" in each.getMessage())
    assert (record.controller, record.request) == ("pods", "default/a")  # type: ignore[attr-defined]  # by extra=


async def test_fields_that_a_line_has_are_kept(text: io.StringIO) -> None:
    logging.getLogger("of.the.user").warning("mine", extra={"controller": "other"})
    assert text.getvalue() == "[other||] mine\n"


@attrs.frozen
class Place:
    """A request that also names a cluster."""

    cluster: str
    request: Request


async def test_requests_may_be_of_another_type(autojump_clock: MockClock) -> None:
    seen: list[Place] = []

    async def reconcile(place: Place) -> None:
        seen.append(place)

    clusters = {"east": pods("a"), "west": pods("a", "b")}
    controller = Controller("places", reconcile)

    def requests_in(cluster: str, pod: Pod) -> list[Place]:
        return [Place(cluster, Request.parse(key_of(pod)))]

    for cluster, informer in clusters.items():
        controller.watch(informer, enqueue=lambda pod, cluster=cluster: requests_in(cluster, pod))  # type: ignore[misc]  # mypy does not infer a lambda with a default
    async with trio.open_nursery() as nursery:
        for informer in clusters.values():
            nursery.start_soon(informer.run)
        await nursery.start(controller.run)
        assert controller.add(Place("north", Request(None, "z")))
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert sorted(f"{each.cluster} {each.request}" for each in seen) == [
        "east default/a",
        "north z",
        "west default/a",
        "west default/b",
    ]


async def test_metrics_measure_a_controller_that_was_made_with_them() -> None:
    metrics = Metrics()
    controller = Controller("pods", Reconcile(), workers=3, metrics=metrics)
    assert metrics.is_registered(controller)
    assert b'max_concurrent_reconciles{controller="pods"} 3.0' in metrics.render()[0]
    with pytest.raises(ValueError, match="pods"):
        Controller("pods", Reconcile(), metrics=metrics)
