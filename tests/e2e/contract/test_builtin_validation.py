"""Invalid objects of built-in kinds are refused with the causes of kube-apiserver, in its order."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.contract.builtin_validation_cases import RESULTS, observed_created, observed_updated, valid_objects
from tests.e2e.contract.builtin_validation_cases import send as send_object
from tests.e2e.contract.releases import differs
from trioformer.client import Client

RECORDED: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))


def different(found: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    assert found.keys() == recorded.keys()
    return {
        case: (result, recorded[case])
        for case, result in found.items()
        if result != recorded[case] and not differs(case)
    }


async def test_valid_objects_are_accepted(server_client: Client, namespace: str) -> None:
    for name, obj in valid_objects().items():
        assert (name, (await send_object(server_client, "POST", namespace, obj, dryRun="All"))[0]) == (name, 201)


async def test_objects_are_validated_on_create(server_client: Client, namespace: str) -> None:
    found = await observed_created(server_client, namespace)
    assert different(found, RECORDED["created"]) == {}
    assert len(found) >= 120


async def test_objects_are_validated_on_update(server_client: Client, namespace: str) -> None:
    assert different(await observed_updated(server_client, namespace), RECORDED["updated"]) == {}


async def test_objects_are_validated_when_they_are_applied(server_client: Client, namespace: str) -> None:
    cases = {case: result for case, result in RECORDED["created"].items() if case.startswith("Deployment")}
    found = await observed_created(server_client, namespace, "APPLY", kinds=("Deployment",))
    assert different(found, cases) == {}


async def test_objects_are_validated_when_they_are_patched(server_client: Client, namespace: str) -> None:
    obj = valid_objects()["Deployment/web"]
    await send_object(server_client, "POST", namespace, obj)
    patch = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "spec": {"replicas": -1, "selector": None}}
    code, *causes = await send_object(server_client, "PATCH", namespace, patch, "/web", dryRun="All")
    assert (code, [cause.split(": ")[0] for cause in causes]) == (
        422,
        ["spec.replicas", "spec.selector", "spec.template.metadata.labels", "spec.selector"],
    )
