"""Evict pods, as ``kubectl drain`` does.

A task for each pod requests its eviction until the server accepts, and then waits until the pod is gone.  Each request
names the uid of the pod, so it never evicts a new pod with the same name, and can be repeated after a lost response.

Source: kubectl ``pkg/drain``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final, Literal, final

import attrs
import trio

from .._retry import REQUEST_ERRORS, is_permanent, log_failure, retry_after
from .._suggestions import check_sync
from .._surroundings import new_generator
from ..client import Api
from ..client._internal import LabelSelectorLike, check_api, check_kind, pods_beside, without_retries
from ..errors import ConflictError, ForbiddenError, InternalServerError, NotFoundError, StatusError
from ..models import LabelSelector, key_of
from ..models.core_v1 import Pod
from ..watchtools import deleted, wait_for

RETRY_DELAY: Final = 5.0
"""Seconds until a blocked eviction is requested again, as in kubectl, unless the server requests another delay."""
REQUESTS: Final = 10
"""The maximum number of evictions that are requested at the same time."""
WATCHES: Final = 50
"""The maximum number of pods that are watched at the same time, each on its own connection."""

logger = logging.getLogger("trioformer.pods")


@final
@attrs.frozen
class PodEviction:
    """The progress of :func:`evict_pods` with one pod.  ``str()`` returns it as one line."""

    pod: Pod
    """The pod, as it was when it was listed."""
    state: Literal["skipped", "blocked", "evicted", "gone", "failed"]
    """The new state: ``blocked`` until the next request, ``evicted`` when the pod terminates, then ``gone``."""
    reason: str = ""
    """The reason, if the pod is skipped or blocked, or the eviction has failed."""

    def __str__(self) -> str:
        return f"pod {key_of(self.pod)}: {self.state}{f': {self.reason}' if self.reason else ''}"


async def evict_pods(
    pods: Api[Pod],
    *,
    node: str | None = None,
    label_selector: LabelSelectorLike | None = None,
    force: bool = False,
    delete_emptydir_data: bool = False,
    grace_period_seconds: int | None = None,
    on_progress: Callable[[PodEviction], None] | None = None,
) -> tuple[Pod, ...]:
    """Evict the pods of a node or of a selector, and wait until they are gone, as ``kubectl drain`` does.

    For example, evict the pods of all namespaces on a cordoned node::

        with trio.fail_after(600):
            await evict_pods(client.api(Pod), node="worker-1", on_progress=print)

    An eviction that a disruption budget does not allow is requested again after five seconds, or after the delay in
    ``Retry-After``, and so are evictions after transient failures.  Meanwhile, the other pods are evicted.
    Mirror pods and pods of DaemonSets are skipped.  Pods that are created later are not evicted.

    Set a deadline, because a budget may never allow an eviction, and the pods of a failed node never terminate.

    Args:
        pods: The API of pods, in one namespace or in all namespaces.
        node: The name of the node whose pods are evicted.
        label_selector: A selector for the labels of the pods.  With ``node``, the pods must match both.
        force: Whether to evict pods without a controller, which no controller replaces.
        delete_emptydir_data: Whether to evict pods with ``emptyDir`` volumes, whose data is lost.
        grace_period_seconds: The grace period, in seconds.  If None, the grace period of each pod is used.
        on_progress: A function that is called when a pod reaches a state, and after each blocked request.  Its
            argument has the fields ``pod``, ``state`` (``skipped``, ``blocked``, ``evicted``, ``gone`` or ``failed``)
            and ``reason``.  By default, blocked requests are logged immediately, and then once a minute.

    Returns:
        The evicted pods, all of which are gone.

    Raises:
        ExceptionGroup: Pods require ``force`` or ``delete_emptydir_data``, so no pod was evicted, and the group has a
            ValueError for each of them.  Or the server rejected the evictions of some pods, the group has their errors,
            and the other pods are gone.  The message names the pods.
        StatusError: The server rejected the request to list the pods.
        ConnectionFailedError: No complete response to this request arrived.
        ExceptionGroup: ``on_progress`` raised an exception during the evictions, which is in the group.
        ValueError: Neither a node nor a selector is given.
        TypeError: ``pods`` is not an API of pods, or ``on_progress`` is an async function.

    Cancellation:
        No further eviction is requested.  Evicted pods still terminate.

    Ownership:
        All tasks that the function starts end before it returns.
    """
    check_api(pods, "pods")
    check_kind(pods.resource, "evict_pods")
    if on_progress is not None:
        check_sync(on_progress, "on_progress", "def on_progress(eviction)")
    labels = str(LabelSelector.of(label_selector))
    if not node and not labels:
        raise ValueError("evict_pods() requires a node or a label selector, because it would evict all pods")
    report = on_progress or (lambda _: None)
    requests, watches = trio.CapacityLimiter(REQUESTS), trio.CapacityLimiter(WATCHES)
    failures: dict[str, Exception] = {}

    async def request(pod: Pod) -> float:
        """Request an eviction once, and return the number of seconds until the next request."""
        try:
            async with requests:
                await without_retries(pods).evict(pod, uid=pod.uid, grace_period_seconds=grace_period_seconds)
        except REQUEST_ERRORS as error:
            if not _is_transient(error):
                raise
            if not isinstance(error, NotFoundError | ConflictError):  # after these, the pod is usually gone
                report(PodEviction(pod, "blocked", _reason_of(error)))
                if on_progress is None:
                    log_failure(logger, error, "evict_pods: ")
            return retry_after(error, new_generator()) or RETRY_DELAY
        report(PodEviction(pod, "evicted"))
        return math.inf

    async def evict(pod: Pod) -> None:
        try:
            while True:
                with trio.move_on_after(await request(pod)):
                    async with watches:
                        await wait_for(pods_beside(pods, pod.namespace), pod.name, deleted(uid=pod.uid))
                    break
        except REQUEST_ERRORS as error:
            failures[key_of(pod)] = error
            report(PodEviction(pod, "failed", _reason_of(error)))
        else:
            report(PodEviction(pod, "gone"))

    selected: list[Pod] = []
    for pod in await pods.list(label_selector=labels, field_selector={"spec.nodeName": node} if node else None):
        if (found := _obstacle(pod, force, delete_emptydir_data)) is None:
            selected.append(pod)
            continue
        report(found)
        if found.state == "failed":
            failures[key_of(pod)] = ValueError(found.reason)
    if not failures:
        async with trio.open_nursery() as nursery:
            for pod in selected:
                nursery.start_soon(evict, pod, name=f"evict pod {key_of(pod)}")
    if failures:
        reasons = "; ".join(f"{pod}: {error}" for pod, error in failures.items())
        raise ExceptionGroup(f"pods not evicted: {reasons}", list(failures.values()))
    return tuple(selected)


def _obstacle(pod: Pod, force: bool, delete_emptydir_data: bool) -> PodEviction | None:
    """Return why a pod is skipped, or why nothing may be evicted because of it."""
    owners = [(owner.kind, owner.api_version) for owner in pod.metadata.owner_references if owner.controller]
    if "kubernetes.io/config.mirror" in pod.metadata.annotations:
        return PodEviction(pod, "skipped", "it is the mirror of a static pod")
    if pod.status.phase in ("Succeeded", "Failed"):
        return None
    if ("DaemonSet", "apps/v1") in owners:
        return PodEviction(pod, "skipped", "it belongs to a DaemonSet")
    if not delete_emptydir_data and any(volume.empty_dir is not None for volume in pod.spec.volumes):
        return PodEviction(pod, "failed", "it has emptyDir data, which delete_emptydir_data=True deletes")
    if not force and not owners:
        return PodEviction(pod, "failed", "no controller would replace it; force=True evicts it")
    return None


def _is_transient(error: Exception) -> bool:
    if isinstance(error, ForbiddenError):  # a namespace that is being deleted soon has no pods
        return any(cause.reason == "NamespaceTerminating" for cause in error.details.causes)
    if isinstance(error, InternalServerError):  # several budgets select the pod
        return error.is_unexpected_server_error
    return isinstance(error, NotFoundError) or not is_permanent(error)


def _reason_of(error: Exception) -> str:
    """Return the first cause, which names the budget, or the text of the error."""
    causes = error.details.causes if isinstance(error, StatusError) else ()
    return causes[0].message if causes else str(error)
