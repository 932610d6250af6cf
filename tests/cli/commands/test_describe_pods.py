"""Descriptions of pods with fields that few pods have, in the words of kubectl."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Final

import pytest

from trioformer.cli.commands._describe_pods import describe_pod
from trioformer.cli.commands._describe_storage import volume_lines

TIMING: Final = "delay=1s timeout=2s period=3s #success=4 #failure=5"
TIMES: Final = {
    "initialDelaySeconds": 1,
    "timeoutSeconds": 2,
    "periodSeconds": 3,
    "successThreshold": 4,
    "failureThreshold": 5,
}
LONG_AGO: Final = "2000-01-01T00:00:00Z"
NEW_YEAR: Final = format_datetime(datetime(2000, 1, 1, tzinfo=UTC).astimezone())


def joined(text: str) -> str:
    """Return the lines of a description, each with one space between two words."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


def in_container(fields: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a pod with one container."""
    statuses = [] if status is None else [{"name": "c", **status}]
    return {"spec": {"containers": [{"name": "c", **fields}]}, "status": {"containerStatuses": statuses}}


PODS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "priority, class, runtime, account": (
        {
            "spec": {
                "priority": 0,
                "priorityClassName": "high",
                "runtimeClassName": "gvisor",
                "serviceAccountName": "robot",
                "nodeName": "n",
            },
            "status": {"hostIP": "10.0.0.1", "startTime": LONG_AGO},
        },
        (
            "Priority: 0\nPriority Class Name: high\nRuntime Class Name: gvisor\nService Account: robot\n"
            f"Node: n/10.0.0.1\nStart Time: {NEW_YEAR}"
        ),
    ),
    "no node, no containers, no volumes": (
        {},
        "Node: <none>\nLabels: <none>\nAnnotations: <none>\nStatus:\nIP:\nIPs: <none>",
    ),
    "being deleted": (
        {
            "metadata": {"deletionTimestamp": LONG_AGO, "deletionGracePeriodSeconds": 30},
            "status": {"phase": "Running"},
        },
        "Termination Grace Period: 30s\nIP:",
    ),
    "being deleted after its end": (
        {"metadata": {"deletionTimestamp": LONG_AGO}, "status": {"phase": "Failed"}},
        "Status: Failed\nIP:",
    ),
    "reason and message": (
        {"status": {"phase": "Failed", "reason": "Evicted", "message": "no memory"}},
        "Status: Failed\nReason: Evicted\nMessage: no memory\nIP:",
    ),
    "a profile of the pod": (
        {"spec": {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"}}}},
        "SeccompProfile: Localhost\nLocalhostProfile: p.json\nIP:",
    ),
    "addresses, a nominated node, resources": (
        {
            "spec": {"resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi", "cpu": "500m"}}},
            "status": {
                "podIP": "10.0.0.2",
                "podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}],
                "nominatedNodeName": "m",
            },
        },
        (
            "IP: 10.0.0.2\nIPs:\nIP: 10.0.0.2\nIP: fd00::2\nNominatedNodeName: m\n"
            "Resources:\nLimits:\ncpu: 1\nRequests:\ncpu: 500m\nmemory: 1Gi\nContainers: <none>"
        ),
    ),
    "gates": (
        {
            "spec": {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
            "status": {"conditions": [{"type": "a", "status": "True"}]},
        },
        "Readiness Gates:\nType Status\na True\nb <none>\nConditions:\nType Status\na True\nVolumes: <none>",
    ),
    "ephemeral containers": (
        {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}},
        (
            "Containers: <none>\nEphemeral Containers:\ndebug:\nImage: busybox\nPort: <none>\nHost Port: <none>\n"
            "Environment: <none>\nMounts: <none>\nVolumes: <none>"
        ),
    ),
    "spread": (
        {
            "spec": {
                "topologySpreadConstraints": [
                    {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2},
                    {
                        "topologyKey": "rack",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "maxSkew": 1,
                        "labelSelector": {"matchLabels": {"a": "b"}},
                    },
                ]
            }
        },
        (
            "Topology Spread Constraints: rack:ScheduleAnyway when max skew 1 is exceeded for selector a=b\n"
            "zone:DoNotSchedule when max skew 2 is exceeded"
        ),
    ),
    "group": ({"spec": {"schedulingGroup": {"podGroupName": "g"}}}, "SchedulingGroup:\nPodGroupName: g"),
    "tolerations": (
        {
            "spec": {
                "tolerations": [
                    {"key": "b", "value": "c", "effect": "NoExecute", "tolerationSeconds": 5},
                    {"operator": "Exists"},
                    {"key": "a", "operator": "Exists"},
                ]
            }
        },
        "Tolerations: op=Exists\na op=Exists\nb=c:NoExecute for 5s",
    ),
    "best effort": (in_container({}), "QoS Class: BestEffort"),
    "burstable": (in_container({"resources": {"requests": {"cpu": "1"}}}), "QoS Class: Burstable"),
    "guaranteed": (in_container({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}), "QoS Class: Guaranteed"),
    "exec": (
        in_container({"livenessProbe": {"exec": {"command": ["a", "b"]}, **TIMES}}),
        f"Liveness: exec [a b] {TIMING}",
    ),
    "http": (
        in_container({"readinessProbe": {"httpGet": {"scheme": "HTTPS", "port": "web", "path": "/x"}, **TIMES}}),
        f"Readiness: http-get https://:web/x {TIMING}",
    ),
    "tcp": (in_container({"startupProbe": {"tcpSocket": {"port": 1}, **TIMES}}), f"Startup: tcp-socket :1 {TIMING}"),
    "grpc": (
        in_container({"livenessProbe": {"grpc": {"port": 1, "service": "s"}, **TIMES}}),
        f"Liveness: grpc <pod>:1 s {TIMING}",
    ),
    "unknown probe": (in_container({"livenessProbe": TIMES}), f"Liveness: unknown {TIMING}"),
    "several ports, a profile of the container": (
        in_container(
            {
                "ports": [
                    {"containerPort": 80, "protocol": "TCP", "name": "web"},
                    {"containerPort": 81, "hostPort": 9},
                ],
                "securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"}},
            }
        ),
        "Ports: 80/TCP (web), 81/\nHost Ports: 0/TCP (web), 9/\nSeccompProfile: Localhost\nLocalhostProfile: p.json",
    ),
    "running, terminated before": (
        in_container(
            {"command": ["sh", "-c"], "args": ["a\nb"]},
            {
                "state": {"running": {"startedAt": LONG_AGO}},
                "lastState": {
                    "terminated": {
                        "reason": "Error",
                        "message": "bad",
                        "exitCode": 1,
                        "signal": 9,
                        "startedAt": LONG_AGO,
                        "finishedAt": LONG_AGO,
                    }
                },
                "ready": True,
                "restartCount": 2,
            },
        ),
        (
            f"Command:\nsh\n-c\nArgs:\na\nb\nState: Running\nStarted: {NEW_YEAR}\nLast State: Terminated\n"
            "Reason: Error\n"
            f"Message: bad\nExit Code: 1\nSignal: 9\nStarted: {NEW_YEAR}\nFinished: {NEW_YEAR}\nReady: True\n"
            "Restart Count: 2"
        ),
    ),
    "waiting": (
        in_container({}, {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}),
        "State: Waiting\nReason: CrashLoopBackOff\nReady: False\nRestart Count: 0",
    ),
    "waiting for no reason": (in_container({}, {}), "State: Waiting\nReady: False"),
    "environment": (
        {
            "metadata": {"name": "p", "labels": {"b": "1", "a": "2"}},
            **in_container(
                {
                    "envFrom": [
                        {"configMapRef": {"name": "m"}, "prefix": "P_"},
                        {"secretRef": {"name": "s", "optional": True}},
                    ],
                    "env": [
                        {"name": "A", "value": "1\n2"},
                        {"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                        {"name": "C", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}}},
                        {"name": "D", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
                        {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                        {
                            "name": "F",
                            "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}},
                        },
                        {"name": "G", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                        {"name": "H", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k", "optional": True}}},
                        {"name": "I", "valueFrom": {}},
                    ],
                    "resources": {"requests": {"memory": "1Gi"}},
                }
            ),
        },
        (
            "Environment Variables from:\nm ConfigMap with prefix 'P_' Optional: false\ns Secret Optional: true\n"
            'Environment:\nA: 1\n2\nB: p (v1:metadata.name)\nC: a="2"\nb="1" (v1:metadata.labels)\n'
            "D: (v1:status.podIP)\n"
            "E: node allocatable (limits.cpu)\nF: 1024 (requests.memory)\n"
            "G: <set to the key 'k' in secret 's'> Optional: false\n"
            "H: <set to the key 'k' of config map 'm'> Optional: true\nI:\nMounts: <none>"
        ),
    ),
    "mounts and devices": (
        in_container(
            {
                "volumeMounts": [
                    {"mountPath": "/b", "name": "v", "readOnly": True},
                    {"mountPath": "/a", "name": "w", "subPath": "x"},
                ],
                "volumeDevices": [{"devicePath": "/dev/b", "name": "e"}, {"devicePath": "/dev/a", "name": "d"}],
            }
        ),
        'Mounts:\n/a from w (rw,path="x")\n/b from v (ro)\nDevices:\n/dev/a from d\n/dev/b from e',
    ),
}


@pytest.mark.parametrize("name", PODS)
def test_unusual_fields_of_pods_are_described(name: str) -> None:
    pod, expected = PODS[name]
    assert f"\n{expected}\n" in f"\n{joined(describe_pod(pod, None))}\n"


def test_how_long_a_pod_has_been_terminating_is_shown() -> None:
    pod = {"metadata": {"deletionTimestamp": LONG_AGO}, "status": {"phase": "Running"}}
    text = joined(describe_pod(pod, None))
    assert "\nStatus: Terminating (lasts " in text
    assert "\nTermination Grace Period: 0s\n" in text


VOLUMES: Final[dict[str, tuple[dict[str, Any], list[str]]]] = {
    "nothing": ({"name": "v"}, ["<unknown>"]),
    "a kind that is not known": ({"name": "v", "newKind": {}}, ["Type:\tNewKind"]),
    "items of the downward API": (
        {
            "downwardAPI": {
                "items": [
                    {"path": "a", "fieldRef": {"fieldPath": "metadata.name"}},
                    {"path": "b", "resourceFieldRef": {"resource": "limits.cpu"}},
                ]
            }
        },
        [
            "Type:\tDownwardAPI (a volume populated by information about the pod)",
            "Items:",
            "  metadata.name -> a",
            "  limits.cpu -> b",
        ],
    ),
    "ephemeral without a template": (
        {"ephemeral": {}},
        ["Type:\tEphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)"],
    ),
    "attributes of a driver": (
        {"csi": {"driver": "d", "volumeAttributes": {"b": "x" * 200, "a": "1"}}},
        [
            "Type:\tCSI (a Container Storage Interface (CSI) volume source)",
            "Driver:\td",
            "FSType:\t",
            "ReadOnly:\tfalse",
            "VolumeAttributes:\t    a=1",
            f"    \t    b={'x' * 138}...",
        ],
    ),
}


@pytest.mark.parametrize("name", VOLUMES)
def test_unusual_volumes_are_described(name: str) -> None:
    volume, expected = VOLUMES[name]
    assert volume_lines(volume) == expected
