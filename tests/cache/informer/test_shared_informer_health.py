"""The informer reports its state correctly: an outdated or failing cache is neither synced nor healthy."""

from __future__ import annotations

import logging
import math

import attrs
import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector import Sink, play
from tests.cache.reflector.test_watch_list import watch_lists
from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, Step, added, bookmark, listing, modified, pod
from trioformer.cache import ReflectorOptions, SharedInformer
from trioformer.errors import ConnectionFailedError, ExpiredError, ServiceUnavailableError
from trioformer.models import from_dict, to_dict
from trioformer.models.core_v1 import Pod, Secret

EXPIRED = ExpiredError("too old", code=410, reason="Expired")


def picky(obj: Pod) -> list[str]:
    if obj.name == "bad":
        raise ValueError("secret text")
    return [obj.name]


async def test_the_cache_is_as_new_as_a_change_that_it_cannot_take(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(pod("a"))], [[1.0, added(pod("bad", 2)), 0.0, added(pod("c", 3)), None]])
    informer = SharedInformer(source, indexers={"picky": picky})
    await nursery.start(informer.run)
    for version in ("2", "3"):
        await informer.wait_until_at_least(version)
    assert trio.current_time() == 1


async def test_between_two_watches_the_state_is_connecting_with_the_age_of_the_data(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing()], [[20.0], [None]])
    informer = SharedInformer(source)
    await nursery.start(informer.run)
    await trio.sleep(20.4)
    assert informer.state.phase == "connecting", "it waits for a tenth of the duration of a short watch"
    assert informer.state.age == pytest.approx(0.4)
    await trio.sleep(1)
    assert (informer.state.phase, informer.state.age) == ("watching", 0)


