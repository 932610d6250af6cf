"""How models are shown."""

from __future__ import annotations

import attrs

from trioformer.models import Model, ObjectMeta, from_json, metadata_kind, unstructured_kind
from trioformer.models._lazy import make
from trioformer.models.apiextensions_v1 import CustomResourceDefinition, JSONSchemaProps
from trioformer.models.core_v1 import Pod, PodSpec

Widget = unstructured_kind("repr.example.com/v1", "Widget", plural="widgets", namespaced=True)


def test_a_field_that_does_not_decode_shows_its_problem() -> None:
    spec = from_json(PodSpec, '{"nodeName": 5, "hostNetwork": true, "containers": {"hunter2": 1}}')
    assert repr(spec) == (
        "PodSpec(containers=<cannot decode PodSpec.containers: Expected `array | null`, got `object`>, "
        "host_network=True, node_name=<cannot decode PodSpec.node_name: Expected `str`, got `int`>)"
    )


def test_objects_whose_name_or_kind_does_not_decode_are_shown() -> None:
    text = b'{"kind": 5, "metadata": {"name": ["hunter2"], "uid": 5}}'
    for kind in (Pod, Widget, metadata_kind(Pod)):
        shown = repr(make(kind, text))
        assert "cannot decode" in shown
        assert "hunter2" not in shown
    assert "cannot decode" in repr(make(Pod, b"[]"))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class A(Model):
    a: A | None = None
    b: tuple[A, ...] = ()


def test_parts_in_parts_are_shown_to_four_levels() -> None:
    assert repr(from_json(A, '{"a":' * 9 + "{}" + "}" * 9)) == "A(a=A(a=A(a=A(a=A(…)))))"
    assert repr(from_json(A, '{"b":[' * 9 + "{}" + "]}" * 9)) == "A(b=(A(b=(A(b=(A(b=(A(…),)),)),)),))"
    assert repr(A(a=A())) == "A(a=A())"
    text = '{"title": "a", "not": ' * 400 + "{}" + "}" * 400
    schema = from_json(JSONSchemaProps, text)
    assert repr(schema).startswith("JSONSchemaProps(not_=JSONSchemaProps(not_=")
    assert len(repr(schema)) < 100
    definition = from_json(CustomResourceDefinition, '{"metadata": {"name": "a"}}')
    assert repr(definition) == "<CustomResourceDefinition a>"


def test_only_the_beginning_of_long_lists_and_maps_is_shown() -> None:
    shown = 0

    class Counted(str):
        def __repr__(self) -> str:
            nonlocal shown
            shown += 1
            return super().__repr__()

    metadata = ObjectMeta(finalizers=(Counted("x"),) * 100_000, labels={str(number): "" for number in range(100_000)})
    values = ObjectMeta(labels={str(number): Counted("x") for number in range(100_000)})
    assert len(repr(metadata)) < 200
    assert repr(values)
    assert shown < 100
    assert repr(metadata).startswith("ObjectMeta(finalizers=('x', 'x', ")
