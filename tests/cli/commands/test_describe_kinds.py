"""``describe`` of each kind; the end-to-end tests compare the same objects with what kubectl prints."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime
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


def joined(text: str) -> str:
    """Return the lines of a description, each with one space between two words."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


THEN: Final = "2000-01-01T00:00:00Z"
NEW_YEAR: Final = format_datetime(datetime(2000, 1, 1, tzinfo=UTC).astimezone())
LATER: Final = format_datetime(datetime(2000, 1, 1, 0, 1, 30, tzinfo=UTC).astimezone())
CIDR: Final = {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "10.2.0.0/16"]}
TARGETS: Final = {"kind": "Deployment", "name": "web"}

UNUSUAL: Final[dict[str, tuple[str, dict[str, Any], dict[str, Any], str]]] = {
    "affinity of a volume": (
        "persistentvolumes",
        {
            "metadata": {"finalizers": ["a/b"]},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "n", "name": "c"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "zone", "operator": "In", "values": ["a", "b"]},
                                    {"key": "ssd", "operator": "Exists"},
                                ]
                            },
                            {},
                        ]
                    }
                },
            },
        },
        {},
        (
            "Finalizers: [a/b]\nStorageClass:\nStatus:\nClaim: n/c\nReclaim Policy: Retain\nAccess Modes: RWO,RWX\n"
            "Capacity: 1Gi\nNode Affinity:\nRequired Terms:\nTerm 0: zone in [a, b]\nssd exists\n"
            "Term 1: <none>\nMessage:\n"
            "Source:\n<unknown>"
        ),
    ),
    "affinity without terms": (
        "persistentvolumes",
        {"spec": {"nodeAffinity": {"required": {}}, "hostPath": {"path": "/x"}}},
        {},
        (
            "Node Affinity:\nRequired Terms: <none>\nMessage:\nSource:\nType: HostPath (bare host directory volume)\n"
            "Path: /x\nHostPathType: <none>"
        ),
    ),
    "conditions and source of a claim": (
        "persistentvolumeclaims",
        {
            "metadata": {"name": "c"},
            "spec": {
                "volumeName": "v",
                "volumeMode": "Block",
                "dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"},
            },
            "status": {
                "phase": "Bound",
                "capacity": {"storage": "2Gi"},
                "accessModes": ["ReadWriteOncePod"],
                "conditions": [
                    {"type": "Resizing", "status": "True", "lastTransitionTime": THEN, "reason": "R", "message": "now"}
                ],
            },
        },
        {"pods": [{"metadata": {"name": "q"}}, {"metadata": {"name": "p"}}]},
        (
            "Capacity: 2Gi\nAccess Modes: RWOP\nVolumeMode: Block\nDataSource:\nAPIGroup: snapshot.storage.k8s.io\n"
            "Kind: VolumeSnapshot\nName: s\nUsed By: p\nq\nConditions:\n"
            "Type Status LastProbeTime LastTransitionTime Reason Message\n"
            "---- ------ ----------------- ------------------ ------ -------\n"
            f"Resizing True Mon, 01 Jan 0001 00:00:00 +0000 {NEW_YEAR} R now"
        ),
    ),
    "class of storage": (
        "storageclasses.storage.k8s.io",
        {
            "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "d",
            "allowVolumeExpansion": True,
            "mountOptions": ["ro", "soft"],
            "allowedTopologies": [
                {"matchLabelExpressions": [{"key": "a", "values": ["1", "2"]}, {"key": "b", "values": ["3"]}]},
                {},
            ],
        },
        {},
        (
            "Name: fast\nIsDefaultClass: Yes\nAnnotations: storageclass.kubernetes.io/is-default-class=true\n"
            "Provisioner: d\nParameters: <none>\nAllowVolumeExpansion: True\nMountOptions:\nro\nsoft\n"
            "AllowedTopologies:\nTerm 0: a in [1, 2]\nb in [3]\nTerm 1: <none>"
        ),
    ),
    "class of storage, no topologies": (
        "storageclasses.storage.k8s.io",
        {"metadata": {"name": "slow"}, "allowedTopologies": []},
        {},
        (
            "IsDefaultClass: No\nAnnotations: <none>\nProvisioner:\nParameters: <none>\nAllowVolumeExpansion: <unset>\n"
            "MountOptions: <none>\nAllowedTopologies: <none>"
        ),
    ),
    "driver without a limit": (
        "csinodes.storage.k8s.io",
        {"spec": {"drivers": [{"name": "d", "nodeID": "1"}]}},
        {},
        "Spec:\nDrivers:\nd:\nNode ID: 1",
    ),
    "no drivers": ("csinodes.storage.k8s.io", {}, {}, "Spec:"),
    "service": (
        "services",
        {
            "spec": {
                "type": "LoadBalancer",
                "ipFamilyPolicy": "SingleStack",
                "ipFamilies": ["IPv4"],
                "clusterIP": "10.0.0.1",
                "clusterIPs": ["10.0.0.1"],
                "externalIPs": ["1.2.3.4", "1.2.3.5"],
                "loadBalancerIP": "1.2.3.6",
                "externalName": "example.com",
                "ports": [{"port": 80, "protocol": "TCP", "appProtocol": "h2c", "nodePort": 30000}],
                "sessionAffinity": "None",
                "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Cluster",
                "healthCheckNodePort": 30001,
                "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "trafficDistribution": "PreferClose",
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "5.6.7.8", "ipMode": "VIP"}, {"hostname": "lb"}]}},
        },
        {"endpointslices": [{"endpoints": [{"addresses": ["10.1.0.1"]}]}]},
        (
            "Type: LoadBalancer\nIP Family Policy: SingleStack\nIP Families: IPv4\nIP: 10.0.0.1\nIPs: 10.0.0.1\n"
            "External IPs: 1.2.3.4,1.2.3.5\nDesired LoadBalancer IP: 1.2.3.6\nExternal Name: example.com\n"
            "LoadBalancer Ingress: 5.6.7.8 (VIP), lb\nPort: <unset> 80/TCP\nTargetPort: 0/TCP\nAppProtocol: h2c\n"
            "NodePort: <unset> 30000/TCP\nEndpoints: 10.1.0.1\nSession Affinity: None\nExternal Traffic Policy: Local\n"
            "Internal Traffic Policy: Cluster\nHealthCheck NodePort: 30001\nLoadBalancer Source Ranges: 10.0.0.0/8\n"
            "Traffic Distribution: PreferClose"
        ),
    ),
    "addresses of version 6": (
        "services",
        {"spec": {"ports": [{"port": 80}]}},
        {"endpointslices": [{"ports": [{"port": 1}], "endpoints": [{"addresses": ["fd00::1"]}]}]},
        "Endpoints: [fd00::1]:1",
    ),
    "endpoints": (
        "endpoints",
        {"subsets": [{"notReadyAddresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}]},
        {},
        "Subsets:\nAddresses: <none>\nNotReadyAddresses: 10.0.0.1,10.0.0.2",
    ),
    "slice without anything": (
        "endpointslices.discovery.k8s.io",
        {"addressType": "IPv4"},
        {},
        "AddressType: IPv4\nPorts: <unset>\nEndpoints: <none>",
    ),
    "slice": (
        "endpointslices.discovery.k8s.io",
        {
            "ports": [{"protocol": "TCP"}],
            "endpoints": [{}, {"addresses": ["a"], "targetRef": {"kind": "Pod", "name": "p"}}],
        },
        {},
        (
            "Ports:\nName Port Protocol\n---- ---- --------\n<unset> <unset> TCP\nEndpoints:\n- Addresses: <none>\n"
            "Conditions:\nReady: <unset>\nHostname: <unset>\nNodeName: <unset>\nZone: <unset>\n- Addresses: a\n"
            "Conditions:\nReady: <unset>\nHostname: <unset>\nTargetRef: Pod/p\nNodeName: <unset>\nZone: <unset>"
        ),
    ),
    "ingress": (
        "ingresses.networking.k8s.io",
        {
            "spec": {
                "defaultBackend": {"resource": {"apiGroup": "g", "kind": "Bucket", "name": "b"}},
                "tls": [{"secretName": "s", "hosts": ["a", "b"]}, {"hosts": ["c"]}],
            },
            "status": {"loadBalancer": {"ingress": [{"hostname": "lb"}, {"ip": "1.2.3.4"}, {}]}},
        },
        {},
        (
            "Address: 1.2.3.4,lb\nIngress Class: <none>\nDefault backend: APIGroup: g, Kind: Bucket, Name: b\nTLS:\n"
            "s terminates a,b\nSNI routes c\nRules:\nHost Path Backends\n---- ---- --------\n"
            "* * APIGroup: g, Kind: Bucket, Name: b"
        ),
    ),
    "backends of an ingress": (
        "ingresses.networking.k8s.io",
        {
            "spec": {
                "rules": [
                    {
                        "http": {
                            "paths": [
                                {"path": "/a", "backend": {"service": {"name": "gone", "port": {"number": 1}}}},
                                {"path": "/b", "backend": {"service": {"name": "s", "port": {"name": "web"}}}},
                                {"path": "/c", "backend": {"service": {"name": "s", "port": {"number": 9}}}},
                                {"path": "/d"},
                            ]
                        }
                    }
                ]
            }
        },
        {
            "services": [
                {"metadata": {"name": "gone"}, "problem": 'services "gone" not found'},
                {"metadata": {"name": "s"}, "spec": {"ports": [{"name": "web", "port": 80}]}},
            ],
            "endpointslices": [
                {
                    "metadata": {"labels": {"kubernetes.io/service-name": "s"}},
                    "ports": [{"name": "web", "port": 8080}],
                    "endpoints": [{"addresses": ["10.0.0.1"]}],
                }
            ],
        },
        (
            "Default backend: <default>\nRules:\nHost Path Backends\n---- ---- --------\n*\n"
            '/a gone:1 (<error: services "gone" not found>)\n/b s:web (10.0.0.1:8080)\n/c s:9 ()\n/d\n'
            "Annotations: <none>"
        ),
    ),
    "class of ingresses": (
        "ingressclasses.networking.k8s.io",
        {
            "metadata": {"name": "i"},
            "spec": {"controller": "c", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}},
        },
        {},
        "Controller: c\nParameters:\nAPIGroup: g\nKind: K\nName: n",
    ),
    "class of ingresses, no parameters": (
        "ingressclasses.networking.k8s.io",
        {"metadata": {"name": "i"}},
        {},
        "Name: i\nLabels: <none>\nAnnotations: <none>\nController:",
    ),
    "nothing of a range or an address": ("servicecidrs.networking.k8s.io", {}, {}, "CIDRs:"),
    "address without a parent": ("ipaddresses.networking.k8s.io", {}, {}, "Labels: <none>\nAnnotations: <none>"),
    "policy": (
        "networkpolicies.networking.k8s.io",
        {
            "spec": {
                "podSelector": {},
                "policyTypes": ["Egress"],
                "egress": [
                    {"ports": [{"port": 1, "endPort": 5, "protocol": "UDP"}, {}], "to": [{"ipBlock": CIDR}]},
                    {"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"a": "b"}}}, {}]},
                    {},
                ],
            }
        },
        {},
        (
            "Created on: 0001-01-01 00:00:00 +0000 UTC\nLabels: <none>\nAnnotations: <none>\nSpec:\n"
            "PodSelector: <none> (Allowing the specific traffic to all pods in this namespace)\n"
            "Not affecting ingress traffic\nAllowing egress traffic:\nTo Port Range: 1-5/UDP\nTo Port: <nil>/TCP\nTo:\n"
            "IPBlock:\nCIDR: 10.0.0.0/8\nExcept: 10.1.0.0/16, 10.2.0.0/16\n----------\n"
            "To Port: <any> (traffic allowed to all ports)\nTo:\nNamespaceSelector: <none>\nPodSelector: a=b\nTo:\n"
            "----------\nTo Port: <any> (traffic allowed to all ports)\n"
            "To: <any> (traffic not restricted by destination)\nPolicy Types: Egress"
        ),
    ),
    "policy that isolates": (
        "networkpolicies.networking.k8s.io",
        {"spec": {"policyTypes": ["Ingress"]}},
        {},
        (
            "Allowing ingress traffic:\n<none> (Selected pods are isolated for ingress connectivity)\n"
            "Not affecting egress traffic\nPolicy Types: Ingress"
        ),
    ),
    "node": (
        "nodes",
        {
            "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": "cloud://1"},
            "status": {
                "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": THEN, "reason": "R", "message": "m"}
                ],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "capacity": {"pods": "110", "cpu": "2"},
                "nodeInfo": {"machineID": "x"},
            },
        },
        {"leases": [{"spec": {"holderIdentity": "n", "renewTime": THEN}}]},
        (
            f"Lease:\nHolderIdentity: n\nAcquireTime: <unset>\nRenewTime: {NEW_YEAR}\nConditions:\n"
            "Type Status LastHeartbeatTime LastTransitionTime Reason Message\n"
            "---- ------ ----------------- ------------------ ------ -------\n"
            f"Ready True Mon, 01 Jan 0001 00:00:00 +0000 {NEW_YEAR} R m\nAddresses:\nInternalIP: 10.0.0.1\n"
            "Capacity:\ncpu: 2\npods: 110\nSystem Info:\nMachine ID: x"
        ),
    ),
    "many pools of a node": (
        "nodes",
        {},
        {"resourceslices": [{"spec": {"driver": "d", "pool": {"name": f"{index:02}"}}} for index in range(12)]},
        "d 08 1 0\nd 09 1 0\n...and 2 more pools\nSystem Info:",
    ),
    "map of files": (
        "configmaps",
        {"data": {"b": "2", "a": "1"}, "binaryData": {"c": "AAAA"}},
        {},
        "Data\n====\na:\n----\n1\n\nb:\n----\n2\n\n\nBinaryData\n====\nc: 3 bytes",
    ),
    "quotas of a namespace": (
        "namespaces",
        {"status": {"phase": "Active"}},
        {
            "resourcequotas": [
                {
                    "metadata": {"name": "q"},
                    "spec": {"scopes": ["Terminating", "Mine"]},
                    "status": {"hard": {"pods": "3", "cpu": "1"}, "used": {"pods": "2"}},
                }
            ],
        },
        (
            "Resource Quotas\nName: q\nScopes: Mine, Terminating\n"
            "* Matches all pods that have an active deadline. These pods have a limited lifespan on a node before "
            "being actively terminated by the system.\nResource Used Hard\n-------- --- ---\ncpu 0 1\npods 2 3"
        ),
    ),
    "autoscaler": (
        "horizontalpodautoscalers.autoscaling",
        {
            "apiVersion": "autoscaling/v2",
            "spec": {
                "scaleTargetRef": TARGETS,
                "minReplicas": 1,
                "maxReplicas": 3,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                    {"type": "New"},
                ],
                "behavior": {
                    "scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]},
                    "scaleDown": {"stabilizationWindowSeconds": 60},
                },
            },
            "status": {"conditions": [{"type": "AbleToScale", "status": "True", "reason": "R", "message": "m"}]},
        },
        {},
        (
            "Metrics: ( current / target )\n"
            'resource cpu on pods (as a percentage of request): <unknown> / 80%\n<unknown metric type "New">\n'
            "Min replicas: 1\nMax replicas: 3\nBehavior:\nScale Up:\nSelect Policy: Max\nPolicies:\n"
            "- Type: Pods Value: 4 Period: 15 seconds\nScale Down:\nStabilization Window: 60 seconds\n"
            "Deployment pods: 0 current / 0 desired\nConditions:\nType Status Reason Message\n"
            "---- ------ ------ -------\n"
            "AbleToScale True R m"
        ),
    ),
    "autoscaler without a target": (
        "horizontalpodautoscalers.autoscaling",
        {"apiVersion": "autoscaling/v1", "spec": {"scaleTargetRef": TARGETS}},
        {},
        "Reference: Deployment/web\nMin replicas: <unset>\nMax replicas: 0",
    ),
    "replica sets of a deployment": (
        "deployments.apps",
        {
            "metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}},
            "spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": "25%"}}},
        },
        {
            "replicasets": [
                {
                    "metadata": {"name": "new", "annotations": {"deployment.kubernetes.io/revision": "2"}},
                    "spec": {"replicas": 3},
                    "status": {"replicas": 1},
                },
                {"metadata": {"name": "old"}},
            ]
        },
        "OldReplicaSets: old (0/0 replicas created)\nNewReplicaSet: new (1/3 replicas created)",
    ),
    "partition and claims": (
        "statefulsets.apps",
        {
            "spec": {
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 2}},
                "volumeClaimTemplates": [
                    {
                        "metadata": {"name": "c", "annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}},
                        "spec": {"accessModes": ["ReadWriteOnce"]},
                    }
                ],
            }
        },
        {},
        (
            "Volume Claims:\nName: c\nStorageClass: gold\nLabels: <none>\n"
            "Annotations: volume.beta.kubernetes.io/storage-class=gold\nCapacity: <default>\n"
            "Access Modes: [ReadWriteOnce]"
        ),
    ),
    "partition": (
        "statefulsets.apps",
        {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 2}}}},
        {"pods": [{"status": {"phase": phase}} for phase in ("Running", "Running", "Pending", "Failed")]},
        (
            "Replicas: 1 desired | 0 total\nUpdate Strategy: RollingUpdate\nPartition: 1\nMaxUnavailable: 2\n"
            "Pods Status: 2 Running / 1 Waiting / 0 Succeeded / 1 Failed\nPod Template:"
        ),
    ),
    "job": (
        "jobs.batch",
        {
            "metadata": {"ownerReferences": [{"kind": "CronJob", "name": "c", "controller": True}]},
            "spec": {"completionMode": "Indexed", "completions": 40, "activeDeadlineSeconds": 9, "suspend": False},
            "status": {
                "startTime": THEN,
                "completionTime": "2000-01-01T00:01:30Z",
                "ready": 0,
                "succeeded": 40,
                "completedIndexes": ",".join(str(index) for index in range(0, 80, 2)),
            },
        },
        {},
        (
            "Completions: 40\nCompletion Mode: Indexed\nSuspend: false\n"
            f"Start Time: {NEW_YEAR}\nCompleted At: {LATER}\n"
            "Duration: 90s\nActive Deadline Seconds: 9s\nPods Statuses: 0 Active (0 Ready) / 40 Succeeded / 0 Failed\n"
            "Completed Indexes: 0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,..."
        ),
    ),
    "job that has not begun": (
        "jobs.batch",
        {"spec": {"completionMode": "Indexed"}},
        {},
        (
            "Completions: <unset>\nCompletion Mode: Indexed\nPods Statuses: 0 Active / 0 Succeeded / 0 Failed\n"
            "Completed Indexes: <none>"
        ),
    ),
    "job of each night": (
        "cronjobs.batch",
        {
            "spec": {
                "schedule": "@daily",
                "startingDeadlineSeconds": 7,
                "jobTemplate": {"spec": {"selector": {"matchLabels": {"a": "b"}}, "activeDeadlineSeconds": 8}},
            },
            "status": {"lastScheduleTime": THEN, "active": [{"name": "j"}, {"name": "k"}]},
        },
        {},
        (
            "Starting Deadline Seconds: 7s\nSelector: a=b\nParallelism: <unset>\nCompletions: <unset>\n"
            "Active Deadline Seconds: 8s\nPod Template:"
        ),
    ),
    "budget": (
        "poddisruptionbudgets.policy",
        {"spec": {"maxUnavailable": "50%"}, "status": {"expectedPods": 4}},
        {},
        "Max unavailable: 50%\nSelector: <unset>\nStatus:\nAllowed disruptions: 0\nCurrent: 0\nDesired: 0\nTotal: 4",
    ),
    "template": (
        "replicationcontrollers",
        {
            "spec": {
                "selector": {"a": "b"},
                "template": {
                    "metadata": {"annotations": {"c": "d"}},
                    "spec": {
                        "serviceAccountName": "robot",
                        "initContainers": [{"name": "i"}],
                        "priorityClassName": "p",
                    },
                },
            }
        },
        {},
        (
            "Pod Template:\nLabels: <none>\nAnnotations: c: d\nService Account: robot\nInit Containers:\ni:\nImage:\n"
            "Port: <none>\nHost Port: <none>\nEnvironment: <none>\nMounts: <none>\nContainers: <none>\n"
            "Volumes: <none>\n"
            "Priority Class Name: p\nNode-Selectors: <none>\nTolerations: <none>"
        ),
    ),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_fields_are_described_as_by_kubectl(name: str) -> None:
    resource, obj, related, expected = UNUSUAL[name]
    assert f"\n{expected}\n" in f"\n{joined(DESCRIBERS[resource](obj, None, related))}\n"