async def test_the_error_of_a_failing_source_is_reported_beside_a_slow_one(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    class Hanging(ScriptedListWatch):
        async def list(self, **asked: object):  # type: ignore[override,no-untyped-def]  # never responds
            await trio.sleep_forever()

    unavailable = ServiceUnavailableError("no", code=503)
    informer = SharedInformer(
        {"one": Hanging([]), "two": ScriptedListWatch([unavailable])},
        options=ReflectorOptions(watch_error_handler=lambda _: None),
    )
    nursery.start_soon(informer.run)
    for _ in range(100):
        await trio.sleep(1)
        assert informer.state.error is unavailable
        assert not informer.is_healthy


async def test_a_cache_delayed_by_a_stuck_blocking_handler_is_not_up_to_date(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    class Stuck(Recorder):
        async def on_update(self, old: Pod, new: Pod) -> None:
            await trio.sleep_forever()

    storm = [each for version in range(2, 30_000) for each in modified(pod("a", version))]
    source = ScriptedListWatch(
        [listing(pod("a"))], [[1.0, *(storm[at : at + 500] for at in range(0, 30_000, 500)), None]]
    )
    informer = SharedInformer(source)
    informer.add_event_handler(Stuck(), overflow="block", buffer_size=10, patience=math.inf)
    await nursery.start(informer.run)
    await trio.sleep(3_600)
    assert not informer.has_synced
    assert informer.state.age > 3_500
    assert informer.statistics().pending >= 10_000


async def test_waiting_for_an_object_of_another_namespace_is_rejected() -> None:
    informer = SharedInformer({"one": ScriptedListWatch([listing()])})
    with pytest.raises(ValueError, match="is in a namespace that the cache of Pod in namespaces one does not"):
        await informer.wait_until_at_least(pod("a", 5, namespace="two"))


async def test_a_deferred_resync_is_not_read_in_the_middle_of_a_relist(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    gate = trio.Event()

    @attrs.define(eq=False)
    class Waiting(Recorder):
        known: dict[str, Pod] = attrs.field(factory=dict)
        resyncs: int = 0

        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            if not gate.is_set():  # without a checkpoint all pending notifications are taken in one turn
                await gate.wait()
            assert obj.name not in self.known
            self.known[obj.name] = obj

        async def on_update(self, old: Pod, new: Pod) -> None:
            assert self.known[old.name] is old
            self.known[new.name] = new
            self.resyncs += old is new

    def opens_the_gate(obj: Pod) -> list[str]:
        if obj.name == "new-2999":  # indexed last: the swap follows immediately
            gate.set()
        return []

    first = [pod(f"old-{number}", 1) for number in range(5)]
    second = [pod(f"old-{number}", 2) for number in range(5)] + [pod(f"new-{number}", 9) for number in range(3_000)]
    changes: list[Step] = [5.0, added(pod("x1", 3)) + added(pod("x2", 4)), 25.0, EXPIRED]
    source = ScriptedListWatch(
        [listing(*first, version=2), listing(*second, pod("x1", 3), pod("x2", 4), version=99)], [changes]
    )
    informer = SharedInformer(source, resync_period=10, indexers={"gate": opens_the_gate})
    handlers = [Waiting(), Waiting()]
    for handler in handlers:
        informer.add_event_handler(handler, buffer_size=1)
    await nursery.start(informer.run)
    await trio.sleep(38)
    for handler in handlers:
        assert handler.known == {obj.name: obj for obj in informer.lister}
        assert handler.resyncs, "the deferred resync is not lost"


async def test_the_silence_limit_stays_short_once_bookmarks_were_received(
    autojump_clock: trio.testing.MockClock,
) -> None:
    plain = ScriptedListWatch([listing(version=5)], [[60.0, bookmark(6), 40.0], [None], [None]])
    await play(plain, Sink(), 210)
    assert [round(at) for at in plain.times] == [0, 0, 100, 200]


async def test_two_watches_of_a_server_without_a_bookmark_are_closed_sooner(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = watch_lists(lists=(listing(version=5),))
    await play(source, Sink(), 900)
    assert source.times[1:4] == [0, 100, 200]
    assert source.times[4] == 200 + source.timeouts[2] + 30


# --- objects that index functions and transforms cannot decode ---


@pytest.mark.parametrize("change", ["metadata", "labels"])
async def test_a_transform_result_that_cannot_be_encoded_is_a_transform_error(
    change: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    def transform(obj: Pod) -> Pod:
        if obj.name == "a":
            return obj
        invalid = None if change == "metadata" else obj.metadata.evolve(labels={"x": object()})
        return obj.evolve(metadata=invalid)

    source = ScriptedListWatch([listing(pod("a"))], [[1.0, added(pod("b", 2)), None]])
    informer = SharedInformer(source, transform=transform)
    await nursery.start(informer.run)
    await trio.sleep(1.5)
    (found,) = informer.lister.quarantined().values()
    assert found.error.startswith("the transform of Pod failed on default/b: ")


# --- secrets ---


def secret() -> Secret:
    metadata = {"name": "s", "namespace": "default", "resourceVersion": "1"}
    return from_dict(Secret, {"metadata": metadata, "data": {"password": "aHVudGVyMg=="}})


@attrs.define(eq=False)
class Secrets(ScriptedListWatch):
    kind: type[Pod] = Secret  # type: ignore[assignment]  # the script is of pods


@pytest.mark.parametrize(
    ("indexer", "transform"),
    [
        (lambda obj: [dict(obj.data)], None),
        (lambda obj: obj.data["password"], None),
        (lambda obj: int(obj.data["password"]), None),
        (None, to_dict),
        (None, lambda obj: int(obj.data["password"])),
    ],
)
async def test_no_error_text_contains_the_content_of_an_object(
    indexer: object,
    transform: object,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    informer = SharedInformer(
        Secrets([listing(secret())]),  # type: ignore[arg-type]  # as above
        indexers={"x": indexer} if indexer else {},  # type: ignore[dict-item]  # invalid on purpose
        transform=transform,  # type: ignore[arg-type]  # invalid on purpose
        options=ReflectorOptions(retry_forever=True),
    )
    with caplog.at_level(logging.DEBUG), trio.move_on_after(10):
        await informer.run()
    assert "default/s" in caplog.text
    texts = [caplog.text, str(informer.state), repr(informer)]
    assert not any("aHVudGVyMg" in text or "hunter2" in text for text in texts)
    assert isinstance(informer.state.error, Exception) is False or "aHVudGVyMg" not in str(informer.state.error)


async def test_an_old_failure_is_not_reported_with_the_next_watch(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    broken = ConnectionFailedError("reset by peer")
    source = ScriptedListWatch([listing()], [[10.0, broken], [40.0], [40.0], [None]])
    informer = SharedInformer(source, options=ReflectorOptions(watch_error_handler=lambda _: None))
    await nursery.start(informer.run)
    states = []
    for _ in range(1_000):
        await trio.sleep(0.1)
        states.append(str(informer.state).partition(";")[0])
    different = [state for state, before in zip(states, ["", *states], strict=False) if state != before]
    assert different == ["watching", "connecting after reset by peer", "watching after reset by peer", "watching"]


async def test_waiting_for_a_stopped_informer_to_sync_raises(autojump_clock: trio.testing.MockClock) -> None:
    informer = SharedInformer(ScriptedListWatch([listing()]))
    with trio.move_on_after(1):
        await informer.run()
    with pytest.raises(trio.ClosedResourceError, match="the informer of Pod has stopped"):
        await informer.wait_until_synced()
