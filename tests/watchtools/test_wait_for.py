"""Waiting for one object, as ``kubectl wait`` does, in virtual time against the embedded server."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs
import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.raw_requests import pod
from tests.support.scripted_http import InMemory, Step, response
from trioformer.client import Api, Client, ClientOptions, open_client
from trioformer.errors import (
    DecodeError,
    ExpiredError,
    ForbiddenError,
    InternalServerError,
    LimitExceededError,
    NotFoundError,
)
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import from_dict, unstructured_kind
from trioformer.models.core_v1 import Node, Pod
from trioformer.testing import APIServer
from trioformer.transport import Limits
from trioformer.watchtools import BackoffPolicy, created, deleted, has_condition, has_field, wait_for

POLICY = BackoffPolicy(jitter=0)
"""0.8, 1.6, 3.2 … seconds."""


def ready(status: str = "True", **more: object) -> dict[str, object]:
    """A patch that makes a pod ready."""
    return {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": status, **more}]}}


@attrs.define(eq=False)
class Wait:
    """A ``wait_for`` in another task."""

    outcome: object = "waiting"
    at: float = 0.0

    async def run(self, waiting: Callable[[], object]) -> None:
        try:
            self.outcome = await waiting()  # type: ignore[misc]  # a coroutine
        except Exception as error:  # noqa: BLE001  # the test examines it
            self.outcome = error
        self.at = trio.current_time()


@pytest.fixture
def pods(client: Client) -> Api[Pod]:
    return client.api(Pod, "default")


@pytest.fixture
def start(nursery: trio.Nursery) -> Callable[..., Wait]:
    """Start a ``wait_for`` in another task."""

    def start_wait(api: Api[Pod], name: str, condition: object, **options: object) -> Wait:
        wait = Wait()
        options = {"backoff": POLICY, "on_retry": lambda _: None, **options}
        nursery.start_soon(wait.run, lambda: wait_for(api, name, condition, **options))  # type: ignore[call-overload]
        return wait

    return start_wait


# --- conditions ------------------------------------------------------------------------------------------------------


def a_pod(**parts: object) -> Pod:
    return from_dict(Pod, {"metadata": {"name": "web-0", "generation": 3}, **parts})


def with_conditions(*conditions: object, **status: object) -> Pod:
    return a_pod(status={"conditions": list(conditions), **status})


@pytest.mark.parametrize(
    ("obj", "is_met"),
    [
        (a_pod(), False),
        (with_conditions(), False),
        (with_conditions({"type": "Initialized", "status": "True"}), False),
        (with_conditions({"type": "Ready"}), False),
        (with_conditions({"type": "Ready", "status": "False"}), False),
        (with_conditions({"type": "Ready", "status": "True"}), True),
        (with_conditions({"type": "READY", "status": "true"}), True),
        (with_conditions({"type": "Initialized", "status": "False"}, {"type": "Ready", "status": "True"}), True),
        (with_conditions({"type": "Ready", "status": "True", "observedGeneration": 2}), False),
        (with_conditions({"type": "Ready", "status": "True", "observedGeneration": 3}), True),
        (with_conditions({"type": "Ready", "status": "True"}, observedGeneration=2), False),
        (with_conditions({"type": "Ready", "status": "True"}, observedGeneration=3), True),
        # The observedGeneration of the condition takes precedence.
        (with_conditions({"type": "Ready", "status": "True", "observedGeneration": 3}, observedGeneration=2), True),
        (with_conditions({"type": "Ready", "status": "True", "observedGeneration": 2}, observedGeneration=3), False),
        # Values that are not valid conditions.
        (a_pod(status=7), False),
        (a_pod(status={"conditions": "none"}), False),
        (with_conditions("Ready", None, {"type": "Ready", "status": True}), False),
    ],
)
def test_a_condition_is_met_by_an_entry_of_its_type_and_status_for_this_generation(obj: Pod, is_met: bool) -> None:
    assert has_condition("Ready")(obj) is is_met


def test_a_condition_can_be_compared_with_another_status() -> None:
    obj = with_conditions({"type": "Ready", "status": "False"})
    assert has_condition("Ready", "False")(obj)
    assert not has_condition("Ready", "Unknown")(obj)
    assert not has_condition("Missing", "False")(obj)


def test_a_field_is_found_by_attributes_and_keys() -> None:
    obj = from_dict(
        Pod,
        {
            "metadata": {"name": "web-0", "labels": {"app": "web"}},
            "spec": {"nodeName": "n", "priority": 7},
            "status": {"phase": "Running"},
        },
    )
    assert has_field("status.phase", "Running")(obj)
    assert has_field("spec.node_name", "n")(obj)
    assert has_field("spec.priority", 7)(obj)
    assert has_field("metadata.labels.app", "web")(obj)
    assert not has_field("metadata.labels.tier", "web")(obj)
    assert not has_field("status.phase", "Pending")(obj)
    assert not has_field("status.pod_ip", "10.0.0.1")(obj)
    assert not has_field("spec.security_context.run_as_user", 0)(obj)
    with pytest.raises(AttributeError, match="nodeName"):
        has_field("spec.nodeName", "n")(obj)


def test_conditions_work_for_kinds_without_a_class() -> None:
    widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
    status = {"phase": "Done", "sizeNow": 3, "conditions": [{"type": "Ready", "status": "True"}]}
    obj = widget.of({"metadata": {"name": "w"}, "status": status})
    assert has_condition("Ready")(obj)
    assert has_field("status.sizeNow", 3)(obj)
    assert has_field("metadata.name", "w")(obj)
    assert not has_field("spec.size", 3)(obj)


@pytest.mark.parametrize(("found", "value"), [(True, 1), (1, True), (False, 0), (0, False)])
def test_a_field_that_is_a_number_is_not_true_or_false(found: int, value: int) -> None:
    widget = unstructured_kind("example.com/v1", "Widget", plural="widgets", namespaced=True)
    obj = widget.of({"metadata": {"name": "w"}, "status": {"done": found}})
    assert has_field("status.done", found)(obj)
    assert has_field("status.done", float(value))(obj) is isinstance(value, bool)
    assert not has_field("status.done", value)(obj)


# --- conditions that are already met ---------------------------------------------------------------------------------


async def test_a_condition_that_is_already_met_needs_one_list_and_no_watch(
    api_server: APIServer, pods: Api[Pod]
) -> None:
    """client-go: TestUntilWithSync"""
    api_server.create({**pod("web-0"), **ready()})
    api_server.create(pod("web-1"))
    found = await wait_for(pods, "web-0", has_condition("Ready"))
    assert (found.name, found.status.phase) == ("web-0", "Running")
    await wait_for(pods, "web-9", deleted())
    await wait_for(pods, "web-1", deleted(uid="of an earlier object"))
    assert (await wait_for(pods, "web-1", created())).name == "web-1"
    assert [(one.verb, one.query.get("fieldSelector")) for one in api_server.requests] == [
        ("list", "metadata.name=web-0"),
        ("list", "metadata.name=web-9"),
        ("list", "metadata.name=web-1"),
        ("list", "metadata.name=web-1"),
    ]


async def test_a_missing_object_is_an_error(client: Client, pods: Api[Pod]) -> None:
    with pytest.raises(NotFoundError) as caught:
        await wait_for(pods, "web-0", has_condition("Ready"))
    assert "condition Ready=True: the object does not exist" in str(caught.value)
    assert (caught.value.code, caught.value.details.name, caught.value.details.kind) == (404, "web-0", "pods")
    with pytest.raises(NotFoundError, match="has_no_taint"):
        await wait_for(client.api(Node), "n", has_no_taint)


def has_no_taint(node: Node) -> bool:
    return not node.spec.taints


async def test_an_empty_name_and_a_missing_namespace_are_rejected(client: Client, pods: Api[Pod]) -> None:
    with pytest.raises(ValueError, match="name"):
        await wait_for(pods, "", created())
    with pytest.raises(ValueError, match="namespace"):
        await wait_for(client.api(Pod), "web-0", created())


# --- conditions that are met later -----------------------------------------------------------------------------------


async def test_wait_for_returns_when_a_condition_is_met(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    """client-go: TestUntil, TestUntilWithSync"""
    api_server.create(pod("web-0"))
    api_server.create(pod("web-1"))
    wait = start(pods, "web-0", has_condition("Ready"))
    for seconds, patch in [(1, ready("False")), (2, ready("Unknown")), (3, ready())]:
        assert wait.outcome == "waiting"
        await trio.sleep(seconds)
        api_server.patch(Pod, "web-1", ready())
        api_server.patch(Pod, "web-0", patch)
    await wait_all_tasks_blocked()
    assert isinstance(wait.outcome, Pod)
    assert wait.outcome.resource_version == api_server.get(Pod, "web-0").resource_version
    assert wait.at == 6
    assert api_server.statistics().open_watches == 0
    assert [one.verb for one in api_server.requests] == ["list", "watch"]


async def test_every_state_is_checked_once(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    """client-go: TestUntilMultipleConditions"""
    seen: list[str] = []

    def third(obj: Pod) -> bool:
        seen.append(obj.metadata.labels.get("step", "0"))
        return len(seen) == 4

    api_server.create(pod("web-0"))
    wait = start(pods, "web-0", third)
    for step in range(1, 6):
        await trio.sleep(40)
        api_server.patch(Pod, "web-0", {"metadata": {"labels": {"step": str(step)}}})
        api_server.disconnect_watches()
    await wait_all_tasks_blocked()
    assert isinstance(wait.outcome, Pod)
    assert seen == ["0", "1", "2", "3"]


async def test_wait_for_returns_when_an_object_is_deleted(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    made = pod("web-0")
    made["metadata"]["finalizers"] = ["example.com/slow"]
    api_server.create(made)
    wait = start(pods, "web-0", deleted())
    await trio.sleep(1)
    api_server.delete(Pod, "web-0")
    await trio.sleep(1)
    assert wait.outcome == "waiting"
    api_server.patch(Pod, "web-0", {"metadata": {"finalizers": None}})
    await wait_all_tasks_blocked()
    assert (wait.outcome, wait.at) == (None, 2)


async def test_a_new_object_of_the_same_name_means_that_the_old_one_was_deleted(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    """No watch has seen the deletion, only the list after it shows it.

    client-go: TestInformerWatcherDeletedFinalStateUnknown
    """
    api_server.create(pod("web-0"))
    wait = start(pods, "web-0", deleted())
    await trio.sleep(40)
    with api_server.unreachable():
        api_server.delete(Pod, "web-0")
        api_server.create(pod("web-0"))
        api_server.compact()
        await trio.sleep(60)
        assert wait.outcome == "waiting"
    await trio.sleep(60)
    assert wait.outcome is None


async def test_wait_for_returns_when_an_object_is_created(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    there = start(pods, "web-0", created())
    good = start(pods, "web-0", has_condition("Ready"), missing_ok=True)
    await trio.sleep(1)
    api_server.create(pod("web-0"))
    await trio.sleep(1)
    assert isinstance(there.outcome, Pod)
    assert there.at == 1
    # After a deletion the wait continues, until the object is created again.
    api_server.delete(Pod, "web-0")
    await trio.sleep(1)
    api_server.create({**pod("web-0"), **ready()})
    await wait_all_tasks_blocked()
    assert isinstance(good.outcome, Pod)
    assert good.at == 3


async def test_an_object_that_is_deleted_during_the_wait_is_an_error(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    made = api_server.create(from_dict(Pod, pod("web-0")))
    wait = start(pods, "web-0", has_condition("Ready"))
    await trio.sleep(1)
    api_server.delete(Pod, "web-0")
    await wait_all_tasks_blocked()
    assert isinstance(wait.outcome, NotFoundError)
    assert "condition Ready=True: the object was deleted" in str(wait.outcome)
    assert wait.outcome.details.uid == made.uid


async def test_an_object_that_is_replaced_during_the_wait_is_an_error(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    api_server.create(pod("web-0"))
    wait = start(pods, "web-0", has_condition("Ready"))
    await trio.sleep(40)
    with api_server.unreachable():
        api_server.delete(Pod, "web-0")
        api_server.create({**pod("web-0"), **ready()})
        api_server.compact()
    await trio.sleep(60)
    assert isinstance(wait.outcome, NotFoundError)
    assert "a new one has the same name" in str(wait.outcome)


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["clean", "reset", "stall"])
@pytest.mark.parametrize("after", [0.0, 100.0])
async def test_the_end_of_a_watch_does_not_meet_a_condition(
    how: str,
    after: float,
    api_server: APIServer,
    pods: Api[Pod],
    start: Callable[..., Wait],
    autojump_clock: MockClock,
) -> None:
    """client-go: TestUntil"""
    api_server.create(pod("web-0"))
    waits = [start(pods, "web-0", has_condition("Ready")), start(pods, "web-0", deleted())]
    await wait_all_tasks_blocked()
    for _ in range(3):
        await trio.sleep(after)
        api_server.disconnect_watches(how=how)  # type: ignore[arg-type]  # one of the values
        await trio.sleep(1_000)
        assert [wait.outcome for wait in waits] == ["waiting", "waiting"]
    api_server.patch(Pod, "web-0", ready())
    api_server.delete(Pod, "web-0")
    await trio.sleep(1_000)
    assert isinstance(waits[0].outcome, Pod)
    assert waits[1].outcome is None


async def test_an_expired_version_is_followed_by_a_list(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    api_server.create(pod("web-0"))
    errors: list[Exception] = []
    wait = start(pods, "web-0", has_condition("Ready"), on_retry=errors.append)
    await trio.sleep(40)
    api_server.disconnect_watches()
    api_server.patch(Pod, "web-0", ready())
    api_server.compact()
    await trio.sleep(10)
    assert isinstance(wait.outcome, Pod)
    assert wait.at == pytest.approx(40.8)
    assert [type(error) for error in errors] == [ExpiredError]


async def test_a_server_whose_versions_all_expire_is_not_requested_in_a_tight_loop(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    api_server.create(pod("web-0"))
    api_server.fail_next(1_000, verb="watch", status=410)
    wait = start(pods, "web-0", has_condition("Ready"))
    await trio.sleep(600)
    assert wait.outcome == "waiting"
    assert len(api_server.requests) < 60


async def test_lists_that_fail_are_retried(
    api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait], autojump_clock: MockClock
) -> None:
    """A failed list says nothing about the object.

    client-go: TestUntilWithSync
    """
    api_server.create({**pod("web-0"), **ready()})
    api_server.fail_next(2, verb="list", status=503)
    api_server.fail_next(verb="list", status=429, retry_after=50)
    errors: list[Exception] = []
    wait = start(pods, "web-0", has_condition("Ready"), on_retry=errors.append)
    await trio.sleep(100)
    assert isinstance(wait.outcome, Pod)
    assert 52.4 <= wait.at <= 57.4
    assert len(errors) == 3


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_a_permanent_error_is_raised_with_a_note_that_names_the_condition(
    verb: str, api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    api_server.create(pod("web-0"))
    api_server.fail_next(verb=verb, status=403)
    with pytest.raises(ForbiddenError) as caught:
        await wait_for(pods, "web-0", deleted())
    assert caught.value.__notes__[1:] == ["while waiting for pods/web-0 in namespace default: deletion"]
    assert trio.current_time() == 0


async def test_failures_are_logged_without_a_callback(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    api_server.create({**pod("web-0"), **ready()})
    api_server.fail_next(verb="list", status=500)
    with caplog.at_level(logging.INFO, "trioformer.watchtools"):
        await wait_for(pods, "web-0", has_condition("Ready"))
        api_server.fail_next(verb="watch", status=410)
        with trio.move_on_after(3):
            await wait_for(pods, "web-0", has_condition("Other"))
    first, second = caplog.records
    waiting = "wait for pods/web-0 in namespace default: condition"
    assert first.levelname == "WARNING"
    assert first.getMessage().startswith(f"{waiting} Ready=True: list pods")
    assert second.levelname == "INFO"
    assert second.getMessage().startswith(f"{waiting} Other=True: ")


async def test_other_objects_are_ignored_if_the_server_does_not_select_by_name(autojump_clock: MockClock) -> None:
    def metadata(name: str, version: int) -> dict[str, str]:
        return {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(version)}

    def deletion(name: str, version: int) -> str:
        return json.dumps({"type": "DELETED", "object": {"kind": "Pod", "metadata": metadata(name, version)}}) + "\n"

    items = [{"metadata": metadata("a", 1)}, {"metadata": metadata("web-0", 2)}]
    listing = json.dumps({"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": items})
    stream = response(200, deletion("a", 6), 10.0, deletion("web-0", 7), None)
    server = InMemory([response(200, listing), stream])
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=server) as client:
        await wait_for(client.api(Pod, "shop"), "web-0", deleted())
    assert trio.current_time() == 10


# --- states that cannot be read ---


def state(version: int, uid: object = "u", **members: object) -> dict[str, object]:
    metadata = {"name": "web-0", "namespace": "shop", "uid": uid, "resourceVersion": str(version)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **members}


def large(version: int) -> dict[str, object]:
    return state(version, spec="x" * 2_000)


def unnamed(version: int) -> dict[str, object]:
    return {**state(version), "metadata": {"name": 7, "resourceVersion": str(version)}}


def items(version: int, *objects: object) -> httpx.Response:
    listing = {"kind": "PodList", "metadata": {"resourceVersion": str(version)}, "items": objects}
    return response(200, json.dumps(listing))


def watch(*steps: Step | tuple[str, object]) -> httpx.Response:
    lines = [json.dumps({"type": s[0], "object": s[1]}) + "\n" if isinstance(s, tuple) else s for s in steps]
    return response(200, *lines)


@asynccontextmanager
async def pods_over(*replies: httpx.Response) -> AsyncIterator[tuple[Api[Pod], InMemory]]:
    server, limits = InMemory([*replies]), Limits(object_bytes=1_000)
    async with open_client(
        ClusterConfig(server="https://api.test"), http_transport=server, options=ClientOptions(limits=limits)
    ) as client:
        yield client.api(Pod, "shop"), server


@pytest.mark.parametrize("bad", [large, unnamed])
async def test_a_state_that_cannot_be_read_neither_ends_a_wait_nor_stalls_it(
    bad: Callable[[int], object], autojump_clock: MockClock
) -> None:
    errors: list[Exception] = []
    good = state(8, **ready())
    replies = [items(5, state(5)), watch(("MODIFIED", bad(6)), None), items(6, bad(6)), watch(10.0, ("ADDED", good))]
    async with pods_over(*replies) as (pods, server):
        found = await wait_for(pods, "web-0", has_condition("Ready"), backoff=POLICY, on_retry=errors.append)
    assert found.resource_version == "8"
    # A large object is one of the list.
    expected = [LimitExceededError] if bad is large else [DecodeError] * 2
    assert [type(error) for error in errors] == expected
    assert [request.url.params.get("resourceVersion") for request in server.requests] == [None, "5", None, "6"]


@pytest.mark.parametrize("bad", [large, unnamed])
@pytest.mark.parametrize("after", [[], [state(9, uid="of another")]], ids=["gone", "replaced"])
async def test_the_deletion_of_an_object_that_cannot_be_read_is_seen(
    bad: Callable[[int], object], after: list[object], autojump_clock: MockClock
) -> None:
    replies = [items(5, state(5)), watch(10.0, ("DELETED", bad(6)), None), items(9, *after)]
    async with pods_over(*replies) as (pods, _):
        await wait_for(pods, "web-0", deleted(), backoff=POLICY, on_retry=lambda _: None)


async def test_an_object_that_cannot_be_read_exists_until_it_is_deleted(autojump_clock: MockClock) -> None:
    bad = state(5, uid=7)
    replies = [items(5, bad), watch(10.0, ("DELETED", bad), None)]
    async with pods_over(*replies) as (pods, server):
        await wait_for(pods, "web-0", deleted(), on_retry=lambda _: None)
        server.replies += [items(5, bad), watch(10.0, ("DELETED", bad), None)]
        with pytest.raises(NotFoundError, match="the object was deleted"):
            await wait_for(pods, "web-0", has_condition("Ready"), on_retry=lambda _: None)
    assert trio.current_time() == 20


async def test_other_objects_that_cannot_be_read_are_ignored(autojump_clock: MockClock) -> None:
    other = {**state(6), "metadata": {"name": "a", "namespace": "shop", "uid": 7}}
    replies = [items(5, other, state(5)), watch(10.0, ("DELETED", other), ("MODIFIED", state(7, **ready())), None)]
    errors: list[Exception] = []
    async with pods_over(*replies) as (pods, _):
        await wait_for(pods, "web-0", has_condition("Ready"), on_retry=errors.append)
    assert errors == []


async def test_an_exception_of_the_callback_about_an_undecodable_state_ends_the_wait(autojump_clock: MockClock) -> None:
    def give_up(error: Exception) -> None:
        raise error

    async with pods_over(items(5, state(5)), watch(("MODIFIED", large(6)), None)) as (pods, _):
        with pytest.raises(LimitExceededError, match="an event is too large"):
            await wait_for(pods, "web-0", deleted(), on_retry=give_up)


# --- the caller's deadline, condition and cancellation ---------------------------------------------------------------


async def test_the_callers_deadline_ends_the_wait_and_closes_the_watch(
    api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    """client-go: TestUntilTimeout, TestUntilMultipleConditionsFail, TestUntilWithSync"""
    api_server.create(pod("web-0"))
    with pytest.raises(trio.TooSlowError), trio.fail_after(60):
        await wait_for(pods, "web-0", has_condition("Ready"))
    assert trio.current_time() == 60
    await wait_all_tasks_blocked()
    assert api_server.statistics().open_watches == 0


@pytest.mark.parametrize("state", ["listing", "after a list that failed", "watching", "after a watch that failed"])
async def test_a_wait_can_be_cancelled_in_every_phase(
    state: str, api_server: APIServer, pods: Api[Pod], autojump_clock: MockClock
) -> None:
    api_server.create(pod("web-0"))
    if "failed" in state:
        api_server.fail_next(verb="list" if "list" in state else "watch", status=500)
    with trio.CancelScope() as scope:
        if state == "listing":
            scope.cancel()
        else:
            scope.deadline = trio.current_time() + 0.5
        await wait_for(pods, "web-0", has_condition("Ready"), on_retry=lambda _: None)
    assert scope.cancelled_caught
    await wait_all_tasks_blocked()
    assert api_server.statistics().open_watches == 0


@pytest.mark.parametrize(
    "own_error",
    [
        KeyError("mine"),
        # Also errors of the types that requests raise.
        ExpiredError("mine", code=410),
        InternalServerError("mine", code=500),
        DecodeError("mine"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("at", [0, 1])
async def test_an_exception_of_the_condition_propagates_unchanged(
    at: int, own_error: Exception, api_server: APIServer, pods: Api[Pod], start: Callable[..., Wait]
) -> None:
    """client-go: TestUntilErrorCondition"""
    calls = 0

    def fail(_: Pod) -> bool:
        nonlocal calls
        calls += 1
        if calls > at:
            raise own_error
        return False

    api_server.create(pod("web-0"))
    wait = start(pods, "web-0", fail)
    await wait_all_tasks_blocked()
    api_server.patch(Pod, "web-0", ready())
    await wait_all_tasks_blocked()
    assert wait.outcome is own_error
    assert api_server.statistics().open_watches == 0


async def test_an_async_condition_is_rejected(api_server: APIServer, pods: Api[Pod]) -> None:
    async def never(_: Pod) -> bool:
        await trio.sleep_forever()
        return False

    api_server.create(pod("web-0"))
    with pytest.raises(TypeError, match=r"never must be a plain function, not an async one"):
        await wait_for(pods, "web-0", never)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
