"""Values of the wrong type in built-in kinds are answered with the messages of kube-apiserver's decoders."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.contract.observed import observe
from trioformer.client import Client
from trioformer.models._internal import WireType, find_wire_type
from trioformer.models._kinds import builtin_resources
from trioformer.testing._storage._defaults import has_objects

DEPTH = 6
WRONG: dict[str, list[Any]] = {
    "T": [3],
    "U": [3],
    "D": [3],
    "b": [3, "x", {}],
    "s": [3, 1.5, True, []],
    "y": ["x", "a===", "ab&c", 3],
    "I": [True, {}],
    "Q": [True, [], "x"],
}
"""Values that are wrong for a kind of field, by the letter in the table of protobuf types."""
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "wrong-types"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
    },
}


def wrong_parts(type_: WireType, seen: set[str], values: Iterator[int], depth: int = DEPTH) -> Iterator[dict[str, Any]]:
    """Yield objects with one wrong value, at least one for each field of each type."""
    for field in type_.fields.values():
        below = type_.type_of(field.element) if has_objects(field.element) else None
        wrong = WRONG.get(field.element, [True, "x", 2**70, 2.5]) if below is None else [3, True, "x", []]
        one = wrong[next(values) % len(wrong)]
        known = f"{type_.module}.{type_.name}.{field.json}"
        if field.is_inline and below is not None:
            yield from wrong_parts(below, seen, values, depth)
            continue
        if known not in seen and field.element[0] not in "RFABC[":
            seen.add(known)
            yield {field.json: one if not field.shape or next(values) % 2 else _within(field.shape, one)}
        if below is not None and depth:
            for part in wrong_parts(below, seen, values, depth - 1):
                yield {field.json: _within(field.shape, part)}


def _within(shape: str, value: Any) -> Any:
    return [value] if shape == "[" else {"a": value} if shape == "{" else value


async def test_a_create_with_a_wrong_type_fails_alike(both_clients: tuple[Client, Client]) -> None:
    seen: set[str] = set()
    values, different, count = itertools.count(), {}, 0
    for info in builtin_resources():
        type_ = find_wire_type(info.api_version, info.kind)
        if type_ is None or "create" not in info.verbs or info.kind in ("Binding", "CustomResourceDefinition"):
            continue
        for part in wrong_parts(type_, seen, values):
            if "AdmissionPolicy" in info.kind:  # which the embedded server does not serve
                continue
            body = {"metadata": {"name": "a"}, **part, "apiVersion": info.api_version, "kind": info.kind}
            path, count = info.path(namespace="default"), count + 1
            embedded, real = [await observe(one, "POST", path, body, dryRun="All") for one in both_clients]
            if embedded != real and 400 in (embedded["code"], real["code"]):
                different[json.dumps(body)] = (embedded, real)
    assert different == {}
    assert count > 1_000


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", "application/strategic-merge-patch+json"])
@pytest.mark.parametrize(
    "patch",
    [
        {"spec": 3},
        {"spec": {"replicas": "x"}},
        {"spec": {"replicas": 1.5}},
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
        {"spec": {"template": {"spec": {"containers": 3}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": 3}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": True}}}]}}}},
        {"spec": {"template": {"spec": {"hostNetwork": 3}}}},
        {"spec": {"template": {"spec": {"nodeSelector": [1]}}}},
        {"spec": {"template": {"spec": {"restartPolicy": 3}}}},
        {"spec": {"template": {"spec": {"securityContext": "x"}}}},
        {"metadata": {"labels": {"a": 3}}},
    ],
    ids=str,
)
async def test_a_patch_with_a_wrong_type_fails_alike(
    both_clients: tuple[Client, Client], patch: Any, content_type: str
) -> None:
    found = []
    for client in both_clients:
        await observe(client, "POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
        path = "/apis/apps/v1/namespaces/default/deployments/wrong-types"
        failed = await observe(client, "PATCH", path, patch, content_type=content_type)
        assert failed["code"] == 422
        found.append([(text.partition(": Invalid value: ")[0], text.rpartition('": ')[2]) for text in failed["causes"]])
    assert found[0] == found[1]
