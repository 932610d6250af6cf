"""Watch pods without a cache, and restart a Deployment when a pod is running.

When a pod with the label ``app=nginx`` changes and is running, the Deployment
``tools`` is restarted, as with ``kubectl rollout restart deployment tools``::

    python examples/simple_watch.py --embedded
    python examples/simple_watch.py --kubeconfig ~/.kube/config --namespace default

A watch does not repeat an event that was missed. ``custom_controller.py`` does the
same with an informer.
"""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime

import trio
from command_line import Arguments, check_reachable, log_to_output, parser_of, start

from trioformer import (
    Client,
    ClusterConfig,
    ConnectionFailedError,
    ExpiredError,
    StatusError,
    load_config,
    open_client,
)
from trioformer.models.apps_v1 import Deployment
from trioformer.models.authentication_v1 import SelfSubjectReview
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, open_simulated_cluster
from trioformer.transport import TokenBucketRateLimiter
from trioformer.watchtools import resuming_watch

LABELS = "app=nginx"
TOOLS = "tools"
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"

logger = logging.getLogger("simple_watch")


async def restart_tools(client: Client, namespace: str) -> None:
    """Replace all pods of the Deployment ``tools`` by changing its pod template, which
    causes a rollout.
    """
    # RFC 3339, as Go writes it
    now = (
        datetime.now().astimezone().isoformat(timespec="seconds").replace("+00:00", "Z")
    )
    patch = {"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: now}}}}}
    deployments = client.api(Deployment, namespace=namespace)
    await deployments.patch(
        TOOLS, patch, patch_type="strategic", field_manager="kubectl-rollout"
    )


def reason_of(error: Exception) -> str:
    """Return only the API server's message of an error, as Go's client does."""
    return (
        error.status_message
        if isinstance(error, StatusError) and error.status_message
        else str(error)
    )


async def on_event(client: Client, namespace: str, kind: str, pod: Pod) -> None:
    """Print an event, and restart the Deployment ``tools`` if a pod has changed and is
    running.
    """
    if kind == "DELETED":
        logger.info("Pod %s deleted", pod.name)
        return
    logger.info(
        "Pod %s %s, current status is %s", pod.name, kind.lower(), pod.status.phase
    )
    if kind == "MODIFIED" and pod.status.phase == "Running":
        try:
            await restart_tools(client, namespace)
        except (StatusError, ConnectionFailedError) as error:
            logger.error("%s", reason_of(error))  # noqa: TRY400  # one line
        else:
            logger.info("Restart tools success")


async def watch_pods(client: Client, namespace: str) -> None:
    """Report the existing pods, and then watch events until cancelled."""
    pods = client.api(Pod, namespace=namespace)
    while True:
        listing = await pods.list(label_selector=LABELS)
        for pod in listing:
            await on_event(client, namespace, "ADDED", pod)
        # the server no longer has the next event, so begin again
        with suppress(ExpiredError):
            watch = resuming_watch(
                pods, resource_version=listing.resource_version, label_selector=LABELS
            )
            async with watch as events:
                async for event in events:
                    await on_event(client, namespace, event.type, event.object)


async def service_account_of(client: Client) -> str:
    """Request the name of this pod's service account from the server."""
    review = await client.api(SelfSubjectReview).create(SelfSubjectReview())
    return (review.status.user_info.username or "").rpartition(":")[2]


def limiter_of(config: ClusterConfig) -> TokenBucketRateLimiter | None:
    """Return the rate limiter, or None outside a cluster."""
    return TokenBucketRateLimiter(qps=1000, burst=1000) if config.in_cluster else None


def connect(arguments: Arguments) -> AbstractAsyncContextManager[Client]:
    """Open a client, and print the cluster. Inside a cluster, the client has its own
    rate limit.
    """
    logger.info("Using namespace=%s", arguments.namespace)
    if arguments.embedded:
        return open_simulated_cluster(simulate_nginx)
    config = load_config(kubeconfig=arguments.kubeconfig, context=arguments.context)
    if not config.in_cluster:
        logger.info("Using kubeconfig=%s", config.source)
    return open_client(config, rate_limiter=limiter_of(config))


async def main(arguments: Arguments) -> None:
    """Connect and watch until cancelled."""
    log_to_output(logger)
    async with connect(arguments) as client:
        await check_reachable(client)
        if client.config.in_cluster:
            logger.info("Using serviceaccount=%s", await service_account_of(client))
        await watch_pods(client, arguments.namespace)


async def simulate_nginx(
    server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Start, label and delete pods in a loop. The first pods run before the Deployment
    ``tools`` exists.
    """
    task_status.started()
    number = 0
    while True:
        number += 1
        name = f"nginx-{number}"
        await trio.sleep(0.5)
        metadata = {"name": name, "namespace": "default", "labels": {"app": "nginx"}}
        spec = {"containers": [{"name": "nginx", "image": "nginx"}]}
        status = {"phase": "Pending"}
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": spec,
                "status": status,
            }
        )
        await trio.sleep(0.5)
        server.patch(Pod, name, {"status": {"phase": "Running"}})
        # the first pod is deleted before any client can react
        if number > 1:
            await trio.sleep(0.5)
            if number == 2:
                template = {"metadata": {"labels": {"app": TOOLS}}, "spec": spec}
                tools = {
                    "selector": {"matchLabels": {"app": TOOLS}},
                    "template": template,
                }
                metadata = {"name": TOOLS, "namespace": "default"}
                server.create(
                    {
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "metadata": metadata,
                        "spec": tools,
                    }
                )
            server.patch(Pod, name, {"metadata": {"labels": {"seen": "yes"}}})
        await trio.sleep(0.1)
        server.delete(Pod, name)


if __name__ == "__main__":
    start(main, parser_of(__doc__, default_namespace="default"))
