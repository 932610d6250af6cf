"""The schema of a class: what each type of field becomes, what is required, and which defaults are filled in."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import attrs
import pytest

from trioformer.crds import Rule, Schema, crd_of, custom_resource, resource_part
from trioformer.errors import SchemaError
from trioformer.models import (
    JSON,
    FrozenMap,
    KubernetesObject,
    Model,
    ObjectMeta,
    Quantity,
    Time,
    to_dict,
)
from trioformer.models.core_v1 import Pod, PodTemplateSpec
from trioformer.models.meta_v1 import Condition


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    NUMBER = 1
    TEXT = "text"


class Flags(enum.IntFlag):
    ONE = 1
    TWO = 2


class Point(NamedTuple):
    x: int
    y: int


class Size(TypedDict, total=False):
    width: int


@attrs.frozen
class Plain:
    first_name: str
    others: int = attrs.field(default=0, metadata={"json": "OTHERS"})


@dataclasses.dataclass(frozen=True)
class Data:
    long_name: str
    size: int = 1
    hosts: tuple[str, ...] = dataclasses.field(default_factory=tuple)


@resource_part()
class Part(Model):
    """A part."""

    a: int
    b: str | None = None


def schema_of_field(hint: object, default: Any = attrs.NOTHING) -> dict[str, Any]:
    """Make the schema of one field of a spec, and return that of the spec."""
    namespace: dict[str, Any] = {"__annotations__": {"field": hint}, "__module__": __name__}
    if default is not attrs.NOTHING:
        namespace["field"] = default
    spec = resource_part()(type("Spec", (Model,), namespace))
    kind: Any = type("Thing", (KubernetesObject,), {"__annotations__": {"spec": spec}, "__module__": __name__})
    definition = to_dict(crd_of(custom_resource("example.com/v1")(kind)))
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def members_of(schema: dict[str, Any]) -> set[str]:
    """Return the names of all members of a schema, and of those in it."""
    inner = [*schema.get("properties", {}).values(), schema.get("items", {}), schema.get("additionalProperties", {})]
    return {*schema}.union(*(members_of(each) for each in inner if each))


BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
INT = {"type": "integer", "format": "int64"}
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
PART = {
    "description": "A part.",
    "type": "object",
    "properties": {"a": INT, "b": {"type": "string"}},
    "required": ["a"],
}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, **ANYTHING}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, INT),
        (float, {"type": "number", "format": "double"}),
        (int | float, {"type": "number", "format": "double"}),
        (bool, {"type": "boolean"}),
        (bytes, {"type": "string", "pattern": BASE64}),
        (Time, {"type": "string", "format": "date-time"}),
        (int | str, INT_OR_STRING),
        (JSON, ANYTHING),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[Color.RED], {"type": "string", "enum": ["red"]}),
        (Sequence[int], {"type": "array", "items": INT}),
        (tuple[tuple[int, ...], ...], {"type": "array", "items": {"type": "array", "items": INT}}),
        (tuple[str | None, ...], {"type": "array", "items": {"type": "string", "nullable": True}}),
        (tuple, {"type": "array", "items": ANYTHING}),
        (Mapping[str, int], {"type": "object", "additionalProperties": INT}),
        (Mapping[str, JSON], {"type": "object", **ANYTHING}),
        (Mapping, {"type": "object", **ANYTHING}),
        (Part, PART),
        (Mapping[str, Part], {"type": "object", "additionalProperties": PART}),
        (Plain, {"type": "object", "properties": {"firstName": {"type": "string"}, "OTHERS": {**INT, "default": 0}}}),
        (Size, {"type": "object", "properties": {"width": INT}}),
        (ObjectMeta, {"type": "object", **ANYTHING}),
        (Pod, EMBEDDED),
    ],
    ids=str,
)
def test_a_type_of_field_has_a_schema(hint: object, schema: dict[str, Any]) -> None:
    if hint is Plain:
        schema = {**schema, "required": ["firstName"]}
    assert schema_of_field(hint)["properties"]["field"] == schema
    if hint not in (JSON, Any, object):
        assert schema_of_field(hint, None)["properties"]["field"] == schema


def test_a_dataclass_has_the_schema_of_its_fields() -> None:
    assert schema_of_field(Data)["properties"]["field"] == {
        "type": "object",
        "properties": {
            "longName": {"type": "string"},
            "size": {**INT, "default": 1},
            "hosts": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["longName"],
    }


def test_a_quantity_is_a_number_or_a_string_of_its_form() -> None:
    found = schema_of_field(Quantity, Quantity("100m"))["properties"]["field"]
    assert found.pop("pattern").startswith("^")
    assert found == {**INT_OR_STRING, "default": "100m"}


def test_conditions_are_a_map_by_type_with_the_rules_of_apimachinery() -> None:
    found = schema_of_field(tuple[Condition, ...], ())["properties"]["field"]
    assert (found["x-kubernetes-list-type"], found["x-kubernetes-list-map-keys"]) == ("map", ["type"])
    assert found["items"]["required"] == ["lastTransitionTime", "message", "reason", "status", "type"]
    atomic = schema_of_field(Annotated[tuple[Condition, ...], Schema(list_type="atomic")], ())["properties"]["field"]
    assert atomic["x-kubernetes-list-type"] == "atomic"
    assert "x-kubernetes-list-map-keys" not in atomic


def test_a_part_of_a_built_in_kind_has_its_types_and_no_defaults() -> None:
    found = schema_of_field(PodTemplateSpec)["properties"]["field"]
    containers = found["properties"]["spec"]["properties"]["containers"]
    assert containers["items"]["properties"]["image"] == {"type": "string"}
    assert list(members_of(found) & {"default", "required", "description"}) == []


# --- required fields and defaults -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "default", "is_required", "filled"),
    [
        (int, attrs.NOTHING, True, None),
        (int | None, attrs.NOTHING, False, None),
        (Annotated[int, Schema(minimum=0)] | None, attrs.NOTHING, False, None),
        (int, 3, False, 3),
        (str, "", False, ""),
        (tuple[str, ...], ("a",), False, ["a"]),
        (Mapping[str, str], FrozenMap(), False, None),
        (Color, Color.BLUE, False, "blue"),
        (JSON, 3, False, 3),
        (Part, Part(a=1), False, {"a": 1}),
        (Annotated[int, Schema(required=True)], 3, True, None),
        (Annotated[int, Schema(required=True, server_default=True)], 3, True, 3),
        (Annotated[int, Schema(required=False)], attrs.NOTHING, False, None),
        (Annotated[int, Schema(server_default=False)], 3, False, None),
        (Annotated[tuple[str, ...], Schema(server_default=True)], (), False, []),
    ],
    ids=str,
)
def test_the_default_of_the_class_decides_what_is_required_and_filled_in(
    hint: object, default: object, is_required: bool, filled: object
) -> None:
    spec = schema_of_field(hint, default)
    assert spec.get("required", []) == (["field"] if is_required else [])
    assert spec["properties"]["field"].get("default") == filled


@resource_part()
class WithDefaults(Model):
    size: int = 1


@resource_part()
class Without(Model):
    size: int | None = None


@custom_resource("example.com/v1")
class Both(KubernetesObject):
    spec: WithDefaults = WithDefaults()
    other: Without = Without()
    status: WithDefaults = WithDefaults()


@custom_resource("example.com/v1", status=False)
class WholeBoth(KubernetesObject):
    status: WithDefaults = WithDefaults()


def properties_of(kind: type[KubernetesObject]) -> dict[str, Any]:
    found: dict[str, Any] = to_dict(crd_of(kind))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return found


def test_an_absent_part_is_filled_in_if_it_has_defaults() -> None:
    assert properties_of(Both)["spec"] == {
        "type": "object",
        "properties": {"size": {**INT, "default": 1}},
        "default": {},
    }
    assert "default" not in properties_of(Both)["other"]


@resource_part(rules=(Rule("self.least <= self.most"),))
class Bounds(Model):
    least: int = 0
    most: int = 10


def test_the_default_of_a_part_with_rules_has_the_members_that_they_read() -> None:
    @custom_resource("example.com/v1")
    class Ruled(KubernetesObject):
        bounds: Bounds = Bounds()
        narrow: Bounds = Bounds(most=3)

    properties = properties_of(Ruled)
    assert properties["bounds"]["default"] == {"least": 0, "most": 10}
    assert properties["narrow"]["default"] == {"least": 0, "most": 3}


def test_no_default_is_filled_in_below_a_status_that_is_a_subresource() -> None:
    assert properties_of(Both)["status"] == {"type": "object", "properties": {"size": INT}}
    assert properties_of(WholeBoth)["status"]["properties"]["size"]["default"] == 1


# --- descriptions -----------------------------------------------------------------------------------------------------


@resource_part()
class Described(Model):
    """A part with a docstring."""

    named: int = 0
    """The string below the field,
    of two lines."""
    part: Part | None = None
    """A field's own string."""
    other: Part | None = None
    said: Annotated[int, Schema(description="What Schema says.")] = 0
    """Not this."""


