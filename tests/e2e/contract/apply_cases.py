"""Cases of server-side apply: what several managers write one after the other.

``apply_results.json`` has what kube-apiserver responds to each step.
``test_apply.py`` compares both servers with it; ``python -m tests.e2e.record_apply`` writes it anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import attrs
import trio

from trioformer.client import Client
from trioformer.errors import AlreadyExistsError, NotFoundError
from trioformer.models import from_dict, unstructured_kind
from trioformer.models.apiextensions_v1 import CustomResourceDefinition

RESULTS: Final = Path(__file__).with_name("apply_results.json")
GROUP: Final = "apply.example.com"
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}


def _object(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


_CONDITION = _object(type=_TEXT, status=_TEXT, reason=_TEXT) | {"required": ["type"]}
_ITEM = _object(
    name=_TEXT,
    value=_TEXT,
    size=_NUMBER,
    options=_object(x=_TEXT, y=_TEXT),
    tags={"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
) | {"required": ["name"]}
_PORT = _object(port=_NUMBER, protocol=_TEXT | {"default": "TCP"}, label=_TEXT) | {"required": ["port"]}
_PAIR = _object(x=_TEXT, y=_TEXT)
SPEC: Final = _object(
    size=_NUMBER,
    color=_TEXT,
    enabled={"type": "boolean"},
    ratio={"type": "number"},
    nothing=_TEXT | {"nullable": True},
    nested=_object(a=_TEXT, b=_object(c=_NUMBER, d=_TEXT)),
    pair=_PAIR | {"x-kubernetes-map-type": "atomic"},
    names={"type": "object", "additionalProperties": _TEXT},
    selector={"type": "object", "additionalProperties": _TEXT, "x-kubernetes-map-type": "atomic"},
    pairs={"type": "object", "additionalProperties": _PAIR},
    tags={"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
    numbers={"type": "array", "items": _NUMBER, "x-kubernetes-list-type": "set"},
    atoms={"type": "array", "items": _TEXT},
    items={"type": "array", "items": _ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    ports={
        "type": "array",
        "items": _PORT,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
    },
    extra={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    either={"x-kubernetes-int-or-string": True},
    defaulted=_object(mode=_TEXT | {"default": "auto"}, other=_TEXT, more=_object(x=_NUMBER | {"default": 1})),
)
_STATUS = _object(
    phase=_TEXT,
    conditions={
        "type": "array",
        "items": _CONDITION,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    },
)
SCHEMA: Final = _object(spec=SPEC, status=_STATUS)
DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}
KINDS: Final = {
    "Widget": (f"{GROUP}/v1", "widgets"),
    "ConfigMap": ("v1", "configmaps"),
    "Secret": ("v1", "secrets"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "Role": ("rbac.authorization.k8s.io/v1", "roles"),
    "Deployment": ("apps/v1", "deployments"),
    "Service": ("v1", "services"),
    "Pod": ("v1", "pods"),
    "Endpoints": ("v1", "endpoints"),
}
DEFAULTED: Final = frozenset({"Deployment", "Service", "Pod", "Endpoints"})
"""Kinds with defaults, which the embedded server does not fill in; of them, only the managers are compared."""
PATCHES: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


@final
@attrs.frozen
class Step:
    """One write."""

    verb: str
    """``apply``, ``create``, ``replace``, ``patch``, ``get``."""
    manager: str
    """The field manager."""
    body: Any
    """What is written; without kind, apiVersion and the name."""
    options: Mapping[str, Any]
    """``status``, or ``sub``, another subresource; ``patch``, the type of a patch; others are query parameters."""


def apply(manager: str, body: dict[str, Any] | None = None, /, **options: Any) -> Step:
    """Apply; the keywords ``spec`` and ``data`` are parts of the body."""
    parts = {key: options.pop(key) for key in ("spec", "data", "metadata") if key in options}
    if isinstance(options.get("status"), dict):
        parts["status"] = options["status"]
        options["status"] = True
    return Step("apply", manager, (body or {}) | parts, options)


def create(manager: str, **body: Any) -> Step:
    return Step("create", manager, body, {})


def replace(manager: str, *, subresource: bool = False, **body: Any) -> Step:
    """Read the object, replace these members, and write it."""
    return Step("replace", manager, body, {"status": subresource})


def patch(manager: str, body: Any, kind: str = "merge", *, status: bool = False) -> Step:
    return Step("patch", manager, body, {"patch": kind, "status": status})


def scale(manager: str, replicas: int, **options: Any) -> Step:
    return Step("patch", manager, {"spec": {"replicas": replicas}}, {"patch": "merge", "sub": "scale"} | options)


def apply_scale(manager: str, replicas: int, **options: Any) -> Step:
    head = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    return Step("apply", manager, head | {"spec": {"replicas": replicas}}, {"sub": "scale"} | options)


GET: Final = Step("get", "", {}, {})


def labels(**given: str) -> dict[str, Any]:
    return {"metadata": {"labels": given}}


def item(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name} | members


async def serve_widgets(client: Client) -> None:
    """Create the definition of the cases' kind, unless another test has, and wait until it is served."""
    try:
        await client.api(CustomResourceDefinition).create(from_dict(CustomResourceDefinition, DEFINITION))
    except AlreadyExistsError:
        return
    widgets = client.api(unstructured_kind(f"{GROUP}/v1", "Widget", plural="widgets", namespaced=True))
    with trio.fail_after(30):
        while True:
            try:
                await widgets.list()
            except NotFoundError:
                await trio.sleep(0.1)
            else:
                return


