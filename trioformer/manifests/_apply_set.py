"""ApplySets: the set of what is applied together is kept in the cluster, so that what has left it can be deleted.

A parent object, a Secret or ConfigMap, names the kinds and namespaces of the members; each member has the ID of the set
as a label.

Source: KEP-3659, the labels of https://kubernetes.io/docs/reference/labels-annotations-taints/, and kubectl
``pkg/cmd/apply/applyset.go``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, cast, final

import attrs

from .._version import __version__
from ..client import Api, Client
from ..errors import ConflictError, ManifestFailure, ManifestsFailedError, NotFoundError
from ..models import KubernetesObject, LabelSelector, builtin_kind, builtin_resources, from_dict, to_dict
from ._manifest import Manifest
from ._prune import Pruning
from ._targets import Target

PARENT_LABEL: Final = "applyset.kubernetes.io/id"
MEMBER_LABEL: Final = "applyset.kubernetes.io/part-of"
TOOLING: Final = "applyset.kubernetes.io/tooling"
KINDS: Final = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES: Final = "applyset.kubernetes.io/additional-namespaces"
_TOOL: Final = "trioformer"


@final
@attrs.frozen
class ApplySet:
    """A set of objects that are applied together, for ``apply_manifests(prune=…)``; kubectl's ``--applyset``.

    What the set contained, and the manifests do not contain any more, is deleted, also of kinds and in namespaces that
    the manifests do not have at all any more.
    """

    name: str
    """The name of the parent object, which :func:`apply_manifests` makes."""
    namespace: str | None = None
    """The namespace of the parent; None for that of ``apply_manifests``, or else of the client's configuration.

    It must exist: a namespace among the manifests is applied after the parent.
    """
    kind: Literal["ConfigMap", "Secret"] = "Secret"
    """The kind of the parent."""

    def id(self, namespace: str) -> str:
        """Return the ID of the set whose parent is in a namespace; the value of the label of its members."""
        text = f"{self.name}.{namespace}.{self.kind}."
        digest = hashlib.sha256(text.encode()).digest()
        return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


@final
@attrs.define(eq=False)
class Membership:
    """An ApplySet while its members are applied; made by :func:`open_apply_set`."""

    id: str
    """The ID of the set."""
    _client: Client
    _apply_set: ApplySet
    _parents: Api[KubernetesObject]
    _targets: tuple[Target, ...]
    _field_manager: str
    _dry_run: bool
    _kinds: frozenset[tuple[str, str]]
    """Kind and group of what the set has contained, with the new ones."""
    _namespaces: frozenset[str]

    def labelled(self, target: Target, before: KubernetesObject | None) -> KubernetesObject:
        """Return the object of a target as a member of the set.

        Raises:
            ConflictError: The stored object is a member of another set.
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

    async def pruning(self) -> Pruning:
        """Return what to prune: the members of the set, of all kinds and in all namespaces that it has had."""
        known = {(target.api.resource.kind, target.api.resource.group): target.api.kind for target in self._targets}
        apis: list[Api[KubernetesObject]] = []
        for kind, group in sorted(self._kinds):
            cls = known.get((kind, group)) or await self._find(kind, group)
            if cls is None:
                continue
            api = cast("Api[KubernetesObject]", self._client.api(cls))
            places = sorted(self._namespaces) if api.resource.namespaced else [None]
            apis += [cast("Api[KubernetesObject]", self._client.api(cls, place)) for place in places]
        return Pruning(LabelSelector.of({MEMBER_LABEL: self.id}), lambda _: True, apis)

    async def _find(self, kind: str, group: str) -> type[KubernetesObject] | None:
        """Find a kind that the manifests do not have any more; None if the server does not serve it any more."""
        for info in builtin_resources():
            if (info.kind, info.group) == (kind, group):
                return builtin_kind(info.api_version, kind)
        try:
            return await self._client.discover(f"{kind}.{group}")
        except NotFoundError:
            return None

    async def write_parent(self, kinds: Iterable[tuple[str, str]], namespaces: Iterable[str]) -> None:
        """Write which kinds and namespaces the set has."""
        parent: dict[str, Any] = {
            "metadata": {
                "name": self._apply_set.name,
                "labels": {PARENT_LABEL: self.id},
                "annotations": {
                    TOOLING: f"{_TOOL}/v{__version__}",
                    KINDS: ",".join(sorted(f"{kind}.{group}" if group else kind for kind, group in kinds)),
                    NAMESPACES: ",".join(sorted(set(namespaces) - {self._parents.namespace})),
                },
            }
        }
        # Of another manager than the members: the set's own parent may be one of the manifests, too.
        manager = f"{self._field_manager}-applyset"
        obj = from_dict(self._parents.kind, {"apiVersion": "v1", "kind": self._apply_set.kind, **parent})
        await self._parents.apply(obj, field_manager=manager, dry_run=self._dry_run)

    async def close(self) -> None:
        """Write what the set contains now that all else was pruned."""
        await self.write_parent(*_contents(self._targets))


async def open_apply_set(
    client: Client,
    apply_set: ApplySet,
    targets: tuple[Target, ...],
    *,
    namespace: str | None,
    field_manager: str,
    dry_run: bool,
) -> Membership:
    """Make or check the parent, and add the kinds and namespaces of the targets to it before one is applied.

    Raises:
        ManifestsFailedError: The parent is not that of an ApplySet, or of one of another tool.
    """
    place = apply_set.namespace or namespace or client.config.namespace
    parents = cast("Api[KubernetesObject]", client.api(builtin_kind("v1", apply_set.kind), place))
    own = apply_set.id(place)
    kinds, namespaces = _contents(targets)
    try:
        parent = await parents.get(apply_set.name)
    except NotFoundError:
        pass
    else:
        if (problem := _problem_of(parent, own)) is not None:
            raise ManifestsFailedError("nothing was applied", [ManifestFailure(_named(parent), _conflict(problem))])
        annotations = parent.metadata.annotations
        kinds |= {(kind, group) for kind, _, group in (one.partition(".") for one in _listed(annotations, KINDS))}
        namespaces |= set(_listed(annotations, NAMESPACES))
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
    )
    await found.write_parent(kinds, namespaces)
    return found


def _problem_of(parent: KubernetesObject, own: str) -> str | None:
    label = parent.metadata.labels.get(PARENT_LABEL)
    if label != own:
        found = "has no label" if label is None else "has another ID in its label"
        return f"it exists and {found} {PARENT_LABEL}, so it is no parent of this ApplySet: choose another name"
    tool = parent.metadata.annotations.get(TOOLING, "")
    if tool.partition("/")[0] != _TOOL:
        return f"its ApplySet belongs to another tool, {tool or 'without a name'}: prune it by that tool"
    return None


def _named(parent: KubernetesObject) -> str:
    return f"the parent of the ApplySet, {Manifest(object=parent)}"


def _conflict(message: str) -> ConflictError:
    return ConflictError(message, code=409, reason="Conflict")


def _contents(targets: Iterable[Target]) -> tuple[set[tuple[str, str]], set[str]]:
    """Return kind and group of all kinds, and the namespaces, of some targets."""
    targets = tuple(targets)
    kinds = {(target.api.resource.kind, target.api.resource.group) for target in targets}
    return kinds, {target.api.namespace for target in targets if target.api.namespace is not None}


def _listed(annotations: Mapping[str, str], name: str) -> list[str]:
    return [one for one in annotations.get(name, "").split(",") if one]
