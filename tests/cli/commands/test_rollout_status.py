"""``rollout status`` and ``rollout restart``: what is said about each kind, and when a rollout is done."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.cli import Result, run
from trioformer.models.apps_v1 import Deployment
from trioformer.testing import APIServer

LABELS = {"app": "web"}
ANNOTATION = "kubectl.kubernetes.io/restartedAt"


def add(server: APIServer, kind: str, status: dict[str, Any], **spec: object) -> None:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    whole = {"selector": {"matchLabels": LABELS}, "template": template, **spec}
    if kind == "StatefulSet":
        whole["serviceName"] = "web"
    metadata = {"name": "web", "namespace": "default", "annotations": {"deployment.kubernetes.io/revision": "4"}}
    head = {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata}
    server.create({**head, "spec": whole, "status": {"observedGeneration": 1, **status}})


DEPLOYMENT = 'Waiting for deployment "web" rollout to finish:'
DAEMON_SET = 'Waiting for daemon set "web" rollout to finish:'
ROLLING = {"updateStrategy": {"type": "RollingUpdate"}}


@pytest.mark.parametrize(
    ("kind", "status", "spec", "line"),
    [
        ("Deployment", {"observedGeneration": 0}, {}, "Waiting for deployment spec update to be observed..."),
        ("Deployment", {"updatedReplicas": 1}, {}, f"{DEPLOYMENT} 1 out of 3 new replicas have been updated..."),
        (
            "Deployment",
            {"updatedReplicas": 3, "replicas": 4},
            {},
            f"{DEPLOYMENT} 1 old replicas are pending termination...",
        ),
        (
            "Deployment",
            {"updatedReplicas": 3, "replicas": 3, "availableReplicas": 2},
            {},
            f"{DEPLOYMENT} 2 of 3 updated replicas are available...",
        ),
        (
            "Deployment",
            {"updatedReplicas": 3, "replicas": 3, "availableReplicas": 3},
            {},
            'deployment "web" successfully rolled out',
        ),
        ("DaemonSet", {"observedGeneration": 0}, ROLLING, "Waiting for daemon set spec update to be observed..."),
        (
            "DaemonSet",
            {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1},
            ROLLING,
            f"{DAEMON_SET} 1 out of 2 new pods have been updated...",
        ),
        (
            "DaemonSet",
            {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1},
            ROLLING,
            f"{DAEMON_SET} 1 of 2 updated pods are available...",
        ),
        (
            "DaemonSet",
            {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2},
            ROLLING,
            'daemon set "web" successfully rolled out',
        ),
        ("StatefulSet", {"observedGeneration": 0}, ROLLING, "Waiting for statefulset spec update to be observed..."),
        ("StatefulSet", {"readyReplicas": 1}, ROLLING, "Waiting for 2 pods to be ready..."),
        (
            "StatefulSet",
            {"readyReplicas": 3, "updatedReplicas": 1},
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
            "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...",
        ),
        (
            "StatefulSet",
            {"readyReplicas": 3, "updatedReplicas": 2},
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
            "partitioned roll out complete: 2 new pods have been updated...",
        ),
        (
            "StatefulSet",
            {"readyReplicas": 3, "updatedReplicas": 2, "updateRevision": "b", "currentRevision": "a"},
            ROLLING,
            "waiting for statefulset rolling update to complete 2 pods at revision b...",
        ),
        (
            "StatefulSet",
            {"readyReplicas": 3, "currentReplicas": 3, "updateRevision": "b", "currentRevision": "b"},
            ROLLING,
            "statefulset rolling update complete 3 pods at revision b...",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
async def test_the_state_of_a_rollout_is_what_kubectl_says(
    api_server: APIServer, kind: str, status: dict[str, Any], spec: dict[str, Any], line: str
) -> None:
    add(api_server, kind, status, **({} if kind == "DaemonSet" else {"replicas": 3}), **spec)
    result = await run(api_server, "rollout", "status", kind, "web", "--watch=false")
    assert (result.code, result.out, result.err) == (0, f"{line}\n", "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "error: required resource not specified"),
        (["deploy/web", "--revision=-1"], "error: revision must be a positive integer: -1"),
        (["deploy/web", "--revision=3"], "error: desired revision (3) is different from the running revision (4)"),
        (["deploy/web", "--timeout=x"], 'error: invalid argument "x" for "--timeout" flag: time: invalid duration "x"'),
        (["deploy/none"], 'Error from server (NotFound): deployments.apps "none" not found'),
        (["ns/default"], "error: no status viewer has been implemented for Namespace"),
        (["sts/web"], "error: rollout status is only available for RollingUpdate strategy type"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_mistakes_are_one_line(api_server: APIServer, arguments: list[str], problem: str) -> None:
    add(api_server, "Deployment", {}, replicas=1)
    add(api_server, "StatefulSet", {}, replicas=1, updateStrategy={"type": "OnDelete"})
    result = await run(api_server, "rollout", "status", *arguments)
    assert (result.code, result.out, result.err.splitlines()[0]) == (1, "", problem)


async def test_a_revision_that_is_no_number_is_an_error(api_server: APIServer) -> None:
    add(api_server, "Deployment", {}, replicas=1)
    patch = {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "x"}}}
    api_server.patch(Deployment, "web", patch)
    result = await run(api_server, "rollout", "status", "deploy/web", "--revision=1")
    problem = 'cannot get the revision of deployment "web": strconv.ParseInt: parsing "x": invalid syntax'
    assert (result.code, result.err) == (1, f"error: {problem}\n")


async def test_nothing_to_roll_out_is_said(api_server: APIServer) -> None:
    for command in ("status", "restart"):
        result = await run(api_server, "rollout", command, "deploy", "-l", "app=none")
        assert (result.code, result.out, result.err) == (0, "", "No resources found in default namespace.\n")


async def test_a_rollout_that_takes_too_long_is_an_error(api_server: APIServer) -> None:
    condition = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    add(api_server, "Deployment", {"conditions": [condition]}, replicas=1)
    result = await run(api_server, "rollout", "status", "deploy/web")
    assert (result.code, result.err) == (1, 'error: deployment "web" exceeded its progress deadline\n')


async def follow(server: APIServer, *changes: object) -> Result:
    results: list[Result] = []

    async def run_it() -> None:
        results.append(await run(server, "rollout", "status", "deploy/web"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_it)
        for change in changes:
            await wait_all_tasks_blocked()
            assert results == []
            change()  # type: ignore[operator]  # a lambda
    return results[0]


async def test_a_rollout_is_followed_until_it_is_done(api_server: APIServer, mock_clock: MockClock) -> None:
    add(api_server, "Deployment", {}, replicas=1)

    def report(**status: int) -> None:
        api_server.patch(Deployment, "web", {"status": status})

    result = await follow(
        api_server,
        lambda: report(updatedReplicas=1, replicas=2),
        lambda: report(replicas=1, availableReplicas=1),
    )
    assert (result.code, result.out.splitlines()) == (
        0,
        [
            f"{DEPLOYMENT} 0 out of 1 new replicas have been updated...",
            f"{DEPLOYMENT} 1 old replicas are pending termination...",
            'deployment "web" successfully rolled out',
        ],
    )


async def test_a_deleted_object_ends_it(api_server: APIServer, mock_clock: MockClock) -> None:
    add(api_server, "Deployment", {}, replicas=1)
    result = await follow(api_server, lambda: api_server.delete(Deployment, "web"))
    assert (result.code, result.err) == (1, "error: object has been deleted\n")


async def test_it_ends_at_its_deadline(api_server: APIServer, autojump_clock: MockClock) -> None:
    add(api_server, "Deployment", {}, replicas=1)
    result = await run(api_server, "rollout", "status", "deploy/web", "--timeout=1m")
    assert (result.code, result.err) == (1, "error: timed out waiting for the condition\n")


async def test_a_restart_sets_the_annotation_of_kubectl(api_server: APIServer) -> None:
    add(api_server, "Deployment", {}, replicas=1)
    add(api_server, "StatefulSet", {}, replicas=1)
    result = await run(api_server, "rollout", "restart", "deploy/web", "sts/web", "sts/none", "ns/default")
    assert (result.code, result.out) == (1, "deployment.apps/web restarted\nstatefulset.apps/web restarted\n")
    assert result.err.splitlines() == [
        'Error from server (NotFound): statefulsets.apps "none" not found',
        'namespaces "default" restarting is not supported',
    ]
    found = api_server.get(Deployment, "web")
    assert ANNOTATION in (found.spec.template.metadata.annotations or {})


async def test_a_paused_deployment_is_not_restarted(api_server: APIServer) -> None:
    add(api_server, "Deployment", {}, replicas=1, paused=True)
    result = await run(api_server, "rollout", "restart", "deploy/web")
    assert (result.code, result.out) == (1, "")
    assert result.err == 'error: deployments.apps "web" can\'t restart paused deployment (run rollout resume first)\n'
