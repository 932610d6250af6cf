"""A cluster that lives: kube-controller-manager makes pods, kwok has them run, and informers see it all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e.test_control_plane import is_running, processes_that_name
from tests.e2e.workloads import (
    RESTARTED_AT,
    Reader,
    assert_up_to_date,
    deployment,
    fail,
    is_rolled_out,
    make_namespace,
    restart,
    restart_container,
    stateful_set,
)
from trioformer import SharedInformerFactory, open_client
from trioformer.client import Client
from trioformer.models.apps_v1 import Deployment, ReplicaSet, StatefulSet
from trioformer.models.core_v1 import Namespace, Node, Pod
from trioformer.testing import ControlPlane
from trioformer.testing.control_plane._control_plane import ControlPlaneError
from trioformer.watchtools import deleted, has_condition, wait_for


@asynccontextmanager
async def connected(cluster: ControlPlane) -> AsyncIterator[Client]:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        yield client


def are_running(pods: Iterable[Pod]) -> bool:
    return all(pod.status.phase == "Running" and has_condition("Ready")(pod) for pod in pods)


async def test_a_deployment_comes_up_is_restarted_and_takes_everything_with_it(cluster: ControlPlane) -> None:
    with trio.fail_after(60):
        async with connected(cluster) as client, trio.open_nursery() as nursery:
            namespace = await make_namespace(client, "deployment")
            factory = SharedInformerFactory(client, namespace=namespace)
            pods = factory.informer(Pod)
            replica_sets = factory.informer(ReplicaSet)
            deployments = factory.informer(Deployment)
            pod_reader, set_reader = Reader[Pod](), Reader[ReplicaSet]()
            pods.add_event_handler(pod_reader)
            replica_sets.add_event_handler(set_reader)
            await nursery.start(factory.run)
            api = client.api(Deployment, namespace=namespace)

            await api.create(deployment("web", replicas=3))
            await wait_for(api, "web", is_rolled_out)
            await pod_reader.wait_until(lambda seen: len(seen) == 3 and are_running(seen.values()))
            before = {pod.uid for pod in pod_reader.objects.values()}

            restarted = await restart(api, "web")
            await wait_for(api, "web", is_rolled_out)
            await pod_reader.wait_until(lambda seen: len(seen) == 3 and are_running(seen.values()))
            assert not before & {pod.uid for pod in pod_reader.objects.values()}
            assert {pod.metadata.annotations[RESTARTED_AT] for pod in pod_reader.objects.values()} == {
                restarted.spec.template.metadata.annotations[RESTARTED_AT]
            }
            assert len(set_reader.objects) == 2

            await assert_up_to_date(deployments, api, "web")
            await assert_up_to_date(replica_sets, client.api(ReplicaSet, namespace=namespace), min(set_reader.objects))
            await assert_up_to_date(pods, client.api(Pod, namespace=namespace), min(pod_reader.objects))

            await api.delete("web", propagation_policy="Foreground")
            await wait_for(api, "web", deleted())
            await set_reader.wait_until(lambda seen: not seen)
            await pod_reader.wait_until(lambda seen: not seen)
            assert len(pods.lister) == len(replica_sets.lister) == 0
            nursery.cancel_scope.cancel()


async def test_a_stateful_set_comes_up_in_order_is_restarted_and_takes_its_pods_with_it(cluster: ControlPlane) -> None:
    with trio.fail_after(60):
        async with connected(cluster) as client, trio.open_nursery() as nursery:
            namespace = await make_namespace(client, "stateful")
            factory = SharedInformerFactory(client, namespace=namespace)
            pods = factory.informer(Pod)
            reader = Reader[Pod]()
            pods.add_event_handler(reader)
            await nursery.start(factory.run)
            api = client.api(StatefulSet, namespace=namespace)

            await api.create(stateful_set("db", replicas=3))
            await wait_for(api, "db", is_rolled_out)
            await reader.wait_until(lambda seen: len(seen) == 3 and are_running(seen.values()))
            assert list(reader.objects) == ["db-0", "db-1", "db-2"]
            before = {pod.uid for pod in reader.objects.values()}

            await restart(api, "db")
            await wait_for(api, "db", is_rolled_out)
            await reader.wait_until(lambda seen: len(seen) == 3 and are_running(seen.values()))
            assert list(reader.objects) == ["db-2", "db-1", "db-0"]  # the last one is replaced first
            assert not before & {pod.uid for pod in reader.objects.values()}
            await assert_up_to_date(pods, client.api(Pod, namespace=namespace), "db-0")

            await api.delete("db", propagation_policy="Background")
            await reader.wait_until(lambda seen: not seen)
            nursery.cancel_scope.cancel()


async def test_a_deleted_or_failed_pod_is_replaced_and_a_container_only_restarts(
    cluster: ControlPlane,
) -> None:
    with trio.fail_after(60):
        async with connected(cluster) as client, trio.open_nursery() as nursery:
            namespace = await make_namespace(client, "replaced")
            factory = SharedInformerFactory(client, namespace=namespace)
            informer = factory.informer(Pod)
            reader = Reader[Pod]()
            informer.add_event_handler(reader)
            await nursery.start(factory.run)
            pods = client.api(Pod, namespace=namespace)

            def is_another(old: Pod) -> Callable[[dict[str, Pod]], bool]:
                return lambda seen: "db-0" in seen and seen["db-0"].uid != old.uid and are_running([seen["db-0"]])

            await client.api(StatefulSet, namespace=namespace).create(stateful_set("db", replicas=1))
            await reader.wait_until(lambda seen: "db-0" in seen and are_running(seen.values()))
            first = reader.objects["db-0"]

            await pods.delete("db-0")
            await reader.wait_until(is_another(first))
            second = reader.objects["db-0"]

            await fail(pods, "db-0")
            await reader.wait_until(is_another(second))
            assert any(state.uid == second.uid and state.status.phase == "Failed" for state in reader.states)

            for count in (1, 2):
                await informer.wait_until_at_least(await restart_container(pods, "db-0"))
                (pod,) = informer.lister
                (container,) = pod.status.container_statuses
                assert container.restart_count == count
                assert are_running([pod])
            await assert_up_to_date(informer, pods, "db-0")
            nursery.cancel_scope.cancel()


async def test_a_deleted_namespace_is_emptied(cluster: ControlPlane) -> None:
    with trio.fail_after(60):
        async with connected(cluster) as client:
            namespace = await make_namespace(client, "emptied")
            api = client.api(Deployment, namespace=namespace)
            await api.create(deployment("web", replicas=2))
            await wait_for(api, "web", is_rolled_out)
            await client.api(Namespace).delete(namespace)
            await wait_for(client.api(Namespace), namespace, deleted())
            assert not (await client.api(Pod, namespace=namespace).list()).items


async def test_leaving_stops_all_of_it(assets: Path) -> None:
    async with ControlPlane(assets=assets, controller_manager=True, nodes=["only"]) as cluster:
        directory, pids = cluster.directory, cluster.process_ids
        assert list(pids) == ["etcd", "kube-apiserver", "kube-controller-manager", "kwok"]
        assert len(processes_that_name(directory)) == 4
        async with connected(cluster) as client:
            assert [node.name for node in await client.api(Node).list()] == ["only"]
    assert processes_that_name(directory) == []
    assert not any(map(is_running, pids.values()))
    assert not directory.exists()


async def test_what_is_asked_for_and_missing_is_named_before_anything_starts(assets: Path, tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).symlink_to(assets / name)
    for wanted, missing in (
        (ControlPlane(assets=tmp_path, controller_manager=True), "kube-controller-manager"),
        (ControlPlane(assets=tmp_path, nodes=["node"]), "kwok"),
        (ControlPlane(assets=tmp_path, controller_manager=True, nodes=["node"]), "kube-controller-manager or kwok"),
    ):
        with pytest.raises(ControlPlaneError, match=f"cannot find {missing} in {tmp_path}"):
            async with wanted:
                raise AssertionError("started without")


async def test_kwok_without_its_stages_is_reported_before_anything_starts(assets: Path, tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kwok"):
        (tmp_path / name).symlink_to(assets / name)
    with pytest.raises(ControlPlaneError, match=r"kwok\.yaml"):
        async with ControlPlane(assets=tmp_path, directory=tmp_path / "plane", nodes=["node"]):
            raise AssertionError("started without")
    assert not (tmp_path / "plane").exists()
    assert processes_that_name(tmp_path) == []
