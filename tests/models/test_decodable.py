"""Whether an object decodes completely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import attrs
import pytest

from trioformer.errors import DecodeError
from trioformer.models import KubernetesObject, Model, ResourceInfo, from_dict, from_json, to_dict, unstructured_kind
from trioformer.models._internal import find_undecodable
from trioformer.models._lazy import make
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.core_v1 import Pod

DEEP = b'{"not":' * 100_000 + b"{}" + b"}" * 100_000


@attrs.frozen
class Size:
    number: int


@dataclass(frozen=True)
class Place:
    rack: Size


@attrs.frozen(kw_only=True)
class WidgetSpec(Model):
    size: Size | None = None
    place: Place | None = None
    pods: Mapping[str, Pod] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Widget(KubernetesObject):
    __resource__ = ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)
    spec: WidgetSpec = WidgetSpec()


Loose = unstructured_kind("example.com/v1", "Loose", plural="looses", namespaced=True)


def made(kind: type[KubernetesObject], members: bytes) -> KubernetesObject:
    return make(kind, b'{"metadata":{"name":"a","namespace":"b"},' + members + b"}")


@pytest.mark.parametrize(
    ("kind", "members", "expected"),
    [
        (Pod, b'"spec":{"nodeName":5}', "PodSpec.node_name"),
        (
            Pod,
            b'"spec":{"nodeName":"n","containers":[{},{"ports":[{"hostPort":""}]}]}',
            "host_port",
        ),
        (Pod, b'"spec":{"nodeSelector":{"a":1}}', "PodSpec.node_selector"),
        (Pod, b'"metadata":{"managedFields":[{"time":"yesterday"}]}', "ManagedFieldsEntry.time"),
        (Pod, b'"status":[]', "PodStatus"),
        (Widget, b'"spec":{"size":{"number":"x"}}', "WidgetSpec.size"),
        (Widget, b'"spec":{"pods":{"a":{"spec":{"nodeName":5}}}}', "PodSpec.node_name"),
        (Loose, b'"metadata":{"labels":{"a":1}}', "ObjectMeta.labels"),
        (Loose, b'"spec":' + DEEP, "too many levels"),
    ],
)
def test_the_error_names_a_field_that_does_not_decode(
    kind: type[KubernetesObject], members: bytes, expected: str
) -> None:
    assert expected in str(find_undecodable(made(kind, members)))


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        (Pod, b'"spec":{"nodeName":"n","containers":[{"name":"a","unknown":{"a":[1]}}]},"other":5'),
        (Widget, b'"spec":{"size":{"number":1},"place":{"rack":{"number":2}},"pods":{"a":{}}}'),
        (Loose, b'"spec":{"size":[1,"x",null]}'),
    ],
)
def test_an_object_that_decodes_has_no_error_and_does_not_grow(kind: type[KubernetesObject], members: bytes) -> None:
    obj = made(kind, members)
    assert find_undecodable(obj) is None
    with pytest.raises(AttributeError):
        object.__getattribute__(obj, "metadata")


def test_parts_in_parts_are_decoded_to_a_limit_of_levels() -> None:
    for levels, is_good in ((100, True), (500, False)):
        schema = b'{"not":' * levels + b"{}" + b"}" * levels
        spec = b'"spec":{"group":"g","versions":[{"name":"v1","schema":{"openAPIV3Schema":' + schema + b"}}]}"
        error = find_undecodable(made(CustomResourceDefinition, spec))
        assert (error is None) == is_good
        assert is_good or "too many levels" in str(error)


def test_an_amount_that_is_not_valid_does_not_decode() -> None:
    spec = b'"spec":{"overhead":{"cpu":"1e999999999"}}'
    assert "not supported" in str(find_undecodable(made(Pod, spec)))


@pytest.mark.parametrize("levels", [126, 127, 128])
def test_an_object_whose_fields_decode_becomes_a_dict_and_an_object_again(levels: int) -> None:
    widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
    inner = b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)
    obj = from_json(widget, b'{"metadata":{"name":"a"},"spec":%s}' % inner)
    assert find_undecodable(obj) is None
    assert to_dict(from_dict(widget, to_dict(obj))) == to_dict(obj)
    too_deep = from_json(widget, b'{"metadata":{"name":"a"},"spec":%s}' % (b"[" * 500 + b"]" * 500))
    with pytest.raises(DecodeError, match="too many levels"):
        to_dict(too_deep)
