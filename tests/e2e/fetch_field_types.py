"""Take from a real kube-apiserver how its built-in kinds are merged: the table ``field_types.json``.

::

    python -m tests.e2e.fetch_field_types [DIRECTORY]     # a control plane of the binaries in KUBEBUILDER_ASSETS

The embedded server needs it for server-side apply and for strategic merge patches.
``_field_types.py`` reads it, and says what the codes mean.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trio

from tests.e2e.tables import directory
from trioformer.kubeconfig import load_config
from trioformer.models._internal import decode
from trioformer.testing import ControlPlane
from trioformer.transport._internal import open_transport

REFERENCE = "#/components/schemas/"
SCALARS = {"integer": "n", "number": "n", "boolean": "b"}
NAMED = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "u",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "a",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "d",
}


def reduce(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the table: the type of each kind, and the fields of each type that one of them has."""
    schemas = {name: schema for document in documents for name, schema in document["components"]["schemas"].items()}
    kinds = dict(sorted(kinds_of(documents, schemas)))
    keys = {key for schema in schemas.values() for key in keys_of(schema)}
    types: dict[str, dict[str, str]] = {}
    atomic: list[str] = []
    pending = sorted(set(kinds.values()))
    while pending:
        name = pending.pop()
        if short(name) in types:
            continue
        schema = schemas[name]
        if schema.get("x-kubernetes-map-type") == "atomic":
            atomic.append(short(name))
        required = schema.get("required", ())
        fields = {}
        for field, given in sorted(schema.get("properties", {}).items()):
            fields[field] = code(given, schemas, pending) + mark(given, schemas, field in required, field in keys)
        types[short(name)] = fields
    return {
        "kinds": {kind: short(name) for kind, name in kinds.items()},
        "atomic": sorted(atomic),
        "types": dict(sorted(types.items())),
    }


def kinds_of(documents: list[dict[str, Any]], schemas: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield ``apiVersion kind`` of each kind with a path of objects, and the name of its type."""
    for document in documents:
        for path, operations in document["paths"].items():
            for operation in operations.values():
                kind = operation.get("x-kubernetes-group-version-kind") if isinstance(operation, dict) else None
                if not path.endswith("{name}") or kind is None:
                    continue
                version = f"{kind['group']}/{kind['version']}".lstrip("/")
                for name, schema in schemas.items():
                    if kind in schema.get("x-kubernetes-group-version-kind", ()) and "metadata" in schema["properties"]:
                        yield f"{version} {kind['kind']}", name


def short(name: str) -> str:
    return name.removeprefix("io.k8s.").removeprefix("api.").removeprefix("apimachinery.pkg.apis.")


def target(schema: dict[str, Any]) -> str | None:
    reference: str | None = schema.get("$ref") or next((one.get("$ref") for one in schema.get("allOf", ())), None)
    return reference.removeprefix(REFERENCE) if reference else None


def code(schema: dict[str, Any], schemas: dict[str, Any], pending: list[str]) -> str:
    """Return the code of a type; adds the types that it names to those that are still to do."""
    if name := target(schema):
        if name in NAMED:
            return NAMED[name]
        if "properties" not in schemas[name]:
            return code(schemas[name], schemas, pending)
        pending.append(name)
        return ("!" if schema.get("x-kubernetes-map-type") == "atomic" else "") + short(name)
    if schema.get("type") == "array":
        return f"[{relation(schema)}]{code(schema['items'], schemas, pending)}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        atomic = "!" if schema.get("x-kubernetes-map-type") == "atomic" else ""
        return atomic + "{}" + code(schema["additionalProperties"], schemas, pending)
    if schema.get("type") == "string":
        return "u" if schema.get("format", "byte") != "byte" else "s"
    return SCALARS.get(schema.get("type", ""), "d")


def relation(schema: dict[str, Any]) -> str:
    """Return how a list is merged: the keys of its items for apply, and the one of strategic merge patches."""
    patch = ""
    if "merge" in schema.get("x-kubernetes-patch-strategy", ""):
        patch = schema.get("x-kubernetes-patch-merge-key", "*")
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = ",".join(schema["x-kubernetes-list-map-keys"])
        case "set":
            keys = "*"
        case "atomic":
            keys = ""
        case _:
            keys = patch
    return keys if keys == patch else f"{keys}|{patch}"


def keys_of(schema: dict[str, Any]) -> Iterator[str]:
    for field in schema.get("properties", {}).values():
        yield from field.get("x-kubernetes-list-map-keys", ())
        yield field.get("x-kubernetes-patch-merge-key", "")


def mark(schema: dict[str, Any], schemas: dict[str, Any], is_required: bool, is_key: bool) -> str:
    """Return what Go has where the field is missing: an empty object, null, or the default of a key."""
    default = schema.get("default")
    if default == {} and (name := target(schema)) and "properties" in schemas[name]:
        return "={}"
    is_container = schema.get("type") in ("array", "object")
    if is_required and is_container:
        return "=null"
    return f"={json.dumps(default)}" if is_key and default not in (None, {}) else ""


async def fetch(kubeconfig: Path) -> str:
    async with open_transport(load_config(kubeconfig=kubeconfig)) as transport:

        async def get(path: str) -> Any:
            response = await transport.request("GET", path, accept="application/json")
            if response.code != 200:
                raise SystemExit(f"error: GET {path} gave {response.code}: {response.body[:200]!r}")
            return decode(response.body)

        paths = sorted(path for path in (await get("/openapi/v3"))["paths"] if path.startswith(("api/v", "apis/")))
        documents = [await get(f"/openapi/v3/{path}") for path in paths if path.count("/") != 1 or path == "api/v1"]
    return dumps(reduce(documents))


def dumps(table: dict[str, Any]) -> str:
    """Encode the table with one kind or type in a line."""
    parts = [f'"atomic": {json.dumps(table["atomic"])}']
    for name in ("kinds", "types"):
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in table[name].items())
        parts.append(f'"{name}": {{\n{lines}\n}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


async def main() -> None:
    every = ["--runtime-config=api/all=true"]  # the kinds of beta versions, too
    async with ControlPlane(assets=os.environ.get("KUBEBUILDER_ASSETS"), api_server_flags=every) as control_plane:
        table = await fetch(control_plane.kubeconfig)
    await trio.Path(directory() / "field_types.json").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    trio.run(main)
