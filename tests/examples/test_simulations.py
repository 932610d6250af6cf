"""Stories for the operators in ``examples/``: no fault leaves them in another state than the same steps without it.

Not simulated are

- the programs that end by themselves, see ``ENDS_BY_ITSELF`` in ``programs.py``;
- those that only show what they see: ``filtering_handler.py``, ``follow_pods.py``, ``list_and_watch.py``,
  ``logs_of_a_deployment.py``, ``pod_logger.py``, ``bad_objects.py``, ``web/app.py`` and steps 1 to 3 of
  ``first_controller``;
- ``simple_watch.py`` and ``events.py``, which act on events and not on states, so that a fault may always cost one;
- ``leader.py``, which writes nothing but its Lease;
- ``command_line.py``, ``simulations.py``, ``test_*.py`` and step 6, which are helpers and tests;
- step 7, whose controller is that of step 8.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trio

from examples import (
    controller_manager,
    crd_operator,
    custom_controller,
    job_controller,
    replica_counter,
    restart_dependents,
    website_operator,
    workqueue_controller,
)
from examples.first_controller import step_4_reconcile, step_5_write_status, step_8_stop_cleanly
from trioformer import Client
from trioformer.manager import HTTPOptions
from trioformer.models import KubernetesObject
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.apps_v1 import Deployment, ReplicaSet, StatefulSet
from trioformer.models.batch_v1 import Job
from trioformer.models.core_v1 import Namespace, Pod, Secret, ServiceAccount
from trioformer.testing._simulation_options import options
from trioformer.testing.simulation import World, drawn, simulate, step

CONTAINERS = {"containers": [{"name": "web", "image": "nginx"}]}
MANAGER = controller_manager.make_parser().parse_args(["--leader-elect"])
NAMES = ("one", "two")


def made(api_version: str, kind: str, name: str, *, labels: dict[str, str] | None = None, **rest: object):
    """Return an object in the namespace ``default``."""
    metadata = {"name": name, "namespace": "default", "labels": labels or {}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def workload(kind: str, name: str, replicas: int):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": CONTAINERS}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return made("apps/v1", kind, name, spec=spec)


class Websites:
    """Websites, one of which may need a Secret."""

    kinds: tuple[type[KubernetesObject], ...] = (website_operator.Website, Secret)

    @step
    def create(self, world: World, name: str = drawn(*NAMES), replicas: int = drawn(0, 3)) -> None:
        world.create(made("example.com/v1", "Website", name, spec={"page": "hello", "replicas": replicas}))

    @step
    def change(self, world: World, name: str = drawn(*NAMES), page: str = drawn("", "new")) -> None:
        world.patch("websites.example.com", name, {"spec": {"page": page}})

    @step
    def scale(self, world: World, name: str = drawn(*NAMES), replicas: int = drawn(0, 3)) -> None:
        world.patch("websites.example.com", name, {"spec": {"replicas": replicas}})

    @step
    def delete(self, world: World, name: str = drawn(*NAMES)) -> None:
        world.delete("websites.example.com", name)


class WebsitesWithSecrets(Websites):
    @step
    def need_secret(self, world: World, secret: str = drawn("", "password")) -> None:
        world.patch("websites.example.com", "one", {"spec": {"secret": secret}})

    @step
    def create_secret(self, world: World) -> None:
        world.create(made("v1", "Secret", "password", stringData={"password": "1"}))

    @step
    def change_secret(self, world: World, password: str = drawn("2", "3")) -> None:
        world.patch(Secret, "password", {"stringData": {"password": password}})


class PlainWebsites(Websites):
    kinds = (crd_operator.Website,)
    kept_kinds = (CustomResourceDefinition,)  # the operator installs the definition of its kind, which stays

    @step
    def create_page_to_adopt(self, world: World) -> None:
        world.create(made("v1", "ConfigMap", "one", labels={crd_operator.LABEL: "one"}))


class Apps:
    """An App and its pods."""

    kinds: tuple[type[KubernetesObject], ...] = (step_4_reconcile.App, Pod)

    @step
    def create_app(self, world: World, min_ready: int = drawn(0, 2)) -> None:
        world.create(made("example.com/v1", "App", "web", spec={"minReady": min_ready}))

    @step
    def create_pod(self, world: World, name: str = drawn(*NAMES)) -> None:
        world.create(made("v1", "Pod", name, labels={"app": "web"}, spec=CONTAINERS))

    @step
    def change(self, world: World, min_ready: int = drawn(0, 2)) -> None:
        world.patch("apps.example.com", "web", {"spec": {"minReady": min_ready}})

    @step
    def kill_pod(self, world: World, name: str = drawn(*NAMES)) -> None:
        world.kill_pod(name)

    @step
    def delete_pod(self, world: World, name: str = drawn(*NAMES)) -> None:
        world.delete(Pod, name)

    @step
    def delete_app(self, world: World) -> None:
        world.delete("apps.example.com", "web")


class AppsWithStatus(Apps):
    kinds = (step_5_write_status.App, Pod)


class AppsWithProbes(Apps):
    kinds = (step_8_stop_cleanly.App, Pod)


class ReplicaSets:
    kinds: tuple[type[KubernetesObject], ...] = (ReplicaSet,)

    @step
    def create(self, world: World, name: str = drawn(*NAMES), replicas: int = drawn(0, 3)) -> None:
        world.create(workload("ReplicaSet", name, replicas))

    @step
    def scale(self, world: World, name: str = drawn(*NAMES), replicas: int = drawn(0, 3)) -> None:
        world.patch(ReplicaSet, name, {"spec": {"replicas": replicas}})

    @step
    def delete(self, world: World, name: str = drawn(*NAMES)) -> None:
        world.delete(ReplicaSet, name)


class Clusters(ReplicaSets):
    """Namespaces, ReplicaSets and pods that end."""

    kinds = (ReplicaSet, Namespace, Pod)
    # The operator deletes a pod when it is old by the clock of the replica, which may be ten minutes behind.
    ignored_paths = ("Pod",)
    # The namespaces of the cluster stay, and so do their accounts.
    kept_kinds = (ServiceAccount,)

    @step
    def create_namespace(self, world: World) -> None:
        world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})

    @step
    def change_label(self, world: World, value: str = drawn("yes", "no")) -> None:
        world.patch(Namespace, "team", {"metadata": {"labels": {"example.com/managed": value}}})

    @step
    def create_pod(self, world: World) -> None:
        world.create(made("v1", "Pod", "task", spec={**CONTAINERS, "restartPolicy": "Never"}))

    @step
    def end_pod(self, world: World) -> None:
        world.kill_pod("task")

    @step
    def delete_account(self, world: World) -> None:
        world.delete(ServiceAccount, "default", namespace="team")

    @step
    def delete_namespace(self, world: World) -> None:
        world.delete(Namespace, "team")


class Jobs:
    kinds = (Job,)
    # How many pods have run when the user suspends a Job depends on what happened before.
    ignored_paths = ("Pod", "Job status")

    def start(self, world: World) -> None:
        world.delay_pods(2.0)

    def eventually(self, world: World) -> None:
        for job in world.list(Job):
            succeeded = [
                pod
                for pod in world.list(Pod)
                if pod.status.phase == "Succeeded" and pod.name.startswith(f"{job.name}-")
            ]
            assert not job.status.active
            assert (job.status.succeeded or 0) == len(succeeded) <= job.spec.completions
            assert job.spec.suspend or (job_controller.is_finished(job) and len(succeeded) == job.spec.completions)

    @step
    def create(
        self, world: World, name: str = drawn(*NAMES), completions: int = drawn(1, 3), parallelism: int = drawn(1, 2)
    ) -> None:
        spec = {"completions": completions, "parallelism": parallelism, "backoffLimit": 1}
        spec |= {"managedBy": job_controller.MANAGED_BY}
        spec["template"] = {"spec": {**CONTAINERS, "restartPolicy": "Never"}}
        world.create(made("batch/v1", "Job", name, spec=spec))

    @step
    def suspend(self, world: World, name: str = drawn(*NAMES), suspend: bool = drawn(False, True)) -> None:
        world.patch(Job, name, {"spec": {"suspend": suspend}})

    @step
    def delete(self, world: World, name: str = drawn(*NAMES)) -> None:
        world.delete(Job, name)


class Pods:
    """Pods with the label of ``custom_controller.py``."""

    kinds: tuple[type[KubernetesObject], ...] = (Pod,)

    def start(self, world: World) -> None:
        world.delay_pods(2.0)  # so that the controllers see them while they are pending

    @step
    def create(self, world: World, name: str = drawn(*NAMES)) -> None:
        world.create(made("v1", "Pod", name, labels={"app": "nginx"}, spec=CONTAINERS))

    @step
    def label(self, world: World, name: str = drawn(*NAMES), value: str = drawn("a", "b")) -> None:
        world.patch(Pod, name, {"metadata": {"labels": {"seen": value}}})

    @step
    def kill(self, world: World, name: str = drawn(*NAMES)) -> None:
        world.kill_pod(name)

    @step
    def delete(self, world: World, name: str = drawn(*NAMES)) -> None:
        world.delete(Pod, name)


class PodsAndTools(Pods):
    kinds = (Pod, Deployment)
    # As the program of which it is a port, the operator remembers pending pods only until it ends.
    ignored_paths = ("kubectl.kubernetes.io/restartedAt",)

    def start(self, world: World) -> None:
        super().start(world)
        world.create(workload("Deployment", "tools", 1))


class Databases:
    kinds = (Deployment, StatefulSet)
    # A pod that is replaced twice while nobody looks has restarted once, and a paused Deployment is not rolled out.
    ignored_paths = ("example.com/restart", "example.com/rollout")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def always(self, world: World) -> None:
        for pod in world.list(Pod):
            if pod.name.startswith("db-"):
                self.counts[pod.uid] = sum(one.restart_count for one in pod.status.container_statuses)
        for web in world.list(Deployment):  # until it is deleted
            ledger = restart_dependents.Ledger.of(web)
            rollouts = web.spec.template.metadata.annotations.get(restart_dependents.ROLLOUT, "0")
            assert int(rollouts) == ledger.rollouts <= ledger.restarts <= sum(self.counts.values()) + len(self.counts)

    def eventually(self, world: World) -> None:
        web = world.get(Deployment, "web")
        ledger = restart_dependents.Ledger.of(web)
        assert ledger.rollouts == ledger.restarts or web.spec.paused

    def start(self, world: World) -> None:
        world.create(workload("Deployment", "web", 1))
        world.create(workload("StatefulSet", "db", 2))

    @step
    def restart(self, world: World, number: int = drawn(0, 1)) -> None:
        world.kill_pod(f"db-{number}")

    @step
    def replace(self, world: World, number: int = drawn(0, 1)) -> None:
        world.delete(Pod, f"db-{number}")

    @step
    def scale(self, world: World, replicas: int = drawn(1, 2)) -> None:
        world.patch(StatefulSet, "db", {"spec": {"replicas": replicas}})

    @step
    def pause(self, world: World, paused: bool = drawn(False, True)) -> None:
        world.patch(Deployment, "web", {"spec": {"paused": paused}})


async def first_controller_4(_: Client) -> None:
    await step_4_reconcile.main(embedded=False)


async def first_controller_5(_: Client) -> None:
    await step_5_write_status.main(embedded=False)


async def first_controller_8(_: Client) -> None:
    await step_8_stop_cleanly.main(False, HTTPOptions("127.0.0.1:8080"), trio.Event())


async def crds(client: Client) -> None:
    await crd_operator.serve(client, lambda: datetime.now(UTC), trio.Event())


async def counter(client: Client) -> None:
    await replica_counter.serve(client, trio.Event())


async def jobs(client: Client) -> None:
    await job_controller.serve(client, None, 2, trio.Event())


async def managers(client: Client) -> None:
    settings = controller_manager.Settings(keep_pods=10)
    metrics = controller_manager.Metrics()
    await controller_manager.run_manager(client, MANAGER, lambda: settings, metrics, trio.Event())


async def pods(client: Client) -> None:
    await workqueue_controller.serve(client, 2, trio.Event())


async def tools(client: Client) -> None:
    await custom_controller.serve(client, "default", trio.Event())


async def dependents(client: Client) -> None:
    await restart_dependents.serve(client, restart_dependents.requests({"default/web": ["default/db"]}))


OPERATORS = {
    "website_operator": (website_operator.serve, WebsitesWithSecrets, 2),
    "step_4_reconcile": (first_controller_4, Apps, 1),
    "step_5_write_status": (first_controller_5, AppsWithStatus, 1),
    "step_8_stop_cleanly": (first_controller_8, AppsWithProbes, 1),
    "crd_operator": (crds, PlainWebsites, 1),
    "replica_counter": (counter, ReplicaSets, 1),
    "job_controller": (jobs, Jobs, 1),
    "controller_manager": (managers, Clusters, 2),
    "workqueue_controller": (pods, Pods, 1),
    "custom_controller": (tools, PodsAndTools, 1),
    "restart_dependents": (dependents, Databases, 1),
}


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATORS)
def test_fifty_stories_of_an_example(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "directory", None)
    operator, scenario, replicas = OPERATORS[name]
    simulate(operator, scenario, stories=50, replicas=replicas).check()
