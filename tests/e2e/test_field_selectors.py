"""Field selectors of a lister against kube-apiserver, which decides what each of them means."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest
import trio

from trioformer import Client, SharedInformerFactory, load_config, open_client
from trioformer.cache import Lister
from trioformer.errors import SelectorError
from trioformer.models import KubernetesObject, from_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.models.batch_v1 import Job
from trioformer.models.core_v1 import ConfigMap, Namespace, Node, Pod, ReplicationController, Secret, Service
from trioformer.models.events_v1 import Event as NewEvent
from trioformer.models.rbac_v1 import ClusterRole
from trioformer.testing import ControlPlane

Result: TypeAlias = "frozenset[str] | str"
"""Names, or that the selector was refused."""
REFUSED = "refused"


async def selected(client: Client, path: str, **params: str) -> Result:
    """Ask the server directly: the client checks selectors itself."""
    response = await client._transport.request("GET", path, params=params)
    if response.code == 400:
        return REFUSED
    return frozenset(item["metadata"]["name"] for item in json.loads(bytes(response.body))["items"])


def result_of(lister: Lister[Any], **options: str) -> Result:
    try:
        return frozenset(obj.name for obj in lister.list(**options))
    except SelectorError:
        return REFUSED


@asynccontextmanager
async def namespace(client: Client, name: str) -> AsyncIterator[str]:
    await client.api(Namespace).create(made(Namespace, name, labels={"run": name}))
    try:
        yield name
    finally:
        with trio.CancelScope(shield=True):
            await client.api(Namespace).delete(name)


def made(kind: type[KubernetesObject], name: str, *, labels: Mapping[str, str], **more: Any) -> Any:
    return from_dict(kind, {"metadata": {"name": name, "labels": labels}, **more})


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client:
        yield client


CONTAINERS = [{"name": "main", "image": "busybox"}]
JOB = {"template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}
DEPLOYMENT = {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}
EVENT = {
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "me",
    "reportingInstance": "me-0",
    "action": "Do",
    "reason": "Started",
    "type": "Normal",
}

FIELD_OBJECTS: Mapping[type[KubernetesObject], Mapping[str, Mapping[str, Any]]] = {
    Pod: {
        "a": {"spec": {"containers": CONTAINERS, "nodeName": "selectors-1"}},
        "b": {"spec": {"containers": CONTAINERS, "hostNetwork": True, "restartPolicy": "Never"}},
        "c": {"spec": {"containers": CONTAINERS, "nodeName": "selectors-2", "schedulerName": "mine"}},
        "d": {"spec": {"containers": CONTAINERS, "nodeName": "selectors-1"}},
    },
    ConfigMap: {"a": {}, "b": {"data": {"x": "y"}}},
    Secret: {"a": {"type": "example.com/x"}, "b": {}},
    Service: {
        "a": {"spec": {"clusterIP": "None", "ports": [{"port": 1}]}},
        "b": {"spec": {"type": "ExternalName", "externalName": "x.example.com"}},
    },
    Job: {"a": {"spec": JOB}, "b": {"spec": JOB}},
    Deployment: {
        "a": {"spec": {**DEPLOYMENT, "template": {**DEPLOYMENT["template"], "spec": {"containers": CONTAINERS}}}}
    },
    ReplicationController: {
        "a": {
            "spec": {
                "replicas": 1,
                "selector": {"x": "y"},
                "template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": CONTAINERS}},
            }
        }
    },
    NewEvent: {
        "a": {**EVENT, "regarding": {"kind": "Pod", "name": "a", "namespace": "field-selectors", "apiVersion": "v1"}},
        "b": {**EVENT, "reason": "Stopped", "regarding": {"kind": "Pod", "name": "b", "namespace": "field-selectors"}},
    },
    Node: {"selectors-1": {}, "selectors-2": {"spec": {"unschedulable": True}}},
    ClusterRole: {"selectors-1": {}, "selectors-2": {}},
    Namespace: {},
}
STATUSES: Mapping[tuple[type[KubernetesObject], str], Mapping[str, Any]] = {
    (Pod, "a"): {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]},
    (Pod, "d"): {"phase": "Failed"},
    (Pod, "b"): {"nominatedNodeName": "selectors-2"},
    (ReplicationController, "a"): {"replicas": 3},
}

FIELD_SELECTORS: Mapping[type[KubernetesObject], Sequence[str]] = {
    Pod: [
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name!=a",
        "metadata.name= a",
        "metadata.name=a,metadata.name=b",
        "metadata.name!=a,metadata.name!=b,",
        "metadata.namespace=field-selectors",
        "metadata.namespace!=field-selectors",
        "metadata.namespace=other,metadata.name=a",
        "spec.nodeName=selectors-1",
        "spec.nodeName=",
        "spec.nodeName!=",
        "spec.host=selectors-2",
        "spec.restartPolicy=Never",
        "spec.schedulerName!=default-scheduler",
        "spec.hostNetwork=true",
        "spec.hostNetwork=false",
        "spec.hostNetwork=",
        "spec.serviceAccountName=",
        "status.phase=Running",
        "status.phase!=Running,spec.nodeName=selectors-1",
        "status.phase=Pending",
        "status.podIP=10.0.0.7",
        "status.podIP=",
        "status.podIPs=10.0.0.7",
        "status.podIPs!=10.0.0.7",
        "status.nominatedNodeName=selectors-2",
        "status.reason=x",
        "spec.containers=x",
        "metadata.labels=x",
        "metadata.uid=x",
        "metadata.name",
        "metadata.name=a=b",
        "metadata.name =a",
        r"metadata.name=\a",
        r"metadata.name=\,",
    ],
    ConfigMap: ["metadata.name=b", "metadata.namespace!=x", "data=x", "spec.nodeName="],
    Secret: ["type=example.com/x", "type!=Opaque", "type=Opaque,metadata.name=b", "data=x"],
    Service: ["spec.clusterIP=None", "spec.type=ExternalName", "spec.type!=ClusterIP", "spec.externalName=x"],
    Job: ["status.successful=0", "status.successful!=0", "status.succeeded=0"],
    Deployment: ["metadata.name=a", "status.replicas=0"],
    ReplicationController: ["status.replicas=3", "status.replicas=1", "spec.replicas=1"],
    NewEvent: ["regarding.name=a", "reason!=Started", "reportingController=me,type=Normal", "involvedObject.name=a"],
    Node: ["spec.unschedulable=true", "spec.unschedulable=false", "metadata.name=selectors-1", "metadata.namespace="],
    ClusterRole: ["metadata.name=selectors-2", "metadata.namespace=", "metadata.namespace=x", "rules=x"],
    Namespace: ["metadata.name=field-selectors", "status.phase=Active", "status.phase!=Active", "metadata.namespace="],
}


async def test_fields_select_what_the_server_selects(client: Client, nursery: trio.Nursery) -> None:
    expected: dict[tuple[str, str], Result] = {}

    async with namespace(client, "field-selectors") as place, away_with_cluster_objects(client):
        await create_all(client, place)
        factory = SharedInformerFactory(client, label_selector=f"run={place}")
        listers = {kind: factory.informer(kind).lister for kind in FIELD_SELECTORS}
        await nursery.start(factory.run)
        for kind, selectors in FIELD_SELECTORS.items():
            path = kind.__resource__.path(namespace=place if kind.__resource__.namespaced else None)
            for selector in selectors:
                expected[kind.__name__, selector] = await selected(
                    client, path, labelSelector=f"run={place}", fieldSelector=selector
                )
        actual = {
            (kind.__name__, selector): result_of(listers[kind], field_selector=selector)
            for kind, selectors in FIELD_SELECTORS.items()
            for selector in selectors
        }
        nursery.cancel_scope.cancel()
    assert actual == expected
    assert 15 <= list(expected.values()).count(REFUSED) <= 30
    assert sum(result != REFUSED and len(result) > 0 for result in expected.values()) >= 30


async def create_all(client: Client, place: str) -> None:
    for kind, objects in FIELD_OBJECTS.items():
        api = client.api(kind, namespace=place if kind.__resource__.namespaced else None)
        for name, more in objects.items():
            await api.create(made(kind, name, labels={"run": place}, **more))
            if (kind, name) in STATUSES:
                await api.patch(name, {"status": STATUSES[kind, name]}, subresource="status")


@asynccontextmanager
async def away_with_cluster_objects(client: Client) -> AsyncIterator[None]:
    """Delete at the end what no namespace takes away with it."""
    try:
        yield
    finally:
        with trio.CancelScope(shield=True):
            for kind in (Node, ClusterRole):
                for obj in await client.api(kind).list(label_selector="run=field-selectors"):
                    await client.api(kind).delete(obj.name)
