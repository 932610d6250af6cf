"""Listeners of every kind with random changes, missed events, relists and resyncs: no state is lost or out of order.

The lists are small, so the process loop is patched to checkpoint after every second object, where races may occur.
"""

from __future__ import annotations

import random
from contextlib import AbstractAsyncContextManager
from typing import get_args

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.scripted_list_watch import ScriptedListWatch, ScriptedWatch, pod, reached, words
from trioformer import _util
from trioformer.cache import Added, Notification, SharedInformer, Updated
from trioformer.cache.informer import _process_loop
from trioformer.cache.processor._overflow import Overflow
from trioformer.client import ObjectList
from trioformer.models import encode, key_of
from trioformer.models._internal import make_object
from trioformer.models.core_v1 import Pod

IS_LONG = settings.get_current_profile_name() == "long"


class Silent(ScriptedListWatch):
    """A source that never responds: the test writes to the queue itself, as a reflector would."""

    async def list(self, **options: object) -> ObjectList[Pod]:
        await trio.sleep_forever()
        raise AssertionError

    def watch(self, **options: object) -> AbstractAsyncContextManager[ScriptedWatch]:
        raise AssertionError


@attrs.define(eq=False)
class View:
    """The objects as one listener knows them from its notifications."""

    objects: dict[str, Pod] = attrs.field(factory=dict)
    log: list[str] = attrs.field(factory=list)

    def take(self, notification: Notification[Pod]) -> None:
        self.log.append(words(notification))
        obj = notification.new if isinstance(notification, Updated) else notification.object
        key = key_of(obj)
        if isinstance(notification, Added):
            assert key not in self.objects, self.log[-10:]
            self.objects[key] = obj
        elif isinstance(notification, Updated):
            assert self.objects.get(key) is notification.old, self.log[-10:]
            self.objects[key] = obj
        else:
            assert key in self.objects, self.log[-10:]
            del self.objects[key]


@attrs.define(eq=False)
class World:
    """The server's objects; writes their changes to the informer's queue as a reflector does."""

    rng: random.Random
    informer: SharedInformer[Pod]
    objects: dict[str, Pod] = attrs.field(factory=dict)
    version: int = 0

    def make(self, name: str, uid: str | None = None) -> Pod:
        self.version += 1
        self.objects[name] = pod(name, self.version, uid=uid or f"uid-{self.version}")
        return self.objects[name]

    def change(self) -> None:
        fifo, name = self.informer._fifo, f"n{self.rng.randrange(6)}"
        old = self.objects.get(name)
        if old is None:
            fifo.add(self.make(name))
        elif self.rng.random() < 0.4:
            del self.objects[name]
            self.version += 1
            fifo.delete(pod(name, self.version, uid=old.uid))
        else:
            fifo.update(self.make(name, old.uid))

    def relist_after_missed_events(self) -> None:
        for _ in range(self.rng.randrange(4)):
            name = f"n{self.rng.randrange(6)}"
            old = self.objects.pop(name, None)
            if self.rng.random() < 0.5:
                self.make(name, old.uid if old is not None and self.rng.random() < 0.6 else None)
        listed = list(self.objects.values())
        self.rng.shuffle(listed)
        self.informer._fifo.replace(tuple(listed), str(self.version))


async def read(informer: SharedInformer[Pod], view: View, overflow: Overflow, size: int, rng: random.Random) -> None:
    with informer.subscribe(overflow=overflow, buffer_size=size, patience=1e9) as notifications:
        async for notification in notifications:
            view.take(notification)
            if rng.random() < 0.2:
                await trio.sleep(rng.choice([0, 0, 0.01, 0.5, 3]))


