"""A lister's selectors against kubectl's answers: the real kube-apiserver decides what a selector means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs
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


@attrs.define(eq=False)
class Kubectl:
    """Asks the control plane what a selector selects; a few at a time, for each is a process."""

    program: Path
    kubeconfig: Path
    home: Path
    limit: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(3))

    async def selected(self, *arguments: str) -> Result:
        command = [str(self.program), "get", *arguments, "--output=name"]
        environment = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)}
        async with self.limit:
            done = await trio.run_process(
                command, capture_stdout=True, capture_stderr=True, env=environment, check=False
            )
        if done.returncode:
            errors = done.stderr.decode()
            refusals = (
                "unable to parse",
                "unable to find",
                "not supported",
                "not a known field",
                "invalid",
                "BadRequest",
            )
            assert any(word in errors for word in refusals), f"kubectl failed for another reason: {errors}"
            return REFUSED
        return frozenset(line.rpartition("/")[2] for line in done.stdout.decode().split())


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


# --- labels ---

LABELS: Sequence[Mapping[str, str]] = [
    {
        **({"app": app} if app else {}),
        **({"tier": tier} if tier else {}),
        **({"shard": shard} if shard else {}),
        **extra,
    }
    for app, tier, shard, extra in [
        *((app, tier, "", {}) for app in ("web", "db", "") for tier in ("front", "back", "")),
        *(("web", "front", shard, {}) for shard in ("0", "3", "10", "2", "x", "007", "9223372036854775807")),
        *(("", "", "", {"canary": value}) for value in ("", "true", "A_b.C-9")),
        *(("db", "", "", {"example.com/owner": owner}) for owner in ("me", "you", "")),
        *(("", "back", "5", {"in": "notin", "exists": value}) for value in ("in", "x" * 63)),
        *(("cache", tier, "2", {"app.kubernetes.io/name": "redis"}) for tier in ("", "front")),
        ("Web", "", "", {}),
        ("web", "", "", {"canary": ""}),
        ("", "", "", {"a" * 63: "b"}),
        ("db", "back", "4", {"canary": "true", "example.com/owner": "me"}),
    ]
]

LABEL_SELECTORS = [
    "app=web",
    "app==web",
    "app = web",
    "app!=web",
    "app",
    "!app",
    "! app",
    "app=",
    "canary=",
    "canary!=",
    "app=web,tier=front",
    " app = web ,  tier\t!= front ",
    "app=web,app=db",
    "app=web,app!=db,!tier",
    "app in (web)",
    "app in (web,db)",
    "app in ( web , db )",
    "app in(web,db),tier in(front)",
    "app notin (web,db)",
    "app notin (web),tier",
    "canary in ()",
    "canary in (,true)",
    "canary in (true,)",
    "canary notin ()",
    "app,tier,!shard",
    "shard>2",
    "shard > 2",
    "shard<5",
    "shard>2,shard<10",
    "shard<0",
    "shard>06",
    "example.com/owner",
    "example.com/owner=me",
    "example.com/owner in (me,you),app=db",
    "!example.com/owner,app=db",
    "app.kubernetes.io/name=redis,tier!=front",
    "in",
    "in in (notin)",
    "in notin (in)",
    "exists",
    "exists=in",
    "app=Web",
    f"exists={'x' * 63}",
    f"{'a' * 63}=b",
    "app notin (web,db),!canary,!shard,!example.com/owner",
    "canary=A_b.C-9",
    "",
]

REFUSED_LABEL_SELECTORS = [
    "app=web=x",
    "app===web",
    "app=web,",
    ",app=web",
    "app in web",
    "app in (web",
    "app in",
    "app notin web,db",
    "!app=web",
    "a b",
    "app=-web",
    "app=we!b",
    "-app=web",
    "Example.com/owner=me",
    "a/b/c=d",
    "/owner=me",
    f"{'a' * 64}=b",
    f"app={'x' * 64}",
    "shard>two",
    "shard>-3",
    "shard>9223372036854775808",
    "shard>",
    "app gt 1",
    "(app)",
    "=web",
]


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client:
        yield client


@pytest.fixture
def kubectl(assets: Path, control_plane: ControlPlane, tmp_path: Path) -> Kubectl:
    return Kubectl(assets / "kubectl", control_plane.kubeconfig, tmp_path)


async def test_labels_select_what_kubectl_selects(client: Client, kubectl: Kubectl, nursery: trio.Nursery) -> None:
    assert len(LABELS) >= 30
    expected: dict[str, Result] = {}

    async def ask(selector: str) -> None:
        expected[selector] = await kubectl.selected("configmaps", f"--namespace={place}", f"--selector={selector}")

    async with namespace(client, "label-selectors") as place:
        for number, labels in enumerate(LABELS):
            await client.api(ConfigMap, namespace=place).create(made(ConfigMap, f"cm-{number}", labels=labels))
        factory = SharedInformerFactory(client, namespace=place)
        informer = factory.informer(ConfigMap)
        await nursery.start(factory.run)
        async with trio.open_nursery() as asking:
            for selector in (*LABEL_SELECTORS, *REFUSED_LABEL_SELECTORS):
                asking.start_soon(ask, selector)
        actual = {selector: result_of(informer.lister, label_selector=selector) for selector in expected}
        nursery.cancel_scope.cancel()
    assert actual == expected
    assert {selector for selector, result in expected.items() if result == REFUSED} == set(REFUSED_LABEL_SELECTORS)
    assert len({result for result in expected.values() if result}) >= 30, "the objects tell the selectors apart"


# --- fields ---

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


async def test_fields_select_what_kubectl_selects(client: Client, kubectl: Kubectl, nursery: trio.Nursery) -> None:
    expected: dict[tuple[str, str], Result] = {}

    async def ask(kind: type[KubernetesObject], selector: str) -> None:
        info = kind.__resource__
        resource = f"{info.plural}.{info.version}.{info.group}" if info.group else info.plural
        expected[info.kind, selector] = await kubectl.selected(
            resource, f"--namespace={place}", f"--selector=run={place}", f"--field-selector={selector}"
        )

    async with namespace(client, "field-selectors") as place, away_with_cluster_objects(client):
        await create_all(client, place)
        factory = SharedInformerFactory(client, label_selector=f"run={place}")
        listers = {kind: factory.informer(kind).lister for kind in FIELD_SELECTORS}
        await nursery.start(factory.run)
        async with trio.open_nursery() as asking:
            for kind, selectors in FIELD_SELECTORS.items():
                for selector in selectors:
                    asking.start_soon(ask, kind, selector)
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
