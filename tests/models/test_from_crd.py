"""Classes from CustomResourceDefinitions: what is written for each schema, and that the classes say the same."""

from __future__ import annotations

import importlib.util
import io
import itertools
import json
import linecache
import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.processes import ROOT
from trioformer.crds._definition import crds_of
from trioformer.models import from_json, resource_of, to_dict
from trioformer.models.__main__ import main
from trioformer.models._from_crd import Generated, generate, read_definitions

WEBSITES = ROOT / "tests" / "support" / "websites_crd.yaml"
INT_OR_STRING = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
CONDITION = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "message": {"type": "string"},
        "observedGeneration": {"type": "integer"},
        "reason": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "type": {"type": "string"},
    },
}


def definition(root: Mapping[str, Any], kind: str = "Widget", **more: Any) -> dict[str, Any]:
    """A definition with one version, whose objects have these properties beside the usual ones."""
    usual = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema = {"type": "object", **root, "properties": {**usual, **root.get("properties", {})}}
    plural = f"{kind.lower()}s"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


NUMBERS = itertools.count()


def module_of(generated: Generated) -> types.ModuleType:
    """Import the source; its classes find their types by the name of the module, and their descriptions in its file."""
    name = f"generated_classes_{next(NUMBERS)}"
    module = types.ModuleType(name)
    module.__file__ = f"<{name}>"
    sys.modules[name] = module
    linecache.cache[module.__file__] = (len(generated.text), None, generated.text.splitlines(True), module.__file__)
    exec(compile(generated.text, module.__file__, "exec"), vars(module))
    return module


def again(generated: Generated) -> list[dict[str, Any]]:
    """The definitions that trioformer.crds makes of the generated classes."""
    module = module_of(generated)
    return [to_dict(one) for one in crds_of(*(getattr(module, kind) for kind in generated.kinds))]


def normalized(value: Any, holder: str = "") -> Any:
    """A definition without what classes add: the formats of numbers, the pattern of bytes, and an order."""
    if isinstance(value, list):
        return [normalized(one) for one in value]
    if not isinstance(value, dict):
        return value
    members = {key: normalized(one, key) for key, one in value.items()}
    if holder == "properties":
        return members
    if (members.get("type"), members.get("format")) in (("integer", "int64"), ("number", "double")):
        del members["format"]
    if members.get("format") == "byte":
        members.pop("pattern", None)
    if isinstance(members.get("required"), list):
        members["required"] = sorted(members["required"])
    return members


def schema_in(found: Mapping[str, Any], version: int = 0) -> Any:
    return found["spec"]["versions"][version]["schema"]["openAPIV3Schema"]


# --- the whole --------------------------------------------------------------------------------------------------------


