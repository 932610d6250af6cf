"""Objects of all built-in kinds have the defaults of kube-apiserver on the embedded server."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.e2e.fetch_bootstrap import PATHS as BOOTSTRAP
from tests.e2e.manifest_set import BUILTIN, NAMESPACE
from tests.e2e.workloads import numbers
from trioformer.client import Client
from trioformer.models._internal import builtin_resources

RICH: Final = Path(__file__).with_name("rich_objects.yaml")
RESOURCES: Final = {(each.api_version, each.kind): each for each in builtin_resources()}

SERVER_FIELDS: Final = ("uid", "resourceVersion", "creationTimestamp", "namespace")
FINALIZERS: Final = {"kubernetes.io/pv-protection", "kubernetes.io/pvc-protection", "kubernetes.io/vac-protection"}
"""The embedded server has no controller that would remove them."""
USER: Final = ("username", "groups", "extra")
"""The embedded server does not know its clients."""
OTHER_OWNERS: Final = {"CertificateSigningRequest"}
TIMES: Final = {"time", "lastTransitionTime", "lastPhaseTransitionTime"}
ADDRESS: Final = re.compile(r"10\.\d+\.\d+\.\d+(/\d+)?$")
PORTS: Final = {"nodePort", "healthCheckNodePort"}


def comparable(value: Any, uid: str) -> Any:
    """Return a part of an object without what differs between two servers of the same release."""
    if isinstance(value, dict):
        return {key: "…" if key in TIMES | PORTS else comparable(member, uid) for key, member in value.items()}
    if isinstance(value, list):
        return [comparable(item, uid) for item in value]
    if value == uid:
        return "the uid"
    return "an address" if isinstance(value, str) and ADDRESS.match(value) else value


def flat(value: Any, path: str = "") -> set[str]:
    """Return each value in an object with its path."""
    if isinstance(value, dict) and value:
        return set().union(*(flat(member, f"{path}.{key}") for key, member in value.items()))
    if isinstance(value, list) and value:
        return set().union(*(flat(item, f"{path}[{i}]") for i, item in enumerate(value)))
    return {f"{path}: {json.dumps(value)}"}


def normalized(obj: dict[str, Any]) -> set[str]:
    metadata = obj["metadata"]
    uid = metadata["uid"]
    for name in SERVER_FIELDS:
        metadata.pop(name, None)
    if set(metadata.get("finalizers") or ()) <= FINALIZERS:
        metadata.pop("finalizers", None)
    if obj["kind"] in OTHER_OWNERS:
        metadata.pop("managedFields", None)
    if obj["kind"] == "CertificateSigningRequest":
        for name in USER:
            obj["spec"].pop(name, None)
    return flat(comparable(obj, uid))


async def send(client: Client, method: str, path: str, body: Any, content_type: str = "application/json") -> Any:
    content = json.dumps(body, default=str).encode()
    params = {"fieldManager": "test"}
    response = await client._transport.request(method, path, params=params, content=content, content_type=content_type)
    assert response.code in (200, 201), response.body
    return json.loads(response.body)


def path_of(obj: dict[str, Any], namespace: str) -> str:
    info = RESOURCES[obj["apiVersion"], obj["kind"]]
    group = "/apis/" if info.group else "/api/"
    return f"{group}{info.api_version}{f'/namespaces/{namespace}' if info.namespaced else ''}/{info.plural}"


async def shared_namespace(clients: tuple[Client, Client]) -> str:
    """Create a namespace with the same name on both servers."""
    name = f"defaults-{os.getpid()}-{next(numbers)}"
    for client in clients:
        await send(client, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


async def test_new_objects_have_the_same_fields_on_both_servers(both_clients: tuple[Client, Client]) -> None:
    namespace = await shared_namespace(both_clients)
    text = "---\n".join(file.read_text() for file in (*sorted(BUILTIN.glob("*.yaml")), RICH))
    objects = [obj for obj in yaml.safe_load_all(text.replace(NAMESPACE, namespace)) if obj is not None]
    cluster_wide = []
    try:
        for obj in objects:
            # The embedded server does not serve admission policies.
            if obj["metadata"]["name"] == namespace or "AdmissionPolicy" in obj["kind"]:
                continue
            path = path_of(obj, namespace)
            results = [normalized(await send(client, "POST", path, obj)) for client in both_clients]
            assert results[0] ^ results[1] == set()
            if namespace not in path:
                cluster_wide.append(f"{path}/{obj['metadata']['name']}")
    finally:
        for path in cluster_wide:
            await both_clients[1]._transport.request("DELETE", path)


@pytest.mark.parametrize("resource", [name for name in BOOTSTRAP if not name.startswith("endpoint")])
async def test_a_new_cluster_has_the_same_objects_on_both_servers(
    both_clients: tuple[Client, Client], resource: str
) -> None:
    """The control plane has no endpoints, because it listens on a loopback address."""
    found = []
    for client in both_clients:
        items = json.loads((await client._transport.request("GET", BOOTSTRAP[resource])).body)["items"]
        for item in items:
            item["kind"] = ""
            item["metadata"].pop("managedFields", None)
        found.append({item["metadata"]["name"]: normalized(item) for item in items})
    embedded, real = found
    assert embedded.keys() <= real.keys()
    for name in embedded:
        different = embedded[name] ^ real[name]
        assert {one for one in different if ".targetPort" not in one and ".generation" not in one} == set(), name


CHANGES: Final[dict[str, tuple[dict[str, Any], list[tuple[str, Any]]]]] = {
    "a service": (
        {"apiVersion": "v1", "kind": "Service", "spec": {"type": "NodePort", "ports": [{"port": 80}]}},
        [
            ("PUT", {"spec": {"type": "NodePort", "ports": [{"port": 81}]}}),
            ("PATCH", {"spec": {"type": "ClusterIP"}}),
            ("PATCH", {"spec": {"type": "LoadBalancer"}}),
            ("PATCH", {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
            ("PATCH", {"spec": {"type": "ClusterIP", "externalName": None}}),
        ],
    ),
    "a deployment": (
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "main", "image": "a:1"}]},
                },
            },
        },
        [
            ("PATCH", {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}),
            ("PATCH", {"spec": {"strategy": None, "replicas": None}}),
            ("PATCH", {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "a"}]}}}}),
        ],
    ),
    "a daemon set": (
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "main", "image": "a:1"}]},
                },
            },
        },
        [
            ("PATCH", {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}),
            ("PATCH", {"metadata": {"annotations": None}}),
        ],
    ),
    "a pod": (
        {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "image": "a"}]}},
        [
            ("PATCH", {"metadata": {"labels": {"a": "b"}}, "spec": {"priority": None, "dnsPolicy": None}}),
            ("PATCH", {"spec": {"containers": [{"name": "main", "image": "a:2"}]}}),
        ],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_changed_objects_have_the_same_fields_on_both_servers(
    both_clients: tuple[Client, Client], name: str
) -> None:
    obj, changes = CHANGES[name]
    obj = {**obj, "metadata": {"name": "a"}}
    path = path_of(obj, await shared_namespace(both_clients))
    for client in both_clients:
        await send(client, "POST", path, obj)
    for method, change in changes:
        body = {**obj, **change} if method == "PUT" else change
        patch = "application/strategic-merge-patch+json"
        content_type = "application/json" if method == "PUT" else patch
        results = [normalized(await send(client, method, f"{path}/a", body, content_type)) for client in both_clients]
        assert results[0] ^ results[1] == set(), (method, change)


@pytest.mark.parametrize("name", CHANGES)
async def test_applied_objects_have_the_same_fields_on_both_servers(
    both_clients: tuple[Client, Client], name: str
) -> None:
    obj = {**CHANGES[name][0], "metadata": {"name": "a"}}
    path = f"{path_of(obj, await shared_namespace(both_clients))}/a"
    apply = "application/apply-patch+yaml"
    results = [normalized(await send(client, "PATCH", path, obj, apply)) for client in both_clients]
    assert results[0] ^ results[1] == set()
