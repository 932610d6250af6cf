"""Random stories of a divided cache: parts begin and end while objects change, and requests fail."""

from __future__ import annotations

import random

import attrs
import hypothesis
import trio
import trio.testing
from hypothesis import strategies as st

from trioformer import SharedInformer
from trioformer.cache import Added, ApiListWatch, Deleted, Notification, Released, Updated
from trioformer.cache.informer._divided_source import DividedSource
from trioformer.cache.informer._parts import Part
from trioformer.models import ObjectMeta, key_of
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.sharding._kinds import By, KindShare
from trioformer.testing import APIServer

RANGES = 4
NAMES = [(f"team-{number % 5}-prod", f"c{number}") for number in range(15)]


@attrs.define(eq=False)
class PartsStory:
    """A cache whose listener is told each change exactly once."""

    rng: random.Random
    server: APIServer
    share: KindShare[ConfigMap]
    informer: SharedInformer[ConfigMap]
    parts: dict[str, Part] = attrs.field(factory=dict)
    heard: dict[str, ConfigMap] = attrs.field(factory=dict)
    """The objects as the notifications tell."""

    def note(self, each: Notification[ConfigMap]) -> None:
        match each:
            case Added(object=obj):
                assert key_of(obj) not in self.heard
                self.heard[key_of(obj)] = obj
            case Updated(old=old, new=new):
                assert self.heard[key_of(new)] == old
                assert int(old.resource_version) < int(new.resource_version)
                self.heard[key_of(new)] = new
            case Deleted(object=obj) | Released(object=obj):
                del self.heard[key_of(obj)]

    async def listen(self, *, task_status: trio.TaskStatus[None]) -> None:
        slow = self.rng.random() < 0.5
        with self.informer.subscribe(buffer_size=3, overflow="block") as notifications:
            task_status.started()
            async for each in notifications:
                self.note(each)
                if slow and self.rng.random() < 0.1:
                    await trio.sleep(self.rng.random())

    def write(self) -> None:
        namespace, name = self.rng.choice(NAMES)
        found = self.server.list(ConfigMap, namespace=namespace)
        if name not in {each.name for each in found}:
            self.server.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)))
        elif self.rng.random() < 0.4:
            self.server.delete(ConfigMap, name, namespace=namespace)
        else:
            data = {"data": {"a": str(self.rng.random())}}
            self.server.patch(ConfigMap, name, data, namespace=namespace)

    def move(self) -> None:
        part = str(self.rng.randrange(RANGES))
        if part in self.parts:
            self.parts.pop(part).close()
        else:
            self.parts[part] = Part(self.informer, part)

    def disturb(self) -> None:
        match self.rng.randrange(4):
            case 0:
                self.server.disconnect_watches(kind=ConfigMap)
            case 1:
                self.server.compact()
            case 2:
                self.server.fail_next(2, resource="configmaps", status=self.rng.choice([429, 500, 503]))
            case _:
                self.server.fail_next(1, resource="configmaps", status=None, after=self.rng.random() * 3)

    async def tell(self) -> None:
        for _ in range(60):
            chance = self.rng.random()
            action = self.write if chance < 0.6 else self.move if chance < 0.85 else self.disturb
            action()
            if self.rng.random() < 0.5:
                await trio.lowlevel.checkpoint()
            elif self.rng.random() < 0.7:
                await trio.sleep(self.rng.random() * 2)
        await trio.sleep(300)

    def check(self) -> None:
        expected = {
            key_of(each): each for each in self.server.list(ConfigMap) if self.share.part_of(each) in self.parts
        }
        versions = {key: each.resource_version for key, each in expected.items()}
        assert {key_of(each): each.resource_version for each in self.informer.lister} == versions
        assert {key: each.resource_version for key, each in self.heard.items()} == versions
        assert self.informer.has_synced


async def tell(by: By, seed: int) -> None:
    server = APIServer()
    for namespace in {namespace for namespace, _ in NAMES}:
        server.create(Namespace(metadata=ObjectMeta(name=namespace)))
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            plain = ApiListWatch(client.api(ConfigMap))
            share = KindShare(plain, by, RANGES, {})
            informer = SharedInformer(DividedSource("configs", plain, share, share.select))
            story = PartsStory(random.Random(seed), server, share, informer)
            await nursery.start(informer.run)
            await nursery.start(story.listen)
            await story.tell()
            story.check()
            nursery.cancel_scope.cancel()


@hypothesis.given(by=st.sampled_from(["namespace", "uid"]), seed=st.integers(0, 2**32))
@hypothesis.settings(max_examples=20)
def test_the_cache_contains_the_open_parts_and_tells_each_change_once(by: By, seed: int) -> None:
    trio.run(tell, by, seed, clock=trio.testing.MockClock(autojump_threshold=0))
