"""Objects of built-in kinds that servers refuse; ``builtin_validation_results.json`` has kube-apiserver's causes.

A case is a valid object of ``valid_objects.yaml`` with some fields changed: ``path=value``, joined by `` & ``.
A value is in YAML, and ``-`` removes the field.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from trioformer.client import Client
from trioformer.models._kinds import builtin_resources

OBJECTS: Final = Path(__file__).with_name("valid_objects.yaml")
RESULTS: Final = Path(__file__).with_name("builtin_validation_results.json")
RESOURCES: Final = {(each.api_version, each.kind): each for each in builtin_resources()}

CREATED: Final[Mapping[str, str]] = {
    "Pod/minimal": """
        spec=-
        spec.containers=[]
        spec.containers=[{}]
        spec.containers.0.name=-
        spec.containers.0.name=A_b
        spec.containers.0.name=a.b
        spec.containers.0.image=-
        spec.containers.0.image="" & spec.containers.0.name=""
        spec.containers.0.imagePullPolicy=Sometimes
        spec.containers.0.terminationMessagePolicy=None
        spec.containers=[{name: a, image: x}, {name: a, image: x}]
        spec.containers.0.ports=[{}]
        spec.containers.0.ports=[{containerPort: 0}, {containerPort: 70000}, {containerPort: -1}]
        spec.containers.0.ports=[{containerPort: 1, protocol: ICMP}]
        spec.containers.0.ports=[{containerPort: 1, name: "1234"}]
        spec.containers.0.ports=[{containerPort: 1, name: a-name-that-is-too-long}]
        spec.containers.0.ports=[{containerPort: 1, hostPort: 65536}]
        spec.containers.0.env=[{}]
        spec.containers.0.env=[{name: A, valueFrom: {}}]
        spec.containers.0.env=[{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        spec.containers.0.env=[{name: A, valueFrom: {configMapKeyRef: {name: c}}}]
        spec.containers.0.env=[{name: A, valueFrom: {secretKeyRef: {name: c, key: ""}}}]
        spec.containers.0.envFrom=[{configMapRef: {}}]
        spec.containers.0.envFrom=[{secretRef: {name: A}}]
        spec.containers.0.volumeMounts=[{name: v, mountPath: /v}]
        spec.containers.0.volumeMounts=[{name: v}] & spec.volumes=[{name: v}]
        spec.containers.0.volumeMounts=[{name: v, mountPath: /v}, {name: v, mountPath: /v}] & spec.volumes=[{name: v}]
        spec.containers.0.resources={requests: {cpu: 2}, limits: {cpu: 1}}
        spec.containers.0.resources={requests: {memory: 2Gi, cpu: 1}, limits: {memory: 1Gi}}
        spec.containers.0.livenessProbe={exec: {}}
        spec.containers.0.livenessProbe={exec: {command: [a]}, periodSeconds: -1, timeoutSeconds: -1}
        spec.containers.0.readinessProbe={httpGet: {path: /, port: 80, scheme: FTP}}
        spec.initContainers=[{name: i}]
        spec.initContainers=[{name: i, image: x}, {name: i, image: x}]
        spec.volumes=[{}]
        spec.volumes=[{name: A}]
        spec.volumes=[{name: v}, {name: v}]
        spec.volumes=[{name: v, configMap: {}}]
        spec.volumes=[{name: v, secret: {}}]
        spec.volumes=[{name: v, secret: {secretName: s, items: [{}]}}]
        spec.volumes=[{name: v, secret: {secretName: s, defaultMode: 1000}}]
        spec.volumes=[{name: v, hostPath: {}}]
        spec.volumes=[{name: v, hostPath: {path: /a, type: Fifo}}]
        spec.volumes=[{name: v, persistentVolumeClaim: {}}]
        spec.restartPolicy=Sometimes
        spec.dnsPolicy=Never
        spec.activeDeadlineSeconds=0
        spec.serviceAccountName=A
        spec.nodeName=A_b
        spec.tolerations=[{key: a, operator: Like}]
        spec.tolerations=[{key: a, effect: Never}]
        spec.nodeSelector={a b: c}
        spec.securityContext={runAsUser: -1}
        spec.topologySpreadConstraints=[{topologyKey: a, maxSkew: 1, whenUnsatisfiable: Never}]
        spec.restartPolicy=x & spec.dnsPolicy=x & spec.containers.0.image="" & spec.volumes=[{name: V}]
        spec.containers.0.imagePullPolicy=x & spec.containers.0.env=[{}] & spec.containers.0.ports=[{}]
        metadata.name=A & spec.containers=[]
        metadata.labels={a: b c} & spec.restartPolicy=x
    """,
    "Service/cluster": """
        spec=-
        spec.ports=-
        spec.ports=[{targetPort: 80}]
        spec.ports=[{port: 0, targetPort: 80}]
        spec.ports=[{port: 70000}]
        spec.ports=[{port: 80, protocol: ICMP}]
        spec.ports=[{port: 80, name: A}]
        spec.ports=[{port: 80}, {port: 81}]
        spec.ports=[{port: 80, name: a}, {port: 81, name: a}]
        spec.ports=[{port: 80, name: a}, {port: 80, name: b}]
        spec.ports=[{port: 80, nodePort: 30000}]
        spec.ports=[{port: 80, appProtocol: a b}]
        spec.type=Internal
        spec.type=ExternalName & spec.ports=-
        spec.type=ExternalName & spec.externalName=a.b & spec.clusterIP=10.0.0.9
        spec.selector={a b: c}
        spec.selector={a: b c}
        spec.sessionAffinity=Cookie
        spec.internalTrafficPolicy=Remote
        spec.clusterIP=None & spec.type=LoadBalancer
        metadata.name=a.b
        metadata.name=1a & spec.ports=-
        spec.ports=[{port: 0, protocol: x, targetPort: 80}] & spec.sessionAffinity=x
    """,
    "Secret/opaque": """
        type=kubernetes.io/tls
        type=kubernetes.io/tls & data={tls.crt: eA==}
        type=kubernetes.io/dockerconfigjson
        type=kubernetes.io/dockercfg
        type=kubernetes.io/ssh-auth
        type=kubernetes.io/basic-auth
        type=kubernetes.io/service-account-token
        data={"a b": eA==}
        data={"a/b": eA==} & type=kubernetes.io/tls
        metadata.name=A
    """,
    "ConfigMap/settings": """
        data={"a b": c}
        binaryData={"a/b": eA==}
        data={x: b} & binaryData={x: eA==}
        data={"é": b}
        metadata.name=a_b & data={"": b}
    """,
    "Deployment/web": """
        spec=-
        spec.selector=-
        spec.selector={}
        spec.selector={matchLabels: {x: y}}
        spec.selector={matchLabels: {a b: y}}
        spec.selector={matchExpressions: [{key: a, operator: Like}]}
        spec.selector={matchExpressions: [{key: a, operator: In}]}
        spec.selector={matchExpressions: [{key: a, operator: Exists, values: [b]}]}
        spec.template=-
        spec.template.metadata=-
        spec.template.spec.containers=[]
        spec.template.spec.containers.0.name=A
        spec.template.spec.containers.0.volumeMounts=[{name: v, mountPath: /v}]
        spec.template.spec.restartPolicy=Never
        spec.template.spec.restartPolicy=Sometimes
        spec.template.spec.activeDeadlineSeconds=5
        spec.replicas=-1
        spec.minReadySeconds=-1
        spec.minReadySeconds=600
        spec.progressDeadlineSeconds=-1 & spec.minReadySeconds=0
        spec.revisionHistoryLimit=-1
        spec.replicas=-1 & spec.template.spec.containers.0.image="" & spec.minReadySeconds=-2
        metadata.name=A & spec.replicas=-1
    """,
    "StatefulSet/db": """
        spec.selector=-
        spec.selector={matchLabels: {x: y}}
        spec.replicas=-1
        spec.serviceName=A
        spec.template.spec.restartPolicy=Never
        spec.template.spec.containers.0.volumeMounts=[{name: v, mountPath: /v}]
    """,
    "DaemonSet/agent": """
        spec.selector={}
        spec.selector={matchLabels: {x: y}}
        spec.template.spec.restartPolicy=OnFailure
        spec.minReadySeconds=-1
    """,
    "Job/once": """
        spec.template.spec.restartPolicy=-
        spec.template.spec.restartPolicy=Always
        spec.template.spec.restartPolicy=x
        spec.template.spec.containers=[]
        spec.parallelism=-1 & spec.completions=-1
        spec.backoffLimit=-1
        spec.activeDeadlineSeconds=-1
        spec.ttlSecondsAfterFinished=-1
        spec.completionMode=Random
        spec.podReplacementPolicy=Never
    """,
    "CronJob/nightly": """
        spec.schedule=-
        spec.schedule=every day
        spec.schedule="@often"
        spec.schedule="60 * * * *"
        spec.schedule="*/5 0-23 0 * *"
        spec.schedule="1,2 0 * * 5-7"
        spec.concurrencyPolicy=Never
        spec.successfulJobsHistoryLimit=-1
        spec.startingDeadlineSeconds=-1
        spec.jobTemplate.spec.template.spec.restartPolicy=Always
    """,
    "PriorityClass/high": """
        value=1000000001
        metadata.name=system-high
        preemptionPolicy=Always
    """,
    "RoleBinding/readers": """
        roleRef.name=-
        roleRef.kind=Group
        subjects.0.kind=Robot
        subjects.0.name=-
    """,
    "Lease/leader": """
        spec.leaseDurationSeconds=0
        spec.leaseTransitions=-1
    """,
    "PersistentVolumeClaim/disk": """
        spec.accessModes=-
        spec.accessModes=[Sometimes]
        spec.volumeMode=Tape
        spec.storageClassName=A_b
    """,
}
"""The changes that are refused on create."""

UPDATED: Final[Mapping[str, str]] = {
    "Pod/minimal": """
        spec.containers.0.name=b
        spec.containers.0.env=[{name: A, value: b}]
        spec.containers=[{name: a, image: x}, {name: b, image: x}]
        spec.containers.0.image=y & spec.hostNetwork=true
        spec.nodeName=n2
        spec.tolerations=[]
        spec.restartPolicy=Never
        spec.volumes=[{name: v}]
    """,
    "Service/cluster": """
        spec.clusterIP=10.0.0.77 & spec.clusterIPs=[10.0.0.77]
        spec.ports=[]
        spec.ports.0.port=0
    """,
    "Secret/opaque": """
        type=example.com/other
        type=kubernetes.io/tls
        data={"a b": eA==}
    """,
    "Secret/fixed": """
        data={a: eQ==}
        immutable=false
        immutable=- & data={}
    """,
    "ConfigMap/fixed": """
        data={a: c}
        immutable=-
        binaryData={c: eA==} & data={}
    """,
    "Deployment/web": """
        spec.selector.matchLabels={x: y}
        spec.selector.matchLabels={x: y} & spec.template.metadata.labels={a: b, x: y}
        spec.replicas=-1
        spec.template.spec.containers=[]
    """,
    "StatefulSet/db": """
        spec.serviceName=other
        spec.podManagementPolicy=OrderedReady
        spec.selector.matchLabels={x: y} & spec.template.metadata.labels={x: y}
        spec.replicas=-1
    """,
    "DaemonSet/agent": """
        spec.selector.matchLabels={x: y} & spec.template.metadata.labels={x: y}
    """,
    "ReplicaSet/pods": """
        spec.selector.matchLabels={x: y} & spec.template.metadata.labels={x: y}
    """,
    "Job/once": """
        spec.completions=5
        spec.completionMode=Indexed
        spec.template.spec.containers.0.image=y
        spec.parallelism=-1
    """,
    "RoleBinding/readers": """
        roleRef.name=other
        roleRef.kind=ClusterRole & subjects=[]
    """,
    "PersistentVolumeClaim/disk": """
        spec.accessModes=[ReadOnlyMany]
        spec.selector={matchLabels: {a: b}}
    """,
}
"""The changes that are refused on update."""

_INTERNAL: Final = re.compile(r"(?<=Invalid value: )\{.*\}(?=: field is immutable)|\n.*", re.DOTALL)
"""Go's struct of a pod template, and the difference between two specs."""


def valid_objects() -> dict[str, dict[str, Any]]:
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in yaml.safe_load_all(OBJECTS.read_text())}


def cases(table: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, line.strip()) for name, text in table.items() for line in text.strip().splitlines()]


