"""Objects whose message is damaged below the top level: an error where the damage is read, and only there."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import pytest

from trioformer.errors import DecodeError
from trioformer.models import encode, to_dict
from trioformer.models._internal import Message, make_object, object_of, open_envelope, tagged
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.core_v1 import Pod

META = tagged(1, tagged(1, b"a") + tagged(3, b"shop"))


def pod(spec: bytes = b"", status: bytes | None = None) -> Pod:
    more = b"" if status is None else tagged(3, status)
    return make_object(Pod, Message(META + tagged(2, spec) + more))


def error_of(read: Any) -> str:
    texts = set()
    for _ in range(2):  # each read raises it
        with pytest.raises(DecodeError) as caught:
            read()
        texts.add(str(caught.value))
    (text,) = texts
    return text


def place_of(read: Any) -> str:
    """Return the object and the path in the error of a read."""
    return error_of(read).removeprefix("cannot decode ").rpartition(": ")[0]


def test_a_damaged_level_is_an_error_of_its_fields_and_of_no_others() -> None:
    broken = pod(b"\x7f", tagged(1, b"Running"))
    assert place_of(lambda: broken.spec.node_name) == "Pod shop/a: spec.nodeName"
    assert broken.status is not None
    assert broken.status.phase == "Running"
    assert (broken.name, broken.key, broken.metadata.name) == ("a", "shop/a", "a")


def test_a_damaged_field_is_an_error_and_its_neighbours_are_read() -> None:
    name = tagged(10, b"node-1")
    for field, read, path in [
        (tagged(4, b"xx"), lambda spec: spec.termination_grace_period_seconds, "terminationGracePeriodSeconds"),
        (b"\x18\x07", lambda spec: spec.restart_policy, "restartPolicy"),
        (b"\x70\x07", lambda spec: spec.security_context, "securityContext"),
        (tagged(7, tagged(1, b"k") + b"\x10\x01"), lambda spec: spec.node_selector, "nodeSelector"),
        (tagged(7, b"\x0f"), lambda spec: spec.node_selector, "nodeSelector"),
    ]:
        spec = pod(field + name).spec
        assert place_of(lambda read=read, spec=spec: read(spec)) == f"Pod shop/a: spec.{path}"
        assert spec.node_name == "node-1"
        assert spec.host_network is None
        assert place_of(lambda read=read, spec=spec: read(spec)) == f"Pod shop/a: spec.{path}"


GOOD, BAD = (tagged(1, b"web") + tagged(7, tagged(1, b"A") + value) for value in (b"", b"\x1a\x7f"))


def test_damage_deep_inside_is_found_where_it_is_read() -> None:
    broken = pod(tagged(2, GOOD) + tagged(2, BAD + b"\x2a\x7f") + tagged(10, b"node-1"))
    assert broken.spec.node_name == "node-1"
    assert len(broken.spec.containers) == 2
    assert place_of(lambda: broken.spec.containers[1].name) == "Pod shop/a: spec.containers[1].name"


def test_a_damaged_part_names_its_object_and_path_in_each_use() -> None:
    broken = pod(tagged(2, GOOD) + tagged(2, BAD) + tagged(10, b"node-1") + tagged(20, BAD + tagged(7, b"\x7f")))
    spec, wanted = broken.spec, "Pod shop/a: spec.containers[1].env[0].value"
    (_, container), (initial,) = spec.containers, spec.init_containers
    changed = spec.evolve(node_name="node-2")
    for read in (
        lambda: broken.spec.containers[1].env[0].value,
        lambda: container.env[0].value,
        lambda: changed.containers[1].env[0].value,
        lambda: container.env[0].evolve(name="B").value,
        lambda: broken.evolve(spec=changed).spec.containers[1].env[0].value,
        lambda: broken.evolve(status=None).spec.containers[1].env[0].value,
        lambda: copy.deepcopy(broken).spec.containers[1].env[0].value,
        lambda: pickle.loads(pickle.dumps(broken)).spec.containers[1].env[0].value,
        lambda: Pod(spec=spec).spec.containers[1].env[0].value,
    ):
        assert place_of(read) == wanted
    assert place_of(lambda: initial.env[1].value) == "Pod shop/a: spec.initContainers[0].env[1].value"
    unpickled = pickle.loads(pickle.dumps(spec))
    assert place_of(lambda: unpickled.containers[1].env[0].value) == "PodSpec: containers[1].env[0].value"


def test_a_damaged_value_of_a_map_is_named_without_its_key() -> None:
    entry = tagged(1, b"cpu") + tagged(2, b"\x7f")
    broken = pod(tagged(2, GOOD + tagged(8, tagged(1, entry))))
    assert place_of(lambda: broken.spec.containers[0].resources.limits) == (
        "Pod shop/a: spec.containers[0].resources.limits"
    )
    assert place_of(lambda: to_dict(broken)) == "Pod shop/a: spec.containers[0].resources.limits[…]"


def test_the_pickle_of_a_part_does_not_contain_the_object() -> None:
    whole = pod(tagged(2, tagged(1, b"web")), tagged(1, b"Running" * 1_000))
    data = pickle.dumps(whole.spec)
    assert len(data) < 1_000
    assert pickle.loads(data) == whole.spec


def test_a_part_does_not_keep_the_bytes_of_its_object() -> None:
    whole = pod(tagged(2, tagged(1, b"web") + tagged(3, b"a")))
    before = sys.getrefcount(whole._origin.data)
    parts = whole.metadata, whole.spec, whole.spec.containers[0]
    assert [parts[0].name, parts[2].name] == ["a", "web"]
    after = sys.getrefcount(whole._origin.data)  # pytest keeps what an assertion compares
    assert after == before


def test_json_of_a_damaged_object_is_an_error() -> None:
    for broken, path in (
        (pod(b"\x7f"), "spec"),
        (pod(tagged(2, GOOD) + tagged(2, b"\x7f")), "spec.containers[1]"),
        (pod(tagged(2, BAD)), "spec.containers[0].env[0]"),
        (pod(tagged(4, b"xx")), "spec.terminationGracePeriodSeconds"),
    ):
        for convert in (to_dict, encode):
            assert place_of(lambda broken=broken, convert=convert: convert(broken)) == f"Pod shop/a: {path}"
        assert broken == pickle.loads(pickle.dumps(broken))
        assert hash(broken) == hash(pod())
        assert "shop/a" in repr(broken)
        assert broken != pod()


def test_each_byte_that_is_not_utf8_reads_as_the_replacement_character() -> None:
    for data, text in [
        (b"a\xffb", "a\ufffdb"),
        (b"\xe2\x82", "\ufffd\ufffd"),
        (b"\xc3\xa9\xc3", "\xe9\ufffd"),
        (b"\xed\xa0\x80", "\ufffd" * 3),
        (b"\xf0\x9f\x98", "\ufffd" * 3),
    ]:
        broken = pod(tagged(10, data) + tagged(7, tagged(1, data) + tagged(2, data)))
        assert broken.spec.node_name == text
        assert broken.spec.node_selector == {text: text}
        spec = to_dict(broken)["spec"]
        assert (spec["nodeName"], spec["nodeSelector"]) == (text, {text: text})
        named = make_object(Pod, Message(tagged(1, tagged(1, data) + tagged(3, b"shop"))))
        assert (named.name, named.metadata.name) == (text, text)


def test_a_field_of_an_unknown_number_is_skipped_with_any_wire_type() -> None:
    fields = b"\xc0\x3e\x05" + b"\xc1\x3e" + b"x" * 8 + b"\xc5\x3e" + b"y" * 4 + tagged(1000, b"z")
    newer = pod(fields + tagged(10, b"node-1"))
    assert newer.spec.node_name == "node-1"
    assert to_dict(newer) == to_dict(pod(tagged(10, b"node-1")))


def schema(levels: int) -> bytes:
    found = object_of({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {}})
    assert found is not None
    props = tagged(4, b"")
    for _ in range(levels):
        props = tagged(28, props)  # not
    version = tagged(1, b"v1") + tagged(4, tagged(1, props))
    return open_envelope(found)[2] + tagged(2, tagged(1, b"example.com") + tagged(7, version))


def test_a_deep_schema_is_an_error_and_the_object_is_read() -> None:
    deep = make_object(CustomResourceDefinition, Message(schema(10_000)))
    assert deep.spec.group == "example.com"
    assert "too many levels" in error_of(lambda: to_dict(deep))
    assert to_dict(make_object(CustomResourceDefinition, Message(schema(50))))["spec"]["group"] == "example.com"


def test_a_number_of_another_size_is_an_error() -> None:
    for value in (tagged(9, b"abc"), tagged(9, b""), b"\x48\x01"):
        version = tagged(1, b"v1") + tagged(4, tagged(1, value))
        crd = make_object(CustomResourceDefinition, Message(META + tagged(2, tagged(7, version))))
        found = crd.spec.versions[0].schema
        assert found is not None
        props = found.open_api_v3_schema
        assert props is not None
        wanted = "CustomResourceDefinition shop/a: spec.versions[0].schema.openAPIV3Schema.maximum"
        assert place_of(lambda props=props: props.maximum) == wanted
        assert place_of(lambda crd=crd: to_dict(crd)) == wanted


def test_json_inside_that_is_damaged_is_an_error() -> None:
    managed = tagged(17, tagged(1, b"kubectl") + tagged(7, tagged(1, b'{"f:a":')))
    broken = make_object(Pod, Message(tagged(1, tagged(1, b"a") + managed)))
    assert broken.name == "a"
    entries = broken.metadata.managed_fields
    assert entries is not None
    assert entries[0].manager == "kubectl"
    assert place_of(lambda: entries[0].fields_v1) == "Pod a: metadata.managedFields[0].fieldsV1"
