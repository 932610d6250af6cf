"""``examples/website_webhooks.py``: its functions, called as the API server calls them."""

from __future__ import annotations

from typing import Any

import pytest

from examples.website_webhooks import TEAM, WebsiteV1Alpha1, downgrade, upgrade, webhooks
from tests.support.webhooks import Caller, conversion
from trioformer.models import from_dict, to_dict

CALLER = Caller(webhooks)


def website(labels: dict[str, str] | None = None, **spec: object) -> dict[str, Any]:
    metadata = {"name": "hello", "namespace": "web", **({} if labels is None else {"labels": labels})}
    return {"apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": spec}


def review(obj: object, old: object = None, *groups: str) -> dict[str, Any]:
    kind = {"group": "example.com", "version": "v1", "kind": "Website"}
    request = {"uid": "u1", "kind": kind, "operation": "UPDATE" if old else "CREATE", "object": obj, "oldObject": old}
    request["userInfo"] = {"username": "me", "groups": groups}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@pytest.mark.parametrize(
    ("new", "old", "fields"),
    [
        (website(page="x", secret="s"), None, None),
        (website(page="x", secret="t"), website(secret="s"), None),
        (website(page="x"), website(secret="s"), {"spec.secret"}),
        (website(page="x" * 100_001), website(secret="s"), {"spec.page", "spec.secret"}),
    ],
)
async def test_a_website_is_checked(new: object, old: object, fields: set[str] | None) -> None:
    answer = await CALLER.call("/validate/example.com/websites", review(new, old))
    assert answer["allowed"] == (fields is None)
    if fields is not None:
        assert {each["field"] for each in answer["status"]["details"]["causes"]} == fields
        assert all(field in answer["status"]["message"] for field in fields)


async def test_a_website_without_pods_is_a_warning() -> None:
    answer = await CALLER.call("/validate/example.com/websites", review(website(replicas=0)))
    assert (answer["allowed"], len(answer["warnings"])) == (True, 1)


@pytest.mark.parametrize(
    ("labels", "groups", "team"),
    [
        (None, ("system:authenticated", "team:web"), "web"),
        ({"a": "b"}, (), "none"),
        ({TEAM: "ops"}, ("team:web",), "ops"),
    ],
)
async def test_a_website_gets_the_team_of_its_user(
    labels: dict[str, str] | None, groups: tuple[str, ...], team: str
) -> None:
    body = review(website(labels, page="x", more=1.0), None, *groups)
    changed = await CALLER.mutated("/mutate/example.com/websites", body)
    assert changed == website({**(labels or {}), TEAM: team}, page="x", more=1.0)


async def test_a_website_of_the_old_version_is_converted_there_and_back() -> None:
    spec = {"html": "<b>", "pods": 3, "secret": "s"}
    old = {"apiVersion": "example.com/v1alpha1", "kind": "Website", "metadata": {"name": "hello"}, "spec": spec}
    answer = await CALLER.call("/convert/example.com/websites", conversion("example.com/v1", old))
    (new,) = answer["convertedObjects"]
    assert new["spec"] == {"page": "<b>", "replicas": 3, "secret": "s"}
    first = from_dict(WebsiteV1Alpha1, old)
    assert to_dict(downgrade(upgrade(first)))["spec"] == spec
