"""Create a pod, wait until it is ready, delete it, and wait until it is gone. Print
all events meanwhile.

Run it against the cluster that kubectl uses, or against an embedded cluster with a
simulated kubelet::

    python examples/wait_for.py --embedded
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
from command_line import Arguments, connect, namespace_of, parser_of, seconds, start
from simulations import simulate_kubelet

from trioformer import Api, ExpiredError, NotFoundError, ObjectMeta, TrioformerError
from trioformer.models.core_v1 import Container, Pod, PodSpec
from trioformer.watchtools import deleted, has_condition, resuming_watch, wait_for

POD = Pod(
    metadata=ObjectMeta(name="waited-for"),
    spec=PodSpec(containers=(Container(name="web", image="nginx:1.27"),)),
)


async def follow(pods: Api[Pod], resource_version: str) -> None:
    """Print all events of all pods after a resourceVersion."""
    while True:
        async with resuming_watch(pods, resource_version=resource_version) as events:
            with contextlib.suppress(ExpiredError):
                async for event in events:
                    print(f"{event.type:<8} {event.object.name}")
        # The resourceVersion is too old, so events were missed. A list returns the
        # current pods.
        resource_version = (await pods.list()).resource_version


@asynccontextmanager
async def temporary_pod(pods: Api[Pod], pod: Pod) -> AsyncGenerator[Pod, None]:
    """Create a pod that is ready inside the block and gone after it."""
    created = await pods.create(pod)
    try:
        yield await wait_for(pods, pod.name, has_condition("Ready"))
    finally:
        with (
            trio.CancelScope(shield=True, deadline=trio.current_time() + 60),
            contextlib.suppress(NotFoundError),
        ):
            await pods.delete(pod.name, grace_period_seconds=0)
            await wait_for(pods, pod.name, deleted(uid=created.uid))


async def main(arguments: Arguments) -> None:
    """Create the pod and wait for it."""
    async with (
        connect(arguments, simulate_kubelet) as client,
        trio.open_nursery() as nursery,
    ):
        pods = client.api(Pod, namespace=namespace_of(arguments, client))
        nursery.start_soon(follow, pods, (await pods.list()).resource_version)
        with trio.move_on_after(arguments.patience) as scope:
            async with temporary_pod(pods, POD) as pod:
                print(f"{pod.name} is ready on {pod.spec.node_name or 'no node'}")
        if scope.cancelled_caught:
            raise TrioformerError(
                f"{POD.name} was not ready within {arguments.patience:g} s"
            )
        print(f"{POD.name} is gone")
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument(
        "--for",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        dest="patience",
        help="default: 60",
    )
    start(main, parser)
