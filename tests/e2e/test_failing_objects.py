"""Two thousand objects that fail through an outage of a minute are reconciled soon after it, with default options.

The same is tested in virtual time; here the server is a real one.
"""

from __future__ import annotations

from functools import partial

import attrs
import pytest
import trio

from tests.e2e.parallel import in_parallel
from tests.e2e.recovery.faults import FaultKind, strike
from tests.e2e.recovery.figures import report
from tests.e2e.tcp_proxy import proxy_before
from tests.e2e.workloads import make_namespace
from trioformer import SharedInformerFactory, TrioformerError, load_config, open_client
from trioformer.client import Api
from trioformer.controller import Controller, Request
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import ControlPlane

OBJECTS = 2_000
OUTAGE = 60.0
RECOVERED = 30.0
"""Seconds after the outage in which all are reconciled."""
PATIENCE = 300.0
"""Seconds after which an object counts as lost."""


@attrs.define(eq=False)
class Reconciler:
    """Writes the wanted state of each object; remembers which have failed, and when each was written."""

    api: Api[ConfigMap]
    wanted: str = "first"
    failed: set[str] = attrs.field(factory=set)
    failures: int = 0
    done: dict[str, float] = attrs.field(factory=dict)
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def __call__(self, request: Request) -> None:
        if request.name in self.done:
            return
        try:
            await self.api.patch(request.name, {"data": {"state": self.wanted}})
        except TrioformerError:
            self.failed.add(request.name)
            self.failures += 1
            raise
        self.done[request.name] = trio.current_time()
        self._news.set()

    async def wait_until_all_done(self) -> None:
        while len(self.done) < OBJECTS:
            self._news = trio.Event()
            await self._news.wait()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["unreachable", "killed"])
async def test_two_thousand_failing_objects_are_reconciled_within_30_s_of_an_outage(
    breakable_control_plane: ControlPlane, kind: FaultKind
) -> None:
    config = load_config(kubeconfig=breakable_control_plane.kubeconfig)
    async with (
        proxy_before(breakable_control_plane.url) as proxy,
        open_client(config) as writer,
        open_client(attrs.evolve(config, server=proxy.url)) as client,
        trio.open_nursery() as nursery,
    ):
        namespace = await make_namespace(writer, "failing")
        config_maps = [ConfigMap(metadata=ObjectMeta(name=f"c{number}")) for number in range(OBJECTS)]
        await in_parallel([partial(writer.api(ConfigMap, namespace=namespace).create, each) for each in config_maps])
        factory = SharedInformerFactory(client, namespace=namespace)
        informer = factory.informer(ConfigMap)
        reconciler = Reconciler(client.api(ConfigMap, namespace=namespace))
        controller = Controller("failing", reconciler)
        controller.watch(informer)
        with trio.fail_after(60):
            await nursery.start(factory.run)
            await nursery.start(controller.run)
            await reconciler.wait_until_all_done()

        async def add_all() -> None:
            """As a resync does, when the outage has begun."""
            await trio.sleep(1)
            reconciler.wanted = "second"
            reconciler.done.clear()
            for each in config_maps:
                controller.add(Request(namespace, each.name))

        nursery.start_soon(add_all)
        ended = await strike(kind, [proxy], breakable_control_plane, OUTAGE)
        failed, failures = len(reconciler.failed), reconciler.failures
        with trio.move_on_after(PATIENCE):
            await reconciler.wait_until_all_done()
        took = [when - ended for when in reconciler.done.values()]
        nursery.cancel_scope.cancel()
    report(
        f"{kind} for {OUTAGE:g} s, {OBJECTS} objects",
        ("failed", "failures in the outage", "reconciled", "the last after, s"),
        [(failed, failures, len(took), max(took, default=0.0))],
    )
    assert failed == OBJECTS
    assert len(took) == OBJECTS
    assert max(took) <= RECOVERED
