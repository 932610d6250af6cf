"""``auth can-i``: what it asks of the server, and what it prints of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cli import run
from tests.support.fixed_answers import failure, run_with
from trioformer.testing import APIServer

ACCESS = "/selfsubjectaccessreviews"
RULES = "/selfsubjectrulesreviews"


@pytest.mark.parametrize(
    ("arguments", "attributes", "warning"),
    [
        (["get", "po"], {"namespace": "default", "verb": "get", "resource": "pods"}, ""),
        (["get", "po/a", "-n", "x"], {"namespace": "x", "verb": "get", "resource": "pods", "name": "a"}, ""),
        (
            ["update", "deploy", "--subresource=scale", "-A"],
            {"verb": "update", "group": "apps", "resource": "deployments", "subresource": "scale"},
            "",
        ),
        (["get", "*"], {"namespace": "default", "verb": "get", "resource": "*"}, ""),
        (["impersonate", "users/jane"], {"verb": "impersonate", "resource": "users", "name": "jane"}, ""),
        (["get", "foos"], {"resource": "foos"}, "Warning: the server doesn't have a resource type 'foos'\n\n"),
        (
            ["get", "foos.example.com"],
            {"resource": "foos.example.com"},
            "Warning: the server doesn't have a resource type 'foos' in group 'example.com'\n\n",
        ),
        (["get", "no"], {"resource": "nodes"}, "Warning: resource 'nodes' is not namespace scoped\n\n"),
        (
            ["get", "clusterroles"],
            {"resource": "clusterroles", "group": "rbac.authorization.k8s.io"},
            "Warning: resource 'clusterroles' is not namespace scoped in group 'rbac.authorization.k8s.io'\n\n",
        ),
        (["get", "no", "-A"], {"resource": "nodes"}, ""),
        (["get", "a_b"], {"resource": "a_b"}, "Warning: the server doesn't have a resource type 'a_b'\n\n"),
        (["frob", "po"], {"verb": "frob"}, "Warning: verb 'frob' is not a known verb\n\n"),
    ],
)
async def test_the_server_is_asked_for_a_resource(
    api_server: APIServer, arguments: list[str], attributes: dict[str, str], warning: str
) -> None:
    answers = {ACCESS: (201, {"status": {"allowed": True}})}
    result, [body] = await run_with(api_server, answers, "auth", "can-i", *arguments)
    assert (result.code, result.out, result.err) == (0, "yes\n", warning)
    assert body["kind"] == "SelfSubjectAccessReview"
    asked = body["spec"]["resourceAttributes"]
    assert asked | attributes == asked
    assert ("namespace" in asked) == ("-A" not in arguments)


@pytest.mark.parametrize(("verb", "warning"), [("get", ""), ("frob", "Warning: verb 'frob' is not a known verb\n\n")])
async def test_the_server_is_asked_for_a_url(api_server: APIServer, verb: str, warning: str) -> None:
    answers = {ACCESS: (201, {"status": {"allowed": True}})}
    result, [body] = await run_with(api_server, answers, "auth", "can-i", verb, "/logs/")
    assert (result.code, result.out, result.err) == (0, "yes\n", warning)
    assert body["spec"] == {"nonResourceAttributes": {"verb": verb, "path": "/logs/"}}


@pytest.mark.parametrize(
    ("answer", "flags", "printed"),
    [
        ({"status": {"allowed": False}}, [], "no\n"),
        (
            {"status": {"allowed": False, "reason": "no rule", "evaluationError": 'role "x" not found'}},
            [],
            'no - no rule - role "x" not found\n',
        ),
        ({"status": {"allowed": False, "reason": "no rule"}}, ["-q"], ""),
        ({}, [], "no\n"),
        ([], [], "no\n"),
    ],
)
async def test_a_user_who_may_not_is_exit_code_1(
    api_server: APIServer, answer: object, flags: list[str], printed: str
) -> None:
    result, _ = await run_with(api_server, {ACCESS: (201, answer)}, "auth", "can-i", "get", "po", *flags)
    assert (result.code, result.out, result.err) == (1, printed, "")


LISTED: dict[str, Any] = {
    "resourceRules": [
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]},
    ],
    "nonResourceRules": [{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}],
}


async def test_all_that_is_allowed_is_listed(api_server: APIServer) -> None:
    result, [body] = await run_with(
        api_server, {RULES: (201, {"status": LISTED})}, "auth", "can-i", "--list", "-n", "shop"
    )
    assert body["spec"] == {"namespace": "shop"}
    assert (result.code, result.err) == (0, "")
    head, *rest = result.out.splitlines()
    assert head.split() == ["Resources", "Non-Resource", "URLs", "Resource", "Names", "Verbs"]
    assert [line.split() for line in rest] == [
        ["deployments.apps", "[]", "[]", "[get", "list]"],
        ["[/healthz]", "[]", "[get]"],
        ["secrets", "[]", "[a]", "[get]"],
    ]


async def test_a_list_may_be_incomplete_and_without_headers(api_server: APIServer) -> None:
    status = {**LISTED, "incomplete": True, "evaluationError": "a webhook does not list"}
    answers = {RULES: (201, {"status": status})}
    result, _ = await run_with(api_server, answers, "auth", "can-i", "--list", "--no-headers")
    assert result.code == 0
    assert result.err == "Warning: the list may be incomplete: a webhook does not list\n"
    assert "Resources" not in result.out
    assert len(result.out.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["get", "/x", "--subresource=y"], "--subresource can not be used with NonResourceURL"),
        (["get", "po", "--no-headers"], "--no-headers cannot be set without --list specified"),
        (["--list", "get"], "list option must be specified with no arguments"),
        (
            ["--list", "-q"],
            "list option can't be specified with neither quiet, all-namespaces nor subresource options",
        ),
    ],
)
async def test_flags_that_do_not_fit_are_an_error(api_server: APIServer, arguments: list[str], error: str) -> None:
    result = await run(api_server, "auth", "can-i", *arguments)
    assert (result.code, result.out, result.err) == (1, "", f"error: {error}\n")


async def test_a_server_that_rejects_the_question_is_an_error(api_server: APIServer) -> None:
    answers = {ACCESS: failure(403, "Forbidden", "not you")}
    result, _ = await run_with(api_server, answers, "auth", "can-i", "get", "po")
    assert (result.code, result.out, result.err) == (1, "", "Error from server (Forbidden): not you\n")
