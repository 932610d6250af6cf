"""Mistakes with models fail at once, and the errors say what was probably meant."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

import trioformer.models
from trioformer.models import (
    KubernetesObject,
    Model,
    ObjectMeta,
    ResourceInfo,
    from_dict,
    from_json,
    resource_of,
    unstructured_kind,
)
from trioformer.models._lazy import plan_of
from trioformer.models.apps_v1 import Deployment, DeploymentSpec
from trioformer.models.core_v1 import Container, Pod, PodSpec

POD: Any = from_json(
    Pod, b'{"metadata":{"name":"a","labels":{"app":"web"}},"spec":{"nodeName":"n"},"status":{"phase":"Running"}}'
)


@attrs.frozen(kw_only=True)
class WidgetSpec(Model):
    size_limit: int = 0


@attrs.frozen(kw_only=True)
class Widget(KubernetesObject):
    __resource__ = ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)

    spec: WidgetSpec = WidgetSpec()


def text_of(kind: type[Exception], mistake: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        mistake()
    return str(caught.value)


# --- reading ---


@pytest.mark.parametrize(
    ("read", "meant"),
    [
        (lambda: POD.spec.nodeName, "node_name"),
        (lambda: POD.metadata.resourceVersion, "resource_version"),
        (lambda: POD.labels, "metadata.labels"),
        (lambda: POD.node_name, "spec.node_name"),
        (lambda: POD.to_dict(), "trioformer.models.to_dict(obj)"),
        (lambda: Widget().spec.sizeLimit, "size_limit"),  # type: ignore[attr-defined]  # the mistake
        (lambda: Widget().size_limit, "spec.size_limit"),  # type: ignore[attr-defined]  # the mistake
    ],
)
def test_the_error_of_an_absent_attribute_says_which_was_meant(read: Callable[[], object], meant: str) -> None:
    text = text_of(AttributeError, read)
    assert text.endswith(f"; did you mean {meant}?"), text
    assert "object has no attribute" in text


def builtin_models() -> Iterator[type[Model]]:
    for module in pkgutil.iter_modules(trioformer.models.__path__):
        if not module.name.startswith("_") and module.name != "builtin_kinds":
            found = vars(importlib.import_module(f"trioformer.models.{module.name}"))
            for cls in found.values():
                if isinstance(cls, type) and issubclass(cls, Model) and cls.__module__.endswith(module.name):
                    yield cls


def test_each_name_of_the_api_leads_to_the_name_of_its_field() -> None:
    checked = 0
    for cls in builtin_models():
        obj = from_json(cls, b"{}")
        for name in plan_of(cls).fields:
            api_name = plan_of(cls).fields[name].json
            if api_name != name:
                text = text_of(AttributeError, lambda obj=obj, name=api_name: getattr(obj, name))  # type: ignore[misc]  # bound now
                assert text.endswith(f"; did you mean {name}?"), text
                checked += 1
    assert checked > 800


@pytest.mark.parametrize("name", ["__array__", "_repr_html_", "colour"])
def test_the_error_of_a_name_that_is_like_no_other_has_no_hint(name: str) -> None:
    assert text_of(AttributeError, lambda: getattr(POD, name)) == f"'Pod' object has no attribute {name!r}"
    assert not hasattr(POD, name)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda: POD["metadata"], "a Pod is not a mapping or a list; read its attribute metadata"),
        (lambda: POD.spec["nodeName"], "a PodSpec is not a mapping or a list; read its attribute node_name"),
        (lambda: POD[0], "a Pod is not a mapping or a list; to_dict(obj) returns a dict"),
    ],
)
def test_a_model_that_is_read_like_a_dict_names_the_attribute(read: Callable[[], object], text: str) -> None:
    assert text_of(TypeError, read) == text


def test_a_model_is_no_iterable_and_an_unstructured_object_is_a_mapping() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        iter(POD)
    gadget = unstructured_kind("example.com/v1", "Gadget", plural="gadgets", namespaced=True)
    obj = gadget.of({"metadata": {"name": "a"}, "spec": {"size": 3}})
    assert obj["spec"]["size"] == 3
    assert "spec" in list(obj)


# --- changing ---


@pytest.mark.parametrize(
    ("obj", "name", "text"),
    [
        (POD.spec, "nodeName", "a PodSpec cannot be changed; make a copy with evolve(node_name=...)"),
        (POD.metadata, "labels", "an ObjectMeta cannot be changed; make a copy with evolve(labels=...)"),
        (Widget(), "spec", "a Widget cannot be changed; make a copy with evolve(spec=...)"),
    ],
)
def test_the_error_of_a_change_in_place_says_how_to_make_a_copy(obj: object, name: str, text: str) -> None:
    assert text_of(attrs.exceptions.FrozenInstanceError, lambda: setattr(obj, name, None)) == text
    assert text_of(AttributeError, lambda: delattr(obj, name)) == text


# --- making ---


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: PodSpec(nodeName="n"), "PodSpec() has no argument 'nodeName'; did you mean node_name?"),  # type: ignore[call-arg]  # the mistake
        (lambda: POD.spec.evolve(nodeName="n"), "PodSpec() has no argument 'nodeName'; did you mean node_name?"),
        (lambda: Pod(name="a"), "Pod() has no argument 'name'; did you mean metadata=ObjectMeta(name=...)?"),  # type: ignore[call-arg]  # the mistake
        (
            lambda: Deployment(replicas=3),  # type: ignore[call-arg]  # the mistake
            "Deployment() has no argument 'replicas'; did you mean spec=DeploymentSpec(replicas=...)?",
        ),
        (lambda: WidgetSpec(colour="red"), "WidgetSpec() has no argument 'colour'; it has size_limit"),  # type: ignore[call-arg]  # the mistake
        (lambda: Pod("a"), "Pod() takes no positional arguments"),  # type: ignore[misc]  # the mistake
    ],
)
def test_the_error_of_an_absent_argument_says_which_was_meant(make: Callable[[], object], text: str) -> None:
    assert text_of(TypeError, make) == text


@pytest.mark.parametrize(
    ("cls", "given", "text"),
    [
        (ObjectMeta, {"labels": ["app"]}, "ObjectMeta.labels must be a mapping, not a list; write {key: ...}"),
        (ObjectMeta, {"labels": {"size": 3}}, "each value of ObjectMeta.labels must be a str, not an int"),
        (ObjectMeta, {"name": 7}, "ObjectMeta.name must be a str, not an int"),
        (ObjectMeta, {"finalizers": "example.com/a"}, "ObjectMeta.finalizers must be a tuple, not a str; write (...,)"),
        (Container, {"args": "-v"}, "Container.args must be a tuple, not a str; write (...,)"),
        (DeploymentSpec, {"replicas": "3"}, "DeploymentSpec.replicas must be an int, not a str"),
        (PodSpec, {"host_network": "yes"}, "PodSpec.host_network must be a bool, not a str"),
    ],
)
def test_a_value_of_another_type_is_refused_and_not_shown(cls: type[Model], given: dict[str, Any], text: str) -> None:
    assert text_of(TypeError, lambda: cls(**given)) == text


# --- kinds ---


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("Pod", "a kind must be a class, not a string; write from trioformer.models.core_v1 import Pod"),
        ("deploy", "a kind must be a class, not a string; write from trioformer.models.apps_v1 import Deployment"),
        ("apps/v1/Deployment", "a kind must be a class, not a string; write from trioformer.models.apps_v1 import Dep"),
        ("Widget", "a kind must be a class, not a string; client.discover(api_version, kind) returns it"),
        (POD, "a kind must be a class, not an object; pass Pod itself"),
        (5, "a kind must be a class, such as Pod, not an int"),
    ],
)
def test_what_is_no_class_in_the_place_of_a_kind_says_what_to_write(kind: Any, text: str) -> None:
    assert text_of(TypeError, lambda: resource_of(kind)).startswith(text)


def test_an_object_is_made_of_a_class_and_not_of_its_name() -> None:
    name: Any = "Pod"
    assert "import Pod" in text_of(TypeError, lambda: from_dict(name, {}))
    assert "import Pod" in text_of(TypeError, lambda: from_json(name, b"{}"))
