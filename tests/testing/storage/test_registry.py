"""Creating and updating objects in the embedded API server, and the errors of kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.support.raw_requests import MERGE, PODS, WIDGET, failure_of, merge_patch, pod, running
from trioformer.testing import APIServer
from trioformer.testing._storage._clock import EPOCH, wall_clock
from trioformer.testing._storage._kinds import Kinds, ServedKind

# --- creating -------------------------------------------------------------------------------------------------------


async def test_a_new_object_has_metadata_in_the_order_of_kube_apiserver(autojump_clock: trio.testing.MockClock) -> None:
    await trio.sleep(90.5)
    async with running(APIServer()) as http:
        response = await http.post(PODS, json={**pod(labels={"app": "web"}), "status": {"phase": "Running"}})
    assert response.status_code == 201
    metadata = response.json()["metadata"]
    order = ["name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "labels"]
    assert list(metadata) == [*order, "managedFields"]
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == "2026-01-01T00:01:30Z"
    assert response.json()["status"] == {"phase": "Pending", "qosClass": "BestEffort"}  # not the status of the request
    assert response.text.startswith('{"kind":"Pod","apiVersion":"v1","metadata":{')


async def test_nulls_in_maps_of_strings_become_empty_strings() -> None:
    body = {"metadata": {"name": "a", "labels": {"app": None}}, "data": {"key": None}}
    async with running(APIServer()) as http:
        made = (await http.post("/api/v1/namespaces/default/configmaps", json=body)).json()
    assert (made["metadata"]["labels"], made["data"]) == ({"app": ""}, {"key": ""})


def test_time_is_real_outside_of_a_mock_clock() -> None:
    assert wall_clock() > EPOCH


async def test_uids_and_generated_names_are_the_same_in_every_run() -> None:
    def names() -> list[object]:
        server = APIServer()
        made = [
            server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}}) for _ in range(3)
        ]
        return [one["metadata"] for one in made]

    first, second = names(), names()
    for one, other in zip(first, second, strict=True):
        assert isinstance(one, dict)
        assert isinstance(other, dict)
        assert (one["name"], one["uid"]) == (other["name"], other["uid"])


ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
NO_POD = (
    'ConfigMap in version "v1" cannot be handled as a Pod: converting (v1.ConfigMap) to (core.Pod): unknown conversion'
)
OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
NO_NAME = 'Pod "" is invalid: metadata.name: Required value: name or generateName is required'
NO_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NO_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
UNRECOGNIZED = "the object provided is unrecognized"


def bad_name(kind: str, name: str, problem: str) -> tuple[int, str, str]:
    return (422, "Invalid", f'{kind} "{name}" is invalid: metadata.name: Invalid value: "{name}": {problem}')


def bad_request(message: str) -> tuple[int, str, str]:
    return (400, "BadRequest", message)


def wrong_type(problem: str) -> tuple[int, str, str]:
    return bad_request(f'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal {problem}')


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (PODS, {**pod(), "kind": "ConfigMap"}, bad_request(NO_POD)),
        (PODS, {"metadata": {"name": "a", "namespace": "other"}}, bad_request(OTHER_NAMESPACE)),
        (
            "/api/v1/namespaces/nope/pods",
            {"metadata": {"name": "a"}},
            (404, "NotFound", 'namespaces "nope" not found'),
        ),
        (
            PODS,
            {**pod(), "metadata": {"name": "rv", "resourceVersion": "5"}},
            (500, "", "resourceVersion should not be set on objects to be created"),
        ),
        (
            PODS,
            {**pod(), "apiVersion": "v2"},
            bad_request(
                'Pod in version "v2" cannot be handled as a Pod: no kind "Pod" is registered for version "v2" '
                'in scheme "pkg/runtime/scheme.go:111"'
            ),
        ),
        (PODS, {"metadata": None}, (422, "Invalid", NO_NAME)),
        (
            PODS,
            {"metadata": {"name": 5}},
            wrong_type("number into Go struct field ObjectMeta.metadata.name of type string"),
        ),
        (PODS, {"metadata": {}}, (422, "Invalid", NO_NAME)),
        (
            ROLES,
            {"metadata": {"name": "a/b"}},
            bad_name("ClusterRole.rbac.authorization.k8s.io", "a/b", "may not contain '/'"),
        ),
        (PODS, {"metadata": "x"}, wrong_type("string into Go struct field Pod.metadata of type v1.ObjectMeta")),
        (PODS, [1], bad_request(f"{UNRECOGNIZED} (must be of type Pod): not a JSON object")),
    ],
)
async def test_an_invalid_create_is_rejected(path: str, body: Any, expected: tuple[int, str, str]) -> None:
    async with running(APIServer()) as http:
        assert failure_of(await http.post(path, json=body)) == expected


async def test_a_body_that_is_not_json_or_too_large_is_rejected() -> None:
    async with running(APIServer()) as http:
        code, reason, message = failure_of(await http.post(PODS, content=b"{nope"))
        assert (code, reason) == (400, "BadRequest")
        assert message.startswith(
            "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; "
        )
        response = await http.post(PODS, content=b"x", headers={"content-type": "text/plain"})
        assert failure_of(response)[:2] == (415, "UnsupportedMediaType")
        response = await http.post(PODS, content=b"x" * (3 * 1024 * 1024 + 1))
        assert failure_of(response) == (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")


async def test_creating_an_existing_name_is_rejected_with_details() -> None:
    async with running(APIServer()) as http:
        await http.post(PODS, json=pod())
        response = await http.post(PODS, json=pod())
        assert response.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'pods "web-1" already exists',
            "reason": "AlreadyExists",
            "details": {"name": "web-1", "kind": "pods"},
            "code": 409,
        }


async def test_a_dry_run_writes_nothing() -> None:
    server = APIServer()
    server.create(pod())
    revision = server.statistics().revision
    async with running(server) as http:
        made = await http.post(f"{PODS}?dryRun=All", json=pod("dry"))
        assert made.status_code == 201
        assert "resourceVersion" not in made.json()["metadata"]
        changed = await http.patch(f"{PODS}/web-1?dryRun=All", **merge_patch({"metadata": {"labels": {"a": "b"}}}))
        assert changed.json()["metadata"]["labels"] == {"a": "b"}
        assert (await http.delete(f"{PODS}/web-1?dryRun=All")).status_code == 200
        assert failure_of(await http.delete(f"{PODS}/web-1?dryRun=Some"))[0] == 422
        await http.request("DELETE", PODS, json={"dryRun": ["All"]})
        assert server.statistics().revision == revision
        # As in kube-apiserver, the query does not count beside a body.
        await http.request("DELETE", f"{PODS}/web-1?dryRun=All", json={})
    assert server.statistics().revision > revision


@pytest.mark.parametrize(
    ("method", "path"), [("POST", ""), ("PUT", "/web-1"), ("PATCH", "/web-1"), ("POST", "/web-1/eviction")]
)
async def test_the_options_of_writes_are_checked(method: str, path: str) -> None:
    server = APIServer()
    server.create(pod())
    headers = MERGE if method == "PATCH" else {}
    async with running(server) as http:
        for dry_run in ("", "true"):
            query = {"dryRun": dry_run, "fieldValidation": "strict", "fieldManager": "a\n"}
            response = await http.request(method, PODS + path, params=query, json=pod(), headers=headers)
            assert response.status_code == 422
            causes = response.json()["details"]["causes"]
            assert [cause["field"] for cause in causes] == ["fieldManager", "dryRun", "fieldValidation"]


# --- updating -------------------------------------------------------------------------------------------------------


async def test_an_update_with_an_old_resource_version_is_a_conflict() -> None:
    async with running(APIServer()) as http:
        first = (await http.post(PODS, json=pod())).json()
        first["metadata"]["labels"] = {"v": "2"}
        second = await http.put(f"{PODS}/web-1", json=first)
        assert second.status_code == 200
        assert second.json()["metadata"]["resourceVersion"] > first["metadata"]["resourceVersion"]
        stale = await http.put(f"{PODS}/web-1", json=first)
        assert failure_of(stale) == (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on pods "web-1": the object has been modified; '
                "please apply your changes to the latest version and try again"
            ),
        )
        stale = await http.patch(f"{PODS}/web-1", **merge_patch({"metadata": {"resourceVersion": "1"}}))
        assert failure_of(stale)[:2] == (409, "Conflict")


async def test_some_kinds_can_be_updated_without_a_resource_version() -> None:
    server = APIServer()
    server.register(WIDGET)
    async with running(server) as http:
        await http.post(PODS, json=pod())
        assert (await http.put(f"{PODS}/web-1", json=pod(labels={"v": "4"}))).status_code == 200
        widgets = "/apis/example.com/v1/namespaces/default/widgets"
        await http.post(widgets, json={"metadata": {"name": "w"}})
        assert failure_of(await http.put(f"{widgets}/w", json={"metadata": {"name": "w"}})) == (
            422,
            "Invalid",
            (
                'widgets.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: '
                "must be specified for an update"
            ),
        )


async def test_a_write_without_a_change_is_not_an_event() -> None:
    server = APIServer()
    async with running(server) as http:
        first = (await http.post(PODS, json=pod())).json()
        again = (await http.put(f"{PODS}/web-1", json=first)).json()
        patched = (await http.patch(f"{PODS}/web-1", **merge_patch({}))).json()
    assert first == again == patched
    assert server.statistics().revision == int(first["metadata"]["resourceVersion"])


async def test_a_change_from_one_to_true_is_a_change() -> None:
    server = APIServer()
    server.register(WIDGET)
    server.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "flag": 1})
    revision = server.statistics().revision
    server.patch("widgets", "w", {"flag": True})
    assert server.statistics().revision == revision + 1


async def test_an_update_must_match_the_name_and_namespace_of_its_path() -> None:
    async with running(APIServer()) as http:
        # Checked before the existence of the object.
        assert failure_of(await http.put(f"{PODS}/other", json=pod("web-1"))) == bad_request(
            "the name of the object (web-1) does not match the name on the URL (other)"
        )
        elsewhere = {"metadata": {"name": "web-1", "namespace": "other"}}
        assert failure_of(await http.put(f"{PODS}/web-1", json=elsewhere)) == bad_request(OTHER_NAMESPACE)
        assert failure_of(await http.put(f"{PODS}/web-1", json=pod("web-1")))[0] == 404


async def test_the_generation_counts_versions_of_the_spec() -> None:
    async with running(APIServer()) as http:
        path = "/apis/apps/v1/namespaces/default/deployments"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        await http.post(path, json={"metadata": {"name": "d"}, "spec": spec})
        generations = []
        for suffix, change in (
            ("", {"metadata": {"labels": {"a": "b"}}}),
            ("/status", {"status": {"replicas": 1}}),
            ("", {"spec": {"replicas": 2}}),
            ("", {"spec": {"replicas": 2}}),
        ):
            response = await http.patch(f"{path}/d{suffix}", **merge_patch(change))
            generations.append(response.json()["metadata"]["generation"])
    assert generations == [1, 1, 2, 2]


async def test_the_status_is_written_only_through_its_subresource() -> None:
    async with running(APIServer()) as http:
        made = (await http.post(PODS, json=pod())).json()
        both = {"spec": {"activeDeadlineSeconds": 5}, "status": {"phase": "Running"}}
        via_status = (await http.patch(f"{PODS}/web-1/status", **merge_patch(both))).json()
        assert via_status["status"] == {"phase": "Running", "qosClass": "BestEffort"}
        assert via_status["spec"] == made["spec"]
        both["status"] = {"phase": "Failed"}
        via_main = (await http.patch(f"{PODS}/web-1", **merge_patch(both))).json()
        assert via_main["status"] == {"phase": "Running", "qosClass": "BestEffort"}
        assert via_main["spec"]["activeDeadlineSeconds"] == 5
        via_main["status"] = {"phase": "Succeeded"}
        succeeded = {"phase": "Succeeded", "qosClass": "BestEffort"}
        assert (await http.put(f"{PODS}/web-1/status", json=via_main)).json()["status"] == succeeded
        assert (await http.get(f"{PODS}/web-1/status")).json()["status"] == succeeded
        del via_main["status"], via_main["metadata"]["resourceVersion"]
        replaced = (await http.put(f"{PODS}/web-1/status", json=via_main)).json()
        assert replaced["status"] == {"qosClass": "BestEffort"}


async def test_another_uid_is_a_conflict() -> None:
    async with running(APIServer()) as http:
        made = (await http.post(PODS, json=pod())).json()
        made["metadata"]["uid"] = other = "00000000-0000-0000-0000-000000000000"
        uid = (await http.get(f"{PODS}/web-1")).json()["metadata"]["uid"]
        problem = f"Precondition failed: UID in precondition: {other}, UID in object meta: {uid}"
        where = "Key: /registry/pods/default/web-1, ResourceVersion: 0"
        assert failure_of(await http.put(f"{PODS}/web-1", json=made)) == (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on pods "web-1": StorageError: invalid object, Code: 4,'
                f" {where}, AdditionalErrorMsg: {problem}"
            ),
        )


def test_a_kind_is_found_until_it_is_removed() -> None:
    kinds = Kinds.builtin()
    before = kinds.copy()
    served = ServedKind(WIDGET)
    kinds.add(served)
    assert kinds.find_kind("example.com/v1", "Widget") is served
    kinds.remove(WIDGET)
    assert kinds.find_kind("example.com/v1", "Widget") is None
    kinds.add(ServedKind(WIDGET))
    assert kinds.find_kind("v1", "Pod") is not None
    kinds.replace(before)
    assert kinds.find_kind("example.com/v1", "Widget") is None


@pytest.mark.parametrize(
    "options", [{"gracePeriodSeconds": "x"}, {"orphanDependents": "false"}, {"preconditions": 1}, {"dryRun": "All"}]
)
async def test_delete_options_of_a_wrong_type_delete_nothing(options: dict[str, object]) -> None:
    async with running(APIServer()) as http:
        await http.post(PODS, json=pod())
        name = f"{PODS}/{pod()['metadata']['name']}"
        assert (await http.request("DELETE", name, json=options)).status_code == 400
        assert (await http.delete(f"{name}?gracePeriodSeconds=x")).status_code == 400
        assert (await http.get(name)).status_code == 200


async def test_a_text_of_a_secret_that_is_null_is_empty() -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"a": None, "b": "x"}}
    async with running(APIServer()) as http:
        made = (await http.post("/api/v1/namespaces/default/secrets", json=secret)).json()
    assert made["data"] == {"a": "", "b": "eA=="}
    assert "stringData" not in made
