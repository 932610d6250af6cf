"""Run several small controllers in one process, with leader election if there are
several replicas.

Run the program against an API server in this process, or against the cluster that
kubectl uses, with one or more replicas::

    python examples/controller_manager.py --embedded python
    examples/controller_manager.py --leader-elect --http 127.0.0.1:8080 --controllers
    '*,-pod-janitor'

- ``namespace-labeller`` adds labels to every namespace;
- ``pod-janitor`` deletes pods that have ended and are old enough;
- ``replica-counter`` writes the number of running pods of each ReplicaSet into an
annotation;
- ``serviceaccount`` creates the ServiceAccount ``default`` in every namespace.

As in kube-controller-manager, the controllers start one after the other, with the same
log messages. Then the shared informers start.  With ``--namespace``, the two
controllers that need all namespaces are skipped.

``--config`` names a configuration file, which is read again when it changes. A resync
applies the change to all objects within a minute::

    namespace_labels: {example.com/managed: "yes"}
    keep_pods: 3600  # seconds
"""

from __future__ import annotations

import argparse
import itertools
import logging
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import attrs
import trio
import yaml
from attrs import validators
from command_line import Arguments, file, parser_of, seconds, start

from trioformer import (
    AlreadyExistsError,
    Client,
    ConfigError,
    ConflictError,
    NotFoundError,
    SharedInformerFactory,
    open_client,
)
from trioformer.controller import Controller, Request, RequeueAfter, request_for_owner
from trioformer.leaderelection import LeaderElectionOptions
from trioformer.manager import (
    LeaderElection,
    ManagerContext,
    follow_file,
    run_controllers,
)
from trioformer.metrics import Metrics
from trioformer.models import KubernetesObject, ObjectMeta
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.core_v1 import Namespace, Pod, ServiceAccount
from trioformer.testing import APIServer, open_simulated_cluster

RUNNING = "example.com/running"

logger = logging.getLogger("controller_manager")
owner_of = request_for_owner(ReplicaSet)


@attrs.frozen
class Settings:
    """The content of the configuration file."""

    namespace_labels: Mapping[str, str] = attrs.field(
        factory=lambda: {"example.com/managed": "yes"},
        validator=validators.deep_mapping(
            validators.instance_of(str), validators.instance_of(str)
        ),
    )
    keep_pods: float = attrs.field(
        default=3600.0,
        converter=float,
        validator=[validators.ge(0), validators.lt(math.inf)],
    )

    @classmethod
    def parse(cls, text: str) -> Settings:
        try:
            given: Any = yaml.safe_load(text) or {}
            return cls(**given)
        except (TypeError, ValueError, OverflowError) as error:
            expected = (
                "namespace_labels, a mapping of texts, "
                "and keep_pods, a number of seconds"
            )
            raise ConfigError(
                f"not {expected}: {str(error).partition(chr(10))[0]}"
            ) from None
        except yaml.YAMLError:
            raise ConfigError("not YAML") from None


