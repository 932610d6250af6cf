"""Delete the objects of manifests."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from ..client import Client
from ..client._internal import PropagationPolicy
from ..errors import ConnectionFailedError, ManifestsFailedError, NotFoundError, TrioformerError, UnauthorizedError
from ..errors._internal import ManifestFailure
from ..models import KubernetesObject
from ..watchtools import deleted, wait_for
from ._manifest import Manifest, ManifestProgress, ManifestResult, check_progress
from ._targets import Target, find_targets


async def delete_manifests(
    client: Client,
    manifests: Iterable[Manifest | KubernetesObject],
    *,
    namespace: str | None = None,
    wait: bool = False,
    propagation_policy: PropagationPolicy = "Background",
    on_progress: ManifestProgress | None = None,
) -> tuple[ManifestResult, ...]:
    """Delete the objects that manifests describe, in the reverse of the order that :func:`apply_manifests` uses.

    If an object does not exist, or its kind is no longer served, its result is ``absent`` and no error is raised.
    If the server rejects a deletion, the other objects are still deleted.

    Args:
        client: The cluster.
        manifests: The manifests from :func:`load_manifests`, or objects. Only the kind, namespace and name are used.
        namespace: The namespace for objects without a namespace. The default, None, uses the namespace in the client's
            configuration.
        wait: Whether to wait until the objects are gone. Finalizers and graceful termination take time, so set a
            deadline.
        propagation_policy: Whether and when the server deletes the objects that a deleted object owns.  The default is
            kubectl's default.
        on_progress: A function that is called with each result. If ``wait`` is true, it is called when the object is
            gone.

    Returns:
        The results for all objects, in the order in which the objects were handled.

    Raises:
        ManifestsFailedError: The server rejected some deletions. All other objects were deleted.
        ManifestError: Two manifests describe the same object, or a manifest has no name.
        ConnectionFailedError: No complete response arrived.  A note on the exception names the object.
        UnauthorizedError: The server rejected the credentials.
        TypeError: ``on_progress`` is an async function.

    Cancellation:
        Some objects may already have been deleted.
    """
    check_progress(on_progress, "def on_progress(result)")
    targets = await find_targets(client, manifests, namespace)
    failures: list[ManifestFailure] = []
    results: list[ManifestResult] = []

    def report(result: ManifestResult) -> None:
        results.append(result)
        if on_progress is not None:
            on_progress(result)

    for manifest, error in targets.not_served:
        if isinstance(error, NotFoundError):
            report(ManifestResult(manifest=manifest, action="absent"))
        else:
            failures.append(ManifestFailure(str(manifest), error))
    pending: list[tuple[Target, KubernetesObject]] = []
    for target in reversed(targets.found):
        try:
            left = await target.api.delete(target.object.name, propagation_policy=propagation_policy)
        except NotFoundError:
            report(ManifestResult(manifest=target.manifest, action="absent"))
            continue
        except (ConnectionFailedError, UnauthorizedError) as exc:
            exc.add_note(f"while deleting {target.manifest}, after {len(results)} others")
            raise
        except TrioformerError as exc:
            failures.append(target.failure(exc))
            continue
        if wait and left is not None:
            pending.append((target, left))
        else:
            report(ManifestResult(manifest=target.manifest, action="deleted", object=left))
    for target, left in pending:
        with suppress(NotFoundError):  # the kind is gone with its definition
            await wait_for(target.api, left.name, deleted(uid=left.uid))
        report(ManifestResult(manifest=target.manifest, action="deleted"))
    if failures:
        raise ManifestsFailedError(f"manifests not deleted: {len(failures)}", failures)
    return tuple(results)
