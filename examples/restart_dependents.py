"""Roll out Deployments when pods of StatefulSets restart on which they depend, once
for each restart.

Run it against an API server in this process, or with a configuration file, which is
read again when it changes::

    python examples/restart_dependents.py --embedded
    python examples/restart_dependents.py --config restart_dependents.yaml

    log_level: INFO kubeconfig: /home/me/.kube/config  # default: that of kubectl; in a
    pod its service account qps: 5                             # requests a second, and
    the burst after a pause burst: 10 dependents:                        # the
    StatefulSets that a Deployment depends on
      default/web: [default/db, default/queue]

A restart is a restarted container, or a new pod with the same name.
Restarts before the first reconcile of a StatefulSet are not counted. For pods that are
created later, all restarts are counted.  The counted restarts are stored in an
annotation of the Deployment, which is called the ledger.  The patch that changes the
pod template also writes the ledger. It fails with a conflict if the ledger has changed
since it was read.  Therefore each restart causes exactly one rollout, even if this
program is killed, runs twice, or gets no response to a successful patch.  The
Deployment controller would treat two quick changes of the template as one change.
Therefore a second rollout waits until ``status.observedGeneration`` shows that the
first change was observed.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import attrs
import trio
import yaml
from attrs import validators
from command_line import Arguments, connect, file, parser_of, start
from simulations import simulate_database

from trioformer import (
    Client,
    SharedInformer,
    SharedInformerFactory,
    TrioformerError,
    load_config,
    open_client,
)
from trioformer.controller import Controller, Request, RequeueAfter, request_for_owner
from trioformer.errors import ConfigError, ConflictError, NotFoundError
from trioformer.manager import FollowedFile, follow_file
from trioformer.models.apps_v1 import Deployment, StatefulSet
from trioformer.models.core_v1 import Pod
from trioformer.transport import TokenBucketRateLimiter
from trioformer.workqueue import ItemExponentialFailureRateLimiter

NAME = "restart-dependents"
LEDGER = "example.com/restart-ledger"
ROLLOUT = "example.com/rollout"
RESTARTED_AT = "example.com/restartedAt"

logger = logging.getLogger(NAME)
owners_of = request_for_owner(StatefulSet)


def requests(given: Mapping[str, Sequence[str]]) -> Mapping[Request, Sequence[Request]]:
    """Parse the keys of Deployments and of the StatefulSets that they depend on."""
    return {
        Request.parse(key): [Request.parse(each) for each in needed]
        for key, needed in given.items()
    }


class SettingsError(TrioformerError, ValueError):
    """The configuration file is not valid."""


@attrs.frozen
class Settings:
    """The content of the configuration file."""

    dependents: Mapping[Request, Sequence[Request]] = attrs.field(
        converter=requests, factory=dict[Request, Sequence[Request]]
    )
    log_level: str = attrs.field(
        default="INFO", validator=validators.in_(logging.getLevelNamesMapping())
    )
    kubeconfig: str | None = None
    qps: float = attrs.field(
        default=5.0, validator=[validators.gt(0), validators.lt(math.inf)]
    )
    burst: int = attrs.field(default=10, validator=validators.ge(1))

    @classmethod
    def parse(cls, text: str, *, kubeconfig: str | None = None) -> Settings:
        """Parse and check the file. ``kubeconfig`` overrides the value in the file.

        Raises:
            SettingsError: The configuration is not valid.
            ConfigError: The kubeconfig is not valid.
        """
        try:
            members: Any = yaml.safe_load(text) or {}
            given: Any = {**members}
            given["kubeconfig"] = kubeconfig or members.get("kubeconfig")
            settings = cls(**given)
        except yaml.MarkedYAMLError as exc:  # the text of the error quotes the file
            mark = exc.problem_mark
            where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise SettingsError(
                f"not a valid configuration: {exc.problem}{where}"
            ) from None
        except (yaml.YAMLError, TypeError, AttributeError, ValueError) as exc:
            text = str(exc.args[0] if exc.args else exc).replace(
                "Settings.__init__() got an unexpected keyword argument",
                "there is no setting",
            )
            raise SettingsError(f"not a valid configuration: {text}") from exc
        load_config(kubeconfig=settings.kubeconfig)
        return settings


@attrs.frozen
class Ledger:
    """The counted restarts and their rollouts, which are stored in an annotation of a
    Deployment.
    """

    restarts: int = 0
    """The number of restarts."""
    rollouts: int = 0
    """The number of rollouts, one for each restart."""
    seen: Mapping[str, Mapping[str, str]] = attrs.field(
        factory=dict[str, Mapping[str, str]]
    )
    """For each StatefulSet the ``uid/restarts`` of its pods when they were last
    counted, by name.
    """

    @classmethod
    def of(cls, deployment: Deployment) -> Ledger:
        """Parse the ledger of a Deployment, which is empty if the annotation is
        missing.
        """
        return cls(**json.loads(deployment.metadata.annotations.get(LEDGER, "{}")))

    def update(self, stateful_set: str, pods: Iterable[Pod]) -> Ledger:
        """Return a copy of the ledger with the new restarts of some pods of a
        StatefulSet.
        """
        known = self.seen.get(stateful_set)
        counted = dict(known or {})
        restarts = self.restarts
        for pod in pods:
            count = sum(
                container.restart_count for container in pod.status.container_statuses
            )
            initial = f"{pod.uid}/{count if known is None else 0}"
            uid, _, before = counted.get(pod.name, initial).rpartition("/")
            if pod.uid != uid:
                restarts += 1 + count
            elif count >= int(before):
                restarts += count - int(before)
            elif pod.status.phase == "Running":
                restarts += 1  # a kubelet without its state counts from zero again
            else:
                continue  # an ended pod may have lost the states of its containers
            counted[pod.name] = f"{pod.uid}/{count}"
        return attrs.evolve(
            self, restarts=restarts, seen={**self.seen, stateful_set: counted}
        )


@attrs.define(eq=False)
class Restarter:
    """Rolls out each Deployment once for each restart of the pods on which it
    depends.
    """

    client: Client
    deployments: SharedInformer[Deployment]
    pods: SharedInformer[Pod]
    dependents: Mapping[Request, Sequence[Request]]

    def depending_on(self, pod: Pod) -> Iterable[Request]:
        """Return the Deployments that depend on a pod."""
        owners = frozenset(owners_of(pod))
        return [
            deployment
            for deployment, needed in self.dependents.items()
            if not owners.isdisjoint(needed)
        ]

    async def reconcile(self, request: Request) -> RequeueAfter | None:
        """Count restarts, and roll out the Deployment if a rollout is due. The method
        is idempotent.
        """
        deployment = self.deployments.lister.get(request)
        if deployment is None or request not in self.dependents:
            return None
        before = after = Ledger.of(deployment)
        for stateful_set in self.dependents[request]:
            after = await self.count(after, stateful_set)
        is_ready = (deployment.status.observed_generation or 0) >= (
            deployment.metadata.generation or 0
        )
        if after.rollouts < after.restarts and is_ready and not deployment.spec.paused:
            after = attrs.evolve(after, rollouts=after.rollouts + 1)
        if after == before:
            return None
        with suppress(ConflictError, NotFoundError):
            await self.write(
                deployment, after, is_rollout=after.rollouts > before.rollouts
            )
            return None
        # after a concurrent write, whose event may already have been handled
        return RequeueAfter(1)

    async def count(self, ledger: Ledger, stateful_set: Request) -> Ledger:
        """Count the restarts of pods that have changed in the cache. The pods are read
        from the server, because the cache may be outdated.
        """
        key, pods = (
            str(stateful_set),
            self.client.api(Pod, namespace=stateful_set.namespace),
        )
        if key not in ledger.seen:
            return ledger.update(
                key,
                [pod for pod in await pods.list() if stateful_set in owners_of(pod)],
            )
        fresh: list[Pod] = []
        for pod in self.pods.lister.by_index("owner", key):
            if ledger.update(key, [pod]) != ledger:
                with suppress(NotFoundError):  # the event of the new pod will follow
                    fresh.append(await pods.get(pod.name))
        return ledger.update(key, fresh)

    async def write(
        self, deployment: Deployment, ledger: Ledger, *, is_rollout: bool
    ) -> None:
        """Write the ledger and, if a rollout is due, change the pod template in the
        same patch.
        """
        annotations = {LEDGER: json.dumps(attrs.asdict(ledger))}
        metadata = {
            "resourceVersion": deployment.resource_version,
            "annotations": annotations,
        }
        patch: dict[str, object] = {"metadata": metadata}
        if is_rollout:
            # The number makes any two rollouts differ, whatever the clock.
            annotations = {
                RESTARTED_AT: datetime.now(UTC).isoformat(),
                ROLLOUT: str(ledger.rollouts),
            }
            patch["spec"] = {"template": {"metadata": {"annotations": annotations}}}
        deployments = self.client.api(Deployment, namespace=deployment.namespace)
        await deployments.patch(
            deployment.name, patch, patch_type="strategic", field_manager=NAME
        )
        logger.info(
            "%s: restarts %d, rollouts %d",
            Request.of(deployment),
            ledger.restarts,
            ledger.rollouts,
        )


async def serve(
    client: Client,
    dependents: Mapping[Request, Sequence[Request]],
    *,
    namespace: str | None = None,
) -> None:
    """Roll out Deployments after restarts until cancelled. The next run continues from
    the ledgers.
    """
    factory = SharedInformerFactory(client, namespace=namespace)
    deployments = factory.informer(Deployment)
    pods = factory.informer(
        Pod, indexers={"owner": lambda pod: map(str, owners_of(pod))}
    )
    restarter = Restarter(client, deployments, pods, dependents)
    # continues soon after an outage
    limiter = ItemExponentialFailureRateLimiter(0.05, 30.0)
    controller = Controller(NAME, restarter.reconcile, workers=4, limiter=limiter)
    controller.watch(deployments)
    controller.watch(pods, enqueue=restarter.depending_on)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        logger.info("watching for restarts")


@attrs.frozen
class Connection:
    """The connection options of the command line, which restrict a configuration."""

    context: str | None
    namespace: str | None

    async def serve(
        self, settings: Settings, *, task_status: trio.TaskStatus[trio.CancelScope]
    ) -> None:
        """Serve with these settings, and report the cancel scope after the settings
        have proved usable.
        """
        limiter = TokenBucketRateLimiter(qps=settings.qps, burst=settings.burst)
        with trio.CancelScope() as scope:
            async with open_client(
                kubeconfig=settings.kubeconfig,
                context=self.context,
                rate_limiter=limiter,
            ) as client:
                logger.setLevel(settings.log_level)
                task_status.started(scope)
                await serve(client, settings.dependents, namespace=self.namespace)


async def follow(config: FollowedFile[Settings], connection: Connection) -> None:
    """Serve with the configuration, and restart after each change to another usable
    configuration.
    """
    settings = config.value
    async with trio.open_nursery() as nursery:
        serving = await nursery.start(connection.serve, settings)
        while True:
            settings = await config.changed(settings)
            try:
                following = await nursery.start(connection.serve, settings)
            except (ConfigError, ValueError) as error:
                # one line
                logger.error(  # noqa: TRY400
                    "%s: the previous configuration is kept: %s", config.path, error
                )
            else:
                serving.cancel()  # both may run for a moment, which is harmless
                serving = following


async def main(arguments: Arguments) -> None:
    """Serve with the options in the arguments until cancelled."""
    # the log is its output
    logging.basicConfig(format="%(message)s", stream=sys.stdout, force=True)
    logger.setLevel(logging.INFO)
    if arguments.embedded:
        async with connect(arguments, simulate_database) as client:
            await serve(
                client,
                requests({"default/web": ["default/db"]}),
                namespace=arguments.namespace,
            )
    else:
        config = follow_file(
            arguments.config, partial(Settings.parse, kubeconfig=arguments.kubeconfig)
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(config.run)
            await follow(config, Connection(arguments.context, arguments.namespace))


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument(
        "--config",
        type=file,
        metavar="FILE",
        help="the settings; read again when it changes",
    )
    start(main, parser, required=["--config"])
