"""Wait until the objects of manifests are ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import trio

from ..client import Client
from ..errors import ManifestsFailedError, RolloutFailedError, TrioformerError
from ..errors._internal import ManifestFailure
from ..models import KubernetesObject
from ..watchtools import wait_for
from ._manifest import Manifest, ManifestResult, check_progress
from ._readiness import Readiness, readiness_of
from ._targets import Target, find_targets

WATCHES: Final = 50
"""The maximum number of objects that are watched at the same time, each on its own connection."""

WaitProgress: TypeAlias = Callable[[Manifest, Readiness], None]
"""A function that is called when an object becomes ready, and when the reason for waiting changes."""


async def wait_for_manifests(
    client: Client,
    manifests: Iterable[Manifest | KubernetesObject],
    *,
    namespace: str | None = None,
    on_progress: WaitProgress | None = None,
) -> tuple[ManifestResult, ...]:
    """Wait until the objects of manifests are ready.

    For example::

        await apply_manifests(client, manifests, field_manager="deployer")
        with trio.fail_after(300):
            await wait_for_manifests(client, manifests, on_progress=print)

    For example, a Deployment is ready when its rollout is complete; see :func:`readiness_of`.
    Set a deadline, because an object may never become ready.

    Args:
        client: The cluster.
        manifests: The manifests from :func:`load_manifests`, or objects.
        namespace: The namespace for objects without a namespace. The default, None, uses the namespace in the client's
            configuration.
        on_progress: A function that is called when an object becomes ready, and when the reason for waiting changes.

    Returns:
        A result for each ready object, in the order in which the manifests are applied.

    Raises:
        ManifestsFailedError: An object has failed, does not exist or was deleted, or the server rejected a request.
            The function stops waiting for the other objects.
        ManifestError: Two manifests describe the same object, or a manifest has no name.
        ConnectionFailedError: The server's certificate cannot be verified, or discovery failed for a kind.
        ExceptionGroup: ``on_progress`` raised an exception, which is in the group.
        TypeError: ``on_progress`` is an async function.

    Cancellation:
        Closes the connections.

    Ownership:
        All tasks that the function starts end before it returns.
    """
    check_progress(on_progress, "def on_progress(manifest, readiness)", arguments=2)
    targets = await find_targets(client, manifests, namespace)
    failures = targets.failures
    ready: dict[int, KubernetesObject] = {}
    limiter = trio.CapacityLimiter(WATCHES)

    async def wait(target: Target) -> None:
        try:
            async with limiter:
                ready[id(target)] = await wait_until_ready(target, on_progress)
        except TrioformerError as exc:
            failures.append(target.failure(exc))
            nursery.cancel_scope.cancel()

    if not failures:
        async with trio.open_nursery() as nursery:
            for target in targets.found:
                nursery.start_soon(wait, target, name=f"wait for {target.manifest}")
    if failures:
        raise ManifestsFailedError(_summary(failures), failures)
    return tuple(
        ManifestResult(manifest=target.manifest, action="ready", object=ready[id(target)]) for target in targets.found
    )


def _summary(failures: list[ManifestFailure]) -> str:
    return "a manifest has failed" if len(failures) == 1 else f"{len(failures)} manifests have failed"


async def wait_until_ready(target: Target, on_progress: WaitProgress | None = None) -> KubernetesObject:
    """Wait until one object is ready.

    Raises:
        RolloutFailedError: The object has failed.
        TrioformerError: A request failed; see ``wait_for``.
    """
    last: Readiness | None = None

    def is_ready(obj: KubernetesObject) -> bool:
        nonlocal last
        found = readiness_of(obj)
        if on_progress is not None and found != last:
            on_progress(target.manifest, found)
        last = found
        if found.state == "failed":
            raise RolloutFailedError(found.message)
        return bool(found)

    return await wait_for(target.api, target.object.name, is_ready)
