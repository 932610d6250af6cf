"""Evictions of the pods of a node, in virtual time."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trioformer import Api, Client
from trioformer.errors import ForbiddenError, InternalServerError
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.models.policy_v1 import PodDisruptionBudget
from trioformer.pods import evict_pods
from trioformer.pods._evict import PodEviction
from trioformer.testing import APIServer
from trioformer.testing._serving._requests import RequestRecord

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "of-web", "controller": True}
DAEMON_SET = OWNER | {"kind": "DaemonSet"}
DATA = {"volumes": [{"name": "data", "emptyDir": {}}]}
MIRROR = {"kubernetes.io/config.mirror": "hash"}


def start(
    server: APIServer,
    name: str,
    *,
    app: str = "web",
    node: str = "worker-1",
    owner: dict[str, Any] | None = OWNER,
    spec: dict[str, Any] | None = None,
    phase: str = "Running",
    **metadata: object,
) -> Pod:
    """Create a pod that runs and is ready, in the namespace ``default`` or a new one."""
    if namespace := metadata.get("namespace"):
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    metadata |= {"name": name, "labels": {"app": app}, "ownerReferences": [owner] if owner else []}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "web:1"}], **(spec or {})}
    return server.create(from_dict(Pod, {"metadata": metadata, "spec": spec, "status": status}))


def protect(server: APIServer, app: str = "web") -> None:
    """Create a budget that allows no disruption yet."""
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": app}}}
    server.create(from_dict(PodDisruptionBudget, {"metadata": {"name": app}, "spec": spec}))
    allow(server, 0, app)


def allow(server: APIServer, disruptions: int, app: str = "web") -> None:
    counts = {"currentHealthy": 2 + disruptions, "desiredHealthy": 2, "expectedPods": 2, "observedGeneration": 1}
    status = counts | {"disruptionsAllowed": disruptions}
    server.patch(PodDisruptionBudget, app, {"status": status}, subresource="status")


def evictions(server: APIServer) -> list[RequestRecord]:
    return [record for record in server.requests if record.subresource == "eviction"]


def states(progress: list[PodEviction]) -> list[str]:
    return [f"{each.pod.name} {each.state}" for each in progress]


def left(server: APIServer) -> list[str]:
    return sorted(pod.name for pod in server.list(Pod, namespace="default"))


async def test_all_pods_of_a_node_are_evicted_and_gone(
    api_server: APIServer, client: Client, autojump_clock: MockClock
) -> None:
    server, progress = api_server, list[PodEviction]()
    start(server, "web-0")
    start(server, "web-0", namespace="shop")
    start(server, "web-1", node="worker-2")
    gone = await evict_pods(client.api(Pod), node="worker-1", on_progress=progress.append)
    assert sorted((pod.namespace, pod.name) for pod in gone) == [("default", "web-0"), ("shop", "web-0")]
    assert [pod.name for pod in server.list(Pod)] == ["web-1"]
    assert Counter(map(str, progress)) == Counter(
        [f"pod {namespace}/web-0: {state}" for namespace in ("default", "shop") for state in ("evicted", "gone")]
    )
    assert await evict_pods(client.api(Pod), node="worker-1") == ()


async def test_only_the_pods_of_the_selector_and_namespace_are_evicted(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    start(api_server, "web-0")
    start(api_server, "web-1", node="worker-2")
    start(api_server, "db-0", app="db")
    start(api_server, "web-9", namespace="shop")
    await evict_pods(pods, node="worker-1", label_selector={"app": "web"})
    assert left(api_server) == ["db-0", "web-1"]
    await evict_pods(pods, label_selector="app=web")
    assert left(api_server) == ["db-0"]
    assert api_server.get(Pod, "web-9", namespace="shop")


async def test_a_blocked_eviction_is_requested_every_five_seconds(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    start(api_server, "web-0")
    start(api_server, "db-0", app="db")
    protect(api_server)
    progress: list[PodEviction] = []
    began = trio.current_time()

    async def allow_later() -> None:
        await trio.sleep(12)
        allow(api_server, 1)

    nursery.start_soon(allow_later)
    await evict_pods(pods, node="worker-1", on_progress=progress.append)
    assert [record.time - began for record in evictions(api_server) if record.name == "web-0"] == [0, 5, 10, 15]
    assert states(progress)[-2:] == ["web-0 evicted", "web-0 gone"]
    assert states(progress).index("db-0 gone") < 5  # it has not waited for the budget of the other pod
    blocked = [each for each in progress if each.state == "blocked"]
    assert [each.reason for each in blocked] == [
        "The disruption budget web needs 2 healthy pods and has 2 currently"
    ] * 3
    assert left(api_server) == []


async def test_the_server_chooses_the_delay(api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock) -> None:
    start(api_server, "web-0")
    api_server.fail_next(verb="create", resource="pods", status=429, retry_after=20)
    progress: list[PodEviction] = []
    await evict_pods(pods, node="worker-1", on_progress=progress.append)
    assert states(progress) == ["web-0 blocked", "web-0 evicted", "web-0 gone"]
    first, second = evictions(api_server)
    assert 20 <= second.time - first.time <= 22


async def test_a_new_pod_with_the_same_name_is_not_evicted(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    start(api_server, "web-0")
    protect(api_server)
    progress: list[PodEviction] = []

    async def replace() -> None:
        await trio.sleep(7)
        api_server.delete(Pod, "web-0")
        start(api_server, "web-0", node="worker-2")
        allow(api_server, 1)

    nursery.start_soon(replace)
    began = trio.current_time()
    await evict_pods(pods, node="worker-1", on_progress=progress.append)
    assert trio.current_time() - began < 8
    assert states(progress) == ["web-0 blocked", "web-0 blocked", "web-0 gone"]
    assert left(api_server) == ["web-0"]


async def test_a_pod_that_was_replaced_before_its_turn_is_not_evicted(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    start(api_server, "web-0")

    def replace(record: RequestRecord) -> int | None:
        if record.subresource == "eviction":
            api_server.delete(Pod, "web-0")
            start(api_server, "web-0")
        return None

    api_server.fail_next(status=replace)
    progress: list[PodEviction] = []
    await evict_pods(pods, node="worker-1", on_progress=progress.append)
    assert states(progress) == ["web-0 gone"]
    assert left(api_server) == ["web-0"]


async def test_pods_that_come_or_go_meanwhile_are_not_evicted(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    start(api_server, "web-0")
    start(api_server, "web-1")

    def change(record: RequestRecord) -> int | None:
        if record.subresource == "eviction" and record.name == "web-0" and api_server.list(Pod)[0].name == "web-0":
            api_server.delete(Pod, "web-0")
            start(api_server, "web-2")
        return None

    api_server.fail_next(status=change)
    progress: list[PodEviction] = []
    gone = await evict_pods(pods, node="worker-1", on_progress=progress.append)
    assert sorted(pod.name for pod in gone) == ["web-0", "web-1"]
    assert sorted(states(progress)) == ["web-0 gone", "web-1 evicted", "web-1 gone"]
    assert left(api_server) == ["web-2"]


async def test_a_pod_whose_labels_change_is_waited_for(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    start(api_server, "web-0", finalizers=["example.com/wait"])

    async def relabel() -> None:
        await trio.sleep(3)
        api_server.patch(Pod, "web-0", {"metadata": {"labels": {"app": "old"}}})
        await trio.sleep(3)
        api_server.patch(Pod, "web-0", {"metadata": {"finalizers": None}})

    nursery.start_soon(relabel)
    began = trio.current_time()
    await evict_pods(pods, label_selector="app=web")
    assert trio.current_time() - began == 6


async def test_the_deadline_ends_the_wait_for_a_pod_that_never_goes(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    start(api_server, "web-0", finalizers=["example.com/stuck"])
    start(api_server, "web-1")
    progress: list[PodEviction] = []
    began = trio.current_time()
    with trio.move_on_after(100) as deadline:
        await evict_pods(pods, node="worker-1", on_progress=progress.append)
    assert deadline.cancelled_caught
    assert trio.current_time() - began == 100
    assert sorted(states(progress)) == ["web-0 evicted", "web-1 evicted", "web-1 gone"]
    assert left(api_server) == ["web-0"]
    assert len(evictions(api_server)) == 2  # none is repeated
    await wait_all_tasks_blocked()
    assert api_server.statistics().open_watches == 0


@pytest.mark.parametrize("after", [0, 0.5, 4, 5, 6])
async def test_after_a_cancellation_nothing_is_evicted(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, after: float
) -> None:
    for number in range(3):
        start(api_server, f"web-{number}")
    protect(api_server)
    with trio.move_on_after(after):
        await evict_pods(pods, node="worker-1")
    await wait_all_tasks_blocked()
    before = len(api_server.requests)
    allow(api_server, 3)
    await trio.sleep(60)
    assert len(api_server.requests) == before
    assert api_server.statistics().open_watches == 0
    assert left(api_server) == ["web-0", "web-1", "web-2"]


async def test_two_calls_evict_the_same_pods(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    for number in range(3):
        start(api_server, f"web-{number}", finalizers=["example.com/wait"])
    results: list[tuple[Pod, ...]] = []

    async def call() -> None:
        results.append(await evict_pods(pods, node="worker-1"))

    nursery.start_soon(call)
    await trio.sleep(1)
    nursery.start_soon(call)
    await trio.sleep(1)
    for number in range(3):
        api_server.patch(Pod, f"web-{number}", {"metadata": {"finalizers": None}})
    await trio.sleep(1)
    assert [sorted(pod.name for pod in result) for result in results] == [["web-0", "web-1", "web-2"]] * 2


async def test_many_evictions_use_a_limited_number_of_connections(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    for number in range(120):
        start(api_server, f"web-{number}", finalizers=["example.com/wait"])
    api_server.fail_next(120, verb="create", resource="pods", status=None, after=1)
    done = trio.Event()

    async def call() -> None:
        await evict_pods(pods, node="worker-1")
        done.set()

    nursery.start_soon(call)
    await trio.sleep(0.5)
    assert len(evictions(api_server)) == 10
    await trio.sleep(20)
    # Pods that do not terminate delay no eviction.
    assert all(pod.metadata.deletion_timestamp for pod in api_server.list(Pod))
    assert api_server.statistics().open_watches == 50
    for number in range(120):
        api_server.patch(Pod, f"web-{number}", {"metadata": {"finalizers": None}})
    await done.wait()
    assert len(evictions(api_server)) == 120


@pytest.mark.parametrize(
    ("pod", "options", "reason"),
    [
        ({"annotations": MIRROR, "owner": None}, {}, "mirror"),
        ({"annotations": MIRROR, "owner": None, "phase": "Failed"}, {"force": True}, "mirror"),
        ({"owner": DAEMON_SET}, {}, "DaemonSet"),
        ({"owner": DAEMON_SET, "spec": DATA}, {"force": True, "delete_emptydir_data": True}, "DaemonSet"),
    ],
)
async def test_mirror_pods_and_pods_of_daemon_sets_are_skipped(
    api_server: APIServer,
    pods: Api[Pod],
    autojump_clock: MockClock,
    pod: dict[str, Any],
    options: dict[str, bool],
    reason: str,
) -> None:
    start(api_server, "web-0", **pod)
    start(api_server, "web-1")
    progress: list[PodEviction] = []
    gone = await evict_pods(pods, node="worker-1", on_progress=progress.append, **options)
    assert [each.name for each in gone] == ["web-1"]
    assert left(api_server) == ["web-0"]
    (skipped,) = [each for each in progress if each.state == "skipped"]
    assert skipped.pod.name == "web-0"
    assert reason in skipped.reason


@pytest.mark.parametrize(
    ("pod", "option"),
    [
        ({"owner": None}, "force"),
        ({"owner": OWNER | {"controller": False}}, "force"),
        ({"owner": DAEMON_SET | {"controller": False}}, "force"),
        ({"spec": DATA}, "delete_emptydir_data"),
    ],
)
async def test_nothing_is_evicted_if_a_pod_or_its_data_cannot_be_replaced(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, pod: dict[str, Any], option: str
) -> None:
    start(api_server, "web-0", **pod)
    start(api_server, "web-1")
    with pytest.raises(ExceptionGroup, match=f"default/web-0: .*{option}=True") as caught:
        await evict_pods(pods, node="worker-1")
    assert "web-1" not in str(caught.value)
    assert left(api_server) == ["web-0", "web-1"]
    assert evictions(api_server) == []
    await evict_pods(pods, node="worker-1", **{option: True})  # type: ignore[arg-type]  # an option that takes a bool
    assert left(api_server) == []


@pytest.mark.parametrize("pod", [{"owner": None}, {"owner": DAEMON_SET}, {"spec": DATA}])
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_pods_that_have_ended_are_evicted(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, pod: dict[str, Any], phase: str
) -> None:
    start(api_server, "web-0", phase=phase, **pod)
    await evict_pods(pods, node="worker-1")
    assert left(api_server) == []


async def test_the_other_pods_are_evicted_if_the_server_rejects_an_eviction(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    for name in ("web-0", "web-1", "db-0"):
        start(api_server, name, app=name[:-2])
    protect(api_server, "db")
    server_spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}
    api_server.create(from_dict(PodDisruptionBudget, {"metadata": {"name": "db-2"}, "spec": server_spec}))
    body = {"details": {"causes": [{"reason": "Other", "message": "web-0 is important"}]}}
    api_server.fail_next(status=lambda each: 403 if each.subresource and each.name == "web-0" else None, body=body)
    progress: list[PodEviction] = []
    with pytest.raises(ExceptionGroup, match=r"default/(web|db)-0: .*; default/(web|db)-0: ") as caught:
        await evict_pods(pods, node="worker-1", on_progress=progress.append)
    # Two budgets select the second pod.
    assert {type(error) for error in caught.value.exceptions} == {ForbiddenError, InternalServerError}
    assert sorted(states(progress)) == ["db-0 failed", "web-0 failed", "web-1 evicted", "web-1 gone"]
    assert left(api_server) == ["db-0", "web-0"]


TERMINATING = {"details": {"causes": [{"reason": "NamespaceTerminating", "message": "it is being terminated"}]}}


@pytest.mark.parametrize(("status", "body"), [(403, TERMINATING), (503, None), (504, None)])
async def test_transient_failures_are_retried(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, status: int, body: dict[str, Any] | None
) -> None:
    start(api_server, "web-0")
    api_server.fail_next(2, verb="create", resource="pods", status=status, body=body)
    progress: list[PodEviction] = []
    await evict_pods(pods, node="worker-1", on_progress=progress.append)
    assert states(progress) == ["web-0 blocked", "web-0 blocked", "web-0 evicted", "web-0 gone"]


async def test_a_server_that_is_unreachable_for_a_while_is_waited_for(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    start(api_server, "web-0")
    protect(api_server)
    done = trio.Event()

    async def call() -> None:
        await evict_pods(pods, node="worker-1")
        done.set()

    nursery.start_soon(call)
    await trio.sleep(2)
    with api_server.unreachable():
        await trio.sleep(600)
        allow(api_server, 1)
    with trio.fail_after(60):
        await done.wait()
    assert left(api_server) == []


async def test_blocked_evictions_are_logged_once_a_minute(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        start(api_server, f"web-{number}")
    protect(api_server)
    with caplog.at_level(logging.WARNING, "trioformer"), trio.move_on_after(118):
        await evict_pods(pods, node="worker-1")
    first, second = (record.getMessage() for record in caplog.records)
    assert "disruption budget" in first
    assert "failed 240 times" in second


async def test_an_error_of_on_progress_ends_the_call(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    start(api_server, "web-0", finalizers=["example.com/stuck"])

    def fail(eviction: PodEviction) -> None:
        raise KeyError(eviction.state)

    with pytest.RaisesGroup(pytest.RaisesExc(KeyError, match="evicted")):
        await evict_pods(pods, node="worker-1", on_progress=fail)


async def test_a_missing_permission_to_list_pods_is_not_in_a_group(api_server: APIServer, pods: Api[Pod]) -> None:
    api_server.fail_next(verb="list", status=403)
    with pytest.raises(ForbiddenError):
        await evict_pods(pods, node="worker-1")


@pytest.mark.parametrize("selection", [{}, {"node": ""}, {"label_selector": ""}, {"label_selector": {}}])
async def test_no_selection_is_a_mistake(api_server: APIServer, pods: Api[Pod], selection: dict[str, Any]) -> None:
    start(api_server, "web-0")
    with pytest.raises(ValueError, match="a node or a label selector"):
        await evict_pods(pods, **selection)
    assert left(api_server) == ["web-0"]


async def test_wrong_arguments_are_mistakes(client: Client, pods: Api[Pod]) -> None:
    async def on_progress(eviction: PodEviction) -> None: ...

    with pytest.raises(TypeError, match="on_progress"):
        await evict_pods(pods, node="worker-1", on_progress=on_progress)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="Api"):
        await evict_pods(client, node="worker-1")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match=r"evict_pods\(\) is for pods"):
        await evict_pods(client.api(PodDisruptionBudget), node="worker-1")  # type: ignore[arg-type]  # the mistake
