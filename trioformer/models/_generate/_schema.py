"""The schema of an API server: its resources, and the names and types of their fields.

Field types have a short notation, so that the diff for a new Kubernetes version is easy to read:

- ``string``, ``integer``, ``number``, ``boolean``, ``bytes``, or the name of another definition
- ``[T]`` for an array, and ``{T}`` for a map with string keys
- ``T?`` for a Go pointer or an optional scalar, where absent differs from zero (never used for arrays and maps)

A definition without fields is written as its OpenAPI type and format, such as ``string date-time``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

Document: TypeAlias = Mapping[str, Any]

VERSIONS = frozenset({"v1", "autoscaling/v2"})
"""The stable versions that have models, besides all beta versions; ``v1`` means version 1 of every group."""

_ZEROS: tuple[object, ...] = ({}, "", 0, False)


@attrs.frozen(kw_only=True)
class Resource:
    """A resource or subresource from the discovery API."""

    api_version: str
    """The group and version that serve the resource."""
    name: str
    """The name in URLs, such as ``pods`` or ``pods/status``."""
    kind: str
    """The kind of the objects, as ``group/version Kind``."""
    definition: str | None
    """The schema of the objects; options such as ``PodExecOptions`` have none."""
    namespaced: bool
    """Whether each object belongs to a namespace."""
    singular: str = ""
    """The singular name; empty for a subresource."""
    short_names: tuple[str, ...] = ()
    """The other names that kubectl accepts."""
    categories: tuple[str, ...] = ()
    """Groups of resources such as ``all``."""
    verbs: tuple[str, ...]
    """The verbs that the resource supports."""


@attrs.frozen(kw_only=True)
class Schema:
    """The content of ``_schema.json``."""

    kubernetes: str
    """The version of Kubernetes."""
    resources: tuple[Resource, ...]
    """Resources and subresources, by group, version and name."""
    definitions: Mapping[str, Mapping[str, str] | str]
    """The types of the fields, or the type of a definition without fields, by the full name of the definition."""

    def dumps(self) -> str:
        """Encode the schema as JSON, with one resource or field on each line."""
        resources = [
            f"    {json.dumps(f'{one.api_version} {one.name}')}: {json.dumps(_resource_members(one))}"
            for one in self.resources
        ]
        definitions = [
            f"    {json.dumps(name)}: {_definition(self.definitions[name])}" for name in sorted(self.definitions)
        ]
        parts = (
            f'  "kubernetes": {json.dumps(self.kubernetes)}',
            '  "resources": {\n' + ",\n".join(resources) + "\n  }",
            '  "definitions": {\n' + ",\n".join(definitions) + "\n  }",
        )
        return "{\n" + ",\n".join(parts) + "\n}\n"

    @classmethod
    def loads(cls, text: str) -> Schema:
        """Decode a schema that :meth:`dumps` has encoded."""
        document = json.loads(text)
        resources = tuple(_read_resource(key, members) for key, members in document["resources"].items())
        return cls(kubernetes=document["kubernetes"], resources=resources, definitions=document["definitions"])


def _resource_members(one: Resource) -> dict[str, object]:
    members = attrs.asdict(one, filter=lambda attribute, value: attribute.name not in ("api_version", "name"))
    return {key: value for key, value in members.items() if value not in ("", (), None)}


def _read_resource(key: str, members: Mapping[str, Any]) -> Resource:
    api_version, name = key.split()
    return Resource(
        api_version=api_version,
        name=name,
        kind=members["kind"],
        definition=members.get("definition"),
        namespaced=members["namespaced"],
        singular=members.get("singular", ""),
        short_names=tuple(members.get("short_names", ())),
        categories=tuple(members.get("categories", ())),
        verbs=tuple(members["verbs"]),
    )


def _definition(fields: Mapping[str, str] | str) -> str:
    if isinstance(fields, str) or not fields:
        return json.dumps(fields)
    lines = (f"      {json.dumps(name)}: {json.dumps(fields[name])}" for name in sorted(fields))
    return "{\n" + ",\n".join(lines) + "\n    }"


# --- reducing --------------------------------------------------------------------------------------------------------


def reduce(openapi: Iterable[Document], discovery: Iterable[Document]) -> Schema:
    """Reduce a server's documents to the names and types that the models need.

    Args:
        openapi: The ``/openapi/v3`` documents for every group and version.
        discovery: The aggregated discovery documents (``v2``) from ``/api`` and ``/apis``.

    Raises:
        ValueError: Two documents contradict each other, or a document uses an unsupported OpenAPI feature.
    """
    raw: dict[str, Document] = {}
    reduced: dict[str, Mapping[str, str] | str] = {}
    versions = set()
    for document in openapi:
        versions.add(document["info"]["version"])
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            fields = _reduced(name, schema)
            if reduced.setdefault(name, fields) != fields:
                raise ValueError(f"{name} differs from document to document")
            raw[name] = schema
    if len(versions) != 1:
        raise ValueError(f"the documents are not of one Kubernetes version: {sorted(versions)}")
    by_kind = dict(_kinds(raw))
    resources = sorted(_resources(discovery, by_kind), key=lambda one: (one.api_version.rpartition("/"), one.name))
    roots = [one.definition for one in resources if one.definition is not None]
    reachable = _reachable(roots, reduced)
    return Schema(
        kubernetes=versions.pop(),
        resources=tuple(resources),
        definitions={name: reduced[name] for name in sorted(reachable)},
    )


def is_beta(version: str) -> bool:
    """Return whether a version or ``apiVersion`` is a beta version, which servers do not serve by default."""
    return "beta" in version.rpartition("/")[2]


def _has_models(api_version: str, version: str) -> bool:
    return version in VERSIONS or api_version in VERSIONS or is_beta(version)


def api_version_of(group: str, version: str) -> str:
    """Return ``group/version``, or only the version if the group is the core group."""
    return f"{group}/{version}" if group else version


def _kinds(schemas: Mapping[str, Document]) -> Iterator[tuple[str, str]]:
    for name, schema in schemas.items():
        names = schema.get("x-kubernetes-group-version-kind", ())
        if len(names) == 1:  # DeleteOptions and others are in every group
            gvk = names[0]
            yield f"{api_version_of(gvk['group'], gvk['version'])} {gvk['kind']}", name


def _resources(discovery: Iterable[Document], by_kind: Mapping[str, str]) -> Iterator[Resource]:
    for document in discovery:
        for group in document["items"]:
            for version in group["versions"]:
                api_version = api_version_of(group["metadata"].get("name", ""), version["version"])
                if _has_models(api_version, version["version"]):
                    for resource in version["resources"]:
                        yield from _with_subresources(api_version, resource, by_kind)


def _with_subresources(api_version: str, resource: Document, by_kind: Mapping[str, str]) -> Iterator[Resource]:
    namespaced = resource["scope"] == "Namespaced"
    kind = _full_kind(api_version, resource["responseKind"])
    yield Resource(
        api_version=api_version,
        name=resource["resource"],
        kind=kind,
        definition=by_kind[kind],
        namespaced=namespaced,
        singular=resource["singularResource"],
        short_names=tuple(resource.get("shortNames", ())),
        categories=tuple(resource.get("categories", ())),
        verbs=tuple(resource["verbs"]),
    )
    for subresource in resource.get("subresources", ()):
        kind = _full_kind(api_version, subresource["responseKind"])
        yield Resource(
            api_version=api_version,
            name=f"{resource['resource']}/{subresource['subresource']}",
            kind=kind,
            definition=by_kind.get(kind),
            namespaced=namespaced,
            verbs=tuple(subresource["verbs"]),
        )


def _full_kind(api_version: str, kind: Document) -> str:
    # An empty version means the group and version of the resource.
    own = api_version_of(kind["group"], kind["version"]) if kind["version"] else api_version
    return f"{own} {kind['kind']}"


def _reduced(name: str, schema: Document) -> Mapping[str, str] | str:
    properties = schema.get("properties")
    if properties is None:
        types = [option["type"] for option in schema.get("oneOf", ())] or [schema.get("type", "any")]
        return " ".join(filter(None, ["|".join(types), schema.get("format")]))
    required = schema.get("required", ())
    return {field: _field_type(f"{name}.{field}", value, field in required) for field, value in properties.items()}


def _field_type(where: str, schema: Document, required: bool) -> str:
    type_ = _type(where, schema)
    if type_[0] in "[{":
        return type_
    # A field whose default is Go's zero is a value, not a pointer.
    is_value = required or schema.get("default") in _ZEROS
    return type_ if is_value else f"{type_}?"


def _type(where: str, schema: Document) -> str:
    parts = schema.get("allOf", ())
    reference = parts[0].get("$ref") if len(parts) == 1 else schema.get("$ref")
    if reference is not None:
        return str(reference).rpartition("/")[2]
    kind = schema.get("type")
    if kind == "array":
        return f"[{_type(where, schema['items'])}]"
    if kind == "object" and "additionalProperties" in schema:
        return "{" + _type(where, schema["additionalProperties"]) + "}"
    if kind == "string":
        return "bytes" if schema.get("format") == "byte" else "string"
    if kind in ("integer", "number", "boolean"):
        return str(kind)
    raise ValueError(f"{where}: unsupported OpenAPI schema: {schema}")


def names_in(type_: str) -> str:
    """Return the innermost part of a field type, such as ``x`` for ``[{x}]``."""
    return type_.strip("[]{}?")


def _reachable(roots: Iterable[str], definitions: Mapping[str, Mapping[str, str] | str]) -> set[str]:
    found: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name in found or name not in definitions:  # a scalar
            continue
        found.add(name)
        fields = definitions[name]
        if not isinstance(fields, str):
            pending += map(names_in, fields.values())
    return found
