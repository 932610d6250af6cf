"""Bad objects: they hold up no others, never look deleted, and are named."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector_bad_input import BadServer, a_list, a_pod, event
from tests.support.levels import TOO_MANY_LEVELS
from tests.support.scripted_list_watch import Recorder, ScriptedListWatch, added, deleted, listing, modified, pod
from tests.support.turns import turns_during
from trioformer.cache import (
    ApiListWatch,
    FilteringHandler,
    ReflectorOptions,
    ResourceEventHandler,
    SharedInformer,
    SharedInformerFactory,
    field_index,
)
from trioformer.cache._bad_objects import QuarantineReason
from trioformer.cache.reflector._list_watch import ListWatch
from trioformer.client import Undecodable, open_client
from trioformer.errors import DecodeError, ExpiredError, IndexerError, QuarantinedError, TransformError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import from_json, key_of
from trioformer.models._internal import make_object
from trioformer.models.core_v1 import Pod

EXPIRED = ExpiredError("too old", code=410, reason="Expired")
CONFIG = ClusterConfig(server="https://api.test")
QUIET = ReflectorOptions(watch_list=False, watch_error_handler=lambda _: None, undecodable_handler=lambda _: None)
BAD_NODE = 5
"""The ``nodeName`` of a pod on which transforms and index functions of these tests fail, or which does not decode."""


def bad_pod(name: str, version: int) -> Pod:
    metadata = f'{{"name":"{name}","namespace":"default","uid":"uid-{name}","resourceVersion":"{version}"}}'
    return make_object(Pod, f'{{"metadata":{metadata},"spec":{{"nodeName":{BAD_NODE}}}}}'.encode())


def is_bad(obj: Pod) -> bool:
    try:
        return not isinstance(obj.spec.node_name, str | None)
    except DecodeError:
        return True


def picky_transform(obj: Pod) -> Pod:
    if is_bad(obj):
        raise KeyError("secret text")
    return obj


def picky_index(obj: Pod) -> list[str]:
    if is_bad(obj):
        raise KeyError("secret text")
    return [obj.name]


def node_of(obj: Pod) -> Pod:
    assert obj.spec.node_name != "never"
    return obj


CAUSES: Mapping[str, Mapping[str, Any]] = {
    "transform": {"transform": picky_transform},
    "transform that decodes": {"transform": node_of},
    "index": {"indexers": {"picky": picky_index}},
    "index that decodes": {"indexers": {"node": field_index("spec.node_name")}},
}
REASONS = {
    "transform": QuarantineReason.TRANSFORM_FAILED,
    "transform that decodes": QuarantineReason.UNDECODABLE,
    "index": QuarantineReason.INDEX_FAILED,
    "index that decodes": QuarantineReason.UNDECODABLE,
}
causes = pytest.mark.parametrize("cause", CAUSES)


@asynccontextmanager
async def running(
    source: ListWatch[Pod], *handlers: ResourceEventHandler[Pod], **arguments: Any
) -> AsyncIterator[SharedInformer[Pod]]:
    informer = SharedInformer(source, **{"options": QUIET, **arguments})
    for handler in handlers:
        informer.add_event_handler(handler)
    async with trio.open_nursery() as nursery:
        await nursery.start(informer.run)
        yield informer
        nursery.cancel_scope.cancel()


# --- what a bad object must not do ---


@causes
async def test_a_bad_object_holds_up_no_other(cause: str, autojump_clock: trio.testing.MockClock) -> None:
    changes = modified(bad_pod("bad", 5)) + added(pod("c", 6))
    source = ScriptedListWatch([listing(pod("a"), pod("bad", 2), version=3)], [[1.0, changes, None]])
    recorder = Recorder()
    async with running(source, recorder, **CAUSES[cause]) as informer:
        await informer.wait_until_at_least("6")
        assert trio.current_time() == 1
        await trio.sleep(300)
        assert recorder.seen == ["+a@1*", "+bad@2*", "+c@6"]
        assert (informer.is_healthy, informer.has_synced, informer.state.age) == (True, True, 0)
        assert [what for what, *_ in source.asked] == ["list", "watch"]
        (found,) = informer.lister.quarantined().values()
        assert (found.key, found.reason, found.since) == ("default/bad", REASONS[cause], 1)
        assert (found.is_stored, found.resource_version) == (True, "5")
        assert "secret" not in f"{found.error} {informer.state}"


@causes
async def test_an_initial_object_that_is_bad_is_named_and_never_gone(
    cause: str, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    source = ScriptedListWatch([listing(pod("a"), bad_pod("bad", 2), version=3)])
    async with running(source, **CAUSES[cause]) as informer:
        assert informer.has_synced
        assert [obj.name for obj in informer.lister] == ["a"]
        lister = informer.lister
        for read in (
            lambda: lister.get("bad", namespace="default"),
            lambda: lister.get("bad", namespace="default", allow_stale=True),
            lambda: lister["default/bad"],
        ):
            with pytest.raises(
                QuarantinedError, match="Pod 'default/bad' exists, but its newest state is in quarantine"
            ):
                read()
        assert "default/bad" in lister
        assert "default/other" not in lister
        assert lister.get("other", namespace="default") is None
        statistics = informer.statistics()
        assert (statistics.missing, statistics.quarantined[REASONS[cause]]) == (1, 1)
        words = f"1 in quarantine: default/bad ({REASONS[cause]})"
        assert str(informer.state).endswith(words)
        assert f"the cache has synced with {words}; 1 of them are missing from the cache" in caplog.text


async def test_an_earlier_state_is_read_only_when_asked_for(autojump_clock: trio.testing.MockClock) -> None:
    source = ScriptedListWatch([listing(pod("bad", 2))], [[1.0, modified(bad_pod("bad", 5)), None]])
    async with running(source, **CAUSES["index"]) as informer:
        await trio.sleep(2)
        lister = informer.lister
        with pytest.raises(QuarantinedError, match=r"an earlier state is in the cache \(allow_stale=True\)$") as caught:
            lister.get("bad", namespace="default")
        assert (caught.value.key, caught.value.reason, caught.value.since) == (
            "default/bad",
            "index function failed",
            1,
        )
        stale = lister.get("bad", namespace="default", allow_stale=True)
        assert stale is not None
        assert stale.resource_version == "2"
        assert lister.list() == lister.by_index("picky", "bad") == tuple(lister) == (stale,)
        assert informer.statistics().missing == 0


# --- what ends it ---


@causes
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([modified(pod("bad", 6))], ["bad@2→6"]),
        ([deleted(bad_pod("bad", 6))], ["-bad@2?"]),
        ([added(pod("c", 6)), 40.0, EXPIRED], ["+c@6", "-c@6?", "bad@2→9"]),
    ],
    ids=["a good state", "a deletion", "a list with a good state"],
)
async def test_a_good_state_or_a_deletion_ends_it(
    cause: str, steps: list[Any], expected: list[str], autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch(
        [listing(pod("bad", 2), version=3), listing(pod("bad", 9), version=9)],
        [[1.0, modified(bad_pod("bad", 5)), 1.0, *steps, None]],
    )
    recorder = Recorder()
    async with running(source, recorder, **CAUSES[cause]) as informer:
        await trio.sleep(1.5)
        assert informer.state.quarantined == 1
        await trio.sleep(60)
        assert recorder.seen[1:] == expected
        assert informer.lister.quarantined() == {}
        assert str(informer.state) == "watching"
        if expected == ["-bad@2?"]:
            assert informer.lister.get("bad", namespace="default") is None


@causes
async def test_a_list_keeps_bad_objects_and_forgets_those_that_it_lacks(
    cause: str, autojump_clock: trio.testing.MockClock
) -> None:
    first = listing(pod("kept", 1), pod("gone", 1), pod("a", 1), version=3)
    second = listing(bad_pod("kept", 9), pod("a", 1), bad_pod("new", 9), version=9)
    changes = modified(bad_pod("kept", 5)) + modified(bad_pod("gone", 5))
    source = ScriptedListWatch([first, second], [[1.0, changes, 40.0, EXPIRED], [None]])
    recorder = Recorder()
    async with running(source, recorder, **CAUSES[cause]) as informer:
        await trio.sleep(60)
        assert recorder.seen[3:] == ["-gone@1?"]
        found = informer.lister.quarantined()
        assert {key: (each.since < 2, each.is_stored) for key, each in found.items()} == {
            "default/kept": (True, True),
            "default/new": (False, False),
        }


# --- frames and items of which only the key, or nothing, can be read ---


@asynccontextmanager
async def over(server: BadServer, recorder: Recorder | None = None) -> AsyncIterator[SharedInformer[Pod]]:
    async with open_client(CONFIG, http_transport=server) as client:
        handlers = [] if recorder is None else [recorder]
        async with running(ApiListWatch(client.api(Pod)), *handlers) as informer:
            yield informer


NAMED_A = b'{"metadata":{"name":"a","namespace":"default","resourceVersion":"12"}'
DEEP = NAMED_A + b',"spec":' + b"[" * TOO_MANY_LEVELS + b"]" * TOO_MANY_LEVELS + b"}"


@pytest.mark.parametrize(
    "frame",
    [
        b'{"type":"MODIFIED","object":' + DEEP + b"}\n",
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"default","resourceVersion":"12","uid":[]}}}\n',
        b'{"type":"MODIFIED","object":' + NAMED_A + b',"\\ud800":1}}\n',
    ],
    ids=["too many levels", "wrong types", "half a surrogate"],
)
async def test_a_frame_with_a_key_marks_it_in_the_order_of_the_events(
    frame: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    before, after = event("MODIFIED", a_pod("a", "11")), event("ADDED", a_pod("b", "13"))
    server = BadServer(
        [a_list(a_pod("a", "1"))], [[before + frame + after, 5.0, event("MODIFIED", a_pod("a", "14")), None]]
    )
    recorder = Recorder()
    async with over(server, recorder) as informer:
        await informer.wait_until_at_least("13")
        await trio.testing.wait_all_tasks_blocked()
        assert recorder.seen == ["+a@1*", "a@1→11", "+b@13"]
        assert list(informer.lister.quarantined()) == ["default/a"]
        assert informer.lister.quarantined()["default/a"].resource_version == "12"
        await informer.wait_until_at_least("14")
        assert informer.lister.quarantined() == {}
        assert [what for what, _ in server.asked] == ["list", "watch"]


NAMELESS = b'{"type":"MODIFIED","object":{"metadata":{"name":7}}}\n'


# --- listeners ---


class Reader(Recorder):
    """Reads a field of each object before it records it."""

    async def _note(self, text: str) -> None:
        await super()._note(text)

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        assert obj.spec.node_name != "never"
        await super().on_add(obj, is_initial=is_initial)

    async def on_update(self, old: Pod, new: Pod) -> None:
        async with trio.open_nursery():
            assert new.spec.node_name != "never"
        await super().on_update(old, new)


def has_node(obj: Pod) -> bool:
    return obj.spec.node_name != "never"


def is_good(obj: Pod) -> bool:
    return bool(picky_transform(obj).name)


async def ignore(error: Exception, notification: object) -> None:
    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("make", [Reader, lambda: FilteringHandler(has_node, Recorder())], ids=["handler", "predicate"])
async def test_a_handler_that_cannot_decode_an_object_goes_on(
    make: Callable[[], Any], autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    handler, other = make(), Recorder()
    recorder = handler.handler if isinstance(handler, FilteringHandler) else handler
    steps = [1.0, modified(bad_pod("a", 5)) + added(pod("c", 6)), 1.0, modified(pod("a", 7)), None]
    source = ScriptedListWatch([listing(pod("a"), bad_pod("bad", 2), version=3)], [steps])
    async with running(source, handler, other) as informer:
        await trio.sleep(1.5)
        assert recorder.seen == ["+a@1*", "+c@6"]
        assert informer.lister.quarantined() == {}, "the cache has the object, and other listeners may read it"
        assert informer.lister["default/a"].resource_version == "5"
        await trio.sleep(1)
        assert len(other.seen) == 5
        assert informer.is_healthy
        (line,) = caplog.messages
        assert "skipped default/bad" in line
        assert "PodSpec.node_name" in line


@pytest.mark.parametrize("fails", [has_node, is_good], ids=["undecodable", "exception"])
async def test_a_filtered_handler_gets_a_deletion_on_which_its_predicate_fails(
    fails: Callable[[Pod], bool], autojump_clock: trio.testing.MockClock
) -> None:
    recorder = Recorder()
    steps = [1.0, modified(bad_pod("a", 5)), 1.0, deleted(bad_pod("a", 6)), None]
    source = ScriptedListWatch([listing(pod("a", node="n"), version=3)], [steps])
    async with running(source) as informer:
        informer.add_event_handler(FilteringHandler(fails, recorder), on_error=ignore)
        await trio.sleep(3)
        assert recorder.seen == ["+a@1*", "-a@1"]


async def test_on_error_is_called_with_what_could_not_be_decoded(autojump_clock: trio.testing.MockClock) -> None:
    seen: list[Exception] = []

    async def on_error(error: Exception, notification: object) -> None:
        seen.append(error)

    source = ScriptedListWatch([listing(bad_pod("bad", 2), version=3)])
    async with running(source) as informer:
        registration = informer.add_event_handler(Reader(), on_error=on_error)
        await registration.wait_until_synced()
        await trio.sleep(1)
        assert [type(each) for each in seen] == [DecodeError]
        assert registration.statistics().failed == 1


async def test_a_handler_that_reads_a_key_in_quarantine_goes_on(autojump_clock: trio.testing.MockClock) -> None:
    class Finder(Recorder):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            informer.lister.get("bad", namespace="default")
            await super().on_add(obj, is_initial=is_initial)

    source = ScriptedListWatch([listing(bad_pod("bad", 2), version=3)], [[1.0, added(pod("a", 5)), None]])
    async with running(source, **CAUSES["index"]) as informer:
        informer.add_event_handler(Finder())
        await trio.sleep(2)
        assert sorted(informer.lister.quarantined()) == ["default/bad"]
        assert informer.is_healthy


async def test_a_handler_that_skips_objects_logs_one_line_a_minute_with_a_count(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Audit(Recorder):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            await super().on_add(obj, is_initial=is_initial)
            from_json(Pod, b"data of the object that is not json")

    many = [pod(f"pod-{number}", number) for number in range(1, 2_001)]
    quiet = [each for number in range(13) for each in (50.0, modified(pod("pod-1", 3_000 + number)))]
    source = ScriptedListWatch([listing(*many, version=2_500)], [[*quiet, added(pod("c", 4_000)), None]])
    recorder = Audit()
    async with running(source, Recorder()) as informer:
        registration = informer.add_event_handler(recorder)
        await trio.sleep(1_000)
        assert registration.statistics().failed == 2_001
        first, second = [line for line in caplog.messages if "Audit" in line]
        assert "skipped default/pod-1: " in first
        assert "skipped default/c: " in second
        assert second.endswith(" (1999 suppressed since the last such line)")


async def test_a_handler_that_ends_logs_how_many_objects_it_has_skipped(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    source = ScriptedListWatch([listing(*(bad_pod(f"bad-{number}", number) for number in range(1, 4)), version=3)])
    async with running(source) as informer:
        registration = informer.add_event_handler(Reader(), name="reader")
        await registration.wait_until_synced()
        assert len(caplog.messages) == 1
        await registration.aclose()
        assert caplog.messages[1:] == [
            "handler reader of informer Pod skipped default/bad-3: DecodeError (2 suppressed since the last such line)"
        ]


@pytest.mark.parametrize("selector", ["field", "label"])
async def test_a_selector_leaves_out_and_logs_what_it_cannot_decode(
    selector: str, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    bad = bad_pod("bad", 2)
    raw = bad._origin.replace(b'"uid"', b'"labels":{"app":5},"uid"')
    source = ScriptedListWatch(
        [listing(pod("a", node="n"), make_object(Pod, raw), version=3)],
        [[10.0, modified(pod("bad", 7, node="n")), None]],
    )
    async with running(source) as informer:

        def found() -> list[str]:
            lister = informer.lister
            objects = (
                lister.list(field_selector="spec.nodeName=n")
                if selector == "field"
                else lister.list(label_selector="!app")
            )
            return [obj.name for obj in objects]

        assert (found(), found()) == (["a"], ["a"])
        (line,) = caplog.messages
        assert "lister of Pod skipped default/bad: " in line
        await trio.sleep(20)
        assert found() == ["a", "bad"]


# --- mistakes in the program ---

functions = pytest.mark.parametrize("cause", ["transform", "index"])


def bad_in(namespace: str, name: str = "bad", version: int = 1) -> Pod:
    return make_object(Pod, bad_pod(name, version)._origin.replace(b'"default"', f'"{namespace}"'.encode()))


@functions
async def test_a_function_that_fails_on_the_whole_first_list_may_be_retried(
    cause: str, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(*(bad_pod(name, 1) for name in "abc"))])
    async with running(source, options=ReflectorOptions(retry_forever=True), **CAUSES[cause]) as informer:
        assert sorted(informer.lister.quarantined()) == ["default/a", "default/b", "default/c"]


@functions
async def test_a_function_that_fails_on_two_objects_of_two_is_no_mistake(
    cause: str, autojump_clock: trio.testing.MockClock
) -> None:
    source = ScriptedListWatch([listing(bad_pod("a", 1), bad_pod("b", 1))])
    async with running(source, **CAUSES[cause]) as informer:
        assert sorted(informer.lister.quarantined()) == ["default/a", "default/b"]


@functions
@pytest.mark.parametrize("tenant_is_last", [True, False])
async def test_the_bad_objects_of_one_namespace_do_not_end_the_others(
    tenant_is_last: bool, cause: str, autojump_clock: trio.testing.MockClock
) -> None:
    tenant = listing(*(bad_in("tenant", name) for name in "abcd"))
    good = listing(*(pod(name, namespace="good") for name in "abcd"))
    sources = {
        "tenant": ScriptedListWatch([tenant], delays=[2.0 if tenant_is_last else 1.0]),
        "good": ScriptedListWatch([good], delays=[1.0 if tenant_is_last else 2.0]),
    }
    options = ReflectorOptions(watch_error_handler=lambda _: None)  # asks for the version first, which delays the list
    async with running(sources, options=options, **CAUSES[cause]) as informer:  # type: ignore[arg-type]  # a mapping
        assert trio.current_time() == 2
        assert {obj.namespace for obj in informer.lister} == {"good"}
        assert len(informer.lister.quarantined()) == 4


@functions
async def test_a_function_that_fails_in_all_namespaces_ends_the_informer(
    cause: str, autojump_clock: trio.testing.MockClock
) -> None:
    sources = {
        "one": ScriptedListWatch([listing(bad_in("one", "a"), bad_in("one", "b"))]),
        "two": ScriptedListWatch([listing(bad_in("two"))], delays=[5.0]),
        "empty": ScriptedListWatch([listing()]),
    }
    informer = SharedInformer(sources, **CAUSES[cause])
    ends = r"on (Pod )?one/a: KeyError \(and 2 more: every object of the first list\)$"
    with pytest.RaisesGroup(pytest.RaisesExc((IndexerError, TransformError), match=ends)) as caught:
        await informer.run()
    assert trio.current_time() == 5
    mistake = caught.value.exceptions[0].__cause__
    assert mistake is not None
    assert isinstance(mistake.__cause__, KeyError)
    where = [each.name for each in traceback.extract_tb(mistake.__cause__.__traceback__)]
    assert where[-1].startswith("picky"), "the traceback says where in the function it is"


async def test_an_index_that_is_added_during_a_staged_relist_ends_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    informer: SharedInformer[Pod]

    def adds_another(obj: Pod) -> list[str]:
        # The new list is being staged: no object of it is in the indexer yet.
        if obj.name == "new" and "late" not in informer._indexer._indices:
            informer.add_indexers({"late": picky_index})
        return [obj.name]

    first = listing(pod("a", 1), pod("b", 1), version=3)
    second = listing(bad_pod("a", 9), pod("b", 9), pod("new", 9), bad_pod("worse", 9), version=9)
    source = ScriptedListWatch([first, second], [[40.0, EXPIRED], [None]])
    recorder = Recorder()
    informer = SharedInformer(source, indexers={"first": adds_another}, options=QUIET)
    informer.add_event_handler(recorder)
    async with trio.open_nursery() as nursery:
        await nursery.start(informer.run)
        await trio.sleep(60)
        assert recorder.seen[2:] == ["b@1→9", "+new@9"]
        assert sorted(informer.lister.quarantined()) == ["default/a", "default/worse"]
        assert sorted(informer.lister.index_values("late")) == ["a", "b", "new"]
        assert [obj.resource_version for obj in informer.lister.by_index("late", "a")] == ["1"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("cause", ["index", "index that decodes"])
async def test_an_index_added_to_a_running_informer_marks_what_it_fails_on(
    cause: str, autojump_clock: trio.testing.MockClock
) -> None:
    first = listing(pod("a", node="n"), bad_pod("bad", 2), version=3)
    steps = [10.0, modified(bad_pod("bad", 2)), 40.0, EXPIRED]
    source = ScriptedListWatch([first, first], [steps, [10.0, modified(pod("bad", 7)), None]])
    async with running(source) as informer:
        informer.add_indexers(CAUSES[cause]["indexers"])
        for _ in range(3):
            (found,) = informer.lister.quarantined().values()
            assert (found.key, found.reason, found.since) == ("default/bad", REASONS[cause], 0)
            assert informer.lister.get("bad", namespace="default", allow_stale=True) is not None
            (index,) = CAUSES[cause]["indexers"]
            assert len(informer.lister.index_values(index)) == 1
            await trio.sleep(25)
        await trio.sleep(60)
        assert informer.lister.quarantined() == {}


async def test_objects_that_become_bad_one_by_one_are_logged_in_a_few_lines(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether the program has added an index, or a tenant changes an object again and again."""
    names = [f"p{number}" for number in range(100)]
    changes = [modified(bad_pod("a", 5 + 2 * n)) + modified(pod("a", 6 + 2 * n)) for n in range(100)]
    steps = [70.0, *changes, 70.0, modified(bad_pod("a", 500)), None]
    first = listing(pod("a"), *(bad_pod(name, 2) for name in names), version=3)
    async with running(ScriptedListWatch([first], [steps])) as informer:
        informer.add_indexers({"picky": picky_index})
        assert len(informer.lister.quarantined()) == 100
        assert len(caplog.messages) == 5
        caplog.clear()
        await trio.sleep(80)
        assert len(caplog.messages) == 5
        assert "95" in caplog.messages[0]
        caplog.clear()
        await trio.sleep(80)
        (line,) = caplog.messages
        assert "95" in line


