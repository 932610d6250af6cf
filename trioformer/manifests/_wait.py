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
"""The number of objects to watch at the same time, each on its own connection."""

WaitProgress: TypeAlias = Callable[[Manifest, Readiness], None]
"""Called when an object is ready, and when the reason of its wait changes."""


async def wait_for_manifests(
    client: Client,
    manifests: Iterable[Manifest | KubernetesObject],
    *,
    namespace: str | None = None,
    on_progress: WaitProgress | None = None,
) -> tuple[ManifestResult, ...]:
    """Wait until the objects of manifests are ready: rollouts and jobs complete, kinds established.

    For example::

        await apply_manifests(client, manifests, field_manager="deployer")
        with trio.fail_after(300):
            await wait_for_manifests(client, manifests, on_progress=print)

    :func:`readiness_of` decides when an object is ready.
    Set a deadline, because some objects never become ready.

    Args:
        client: The cluster.
        manifests: The result of :func:`load_manifests`, or objects.
        namespace: The namespace of objects without one; None for the one of the client's configuration.
        on_progress: Called when an object is ready, and when the reason of its wait changes.

    Returns:
        The ready objects, in the order in which they are applied.

    Raises:
        ManifestsFailedError: An object has failed, does not exist or was deleted, or the server rejected a request;
            the wait for the others ends.
        ManifestError: Two manifests are the same object, or one has no name.
        ConnectionFailedError: The server's certificate does not verify, or the discovery of a kind failed.
        ExceptionGroup: Of an exception of ``on_progress``.
        TypeError: ``on_progress`` is async.

    Cancellation:
        Possible at any time; closes the connections.

    Ownership:
        The tasks that wait end before it returns.
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
        RolloutFailedError: It has failed.
        TrioformerError: As for ``wait_for``.
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
