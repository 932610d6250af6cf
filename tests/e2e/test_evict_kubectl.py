"""Two equal nodes are drained at the same time: one by ``evict_pods`` and one by ``kubectl drain``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from examples.test_maintenance import cordon
from tests.e2e.workloads import is_rolled_out, make_namespace
from trioformer import Client, SharedInformerFactory, open_client
from trioformer.cache import Added, Updated
from trioformer.models import ObjectMeta, from_dict, key_of
from trioformer.models.apps_v1 import DaemonSet, Deployment, StatefulSet
from trioformer.models.core_v1 import Binding, Node, ObjectReference, Pod, ServiceAccount
from trioformer.models.policy_v1 import PodDisruptionBudget
from trioformer.pods import evict_pods
from trioformer.pods._evict import PodEviction
from trioformer.testing import ControlPlane
from trioformer.watchtools import created, has_condition, has_field, resuming_watch, wait_for

TOOLS = ("trioformer", "kubectl")
GRACE = 3
HEALTHY = {"web": 4, "cache": 1}
"""The pods that each budget requires."""
EVICTED = {"web": 6, "db": 3, "cache": 2, "bare": 1, "finished": 1}
LEFT = {"agent": 1, "static": 1}


@pytest.fixture(scope="module")
def cluster(assets: Path) -> Iterator[ControlPlane]:
    """A control plane with two nodes for each tool."""
    plane = ControlPlane(
        assets=assets, controller_manager=True, nodes=[f"{tool}-{one}" for tool in TOOLS for one in "ab"]
    )
    trio.run(plane.__aenter__)
    yield plane
    trio.run(plane.__aexit__, None, None, None)


async def schedule(client: Client, *, task_status: trio.TaskStatus[None]) -> None:
    """Be the scheduler: bind each pod to the first node that it may run on."""
    factory = SharedInformerFactory(client)
    nodes, waiting = factory.informer(Node), factory.informer(Pod, field_selector="spec.nodeName=")
    async with trio.open_nursery() as nursery:
        with waiting.subscribe() as notifications:
            await nursery.start(factory.run)
            task_status.started()
            async for notification in notifications:
                match notification:
                    case Added(pod) | Updated(_, pod) if not pod.metadata.deletion_timestamp:
                        names = [pinned_to(pod)] if pinned_to(pod) else nodes_for(pod, nodes.lister.list())
                        target = ObjectReference(kind="Node", name=min(names))
                        binding = Binding(metadata=ObjectMeta(name=pod.name), target=target)
                        await client.api(Pod, pod.namespace).create_subresource(pod, "binding", binding)


def pinned_to(pod: Pod) -> str:
    """Return the node of a pod of a DaemonSet, or an empty string."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required.node_selector_terms[0].match_fields[0].values[0] if required else ""


def nodes_for(pod: Pod, nodes: list[Node]) -> list[str]:
    wanted = set(pod.spec.node_selector.items())
    return [node.name for node in nodes if wanted <= set(node.metadata.labels.items()) and not node.spec.unschedulable]


