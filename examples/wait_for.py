"""Create a pod, wait until it is ready, delete it, and wait until it is gone, while printing all events.

Run it against the cluster that kubectl uses::

    python examples/wait_for.py

An embedded API server works too, but has no kubelet that makes pods ready; use ``kubectl`` instead::

    python -m trioformer.testing serve --write-kubeconfig kubeconfig
    KUBECONFIG=kubeconfig python examples/wait_for.py
    KUBECONFIG=kubeconfig kubectl patch pod waited-for --subresource=status \\
        -p '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from trioformer import Api, ExpiredError, NotFoundError, ObjectMeta, open_client, run
from trioformer.models.core_v1 import Container, Pod, PodSpec
from trioformer.watchtools import deleted, has_condition, resuming_watch, wait_for

POD = Pod(
    metadata=ObjectMeta(name="waited-for", namespace="default"),
    spec=PodSpec(containers=(Container(name="web", image="nginx:1.27"),)),
)


async def follow(pods: Api[Pod], resource_version: str) -> None:
    """Print all events of all pods after a resourceVersion."""
    while True:
        async with resuming_watch(pods, resource_version=resource_version) as events:
            with contextlib.suppress(ExpiredError):
                async for event in events:
                    print(f"{event.type:<8} {event.object.name}")
        # The resourceVersion is too old and events were missed; a list returns the current pods.
        resource_version = (await pods.list()).resource_version


@asynccontextmanager
async def temporary_pod(pods: Api[Pod], pod: Pod) -> AsyncIterator[Pod]:
    """Create a pod for the duration of the block: it is ready inside the block, and gone after it."""
    created = await pods.create(pod)
    try:
        yield await wait_for(pods, pod.name, has_condition("Ready"))
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 60), contextlib.suppress(NotFoundError):
            await pods.delete(pod.name, grace_period_seconds=0)
            await wait_for(pods, pod.name, deleted(uid=created.uid))


async def main(patience: float) -> int:
    """Create the pod and wait for it; returns the exit code."""
    async with open_client() as client, trio.open_nursery() as nursery:
        pods = client.api(Pod, namespace="default")
        nursery.start_soon(follow, pods, (await pods.list()).resource_version)
        try:
            with trio.fail_after(patience):
                async with temporary_pod(pods, POD) as pod:
                    print(f"{pod.name} is ready on {pod.spec.node_name or 'no node'}")
            print(f"{POD.name} is gone")
        except trio.TooSlowError:
            print(f"{POD.name} was not ready within {patience:g} s", file=sys.stderr)
            return 1
        finally:
            nursery.cancel_scope.cancel()
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Wait until a new pod is ready, and until it is gone.")
    parser.add_argument("--for", type=float, default=60.0, metavar="SECONDS", dest="patience")
    sys.exit(run(main, parser.parse_args().patience))
