"""What operators write, on both servers: what a server fills in is no difference, and nobody loses a finalizer."""

from __future__ import annotations

from typing import Any

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


SECRET_KEY = {"secretKeyRef": {"name": "s", "key": "k"}}


def cron_job(namespace: str, env: Any, volume: Any, probe: Any) -> CronJob:
    container = {"name": "web", "image": "nginx", "env": [{"name": "E", **env}], "livenessProbe": probe}
    pod = {"restartPolicy": "Never", "volumes": [{"name": "v", **volume}], "containers": [container]}
    spec = {"schedule": "1 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    return from_dict(CronJob, {"metadata": {"name": "web", "namespace": namespace}, "spec": spec})


async def test_a_member_that_excludes_another_takes_its_place(server_client: Client, namespace: str) -> None:
    done: list[str] = []
    for env, volume, probe in (
        ({"value": "1"}, {"configMap": {"name": "c"}}, {"httpGet": {"port": 80, "path": "/"}}),
        ({"valueFrom": SECRET_KEY}, {"secret": {"secretName": "c"}}, {"tcpSocket": {"port": 80}}),
        ({}, {"emptyDir": {}}, {"exec": {"command": ["true"]}}),
    ):
        for _ in range(2):
            written = await create_or_update(server_client, cron_job(namespace, env, volume, probe))
            done.append(written.operation)
        pod = to_dict(written.object)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["env"] == [{"name": "E", **env}]
        assert pod["volumes"][0].keys() == {"name", *volume}
        assert container["livenessProbe"].keys() & {"httpGet", "tcpSocket", "exec"} == probe.keys()
    assert done == ["created", "unchanged", "updated", "unchanged", "updated", "unchanged"]


async def test_a_strategy_of_another_type_has_none_of_the_old_fields(server_client: Client, namespace: str) -> None:
    meta = {"name": "web", "namespace": namespace}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    for strategy in (rolling, {"type": "Recreate"}):
        wanted = from_dict(Deployment, {"metadata": meta, "spec": {**WORKLOAD, "strategy": strategy}})
        written = [await create_or_update(server_client, wanted) for _ in range(2)]
        assert written[1].operation == "unchanged"
    assert to_dict(written[0].object)["spec"]["strategy"] == {"type": "Recreate"}


async def test_an_empty_selector_is_a_value_and_replaces_another(server_client: Client, namespace: str) -> None:
    meta = {"name": "web", "namespace": namespace}
    one, everything = {"podSelector": {"matchLabels": LABELS}}, {"podSelector": {}}
    done: list[str] = []
    for selector, peer in ((one, one), (everything, {**one, "namespaceSelector": {}}), (everything, one)):
        spec = {**selector, "policyTypes": ["Ingress"], "ingress": [{"from": [peer]}]}
        wanted = from_dict(NetworkPolicy, {"metadata": meta, "spec": spec})
        for _ in range(2):
            written = await create_or_update(server_client, wanted)
            done.append(written.operation)
        assert to_dict(written.object)["spec"] == spec
    assert done == ["created", "unchanged", "updated", "unchanged", "updated", "unchanged"]


async def test_nulls_and_empty_mappings_that_a_server_drops_settle(server_client: Client, namespace: str) -> None:
    fields = {"metadata": {"name": "web", "namespace": namespace, "labels": {}}, "data": {"k": None}, "binaryData": {}}
    wanted = from_dict(ConfigMap, fields)
    done = [(await create_or_update(server_client, wanted)).operation for _ in range(3)]
    assert done == ["created", "unchanged", "unchanged"]
    written = await create_or_update(server_client, from_dict(ConfigMap, {**fields, "data": {"k": None, "v": "1"}}))
    assert (written.operation, written.object.data) == ("updated", {"v": "1"})


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


async def test_an_object_that_was_created_anew_is_not_changed(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace=namespace)
    old = await api.create(ConfigMap(metadata=ObjectMeta(name="web"), data={"a": "1"}))
    await api.delete("web")
    new = await api.create(ConfigMap(metadata=ObjectMeta(name="web"), data={"a": "of another"}))
    with pytest.raises(ConflictError, match=f"the current object has uid {new.uid}"):
        await create_or_update(api, old.evolve(data={"a": "2"}))
    assert await api.get("web") == new


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


async def test_a_finalizer_of_an_object_that_the_program_has_made(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace=namespace)
    stored = await api.create(ConfigMap(metadata=ObjectMeta(name="web", finalizers=(OTHER,))))
    made = ConfigMap(metadata=ObjectMeta(name="web", namespace=namespace))
    assert (await ensure_finalizer(server_client, made, OURS)).metadata.finalizers == (OTHER, OURS)
    await drop_finalizer(server_client, made, OURS)
    assert await api.get("web") != stored
    assert (await api.get("web")).metadata.finalizers == (OTHER,)
    await drop_finalizer(server_client, made, OTHER)


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
        await ensure_finalizer(api, left.evolve(metadata=left.metadata.evolve(deletion_timestamp=None)), OTHER)
    assert (await api.get("web")).metadata.finalizers == (OURS,)
    await drop_finalizer(api, await api.get("web"), OURS)
