"""Transforms, undecodable objects, waiting for versions, silence and internal errors."""

from __future__ import annotations

import gc
import math
import tracemalloc

import attrs
import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector import Sink, play
from tests.support.scripted_list_watch import (
    Recorder,
    ScriptedListWatch,
    Step,
    added,
    bookmark,
    deleted,
    listing,
    modified,
    pod,
)
from trioformer.cache import ReflectorOptions, SharedInformer
from trioformer.client import Undecodable
from trioformer.errors import ConnectionFailedError, InternalServerError, StatusError, TransformError
from trioformer.models import from_dict, to_dict
from trioformer.models._internal import dumps, make_object
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod

# --- transforms ---


@attrs.define(eq=False)
class Labeller:
    """Counts in a label how often it was applied to an object."""

    seen: list[str] = attrs.field(factory=list)

    def __call__(self, obj: Pod) -> Pod:
        self.seen.append(f"{obj.name}@{obj.resource_version}")
        labels = {**obj.metadata.labels, "applied": str(int(obj.metadata.labels.get("applied", "0")) + 1)}
        return obj.evolve(metadata=obj.metadata.evolve(labels=labels))


@pytest.mark.parametrize("uses_watch_list", [False, True])
async def test_a_transform_is_applied_exactly_once_to_each_object(
    uses_watch_list: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestSharedInformerTransformer, TestReflectorRespectStoreTransformer, TestTransformingInformer"""
    from tests.cache.reflector.test_watch_list import end

    first: list[Step] = [added(pod("a", 1)) + added(pod("b", 2)), end(3)] if uses_watch_list else []
    script = [*first, 1.0, modified(pod("a", 4)), deleted(pod("b", 5)), None]
    source = ScriptedListWatch(
        [listing(pod("a", 1), pod("b", 2), version=3)], [script], supports_watch_list=uses_watch_list
    )
    transform = Labeller()
    options = ReflectorOptions(watch_list=uses_watch_list)
    informer = SharedInformer(source, transform=transform, resync_period=10, options=options)
    calls: list[tuple[str, ...]] = []

    class Handler(Recorder):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            calls.append((obj.name, obj.metadata.labels["applied"]))

        async def on_update(self, old: Pod, new: Pod) -> None:
            calls.append((new.name, old.metadata.labels["applied"], new.metadata.labels["applied"]))

        async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
            calls.append((obj.name, obj.metadata.labels["applied"]))

    informer.add_event_handler(Handler())
    await nursery.start(informer.run)
    await trio.sleep(15)
    assert transform.seen == ["a@1", "b@2", "a@4", "b@5"]
    assert calls == [("a", "1"), ("b", "1"), ("a", "1", "1"), ("b", "1"), ("a", "1", "1")]
    assert informer.lister["default/a"].metadata.labels == {"applied": "1"}


async def test_fields_that_a_transform_removes_take_no_memory(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    def big(number: int) -> Pod:
        metadata = {"name": f"pod-{number}", "namespace": "default", "annotations": {"big": "x" * 20_000}}
        raw = dumps({"metadata": metadata, "spec": {"nodeName": "a", "futureField": 1}})
        return make_object(Pod, raw)

    def without_annotations(obj: Pod) -> Pod:
        return obj.evolve(metadata=obj.metadata.evolve(annotations={}))

    source = ScriptedListWatch([])
    informer = SharedInformer(source, transform=without_annotations)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        source.lists.append(listing(*(big(number) for number in range(100))))
        nursery.start_soon(informer.run)
        await informer.wait_until_synced()
        source.lists.clear()
        await trio.sleep(1)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 100 * 5_000
    finally:
        tracemalloc.stop()
    kept = to_dict(informer.lister["default/pod-7"])
    assert kept["spec"] == {"nodeName": "a", "futureField": 1}, "unknown fields are kept"
    assert "annotations" not in kept["metadata"]


async def test_a_transform_that_fails_on_one_object_holds_up_no_other(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """client-go: TestRealFIFO_transformer"""

    def transform(obj: Pod) -> Pod:
        if obj.name == "bad" and obj.resource_version == "3":
            raise KeyError("no")
        return obj

    errors: list[Exception] = []
    changes = added(pod("b", 2)) + added(pod("bad", 3)) + added(pod("c", 4))
    source = ScriptedListWatch([listing(pod("a"))], [[1.0, changes, 30.0, modified(pod("bad", 5)), None]])
    informer = SharedInformer(source, transform=transform, options=ReflectorOptions(watch_error_handler=errors.append))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await nursery.start(informer.run)
    await trio.sleep(20)
    assert recorder.seen == ["+a@1*", "+b@2", "+c@4"]
    assert (informer.is_healthy, informer.state.quarantined) == (True, 1)
    assert "default/bad is in quarantine until it changes: the transform of Pod failed on default/bad: KeyError" in (
        caplog.text
    )
    await trio.sleep(20)
    assert recorder.seen[3:] == ["+bad@5"]
    assert informer.lister.quarantined() == {}
    assert [what for what, *_ in source.asked] == ["list", "watch"]
    assert errors == []


@pytest.mark.parametrize(
    ("transform", "why"),
    [
        (lambda obj: None, "it must return a Pod, not None"),
        (lambda obj: pod("other"), "it must not change namespace, name, uid or resourceVersion"),
        (lambda obj: pod(obj.name, 99), "it must not change namespace, name, uid or resourceVersion"),
        (
            lambda obj: pod(obj.name, int(obj.resource_version), uid=""),
            "it must not change namespace, name, uid or resourceVersion",
        ),
    ],
)
async def test_a_transform_must_return_the_same_object(
    transform: object, why: str, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(*map(pod, "abc"))])
    informer = SharedInformer(source, transform=transform)  # type: ignore[arg-type]  # wrong on purpose
    with trio.fail_after(60), pytest.RaisesGroup(pytest.RaisesExc(TransformError, match=why)):
        await informer.run()


# --- undecodable objects ---


async def test_objects_without_a_name_or_of_another_kind_are_reported(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestReflectorWatchHandler, TestRealFIFO_PopBrokenItemsInBatch"""
    deployment = from_dict(Deployment, {"metadata": {"name": "d", "namespace": "default"}})
    nameless = from_dict(Pod, {"spec": {}})
    undecodable: list[Undecodable] = []
    source = ScriptedListWatch(
        [listing(pod("a"), deployment, version=3), listing(pod("a"), pod("c", 5), version=9)],  # type: ignore[arg-type]  # wrong on purpose
        [[1.0, added(pod("b", 4)) + added(deployment) + added(pod("c", 5)) + modified(nameless), None]],  # type: ignore[arg-type]
    )
    informer = SharedInformer(source, options=ReflectorOptions(undecodable_handler=undecodable.append))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    await nursery.start(informer.run)
    await trio.sleep(1.1)
    assert recorder.seen == ["+a@1*", "+b@4", "+c@5"]
    assert list(informer.lister.quarantined()) == ["default/d"]
    await trio.sleep(2)
    assert recorder.seen[3:] == ["-b@4?"], "an object without a key is followed by a list"
    assert [str(each.error) for each in undecodable] == [
        "expected a Pod, received a Deployment",
        "expected a Pod, received a Deployment",
        "received a Pod without a name",
    ]


# --- versions ---


async def test_waiting_for_a_version_returns_when_the_cache_has_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """client-go: TestStoreResourceVersion, TestReflectorResourceVersionUpdate"""
    script: list[Step] = [
        *(1.0, added(pod("a", 5))),
        *(1.0, modified(pod("a", 7)) + added(pod("b", 6))),
        *(1.0, deleted(pod("a", 9))),
        *(1.0, bookmark(12)),
        *(36.0, StatusError.from_status({"code": 410, "reason": "Expired"})),
    ]
    informer = SharedInformer(ScriptedListWatch([listing(version=3), listing(version=20)], [script]))
    nursery.start_soon(informer.run)
    reached: list[tuple[str, float]] = []
    for version in ("2", "5", "6", "8", "11"):
        await informer.wait_until_at_least(version)
        reached.append((version, trio.current_time()))
    assert reached == [("2", 0), ("5", 1), ("6", 2), ("8", 3), ("11", 4)]
    await informer.wait_until_at_least("20")
    assert trio.current_time() < 45


async def test_waiting_for_a_version_fails_without_an_order_or_when_the_informer_stops(
    autojump_clock: trio.testing.MockClock,
) -> None:
    informer = SharedInformer(ScriptedListWatch([listing(version="v-ä")]))
    with pytest.raises(ValueError, match="'abc', because it is not a number"):
        await informer.wait_until_at_least("abc")
    async with trio.open_nursery() as nursery:
        await nursery.start(informer.run)
        with pytest.raises(ValueError, match="'v-ä', because it is not a number"):
            await informer.wait_until_at_least("5")
        nursery.cancel_scope.cancel()

    other = SharedInformer(ScriptedListWatch([listing(version="3")]))
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(trio.ClosedResourceError, match="stopped before it reached resourceVersion 5"):
                await other.wait_until_at_least("5")

        nursery.start_soon(wait)
        with trio.move_on_after(1):
            await other.run()


# --- silence, internal errors, staleness ---


async def test_a_smaller_max_silence_makes_watches_shorter(autojump_clock: trio.testing.MockClock) -> None:
    source = ScriptedListWatch([listing(version=3)], [[None] for _ in range(5)])
    await play(source, Sink(), 46 * 4 + 10, max_silence=46)
    assert [what for what, *_ in source.asked] == ["list"] + ["watch"] * 5
    assert [round(after - before) for before, after in zip(source.times[1:], source.times[2:], strict=False)] == [
        46
    ] * 4
    assert all(30 <= timeout <= 40 for timeout in source.timeouts)


@pytest.mark.parametrize("wrong", [10.0, 91.0, math.inf])
def test_an_invalid_max_silence_is_rejected(wrong: float) -> None:
    with pytest.raises(ValueError, match="max_silence"):
        ReflectorOptions(max_silence=wrong)


async def test_an_internal_error_of_a_watch_is_followed_by_a_list(autojump_clock: trio.testing.MockClock) -> None:
    """client-go: TestReflectorReplacesStoreOnUnsafeDelete"""
    storage_error = InternalServerError("corrupt object deleted", code=500, reason="StorageReadError")
    source = ScriptedListWatch(
        [listing(pod("a"), pod("bad"), version=3), listing(pod("a"), version=9)], [[2.0, storage_error]]
    )
    sink = Sink()
    await play(source, sink, 20)
    assert sink.seen == ["=a,bad@3", "=a@9"]


async def test_an_informer_without_a_watch_becomes_unhealthy_until_it_has_one_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    refused: list[list[Step] | Exception] = [ConnectionFailedError("refused", refused=True)] * 20
    source = ScriptedListWatch([listing(version=3)], [[10.0, ConnectionFailedError("reset")], *refused])
    informer = SharedInformer(source, options=ReflectorOptions(watch_error_handler=lambda _: None))
    assert not informer.is_healthy
    assert str(informer.state) == "not started"
    await nursery.start(informer.run)
    await trio.sleep(5)
    assert (informer.is_healthy, informer.has_synced, informer.state.age) == (True, True, 0)
    await trio.sleep(60)
    assert (informer.is_healthy, informer.has_synced) == (True, True), "a minute without a watch is not too long"
    assert informer.state.until > trio.current_time()
    await trio.sleep(80)
    assert (informer.is_healthy, informer.has_synced) == (False, False)
    assert str(informer.state).startswith("backing off after refused; the data is 1")
    await trio.sleep(600)
    assert (informer.is_healthy, informer.has_synced, str(informer.state)) == (True, True, "watching")
