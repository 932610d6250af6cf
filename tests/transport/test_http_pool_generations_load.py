"""Certificates that are rotated while 1,000 requests a minute are sent and 20 watches are open: nothing fails."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import attrs
import trio
import trio.testing
import trustme

from tests.support.rotated_files import rotate
from trioformer import (
    Client,
    ClusterConfig,
    ObjectMeta,
    ReflectorOptions,
    ResourceEventHandler,
    SharedInformerFactory,
    open_client,
    resuming_watch,
)
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer, serve_http

CA, OTHER_CA = trustme.CA(), trustme.CA()
SERVER = CA.issue_cert("127.0.0.1")
BUNDLES = (CA.cert_pem.bytes() + OTHER_CA.cert_pem.bytes(), CA.cert_pem.bytes())
ROTATIONS = 4
ROTATION_PERIOD = 5.0
REQUEST_PERIOD = 0.06
LATE = 2.0
"""Seconds after which a watch that has not delivered an event would be lost."""


@attrs.define(eq=False)
class Receiver:
    """Records when it received which change first; every watch has one."""

    sent_at: dict[str, float]
    delays: dict[str, float] = attrs.field(factory=dict)

    def receive(self, obj: ConfigMap) -> None:
        if obj.data and (number := obj.data["number"]) in self.sent_at:
            self.delays.setdefault(number, trio.current_time() - self.sent_at[number])


async def test_neither_a_request_nor_a_watch_fails_while_certificates_are_rotated(
    tmp_path: Path, mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    (tmp_path / "server.crt").write_bytes(SERVER.cert_chain_pems[0].bytes())
    (tmp_path / "server.key").write_bytes(SERVER.private_key_pem.bytes())
    rotate(tmp_path / "ca", BUNDLES[0])
    rotate(tmp_path / "token", "t0ken")
    server = APIServer()
    serve = partial(serve_http, server, certificate=tmp_path / "server.crt", key=tmp_path / "server.key", token="t0ken")
    url: str = await nursery.start(serve)
    config = ClusterConfig(server=url, ca_file=str(tmp_path / "ca"), token_file=str(tmp_path / "token"))
    server.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"number": "none"}))
    errors: list[Exception] = []
    sent_at: dict[str, float] = {}
    receivers = [Receiver(sent_at) for _ in range(20)]
    mock_clock.autojump_threshold = 0.01  # all tasks, the server's too, are in this process
    async with open_client(config) as client, trio.open_nursery() as watches:
        version = (await client.api(ConfigMap, namespace="default").list()).resource_version
        for receiver in receivers[:10]:
            watches.start_soon(watch, client, receiver, version, errors)
        for receiver in receivers[10:]:
            await watches.start(run_informer, client, receiver, errors)
        generations = client._transport._generations
        seen = {id(generations.present)}
        api, number = client.api(ConfigMap, namespace="default"), 0
        ends_at = trio.current_time() + ROTATIONS * ROTATION_PERIOD
        for rotation in range(1, ROTATIONS + 1):
            rotate(tmp_path / "ca", BUNDLES[rotation % 2])
            rotate(tmp_path / "token", "t0ken" + " " * rotation)
            while trio.current_time() < ends_at - (ROTATIONS - rotation) * ROTATION_PERIOD:
                number += 1
                sent_at[str(number)] = trio.current_time()
                await api.patch("a", {"data": {"number": str(number)}})
                await trio.sleep(REQUEST_PERIOD)
            seen.add(id(generations.present))
        await trio.sleep(LATE)
        watches.cancel_scope.cancel()
    nursery.cancel_scope.cancel()
    assert errors == []
    assert number >= 300
    assert len(seen) >= 3, "the connections were replaced"
    for receiver in receivers:
        assert str(number) in receiver.delays
        assert max(receiver.delays.values()) < LATE


async def watch(client: Client, receiver: Receiver, version: str, errors: list[Exception]) -> None:
    api = client.api(ConfigMap, namespace="default")
    async with resuming_watch(api, resource_version=version, on_retry=errors.append) as events:
        async for event in events:
            receiver.receive(event.object)


@attrs.define(eq=False)
class Handler(ResourceEventHandler[ConfigMap]):
    """Passes changes on."""

    receiver: Receiver

    async def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        self.receiver.receive(new)


async def run_informer(
    client: Client,
    receiver: Receiver,
    errors: list[Exception],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    options = ReflectorOptions(watch_error_handler=errors.append)
    factory = SharedInformerFactory(client, namespace="default", options=options)
    factory.informer(ConfigMap).add_event_handler(Handler(receiver))
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await factory.informer(ConfigMap).wait_until_synced()
        task_status.started()
