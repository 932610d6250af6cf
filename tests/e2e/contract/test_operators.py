"""What operators write, on both servers: what a server fills in is no difference, and nobody loses a finalizer."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from trioformer import Client, ObjectMeta
from trioformer.controller import (
    AlreadyOwnedError,
    apply_owned,
    create_or_update,
    drop_finalizer,
    ensure_finalizer,
    set_controller_reference,
)
from trioformer.controller._create_or_update import _changes_of, _wanted_members
from trioformer.errors import ConflictError, InvalidError
from trioformer.models import KubernetesObject, from_dict, to_dict
from trioformer.models.apps_v1 import DaemonSet, Deployment, StatefulSet
from trioformer.models.autoscaling_v2 import HorizontalPodAutoscaler
from trioformer.models.batch_v1 import CronJob
from trioformer.models.core_v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount
from trioformer.models.networking_v1 import Ingress, NetworkPolicy
from trioformer.models.policy_v1 import PodDisruptionBudget
from trioformer.models.rbac_v1 import Role, RoleBinding

OURS, OTHER = "example.com/ours", "example.com/other"
LABELS = {"app": "web"}
PROBE = {"httpGet": {"path": "/", "port": 80}}
CONTAINERS = [
    {
        "name": "web",
        "image": "nginx",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "value": "1"}, {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "livenessProbe": PROBE,
        "resources": {"limits": {"cpu": "500m"}},
        "volumeMounts": [{"name": "page", "mountPath": "/page"}],
    },
    {"name": "side", "image": "busybox:1", "command": ["sleep", "1"]},
]
POD = {"containers": CONTAINERS, "volumes": [{"name": "page", "configMap": {"name": "page"}}]}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
WORKLOAD = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

JOB = {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}
SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
RULE = {"host": "a.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
STATEFUL = {**WORKLOAD, "serviceName": "web", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}]}
WANTED: list[tuple[type[KubernetesObject], dict[str, object]]] = [
    (ConfigMap, {"data": {"a": "1"}}),
    (CronJob, {"spec": {"schedule": "* * * * *", "jobTemplate": JOB}}),
    (DaemonSet, {"spec": WORKLOAD}),
    (Deployment, {"spec": {**WORKLOAD, "replicas": 2}}),
    (HorizontalPodAutoscaler, {"spec": {"maxReplicas": 3, "scaleTargetRef": SCALED}}),
    (Ingress, {"spec": {"rules": [RULE]}}),
    (NetworkPolicy, {"spec": {"podSelector": {"matchLabels": LABELS}, "ingress": [{"ports": [{"port": 80}]}]}}),
    (PersistentVolumeClaim, {"spec": CLAIM}),
    (Pod, {"spec": POD}),
    (PodDisruptionBudget, {"spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}}}),
    (Role, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    (RoleBinding, {"roleRef": ROLE, "subjects": [{"kind": "ServiceAccount", "name": "default"}]}),
    (Secret, {"data": {"a": "MQ=="}}),
    (Service, {"spec": {"selector": LABELS, "ports": [{"port": 80}]}}),
    (ServiceAccount, {}),
    (StatefulSet, {"spec": STATEFUL}),
]


@pytest.mark.parametrize(("kind", "fields"), WANTED, ids=lambda each: getattr(each, "__name__", ""))
async def test_what_a_server_fills_in_is_no_difference(
    server_client: Client, namespace: str, kind: type[Any], fields: dict[str, object]
) -> None:
    wanted = from_dict(kind, {"metadata": {"name": "web", "namespace": namespace, "labels": LABELS}, **fields})
    assert (await create_or_update(server_client, wanted)).operation == "created"
    api = server_client.api(kind, namespace=namespace)
    stored = await api.get("web")
    assert _changes_of(to_dict(stored), _wanted_members(api, wanted, stored, stored)) == {}
    assert (await create_or_update(server_client, wanted)).operation == "unchanged"


async def test_only_what_is_wanted_changes(server_client: Client, namespace: str) -> None:
    meta = {"name": "web", "namespace": namespace}
    await create_or_update(server_client, from_dict(Deployment, {"metadata": meta, "spec": WORKLOAD}))
    before = to_dict(await server_client.api(Deployment, namespace=namespace).get("web"))["spec"]
    change = {
        "replicas": 3,
        "template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}, {"name": "side"}]}},
    }
    written = await create_or_update(server_client, from_dict(Deployment, {"metadata": meta, "spec": change}))
    assert written.operation == "updated"
    after = to_dict(written.object)["spec"]
    before["replicas"] = 3
    before["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    assert after == before


async def test_what_a_server_stores_in_another_form_is_no_difference(server_client: Client, namespace: str) -> None:
    meta = {"name": "web", "namespace": namespace}
    limits = {"resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}}}
    pod = {"containers": [{"name": "web", "image": "nginx", **limits}]}
    spec = {"selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": pod}}
    wanted = from_dict(Deployment, {"metadata": meta, "spec": spec})
    written = [await create_or_update(server_client, wanted) for _ in range(2)]
    assert [each.operation for each in written] == ["created", "unchanged"]
    assert len({each.object.resource_version for each in written}) == 1


async def test_an_owned_object_is_applied_and_gives_up_what_is_not_wanted(
    server_client: Client, namespace: str
) -> None:
    api = server_client.api(ConfigMap, namespace=namespace)
    owner = await api.create(ConfigMap(metadata=ObjectMeta(name="owner")))
    for data in ({"a": "1", "b": "1"}, {"a": "2"}):
        wanted = ConfigMap(metadata=ObjectMeta(name="web"), data=data)
        applied = await apply_owned(server_client, wanted, owner=owner, field_manager="operator")
        assert applied.data == data
    assert [each.uid for each in applied.metadata.owner_references] == [owner.uid]
    again = await apply_owned(server_client, wanted, owner=owner, field_manager="operator")
    assert again.resource_version == applied.resource_version


async def test_an_object_has_one_controller(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace=namespace)
    one, other = [await api.create(ConfigMap(metadata=ObjectMeta(name=name))) for name in ("one", "other")]
    wanted = ConfigMap(metadata=ObjectMeta(name="web"))
    await apply_owned(server_client, wanted, owner=one, field_manager="one")
    with pytest.raises(InvalidError):
        await apply_owned(server_client, wanted, owner=other, field_manager="other")
    with pytest.raises(AlreadyOwnedError):
        await create_or_update(server_client, wanted, owner=other)
    with pytest.raises(AlreadyOwnedError):
        set_controller_reference(await api.get("web"), other)


async def test_finalizers_come_and_go_one_at_a_time(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace=namespace)
    stale = await api.create(ConfigMap(metadata=ObjectMeta(name="web", finalizers=(OTHER,))))
    both = await ensure_finalizer(server_client, stale, OURS)
    assert both.metadata.finalizers == (OTHER, OURS)
    assert (await ensure_finalizer(api, stale, OURS)).metadata.finalizers == (OTHER, OURS)
    await api.delete("web")
    with pytest.raises(InvalidError):  # the server takes no new ones
        await ensure_finalizer(api, stale, "example.com/third")
    left = await drop_finalizer(api, both, OTHER)
    assert left is not None
    assert left.metadata.finalizers == (OURS,)
    assert await drop_finalizer(api, left, OURS) is not None
    assert await drop_finalizer(api, left, OURS) is None
    await api.create(ConfigMap(metadata=ObjectMeta(name="web", finalizers=(OURS,))))
    assert await drop_finalizer(api, left, OURS) is None
    with pytest.raises(ConflictError):
        await ensure_finalizer(
            api, attrs.evolve(left, metadata=attrs.evolve(left.metadata, deletion_timestamp=None)), OTHER
        )
    assert (await api.get("web")).metadata.finalizers == (OURS,)
    await drop_finalizer(api, await api.get("web"), OURS)
