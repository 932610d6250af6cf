"""``examples/controller_manager.py``: its controllers, leader election and fencing log."""

from __future__ import annotations

import logging
import os
from argparse import Namespace as Arguments
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from examples.controller_manager import RUNNING, WORKERS, Settings, Worker, make_parser, run_manager
from tests.e2e.replicas import Entry, late_writes, overlaps
from tests.support.processes import KUBECONFIG, Program, result_here, running
from trioformer import Client, ConfigError, SharedInformerFactory
from trioformer.controller import Request, RequeueAfter
from trioformer.leaderelection import Leadership, leadership
from trioformer.manager import ManagerContext
from trioformer.metrics import Metrics
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Namespace, Pod, ServiceAccount
from trioformer.testing import APIServer, serve_http

MANAGER = "examples/controller_manager.py"
LABELS = {"example.com/managed": "yes"}


def pod(name: str, phase: str, *, owner: str = "") -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u", "controller": True}
    metadata = {"name": name, "namespace": "default", "ownerReferences": [reference] if owner else []}
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def replica_set(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def arguments(*given: str) -> Arguments:
    return make_parser().parse_args(given)


@asynccontextmanager
async def managing(client: Client, settings: Settings, *given: str) -> AsyncIterator[None]:
    """Run the controllers while the block runs, and then stop them gracefully."""
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_manager, client, arguments(*given), lambda: settings, Metrics(), stop)
        yield
        stop.set()


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{each.levelname} {each.getMessage()}" for each in caplog.records if each.name == "controller_manager"]


async def test_controllers_start_with_the_lines_of_kube_controller_manager(
    autojump_clock: trio.testing.MockClock, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "controller_manager")
    async with managing(client, Settings(), "--controllers", "*,-pod-janitor"):
        await trio.testing.wait_all_tasks_blocked()
    assert lines_of(caplog)[:7] == [
        'WARNING "pod-janitor" is disabled',
        'INFO Starting "namespace-labeller"',
        'INFO Started "namespace-labeller"',
        'INFO Starting "replica-counter"',
        'INFO Started "replica-counter"',
        'INFO Starting "serviceaccount"',
        'INFO Started "serviceaccount"',
    ]


async def test_controllers_of_all_namespaces_are_skipped_with_a_namespace(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "controller_manager")
    api_server.create(replica_set("web"))
    async with managing(client, Settings(), "--namespace", "default"):
        await trio.sleep(1)
    assert lines_of(caplog) == [
        'INFO Starting "namespace-labeller"',
        'WARNING Skipping "namespace-labeller"',
        'INFO Starting "pod-janitor"',
        'INFO Started "pod-janitor"',
        'INFO Starting "replica-counter"',
        'INFO Started "replica-counter"',
        'INFO Starting "serviceaccount"',
        'WARNING Skipping "serviceaccount"',
        "INFO replica-counter: patched default/web",
    ]


async def test_the_shared_informers_start_after_the_last_controller(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "controller_manager")
    begin = trio.current_time()
    async with managing(client, Settings(), "--start-interval", "10"):
        while 'INFO Starting "serviceaccount"' not in lines_of(caplog):
            assert not api_server.get(Namespace, "default").metadata.labels.items() >= LABELS.items()
            await trio.sleep(1)
        assert trio.current_time() - begin >= 40
        await trio.sleep(1)
        assert api_server.get(Namespace, "default").metadata.labels.items() >= LABELS.items()