def test_the_classes_of_a_definition_make_the_same_definition() -> None:
    definitions = read_definitions(WEBSITES.read_text())
    (found,) = again(generate(definitions))
    names = {"listKind": "WebsiteList", "singular": "website"}
    wanted = {**definitions[0]["spec"], "names": {**definitions[0]["spec"]["names"], **names}}
    for version in wanted["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        usual = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
        schema["properties"] = {**usual, **schema["properties"]}
    assert normalized(found["spec"]) == normalized(wanted)


def test_generated_classes_read_and_write_objects() -> None:
    module = module_of(generate(read_definitions(WEBSITES.read_text())))
    website = from_json(
        module.Website,
        json.dumps({"metadata": {"name": "a"}, "spec": {"host": "a.example", "foo_bar": "x", "3d": True, "from": "b"}}),
    )
    spec = website.spec
    assert (spec.host, spec.replicas, spec.class_, spec.foo_bar_2) == ("a.example", 1, "small", "x")
    assert (spec.field_3d, spec.from_, spec.tls.min_version, spec.rules) == (True, "b", "1.2", ())
    made = module.Website(spec=module.WebsiteSpec(host="b", field_3d=True, x_y_z="1", from_="c", class_="large"))
    assert to_dict(made)["spec"] == {"host": "b", "3d": True, "x.y/z": "1", "from": "c", "class": "large"}
    info = resource_of(module.WebsiteV1beta1)
    assert (info.kind, info.plural, info.api_version, info.short_names) == (
        "Website",
        "websites",
        "example.com/v1beta1",
        ("ws",),
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "websites.py"
    assert main(["generate", str(WEBSITES), "-o", str(path)]) == 0
    return path


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is part of the lint session")
def test_the_source_is_formatted(source: Path, tmp_path: Path) -> None:
    long = {f"aVeryLongNameOfAField{'X' * n}": {"type": "string", "enum": ["a" * 9] * 9} for n in range(0, 60, 5)}
    for n in range(0, 40, 3):
        long[f"an{'Y' * n}"] = {"type": "object", "properties": {f"b{'c' * (60 - n)}": {"type": "object"}}}
        long[f"am{'Y' * n}"] = {"type": "string", "pattern": "a'" * n, "default": 'say "hi"\\' * n, "minLength": n}
    text = ' "quoted" \\d\ttext"\n    deep\n\n\n  \x1b \U0001f991 end """'
    described = {f"d{n}": {"type": "boolean", "description": text[n:]} for n in range(len(text))}
    more = definition({"description": text, "properties": {"spec": {"type": "object", "properties": long | described}}})
    (tmp_path / "long.py").write_text(generate([more]).text)
    module_of(generate([more]))
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["format", "--check", "--diff"], ["check", "--select", "E4,E7,E9,F,I,UP,RUF022"]):
        done = subprocess.run(
            [*ruff, *command, "--no-cache", "--isolated", str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert source.read_text().splitlines()[0] == '"""Custom resources: Website (example.com)."""'


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is part of the typing session")
def test_the_source_passes_strict_type_checking(source: Path, tmp_path: Path) -> None:
    use = "from websites import Website, WebsiteSpec\n\nWebsite(spec=WebsiteSpec(host='a', replicas='three'))\n"
    (tmp_path / "use.py").write_text(use)
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}/cache", "--config-file="]
    done = subprocess.run([*command, str(source), "use.py"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert 'use.py:3: error: Argument "replicas"' in done.stdout, done.stdout + done.stderr
    assert "Found 1 error in 1 file" in done.stdout


# --- each schema ------------------------------------------------------------------------------------------------------

FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"type": "string"}, "field: str | None = None"),
    ({"type": "string", "enum": ["a", "b"]}, 'field: Literal["a", "b"] | None = None'),
    ({"type": "integer", "enum": [1, 2], "default": 2}, "field: Literal[1, 2] = 2"),
    ({"type": "boolean", "default": False}, "field: bool = False"),
    ({"type": "integer", "format": "int64"}, "field: int | None = None"),
    ({"type": "integer", "format": "int32"}, 'field: Annotated[int | None, Schema(format="int32")] = None'),
    ({"type": "string", "pattern": BASE64, "default": "aGk="}, 'field: bytes = b"hi"'),
    ({"type": "string", "nullable": True}, "field: Annotated[str | None, Schema(nullable=True)] = None"),
    (
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 5},
        "field: Annotated[\n        int | None,",
    ),
    ({**INT_OR_STRING, "default": "10%"}, 'field: int | str = "10%"'),
    ({**INT_OR_STRING, "pattern": QUANTITY, "default": "1Gi"}, 'field: Quantity = Quantity("1Gi")'),
    ({**INT_OR_STRING, "pattern": "^a"}, 'field: Annotated[int | str | None, Schema(pattern="^a")] = None'),
    ({"x-kubernetes-preserve-unknown-fields": True}, "field: JSON = None"),
    ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "field: Mapping[str, JSON] = FrozenMap()"),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}, "default": {"a": 1}},
        'field: Mapping[str, int] = FrozenMap({"a": 1})',
    ),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}, "default": {}},
        "field: Annotated[Mapping[str, int], Schema(server_default=True)] = FrozenMap()",
    ),
    (
        {"type": "array", "items": {"type": "array", "items": {"type": "string", "maxLength": 3}}},
        "field: tuple[tuple[Annotated[str, Schema(max_length=3)], ...], ...] = ()",
    ),
    ({"type": "array", "items": {"type": "integer"}, "default": [1]}, "field: tuple[int, ...] = (1,)"),
    (
        {"type": "array", "items": CONDITION, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        "field: tuple[Condition, ...] = ()",
    ),
    (
        {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'a'", "optionalOldSelf": True}]},
        "field: Annotated[\n        str | None,",
    ),
    (
        {"type": "string", "oneOf": [{"minLength": 1}], "title": "T"},
        "field: Annotated[\n        str | None,",
    ),
    ({"type": "string", "format": "date-time", "default": "2024-01-01T00:00:00Z"}, "field: Annotated["),
    ({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"a": "b"}}, "field: Annotated["),
    ({"type": "object"}, "field: WidgetField | None = None"),
    ({"type": "boolean", "enum": [True]}, "field: Annotated[bool | None, Schema(more={"),
]


