"""Run a controller that writes the number of running pods of each ReplicaSet to an
annotation.

Run it against the cluster that kubectl uses, or against a simulated cluster. After
Ctrl-C, it processes the remaining requests and ends::

    python examples/replica_counter.py --embedded

See the result with ``kubectl get replicasets -o yaml | grep example.com/running``.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import trio
from command_line import Arguments, connect, parser_of, start
from simulations import simulate_replica_set

from trioformer import Client, NotFoundError, SharedInformer, SharedInformerFactory
from trioformer.controller import (
    Controller,
    Request,
    annotations_changed,
    generation_changed,
    request_for_owner,
)
from trioformer.models.apps_v1 import ReplicaSet
from trioformer.models.core_v1 import Pod

ANNOTATION = "example.com/running"

owner_of = request_for_owner(ReplicaSet)


def by_owner(pod: Pod) -> Iterable[str]:
    """Index a pod by the key of its ReplicaSet."""
    return map(str, owner_of(pod))


@attrs.define(eq=False)
class ReplicaCounter:
    """Updates the annotation if it differs from the number of running pods."""

    client: Client
    replica_sets: SharedInformer[ReplicaSet]
    pods: SharedInformer[Pod]

    async def reconcile(self, request: Request) -> None:
        """Count the pods of one ReplicaSet. The method is idempotent."""
        replica_set = self.replica_sets.lister.get(request)
        if replica_set is None:
            return  # it was deleted
        pods = self.pods.lister.by_index("owner", str(request))
        running = str(sum(pod.status.phase == "Running" for pod in pods))
        if replica_set.metadata.annotations.get(ANNOTATION) == running:
            return
        patch = {"metadata": {"annotations": {ANNOTATION: running}}}
        try:
            await self.client.api(ReplicaSet, namespace=request.namespace).patch(
                request.name, patch
            )
        except NotFoundError:
            return  # it was deleted in the meantime, and the event will follow
        print(f"{request}: {running} running")


async def report(request: Request, error: Exception, then: str) -> None:
    """Report a request that failed too often. The next event of its object adds it
    again.
    """
    if then == "dropped":
        print(f"{request}: dropped after {error}")


async def serve(
    client: Client,
    stop: trio.Event,
    *,
    namespace: str | None = None,
    patience: float = 10.0,
) -> None:
    """Count until ``stop`` is set, and then drain the queue for at most ``patience``
    seconds.
    """
    factory = SharedInformerFactory(client, namespace=namespace)
    replica_sets = factory.informer(ReplicaSet)
    pods = factory.informer(Pod, indexers={"owner": by_owner})
    counter = ReplicaCounter(client, replica_sets, pods)
    controller = Controller(
        "replica-counter",
        counter.reconcile,
        workers=4,
        max_retries=5,
        on_error=report,
        reconcile_deadline=30,
    )
    controller.watch(
        replica_sets,
        predicates=[
            lambda event: generation_changed(event) or annotations_changed(event)
        ],
    )
    controller.watch(pods, enqueue=owner_of)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(factory.run)
        # starts its workers when the caches are synced
        nursery.start_soon(controller.run)
        await stop.wait()
        with trio.move_on_after(patience):
            await controller.stop()
        nursery.cancel_scope.cancel()


async def main(arguments: Arguments, stop: trio.Event) -> None:
    async with connect(arguments, simulate_replica_set) as client:
        await serve(client, stop, namespace=arguments.namespace)


if __name__ == "__main__":
    start(main, parser_of(__doc__), stop=trio.Event())