def changed(obj: dict[str, Any], case: str) -> dict[str, Any]:
    """Return an object with the changes of a case."""
    obj = copy.deepcopy(obj)
    for change in case.split(" & "):
        path, _, text = change.partition("=")
        *parents, last = path.split(".")
        part: Any = obj
        for name in parents:
            part = part[int(name)] if name.isdecimal() else part.setdefault(name, {})
        if text == "-":
            part.pop(last, None)
        else:
            part[last] = yaml.safe_load(text) if text else ""
    return obj


async def send(client: Client, method: str, namespace: str, obj: dict[str, Any], name: str = "", **params: str) -> Any:
    """Send an object, and return the code and the different causes in their order.

    If there are no causes, the reason is returned; if the object is stored, the object is returned.
    """
    path = RESOURCES[obj["apiVersion"], obj["kind"]].path(namespace=namespace) + name
    content, kind = json.dumps(obj).encode(), "application/json"
    if method == "APPLY":
        method, kind, params = "PATCH", "application/apply-patch+yaml", {**params, "fieldManager": "test"}
    elif method == "PATCH":
        kind = "application/merge-patch+json"
    response = await client._transport.request(method, path, params=params, content=content, content_type=kind)
    body = json.loads(response.body)
    if response.code < 300 and not params:
        return body
    causes = (body.get("details") or {}).get("causes") or ()
    found = [f"{one.get('field', '')}: {one['reason']}: {_INTERNAL.sub('', one['message'])}" for one in causes]
    return [response.code, *(dict.fromkeys(found) or [body.get("reason", "")])]


async def observed_created(
    client: Client, namespace: str, method: str = "POST", kinds: tuple[str, ...] = ("",)
) -> dict[str, Any]:
    """Create or apply the objects of some kinds, or of all kinds."""
    objects, found = valid_objects(), {}
    for name, case in cases(CREATED):
        if not name.startswith(kinds):
            continue
        obj = changed(objects[name], case)
        where = f"/{obj['metadata']['name']}" if method == "APPLY" else ""
        found[f"{name} {case}"] = await send(client, method, namespace, obj, where, dryRun="All")
    return found


async def observed_updated(client: Client, namespace: str) -> dict[str, Any]:
    objects, found = valid_objects(), {}
    for name in UPDATED:
        objects[name] = await send(client, "POST", namespace, objects[name])
    for name, case in cases(UPDATED):
        obj = changed(objects[name], case)
        where = f"/{obj['metadata']['name']}"
        found[f"{name} {case}"] = await send(client, "PUT", namespace, obj, where, dryRun="All")
    return found