@pytest.mark.parametrize(("schema", "line"), FIELDS, ids=lambda value: str(value)[:60])
def test_a_schema_becomes_a_type_that_says_the_same(schema: dict[str, Any], line: str) -> None:
    generated = generate([definition({"properties": {"spec": {"type": "object", "properties": {"field": schema}}}})])
    assert f"    {line}" in generated.text
    (found,) = again(generated)
    back = schema_in(found)["properties"]["spec"]["properties"]["field"]
    if "Condition" in line:
        assert back["items"]["properties"].keys() == CONDITION["properties"].keys()  # type: ignore[attr-defined]
        return
    if line.startswith("field: Mapping[str, JSON]"):
        assert back == schema
        return
    assert normalized(back) == normalized(schema)


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ({"type": "string"}, "field: str"),
        ({"type": "string", "nullable": True}, "field: Annotated[str | None, Schema(nullable=True, required=True)]"),
        (
            {"type": "integer", "default": 3},
            "field: Annotated[int, Schema(server_default=True, required=True)] = 3",
        ),
        ({"type": "array", "items": {"type": "string"}}, "field: tuple[str, ...]"),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, "field: WidgetField"),
    ],
    ids=str,
)
def test_a_required_field_has_no_default_but_the_servers(schema: dict[str, Any], line: str) -> None:
    spec = {"type": "object", "required": ["field"], "properties": {"field": schema}}
    generated = generate([definition({"required": ["spec"], "properties": {"spec": spec}})])
    assert f"    {line}\n" in generated.text
    (found,) = again(generated)
    assert normalized(schema_in(found)["properties"]["spec"]) == normalized(spec)
    assert schema_in(found)["required"] == ["spec"]


def test_the_default_of_an_object_is_made_only_if_nothing_in_it_is_required() -> None:
    for required in ([], ["a"]):
        part = {"type": "object", "default": {}, "required": required, "properties": {"a": {"type": "string"}}}
        generated = generate([definition({"properties": {"part": part}})])
        line = "part: Annotated[WidgetPart, Schema(server_default=True)] = WidgetPart()"
        assert (line in generated.text) is not required
        (found,) = again(generated)
        assert schema_in(found)["properties"]["part"]["default"] == {}


def test_defaults_in_a_status_that_is_a_subresource_stay() -> None:
    status = {"type": "object", "properties": {"phase": {"type": "string", "default": "New"}}}
    for subresources in ({}, {"status": {}}):
        generated = generate([definition({"properties": {"status": status}}, subresources=subresources)])
        (found,) = again(generated)
        assert schema_in(found)["properties"]["status"] == status
        assert ("Schema(server_default=True)" in generated.text) is bool(subresources)
        assert ("status=False" in generated.text) is not subresources


def test_descriptions_become_docstrings() -> None:
    text = "The first line.\n\nMore of it."
    part = {"type": "object", "description": text, "properties": {"a": {"type": "string", "description": text}}}
    generated = generate([definition({"description": "Root.", "properties": {"part": part}})])
    assert generated.text.count('"""The first line.\n\n    More of it.\n    """') == 2
    (found,) = again(generated)
    assert schema_in(found)["description"] == "Root."
    assert schema_in(found)["properties"]["part"]["description"] == text


# --- names ------------------------------------------------------------------------------------------------------------


def test_classes_are_named_after_the_path_of_their_objects() -> None:
    part = {"type": "object", "properties": {"x": {"type": "string"}}}
    spec = {
        "type": "object",
        "properties": {"tls-options": part, "status": part, "rules": {"type": "array", "items": part}},
    }
    status = {"type": "object", "properties": {"rules": part}}
    module = module_of(generate([definition({"properties": {"spec": spec, "status": status}})]))
    names = [name for name in vars(module) if name.startswith("Widget")]
    assert sorted(names) == [
        "Widget",
        "WidgetRules",
        "WidgetSpec",
        "WidgetSpecStatus",
        "WidgetStatus",
        "WidgetStatusRules",
        "WidgetTlsOptions",
    ]


