"""The conversion of kinds that are stored in another version."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.models import ObjectMeta
from trioformer.models.autoscaling_v1 import HorizontalPodAutoscaler
from trioformer.models.core_v1 import Event
from trioformer.models.events_v1 import Event as NewEvent
from trioformer.testing import APIServer
from trioformer.testing._storage._conversions import CONVERSIONS

PREFIX = "autoscaling.alpha.kubernetes.io/"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
BEHAVIOR = {"scaleUp": {"policies": [{"type": "Pods", "value": 4}], "stabilizationWindowSeconds": 0}}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"maxReplicas": 3}, {}),
        ({"maxReplicas": 3, "metrics": [CPU]}, {"currentReplicas": 1}),
        ({"behavior": BEHAVIOR}, {"conditions": [{"type": "AbleToScale", "status": "True"}]}),
        (
            {
                "metrics": [
                    {
                        "type": "External",
                        "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "2"}},
                    }
                ]
            },
            {"currentMetrics": [{"type": "Pods", "pods": {"metric": {"name": "q"}, "current": {"averageValue": "7"}}}]},
        ),
    ],
)
def test_an_autoscaler_survives_both_conversions(spec: Any, status: Any) -> None:
    obj = {"metadata": {"name": "a", "annotations": {"own": "x"}}, "spec": spec, "status": status}
    conversion = CONVERSIONS["autoscaling/v1", "HorizontalPodAutoscaler"]
    assert conversion.to_stored(conversion.from_stored(obj)) == obj


@pytest.mark.parametrize("text", ["no JSON", "5", "[5]", '[{"type": "Pods"}]', '[{"type": 5, "pods": 5}]', '{"a": 1}'])
def test_an_annotation_that_is_not_valid_is_not_an_error(text: str) -> None:
    annotations = {f"{PREFIX}{name}": text for name in ("metrics", "current-metrics", "conditions", "behavior")}
    obj = {"metadata": {"name": "a", "annotations": annotations}, "spec": {}, "status": {}}
    conversion = CONVERSIONS["autoscaling/v1", "HorizontalPodAutoscaler"]
    stored = conversion.to_stored(obj)
    assert "annotations" not in stored["metadata"]
    conversion.from_stored(stored)


@pytest.mark.parametrize(
    "value", [5, "x", [5], {"a": 1}, [{"type": "Resource", "resource": {"name": "cpu", "target": 5}}]]
)
def test_a_stored_field_of_another_type_is_not_an_error(value: Any) -> None:
    spec = {"metrics": value, "behavior": value}
    obj = {"metadata": {"name": "a"}, "spec": spec, "status": {"currentMetrics": value, "conditions": value}}
    conversion = CONVERSIONS["autoscaling/v1", "HorizontalPodAutoscaler"]
    conversion.to_stored(conversion.from_stored(obj))


def test_one_object_is_read_in_both_versions() -> None:
    server = APIServer()
    server.create(Event(metadata=ObjectMeta(name="a"), message="M"))
    assert server.get(NewEvent, "a").note == "M"
    assert [event.note for event in server.list(NewEvent, field_selector="metadata.name=a")] == ["M"]
    changed = server.patch(NewEvent, "a", {"note": "N"})
    assert changed.note == "N"
    assert server.get("events", "a")["message"] == "N"
    assert server.get("events.events.k8s.io", "a")["note"] == "N"
    spec = {"maxReplicas": 3, "metrics": [CPU]}
    server.create(
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    )
    assert server.get(HorizontalPodAutoscaler, "h").spec.target_cpu_utilization_percentage == 50
    server.delete(NewEvent, "a")
    assert not server.list(Event)
