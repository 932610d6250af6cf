"""Type assertions about the doors for asyncio and for threads; mypy and pyright check them, and nothing runs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import assert_type

from trioformer import Client, aio, sync
from trioformer.cache import InformerState, Notification, Updated
from trioformer.client import Api, ObjectList, WatchEvent
from trioformer.client._raw import Health, RawResponse
from trioformer.controller import Controller, Request
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import KubernetesObject, PartialObjectMetadata, ResourceInfo, Unstructured
from trioformer.models.apps_v1 import Deployment
from trioformer.models.authentication_v1 import TokenRequest
from trioformer.models.autoscaling_v1 import Scale
from trioformer.models.core_v1 import Pod, ServiceAccount
from trioformer.pods import follow_logs, forward_port, read_logs
from trioformer.pods._log_lines import LogLine


async def count(client: Client, kind: type[KubernetesObject], *, limit: int = 0) -> int:
    return len(await client.api(kind).list())


async def names(pods: Api[Pod]) -> list[str]:
    return [pod.name async for page in pods.pages() for pod in page]


async def clients_of_asyncio(name: str, deployment: Deployment) -> None:
    async with aio.open_client(context="dev") as client:
        assert_type(client, aio.Client)
        assert_type(client.config, ClusterConfig)
        assert_type(client.api(Pod), aio.Api[Pod])
        assert_type(client.api("deploy", "default"), aio.Api[KubernetesObject])
        assert_type(client.impersonating("jane", groups=["dev"]), aio.Client)
        assert_type(await client.discover("widgets.example.com"), type[KubernetesObject])
        assert_type(await client.discover("example.com/v1", "Widget"), type[Unstructured])
        assert_type(await client.create(deployment, dry_run=True), Deployment)
        assert_type(await client.apply({"kind": "Pod"}), KubernetesObject)
        assert_type(await client.delete(deployment), Deployment | None)
        assert_type(await client.request("GET", "/version"), RawResponse)
        assert_type(await client.health(), Health)
        async with client.stream("GET", "/log", endless=True) as stream:
            assert_type(await stream.receive_some(), bytes)
            assert_type([chunk async for chunk in stream], list[bytes])
            assert_type([line async for line in stream.lines()], list[str])
        assert_type(await client.run(count, Pod, limit=5), int)
        await client.run(count)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # which kind?
        await client.run(count, "Pod")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # a class
        client.http()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # only in trio
        aio.Client()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # open_client() opens it


async def apis_of_asyncio(client: aio.Client, name: str, pod: Pod, accounts: aio.Api[ServiceAccount]) -> None:
    pods, deployments = client.api(Pod), client.api(Deployment, namespace="default")
    assert_type((pods.kind, pods.resource, pods.namespace), tuple[type[Pod], ResourceInfo, str | None])
    assert_type(await deployments.get("web"), Deployment)
    assert_type(await deployments.get("web", subresource="status"), Deployment)
    assert_type(await deployments.get("web", subresource="scale"), Scale)
    assert_type(await deployments.get("web", subresource=name), Deployment | Scale | Unstructured)
    assert_type(await pods.get_or_none("web-0"), Pod | None)
    assert_type(await pods.exists(pod), bool)
    assert_type(await pods.list(label_selector="app=web"), ObjectList[Pod])
    assert_type(pods.pages(), AsyncIterator[ObjectList[Pod]])
    assert_type([page async for page in pods.pages()], list[ObjectList[Pod]])
    async with pods.watch(resource_version="5", allow_bookmarks=True) as events:
        assert_type(events, aio.WatchStream[Pod])
        assert_type([event async for event in events], list[WatchEvent[Pod]])
        assert_type(await events.receive_batch(), list[WatchEvent[Pod]])
    assert_type(await pods.patch("web-0", {"metadata": {}}), Pod)
    assert_type(await deployments.patch("web", [], patch_type="json", subresource="scale"), Scale)
    assert_type(await pods.update_with_retry("web-0", lambda pod: pod, tries=2), Pod)
    assert_type(await pods.delete_collection(everything=True), ObjectList[PartialObjectMetadata])
    assert_type(await accounts.create_token("robot"), TokenRequest)
    await pods.evict("web-0")
    assert_type(await pods.run(names), list[str])
    assert_type(await pods.run(read_logs, "web-0", tail_lines=10), str)
    async with pods.open(follow_logs, "web-0") as lines:
        assert_type([line async for line in lines], list[LogLine])
        assert_type(await lines.receive_batch(), list[LogLine])

    await deployments.evict("web")  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # not pods
    await deployments.run(read_logs, "web")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await pods.create(Deployment())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await pods.patch("web-0", [])  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    async for _ in pods.watch():  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues]  # not open
        pass


async def caches_of_asyncio(client: aio.Client) -> None:
    async with aio.open_cache(Pod, client=client, indexers={"nodes": lambda pod: [pod.spec.node_name or ""]}) as pods:
        assert_type(pods, aio.Cache[Pod])
        await pods.wait_until_synced()
        assert_type(pods.list(label_selector={"app": "web"}), tuple[Pod, ...])
        assert_type(pods.get("web-0", namespace="default", allow_stale=True), Pod | None)
        assert_type(pods["default/web-0"], Pod)
        assert_type(pods.by_index("nodes", "n1"), tuple[Pod, ...])
        for pod in pods:
            assert_type(pod, Pod)
        assert_type((pods.state, pods.has_synced), tuple[InformerState, bool])
        async for notification in pods.subscribe(overflow="coalesce"):
            assert_type(notification, Notification[Pod])
            if isinstance(notification, Updated):
                assert_type(notification.old, Pod)
        pods.get(Deployment())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # not a pod
    assert_type(await aio.start_cache(Pod, context="dev"), aio.Cache[Pod])


async def start_pods(context: aio.ManagerContext) -> Controller:
    async def reconcile(request: Request) -> None:
        assert_type(await context.client.api(Pod).get_or_none(request), Pod | None)

    assert_type(context.client, aio.Client)
    controller = Controller(context.name, reconcile)
    controller.watch(context.factory.informer(Pod))
    return controller


async def controllers_of_asyncio(client: aio.Client, trio_client: Client) -> None:
    await aio.run_controllers(client, {"pods": start_pods}, stop=asyncio.Event())
    await aio.run_controllers(trio_client, {})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def clients_of_threads(deployment: Deployment) -> None:
    with sync.open_client(context="dev") as client:
        assert_type(client, sync.Client)
        assert_type(client.config, ClusterConfig)
        assert_type(client.api(Pod), sync.Api[Pod])
        assert_type(client.api("deploy", "default"), sync.Api[KubernetesObject])
        assert_type(client.impersonating("jane"), sync.Client)
        assert_type(client.discover("example.com/v1", "Widget"), type[Unstructured])
        assert_type(client.create(deployment), Deployment)
        assert_type(client.request("GET", "/version"), RawResponse)
        with client.stream("GET", "/log", endless=True) as stream:
            assert_type(stream.receive_some(), bytes)
            assert_type(list(stream), list[bytes])
            assert_type(list(stream.lines()), list[str])
        assert_type(client.run(count, Pod, limit=5), int)
        client.run(count, "Pod")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # a class
        client.http()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # only in trio


def apis_of_threads(client: sync.Client, name: str, accounts: sync.Api[ServiceAccount]) -> None:
    pods, deployments = client.api(Pod), client.api(Deployment, namespace="default")
    assert_type(deployments.get("web"), Deployment)
    assert_type(deployments.get("web", subresource="scale"), Scale)
    assert_type(deployments.get("web", subresource=name), Deployment | Scale | Unstructured)
    assert_type(pods.list(label_selector="app=web"), ObjectList[Pod])
    assert_type(pods.pages(), Iterator[ObjectList[Pod]])
    with pods.watch(resource_version="5") as events:
        assert_type(events, sync.WatchStream[Pod])
        assert_type(list(events), list[WatchEvent[Pod]])
        assert_type(events.receive_batch(), list[WatchEvent[Pod]])
    assert_type(accounts.create_token("robot"), TokenRequest)
    pods.evict("web-0")
    assert_type(pods.run(read_logs, "web-0", tail_lines=10), str)
    with pods.open(follow_logs, "web-0") as lines:
        assert_type(lines, Iterator[LogLine])
    with pods.open(forward_port, "web-0", 80) as forward:
        assert_type(forward.url, str)

    deployments.evict("web")  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # not pods
    deployments.open(follow_logs, "web")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    for _ in pods.watch():  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues]  # not open
        pass


def caches_of_threads(client: sync.Client) -> None:
    with sync.open_cache(Pod, client=client, namespace="default") as pods:
        assert_type(pods, sync.Cache[Pod])
        pods.wait_until_synced()
        assert_type(pods.list(label_selector={"app": "web"}), tuple[Pod, ...])
        assert_type(pods.get("web-0", allow_stale=True), Pod | None)
        for notification in pods.subscribe():
            assert_type(notification, Notification[Pod])
    assert_type(sync.start_cache(Pod, context="dev"), sync.Cache[Pod])