# --- several namespaces, factories ---


async def test_a_list_of_one_namespace_leaves_the_marks_of_another(autojump_clock: trio.testing.MockClock) -> None:
    sources = {
        "one": ScriptedListWatch(
            [listing(bad_in("one"), pod("x", namespace="one")), listing(version=9)], [[40.0, EXPIRED], [None]]
        ),
        "two": ScriptedListWatch([listing(bad_in("two"), pod("x", namespace="two"))]),
    }
    async with running(sources, **CAUSES["index"]) as informer:  # type: ignore[arg-type]  # a mapping of sources
        assert sorted(informer.lister.quarantined()) == ["one/bad", "two/bad"]
        await trio.sleep(60)
        assert sorted(informer.lister.quarantined()) == ["two/bad"]
        assert list(map(key_of, informer.lister)) == ["two/x"]


async def test_problems_name_every_object_and_the_state_names_the_first(autojump_clock: trio.testing.MockClock) -> None:
    bad = [{"metadata": {"name": f"bad-{number}", "namespace": "default", "uid": 7}} for number in range(100)]
    server = BadServer([a_list(a_pod("a", "1"), *bad)])
    async with open_client(CONFIG, http_transport=server) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client, options=QUIET)
        factory.informer(Pod)
        await nursery.start(factory.run)
        assert (factory.has_synced, factory.is_healthy) == (True, True)
        (text,) = factory.problems().values()
        names = [f"default/bad-{number} (undecodable)" for number in range(100)]
        assert text == f"watching; 100 in quarantine: {', '.join(names)}"
        (informer,) = factory.informers.values()
        assert str(informer.state) == f"watching; 100 in quarantine: {', '.join(names[:5])}, and 95 more"
        assert informer.statistics().missing == 100
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("cause", ["transform", "index"])
def test_a_list_of_many_bad_objects_logs_five_of_them_and_holds_up_no_other_task(
    cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = [pod(f"good-{number}", 1) for number in range(3)]
    bad = [bad_pod(f"bad-{number}", 2) for number in range(10_000)]
    turns = 0

    async def main() -> None:
        nonlocal turns
        source = ScriptedListWatch([listing(*first), listing(*first, *bad, version=9)], [[1.0, EXPIRED], [None]])
        async with running(source, **CAUSES[cause]) as informer:
            await trio.sleep(0.5)
            turns, _ = await turns_during(informer.wait_until_at_least("9"))
            assert len(informer.lister.quarantined()) == 10_000

    with caplog.at_level(logging.WARNING, "trioformer.cache"):
        trio.run(main)
    *named, counted = caplog.messages
    assert [line.split()[1] for line in named] == [f"default/bad-{number}" for number in range(5)]
    assert "9995 more" in counted
    assert turns > 30


async def test_the_log_names_an_undecodable_frame_without_its_bytes(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Undecodable] = []
    bad = [event("MODIFIED", a_pod("a", str(version))).replace(b'"uid-a"', b"[]") for version in range(10, 20)]
    frames = [each for frame in (*bad, NAMELESS) for each in (frame.replace(b"kind", b"secret"), 1.0)]
    for handler in (None, seen.append):
        caplog.clear()
        server = BadServer([a_list(a_pod("a", "1"))] * 2, [[*frames, None]])
        options = ReflectorOptions(watch_list=False, undecodable_handler=handler)
        async with (
            open_client(CONFIG, http_transport=server) as client,
            running(ApiListWatch(client.api(Pod)), options=options) as informer,
        ):
            await trio.sleep(20)
            assert informer.statistics().reflector.undecodable == 11
        assert caplog.text.count("Pod: default/a is in quarantine until it changes: ") == 1
        assert "secret" not in caplog.text
    assert len(seen) == 11