async def drive(rng: random.Random) -> None:
    informer = SharedInformer(Silent())
    world = World(rng, informer)
    views: list[View] = []
    async with trio.open_nursery() as nursery:

        def join() -> None:
            views.append(View())
            overflow: Overflow = rng.choice(["coalesce", "coalesce", "block"])
            nursery.start_soon(read, informer, views[-1], overflow, rng.choice([1, 2, 5]), rng)

        for _ in range(rng.randrange(3)):
            join()
        nursery.start_soon(informer.run)
        world.relist_after_missed_events()
        for _ in range(100):
            choice = rng.random()
            if choice < 0.8:
                world.change()
            elif choice < 0.88:
                world.relist_after_missed_events()
            elif choice < 0.92:
                informer._fifo.resync()
            elif len(views) < 6:
                join()
            if rng.random() < 0.4:
                await trio.sleep(rng.choice([0, 0, 0.3, 2]))
        await trio.sleep(5_000)
        store = {key_of(obj): obj for obj in informer.lister}
        assert {key: obj.resource_version for key, obj in store.items()} == {
            key_of(obj): obj.resource_version for obj in world.objects.values()
        }
        for view in views:
            assert view.objects == store, view.log[-10:]
        nursery.cancel_scope.cancel()


@settings(max_examples=settings.default.max_examples if IS_LONG else 25)
@given(st.randoms(use_true_random=False))
def test_every_listener_receives_states_in_order_and_ends_with_the_cache(rng: random.Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_util, "SLICE_ITEMS", 2)
        trio.run(drive, rng, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("is_namespaced", [False, True])
@pytest.mark.parametrize("overflow", get_args(Overflow))
async def test_a_burst_arrives_in_the_order_of_the_watch(
    overflow: Overflow, is_namespaced: bool, nursery: trio.Nursery
) -> None:
    """As with client-go's InOrderInformers: the changes of an object are not delivered together."""
    source = Silent()
    informer = SharedInformer({"default": source} if is_namespaced else source)
    seen: list[str] = []
    caches: list[str] = []
    versions: list[str] = []

    async def read() -> None:
        with informer.subscribe(overflow=overflow) as notifications:
            async for notification in notifications:
                seen.append(words(notification))
                caches.append(" ".join(sorted(f"{obj.name}@{obj.resource_version}" for obj in informer.lister)))
                versions.append(next(iter(informer._versions._newest.values())))

    nursery.start_soon(read)
    nursery.start_soon(informer.run)
    sink = next(iter(informer._reflectors.parts.values()))._sink
    sink.replace([pod("a", 1, uid="old"), pod("b", 1)], "1", bad={})
    await trio.testing.wait_all_tasks_blocked()
    seen.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_process_loop, "MAX_NOTIFICATIONS", 1)  # a turn for the listener after each change
        caches.clear()
        versions.clear()
        sink.update(pod("a", 2, uid="old"))
        sink.update(pod("b", 3))
        sink.delete(pod("a", 4, uid="old"))
        sink.add(pod("c", 5))
        sink.update(pod("b", 6))
        sink.add(pod("a", 7, uid="new"))
        await trio.testing.wait_all_tasks_blocked()
    assert " ".join(seen) == "a@1→2 b@1→3 -a@4 +c@5 b@3→6 +a@7"
    states = ["a@2 b@1", "a@2 b@3", "b@3", "b@3 c@5", "b@6 c@5", "a@7 b@6 c@5"]
    assert caches == sorted(caches, key=states.index), "the cache had only states of the server, in their order"
    assert versions == [str(2 + states.index(each)) for each in caches], "and their versions"
    nursery.cancel_scope.cancel()


async def test_many_changes_without_a_difference_do_not_hold_up_other_tasks(nursery: trio.Nursery) -> None:
    informer = SharedInformer(Silent())
    nursery.start_soon(informer.run)
    pods = [pod(f"n{number}", 1) for number in range(5_000)]
    informer._fifo.replace(pods, "1")
    await trio.testing.wait_all_tasks_blocked()
    for each in pods:
        informer._fifo.update(make_object(Pod, encode(each).replace(b'{"apiVersion":"v1",', b'{ "apiVersion":"v1",')))
    informer._fifo.bookmark("2")
    turns = 0
    while reached(informer) != "2":
        turns += 1
        await trio.lowlevel.checkpoint()
    assert turns >= 5
    nursery.cancel_scope.cancel()
