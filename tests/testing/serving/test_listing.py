"""Lists of the embedded API server: pages, revisions, selectors."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.support.raw_requests import config_map, failure_of, pod, running
from trioformer.testing import APIServer

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def server_with(count: int) -> APIServer:
    server = APIServer()
    for number in range(count):
        server.create(config_map(f"cm-{number}"))
    return server


async def test_a_list_has_metadata_first_and_items_without_kind() -> None:
    server = server_with(1)
    async with running(server) as http:
        response = await http.get(CONFIG_MAPS)
        revision = server.statistics().revision
        head = f'{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}"}},"items":['
        assert response.text.startswith(head + '{"metadata":{"name":"cm-0",')
        assert response.text.endswith("]}\n")
        assert (await http.get("/api/v1/namespaces/nowhere/configmaps")).json()["items"] == []


async def test_a_long_list_is_sent_in_pieces() -> None:
    server = APIServer()
    for number in range(30):
        server.create({**config_map(f"cm-{number:02}"), "data": {"text": "x" * 10_000}})
    async with running(server) as http:
        response = await http.get(CONFIG_MAPS)
        assert "content-length" not in response.headers
        assert len(names(response.json())) == 30
        assert "content-length" in (await http.get(f"{CONFIG_MAPS}?limit=1")).headers


async def test_pages_show_one_consistent_state() -> None:
    server = server_with(5)
    revision = str(server.statistics().revision)
    async with running(server) as http:
        first = (await http.get(f"{CONFIG_MAPS}?limit=2")).json()
        assert names(first) == ["cm-0", "cm-1"]
        assert first["metadata"]["remainingItemCount"] == 3
        server.delete("configmaps", "cm-2")
        server.create(config_map("cm-00"))
        server.patch("configmaps", "cm-3", {"metadata": {"labels": {"new": "yes"}}})
        second = (await http.get(CONFIG_MAPS, params={"limit": "2", "continue": first["metadata"]["continue"]})).json()
        assert names(second) == ["cm-2", "cm-3"]
        assert "labels" not in second["items"][1]["metadata"]
        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"] == revision
        last = (await http.get(CONFIG_MAPS, params={"limit": "2", "continue": second["metadata"]["continue"]})).json()
        assert names(last) == ["cm-4"]
        assert set(last["metadata"]) == {"resourceVersion"}


async def test_a_continue_token_has_the_format_of_kube_apiserver() -> None:
    server = server_with(2)
    async with running(server) as http:
        token = (await http.get(f"{CONFIG_MAPS}?limit=1")).json()["metadata"]["continue"]
        decoded = json.loads(base64.urlsafe_b64decode(token + "=="))
        assert decoded == {"v": "meta.k8s.io/v1", "rv": server.statistics().revision, "start": "/cm-0\0"}
        everywhere = (await http.get("/api/v1/configmaps?limit=1")).json()["metadata"]["continue"]
        assert json.loads(base64.urlsafe_b64decode(everywhere + "=="))["start"] == "/default/cm-0\0"


async def test_pages_with_a_selector_have_no_remaining_item_count() -> None:
    server = APIServer()
    for number in range(6):
        server.create(config_map(f"cm-{number}", labels={"even": str(number % 2 == 0).lower()}))
    async with running(server) as http:
        query = {"limit": "2", "labelSelector": "even=true"}
        first = (await http.get(CONFIG_MAPS, params=query)).json()
        assert names(first) == ["cm-0", "cm-2"]
        assert "remainingItemCount" not in first["metadata"]
        second = (await http.get(CONFIG_MAPS, params={**query, "continue": first["metadata"]["continue"]})).json()
        assert names(second) == ["cm-4"]
        assert "continue" not in second["metadata"]
        whole = (await http.get(CONFIG_MAPS, params={"limit": "3", "labelSelector": "even=true"})).json()
        assert names(whole) == ["cm-0", "cm-2", "cm-4"]
        assert "continue" not in whole["metadata"]


async def test_an_expired_token_is_rejected_with_a_token_for_an_inconsistent_rest() -> None:
    server = server_with(3)
    async with running(server) as http:
        token = (await http.get(f"{CONFIG_MAPS}?limit=1")).json()["metadata"]["continue"]
        server.delete("configmaps", "cm-1")
        server.compact()
        response = await http.get(CONFIG_MAPS, params={"limit": "1", "continue": token})
        code, reason, message = failure_of(response)
        assert (code, reason) == (410, "Expired")
        assert message.startswith(
            "The provided continue parameter is too old to display a consistent list result. You can"
        )
        rest = await http.get(CONFIG_MAPS, params={"continue": response.json()["metadata"]["continue"]})
        assert names(rest.json()) == ["cm-2"]
        assert rest.json()["metadata"]["resourceVersion"] == str(server.statistics().revision)


@pytest.mark.parametrize(
    "token",
    ["abc", "é", "bnVsbA", base64.urlsafe_b64encode(b'{"v":"v2","rv":1,"start":"/a"}').decode()],
)
async def test_an_invalid_token_is_rejected(token: str) -> None:
    async with running(server_with(1)) as http:
        code, _, message = failure_of(await http.get(CONFIG_MAPS, params={"limit": "1", "continue": token}))
        assert code == 400
        assert message.startswith("invalid continue token: continue key is not valid")


async def test_a_revision_together_with_a_token_is_rejected() -> None:
    async with running(server_with(2)) as http:
        token = (await http.get(f"{CONFIG_MAPS}?limit=1")).json()["metadata"]["continue"]
        response = await http.get(CONFIG_MAPS, params={"continue": token, "resourceVersion": "5"})
        assert failure_of(response) == (
            400,
            "BadRequest",
            "specifying resource version is not allowed when using continue",
        )


async def test_an_exact_revision_can_be_listed() -> None:
    server = server_with(1)
    old = server.statistics().revision
    server.create(config_map("later"))
    now = str(server.statistics().revision)
    async with running(server) as http:
        for query, expected, revision in (
            ("&resourceVersionMatch=Exact", ["cm-0"], str(old)),
            ("&limit=5", ["cm-0"], str(old)),
            ("&resourceVersionMatch=NotOlderThan", ["cm-0", "later"], now),
            ("&resourceVersionMatch=NotOlderThan&limit=5", ["cm-0", "later"], now),
            ("", ["cm-0", "later"], now),
        ):
            listed = (await http.get(f"{CONFIG_MAPS}?resourceVersion={old}{query}")).json()
            assert (names(listed), listed["metadata"]["resourceVersion"]) == (expected, revision)
        server.compact()
        response = await http.get(f"{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact")
        assert failure_of(response) == (410, "Expired", "The resourceVersion for the provided list is too old.")
        assert (await http.get(f"{CONFIG_MAPS}?resourceVersion={old}")).status_code == 200


@pytest.mark.parametrize("path", [CONFIG_MAPS, f"{CONFIG_MAPS}/cm-0"])
async def test_a_revision_in_the_future_is_a_timeout(path: str) -> None:
    server = server_with(1)
    async with running(server) as http:
        response = await http.get(f"{path}?resourceVersion=99999999")
        assert response.headers["retry-after"] == "1"
        assert response.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"Timeout: Too large resource version: 99999999, current: {server.statistics().revision}",
            "reason": "Timeout",
            "details": {
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            },
            "code": 504,
        }


def bad_request(message: str) -> tuple[int, str, str]:
    return (400, "BadRequest", message)


def bad_match(*problems: str) -> tuple[int, str, str]:
    causes = [f"resourceVersionMatch: {problem}" for problem in problems]
    problem = causes[0] if len(causes) == 1 else f"[{', '.join(causes)}]"
    return (422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {problem}')


NOT_A_NUMBER = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
NO_INITIAL_EVENTS = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
NO_MATCH = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
WITH_CONTINUE = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
EXACT_ZERO = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
NO_REVISION = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
NO_EVENTS = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
UNSUPPORTED = 'Unsupported value: "Nope": supported values: '


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("resourceVersion=abc", bad_request(f"invalid resource version: {NOT_A_NUMBER}")),
        ("allowWatchBookmarks=x", bad_request('allowWatchBookmarks: strconv.ParseBool: parsing "x": invalid syntax')),
        ("fieldSelector=spec.bogus%3D1", bad_request("field label not supported: spec.bogus")),
        ("resourceVersionMatch=Exact", bad_match(NO_REVISION)),
        ("resourceVersionMatch=Exact&resourceVersion=0", bad_match(EXACT_ZERO)),
        ("resourceVersionMatch=Nope&resourceVersion=1", bad_match(UNSUPPORTED + '"Exact", "NotOlderThan", ""')),
        ("resourceVersionMatch=Exact&resourceVersion=1&continue=x", bad_match(WITH_CONTINUE)),
        ("watch=1&resourceVersionMatch=NotOlderThan", bad_match(NO_EVENTS)),
        ("sendInitialEvents=true", (422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {NO_INITIAL_EVENTS}')),
        ("watch=1&resourceVersionMatch=NotOlderThan&continue=x&sendInitialEvents=true", bad_match(WITH_CONTINUE)),
        (
            "watch=1&resourceVersionMatch=Nope&sendInitialEvents=true",
            bad_match(NO_MATCH, UNSUPPORTED + '"NotOlderThan"'),
        ),
        ("watch=1&resourceVersion=abc", (500, "", NOT_A_NUMBER)),
    ],
)
async def test_invalid_parameters_are_rejected(query: str, expected: tuple[int, str, str]) -> None:
    async with running(APIServer()) as http:
        assert failure_of(await http.get(f"{PODS}?{query}")) == expected


async def test_objects_are_selected_by_label() -> None:
    server = APIServer()
    server.create(pod("a", labels={"app": "web"}))
    server.create(pod("b", labels={"app": "db"}))
    server.create(pod("c"))
    async with running(server) as http:
        for selector, expected in (
            ("app=web", ["a"]),
            ("app", ["a", "b"]),
            ("!app", ["c"]),
            ("app in (db,web)", ["a", "b"]),
        ):
            assert names((await http.get(PODS, params={"labelSelector": selector})).json()) == expected
        for selector, expected_token in (("a===b", "identifier"), ("a,", "identifier after ','"), ("a in b", "'('")):
            code, _, message = failure_of(await http.get(PODS, params={"labelSelector": selector}))
            assert (code, message.rpartition("expected: ")[2]) == (400, expected_token)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.namespace!=default", []),
        ("spec.nodeName=n1", ["a"]),
        ("spec.nodeName=", ["b"]),
        ("spec.hostNetwork=false", ["b"]),
        ("status.phase!=Running", ["b"]),
        ("status.podIP=10.0.0.1", ["a"]),
        ("status.phase=Running,spec.nodeName=n2", []),
    ],
)
async def test_pods_are_selected_by_field(selector: str, expected: list[str]) -> None:
    server = APIServer()
    one = pod("a", nodeName="n1", restartPolicy="Never", hostNetwork=True)
    one["spec"] |= {"schedulerName": "mine", "serviceAccountName": "robot"}
    one["status"] = {"phase": "Running", "podIP": "10.0.0.1", "nominatedNodeName": "n2"}
    server.create(one)
    server.create(pod("b"))
    async with running(server) as http:
        assert names((await http.get("/api/v1/pods", params={"fieldSelector": selector})).json()) == expected


@pytest.mark.parametrize(
    "selector",
    ["involvedObject.name=web-1", "source=kubelet"],
)
async def test_events_are_selected_by_field(selector: str) -> None:
    server = APIServer()
    base = {"apiVersion": "v1", "kind": "Event"}
    server.create({**base, "metadata": {"name": "other"}, "reportingComponent": "x"})
    about = {"kind": "Pod", "name": "web-1"}
    event = {"involvedObject": about, "reason": "R", "type": "Normal", "source": {"component": "kubelet"}}
    server.create({**base, "metadata": {"name": "e"}, **event})
    async with running(server) as http:
        assert names((await http.get("/api/v1/events", params={"fieldSelector": selector})).json()) == ["e"]


async def test_other_kinds_are_selected_by_name_and_namespace_only() -> None:
    server = server_with(1)
    async with running(server) as http:
        assert names((await http.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Dcm-0")).json()) == ["cm-0"]
        assert failure_of(await http.get(f"{CONFIG_MAPS}?fieldSelector=data%3Dx")) == (
            400,
            "BadRequest",
            '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
        )
        assert failure_of(await http.get("/api/v1/nodes?fieldSelector=metadata.namespace%3Dx"))[0] == 400
