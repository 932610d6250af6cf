"""Kinds of several versions or groups with one storage, on an embedded and on a real server."""

from __future__ import annotations

import json
from typing import Any, Final

from trioformer.client import Client

MERGE: Final = "application/merge-patch+json"
PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
TARGET: Final = {"kind": "Deployment", "name": "w", "apiVersion": "apps/v1"}
CPU: Final[dict[str, Any]] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
INGRESS: Final = {"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"}
SELECTED: Final = {"name": "x", "selector": {"matchLabels": {"a": "b"}}}
VALUE: Final = {"type": "AverageValue", "averageValue": "30"}
METRICS: Final[list[dict[str, Any]]] = [
    {"type": "Resource", "resource": {"name": "memory", "target": VALUE}},
    {"type": "Pods", "pods": {"metric": SELECTED, "target": VALUE}},
    {
        "type": "Object",
        "object": {"metric": {"name": "x"}, "target": {"type": "Value", "value": "2k"}, "describedObject": INGRESS},
    },
    {"type": "External", "external": {"metric": SELECTED, "target": VALUE}},
    {"type": "ContainerResource", "containerResource": {**CPU["resource"], "container": "c"}},
]
"""Metrics that ``v1`` has in an annotation, whose form differs between the servers."""
STATUS: Final = {
    "currentReplicas": 1,
    "desiredReplicas": 2,
    "conditions": [{"type": "AbleToScale", "status": "True", "reason": "r", "message": "m"}],
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40, "averageValue": "40m"}}}
    ],
}


async def send(client: Client, method: str, path: str, body: Any = None, **params: str) -> Any:
    """Send a request, and return the decoded body of the response; a body of a PATCH is a merge patch."""
    content = None if body is None else json.dumps(body).encode()
    content_type = MERGE if method == "PATCH" else "application/json"
    response = await client._transport.request(method, path, params=params, content=content, content_type=content_type)
    assert response.code < 300, response.body
    return json.loads(response.body)


async def test_an_autoscaler_is_read_and_written_in_both_versions(server_client: Client, namespace: str) -> None:
    new = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    old = new.replace("v2", "v1")
    spec = {
        "minReplicas": 1,
        "maxReplicas": 3,
        "scaleTargetRef": TARGET,
        "metrics": [CPU, *METRICS],
    }
    await send(server_client, "POST", new, {"metadata": {"name": "a", "annotations": {"own": "x"}}, "spec": spec})
    await send(server_client, "PATCH", f"{new}/a/status", {"status": STATUS})

    found = await send(server_client, "GET", f"{old}/a")
    assert found["spec"] == {
        "minReplicas": 1,
        "maxReplicas": 3,
        "scaleTargetRef": TARGET,
        "targetCPUUtilizationPercentage": 50,
    }
    annotations = found["metadata"]["annotations"]
    assert sorted(annotations) == [*(f"{PREFIX}{name}" for name in ("conditions", "current-metrics", "metrics")), "own"]
    assert annotations["own"] == "x"
    assert found["status"]["currentCPUUtilizationPercentage"] == 40
    assert (await send(server_client, "GET", old))["items"][0]["spec"] == found["spec"]

    await send(server_client, "PATCH", f"{old}/a", {"spec": {"targetCPUUtilizationPercentage": 33}})
    changed = await send(server_client, "GET", f"{new}/a")
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 33}}}
    assert changed["spec"]["metrics"] == [*METRICS, cpu]
    assert changed["metadata"]["annotations"] == {"own": "x"}
    assert changed["status"]["currentMetrics"] == STATUS["currentMetrics"]

    oldest = {"maxReplicas": 3, "scaleTargetRef": TARGET, "targetCPUUtilizationPercentage": 50}
    await send(server_client, "POST", old, {"metadata": {"name": "b"}, "spec": oldest})
    assert (await send(server_client, "GET", f"{new}/b"))["spec"]["metrics"] == [CPU]


async def test_events_of_both_groups_are_one(server_client: Client, namespace: str) -> None:
    core = f"/api/v1/namespaces/{namespace}/events"
    new = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    times = {"firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-02T00:00:00Z", "count": 3}
    event = {"involvedObject": about, "reason": "R", "message": "M", "source": {"component": "c"}, "type": "Normal"}
    await send(server_client, "POST", core, {"metadata": {"name": "a"}, **event, **times})
    series = {"count": 2, "lastObservedTime": "2020-01-01T00:00:01.000001Z"}
    event = {
        "regarding": about,
        "reason": "R",
        "note": "N",
        "action": "A",
        "eventTime": "2020-01-01T00:00:00.000001Z",
        "reportingController": "example.com/x",
        "reportingInstance": "i",
        "type": "Normal",
        "series": series,
    }
    await send(server_client, "POST", new, {"metadata": {"name": "b"}, **event})

    found = await send(server_client, "GET", f"{new}/a")
    assert (found["kind"], found["apiVersion"]) == ("Event", "events.k8s.io/v1")
    assert (found["regarding"], found["note"], found["deprecatedSource"]) == (about, "M", {"component": "c"})
    assert [found[f"deprecated{name[:1].upper()}{name[1:]}"] for name in times] == list(times.values())
    found = await send(server_client, "GET", f"{core}/b")
    assert (found["involvedObject"], found["message"], found["series"]) == (about, "N", series)
    assert (found["reportingComponent"], found["reportingInstance"], found["action"]) == ("example.com/x", "i", "A")

    names = {}
    for path, selector in (
        (core, {}),
        (new, {}),
        (core, {"fieldSelector": "involvedObject.name=p,reportingComponent=example.com/x"}),
        (new, {"fieldSelector": "regarding.name=p,reportingController=example.com/x"}),
    ):
        listed = await send(server_client, "GET", path, **selector)
        names[path, tuple(selector.values())] = [item["metadata"]["name"] for item in listed["items"]]
    assert list(names.values()) == [["a", "b"], ["a", "b"], ["b"], ["b"]]

    patched = await send(server_client, "PATCH", f"{new}/b", {"series": {**series, "count": 4}})
    assert patched["series"]["count"] == 4
    assert (await send(server_client, "GET", f"{core}/b"))["series"]["count"] == 4
    await send(server_client, "DELETE", f"{new}/a")
    assert [item["metadata"]["name"] for item in (await send(server_client, "GET", core))["items"]] == ["b"]


async def test_a_watch_of_one_group_sees_the_events_of_the_other(server_client: Client, namespace: str) -> None:
    core = f"/api/v1/namespaces/{namespace}/events"
    new = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    listed = await send(server_client, "GET", new)
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    await send(server_client, "POST", core, {"metadata": {"name": "a"}, "involvedObject": about, "message": "M"})
    version = listed["metadata"]["resourceVersion"]
    seen = await send(server_client, "GET", new, watch="1", timeoutSeconds="1", resourceVersion=version)
    assert (seen["type"], seen["object"]["apiVersion"], seen["object"]["note"]) == ("ADDED", "events.k8s.io/v1", "M")
