"""Several small controllers in one process; with leader election one of several replicas works, the others wait.

Run them against an API server in this process, or against the cluster that kubectl uses, with one or more replicas::

    python examples/controller_manager.py --embedded
    python examples/controller_manager.py --leader-elect --http 127.0.0.1:8080 --controllers '*,-pod-janitor'

- ``namespace-labeller`` adds labels to every namespace;
- ``pod-janitor`` deletes pods that have ended and are old enough;
- ``replica-counter`` writes the number of running pods of each ReplicaSet into an annotation.

``--config`` names a file that is read again when it changes; a resync applies it to all objects within a minute::

    namespace_labels: {example.com/managed: "yes"}
    keep_pods: 3600  # seconds
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import attrs
import trio
import yaml
from attrs import validators

from trioformer import ConflictError, NotFoundError, SharedInformerFactory, open_client, run
from trioformer.controller import Controller, Request, RequeueAfter, request_for_owner
from trioformer.leaderelection import LeaderElectionOptions
from trioformer.manager import LeaderElection, ManagerContext, enabled_controllers, follow_file, run_controllers
from trioformer.metrics import Metrics
from trioformer.models import KubernetesObject
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.core_v1 import Namespace, Pod
from trioformer.testing import APIServer, simulate_cluster

RUNNING = "example.com/running"

logger = logging.getLogger("controller_manager")
owner_of = request_for_owner(ReplicaSet)


@attrs.frozen
class Settings:
    """The content of the configuration file."""

    namespace_labels: Mapping[str, str] = attrs.field(
        factory=lambda: {"example.com/managed": "yes"},
        validator=validators.deep_mapping(validators.instance_of(str), validators.instance_of(str)),
    )
    keep_pods: float = attrs.field(
        default=3600.0, converter=float, validator=[validators.ge(0), validators.lt(math.inf)]
    )

    @classmethod
    def parse(cls, text: str) -> Settings:
        return cls(**yaml.safe_load(text) or {})


class Worker(ABC):
    """The base of the controllers: they write only while this process leads, and log each write.

    A process can be stopped between the check for leadership and the write, so that the write is late.  So each write
    has the resourceVersion of the object that was read: the server rejects it with a conflict when another process has
    written meanwhile.
    """

    def __init__(self, context: ManagerContext, settings: Callable[[], Settings], fencing_log: int) -> None:
        self.context, self.settings, self.fencing_log = context, settings, fencing_log
        self.name = context.name
        self.controller = Controller(self.name, self.reconcile)
        self.watch()

    @abstractmethod
    def watch(self) -> None:
        """Add informers to the controller."""

    @abstractmethod
    async def reconcile(self, request: Request) -> RequeueAfter | None:
        """Reconcile one object; idempotent."""

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.note("begin", time.monotonic())
        try:
            await self.controller.run(task_status=task_status)
        finally:
            self.note("end", time.monotonic())

    async def stop(self) -> None:
        await self.controller.stop()

    async def write(self, what: str, obj: KubernetesObject, request: Callable[[], Awaitable[object]]) -> None:
        """Send a request that changes an object, if this process still leads; otherwise the next leader does."""
        now, lead = time.monotonic(), self.context.leadership  # the logged time is not later than the check
        if lead is not None and not lead.is_held:
            return
        self.note("act", now)
        with suppress(ConflictError, NotFoundError):  # another process was faster; its event will follow
            await request()
            logger.info("%s: %s %s", self.name, what, Request.of(obj))

    async def patch(self, obj: KubernetesObject, **metadata: Mapping[str, str]) -> None:
        api = self.context.client.api(type(obj), namespace=obj.namespace)
        patch = {"metadata": {"resourceVersion": obj.resource_version, **metadata}}
        await self.write("patched", obj, partial(api.patch, obj.name, patch))

    def note(self, what: str, when: float) -> None:
        """Append a line to the file that all replicas share, in one write, so that lines do not mix."""
        lead = self.context.leadership
        if lead is not None:
            line = f"{when:.6f} {lead.identity} {lead.transitions} {self.name} {what}\n"
            os.write(self.fencing_log, line.encode())


class NamespaceLabeller(Worker):
    def watch(self) -> None:
        self.namespaces = self.context.factory.informer(Namespace)
        self.controller.watch(self.namespaces)

    async def reconcile(self, request: Request) -> None:
        namespace, labels = self.namespaces.lister.get(request.name), self.settings().namespace_labels
        if namespace is not None and not labels.items() <= namespace.metadata.labels.items():
            await self.patch(namespace, labels=labels)


class PodJanitor(Worker):
    def watch(self) -> None:
        self.pods = self.context.factory.informer(Pod)
        self.controller.watch(self.pods)

    async def reconcile(self, request: Request) -> RequeueAfter | None:
        pod = self.pods.lister.get(request)
        if pod is None or pod.metadata.deletion_timestamp or pod.status.phase not in ("Succeeded", "Failed"):
            return None
        age = datetime.now(UTC) - (pod.metadata.creation_timestamp or datetime.now(UTC))
        left = self.settings().keep_pods - age.total_seconds()
        if left > 0:
            return RequeueAfter(left)
        api = self.context.client.api(Pod, namespace=pod.namespace)
        await self.write("deleted", pod, partial(api.delete, pod.name, resource_version=pod.resource_version))
        return None


class ReplicaCounter(Worker):
    def watch(self) -> None:
        self.replica_sets = self.context.factory.informer(ReplicaSet)
        self.pods = self.context.factory.informer(Pod, indexers={"owner": by_owner})
        self.controller.watch(self.replica_sets)
        self.controller.watch(self.pods, enqueue=owner_of)

    async def reconcile(self, request: Request) -> None:
        replica_set = self.replica_sets.lister.get(request)
        running = str(sum(pod.status.phase == "Running" for pod in self.pods.lister.by_index("owner", str(request))))
        if replica_set is not None and replica_set.metadata.annotations.get(RUNNING) != running:
            await self.patch(replica_set, annotations={RUNNING: running})


def by_owner(pod: Pod) -> Iterable[str]:
    """Index a pod by the key of its ReplicaSet."""
    return map(str, owner_of(pod))


WORKERS = {"namespace-labeller": NamespaceLabeller, "pod-janitor": PodJanitor, "replica-counter": ReplicaCounter}


async def main(arguments: argparse.Namespace, stop: trio.Event) -> None:
    """Run the controllers until ``stop`` is set."""
    metrics = Metrics()
    config = None if arguments.config is None else follow_file(arguments.config, Settings.parse)
    fencing_log = os.open(arguments.fencing_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode=0o644)

    def settings() -> Settings:
        return Settings() if config is None else config.value

    async def start(kind: Callable[..., Worker], context: ManagerContext) -> Worker:
        worker = kind(context, settings, fencing_log)
        metrics.register_controller(worker.controller)
        return worker

    async with trio.open_nursery() as nursery:
        if config is not None:
            await nursery.start(config.run)
        if arguments.embedded:
            server = APIServer()
            await nursery.start(server.run)
            await nursery.start(simulate_cluster, server)
            cluster = server.open_client()
        else:
            cluster = open_client(kubeconfig=arguments.kubeconfig, observer=metrics.request_observer())
        async with cluster as client:
            await run_controllers(
                client,
                {name: partial(start, kind) for name, kind in WORKERS.items()},
                enabled=arguments.controllers,
                start_interval=arguments.start_interval,
                http=arguments.http,
                leader_election=arguments.election,
                metrics=metrics,
                factory=SharedInformerFactory(client, namespace=arguments.namespace, resync_period=60),
                stop=stop,
            )
        nursery.cancel_scope.cancel()


def parse_arguments() -> argparse.Namespace:
    """Parse the command line; wrong usage exits with 2."""
    parser = argparse.ArgumentParser(description="Run several small controllers.")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--embedded", action="store_true", help="simulate a small cluster in this process")
    where.add_argument("--kubeconfig", metavar="PATH", help="default: as kubectl finds it, then in-cluster")
    parser.add_argument("--namespace", help="of pods, replica sets and the lease; default: all, and default")
    parser.add_argument("--config", metavar="FILE", help="a file that is read again when it changes")
    parser.add_argument("--controllers", default="*", metavar="LIST", help=f"of {', '.join(WORKERS)}; default: all")
    parser.add_argument(
        "--start-interval", type=float, default=0.0, metavar="SECONDS", help="between the starts of two controllers"
    )
    parser.add_argument("--http", metavar="HOST:PORT", help="serve /healthz, /readyz and /metrics")
    parser.add_argument("--leader-elect", action="store_true", help="run the controllers only while this replica leads")
    parser.add_argument("--identity", help="unique to the process; default: host name and a random part")
    for time_of_lease, default in {"lease-duration": 15.0, "renew-deadline": 10.0, "retry-period": 2.0}.items():
        parser.add_argument(f"--{time_of_lease}", type=float, default=default, metavar="SECONDS")
    parser.add_argument(
        "--fencing-log", default=os.devnull, metavar="FILE", help="append when each leader began, wrote and ended"
    )
    given = parser.parse_args()
    try:
        enabled_controllers(WORKERS, given.controllers)
        times = LeaderElectionOptions(
            lease_duration=given.lease_duration, renew_deadline=given.renew_deadline, retry_period=given.retry_period
        )
    except ValueError as error:
        parser.error(str(error))
    election = LeaderElection("controller-manager", given.namespace or "default", given.identity, times)
    given.election = election if given.leader_elect else None
    return given


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
    stop = trio.Event()
    # LeadershipLostError exits with 1; the process is expected to be restarted.
    sys.exit(run(main, parse_arguments(), stop, stop=stop))
