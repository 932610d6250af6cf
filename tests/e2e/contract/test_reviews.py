"""Reviews of access and of tokens, on an embedded and on a real server, which allows its administrator everything."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.e2e.contract.encodings import ENCODINGS, received, sent
from trioformer.client import Client
from trioformer.errors import InvalidError, MethodNotAllowedError, NotFoundError
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.authentication_v1 import SelfSubjectReview, TokenReview
from trioformer.models.authorization_v1 import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from trioformer.models.core_v1 import ServiceAccount

AUTHENTICATION: Final = "authentication.k8s.io/v1"
AUTHORIZATION: Final = "authorization.k8s.io/v1"
PODS: Final = {"verb": "list", "resource": "pods", "namespace": "default"}
VERSION: Final = {"verb": "get", "path": "/version"}
MASTERS: Final = {"user": "somebody", "groups": ["system:masters"]}


async def review(client: Client, encoding: str, kind: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    """Create a review, and return it as it comes back."""
    group = AUTHENTICATION if kind in ("SelfSubjectReview", "TokenReview") else AUTHORIZATION
    where = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    body = {"kind": kind, "apiVersion": group, "metadata": metadata, "spec": spec}
    if spec is None:
        del body["spec"]
    path = f"/apis/{group}{where}/{kind.lower()}s"
    response = await client._transport.request("POST", path, accept=encoding, **sent(body, encoding))
    found = received(response)
    assert (response.code, found["kind"], found["apiVersion"]) == (201, kind, group)
    return found


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_everything_is_allowed(server_client: Client, encoding: str) -> None:
    for asked in ({"resourceAttributes": PODS}, {"nonResourceAttributes": VERSION}):
        found = await review(server_client, encoding, "SelfSubjectAccessReview", asked)
        assert (found["spec"], found["status"]) == (asked, {"allowed": True})
        found = await review(server_client, encoding, "SubjectAccessReview", {**asked, **MASTERS})
        assert (found["spec"], found["status"]) == ({**asked, **MASTERS}, {"allowed": True})
    asked = {"resourceAttributes": PODS, **MASTERS}
    found = await review(server_client, encoding, "LocalSubjectAccessReview", asked, namespace="default")
    assert (found["metadata"]["namespace"], found["status"]) == ("default", {"allowed": True})
    rules = (await review(server_client, encoding, "SelfSubjectRulesReview", {"namespace": "default"}))["status"]
    assert rules["incomplete"] is False
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in rules["resourceRules"]
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in rules["nonResourceRules"]
    assert (len(rules["resourceRules"]), len(rules["nonResourceRules"])) == (3, 3)


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_the_client_is_an_administrator(server_client: Client, encoding: str) -> None:
    found = await review(server_client, encoding, "SelfSubjectReview", None)
    assert found["metadata"]["creationTimestamp"]
    user = found["status"]["userInfo"]
    assert (user["username"], user["groups"]) == ("trioformer-admin", ["system:masters", "system:authenticated"])


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_token_belongs_to_its_service_account(server_client: Client, namespace: str, encoding: str) -> None:
    accounts = server_client.api(ServiceAccount, namespace)
    robot = await accounts.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    token = (await accounts.create_token(robot)).status.token
    status = (await review(server_client, encoding, "TokenReview", {"token": token}))["status"]
    (credential,) = status["user"].pop("extra")["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("JTI=")
    assert status == {
        "authenticated": True,
        "user": {
            "username": f"system:serviceaccount:{namespace}:robot",
            "uid": robot.uid,
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
        },
        "audiences": ["https://kubernetes.default.svc"],
    }
    for audience, accepted in (("vault", ["vault"]), ("other", None)):
        token = (await accounts.create_token(robot, audiences=[audience])).status.token
        spec = {"token": token, "audiences": ["vault", "bank"]}
        status = (await review(server_client, encoding, "TokenReview", spec))["status"]
        assert (status.get("authenticated", False), status.get("audiences")) == (accepted is not None, accepted)
        assert bool(status.get("error")) == (accepted is None)


async def test_typed_reviews_are_answered(server_client: Client) -> None:
    spec = {"resourceAttributes": PODS}
    mine = await server_client.api(SelfSubjectAccessReview).create(from_dict(SelfSubjectAccessReview, {"spec": spec}))
    assert mine.status.allowed
    theirs = from_dict(SubjectAccessReview, {"spec": {**spec, **MASTERS}})
    assert (await server_client.api(SubjectAccessReview).create(theirs)).status.allowed
    local = from_dict(LocalSubjectAccessReview, {"metadata": {"namespace": "default"}, "spec": {**spec, **MASTERS}})
    assert (await server_client.api(LocalSubjectAccessReview, "default").create(local)).status.allowed
    rules = from_dict(SelfSubjectRulesReview, {"spec": {"namespace": "default"}})
    assert (await server_client.api(SelfSubjectRulesReview).create(rules)).status.resource_rules
    who = await server_client.api(SelfSubjectReview).create(SelfSubjectReview())
    assert who.status.user_info.username == "trioformer-admin"


@pytest.mark.parametrize(
    ("kind", "spec", "fields"),
    [
        (SelfSubjectAccessReview, {}, ["spec.resourceAttributes"]),
        (
            SelfSubjectAccessReview,
            {"resourceAttributes": PODS, "nonResourceAttributes": VERSION},
            ["spec.nonResourceAttributes"],
        ),
        (SubjectAccessReview, {}, ["spec.resourceAttributes", "spec.user"]),
        (SubjectAccessReview, {"resourceAttributes": PODS}, ["spec.user"]),
        (LocalSubjectAccessReview, {"nonResourceAttributes": VERSION, **MASTERS}, ["spec.nonResourceAttributes"]),
        (
            LocalSubjectAccessReview,
            {"resourceAttributes": {**PODS, "namespace": "other"}, **MASTERS},
            ["spec.resourceAttributes.namespace"],
        ),
    ],
)
async def test_an_invalid_review_is_rejected(
    server_client: Client, kind: type[SelfSubjectAccessReview], spec: dict[str, Any], fields: list[str]
) -> None:
    namespace = {"namespace": "default"} if kind.__name__.startswith("Local") else {}
    api = server_client.api(kind, **namespace)
    with pytest.raises(InvalidError) as caught:
        await api.create(from_dict(kind, {"metadata": {}, "spec": spec}))
    assert [cause.field for cause in caught.value.details.causes] == fields
    with pytest.raises(InvalidError) as caught:
        await api.create(
            from_dict(kind, {"metadata": {"name": "named"}, "spec": {"resourceAttributes": PODS, **MASTERS}})
        )
    assert "metadata" in [cause.field for cause in caught.value.details.causes]


async def test_reviews_are_only_created(server_client: Client) -> None:
    for kind in (SelfSubjectAccessReview, TokenReview):
        with pytest.raises(MethodNotAllowedError):
            await server_client.api(kind).list()
        with pytest.raises(NotFoundError):
            await server_client.api(kind).get("a")
