"""ApplySets: sets of objects that are applied together, so that removed objects can be deleted.

The set is stored in the cluster.  A parent object, which is a Secret or ConfigMap, lists the kinds and namespaces of
the members.  Each member has a label with the ID of the set.

Sources: KEP-3659, https://kubernetes.io/docs/reference/labels-annotations-taints/, and ``pkg/cmd/apply/applyset.go``
in kubectl.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Literal, TypeAlias, cast, final

import attrs

from .._version import __version__
from ..client import Api, Client
from ..client._internal import ApiResources
from ..errors import AlreadyExistsError, ConflictError, ManifestsFailedError, NotFoundError
from ..errors._internal import ManifestFailure
from ..models import (
    KubernetesObject,
    ResourceInfo,
    from_dict,
    resource_of,
    to_dict,
    unstructured_kind,
)
from ..models._internal import builtin_kind
from ._manifest import Manifest, ManifestResult
from ._prune import prune_objects
from ._targets import Target

PARENT_LABEL: Final = "applyset.kubernetes.io/id"
MEMBER_LABEL: Final = "applyset.kubernetes.io/part-of"
TOOLING: Final = "applyset.kubernetes.io/tooling"
KINDS: Final = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES: Final = "applyset.kubernetes.io/additional-namespaces"
_TOOL: Final = "trioformer"

_Change: TypeAlias = Callable[[set[tuple[str, str]], set[str]], tuple[set[tuple[str, str]], set[str]]]
"""A function that changes the kinds and namespaces of a set."""


@final
@attrs.frozen
class ApplySet:
    """A set of objects for ``apply_manifests(prune=…)``, as with ``kubectl apply --applyset``.

    Objects in the set that no longer have a manifest are deleted, even if no manifest has the same kind or namespace.
    """

    name: str
    """The name of the parent object, which :func:`apply_manifests` creates."""
    namespace: str | None = None
    """The namespace of the parent.  The default, None, uses the ``namespace`` argument of :func:`apply_manifests` or
    the client's configuration.

    The namespace must exist already, because namespaces among the manifests are created after the parent.
    """
    kind: Literal["ConfigMap", "Secret"] = "Secret"
    """The kind of the parent object."""

    def id(self, namespace: str) -> str:
        """Return the set's ID for a parent in this namespace; the label of each member has this value."""
        text = f"{self.name}.{namespace}.{self.kind}."
        digest = hashlib.sha256(text.encode()).digest()
        return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