class Worker(ABC):
    """Base class of the controllers, which write only while this process leads, and
    log each write.

    A process can be suspended between the check for leadership and the write, so that
    it writes after it has lost the leadership.  Therefore each write contains the
    resourceVersion of the object that was read. If another process has written the
    object in the meantime, the server rejects the write with a conflict.
    """

    needs_all_namespaces = False
    """Whether it cannot work for one namespace alone."""

    def __init__(
        self,
        context: ManagerContext,
        factory: SharedInformerFactory,
        settings: Callable[[], Settings],
        fencing_log: int,
    ) -> None:
        self.context, self.factory, self.settings, self.fencing_log = (
            context,
            factory,
            settings,
            fencing_log,
        )
        self.name = context.name
        self.controller = Controller(self.name, self.reconcile)
        self.watch()

    @abstractmethod
    def watch(self) -> None:
        """Add informers to the controller."""

    @abstractmethod
    async def reconcile(self, request: Request) -> RequeueAfter | None:
        """Reconcile one object. The method is idempotent."""

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.note("begin", time.monotonic())
        try:
            await self.controller.run(task_status=task_status)
        finally:
            self.note("end", time.monotonic())

    async def stop(self) -> None:
        await self.controller.stop()

    async def write(
        self, what: str, obj: KubernetesObject, request: Callable[[], Awaitable[object]]
    ) -> None:
        """Send a request that changes an object, but only if this process is still the
        leader.
        """
        # the logged time is not later than the check
        now, lead = time.monotonic(), self.context.leadership
        if lead is not None and not lead.is_held:
            return
        self.note("act", now)
        with suppress(
            ConflictError, NotFoundError, AlreadyExistsError
        ):  # another process has written the object, and its event will follow
            await request()
            logger.info("%s: %s %s", self.name, what, Request.of(obj))

    async def patch(self, obj: KubernetesObject, **metadata: Mapping[str, str]) -> None:
        api = self.context.client.api(type(obj), namespace=obj.namespace)
        patch = {"metadata": {"resourceVersion": obj.resource_version, **metadata}}
        await self.write("patched", obj, partial(api.patch, obj.name, patch))

    def note(self, what: str, when: float) -> None:
        """Append a line to the file that all replicas share. A single write keeps the
        lines intact.
        """
        lead = self.context.leadership
        if lead is not None:
            line = f"{when:.6f} {lead.identity} {lead.transitions} {self.name} {what}\n"
            os.write(self.fencing_log, line.encode())


class NamespaceLabeller(Worker):
    needs_all_namespaces = True

    def watch(self) -> None:
        self.namespaces = self.factory.informer(Namespace)
        self.controller.watch(self.namespaces)

    async def reconcile(self, request: Request) -> None:
        namespace, labels = (
            self.namespaces.lister.get(request.name),
            self.settings().namespace_labels,
        )
        if (
            namespace is not None
            and not labels.items() <= namespace.metadata.labels.items()
        ):
            await self.patch(namespace, labels=labels)


class PodJanitor(Worker):
    def watch(self) -> None:
        self.pods = self.factory.informer(Pod)
        self.controller.watch(self.pods)

    async def reconcile(self, request: Request) -> RequeueAfter | None:
        pod = self.pods.lister.get(request)
        if (
            pod is None
            or pod.metadata.deletion_timestamp
            or pod.status.phase not in ("Succeeded", "Failed")
        ):
            return None
        age = datetime.now(UTC) - (pod.metadata.creation_timestamp or datetime.now(UTC))
        left = self.settings().keep_pods - age.total_seconds()
        if left > 0:
            return RequeueAfter(left)
        api = self.context.client.api(Pod, namespace=pod.namespace)
        await self.write(
            "deleted",
            pod,
            partial(api.delete, pod.name, resource_version=pod.resource_version),
        )
        return None


class ReplicaCounter(Worker):
    def watch(self) -> None:
        self.replica_sets = self.factory.informer(ReplicaSet)
        self.pods = self.factory.informer(Pod, indexers={"owner": by_owner})
        self.controller.watch(self.replica_sets)
        self.controller.watch(self.pods, enqueue=owner_of)

    async def reconcile(self, request: Request) -> None:
        replica_set = self.replica_sets.lister.get(request)
        running = str(
            sum(
                pod.status.phase == "Running"
                for pod in self.pods.lister.by_index("owner", str(request))
            )
        )
        if (
            replica_set is not None
            and replica_set.metadata.annotations.get(RUNNING) != running
        ):
            await self.patch(replica_set, annotations={RUNNING: running})


def by_owner(pod: Pod) -> Iterable[str]:
    """Index a pod by the key of its ReplicaSet."""
    return map(str, owner_of(pod))


class ServiceAccounts(Worker):
    needs_all_namespaces = True

    def watch(self) -> None:
        self.namespaces = self.factory.informer(Namespace)
        self.accounts = self.factory.informer(ServiceAccount)
        self.controller.watch(self.namespaces)
        self.controller.watch(
            self.accounts,
            enqueue=lambda account: [Request(None, account.namespace or "")],
        )

    async def reconcile(self, request: Request) -> None:
        namespace = self.namespaces.lister.get(request.name)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        if self.accounts.lister.get("default", namespace=request.name) is None:
            account = ServiceAccount(
                metadata=ObjectMeta(name="default", namespace=request.name)
            )
            api = self.context.client.api(ServiceAccount, namespace=request.name)
            await self.write("created", account, partial(api.create, account))


