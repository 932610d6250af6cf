"""Merge patches that are made of two values: what they remove, and what they leave out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.models import (
    KubernetesObject,
    Model,
    ObjectMeta,
    Quantity,
    ResourceInfo,
    from_dict,
    merge_patch,
)
from trioformer.models.apps_v1 import Deployment, DeploymentCondition, DeploymentStatus
from trioformer.models.core_v1 import ConfigMap, Pod


@attrs.frozen(kw_only=True, eq=False, repr=False)
class WidgetSpec(Model):
    """A part of a custom kind."""

    sizes: tuple[int, ...] = ()
    message: str | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Widget(KubernetesObject):
    """A custom kind."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True
    )

    spec: WidgetSpec = WidgetSpec()


def merged(target: Any, patch: Any) -> Any:
    """The algorithm of RFC 7386, as its section 2 has it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {}, {"a": None}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": {"b": 1}}, {"a": 1}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
        ({"a": (1, 2)}, {"a": [1, 2]}, {}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"c": 1, "b": 1}}, {}),
        # numbers of other types are other JSON, though Python finds them equal
        ({"a": 1}, {"a": 1.0}, {"a": 1.0}),
        ({"a": 1}, {"a": True}, {"a": True}),
        # a null is absent, unless it was there
        ({}, {"a": None}, {}),
        ({"a": None}, {}, {"a": None}),
        ({"a": None}, {"a": 1}, {"a": 1}),
        ({}, {"a": {"b": None, "c": {"d": None}}}, {"a": {"c": {}}}),
        ({}, {"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}),
    ],
)
def test_a_patch_has_what_differs(old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]) -> None:
    assert merge_patch(old, new) == patch
    assert repr(merge_patch(old, new)) == repr(patch)  # also the types of the numbers


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x"])
MEMBERS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=3), max_leaves=12
)
OBJECTS = st.dictionaries(MEMBERS, VALUES, max_size=3)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return value


@given(OBJECTS, OBJECTS)
def test_a_patch_makes_one_value_of_another_as_in_rfc_7386(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert without_nulls(merged(old, merge_patch(old, new))) == without_nulls(new)
    if old == without_nulls(old):
        assert merged(old, merge_patch(old, new)) == without_nulls(new)


def deployment(**status: Any) -> Deployment:
    metadata = {"name": "web", "namespace": "default", "resourceVersion": "5"}
    return from_dict(Deployment, {"metadata": metadata, "status": status})


def test_a_field_that_a_model_has_cleared_is_null_in_the_patch() -> None:
    old = deployment(replicas=3, observedGeneration=2, unknown="kept")
    new = old.evolve(status=old.status.evolve(replicas=None, ready_replicas=1))
    assert merge_patch(old, new) == {"status": {"replicas": None, "readyReplicas": 1}}
    assert merge_patch(old.status, new.status) == {"replicas": None, "readyReplicas": 1}


def test_a_status_that_is_made_anew_removes_all_that_it_does_not_have() -> None:
    old = deployment(replicas=3, conditions=[{"type": "Available", "status": "True"}])
    new = old.evolve(status=DeploymentStatus(replicas=3))
    assert merge_patch(old, new) == {"status": {"conditions": None}}


def test_times_and_quantities_are_in_the_patch_as_json() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    old = deployment()
    conditions = (DeploymentCondition(type="Available", status="True", last_transition_time=at),)
    new = old.evolve(status=DeploymentStatus(conditions=conditions))
    condition = {"type": "Available", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    assert merge_patch(old, new) == {"status": {"conditions": [condition]}}
    assert merge_patch({"at": None}, {"at": at, "size": Quantity("1Gi")})["size"] == "1Gi"


def test_two_equal_objects_make_an_empty_patch_whoever_made_them() -> None:
    read = from_dict(ConfigMap, {"metadata": {"name": "a", "labels": {}}, "data": {"x": "1"}})
    listed = ConfigMap(metadata=ObjectMeta(name="a", labels={}), data={"x": "1"})
    assert merge_patch(listed, ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"})) == {}
    assert merge_patch(read, read) == {}
    # items of a list omit kind and apiVersion
    assert merge_patch(read, read.evolve(data={"x": "2"})) == {"data": {"x": "2"}}


def test_an_empty_list_of_a_custom_kind_is_sent() -> None:
    old = Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(sizes=(1,), message="m"))
    new = old.evolve(spec=WidgetSpec(sizes=()))
    assert merge_patch(old, new) == {"spec": {"sizes": [], "message": None}}


def test_what_the_server_counts_is_not_compared() -> None:
    managed = [{"manager": "x", "operation": "Apply"}]
    metadata = {"name": "web", "namespace": "default", "resourceVersion": "9", "managedFields": managed}
    newer = from_dict(Deployment, {"metadata": metadata})
    assert merge_patch(deployment(), newer) == {"status": None}
    assert merge_patch(newer, deployment()) == {"status": {}}


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (Pod(), Deployment(), "a merge patch requires two models of the same class, not Pod and Deployment"),
        (Pod(), {}, "a merge patch requires two models or two mappings, not Pod and dict"),
        ([], [], "a merge patch requires two models or two mappings, not list and list"),
        ({}, {"a": object()}, "a object cannot be encoded as JSON"),
    ],
)
def test_a_patch_of_other_values_is_a_type_error(old: Any, new: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        merge_patch(old, new)
    assert str(caught.value) == text


@pytest.mark.parametrize("other", [{"name": "other", "namespace": "default"}, {"name": "web", "namespace": "other"}])
def test_a_patch_of_two_objects_is_of_one_object(other: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"^a merge patch requires two states of the same object, not default/web and"):
        merge_patch(deployment(), from_dict(Deployment, {"metadata": other}))