def test_a_volume_that_goes_away_is_described_with_its_time() -> None:
    obj = {"metadata": {"name": "v", "deletionTimestamp": THEN}, "status": {"phase": "Bound", "message": "m"}}
    text = joined(DESCRIBERS["persistentvolumes"](obj, None, {}))
    assert "\nStatus: Terminating (lasts " in text
    assert "\nCapacity: 0\nNode Affinity: <none>\nMessage: m\nSource:\n<unknown>" in text


def test_conditions_and_the_container_of_an_event_are_described() -> None:
    obj = {"status": {"conditions": [{"type": "Available", "status": "True", "reason": "R"}]}}
    event = {
        "involvedObject": {"fieldPath": "spec.containers{c}"},
        "type": "Normal",
        "reason": "Pulled",
        "message": "done ",
        "reportingComponent": "kubelet",
    }
    text = joined(DESCRIBERS["deployments.apps"](obj, [event], {}))
    assert "\nConditions:\nType Status Reason\n---- ------ ------\nAvailable True R\n" in text
    assert text.endswith("\nNormal Pulled <unknown> kubelet spec.containers{c}: done")


def test_a_class_of_storage_without_topologies_says_nothing_of_them() -> None:
    text = joined(DESCRIBERS["storageclasses.storage.k8s.io"]({"reclaimPolicy": "Delete"}, None, {}))
    assert text.endswith("\nMountOptions: <none>\nReclaimPolicy: Delete")