WORKERS: Mapping[str, type[Worker]] = {
    "namespace-labeller": NamespaceLabeller,
    "pod-janitor": PodJanitor,
    "replica-counter": ReplicaCounter,
    "serviceaccount": ServiceAccounts,
}


@attrs.define(eq=False)
class Starter:
    """Starts the controllers one by one, with kube-controller-manager's log messages,
    and then their informers.
    """

    factory: SharedInformerFactory
    """The informers that the controllers share."""
    enabled: Collection[str]
    make: Callable[[ManagerContext], Worker | None]
    """Makes the controller of a name; None if it cannot work here."""
    finished: int = 0
    """How many controllers have started or were skipped."""
    all_started: trio.Event = attrs.field(factory=trio.Event)

    async def start(self, context: ManagerContext) -> Worker | None:
        """Start one controller and return it, so that the manager runs it."""
        name = context.name
        if not self.finished:
            for each in WORKERS:
                if each not in self.enabled:
                    logger.warning('"%s" is disabled', each)
        logger.info('Starting "%s"', name)
        try:
            worker = self.make(context)
        except Exception:
            logger.error('Error starting "%s"', name)  # noqa: TRY400  # the program ends with the error
            raise
        if worker is None:
            logger.warning('Skipping "%s"', name)
        else:
            logger.info('Started "%s"', name)
        self.finished += 1
        if self.finished == len(self.enabled):
            self.all_started.set()
        return worker

    async def run_informers(self) -> None:
        """Fill the caches after the last controller has started. The controllers wait
        for the caches.
        """
        await self.all_started.wait()
        await self.factory.run()

    def caches(self) -> str:
        """Return the names of the caches that are not up to date."""
        informers = self.factory.informers.items()
        return ", ".join(
            str(key)
            for key, informer in informers
            if not (informer.has_synced and informer.is_healthy)
        )


async def run_manager(
    client: Client,
    arguments: Arguments,
    settings: Callable[[], Settings],
    metrics: Metrics,
    stop: trio.Event,
) -> None:
    """Run the controllers and their shared informers until ``stop`` is set."""
    factory = SharedInformerFactory(
        client, namespace=arguments.namespace, resync_period=60
    )
    metrics.register_factory(factory, name="shared")

    def make(context: ManagerContext) -> Worker | None:
        kind = WORKERS[context.name]
        if kind.needs_all_namespaces and arguments.namespace is not None:
            return None
        worker = kind(context, factory, settings, arguments.fencing_log)
        metrics.register_controller(worker.controller)
        return worker

    starter = Starter(factory, arguments.controllers, make)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(starter.run_informers)
        await run_controllers(
            client,
            dict.fromkeys(arguments.controllers, starter.start),
            start_interval=arguments.start_interval,
            http=arguments.http,
            checks={"caches": starter.caches},
            leader_election=election_of(arguments),
            metrics=metrics,
            stop=stop,
        )
        nursery.cancel_scope.cancel()


async def main(arguments: Arguments, stop: trio.Event) -> None:
    """Connect to the cluster, and run the controllers until ``stop`` is set."""
    logging.getLogger().setLevel(logging.INFO)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.addFilter(is_no_start)
    metrics = Metrics()
    config = (
        None
        if arguments.config is None
        else follow_file(arguments.config, Settings.parse)
    )

    def settings() -> Settings:
        if config is not None:
            return config.value
        return Settings(keep_pods=1) if arguments.embedded else Settings()

    cluster: AbstractAsyncContextManager[Client]
    if arguments.embedded:
        cluster = open_simulated_cluster(simulate_workloads)
    else:
        observer = metrics.request_observer()
        cluster = open_client(
            kubeconfig=arguments.kubeconfig,
            context=arguments.context,
            observer=observer,
        )
    async with trio.open_nursery() as nursery:
        if config is not None:
            await nursery.start(config.run)
        async with cluster as client:
            await run_manager(client, arguments, settings, metrics, stop)
        nursery.cancel_scope.cancel()