@resource_part()
class Derived(Described):
    more: int = 0


@custom_resource("example.com/v1")
class Documented(KubernetesObject):
    """A kind."""

    spec: Described | None = None
    derived: Derived | None = None


def test_docstrings_and_the_strings_below_fields_are_descriptions() -> None:
    spec = properties_of(Documented)["spec"]
    described = {name: field.get("description") for name, field in spec["properties"].items()}
    assert spec["description"] == "A part with a docstring."
    assert described == {
        "named": "The string below the field,\nof two lines.",
        "part": "A field's own string.",
        "other": "A part.",
        "said": "What Schema says.",
    }
    derived = properties_of(Documented)["derived"]
    assert "description" not in derived
    assert derived["properties"]["named"]["description"].startswith("The string below")


# --- what makes no schema ---------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Twice(Model):
    same_name: int = 0
    sameName: int = 0  # noqa: N815  # the mistake that is tested


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Tree(Model):
    children: tuple[Tree, ...] = ()


@pytest.mark.parametrize(
    ("hint", "default", "problem"),
    [
        (Mixed, attrs.NOTHING, "the values of an enumeration must be all strings or all integers"),
        (Literal[True], attrs.NOTHING, "the values of an enumeration must be all strings or all integers"),
        (Flags, attrs.NOTHING, "Flags allows combinations of members, which JSON cannot express"),
        (tuple[str, int], attrs.NOTHING, "tuple[str, int] has items of several types or a fixed number; write"),
        (Mapping[int, str], attrs.NOTHING, "keys that are not strings; write Mapping[str, str]"),
        (Point, attrs.NOTHING, "Point has no schema; write trioformer.models.JSON"),
        (str | bool, attrs.NOTHING, "str | bool has no schema; write one type, int | str, or trioformer.models.JSON"),
        (Annotated[str, Schema(minimum=1)], attrs.NOTHING, "minimum applies to numbers"),
        (Annotated[int, Schema(minimum=2, maximum=1)], attrs.NOTHING, "minimum is 2, which is greater than maximum, 1"),
        (Annotated[str, Schema(pattern="(")], attrs.NOTHING, "the pattern '(' is not a regular expression"),
        (Annotated[str, Schema(pattern="(?=a)")], attrs.NOTHING, "which the server's regular expressions (RE2) do not"),
        (Annotated[int, Schema(minimum=1)], 0, "the default does not match the schema: 0 is less than 1; give a"),
        (Annotated[int, Schema(maximum=1)], 2, "the default does not match the schema: 2 is greater than 1; give"),
        (Annotated[int, Schema(maximum=1, exclusive_maximum=True)], 1, "1 is greater than 1 allows"),
        (Annotated[int, Schema(minimum=1, exclusive_minimum=True)], 1, "1 is less than 1 allows"),
        (Annotated[str, Schema(max_length=1)], "ab", "it has 2 characters, and at most 1 are allowed"),
        (Annotated[str, Schema(min_length=1)], "", "it has 0 characters, and at least 1 are required"),
        (Annotated[str, Schema(pattern="^a")], "b", "'b' does not match the pattern '^a'"),
        (int, 2**63, "needs more than 64 bits"),
        (Literal["a"], "b", "'b' is not one of 'a'"),
        (float, float("nan"), "the default cannot be encoded: NaN and infinity cannot be encoded as JSON"),
        (Annotated[int, Schema(server_default=True)], attrs.NOTHING, "server_default requires"),
        (Annotated[tuple[Part, ...], Schema(list_type="map")], (), "a list of type map requires list_map_keys"),
        (Annotated[tuple[str, ...], Schema(list_type="map", list_map_keys=("a",))], (), "must be objects"),
        (Annotated[tuple[Part, ...], Schema(list_type="map", list_map_keys=("c",))], (), "list_map_keys has 'c', but"),
        (
            Annotated[tuple[Part, ...], Schema(list_type="map", list_map_keys=("b",))],
            (),
            "list_map_keys has 'b', which must be required or have a default that is not None",
        ),
        (Annotated[tuple[Part, ...], Schema(list_map_keys=("a",))], (), "list_map_keys are for lists of type map"),
        (Annotated[tuple[Part, ...], Schema(list_type="set")], (), "the items of a list of type set must be scalars"),
        (Annotated[str, Schema(rules=("self != ''",))], "", "a rule must be a Rule, not a str; write Rule(…)"),  # type: ignore[arg-type]  # the mistake that is tested
    ],
    ids=str,
)
def test_a_field_without_a_schema_is_an_error_that_names_it(hint: object, default: object, problem: str) -> None:
    with pytest.raises(SchemaError) as caught:
        schema_of_field(hint, default)
    assert problem in str(caught.value)
    assert "Spec.field: " in str(caught.value)
    assert (caught.value.cls, caught.value.field) == ("Spec", "field")
    assert isinstance(caught.value, TypeError)


def test_a_class_that_contains_itself_has_no_schema() -> None:
    with pytest.raises(SchemaError, match=r"Tree\.children: Tree → Tree contains itself"):
        schema_of_field(Tree)


def test_two_fields_with_one_name_in_json_have_no_schema() -> None:
    with pytest.raises(SchemaError, match=r"Twice\.sameName: two fields have the JSON name 'sameName'"):
        schema_of_field(Twice)


@custom_resource("example.com/v1")
class Wrong(KubernetesObject):
    fine: int = 0
    broken: tuple[str, int] = ("a", 1)


def test_the_error_of_a_field_names_its_file_and_line() -> None:
    with pytest.raises(SchemaError) as caught:
        crd_of(Wrong)
    assert caught.value.file == __file__
    lines = Path(__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.startswith("    broken: "))
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{__file__}:{line}: Wrong.broken: ")
