"""Types of clients and patches; checked by mypy and pyright, never executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, assert_type

import trio

from trioformer import Client, ClusterConfig, SharedInformerFactory, load_config, open_client
from trioformer.client import Api, ClientOptions, ObjectList, WatchEvent
from trioformer.client._patch import PatchType
from trioformer.client._raw import Health, HealthCheck, RawResponse
from trioformer.errors import ApplyConflictError, ConfigError, LimitExceededError, StatusError, UnexpectedResponseError
from trioformer.errors._base import ConfigProblem
from trioformer.errors._status import FieldConflict
from trioformer.kubeconfig import ConfigOverrides, ExecConfig, Impersonation
from trioformer.models import KubernetesObject, PartialObjectMetadata, Unstructured, extract, merge_patch
from trioformer.models.apps_v1 import Deployment
from trioformer.models.authentication_v1 import TokenRequest
from trioformer.models.autoscaling_v1 import Scale
from trioformer.models.core_v1 import Binding, ConfigMap, Node, Pod, Service, ServiceAccount
from trioformer.models.policy_v1 import Eviction
from trioformer.pods import (
    PodProcess,
    attach_to_pod,
    connect_port,
    copy_from_pod,
    copy_to_pod,
    evict_pods,
    exec_in_pod,
    follow_logs,
    follow_logs_of,
    forward_port,
    interact,
    read_logs,
    run_in_pod,
)
from trioformer.pods._log_lines import LogLine
from trioformer.pods._port_forward import PortForward
from trioformer.transport import (
    Limits,
    ObservedRequest,
    PluginPolicy,
    RequestObserver,
    RequestRateLimiter,
    ServerWarning,
    TokenBucketRateLimiter,
)


async def patches(
    client: Client,
    merge: Mapping[str, object],
    operations: Sequence[Mapping[str, object]],
    merge_type: Literal["merge", "strategic"],
) -> None:
    _: PatchType = merge_type
    deployments = client.api(Deployment, namespace="default")
    assert_type(await deployments.patch("web", merge), Deployment)
    assert_type(await deployments.patch("web", {"spec": {"replicas": 2}}, field_manager="me"), Deployment)
    assert_type(await deployments.patch("web", merge, patch_type="strategic", subresource="status"), Deployment)
    assert_type(await deployments.patch("web", merge, patch_type=merge_type), Deployment)
    assert_type(await deployments.patch("web", operations, patch_type="json"), Deployment)
    await deployments.patch("web", [{"op": "remove", "path": "/spec/paused"}], patch_type="json")

    await deployments.patch("web", operations)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]  # a list is a JSON patch
    await deployments.patch("web", merge, patch_type="json")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]  # a mapping is not one
    await deployments.patch("web", merge, patch_type="apply")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]  # there is no such type


async def subresources(client: Client, merge: Mapping[str, object], name: str) -> None:
    deployments = client.api(Deployment, namespace="default")
    assert_type(await deployments.get("web"), Deployment)
    assert_type(await deployments.get("web", subresource="status"), Deployment)
    assert_type(await deployments.get("web", subresource="scale"), Scale)
    assert_type(await deployments.get("web", subresource=name), Deployment | Scale | Unstructured)
    assert_type(await deployments.patch("web", merge, subresource="scale"), Scale)
    assert_type(await deployments.patch("web", [], patch_type="json", subresource="scale"), Scale)
    assert_type(await deployments.patch("web", merge, subresource=name), Deployment | Scale | Unstructured)
    pods = client.api(Pod, namespace="default")
    assert_type(await pods.create_subresource("web-0", "eviction", Eviction()), Eviction)
    assert_type(await client.api(Binding, namespace="default").create(Binding()), Binding)


async def servers(client: Client) -> None:
    deployments = client.api(Deployment)
    await deployments.wait_to_retry(until=1.5)
    async with deployments.watch(resumable=True) as events:
        assert_type(await events.receive_batch(), list[WatchEvent[Deployment]])


class Gate:
    """A rate limiter of a program."""

    async def wait(self) -> None:
        await trio.sleep(1)


class Requests:
    """An observer of a program."""

    def request_started(self, request: ObservedRequest) -> None:
        assert_type((request.verb, request.path, request.resource, request.name), tuple[str, str, str, str])

    def request_ended(self, request: ObservedRequest) -> None:
        assert_type(request.code, int | None)
        assert_type((request.duration, request.bytes, request.attempt), tuple[float, int, int])


async def observers() -> None:
    observer: RequestObserver = Requests()
    async with open_client(observer=observer), open_client(observer=Requests()):
        pass


async def options() -> None:
    limiter: RequestRateLimiter = TokenBucketRateLimiter(qps=5, burst=10)
    async with open_client(
        rate_limiter=limiter, options=ClientOptions(compression=True, warning_handler=print)
    ) as client:
        assert_type(client.impersonating("jane"), Client)
        client.impersonating("jane", groups=["dev"], uid="7", extra={"scopes": ("view",)})
    async with open_client(rate_limiter=Gate(), options=ClientOptions(warning_handler=warn)):
        pass
    assert_type(StatusError("", code=403).request_id, str)
    assert_type(UnexpectedResponseError("", code=200).request_id, str)


def warn(warning: ServerWarning) -> None:
    assert_type((warning.text, warning.agent, warning.where, warning.server), tuple[str, str, str, str])


async def limits() -> None:
    async with open_client(
        rate_limiter=TokenBucketRateLimiter(qps=50, burst=100),
        options=ClientOptions(limits=Limits(object_bytes=1_000_000)),
    ) as client:
        assert_type(client, Client)
    assert_type(Limits().object_bytes, int)
    policy = PluginPolicy(policy="Allowlist", allowlist=["aws"], patience=30)
    async with open_client(options=ClientOptions(plugin_policy=policy)) as client:
        assert_type(policy.allowlist, tuple[str, ...] | None)
    assert_type(LimitExceededError("", limit="headers").limit, str)


async def configurations() -> None:
    overrides = ConfigOverrides(server="https://h", ca_file=Path("ca.crt"), impersonate=Impersonation(user="jane"))
    assert_type(overrides.ca_file, str | None)
    async with open_client(context="dev", overrides=overrides) as client:
        assert_type(client.config.exec, ExecConfig | None)
    try:
        assert_type(load_config(overrides=overrides), ClusterConfig)
    except ConfigError as exc:
        assert_type(exc.problems, tuple[ConfigProblem, ...])


async def writes(client: Client, old: Pod, new: Pod) -> None:
    pods = client.api(Pod, "default")
    assert_type(await pods.apply(new, field_manager="me", force=True, dry_run=True), Pod)
    assert_type(await pods.apply({"metadata": {"name": "a"}}, subresource="status"), Pod)
    assert_type(await pods.update(old, new, optimistic_lock=True), Pod)
    assert_type(await pods.update_status(old, new, field_validation="Strict"), Pod)
    assert_type(await pods.update_with_retry("a", lambda pod: pod), Pod)
    assert_type(await pods.exists("a"), bool)
    assert_type(await pods.get_or_none("a"), Pod | None)
    assert_type(await client.create(new, dry_run=True), Pod)
    assert_type(await client.apply(new), Pod)
    assert_type(await client.apply({"apiVersion": "v1", "kind": "Pod"}), KubernetesObject)
    assert_type(await pods.patch(new, {"metadata": {}}), Pod)
    assert_type(await pods.patch(new, [{"op": "remove", "path": "/a"}], patch_type="json"), Pod)
    assert_type(await client.delete(new), Pod | None)
    assert_type(extract(old, field_manager="me"), Pod)
    assert_type(merge_patch(old, new), dict[str, object])
    assert_type(merge_patch({"a": 1}, {"b": 2}), dict[str, object])
    assert_type(ApplyConflictError("", code=409).conflicts, tuple[FieldConflict, ...])
    await pods.patch(new, {"metadata": {}}, patch_type="json")  # type: ignore[call-overload]
    await pods.update(old, Node())  # type: ignore[arg-type]
    await pods.create(new, field_validation="strict")  # type: ignore[arg-type]


async def requests(client: Client, pods: Api[Pod], accounts: Api[ServiceAccount], config_maps: Api[ConfigMap]) -> None:
    assert_type(await client.request("GET", "/version", params={"a": ["b"], "c": 1, "d": None}), RawResponse)
    assert_type((await client.request("POST", "/x", body={"a": 1})).json(), object)
    async with client.stream("GET", "/log", endless=True) as stream:
        assert_type(await stream.receive_some(), bytes)
        assert_type([chunk async for chunk in stream], list[bytes])
        assert_type([line async for line in stream.lines()], list[str])
    assert_type(await client.health("livez", exclude=["etcd"]), Health)
    assert_type((await client.health()).checks, tuple[HealthCheck, ...])
    async for page in pods.pages():
        assert_type(page, ObjectList[Pod])
    assert_type(await pods.delete_collection(label_selector={"a": "b"}), ObjectList[PartialObjectMetadata])
    assert_type(await config_maps.scale("a", 1), Scale)
    assert_type(await config_maps.replace_subresource("a", "scale", Scale()), Scale)
    assert_type(await config_maps.apply_subresource("a", "scale", Scale(), force=True), Scale)
    await pods.evict("web-0")
    assert_type(await accounts.create_token("robot", audiences=["a"]), TokenRequest)

    await config_maps.evict("a")  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # not pods
    await pods.create_token("a")  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # not accounts


async def logs(client: Client) -> None:
    pods = client.api(Pod, namespace="default")
    assert_type(await read_logs(pods, "web-0", container="main", since=timedelta(minutes=5), tail_lines=10), str)
    async with follow_logs(pods, "web-0", since="2026-01-31T12:00:00Z") as lines:
        async for line in lines:
            assert_type(line, LogLine)
            assert_type(line.text, str)
            assert_type(line.data, bytes)
            assert_type(line.time, datetime | None)
        assert_type(await lines.receive_batch(), list[LogLine])
    await read_logs(client.api(Node), "node-1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # only pods have logs


async def processes(client: Client) -> None:
    pods = client.api(Pod, namespace="default")
    async with exec_in_pod(pods, "web-0", ["cat"], stdin=True, terminal_size=(80, 24), tty=True) as process:
        assert_type(process, PodProcess)
        assert_type(process.exit_code, int | None)
        assert_type(await process.wait(), int)
        assert_type(await interact(process), int)
    async with attach_to_pod(pods, "web-0", container="main") as process:
        assert_type(process, PodProcess)
    done = await run_in_pod(pods, "web-0", ["ls"], input="x", check=False)
    assert_type(done.stdout, bytes)
    assert_type(done.text, str)

    assert_type((await copy_to_pod(pods, "web-0", Path("site"), "/srv")).files, int)
    result = await copy_from_pod(pods, "web-0", "/srv", "site", container="main")
    assert_type(result.skipped, Mapping[str, str])
    exec_in_pod(client.api(Node), "node-1", ["ls"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # only pods have processes


async def ports(client: Client) -> None:
    services = client.api(Service, namespace="default")
    async with forward_port(services, "web", "http", address=["127.0.0.1", "::1"], on_error=print) as forward:
        assert_type(forward, PortForward)
        assert_type(forward.port, int)
        assert_type(forward.url, str)
    async with connect_port(client.api(Pod), "web-0", 80, namespace="default") as stream:
        assert_type(stream, trio.abc.HalfCloseableStream)
        assert_type(await stream.receive_some(), bytes | bytearray)


async def logs_of_pods(client: Client, factory: SharedInformerFactory) -> None:
    async with follow_logs_of(client.api(Pod), label_selector={"app": "web"}, factory=factory) as logs:
        async for line in logs:
            assert_type(line, LogLine)
    follow_logs_of(client.api(Node))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # only pods have logs


async def evictions(client: Client) -> None:
    def show(pod: Pod, reason: str) -> None: ...

    evicted = await evict_pods(client.api(Pod), node="node-1", on_progress=lambda e: show(e.pod, e.reason))
    assert_type(evicted, tuple[Pod, ...])
    await evict_pods(client.api(Node), node="node-1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # only pods are evicted