@final
@attrs.define(eq=False)
class Membership:
    """An ApplySet whose members are being applied, created by :func:`open_apply_set`."""

    id: str
    """The ID of the set."""
    _client: Client
    _apply_set: ApplySet
    _parents: Api[KubernetesObject]
    _targets: tuple[Target, ...]
    _field_manager: str
    _dry_run: bool
    _kinds: frozenset[tuple[str, str]]
    """The kinds and groups of the earlier and the new members."""
    _namespaces: frozenset[str]
    _classes: tuple[type[KubernetesObject], ...]
    """The classes for the kinds that the server serves."""

    def labelled(self, target: Target, before: KubernetesObject | None) -> KubernetesObject:
        """Return the object of a target with the label of the set.

        Raises:
            ConflictError: The object in the cluster is a member of another set.
        """
        other = "" if before is None else before.metadata.labels.get(MEMBER_LABEL, "")
        if other not in ("", self.id):
            raise _conflict(
                f"the object is a member of another ApplySet, {other}: remove its label {MEMBER_LABEL} first"
            )
        whole = to_dict(target.object)
        metadata = whole.setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), MEMBER_LABEL: self.id}
        return from_dict(type(target.object), whole)

    async def prune(self, report: Callable[[ManifestResult], None]) -> None:
        """Delete objects that no longer have a manifest, and update the parent.

        The search covers all kinds and namespaces that the parent lists.
        """
        apis: list[Api[KubernetesObject]] = []
        for cls in self._classes:
            is_namespaced = resource_of(cls).namespaced
            apis += [self._client.api(cls, place) for place in (sorted(self._namespaces) if is_namespaced else [None])]
        not_searched = await prune_objects(apis, MEMBER_LABEL, self.id, self._targets, report, dry_run=self._dry_run)
        if not self._dry_run:
            await self._remove_unused(not_searched)

    async def begin(self, parent: KubernetesObject | None) -> None:
        """Add the kinds and namespaces of the targets to the parent, and create the parent if it does not exist."""
        kinds, namespaces = _contents(self._targets)
        while parent is None:
            try:
                await self._parents.create(
                    from_dict(
                        self._parents.kind,
                        {
                            "metadata": {
                                "name": self._apply_set.name,
                                "labels": {PARENT_LABEL: self.id},
                                "annotations": self._annotations(kinds, namespaces),
                            }
                        },
                    ),
                    field_manager=self._manager,
                    dry_run=self._dry_run,
                )
            except AlreadyExistsError:
                parent = await self._read()
            else:
                return
        await self._write(parent, lambda had, places: (had | kinds, places | namespaces))

    async def _remove_unused(self, not_searched: Collection[ResourceInfo]) -> None:
        """Remove kinds and namespaces from the parent if they were searched and have no members.

        Kinds and namespaces that another program has added stay in the parent.
        """
        kinds, namespaces = _contents(self._targets)
        unknown = {(info.kind, info.group) for info in not_searched}
        gone = self._kinds - kinds - unknown
        left = self._namespaces - namespaces if not unknown else frozenset[str]()
        parent = await self._read()
        if parent is not None:
            await self._write(parent, lambda had, places: (had - gone, places - left))

    async def _read(self) -> KubernetesObject | None:
        """Return the parent, or None if it does not exist.

        Raises:
            ManifestsFailedError: The parent belongs to another set.
        """
        try:
            parent = await self._parents.get(self._apply_set.name)
        except NotFoundError as exc:
            if exc.is_unexpected_server_error:  # a proxy's page
                raise
            return None
        if (problem := _problem_of(parent, self.id)) is not None:
            failure = ManifestFailure(_named(parent), _conflict(problem))
            raise ManifestsFailedError("the ApplySet cannot be used", [failure])
        return parent

    async def _write(self, parent: KubernetesObject, change: _Change) -> None:
        """Change the contents of the parent; if another program has changed the parent, read it again and retry."""
        while True:
            annotations = self._annotations(*change(*_contents_of(parent)))
            version = parent.metadata.resource_version
            patch = {"metadata": {"resourceVersion": version, "annotations": annotations}}
            try:
                await self._parents.patch(parent.name, patch, field_manager=self._manager, dry_run=self._dry_run)
            except ConflictError:
                again = await self._read()
                if again is None:
                    raise
                parent = again
            else:
                return

    def _annotations(self, kinds: Iterable[tuple[str, str]], namespaces: Iterable[str]) -> dict[str, str]:
        return {
            TOOLING: f"{_TOOL}/v{__version__}",
            KINDS: ",".join(sorted(f"{kind}.{group}" if group else kind for kind, group in kinds)),
            NAMESPACES: ",".join(sorted(set(namespaces) - {self._parents.namespace})),
        }

    @property
    def _manager(self) -> str:
        # With another manager than the members, because the parent may also be one of the manifests.
        return f"{self._field_manager}-applyset"