def is_no_start(record: logging.LogRecord) -> bool:
    """Drop the library's log messages about the start of controllers, because
    `Starter` logs it.
    """
    line = record.getMessage()
    return not line.startswith("controller ") or not any(
        what in line for what in (": failed to start: ", ": started", ": skipped")
    )


async def simulate_workloads(
    server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Create namespaces and the pods of one ReplicaSet, and let the pods run and
    end.
    """
    containers = {"containers": [{"name": "web", "image": "nginx"}]}
    web = {"name": "web", "namespace": "default"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": containers}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    server.create(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": web, "spec": spec}
    )
    uid = server.get(ReplicaSet, "web").uid
    owners = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": uid,
            "controller": True,
        }
    ]
    task_status.started()
    for step in itertools.count():
        metadata = {
            "name": f"web-{step}",
            "namespace": "default",
            "ownerReferences": owners,
        }
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": containers,
            }
        )
        server.patch(Pod, f"web-{step}", {"status": {"phase": "Running"}})
        if step >= 3:
            server.patch(Pod, f"web-{step - 3}", {"status": {"phase": "Succeeded"}})
        if step % 5 == 0:
            server.create(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": f"team-{step // 5}"},
                }
            )
            if step >= 15:
                server.delete(Namespace, f"team-{step // 5 - 3}")
        await trio.sleep(1)


def election_of(arguments: Arguments) -> LeaderElection | None:
    """Return the leader election for the arguments, or raise ValueError if they cannot
    be combined.
    """
    times = LeaderElectionOptions(
        lease_duration=arguments.lease_duration,
        renew_deadline=arguments.renew_deadline,
        retry_period=arguments.retry_period,
    )
    namespace = arguments.namespace or "default"
    election = LeaderElection(
        "controller-manager", namespace, arguments.identity, times
    )
    return election if arguments.leader_elect else None


def controllers(text: str) -> list[str]:
    """Parse a list of controllers for argparse, and return the enabled ones. The first
    item that names a controller decides.
    """
    items = [item.strip() for item in text.split(",") if item.strip()]
    unknown = sorted({item.removeprefix("-") for item in items} - {*WORKERS, "*"})
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise argparse.ArgumentTypeError(
            f"unknown controllers in the list {text!r}: {names}; "
            f"known controllers: {', '.join(sorted(WORKERS))}"
        )

    def decisive(name: str) -> str:
        return next((item for item in items if item in (name, f"-{name}")), "*")

    return [name for name in WORKERS if decisive(name) in {*items} - {f"-{name}"}]


def log_file(text: str) -> int:
    """Open a file for appending, for argparse."""
    try:
        return os.open(text, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode=0o644)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from None


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = parser_of(__doc__, serves_http=True)
    parser.add_argument(
        "--config",
        type=file,
        metavar="FILE",
        help="a file that is read again when it changes",
    )
    parser.add_argument(
        "--controllers",
        type=controllers,
        default="*",
        metavar="LIST",
        help=f"of {', '.join(WORKERS)}; default: all",
    )
    parser.add_argument(
        "--start-interval",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="between the starts of two controllers",
    )
    parser.add_argument(
        "--leader-elect",
        action="store_true",
        help="run the controllers only while this replica leads",
    )
    parser.add_argument(
        "--identity", help="unique to the process; default: host name and a random part"
    )
    for time_of_lease, default in {
        "lease-duration": 15.0,
        "renew-deadline": 10.0,
        "retry-period": 2.0,
    }.items():
        parser.add_argument(
            f"--{time_of_lease}", type=seconds, default=default, metavar="SECONDS"
        )
    parser.add_argument(
        "--fencing-log",
        type=log_file,
        default=os.devnull,
        metavar="FILE",
        help="append when each leader began, wrote and ended",
    )
    return parser


if __name__ == "__main__":
    # After a LeadershipLostError, the exit code is 1, and the process should be
    # restarted.
    stop = trio.Event()
    start(main, make_parser(), stop=stop, check=election_of)
