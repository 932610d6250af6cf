"""Apply manifests in an order that the server accepts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

import attrs

from .._suggestions import describe
from ..client import Client
from ..client._internal import default_field_manager
from ..crds._internal import wait_until_served
from ..errors import ConnectionFailedError, ManifestsFailedError, NotFoundError, TrioformerError, UnauthorizedError
from ..errors._internal import ManifestFailure
from ..models import KubernetesObject, to_dict
from ..models.apiextensions_v1 import CustomResourceDefinition
from ._apply_set import ApplySet, Membership, open_apply_set
from ._manifest import Manifest, ManifestProgress, ManifestResult, check_progress
from ._targets import CRDS, Target, find_targets

_BOOKKEEPING: Final = ("generation", "managedFields", "resourceVersion")


async def apply_manifests(
    client: Client,
    manifests: Iterable[Manifest | KubernetesObject],
    *,
    field_manager: str | None = None,
    force: bool = False,
    namespace: str | None = None,
    dry_run: bool = False,
    prune: ApplySet | None = None,
    prune_all: bool = False,
    on_progress: ManifestProgress | None = None,
) -> tuple[ManifestResult, ...]:
    """Apply manifests with server-side apply, as ``kubectl apply --server-side -f`` does.

    For example::

        results = await apply_manifests(client, load_manifests("deploy/"), field_manager="deployer")

    Namespaces are applied first, then CustomResourceDefinitions, then objects that must exist before pods are created,
    such as ServiceAccounts.  Webhooks are applied last.  Otherwise, the manifests are applied in the given order.
    After the CustomResourceDefinitions, the function waits until the server serves their kinds.
    If the server rejects an object, all other objects are still applied, but nothing is pruned.  At the end, one
    exception lists all rejected objects.
    Applying the same manifests again changes nothing, so it is safe to repeat the call after an error or cancellation.

    Args:
        client: The cluster.
        manifests: The manifests from :func:`load_manifests`, or objects.
        field_manager: The field manager, such as the name of the program. The default, None, uses the client's field
            manager.
        force: Whether to take over fields that another field manager has set to a different value.
        namespace: The namespace for objects without a namespace. The default, None, uses the namespace in the client's
            configuration.
        dry_run: Whether the server only validates the objects and sets their defaults, without storing them.  The
            server then rejects an object whose namespace or kind is defined by the same manifests and does not exist
            yet.
        prune: The :class:`ApplySet` that the manifests belong to.  Objects of the set that no longer have a manifest
            are deleted.  The default, None, deletes nothing.
        prune_all: Whether to delete the whole ApplySet if there are no manifests.
        on_progress: A function that is called with each result.

    Returns:
        A result for each object, with the attributes ``action``, ``manifest`` and ``object``.  The results are in the
        order in which the manifests were applied, followed by those of the pruned objects.

    Raises:
        ManifestsFailedError: The server rejected some manifests, and all others were applied.  If the parent belongs
            to another ApplySet, or an API group of the ApplySet is unavailable, nothing was applied.
        ManifestError: Two manifests describe the same object, or a manifest has no name.  Nothing was applied.
        ConnectionFailedError: No complete response arrived.  A note on the exception names the object.
        UnauthorizedError: The server rejected the credentials.
        TypeError: ``on_progress`` is an async function, or ``prune`` is not an :class:`ApplySet`.
        ValueError: There is no field manager, or ``prune_all`` is required to delete a whole ApplySet.

    Cancellation:
        Objects that were already applied remain, and no more objects are pruned.
    """
    if not isinstance(prune, ApplySet | None):
        raise TypeError(f"prune must be an ApplySet, such as ApplySet('shop'), not {describe(prune)}")
    manifests = tuple(manifests)
    check_progress(on_progress, "def on_progress(result)")
    manager = default_field_manager(client) if field_manager is None else field_manager
    if manager is None:
        raise ValueError("apply_manifests() requires a field manager; pass field_manager=, here or to open_client()")
    if prune is not None and not manifests and not prune_all:
        what = f"there are no manifests, so the whole ApplySet {prune.name!r} would be deleted"
        raise ValueError(f"{what}; to delete it, pass prune_all=True")
    if prune_all and (manifests or prune is None):
        raise ValueError("prune_all=True can be used only with an ApplySet and no manifests; omit it")
    targets = await find_targets(client, manifests, namespace)
    run = _Run(client, manager, force, dry_run, on_progress, failures=targets.failures)
    membership: Membership | None = None
    if prune is not None:
        membership = await open_apply_set(
            client, prune, targets.found, namespace=namespace, field_manager=manager, dry_run=dry_run
        )
    crds: list[Target] = []
    for target in targets.found:
        if target.rank == CRDS:
            crds.append(target)
        elif crds:
            await run.wait_for_crds(crds)
            crds = []
        await run.apply(target, membership)
    await run.wait_for_crds(crds)
    if run.failures:
        what = f"{len(run.failures)} of {len(manifests)} manifests were not applied"
        raise ManifestsFailedError(what, run.failures)
    if membership is not None:
        await membership.prune(run.report)
    return tuple(run.results)


def _content(obj: KubernetesObject) -> dict[str, object]:
    """Return the parts of an object that a manifest can change.

    The resourceVersion cannot be compared instead, because a dry run does not change it.  The status is left out,
    because a controller may change it between two requests.
    """
    whole = to_dict(obj)
    metadata = {key: whole["metadata"][key] for key in whole["metadata"] if key not in _BOOKKEEPING}
    return {**whole, "metadata": metadata, "status": None}


@final
@attrs.define(eq=False)
class _Run:
    """The state of one call to :func:`apply_manifests`."""

    _client: Client
    _field_manager: str
    _force: bool
    _dry_run: bool
    _on_progress: ManifestProgress | None
    failures: list[ManifestFailure] = attrs.field(kw_only=True)
    results: list[ManifestResult] = attrs.field(factory=list, init=False)

    def report(self, result: ManifestResult) -> None:
        self.results.append(result)
        if self._on_progress is not None:
            self._on_progress(result)

    async def apply(self, target: Target, membership: Membership | None) -> None:
        """Apply one object; record a rejection by the server, but raise all other errors."""
        try:
            result = await self._applied(target, membership)
        except (ConnectionFailedError, UnauthorizedError) as exc:
            exc.add_note(f"while applying {target.manifest}, after {len(self.results)} others")
            raise
        except TrioformerError as exc:
            self.failures.append(target.failure(exc))
        else:
            self.report(result)

    async def _applied(self, target: Target, membership: Membership | None) -> ManifestResult:
        # Read first: the response does not say whether the object is new or has changed.
        try:
            before = await target.api.get(target.object.name)
        except NotFoundError:
            before = None
        obj = target.object if membership is None else membership.labelled(target, before)
        after = await target.api.apply(
            obj,
            field_manager=self._field_manager,
            force=self._force,
            dry_run=self._dry_run,
        )
        if before is None:
            return ManifestResult(manifest=target.manifest, action="created", object=after)
        is_same = before.uid == after.uid and _content(before) == _content(after)
        return ManifestResult(manifest=target.manifest, action="unchanged" if is_same else "configured", object=after)

    async def wait_for_crds(self, crds: Iterable[Target]) -> None:
        """Wait until the server serves the kinds of the applied CustomResourceDefinitions."""
        applied = {id(result.manifest): result.object for result in self.results}
        for target in crds:
            stored = applied.get(id(target.manifest))
            if self._dry_run or not isinstance(stored, CustomResourceDefinition):
                continue
            try:
                await wait_until_served(self._client, stored)
            except (ConnectionFailedError, UnauthorizedError):
                raise
            except TrioformerError as exc:
                self.failures.append(target.failure(exc))