async def open_apply_set(
    client: Client,
    apply_set: ApplySet,
    targets: tuple[Target, ...],
    *,
    namespace: str | None,
    field_manager: str,
    dry_run: bool,
) -> Membership:
    """Create or check the parent, and add the kinds and namespaces of the targets before any target is applied.

    Raises:
        ManifestsFailedError: The parent does not belong to this ApplySet or belongs to another tool, or discovery does
            not show whether the server serves a kind in the set.
    """
    place = apply_set.namespace or namespace or client.config.namespace
    parents = cast("Api[KubernetesObject]", client.api(builtin_kind("v1", apply_set.kind), place))
    own = apply_set.id(place)
    kinds, namespaces = _contents(targets)
    classes = {(target.api.resource.kind, target.api.resource.group): target.api.kind for target in targets}
    try:
        parent = await parents.get(apply_set.name)
    except NotFoundError as exc:
        if exc.is_unexpected_server_error:  # a proxy's page
            raise
        parent = None
    if parent is not None:
        if (problem := _problem_of(parent, own)) is not None:
            raise ManifestsFailedError("nothing was applied", [ManifestFailure(_named(parent), _conflict(problem))])
        had, places = _contents_of(parent)
        missing = had - kinds
        if missing:
            classes |= _served(await client.api_resources(), missing, parent)
        kinds, namespaces = kinds | had, namespaces | places
    found = Membership(
        own,
        client,
        apply_set,
        parents,
        targets,
        field_manager,
        dry_run,
        frozenset(kinds),
        frozenset({*namespaces, place}),
        tuple(classes.values()),
    )
    await found.begin(parent)
    return found


def _served(
    served: ApiResources, kinds: Iterable[tuple[str, str]], parent: KubernetesObject
) -> dict[tuple[str, str], type[KubernetesObject]]:
    """Return the class of each kind that the server serves.

    Raises:
        ManifestsFailedError: Discovery failed for an API group of the set, so kinds in this group may still have
            members.
    """
    found: dict[tuple[str, str], type[KubernetesObject]] = {}
    failures: list[ManifestFailure] = []
    for kind, group in sorted(kinds):
        of_kind = [info for info in served.resources if (info.kind, info.group) == (kind, group)]
        if of_kind:
            # Other resources of the same kind, such as reviews, are only created.
            info = next((info for info in of_kind if "list" in info.verbs), of_kind[0])
            found[kind, group] = _class_of(info)
            continue
        down = sorted(name for name in served.failures if name.rpartition("/")[0] == group)
        # The core group and all others are two responses, one of which may have been rejected.
        if down or not any(bool(info.group) == bool(group) for info in served.resources):
            name = f"{kind}.{group}" if group else kind
            why = f"{', '.join(down)} does not respond" if down else "the server did not list its groups"
            what = f"the set may have objects of {name} that cannot be found now: {why}; apply again later"
            failures.append(ManifestFailure(_named(parent), NotFoundError(what, code=404, reason="NotFound")))
    if failures:
        raise ManifestsFailedError("nothing was applied", failures)
    return found


def _class_of(info: ResourceInfo) -> type[KubernetesObject]:
    try:
        kind = builtin_kind(info.api_version, info.kind)
    except LookupError:
        return unstructured_kind(info)
    return kind if resource_of(kind).plural == info.plural else unstructured_kind(info)


def _problem_of(parent: KubernetesObject, own: str) -> str | None:
    label = parent.metadata.labels.get(PARENT_LABEL)
    if label != own:
        found = "has no label" if label is None else "has another ID in its label"
        return f"it exists and {found} {PARENT_LABEL}, so it is not the parent of this ApplySet; choose another name"
    tool = parent.metadata.annotations.get(TOOLING, "")
    if tool.partition("/")[0] != _TOOL:
        return f"its ApplySet belongs to another tool, {tool or 'without a name'}: prune it with that tool"
    return None


def _named(parent: KubernetesObject) -> str:
    return f"the parent of the ApplySet, {Manifest(object=parent)}"


def _conflict(message: str) -> ConflictError:
    return ConflictError(message, code=409, reason="Conflict")


def _contents(targets: Iterable[Target]) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the kinds (with their groups) and the namespaces of the given targets."""
    targets = tuple(targets)
    kinds = {(target.api.resource.kind, target.api.resource.group) for target in targets}
    return kinds, {target.api.namespace for target in targets if target.api.namespace is not None}


def _contents_of(parent: KubernetesObject) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the kinds (with their groups) and the namespaces that a parent lists."""
    annotations = parent.metadata.annotations
    kinds = {(kind, group) for kind, _, group in (one.partition(".") for one in _listed(annotations, KINDS))}
    return kinds, set(_listed(annotations, NAMESPACES))


def _listed(annotations: Mapping[str, str], name: str) -> list[str]:
    return [one for one in annotations.get(name, "").split(",") if one]
