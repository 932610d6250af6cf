"""``describe``: the texts are those that kubectl v1.36 prints for the same objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cli import run
from trioformer.cli.commands._describe_kinds import describe_fields
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.core_v1 import ConfigMap, Event, Pod, Secret
from trioformer.testing import APIServer

POD: dict[str, Any] = {
    "metadata": {"name": "web-0", "labels": {"b": "2", "a": "1"}, "annotations": {"long": "x" * 150, "z": "1"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "nginx",
                "args": ["-c", "one\ntwo"],
                "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}],
                "resources": {"requests": {"cpu": "100m"}},
                "env": [
                    {"name": "PLAIN", "value": "1"},
                    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "SELF", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "livenessProbe": {
                    "httpGet": {"path": "/healthz", "port": 80, "scheme": "HTTP"},
                    "periodSeconds": 5,
                    "timeoutSeconds": 1,
                },
                "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
            }
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "tolerations": [{"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
    },
}

EXPECTED = """\
Name:         web-0
Namespace:    default
Node:         <none>
Labels:       a=1
              b=2
Annotations:  long:
                {long}...
              z: 1
Status:       Pending
IP:
IPs:          <none>
Containers:
  main:
    Image:      nginx
    Port:       80/TCP (http)
    Host Port:  0/TCP (http)
    Args:
      -c
      one
      two
    Requests:
      cpu:     100m
    Liveness:  http-get http://:80/healthz delay=0s timeout=1s period=5s #success=0 #failure=0
    Environment:
      PLAIN:  1
      KEY:    <set to the key 'k' in secret 's'>  Optional: false
      SELF:   web-0 (:metadata.name)
    Mounts:
      /data from data (ro)
Volumes:
  data:
    Type:        EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:
    SizeLimit:   <unset>
QoS Class:       Burstable
Node-Selectors:  <none>
Tolerations:     x:NoExecute op=Exists for 300s
Events:          <none>
""".replace("{long}", "x" * 138)


async def test_a_pod_is_described_as_by_kubectl(api_server: APIServer) -> None:
    api_server.create(from_dict(Pod, POD))
    result = await run(api_server, "describe", "pod", "web-0")
    assert (result.code, result.err) == (0, "")
    # An empty value ends its line with spaces.
    assert [line.rstrip() for line in result.out.splitlines()] == EXPECTED.splitlines()


async def test_a_config_map_is_described_with_its_data(api_server: APIServer) -> None:
    api_server.create(ConfigMap(metadata=ObjectMeta(name="c"), data={"b": "two\nlines", "a": "1"}))
    assert (await run(api_server, "describe", "cm/c")).out == (
        "Name:         c\nNamespace:    default\nLabels:       <none>\nAnnotations:  <none>\n"
        "\nData\n====\na:\n----\n1\n\nb:\n----\ntwo\nlines\n\n\nBinaryData\n====\n\nEvents:  <none>\n"
    )


async def test_the_content_of_a_secret_is_not_described(api_server: APIServer) -> None:
    api_server.create(from_dict(Secret, {"metadata": {"name": "s"}, "type": "Opaque", "data": {"key": "czNjcmV0"}}))
    result = await run(api_server, "describe", "secret", "s")
    assert "key:  6 bytes\n" in result.out
    assert "s3cret" not in result.out
    assert "czNjcmV0" not in result.out


async def test_the_events_of_one_object_are_described(api_server: APIServer) -> None:
    api_server.create(ConfigMap(metadata=ObjectMeta(name="c")))
    subject = {"kind": "ConfigMap", "name": "c", "namespace": "default"}
    uid = (await run(api_server, "get", "cm", "c", "-o", "jsonpath={.metadata.uid}")).out
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {**subject, "uid": uid},
        "type": "Normal",
        "reason": "Read",
        "message": "somebody has read it\n",
        "source": {"component": "reader"},
    }
    api_server.create(from_dict(Event, event))
    lines = (await run(api_server, "describe", "cm", "c")).out.splitlines()
    assert [line.split() for line in lines[-4:]] == [
        ["Events:"],
        ["Type", "Reason", "Age", "From", "Message"],
        ["----", "------", "----", "----", "-------"],
        ["Normal", "Read", "<unknown>", "reader", "somebody", "has", "read", "it"],
    ]
    assert "Events" not in (await run(api_server, "describe", "cm", "c", "--show-events=false")).out


async def test_several_objects_are_described_without_events(api_server: APIServer) -> None:
    for name in ("one", "other"):
        api_server.create(ConfigMap(metadata=ObjectMeta(name=name)))
    both = (await run(api_server, "describe", "cm")).out
    assert "Events" not in both
    assert "====\n\n\n\nName:         other\n" in both
    assert (await run(api_server, "describe", "cm", "o")).out.count("Name:") == 2


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["cm", "nope"], 1, 'Error from server (NotFound): configmaps "nope" not found\n'),
        (["foos"], 1, 'error: the server doesn\'t have a resource type "foos"\n'),
        (["cm"], 0, "No resources found in default namespace.\n"),
    ],
)
async def test_what_is_not_there_is_one_line(
    api_server: APIServer, arguments: list[str], code: int, error: str
) -> None:
    result = await run(api_server, "describe", *arguments)
    assert (result.code, result.out, result.err) == (code, "", error)


def test_an_object_of_another_kind_is_described_by_its_fields() -> None:
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "x", "uid": "1", "managedFields": []},
        "spec": {"baseURLs": ["a", "b"], "parts": [{"size": 1, "isOn": True}], "x.y": None},
    }
    assert describe_fields(obj, []) == (
        "Name:         x\nNamespace:    \nLabels:       <none>\nAnnotations:  <none>\n"
        "API Version:  example.com/v1\nKind:         Thing\nMetadata:\n  UID:  1\n"
        "Spec:\n  Base URLs:\n    a\n    b\n  Parts:\n    Is On:  true\n    Size:   1\n  x.y:      <nil>\n"
        "Events:     <none>\n"
    )
