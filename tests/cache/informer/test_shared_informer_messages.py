"""An informer that receives damaged objects in protobuf."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support.scripted_http import InMemory, Step, response
from trioformer import open_client
from trioformer.cache import ReflectorOptions, SharedInformerFactory
from trioformer.errors import DecodeError, QuarantinedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models._internal import envelope_of, event_of, tagged
from trioformer.models.core_v1 import Pod

PROTOBUF = "application/vnd.kubernetes.protobuf"


def message(name: str, version: int, *, phase: str = "", damage: bytes = b"", spec: bytes = b"") -> bytes:
    metadata = tagged(1, name.encode()) + tagged(3, b"shop") + tagged(5, name.encode()) + tagged(6, b"%d" % version)
    return tagged(1, metadata + damage) + tagged(2, spec) + tagged(3, tagged(1, phase.encode()))


def framed(type_: str, item: bytes) -> bytes:
    frame = event_of(type_, envelope_of("v1", "Pod", item))
    return len(frame).to_bytes(4, "big") + frame


async def test_damaged_metadata_is_quarantined_by_key_until_a_good_event(autojump_clock: MockClock) -> None:
    damage = b"\x7a\x7f"
    items = [message("a", 1, phase="Running"), message("b", 2, damage=damage), message("c", 3)]
    listed = envelope_of("v1", "PodList", tagged(1, tagged(2, b"9")) + b"".join(tagged(2, item) for item in items))
    steps: list[Step] = [
        framed("MODIFIED", message("c", 10, damage=damage)) + framed("ADDED", message("d", 11)),
        5.0,
        framed("MODIFIED", message("b", 12, phase="Failed")),
        None,
    ]
    replies: list[Any] = [
        response(200, listed, content_type=PROTOBUF),
        response(200, *steps, content_type=f"{PROTOBUF};stream=watch"),
    ]
    reported: list[str] = []
    options = ReflectorOptions(watch_list=False, undecodable_handler=lambda found: reported.append(found.key))
    config = ClusterConfig(server="https://api.test")
    async with open_client(config, http_transport=InMemory(replies)) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client, options=options)
        informer = factory.informer(Pod)
        nursery.start_soon(factory.run)
        await trio.sleep(2)
        assert sorted(informer.lister.quarantined()) == ["shop/b", "shop/c"]
        assert reported == ["shop/b", "shop/c"]
        with pytest.raises(QuarantinedError, match="shop/b"):
            informer.lister["shop/b"]
        assert {pod.name for pod in informer.lister.list()} - {"c"} == {"a", "d"}
        await trio.sleep(5)
        assert list(informer.lister.quarantined()) == ["shop/c"]
        assert informer.lister["shop/b"].resource_version == "12"
        nursery.cancel_scope.cancel()


async def test_damage_below_the_metadata_is_an_error_of_the_field_alone(autojump_clock: MockClock) -> None:
    items = [message("a", 1, phase="Running", spec=b"\x7f")]
    listed = envelope_of("v1", "PodList", tagged(1, tagged(2, b"9")) + b"".join(tagged(2, item) for item in items))
    replies: list[Any] = [
        response(200, listed, content_type=PROTOBUF),
        response(200, None, content_type=f"{PROTOBUF};stream=watch"),
    ]
    config = ClusterConfig(server="https://api.test")
    async with open_client(config, http_transport=InMemory(replies)) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client, options=ReflectorOptions(watch_list=False))
        informer = factory.informer(Pod)
        nursery.start_soon(factory.run)
        await trio.sleep(2)
        assert informer.lister.quarantined() == {}
        pod = informer.lister["shop/a"]
        assert pod.status is not None
        assert pod.status.phase == "Running"
        with pytest.raises(DecodeError, match=r"shop/a: spec\.nodeName"):
            _ = pod.spec.node_name
        nursery.cancel_scope.cancel()
