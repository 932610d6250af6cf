"""The update of ``metadata.managedFields`` with each write, and server-side apply.

Objects that are created with the direct API have no managers.  At the first apply, all earlier fields get the manager
``before-first-apply``, as on a cluster.

Source: apimachinery ``pkg/util/managedfields/internal``, apiserver ``pkg/endpoints/handlers``, and the error messages
of v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import attrs

from ...errors import DecodeError
from ...models._internal import decode
from . import _custom
from ._clock import Clock, timestamp
from ._field_errors import json_text
from ._field_sets import FieldSet, TooDeepError, difference, intersection
from ._field_types import FieldType, builtin_type, custom_type
from ._kinds import ServedKind
from ._managed_fields import (
    NOT_OWNED,
    ApplyConflict,
    ManagerKey,
    Managers,
    Owned,
    Ownership,
    conflict_error,
    managers_after,
    read_entries,
    write_entries,
)
from ._metadata import json_equal
from ._status import APIStatusError, bad_request, status_error
from ._storage import JSONObject, Storage, Stored
from ._typed_problems import problems
from ._typed_values import compare, fields_of

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
LONGEST_MANAGER: Final = 128
"""The maximum length of a manager's name, in bytes."""
BEFORE_FIRST_APPLY: Final = "before-first-apply"
_SCALE: Final = "scale"
_STATUS: Final[FieldSet] = {"f:status": {}}
_METADATA: Final[FieldSet] = {"f:metadata": {}}
_SPEC: Final[FieldSet] = {"f:spec": {}}


@final
@attrs.frozen
class Writer:
    """Who writes an object, and how."""

    manager: str
    """The name of the manager, which is ``fieldManager`` in the request, or the beginning of its user agent."""
    subresource: str = ""
    """The subresource that is written."""
    is_applier: bool = False
    """Whether the new state comes from :meth:`FieldTracker.apply`, which has set its managers."""
    writes_all: bool = False
    """Whether the writer writes the status together with the other fields."""


def manager_of(user_agent: str) -> str:
    """Return the default manager for a user agent, which is the product name without the version."""
    name = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    while len(name.encode()) > LONGEST_MANAGER:
        name = name[:-1]
    return name


