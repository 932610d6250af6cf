"""What roles allow, and the words for what they do not, on an embedded and on a real server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import attrs
import pytest
import trio

from tests.e2e.contract.conftest import OpenClient
from tests.e2e.contract.encodings import received, sent
from tests.e2e.workloads import make_namespace
from trioformer.client import Client
from trioformer.errors import ForbiddenError
from trioformer.models.core_v1 import Pod
from trioformer.pods import run_in_pod
from trioformer.transport._internal import Response

RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = f"/apis/{RBAC}/v1/namespaces/NS/roles"
CORE: Final = "/api/v1/namespaces/NS"
APPS: Final = "/apis/apps/v1/namespaces/NS/deployments"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/NS/leases"
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
RULES: Final[list[dict[str, Any]]] = [
    {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods", "pods/exec"]},
    {
        "verbs": ["get", "list", "watch", "patch", "delete", "deletecollection"],
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["settings"],
    },
    {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*/scale"]},
    {"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["deployments/status"]},
    {"verbs": ["update", "patch"], "apiGroups": ["", "coordination.k8s.io"], "resources": ["secrets", "leases"]},
]
CLUSTER_RULES: Final[list[dict[str, Any]]] = [
    {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["nodes"]},
    {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]},
]
JANE: Final = "jane-NS"
BOB: Final = "bob-NS"
ROBOT: Final = "system:serviceaccount:NS:robot"

IN: Final = 'in the namespace "NS"'
EVERYWHERE: Final = "at the cluster scope"


def cannot(verb: str, resource: str, where: str, *, name: str = "", group: str = "", user: str = JANE) -> str:
    """Return the words of kube-apiserver v1.36.3."""
    plural = resource.partition("/")[0]
    what = (f"{plural}.{group}" if group else plural) + (f' "{name}"' if name else "")
    return f'{what} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'


REFUSED: Final[dict[tuple[str, str], str]] = {
    ("GET", "/api/v1/pods"): cannot("list", "pods", EVERYWHERE),
    ("POST", f"{CORE}/pods"): cannot("create", "pods", IN),
    ("DELETE", f"{CORE}/pods/a"): cannot("delete", "pods", IN, name="a"),
    ("DELETE", f"{CORE}/pods"): cannot("deletecollection", "pods", IN),
    ("GET", f"{CORE}/pods/a/log"): cannot("get", "pods/log", IN, name="a"),
    ("GET", f"{CORE}/pods/a/nothing"): cannot("get", "pods/nothing", IN, name="a"),
    ("POST", f"{CORE}/pods/a/exec?command=x&stdout=1"): cannot("create", "pods/exec", IN, name="a"),
    ("GET", f"{CORE}/configmaps"): cannot("list", "configmaps", IN),
    ("GET", f"{CORE}/configmaps?watch=1"): cannot("watch", "configmaps", IN),
    ("GET", f"{CORE}/configmaps?fieldSelector=metadata.name%3Dother"): cannot("list", "configmaps", IN, name="other"),
    ("GET", f"{CORE}/configmaps?fieldSelector=metadata.name!%3Dsettings"): cannot("list", "configmaps", IN),
    ("DELETE", f"{CORE}/configmaps?fieldSelector=metadata.name%3Dsettings"): cannot(
        "deletecollection", "configmaps", IN
    ),
    ("GET", f"{CORE}/configmaps/other"): cannot("get", "configmaps", IN, name="other"),
    ("POST", f"{CORE}/configmaps"): cannot("create", "configmaps", IN),
    ("PUT", f"{CORE}/configmaps/settings"): cannot("update", "configmaps", IN, name="settings"),
    ("APPLY", f"{CORE}/configmaps/settings?fieldManager=a"): cannot("create", "configmaps", IN, name="settings"),
    ("APPLY", f"{CORE}/secrets/settings?fieldManager=a"): cannot("create", "secrets", IN, name="settings"),
    ("PUT", f"{LEASES}/settings"): cannot("create", "leases", IN, name="settings", group="coordination.k8s.io"),
    ("MERGE", f"{APPS}/a/scale"): cannot("patch", "deployments/scale", IN, name="a", group="apps"),
    ("MERGE", f"{APPS}/a"): cannot("patch", "deployments", IN, name="a", group="apps"),
    ("GET", CORE): cannot("get", "namespaces", IN, name="NS"),
    ("MERGE", CORE): cannot("patch", "namespaces", IN, name="NS"),
    ("POST", "/api/v1/namespaces"): cannot("create", "namespaces", EVERYWHERE),
    ("DELETE", "/api/v1/nodes/a"): cannot("delete", "nodes", EVERYWHERE, name="a"),
    ("GET", "/apis/nothing.example/v1/things"): cannot("list", "things", EVERYWHERE, group="nothing.example"),
    ("POST", ROLES): cannot("create", "roles", IN, group=RBAC),
    ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"): cannot(
        "create", "subjectaccessreviews", EVERYWHERE, group="authorization.k8s.io"
    ),
    ("GET", "/nothing"): f'forbidden: User "{JANE}" cannot get path "/nothing"',
    ("POST", "/version"): f'forbidden: User "{JANE}" cannot post path "/version"',
}
ALLOWED: Final[dict[tuple[str, str], int]] = {
    ("GET", f"{CORE}/pods"): 200,
    ("GET", f"{CORE}/pods/a"): 404,
    ("GET", f"{CORE}/configmaps?fieldSelector=metadata.name%3Dsettings"): 200,
    ("GET", f"{CORE}/configmaps/settings"): 404,
    ("GET", f"{APPS}/a/scale"): 404,
    ("MERGE", f"{APPS}/a/status"): 404,
    ("MERGE", f"{CORE}/secrets/a"): 404,
    ("GET", "/api/v1/nodes"): 200,
    ("GET", "/logs/a/b"): 404,
    ("GET", "/version"): 200,
    ("GET", "/apis"): 200,
}


@attrs.frozen
class Guarded:
    """A server that enforces roles."""

    administrator: Client
    namespace: str

    async def send(self, user: str, method: str, path: str, body: Any = None, groups: tuple[str, ...] = ()) -> Response:
        client = self.administrator
        if user:
            client = client.impersonating(self.fill(user), groups=[self.fill(group) for group in groups])
        content_type = {"MERGE": MERGE, "APPLY": APPLY}.get(method, "application/json")
        verb = "PATCH" if content_type != "application/json" else method
        given = {} if method in ("GET", "DELETE") else sent(body or {}, content_type)
        return await client._transport.request(verb, self.fill(path), accept="application/json", **given)

    async def create(self, path: str, name: str, **fields: Any) -> None:
        body = json.loads(self.fill(json.dumps({"metadata": {"name": name}, **fields})))
        response = await self.send("", "POST", path, body)
        assert response.code == 201, response.body

    async def review(self, user: str, kind: str, spec: dict[str, Any], where: str = "") -> dict[str, Any]:
        path = f"/apis/authorization.k8s.io/v1{where}/{kind}"
        response = await self.send(user, "POST", path, {"spec": json.loads(self.fill(json.dumps(spec)))})
        assert response.code == 201, response.body
        status: dict[str, Any] = received(response)["status"]
        return status

    async def grant(self) -> None:
        """Create the roles and the bindings, and wait until the server knows them."""
        bindings = ROLES.replace("roles", "rolebindings")
        await self.create(f"/apis/{RBAC}/v1/clusterroles", "all-NS", rules=CLUSTER_RULES)
        await self.create(ROLES, "some", rules=RULES)
        jane, bob, robot = subject("User", JANE), subject("User", BOB), subject("ServiceAccount", "robot")
        await self.create(bindings, "lost", subjects=[bob], roleRef=reference("ClusterRole", "lost-NS"))
        await self.create(bindings, "gone", subjects=[bob], roleRef=reference("Role", "gone"))
        subjects = [jane, robot, subject("Group", "devs-NS")]
        await self.create(bindings, "some", subjects=subjects, roleRef=reference("Role", "some"))
        path = f"/apis/{RBAC}/v1/clusterrolebindings"
        await self.create(path, "all-NS", subjects=[jane], roleRef=reference("ClusterRole", "all-NS"))
        await self.wait_for(200, JANE, "/api/v1/nodes")

    async def wait_for(self, code: int, user: str, path: str) -> None:
        """Wait until a request has another result: a real server reads roles from its caches."""
        with trio.fail_after(30):
            while (await self.send(user, "GET", path)).code != code:  # noqa: ASYNC110  # a server tells nothing
                await trio.sleep(0.1)

    def fill(self, text: str) -> str:
        return text.replace("NS", self.namespace)


def subject(kind: str, name: str) -> dict[str, str]:
    return {"kind": kind, "name": name, **({"namespace": "NS"} if kind == "ServiceAccount" else {"apiGroup": RBAC})}


def reference(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": kind, "name": name}


@pytest.fixture
async def guarded(guarded_server: OpenClient) -> AsyncIterator[Guarded]:
    """A server with roles for Jane, a robot and the group devs, and with bindings for Bob to missing roles."""
    async with guarded_server(None) as administrator:
        found = Guarded(administrator, await make_namespace(administrator, "access"))
        await found.grant()
        yield found
        for plural in ("clusterrolebindings", "clusterroles"):
            await found.send("", "DELETE", f"/apis/{RBAC}/v1/{plural}/all-NS")


async def test_what_no_role_allows_is_refused_in_the_words_of_kube_apiserver(guarded: Guarded) -> None:
    for (method, path), expected in REFUSED.items():
        kind = "Secret" if "/secrets/" in path else "ConfigMap"
        body = {"metadata": {"name": "settings"}, **({"apiVersion": "v1", "kind": kind} if method == "APPLY" else {})}
        response = await guarded.send(JANE, method, path, body)
        found = received(response)
        assert (method, path, response.code, found["message"]) == (method, path, 403, guarded.fill(expected))
        plural, _, rest = expected.partition(" ")
        details = {} if plural == "forbidden:" else {"kind": plural.partition(".")[0]}
        details |= {"group": plural.partition(".")[2]} if "." in plural else {}
        details |= {"name": guarded.fill(rest.split('"')[1])} if rest.startswith('"') else {}
        assert (found["reason"], found["details"]) == ("Forbidden", details)


async def test_what_a_role_allows_is_carried_out(guarded: Guarded) -> None:
    for (method, path), expected in ALLOWED.items():
        response = await guarded.send(JANE, method, path, {})
        assert (method, path, response.code) == (method, path, expected)


async def test_bindings_name_users_groups_and_service_accounts(guarded: Guarded) -> None:
    path = f"{CORE}/pods"
    cases = {
        (ROBOT, ()): 200,
        ("system:serviceaccount:NS:other", ()): 403,
        ("system:serviceaccount:default:robot", ()): 403,
        ("tom", ("devs-NS",)): 200,
        ("tom", ("system:masters",)): 200,
        ("tom", ("devs",)): 403,
    }
    for (user, groups), expected in cases.items():
        assert (user, groups, (await guarded.send(user, "GET", path, None, groups)).code) == (user, groups, expected)
    for path, code in (("/version", 200), ("/apis", 403)):
        assert (await guarded.send("system:anonymous", "GET", path)).code == code


async def test_a_refusal_names_the_roles_that_do_not_exist(guarded: Guarded) -> None:
    message = received(await guarded.send(BOB, "GET", f"{CORE}/pods"))["message"]
    said, _, problem = message.partition(": RBAC: ")
    assert said == guarded.fill(cannot("list", "pods", IN, user=BOB))
    lost, gone = f'clusterrole.{RBAC} "lost-NS" not found', f'role.{RBAC} "gone" not found'
    assert sorted(problem.strip("[]").split(", ")) == sorted(map(guarded.fill, (lost, gone)))
    status = await guarded.review(BOB, "selfsubjectrulesreviews", {"namespace": "NS"})
    assert sorted(status["evaluationError"].strip("[]").split(", ")) == sorted(problem.strip("[]").split(", "))


async def test_a_token_acts_as_its_service_account(guarded: Guarded, guarded_server: OpenClient) -> None:
    await guarded.create(f"{CORE}/serviceaccounts", "robot")
    response = await guarded.send("", "POST", f"{CORE}/serviceaccounts/robot/token", {"spec": {}})
    token = received(response)["status"]["token"]
    pods = guarded.fill(f"{CORE}/pods")
    async with guarded_server(token) as robot:
        assert (await robot.request("GET", pods)).code == 200
        with pytest.raises(ForbiddenError) as caught:
            await robot.request("GET", guarded.fill(f"{CORE}/secrets"))
        assert guarded.fill(ROBOT) in caught.value.status_message
        who = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
        found = await robot.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=who)
        assert found.json()["status"]["userInfo"]["username"] == guarded.fill(ROBOT)
        with pytest.raises(ForbiddenError):
            await robot.impersonating(guarded.fill(JANE)).request("GET", pods)
        rules = [{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": [JANE]}]
        await guarded.create(f"/apis/{RBAC}/v1/clusterroles", "as-NS", rules=rules)
        path = f"/apis/{RBAC}/v1/clusterrolebindings"
        who, role = subject("ServiceAccount", "robot"), reference("ClusterRole", "as-NS")
        await guarded.create(path, "as-NS", subjects=[who], roleRef=role)
        jane = robot.impersonating(guarded.fill(JANE))
        with trio.fail_after(30):
            while (await jane._transport.request("GET", pods, accept="*/*")).code != 200:  # noqa: ASYNC110  # as above
                await trio.sleep(0.1)
        others = {
            robot.impersonating("tom"): 'users "tom" is forbidden',
            robot.impersonating(guarded.fill(JANE), groups=["devs"]): 'groups "devs" is forbidden',
            robot.impersonating("system:serviceaccount:default:a"): 'serviceaccounts "a" is forbidden',
            robot.impersonating(guarded.fill(JANE), uid="7"): 'uids.authentication.k8s.io "7" is forbidden',
            robot.impersonating(guarded.fill(JANE), extra={"a": ["b"]}): 'resource "userextras/a"',
        }
        for other, expected in others.items():
            with pytest.raises(ForbiddenError) as caught:
                await other.request("GET", pods)
            assert expected in caught.value.status_message
            assert "cannot impersonate resource" in caught.value.status_message
    for plural in ("clusterrolebindings", "clusterroles"):
        await guarded.send("", "DELETE", f"/apis/{RBAC}/v1/{plural}/as-NS")


async def test_a_new_role_and_a_deleted_one_take_effect(guarded: Guarded) -> None:
    role = f"{ROLES}/some"
    assert (await guarded.send("", "MERGE", role, {"rules": [RULES[0]]})).code == 200
    await guarded.wait_for(403, JANE, f"{APPS}/a/scale")
    assert (await guarded.send("", "DELETE", role)).code == 200
    await guarded.wait_for(403, JANE, f"{CORE}/pods")


def resource(verb: str, plural: str, **more: str) -> dict[str, Any]:
    return {"resourceAttributes": {"verb": verb, "resource": plural, "namespace": "NS", **more}}


BY_ROLE: Final = 'RBAC: allowed by RoleBinding "some/NS" of Role "some" to '
BY_CLUSTER_ROLE: Final = f'RBAC: allowed by ClusterRoleBinding "all-NS" of ClusterRole "all-NS" to User "{JANE}"'


@pytest.mark.parametrize(
    ("who", "spec", "expected"),
    [
        ({"user": JANE}, resource("get", "pods"), f'{BY_ROLE}User "{JANE}"'),
        ({"user": JANE}, resource("get", "configmaps", name="settings"), f'{BY_ROLE}User "{JANE}"'),
        ({"user": JANE}, resource("get", "configmaps"), None),
        ({"user": JANE}, resource("get", "deployments", group="apps", subresource="scale"), f'{BY_ROLE}User "{JANE}"'),
        ({"user": JANE}, resource("*", "pods"), None),
        ({"user": JANE}, resource("get", "nodes"), BY_CLUSTER_ROLE),
        ({"user": JANE}, {"resourceAttributes": {"verb": "get", "resource": "pods"}}, None),
        ({"user": JANE}, {"nonResourceAttributes": {"verb": "get", "path": "/logs/a"}}, BY_CLUSTER_ROLE),
        ({"user": JANE}, {"nonResourceAttributes": {"verb": "get", "path": "/apis"}}, None),
        ({"groups": ["devs-NS"]}, resource("get", "pods"), f'{BY_ROLE}Group "devs-NS"'),
        ({"user": ROBOT}, resource("get", "pods"), f'{BY_ROLE}ServiceAccount "robot/NS"'),
        ({"user": "tom", "groups": ["system:masters"]}, resource("get", "secrets"), ""),
    ],
)
async def test_a_review_says_which_role_allows_it(
    guarded: Guarded, who: dict[str, Any], spec: dict[str, Any], expected: str | None
) -> None:
    wanted: dict[str, Any] = {"allowed": expected is not None}
    if expected:
        wanted["reason"] = guarded.fill(expected)
    assert await guarded.review("", "subjectaccessreviews", {**spec, **who}) == wanted
    if spec.get("resourceAttributes", {}).get("namespace"):
        where = "/namespaces/NS"
        assert await guarded.review("", "localsubjectaccessreviews", {**spec, **who}, where) == wanted
    if who == {"user": JANE} and expected:
        assert await guarded.review(JANE, "selfsubjectaccessreviews", spec) == wanted


async def test_the_rules_of_a_user_are_listed(guarded: Guarded) -> None:
    status = await guarded.review(JANE, "selfsubjectrulesreviews", {"namespace": "NS"})
    assert "evaluationError" not in status
    assert all(rule in status["resourceRules"] for rule in [*RULES, CLUSTER_RULES[0]])
    assert CLUSTER_RULES[1] in status["nonResourceRules"]
    elsewhere = await guarded.review(JANE, "selfsubjectrulesreviews", {"namespace": "default"})
    assert RULES[0] not in elsewhere["resourceRules"]
    assert len(status["resourceRules"]) == len(elsewhere["resourceRules"]) + len(RULES)


async def test_a_command_in_a_container_needs_create(guarded: Guarded) -> None:
    jane = guarded.administrator.impersonating(guarded.fill(JANE))
    with pytest.raises(ForbiddenError) as caught:
        await run_in_pod(jane.api(Pod, guarded.namespace), "a", ["true"])
    assert caught.value.status_message.strip() == 'pods "a" is forbidden:'
