"""Every object of a cluster reads the same in protobuf and JSON, from lists and from watches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
import trio

from tests.e2e.manifest_set import write_manifests
from tests.e2e.workloads import deployment, is_rolled_out, make_namespace, stateful_set
from tests.support.messages import differences, field_differences
from trioformer import Client, open_client
from trioformer.client import Api, ClientOptions
from trioformer.errors import NotFoundError
from trioformer.manifests import apply_manifests, delete_manifests, load_manifests
from trioformer.models import KubernetesObject, from_dict, to_dict
from trioformer.models._internal import Message
from trioformer.models._kinds import builtin_kind, builtin_resources
from trioformer.models.apps_v1 import Deployment, StatefulSet
from trioformer.models.batch_v1 import Job
from trioformer.models.core_v1 import ConfigMap, Secret, Service
from trioformer.testing import ControlPlane
from trioformer.watchtools import has_condition, wait_for

T = TypeVar("T", bound=KubernetesObject)

LEAST_KINDS: Final = 40
SHOWN: Final = 30
"""Differences in the text of a failure; each is often in many objects."""
PATIENCE: Final = 600
JOB: Final = {
    "parallelism": 2,
    "completions": 2,
    "template": {
        "spec": {
            "nodeName": "node-1",
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox"}],
        }
    },
}


async def create(client: Client, size: int) -> None:
    """Create objects in a new namespace, and wait until the controllers have created theirs."""
    namespace = await make_namespace(client, "encodings")
    limiter = trio.CapacityLimiter(20)

    async def create_one(kind: type[KubernetesObject], name: str, content: dict[str, Any]) -> None:
        async with limiter:
            made = from_dict(kind, {"metadata": {"name": name, "labels": {"app": name}}, **content})
            await client.api(kind, namespace=namespace).create(made)

    sets, deployments = client.api(StatefulSet, namespace=namespace), client.api(Deployment, namespace=namespace)
    await deployments.create(deployment("web", replicas=size))
    await sets.create(stateful_set("data", replicas=size // 20))
    async with trio.open_nursery() as nursery:
        for number in range(size // 4):
            nursery.start_soon(create_one, ConfigMap, f"c{number}", {"data": {"a": "1"}, "binaryData": {"b": "AP8="}})
            nursery.start_soon(create_one, Secret, f"s{number}", {"data": {"a": "AP8="}})
            nursery.start_soon(create_one, Service, f"s{number}", {"spec": {"ports": [{"port": 80}]}})
        nursery.start_soon(create_one, Job, "job", {"spec": JOB})
    await wait_for(deployments, "web", is_rolled_out)
    await wait_for(sets, "data", is_rolled_out)
    await wait_for(client.api(Job, namespace=namespace), "job", has_condition("Complete"))


async def listed(apis: tuple[Api[T], Api[T]]) -> tuple[list[T], list[T]]:
    """List the objects of one moment in both encodings."""
    messages = await apis[0].list()
    return list(messages), list(
        await apis[1].list(resource_version=messages.resource_version, resource_version_match="Exact")
    )


async def watched(api: Api[T], count: int) -> dict[tuple[str, str], T]:
    """Return the objects that a watch begins with, by uid and resourceVersion."""
    found: list[T] = []
    async with api.watch() as events:
        while len(found) < count:
            found.append((await anext(events)).object)
    return {(obj.uid, obj.resource_version): obj for obj in found}


def all_differences(one: KubernetesObject, other: KubernetesObject) -> Iterator[str]:
    """Return a line for each difference between an object from protobuf and the same state of it from JSON."""
    name = f"{one.kind} {one.key} "
    if type(one._origin) is not Message or type(other._origin) is Message:
        yield f"{name} has the wrong encoding"
    if not (one == other and other == one and hash(one) == hash(other) and hash(one.metadata) == hash(other.metadata)):
        yield f"{name} is not equal"
    yield from differences(to_dict(one), to_dict(other), f"{name} to_dict ")
    yield from field_differences(one, other, f"{name} ")


async def check_kind(apis: tuple[Api[T], Api[T]]) -> tuple[int, list[str]]:
    """Return the number of objects of a kind, and the differences between their encodings."""
    messages, texts = await listed(apis)
    found = [line for one, other in zip(messages, texts, strict=True) for line in all_differences(one, other)]
    if messages and "watch" in apis[0].resource.verbs:
        changes = [await watched(api, len(messages)) for api in apis]
        pairs = [(one, changes[1][key]) for key, one in changes[0].items() if key in changes[1]]
        found += [line for one, other in pairs for line in all_differences(one, other)]
        same = [
            (changes[1][key], each) for each in messages if (key := (each.uid, each.resource_version)) in changes[1]
        ]
        found += [
            f"{one.key} of a watch: {line}" for one, other in same for line in differences(to_dict(one), to_dict(other))
        ]
        if not pairs:
            found.append(f"{apis[0].resource.kind}: the two watches have no state in common")
    return len(messages), found


@pytest.mark.parametrize("size", [100, pytest.param(1_000, marks=pytest.mark.long)])
async def test_every_object_of_a_cluster_is_the_same_in_both_encodings(
    cluster: ControlPlane, tmp_path: Path, size: int
) -> None:
    write_manifests(tmp_path / "set")
    manifests = load_manifests(tmp_path / "set", recursive=True)
    protobuf, json = (ClientOptions(protobuf=each, warning_handler=lambda _: None) for each in (True, False))
    kinds: dict[str, int] = {}
    found: list[str] = []
    with trio.fail_after(PATIENCE):
        async with (
            open_client(kubeconfig=cluster.kubeconfig, options=protobuf) as client,
            open_client(kubeconfig=cluster.kubeconfig, options=json) as other,
        ):
            await apply_manifests(client, manifests, field_manager="encodings")
            await create(client, size)
            for info in builtin_resources(beta=True):
                if "list" not in info.verbs or info.kind == "ComponentStatus":
                    continue
                kind = builtin_kind(info.api_version, info.kind)
                try:
                    count, lines = await check_kind((client.api(kind), other.api(kind)))
                except NotFoundError:  # a beta version that is not enabled
                    continue
                found += lines
                kinds[f"{info.api_version} {info.kind}"] = count
            await delete_manifests(client, manifests)
    with_objects = [kind for kind, count in kinds.items() if count]
    print(f"{sum(kinds.values())} objects of {len(with_objects)} kinds; no object of", kinds.keys() - with_objects)
    assert found[:SHOWN] == []
    assert len(with_objects) >= LEAST_KINDS
    assert sum(kinds.values()) >= 2 * size
