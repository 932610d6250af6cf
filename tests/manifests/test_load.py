"""Manifests become objects; each problem has a file, a line and a column, and quotes no values."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from trioformer.errors import ManifestError, TrioformerError
from trioformer.errors._manifests import ManifestProblem
from trioformer.manifests import Manifest, load_manifests
from trioformer.models import KubernetesObject, Model, ResourceInfo, Unstructured, encode, resource_of
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: REPLICAS
  template:
    spec:
      containers:
      - name: main
        ports:
        - containerPort: PORT
"""


@attrs.frozen(kw_only=True)
class WidgetSpec(Model):
    size: int = 0


@attrs.frozen(kw_only=True)
class Widget(KubernetesObject):
    __resource__ = ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)
    spec: WidgetSpec = WidgetSpec()


def names(manifests: tuple[Manifest, ...]) -> list[str]:
    return [manifest.object.name for manifest in manifests]


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        load_manifests(text=text)
    assert caught.value.__cause__ is None
    return [str(problem) for problem in caught.value.problems]


# ------------------------------------------------------------------------------------------------------------- objects


def test_documents_become_objects_of_their_classes_and_know_their_lines() -> None:
    text = f"# a comment\n---\n{CONFIG_MAP}data: {{a: b}}\n---\n{DEPLOYMENT}".replace("REPLICAS", "3").replace(
        "PORT", "80"
    )
    config_map, deployment = load_manifests(text=text)
    assert isinstance(config_map.object, ConfigMap)
    assert config_map.object.data == {"a": "b"}
    assert (config_map.file, config_map.line, config_map.column) == (None, 3, 1)
    assert isinstance(deployment.object, Deployment)
    assert deployment.object.spec.replicas == 3
    assert (deployment.line, str(deployment)) == (9, "Deployment web (line 9)")


def test_an_object_is_as_it_was_written_without_defaults() -> None:
    (manifest,) = load_manifests(text=f"{CONFIG_MAP}  labels: {{}}\ndata: null\nimmutable: false\n")
    assert json.loads(encode(manifest.object)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "labels": {}},
        "data": None,
        "immutable": False,
    }


@pytest.mark.parametrize("kind", ["List", "ConfigMapList"])
def test_lists_become_their_items(kind: str) -> None:
    items = [{"metadata": {"name": name}} for name in "ab"]
    if kind == "List":
        items = [{"apiVersion": "v1", "kind": "ConfigMap", **item} for item in items]
    manifests = load_manifests(text=json.dumps({"apiVersion": "v1", "kind": kind, "items": items}))
    assert names(manifests) == ["a", "b"]
    assert all(isinstance(manifest.object, ConfigMap) for manifest in manifests)


def test_items_of_lists_know_their_own_lines() -> None:
    text = (
        "kind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata:\n    name: s\n    uid: 3\n"
    )
    assert problems(text) == [
        "line 8, column 10: the metadata.uid of the Secret is not valid: Expected `str`, got `int`"
    ]


def test_an_unknown_kind_is_unstructured_with_a_guessed_plural() -> None:
    text = "{apiVersion: example.com/v1, kind: Policy, metadata: {name: p}, spec: {a: [1]}}"
    (manifest,) = load_manifests(text=text)
    assert isinstance(manifest.object, Unstructured)
    assert manifest.object["spec"] == {"a": (1,)}
    assert resource_of(type(manifest.object)).plural == "policies"


def test_an_unknown_kind_has_the_resource_of_a_definition_in_the_set() -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "mice.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"kind": "Mouse", "plural": "mice"},
            "versions": [],
        },
    }
    mouse = {"apiVersion": "example.com/v1beta1", "kind": "Mouse", "metadata": {"name": "m"}}
    found, _ = load_manifests(text=f"{json.dumps(mouse)}\n---\n{json.dumps(crd)}")
    info = resource_of(type(found.object))
    assert (info.version, info.plural, info.namespaced) == ("v1beta1", "mice", False)


