"""The binding of a pod to a node; e2e/contract/test_pod_subresources.py has what kube-apiserver says, too."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.client import Client
from trioformer.errors import ConflictError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Binding, ObjectReference, Pod
from trioformer.testing import APIServer


async def bind(client: Client, **metadata: Any) -> None:
    binding = Binding(metadata=ObjectMeta(name="web-0", **metadata), target=ObjectReference(kind="Node", name="node-1"))
    await client.api(Pod, "default").create_subresource("web-0", "binding", binding)


def create(api_server: APIServer, **spec: Any) -> dict[str, Any]:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"}, "spec": spec}
    made: dict[str, Any] = api_server.create({**pod, "status": {"phase": "Pending", "nominatedNodeName": "node-2"}})
    return made


async def test_a_bound_pod_is_scheduled(api_server: APIServer, client: Client) -> None:
    made = create(api_server)
    await bind(client, uid=made["metadata"]["uid"], annotations={"a": "b"})
    pod: dict[str, Any] = api_server.get("pods", "web-0")
    assert pod["spec"]["nodeName"] == "node-1"
    assert pod["metadata"]["annotations"] == {"a": "b"}
    (condition,) = pod["status"].pop("conditions")
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("spec", "metadata", "why"),
    [
        ({}, {"uid": "other"}, "Precondition failed"),
        ({"nodeName": "node-2"}, {}, 'pod web-0 is already assigned to node "node-2"'),
        ({"schedulingGates": [{"name": "a"}]}, {}, "pod web-0 has non-empty .spec.schedulingGates"),
    ],
)
async def test_a_pod_that_cannot_be_bound_is_a_conflict(
    api_server: APIServer, client: Client, spec: dict[str, Any], metadata: dict[str, Any], why: str
) -> None:
    create(api_server, **spec)
    with pytest.raises(ConflictError, match=why):
        await bind(client, **metadata)
