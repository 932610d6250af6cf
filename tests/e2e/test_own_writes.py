"""An operator without ``Expectations`` behind a proxy that delivers what a watch sends two seconds late.

The server is a real kube-apiserver.  Thirty users create, scale and delete crews of pods, and lose pods, at the same
time; each of them continues as soon as there are as many pods as wanted, when the caches do not show that yet.
"""

from __future__ import annotations

import math
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio

from tests.e2e.workloads import make_namespace
from trioformer import ClusterConfig, SharedInformerFactory, load_config, open_client
from trioformer.cache import SharedInformer
from trioformer.client import Client
from trioformer.controller import Controller, Request, set_controller_reference
from trioformer.errors import NotFoundError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Container, Pod, PodSpec
from trioformer.testing import ControlPlane

DELAY = 2.0
STORIES = 30
SIZES = 4
"""The number of sizes that each crew has, one after the other."""
PATIENCE = 60.0
"""Seconds in which there are as many pods as wanted."""


@attrs.define(eq=False)
class LateWatches:
    """A proxy on loopback that delays what the server sends in response to watches."""

    config: ClusterConfig
    tls: ssl.SSLContext

    @asynccontextmanager
    async def run(self) -> AsyncIterator[str]:
        """Serve while the block runs, and yield the URL."""
        async with trio.open_nursery() as nursery:
            listeners: list[trio.SocketListener] = await nursery.start(
                partial(trio.serve_tcp, self._serve, 0, host="127.0.0.1")
            )
            yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
            nursery.cancel_scope.cancel()

    async def _serve(self, client: trio.SocketStream) -> None:
        is_watch = False
        send, receive = trio.open_memory_channel[tuple[float, bytes]](math.inf)

        async def pass_requests() -> None:
            nonlocal is_watch
            async for data in client:
                if data.startswith(b"GET "):
                    is_watch = b"watch=true" in data.partition(b"\r\n")[0]
                await server.send_all(data)
            nursery.cancel_scope.cancel()

        async def pass_responses() -> None:
            async for due, data in receive:
                await trio.sleep_until(due)
                await client.send_all(data)
            nursery.cancel_scope.cancel()

        port = int(self.config.server.rpartition(":")[2])
        with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            server = trio.SSLStream(stream, self.tls, server_hostname="127.0.0.1", https_compatible=True)
            async with server, trio.open_nursery() as nursery:
                nursery.start_soon(pass_requests)
                nursery.start_soon(pass_responses)
                async for data in server:
                    send.send_nowait((trio.current_time() + DELAY * is_watch, data))
                send.close()


@attrs.define(eq=False)
class Operator:
    """Creates and deletes the pods of crews, and believes its caches."""

    client: Client
    crews: SharedInformer[ConfigMap]
    pods: SharedInformer[Pod]

    async def reconcile(self, request: Request) -> None:
        crew = self.crews.lister.get(request)
        size = 0 if crew is None else int(crew.data["size"])
        found = [
            pod for pod in self.pods.lister.list(namespace=request.namespace) if pod.metadata.deletion_timestamp is None
        ]
        api = self.client.api(Pod, request.namespace)
        for _ in range(size - len(found)):
            assert crew is not None
            new = Pod(
                metadata=ObjectMeta(generate_name="crew-", namespace=request.namespace, labels={"crew": "yes"}),
                spec=PodSpec(containers=[Container(name="main", image="main:1")]),
            )
            await api.create(set_controller_reference(new, crew))
        for pod in found[size:]:
            with suppress(NotFoundError):
                await api.delete(pod.name, uid=pod.uid)


