"""When a pod of a StatefulSet restarts, roll the Deployments that depend on it: one rollout for each restart.

See it work against an API server inside this process, or write a configuration, which is read again when it changes::

    python examples/restart_dependents.py --embedded
    python examples/restart_dependents.py --config restart_dependents.yaml

    log_level: INFO
    kubeconfig: /home/me/.kube/config  # without it as kubectl; in a pod its service account
    qps: 5                             # requests a second, and how many at once after a pause
    burst: 10
    dependents:                        # the StatefulSets that a Deployment depends on
      default/web: [default/db, default/queue]

A restart is a container that was started again, or another pod under the same name.  What was before the first look at
a StatefulSet does not count; later pods count from their beginning.  What has been counted stands in an annotation of
the Deployment, its ledger, and is written by the very patch that changes the pod template, which holds only for the
resourceVersion that the ledger was read at: so a restart is answered once, however often this program is killed, runs
twice, or gets no answer to a patch that was carried out.  The Deployment's controller would take two quick changes of
the template for one, so a second rollout is owed until ``status.observedGeneration`` says that the first was seen.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import attrs
import trio
import yaml
from attrs import validators

from trioformer import Client, SharedInformer, SharedInformerFactory, load_config, open_client
from trioformer.controller import Controller, Request, RequeueAfter, request_for_owner
from trioformer.errors import ConfigError, ConflictError, NotFoundError
from trioformer.manager import FollowedFile, follow_file
from trioformer.models.apps_v1 import Deployment, StatefulSet
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer
from trioformer.workqueue import ItemExponentialFailureRateLimiter

NAME = "restart-dependents"
LEDGER = "example.com/restart-ledger"
ROLLOUT = "example.com/rollout"
RESTARTED_AT = "example.com/restartedAt"

logger = logging.getLogger(NAME)
owners_of = request_for_owner(StatefulSet)


def requests(given: Mapping[str, Sequence[str]]) -> Mapping[Request, Sequence[Request]]:
    """Read the keys of Deployments and of what they depend on."""
    return {Request.parse(key): [Request.parse(each) for each in needed] for key, needed in given.items()}


@attrs.frozen
class Settings:
    """What the configuration file says."""

    dependents: Mapping[Request, Sequence[Request]] = attrs.field(converter=requests, factory=dict)
    log_level: str = attrs.field(default="INFO", validator=validators.in_(logging.getLevelNamesMapping()))
    kubeconfig: str | None = None
    qps: float = attrs.field(default=5.0, validator=[validators.gt(0), validators.lt(math.inf)])
    burst: int = attrs.field(default=10, validator=validators.ge(1))

    @classmethod
    def parse(cls, text: str, *, kubeconfig: str | None = None) -> Settings:
        """Read the file, or say what is wrong with it; ``kubeconfig`` counts more than what the file says."""
        try:
            members = yaml.safe_load(text) or {}
            settings = cls(**{**members, "kubeconfig": kubeconfig or members.get("kubeconfig")})
        except yaml.MarkedYAMLError as exc:  # its words quote the file
            mark = exc.problem_mark
            where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise ValueError(f"this is no configuration: {exc.problem}{where}") from None
        except (yaml.YAMLError, TypeError, AttributeError) as exc:
            raise ValueError(f"this is no configuration: {exc}") from exc
        load_config(kubeconfig=settings.kubeconfig)
        return settings


@attrs.frozen
class Ledger:
    """What has been counted and what was done about it, as a Deployment's annotation says."""

    restarts: int = 0
    """How many restarts there were."""
    rollouts: int = 0
    """How many of them have been answered."""
    seen: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    """For each StatefulSet the ``uid/restarts`` of each of its pods, as they were at the last look."""

    @classmethod
    def of(cls, deployment: Deployment) -> Ledger:
        """Read a Deployment's ledger; a new one is empty."""
        return cls(**json.loads(deployment.metadata.annotations.get(LEDGER, "{}")))

    def look(self, stateful_set: str, pods: Iterable[Pod]) -> Ledger:
        """Count the restarts of some of a StatefulSet's pods since the last look."""
        known = self.seen.get(stateful_set)
        now = dict(known or {})
        restarts = self.restarts
        for pod in pods:
            count = sum(container.restart_count for container in pod.status.container_statuses)
            at_first = f"{pod.uid}/{count if known is None else 0}"
            uid, _, before = now.get(pod.name, at_first).rpartition("/")
            if pod.uid != uid:
                restarts += 1 + count
            elif count >= int(before):
                restarts += count - int(before)
            elif pod.status.phase == "Running":
                restarts += 1  # a kubelet that lost its state begins to count anew
            else:
                continue  # a pod that has ended may lose its containers' states
            now[pod.name] = f"{pod.uid}/{count}"
        return attrs.evolve(self, restarts=restarts, seen={**self.seen, stateful_set: now})


