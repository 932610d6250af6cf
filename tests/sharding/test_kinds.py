"""The ranges of the objects of one kind, and what a source sends of them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.clients import client_of
from trioformer import SharedInformerFactory, open_client
from trioformer.cache import ApiListWatch
from trioformer.cache.informer._divided_source import DividedSource
from trioformer.cache.store._delta_fifo import DeltaFIFO
from trioformer.client import Client, Undecodable
from trioformer.errors import NotOwnedError
from trioformer.models import ObjectMeta, OwnerReference
from trioformer.models.core_v1 import ConfigMap
from trioformer.sharding import Shares, open_shares
from trioformer.sharding._kinds import MAX_DELETED, By, KindShare, label_value, number_in
from trioformer.sharding._ranges import range_of
from trioformer.testing import APIServer

RANGES = 16
UIDS = {
    number: next(f"uid-{n:x}-uid" for n in range(10**6) if range_of(f"uid-{n:x}-uid", RANGES) == number)
    for number in range(RANGES)
}


def share_of(client: Client, by: By, **more: object) -> KindShare[ConfigMap]:
    """A kind of which all ranges are held and listed."""
    held: dict[int, Any] = {}
    share = KindShare(ApiListWatch(client.api(ConfigMap)), by, RANGES, held, "range", **more)
    parts = {share: SimpleNamespace(is_listed=True)}
    each = SimpleNamespace(leadership=SimpleNamespace(is_held=True), parts=parts)
    held.update(dict.fromkeys(range(RANGES), each))
    return share


def config_map(name: str = "a", *, uid: str = "", labels: dict[str, str] | None = None, owner: str = "") -> ConfigMap:
    owners = [OwnerReference(api_version="v1", kind="Pod", name="web", uid=owner, controller=True)] if owner else []
    metadata = ObjectMeta(name=name, namespace="default", uid=uid, labels=labels or {}, owner_references=owners)
    return ConfigMap(metadata=metadata)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3-of-16", 3),
        ("15-of-16", 15),
        ("16-of-16", None),
        ("-1-of-16", None),
        ("3-of-8", None),
        ("three-of-16", None),
        ("3", None),
        ("", None),
        (None, None),
    ],
)
def test_a_label_names_a_range_only_of_the_same_division(value: str | None, expected: int | None) -> None:
    assert number_in(value, RANGES) == expected
    assert number_in(label_value(3, RANGES), RANGES) == 3


async def test_objects_without_a_label_belong_to_nobody(client: Client) -> None:
    share = share_of(client, "label")
    assert share.part_of(config_map(labels={"range": "3-of-16"})) == "3"
    assert share.part_of(config_map()) == ""
    assert share.part_of_received(config_map()) == ""


async def test_the_key_of_a_deleted_object_belongs_to_its_owner_while_it_holds_the_range(client: Client) -> None:
    share = share_of(client, "uid")
    with pytest.raises(NotOwnedError, match="another replica caches it"):
        share.check_key("default/a")
    share.record_deletion(config_map(uid=UIDS[3]))
    share.record_deletion(config_map("b", uid=UIDS[4]))
    share.check_key("default/a")
    share.forget(3)
    with pytest.raises(NotOwnedError, match="another replica caches it"):
        share.check_key("default/a")
    share.check_key("default/b")


async def test_only_the_last_deleted_keys_are_remembered(client: Client) -> None:
    share = share_of(client, "uid")
    for number in range(MAX_DELETED + 1):
        share.record_deletion(config_map(f"a{number}", uid=UIDS[3]))
    share.check_key("default/a1")
    with pytest.raises(NotOwnedError):
        share.check_key("default/a0")


async def test_children_with_the_label_of_another_range_are_counted_and_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    share = share_of(client, "label", primaries={"Pod": "uid"})
    label = {"range": label_value(3, RANGES)}
    for obj in (
        config_map(labels=label, owner=UIDS[3]),
        config_map(labels=label),
    ):
        assert share.part_of_received(obj) == "3"
    assert (share.mislabelled, caplog.messages) == (set(), [])
    for name in "abab":  # a list sends them again
        assert share.part_of_received(config_map(name, uid=name, labels=label, owner=UIDS[4])) == "3"
    del share.held[3]  # type: ignore[attr-defined]
    assert share.part_of_received(config_map(labels=label, owner=UIDS[4])) == "3"  # its owner counts it
    assert share.mislabelled == {"a", "b"}
    share.record_deletion(config_map(uid="a", labels=label))
    assert share.mislabelled == {"b"}
    assert caplog.messages == ["ConfigMap default/a has the label range=3-of-16, but its owner is in range 4"]


def written(uid: str = "", label: str = "") -> Any:
    body = json.dumps({"metadata": {"labels": {"range": label}}}).encode() if label else b""
    return SimpleNamespace(key="default/a", namespace="default", body=body, write=SimpleNamespace(uid=uid))


async def test_a_write_is_shown_by_the_range_of_what_was_written(client: Client) -> None:
    by_uid, by_label = share_of(client, "uid"), share_of(client, "label")
    assert by_uid.part_of_write(written(UIDS[4])) == "4"
    assert by_uid.part_of_write(written()) is None
    assert by_label.part_of_write(written()) is None
    by_label.record_deletion(config_map(labels={"range": label_value(3, RANGES)}))
    assert by_label.part_of_write(written()) == "3"
    assert by_label.part_of_write(written(label=label_value(5, RANGES))) == "5"  # created again, for another owner
    by_label.read_with(lambda key: config_map(labels={"range": label_value(6, RANGES)}))
    assert by_label.part_of_write(written()) == "6"


def listing(*uids: str, selector: str = "") -> str:
    metadata = {"resourceVersion": "7", **({"shardInfo": {"selector": selector}} if selector else {})}
    items = [{"metadata": {"name": uid, "namespace": "default", "uid": uid}} for uid in uids]
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": items})


def ignore(found: Undecodable) -> None:
    raise AssertionError(found)


def source_of(share: KindShare[ConfigMap], *numbers: int) -> DividedSource[ConfigMap]:
    source = DividedSource("tests", share.plain, share, share.select)
    for number in numbers:
        source.open(str(number))
    return source


@pytest.mark.parametrize(("confirms", "is_filtered"), [(False, False), (True, False), (True, True)])
async def test_a_source_drops_the_objects_that_a_server_should_not_have_sent(confirms: bool, is_filtered: bool) -> None:
    uids = [UIDS[3], UIDS[4], UIDS[8]] if is_filtered else UIDS.values()
    reply = listing(*uids, selector="applied" if confirms else "")
    async with client_of(reply, protobuf=False) as (client, transport):
        share = share_of(client, "uid")
        source = source_of(share, 3, 8, 4)
        assert share.is_filtered is None
        found = await source.list(resource_version="0", page_size=None, on_undecodable=ignore)
        assert [each.uid for each in found.items] == [UIDS[3], UIDS[4], UIDS[8]]
        assert share.is_filtered is is_filtered
        assert transport.requests[0].url.params["shardSelector"] == (
            "shardRange(object.metadata.uid, '0x3000000000000000', '0x5000000000000000') || "
            "shardRange(object.metadata.uid, '0x8000000000000000', '0x9000000000000000')"
        )


async def test_a_source_by_label_asks_for_its_label(client: Client) -> None:
    plain = ApiListWatch(client.api(ConfigMap), label_selector="app=web")
    share = KindShare(plain, "label", RANGES, {}, "range")
    assert str(share.select(["3", "10"]).label_selector) == "app=web,range in (3-of-16,10-of-16)"


@pytest.mark.parametrize("by", ["namespace", "uid", "label"])
async def test_a_watch_sends_only_the_events_of_the_range(by: By) -> None:
    events, number = [], range_of("team-0-prod", RANGES)
    for name, namespace in (("mine", "team-0-prod"), ("other", "team-1-prod")):
        own = range_of(namespace, RANGES)
        labels = {"range": label_value(own, RANGES)}
        metadata = {"name": name, "namespace": namespace, "uid": UIDS[own], "labels": labels}
        events.append({"type": "ADDED", "object": {"metadata": metadata}})
    replies = listing(), "".join(json.dumps(event) + "\n" for event in events)
    async with client_of(*replies, protobuf=False) as (client, _):
        share = share_of(client, by)
        source = source_of(share, number)
        sink = source.sink(DeltaFIFO())
        found = await source.list(resource_version="0", page_size=None, on_undecodable=ignore)
        sink.replace(found.items, "7", bad={})
        async with source.watch(
            resource_version="7", timeout_seconds=9, send_initial_events=False, on_undecodable=ignore
        ) as watch:
            received = [(each.type, each.object.name) for each in await watch.receive_batch()]
        # An object of a label may have been in the cache before the label was changed.
        assert received == [("ADDED", "mine"), *([("DELETED", "other")] if by == "label" else [])]
        assert share.is_filtered is (None if by == "label" else False)


# --- requests for several ranges ---


@attrs.define(eq=False)
class SlowLists(httpx.AsyncBaseTransport):
    """Delays lists of ConfigMaps, and counts lists and open watches."""

    inner: httpx.AsyncBaseTransport
    lists: int = 0
    watches: int = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/configmaps"):
            if "watch" in request.url.params:
                self.watches += 1
            else:
                self.lists += 1
                await trio.sleep(1)
        return await self.inner.handle_async_request(request)


async def test_ranges_that_begin_together_share_their_lists_and_the_watch(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A server that does not divide lists sends all objects with each."""
    server = APIServer()
    await nursery.start(server.run)
    requests = SlowLists(server.http_transport())
    async with open_client(server.config, http_transport=requests) as client:
        factory = SharedInformerFactory(client)
        async with open_shares(client, Shares("tests", 8), factory) as shares:
            factory.informer(ConfigMap)
            nursery.start_soon(factory.run)
            await trio.sleep(9)
            assert [*shares.state.own.values()] == ["ready"] * 8
            assert shares.state.filtered_by_server == {"configmaps": False}
            assert requests.lists <= 2
            assert requests.watches == 1
        nursery.cancel_scope.cancel()