@attrs.define(eq=False)
class Story:
    """What one user does, and what the server has at each moment."""

    client: Client
    namespace: str
    seed: int
    pods: set[str] = attrs.field(factory=set)
    """The uids of the pods that exist."""
    wanted: int = 0
    allowed: int = 0
    """The largest number of pods that may exist now: the larger one of the last two sizes."""
    created: int = 0
    expected: int = 0
    surplus: list[str] = attrs.field(factory=list)
    news: trio.Event = attrs.field(factory=trio.Event)

    async def watch(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Follow the pods without the proxy, event by event."""
        async with self.client.api(Pod, self.namespace).watch() as events:
            task_status.started()
            async for event in events:
                if event.type == "ADDED":
                    self.created += 1
                    self.pods.add(event.object.uid)
                elif event.type == "DELETED":
                    self.pods.discard(event.object.uid)
                if len(self.pods) > self.allowed:
                    self.surplus.append(f"{len(self.pods)} pods instead of {self.allowed}")
                self.news.set()
                self.news = trio.Event()

    async def until_wanted(self) -> None:
        with trio.move_on_after(PATIENCE):
            while len(self.pods) != self.wanted:
                await self.news.wait()

    async def tell(self) -> None:
        """Create, scale and delete a crew, and lose pods of it."""
        chance = random.Random(self.seed)
        crews, pods = self.client.api(ConfigMap, self.namespace), self.client.api(Pod, self.namespace)
        async with trio.open_nursery() as nursery:
            await nursery.start(self.watch)
            for number in range(SIZES + 1):
                size = 0 if number == SIZES else chance.randrange(1, 5)
                self.allowed, self.wanted = max(size, self.wanted), size
                self.expected += max(0, size - len(self.pods))
                if number == SIZES:
                    await crews.delete("crew")
                elif number == 0:
                    metadata = ObjectMeta(name="crew", labels={"crew": "yes"})
                    await crews.create(ConfigMap(metadata=metadata, data={"size": str(size)}))
                else:
                    await crews.patch("crew", {"data": {"size": str(size)}})
                await self.until_wanted()
                if 0 < number < SIZES and chance.random() < 0.5:
                    (lost, *_) = (await pods.list()).items
                    self.expected += 1
                    await pods.delete(lost.name)
                    await trio.sleep(0.1)
                    await self.until_wanted()
            await trio.sleep(2 * DELAY)  # in this time the operator would do more
            nursery.cancel_scope.cancel()


async def tell_stories(control_plane: ControlPlane, tls: ssl.SSLContext, *, reads_own_writes: bool) -> list[Story]:
    config = load_config(kubeconfig=control_plane.kubeconfig)
    async with (
        LateWatches(config, tls).run() as url,
        open_client(config) as direct,
        open_client(ClusterConfig(server=url)) as client,
        trio.open_nursery() as nursery,
    ):
        factory = SharedInformerFactory(client, label_selector="crew=yes")
        crews, pods = factory.informer(ConfigMap), factory.informer(Pod)
        controller = Controller(
            "crews", Operator(client, crews, pods).reconcile, workers=10, reads_own_writes=reads_own_writes
        )
        controller.watch(crews)
        controller.owns(factory, Pod, owner=ConfigMap)
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        stories = [Story(direct, await make_namespace(direct, "own-writes"), seed) for seed in range(STORIES)]
        async with trio.open_nursery() as telling:
            for story in stories:
                telling.start_soon(story.tell)
        nursery.cancel_scope.cancel()
    return stories


@pytest.fixture
def tls(control_plane: ControlPlane, tmp_path: Path) -> ssl.SSLContext:
    """What the proxy needs to be an administrator."""
    config = load_config(kubeconfig=control_plane.kubeconfig)
    context = ssl.create_default_context(cadata=(config.ca_data or b"").decode() or None, cafile=config.ca_file)
    certificate, key = config.client_certificate_file, config.client_key_file
    if config.client_certificate_data is not None and config.client_key_data is not None:
        certificate, key = str(tmp_path / "certificate"), str(tmp_path / "key")
        Path(certificate).write_bytes(config.client_certificate_data)
        Path(key).touch(mode=0o600)
        Path(key).write_bytes(config.client_key_data)
    assert certificate is not None
    context.load_cert_chain(certificate, key)
    return context


async def test_no_pod_is_created_too_many(control_plane: ControlPlane, tls: ssl.SSLContext) -> None:
    stories = await tell_stories(control_plane, tls, reads_own_writes=True)
    assert [story.surplus for story in stories] == [[]] * STORIES
    assert [story.created for story in stories] == [story.expected for story in stories]
    assert [len(story.pods) for story in stories] == [0] * STORIES
    print(f"{sum(story.created for story in stories)} pods in {STORIES} stories, none too many")


async def test_without_the_option_too_many_pods_are_created(
    control_plane: ControlPlane, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.e2e.test_own_writes.PATIENCE", 3 * DELAY)
    stories = await tell_stories(control_plane, tls, reads_own_writes=False)
    wrong = [story for story in stories if story.surplus]
    created, expected = sum(story.created for story in stories), sum(story.expected for story in stories)
    print(f"{len(wrong)} of {STORIES} stories with surplus pods; {created} pods were created instead of {expected}")
    assert wrong