def test_a_class_of_the_program_is_used_for_its_kind() -> None:
    text = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: SIZE}}"
    (manifest,) = load_manifests(text=text.replace("SIZE", "3"), kinds=[Widget])
    assert isinstance(manifest.object, Widget)
    assert manifest.object.spec.size == 3
    with pytest.raises(ManifestError, match=r"column 78: the spec.size of the Widget is not valid"):
        load_manifests(text=text.replace("SIZE", "big"), kinds=[Widget])


def test_a_generated_name_is_a_name() -> None:
    (manifest,) = load_manifests(text="{apiVersion: v1, kind: ConfigMap, metadata: {generateName: c-}}")
    assert str(manifest) == "ConfigMap c- (line 1)"


# --------------------------------------------------------------------------------------------------------------- files


def test_a_directory_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "ignored.txt", "inner/d.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(CONFIG_MAP.replace("name: c", f"name: {path.stem}"))
    assert names(load_manifests(tmp_path)) == ["a", "b", "c"]
    assert names(load_manifests(str(tmp_path), recursive=True)) == ["a", "b", "c", "d"]
    manifests = load_manifests(tmp_path / "ignored.txt", tmp_path / "inner")
    assert [manifest.place for manifest in manifests] == [f"{tmp_path}/ignored.txt:1", f"{tmp_path}/inner/d.yaml:1"]


def test_each_file_and_problem_is_named_and_all_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{CONFIG_MAP}---\nkind: Pod\n---\n- a\n")
    (tmp_path / "b.yaml").write_text("a: b: c")
    (tmp_path / "c.yaml").symlink_to("c.yaml")
    (tmp_path / "d").mkdir()
    with pytest.raises(ManifestError) as caught:
        load_manifests(tmp_path, tmp_path / "missing.yaml", tmp_path / "d")
    error = caught.value
    assert isinstance(error, TrioformerError)
    assert isinstance(error, ValueError)
    quotes = "put a value with special characters in quotes"
    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in error.problems] == [
        "a.yaml:6:1: a manifest has no apiVersion: add one, such as apps/v1",
        "a.yaml:8:1: a manifest must be a mapping, not a list",
        f"b.yaml:1:5: is not YAML: mapping values are not allowed in this context; {quotes}",
        "c.yaml: cannot be read: Too many levels of symbolic links",
        "missing.yaml: does not exist",
        "d: the directory contains no file *.json, *.yaml, *.yml, or pass recursive=True for the directories in it",
    ]
    assert (error.file, error.line, error.column) == (str(tmp_path / "a.yaml"), 6, 1)
    assert "\n" not in str(error)


def test_ten_megabytes_are_loaded() -> None:
    data = "x" * 9_000
    text = "---\n".join(f"{CONFIG_MAP.replace('name: c', f'name: c{n}')}data: {{key: {data}}}\n" for n in range(1_150))
    assert len(text) > 10_000_000
    assert len(load_manifests(text=text)) == 1_150


