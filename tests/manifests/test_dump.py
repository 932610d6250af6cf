"""What is written is read as the same values, by every reader of YAML."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trioformer import Client
from trioformer.errors import ManifestError
from trioformer.manifests import ApplySet, Manifest, apply_manifests, dump_manifests, load_manifests
from trioformer.models import ObjectMeta, from_dict, to_dict, unstructured_kind
from trioformer.models.core_v1 import ConfigMap

Widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
# fmt: off
TEXTS = (
    "yes", "on", "1e3", "0o17", "017", "1_0", "~", "<<", "=", "0x1F", ".inf", "60:00", "2001-01-01", "y", "null",
    "{a", "#a", "!x", "&a", "*a", "%a", "@a", "`", "|", ">", "-", "?", ":", "\ufeff", "\x85", "\u2028",
)
# fmt: on

texts = st.text(st.characters(codec="utf-8")) | st.sampled_from(
    [*TEXTS, "", "- a", " a", "a ", "a #b", "a: b", "a\nb", "a\n\n", "\n", "a:\n b\n", " a\n b", "a\tb\n", "\t", "\r\n"]
)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=10,
)


@given(st.dictionaries(texts, values, max_size=5))
def test_what_is_written_is_read_as_the_same_values(spec: dict[str, Any]) -> None:
    whole = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
    text = dump_manifests([from_dict(Widget, whole)] * 2)
    assert [to_dict(manifest.object) for manifest in load_manifests(text=text)] == [whole] * 2
    assert list(yaml.safe_load_all(text)) == [whole] * 2


@pytest.mark.parametrize("text", TEXTS)
def test_what_some_program_reads_as_something_else_is_in_quotes(text: str) -> None:
    dumped = dump_manifests([ConfigMap(data={"key": text})])
    assert yaml.compose(dumped).value[-1][1].value[0][1].style is not None


def test_an_export_has_the_order_of_kubectl_and_lines_of_texts() -> None:
    whole = {
        "status": {"a": 1},
        "spec": {"text": "one\n  two\n", "list": [1, 2], "same": {"a": "b"}, "again": {"a": "b"}},
        "metadata": {
            "creationTimestamp": "2026-11-22T19:00:00Z",
            "generation": 1,
            "labels": {"app": "web", "on": "yes"},
            "managedFields": [{"manager": "me"}],
            "name": "w",
            "resourceVersion": "5",
            "uid": "u",
        },
        "kind": "Widget",
        "apiVersion": "example.com/v1",
    }
    obj = from_dict(Widget, whole)
    assert (
        dump_manifests([Manifest(object=obj), obj], drop_server_fields=True, drop_status=True).split("---\n")
        == [""]
        + [
            """\
apiVersion: example.com/v1
kind: Widget
metadata:
  labels:
    app: web
    "on": "yes"
  name: w
spec:
  text: |
    one
      two
  list:
  - 1
  - 2
  same:
    a: b
  again:
    a: b
"""
        ]
        * 2
    )
    assert to_dict(load_manifests(text=dump_manifests([obj]))[0].object) == whole
    assert dump_manifests([]) == ""


async def test_items_of_a_list_are_written_as_objects_that_can_be_applied(client: Client) -> None:
    maps = client.api(ConfigMap, "default")
    await maps.apply(ConfigMap(metadata=ObjectMeta(name="d"), data={"a": "b"}), field_manager="me")
    text = dump_manifests(await maps.list(), drop_server_fields=True)
    assert text.startswith("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n")
    (manifest,) = load_manifests(text=text)
    assert manifest.object.name == "d"


async def test_an_export_is_no_member_of_an_apply_set(client: Client) -> None:
    for labels, kept in (({}, None), ({"app": "web"}, {"app": "web"})):
        obj = ConfigMap(metadata=ObjectMeta(name="d", namespace="default", labels=labels))
        (result,) = await apply_manifests(client, [obj], field_manager="me", prune=ApplySet("set", "default"))
        assert result.object is not None
        metadata = yaml.safe_load(dump_manifests([result.object], drop_server_fields=True))["metadata"]
        assert metadata.get("labels") == kept
        assert "applyset" in dump_manifests([result.object])


def test_dumped_texts_can_be_joined() -> None:
    texts = [dump_manifests([ConfigMap(metadata=ObjectMeta(name=name))]) for name in "ab"]
    assert [each.object.name for each in load_manifests(text="".join(texts))] == ["a", "b"]
    with pytest.raises(ManifestError) as caught:
        load_manifests(text="".join(texts).replace("---\n", ""))
    (problem,) = caught.value.problems
    assert "---" in str(problem)
