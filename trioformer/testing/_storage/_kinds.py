"""The kinds that the embedded server serves, and the differences between them.

The differences between built-in kinds are in ``kinds.txt``, which ``tests/e2e/fetch_kinds.py`` writes.  Each line has a
resource and the words for it, which the properties of :class:`ServedKind` explain.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, final
from weakref import WeakKeyDictionary

import attrs

from ...models import ResourceInfo
from ...models._internal import WireType, builtin_resources, decode, dumps, find_wire_type
from ._conversions import CONVERSIONS, Conversion
from ._release import INSTALLED, Release
from ._schemas import Schema
from ._storage import JSONObject, Stored, body_of

DEPRECATIONS = {
    ("v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
    ("v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""The warnings of built-in kinds in deprecated versions that the server still serves."""


@final
@attrs.frozen(eq=False)
class ConversionWebhook:
    """A webhook that converts between the versions of a custom kind."""

    client: Mapping[str, Any]
    """The ``clientConfig``."""
    schemas: Mapping[str, Schema]
    """The schemas of all versions."""


@final
@attrs.frozen
class ServedKind:
    """A version of a kind that the server serves."""

    info: ResourceInfo
    """The group, version, kind and plural."""
    is_builtin: bool = False
    """Whether this is a built-in kind.  Lists and patches of custom kinds differ in some details."""
    schema: Schema | None = attrs.field(default=None, eq=False)
    """The schema of a custom kind, or None if every object is valid."""
    deprecation: str = ""
    """The warning in each response if this version is deprecated."""
    selectable_fields: tuple[str, ...] = ()
    """The paths, such as ``spec.host``, that field selectors may use, in addition to the fields that are selectable
    for every kind."""
    columns: tuple[Mapping[str, Any], ...] = attrs.field(default=(), eq=False)
    """The ``additionalPrinterColumns`` of a custom kind."""
    storage_version: str = attrs.field(default="", eq=False)
    """The version in which the objects of a custom kind are stored, or an empty string for this version."""
    scale: Mapping[str, Any] | None = attrs.field(default=None, eq=False)
    """The paths for the Scale of a custom kind, or None."""
    release: Release = attrs.field(default=INSTALLED, eq=False)
    """The release whose tables say how objects of the kind are stored and shown."""
    conversion_webhook: ConversionWebhook | None = attrs.field(default=None, eq=False)
    """The webhook that converts between the versions of a custom kind, or None."""
    views: WeakKeyDictionary[Stored, Stored] = attrs.field(factory=WeakKeyDictionary, eq=False, repr=False)
    """The states that the webhook has converted to this version, by the stored state."""

    @functools.cached_property
    def conversion(self) -> Conversion | None:
        """The conversion if the kind is stored in another version."""
        return CONVERSIONS.get((self.info.api_version, self.info.kind)) if self.is_builtin else None

    @functools.cached_property
    def resource(self) -> str:
        """``plural.group``: the key of its storage, which all versions share."""
        # Events of both groups are stored as Events of the core group.
        return "events" if self.is_builtin and self.info.plural == "events" else str(self.info)

    @functools.cached_property
    def wire_type(self) -> WireType | None:
        """The type of a built-in kind in the table of protobuf types, or None if it is not in the table."""
        return find_wire_type(self.info.api_version, self.info.kind) if self.is_builtin else None

    @functools.cached_property
    def type_meta(self) -> bytes:
        """``kind`` and ``apiVersion`` as the first members of an object."""
        # Go structs begin with the kind; custom objects are Go maps, which are encoded sorted.
        names = {"kind": self.info.kind, "apiVersion": self.info.api_version}
        return dumps(names if self.is_builtin else dict(sorted(names.items())))[1:-1] + b","

    def to_stored(self, obj: JSONObject) -> JSONObject:
        """Return an object of the kind in the version in which it is stored."""
        return obj if self.conversion is None else self.conversion.to_stored(obj)

    def from_stored(self, obj: JSONObject) -> JSONObject:
        """Return a stored object in the version of the kind."""
        return obj if self.conversion is None else self.conversion.from_stored(obj)

    def body(self, stored: Stored) -> bytes:
        """Return the JSON of a stored object in the version of the kind, in the form of :attr:`Stored.body`."""
        if self.conversion is None:
            return stored.body
        return body_of(self.conversion.from_stored(stored.decoded()))

    @property
    def is_stored(self) -> bool:
        """Whether objects of the kind are stored.  The server only responds to Bindings and reviews."""
        return not self.is_builtin or self.info.verbs != ("create",)

    @property
    def has_status(self) -> bool:
        """Whether the kind has the subresource ``status``."""
        return "status" in self.info.subresources

    @property
    def has_generation(self) -> bool:
        """Whether ``metadata.generation`` counts the changes of the desired state (``generation``)."""
        return not self.is_builtin or "generation" in self._words

    @property
    def needs_resource_version(self) -> bool:
        """Whether updates require a ``resourceVersion`` (``version``)."""
        return not self.is_builtin or "version" in self._words

    @property
    def kept_in_status(self) -> str:
        """The field of the metadata that a write of the status cannot change (``kept:`` and the field).

        It is ``metadata`` if such a write can change no field of the metadata, and empty if it can change all.
        """
        return self._field("kept:") if self.is_builtin else "metadata"

    @property
    def counted_metadata(self) -> str:
        """The field of the metadata whose changes also count for the generation (``counted:`` and the field)."""
        return self._field("counted:")

    @property
    def is_returned_by_delete(self) -> bool:
        """Whether the response to a completed delete is the object instead of a Status (``returned``)."""
        return "returned" in self._words

    @property
    def is_created_by_updates(self) -> bool:
        """Whether an update creates an object that does not exist (``upsert``)."""
        return "upsert" in self._words

    def _field(self, prefix: str) -> str:
        return next((word.removeprefix(prefix) for word in self._words if word.startswith(prefix)), "")

    @functools.cached_property
    def _words(self) -> list[str]:
        return self.release.table("kinds.txt").get(self.resource, b"").decode().split()

    @property
    def is_namespace(self) -> bool:
        """Whether this kind is Namespace."""
        return self.resource == "namespaces"