async def test_namespaces_are_labelled_ended_pods_deleted_and_running_pods_counted(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    api_server.create(replica_set("web"))
    for made in (pod("web-0", "Running", owner="web"), pod("web-1", "Pending", owner="web"), pod("done", "Succeeded")):
        api_server.create(made)
    async with managing(client, Settings(keep_pods=0)):
        await trio.sleep(1)
        assert {each.name for each in api_server.list(Namespace) if each.metadata.labels.items() >= LABELS.items()} == {
            each.name for each in api_server.list(Namespace)
        }
        assert {each.name for each in api_server.list(Pod)} == {"web-0", "web-1"}
        assert api_server.get(ReplicaSet, "web").metadata.annotations == {RUNNING: "1"}
        api_server.patch(Pod, "web-1", {"status": {"phase": "Running"}})
        api_server.patch(Pod, "web-0", {"status": {"phase": "Failed"}})
        api_server.patch(Namespace, "default", {"metadata": {"labels": {"example.com/managed": "no"}}})
        await trio.sleep(1)
        assert {each.name for each in api_server.list(Pod)} == {"web-1"}
        assert api_server.get(ReplicaSet, "web").metadata.annotations == {RUNNING: "1"}
        assert api_server.get(Namespace, "default").metadata.labels["example.com/managed"] == "yes"
        assert api_server.get(ServiceAccount, "default").name == "default"
        api_server.delete(ServiceAccount, "default")
        await trio.sleep(1)
        assert api_server.get(ServiceAccount, "default").name == "default"
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []


@asynccontextmanager
async def filled(
    client: Client, name: str, *, lead: Leadership | None = None, fencing_log: Path | str = os.devnull
) -> AsyncIterator[Worker]:
    """Create one worker with filled caches; it does not run."""
    factory = SharedInformerFactory(client)
    context = ManagerContext(client=client, factory=factory, name=name, leadership=lead)
    file = os.open(fencing_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    worker = WORKERS[name](context, factory, Settings, file)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        yield worker
        nursery.cancel_scope.cancel()
    os.close(file)


async def test_a_pod_that_has_ended_is_kept_until_it_is_old_enough(api_server: APIServer, client: Client) -> None:
    api_server.create(pod("done", "Succeeded"))
    async with filled(client, "pod-janitor") as janitor:
        again = await janitor.reconcile(Request("default", "done"))
    assert isinstance(again, RequeueAfter)
    assert 3500 < again.after <= 3600
    assert [each.name for each in api_server.list(Pod)] == ["done"]


async def test_nothing_is_written_when_the_lease_is_no_longer_held(
    api_server: APIServer, client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    async with (
        leadership(client, name="the-lease", namespace="default", identity="a") as lead,
        filled(client, "namespace-labeller", lead=lead, fencing_log=path) as worker,
    ):
        await worker.reconcile(Request(None, "default"))
    log = Entry.read(path)
    assert [(entry.identity, entry.token, entry.controller, entry.what) for entry in log] == [
        ("a", 0, "namespace-labeller", "act")
    ]
    assert not lead.is_held
    assert not api_server.get(Lease, "the-lease").spec.holder_identity
    async with filled(client, "namespace-labeller", lead=lead, fencing_log=path) as worker:
        await worker.reconcile(Request(None, "kube-system"))
    assert Entry.read(path) == log
    assert api_server.get(Namespace, "default").metadata.labels.items() >= LABELS.items()
    assert not api_server.get(Namespace, "kube-system").metadata.labels.items() >= LABELS.items()


async def test_a_conflicting_change_is_left_to_the_next_event(api_server: APIServer, client: Client) -> None:
    async with filled(client, "namespace-labeller") as worker:
        # No checkpoint between here and the request, so the cache is not updated.
        api_server.patch(Namespace, "default", {"metadata": {"labels": {"other": "1"}}})
        await worker.reconcile(Request(None, "default"))
    labels = api_server.get(Namespace, "default").metadata.labels
    assert labels["other"] == "1"
    assert "example.com/managed" not in labels


@pytest.mark.parametrize(
    "text",
    [
        "namespace_labels: {a: 1}",
        "keep_pods: .nan",
        "keep_pods: -1",
        "color: red",
    ],
)
def test_an_invalid_configuration_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError):
        Settings.parse(text)


# --- as a process -----------------------------------------------------------------------------------------------------


async def wait_for(program: Program, text: str, times: int = 1) -> str:
    """Wait until so many log lines contain a text; returns the last one."""
    found: list[str] = []

    def is_there(_: object) -> bool:
        found[:] = [line for line in program.errors if text in line]
        return len(found) >= times

    await program.wait_for(is_there)
    return found[-1]


async def test_embedded_it_runs_and_serves_health_and_metrics_over_http(tmp_path: Path) -> None:
    log = tmp_path / "fencing.log"
    command = [MANAGER, "--embedded", "--leader-elect", "--identity", "a", "--http", "127.0.0.1:0"]
    with trio.fail_after(60):
        async with running(*command, "--controllers", "*,-pod-janitor", "--fencing-log", str(log)) as program:
            url = (await wait_for(program, "INFO: serving ")).removeprefix("INFO: serving ")
            await wait_for(program, "namespace-labeller: patched", times=4)
            async with httpx.AsyncClient(base_url=url) as http:
                health, metrics = await http.get("/healthz?verbose"), await http.get("/metrics")
                ready = await http.get("/readyz?verbose")
            assert health.status_code == metrics.status_code == ready.status_code == 200
            assert "[+]leaderElection ok\n" in health.text
            assert "[+]replica-counter ok\n" in health.text
            assert "[+]caches ok\n" in ready.text
            assert 'leader_election_master_status{name="controller-manager"} 1.0\n' in metrics.text
            assert 'controller_runtime_reconcile_total{controller="namespace-labeller"' in metrics.text
            assert await program.interrupt() == 0
    assert not any("pod-janitor: start" in line for line in program.errors)
    assert not any("controller replica-counter: start" in line for line in program.errors)
    entries = Entry.read(log)
    assert overlaps(entries) == []
    for name in ("namespace-labeller", "replica-counter"):
        found = [entry.what for entry in entries if entry.controller == name]
        assert found == ["begin", *["act"] * (len(found) - 2), "end"]
    assert len([entry for entry in entries if entry.controller == "namespace-labeller"]) >= 6


async def test_a_replica_waits_for_the_leader_and_a_changed_configuration_applies(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    server = APIServer()
    kubeconfig, config, log = tmp_path / "kubeconfig", tmp_path / "config.yaml", tmp_path / "fencing.log"
    kubeconfig.write_text(KUBECONFIG.format(url=await nursery.start(serve_http, server)))
    config.write_text("namespace_labels: {colour: blue}")
    command = [MANAGER, "--kubeconfig", str(kubeconfig), "--config", str(config), "--fencing-log", str(log)]
    command += ["--leader-elect", "--retry-period", "0.2"]
    with trio.fail_after(60):
        async with running(*command, "--identity", "a") as first:
            await wait_for(first, "namespace-labeller: patched", times=4)
            async with running(*command, "--identity", "b") as second:
                await wait_for(second, ": held by 'a'; 'b' waits")
                config.write_text("namespace_labels: {colour: green}")
                await wait_for(first, "reloaded")
                server.create(namespace("new"))
                await wait_for(first, "namespace-labeller: patched new")
                first.process.terminate()
                assert await first.wait_until_over() == 0
                await wait_for(second, "namespace-labeller: patched default")
                assert await second.interrupt() == 0
    assert server.get(Namespace, "new").metadata.labels["colour"] == "green"
    assert server.get(Namespace, "default").metadata.labels["colour"] == "green"
    entries = Entry.read(log)
    assert overlaps(entries) == late_writes(entries) == []
    assert {(entry.identity, entry.token) for entry in entries} == {("a", 0), ("b", 1)}


def test_embedded_every_controller_does_something(tmp_path: Path) -> None:
    code, lines, errors = result_here(MANAGER, "--embedded", is_virtual=True, interrupt_after=20)
    assert (code, lines) == (0, [])
    for name, what in {
        "namespace-labeller": "patched team-1",
        "pod-janitor": "deleted default/web-0",
        "replica-counter": "patched default/web",
        "serviceaccount": "created team-1/default",
    }.items():
        assert f"INFO: {name}: {what}" in errors
    assert not any("Traceback" in line or "ERROR" in line for line in errors)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--controllers", "pod-cleaner"], "unknown controllers in the list 'pod-cleaner': 'pod-cleaner'"),
        (["--lease-duration", "5"], "lease_duration must be longer than renew_deadline"),
        (["--embedded", "--kubeconfig", "x"], "--embedded cannot be combined with --kubeconfig"),
        (["--config", "missing.yaml"], "there is no file missing.yaml"),
        (["--http", "localhost"], "argument --http: cannot listen on 'localhost': it must be host:port"),
        (["--http", ":0:0"], "argument --http: cannot listen on ':0:0': an IPv6 address is written in brackets"),
        (["--start-interval", "-1"], "-1 is not a number of seconds"),
        (["--fencing-log", "missing/log"], "missing/log: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_reported_in_one_line(given: Sequence[str], message: str) -> None:
    code, lines, errors = result_here(MANAGER, *given)
    assert (code, lines) == (2, [])
    assert message in errors[-1]
    assert errors[-1].startswith("controller_manager.py: error: ")


# --- checks of a fencing log ------------------------------------------------------------------------------------------


def entries_of(*lines: str) -> list[Entry]:
    """Parse entries from ``TIME TOKEN WHAT`` or ``TIME TOKEN WHAT IDENTITY``."""
    made: list[Entry] = []
    for line in lines:
        time, token, what, identity = (*line.split(), "")[:4]
        made.append(Entry(float(time), identity or f"r{token}", int(token), "c", what))  # type: ignore[arg-type]  # the callers' literals are valid
    return made


IN_TURN = ["1 0 begin", "2 0 act", "3 0 end", "4 1 begin", "5 1 act"]


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        (IN_TURN, 0),
        ([*IN_TURN, "6 0 act"], 1),
        ([*IN_TURN, "6 1 begin r9"], 1),
        ([*IN_TURN, "6 1 act r9"], 1),
        ([*IN_TURN, "6 2 act"], 1),
        ([*IN_TURN, "6 0 begin"], 1),
        ([*IN_TURN, "6 1 end", "7 1 act"], 1),
        (["1 0 begin", "2 1 begin", "3 0 act", "4 0 act"], 2),
        (["1 0 begin", "2 1 begin", "3 0 end"], 1),
    ],
)
def test_every_act_after_a_later_term_has_begun_is_found(lines: list[str], faults: int) -> None:
    assert len(overlaps(entries_of(*lines))) == faults
    assert len(overlaps(reversed(entries_of(*lines)))) == faults


def test_a_stopped_process_may_end_late_but_not_act() -> None:
    began = ["1 0 begin", "2 1 begin"]
    assert overlaps(entries_of(*began, "3 0 end"), stopped={0}) == []
    assert len(overlaps(entries_of(*began, "3 0 act", "4 0 end"), stopped={0})) == 1
    assert len(overlaps(entries_of(*began, "3 0 end"), stopped={1})) == 1


def test_a_late_write_is_found_by_its_position_in_the_log() -> None:
    log = entries_of("1 0 begin", "4 1 begin", "2 0 act", "5 0 end")
    assert overlaps(log, stopped={0}) == []
    assert late_writes(log) == [log[2]]
    assert late_writes(sorted(log, key=lambda entry: entry.time)) == []
