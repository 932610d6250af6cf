"""Quantities in the JSON of an object are compared as amounts, wherever the class of the object has one."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.models import Model
from trioformer.models._amounts import with_amounts
from trioformer.models.autoscaling_v2 import HorizontalPodAutoscaler
from trioformer.models.core_v1 import ConfigMap, Pod


def pod(cpu: object) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "a", "image": "b", "resources": {"limits": {"cpu": cpu}}}]}}


@pytest.mark.parametrize(
    ("cls", "one", "other"),
    [
        (Pod, pod("0.5"), pod("500m")),
        (Pod, pod("1"), pod(1)),
        (Pod, pod("1e3"), pod("1k")),
        (
            HorizontalPodAutoscaler,
            {"spec": {"metrics": [{"resource": {"target": {"averageValue": "2000m"}}}]}},
            {"spec": {"metrics": [{"resource": {"target": {"averageValue": "2"}}}]}},
        ),
    ],
)
def test_the_same_amounts_are_equal(cls: type[Model], one: Any, other: Any) -> None:
    assert one != other
    assert with_amounts(cls, one) == with_amounts(cls, other)


@pytest.mark.parametrize(
    ("cls", "members"),
    [
        (ConfigMap, {"data": {"cpu": "0.5"}}),
        (Pod, {"spec": {"nodeName": "0.50"}, "unknown": ["0.5"]}),
        (Pod, pod("no quantity")),
        (Pod, pod(None)),
        (Pod, pod([True])),
        (Pod, {"spec": {"containers": "not a list", "overhead": ["x"]}}),
    ],
)
def test_all_other_values_stay(cls: type[Model], members: Any) -> None:
    assert with_amounts(cls, members) == members


def test_other_amounts_differ() -> None:
    assert with_amounts(Pod, pod("500m")) != with_amounts(Pod, pod("501m"))