@attrs.define(eq=False)
class Site:
    """The nodes and pods for one tool, and what a watch of its pods has shown."""

    tool: str
    client: Client
    namespace: str
    pods: dict[str, Pod] = attrs.field(factory=dict)
    """By uid."""
    healthy: dict[str, int] = attrs.field(factory=dict)
    """The lowest number of ready pods of each budget."""
    graces: dict[str, tuple[str, int]] = attrs.field(factory=dict)
    """The app and the grace period of each pod that has been terminating, by uid."""
    seconds: float = 0
    blocked: int = 0

    @property
    def node(self) -> str:
        return f"{self.tool}-a"

    def template(self, app: str, **more: object) -> dict[str, Any]:
        containers = [{"name": "main", "image": "busybox"}]
        spec = {"nodeSelector": {"tool": self.tool}, "containers": containers, **more}
        return {"metadata": {"labels": {"app": app}}, "spec": spec}

    async def create(self) -> None:
        """Create pods of all sorts on the first node."""
        client, namespace = self.client, self.namespace
        for one in "ab":
            await client.api(Node).patch(f"{self.tool}-{one}", {"metadata": {"labels": {"tool": self.tool}}})
        await wait_for(client.api(ServiceAccount, namespace), "default", created())
        deployments, sets = client.api(Deployment, namespace), client.api(StatefulSet, namespace)
        data = {"volumes": [{"name": "data", "emptyDir": {}}]}
        for app, replicas, template in (
            ("web", 6, self.template("web")),
            ("cache", 2, self.template("cache", **data)),
        ):
            spec = {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template}
            await deployments.create(from_dict(Deployment, {"metadata": {"name": app}, "spec": spec}))
        # No budget: the disruption controller may count the next db-0 as evicted for two minutes, because of its name.
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": "db"}}, "template": self.template("db")}
        await sets.create(from_dict(StatefulSet, {"metadata": {"name": "db"}, "spec": spec}))
        spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": self.template("agent")}
        await client.api(DaemonSet, namespace).create(
            from_dict(DaemonSet, {"metadata": {"name": "agent"}, "spec": spec})
        )
        pods = client.api(Pod, namespace)
        mirror = {"annotations": {"kubernetes.io/config.mirror": "hash"}}
        for app, metadata, more in (
            ("bare", {}, {}),
            ("finished", {}, {"restartPolicy": "Never"}),
            ("static", mirror, {"nodeName": self.node}),
        ):
            pod = self.template(app, **more)
            pod["metadata"] |= {"name": app, **metadata}
            await pods.create(from_dict(Pod, pod))
            await wait_for(pods, app, has_condition("Ready"))
        await pods.patch("finished", {"status": {"phase": "Succeeded"}}, subresource="status")
        await wait_for(client.api(DaemonSet, namespace), "agent", has_field("status.number_ready", 2))
        for name in ("web", "cache"):
            await wait_for(deployments, name, is_rolled_out)
        await wait_for(sets, "db", is_rolled_out)
        budgets = client.api(PodDisruptionBudget, namespace)
        for app, limit in (("web", {"minAvailable": 4}), ("cache", {"maxUnavailable": 1})):
            budget = {"metadata": {"name": app}, "spec": {"selector": {"matchLabels": {"app": app}}, **limit}}
            await budgets.create(from_dict(PodDisruptionBudget, budget))
            await wait_for(budgets, app, lambda found: found.status.disruptions_allowed > 0)

    async def observe(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Count the ready pods in every state that the server has had."""
        pods = self.client.api(Pod, self.namespace)
        listing = await pods.list()
        self.pods = {pod.uid: pod for pod in listing}
        task_status.started()
        async with resuming_watch(pods, resource_version=listing.resource_version) as events:
            async for event in events:
                pod = event.object
                if event.type == "DELETED":
                    self.pods.pop(pod.uid, None)
                else:
                    self.pods[pod.uid] = pod
                    if seconds := pod.metadata.deletion_grace_period_seconds:
                        self.graces[pod.uid] = pod.metadata.labels["app"], seconds
                is_ready = has_condition("Ready")
                ready = [one for one in self.pods.values() if is_ready(one) and not one.metadata.deletion_timestamp]
                counts = Counter(one.metadata.labels["app"] for one in ready)
                self.healthy = {app: min(counts[app], self.healthy.get(app, 99)) for app in HEALTHY}

    async def on_node(self) -> dict[str, Pod]:
        """Return the pods on the first node, by key."""
        found = await self.client.api(Pod).list(field_selector={"spec.nodeName": self.node})
        return {key_of(pod): pod for pod in found}


def apps(pods: dict[str, Pod], keys: set[str]) -> dict[str, int]:
    return dict(Counter(pods[key].metadata.labels["app"] for key in keys))


async def test_both_evict_the_same_pods_and_respect_the_budgets(cluster: ControlPlane, assets: Path) -> None:
    command = [str(assets / "kubectl"), "--kubeconfig", str(cluster.kubeconfig), "drain", "kubectl-a"]
    command += ["--ignore-daemonsets"]
    reports: list[PodEviction] = []
    evicted: dict[str, set[str]] = {}

    async def by_evict_pods(site: Site) -> None:
        began = trio.current_time()
        gone = await evict_pods(
            site.client.api(Pod),
            node=site.node,
            force=True,
            delete_emptydir_data=True,
            grace_period_seconds=GRACE,
            on_progress=reports.append,
        )
        site.seconds = trio.current_time() - began
        site.blocked = sum(report.state == "blocked" for report in reports)
        evicted[site.tool] = {key_of(pod) for pod in gone}

    async def by_kubectl(site: Site) -> None:
        began = trio.current_time()
        flags = ["--force", "--delete-emptydir-data", f"--grace-period={GRACE}"]
        done = await trio.run_process([*command, *flags], capture_stdout=True, capture_stderr=True)
        site.seconds = trio.current_time() - began
        site.blocked = done.stderr.count(b"will retry after")
        names = re.findall(r"^pod/(\S+) evicted$", done.stdout.decode(), re.MULTILINE)
        evicted[site.tool] = {f"{site.namespace}/{name}" for name in names}

    with trio.fail_after(180):
        async with open_client(kubeconfig=cluster.kubeconfig) as client, trio.open_nursery() as nursery:
            await nursery.start(schedule, client)
            ours, theirs = [Site(tool, client, await make_namespace(client, tool)) for tool in TOOLS]
            await ours.create()
            await theirs.create()
            before = {site.tool: await site.on_node() for site in (ours, theirs)}

            await cordon(ours.client, ours.node)
            with pytest.raises(ExceptionGroup) as caught:
                await evict_pods(ours.client.api(Pod), node=ours.node)
            done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
            refused = set(re.findall(rf"{theirs.namespace}/[\w-]+", done.stderr.decode().partition("Warning")[0]))
            assert done.returncode == 1
            rejected = set(re.findall(rf"{ours.namespace}/[\w-]+", str(caught.value)))
            assert apps(before["trioformer"], rejected) == {
                "bare": 1,
                "cache": 2,
            }
            assert apps(before["kubectl"], refused) == {"bare": 1, "cache": 2}

            await nursery.start(ours.observe)
            await nursery.start(theirs.observe)
            async with trio.open_nursery() as drains:
                drains.start_soon(by_evict_pods, ours)
                drains.start_soon(by_kubectl, theirs)

            for site in (ours, theirs):
                after = await site.on_node()
                print(
                    f"{site.tool}: {len(evicted[site.tool])} pods evicted in {site.seconds:.1f} s, "
                    f"{site.blocked} requests blocked, at least {site.healthy} ready, left: {sorted(after)}"
                )
                assert apps(before[site.tool], evicted[site.tool]) == EVICTED
                assert Counter(pod.metadata.labels["app"] for pod in after.values()) == LEFT
                assert {key: pod.uid for key, pod in after.items()} == {
                    key: pod.uid for key, pod in before[site.tool].items() if key in after
                }
                assert all(site.healthy[app] >= HEALTHY[app] for app in HEALTHY)
                assert site.blocked > 0
            graces = Counter(ours.graces.values())
            assert graces == Counter(theirs.graces.values())
            assert graces["web", GRACE] == EVICTED["web"]
            nursery.cancel_scope.cancel()