async def run_case(client: Client, namespace: str, case: str) -> list[Any]:
    """Make the writes of a case, and return what the server responds, without what differs each time."""
    kind, steps = CASES[case]
    if kind == "Widget":
        await serve_widgets(client)
    results = await run_steps(client, namespace, kind, steps)
    for result in results:
        # A create owns the defaults, which the embedded server does not fill in; an apply has no defaulted keys.
        result.pop("managed" if case in STRATEGIC else "containers", None)
    return results


async def run_steps(client: Client, namespace: str, kind: str, steps: list[Step], name: str = "one") -> list[Any]:
    """Make some writes of one object, and return what the server responds, without what differs each time."""
    version, plural = KINDS[kind]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    path = f"{root}/namespaces/{namespace}/{plural}"
    results = []
    for step in steps:
        options = dict(step.options)
        subresource = "status" if options.pop("status", False) else options.pop("sub", "")
        where = f"{path}/{name}/{subresource}" if subresource else f"{path}/{name}"
        patch_type = options.pop("patch", "")
        params = {"fieldManager": step.manager} | {key: str(value).lower() for key, value in options.items()}
        body, content_type, method = step.body, "application/json", "PATCH"
        head = {"apiVersion": version, "kind": kind}
        if isinstance(body, dict) and step.verb in ("apply", "create"):
            body = head | body | {"metadata": {"name": name} | body.get("metadata", {})}
        match step.verb:
            case "apply":
                content_type = "application/apply-patch+yaml"
            case "create":
                where, method = path, "POST"
            case "get":
                method = "GET"
            case "replace":
                read = await client._transport.request("GET", where)
                if read.code != 200:
                    results.append({"code": read.code})
                    continue
                live = json.loads(bytes(read.body))
                metadata = live["metadata"] | body.get("metadata", {})
                body, method = live | body | {"metadata": metadata}, "PUT"
            case "patch":
                content_type = PATCHES[patch_type]
        response = await client._transport.request(
            method,
            where,
            params=params,
            content=json.dumps(body).encode() if method != "GET" else None,
            content_type=content_type,
        )
        result = json.loads(bytes(response.body))
        if result["kind"] == "Scale":
            results.append({"code": response.code, "spec": result["spec"]})
        else:
            results.append(_plain(response.code, result, namespace, kind))
    return results