SCALE = ServedKind(
    ResourceInfo(group="autoscaling", version="v1", kind="Scale", plural="scale", namespaced=True), is_builtin=True
)
"""The kind of the subresource ``scale``."""


@final
@attrs.define(eq=False)
class Kinds:
    """The served kinds.  Kinds can be added and removed while the server runs."""

    release: Release = INSTALLED
    """The release that the server follows."""
    _by_path: dict[tuple[str, str, str], ServedKind] = attrs.field(factory=dict)
    has_conversions: bool = attrs.field(init=False, default=False)
    """Whether a webhook has ever converted the versions of a kind."""
    _by_kind: dict[tuple[str, str], ServedKind] = attrs.field(init=False, factory=dict)
    """The kinds by apiVersion and kind.  It is empty after a change."""

    @classmethod
    def builtin(cls, release: Release = INSTALLED) -> Kinds:
        """Return the kinds that a new cluster of a release serves, except for kinds without a class in the models."""
        return cls(release, dict(_builtin(release)))

    def add(self, served: ServedKind) -> None:
        """Serve a kind.  This replaces any kind with the same group, version and plural."""
        self._by_path[served.info.group, served.info.version, served.info.plural] = served
        self._by_kind = {}
        self.has_conversions |= served.conversion_webhook is not None

    def remove(self, info: ResourceInfo) -> None:
        """Stop serving a kind. This has no effect if the kind is not served."""
        self._by_path.pop((info.group, info.version, info.plural), None)
        self._by_kind = {}

    def copy(self) -> Kinds:
        """Return a copy that later changes do not affect."""
        return Kinds(self.release, dict(self._by_path))

    def replace(self, others: Kinds) -> None:
        """Serve exactly the kinds in ``others``, as in their release."""
        self.release, self._by_path, self._by_kind = others.release, dict(others._by_path), {}
        self.has_conversions = any(served.conversion_webhook for served in self)

    @property
    def namespaces(self) -> ServedKind:
        """The Namespace kind, which is always served."""
        return self._by_path["", "v1", "namespaces"]

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        """Return the kind with this group, version and plural, or None."""
        return self._by_path.get((group, version, plural))

    def has_builtin(self, group: str) -> bool:
        """Return whether the release has built-in kinds in this group."""
        prefix = f"apis/{group}/" if group else "api/"
        return any(path.startswith(prefix) for path in self.release.table("discovery.txt"))

    def find_kind(self, api_version: str, kind: str) -> ServedKind | None:
        """Return the kind with this apiVersion and kind, or None."""
        if not self._by_kind:
            first_last = reversed(self._by_path.values())
            self._by_kind = {(served.info.api_version, served.info.kind): served for served in first_last}
        return self._by_kind.get((api_version, kind))

    def find_resource(self, resource: str) -> ServedKind | None:
        """Return the first version of the kind with this ``plural`` or ``plural.group``, or None."""
        for served in self._by_path.values():
            if resource in (str(served.info), served.info.plural):
                return served
        return None

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(tuple(self._by_path.values()))


@functools.cache
def _builtin(release: Release) -> dict[tuple[str, str, str], ServedKind]:
    documents = map(decode, release.table("discovery.txt").values())
    listed = {(one["groupVersion"], each["name"]) for one in documents for each in one.get("resources", ())}
    return {
        (info.group, info.version, info.plural): ServedKind(
            info,
            is_builtin=True,
            deprecation=DEPRECATIONS.get((info.api_version, info.kind), ""),
            release=release,
        )
        for info in builtin_resources()
        if (info.api_version, info.plural) in listed and info.kind != "ComponentStatus"
    }
