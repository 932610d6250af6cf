"""``describe`` of each kind; the end-to-end tests compare the same objects with what kubectl prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.cli import run
from trioformer.cli.commands._describe_kinds import DESCRIBERS
from trioformer.manifests import load_manifests
from trioformer.testing import APIServer

OBJECTS: Final = Path(__file__).parents[2] / "support" / "kubectl_objects.yaml"
EXPECTED: Final = Path(__file__).with_name("descriptions.txt")
TIME: Final = re.compile(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} [-+]\d{4}|\d{4}-\d\d-\d\d [\d:]{8} [-+]\d{4} \S+")
WARNING: Final = "Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\n"


async def test_each_kind_is_described_as_by_kubectl(api_server: APIServer) -> None:
    manifests = load_manifests(OBJECTS)
    for manifest in manifests:
        api_server.create(manifest.object)
    texts = []
    for manifest in manifests:
        info = type(manifest.object).__resource__
        result = await run(api_server, "describe", str(info), manifest.object.name)
        assert (result.code, result.err) == (0, WARNING if info.plural == "endpoints" else "")
        texts.append(f"=== {info}\n{TIME.sub('TIME', result.out)}")
    # An empty value ends its line with spaces.
    assert [line.rstrip() for line in "\n".join(texts).splitlines()] == EXPECTED.read_text().splitlines()


# What the embedded server does not have, or what no controller has filled in.
OTHERS: Final[dict[str, tuple[dict[str, Any], dict[str, Any], str]]] = {
    "servicecidrs.networking.k8s.io": (
        {
            "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": ["10.0.0.0/24", "fd00::/112"]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ok", "message": "ready"}]},
        },
        {},
        (
            "Name:         kubernetes\nLabels:       <none>\nAnnotations:  <none>\n"
            "CIDRs:        10.0.0.0/24, fd00::/112\n"
            "Status:\nConditions:\n  Type   Status  LastTransitionTime               Reason  Message\n"
            "  ----   ------  ------------------               ------  -------\n"
            "  Ready  True    Mon, 01 Jan 0001 00:00:00 +0000  Ok      ready\n"
        ),
    ),
    "ipaddresses.networking.k8s.io": (
        {
            "metadata": {"name": "10.0.0.1"},
            "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}},
        },
        {},
        (
            "Name:         10.0.0.1\nLabels:       <none>\nAnnotations:  <none>\nParent Reference:\n  Group:      \n"
            "  Resource:   services\n  Namespace:  default\n  Name:       kubernetes\n"
        ),
    ),
    "csinodes.storage.k8s.io": (
        {
            "metadata": {"name": "node-1"},
            "spec": {
                "drivers": [
                    {"name": "d", "nodeID": "1", "allocatable": {"count": 3}, "topologyKeys": ["zone", "rack"]},
                ]
            },
        },
        {},
        (
            "Name:               node-1\nLabels:             <none>\nAnnotations:        <none>\n"
            "CreationTimestamp:  Mon, 01 Jan 0001 00:00:00 +0000\nSpec:\n  Drivers:\n    d:\n      Node ID:  1\n"
            "      Allocatables:\n        Count:        3\n      Topology Keys:  [zone rack]\n"
        ),
    ),
    "volumeattributesclasses.storage.k8s.io": (
        {"metadata": {"name": "gold"}, "driverName": "d", "parameters": {"b": "2", "a": "1"}},
        {},
        "Name:         gold\nAnnotations:  <none>\nDriverName:   d\nParameters:   a=1,b=2\n",
    ),
    "services": (
        {"metadata": {"name": "s"}, "spec": {"ports": [{"name": "http", "port": 80, "targetPort": "web"}]}},
        {
            "endpointslices": [
                {
                    "ports": [{"name": "http", "port": 8080}, {"name": "other", "port": 1}],
                    "endpoints": [
                        *({"addresses": [f"10.0.0.{index}"]} for index in range(4)),
                        {"addresses": ["10.0.0.9"], "conditions": {"ready": False}},
                        {"addresses": ["fd00::1"]},
                    ],
                }
            ]
        },
        (
            "Name:              s\nNamespace:         \nLabels:            <none>\nAnnotations:       <none>\n"
            "Selector:          <none>\nType:              \nIP Families:       <none>\nIP:                \n"
            "IPs:               <none>\nPort:              http  80/\nTargetPort:        web/\n"
            "Endpoints:         10.0.0.0:8080,10.0.0.1:8080,10.0.0.2:8080 + 2 more...\nSession Affinity:  \n"
        ),
    ),
    "horizontalpodautoscalers.autoscaling": (
        {
            "apiVersion": "autoscaling/v1",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                "maxReplicas": 3,
                "targetCPUUtilizationPercentage": 80,
            },
            "status": {"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 90},
        },
        {},
        (
            "Name:                     web\nNamespace:                shop\nLabels:                   <none>\n"
            "Annotations:              <none>\nCreationTimestamp:        Mon, 01 Jan 0001 00:00:00 +0000\n"
            "Reference:                Deployment/web\nTarget CPU utilization:   80%\nCurrent CPU utilization:  90%\n"
            "Min replicas:             <unset>\nMax replicas:             3\n"
            "Deployment pods:          1 current / 2 desired\n"
        ),
    ),
}


@pytest.mark.parametrize("resource", OTHERS)
def test_other_objects_are_described_as_by_kubectl(resource: str) -> None:
    obj, related, expected = OTHERS[resource]
    assert DESCRIBERS[resource](obj, None, related) == expected


POD: Final[dict[str, Any]] = {
    "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": None},
    "spec": {
        "overhead": {"cpu": "10m", "memory": "1Mi"},
        "containers": [{"resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1"}}}],
        "initContainers": [
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
            {"resources": {"requests": {"cpu": "500m", "memory": "1Mi"}}},
        ],
    },
}


def test_the_pods_of_a_node_are_described_with_what_they_request() -> None:
    node = {
        "metadata": {"name": "node-1", "labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDRs": ["10.0.0.0/24"]},
        "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "example.com/gpu": "1", "hugepages-2Mi": "0"}},
    }
    lease = {"spec": {"holderIdentity": "node-1"}}
    pool = {"spec": {"driver": "gpu", "pool": {"name": "a"}, "devices": [{}, {}]}}
    related = {"pods": [POD, POD], "leases": [lease], "resourceslices": [pool, pool]}
    lines = [line.rstrip() for line in DESCRIBERS["nodes"](node, None, related).splitlines()]
    assert lines[1] == "Roles:              a,b"
    assert lines[6:12] == [
        "Taints:             k:NoSchedule",
        "Unschedulable:      true",
        "Lease:",
        "  HolderIdentity:  node-1",
        "  AcquireTime:     <unset>",
        "  RenewTime:       <unset>",
    ]
    assert lines[18:21] == [
        "Node-Local ResourceSlices:",
        "  Driver  Pool  Slices  Devices",
        "  ------  ----  ------  -------",
    ]
    # The init container, with the sidecar that runs already, needs more than the containers with the sidecar.
    row = "  shop                        web     560m (28%)    1010m (50%)  65Mi (6%)        0 (0%)         <unknown>"
    assert lines[-14:] == [
        "Non-terminated Pods:          (2 in total)",
        "  Namespace                   Name    CPU Requests  CPU Limits   Memory Requests  Memory Limits  Age",
        "  ---------                   ----    ------------  ----------   ---------------  -------------  ---",
        row,
        row,
        "Allocated resources:",
        "  (Total limits may be over 100 percent, i.e., overcommitted.)",
        "  Resource           Requests     Limits",
        "  --------           --------     ------",
        "  cpu                1120m (56%)  2020m (101%)",
        "  memory             130Mi (12%)  0 (0%)",
        "  ephemeral-storage  0 (0%)       0 (0%)",
        "  hugepages-2Mi      0 (0%)       0 (0%)",
        "  example.com/gpu    0            0",
    ]


def test_a_node_whose_pods_and_lease_may_not_be_read_is_described() -> None:
    related = {"leases": [{"problem": "leases is forbidden"}]}
    lines = DESCRIBERS["nodes"]({"metadata": {"name": "node-1"}}, None, related).splitlines()
    assert "Lease:              Failed to get lease: leases is forbidden" in lines
    assert lines[-1] == "Pods:                         not authorized"