@final
@attrs.define(eq=False)
class FieldTracker:
    """A tracker of the managers of the objects in a storage."""

    _storage: Storage
    _clock: Clock
    tracks_new: bool = True
    """Whether created objects get managers.  If False, only applied objects have managers."""
    _types: dict[tuple[str, str], tuple[Stored | None, FieldType]] = attrs.field(init=False, factory=dict)

    # --- types --------------------------------------------------------------------------------------------------------

    def type_of(self, served: ServedKind, api_version: str) -> FieldType | None:
        """Return the type of a kind in a given version, or None if the version is unknown."""
        if served.is_builtin:
            found = builtin_type(served.release, api_version, served.info.kind)
            if found is not None:
                return found
        version = api_version.rpartition("/")[2]
        definition = self._storage.get(_custom.DEFINITIONS, served.resource)
        known = self._types.get((served.resource, version))
        if known is not None and known[0] is definition:
            return known[1]
        schema: object = None
        if definition is not None:
            versions = definition.decoded()["spec"]["versions"]
            named = next((one for one in versions if one["name"] == version), None)
            if named is None:
                return None
            schema = (named.get("schema") or {}).get("openAPIV3Schema")
        of = custom_type(schema if isinstance(schema, dict) else None)
        self._types[served.resource, version] = definition, of
        return of

    def _ownership(self, served: ServedKind, writer: Writer) -> Ownership:
        version = served.info.api_version
        of = self.type_of(served, version)
        return Ownership(
            of or custom_type(None),
            lambda other: self.type_of(served, other),
            version,
            _never_owned(served, writer),
            not served.is_builtin,
        )

    # --- create, update and patch -------------------------------------------------------------------------------------

    def created(
        self, served: ServedKind, obj: JSONObject, writer: Writer | None, before: JSONObject
    ) -> list[JSONObject] | None:
        """Return the ``managedFields`` of a new object.  Its writer owns the differences from ``before``."""
        given = obj["metadata"]
        if writer is None or writer.is_applier or not self.tracks_new:
            entries: list[JSONObject] | None = given.get("managedFields")
            return entries
        managers = managers_after({}, given, is_builtin=served.is_builtin, is_subresource=False)
        return self._updated(served, managers, before, obj, writer)

    def updated(
        self, served: ServedKind, old: JSONObject, new: JSONObject, given: Mapping[str, Any], writer: Writer | None
    ) -> list[JSONObject] | None:
        """Return the ``managedFields`` of an object after an update.

        Args:
            served: The kind.
            old: The stored state.
            new: The new state, without its managers.
            given: The metadata in the request, which may contain changes of the managers.
            writer: The writer, or None for writes without a manager, such as the binding of a pod.
        """
        stored: list[JSONObject] | None = old["metadata"].get("managedFields")
        if writer is None:
            return stored
        if writer.is_applier:
            entries: list[JSONObject] | None = given.get("managedFields")
            # The applied state may be equal only now, without the status; then the time does not change either.
            is_same = _without_times(entries) == _without_times(stored) and json_equal(_unmanaged(old), _unmanaged(new))
            return stored if is_same else entries
        managers = managers_after(
            old["metadata"], given, is_builtin=served.is_builtin, is_subresource=bool(writer.subresource)
        )
        if writer.subresource == _SCALE and not _have_owner(managers, _replicas(served)):
            return stored  # as kube-apiserver, which tracks only the Scale in this request
        # Objects without managers are not tracked, and an update does not start tracking them.
        return self._updated(served, managers, old, new, writer) if managers else None

    def _updated(
        self, served: ServedKind, managers: Managers, old: JSONObject, new: JSONObject, writer: Writer
    ) -> list[JSONObject] | None:
        ownership = self._ownership(served, writer)
        key = self._key(served, writer, "Update")
        managers = ownership.updated(managers, _owned(old), _owned(new), key, self._time(writer))
        try:
            return write_entries(managers)
        except TooDeepError:
            return None  # as kube-apiserver does after each error here

    def _time(self, writer: Writer) -> str | None:
        # kube-apiserver loses the times of writers of the scale, because it converts their entries there and back.
        return None if writer.subresource == _SCALE else timestamp(self._clock)

    @staticmethod
    def _key(served: ServedKind, writer: Writer, operation: str) -> ManagerKey:
        version = served.info.api_version if operation == "Update" else ""
        return ManagerKey(writer.manager or "unknown", operation, version, writer.subresource)

    # --- apply --------------------------------------------------------------------------------------------------------

    def apply(
        self, served: ServedKind, live: JSONObject | None, config: JSONObject, writer: Writer, *, force: bool
    ) -> JSONObject:
        """Return the object after an apply, with its managers.

        Args:
            served: The kind.
            live: The stored object, with kind and apiVersion, or None for a new object.
            config: The applied configuration.
            writer: The applier.
            force: Whether to take fields from other managers.

        Raises:
            APIStatusError: The configuration has another kind (400), changes fields that other managers own (409), or
                does not match the type of the kind (500, as in kube-apiserver).
        """
        names: JSONObject = {"kind": served.info.kind, "apiVersion": served.info.api_version}
        self._check(served, config)
        ownership = self._ownership(served, writer)
        live = names if live is None else live
        metadata = live.get("metadata") or {}
        if found := list(problems(ownership.type, config)):
            texts = found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])
            what = f"failed to create typed patch object ({_full_name(served, config)}): {texts}"
            raise status_error(500, reason="", message=what)
        try:
            managers = read_entries(metadata.get("managedFields"), is_stored=True)
        except ValueError as exc:
            raise status_error(500, reason="", message=f"failed to decode managed fields: {exc}") from exc
        now = self._time(writer)
        live = _unmanaged(live)
        if not managers:
            before = attrs.evolve(writer, manager=BEFORE_FIRST_APPLY)
            managers = ownership.updated({}, {"metadata": {}}, _owned(live), self._key(served, before, "Update"), now)
        elif writer.subresource == _SCALE and not _have_owner(managers, replicas := _replicas(served)):
            before = attrs.evolve(writer, manager=BEFORE_FIRST_APPLY)
            owned = Owned(replicas, served.info.api_version, now)
            managers = {**managers, self._key(served, before, "Update"): owned}
        key = self._key(served, writer, "Apply")
        try:
            result, managers = ownership.applied(managers, live, config, key, force=force, now=now)
        except ApplyConflict as conflict:
            if writer.manager != "kubectl":
                raise self._failure(conflict.conflicts, writer) from None
            conflicts = _left(conflict, _last_applied(served, ownership.type, live))
            if conflicts:
                raise self._failure(conflicts, writer) from None
            result, managers = ownership.applied(managers, live, config, key, force=True, now=now)
        if writer.manager == "kubectl":
            _keep_last_applied(result, config)
        try:
            entries = write_entries(managers)
        except TooDeepError as exc:
            raise bad_request("the object has too many levels") from exc
        metadata = {**(result.get("metadata") or {}), "managedFields": entries}
        return {**result, "metadata": metadata}

    @staticmethod
    def _failure(conflicts: Mapping[ManagerKey, FieldSet], writer: Writer) -> APIStatusError:
        if writer.subresource == _SCALE:
            # A Scale always has this field.
            fields: FieldSet = {"f:spec": {"f:replicas": {}}}
            conflicts = {attrs.evolve(key, api_version="autoscaling/v1"): fields for key in conflicts}
        return conflict_error(conflicts)

    @staticmethod
    def _check(served: ServedKind, config: JSONObject) -> None:
        group, _, version = str(config.get("apiVersion") or "").rpartition("/")
        kind = str(config.get("kind") or "")
        if (group, version, kind) != (served.info.group, served.info.version, served.info.kind):
            raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
        metadata = config.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")


