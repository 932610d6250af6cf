"""The classes of built-in kinds look like classes of attrs, which makes nothing of them when they are imported."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any, cast

import attrs
import pytest

from trioformer.models import KubernetesObject, Model, ObjectMeta, from_json
from trioformer.models.core_v1 import ConfigMap, Container, ContainerPort, Pod, PodSpec, Probe

PROGRAM = """
import trioformer.models.core_v1 as module
kinds = [getattr(module, name) for name in module.__all__]
print(sum(isinstance(vars(kind)["__attrs_attrs__"], tuple) for kind in kinds), len(kinds))
"""


def test_the_fields_of_a_kind_are_not_described_when_its_module_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    described, kinds = map(int, done.stdout.split())
    assert described == 0
    assert kinds > 200


def fields_of(cls: type[Any]) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", attrs.fields(cls))


@pytest.mark.parametrize("cls", [Container, ContainerPort, Pod, Probe])
def test_attrs_describes_a_class_as_if_it_had_made_it(cls: type[Model]) -> None:
    found = fields_of(cls)
    namespace = {field.name: field.default for field in found if not field.inherited}
    namespace |= {"__annotations__": cls.__annotations__, "__module__": __name__}
    twin = attrs.frozen(kw_only=True)(type(cls.__name__, cls.__bases__, namespace))
    assert str(found) == str(fields_of(twin))  # attrs compares what only attrs knows
    assert [getattr(found, field.name) for field in found] == [*found]


def test_the_fields_are_the_same_at_each_call() -> None:
    assert fields_of(ContainerPort) is fields_of(ContainerPort)


def test_a_signature_has_the_fields() -> None:
    parameters = inspect.signature(ContainerPort).parameters
    assert [*parameters] == ["container_port", "host_ip", "host_port", "name", "protocol"]
    assert parameters["container_port"].default == 0
    assert parameters["name"].annotation == "str | None"
    assert inspect.signature(ConfigMap).parameters["kind"].default is ...


def test_an_attrs_class_of_a_program_inherits_the_fields_of_a_built_in_class() -> None:
    @attrs.frozen(kw_only=True, eq=False, repr=False)
    class Sized(ContainerPort):
        size: int

    made = Sized(size=1, name="web")
    assert (made.size, made.name, made.container_port) == (1, "web", 0)
    assert [*inspect.signature(Sized).parameters][-1] == "size"
    assert made.evolve(size=2).name == "web"


def test_a_subclass_without_fields_is_constructed_like_its_base() -> None:
    class Marked(ContainerPort):
        def __attrs_post_init__(self) -> None:
            made.append(self)

    made: list[Model] = []
    marked = Marked(name="web")
    assert marked.name == "web"
    assert made == [marked]


def test_a_new_object_keeps_one_default_per_field() -> None:
    pod = Pod(spec=PodSpec(node_name="n"))
    assert pod.spec.containers == ()
    assert pod.metadata is pod.metadata
    assert (pod.kind, pod.api_version) == ("Pod", "v1")
    assert pod.evolve(metadata=ObjectMeta(name="a")).spec is pod.spec


@pytest.mark.parametrize("names", [("node_name", "containers"), ("containers", "node_name", "hostname")])
def test_the_order_of_reads_does_not_matter_for_a_new_object(names: tuple[str, ...]) -> None:
    spec = PodSpec(node_name="n")
    found = {name: getattr(spec, name) for name in names}
    assert {"hostname": None, **found} == {"node_name": "n", "containers": (), "hostname": None}
    assert spec == from_json(PodSpec, '{"nodeName": "n"}')


@pytest.mark.parametrize("change", [{"data": 1}, {"other": 1}])
def test_the_constructor_checks_its_arguments(change: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(change))):
        ConfigMap(**change)


def test_the_base_of_all_kinds_has_defaults_of_each_kind() -> None:
    assert {field.name for field in fields_of(KubernetesObject)} == {"_origin", "api_version", "kind", "metadata"}
    assert ConfigMap().kind == "ConfigMap"