@attrs.define(eq=False)
class Restarter:
    """Brings the rollouts of Deployments up to the restarts of what they depend on."""

    client: Client
    deployments: SharedInformer[Deployment]
    pods: SharedInformer[Pod]
    dependents: Mapping[Request, Sequence[Request]]

    def depending_on(self, pod: Pod) -> Iterable[Request]:
        """Name the Deployments that depend on a pod."""
        owners = frozenset(owners_of(pod))
        return [deployment for deployment, needed in self.dependents.items() if not owners.isdisjoint(needed)]

    async def reconcile(self, request: Request) -> RequeueAfter | None:
        """Count, and roll if a rollout is owed; does nothing when called once too often."""
        deployment = self.deployments.lister.get(request.name, namespace=request.namespace)
        if deployment is None or request not in self.dependents:
            return None
        before = after = Ledger.of(deployment)
        for stateful_set in self.dependents[request]:
            after = await self.count(after, stateful_set)
        is_ready = (deployment.status.observed_generation or 0) >= (deployment.metadata.generation or 0)
        if after.rollouts < after.restarts and is_ready and not deployment.spec.paused:
            after = attrs.evolve(after, rollouts=after.rollouts + 1)
        if after == before:
            return None
        with suppress(ConflictError, NotFoundError):
            await self.write(deployment, after, is_rollout=after.rollouts > before.rollouts)
            return None
        return RequeueAfter(1)  # somebody else was quicker, and the event of that may come even before

    async def count(self, ledger: Ledger, stateful_set: Request) -> Ledger:
        """Look at the pods that the cache has news of as they are now; it may lag behind what was counted already."""
        key, pods = str(stateful_set), self.client.api(Pod, namespace=stateful_set.namespace)
        if key not in ledger.seen:
            return ledger.look(key, [pod for pod in await pods.list() if stateful_set in owners_of(pod)])
        fresh: list[Pod] = []
        for pod in self.pods.lister.by_index("owner", key):
            if ledger.look(key, [pod]) != ledger:
                with suppress(NotFoundError):  # the event of its successor is on the way
                    fresh.append(await pods.get(pod.name))
        return ledger.look(key, fresh)

    async def write(self, deployment: Deployment, ledger: Ledger, *, is_rollout: bool) -> None:
        """Write the ledger, and with it, if that is due, what makes the Deployment roll."""
        annotations = {LEDGER: json.dumps(attrs.asdict(ledger))}
        metadata = {"resourceVersion": deployment.resource_version, "annotations": annotations}
        patch: dict[str, object] = {"metadata": metadata}
        if is_rollout:
            # The number makes any two rollouts differ, whatever the clock says.
            annotations = {RESTARTED_AT: datetime.now(UTC).isoformat(), ROLLOUT: str(ledger.rollouts)}
            patch["spec"] = {"template": {"metadata": {"annotations": annotations}}}
        deployments = self.client.api(Deployment, namespace=deployment.namespace)
        await deployments.patch(deployment.name, patch, patch_type="strategic", field_manager=NAME)
        logger.info("%s: restarts %d, rollouts %d", Request.of(deployment), ledger.restarts, ledger.rollouts)


async def serve(client: Client, dependents: Mapping[Request, Sequence[Request]]) -> None:
    """Answer restarts with rollouts until cancelled; that may be at any point, the next one goes on from there."""
    factory = SharedInformerFactory(client)
    deployments = factory.informer(Deployment)
    pods = factory.informer(Pod, indexers={"owner": lambda pod: map(str, owners_of(pod))})
    restarter = Restarter(client, deployments, pods, dependents)
    limiter = ItemExponentialFailureRateLimiter(0.05, 30.0)  # it goes on soon after an outage
    controller = Controller(NAME, restarter.reconcile, workers=4, limiter=limiter)
    controller.watch(deployments)
    controller.watch(pods, enqueue=restarter.depending_on)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        logger.info("watching for restarts")


async def demonstrate() -> None:
    """Serve a cluster of our own, where a pod's container restarts or the pod is replaced."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db", "controller": True}
    metadata = {"name": "db-0", "namespace": "default", "ownerReferences": [owner]}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
    server = APIServer()
    server.create({**web, "spec": {"template": {"spec": {"containers": []}}}})
    async with server.open_client() as client, trio.open_nursery() as nursery:
        await nursery.start(server.run)
        nursery.start_soon(serve, client, {Request("default", "web"): [Request("default", "db")]})
        while True:
            server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}})
            for restarts in range(3):
                server.patch(Pod, "db-0", {"status": {"containerStatuses": [{"restartCount": restarts}]}})
                await trio.sleep(0.5)
                generation = server.get(Deployment, "web").metadata.generation
                server.patch(Deployment, "web", {"status": {"observedGeneration": generation}})
            server.delete(Pod, "db-0")


async def connect_and_serve(settings: Settings, *, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    """Serve as the settings say; they can be used if this has started."""
    with trio.CancelScope() as scope:
        async with open_client(kubeconfig=settings.kubeconfig, qps=settings.qps, burst=settings.burst) as client:
            logger.setLevel(settings.log_level)
            task_status.started(scope)
            await serve(client, settings.dependents)


async def follow(config: FollowedFile[Settings]) -> None:
    """Serve as the configuration says, and begin anew when it says something else that can be used."""
    settings = config.value
    async with trio.open_nursery() as nursery:
        serving = await nursery.start(connect_and_serve, settings)
        while True:
            settings = await config.changed(settings)
            try:
                following = await nursery.start(connect_and_serve, settings)
            except (ConfigError, ValueError) as error:
                logger.error("%s: the one before is kept: %s", config.path, error)  # noqa: TRY400  # one line
            else:
                serving.cancel()  # for a moment there are two, which is as good as one
                serving = following


async def main(arguments: argparse.Namespace) -> None:
    """Do as the arguments say, until a signal comes."""
    async with trio.open_nursery() as nursery:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            if arguments.embedded:
                nursery.start_soon(demonstrate)
            else:
                config = follow_file(arguments.config, partial(Settings.parse, kubeconfig=arguments.kubeconfig))
                await nursery.start(config.run)
                nursery.start_soon(follow, config)
            await anext(signals)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Roll Deployments when pods that they depend on restart.")
    parser.add_argument("--config", default="restart_dependents.yaml", metavar="FILE", help="see above")
    parser.add_argument("--kubeconfig", metavar="PATH", help="instead of the one that the configuration names")
    parser.add_argument("--embedded", action="store_true", help="use an API server in this process instead")
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    logger.setLevel(logging.INFO)
    trio.run(main, parser.parse_args())
