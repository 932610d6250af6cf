"""One cache of several namespaces: one reflector for each, one indexer, one sync."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing

from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, Step, added, bookmark, listing, modified, pod
from trioformer._util import first_leaf
from trioformer.cache import ApiListWatch, ReflectorOptions, SharedInformer
from trioformer.client import Client, ObjectList
from trioformer.errors import ExpiredError, ForbiddenError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Namespace, Pod
from trioformer.testing import APIServer

EXPIRED = ExpiredError("too old", code=410, reason="Expired")


def in_namespace(namespace: str, *names: str, version: int = 1) -> ObjectList[Pod]:
    return listing(*(pod(name, version, namespace=namespace) for name in names), version=version)


async def test_it_syncs_when_all_namespaces_are_listed_and_all_objects_are_initial(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    @attrs.define(eq=False)
    class Late(ScriptedListWatch):
        async def list(self, **asked: object) -> ObjectList[Pod]:
            await trio.sleep(5)
            return await super().list(**asked)  # type: ignore[arg-type]  # passed on unchanged

    recorder = Recorder()
    informer = SharedInformer(
        {
            "one": ScriptedListWatch([in_namespace("one", "a", "b")], [[1.0, modified(pod("a", 2, namespace="one"))]]),
            "two": Late([in_namespace("two", "a")]),
        }
    )
    informer.add_event_handler(recorder)
    nursery.start_soon(informer.run)
    await trio.sleep(3)
    assert not informer.has_synced
    assert recorder.seen == []
    await informer.wait_until_synced()
    await trio.sleep(1)
    assert trio.current_time() == 6
    assert recorder.seen == ["+a@2*", "+b@1*", "+a@1*"]
    assert sorted(informer.lister.index_values("namespace")) == ["one", "two"]
    assert "Pod in namespaces one, two" in repr(informer)


async def test_a_relist_of_one_namespace_does_not_change_the_others(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    one = ScriptedListWatch([in_namespace("one", "a", "b"), in_namespace("one", "b", version=9)], [[2.0, EXPIRED]])
    two = ScriptedListWatch([in_namespace("two", "a", "b")])
    recorder = Recorder()
    informer = SharedInformer({"one": one, "two": two})
    informer.add_event_handler(recorder)
    await nursery.start(informer.run)
    await trio.sleep(10)
    assert recorder.seen[4:] == ["-a@1?", "b@1→9"]
    assert sorted(f"{each.namespace}/{each.name}" for each in informer.lister) == ["one/b", "two/a", "two/b"]
    assert [what for what, *_ in two.asked] == ["list", "watch"]


async def test_a_forbidden_namespace_is_reported_while_the_others_continue(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    forbidden = ForbiddenError("not here", code=403, reason="Forbidden")
    one = ScriptedListWatch([in_namespace("one", "a")], [[2.0, EXPIRED]])
    one.lists.append(forbidden)
    two = ScriptedListWatch([in_namespace("two", "a")], [[100.0, added(pod("b", 5, namespace="two")), None]])
    informer = SharedInformer({"one": one, "two": two}, options=ReflectorOptions(watch_error_handler=lambda _: None))
    await nursery.start(informer.run)
    await trio.sleep(60)
    assert informer.state.phase == "backing off"
    assert informer.state.error is forbidden
    assert informer.has_synced
    await trio.sleep(70)
    assert "two/b" in informer.lister
    assert informer.state.age == pytest.approx(128)
    assert not informer.has_synced, "one namespace has had no watch for more than two minutes"
    statistics = informer.statistics()
    assert statistics.reflectors["two"].phase == "watching"
    assert statistics.reflectors["one"].last_error is statistics.reflector.last_error is forbidden


async def test_waiting_for_an_object_waits_for_its_namespace_only(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    informer = SharedInformer(
        {
            "one": ScriptedListWatch([in_namespace("one")], [[2.0, added(pod("a", 7, namespace="one")), None]]),
            "two": ScriptedListWatch([in_namespace("two")], [[30.0, bookmark(9), None]]),
        }
    )
    await nursery.start(informer.run)
    await informer.wait_until_at_least(pod("a", 7, namespace="one"))
    assert trio.current_time() == 2
    assert "one/a" in informer.lister
    await informer.wait_until_at_least("7")
    assert trio.current_time() == 30


async def test_pending_lists_of_different_namespaces_do_not_replace_each_other(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    gate = trio.Event()

    @attrs.define(eq=False)
    class Handler(Recorder):
        async def _note(self, what: str) -> None:
            await super()._note(what)
            await gate.wait()

    def cut(namespace: str) -> list[list[Step] | Exception]:
        return [[1.0, added(pod("new", 2, namespace=namespace)), EXPIRED], [1.0, EXPIRED]]

    sources = {
        each: ScriptedListWatch(
            [
                in_namespace(each, "a"),
                in_namespace(each, "a", "b", version=3),
                in_namespace(each, "b", version=4),
            ],
            cut(each),
        )
        for each in ("one", "two")
    }
    handler = Handler()
    informer = SharedInformer(sources)
    informer.add_event_handler(handler, overflow="block", buffer_size=1, patience=10_000)
    await nursery.start(informer.run)
    await trio.sleep(300)
    gate.set()
    await trio.sleep(10)
    assert sorted(f"{each.namespace}/{each.name}@{each.resource_version}" for each in informer.lister) == [
        "one/b@4",
        "two/b@4",
    ]
    assert handler.seen.count("+b@3") + handler.seen.count("+b@4") == 2


@pytest.mark.parametrize("sources", [{}, {"": ScriptedListWatch([listing()])}])
def test_sources_without_a_namespace_are_rejected(sources: dict[str, ScriptedListWatch]) -> None:
    with pytest.raises(ValueError, match="a mapping of sources must not be empty, and each key must be a namespace"):
        SharedInformer(sources)


async def test_two_namespaces_of_a_server_become_one_cache(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    for namespace in ("one", "two", "three"):
        api_server.create(Namespace(metadata=ObjectMeta(name=namespace)))
        api_server.create(Pod(metadata=ObjectMeta(name="a", namespace=namespace)))
    informer = SharedInformer({each: ApiListWatch(client.api(Pod, namespace=each)) for each in ("one", "two")})
    await nursery.start(informer.run)
    assert sorted(each.namespace or "" for each in informer.lister) == ["one", "two"]
    api_server.create(Pod(metadata=ObjectMeta(name="b", namespace="three")))
    created = api_server.create(Pod(metadata=ObjectMeta(name="b", namespace="two")))
    await informer.wait_until_at_least(created)
    assert [each.name for each in informer.lister.list(namespace="two")] == ["a", "b"]
    assert informer.lister.list(namespace="three") == ()
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(record.verb for record in api_server.requests) == ["list", "list", "watch", "watch"]


def test_simultaneous_failures_of_two_namespaces_report_the_first() -> None:
    error = ExceptionGroup("both", [ExceptionGroup("one", [ValueError("the first")]), KeyError("the second")])
    assert str(first_leaf(error)) == "the first"
    assert first_leaf(None) is None
