"""How a story goes: when it has settled, and how it ends."""

from __future__ import annotations

import pytest
import trio

from tests.testing.simulation.operators import Maps, operate
from trioformer import Client, ObjectMeta, SharedInformerFactory
from trioformer.controller import (
    Controller,
    Request,
    RequeueAfter,
    drop_finalizer,
    ensure_finalizer,
    set_controller_reference,
)
from trioformer.errors import InternalServerError
from trioformer.leaderelection import run_as_leader
from trioformer.models.core_v1 import ConfigMap, Secret
from trioformer.testing.simulation import Fault, Step, Story
from trioformer.testing.simulation._run import run_story
from trioformer.testing.simulation._scenario import Scenario

CREATE = (Step(name="create", arguments={"count": 1}),)
FINALIZER = "example.com/slow"


async def clean_up_slowly(client: Client) -> None:
    """Remove the finalizer only at the second look, half a minute later."""
    factory = SharedInformerFactory(client)
    maps = factory.informer(ConfigMap)
    asked: set[str] = set()

    async def reconcile(request: Request) -> RequeueAfter | None:
        found = maps.lister.get(request)
        if found is None or "count" not in found.data:
            return None
        if found.metadata.deletion_timestamp is None:
            await ensure_finalizer(client, found, FINALIZER)
        elif found.uid not in asked:
            asked.add(found.uid)
            return RequeueAfter(30)
        else:
            await drop_finalizer(client, found, FINALIZER)
        return None

    controller = Controller("maps", reconcile)
    controller.watch(maps)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await controller.run()


def test_a_story_settles_after_the_calls_that_were_asked_for() -> None:
    outcome = run_story(clean_up_slowly, Scenario(Maps), Story(steps=CREATE))
    assert outcome.problem is None


def test_a_program_that_exits_is_started_again() -> None:
    fault = Fault(kind="answer", at="list configmaps", code=500)

    async def exit_after_an_error(client: Client) -> None:
        try:
            await client.api(ConfigMap, "default").list(page_size=None)
        except InternalServerError:
            raise SystemExit(1) from None
        await operate(client)

    outcome = run_story(exit_after_an_error, Scenario(Maps), Story(steps=CREATE, faults=(fault,)))
    assert [one.outcome for one in outcome.entries if one.what == "ended"] == ["SystemExit: 1"]
    assert outcome.problem is None


async def lead(client: Client) -> None:
    async def work(_: object) -> None:
        await trio.sleep_forever()

    await run_as_leader(client, work, name="lease", namespace="default")


def test_no_fault_occurs_while_the_replicas_are_stopped() -> None:
    without = run_story(lead, Scenario(Maps), Story())
    last = without.counts["update leases"]
    fault = Fault(kind="kill", at="update leases", number=last, lasts=20.0)
    assert run_story(lead, Scenario(Maps), Story(faults=(fault,))).problem is None


async def pass_on(client: Client) -> None:
    """Give a Secret to another owner, delete it, and create another one for the first owner."""
    maps, secrets = client.api(ConfigMap, "default"), client.api(Secret, "default")
    first, second = [await maps.create(ConfigMap(metadata=ObjectMeta(name=name))) for name in ("first", "second")]
    await secrets.create(set_controller_reference(Secret(metadata=ObjectMeta(name="one", namespace="default")), first))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": second.name, "uid": second.uid}
    await secrets.patch("one", {"metadata": {"ownerReferences": [reference]}})
    await secrets.delete("one")
    await secrets.create(set_controller_reference(Secret(metadata=ObjectMeta(name="two", namespace="default")), first))
    await trio.sleep_forever()


def test_an_object_that_was_passed_on_no_longer_counts_for_its_first_owner() -> None:
    outcome = run_story(pass_on, Scenario(Maps), Story())
    assert [one.outcome for one in outcome.entries if one.who == "replica 0"][:6] == ["201"] * 3 + ["200"] * 2 + ["201"]
    assert outcome.most_children["ConfigMap default/first", "Secret"] == 1


async def interrupted(client: Client) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_is_no_group() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_story(interrupted, Scenario(Maps), Story())
