"""The small programs in ``examples/``; the larger ones have their own test files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from examples import bad_objects, custom_resource, indexes, list_and_watch, many_namespaces, transforms, work_queue
from tests.support.processes import HERE_OR_AS_PROCESS, KUBECONFIG, Result, result_here, running, serving_in_a_thread
from trioformer import Client, SharedInformerFactory
from trioformer.models import from_dict, to_dict
from trioformer.models.apps_v1 import Deployment, ReplicaSet
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer, serve_http


def pod(name: str, *, app: str = "web", node: str = "node-1", image: str = "nginx") -> Pod:
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
    spec = {"nodeName": node, "containers": [{"name": "main", "image": image}]}
    return from_dict(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


@pytest.fixture
async def served(nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> APIServer:
    """An embedded API server on a socket, with a kubeconfig in ``$KUBECONFIG``."""
    server = APIServer()
    url = await nursery.start(serve_http, server)
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG.format(url=url))
    monkeypatch.setenv("KUBECONFIG", str(file))
    return server


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[APIServer]:
    """The same in a thread with its own event loop, for programs that run in this process."""
    server = APIServer()
    with serving_in_a_thread(partial(serve_http, server)) as url:
        file = tmp_path / "kubeconfig"
        file.write_text(KUBECONFIG.format(url=url))
        monkeypatch.setenv("KUBECONFIG", str(file))
        yield server


@pytest.fixture(params=HERE_OR_AS_PROCESS)
def result(request: pytest.FixtureRequest) -> Result:
    """Runs a program that ends by itself."""
    return request.param  # type: ignore[no-any-return]  # pytest does not know


async def test_the_readmes_program_counts_pods_and_follows_them(served: APIServer) -> None:
    served.create(pod("web-0"))
    served.create(pod("api-0", app="api"))
    with trio.fail_after(30):
        async with running("examples/follow_pods.py") as program:
            await program.wait_for_line("1 pods of app=web")
            served.create(pod("web-1"))
            await program.wait_for_line("new: web-1")
            served.patch(Pod, "web-1", {"status": {"phase": "Failed"}})
            await program.wait_for_line("changed: web-1 Failed")
            served.delete(Pod, "web-1")
            await program.wait_for_line("gone: web-1")
    assert program.errors == []


async def test_the_filtering_handler_reports_failures_and_their_end(served: APIServer) -> None:
    served.create(pod("works"))
    served.create(pod("fails"))
    served.patch(Pod, "fails", {"status": {"phase": "Failed"}})
    with trio.fail_after(30):
        async with running("examples/filtering_handler.py") as program:
            await program.wait_for_line("0 could not be handled; waiting for more")
            served.patch(Pod, "works", {"status": {"phase": "Failed"}})
            await program.wait_for_line("failed: works")
            served.patch(Pod, "works", {"status": {"phase": "Running"}})
            await program.wait_for_line("no longer failed: works")
            served.delete(Pod, "works")
            served.delete(Pod, "fails")
            await program.wait_for_line("no longer failed: fails")
    assert program.lines[0] == "had failed: fails"
    assert len(program.lines) == 5
    assert program.errors == []


async def test_listing_and_watching_resumes_when_the_server_ends_the_watch(served: APIServer) -> None:
    served.create(pod("web-0"))
    with trio.fail_after(30):
        async with running("examples/list_and_watch.py") as program:
            await program.wait_for(lambda lines: any(line.split() == ["web-0", "Running", "node-1"] for line in lines))
            served.create(pod("web-1"))
            await program.wait_for(lambda lines: any(line.split() == ["ADDED", "web-1"] for line in lines))
            served.disconnect_watches()
            await program.wait_for(lambda lines: any(line.split() == ["web-1", "Running", "node-1"] for line in lines))
    assert program.errors == []


def test_listing_and_watching_ends_after_the_given_seconds(beside: APIServer, result: Result) -> None:
    beside.create(pod("web-0"))
    code, lines, errors = result("examples/list_and_watch.py", "--for", "0.1")
    assert (code, len(lines), errors) == (0, 1, [])


async def test_wait_for_waits_until_a_pod_is_ready_and_until_it_is_deleted(served: APIServer) -> None:
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    with trio.fail_after(30):
        async with running("examples/wait_for.py") as program:
            await program.wait_for_line("ADDED    waited-for")
            served.patch(Pod, "waited-for", ready)
            await program.wait_for_line("waited-for is ready on no node")
            assert await program.wait_until_over() == 0
            await program.wait_for_line("waited-for is gone")
    assert served.list(Pod) == []
    assert program.errors == []


def test_a_pod_that_does_not_become_ready_is_reported_and_deleted(beside: APIServer, result: Result) -> None:
    code, _, errors = result("examples/wait_for.py", "--for", "0.5")
    assert (code, errors) == (1, ["wait_for: waited-for was not ready within 0.5 s"])
    assert beside.list(Pod) == []


async def test_a_pod_is_labelled_and_a_missing_one_reported(
    api_server: APIServer, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    api_server.create(pod("web-0"))
    await list_and_watch.label(client, "default", "web-0", seen="yes")
    await list_and_watch.label(client, "default", "web-9", seen="yes")
    assert api_server.get(Pod, "web-0").metadata.labels == {"app": "web", "seen": "yes"}
    assert capsys.readouterr().out == "there is no pod web-9\n"


async def test_the_index_report_lists_nodes_and_images(
    api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    for made in (pod("a"), pod("b"), pod("c", node="node-2", image="busybox"), pod("d", node="")):
        api_server.create(made)
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod, indexers=indexes.INDEXERS)
    await nursery.start(factory.run)
    assert indexes.report(informer.lister) == ["node-1: a, b", "node-2: c", "busybox: 1", "nginx: 3"]


async def test_bad_objects_are_named_beside_the_sum_of_the_others(
    api_server: APIServer, client: Client, nursery: trio.Nursery, capsys: pytest.CaptureFixture[str]
) -> None:
    def deployment(name: str, replicas: object, containers: object = ()) -> Deployment:
        spec = {"replicas": replicas, "template": {"spec": {"containers": containers}}}
        return from_dict(Deployment, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    for made in (deployment("a", 2), deployment("b", "three"), deployment("c", 4, [{"image": "nginx"}])):
        api_server.create(made)
    api_server.create(deployment("d", 1, "no list"))
    factory = SharedInformerFactory(client)
    informer = factory.informer(Deployment, transform=bad_objects.checked)
    await nursery.start(factory.run)
    assert bad_objects.total(informer.lister) == "7 replicas, without the newest state of default/b (undecodable)"
    nursery.start_soon(bad_objects.follow, informer)
    await trio.testing.wait_all_tasks_blocked()
    first, second, third = capsys.readouterr().out.splitlines()
    assert (first, second) == ("a", "c nginx")
    assert third.startswith("d is skipped: ")
    assert sorted(informer.lister.quarantined()) == ["default/b"]


async def test_a_transform_keeps_the_names_and_the_cache_has_the_written_object(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    assert await transforms.write_and_read(client, "default") == ["motd: ''", "empty: ''"]


def test_the_transforms_program_reads_its_write_from_the_cache(beside: APIServer, result: Result) -> None:
    assert result("examples/transforms.py") == (0, ["motd: ''", "empty: ''"], [])


def test_the_index_report_is_printed(beside: APIServer, result: Result) -> None:
    beside.create(pod("a"))
    assert result("examples/indexes.py") == (0, ["node-1: a", "nginx: 1"], [])


async def test_readable_kinds_are_counted_and_forbidden_ones_reported(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client
) -> None:
    api_server.create(pod("a"))
    api_server.fail_next(100, resource="secrets", status=403)
    (pods, config_maps, secrets), is_any_counted = await many_namespaces.count(client, ["kube-system", "default"])
    assert is_any_counted
    assert pods == "Pod in namespaces default, kube-system: 1"
    assert config_maps == "metadata of ConfigMap in namespaces default, kube-system: 0"
    assert secrets.startswith("metadata of Secret in namespaces default, kube-system: failed after ")
    assert "403" in secrets


def test_the_counts_of_namespaces_are_printed(beside: APIServer, result: Result) -> None:
    code, lines, errors = result("examples/many_namespaces.py", "default", "kube-system")
    assert (code, len(lines), errors) == (0, 3, [])


def test_it_is_an_error_when_nothing_could_be_counted(beside: APIServer, result: Result) -> None:
    for resource in ("pods", "configmaps", "secrets"):
        beside.fail_next(100, resource=resource, status=403)
    code, lines, errors = result("examples/many_namespaces.py", "default")
    assert (code, len(lines), errors) == (1, 3, [])


def test_a_custom_resource_is_created_and_scaled(beside: APIServer, result: Result) -> None:
    assert result("examples/custom_resource.py") == (0, ["every-five-minutes 3"], [])


async def test_scaling_a_custom_resource_keeps_unknown_fields(api_server: APIServer, client: Client) -> None:
    api_server.register(custom_resource.CronTab)
    api_server.create(
        {
            "apiVersion": "stable.example.com/v1",
            "kind": "CronTab",
            "metadata": {"name": "nightly"},
            "spec": {"cronSpec": "0 3 * * *", "suspend": True},
        }
    )
    changed = await custom_resource.scale(client, "default", "nightly", replicas=2)
    assert to_dict(changed)["spec"] == {"cronSpec": "0 3 * * *", "suspend": True, "replicas": 2}


def test_the_apis_of_a_server_are_read_with_httpx(result: Result) -> None:
    code, lines, errors = result("examples/served_apis.py", "--embedded", is_virtual=True)
    assert (code, errors) == (0, [])
    assert [line for line in lines if line.startswith("api/v1: ")]


def test_objects_without_classes_are_shown_resized_and_counted(result: Result) -> None:
    lines = ["Widget first: {'size': 2, 'color': 'red'}", "widgets: 1, po: 3", "api: 1, web: 2"]
    assert result("examples/dynamic_kinds.py", "--embedded", is_virtual=True) == (0, lines, [])


def test_the_objects_of_a_kind_are_shown_by_its_name(beside: APIServer, result: Result) -> None:
    beside.register(custom_resource.CronTab)
    beside.create(
        {
            "apiVersion": "stable.example.com/v1",
            "kind": "CronTab",
            "metadata": {"name": "nightly"},
            "spec": {"image": "busybox"},
        }
    )
    found = result("examples/dynamic_kinds.py", "--api-version", "stable.example.com/v1", "CronTab")
    assert found == (0, ["CronTab nightly: {'image': 'busybox'}"], [])
    for name in ("crontabs.stable", "CronTab"):
        assert result("examples/dynamic_kinds.py", name) == (0, ["1"], [])


def test_a_namespace_of_a_kind_without_namespaces_is_reported() -> None:
    found = result_here("examples/dynamic_kinds.py", "nodes", "--embedded", "-n", "default", is_virtual=True)
    assert found == (1, [], ["dynamic_kinds: nodes are not namespaced; omit the namespace 'default'"])


async def test_pages_are_published_or_dropped_after_too_many_failures(
    autojump_clock: trio.testing.MockClock, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    await work_queue.Publisher(client.api(ConfigMap, "default")).serve(["index", "news:2", "lost:99"], seconds=1)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == [
        "index: published",
        "lost:99: it is locked, dropped",
        *["lost:99: it is locked, retrying"] * 5,
        *["news:2: it is locked, retrying"] * 2,
        "news:2: published",
    ]
    assert lines[-1] == "lost:99: it is locked, dropped"
    assert sorted(made.name for made in await client.api(ConfigMap).list()) == ["index", "news"]


def test_pages_on_the_command_line_are_published(result: Result) -> None:
    found = result("examples/work_queue.py", "index", "--for", "0.1", "--embedded", is_virtual=True)
    assert found == (0, ["index: published"], [])


def replica_set(name: str) -> dict[str, object]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def owned(made: Pod, owner: str) -> Pod:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u", "controller": True}
    patch = to_dict(made)
    patch["metadata"]["ownerReferences"] = [reference]
    return from_dict(Pod, patch)


async def test_the_pods_of_replica_sets_are_counted_and_the_program_shuts_down_cleanly(served: APIServer) -> None:
    served.create(replica_set("web"))
    served.create(owned(pod("web-0"), "web"))
    with trio.fail_after(30):
        async with running("examples/replica_counter.py") as program:
            await program.wait_for_line("default/web: 1 running")
            served.create(owned(pod("web-1"), "web"))
            await program.wait_for_line("default/web: 2 running")
            served.delete(Pod, "web-0")
            await program.wait_for(lambda lines: lines.count("default/web: 1 running") == 2)
            assert await program.interrupt() == 0
    assert program.errors == []
    assert served.get(ReplicaSet, "web").metadata.annotations == {"example.com/running": "1"}


async def test_a_changed_count_is_corrected_and_a_failed_one_waits_for_the_next_event(
    served: APIServer,
) -> None:
    served.create(replica_set("web"))
    with trio.fail_after(30):
        async with running("examples/replica_counter.py") as program:
            await program.wait_for_line("default/web: 0 running")
            served.patch(ReplicaSet, "web", {"metadata": {"annotations": {"example.com/running": "many"}}})
            await program.wait_for(lambda lines: lines.count("default/web: 0 running") == 2)
            served.fail_next(6, verb="patch", resource="replicasets", status=403)
            served.create(owned(pod("web-0"), "web"))
            await program.wait_for(lambda lines: lines[-1].startswith("default/web: dropped after "))
            served.create(owned(pod("web-1"), "web"))
            await program.wait_for_line("default/web: 2 running")
    assert "default/web: 1 running" not in program.lines


async def test_a_terminated_leader_cleans_up_and_the_next_replica_leads(served: APIServer) -> None:
    leader = ("examples/leader.py", "--retry-period", "1", "--identity")
    with trio.fail_after(30):
        async with running(*leader, "a") as first:
            await first.wait_for_line("a leads, transitions 0")
            async with running(*leader, "b") as second:
                await second.wait_for_line("the leader is a")
                first.process.terminate()
                assert await first.wait_until_over() == 143
                await first.wait_for_line("a has cleaned up")
                await second.wait_for_line("b leads, transitions 1")
                assert await second.interrupt() == 130
                await second.wait_for_line("b has cleaned up")
    assert first.errors == second.errors == []