@pytest.mark.parametrize("kind", ["Schema", "JSON", "Mapping", "KubernetesObject", "None", "True", "A-b"])
def test_a_kind_may_have_any_name(kind: str) -> None:
    part = {"type": "object", "properties": {"x": {"type": "string"}}}
    names = {"kind": kind, "plural": "things", "singular": "thing"}
    made = definition({"properties": {"spec": part, "name": {"type": "string"}, "uid": {"type": "string"}}})
    made["spec"]["names"] = names
    made["metadata"]["name"] = "things.example.com"
    generated = generate([made])
    (cls,) = (getattr(module_of(generated), name) for name in generated.kinds)
    assert resource_of(cls).kind == kind
    assert (cls(name_="a").name, to_dict(cls(name_="a", uid_="b"))["name"]) == ("", "a")
    (found,) = again(generated)
    assert schema_in(found)["properties"].keys() == {"apiVersion", "kind", "metadata", "spec", "name", "uid"}


def test_only_the_chosen_versions_have_classes() -> None:
    definitions = read_definitions(WEBSITES.read_text())
    generated = generate(definitions, ["v1beta1"])
    assert generated.kinds == ("Website",)
    assert "stored=" not in generated.text
    with pytest.raises(ValueError, match=r"^websites\.example\.com has no version v3; it has v1, v1beta1$"):
        generate(definitions, ["v3"])


def test_what_is_not_in_the_classes_is_noted() -> None:
    named = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}
    made = definition({"properties": {"metadata": named}})
    made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {}}
    assert generate([made]).notes == (
        "widgets.example.com v1: the schema of metadata",
        "widgets.example.com: its conversion webhook",
    )


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_the_classes_of_all_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    listed = {"kind": "List", "apiVersion": "v1", "items": [definition({}, "Gadget"), {"kind": "ConfigMap"}, 3]}
    (tmp_path / "list.json").write_text(json.dumps(listed))
    assert main(["generate", str(WEBSITES), str(tmp_path / "list.json"), "--version", "v1"]) == 0
    printed = capsys.readouterr()
    assert "class Website(KubernetesObject):" in printed.out
    assert "class Gadget(KubernetesObject):" in printed.out
    assert printed.err == ""


def test_the_command_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"type": "object", "properties": {"name": {"type": "string"}}}
    monkeypatch.setattr(sys, "stdin", io.StringIO(yaml.safe_dump(definition({"properties": {"metadata": named}}))))
    assert main(["generate", "-"]) == 0
    printed = capsys.readouterr()
    assert "class Widget(KubernetesObject):" in printed.out
    assert printed.err == "note: not in the classes: widgets.example.com v1: the schema of metadata\n"


NO_GROUP = json.dumps(
    {**definition({}), "spec": {"names": {"kind": "A", "plural": "as"}, "versions": [{"name": "v1"}]}}
)
OLD = json.dumps({**definition({}), "apiVersion": "apiextensions.k8s.io/v1beta1"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "{file}: No such file or directory"),
        ("a: [", "{file}: line 1, column 5: not YAML: expected the node content, but found '<stream end>'"),
        ("", "{file}: no CustomResourceDefinition found"),
        ("[" * 3_000, "{file}: "),
        (
            OLD,
            (
                "{file}: a CustomResourceDefinition of apiextensions.k8s.io/v1beta1 is not supported;"
                " use apiextensions.k8s.io/v1"
            ),
        ),
        (
            "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1}",
            "the CustomResourceDefinition has no spec.g",
        ),
        (NO_GROUP, "widgets.example.com has no spec.group"),
        (NO_GROUP.replace("names", "group"), "widgets.example.com has no spec.names.kind"),
        (
            json.dumps(definition({})).replace('"v1", "served"', '"", "served"'),
            "widgets.example.com has versions without",
        ),
    ],
)
def test_bad_input_is_an_error_of_one_line(
    text: str | None, problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "crd.yaml"
    if text is not None:
        file.write_text(text)
    assert main(["generate", str(file)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {problem.format(file=file)}")
    assert printed.err.count("\n") == 1
