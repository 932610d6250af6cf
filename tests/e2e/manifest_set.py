"""Two hundred manifests: ``manifests/`` has each built-in kind, and ten custom kinds and much of the same is added."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import yaml

from trioformer.manifests import dump_manifests
from trioformer.models import from_dict
from trioformer.models.apiextensions_v1 import CustomResourceDefinition

BUILTIN: Final = Path(__file__).with_name("manifests")
NAMESPACE: Final = "every-kind"
GROUP: Final = "manifests.example.com"
TOTAL: Final = 200

_STRING = {"type": "string"}
_SPECS: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    # The schema of a spec, and a spec.
    "Amount": ({"size": {"type": "integer", "minimum": 0, "default": 3}, "rate": {"type": "number"}}, {"rate": 1.5}),
    "Choice": ({"mode": {"type": "string", "enum": ["on", "off"], "default": "off"}}, {"mode": "on"}),
    "Port": ({"port": {"x-kubernetes-int-or-string": True}}, {"port": "50%"}),
    "Free": (
        {"any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        {"any": {"a": [1, {"b": "c"}]}},
    ),
    "Keyed": (
        {
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": _STRING,
                        "port": {"type": "integer"},
                        "protocol": {**_STRING, "default": "TCP"},
                    },
                },
            }
        },
        {"ports": [{"name": "b", "port": 2}, {"name": "a", "port": 1, "protocol": "UDP"}]},
    ),
    "Unique": ({"names": {"type": "array", "x-kubernetes-list-type": "set", "items": _STRING}}, {"names": ["z", "a"]}),
    "Atomic": (
        {"point": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "integer"}}}},
        {"point": {"x": 1}},
    ),
    "Nested": (
        {"tree": {"type": "object", "properties": {"left": {"type": "object", "additionalProperties": _STRING}}}},
        {"tree": {"left": {"a": "1", "b": "true"}}},
    ),
    "Timed": (
        {"at": {"type": "string", "format": "date-time"}, "none": {**_STRING, "nullable": True}},
        {"at": "2026-11-22T19:00:00Z"},
    ),
    "Global": ({"text": {"type": "string", "maxLength": 100}}, {"text": "several\nlines\n  indented\n"}),
}


def write_manifests(directory: Path) -> None:
    """Write the manifests as files of all sorts."""
    shutil.copytree(BUILTIN, directory, dirs_exist_ok=True)
    kinds = list(_SPECS)
    # Objects before the definitions of their kinds, as the names of the files have it.
    objects = [_custom(kind, f"{kind.lower()}-{index}") for kind in kinds for index in range(3)]
    (directory / "05-objects.yml").write_text(yaml.safe_dump_all(objects, explicit_start=True))
    (directory / "30-crds.yaml").write_text(dump_manifests(map(_definition, kinds)))
    more = directory / "more"
    more.mkdir()
    maps = [_named("v1", "ConfigMap", f"map-{index}", data={"key": "value\n" * index}) for index in range(60)]
    (more / "maps.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": maps}, indent="\t"))
    services = [_named("v1", "Service", f"service-{index}", spec=_service(index)) for index in range(20)]
    for service in services:
        del service["apiVersion"], service["kind"]
    (more / "services.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ServiceList", "items": services}))
    deployments = [_named("apps/v1", "Deployment", f"web-{index}", spec=_deployment(index)) for index in range(21)]
    (more / "deployments.json").write_text("\n".join(map(json.dumps, deployments)))


def custom_kinds() -> tuple[list[CustomResourceDefinition], list[dict[str, Any]]]:
    """Return the definitions of the custom kinds, and an object of each kind."""
    return list(map(_definition, _SPECS)), [_custom(kind, kind.lower()) for kind in _SPECS]


def _definition(kind: str) -> CustomResourceDefinition:
    plural = f"{kind.lower()}s"
    schema = {
        "type": "object",
        "description": f"The schema of {kind}: with a colon",
        "properties": {
            "spec": {"type": "object", "properties": _SPECS[kind][0]},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {"served": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    spec = {
        "group": GROUP,
        "scope": "Cluster" if kind == "Global" else "Namespaced",
        "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
        "versions": [{"name": "v1", "storage": True, **version}, {"name": "v1beta1", "storage": False, **version}],
    }
    whole = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return from_dict(CustomResourceDefinition, {**whole, "metadata": {"name": f"{plural}.{GROUP}"}, "spec": spec})


def _custom(kind: str, name: str) -> dict[str, Any]:
    version = "v1beta1" if name.endswith("2") else "v1"
    made = _named(f"{GROUP}/{version}", kind, name, spec=_SPECS[kind][1])
    if kind == "Global":
        del made["metadata"]["namespace"]
    return made


def _named(api_version: str, kind: str, name: str, **content: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _service(index: int) -> dict[str, Any]:
    return {"selector": {"app": f"web-{index}"}, "ports": [{"port": 80 + index, "name": "http"}]}


def _deployment(index: int) -> dict[str, Any]:
    labels = {"app": f"web-{index}"}
    container = {"name": "main", "image": f"nginx:{index}", "ports": [{"containerPort": 80}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
