"""The cases of the contract suite: the requests that each built-in kind, verb and subresource receives.

A flow is the requests for one kind, in order; each request is a case.  The flows follow from the discovery of
kube-apiserver and from one object of each kind, in ``../manifests``.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs
import trio
import yaml

from tests.e2e.manifest_set import BUILTIN, NAMESPACE
from trioformer.client import Client

JSON: Final = "application/json"
AS: Final = f"{JSON};as={{}};g=meta.k8s.io;v=v1"
PATCHES: Final = {
    "json patch": (
        "application/json-patch+json",
        [{"op": "add", "path": "/metadata/annotations", "value": {"a": "1"}}],
    ),
    "merge patch": ("application/merge-patch+json", {"metadata": {"annotations": {"a": None, "b": "2"}}}),
    "strategic merge patch": ("application/strategic-merge-patch+json", {"metadata": {"annotations": {"c": "3"}}}),
    "apply": ("application/apply-patch+yaml", {"metadata": {"annotations": {"d": "4"}}}),
}
METHODS: Final = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
SELECTOR: Final = {"labelSelector": "suite=case"}
BODIES: Final[dict[str, dict[str, Any]]] = {
    "approval": {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Good", "message": "m"}]}},
    "binding": {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "no-node"}},
    "ephemeralcontainers": {
        "spec": {"ephemeralContainers": [{"name": "debug", "image": "a:1", "terminationMessagePolicy": "File"}]}
    },
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction"},
    "resize": {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}},
    "scale": {"spec": {"replicas": 2}},
    "token": {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}},
}
"""What the writes of subresources change, or create."""

OWN_TESTS: Final = {"APIService", "CustomResourceDefinition", "FlowSchema"}
"""The kinds whose status kube-apiserver itself writes, at any time."""
CHANGED: Final = {
    "Pod": {"spec": {"containers": [{"name": "main", "image": "a", "resources": {"requests": {"cpu": "1"}}}]}}
}
"""The fields of objects that would refer to objects of other flows."""
NAMES: Final = {"IPAddress": "10.99.0.{}"}
"""The names of the objects of a kind, with a digit."""

Discovery: TypeAlias = Mapping[str, Mapping[str, Any]]


@attrs.frozen
class Case:
    """A request."""

    name: str
    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    params: Mapping[str, str] = attrs.field(factory=dict)
    is_update: bool = False
    """Whether the body changes the newest object, and the result is sent."""


@attrs.frozen
class Flow:
    """The requests for one kind."""

    kind: str
    """The version and the kind."""
    resource: str
    """The plural and the group."""
    collection: str
    """The path of the objects."""
    cases: tuple[Case, ...]


async def discover(client: Client) -> Discovery:
    """Return the kinds of a server, with the verbs of each and of its subresources."""
    found: dict[str, Any] = {}
    for root in ("/api", "/apis"):
        accept = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        for group in json.loads((await client._transport.request("GET", root, accept=accept)).body)["items"]:
            prefix = f"/apis/{group['metadata']['name']}" if group["metadata"].get("name") else "/api"
            for version in group["versions"]:
                for one in version["resources"]:
                    found[f"{prefix}/{version['version']}/{one['resource']}"] = {
                        "kind": one["responseKind"]["kind"],
                        "namespaced": one["scope"] == "Namespaced",
                        "verbs": sorted(one["verbs"]),
                        "subresources": {
                            each["subresource"]: sorted(each["verbs"]) for each in one.get("subresources", ())
                        },
                    }
    return found


def flows(discovery: Discovery) -> Iterator[Flow]:
    """Return the flow of each kind."""
    text = "---\n".join(file.read_text() for file in sorted(BUILTIN.glob("*.yaml")))
    samples = {(one["apiVersion"], one["kind"]): one for one in yaml.safe_load_all(text) if one is not None}
    for path, about in discovery.items():
        _, *parts, plural = path.split("/")
        version = "/".join(parts[1:])
        namespace = f"namespaces/{NAMESPACE}/" if about["namespaced"] else ""
        collection = f"/{'/'.join(parts)}/{namespace}{plural}"
        kind = f"{version} {about['kind']}"
        resource = f"{plural}.{parts[1]}" if len(parts) > 2 else plural
        sample = None if about["kind"] in OWN_TESTS else samples.get((version, about["kind"]))
        if sample is None:
            body = {"apiVersion": version, "kind": about["kind"], "metadata": {}}
            verbs = [("POST", body), ("GET", None), ("PUT", body), ("DELETE", None)]
            params = {"dryRun": "All", **SELECTOR}
            cases = [
                Case(f"{method} of the collection", method, collection, one, params=params) for method, one in verbs
            ]
            yield Flow(kind, resource, collection, (*cases, Case("get", "GET", f"{collection}/case-a")))
        else:
            sample = json.loads(json.dumps(sample | CHANGED.get(about["kind"], {}), default=str))
            yield Flow(kind, resource, collection, tuple(_cases(collection, about, sample)))


def _cases(collection: str, about: Mapping[str, Any], sample: dict[str, Any]) -> Iterator[Case]:
    def named(name: str, **changes: Any) -> dict[str, Any]:
        obj = copy.deepcopy(sample) | changes
        obj["metadata"] |= {"name": name}
        obj["metadata"].setdefault("labels", {})["suite"] = "case"
        return obj

    manager = {"fieldManager": "suite"}
    names = NAMES.get(sample["kind"], "case-{}")
    a, b, c, d = (names.format(i) for i in range(4))
    one, other = f"{collection}/{a}", f"{collection}/{b}"
    table, partial = AS.format("Table"), AS.format("PartialObjectMetadata")
    first = named(a)
    yield Case("get what does not exist", "GET", one)
    yield Case("create in a dry run", "POST", collection, first, params={**manager, "dryRun": "All"})
    yield Case("create", "POST", collection, first, params=manager)
    yield Case("create what exists", "POST", collection, first)
    yield Case("create with a bad name", "POST", collection, named("Not_a name!"), params={"dryRun": "All"})
    yield Case("create without a name", "POST", collection, {**sample, "metadata": {}}, params={"dryRun": "All"})
    yield Case("create another kind", "POST", collection, named(c, kind="Other"))
    yield Case("create another version", "POST", collection, named(c, apiVersion="other/v1"))
    wrong = named(c, unknownField=1)
    for check in ("Strict", "Warn"):
        params = {"fieldValidation": check, "dryRun": "All", **manager}
        yield Case(f"create with an unknown field, {check}", "POST", collection, wrong, params=params)
    yield Case(
        "create with a resourceVersion",
        "POST",
        collection,
        _with(named(c), resourceVersion="1"),
        params={"dryRun": "All"},
    )
    yield Case(
        "create in another namespace", "POST", collection, _with(named(c), namespace="other"), params={"dryRun": "All"}
    )
    yield Case("create the second", "POST", collection, named(b), params=manager)
    yield Case("get", "GET", one)
    yield Case("get a Table", "GET", one, accept=table)
    yield Case("get the metadata", "GET", one, accept=partial)
    yield Case("get an unknown form", "GET", one, accept=AS.format("Unknown"))
    yield Case("get an unknown media type", "GET", one, accept="text/csv")
    for name, params in {
        "list": {},
        "list with a limit": {"limit": "1"},
        "list the rest": {"limit": "1", "continue": "CONTINUE"},
        "list with a bad continue": {"continue": "bad"},
        "list a name": {"fieldSelector": f"metadata.name={b}"},
        "list an unknown field": {"fieldSelector": "spec.unknown=a"},
        "list a bad label selector": {"labelSelector": "a b"},
        "list from any version": {"resourceVersion": "0"},
        "list a bad version": {"resourceVersion": "x"},
        "list a bad match": {"resourceVersionMatch": "Exact"},
    }.items():
        yield Case(name, "GET", collection, params=SELECTOR | params)
    yield Case("list a Table", "GET", collection, accept=table, params=SELECTOR)
    yield Case("list the metadata", "GET", collection, accept=AS.format("PartialObjectMetadataList"), params=SELECTOR)
    yield Case("update nothing", "PUT", one, {}, params=manager, is_update=True)
    labels = {"metadata": {"labels": {"l": "1"}}}
    yield Case("update in a dry run", "PUT", one, labels, params={**manager, "dryRun": "All"}, is_update=True)
    yield Case("update", "PUT", one, labels, params=manager, is_update=True)
    stale = {"metadata": {"resourceVersion": "1"}}
    yield Case("update an old version", "PUT", one, stale, is_update=True)
    yield Case("update another uid", "PUT", one, {"metadata": {"uid": "other"}}, is_update=True)
    yield Case("update another name", "PUT", one, {"metadata": {"name": "other"}}, is_update=True)
    yield Case("update without a version", "PUT", one, {"metadata": {"resourceVersion": None}}, is_update=True)
    yield Case("update what does not exist", "PUT", f"{collection}/{d}", named(d), params={"dryRun": "All"})
    for name, (content_type, patch) in PATCHES.items():
        is_apply = name == "apply"
        ids = {"apiVersion": sample["apiVersion"], "kind": sample["kind"]} if is_apply else {}
        body = patch if isinstance(patch, list) else {**ids, **patch}
        params = {"fieldManager": "applier"} if is_apply else manager
        dry = {**params, "dryRun": "All"}
        yield Case(f"{name} in a dry run", "PATCH", one, body, content_type, params=dry)
        yield Case(name, "PATCH", one, body, content_type, params=params)
        yield Case(f"{name} of nothing", "PATCH", one, body, content_type, params=params)
        missing = f"{collection}/{d}"
        yield Case(f"{name} of what does not exist", "PATCH", missing, body, content_type, params=dry)
        yield Case(f"{name} with a bad body", "PATCH", one, "text", content_type, params=params)
    yield Case("patch with another media type", "PATCH", one, {}, "text/plain")
    merge = PATCHES["merge patch"][0]
    yield Case("patch an old version", "PATCH", one, stale, merge)
    yield Case("patch the name", "PATCH", one, {"metadata": {"name": "other"}}, merge)
    failing = [{"op": "test", "path": "/metadata/name", "value": "other"}]
    yield Case("patch with a failing test", "PATCH", one, failing, "application/json-patch+json")
    config = {"apiVersion": sample["apiVersion"], "kind": sample["kind"], "metadata": {"annotations": {"d": "5"}}}
    apply = PATCHES["apply"][0]
    yield Case("apply a conflict", "PATCH", one, config, apply, params={"fieldManager": "other"})
    yield Case(
        "apply a conflict by force", "PATCH", one, config, apply, params={"fieldManager": "other", "force": "true"}
    )
    yield Case("apply without a manager", "PATCH", one, config, apply)
    for subresource, verbs in {**about["subresources"], "unknown": ["get", "create", "update", "patch"]}.items():
        yield from _subresource_cases(one, sample, subresource, verbs)
    yield Case("post to an object", "POST", one, first)
    yield Case("put to the collection", "PUT", collection, first)
    yield Case("patch the collection", "PATCH", collection, {}, merge)
    options = {"apiVersion": "v1", "kind": "DeleteOptions"}
    yield Case("delete in a dry run", "DELETE", other, params={"dryRun": "All"})
    yield Case("delete another uid", "DELETE", other, {**options, "preconditions": {"uid": "other"}})
    yield Case("delete an old version", "DELETE", other, {**options, "preconditions": {"resourceVersion": "1"}})
    yield Case("delete by a bad policy", "DELETE", other, params={"propagationPolicy": "Bad"})
    yield Case("delete", "DELETE", other)
    yield Case("delete the collection in a dry run", "DELETE", collection, params={**SELECTOR, "dryRun": "All"})
    yield Case("remove the finalizers", "PATCH", other, {"metadata": {"finalizers": None}}, merge)
    yield Case("keep by a finalizer", "PATCH", one, {"metadata": {"finalizers": ["example.com/f"]}}, merge)
    yield Case("delete the collection", "DELETE", collection, params=SELECTOR)
    yield Case("delete again", "DELETE", one)
    yield Case("let go", "PATCH", one, {"metadata": {"finalizers": None}}, merge)
    yield Case("get what was deleted", "GET", one)
    yield Case("list nothing", "GET", collection, params=SELECTOR)


def _with(obj: dict[str, Any], **metadata: str) -> dict[str, Any]:
    obj["metadata"] |= metadata
    return obj


def _subresource_cases(one: str, sample: dict[str, Any], name: str, verbs: list[str]) -> Iterator[Case]:
    path, body = f"{one}/{name}", BODIES.get(name, {})
    ids = {key: sample[key] for key in ("apiVersion", "kind")}
    if name == "scale":
        ids = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    for verb, method in METHODS.items():
        case = f"{verb} {name}"
        if verb == "patch" and verb in verbs:
            for patch, (content_type, change) in PATCHES.items():
                sent = change if isinstance(change, list) else {**(ids if patch == "apply" else {}), **change, **body}
                yield Case(
                    f"{patch} {name}", method, path, sent, content_type, params={"fieldManager": f"{name}-{patch}"}
                )
        elif verb == "update":
            yield Case(case, method, path, body, params={"fieldManager": name}, is_update=True)
        elif verb == "create":
            yield Case(
                case,
                method,
                path,
                {**ids, "metadata": {"name": one.rpartition("/")[2]}, **body},
                params={"dryRun": "All"},
            )
        else:
            yield Case(case, method, path, None if verb in ("get", "delete") else body, accept=JSON)


_UNLIKE: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+"), "ADDRESS"),
    (re.compile(r"(?<=X509SHA256=)[0-9a-f]+"), "HASH"),
    (re.compile(r"(?<=in record \()\d+|(?<=ResourceVersion in object meta: )\d+"), "VERSION"),
    (re.compile(r"^(\d+[smhdy])+$"), "AGE"),
    (re.compile(r"(?<=https://)\S+:\d+"), "HOST"),
)
"""What differs between two servers of the same release, in strings."""
_CHANGING: Final = {"nodePort", "healthCheckNodePort", "continue", "token", "remainingItemCount"}


class Run:
    """The run of a flow on a server."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._versions: dict[str, int] = {}
        self._continue = "none"

    async def run(self, flow: Flow) -> dict[str, Any]:
        """Send the requests of a flow, and return the comparable response to each and the events of a watch."""
        listed = await self._send("GET", flow.collection, None, JSON, JSON, {"limit": "1"})
        found = {case.name: await self._answer(case) for case in flow.cases}
        if listed.code == 200 and "create" in found:
            version = json.loads(listed.body)["metadata"]["resourceVersion"]
            found["watch"] = await self._events(flow.collection, version)
        return found

    async def _send(
        self, method: str, path: str, body: Any, content_type: str, accept: str, params: Mapping[str, str]
    ) -> Any:
        content = None if body is None else json.dumps(body).replace(NAMESPACE, self._namespace).encode()
        return await self._client._transport.request(
            method,
            path.replace(NAMESPACE, self._namespace),
            params=params,
            content=content,
            content_type=None if body is None else content_type,
            accept=accept,
            retries=False,
        )

    async def _answer(self, case: Case) -> Any:
        body, params = case.body, dict(case.params)
        if case.is_update:
            response = await self._send("GET", case.path, None, JSON, JSON, {})
            live = (
                json.loads(response.body)
                if response.code == 200
                else {"metadata": {"name": case.path.rpartition("/")[2]}}
            )
            body = _merged(live, case.body)
        if "continue" in params:
            params["continue"] = params["continue"].replace("CONTINUE", self._continue)
        response = await self._send(case.method, case.path, body, case.content_type, case.accept, params)
        found: dict[str, Any] = {"code": response.code}
        if warnings := response.headers.get("warning"):
            found["warning"] = warnings
        if (media_type := response.headers.get("content-type", "")) != JSON:
            found["type"] = media_type
        try:
            document = json.loads(response.body)
        except ValueError:
            return {**found, "text": self._comparable(response.body.decode())}
        if isinstance(document, dict):
            self._continue = (document.get("metadata") or {}).get("continue") or self._continue
        return {**found, "body": self._comparable(document)}

    async def _events(self, collection: str, version: str) -> list[Any]:
        found: list[Any] = []
        params = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "10", **SELECTOR}
        deleted: set[str] = set()
        with trio.move_on_after(3):
            async with self._client.stream(
                "GET", collection.replace(NAMESPACE, self._namespace), params=params, endless=True
            ) as body:
                async for line in body.lines():
                    event = json.loads(line)
                    metadata = event["object"]["metadata"]
                    found.append([event["type"], metadata.get("name"), sorted(metadata.get("annotations") or ())])
                    if event["type"] == "DELETED":
                        deleted.add(metadata["name"])
                        if len(deleted) == 2:
                            break
        return found

    def _comparable(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if isinstance(value.get("metadata"), dict):
                value = {**value, "metadata": self._versioned(value["metadata"])}
            if entries := value.get("managedFields"):  # sorted by time, whose unit is a second
                value["managedFields"] = sorted(
                    entries, key=lambda one: [one[name] for name in ("manager", "operation")]
                )
            return {name: self._comparable(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self._comparable(one) for one in value]
        if key in _CHANGING:
            return "…"
        if isinstance(value, str):
            value = value.replace(self._namespace, NAMESPACE)
            for pattern, word in _UNLIKE:
                value = pattern.sub(word, value)
        return value

    def _versioned(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return metadata whose version says whether it is new, the last one, or an older one."""
        version, name = str(metadata.get("resourceVersion", "")), metadata.get("name", "")
        if not version.isdecimal() or not name:
            return {key: one for key, one in metadata.items() if key != "resourceVersion"}
        last = self._versions.get(name, 0)
        self._versions[name] = max(last, int(version))
        return {**metadata, "resourceVersion": "newer" if int(version) > last else "same"}


def _merged(value: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    found = {key: one for key, one in value.items() if change.get(key, 0) is not None}
    for key, one in change.items():
        if one is not None:
            found[key] = _merged(found.get(key) or {}, one) if isinstance(one, dict) else one
    return found
