"""``examples/job_controller.py``: pods, counts, parallelism, expectations, and how Jobs end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from examples.job_controller import MANAGED_BY, JobController, serve, uid_of_owner
from tests.support.processes import result_here
from trioformer import Client, SharedInformerFactory
from trioformer.controller import Request
from trioformer.models.batch_v1 import Job
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

PROGRAM = "examples/job_controller.py"
PI = Request("default", "pi")


def create_job(server: APIServer, name: str = "pi", **more: object) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "pi", "image": "perl"}]}
    template = {"metadata": {"labels": {"app": "pi"}}, "spec": pod}
    spec = {"parallelism": 2, "completions": 3, "managedBy": MANAGED_BY, "template": template, **more}
    metadata = {"name": name, "namespace": "default"}
    server.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def active(server: APIServer) -> list[str]:
    return [pod.name for pod in server.list(Pod) if pod.status.phase not in ("Succeeded", "Failed")]


async def end(server: APIServer, name: str, phase: str = "Succeeded") -> None:
    """Be the kubelet of a pod that ends, and wait until the controller has processed it."""
    server.patch(Pod, name, {"status": {"phase": phase}})
    await trio.sleep(1)


def counts(server: APIServer, name: str = "pi") -> tuple[int, int, int]:
    status = server.get(Job, name).status
    return status.active or 0, status.succeeded or 0, status.failed or 0


def conditions(server: APIServer, name: str = "pi") -> dict[str, str]:
    return {each.type: each.reason or "" for each in server.get(Job, name).status.conditions if each.status == "True"}


@asynccontextmanager
async def controlling(client: Client) -> AsyncIterator[None]:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, client, "default", 2, stop)
        await trio.sleep(1)
        yield
        stop.set()


async def test_pods_run_in_parallel_until_enough_have_succeeded(
    autojump_clock: MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "job_controller")
    create_job(api_server)
    async with controlling(client):
        assert counts(api_server) == (2, 0, 0)
        first, second = active(api_server)
        pod = api_server.get(Pod, first)
        assert pod.metadata.labels.items() >= {"app": "pi", "batch.kubernetes.io/job-name": "pi"}.items()
        assert [each.image for each in pod.spec.containers] == ["perl"]
        await end(api_server, first)
        assert counts(api_server) == (2, 1, 0)
        await end(api_server, second)
        assert counts(api_server) == (1, 2, 0)
        (third,) = active(api_server)
        assert api_server.get(Job, "pi").status.completion_time is None
        await end(api_server, third)
        assert counts(api_server) == (0, 3, 0)
        assert api_server.get(Job, "pi").status.completion_time is not None
        assert conditions(api_server) == dict.fromkeys(["SuccessCriteriaMet", "Complete"], "CompletionsReached")
        version = api_server.get(Job, "pi").resource_version
        await trio.sleep(1000)
        assert (api_server.get(Job, "pi").resource_version, active(api_server)) == (version, [])
    assert [each.getMessage() for each in caplog.records if each.name == "job_controller"] == [
        "default/pi: active 2, succeeded 0, failed 0",
        "default/pi: active 2, succeeded 1, failed 0",
        "default/pi: active 1, succeeded 2, failed 0",
        "default/pi: active 0, succeeded 3, failed 0",
        "default/pi: Complete",
    ]


async def test_failed_pods_are_replaced_until_the_backoff_limit_is_exceeded(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    create_job(api_server, backoffLimit=1)
    async with controlling(client):
        await end(api_server, active(api_server)[0], "Failed")
        assert counts(api_server) == (2, 0, 1)
        await end(api_server, active(api_server)[0], "Failed")
        assert counts(api_server) == (0, 0, 2)
        assert conditions(api_server) == dict.fromkeys(["FailureTarget", "Failed"], "BackoffLimitExceeded")
        assert active(api_server) == []


async def test_a_pod_that_has_ended_and_is_deleted_lowers_no_count(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    """kube-apiserver accepts no status whose counts decrease."""
    create_job(api_server)
    async with controlling(client):
        first, second = active(api_server)
        await end(api_server, first)
        await end(api_server, second, "Failed")
        assert counts(api_server) == (2, 1, 1)
        api_server.delete(Pod, first)
        api_server.delete(Pod, second)
        await trio.sleep(1)
        assert counts(api_server) == (2, 1, 1)


async def test_a_job_ends_after_the_last_of_its_pods(
    autojump_clock: MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "job_controller")
    template = {
        "metadata": {"finalizers": ["example.com/x"]},
        "spec": {"containers": [{"name": "pi", "image": "perl"}]},
    }
    create_job(api_server, backoffLimit=0, template=template)
    async with controlling(client):
        first, second = active(api_server)
        await end(api_server, first, "Failed")
        assert api_server.get(Pod, second).metadata.deletion_timestamp is not None
        assert (counts(api_server), api_server.get(Job, "pi").status.terminating) == ((0, 0, 1), 1)
        assert conditions(api_server) == {"FailureTarget": "BackoffLimitExceeded"}
        api_server.patch(Job, "pi", {"spec": {"backoffLimit": 9}})
        await end(api_server, second, "Failed")  # because it was deleted; its container had no time to end well
        assert counts(api_server) == (0, 0, 1)
        api_server.patch(Pod, second, {"metadata": {"finalizers": None}})
        await trio.sleep(1)
        assert (counts(api_server), api_server.get(Job, "pi").status.terminating) == ((0, 0, 1), None)
        assert conditions(api_server) == dict.fromkeys(["FailureTarget", "Failed"], "BackoffLimitExceeded")
        assert len(api_server.list(Pod)) == 1
    assert [each.getMessage() for each in caplog.records if each.name == "job_controller"] == [
        "default/pi: active 2, succeeded 0, failed 0",
        "default/pi: active 0, succeeded 0, failed 1",
        "default/pi: Failed",
    ]


async def test_a_lower_parallelism_deletes_pods_that_have_not_begun(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    create_job(api_server, parallelism=3)
    async with controlling(client):
        running = active(api_server)[2]
        api_server.patch(Pod, running, {"status": {"phase": "Running"}})
        api_server.patch(Job, "pi", {"spec": {"parallelism": 1}})
        await trio.sleep(1)
        assert active(api_server) == [running]
        assert counts(api_server) == (1, 0, 0)
        api_server.patch(Job, "pi", {"spec": {"suspend": True}})
        await trio.sleep(1)
        assert counts(api_server) == (0, 0, 0)
        api_server.patch(Job, "pi", {"spec": {"suspend": False}})
        await trio.sleep(1)
        assert counts(api_server) == (1, 0, 0)


async def test_jobs_of_the_built_in_controller_are_left_alone(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    create_job(api_server, managedBy=None)
    async with controlling(client):
        await trio.sleep(10)
    assert api_server.list(Pod) == []
    assert counts(api_server) == (0, 0, 0)


@asynccontextmanager
async def with_late_caches(client: Client) -> AsyncIterator[JobController]:
    """Yield a controller whose caches do not change any more."""
    factory = SharedInformerFactory(client)
    jobs, pods = factory.informer(Job), factory.informer(Pod, indexers={"owner": uid_of_owner})
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        nursery.cancel_scope.cancel()
    yield JobController(client, jobs, pods)


async def test_a_late_cache_does_not_have_it_create_the_pods_again(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    create_job(api_server)
    async with with_late_caches(client) as controller:
        again = await controller.sync_job(PI)
        assert again is not None
        assert again.after == controller.expectations.period
        for _ in range(3):
            assert await controller.sync_job(PI) is not None
        assert len(api_server.list(Pod)) == 2
        await trio.sleep(again.after + 1)
        assert controller.expectations.is_satisfied(PI)


async def test_a_late_cache_does_not_overwrite_a_newer_status(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    create_job(api_server)
    async with with_late_caches(client) as controller:
        api_server.patch(Job, "pi", {"status": {"succeeded": 2}})
        await controller.sync_job(PI)
    assert counts(api_server) == (0, 2, 0)


def test_embedded_jobs_complete_and_fail_until_ctrl_c() -> None:
    code, lines, errors = result_here(PROGRAM, "--embedded", is_virtual=True, interrupt_after=40)
    assert (code, errors) == (0, [])
    assert lines[:5] == [
        "default/pi-0: active 2, succeeded 0, failed 0",
        "default/pi-0: active 2, succeeded 2, failed 0",
        "default/pi-0: active 0, succeeded 4, failed 0",
        "default/pi-0: Complete",
        "default/pi-1: active 2, succeeded 0, failed 0",
    ]
    assert any(line.endswith("failed 1") for line in lines)