def _full_name(served: ServedKind, config: JSONObject) -> str:
    metadata = config.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    info = served.info
    return (
        f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}; {info.group}/{info.version}, Kind={info.kind}"
    )


def _unmanaged(obj: JSONObject) -> JSONObject:
    """Return an object without its managers."""
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _without_times(entries: list[JSONObject] | None) -> list[JSONObject]:
    return [{**entry, "time": None} for entry in entries or ()]


def _owned(obj: JSONObject) -> JSONObject:
    """Return the part of an object that managers can own."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in NOT_OWNED}
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")} | {"metadata": metadata}


# --- kubectl's client-side apply --------------------------------------------------------------------------------------


def _last_applied(served: ServedKind, of: FieldType, live: JSONObject) -> FieldSet:
    """Return the fields of kubectl's last client-side apply that no other manager has changed since then."""
    annotation = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        last: Any = decode(annotation.encode()) if isinstance(annotation, str) and annotation else None
    except DecodeError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != served.info.api_version or any(problems(of, last)):
        return {}
    differences = compare(of, last, live)
    fields = fields_of(of, last)
    for part in (differences.modified, differences.added, differences.removed):
        fields = difference(fields, part)
    return fields


def _left(conflict: ApplyConflict, allowed: FieldSet) -> dict[ManagerKey, FieldSet]:
    left = {key: difference(fields, allowed) for key, fields in conflict.conflicts.items()}
    return {key: fields for key, fields in left.items() if fields}


def _keep_last_applied(obj: JSONObject, config: JSONObject) -> None:
    """If the object has kubectl's last-applied annotation, set the annotation to the applied configuration."""
    metadata = obj.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return
    given = config.get("metadata") or {}
    kept = {key: value for key, value in (given.get("annotations") or {}).items() if key != LAST_APPLIED}
    rest = {key: value for key, value in given.items() if key != "annotations"}
    applied = {**config, "metadata": {**rest, "annotations": kept} if kept else rest}
    text = json_text(applied) + "\n"
    obj["metadata"] = {**metadata, "annotations": {**annotations, LAST_APPLIED: text}}


def _replicas(served: ServedKind) -> FieldSet:
    """Return the field of an object that is the replicas of its Scale."""
    fields: FieldSet = {}
    for name in reversed((served.scale or {}).get("specReplicasPath", ".spec.replicas").split(".")[1:]):
        fields = {f"f:{name}": fields}
    return fields


def _have_owner(managers: Managers, fields: FieldSet) -> bool:
    return any(intersection(owned.fields, fields) for owned in managers.values())


def _never_owned(served: ServedKind, writer: Writer) -> FieldSet:
    """Return the fields that a write does not change, so that the writer does not own them."""
    if not served.has_status or writer.writes_all:
        return {}
    if writer.subresource != "status":
        return _STATUS
    kept = served.kept_in_status
    if kept == "metadata":
        return _METADATA | _SPEC
    return _SPEC | {"f:metadata": {f"f:{kept}": {}}} if kept else _SPEC
