"""Apply manifests in an order that the server accepts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

import attrs

from ..client import Client
from ..client._internal import default_field_manager
from ..crds import wait_until_served
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
    """Apply manifests by server-side apply, as ``kubectl apply --server-side -f`` does.

    For example::

        results = await apply_manifests(client, load_manifests("deploy/"), field_manager="deployer")

    Namespaces come first, then CustomResourceDefinitions until their kinds are served, then the objects that pods
    require for admission, and webhooks last; otherwise the order of the manifests is kept.
    If the server rejects an object, the others are still applied, one error at the end names all rejected ones, and
    nothing is pruned.
    Applying again has no effect, so call it again after any error or cancellation.

    Args:
        client: The cluster.
        manifests: The result of :func:`load_manifests`, or objects.
        field_manager: The manager, such as the name of the program; None for the client's.
        force: Whether to take fields that another manager has set to another value.
        namespace: The namespace of objects without one; None for the one of the client's configuration.
        dry_run: Validate and default the objects on the server without storing them.  Objects in a namespace, or of a
            kind, that the set itself creates are then rejected.
        prune: The ApplySet of the manifests; delete its objects that are not among them.
        prune_all: Without manifests, delete the whole ApplySet.
        on_progress: Called with each result.

    Returns:
        The result for each object, with its ``action``, ``manifest`` and ``object``.  The manifests are in the order of
        application; pruned objects follow.

    Raises:
        ManifestsFailedError: The server rejected some of them; the others were applied.  Or nothing was applied,
            because the parent belongs to another ApplySet, or an API group of the ApplySet is down.
        ManifestError: Two manifests are the same object, or one has no name; nothing was applied.
        ConnectionFailedError: No complete response arrived; a note names the object.
        UnauthorizedError: The server rejected the credentials.
        TypeError: ``on_progress`` is async.
        ValueError: An ApplySet is given without manifests and without ``prune_all``; or there is no field manager.

    Cancellation:
        Applied objects stay, and nothing more is pruned.
    """
    manifests = tuple(manifests)
    check_progress(on_progress, "def on_progress(result)")
    manager = default_field_manager(client) if field_manager is None else field_manager
    if manager is None:
        raise ValueError("apply_manifests() requires a field manager; pass field_manager=, here or to open_client()")
    if prune is not None and not manifests and not prune_all:
        what = f"there are no manifests, so the whole ApplySet {prune.name!r} would be deleted"
        raise ValueError(f"{what}; to delete it, pass prune_all=True")
    if prune_all and (manifests or prune is None):
        raise ValueError("prune_all=True is for an ApplySet without manifests; omit it")
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
    """Return the parts that a manifest may change; other writers may change the status between two requests.

    A dry run does not change the resourceVersion.
    """
    whole = to_dict(obj)
    metadata = {key: whole["metadata"][key] for key in whole["metadata"] if key not in _BOOKKEEPING}
    return {**whole, "metadata": metadata, "status": None}


@final
@attrs.define(eq=False)
class _Run:
    """One call of :func:`apply_manifests`."""

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
        """Apply one object; record a rejection by the server, and raise other errors."""
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
        """Wait until the server serves the kinds of definitions that were applied."""
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