def _plain(code: int, obj: dict[str, Any], namespace: str, kind: str) -> dict[str, Any]:
    """Return a response without what differs each time: times, uids and versions."""
    if obj.get("kind") == "Status":
        error = {key: obj[key] for key in ("message", "reason") if key in obj}
        causes = obj.get("details", {}).get("causes", [])
        if "errors:\n" in error.get("message", ""):  # in the order of a Go map
            head, *problems = error["message"].split("\n")
            error["message"] = "\n".join([head, *sorted(problems)])
        if error.get("reason") == "Invalid" and len(causes) > 1:  # in any order; the causes say the same
            error["message"] = error["message"].partition("[")[0]
        error["causes"] = sorted(f"{one.get('field')}: {one['reason']}: {one['message']}" for one in causes)
        return {"code": code} | json.loads(json.dumps(error).replace(namespace, "NAMESPACE"))
    metadata = obj.pop("metadata")
    managed = metadata.get("managedFields", [])
    kept = {key: metadata[key] for key in ("labels", "annotations", "finalizers", "ownerReferences") if key in metadata}
    result = {key: obj[key] for key in sorted(obj) if key not in ("apiVersion", "kind")}
    parts = {"containers": _containers(obj)} if kind in DEFAULTED else result | {"metadata": kept}
    entries = sorted(map(_entry, managed), key=json.dumps)
    return {"code": code} | parts | {"managed": entries}


def _containers(obj: dict[str, Any]) -> list[Any]:
    """Return what strategic merges merge in a Deployment, in its order."""
    spec = obj["spec"].get("template", {}).get("spec", {}) if "spec" in obj else {}
    ports = ("containerPort", "protocol", "name")
    return [
        [
            one["name"],
            one.get("image"),
            [[port[key] for key in ports if key in port] for port in one.get("ports", ())],
            one.get("args", []),
            one.get("env", []),
        ]
        for one in spec.get("containers", ())
    ] + spec.get("volumes", [])


def _entry(entry: dict[str, Any]) -> list[Any]:
    who = [entry["operation"], entry.get("manager"), entry["apiVersion"]]
    who += [entry["subresource"]] if "subresource" in entry else []
    who += [] if "time" in entry else ["no time"]
    return [" ".join(map(str, who)), entry["fieldsV1"]]


def strategic(body: Any) -> Step:
    return patch("u", body, "strategic")


