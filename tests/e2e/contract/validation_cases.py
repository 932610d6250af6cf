"""Definitions and objects that servers validate; the results of kube-apiserver are in ``validation_results.json``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
GROUP = "validation.example.com"
BOOLEAN_OR = [{"type": "integer"}, {"type": "string"}]


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": [*required]} if required else {})}


def _map_list(keys: list[str], **properties: Any) -> dict[str, Any]:
    items = _object("name", name=TEXT, **properties)
    extensions = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    return {"type": "array", "items": items, **extensions}


def _format(name: str) -> dict[str, Any]:
    return {"type": "string", "format": name}


SPEC: dict[str, Any] = {
    "text": TEXT,
    "short": {"type": "string", "maxLength": 3, "minLength": 2},
    "pattern": {"type": "string", "pattern": "^a+$"},
    "color": {"type": "string", "enum": ["red", "green"]},
    "level": {"type": "integer", "enum": [1, 2]},
    "size": {"type": "integer", "minimum": 1, "maximum": 10},
    "above": {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 10, "exclusiveMaximum": True},
    "ratio": {"type": "number", "minimum": 0.5, "maximum": 1000000, "multipleOf": 0.5},
    "even": {"type": "integer", "multipleOf": 2},
    "i32": {"type": "integer", "format": "int32"},
    "f": {"type": "number", "format": "float"},
    "flag": {"type": "boolean"},
    "when": _format("date-time"),
    "day": _format("date"),
    "host": _format("hostname"),
    "ip": _format("ipv4"),
    "ip6": _format("ipv6"),
    "net": _format("cidr"),
    "uri": _format("uri"),
    "mail": _format("email"),
    "id": _format("uuid"),
    "b64": _format("byte"),
    "dur": _format("duration"),
    "mac": _format("mac"),
    "k8s": _format("k8s-short-name"),
    "hex": _format("hexcolor"),
    "port": {"x-kubernetes-int-or-string": True},
    "portBounds": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^\\d+%?$",
    },
    "items": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "list": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "n": {"type": "integer", "minimum": 0}},
        },
    },
    "list2": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "protocol"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "protocol": {"type": "string", "default": "TCP"}},
        },
    },
    "map": {
        "type": "object",
        "additionalProperties": {"type": "integer", "maximum": 5},
        "maxProperties": 2,
        "minProperties": 1,
    },
    "open": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
    },
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "nothing": {"type": "object"},
    "nullable": {"type": "string", "nullable": True},
    "defaultNullable": {"type": "string", "nullable": True, "default": "d"},
    "def": {"type": "string", "default": "x"},
    "nested": {
        "type": "object",
        "default": {},
        "properties": {
            "a": {"type": "integer", "default": 3},
            "b": {"type": "object", "properties": {"c": {"type": "string", "default": "deep"}}},
        },
    },
    "need": {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
    },
    "one": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "any": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minLength": 2}}}],
    },
    "all": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "allOf": [{"required": ["a"]}, {"properties": {"b": {"minLength": 2}}}],
    },
    "not": {"type": "string", "not": {"enum": ["bad", "worse"]}},
    "embedded": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "embedded2": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    },
    "mapdef": {
        "type": "object",
        "additionalProperties": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}},
    },
    "nullenum": {"type": "string", "nullable": True, "enum": ["a"]},
}
STATUS = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 0},
        "conds": {
            "type": "array",
            "items": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
        },
    },
}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}, "status": STATUS}}
VALUES: dict[str, list[Any]] = {
    "text": ["x", 1, True, None, [], {}, 1.5, 'é"<&>\n'],
    "short": ["ab", "a", "abcd", "ééé"],
    "pattern": ["aa", "ab", "aa\n"],
    "color": ["red", "blue", 1, None],
    "level": [1, 3, 1.0, 2.5, "1"],
    "size": [0, 1, 10, 11, 10.0, 10.5, "5", 9007199254740992, 9223372036854775807, 9223372036854775808, -1],
    "above": [1, 2, 10],
    "ratio": [0, 0.5, 0.7, 1000000.0, 1000000.5, 2000000, 1],
    "even": [2, 3, 4.0],
    "i32": [2147483647, 2147483648, -2147483649],
    "f": [1e39, 1.5, 3],
    "flag": [True, "true", 0],
    "when": [
        "2020-01-01T00:00:00Z",
        "2020-01-01t00:00:00.123+01:00",
        "2020-01-01 00:00:00",
        "x",
        "2020-13-01T00:00:00Z",
        "2020-01-01T24:00:00Z",
        5,
        ["a"],
        "2020-01-01T00:00:00",
    ],
    "day": ["2020-02-29", "2021-02-29", "2020-1-1"],
    "host": ["a.b", "-a", "a_b", "é.com", "a.b.", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"],
    "ip": ["1.2.3.4", "1.2.3", "::1", "01.2.3.4"],
    "ip6": ["::1", "1.2.3.4", "fe80::1%eth0", "::ffff:1.2.3.4"],
    "net": ["10.0.0.0/8", "10.0.0.0", "10.0.0.1/33", "::/0", "10.0.0.0/08"],
    "uri": ["http://a.b/c", "a", "/x", "mailto:x", "http://a b", "%zz", ":foo", "http://[::1", "//x", ""],
    "mail": ["a@b.c", "a", "A <a@b.c>", "a@b", "a..b@c.d"],
    "id": ["12345678-1234-1234-1234-123456789012", "x", "12345678123412341234123456789012"],
    "b64": ["YQ==", "YQ", "a\nb=", "!"],
    "dur": ["1h", "1h30m", "1.5h", "5 days", "x", "1", "0", "2w", "1 fortnight", "-1h", ".5s"],
    "mac": ["00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301", "x"],
    "k8s": ["a-b", "A", "a.b"],
    "hex": ["#fff", "#ffff", "abcdef"],
    "port": [1, "http", 1.5, True, None, 1.0],
    "portBounds": [1, "5%", "x", 1.5],
    "items": [["a"], [], ["a", "b", "c"], ["a", 1], [None], "x"],
    "set": [["a", "b"], ["a", "a"], ["a", "a", "a", "b", "b"]],
    "list": [
        [{"name": "a"}, {"name": "b"}],
        [{"name": "a"}, {"name": "a"}],
        [{"n": 1}],
        [{"name": "a", "n": -1}],
        ["x"],
        [None],
        [{"name": "a", "zz": 1}],
        [{"name": 1}, {"name": 1}],
    ],
    "list2": [[{"name": "a"}, {"name": "a", "protocol": "TCP"}], [{"name": "a"}, {"name": "a", "protocol": "UDP"}]],
    "map": [{"a": 1}, {}, {"a": 1, "b": 2, "c": 3}, {"a": 6}, {"a": None}, {"a": "x"}],
    "open": [{"x": {"y": 1}}, {"known": {"a": "b", "zz": 1}, "y": 2}],
    "anything": [1, "x", {"a": [{"b": 1}]}, None],
    "nothing": [{}, {"a": 1}, {"a": {"b": 1}}],
    "nullable": [None, "x", 1],
    "defaultNullable": [None],
    "def": [None, "y", 1],
    "nested": [{}, None, {"b": {}}, {"a": None}, {"a": 1, "b": {"c": None}}],
    "need": [{}, {"a": "x"}, {"a": "x", "b": 1}, {"a": None, "b": 1}],
    "one": [{}, {"a": "x"}, {"a": "x", "b": "y"}],
    "any": [{}, {"a": "x"}, {"b": "y"}, {"b": "yy"}],
    "all": [{}, {"a": "x"}, {"a": "x", "b": "y"}, {"b": "y"}],
    "not": ["good", "bad"],
    "embedded": [
        {},
        {"apiVersion": "v1", "kind": "Pod", "x": 1},
        {"apiVersion": "a/b/c", "kind": "_"},
        {"apiVersion": 1, "kind": ""},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A/b", "labels": {"-": "x"}, "foo": 1}},
    ],
    "embedded2": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"a": "b", "zz": 1}, "yy": 2}],
    "mapdef": [{"a": {}}, {"a": None}, {"a": {"x": None, "y": 1}}],
    "nullenum": [None, "a", "b"],
    "unknown": [1],
}
"""Values of each field of the schema."""


def specs() -> Iterator[dict[str, Any]]:
    """Yield the specs of custom objects: each value alone, and two with several mistakes."""
    for name, values in VALUES.items():
        for value in values:
            yield {name: value}
    yield {"text": 1, "color": "blue", "size": 0}
    yield {"a": 1, "b": {"c": 2}, "text": "x"}


def definition(schema: dict[str, Any] | None, *, plural: str = "widgets", **changes: Any) -> dict[str, Any]:
    """Return a definition with one version; ``changes`` are of the version, or of the spec if it has such a field."""
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True}
    if schema is not None:
        version["schema"] = {"openAPIV3Schema": schema}
    of_spec = {name: changes.pop(name) for name in ("group", "scope", "names", "versions") if name in changes}
    names = {"plural": plural, "kind": "Widget"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version | changes], **of_spec}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": spec,
    }


def _with_spec(**fields: Any) -> dict[str, Any]:
    return definition(_object(spec=_object(**fields)))


_ROOT = {"type": "object"}
_LIST = {"type": "array", "items": TEXT}


def definitions() -> Iterator[dict[str, Any]]:
    """Yield definitions, most of which are not valid."""
    yield definition(_ROOT)
    yield definition(None)
    yield definition({})
    yield definition({"type": "array"})
    yield definition({"type": "object", "additionalProperties": TEXT})
    yield definition({"type": "object", "nullable": True})
    yield definition({"type": "object", "minProperties": 1}, subresources={"status": {}})
    yield definition({"x-kubernetes-preserve-unknown-fields": True}, subresources={"status": {}})
    yield definition(_ROOT, group="example")
    yield definition(_ROOT, group="Example.com")
    yield definition(_ROOT, group="")
    yield definition(_ROOT, group="example.k8s.io")
    yield definition(_ROOT, scope="")
    yield definition(_ROOT, scope="Global")
    yield definition(_ROOT, names={"plural": "widgets"})
    yield definition(_ROOT, names={"plural": "widgets", "kind": "_W", "shortNames": ["a", "B_"], "categories": ["-"]})
    yield definition(_ROOT, names={"plural": "Widgets", "kind": "Widget", "listKind": "Widget"})
    yield definition(_ROOT, versions=[])
    yield definition(_ROOT, name="V1")
    yield definition(_ROOT, storage=False)
    yield definition(_ROOT, deprecationWarning="soon")
    yield definition(_ROOT, deprecated=True, deprecationWarning="")
    yield definition(_ROOT, deprecated=True, deprecationWarning="x" * 257)
    yield definition(_ROOT, additionalPrinterColumns=[{"name": "", "type": "", "jsonPath": ""}])
    yield definition(_ROOT, additionalPrinterColumns=[{"name": "a", "type": "b", "jsonPath": "c", "format": "d"}])
    yield definition(_ROOT, subresources={"scale": {"specReplicasPath": "", "statusReplicasPath": "status.n"}})
    yield definition(
        _ROOT,
        subresources={
            "scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b", "labelSelectorPath": ".metadata.c"}
        },
    )
    yield definition(_object(spec=_object(a=TEXT)), selectableFields=[{"jsonPath": ".spec.a"}])
    yield definition(_object(spec=_object(a=_LIST)), selectableFields=[{"jsonPath": ".spec.a"}])
    yield definition(_object(metadata=_object(name=TEXT)))
    yield definition(_object(metadata=_object(name=TEXT, labels=_ROOT)))
    yield definition(_object(metadata=TEXT, kind=NUMBER))
    yield definition({"type": "object", "zz": 1})
    for field in (
        {},
        {"type": "any"},
        {"type": "null"},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "object", "additionalProperties": {}},
        {"type": "object", "additionalProperties": TEXT, "properties": {"a": TEXT}},
        {"type": "string", "pattern": "(a"},
        {"type": "string", "pattern": "[a"},
        {"type": "string", "pattern": "*"},
        {"type": "string", "pattern": "(?=a)"},
        {"type": "string", "format": "nope"},
        {"type": "integer", "format": "date"},
        {"type": "string", "default": 5},
        {"type": "integer", "default": 0, "minimum": 1},
        {"type": "object", "default": {"a": 1}},
        {"type": "object", "default": {"a": 1}, "properties": {"a": NUMBER}},
        {"type": "string", "uniqueItems": True},
        {"type": "string", "nullable": True, "default": None},
        {"type": "object", "$ref": "#/a"},
        {"type": "object", "patternProperties": {"a": TEXT}},
        {"type": "object", "definitions": {"a": TEXT}},
        {"x-kubernetes-int-or-string": True, "anyOf": BOOLEAN_OR},
        {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": BOOLEAN_OR}, {"minLength": 1}]},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}]},
        {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
        {"type": "object", "x-kubernetes-embedded-resource": True},
        {"type": "string", "x-kubernetes-embedded-resource": True},
        {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        {"type": "string", "anyOf": [{"type": "string", "description": "a", "default": "b", "nullable": True}]},
        {"type": "string", "not": {"format": "date", "title": "a"}},
        {"type": "object", "oneOf": [{"properties": {"a": {"minLength": 1}}}]},
        {"type": "object", "properties": {"a": TEXT}, "oneOf": [{"properties": {"a": {"minLength": 1}}}]},
        {"type": "object", "allOf": [{"properties": {"metadata": {"minProperties": 1}}}]},
        {"type": "array", "items": TEXT, "allOf": [{"items": {"minLength": 1}}]},
        {**_LIST, "x-kubernetes-list-type": "list"},
        {**_LIST, "x-kubernetes-list-type": "map"},
        {**_LIST, "x-kubernetes-list-map-keys": ["a"]},
        {"type": "string", "x-kubernetes-list-type": "set"},
        {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
        {"type": "array", "items": {"type": "string", "nullable": True}, "x-kubernetes-list-type": "set"},
        {"type": "array", "items": _LIST, "x-kubernetes-list-type": "set"},
        {**_map_list(["name"]), "x-kubernetes-list-map-keys": ["name", "name", "b"]},
        {**_map_list(["name", "port"], port=NUMBER)},
        {**_map_list(["name", "port"], port={"type": "object", "default": {}})},
        {**_map_list(["name"], a={"type": "string", "nullable": True}), "x-kubernetes-map-type": "atomic"},
        {"type": "object", "x-kubernetes-map-type": "set"},
        {"type": "string", "x-kubernetes-map-type": "atomic"},
    ):
        yield _with_spec(a=field)


OBJECTS: list[tuple[str, dict[str, Any]]] = [
    *(("configmaps", {"name": name}) for name in ("a.b-c", "A", "a_b", "-a", "a.", "a..b", "x" * 254, "1")),
    *(
        ("configmaps", {"name": "a", "labels": {key: "v"}})
        for key in ("a/b", "/b", "a/", "a/b/c", "A.B/c", "é", "x" * 64)
    ),
    *(
        ("configmaps", {"name": "a", "labels": {"k": value}})
        for value in ("", "A_b.c-9", "-a", "a b", "x" * 63, "x" * 64)
    ),
    *(("configmaps", {"name": "a", "annotations": {key: "v"}}) for key in ("A.B/c", "a/b/c", "", "a_/b")),
    ("configmaps", {"name": "a", "annotations": {"a": "x" * 262_144}}),
    *(
        ("configmaps", {"name": "a", "finalizers": finalizers})
        for finalizers in (["a"], ["a.b/c", "d"], ["A/b"], ["orphan", "foregroundDeletion"], ["kubernetes"], [""])
    ),
    ("leases", {"name": "a", "finalizers": ["a"]}),
    ("configmaps", {"name": "a", "ownerReferences": [{}]}),
    ("configmaps", {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b"}]}),
    (
        "configmaps",
        {
            "name": "a",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
                for name in ("a", "b")
            ],
        },
    ),
    *(("namespaces", {"name": name}) for name in ("a.b", "A", "x" * 64, "a-")),
    *(("serviceaccounts", {"name": name}) for name in ("a.b", "A")),
    *(("clusterroles", {"name": name}) for name in ("a:b", "..", "a/b", "a%b", "A")),
    ("configmaps", {"name": "a", "unknown": 1, "labels": None}),
    ("endpoints", {"name": "a"}),
]
"""Plurals of built-in kinds, and metadata."""
