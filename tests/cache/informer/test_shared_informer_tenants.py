"""Objects that a tenant makes to end an operator: whoever meets their values, the informer and the others go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector_bad_input import BadServer
from tests.support.scripted_list_watch import Recorder
from trioformer.cache import ApiListWatch, FilteringHandler, ReflectorOptions, ResourceEventHandler, SharedInformer
from trioformer.cache._bad_objects import QuarantineReason
from trioformer.client import open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import Quantity, Unstructured, unstructured_kind
from trioformer.models.core_v1 import Pod
from trioformer.watchtools import has_condition

CONFIG = ClusterConfig(server="https://api.test")
QUIET = ReflectorOptions(watch_list=False, watch_error_handler=lambda _: None, undecodable_handler=lambda _: None)
Widget = unstructured_kind("tenants.example.com/v1", "Widget", plural="widgets", namespaced=True)


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


SPECS: Mapping[str, str] = {
    **{f"{levels:,} levels": deep(levels) for levels in (200, 900, 9_000, 100_000)},
    "an absurd number": '{"a":' + "9" * 5_000 + "}",
    "not UTF-8": '{"a":"\udcff"}',
    "a key that is not UTF-8": '{"\udcff":1}',
}


def widget(name: str, version: int, spec: str = '{"size":"1"}') -> str:
    metadata = f'{{"name":"{name}","namespace":"b","uid":"u-{name}","resourceVersion":"{version}"}}'
    return f'{{"apiVersion":"tenants.example.com/v1","kind":"Widget","metadata":{metadata},"spec":{spec}}}'


def as_list(*items: str) -> bytes:
    head = '{"kind":"WidgetList","apiVersion":"tenants.example.com/v1","metadata":{"resourceVersion":"5"},"items":['
    return (head + ",".join(items) + "]}").encode(errors="surrogateescape")


def event(type_: str, obj: str) -> bytes:
    return f'{{"type":"{type_}","object":{obj}}}\n'.encode(errors="surrogateescape")


def read(obj: Unstructured) -> Unstructured:
    assert json.dumps(obj["spec"])
    return obj


class Reader(Recorder):
    async def on_add(self, obj: Any, *, is_initial: bool) -> None:
        await super().on_add(read(obj), is_initial=is_initial)

    async def on_update(self, old: Any, new: Any) -> None:
        await super().on_update(old, read(new))


class Comparer(Recorder):
    """Does with objects what programs do without reading them."""

    async def on_update(self, old: Any, new: Any) -> None:
        assert repr(new)
        assert {old, new}
        if old != new and not has_condition("Ready")(new):
            await super().on_update(old, new)


FUNCTIONS: Mapping[str, Callable[[], tuple[list[ResourceEventHandler[Any]], dict[str, Any]]]] = {
    "nobody": lambda: ([Recorder()], {}),
    "a handler": lambda: ([Reader()], {}),
    "a comparison": lambda: ([Comparer()], {}),
    "a predicate": lambda: ([FilteringHandler(lambda obj: bool(read(obj)), Recorder())], {}),
    "an index function": lambda: ([Recorder()], {"indexers": {"spec": lambda obj: [str(len(str(read(obj))))]}}),
    "a transform": lambda: ([Recorder()], {"transform": read}),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("bad", SPECS)
async def test_no_value_of_an_object_ends_an_informer(
    bad: str, function: str, autojump_clock: trio.testing.MockClock
) -> None:
    handlers, options = FUNCTIONS[function]()
    frames = [event("MODIFIED", widget("turned", 6, SPECS[bad])), event("ADDED", widget("last", 7)), None]
    items = [widget("first", 1), widget("turned", 2), widget("listed", 3, SPECS[bad]), widget("other", 4)]
    server = BadServer([as_list(*items)], [[1.0, *frames]])
    async with open_client(CONFIG, http_transport=server) as client, trio.open_nursery() as nursery:
        informer = SharedInformer(ApiListWatch(client.api(Widget)), options=QUIET, **options)
        for handler in handlers:
            informer.add_event_handler(handler)
        await nursery.start(informer.run)
        await informer.wait_until_at_least("7")
        await trio.testing.wait_all_tasks_blocked()
        assert informer.is_healthy
        assert [what for what, _ in server.asked] == ["list", "watch"]
        assert {obj.name for obj in informer.lister} >= {"first", "turned", "other", "last"}
        found = informer.lister.quarantined()
        assert found.keys() <= {"b/turned", "b/listed"}
        assert all(each.reason is not QuarantineReason.INDEX_FAILED for each in found.values())
        assert "\udcff" not in str(informer.state)
        if function in ("an index function", "a transform"):
            assert found.keys() == {"b/turned", "b/listed"}
        recorder = handlers[0].handler if isinstance(handlers[0], FilteringHandler) else handlers[0]
        assert {"+first@1*", "+other@4*", "+last@7"} <= set(recorder.seen)
        nursery.cancel_scope.cancel()


async def test_an_absurd_amount_is_undecodable_for_a_listener(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class Adder(ResourceEventHandler[Pod]):
        async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
            seen.append(sum(amount.value for amount in obj.spec.overhead.values()))

    seen: list[Any] = []
    pods = [widget(name, 1, f'{{"overhead":{{"cpu":"{text}"}}}}') for name, text in (("a", "1e999999999"), ("b", "2"))]
    body = as_list(*pods).replace(b"tenants.example.com/v1", b"v1").replace(b"Widget", b"Pod")
    async with open_client(CONFIG, http_transport=BadServer([body])) as client, trio.open_nursery() as nursery:
        informer = SharedInformer(ApiListWatch(client.api(Pod)), options=QUIET)
        informer.add_event_handler(Adder())
        await nursery.start(informer.run)
        await trio.testing.wait_all_tasks_blocked()
        assert seen == [Quantity("2").value]
        assert informer.is_healthy
        nursery.cancel_scope.cancel()
