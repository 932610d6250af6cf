from __future__ import annotations

import pytest
import trio

from tests.testing.controllers.workloads import condition, pods, status, workload
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ScriptedPod


def test_a_job_completes_when_create_returns() -> None:
    server = APIServer(controllers=True)
    server.create(workload("Job", "sum", completions=3, parallelism=2))
    found = status(server, "jobs", "sum")
    assert (found["succeeded"], found.get("failed"), found.get("active")) == (3, None, None)
    assert condition(server, "jobs", "sum", "Complete") == "CompletionsReached"
    assert "completionTime" in found
    assert len(pods(server)) == 3


async def test_parallelism_limits_the_active_pods(nursery: trio.Nursery, autojump_clock: object) -> None:
    def for_a_minute(_: Pod, script: ScriptedPod) -> None:
        script.start()
        script.after(60, script.end)

    server = APIServer(controllers=True, run_pod=for_a_minute)
    await nursery.start(server.run)
    server.create(workload("Job", "sum", completions=5, parallelism=2))
    active = []
    for _ in range(4):
        active.append(status(server, "jobs", "sum").get("active", 0))
        await trio.sleep(60.5)
    assert active == [2, 2, 1, 0]
    assert status(server, "jobs", "sum")["succeeded"] == 5


async def test_failures_are_retried_ever_later_up_to_the_limit(nursery: trio.Nursery, autojump_clock: object) -> None:
    times = []

    def fail(_: Pod, script: ScriptedPod) -> None:
        times.append(trio.current_time())
        script.start()
        script.end(exit_code=1)

    server = APIServer(controllers=True, run_pod=fail)
    await nursery.start(server.run)
    start = trio.current_time()
    server.create(workload("Job", "sum", backoffLimit=3))
    await trio.sleep(1_000)
    assert [time - start for time in times] == pytest.approx([0, 10, 30, 70], abs=1)
    assert condition(server, "jobs", "sum", "Failed") == "BackoffLimitExceeded"
    assert status(server, "jobs", "sum")["failed"] == 4


async def test_a_deadline_ends_the_pods(nursery: trio.Nursery, autojump_clock: object) -> None:
    server = APIServer(controllers=True, run_pod=lambda _, script: script.start())
    await nursery.start(server.run)
    server.create(workload("Job", "sum", activeDeadlineSeconds=60))
    await trio.sleep(59)
    assert status(server, "jobs", "sum")["active"] == 1
    await trio.sleep(2)
    assert condition(server, "jobs", "sum", "Failed") == "DeadlineExceeded"
    assert not pods(server)


def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    server = APIServer(controllers=True)
    server.create(workload("Job", "sum", suspend=True))
    assert not pods(server)
    assert "startTime" not in status(server, "jobs", "sum")
    server.patch("jobs", "sum", {"spec": {"suspend": False}})
    assert condition(server, "jobs", "sum", "Complete") is not None
    assert condition(server, "jobs", "sum", "Suspended") == "JobResumed"


def test_a_job_of_another_controller_is_left_alone() -> None:
    server = APIServer(controllers=True)
    server.create(workload("Job", "sum", managedBy="example.com/queue"))
    assert not pods(server)
