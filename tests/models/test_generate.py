"""The tool that generates the models: reducing a server's schema, emitting modules, checking them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

import trioformer.models
from trioformer.models._generate import Schema, check, emit, reduce
from trioformer.models._generate.__main__ import main

MODELS = Path(trioformer.models.__file__).parent
SCHEMA = Schema.loads((MODELS / "_schema.json").read_text(encoding="utf-8"))
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
HERE = {"group": "", "version": ""}


def reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def document(schemas: dict[str, Any], version: str = "1.99") -> dict[str, Any]:
    return {"info": {"version": version}, "components": {"schemas": schemas}}


def discovery(kind: str, group: str = "example.io", **more: Any) -> dict[str, Any]:
    resource = {
        "resource": f"{kind.lower()}s",
        "responseKind": {**HERE, "kind": kind},
        "scope": "Namespaced",
        "singularResource": kind.lower(),
        "verbs": ["get"],
        **more,
    }
    versions = [{"version": version, "resources": [resource]} for version in ("v1", "v1alpha1")]
    return {"items": [{"metadata": {"name": group}, "versions": versions}]}


def definition(kind: str | None, /, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "required": list(required), "properties": properties}
    if kind is not None:
        schema["x-kubernetes-group-version-kind"] = [{"group": "example.io", "version": "v1", "kind": kind}]
    return schema


def small(**properties: Any) -> Schema:
    """The schema of one kind, ``Thing``."""
    kinds = {"io.k8s.api.example.v1.Thing": definition("Thing", **properties)}
    return reduce([document(kinds)], [discovery("Thing")])


def in_module(schema: Schema) -> str:
    return emit(schema)["example_v1.py"]


# ------------------------------------------------------------------------------------------------- reducing


def test_reduce_keeps_only_names_and_types() -> None:
    part, text = reference("io.k8s.api.example.v1.Part"), {"type": "string", "description": "much prose"}
    thing = definition(
        "Thing",
        required=("name", "must"),
        name={"type": "string", "default": ""},
        nick=text,
        zero={"type": "integer", "format": "int32", "default": 0},
        mode={"type": "string", "default": "auto"},
        ratio={"type": "number", "format": "double"},
        on={"type": "boolean"},
        key={"type": "string", "format": "byte"},
        tags={"type": "array", "items": {"type": "string", "default": ""}},
        labels={"type": "object", "additionalProperties": text},
        parts={"type": "object", "additionalProperties": {"type": "array", "items": {"allOf": [part]}}},
        value={"default": {}, "allOf": [part]},
        pointer={"allOf": [part]},
        must=part,
        when=reference(f"{META}.Time"),
    )
    schemas = {
        "io.k8s.api.example.v1.Thing": thing,
        "io.k8s.api.example.v1.Part": definition(None),
        "io.k8s.api.example.v1.Unused": definition(None),
        f"{META}.Time": {"type": "string", "format": "date-time"},
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    }
    found = reduce([document(schemas), document(schemas)], [discovery("Thing")])
    part_name = "io.k8s.api.example.v1.Part"
    assert found.definitions == {
        "io.k8s.api.example.v1.Part": {},
        "io.k8s.api.example.v1.Thing": {
            "name": "string",
            "nick": "string?",
            "zero": "integer",
            "mode": "string?",
            "ratio": "number?",
            "on": "boolean?",
            "key": "bytes?",
            "tags": "[string]",
            "labels": "{string}",
            "parts": "{[" + part_name + "]}",
            "value": part_name,
            "pointer": f"{part_name}?",
            "must": part_name,
            "when": f"{META}.Time?",
        },
        f"{META}.Time": "string date-time",
    }
    assert found.kubernetes == "1.99"
    assert [one.name for one in found.resources] == ["things"]  # not those of v1alpha1


def test_subresources_of_another_kind_are_kept() -> None:
    order = {"group": "example.io", "version": "v1", "kind": "Order"}
    subresources = [
        {"subresource": "order", "responseKind": order, "verbs": []},
        {"subresource": "proxy", "responseKind": {**HERE, "kind": "Options"}, "verbs": ["get"]},
    ]
    schemas = {
        "io.k8s.api.example.v1.Thing": definition("Thing"),
        "io.k8s.api.example.v1.Order": definition("Order", apiVersion={"type": "string"}, kind={"type": "string"}),
    }
    schema = reduce([document(schemas)], [discovery("Thing", subresources=subresources)])
    assert [(one.name, one.definition) for one in schema.resources] == [
        ("things", "io.k8s.api.example.v1.Thing"),
        ("things/order", "io.k8s.api.example.v1.Order"),
        ("things/proxy", None),
    ]
    text = in_module(schema)
    assert '    api_version: str = "example.io/v1"\n    kind: str = "Order"\n' in text
    assert 'subresources=("order", "proxy")' in emit(schema)["builtin_kinds.py"]


def test_contradicting_documents_raise() -> None:
    one = document({"io.k8s.api.example.v1.Thing": definition("Thing", a={"type": "string"})})
    other = document({"io.k8s.api.example.v1.Thing": definition("Thing", a={"type": "integer"})})
    with pytest.raises(ValueError, match=r"io\.k8s\.api\.example\.v1\.Thing differs from document to document"):
        reduce([one, other], [])
    with pytest.raises(ValueError, match=r"not of one Kubernetes version: \['1.98', '1.99'\]"):
        reduce([document({}), document({}, "1.98")], [])
    with pytest.raises(ValueError, match=r"not of one Kubernetes version: \[\]"):
        reduce([], [])


@pytest.mark.parametrize("odd", [{}, {"type": "object"}, {"type": "null"}, {"anyOf": [{"type": "string"}]}])
def test_unsupported_forms_of_openapi_raise(odd: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"v1\.Thing\.odd: unsupported OpenAPI schema"):
        small(odd=odd)


# ------------------------------------------------------------------------------------------------- emitting


def test_a_value_that_would_contain_itself_is_optional() -> None:
    schemas = {
        "io.k8s.api.example.v1.Thing": definition("Thing", loop=reference("io.k8s.api.example.v1.Loop")),
        "io.k8s.api.example.v1.Loop": definition(
            None, required=("again", "other"), again=reference("io.k8s.api.example.v1.Ring"), other={"type": "string"}
        ),
        "io.k8s.api.example.v1.Ring": definition(
            None, required=("closed",), closed=reference("io.k8s.api.example.v1.Loop")
        ),
    }
    text = in_module(reduce([document(schemas)], [discovery("Thing")]))
    assert "    again: Ring = Ring()\n" in text
    assert "    closed: Loop | None = None\n" in text


def test_a_class_comes_after_the_classes_of_its_defaults() -> None:
    schemas = {
        "io.k8s.api.example.v1.Thing": definition("Thing", a=reference("io.k8s.api.example.v1.A")),
        # A may have a B, but a B always has an A.
        "io.k8s.api.example.v1.A": definition(None, b=reference("io.k8s.api.example.v1.B")),
        "io.k8s.api.example.v1.B": definition(None, required=("a",), a=reference("io.k8s.api.example.v1.A")),
    }
    text = in_module(reduce([document(schemas)], [discovery("Thing")]))
    assert text.index("class A(") < text.index("class B(")
    assert "    a: A = A()\n" in text


@pytest.mark.parametrize("names", [("fooBar", "foo-bar"), ("name",), ("resourceVersion",)])
def test_fields_with_one_python_name_raise(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="fields with the same Python name"):
        emit(small(**{name: {"type": "string"} for name in names}))


def test_an_unknown_definition_without_fields_raises() -> None:
    name = "io.k8s.api.example.v1.Blob"
    schemas = {"io.k8s.api.example.v1.Thing": definition("Thing", blob=reference(name)), name: {"type": "object"}}
    with pytest.raises(ValueError, match=r"Blob has no fields and is 'object': list it in LEAVES or EMPTY"):
        emit(reduce([document(schemas)], [discovery("Thing")]))


def test_a_kind_outside_its_group_raises() -> None:
    kinds = {"io.k8s.api.elsewhere.v1.Thing": definition("Thing")}
    with pytest.raises(ValueError, match=r"defined outside the module of their group: .*elsewhere"):
        emit(reduce([document(kinds)], [discovery("Thing")]))


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is part of the lint session")
def test_the_emitted_text_is_formatted(tmp_path: Path) -> None:
    # Long names and many members, so that lines are broken at every construct.
    long = {f"aVeryLongNameOfAFieldThatIsHTTP{i}": {"type": "string"} for i in range(9)}
    for name, text in {**emit(small(**long)), **emit(SCHEMA)}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    options = ["--no-cache", "--config", str(MODELS.parent.parent / "pyproject.toml"), str(tmp_path)]
    for command in (["format", "--check"], ["check", "--ignore", "A,D,N"]):
        ruff = [sys.executable, "-m", "ruff", *command, *options]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


# ------------------------------------------------------------------------------------------------- checking


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the committed modules."""
    shutil.copytree(MODELS, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_generate", "__pycache__"))
    return tmp_path


def run(directory: Path, *arguments: str) -> str | None:
    return main(["--models", str(directory), *arguments])


def test_the_committed_modules_are_those_of_the_schema() -> None:
    assert list(check(SCHEMA, MODELS)) == []
    done = subprocess.run(
        [sys.executable, "-m", "trioformer.models._generate", "check"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_check_finds_a_changed_module_and_write_restores_it(copied: Path) -> None:
    assert run(copied, "check") is None
    changed = copied / "core_v1.py"
    changed.write_text(changed.read_text().replace("node_name: str | None", "node_name: str"))
    assert run(copied, "check") == "core_v1.py is not the module that the schema generates; run: nox -s models"
    (copied / "apps_v1.py").unlink()
    assert run(copied, "check") == "apps_v1.py is missing (and 1 more); run: nox -s models"
    assert run(copied, "write") is None
    assert run(copied, "check") is None


def test_check_finds_a_module_that_is_not_generated_any_more(copied: Path) -> None:
    (copied / "autoscaling_v3.py").write_text("")
    assert run(copied, "check") == "autoscaling_v3.py is no longer generated; run: nox -s models"


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"zone": "string?"}, ["ObjectMeta.zone of _meta.py is None, in the schema str"]),
        ({"uid": None}, ["ObjectMeta.uid of _meta.py is str, in the schema None"]),
    ],
)
def test_check_compares_hand_written_classes_with_the_schema(change: dict[str, str | None], lines: list[str]) -> None:
    name = f"{META}.ObjectMeta"
    fields = SCHEMA.definitions[name]
    assert not isinstance(fields, str)
    changed = {key: type_ for key, type_ in {**fields, **change}.items() if type_ is not None}
    other = attrs.evolve(SCHEMA, definitions={**SCHEMA.definitions, name: changed})
    assert list(check(other, MODELS)) == lines


def test_the_command_reduce_writes_a_schema(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    kinds = {"io.k8s.api.example.v1.Thing": definition("Thing", size={"type": "integer"})}
    (documents / "apis__example.io__v1.json").write_text(json.dumps(document(kinds)))
    (documents / "api.json").write_text('{"items": []}')
    (documents / "apis.json").write_text(json.dumps(discovery("Thing")))
    assert run(tmp_path, "reduce", str(documents)) is None
    assert Schema.loads((tmp_path / "_schema.json").read_text()) == small(size={"type": "integer"})
    assert run(tmp_path, "write") is None
    assert "    size: int | None = None\n" in (tmp_path / "example_v1.py").read_text()