def test_mistakes_of_the_caller_say_what_to_write() -> None:
    with pytest.raises(TypeError, match="pass either paths"):
        load_manifests()
    with pytest.raises(TypeError, match="pass either paths"):
        load_manifests("a.yaml", text=CONFIG_MAP)
    with pytest.raises(TypeError, match="to load a string, pass text="):
        load_manifests(CONFIG_MAP)
    with pytest.raises(TypeError, match=r"must be a string or a pathlib.Path, not bytes"):
        load_manifests(b"a.yaml")  # type: ignore[arg-type]
    with pytest.raises(ManifestError, match="is not a valid path"):
        load_manifests("a\0b")


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "contains no manifests; write at least one document"),
        ("kind: List\nitems: []\n", "contains no manifests; write at least one document"),
        ("metadata:\n\tname: a\n", "line 2, column 1: is not YAML: the indentation contains a tab; use spaces"),
        ("a: [1, 2\n", "line 2, column 1: is not YAML: while parsing a flow sequence, did not find expected ',' or"),
        ("a: b\n{{- if .Values.a }}\n", "line 3, column 1: is not YAML: it looks like a template; render it first"),
        (f"{CONFIG_MAP}kind: Secret\n", "line 5, column 1: has a key twice in one mapping: put a line --- between"),
        (f"{CONFIG_MAP}  name: d\n", "line 5, column 3: has a key twice in one mapping: remove one of them"),
        (f"{CONFIG_MAP}data: {{yes: a}}\n", "line 5, column 8: has a key that is not a string but a number, a"),
        (f"{CONFIG_MAP}data: {{<<: a}}\n", "line 5, column 12: the value of a merge key (<<) must be a mapping, or a"),
        (f"{CONFIG_MAP}data: {{a: !secret b}}\n", "line 5, column 11: has a tag (!) that JSON has no type for"),
        (f"{CONFIG_MAP}data: {{a: .inf}}\n", "line 5, column 11: contains an infinite number or .nan, which JSON"),
        (f"{CONFIG_MAP}data: {{a: *b}}\n", "line 5, column 11: begins with * but is not an alias of a value before it"),
        (f"{CONFIG_MAP}data: {{a: 1}}\n", "line 5, column 11: the data.a of the ConfigMap is not valid: Expected"),
        (f"{CONFIG_MAP}data: b\n", "line 5, column 7: the data of the ConfigMap is not valid: Expected `object`, got"),
        ("a: b\x00c\n", "contains a control character (line 1): remove it"),
        ("just text", "line 1, column 1: a manifest must be a mapping, not a single value"),
        ("- a", "line 1, column 1: a manifest must be a mapping, not a list"),
        ("kind: Pod", "line 1, column 1: a manifest has no apiVersion: add one, such as apps/v1"),
        ("apiVersion: v1", "line 1, column 1: a manifest has no kind: add one, such as Deployment"),
        ("apiVersion: 1\nkind: Pod", "line 1, column 13: apiVersion must be a string, such as apps/v1"),
        ("apiVersion: a/b/c\nkind: Pod", "line 1, column 13: apiVersion must look like v1 or apps/v1, not 'a/b/c'"),
        ("apiVersion: v1\nkind: a/b", "line 2, column 7: kind must be a name such as Deployment, not 'a/b'"),
        ("apiVersion: v1\nkind: Pod", "line 1, column 1: the Pod has no metadata; add one with a name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: []", "line 3, column 11: the metadata of the Pod must be a mapping"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}", "line 1, column 1: the Pod has no name: add metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 5}", "line 3, column 18: metadata.name of the Pod must be a"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a/b}", "line 3, column 18: metadata.name of the Pod is not"),
        ("apiVersion: v1\nkind: List\nitems: {}", "line 1, column 1: the items of a List must be a list"),
        (DEPLOYMENT.replace("REPLICAS", "three").replace("PORT", "80"), "line 5, column 13: the spec.replicas of the"),
        (
            DEPLOYMENT.replace("REPLICAS", "3").replace("PORT", "http"),
            "line 11, column 26: the spec.template.spec.containers[0].ports[0].containerPort of the Deployment is not",
        ),
        ('{"a": 1, "a": "\\ud83d\\ude00"}', "line 1, column 1: has the key 'a' twice in one object; remove one of"),
    ],
)
def test_bad_input_is_named_by_line_and_column(text: str | bytes, expected: str) -> None:
    first = problems(text)[0]
    assert first.startswith(expected), first


def test_no_error_quotes_a_value() -> None:
    for text in (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: s3cret",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: [s3cret]}",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: 's3cret}",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: !s3cret x}",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: *s3cret }",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s3cret}\ntype: [s3cret]",
        "s3cret",
    ):
        assert "s3cret" not in "".join(problems(text))


def test_problems_can_be_compared_and_show_their_place() -> None:
    problem = ManifestProblem("is wrong", "a.yaml", 1, 2)
    assert str(problem) == "a.yaml:1:2: is wrong"
    assert str(ManifestProblem("is wrong", "a.yaml")) == "a.yaml: is wrong"
    assert str(ManifestProblem("is wrong", None, 1, 2)) == "line 1, column 2: is wrong"
    error = ManifestError([problem] * 30)
    assert str(error).endswith("; and 10 more")
    assert error.problems == (problem,) * 30