def _spec(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


_PORTS = [
    {"containerPort": 80, "protocol": "TCP"},
    {"containerPort": 80, "protocol": "UDP"},
    {"containerPort": 90, "protocol": "TCP"},
]
_TEMPLATE: Final = {
    "metadata": {"labels": {"app": "w"}},
    "spec": {
        "containers": [
            {"name": "a", "image": "i:1", "args": ["x"], "ports": _PORTS, "env": [{"name": "X", "value": "1"}]},
            {"name": "b", "image": "i:2"},
            {"name": "c", "image": "i:3"},
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}
_MADE = create("u", spec={"selector": {"matchLabels": {"app": "w"}}, "template": _TEMPLATE})
_OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1"}
_ACCOUNT = create("u", secrets=[{"name": "x"}, {"name": "y"}], imagePullSecrets=[{"name": "p"}])
_FINALIZED = create("u", metadata={"finalizers": ["e.io/a", "e.io/b"], "ownerReferences": [_OWNER]})
_NEW = {"name": "d", "image": "i:4"}
STRATEGIC: Final[dict[str, tuple[str, list[Step]]]] = {
    f"strategic merge: {name}": (kind, [made, *map(strategic, bodies)])
    for name, kind, made, bodies in (
        ("an item by its key", "Deployment", _MADE, [_spec(containers=[{"name": "b", "image": "i:9"}])]),
        (
            "new items and old ones",
            "Deployment",
            _MADE,
            [_spec(containers=[{"name": "c", "image": "i:8"}, _NEW, {"name": "a", "image": "i:9"}])],
        ),
        (
            "an item is deleted, and one is new",
            "Deployment",
            _MADE,
            [_spec(containers=[{"name": "b", "$patch": "delete"}, _NEW])],
        ),
        ("all items are replaced", "Deployment", _MADE, [_spec(containers=[_NEW, {"$patch": "replace"}])]),
        (
            "the order is set, with a new item",
            "Deployment",
            _MADE,
            [
                _spec(
                    **{
                        "$setElementOrder/containers": [{"name": "b"}, {"name": "d"}, {"name": "a"}],
                        "containers": [_NEW],
                    }
                )
            ],
        ),
        (
            "the order is not that of the patch",
            "Deployment",
            _MADE,
            [
                _spec(
                    **{
                        "$setElementOrder/containers": [{"name": "b"}, {"name": "d"}],
                        "containers": [_NEW, {"name": "b", "image": "i:9"}],
                    }
                )
            ],
        ),
        ("an item without its key", "Deployment", _MADE, [_spec(containers=[{"image": "i:4"}])]),
        ("an unknown directive", "Deployment", _MADE, [_spec(containers=[{"name": "a", "$patch": "frob"}])]),
        (
            "ports have one key",
            "Deployment",
            _MADE,
            [_spec(containers=[{"name": "a", "ports": [{"containerPort": 90, "name": "x"}]}])],
        ),
        (
            "an environment",
            "Deployment",
            _MADE,
            [_spec(containers=[{"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": None}]}])],
        ),
        (
            "keys are retained",
            "Deployment",
            _MADE,
            [
                _spec(
                    volumes=[{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x", "type": ""}}]
                )
            ],
        ),
        (
            "keys that are not retained",
            "Deployment",
            _MADE,
            [_spec(volumes=[{"name": "v", "$retainKeys": ["name"], "hostPath": {"path": "/x"}}])],
        ),
        (
            "a struct is replaced",
            "ConfigMap",
            create("u", data={"x": "1"}),
            [{"data": {"$patch": "replace", "y": "2"}}],
        ),
        ("a struct is deleted", "ConfigMap", create("u", data={"x": "1"}), [{"data": {"$patch": "delete"}}]),
        (
            "items of a set are deleted",
            "ConfigMap",
            _FINALIZED,
            [{"metadata": {"$deleteFromPrimitiveList/finalizers": ["e.io/a"]}}],
        ),
        (
            "the order is set",
            "Deployment",
            _MADE,
            [{"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}}}}],
        ),
        ("a list of other values", "ServiceAccount", _ACCOUNT, [{"secrets": ["y"]}]),
        (
            "a member is deleted",
            "ConfigMap",
            create("u", data={"x": "1", "y": "2"}),
            [{"data": {"x": None, "z": None}}],
        ),
        ("a set gets an item", "ConfigMap", _FINALIZED, [{"metadata": {"finalizers": ["e.io/c", "e.io/a"]}}]),
        (
            "items of a set are deleted and ordered",
            "ConfigMap",
            _FINALIZED,
            [
                {
                    "metadata": {
                        "$deleteFromPrimitiveList/finalizers": ["e.io/a"],
                        "$setElementOrder/finalizers": ["e.io/c", "e.io/b"],
                        "finalizers": ["e.io/c"],
                    }
                }
            ],
        ),
        ("a list that is no list", "ConfigMap", _FINALIZED, [{"metadata": {"$deleteFromPrimitiveList/finalizers": 5}}]),
        (
            "owners by their uid",
            "ConfigMap",
            _FINALIZED,
            [
                {"metadata": {"ownerReferences": [_OWNER | {"uid": "u2"}]}},
                {"metadata": {"ownerReferences": [{"uid": "u1", "$patch": "delete"}]}},
            ],
        ),
        (
            "secrets have a key",
            "ServiceAccount",
            _ACCOUNT,
            [{"secrets": [{"name": "y"}, {"name": "z"}]}],
        ),
        ("a list is set to null", "ServiceAccount", _ACCOUNT, [{"secrets": None}]),
    )
}
W = "Widget"
CASES: dict[str, tuple[str, list[Step]]] = {
    # --- ownership of scalars
    "the same apply twice": (W, [apply("a", spec={"size": 1}), apply("a", spec={"size": 1})]),
    "an apply drops a field": (W, [apply("a", spec={"size": 1, "color": "red"}), apply("a", spec={"size": 1})]),
    "an apply of an empty spec": (W, [apply("a", spec={}), apply("a", spec={"size": 1}), apply("a", spec={})]),
    "one of two owners drops the field": (
        W,
        [apply("a", spec={"size": 1}), apply("b", spec={"size": 1}), apply("a", spec={})],
    ),
    "a conflict with two managers": (
        W,
        [
            apply("a", spec={"size": 1}),
            apply("b", spec={"color": "red"}),
            apply("c", spec={"size": 2, "color": "blue"}),
        ],
    ),
    "a forced conflict, and back": (
        W,
        [
            apply("a", spec={"size": 1}),
            apply("b", spec={"size": 2}, force=True),
            apply("a", spec={"size": 1}),
            apply("a", spec={"size": 1}, force=True),
        ],
    ),
    "numbers that are equal": (W, [apply("a", spec={"ratio": 1}), apply("b", spec={"ratio": 1.0})]),
    "an integer or a text": (W, [apply("a", spec={"either": 1}), apply("b", spec={"either": "1"})]),
    # --- objects
    "nested fields": (
        W,
        [
            apply("a", spec={"nested": {"a": "x", "b": {"c": 1}}}),
            apply("b", spec={"nested": {"b": {"d": "y"}}}),
            apply("a", spec={"nested": {"a": "x"}}),
            apply("b", spec={}),
        ],
    ),
    "a map": (
        W,
        [
            apply("a", spec={"names": {"x": "1", "y": "2"}}),
            apply("b", spec={"names": {"y": "2", "z": "3"}}),
            apply("a", spec={"names": {"x": "1"}}),
            apply("b", spec={"names": {"y": "3"}}),
        ],
    ),
    "a map of objects": (
        W,
        [
            apply("a", spec={"pairs": {"p": {"x": "1"}, "q": {"x": "2"}}}),
            apply("b", spec={"pairs": {"p": {"y": "3"}}}),
            apply("a", spec={"pairs": {"q": {"x": "2"}}}),
            apply("b", spec={"pairs": {"p": {}}}),
        ],
    ),
    "an atomic struct": (
        W,
        [
            apply("a", spec={"pair": {"x": "1", "y": "2"}}),
            apply("b", spec={"pair": {"x": "1"}}),
            apply("b", spec={"pair": {"x": "1"}}, force=True),
            apply("b", spec={}),
        ],
    ),
    "unknown fields that are preserved": (
        W,
        [
            apply("a", spec={"extra": {"m": {"k": 1, "l": [1, 2]}}}),
            apply("b", spec={"extra": {"m": {"l": [1, 2, 3]}, "n": True}}, force=True),
            apply("a", spec={"extra": {"m": {"k": 2}}}),
        ],
    ),
    # --- sets
    "a set": (
        W,
        [
            apply("a", spec={"tags": ["x", "y"]}),
            apply("b", spec={"tags": ["y", "z"]}),
            apply("a", spec={"tags": ["x"]}),
            apply("b", spec={"tags": ["z"]}),
        ],
    ),
    "a set with an item twice": (W, [apply("a", spec={"tags": ["x", "x"]})]),
    "a set with special characters": (W, [apply("a", spec={"tags": ["<a&b>", 'q"uote', "ü", "a:b/c"]})]),
    # --- lists with keys
    "a list with keys": (
        W,
        [
            apply("a", spec={"items": [item("p", value="1"), item("q")]}),
            apply("b", spec={"items": [item("q", value="2"), item("r")]}),
            apply("a", spec={"items": [item("p", value="3")]}),
            apply("b", spec={"items": [item("r")]}),
        ],
    ),
    "a conflict in an item": (
        W,
        [
            apply("a", spec={"items": [item("p", value="1", size=1)]}),
            apply("b", spec={"items": [item("p", value="2")]}),
        ],
    ),
    "a list with keys in another order": (
        W,
        [
            apply("a", spec={"items": [item("p"), item("q"), item("r")]}),
            apply("b", spec={"items": [item("s"), item("t")]}),
            apply("a", spec={"items": [item("r"), item("p"), item("q")]}),
            apply("b", spec={"items": [item("t"), item("p"), item("s")]}),
        ],
    ),
    "a list with two keys": (
        W,
        [
            apply(
                "a", spec={"ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP", "label": "x"}]}
            ),
            apply("b", spec={"ports": [{"port": 80, "protocol": "UDP", "label": "y"}]}),
            apply("b", spec={"ports": [{"port": 80, "protocol": "UDP", "label": "y"}]}, force=True),
        ],
    ),
    "a key without its name": (W, [apply("a", spec={"items": [{"value": "1"}]})]),
    "a key twice": (W, [apply("a", spec={"items": [item("p"), item("p", value="1")]})]),
    "an atomic list": (
        W,
        [
            apply("a", spec={"atoms": ["x", "y"]}),
            apply("b", spec={"atoms": ["x", "y"]}),
            apply("b", spec={"atoms": ["y"]}),
            apply("b", spec={"atoms": ["y"]}, force=True),
            apply("b", spec={"atoms": []}),
            apply("b", spec={}),
        ],
    ),
    # --- nulls and empties
    "a null text of another manager": (
        W,
        [
            apply("a", spec={"nothing": "x"}),
            apply("b", spec={"nothing": None}),
            apply("b", spec={"nothing": None}, force=True),
        ],
    ),
    "a null in a preserved object": (
        W,
        [
            apply("a", spec={"extra": {"m": {"k": None, "l": 1}}}),
            apply("b", spec={"extra": {"m": {"k": 1}}}, force=True),
        ],
    ),
    # --- defaults
    "a default has no owner": (
        W,
        [
            apply("a", spec={"defaulted": {"other": "x"}}),
            apply("b", spec={"defaulted": {"mode": "manual"}}),
            apply("a", spec={"defaulted": {"other": "x", "mode": "auto"}}),
            apply("b", spec={}),
            apply("a", spec={"defaulted": {"more": {}}}, force=True),
        ],
    ),
    "a default that is removed comes back": (
        W,
        [
            apply("a", spec={"defaulted": {"mode": "manual"}}),
            apply("a", spec={"defaulted": {}}),
            apply("a", spec={"defaulted": {"mode": None}}),
            apply("a", spec={"size": 1}),
        ],
    ),
    "an updater owns defaults": (
        W,
        [
            create("u", spec={"defaulted": {"other": "x"}}),
            patch("v", {"spec": {"defaulted": {"more": {}}}}),
            apply("a", spec={"defaulted": {"mode": "manual"}}),
            patch("v", {"spec": {"defaulted": {"mode": None}}}),
        ],
    ),
    "an update with unknown fields": (
        W,
        [create("u", spec={"size": 1, "sizes": 2}), patch("u", {"spec": {"colour": "x"}})],
    ),
    "nulls in an update": (
        W,
        [
            create("u", spec={"size": 1, "color": None, "nested": {"a": None}, "nothing": None}),
            replace("u", spec={"size": 1, "names": None, "defaulted": {"mode": None}}),
        ],
    ),
    # --- what cannot be applied
    "an unknown field": (W, [apply("a", spec={"sizes": 1})]),
    "no manager": (W, [apply("", spec={"size": 1})]),
    "a long manager": (W, [apply("m" * 129, spec={"size": 1})]),
    "another kind": (W, [apply("a", {"kind": "Gadget"}), apply("a", {"apiVersion": "v1"})]),
    "another name": (W, [apply("a", metadata={"name": "other"})]),
    "another namespace": (W, [apply("a", metadata={"namespace": "other"})]),
    "managed fields in the body": (W, [apply("a", metadata={"managedFields": []})]),
    "a resource version that is not the current one": (
        W,
        [apply("a", spec={"size": 1}), apply("a", spec={"size": 2}, metadata={"resourceVersion": "1"})],
    ),
    "force for another patch": (W, [apply("a"), Step("patch", "a", {}, {"patch": "merge", "force": True})]),
    # --- updates
    "a conflict with an updater": (
        W,
        [create("u", spec={"size": 1}), apply("a", spec={"size": 2}), apply("a", spec={"size": 2}, force=True)],
    ),
    "updates of two managers": (
        W,
        [
            create("u", spec={"size": 1, "names": {"x": "1"}}),
            patch("v", {"spec": {"names": {"y": "2"}}}),
            patch("u", {"spec": {"names": {"x": None}}}),
            patch("v", {"spec": {"size": 2}}),
        ],
    ),
    "a patch of a list of an applier": (
        W,
        [
            apply("a", spec={"items": [item("p", value="1"), item("q")]}),
            patch("u", [{"op": "replace", "path": "/spec/items/0/value", "value": "2"}], "json"),
            patch("u", [{"op": "remove", "path": "/spec/items/1"}], "json"),
            apply("a", spec={"items": [item("p", value="1"), item("q")]}),
            apply("a", spec={"items": [item("q")]}, force=True),
        ],
    ),
    "managed fields are removed by an update": (
        W,
        [
            apply("a", spec={"size": 1}),
            patch("u", {"metadata": {"managedFields": []}}),
            apply("a", spec={"size": 2}),
            apply("a", spec={"size": 2}, force=True),
        ],
    ),
    "managed fields are replaced by an empty entry": (
        W,
        [apply("a", spec={"size": 1}), patch("u", {"metadata": {"managedFields": [{}]}}), apply("a", spec={"size": 1})],
    ),
    "managed fields that are not valid": (
        W,
        [apply("a", spec={"size": 1}), patch("u", {"metadata": {"managedFields": [{"manager": "x"}]}})],
    ),
    "no managers before the first apply": (
        W,
        [
            create("u", spec={"size": 1, "items": [item("p")]}, metadata={"labels": {"x": "1"}}),
            patch("u", {"metadata": {"managedFields": [{}]}}),
            patch("v", {"spec": {"color": "red"}}),
            apply("a", spec={"size": 1}),
            apply("a", spec={"size": 2}),
        ],
    ),
    "eleven updaters": (
        W,
        [create("u", spec={}), *(patch(f"u{i:02}", {"spec": {"names": {f"n{i}": "1"}}}) for i in range(12))],
    ),
    # --- metadata
    "annotations, finalizers and owners": (
        W,
        [
            apply("a", metadata={"annotations": {"x/y": "1"}, "finalizers": ["a.example.com/f"]}),
            apply("b", metadata={"finalizers": ["b.example.com/f"]}),
            apply("a", metadata={"annotations": {"x/y": "1"}}),
            apply(
                "b",
                metadata={
                    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1"}],
                    "finalizers": [],
                },
            ),
            apply(
                "c", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u2"}]}
            ),
            apply("b"),
        ],
    ),
    "a generated name": (W, [apply("a", metadata={"generateName": "x-"})]),
    # --- the status
    "the status is another set": (
        W,
        [
            apply("a", spec={"size": 1}),
            apply("a", {"status": {"phase": "ignored"}}),
            apply("a", spec={"size": 9}, status={"phase": "Ready", "conditions": [{"type": "R", "status": "True"}]}),
            apply("b", status={"phase": "Failed", "conditions": [{"type": "S", "status": "True"}]}),
            apply("b", status={"phase": "Failed", "conditions": [{"type": "S", "status": "True"}]}, force=True),
            apply("a", status={}),
        ],
    ),
    "an update of the status": (
        W,
        [
            create("u", spec={"size": 1}, status={"phase": "ignored"}),
            patch("v", {"spec": {"size": 2}, "status": {"phase": "Ready"}}, status=True),
            replace("w", subresource=True, status={"phase": "Failed"}),
            apply("a", status={"phase": "Ready"}),
            patch("v", {"metadata": {"labels": {"x": "1"}}}, status=True),
        ],
    ),
    "the status of what does not exist": (W, [apply("a", status={"phase": "Ready"})]),
    # --- built-in kinds
    "a config map with null data": (
        "ConfigMap",
        [apply("a", data={"x": None, "y": "2"}), apply("a", {"data": None}), apply("a", {"immutable": None})],
    ),
    "a config map with an unknown field": ("ConfigMap", [apply("a", {"dat": {"x": "1"}})]),
    "a config map with a number": ("ConfigMap", [apply("a", data={"x": 1})]),
    "a uid or a resource version of what does not exist": (
        "ConfigMap",
        [apply("a", metadata={"uid": "u1"}), apply("a", metadata={"resourceVersion": "1"})],
    ),
    "wrong scalars": (
        W,
        [
            apply("a", spec={"size": "1"}),
            apply("a", spec={"enabled": 1}),
            apply("a", spec={"color": {"a": [1, "x", None, 1.5, True]}}),
            apply("a", spec={"color": ["x"], "size": True}),
            apply("a", spec={"items": {"b": {"c": "d"}}}),
            apply("a", spec={"names": "x"}),
        ],
    ),
    "a role": (
        "Role",
        [
            apply("a", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
            apply("b", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}),
            apply("b", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}, force=True),
        ],
    ),
    "a service account": (
        "ServiceAccount",
        [
            apply("a", {"secrets": [{"name": "x"}], "imagePullSecrets": [{"name": "p"}]}),
            apply("b", {"secrets": [{"name": "y"}]}),
            apply("a", {"secrets": []}),
        ],
    ),
    "a deployment": (
        "Deployment",
        [
            apply(
                "a",
                spec={
                    "replicas": 1,
                    "selector": {"matchLabels": {"app": "w"}},
                    "template": {
                        "metadata": {"labels": {"app": "w"}},
                        "spec": {
                            "containers": [
                                {
                                    "name": "main",
                                    "image": "i:1",
                                    "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                                    "env": [{"name": "X", "value": "1"}],
                                }
                            ]
                        },
                    },
                },
            ),
            apply(
                "b",
                spec={
                    "template": {
                        "spec": {"containers": [{"name": "side", "image": "i:2"}, {"name": "main", "image": "i:9"}]}
                    }
                },
            ),
            apply("b", spec={"replicas": 3}, force=True),
            apply(
                "b",
                spec={"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "Y", "value": "2"}]}]}}},
            ),
            apply("c", spec={"paused": True}, status={"replicas": 3}),
        ],
    ),
    "a pod with all defaults": (
        "Pod",
        [
            create(
                "u",
                spec={
                    "containers": [
                        {
                            "name": "main",
                            "image": "i:1",
                            "imagePullPolicy": "Always",
                            "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File",
                        }
                    ],
                    "dnsPolicy": "ClusterFirst",
                    "enableServiceLinks": True,
                    "restartPolicy": "Always",
                    "schedulerName": "default-scheduler",
                    "securityContext": {},
                    "terminationGracePeriodSeconds": 30,
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                },
                metadata={"labels": {"app": "w"}},
            )
        ],
    ),
    "a scale": (
        "Deployment",
        [
            apply("a", spec={"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": _TEMPLATE}),
            scale("u", 3),
            GET,
            apply("b", spec={"replicas": 2}),
            scale("u", 3),
            GET,
            apply_scale("c", 4),
            apply_scale("c", 4, force=True),
            GET,
            apply_scale("c", 5),
            apply("b", spec={"replicas": 5}),
            apply("b", spec={}),
            scale("c", 6),
            GET,
        ],
    ),
    "ephemeral containers": (
        "Pod",
        [
            apply("a", spec={"containers": [{"name": "main", "image": "i:1"}]}),
            Step(
                "patch",
                "u",
                {
                    "spec": {
                        "ephemeralContainers": [
                            {
                                "name": "debug",
                                "image": "i:2",
                                "imagePullPolicy": "Always",
                                "terminationMessagePath": "/dev/termination-log",
                                "terminationMessagePolicy": "File",
                            }
                        ]
                    }
                },
                {"patch": "strategic", "sub": "ephemeralcontainers"},
            ),
        ],
    ),
    "a service": (
        "Service",
        [
            apply("a", spec={"selector": {"app": "w"}, "ports": [{"port": 80, "name": "http"}]}),
            apply("b", spec={"ports": [{"port": 80, "targetPort": 8080}, {"port": 443, "name": "https"}]}),
            apply("b", spec={"selector": {"app": "w"}}),
        ],
    ),
    "kubectl takes what it applied before": (
        "ConfigMap",
        [
            create(
                "kubectl-client-side-apply",
                data={"x": "1", "y": "2"},
                metadata={
                    "annotations": {
                        "kubectl.kubernetes.io/last-applied-configuration": json.dumps(
                            {
                                "apiVersion": "v1",
                                "kind": "ConfigMap",
                                "metadata": {"name": "kubectl"},
                                "data": {"x": "1", "y": "2"},
                            }
                        )
                    }
                },
            ),
            apply("other", data={"x": "3"}),
            apply("kubectl", data={"x": "3"}),
            patch("v", {"data": {"x": "4"}}),
            apply("kubectl", data={"x": "5"}),
        ],
    ),
    **STRATEGIC,
}
