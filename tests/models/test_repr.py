"""How models are shown."""

from __future__ import annotations

from trioformer.models import ObjectMeta, from_json, metadata_kind, unstructured_kind
from trioformer.models._lazy import make
from trioformer.models.apiextensions_v1 import CustomResourceDefinition, JSONSchemaProps
from trioformer.models.core_v1 import Pod, PodSpec

Widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)


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


def test_parts_in_parts_are_shown_to_four_levels() -> None:
    text = '{"title": "a", "not": ' * 100 + "{}" + "}" * 100
    schema = from_json(JSONSchemaProps, text)
    assert repr(schema).startswith("JSONSchemaProps(not_=JSONSchemaProps(not_=")
    assert len(repr(schema)) < 100
    definition = from_json(CustomResourceDefinition, '{"metadata": {"name": "a"}}')
    assert repr(definition) == "<CustomResourceDefinition a>"


def test_only_the_beginning_of_long_lists_and_maps_is_shown() -> None:
    metadata = ObjectMeta(finalizers=("x",) * 100_000, labels={str(number): "" for number in range(100_000)})
    assert len(repr(metadata)) < 200
    assert repr(metadata).startswith("ObjectMeta(finalizers=('x', 'x', ")
